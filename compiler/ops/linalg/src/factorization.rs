//! Factorizations of matrices, and triangular systems: `cholesky triangular_solve lu qr eigh eig svd`.
//!
//! The last two dimensions are the dimensions of a matrix, and all others are a batch. A device factorizes the matrices of its own block,
//! each as a whole, by a function of the runtime. Functions that can be computed from these are written in the
//! language: `compiler/functions/prelude/linalg.spmd`.

use crate::eigen;
use crate::reference::{self, Matrix};
use spmdc_abi::{LibraryFunction, MatrixFunction, TriangularSystem};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{count, requires, undefined};
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::lower::calls::{CallArray, LibraryCalls};
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Func, Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Definitions, Effect, Elements, Infer, Library, Linear, Lowered, Manual, NamedAxes, NestLowering,
    Placement, Properties, Reads, Rules, Semantics, Typing,
};
use spmdc_ir::stablehlo::Exported;
use spmdc_layout::cost;
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};

/// A function of the matrices in the last two dimensions. Systems have a second operand, the right-hand sides, and `eig` of complex
/// matrices has two planes; the other dimensions are the dimensions of the first operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Factorization(pub MatrixFunction);

/// Rows of a matrix from which on its Cholesky factor is computed where the rows are. Few in debug builds, so that small programs test it.
const LARGE: usize = if cfg!(debug_assertions) { 5 } else { 128 };

/// Whether matrices of this type are factorized.
pub fn is_supported(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64)
}

