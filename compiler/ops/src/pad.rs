//! `pad(x, ((before, after), ...))`: a number around an array. Padded dimensions are windows: as blocks become longer, devices
//! fetch the elements that move across block borders.

use crate::broadcast::broadcast;
use crate::concatenate::concatenate;
use crate::constant::filling_bits;
use crate::slice::slice;
use crate::slice::{SliceRange, slice_dim};
use crate::window;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{expected, must_be};
use spmdc_ir::array::{Array, Trap, indices};
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::too_large;
use spmdc_ir::call::errors::unknown_value;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::call::term::whole_number;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::op::Op;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity};
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties, Reads, Rules,
    Semantics, Typing, Windowed,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::ArrayType;
use spmdc_layout::types::MAX_ELEMENTS;
use spmdc_layout::window::{DimMap, WindowMap};

/// `pad(x, [(1, 2)], bits=0)`: the elements of `x` with a number before and after them along each dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Pad {
    /// (before, after) for each dimension.
    pub widths: Vec<(usize, usize)>,
    /// The bits of the number.
    pub value: u64,
}

impl Semantics for Pad {
    fn name(&self) -> &'static str {
        "pad"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        window::factors(&self.map(args[0]), args)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let ty = self.infer(&[&args[0].ty]).expect("the checker has typed the padding").swap_remove(0);
        let mut result = Array::filled(ty, self.value);
        let strides = shape::strides(result.shape());
        for (index, &bits) in indices(args[0].shape()).zip(&args[0].bits) {
            let places = index.iter().zip(&self.widths).zip(&strides);
            let address: usize = places.map(|((at, (before, _)), stride)| (at + before) * stride).sum();
            result.bits[address] = bits;
        }
        Ok(vec![result])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let widths: Vec<String> = self.widths.iter().map(|(before, after)| format!("({before}, {after})")).collect();
        format!("pad({}, [{}], bits={})", args[0], widths.join(", "), self.value)
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for Pad {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let sizes = args[0].shape.iter().zip(&self.widths).map(|(size, (before, after))| size + before + after);
        Ok(vec![ArrayType::new(args[0].dtype, &sizes.collect::<Vec<_>>())])
    }
}

impl Rules for Pad {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(Pad { widths: [&[(0, 0)], self.widths.as_slice()].concat(), value: self.value })
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Point(self)
    }

    fn properties(&self) -> Properties<'_> {
        // Zeros add nothing, on any number of devices.
        let linear = if self.value == 0 { Linear::Together } else { Linear::No };
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear,
            combines: Combines::Nothing,
            elements: Elements::Framed(self),
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

impl WritesStablehlo for Pad {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let number = hlo.splat(results[0].dtype(), self.value, &[]);
        let widths: Vec<(usize, usize, usize)> =
            self.widths.iter().map(|&(before, after)| (before, after, 0)).collect();
        Ok(vec![hlo.pad(&args[0], &number, &widths)])
    }
}

impl LinearMap for Pad {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    fn linear_part(&self) -> Option<Op> {
        Some(Pad { value: 0, ..self.clone() }.into())
    }

    fn transposed(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        _: usize,
        cotangent: Value,
    ) -> Result<Value, Diagnostic> {
        let shape = build.ty(stmt.args[0]).shape();
        let range = |(&(before, _), &len): (&(usize, usize), &usize)| SliceRange { start: before, step: 1, len };
        let ranges: Vec<SliceRange> = self.widths.iter().zip(shape).map(range).collect();
        slice(build, cotangent, &ranges)
    }
}

