//! What an op owes: its meaning, how it becomes work, and the properties that passes ask for.
//!
//! Nothing here has a default: an op does not compile until it has answered each question, and each kind of answer has the methods that
//! belong to it and no others. `docs/design/0007-what-an-op-owes.md` has the reasons, and says where the rules of differentiation and
//! batching will stand: beside [`Semantics`], as one more answer in [`Rules`].

use crate::array::{Array, Trap};
use crate::layout::factors::Factors;
use crate::layout::mesh::Mesh;
use crate::layout::parts::AxisParts;
use crate::layout::sharding::Sharding;
use crate::layout::types::{ArrayType, AxisSet, DType, Type};
use crate::layout::window::WindowMap;
use crate::lower::builder::KernelBuilder;
use crate::lower::work::Lowering;
use crate::ops::Mismatch;
use crate::ops::collective::GroupCollective;
use crate::program::{Func, Stmt};
use crate::reshard::Traffic;
use spmdc_abi::{CollectiveKind, ReduceOp};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_kernel::loops::{Affine, Elem};

/// What an op means, on whole arrays and for shardings.
pub trait Semantics {
    /// Its name in the IR and in messages.
    fn name(&self) -> &'static str;

    /// How the types of its results come about.
    fn typing(&self) -> Typing<'_>;

    /// What the op means for shardings. `results` are as inferred.
    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors;

    /// The reference semantics, on whole arrays; a trap is an error that a running program stops with.
    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap>;

    /// The expression that reads back as this op on these operands, such as `sum(v1, axis=(0,))`.
    fn print(&self, args: &[String], mesh: &Mesh) -> String;

    /// Floating-point and integer operations for results of this size, for cost and reports.
    fn flops(&self, args: &[&ArrayType], results: &[&ArrayType]) -> u64;
}