impl Factorization {
    fn title(&self) -> &'static str {
        match self.0 {
            MatrixFunction::Cholesky => "cholesky",
            MatrixFunction::TriangularSolve(_) => "triangular_solve",
            MatrixFunction::Solve => "lu_solve",
            MatrixFunction::Lu => "lu",
            MatrixFunction::LuDiagonal => "lu_diagonal",
            MatrixFunction::LuComplete => "lu_complete",
            MatrixFunction::Qr { .. } => "qr",
            MatrixFunction::QrBlock { .. } => "qr_blocks",
            MatrixFunction::QrSigns => "qr_signs",
            MatrixFunction::CholeskyRows { .. } => "cholesky_rows",
            MatrixFunction::CholeskyChecked { .. } => "cholesky_checked",
            MatrixFunction::TriangularRows { .. } => "triangular_rows",
            MatrixFunction::TriangularSums { .. } => "triangular_sums",
            MatrixFunction::Product => "multiply_blocks",
            MatrixFunction::Eigh { .. } => "eigh",
            MatrixFunction::Eig { .. } => "eig_planes",
            MatrixFunction::Svd { .. } => "svd",
        }
    }

    /// Whether the rows of these matrices may be split: each device has its rows of the Cholesky factor, or of the diagonal of U. Small
    /// matrices are gathered at once, which takes fewer exchanges.
    pub fn is_large(&self, a: &ArrayType) -> bool {
        matches!(self.0, MatrixFunction::Cholesky | MatrixFunction::LuDiagonal)
            && split(a).is_some_and(|(_, rows, _)| rows >= LARGE)
    }

    /// For a system with right-hand sides, whether the matrix is on the left of the solution.
    fn is_left(&self) -> Option<bool> {
        if let MatrixFunction::TriangularSolve(system) = self.0 {
            return Some(system.left);
        }
        (self.0 == MatrixFunction::Solve).then_some(true)
    }

    /// Whether the rows of the matrices of a system may be split: the devices exchange the solution, or sums of its size, which must
    /// be less than the matrices.
    pub fn is_large_system(&self, a: &ArrayType, sides: &ArrayType) -> bool {
        let Some(is_left) = self.is_left() else { return false };
        let (Some((_, rows, _)), Some((_, m, n))) = (split(a), split(sides)) else { return false };
        let sides = if is_left { n } else { m };
        let is_of_rows = matches!(&self.0, MatrixFunction::TriangularSolve(system) if system.is_of_rows());
        rows >= LARGE && sides * if is_of_rows { 1 } else { 2 } < rows
    }

    /// Whether the rows of these matrices may be split: Q and R are then computed from blocks and their small factors.
    pub fn is_tall(&self, a: &ArrayType) -> bool {
        let is_thin = matches!(self.0, MatrixFunction::Qr { full: false, .. });
        is_thin && split(a).is_some_and(|(_, rows, columns)| rows > columns)
    }

    /// The types and shapes of the results for one matrix.
    fn results(&self, dtype: DType, rows: usize, columns: usize, sides: &[usize]) -> Vec<(DType, Vec<usize>)> {
        let least = rows.min(columns);
        let own = |sizes: &[usize]| (dtype, sizes.to_vec());
        match &self.0 {
            MatrixFunction::Cholesky | MatrixFunction::CholeskyRows { .. } | MatrixFunction::CholeskyChecked { .. } => {
                vec![own(&[rows, columns])]
            }
            MatrixFunction::TriangularSolve(_) | MatrixFunction::Solve | MatrixFunction::TriangularRows { .. } => {
                vec![own(sides)]
            }
            MatrixFunction::TriangularSums { own: next, .. } => vec![own(&[next.len(), sides[1]])],
            MatrixFunction::Lu => {
                vec![own(&[rows, columns]), (DType::I32, vec![least]), (DType::I32, vec![rows])]
            }
            MatrixFunction::LuDiagonal => vec![own(&[rows]), (DType::I32, vec![rows])],
            MatrixFunction::LuComplete => {
                vec![own(&[rows, rows]), (DType::I32, vec![rows]), (DType::I32, vec![rows])]
            }
            MatrixFunction::Qr { full, q } => {
                let made = if *full { rows } else { least };
                q.then(|| own(&[rows, made])).into_iter().chain([own(&[made, columns])]).collect()
            }
            MatrixFunction::QrBlock { width } => vec![own(&[rows, *width]), own(&[*width, columns])],
            MatrixFunction::QrSigns => vec![own(&[1, columns]), own(&[columns, 1])],
            MatrixFunction::Product => vec![own(&[rows, sides[1]])],
            MatrixFunction::Eigh { .. } => vec![own(&[rows]), own(&[rows, rows])],
            MatrixFunction::Eig { vectors } => {
                let made = [own(&[rows]), own(&[rows, rows])].into_iter().take(if *vectors { 2 } else { 1 });
                made.flat_map(|plane| [plane.clone(), plane]).collect()
            }
            MatrixFunction::Svd { vectors: None } => vec![own(&[least])],
            MatrixFunction::Svd { vectors: Some(full) } => {
                let of = |size: usize| if *full { size } else { least };
                vec![own(&[rows, of(rows)]), own(&[least]), own(&[of(columns), columns])]
            }
        }
    }

    /// The results for one matrix of this element type.
    fn apply(&self, a: &Matrix, sides: Option<&Matrix>, dtype: DType) -> Vec<Matrix> {
        match self.0 {
            MatrixFunction::Cholesky => vec![reference::cholesky(a)],
            MatrixFunction::TriangularSolve(system) => {
                let sides = sides.expect("a triangular system has right sides");
                vec![reference::triangular_solve(&system, a, sides)]
            }
            MatrixFunction::Solve => vec![reference::solve(a, sides.expect("a system has right sides"))],
            MatrixFunction::Lu => reference::lu(a).into(),
            MatrixFunction::LuDiagonal => reference::lu_diagonal(a).into(),
            MatrixFunction::LuComplete => reference::lu_complete(a).into(),
            MatrixFunction::Qr { full, q } => {
                let [product, upper] = reference::qr(a, full);
                if q { vec![product, upper] } else { vec![upper] }
            }
            MatrixFunction::QrBlock { width } => reference::qr_block(a, width).into(),
            MatrixFunction::QrSigns => {
                let format = dtype.format().expect("matrices are of floats");
                reference::qr_signs(a, (-f64::from(format.mantissa)).exp2()).into()
            }
            MatrixFunction::Product
            | MatrixFunction::CholeskyRows { .. }
            | MatrixFunction::CholeskyChecked { .. }
            | MatrixFunction::TriangularRows { .. }
            | MatrixFunction::TriangularSums { .. } => {
                unreachable!("`{}` is about blocks", self.title())
            }
            MatrixFunction::Eigh { lower } => reference::eigh(a, lower).into(),
            MatrixFunction::Eig { vectors } => {
                let mut results = eigen::eig(a, sides);
                results.truncate(if vectors { 4 } else { 2 });
                results
            }
            MatrixFunction::Svd { vectors } => {
                let [u, values, v] = reference::svd(a, vectors == Some(true));
                if vectors.is_some() { vec![u, values, v] } else { vec![values] }
            }
        }
    }
}

