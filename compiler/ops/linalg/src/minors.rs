//! `determinant(d, x)`, `cofactors(c, x)` and `log_determinant(l, x)`: computed determinants, cofactors and logarithms of determinants,
//! with their matrices.
//!
//! All return the first operand. The derivative of a logarithm is the inverse: infinite or NaN at a singular matrix. The derivatives of the
//! others only depend on the matrices, and are finite at singular matrices. They do not follow from the derivative of a factorization,
//! which is infinite there. With full exchanges `P x Q = L D U`, where L and U have ones on their diagonals and no element larger than 1.
//! So they have inverses for every x, and `D` has a zero for each dimension of the rank deficiency. The adjugate of the product is the
//! product of adjugates: `adj(L D U) = U⁻¹ adj(D) L⁻¹`, and `adj(D)` has the products of all other elements of D. Its own derivative along
//! T follows from the derivative at D: the elements `i` and `j` of D are both left out (Jacobi's formula, and its second order). If the
//! matrix has a rank deficiency, derivatives from the third on are derivatives of the factorization.

use crate::factorization::Factorization;
use crate::tangents::Matrices;
use spmdc_abi::{MatrixFunction, ReduceOp, TriangularSystem};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::{Derivative, Tangents};
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties, Reads, Rules,
    Semantics, Typing,
};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_kernel::scalar::{BinaryOp, CompareOp};
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};
use spmdc_ops::arithmetic::Arithmetic;
use spmdc_ops::broadcast::broadcast;
use spmdc_ops::cast::cast;
use spmdc_ops::constant::Constant;
use spmdc_ops::iota::Iota;
use spmdc_ops::makers;
use spmdc_ops::products::of_others;
use spmdc_ops::reduce::reduce;
use spmdc_ops::sort::{LineOrder, Sort};

/// Determinants of the square matrices in the last two dimensions, or of these without one row and one column each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Minors {
    /// `determinant(d, x)`: the determinants d of the matrices x.
    Determinant,
    /// `cofactors(c, x)`: the derivatives c of the determinants by each element of the matrices x.
    Cofactors,
    /// `log_determinant(l, x)`: the logarithms l of the magnitudes of the determinants of the matrices x.
    Logarithm,
}

impl Semantics for Minors {
    fn name(&self) -> &'static str {
        match self {
            Minors::Determinant => "determinant",
            Minors::Cofactors => "cofactors",
            Minors::Logarithm => "log_determinant",
        }
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    /// The matrices are not read, so they may have any layout.
    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let dims: Vec<Vec<usize>> = args[0].shape.iter().map(|&size| vec![rule.add(size, FactorKind::Pass)]).collect();
        let mut matrices = dims.clone();
        for &size in &args[1].shape[dims.len()..] {
            matrices.push(vec![rule.add(size, FactorKind::Pass)]);
        }
        rule.operands.extend([dims.clone(), matrices]);
        rule.results.push(dims);
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(vec![args[0].clone()])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("{}({}, {})", self.name(), args[0], args[1])
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for Minors {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let [own, matrices] = args else {
            return Err(Mismatch::new(Code::E0201, format!("`{}` takes two arrays", self.name())));
        };
        let kept = match self {
            Minors::Determinant | Minors::Logarithm => matrices.rank().saturating_sub(2),
            Minors::Cofactors => matrices.rank(),
        };
        let is_square = matches!(matrices.shape[..], [.., rows, columns] if rows == columns);
        if !is_square || own.dtype != matrices.dtype || own.shape != matrices.shape[..kept] {
            let message = format!("{own} cannot hold the {}s of {matrices}", self.name().trim_end_matches('s'));
            return Err(Mismatch::new(Code::E0205, message));
        }
        Ok(vec![ArrayType::clone(own)])
    }
}

