//! Triangular systems with a matrix whose rows are split.
//!
//! `triangular_rows(a, y, x, parts=4, start=128)` is a step of `triangular_solve`: it solves the rows from `start` on that are in one of the
//! `parts` blocks, and `triangular_sums(a, x, parts=4, start=128)` has the products that they lose if the matrix is transposed. See the pass
//! `distribute_factorizations`.

use crate::factorization::{is_supported, lower, properties, split};
use crate::reference::{self, Matrix};
use spmdc_abi::{AxisSet, MatrixFunction, TriangularSystem};
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
use std::ops::Range;

/// A step of a triangular system, with the matrix on the left.
#[derive(Clone, Debug, PartialEq)]
pub struct TriangularBlocks {
    /// The step.
    pub step: SystemStep,
    /// The system.
    pub system: TriangularSystem,
    /// The number of blocks of the rows.
    pub parts: usize,
    /// The first of the rows that are solved.
    pub start: usize,
}

/// The steps of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemStep {
    /// Solves rows: [`MatrixFunction::TriangularRows`]. The first operand is the matrix, the second has the right sides, and the rows that are
    /// solved; the third is on all devices.
    Rows,
    /// Their products: [`MatrixFunction::TriangularSums`], one block for each device.
    Sums,
}

impl TriangularBlocks {
    /// The rows that are solved, of so many.
    fn own(&self, rows: usize) -> Range<usize> {
        self.start..self.start.saturating_add(rows.div_ceil(self.parts)).min(rows)
    }

    fn shape(&self, args: &[&ArrayType]) -> Result<Vec<usize>, Mismatch> {
        let mismatch = || {
            let args: Vec<String> = args.iter().map(|ty| ty.to_string()).collect();
            Mismatch::new(Code::E0205, undefined(format_args!("`{}`", self.name()), args.join(" and ")))
        };
        let [a, b, known @ ..] = args else { return Err(mismatch()) };
        let (batch, rows, columns) = split(a).ok_or_else(mismatch)?;
        let (other, height, sides) = split(b).ok_or_else(mismatch)?;
        let own = self.own(rows);
        let fits = is_supported(a.dtype) && a.dtype == b.dtype && batch == other;
        if !fits || rows != columns || rows != height || self.start >= rows || !self.system.left {
            return Err(mismatch());
        }
        let is_known = |ty: &ArrayType| {
            let most = match (self.system.is_of_rows(), self.system.is_forward()) {
                (false, _) => own.len(),
                (true, true) => own.start,
                (true, false) => rows - own.end,
            };
            split(ty).is_some_and(|(batch, width, last)| {
                let is_whole = self.system.is_of_rows() || width == most;
                ty.dtype == a.dtype && batch == other && last == sides && width <= most && is_whole
            })
        };
        match (self.step, known) {
            (SystemStep::Rows, []) => Ok(b.shape.clone()),
            (SystemStep::Rows, [known]) if is_known(known) => Ok(b.shape.clone()),
            (SystemStep::Sums, []) => Ok([batch, &[own.len() * self.parts, sides]].concat()),
            (SystemStep::Rows | SystemStep::Sums, _) => Err(mismatch()),
        }
    }
}

impl Semantics for TriangularBlocks {
    fn name(&self) -> &'static str {
        match self.step {
            SystemStep::Rows => "triangular_rows",
            SystemStep::Sums => "triangular_sums",
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
        let shape = self.shape(&types).expect("the statement has been typed");
        let (batch, rows, _) = split(types[0]).expect("the statement has been typed");
        let own = self.own(rows);
        let mut elements = Vec::new();
        for call in 0..batch.iter().product() {
            let (a, b) = (Matrix::of(args[0], call), Matrix::of(args[1], call));
            let known = args.get(2).map(|known| Matrix::of(known, call));
            for part in 0..self.parts {
                let range = block_range(rows, self.parts, part);
                let step = (&self.system, &own, range.start);
                let (a, b) = (a.rows(range.clone()), b.rows(range));
                let made = match self.step {
                    SystemStep::Rows => reference::triangular_rows(step, &a, &b, known.as_ref()),
                    SystemStep::Sums => reference::triangular_sums(step, &a, &b),
                };
                elements.extend(made.elements());
            }
        }
        Ok(vec![Array::from_floats(types[0].dtype, &shape, &elements)])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let TriangularSystem { left: _, lower, transposed, unit } = self.system;
        format!(
            "{}({}, parts={}, start={}, lower={lower}, transpose_a={transposed}, unit_diagonal={unit})",
            self.name(),
            args.join(", "),
            self.parts,
            self.start
        )
    }