/// The dimensions before the dimensions of the matrix, and these.
pub(crate) fn split(array: &ArrayType) -> Option<(&[usize], usize, usize)> {
    let (matrix, batch) = (array.shape.last_chunk::<2>()?, &array.shape[..array.rank() - 2]);
    Some((batch, matrix[0], matrix[1]))
}

impl Infer for Factorization {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let title = if let MatrixFunction::Eig { vectors } = self.0 {
            if vectors { "eig" } else { "eigvals" }
        } else {
            self.title()
        };
        let mismatch = |message: String| Mismatch::new(Code::E0205, message);
        let Some((batch, rows, columns)) = args.first().and_then(|a| split(a)) else {
            let found = args.first().map_or_else(|| "nothing".to_string(), |a| a.to_string());
            return Err(Mismatch::new(Code::E0206, requires(format_args!("`{title}`"), "matrices", &found)));
        };
        let dtype = args[0].dtype;
        if !is_supported(dtype) {
            let message = undefined(format_args!("`{title}`"), dtype.name());
            return Err(Mismatch::new(Code::E0215, message)
                .help("convert it first, as in f32(x): it is defined for f32 and f64"));
        }
        if i32::try_from(rows).is_err() || i32::try_from(columns).is_err() {
            return Err(mismatch(requires(format_args!("`{title}`"), "at most 2^31 - 1 rows and columns", args[0])));
        }
        let (wanted, is_square) = match self.0 {
            MatrixFunction::TriangularSolve(_) | MatrixFunction::Solve => (2, true),
            MatrixFunction::Cholesky
            | MatrixFunction::LuDiagonal
            | MatrixFunction::LuComplete
            | MatrixFunction::QrSigns
            | MatrixFunction::Eigh { .. } => (1, true),
            MatrixFunction::Eig { .. } => (args.len().clamp(1, 2), true),
            MatrixFunction::Lu | MatrixFunction::Qr { .. } | MatrixFunction::Svd { .. } => (1, false),
            MatrixFunction::QrBlock { .. }
            | MatrixFunction::CholeskyRows { .. }
            | MatrixFunction::CholeskyChecked { .. }
            | MatrixFunction::TriangularRows { .. }
            | MatrixFunction::TriangularSums { .. }
            | MatrixFunction::Product => {
                return Err(mismatch(format!("`{title}` works on blocks of matrices")));
            }
        };
        if args.len() != wanted {
            return Err(mismatch(count(format_args!("`{title}`"), wanted, "array", args.len())));
        }
        if is_square && rows != columns {
            return Err(mismatch(requires(format_args!("`{title}`"), "square matrices", args[0])));
        }
        if matches!(self.0, MatrixFunction::Eig { .. }) && args[1..].iter().any(|other| *other != args[0]) {
            return Err(mismatch(format!("the planes of `{title}` have different types: {} and {}", args[0], args[1])));
        }
        let mut sides = Vec::new();
        if let Some(left) = self.is_left() {
            let fits = split(args[1]).filter(|&(own, m, n)| own == batch && rows == if left { m } else { n });
            let Some((_, m, n)) = fits.filter(|_| args[1].dtype == dtype) else {
                let place = if left { "rows" } else { "columns" };
                let message = requires(
                    format_args!("`{title}` of {}", args[0]),
                    format_args!("right-hand sides with {rows} {place} and the same batch dimensions"),
                    args[1],
                );
                return Err(mismatch(message));
            };
            sides = vec![m, n];
        }
        let result = |(dtype, sizes): (DType, Vec<usize>)| {
            let shape: Vec<usize> = batch.iter().copied().chain(sizes).collect();
            ArrayType::new(dtype, &shape)
        };
        Ok(self.results(dtype, rows, columns, &sides).into_iter().map(result).collect())
    }
}