impl Rules for Minors {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Tangents(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(*self)
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Point(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::No,
            combines: Combines::Nothing,
            elements: Elements::Other,
            keeps_alignment: true,
        }
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Written(self)
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl WritesStablehlo for Minors {
    fn write(&self, _: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        Ok(vec![args[0].clone()])
    }
}

impl Point for Minors {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        kernel.operand(stmt.args[0], index)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl Tangents for Minors {
    fn tangents(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        given: &[Option<Value>],
    ) -> Result<Vec<Option<Value>>, Diagnostic> {
        let (x, Some(change)) = (stmt.args[1], given[1]) else { return Ok(vec![None]) };
        let dtype = build.ty(x).dtype();
        if *self == Minors::Logarithm {
            let mut matrices = Matrices(build);
            let relative = matrices.0.emit1(Factorization(MatrixFunction::Solve), &[x, change])?;
            let parts = matrices.diagonal(relative)?;
            let last = build.ty(parts).rank() - 1;
            let sum = reduce(build, ReduceOp::Sum, parts, &[last], false)?;
            // An elimination of a singular matrix may have finite numbers, which mean nothing.
            let mut terms = Arithmetic(build);
            let (least, one) = (terms.number(sum, f64::NEG_INFINITY)?, terms.number(sum, 1.0)?);
            let most = terms.number(sum, f64::INFINITY)?;
            let is_singular = terms.compare(CompareOp::Eq, stmt.args[0], least)?;
            let factor = terms.select(is_singular, most, one)?;
            return Ok(vec![Some(terms.mul(factor, sum)?)]);
        }
        if *self == Minors::Cofactors {
            let wide = cast(build, x, DType::F64)?;
            let change = cast(build, change, DType::F64)?;
            let found = FullElimination::of(build, wide)?.change_of_cofactors(build, change)?;
            return Ok(vec![Some(cast(build, found, dtype)?)]);
        }
        // No derivative is taken through the computation of the cofactors.
        let fixed = build.stopped_alias(x);
        let wide = cast(build, fixed, DType::F64)?;
        let found = FullElimination::of(build, wide)?.cofactors(build)?;
        let found = cast(build, found, dtype)?;
        let cofactors = build.emit1(Minors::Cofactors, &[found, x])?;
        let parts = Arithmetic(build).mul(cofactors, change)?;
        let rank = build.ty(parts).rank();
        Ok(vec![Some(reduce(build, ReduceOp::Sum, parts, &[rank - 2, rank - 1], false)?)])
    }
}

/// The factors of matrices with rows and columns exchanged.
struct FullElimination {
    /// L⁻¹
    lower: Value,
    /// U⁻¹
    upper: Value,
    /// The diagonal of D.
    pivots: Value,
    /// The source of each row.
    rows: Value,
    /// The source of each column.
    columns: Value,
}

impl FullElimination {
    fn of(build: &mut CallBuilder, x: Value) -> Result<FullElimination, Diagnostic> {
        let shape = build.ty(x).shape().to_vec();
        let factors = build.emit(Factorization(MatrixFunction::LuComplete), &[x])?;
        let identity = makers::identity(build, build.ty(x).dtype(), shape[shape.len() - 1])?;
        let identity = broadcast(build, identity, &shape)?;
        let mut matrices = Matrices(build);
        let system = TriangularSystem { left: true, lower: true, transposed: false, unit: true };
        let lower = matrices.solve(system, factors[0], identity)?;
        // A row without a pivot has zeros alone.
        let pivots = matrices.diagonal(factors[0])?;
        let (zero, one) = (matrices.terms().number(pivots, 0.0)?, matrices.terms().number(pivots, 1.0)?);
        let is_zero = matrices.terms().compare(CompareOp::Eq, pivots, zero)?;
        let divisors = matrices.terms().select(is_zero, one, pivots)?;
        let divisors = matrices.column(divisors)?;
        let above = matrices.where_indices(factors[0], CompareOp::Lt)?;
        let above = matrices.terms().div(above, divisors)?;
        let upper = matrices.solve(TriangularSystem { lower: false, ..system }, above, identity)?;
        Ok(FullElimination { lower, upper, pivots, rows: factors[1], columns: factors[2] })
    }

    /// The cofactors of the matrices: the transposed adjugates.
    fn cofactors(&self, build: &mut CallBuilder) -> Result<Value, Diagnostic> {
        let last = build.ty(self.pivots).rank() - 1;
        let others = of_others(build, self.pivots, &[last])?;
        let mut matrices = Matrices(build);
        let others = matrices.row(others)?;
        let scaled = matrices.terms().mul(self.upper, others)?;
        let adjugate = matrices.product(scaled, self.lower)?;
        self.placed(build, adjugate)
    }

    /// The tangent of the cofactors for the tangent of the matrices.
    fn change_of_cofactors(&self, build: &mut CallBuilder, change: Value) -> Result<Value, Diagnostic> {
        let mut matrices = Matrices(build);
        let moved = matrices.exchanged(change, self.rows, self.columns)?;
        let left = matrices.product(self.lower, moved)?;
        let inner = matrices.product(left, self.upper)?;
        let shape = matrices.shape(inner);
        // Row i has the pivots, with 1 in the place of its own: the products of all others of row i lack two.
        let one = matrices.terms().number(inner, 1.0)?;
        let ones = broadcast(matrices.0, one, &shape)?;
        let identity = matrices.where_indices(ones, CompareOp::Eq)?;
        let is_own = matrices.terms().compare(CompareOp::Eq, identity, one)?;
        let row = matrices.row(self.pivots)?;
        let row = broadcast(matrices.0, row, &shape)?;
        let rows = matrices.terms().select(is_own, one, row)?;
        let others = of_others(matrices.0, rows, &[shape.len() - 1])?;
        let others = matrices.where_indices(others, CompareOp::Ne)?;
        let diagonal = matrices.diagonal(inner)?;
        let diagonal = matrices.column(diagonal)?;
        let sums = matrices.product(others, diagonal)?;
        let sums = broadcast(matrices.0, sums, &shape)?;
        let sums = matrices.where_indices(sums, CompareOp::Eq)?;
        let beside = matrices.terms().mul(others, inner)?;
        let middle = matrices.terms().sub(sums, beside)?;
        let left = matrices.product(self.upper, middle)?;
        let adjugate = matrices.product(left, self.lower)?;
        self.placed(build, adjugate)
    }

    /// The cofactors of the matrices from the adjugate of those with exchanged rows and columns.
    fn placed(&self, build: &mut CallBuilder, adjugate: Value) -> Result<Value, Diagnostic> {
        let sign = self.sign(build, adjugate)?;
        let (rows, columns) = (inverse(build, self.rows)?, inverse(build, self.columns)?);
        let mut matrices = Matrices(build);
        let cofactors = matrices.turned(adjugate)?;
        let placed = matrices.exchanged(cofactors, rows, columns)?;
        matrices.terms().mul(placed, sign)
    }

    /// -1 for an odd number of exchanges, and 1 for an even one.
    fn sign(&self, build: &mut CallBuilder, like: Value) -> Result<Value, Diagnostic> {
        let mut count: Option<Value> = None;
        for places in [self.rows, self.columns] {
            // Pairs in the wrong order.
            let mut matrices = Matrices(build);
            let (row, column) = (matrices.row(places)?, matrices.column(places)?);
            let is_exchanged = matrices.terms().compare(CompareOp::Gt, column, row)?;
            let pairs = cast(build, is_exchanged, DType::I32)?;
            let pairs = Matrices(build).where_indices(pairs, CompareOp::Lt)?;
            let rank = build.ty(pairs).rank();
            let own = reduce(build, ReduceOp::Sum, pairs, &[rank - 2, rank - 1], true)?;
            count = Some(match count {
                Some(count) => Arithmetic(build).add(count, own)?,
                None => own,
            });
        }
        let count = count.expect("rows and columns are counted");
        let two = build.emit1(Constant::scalar(DType::I32, 2), &[])?;
        let zero = build.emit1(Constant::scalar(DType::I32, 0), &[])?;
        let rest = Arithmetic(build).binary(BinaryOp::Rem, count, two)?;
        let is_even = Arithmetic(build).compare(CompareOp::Eq, rest, zero)?;
        let (one, less) = (Arithmetic(build).number(like, 1.0)?, Arithmetic(build).number(like, -1.0)?);
        Arithmetic(build).select(is_even, one, less)
    }
}

/// The place of each number of a permutation.
fn inverse(build: &mut CallBuilder, places: Value) -> Result<Value, Diagnostic> {
    let shape = build.ty(places).shape().to_vec();
    let axis = shape.len() - 1;
    let numbers = build.emit1(Iota { ty: ArrayType::new(DType::I32, &shape), axis }, &[])?;
    let order = LineOrder { keys: 1, axis, descending: false, signed_zeros: false };
    Ok(build.emit(Sort(order), &[places, numbers])?[1])
}

impl Call for Minors {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The determinants d of the matrices x, which have been computed.
        determinant(d: Array, x: Array) in_dumps "" "write `det(x)`";
        /// The derivatives c of the determinants of the matrices x by their elements, which have been computed.
        cofactors(c: Array, x: Array) in_dumps "" "write `grad(det)(x)`";
        /// The logarithms l of the magnitudes of the determinants of the matrices x, which have been computed.
        log_determinant(l: Array, x: Array) in_dumps "" "write `slogdet(x)`";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let (own, op) = match name {
            "determinant" => ("d", Minors::Determinant),
            "log_determinant" => ("l", Minors::Logarithm),
            _ => ("c", Minors::Cofactors),
        };
        let operands = [args.array(build, own)?, args.array(build, "x")?];
        Ok(Term::Array(build.emit1(op, &operands)?))
    }
}
