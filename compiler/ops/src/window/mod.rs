//! `window(x, h, dims=.., halos=(0,), bits=0)`: elements of `x` at other indices, in the general form: slices, flips, rolls and
//! pads of split dimensions become windows, and several of them in a row become one.
//!
//! A device reads elements that it has from `x`, and the rest from `h`, which a `halo` statement has fetched; there is one halo for
//! each dimension along which a device lacks elements. Several windows on one value may read margins instead (`margins`): one for
//! each side of a dimension. On whole arrays neither matters.
//!
//! Factors: dimensions taken whole pass. All others are of kind *window*: operand and result are split by the same axes, each over
//! its own size, and devices fetch missing elements.

mod margin_reads;

use crate::margins::Margins;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
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
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Properties, Rules, Semantics,
    Typing, Windowed,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::margin::Margin;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType, Type};
use spmdc_layout::window::{DimMap, DimReach, Reaches, WindowMap};
use std::sync::Arc;

/// `window(x, h, dims=.., halos=(0,), bits=0)`: elements of `x` at other indices; the other operands have the elements that a
/// device lacks.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// For each dimension the indices of the elements, and the padding.
    pub map: WindowMap,
    /// The dimensions of the halos that follow the operand.
    pub halos: Vec<usize>,
    /// The margins that follow the operand; empty if halos do.
    pub margins: Vec<Arc<Margin>>,
}

impl Semantics for Window {
    fn name(&self) -> &'static str {
        "window"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        factors(&self.map, args)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(vec![eval(&self.map, args[0])])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let halos = shape::tuple(&self.halos);
        format!("window({}, dims={}, halos={halos}, bits={})", args.join(", "), display(&self.map.dims), self.map.fill)
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for Window {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let sizes: Vec<usize> = self.map.dims.iter().map(|map| map.size).collect();
        let margins = [0, self.halos.len()].contains(&self.margins.len());
        if sizes != args[0].shape || args.len() != 1 + self.halos.len() || !margins {
            let message = format!("a window on an array of shape {} is applied to {}", shape::display(&sizes), args[0]);
            return Err(Mismatch::new(Code::E0205, message));
        }
        Ok(vec![ArrayType::new(args[0].dtype, &self.map.result_shape())])
    }
}

impl Rules for Window {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Missing
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Never
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Point(self)
    }

    fn properties(&self) -> Properties<'_> {
        let linear = if self.map.fill == 0 { Linear::Together } else { Linear::No };
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

impl WritesStablehlo for Window {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        if !self.halos.is_empty() || results[0].is_empty() {
            return Err(HloGap("window on blocks of devices".to_string()));
        }
        let mut x = args[0].clone();
        for (dim, map) in self.map.dims.iter().enumerate() {
            let step = map.step.unsigned_abs() as usize;
            let mut parts = Vec::new();
            for run in map.runs() {
                let place = |number: usize| (run.origin + number as i64 * map.step) as usize;
                let (first, last) = (place(run.numbers.start), place(run.numbers.end - 1));
                let part = hlo.slice_dim(&x, dim, (first.min(last), first.max(last) + 1, step.max(1)));
                parts.push(if map.step < 0 { hlo.reverse(&part, &[dim]) } else { part });
            }
            x = match parts.is_empty() {
                true => hlo.slice_dim(&x, dim, (0, 0, 1)),
                false => hlo.concatenate(&parts, dim),
            };
        }
        let fill = hlo.splat(results[0].dtype(), self.map.fill, &[]);
        let widths: Vec<(usize, usize, usize)> = self.map.dims.iter().map(|map| (map.before, map.after, 0)).collect();
        Ok(vec![hlo.pad(&x, &fill, &widths)])
    }
}

impl Windowed for Window {
    fn window(&self, _: &[&ArrayType]) -> WindowMap {
        self.map.clone()
    }
}

