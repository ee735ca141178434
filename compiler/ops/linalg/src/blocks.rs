//! Factorizations of matrices whose rows are split.
//!
//! `cholesky_rows(a, l, parts=4)` is a step of the Cholesky factorization, and `cholesky_checked(a, last, parts=4)` the last one: see the pass
//! `distribute_factorizations`.
//!
//! `qr_blocks(x, parts=4)` and `multiply_blocks(q, p, parts=4)`: the first and the last step of the QR of matrices whose rows are split
//! (TSQR; Demmel et al., "Communication-optimal parallel and sequential QR and LU factorizations", 2012).
//!
//! ```text
//! let (q, r) = qr(x);                                            // x: f32[1000@Y, 8], Y = 4
//! =>
//! let (b, s): (f32[1000@Y, 8], f32[32@Y, 8]) = qr_blocks(x, parts=4);
//! let stack: f32[32, 8] = all_gather(s, Y);
//! let (p, u): (f32[32, 8], f32[8, 8]) = qr(stack);
//! let own: f32[32@Y, 8] = p;                                     // each device has its rows
//! let v: f32[1000@Y, 8] = multiply_blocks(b, own, parts=4);
//! ```
//!
//! The columns of v and the rows of u get the signs that `qr` of the whole matrix would give them (`qr_signs`), which follow from the first
//! rows of v.

use crate::factorization::{Factorization, is_supported, lower, properties, split};
use crate::reference::{self, Matrix};
use spmdc_abi::MatrixFunction;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::undefined;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Func, Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Definitions, Library, Lowered, NamedAxes, NestLowering, PlacesResults, Properties, Reads, Rules, Semantics, Typing,
};
use spmdc_ir::stablehlo::Exported;
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::block_range;
use spmdc_layout::types::{ArrayType, Type};

/// A function of each of `parts` blocks of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixBlocks {
    /// The function.
    pub function: BlockFunction,
    /// The number of blocks of the rows.
    pub parts: usize,
}

/// The functions of blocks of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockFunction {
    /// Q and R of each block: Q has the rows of the block, R as many as the first block has at most. Where a block has fewer rows than
    /// columns, zeros follow.
    Qr,
    /// The product of each block with the block of the second operand.
    Multiply,
    /// A step of the Cholesky factorization: [`MatrixFunction::CholeskyRows`]. The second operand, if there is one, is on all devices.
    CholeskyRows,
    /// Its last step: [`MatrixFunction::CholeskyChecked`].
    CholeskyChecked,
}

impl MatrixBlocks {
    /// The number of columns of each block's Q.
    fn width(&self, rows: usize, columns: usize) -> usize {
        rows.div_ceil(self.parts).min(columns)
    }

    /// The blocks of one matrix.
    fn blocks<'a>(&'a self, matrix: &'a Matrix, rows: usize) -> impl Iterator<Item = Matrix> + 'a {
        (0..self.parts).map(move |part| matrix.rows(block_range(rows, self.parts, part)))
    }

    fn shapes(&self, args: &[&ArrayType]) -> Result<Vec<Vec<usize>>, Mismatch> {
        let mismatch = || {
            let args: Vec<String> = args.iter().map(|ty| ty.to_string()).collect();
            Mismatch::new(Code::E0205, undefined(format_args!("`{}`", self.name()), args.join(" and ")))
        };
        let (batch, rows, columns) = args.first().and_then(|a| split(a)).ok_or_else(mismatch)?;
        let shape = |rows: usize, columns: usize| [batch, &[rows, columns]].concat();
        match (self.function, args) {
            (BlockFunction::Qr, [a]) if is_supported(a.dtype) => {
                let width = self.width(rows, columns);
                Ok(vec![shape(rows, width), shape(width * self.parts, columns)])
            }
            (BlockFunction::Multiply, [a, b]) if is_supported(a.dtype) && a.dtype == b.dtype => {
                let (other, inner, last) = split(b).ok_or_else(mismatch)?;
                if other != batch || inner != columns * self.parts {
                    return Err(mismatch());
                }
                Ok(vec![shape(rows, last)])
            }
            (BlockFunction::CholeskyRows, [a]) if is_supported(a.dtype) && rows == columns => {
                Ok(vec![shape(rows, columns)])
            }
            (BlockFunction::CholeskyRows | BlockFunction::CholeskyChecked, [a, b])
                if is_supported(a.dtype) && a.dtype == b.dtype && rows == columns =>
            {
                let (other, width, end) = split(b).ok_or_else(mismatch)?;
                let height = rows.div_ceil(self.parts);
                let fits = match self.function {
                    // The rows of one block.
                    BlockFunction::CholeskyRows => width == height && end.is_multiple_of(height.max(1)) && end <= rows,
                    BlockFunction::CholeskyChecked | BlockFunction::Qr | BlockFunction::Multiply => {
                        (width, end) == (1, 1)
                    }
                };
                if other != batch || !fits {
                    return Err(mismatch());
                }
                Ok(vec![shape(rows, columns)])
            }
            (
                BlockFunction::Qr
                | BlockFunction::Multiply
                | BlockFunction::CholeskyRows
                | BlockFunction::CholeskyChecked,
                _,
            ) => Err(mismatch()),
        }
    }
}

