//! The obligations of an op: its meaning, its lowering, and the properties that passes need.
//!
//! Nothing here has a default: an op does not compile until it answers each question, and each kind of answer has exactly the
//! methods that belong to it. `docs/design/0007-what-an-op-owes.md` has the reasons.

pub mod batching;
pub mod derivative;
pub mod group;

use crate::array::{Array, Trap};
use crate::lower::builder::KernelBuilder;
use crate::lower::work::Lowering;
use crate::mismatch::Mismatch;
use crate::op::{Op, OpObject};
use crate::program::choice::Choice;
use crate::program::transfer_target::TransferTarget;
use crate::program::{Func, Stmt, Value};
use crate::rules::batching::Batching;
use crate::rules::derivative::Derivative;
use crate::rules::group::GroupCollective;
use crate::stablehlo::Exported;
use spmdc_abi::{CollectiveKind, FetchDim, ReduceOp};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::reshard::Traffic;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::sub_axes::SubAxes;
use spmdc_layout::types::{ArrayType, AxisSet, DType, Type};
use spmdc_layout::window::WindowMap;

/// The meaning of an op, on whole arrays and for shardings.
pub trait Semantics {
    /// Its name in the IR and in messages.
    fn name(&self) -> &'static str;

    /// The rule for the types of its results.
    fn typing(&self) -> Typing<'_>;

    /// The factor rule. `results` are as inferred.
    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors;

    /// The reference semantics, on whole arrays; a trap is an error that stops a running program.
    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap>;

    /// The expression that reads back as this op on these operands, such as `sum(v1, axis=(0,))`.
    fn print(&self, args: &[String], mesh: &Mesh) -> String;

    /// Floating-point and integer operations for results of this size, for cost and reports.
    fn flops(&self, args: &[&ArrayType], results: &[&ArrayType]) -> u64;
}