impl Semantics for Factorization {
    fn name(&self) -> &'static str {
        self.title()
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    /// Batch dimensions pass, and dimensions of matrices are needed whole. Right-hand sides are independent of each other, and split rows
    /// of `qr` remain split: `distribute_factorizations` then turns it into several statements, as it does with `cholesky` of large
    /// matrices.
    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let rank = args[0].rank() - 2;
        let batch: Vec<usize> = args[0].shape[..rank].iter().map(|&size| rule.add(size, FactorKind::Pass)).collect();
        if let Some(left) = self.is_left()
            && self.is_large_system(args[0], args[1])
        {
            let [n, sides] = [args[0].shape[rank], args[1].shape[rank + usize::from(left)]];
            let (rows, columns) = (rule.add(n, FactorKind::Pass), rule.add(n, FactorKind::Whole));
            let sides = rule.add(sides, FactorKind::Pass);
            let dims = |own: [usize; 2]| batch.iter().copied().chain(own).map(|factor| vec![factor]).collect();
            let solution: Vec<Vec<usize>> = dims(if left { [rows, sides] } else { [sides, rows] });
            (rule.operands, rule.results) = (vec![dims([rows, columns]), solution.clone()], vec![solution]);
            return rule;
        }
        let mut dims = |array: &&ArrayType| -> Vec<Vec<usize>> {
            let own: Vec<usize> = array.shape[rank..].iter().map(|&size| rule.add(size, FactorKind::Whole)).collect();
            batch.iter().chain(&own).map(|&factor| vec![factor]).collect()
        };
        let operands: Vec<Vec<Vec<usize>>> = args.iter().map(&mut dims).collect();
        if let Some(left) = self.is_left() {
            let sides = operands[1].clone();
            rule.factors[sides[rank + usize::from(left)][0]].kind = FactorKind::Pass;
            (rule.operands, rule.results) = (operands, vec![sides]);
            return rule;
        }
        if self.is_large(args[0]) {
            let rows = operands[0][rank][0];
            rule.factors[rows].kind = FactorKind::Pass;
            for result in results {
                // The factor has columns, the diagonal has none.
                let columns = result.shape.get(rank + 1).map(|&size| rule.add(size, FactorKind::Whole));
                let made = batch.iter().copied().chain([rows]).chain(columns);
                rule.results.push(made.map(|factor| vec![factor]).collect());
            }
            rule.operands = operands;
            return rule;
        }
        let own = if self.is_tall(args[0]) { results.len() - 1 } else { 0 };
        let mut made: Vec<Vec<Vec<usize>>> = results[own..].iter().map(&mut dims).collect();
        if self.is_tall(args[0]) {
            let rows = operands[0][rank][0];
            rule.factors[rows].kind = FactorKind::Pass;
            // Q has the rows of the matrix.
            for q in &results[..own] {
                let columns = rule.add(q.shape[rank + 1], FactorKind::Whole);
                let dims = batch.iter().copied().chain([rows, columns]).map(|factor| vec![factor]);
                made.insert(0, dims.collect());
            }
        }
        (rule.operands, rule.results) = (operands, made);
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let types = args.iter().map(|arg| &arg.ty).collect::<Vec<_>>();
        let results = self.infer(&types).expect("the statement has been typed");
        let calls: usize = args[0].shape()[..args[0].ty.rank() - 2].iter().product();
        let mut elements: Vec<Vec<f64>> = vec![Vec::new(); results.len()];
        for call in 0..calls {
            let matrices: Vec<Matrix> = args.iter().map(|arg| Matrix::of(arg, call)).collect();
            for (all, made) in elements.iter_mut().zip(self.apply(&matrices[0], matrices.get(1), args[0].dtype())) {
                all.extend(made.elements());
            }
        }
        let array = |(ty, elements): (ArrayType, Vec<f64>)| {
            if ty.dtype.is_float() {
                return Array::from_floats(ty.dtype, &ty.shape, &elements);
            }
            let whole: Vec<i128> = elements.iter().map(|&element| element as i128).collect();
            Array::from_ints(ty.dtype, &ty.shape, &whole)
        };
        Ok(results.into_iter().zip(elements).map(array).collect())
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let args = args.join(", ");
        match &self.0 {
            MatrixFunction::Cholesky => format!("cholesky({args}, symmetrize_input=false)"),
            MatrixFunction::TriangularSolve(TriangularSystem { left, lower, transposed, unit }) => format!(
                "triangular_solve({args}, left_side={left}, lower={lower}, transpose_a={transposed}, unit_diagonal={unit})"
            ),
            MatrixFunction::Solve => format!("lu_solve({args})"),
            MatrixFunction::Lu => format!("lu({args})"),
            MatrixFunction::LuDiagonal => format!("lu_diagonal({args})"),
            MatrixFunction::LuComplete => format!("lu_complete({args})"),
            MatrixFunction::QrSigns => format!("qr_signs({args})"),
            MatrixFunction::QrBlock { .. }
            | MatrixFunction::CholeskyRows { .. }
            | MatrixFunction::CholeskyChecked { .. }
            | MatrixFunction::TriangularRows { .. }
            | MatrixFunction::TriangularSums { .. }
            | MatrixFunction::Product => format!("{}({args})", self.title()),
            MatrixFunction::Qr { q: false, .. } => format!("qr({args}, mode=\"r\")"),
            MatrixFunction::Qr { full, .. } => {
                format!("qr({args}, mode=\"{}\")", if *full { "complete" } else { "reduced" })
            }
            MatrixFunction::Eigh { lower } => {
                format!("eigh({args}, UPLO=\"{}\", symmetrize_input=false)", if *lower { "L" } else { "U" })
            }
            MatrixFunction::Eig { vectors } => format!("eig_planes({args}, vectors={vectors})"),
            MatrixFunction::Svd { vectors: None } => format!("svd({args}, compute_uv=false)"),
            MatrixFunction::Svd { vectors: Some(full) } => format!("svd({args}, full_matrices={full})"),
        }
    }

    /// The leading terms of the textbooks' counts (Golub and Van Loan, "Matrix Computations").
    fn flops(&self, args: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        let Some((batch, rows, columns)) = args.first().and_then(|a| split(a)) else { return 0 };
        let calls: u64 = batch.iter().map(|&size| size as u64).product();
        let solved = if self.0 == MatrixFunction::Solve { 2 } else { 1 };
        let is_plane = matches!(self.0, MatrixFunction::Eig { .. });
        let sides = args.get(1).filter(|_| !is_plane).map_or(0, |sides| solved * sides.len());
        calls
            .saturating_mul(self.operations(rows, columns, 0))
            .saturating_add((sides as u64).saturating_mul(rows as u64))
    }
}

