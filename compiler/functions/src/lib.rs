//! The table of operations: every op once, one file each.
//!
//! An op is a small struct of its attributes that implements [`Rules`]. The table has its names in the language; a call of such a name is
//! handled by [`Call::call`] of the op, which emits statements. Most ops have the language's name in the IR, too, and print as a call that
//! reads back as the same op. Control flow is not an op: see [`control`](spmdc_ir::program::control).

#![warn(missing_docs)]

pub mod complex;
pub mod conv;
pub mod diff;
pub mod draws;
pub mod indexing;
pub mod kron;
pub mod later;
pub mod matrix_power;
pub mod meshgrid;
pub mod norm;
pub mod operators;
pub mod paragraph;
pub mod prelude;
pub mod reduce_window;
pub mod repeat;
pub mod segments;
pub mod spectral;
pub mod split;
pub mod take;
pub mod transformations;

use crate::prelude::Written;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::only_in_dumps;
use spmdc_ir::call::signature::{Signature, Status};
use spmdc_ir::call::term::Term;
use spmdc_ir::rules::Rules;
use spmdc_ops::{
    barrier, broadcast, cast, check_indices, collective, combined, concatenate, constant, dynamic_slice, elementwise,
    flip, fma, fold_in, gather, index, iota, keys, makers, margins, message, pad, print, random_bits, read_rows,
    reduce, reshape, reshard, revise, roll, save, scan, scatter, slice, sort, transfer, transpose, update, window,
    with_partials,
};

type CallFn = fn(&str, &mut Args<'_>, &mut CallBuilder) -> Result<Term, Diagnostic>;

/// Functions of the language that one op, or one composition of ops, implements.
struct Functions {
    names: &'static [&'static str],
    /// The signatures; empty for functions written in the language.
    signatures: &'static [Signature],
    /// The implementation; None for functions written in the language.
    call: Option<CallFn>,
}

/// The functions that are written in the language.
const WRITTEN: Functions = Functions { names: &prelude::NAMES, signatures: &[], call: None };

impl Functions {
    const fn new(names: &'static [&'static str], signatures: &'static [Signature], call: CallFn) -> Functions {
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
        Functions { names, signatures, call: Some(call) }
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
                $(Functions::new(&[$first $(, $more)*], <$ty as Call>::SIGNATURES, <$ty as Call>::call),)?
                $(Functions::new(&$names, <$ty as Call>::SIGNATURES, <$ty as Call>::call),)?
            )*
        ];
    };
}

/// Functions that are not ops: their calls emit other ops.
macro_rules! composites {
    ($($ty:ty = $first:literal $(| $more:literal)*,)*) => {
        const COMPOSITES: &[Functions] =
            &[$(Functions::new(&[$first $(, $more)*], <$ty as Call>::SIGNATURES, <$ty as Call>::call),)*];
    };
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
    reduce_window::WindowReductions = "reduce_window" | "max_pool" | "avg_pool",
    repeat::Repeat = "tile" | "repeat",
    diff::Diff = "diff",
    kron::Kron = "kron",
    meshgrid::Meshgrid = "meshgrid",
    makers::Makers = "zeros" | "ones" | "full" | "zeros_like" | "ones_like" | "full_like" | "arange" | "linspace" | "logspace"
        | "eye" | "one_hot" | "tril" | "triu",
    keys::Keys = "key",
    transformations::Transformations = "grad" | "value_and_grad" | "vjp" | "jvp" | "jacobian" | "hessian" | "stop_gradient" | "checkpoint"
        | "custom_vjp" | "vmap",
    later::Later = "tree_map" | "tree_reduce" | "associative_scan",
}

/// A shipped function.
#[derive(Clone, Copy)]
pub struct Function {
    /// The name that calls use.
    pub name: &'static str,
    signatures: &'static [Signature],
    call: Option<CallFn>,
}

/// The implementation of a call of a shipped function.
pub enum Body {
    /// Statements, emitted by the op.
    Emitted(CallFn),
    /// The body of a function of the prelude, for the checker to expand.
    Written(&'static Written),
}

impl Function {
    /// The forms of its call: the form of programs first, if programs may call it, then the forms of dumps.
    pub fn forms(&self) -> impl Iterator<Item = &'static Signature> + use<> {
        let name = self.name;
        let written = prelude::written(name).map(|written| &written.signature);
        written.into_iter().chain(self.signatures.iter().filter(move |signature| signature.name == name))
    }

    /// The implementation: the op's, or the prelude's source.
    pub fn body(&self) -> Body {
        match self.call {
            Some(call) => Body::Emitted(call),
            None => Body::Written(prelude::written(self.name).expect("what emits nothing is written in the prelude")),
        }
    }

    /// Whether the prelude has its source.
    pub fn is_written(&self) -> bool {
        self.call.is_none()
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
    OPS.iter().chain([&WRITTEN]).chain(COMPOSITES).flat_map(|functions| {
        let function = |&name: &&'static str| Function { name, signatures: functions.signatures, call: functions.call };
        functions.names.iter().map(function)
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

/// The program text that replaces a call that only dumps may contain, because it relies on checks by the compiler; None for
/// functions that programs may call.
pub fn instead_of(name: &str) -> Option<&'static str> {
    match builtin(name)?.signature().status {
        Status::InDumps { instead, .. } => Some(instead),
        Status::Shipped => None,
    }
}

/// Whether a shipped function has this name.
pub fn is_builtin(name: &str) -> bool {
    builtin(name).is_some()
}