/// The element of this number, if the device has the whole operand: its elements form one run, or two if they wrap around.
pub fn from_runs(
    kernel: &mut KernelBuilder<'_>,
    dtype: DType,
    map: &DimMap,
    number: &Affine,
    mut at: impl FnMut(&mut KernelBuilder<'_>, Affine) -> Elem,
) -> Elem {
    let mut runs = map.runs();
    runs.sort_by_key(|run| run.numbers.len());
    let mut elem = None;
    for run in &runs {
        let own = at(kernel, number.times(map.step).offset(run.origin));
        elem = Some(match elem {
            None => own,
            Some(other) => {
                let bound = |number: usize| Affine::constant(number as i64);
                let inside = kernel.in_range(number.clone(), bound(run.numbers.start), bound(run.numbers.end));
                kernel.select(dtype, inside, own, other)
            }
        });
    }
    // A kernel over no elements is generated too, though it never reads one.
    elem.unwrap_or_else(|| kernel.constant(dtype, 0))
}

/// The factor rule of a window on the first operand.
pub fn factors(map: &WindowMap, args: &[&ArrayType]) -> Factors {
    let mut rule = Factors::new();
    let kind = |map: &DimMap| if map.is_identity() { FactorKind::Pass } else { FactorKind::Window };
    let dims: Vec<Vec<usize>> = map.dims.iter().map(|map| vec![rule.add(map.result(), kind(map))]).collect();
    rule.operands.push(dims.clone());
    for halo in args.iter().skip(1) {
        let own = halo.shape.iter().map(|&size| vec![rule.add(size, FactorKind::Whole)]).collect();
        rule.operands.push(own);
    }
    rule.results.push(dims);
    rule
}

/// The elements that a window shows.
pub fn eval(map: &WindowMap, x: &Array) -> Array {
    Array::from_fn(ArrayType::new(x.dtype(), &map.result_shape()), |index| {
        let places: Option<Vec<usize>> = index.iter().zip(&map.dims).map(|(&at, map)| map.place(at)).collect();
        places.map_or(map.fill, |places| x.get(&places))
    })
}

/// `[(8, 0, 1, 1, 7, 0), ()]`: size, before, start, step, length and after of each dimension; `()` for an unchanged one.
pub fn display(dims: &[DimMap]) -> String {
    let dim = |map: &DimMap| match map.is_identity() {
        true => "()".to_string(),
        false => {
            let DimMap { size, before, start, step, len, after } = map;
            format!("({size}, {before}, {start}, {step}, {len}, {after})")
        }
    };
    format!("[{}]", dims.iter().map(dim).collect::<Vec<_>>().join(", "))
}

/// Reads the text of [`display`].
pub fn read(term: &Term, shape: &[usize], span: Span) -> Result<Vec<DimMap>, Diagnostic> {
    let malformed = || {
        let message =
            "`dims` of `window` must hold (size, before, start, step, length, after) or () for each dimension";
        Diagnostic::error(Code::E0227, span, message)
    };
    let Term::List(dims) = term else { return Err(malformed()) };
    if dims.len() != shape.len() {
        return Err(malformed());
    }
    let dim = |(term, &size): (&Term, &usize)| {
        let Term::Tuple(parts) = term else { return Err(malformed()) };
        if parts.is_empty() {
            return Ok(DimMap::identity(size));
        }
        let number = |term: &Term| {
            let Term::Int(number) = term else { return Err(malformed()) };
            i64::try_from(*number).map_err(|_| malformed())
        };
        let numbers = parts.iter().map(number).collect::<Result<Vec<i64>, Diagnostic>>()?;
        let [size, before, start, step, len, after] = numbers[..] else { return Err(malformed()) };
        let unsigned = |number: i64| usize::try_from(number).map_err(|_| malformed());
        let map = DimMap {
            size: unsigned(size)?,
            before: unsigned(before)?,
            start: unsigned(start)?,
            step,
            len: unsigned(len)?,
            after: unsigned(after)?,
        };
        if map.is_sound() { Ok(map) } else { Err(malformed()) }
    };
    dims.iter().zip(shape).map(dim).collect()
}

/// The element of a window at an index of this device's block.
pub fn point(kernel: &mut KernelBuilder<'_>, stmt: &Stmt, map: &WindowMap, halos: &[usize], index: &[Affine]) -> Elem {
    let (from, to) = (kernel.context.ty(stmt.args[0]).clone(), kernel.context.ty(stmt.results[0]).clone());
    let Some(reaches) = Reaches::new(&map.dims, &from.sharding, &to.sharding, kernel.context.mesh) else {
        unreachable!("a window between layouts that have none: {stmt:?}")
    };
    let halo = |dim: usize| halos.iter().position(|&own| own == dim).map(|at| stmt.args[1 + at]);
    let halos = (0..map.dims.len()).map(halo).collect();
    let reader = HaloReader { x: stmt.args[0], to: &to, reaches: &reaches, halos, index };
    let mut elem = reader.element(kernel, &mut Vec::new());
    for (dim, reach) in reaches.dims.iter().enumerate() {
        if reach.map.before + reach.map.after == 0 {
            continue;
        }
        let low = kernel.scalar_affine(reach.scalar(|reach| distance(reach.block.start, reach.body.start)));
        let high = kernel.scalar_affine(reach.scalar(|reach| distance(reach.block.start, reach.body.end)));
        let inside = kernel.in_range(index[dim].clone(), low, high);
        let fill = kernel.constant(to.dtype(), map.fill);
        elem = kernel.select(to.dtype(), inside, elem, fill);
    }
    elem
}

fn distance(from: usize, to: usize) -> i64 {
    to as i64 - from as i64
}

/// Reads a window on one device.
struct HaloReader<'a> {
    x: Value,
    to: &'a Type,
    reaches: &'a Reaches,
    /// The halo of each dimension.
    halos: Vec<Option<Value>>,
    index: &'a [Affine],
}