impl Factorization {
    /// Operations for one matrix, with this number of right-hand sides.
    pub(crate) fn operations(&self, rows: usize, columns: usize, sides: usize) -> u64 {
        let (m, n) = (rows as f64, columns as f64);
        let (least, most) = (m.min(n), m.max(n));
        let count = match self.0 {
            MatrixFunction::Cholesky => n * n * n / 3.0,
            MatrixFunction::TriangularSolve(_) => n * n * sides as f64,
            MatrixFunction::Solve => n * n * (n / 1.5 + 2.0 * sides as f64),
            MatrixFunction::Lu | MatrixFunction::LuDiagonal | MatrixFunction::LuComplete => {
                least * least * (most - least / 3.0)
            }
            MatrixFunction::Qr { q, .. } => {
                let own = 2.0 * least * least * (most - least / 3.0);
                if q { 2.0 * own } else { own }
            }
            MatrixFunction::QrBlock { .. } => 4.0 * least * least * (most - least / 3.0),
            MatrixFunction::QrSigns => n * n * n / 1.5,
            MatrixFunction::CholeskyRows { .. } => m * n * (m + 2.0 * sides as f64),
            MatrixFunction::CholeskyChecked { .. } => m * n,
            MatrixFunction::TriangularRows { .. } | MatrixFunction::TriangularSums { .. } => 2.0 * m * m * sides as f64,
            MatrixFunction::Product => 2.0 * m * n * sides as f64,
            MatrixFunction::Eigh { .. } => 9.0 * n * n * n,
            MatrixFunction::Eig { vectors } => n * n * n * if vectors { 25.0 } else { 10.0 },
            MatrixFunction::Svd { vectors: None } => 4.0 * least * least * most,
            MatrixFunction::Svd { vectors: Some(_) } => 4.0 * least * least * most + 22.0 * least * least * least,
        };
        count as u64
    }
}