impl Point for Pad {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let map = self.map(&kernel.context.ty(stmt.args[0]).array);
        window::point(kernel, stmt, &map, &[], index)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl Windowed for Pad {
    fn window(&self, args: &[&ArrayType]) -> WindowMap {
        self.map(args[0])
    }
}

impl Pad {
    fn map(&self, x: &ArrayType) -> WindowMap {
        let dims = x.shape.iter().zip(&self.widths);
        let dims = dims.map(|(&size, &(before, after))| DimMap { before, after, ..DimMap::identity(size) });
        WindowMap { dims: dims.collect(), fill: self.value }
    }
}

/// The (before, after) of each dimension, in the forms that NumPy accepts: a number, a pair, or a pair for each dimension.
fn widths(term: &Term, rank: usize, args: &Args<'_>) -> Result<Vec<(usize, usize)>, Diagnostic> {
    let malformed = |text: &str| Diagnostic::error(Code::E0205, args.span, text.to_string());
    let number = |term: &Term| match (whole_number(term), term) {
        (Some(width), _) => match usize::try_from(width) {
            Ok(width) if width <= MAX_ELEMENTS => Ok(width),
            Ok(_) => Err(too_large(args.span)),
            Err(_) => Err(malformed("a pad width must be at least 0")),
        },
        (None, other) => Err(malformed(&must_be("a pad width", "an integer", other.describe()))),
    };
    let pair = |items: &[Term]| match items {
        [both] => number(both).map(|width| (width, width)),
        [before, after] => Ok((number(before)?, number(after)?)),
        _ => Err(malformed("pad widths must be pairs (before, after)")),
    };
    if whole_number(term).is_some() {
        return number(term).map(|width| vec![(width, width); rank]);
    }
    let Some(items) = term.sequence() else {
        return Err(malformed(&must_be("pad widths", "numbers or pairs", term.describe())));
    };
    if !items.is_empty() && items.iter().all(|item| whole_number(item).is_some()) {
        return pair(items).map(|both| vec![both; rank]);
    }
    let pairs = items.iter().map(|item| match item.sequence() {
        Some(items) => pair(items),
        None => number(item).map(|width| (width, width)),
    });
    let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
    match pairs.len() {
        1 => Ok(vec![pairs[0]; rank]),
        len if len == rank => Ok(pairs),
        len => Err(malformed(&expected(format_args!("pad widths for {rank} dimensions"), len))),
    }
}

/// The extension of an array past its ends, if it is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The last element again.
    Edge,
    /// Mirrored at the last element, which is not repeated.
    Reflect,
    /// Mirrored after the last element, which is repeated.
    Symmetric,
    /// From the other end.
    Wrap,
}

impl Mode {
    /// None for a number around the array.
    fn of(arg: &Arg) -> Result<Option<Mode>, Diagnostic> {
        let known = ["constant", "edge", "reflect", "symmetric", "wrap"];
        let unknown = || unknown_value("mode", &known, &arg.term, arg.span);
        let Term::Str(name) = &arg.term else { return Err(unknown()) };
        match name.as_str() {
            "constant" => Ok(None),
            "edge" => Ok(Some(Mode::Edge)),
            "reflect" => Ok(Some(Mode::Reflect)),
            "symmetric" => Ok(Some(Mode::Symmetric)),
            "wrap" => Ok(Some(Mode::Wrap)),
            // The other modes of NumPy.
            "empty" | "linear_ramp" | "maximum" | "mean" | "median" | "minimum" => {
                let message = format!("mode=\"{name}\" of `pad` is not supported yet");
                Err(Diagnostic::error(Code::E0901, arg.span, message))
            }
            _ => Err(unknown()),
        }
    }

    /// The index in a dimension of `size` of the element at `place`, which may be outside of the dimension.
    fn source(self, place: i64, size: i64) -> i64 {
        match self {
            Mode::Edge => place.clamp(0, size - 1),
            Mode::Wrap => place.rem_euclid(size),
            Mode::Symmetric => {
                let at = place.rem_euclid(2 * size);
                at.min(2 * size - 1 - at)
            }
            Mode::Reflect if size == 1 => 0,
            Mode::Reflect => {
                let at = place.rem_euclid(2 * size - 2);
                at.min(2 * size - 2 - at)
            }
        }
    }
}

/// Maximum number of elements of continued padding, which is computed element by element: larger ones are mistakes.
const MAX_CONTINUED: usize = 1 << 24;

/// Maximum number of slices of continued padding: each is a statement.
const MAX_PARTS: usize = 256;

