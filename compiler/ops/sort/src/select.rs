//! `select_blocks(x, y, keys=1, axis=0, parts=4, count=3)`: the first elements of each line of each block in an order, without sorting the
//! others.
//!
//! ```text
//! let s: f32[1000@Y] = sort_together(x, keys=1, axis=0);       // x: f32[1000@Y], Y = 4
//! let t: f32[3] = s[0:3];
//! =>
//! let b: f32[12@Y] = select_blocks(x, keys=1, axis=0, parts=4, count=3);
//! let t: f32[3] = merge_sorted(b, keys=1, axis=0, parts=4, places=(0, 1, 2));
//! ```
//!
//! With `places=true` the last result is the places of the elements along the dimension. With `pieces=8` the first elements of each of eight
//! pieces of a block are selected, so that threads divide a line; a second selection takes the first of all of them.

use crate::blocks::check_blocks;
use spmdc_abi::mesh::share;
use spmdc_abi::{LibraryDim, LibraryFunction, Scalar, SelectLines};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{must_be, requires};
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::calls::{CallArray, LibraryCalls};
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Func, Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Definitions, Elements, Library, Lowered, NamedAxes, NestLowering, PlacesResults, Properties, Reads, Rules,
    Semantics, Typing,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::Exported;
use spmdc_layout::cost;
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::block_range;
use spmdc_layout::types::{ArrayType, DType, Type};
use spmdc_ops::sort::{LineOrder, properties};
use std::ops::Range;

/// The most parts, pieces and elements, in a dump: their products are numbers of elements.
const MOST: usize = 1 << 20;

/// One result for each operand, and one for the places if they are wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectBlocks {
    /// The order.
    pub order: LineOrder,
    /// The number of blocks along the dimension of the lines.
    pub parts: usize,
    /// The number of pieces of each block from which elements are selected, one after another.
    pub pieces: usize,
    /// The number of elements of each piece; every piece has as many.
    pub count: usize,
    /// Whether the last result is the places of the elements along the dimension, as i32.
    pub places: bool,
}

impl SelectBlocks {
    /// The elements of the shortest piece of a dimension of this size.
    pub fn least(&self, size: usize) -> usize {
        block_range(size, self.parts, self.parts - 1).len() / self.pieces
    }

    /// The ranges of a dimension of this size from which elements are selected.
    fn ranges(&self, size: usize) -> Vec<Range<usize>> {
        let block = |part: usize| block_range(size, self.parts, part);
        let piece = |block: Range<usize>, piece: usize| {
            let own = share(block.len() as i64, piece, self.pieces);
            block.start + own.start as usize..block.start + own.end as usize
        };
        (0..self.parts).flat_map(|part| (0..self.pieces).map(move |number| piece(block(part), number))).collect()
    }
}

impl Semantics for SelectBlocks {
    fn name(&self) -> &'static str {
        "select_blocks"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::OfBlocks(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        Factors::unrelated(args, results)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let (axis, size) = (self.order.axis, args[0].shape()[self.order.axis]);
        let ranges = self.ranges(size);
        let mut shape = args[0].shape().to_vec();
        shape[axis] = ranges.len() * self.count;
        let zeros = |dtype: DType| Array::new(ArrayType::new(dtype, &shape), vec![0; shape.iter().product()]);
        let dtypes = args.iter().map(|array| array.dtype()).chain(self.places.then_some(DType::I32));
        let mut results: Vec<Array> = dtypes.map(zeros).collect();
        let (firsts, stride) = shape::lines(args[0].shape(), axis);
        for (first, to) in firsts.into_iter().zip(shape::lines(&shape, axis).0) {
            for (number, range) in ranges.iter().enumerate() {
                let mut order: Vec<usize> = range.clone().map(|at| first + at * stride).collect();
                order.sort_by(|&a, &b| self.order.compare(args, a, b));
                for (at, &from) in order[..self.count].iter().enumerate() {
                    let to = to + (number * self.count + at) * stride;
                    for (result, array) in results.iter_mut().zip(args) {
                        result.bits[to] = array.bits[from];
                    }
                    if self.places {
                        results[args.len()].bits[to] = ((from - first) / stride) as u64;
                    }
                }
            }
        }
        Ok(results)
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let pieces = if self.pieces > 1 { format!(", pieces={}", self.pieces) } else { String::new() };
        let places = if self.places { ", places=true" } else { "" };
        let (args, order) = (args.join(", "), self.order.print());
        format!("select_blocks({args}, {order}, parts={}{pieces}, count={}{places})", self.parts, self.count)
    }