/// The properties of factorizations.
pub(crate) fn properties() -> Properties<'static> {
    Properties {
        effect: Effect::None,
        manual: Manual::Local,
        placement: Placement::Follows,
        linear: Linear::No,
        combines: Combines::Nothing,
        elements: Elements::Other,
        keeps_alignment: false,
    }
}

impl Rules for Factorization {
    fn derivative(&self) -> Derivative<'_> {
        self.own_derivative()
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(self.clone())
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Library(self)
    }

    fn properties(&self) -> Properties<'_> {
        properties()
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Written(self)
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

/// Calls of the runtime for the matrices of each device's blocks.
pub(crate) fn lower(function: &MatrixFunction, lowering: &mut Lowering<'_>, stmt: &Stmt) {
    let rank = lowering.ty(stmt.args[0]).rank() - 2;
    let dims = |lowering: &Lowering<'_>, value: Value| (rank..lowering.ty(value).rank()).collect::<Vec<usize>>();
    let arrays = |values: &[Value]| -> Vec<CallArray> {
        values.iter().map(|&value| lowering.call_array(value, &dims(lowering, value))).collect()
    };
    let (operands, mut results) = (arrays(&stmt.args), arrays(&stmt.results));
    let block = lowering.ty(stmt.args[0]).block_shape(lowering.mesh);
    let dtype = lowering.ty(stmt.args[0]).array.dtype;
    let (calls, rows, columns) = (block[..rank].iter().product(), block[rank], block[rank + 1]);
    let other = stmt.args.get(1).map_or([0; 2], |&other| {
        let block = lowering.ty(other).block_shape(lowering.mesh);
        [block[rank], block[rank + 1]]
    });
    let sides = match function {
        MatrixFunction::CholeskyRows { .. } => other[0],
        MatrixFunction::Solve | MatrixFunction::TriangularRows { .. } | MatrixFunction::TriangularSums { .. } => {
            other[1]
        }
        MatrixFunction::Cholesky
        | MatrixFunction::TriangularSolve(_)
        | MatrixFunction::Lu
        | MatrixFunction::LuDiagonal
        | MatrixFunction::LuComplete
        | MatrixFunction::Qr { .. }
        | MatrixFunction::QrBlock { .. }
        | MatrixFunction::QrSigns
        | MatrixFunction::CholeskyChecked { .. }
        | MatrixFunction::Product
        | MatrixFunction::Eigh { .. }
        | MatrixFunction::Eig { .. }
        | MatrixFunction::Svd { .. } => other[0].max(other[1]),
    };
    let batch = lowering.call_batch(stmt.args[0], &dims(lowering, stmt.args[0]));
    results.push(lowering.call_slots(calls, batch.len(), function.scratch(dtype, rows, columns, other)));
    lowering.library(LibraryCalls {
        function: LibraryFunction::Matrix(function.clone()),
        operands,
        results,
        batch,
        owners: None,
        cost: cost::of_factorization(Factorization(function.clone()).operations(rows, columns, sides)),
        checks: Vec::new(),
    });
}

impl NestLowering for Factorization {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        lower(&self.0, lowering, stmt);
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Buffer
    }
}

impl Library for Factorization {
    fn streams(&self, _: usize, _: &Stmt, _: &Stmt, _: &Func, _: &Mesh) -> bool {
        false
    }

    fn computes<'a>(&self, _: usize, _: &Stmt, _: &'a Func, _: &Mesh, _: Definitions<'a, '_>) -> Vec<Value> {
        Vec::new()
    }
}