/// The rule for the types of an op's results.
pub enum Typing<'a> {
    /// Element type and shape follow from the operands, the sharding follows from the factor rule.
    ByFactors(&'a dyn Infer),
    /// The op sets the sharding of its results itself, as `reshard` does.
    Placed(&'a dyn PlacesResults),
    /// The op concerns blocks on devices, so it exists from the stage `partitioned` on, and its results have the layout in which the op
    /// makes them.
    OfBlocks(&'a dyn PlacesResults),
}

/// The element types and shapes of results, for ops whose shardings follow from the factor rule.
pub trait Infer {
    /// Element type and shape of each result; an error if the operands do not fit.
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch>;

    /// Layouts of the result on explicit axes that `out=` can ask for, where none follows from the operands, besides those that the factor
    /// rule gives.
    fn further_choices(&self, args: &[&Type], results: &[ArrayType], mesh: &Mesh) -> Vec<Choice> {
        let _ = (args, results, mesh);
        Vec::new()
    }
}

/// The types of results, for ops that set the shardings themselves.
pub trait PlacesResults {
    /// The type of each result; an error if the operands do not fit.
    fn place(&self, args: &[&Type], mesh: &Mesh) -> Result<Vec<Type>, Mismatch>;
}

/// All obligations of an op.
pub trait Rules: Semantics + OpObject {
    /// How its results change with its operands.
    fn derivative(&self) -> Derivative<'_>;

    /// The statements that compute it for each of `size` elements of a batch.
    fn batching(&self, size: usize) -> Batching<'_>;

    /// Its lowering to work for devices.
    fn lowered(&self) -> Lowered<'_>;

    /// The properties that passes need.
    fn properties(&self) -> Properties<'_>;

    /// Its form in StableHLO.
    fn stablehlo(&self) -> Exported<'_>;

    /// All axes and meshes that the op itself names: when an axis is cut, its parts replace it.
    fn named_axes(&mut self) -> Vec<NamedAxes<'_>>;
}

/// Axes, or a mesh, named by an op.
pub enum NamedAxes<'a> {
    /// A list of mesh axes, such as the axes of a collective's group.
    List(&'a mut Vec<u8>),
    /// A sharding, such as the one that a `reshard` asks for.
    Layout(&'a mut Sharding),
    /// The mesh to which a value goes.
    Transfer(&'a mut TransferTarget),
}

impl NamedAxes<'_> {
    /// Replaces a cut axis by its parts.
    pub fn cut(self, parts: &SubAxes) {
        match self {
            NamedAxes::List(axes) => *axes = parts.axes(axes),
            NamedAxes::Layout(layout) => *layout = parts.sharding(layout),
            NamedAxes::Transfer(_) => {}
        }
    }
}

/// The lowering of an op, with the methods that it needs.
pub enum Lowered<'a> {
    /// Pointwise: one element of the result is an expression of single elements of the operands. Such ops fuse.
    Point(&'a dyn Point),
    /// Loop nests, or other work that fills the results.
    Nest(&'a dyn NestLowering),
    /// Loop nests that combine elements; of few elements also the expression of one element of the result, which fuses.
    Reduction(&'a dyn Reduction),
    /// The bytes of the operand under another type, if the operand is in memory.
    Alias(&'a dyn Alias),
    /// A function of the runtime, which may read an operand in parts.
    Library(&'a dyn Library),
    /// Devices exchange data.
    Exchange(&'a dyn Exchange),
    /// No lowering: `partition` replaces the op by the steps that produce the layout.
    Request,
}

impl<'a> Lowered<'a> {
    /// The expression of one element, if the op is pointwise.
    pub fn point(&self) -> Option<&'a dyn Point> {
        match self {
            Lowered::Point(point) => Some(*point),
            Lowered::Alias(alias) => match alias.copied() {
                Copied::Point(point) => Some(point),
                Copied::Nest(_) => None,
            },
            Lowered::Nest(_)
            | Lowered::Reduction(_)
            | Lowered::Library(_)
            | Lowered::Exchange(_)
            | Lowered::Request => None,
        }
    }

    /// The expression of one element of a value that is fused into its users: of a pointwise op, or of a reduction of few elements.
    pub fn expression(&self) -> Option<&'a dyn Point> {
        match self {
            Lowered::Reduction(reduction) => Some(reduction.point()),
            Lowered::Point(_)
            | Lowered::Nest(_)
            | Lowered::Alias(_)
            | Lowered::Library(_)
            | Lowered::Exchange(_)
            | Lowered::Request => self.point(),
        }
    }

    /// The way the op's kernels read an operand, which decides whether it may be fused into the op.
    pub fn reads(&self, operand: usize, args: &[&ArrayType]) -> Reads {
        match self {
            Lowered::Point(point) => point.reads(operand, args),
            Lowered::Nest(nest) => nest.reads(operand, args),
            Lowered::Reduction(reduction) => reduction.nest().reads(operand, args),
            Lowered::Alias(alias) => match alias.copied() {
                Copied::Point(point) => point.reads(operand, args),
                Copied::Nest(nest) => nest.reads(operand, args),
            },
            Lowered::Library(library) => library.reads(operand, args),
            Lowered::Exchange(_) | Lowered::Request => Reads::Buffer,
        }
    }
}

/// The way an op's kernels read one of their operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Each element at most once, through [`KernelBuilder::operand`]: fusing repeats no work.
    Once,
    /// Through [`KernelBuilder::operand`], the same element many times: fusing repeats its computation.
    Often,
    /// From its buffer: the operand must be in memory.
    Buffer,
}

/// The lowering of ops that fuse: one element of the result is an expression of single elements of the operands.
pub trait Point {
    /// The value at `index` (one entry per result dimension, in this device's block).
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem;

    /// The way kernels read an operand; `args` are the types of all operands.
    fn reads(&self, operand: usize, args: &[&ArrayType]) -> Reads;
}

/// The lowering of ops that fill their results by loop nests or other work of one device.
pub trait NestLowering {
    /// The kernels, copies or prints that fill the results.
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic>;

    /// The way the kernels read an operand; `args` are the types of all operands.
    fn reads(&self, operand: usize, args: &[&ArrayType]) -> Reads;
}

/// The lowering of ops that combine elements along some dimensions.
pub trait Reduction {
    /// The loop nest.
    fn nest(&self) -> &dyn NestLowering;

    /// The expression of one element, with the bits that the loop nest gives, for at most [`SHORT_REDUCTION`] elements.
    ///
    /// [`SHORT_REDUCTION`]: spmdc_layout::cost::SHORT_REDUCTION
    fn point(&self) -> &dyn Point;

    /// The number of elements that are combined into one, if every device combines the same number.
    fn combined(&self, stmt: &Stmt, func: &Func, mesh: &Mesh) -> Option<usize>;
}

/// The lowering of ops whose result can be the bytes of the operand, such as `reshape`.
pub trait Alias {
    /// Whether the result has the operand's bytes under another type, and so needs no work if the operand is in memory.
    fn aliases(&self, from: &Type, to: &Type, mesh: &Mesh) -> bool;

    /// The lowering if it does not.
    fn copied(&self) -> Copied<'_>;
}

/// The lowering of an alias whose operand is not in memory.
pub enum Copied<'a> {
    /// As the expression of one element, which fuses.
    Point(&'a dyn Point),
    /// By loop nests.
    Nest(&'a dyn NestLowering),
}

/// The lowering of ops that a function of the runtime computes, such as a matrix product.
pub trait Library: NestLowering {
    /// Whether the op can read an operand from the devices that hold its blocks, so that the result of the collective `gather` of
    /// these blocks need not be in memory. At most one operand of a statement is read in this way.
    fn streams(&self, operand: usize, gather: &Stmt, stmt: &Stmt, func: &Func, mesh: &Mesh) -> bool;

    /// The values between an operand and the value that the function reads instead, because it computes them internally: they are not
    /// necessarily in memory. `definition` returns the statement of a value that may be left out.
    fn computes<'a>(
        &self,
        operand: usize,
        stmt: &Stmt,
        func: &'a Func,
        mesh: &Mesh,
        definition: Definitions<'a, '_>,
    ) -> Vec<Value>;
}

/// Gives the statement of a value, or None if the value must be in memory.
pub type Definitions<'a, 'b> = &'b dyn Fn(Value, Users) -> Option<(&'a Op, &'a Stmt)>;

/// The users that a value may have which a function of the runtime computes internally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Users {
    /// One: the function computes the value no more often than a kernel would.
    One,
    /// Any number of functions that all compute it, at no cost.
    Several,
}

/// The lowering of ops in which devices exchange data.
pub trait Exchange {
    /// The steps by which the devices exchange data and fill the results.
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic>;

    /// The collective: its kind, and the axes of its groups.
    fn collective(&self, args: &[&Type], results: &[&Type], mesh: &Mesh) -> (CollectiveKind, AxisSet);

    /// The amount of data that it moves.
    fn traffic(&self, args: &[&Type], results: &[&Type], mesh: &Mesh) -> Traffic;

    /// The messages of which this traffic consists.
    fn messages(&self, args: &[&Type], mesh: &Mesh) -> SentMessages<'_>;
}

/// The messages of a statement in which devices exchange data.
pub enum SentMessages<'a> {
    /// Each result has the elements of the operand of the same number, in another layout.
    Layouts,
    /// Devices fetch boxes of the operands' blocks.
    Boxes(Vec<FetchedBoxes>),
    /// Devices of a group send their values in a `manual` function.
    Group(&'a dyn GroupCollective),
    /// The messages depend on values.
    OfValues,
}

/// The boxes of an operand's blocks that devices fetch.
pub struct FetchedBoxes {
    /// The number of the operand.
    pub operand: usize,
    /// For each dimension, the runs of each device.
    pub dims: Vec<FetchDim>,
}

/// The usual traffic of a collective of this kind, with the first operand's block.
pub fn usual_traffic(op: &dyn Exchange, args: &[&Type], results: &[&Type], mesh: &Mesh) -> Traffic {
    let (kind, group) = op.collective(args, results, mesh);
    Traffic::usual(kind, group, args[0], mesh)
}

/// The properties of an op that passes read, so that they need not match on ops.
#[derive(Clone)]
pub struct Properties<'a> {
    /// The effect of a statement besides its results.
    pub effect: Effect,
    /// The role of the op in `manual` code.
    pub manual: Manual<'a>,
    /// The source of the results' layout.
    pub placement: Placement<'a>,
    /// The operands that may be partial sums.
    pub linear: Linear,
    /// The combination along split dimensions of the operands that no result has.
    pub combines: Combines,
    /// The origin of the results' elements.
    pub elements: Elements<'a>,
    /// Whether its dimensions may be aligned with another array.
    pub keeps_alignment: bool,
}

/// The effect of a statement besides its results. A statement with an effect is kept even if its results are unused, and stays in
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Nothing, but it stops the program for invalid integers, such as a divisor of zero. It is left out if nothing uses its results, and
    /// computed where they are used.
    Stops,
    /// Stops an invalid program, whether its results are used or not.
    Check,
    /// Prints values or asserts, for each device with its own values.
    Text,
    /// Writes a file.
    File,
    /// Shows a layout.
    Layout,
    /// Exchanges a value with the devices of another mesh.
    Message,
}

/// The role of an op in the code of a `manual` function.
#[derive(Clone, Copy)]
pub enum Manual<'a> {
    /// The same as elsewhere: its results vary along the axes of its operands.
    Local,
    /// Its results vary along these axes, too.
    Varies(AxisSet),
    /// It works on the values of a group of devices.
    Group(&'a dyn GroupCollective),
}

/// The source of the results' layout.
#[derive(Clone, Copy, Debug)]
pub enum Placement<'a> {
    /// The operands.
    Follows,
    /// The operands, or `out=` in the program if the operands leave a choice.
    Out(Option<&'a Sharding>),
    /// The operand is requested to have this layout.
    Requested(&'a Sharding),
    /// The op gives each operand the layout of its result.
    Moved,
}

/// The operands that may be partial sums so that the results are partial sums, too: the op commutes with the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linear {
    /// None.
    No,
    /// All operands, over the same axes: they are added, moved or joined.
    Together,
    /// These operands, over the same axes. The others are whole: they say where elements are, or which are taken.
    Places(&'static [usize]),
    /// Each operand separately, because nothing is computed from it.
    Apart,
    /// One of the factors, element by element.
    Product,
    /// One of the factors of products that are summed.
    Contraction,
    /// The dividend, of floats.
    Quotient,
    /// The only operand, if both its type and this type are floats.
    Conversion(DType),
}

/// The combination along split dimensions of the operands that no result has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Combines {
    /// There are no such dimensions, or they are needed whole.
    Nothing,
    /// Elements are combined.
    Elements(ReduceOp),
    /// One element along each of these dimensions of the first operand is taken, at an index known at run time.
    Places(Vec<usize>),
    /// Each device has a part of the diagonal.
    Diagonal,
}

/// The origin of the results' elements.
#[derive(Clone, Copy)]
pub enum Elements<'a> {
    /// Numbers known at compile time.
    Literal(&'a Array),
    /// The indices of the elements.
    Counted,
    /// Computed from the indices of the elements, and from operands whose dimensions come first.
    Drawn,
    /// Rows of the first operand, which is a stream, at checked indices.
    Rows,
    /// Elements of the operand, on another mesh.
    Transferred(TransferTarget),
    /// Elements of the operand, each at several indices.
    Repeated,
    /// Elements of the operand, each at one index.
    Moved,
    /// Some elements of the first operand, and no others.
    Window(&'a dyn Windowed),
    /// Some elements of the first operand, with optional padding around them.
    Framed(&'a dyn Windowed),
    /// Elements of the first operand in a region that begins at checked places: the other operands, which are i64 scalars.
    Chosen(&'a dyn ChosenRegion),
    /// Elements of the operands in the order of lines along this dimension: those at known places can be found without the others.
    Ordered(usize),
    /// Computed from the operands' elements at the same index, after broadcasting.
    Elementwise,
    /// The operand's elements with another sign.
    Negated,
    /// Computed in another way.
    Other,
}

/// An op whose result is a window on its first operand, with optional padding.
pub trait Windowed {
    /// The elements of the first operand in the result.
    fn window(&self, args: &[&ArrayType]) -> WindowMap;
}

/// An op whose result is a region of its first operand that begins at places known at run time.
pub trait ChosenRegion {
    /// For each place the dimension of the first operand, and the number of its elements in the region.
    fn region(&self) -> Vec<(usize, usize)>;
}

impl<'a> Elements<'a> {
    /// The value of the result; None if it is unknown at compile time.
    pub fn literal(self) -> Option<&'a Array> {
        match self {
            Elements::Literal(array) => Some(array),
            Elements::Counted
            | Elements::Drawn
            | Elements::Rows
            | Elements::Transferred(_)
            | Elements::Repeated
            | Elements::Moved
            | Elements::Window(_)
            | Elements::Framed(_)
            | Elements::Chosen(_)
            | Elements::Ordered(_)
            | Elements::Elementwise
            | Elements::Negated
            | Elements::Other => None,
        }
    }

    /// The window that the result is, with or without padding; None for other ops.
    pub fn window(self) -> Option<&'a dyn Windowed> {
        match self {
            Elements::Window(window) | Elements::Framed(window) => Some(window),
            Elements::Literal(_)
            | Elements::Counted
            | Elements::Drawn
            | Elements::Rows
            | Elements::Transferred(_)
            | Elements::Repeated
            | Elements::Moved
            | Elements::Chosen(_)
            | Elements::Ordered(_)
            | Elements::Elementwise
            | Elements::Negated
            | Elements::Other => None,
        }
    }

    /// Whether every device can compute the results in any layout, at no cost, from numbers that it has.
    pub fn are_made_anywhere(self) -> bool {
        matches!(self, Elements::Literal(_) | Elements::Counted | Elements::Repeated)
    }

    /// Whether the op computes the same elements in another shape if its operands are reshaped to it.
    pub fn are_elementwise(self) -> bool {
        matches!(self, Elements::Elementwise | Elements::Negated)
    }
}

impl Properties<'_> {
    /// Whether a statement has an effect besides its results.
    pub fn has_effect(&self) -> bool {
        match self.effect {
            Effect::None | Effect::Stops => false,
            Effect::Check | Effect::Text | Effect::File | Effect::Layout | Effect::Message => true,
        }
    }

    /// For the collectives of `manual` code: the collective's rule for a group of devices.
    pub fn group(&self) -> Option<&dyn GroupCollective> {
        match self.manual {
            Manual::Group(group) => Some(group),
            Manual::Local | Manual::Varies(_) => None,
        }
    }

    /// The manual axes along which the results vary, given the ones along which the operands vary.
    pub fn varying(&self, operands: AxisSet) -> AxisSet {
        match self.manual {
            Manual::Local => operands,
            Manual::Varies(axes) => operands.union(axes),
            Manual::Group(group) => group.varying(operands),
        }
    }

    /// The layout on explicit axes given by `out=`.
    pub fn out(&self) -> Option<&Sharding> {
        match self.placement {
            Placement::Out(out) => out,
            Placement::Follows | Placement::Requested(_) | Placement::Moved => None,
        }
    }
}

/// One operation for each element of the results.
pub fn one_each(results: &[&ArrayType]) -> u64 {
    results.iter().map(|result| result.len() as u64).sum()
}