    /// Of each step.
    fn flops(&self, args: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        let Some((_, rows, _)) = args.first().and_then(|a| split(a)) else { return 0 };
        let sides = args.get(1).map_or(0, |sides| sides.len() as u64);
        sides.saturating_mul(2 * rows.div_ceil(self.parts) as u64)
    }
}

impl PlacesResults for TriangularBlocks {
    /// E0205 unless the rows of the matrix and of the right sides are stored in `parts` blocks, on the same devices.
    fn place(&self, args: &[&Type], mesh: &Mesh) -> Result<Vec<Type>, Mismatch> {
        let shape = self.shape(&args.iter().map(|ty| &ty.array).collect::<Vec<_>>())?;
        let rank = args[0].rank() - 2;
        let sides = &args[1].sharding;
        let is_plain =
            |ty: &Type| ty.sharding.dims.iter().all(|dim| dim.alignment.is_none()) && ty.sharding.unreduced.is_empty();
        let has_blocks = args[0].sharding.dims[..=rank] == sides.dims[..=rank]
            && mesh.size_of(&sides.dims[rank].axes) == self.parts
            && args[0].sharding.dims[rank + 1].axes.is_empty();
        if !has_blocks || !args[..2].iter().all(|ty| is_plain(ty)) {
            let message = format!(
                "the rows of {} and {} are not split into {} blocks",
                args[0].display(mesh),
                args[1].display(mesh),
                self.parts
            );
            return Err(Mismatch::new(Code::E0205, message));
        }
        let mut whole = sides.clone();
        whole.dims[rank] = Default::default();
        if let Some(known) = args.get(2).filter(|known| known.sharding != whole) {
            return Err(Mismatch::new(Code::E0205, format!("{} is not replicated", known.display(mesh))));
        }
        let varying = args.iter().fold(AxisSet::EMPTY, |set, ty| set.union(ty.varying));
        let array = ArrayType { shape, ..args[1].array.clone() };
        Ok(vec![Type { array, sharding: sides.clone(), varying }])
    }
}

impl Rules for TriangularBlocks {
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

impl NestLowering for TriangularBlocks {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let ty = lowering.ty(stmt.args[0]);
        let own = self.own(ty.shape()[ty.rank() - 2]);
        let first = lowering.kernel().context.block_start(ty, ty.rank() - 2);
        let system = self.system;
        let function = match self.step {
            SystemStep::Rows => MatrixFunction::TriangularRows { first, own, system },
            SystemStep::Sums => MatrixFunction::TriangularSums { first, own, system },
        };
        lower(&function, lowering, stmt);
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Buffer
    }
}

impl Library for TriangularBlocks {
    fn streams(&self, _: usize, _: &Stmt, _: &Stmt, _: &Func, _: &Mesh) -> bool {
        false
    }

    fn computes<'a>(&self, _: usize, _: &Stmt, _: &'a Func, _: &Mesh, _: Definitions<'a, '_>) -> Vec<Value> {
        Vec::new()
    }
}

impl Call for TriangularBlocks {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// A step of a triangular system with split rows.
        triangular_rows(
            [rest] operands: Array, [named] parts: Int = 1, [named] start: Int = 0, [named] lower: Bool = false,
            [named] transpose_a: Bool = false, [named] unit_diagonal: Bool = false,
        ) in_dumps "" "write `triangular_solve`";
        /// The products of the solved rows of a transposed triangular system with split rows.
        triangular_sums(
            [rest] operands: Array, [named] parts: Int = 1, [named] start: Int = 0, [named] lower: Bool = false,
            [named] transpose_a: Bool = false, [named] unit_diagonal: Bool = false,
        ) in_dumps "" "write `triangular_solve`";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let step = if name == "triangular_rows" { SystemStep::Rows } else { SystemStep::Sums };
        let (parts, start) = (args.int("parts")?, args.int("start")?);
        let parts = usize::try_from(parts).ok().filter(|parts| (1..=1 << 20).contains(parts));
        let (Some(parts), Ok(start)) = (parts, usize::try_from(start)) else {
            return Err(Diagnostic::error(Code::E0227, args.span, "the number of blocks of rows must be at least 1"));
        };
        let mut flag = |name: &str| args.optional_bool(name).map(|flag| flag.unwrap_or(false));
        let (lower, transposed, unit) = (flag("lower")?, flag("transpose_a")?, flag("unit_diagonal")?);
        let system = TriangularSystem { left: true, lower, transposed, unit };
        let operands = args.arrays(build, "operands")?;
        build.emit1(TriangularBlocks { step, system, parts, start }, &operands).map(Term::Array)
    }
}