    fn flops(&self, args: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        args[0].len() as u64
    }
}

impl PlacesResults for SelectBlocks {
    fn place(&self, args: &[&Type], mesh: &Mesh) -> Result<Vec<Type>, Mismatch> {
        check_blocks(&self.order, self.parts, args, mesh)?;
        let (axis, size) = (self.order.axis, args[0].shape()[self.order.axis]);
        if self.order.keys != 1 {
            return Err(Mismatch::new(Code::E0205, requires("`select_blocks`", "one key", self.order.keys)));
        }
        if self.least(size) < self.count {
            let pieces = self.parts * self.pieces;
            let message = format!("{pieces} parts of {size} elements do not have {} elements each", self.count);
            return Err(Mismatch::new(Code::E0205, message));
        }
        let selected = |ty: &Type, dtype: DType| {
            let mut ty = ty.clone();
            ty.array = ArrayType::new(dtype, ty.shape());
            ty.array.shape[axis] = self.parts * self.pieces * self.count;
            ty
        };
        let places = self.places.then(|| selected(args[0], DType::I32));
        Ok(args.iter().map(|ty| selected(ty, ty.dtype())).chain(places).collect())
    }
}

impl Rules for SelectBlocks {
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

impl NestLowering for SelectBlocks {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let axis = [self.order.axis];
        let operands: Vec<CallArray> = stmt.args.iter().map(|&arg| lowering.call_array(arg, &axis)).collect();
        let rows = |array: CallArray| {
            let stride = array.dims[0].stride;
            CallArray { dims: dims([(self.pieces, self.count as i64 * stride), (self.count, stride)]), ..array }
        };
        let mut results: Vec<CallArray> =
            stmt.results.iter().map(|&result| rows(lowering.call_array(result, &axis))).collect();
        let batch = lowering.call_batch(stmt.results[0], &axis);
        let own = SelectLines::scratch(lowering.ty(stmt.args[0]).dtype(), self.count as u64) as usize;
        let scratch = lowering.call_scratch(stmt.results[0], &axis, DType::I64, self.pieces * own);
        results.push(CallArray { dims: dims([(self.pieces, own as i64), (own, 1)]), ..scratch });
        let from = lowering.ty(stmt.args[0]).clone();
        let first = self.places.then(|| lowering.kernel().context.block_start(&from, axis[0]));
        lowering.library(LibraryCalls {
            function: LibraryFunction::Select(SelectLines { order: self.order.lines(), first }),
            operands,
            results,
            batch,
            owners: None,
            cost: cost::of_selection(from.block_shape(lowering.mesh)[axis[0]], self.pieces * self.count),
            checks: Vec::new(),
        });
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Buffer
    }
}

impl Library for SelectBlocks {
    fn streams(&self, _: usize, _: &Stmt, _: &Stmt, _: &Func, _: &Mesh) -> bool {
        false
    }

    fn computes<'a>(&self, _: usize, _: &Stmt, _: &'a Func, _: &Mesh, _: Definitions<'a, '_>) -> Vec<Value> {
        Vec::new()
    }
}

impl Call for SelectBlocks {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The first elements of each line of each block in an order, and their places.
        select_blocks([rest] operands: Array, [named] keys: Int = 1, [named] axis: Int = 0, [named] descending: Bool = false, [named] signed_zeros: Bool = false, [named] parts: Int = 1, [named] pieces: Int = 1, [named] count: Int, [named] places: Bool = false)
        in_dumps "" "write `sort`, or `top_k`";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let order = LineOrder::read(args)?;
        let [parts, pieces, count] = ["parts", "pieces", "count"].map(|name| {
            let given = args.optional_int(name)?.unwrap_or(1);
            let wrong = must_be(format_args!("`{name}` of `select_blocks`"), "at least 1", given);
            let number = usize::try_from(given).ok().filter(|&number| (1..=MOST).contains(&number));
            number.ok_or_else(|| Diagnostic::error(Code::E0227, args.span, wrong))
        });
        let (parts, pieces, count) = (parts?, pieces?, count?);
        let places = args.optional_bool("places")?.unwrap_or(false);
        let operands = args.arrays(build, "operands")?;
        let select = SelectBlocks { order, parts, pieces, count, places };
        Ok(spmdc_ops::sort::term(&build.emit(select, &operands)?))
    }
}

/// Two dimensions of an array, by their sizes and strides.
fn dims(dims: [(usize, i64); 2]) -> Vec<LibraryDim> {
    dims.map(|(size, stride)| LibraryDim { extent: Scalar::Const(size as i64), stride }).to_vec()
}
