//! The table of functions: every function of the language once.
//!
//! An op is a small struct of its attributes that implements [`Rules`]. The table has its names in the language; a call of such a name is
//! handled by [`Call::call`] of the op, which emits statements. Most ops have the language's name in the IR, too, and print as a call that
//! reads back as the same op. Control flow is not an op: see [`control`](spmdc_ir::program::control).
//!
//! Compositions of ops implement [`Call`] only, and functions of functions implement [`Expand`]. Other functions are written in the language
//! ([`prelude`]), or are [`transformations`], which the checker carries out.

#![warn(missing_docs)]

pub mod associative_scan;
pub mod complex;
pub mod conv;
pub mod diff;
pub mod draws;
pub mod indexing;
pub mod kron;
pub mod matrix_power;
pub mod meshgrid;
pub mod norm;
pub mod operators;
pub mod paragraph;
pub mod pools;
pub mod prelude;
pub mod reduce_window;
pub mod repeat;
pub mod segments;
pub mod spectral;
pub mod split;
pub mod stop_gradient;
pub mod take;
pub mod transformations;
pub mod tree;

use crate::prelude::PreludeFunction;
use crate::transformations::Transformation;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::only_in_dumps;
use spmdc_ir::call::expand::{Expand, Expanded, Expander};
use spmdc_ir::call::signature::{Signature, Status};
use spmdc_ir::call::term::Term;
use spmdc_ir::rules::Rules;
use spmdc_ops::{
    barrier, bitcast, broadcast, cast, check_indices, collective, combined, concatenate, constant, dynamic_slice,
    elementwise, flip, fma, fold_in, gather, index, iota, keys, makers, margins, message, pad, print, random_bits,
    read_rows, reduce, reshape, reshard, revise, roll, save, scan, scatter, show, slice, sort, transfer, transpose,
    update, window, with_partials,
};

/// Emits the statements of a call of the function of this name.
pub type CallFn = fn(&str, &mut Args<'_>, &mut CallBuilder) -> Result<Term, Diagnostic>;

/// Emits the statements of a call of the function of this name, and calls functions of the program.
pub type ExpandFn = fn(&str, &mut Args<'_>, &mut dyn Expander) -> Expanded<Term>;

/// Functions of the language with one implementation: an op, a composition of ops, or a part of the checker.
#[derive(Clone, Copy)]
struct Functions {
    names: &'static [&'static str],
    /// The signatures; empty for functions written in the language.
    signatures: &'static [Signature],
    implementation: Implementation,
}

#[derive(Clone, Copy)]
enum Implementation {
    Emitted(CallFn),
    Expanded(ExpandFn),
    /// It is expanded if an argument is a function.
    EmittedOrExpanded(CallFn, ExpandFn),
    /// The names are those of [`Transformation::NAMES`].
    Transformed,
    /// In the language.
    Prelude,
}

/// The functions that are written in the language.
const WRITTEN: Functions =
    Functions { names: &prelude::NAMES, signatures: &[], implementation: Implementation::Prelude };

/// The transformations of functions.
const TRANSFORMED: Functions =
    Functions::new(&Transformation::NAMES, Transformation::SIGNATURES, Implementation::Transformed);

impl Functions {
    const fn new(
        names: &'static [&'static str],
        signatures: &'static [Signature],
        implementation: Implementation,
    ) -> Functions {
        let mut name = 0;
        while name < names.len() {
            let mut at = 0;
            while at < signatures.len() && !signatures[at].is_called(names[name]) {
                at += 1;
            }
            assert!(at < signatures.len(), "a function of the table has no signature");
            name += 1;
        }
        let mut at = 0;
        while at < signatures.len() {
            let mut name = 0;
            while name < names.len() && !signatures[at].is_called(names[name]) {
                name += 1;
            }
            assert!(name < names.len(), "a signature is that of no name in its line of the table");
            at += 1;
        }
        Functions { names, signatures, implementation }
    }

    const fn emitted(names: &'static [&'static str], signatures: &'static [Signature], call: CallFn) -> Functions {
        Functions::new(names, signatures, Implementation::Emitted(call))
    }
}