impl Semantics for MatrixBlocks {
    fn name(&self) -> &'static str {
        match self.function {
            BlockFunction::Qr => "qr_blocks",
            BlockFunction::Multiply => "multiply_blocks",
            BlockFunction::CholeskyRows => "cholesky_rows",
            BlockFunction::CholeskyChecked => "cholesky_checked",
        }
    }

    fn typing(&self) -> Typing<'_> {
        Typing::OfBlocks(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        Factors::unrelated(args, results)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let types: Vec<&ArrayType> = args.iter().map(|arg| &arg.ty).collect();
        let shapes = self.shapes(&types).expect("the statement has been typed");
        let (batch, rows, columns) = split(types[0]).expect("the statement has been typed");
        let mut elements: Vec<Vec<f64>> = vec![Vec::new(); shapes.len()];
        for call in 0..batch.iter().product() {
            let a = Matrix::of(args[0], call);
            match self.function {
                BlockFunction::Qr => {
                    for block in self.blocks(&a, rows) {
                        let made = reference::qr_block(&block, self.width(rows, columns));
                        elements.iter_mut().zip(made).for_each(|(all, made)| all.extend(made.elements()));
                    }
                }
                BlockFunction::CholeskyRows | BlockFunction::CholeskyChecked => {
                    let other = args.get(1).map(|other| Matrix::of(other, call));
                    for part in 0..self.parts {
                        let range = block_range(rows, self.parts, part);
                        let (first, block) = (range.start, a.rows(range));
                        let made = match &other {
                            Some(last) if self.function == BlockFunction::CholeskyChecked => {
                                reference::cholesky_checked(&block, first, last)
                            }
                            known => reference::cholesky_rows(&block, first, known.as_ref()),
                        };
                        elements[0].extend(made.elements());
                    }
                }
                BlockFunction::Multiply => {
                    let b = Matrix::of(args[1], call);
                    for (own, other) in self.blocks(&a, rows).zip(self.blocks(&b, columns * self.parts)) {
                        elements[0].extend(reference::product(&own, &other).elements());
                    }
                }
            }
        }
        let array = |(shape, elements): (&Vec<usize>, Vec<f64>)| Array::from_floats(types[0].dtype, shape, &elements);
        Ok(shapes.iter().zip(elements).map(array).collect())
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("{}({}, parts={})", self.name(), args.join(", "), self.parts)
    }

    fn flops(&self, args: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        let Some((batch, rows, columns)) = args.first().and_then(|a| split(a)) else { return 0 };
        let calls: u64 = batch.iter().map(|&size| size as u64).product();
        let last = results.first().map_or(0, |result| result.shape[result.rank() - 1]);
        let each = match self.function {
            BlockFunction::Qr => {
                let width = self.width(rows, columns);
                let own = Factorization(MatrixFunction::QrBlock { width });
                own.operations(rows.div_ceil(self.parts), columns, 0).saturating_mul(self.parts as u64)
            }
            BlockFunction::Multiply => Factorization(MatrixFunction::Product).operations(rows, columns, last),
            // Each of the steps of a factorization.
            BlockFunction::CholeskyRows => {
                Factorization(MatrixFunction::Cholesky).operations(rows, columns, 0) / self.parts as u64
            }
            BlockFunction::CholeskyChecked => (rows as u64).saturating_mul(columns as u64),
        };
        calls.saturating_mul(each)
    }
}