/// The array continued by its own elements: slices of it, concatenated.
fn extended(
    build: &mut CallBuilder,
    mut value: Value,
    widths: &[(usize, usize)],
    mode: Mode,
    args: &Args<'_>,
) -> Result<Value, Diagnostic> {
    for (dim, &(before, after)) in widths.iter().enumerate().filter(|(_, widths)| **widths != (0, 0)) {
        let sizes = build.ty(value).shape().to_vec();
        let size = sizes[dim] as i64;
        if size == 0 {
            let message = format!("`pad` cannot extend dimension {dim}: it is empty");
            return Err(Diagnostic::error(Code::E0205, args.span, message));
        }
        if before.saturating_add(after) > MAX_CONTINUED {
            let message = format!("`pad` by more than {MAX_CONTINUED} elements of the array is not supported yet");
            return Err(Diagnostic::error(Code::E0901, args.span, message));
        }
        let ends = [-(before as i64)..0, size..size + after as i64];
        let [front, back] = ends.map(|places| runs(places.map(|place| mode.source(place, size))));
        if front.len() + back.len() > MAX_PARTS {
            let message = format!("`pad` that takes more than {MAX_PARTS} slices of the array is not supported yet");
            return Err(Diagnostic::error(Code::E0901, args.span, message));
        }
        let mut parts = Vec::new();
        let whole = SliceRange::all(sizes[dim]);
        for run in front.into_iter().chain([whole]).chain(back) {
            let one = run.len == 1 || run.step == 0;
            let range = SliceRange {
                start: run.start,
                step: if one { 1 } else { run.step },
                len: if one { 1 } else { run.len },
            };
            let mut part = slice_dim(build, value, dim, range)?;
            if one && run.len > 1 {
                let mut wider = sizes.clone();
                wider[dim] = run.len;
                part = broadcast(build, part, &wider)?;
            }
            parts.push(part);
        }
        value = concatenate(build, &parts, dim)?;
    }
    Ok(value)
}

/// Indices as runs with equal steps of -1, 0 or 1, as long as possible.
pub fn runs(places: impl Iterator<Item = i64>) -> Vec<SliceRange> {
    let mut runs: Vec<SliceRange> = Vec::new();
    for place in places {
        if let Some(run) = runs.last_mut() {
            let step = place - run.at(run.len - 1) as i64;
            if step.abs() <= 1 && (run.len == 1 || run.step == step) {
                run.step = step;
                run.len += 1;
                continue;
            }
        }
        runs.push(SliceRange { start: place as usize, step: 1, len: 1 });
    }
    runs
}

impl Call for Pad {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The array with elements around it: a number, or by `mode=` the edge, mirrored (`reflect`, `symmetric`) or opposite (`wrap`) elements.
        pad(x: Array, pad_width: Of("int, pair, or pair for each dimension"), mode: Of("string") = "constant",
        [in_dumps "write `constant_values=`"] bits: Of("bits") = None, [named] constant_values: Of("number") = 0),
            NumbersAndBools, Planes(x, constant_values), "(x: f32[4, 6]) { pad(x, (1, 0), constant_values=9) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let (dtype, rank) = (build.ty(value).dtype(), build.ty(value).rank());
        let given = args.required("pad_width")?;
        let widths = widths(&given.term, rank, args)?;
        if let Some(mode) = args.take("mode")
            && let Some(mode) = Mode::of(&mode)?
        {
            return Ok(Term::Array(extended(build, value, &widths, mode, args)?));
        }
        let bits = args.take("bits");
        let number = match (bits, args.take("constant_values")) {
            // Any number, NaN included.
            (Some(arg), _) => {
                let Term::Int(bits) = arg.term else {
                    let message = must_be("`bits`", "an integer", arg.term.describe());
                    return Err(Diagnostic::error(Code::E0227, arg.span, message));
                };
                bits as u64
            }
            (None, Some(arg)) => filling_bits(&arg.term, dtype, arg.span)?,
            (None, None) => 0,
        };
        Ok(Term::Array(build.emit1(Pad { widths, value: number }, &[value])?))
    }
}