macro_rules! ops {
    ($($(#[$doc:meta])* $ty:ty $(= $first:literal $(| $more:literal)*)? $(=> $names:expr)?,)*) => {
        // Each line is an op.
        const _: () = {
            const fn keeps<T: Rules>() {}
            $(keeps::<$ty>();)*
        };

        /// The names of ops in the language, each with its signatures and its implementation.
        const OPS: &[Functions] = &[
            $(
                $(Functions::emitted(&[$first $(, $more)*], <$ty as Call>::SIGNATURES, <$ty as Call>::call),)?
                $(Functions::emitted(&$names, <$ty as Call>::SIGNATURES, <$ty as Call>::call),)?
            )*
        ];
    };
}

/// Functions that are not ops: their calls emit other ops.
macro_rules! composites {
    ($($ty:ty = $first:literal $(| $more:literal)*,)*) => {
        const COMPOSITES: &[Functions] =
            &[$(Functions::emitted(&[$first $(, $more)*], <$ty as Call>::SIGNATURES, <$ty as Call>::call),)*];
    };
}

/// Functions that take functions of the program. One that names a `Call`, too, is that unless an argument is a function.
macro_rules! expansions {
    ($($ty:ty = $name:literal $(else $call:ty)?,)*) => {
        const EXPANSIONS: &[Functions] = &[$(Functions::new(
            &[$name],
            <$ty as Expand>::SIGNATURES,
            expansions!(@by <$ty as Expand>::expand $(, <$call as Call>::call)?),
        ),)*];
    };
    (@by $expand:expr) => { Implementation::Expanded($expand) };
    (@by $expand:expr, $call:expr) => { Implementation::EmittedOrExpanded($call, $expand) };
}

ops! {
    /// A literal.
    constant::Constant,
    /// A function of one operand, element by element.
    elementwise::Unary => elementwise::UNARY_NAMES,
    /// A function of two operands, element by element.
    elementwise::Binary = "minimum" | "maximum" | "atan2" | "hypot" | "logaddexp" | "copysign"
        | "nextafter" | "gcd" | "pow",
    /// A comparison, element by element.
    elementwise::Compare,
    /// A choice, element by element.
    elementwise::Select = "where",
    /// A product and a sum, rounded once.
    fma::Fma = "fma",
    /// Another element type.
    cast::Cast = "cast",
    /// The same bits as another element type.
    bitcast::Bitcast = "bitcast",
    /// A reduction over dimensions.
    reduce::Reduce = "sum" | "prod" | "max" | "min" | "all" | "any",
    /// The position of the largest or smallest element.
    reduce::ArgReduce = "argmax" | "argmin",
    /// Running totals along a dimension.
    scan::Scan = "cumsum" | "cumprod" | "cummax" | "cummin",
    /// The totals of the blocks of a split dimension.
    scan::BlockTotals = "block_totals",
    /// Lines in the order of keys.
    sort::Sort = "sort" | "argsort" | "sort_together",
    /// The lines of each block in the order of keys.
    spmdc_sort_ops::blocks::SortBlocks = "sort_blocks",
    /// The first elements of each block in the order of a key.
    spmdc_sort_ops::select::SelectBlocks = "select_blocks",
    /// Elements of the order of several sorted blocks.
    spmdc_sort_ops::merge::MergeSorted = "merge_sorted",
    /// Factorizations of matrices, and triangular systems.
    spmdc_linalg_ops::factorization::Factorization = "cholesky" | "triangular_solve" | "lu_solve" | "lu" | "lu_diagonal" | "lu_complete" | "qr" | "qr_signs" | "eigh" | "eig_planes" | "svd",
    /// Determinants, their logarithms and cofactors that have been computed, with the matrices.
    spmdc_linalg_ops::minors::Minors = "determinant" | "cofactors" | "log_determinant",
    /// Factorizations and products of the blocks of split rows.
    spmdc_linalg_ops::blocks::MatrixBlocks = "qr_blocks" | "multiply_blocks" | "cholesky_rows" | "cholesky_checked",
    /// Steps of triangular systems with split rows.
    spmdc_linalg_ops::systems::TriangularBlocks = "triangular_rows" | "triangular_sums",
    /// Fourier transforms of lines.
    spmdc_fft_ops::fft::Fft = "fft_lines" | "fft_of_real" | "fft_to_real",
    /// A sum of products of two operands.
    spmdc_einsum_ops::einsum::Einsum,
    /// Elements with equal indices in several dimensions.
    spmdc_einsum_ops::diagonal::Diagonal,
    /// Static ranges of dimensions.
    slice::Slice,
    /// A valid dynamic index, or an error that stops the program.
    index::CheckIndex = "check_index",
    /// Elements at other indices, in the general form.
    window::Window = "window",
    /// The elements that devices lack for a window.
    spmdc_window_ops::halo::Halo = "halo",
    /// The elements that devices lack for several windows.
    margins::Margins = "margins",
    /// Valid dynamic indices, or an error that stops the program.
    check_indices::CheckIndices = "check_indices",
    /// Elements at indices from arrays.
    gather::Gather = "gather",
    /// The windows of some dimensions, side by side.
    spmdc_window_ops::patches::Patches = "patches",
    /// Blocks with all elements that windows read.
    spmdc_window_ops::ghosted::Ghosted = "ghosted",
    /// Updates of elements at indices from arrays.
    scatter::Scatter = "scatter",
    /// Counts of the elements of a sorted array.
    spmdc_sort_ops::searchsorted::SearchSorted = "searchsorted",
    /// Elements at dynamic indices.
    index::Index = "index",
    /// Regions at dynamic indices.
    dynamic_slice::DynamicSlice = "dynamic_slice",
    /// A region of an array replaced.
    update::Update = "update",
    /// A region of an array replaced by values computed from its old elements.
    revise::Revise = "revise",
    /// Indices as values.
    iota::Iota = "iota",
    /// Random bits of a key, for each index.
    random_bits::RandomBits = "random_bits",
    /// Rows of a parameter that stays in its file.
    read_rows::ReadRows = "read_rows",
    /// Another key for each number.
    fold_in::FoldIn = "fold_in",
    /// NumPy broadcasting to a given shape.
    broadcast::Broadcast = "broadcast_to",
    /// The same elements in another shape.
    reshape::Reshape = "reshape" | "ravel" | "squeeze" | "expand_dims",
    /// The dimensions in another order.
    transpose::Transpose = "transpose" | "swapaxes" | "moveaxis",
    /// Dimensions in reverse.
    flip::Flip = "flip",
    /// Elements moved around the end of a dimension.
    roll::Roll = "roll",
    /// Padding around an array.
    pad::Pad = "pad",
    /// Arrays one after another.
    concatenate::Concatenate = "concatenate" | "stack" | "hstack" | "vstack",
    /// Shows values while running.
    print::Print = "print",
    /// Stops the program unless a condition holds.
    print::Assert = "assert",
    /// Writes a file while running.
    save::Save = "save",
    /// Shows a layout while running.
    print::ShowSharding = "show_sharding",
    /// The same values, which count as others.
    barrier::OptimizationBarrier = "barrier",
    /// The same values, with custom partial derivatives.
    with_partials::WithPartials = "with_partials",
    /// Moves a value to another mesh.
    transfer::Transfer = "transfer",
    /// The end of a transfer at which a value leaves.
    message::SendMessage = "send",
    /// The end of a transfer at which a value arrives.
    message::ReceiveMessage = "receive",
    /// Gives a value another layout.
    reshard::Reshard = "reshard" | "pin" | "pin_gradient" | "shard" | "all_reduce" | "reduce_scatter" | "collective_permute",
    /// Several small collectives at once; dumps name it as one of them.
    combined::Combined,
    /// `psum` and similar collectives.
    spmdc_collective_ops::all_reduce::PAllReduce = "psum" | "pmean" | "pmax" | "pmin",
    /// The values of a group of devices, one after another.
    spmdc_collective_ops::all_gather::PAllGather = "all_gather",
    /// The sum over a group; each device keeps a part.
    spmdc_collective_ops::reduce_scatter::PSumScatter = "psum_scatter",
    /// Each device sends a part to every other.
    spmdc_collective_ops::all_to_all::PAllToAll = "all_to_all",
    /// Whole values from device to device.
    spmdc_collective_ops::permute::PPermute = "ppermute" | "pshift",
    /// Marks a value as varying.
    collective::vary::PVary = "pvary",
    /// Gives a value another state along manual axes.
    collective::cast::PCast = "pcast",
    /// A device's position.
    collective::axis_index::AxisIndex = "axis_index" | "axis_size",
}

composites! {
    norm::Norm = "norm",
    segments::Segments = "segment_sum" | "segment_max" | "segment_min" | "bincount",
    segments::SelectOf = "select" | "select_n",
    take::Take = "take" | "take_along_axis",
    spmdc_einsum_ops::contract::Products = "einsum" | "matmul" | "dot" | "outer" | "tensordot",
    spmdc_einsum_ops::diagonal::DiagonalCalls = "trace" | "diag" | "diagonal",
    spectral::Shifts = "fftshift" | "ifftshift",
    split::Split = "split",
    spmdc_sort_ops::calls::LexSort = "lexsort",
    spmdc_sort_ops::calls::TopK = "top_k",
    spmdc_sort_ops::selection::Quantiles = "quantile" | "percentile",
    spmdc_sort_ops::selection::Chosen = "nonzero" | "unique",
    dynamic_slice::update::DynamicUpdate = "dynamic_update_slice",
    conv::Convolutions = "conv" | "conv_transpose" | "convolve",
    pools::Pools = "max_pool" | "avg_pool",
    repeat::Repeat = "tile" | "repeat",
    diff::Diff = "diff",
    kron::Kron = "kron",
    meshgrid::Meshgrid = "meshgrid",
    makers::Makers = "zeros" | "ones" | "full" | "zeros_like" | "ones_like" | "full_like" | "arange" | "linspace" | "logspace"
        | "eye" | "one_hot" | "tril" | "triu",
    keys::Keys = "key",
    stop_gradient::StopGradient = "stop_gradient",
    show::Show = "show",
}

expansions! {
    tree::TreeMap = "tree_map",
    tree::TreeReduce = "tree_reduce",
    associative_scan::AssociativeScan = "associative_scan",
    reduce_window::ReduceWindow = "reduce_window" else reduce_window::ReduceWindow,
}

/// A shipped function.
#[derive(Clone, Copy)]
pub struct Function {
    /// The name that calls use.
    pub name: &'static str,
    signatures: &'static [Signature],
    implementation: Implementation,
}

/// The implementation of a call of a shipped function.
pub enum Body {
    /// Statements, emitted by the op.
    Emitted(CallFn),
    /// Statements, emitted by code that calls functions of the program.
    Expanded(ExpandFn),
    /// A function that the checker makes of another one.
    Transformed(Transformation),
    /// The body of a function of the prelude, for the checker to expand.
    Prelude(&'static PreludeFunction),
}

impl Function {
    /// The forms of its call: the form of programs first, if programs may call it, then the forms of dumps.
    pub fn forms(&self) -> impl Iterator<Item = &'static Signature> + use<> {
        let name = self.name;
        let prelude = self.prelude().map(|prelude| &prelude.signature);
        prelude.into_iter().chain(self.signatures.iter().filter(move |signature| signature.name == name))
    }

    /// The implementation of a call with these arguments.
    pub fn body(&self, given: &[Arg]) -> Body {
        match self.implementation {
            Implementation::Emitted(call) => Body::Emitted(call),
            Implementation::Expanded(expand) => Body::Expanded(expand),
            Implementation::EmittedOrExpanded(call, expand) => {
                let takes_function = given.iter().any(|arg| matches!(arg.term, Term::Function(_)));
                if takes_function { Body::Expanded(expand) } else { Body::Emitted(call) }
            }
            Implementation::Transformed => {
                let found = Transformation::ALL.into_iter().find(|transformation| transformation.name() == self.name);
                Body::Transformed(found.expect("the names of the line are those of the transformations"))
            }
            Implementation::Prelude => Body::Prelude(self.prelude().expect("the prelude has the names of the line")),
        }
    }

    /// The source, if the function is one of the prelude.
    pub fn prelude(&self) -> Option<&'static PreludeFunction> {
        prelude::function(self.name)
    }

    /// The program text that replaces a call that only dumps may contain, because it relies on checks by the compiler; None for functions that
    /// programs may call.
    pub fn instead(&self) -> Option<&'static str> {
        match self.signature().status {
            Status::InDumps { instead, .. } => Some(instead),
            Status::Shipped => None,
        }
    }

    /// The first form.
    pub fn signature(&self) -> &'static Signature {
        self.forms().next().expect("the table has names with signatures only")
    }

    /// Binds the arguments of a call to the parameters of its form.
    pub fn bind(&self, given: Vec<Arg>, span: Span, exact: bool) -> Result<Args<'static>, Diagnostic> {
        let mut form = self.signature();
        let marked = self.forms().skip(1).find_map(|other| Some((other, other.mark(form, &given)?)));
        if let Some((other, mark)) = marked {
            match (exact, other.status) {
                (false, Status::InDumps { with, instead }) => {
                    return Err(only_in_dumps(&format!("`{}` {with}", self.name), instead, mark.span));
                }
                (true, Status::InDumps { .. }) | (_, Status::Shipped) => form = other,
            }
        }
        Args::bind(self.name, form, given, span, exact)
    }
}

/// Every function of the table.
pub fn functions() -> impl Iterator<Item = Function> {
    OPS.iter().chain([&WRITTEN]).chain(COMPOSITES).chain(EXPANSIONS).chain([&TRANSFORMED]).flat_map(|functions| {
        let Functions { names, signatures, implementation } = *functions;
        names.iter().map(move |&name| Function { name, signatures, implementation })
    })
}

/// The shipped function of this language name.
pub fn builtin(name: &str) -> Option<Function> {
    functions().find(|function| function.name == name)
}

/// All names that calls of shipped functions may use.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    functions().map(|function| function.name)
}

/// As [`Function::instead`], by the name of a function.
pub fn instead_of(name: &str) -> Option<&'static str> {
    builtin(name)?.instead()
}

/// Whether a shipped function has this name.
pub fn is_builtin(name: &str) -> bool {
    builtin(name).is_some()
}