/// How the types of an op's results come about.
pub enum Typing<'a> {
    /// Element type and shape follow from those of the operands, the sharding from the factor rule.
    ByFactors(&'a dyn Infer),
    /// The op sets the sharding of its results itself, as `reshard` does.
    Placed(&'a dyn PlacesResults),
}

/// The element types and shapes of results, for ops whose shardings follow from the factor rule.
pub trait Infer {
    /// Element type and shape of each result, or why the operands do not fit.
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch>;
}

/// The types of results, for ops that set the shardings themselves.
pub trait PlacesResults {
    /// The type of each result, or why the operands do not fit.
    fn place(&self, args: &[&Type], mesh: &Mesh) -> Result<Vec<Type>, Mismatch>;
}

/// Everything that an op owes.
pub trait Rules: Semantics {
    /// How it becomes work for devices.
    fn lowered(&self) -> Lowered<'_>;

    /// What passes ask of it.
    fn properties(&self) -> Properties<'_>;

    /// Wherever the op itself names axes: when an axis is cut, its parts stand there.
    fn named_axes(&mut self) -> Vec<NamedAxes<'_>>;
}

/// A place where an op names axes.
pub enum NamedAxes<'a> {
    /// A list of mesh axes, such as those of the group of a collective.
    List(&'a mut Vec<u8>),
    /// A sharding, such as the one that a `reshard` asks for.
    Layout(&'a mut Sharding),
}

impl NamedAxes<'_> {
    /// Puts parts where an axis stood that has been cut.
    pub fn cut(self, parts: &AxisParts) {
        match self {
            NamedAxes::List(axes) => *axes = parts.axes(axes),
            NamedAxes::Layout(layout) => *layout = parts.sharding(layout),
        }
    }
}

/// How an op becomes work, with what has to be known for that.
pub enum Lowered<'a> {
    /// One element of the result is an expression of single elements of the operands. Such ops fuse.
    Point(&'a dyn Point),
    /// Loop nests, or other work that fills the results.
    Nest(&'a dyn NestLowering),
    /// The bytes of the operand under another type, where that lies in memory.
    Alias(&'a dyn Alias),
    /// A function of the runtime, which may take an operand in parts.
    Library(&'a dyn Library),
    /// Devices exchange data.
    Exchange(&'a dyn Exchange),
    /// None: `partition` replaces it by the steps that make the layout.
    Request,
}

impl<'a> Lowered<'a> {
    /// The expression of one element, where the op is that.
    pub fn point(&self) -> Option<&'a dyn Point> {
        match self {
            Lowered::Point(point) => Some(*point),
            Lowered::Alias(alias) => match alias.copied() {
                Copied::Point(point) => Some(point),
                Copied::Nest(_) => None,
            },
            Lowered::Nest(_) | Lowered::Library(_) | Lowered::Exchange(_) | Lowered::Request => None,
        }
    }

    /// How the op's kernels read an operand: it tells which operands may be fused into the op.
    pub fn reads(&self, operand: usize, args: &[&ArrayType]) -> Reads {
        match self {
            Lowered::Point(point) => point.reads(operand, args),
            Lowered::Nest(nest) => nest.reads(operand, args),
            Lowered::Alias(alias) => match alias.copied() {
                Copied::Point(point) => point.reads(operand, args),
                Copied::Nest(nest) => nest.reads(operand, args),
            },
            Lowered::Library(library) => library.reads(operand, args),
            Lowered::Exchange(_) | Lowered::Request => Reads::Buffer,
        }
    }
}

/// How an op's kernels read one of their operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Each element at most once, through [`KernelBuilder::operand`]: fusing repeats no work.
    Once,
    /// Through [`KernelBuilder::operand`], the same element many times: fusing repeats its computation.
    Often,
    /// From its buffer: the operand must lie in memory.
    Buffer,
}

/// The lowering of ops that fuse: one element of the result is an expression of single elements of the operands.
pub trait Point {
    /// The value at `index` (one entry per result dimension, in this device's block).
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem;

    /// How kernels read an operand; `args` are the types of all operands.
    fn reads(&self, operand: usize, args: &[&ArrayType]) -> Reads;
}

/// The lowering of ops that fill their results by loop nests or other work of one device.
pub trait NestLowering {
    /// The kernels, copies or prints that fill the results.
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic>;

    /// How the kernels read an operand; `args` are the types of all operands.
    fn reads(&self, operand: usize, args: &[&ArrayType]) -> Reads;
}

/// The lowering of ops whose result can be the bytes of the operand, such as `reshape`.
pub trait Alias {
    /// Whether the result is the operand's bytes under another type, so that it needs no work once that lies in memory.
    fn aliases(&self, from: &Type, to: &Type, mesh: &Mesh) -> bool;

    /// What it takes otherwise.
    fn copied(&self) -> Copied<'_>;
}

/// How an alias is computed of an operand that does not lie in memory.
pub enum Copied<'a> {
    /// As the expression of one element, which fuses.
    Point(&'a dyn Point),
    /// By loop nests.
    Nest(&'a dyn NestLowering),
}

/// The lowering of ops that a function of the runtime computes, such as a matrix product.
pub trait Library: NestLowering {
    /// Whether the op can take an operand from the devices that hold its blocks, so that what the collective `gather` makes of these
    /// need not lie in memory. At most one operand of a statement is taken so.
    fn streams(&self, operand: usize, gather: &Stmt, stmt: &Stmt, func: &Func, mesh: &Mesh) -> bool;
}

/// The lowering of ops in which devices exchange data.
pub trait Exchange {
    /// The steps by which the devices exchange data and fill the results.
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic>;

    /// What it communicates: the kind, and the axes of its groups.
    fn collective(&self, args: &[&Type], results: &[&Type], mesh: &Mesh) -> (CollectiveKind, AxisSet);

    /// How much it communicates.
    fn traffic(&self, args: &[&Type], results: &[&Type], mesh: &Mesh) -> Traffic;
}

/// What is usual for a collective of this kind, with the first operand's block.
pub(crate) fn usual_traffic(op: &dyn Exchange, args: &[&Type], results: &[&Type], mesh: &Mesh) -> Traffic {
    let (kind, group) = op.collective(args, results, mesh);
    Traffic::usual(kind, mesh.size_of_set(group), args[0], mesh)
}

/// What passes ask of an op. Where passes used to match on ops, they read an answer here.
#[derive(Clone)]
pub struct Properties<'a> {
    /// What a statement does besides giving results.
    pub effect: Effect,
    /// What the op is in `manual` code.
    pub manual: Manual<'a>,
    /// Where the layout of the results comes from.
    pub placement: Placement<'a>,
    /// Which operands may be partial sums.
    pub linear: Linear,
    /// What happens along split dimensions of the operands that no result has.
    pub combines: Combines,
    /// Of what the results consist.
    pub elements: Elements<'a>,
    /// Whether its dimensions may lie in blocks that are parts of those of another array.
    pub keeps_alignment: bool,
}

/// What a statement does besides giving results. With an effect it is kept though nobody uses its results, and stays in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Stops a program that is wrong.
    Check,
    /// Shows values, or stops the program as it says itself: on behalf of each device that has values of its own.
    Text,
    /// Shows a layout.
    Layout,
}

/// What an op is in the code of a `manual` function.
#[derive(Clone, Copy)]
pub enum Manual<'a> {
    /// The same as elsewhere: its results vary as its operands do.
    Local,
    /// Its results vary along these axes, too.
    Varies(AxisSet),
    /// It is about the values of a group of devices.
    Group(&'a dyn GroupCollective),
}

/// Where the layout of the results comes from.
#[derive(Clone, Copy, Debug)]
pub enum Placement<'a> {
    /// From the operands.
    Follows,
    /// From the operands, or as the program says by `out=`, where those leave a choice.
    Out(Option<&'a Sharding>),
    /// Something is to give the operand this layout.
    Requested(&'a Sharding),
    /// The op gives each operand the layout of its result.
    Moved,
}

/// Which operands may be partial sums, for the results to be partial sums, too: the op commutes with the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linear {
    /// None.
    No,
    /// All over the same axes: what is added, moved or joined.
    Together,
    /// Each on its own, as nothing is computed of them.
    Apart,
    /// One of the factors, element by element.
    Product,
    /// One of the factors of products that are summed.
    Contraction,
    /// The dividend, of floats.
    Quotient,
    /// The only one, where both it and this type are floats.
    Conversion(DType),
}

/// What happens along the dimensions of the operands that no result has, where these are split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Combines {
    /// There are none, or they are needed whole.
    Nothing,
    /// Elements are combined.
    Elements(ReduceOp),
    /// One place of each of these dimensions of the first operand is taken, which one is known when the program runs.
    Places(Vec<usize>),
    /// Each device has a part of the diagonal.
    Diagonal,
}

/// Of what the results consist.
#[derive(Clone, Copy)]
pub enum Elements<'a> {
    /// Numbers that are known when the program is compiled.
    Literal(&'a Array),
    /// Their own places.
    Counted,
    /// Elements of the operand, each at several places.
    Repeated,
    /// Elements of the operand, each at one place.
    Moved,
    /// Some elements of the first operand, and nothing else.
    Window(&'a dyn Windowed),
    /// Some elements of the first operand, and perhaps a number around them.
    Framed(&'a dyn Windowed),
    /// Computed of the operands' elements at the same place, which are broadcast.
    Elementwise,
    /// The operand's elements with another sign.
    Negated,
    /// Computed otherwise.
    Other,
}

/// An op whose result is a window on its first operand, perhaps with a number around the elements.
pub trait Windowed {
    /// Which elements of the first operand the result consists of.
    fn window(&self, args: &[&ArrayType]) -> WindowMap;
}

impl<'a> Elements<'a> {
    /// The array that the result is; None where it is not known at compile time.
    pub fn literal(self) -> Option<&'a Array> {
        match self {
            Elements::Literal(array) => Some(array),
            Elements::Counted
            | Elements::Repeated
            | Elements::Moved
            | Elements::Window(_)
            | Elements::Framed(_)
            | Elements::Elementwise
            | Elements::Negated
            | Elements::Other => None,
        }
    }

    /// The window that the result is, with or without a number around it; None for other ops.
    pub fn window(self) -> Option<&'a dyn Windowed> {
        match self {
            Elements::Window(window) | Elements::Framed(window) => Some(window),
            Elements::Literal(_)
            | Elements::Counted
            | Elements::Repeated
            | Elements::Moved
            | Elements::Elementwise
            | Elements::Negated
            | Elements::Other => None,
        }
    }

    /// Whether every device can make the results in any layout out of numbers that it has, at no cost.
    pub fn are_made_anywhere(self) -> bool {
        matches!(self, Elements::Literal(_) | Elements::Counted | Elements::Repeated)
    }

    /// Whether the op gives the same elements in another shape if its operands come in that shape.
    pub fn are_elementwise(self) -> bool {
        matches!(self, Elements::Elementwise | Elements::Negated)
    }
}

impl Properties<'_> {
    /// Whether a statement does something besides giving results.
    pub fn has_effect(&self) -> bool {
        self.effect != Effect::None
    }

    /// For the collectives of `manual` code: what it does to the values of a group of devices.
    pub fn group(&self) -> Option<&dyn GroupCollective> {
        match self.manual {
            Manual::Group(group) => Some(group),
            Manual::Local | Manual::Varies(_) => None,
        }
    }

    /// Along which manual axes the results vary, given where some operand does.
    pub fn varying(&self, operands: AxisSet) -> AxisSet {
        match self.manual {
            Manual::Local => operands,
            Manual::Varies(axes) => operands.union(axes),
            Manual::Group(group) => group.varying(operands),
        }
    }

    /// The layout on explicit axes that the user asked for by `out=`.
    pub fn out(&self) -> Option<&Sharding> {
        match self.placement {
            Placement::Out(out) => out,
            Placement::Follows | Placement::Requested(_) | Placement::Moved => None,
        }
    }
}

/// One operation for each element of the results.
pub(crate) fn one_each(results: &[&ArrayType]) -> u64 {
    results.iter().map(|result| result.len() as u64).sum()
}
