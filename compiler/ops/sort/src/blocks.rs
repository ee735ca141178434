//! `sort_blocks(x, y, keys=1, axis=0, parts=4)`: the lines of each block sorted by themselves, the first step of a sort along a split
//! dimension.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_be;
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
    Definitions, Elements, Library, Lowered, NamedAxes, NestLowering, PlacesResults, Properties, Reads, Rules,
    Semantics, Typing,
};
use spmdc_ir::stablehlo::Exported;
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, Type};
use spmdc_ops::sort::{LineOrder, comparisons, properties};

/// One result for each operand; the lines of each of `parts` blocks are sorted by themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct SortBlocks {
    /// The order.
    pub order: LineOrder,
    /// The number of blocks along the dimension of the lines.
    pub parts: usize,
}

/// E0205 unless the operands are stored in `parts` blocks along the dimension of the lines, on the same devices.
pub fn check_blocks(order: &LineOrder, parts: usize, args: &[&Type], mesh: &Mesh) -> Result<(), Mismatch> {
    order.check(&args.iter().map(|ty| &ty.array).collect::<Vec<_>>())?;
    let layout = &args[0].sharding.dims[order.axis];
    let alike = args.iter().all(|ty| ty.sharding == args[0].sharding && ty.varying == args[0].varying);
    if !alike || layout.alignment.is_some() || mesh.size_of(&layout.axes) != parts {
        let message = format!("{} is not split into {parts} blocks along axis {}", args[0].display(mesh), order.axis);
        return Err(Mismatch::new(Code::E0205, message));
    }
    Ok(())
}

impl Semantics for SortBlocks {
    fn name(&self) -> &'static str {
        "sort_blocks"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::OfBlocks(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        spmdc_ops::sort::Sort(self.order.clone()).factors(args, results)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(self.order.sorted(args, self.parts))
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("sort_blocks({}, {}, parts={})", args.join(", "), self.order.print(), self.parts)
    }

    fn flops(&self, args: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        comparisons(args, self.order.axis)
    }
}

impl PlacesResults for SortBlocks {
    fn place(&self, args: &[&Type], mesh: &Mesh) -> Result<Vec<Type>, Mismatch> {
        check_blocks(&self.order, self.parts, args, mesh)?;
        Ok(args.iter().map(|&ty| ty.clone()).collect())
    }
}

impl Rules for SortBlocks {
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
        properties(Elements::Other)
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::AfterPartitioning
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl NestLowering for SortBlocks {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        self.order.lower(lowering, stmt);
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Buffer
    }
}

impl Library for SortBlocks {
    fn streams(&self, _: usize, _: &Stmt, _: &Stmt, _: &Func, _: &Mesh) -> bool {
        false
    }

    fn computes<'a>(&self, _: usize, _: &Stmt, _: &'a Func, _: &Mesh, _: Definitions<'a, '_>) -> Vec<Value> {
        Vec::new()
    }
}

impl Call for SortBlocks {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The lines of each block of a split dimension, sorted by themselves.
        sort_blocks([rest] operands: Array, [named] keys: Int = 1, [named] axis: Int = 0, [named] descending: Bool = false, [named] signed_zeros: Bool = false, [named] parts: Int = 1)
        in_dumps "" "write `sort`";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let order = LineOrder::read(args)?;
        let parts = parts(args)?;
        let operands = args.arrays(build, "operands")?;
        Ok(spmdc_ops::sort::term(&build.emit(SortBlocks { order, parts }, &operands)?))
    }
}

/// The number of blocks in a dump.
pub fn parts(args: &mut Args<'_>) -> Result<usize, Diagnostic> {
    let parts = args.int("parts")?;
    let count = usize::try_from(parts).ok().filter(|&count| count > 0);
    count.ok_or_else(|| {
        Diagnostic::error(Code::E0227, args.span, must_be("`parts` of `sort_blocks`", "at least 1", parts))
    })
}