impl HaloReader<'_> {
    /// `known` are the indices in the operand's block along the first dimensions.
    fn element(&self, kernel: &mut KernelBuilder<'_>, known: &mut Vec<Affine>) -> Elem {
        let dim = known.len();
        let Some(reach) = self.reaches.dims.get(dim) else { return kernel.operand(self.x, known) };
        let index = &self.index[dim];
        if reach.is_whole() {
            return self.whole(kernel, known, reach);
        }
        let step = reach.map.step;
        let place = reach.scalar(|reach| reach.from as i64 - step * distance(reach.block.start, reach.held.start));
        let place = index.times(step).plus(&kernel.scalar_affine(place));
        let Some(halo) = self.halos[dim] else {
            return self.with(kernel, known, place);
        };
        if reach.positions.iter().all(|reach| reach.held.is_empty()) {
            return self.lacking(kernel, dim, reach, halo);
        }
        let held = self.with(kernel, known, place);
        let lacking = self.lacking(kernel, dim, reach, halo);
        let low = kernel.scalar_affine(reach.scalar(|reach| distance(reach.block.start, reach.held.start)));
        let high = kernel.scalar_affine(reach.scalar(|reach| distance(reach.block.start, reach.held.end)));
        let inside = kernel.in_range(index.clone(), low, high);
        kernel.select(self.to.dtype(), inside, held, lacking)
    }

    fn with(&self, kernel: &mut KernelBuilder<'_>, known: &mut Vec<Affine>, place: Affine) -> Elem {
        known.push(place);
        let elem = self.element(kernel, known);
        known.pop();
        elem
    }

    /// The device has the whole operand: its elements form one run, or two if they wrap around.
    fn whole(&self, kernel: &mut KernelBuilder<'_>, known: &mut Vec<Affine>, reach: &DimReach) -> Elem {
        let dim = known.len();
        let number = kernel.global_index(self.to, dim, &self.index[dim]).offset(-(reach.map.before as i64));
        from_runs(kernel, self.to.dtype(), &reach.map, &number, |kernel, place| self.with(kernel, known, place))
    }

    fn lacking(&self, kernel: &mut KernelBuilder<'_>, dim: usize, reach: &DimReach, halo: Value) -> Elem {
        let read = |kernel: &mut KernelBuilder<'_>, behind: bool| {
            let offset = reach.scalar(|reach| {
                let before = distance(reach.body.start, reach.block.start);
                if behind { before - reach.held.len() as i64 } else { before }
            });
            let mut place = self.index.to_vec();
            place[dim] = place[dim].plus(&kernel.scalar_affine(offset));
            kernel.operand(halo, &place)
        };
        match (reach.lacks_before(), reach.lacks_behind()) {
            (true, true) => {
                let (before, behind) = (read(kernel, false), read(kernel, true));
                let high = kernel.scalar_affine(reach.scalar(|reach| distance(reach.block.start, reach.held.start)));
                let inside = kernel.in_range(self.index[dim].clone(), Affine::constant(0), high);
                kernel.select(self.to.dtype(), inside, before, behind)
            }
            (_, behind) => read(kernel, behind),
        }
    }
}

impl Call for Window {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Elements at other places.
        window(x: Array, [rest] margins: Array, [named] dims: Of("places") = None, [named] halos: Ints = None, [named] bits: Of("bits") = 0)
        in_dumps "" "write x[1:3], `roll`, `flip` or `pad`";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let (dims, halos) = (args.take("dims"), args.optional_ints("halos")?);
        let fill = args.take("bits").map_or(Term::Int(0), |arg| arg.term);
        let value = args.array(build, "x")?;
        let (Some(dims), Term::Int(fill)) = (dims, fill) else {
            return Err(Diagnostic::error(
                Code::E0227,
                args.span,
                "`window` requires `dims=`; write x[1:3] for a slice",
            ));
        };
        let dims = read(&dims.term, build.ty(value).shape(), dims.span)?;
        let halos = match halos {
            None => Vec::new(),
            Some(halos) => {
                // There may be two margins along a dimension.
                halos.iter().map(|&dim| shape::axis(dim, dims.len(), args.span)).collect::<Result<_, _>>()?
            }
        };
        let mut operands = vec![value];
        for arg in args.rest("margins") {
            operands.push(build.materialize(&arg.term, None, arg.span)?);
        }
        let map = WindowMap { dims, fill: fill as u64 };
        let margins = operands[1..].iter().map_while(|&halo| margin(halo, build)).collect();
        Ok(Term::Array(build.emit1(Window { map, halos, margins }, &operands)?))
    }
}

/// The margin that a value is, if it is one.
fn margin(value: Value, build: &CallBuilder) -> Option<Arc<Margin>> {
    let mut before = build.blocks().iter().rev().flat_map(|block| block.stmts.iter().rev());
    let maker = before.find(|stmt| stmt.results.contains(&value))?;
    let op = maker.as_op::<Margins>()?;
    let at = maker.results.iter().position(|&result| result == value)?;
    op.parts.get(at).cloned()
}