impl PlacesResults for MatrixBlocks {
    /// E0205 unless the rows of every operand are stored in `parts` blocks, on the same devices.
    fn place(&self, args: &[&Type], mesh: &Mesh) -> Result<Vec<Type>, Mismatch> {
        let shapes = self.shapes(&args.iter().map(|ty| &ty.array).collect::<Vec<_>>())?;
        let rank = args[0].rank() - 2;
        let has_blocks = |ty: &&&Type| {
            let [rows, columns] = [&ty.sharding.dims[rank], &ty.sharding.dims[rank + 1]];
            let is_plain =
                ty.sharding.dims.iter().all(|dim| dim.alignment.is_none()) && ty.sharding.unreduced.is_empty();
            is_plain && mesh.size_of(&rows.axes) == self.parts && columns.axes.is_empty()
        };
        let on_all = |ty: &Type| {
            let mut whole = args[0].sharding.clone();
            whole.dims[rank] = Default::default();
            ty.sharding == whole && ty.varying == args[0].varying
        };
        let (blocks, others) = match self.function {
            BlockFunction::Qr | BlockFunction::Multiply => (args, &[][..]),
            BlockFunction::CholeskyRows | BlockFunction::CholeskyChecked => args.split_at(1),
        };
        if let Some(other) = others.iter().find(|ty| !on_all(ty)) {
            return Err(Mismatch::new(Code::E0205, format!("{} is not replicated", other.display(mesh))));
        }
        let alike = blocks.iter().all(|ty| ty.sharding == args[0].sharding && ty.varying == args[0].varying);
        if let Some(other) = blocks.iter().find(|ty| !alike || !has_blocks(ty)) {
            let message = format!("the rows of {} are not split into {} blocks", other.display(mesh), self.parts);
            return Err(Mismatch::new(Code::E0205, message));
        }
        let result = |shape: Vec<usize>| {
            let mut ty = args[0].clone();
            ty.array.shape = shape;
            ty
        };
        Ok(shapes.into_iter().map(result).collect())
    }
}

impl Rules for MatrixBlocks {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Missing
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Never
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Library(self)
    }

    fn properties(&self) -> Properties<'_> {
        properties()
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::AfterPartitioning
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl NestLowering for MatrixBlocks {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let first = || {
            let ty = lowering.ty(stmt.args[0]);
            lowering.kernel().context.block_start(ty, ty.rank() - 2)
        };
        let function = match self.function {
            BlockFunction::Qr => {
                let ty = lowering.ty(stmt.results[0]);
                MatrixFunction::QrBlock { width: ty.shape()[ty.rank() - 1] }
            }
            BlockFunction::Multiply => MatrixFunction::Product,
            BlockFunction::CholeskyRows => MatrixFunction::CholeskyRows { first: first() },
            BlockFunction::CholeskyChecked => MatrixFunction::CholeskyChecked { first: first() },
        };
        lower(&function, lowering, stmt);
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Buffer
    }
}

impl Library for MatrixBlocks {
    fn streams(&self, _: usize, _: &Stmt, _: &Stmt, _: &Func, _: &Mesh) -> bool {
        false
    }

    fn computes<'a>(&self, _: usize, _: &Stmt, _: &'a Func, _: &Mesh, _: Definitions<'a, '_>) -> Vec<Value> {
        Vec::new()
    }
}

impl Call for MatrixBlocks {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Q and R of each block of split rows.
        qr_blocks([rest] operands: Array, [named] parts: Int = 1) in_dumps "" "write `qr`";
        /// The products of blocks of split rows.
        multiply_blocks([rest] operands: Array, [named] parts: Int = 1) in_dumps "" "write `qr`, or a product";
        /// A step of the Cholesky factorization of split rows.
        cholesky_rows([rest] operands: Array, [named] parts: Int = 1) in_dumps "" "write `cholesky`";
        /// The last step of the Cholesky factorization of split rows.
        cholesky_checked([rest] operands: Array, [named] parts: Int = 1) in_dumps "" "write `cholesky`";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let function = match name {
            "qr_blocks" => BlockFunction::Qr,
            "multiply_blocks" => BlockFunction::Multiply,
            "cholesky_rows" => BlockFunction::CholeskyRows,
            _ => BlockFunction::CholeskyChecked,
        };
        let parts = args.int("parts")?;
        let parts = usize::try_from(parts).ok().filter(|parts| (1..=1 << 20).contains(parts));
        let Some(parts) = parts else {
            return Err(Diagnostic::error(Code::E0227, args.span, "the number of blocks of rows must be at least 1"));
        };
        let operands = args.arrays(build, "operands")?;
        Ok(Term::of_results(&build.emit(MatrixBlocks { function, parts }, &operands)?))
    }
}
