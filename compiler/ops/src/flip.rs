//! `flip(x, axis)`: reverses dimensions. A flipped dimension is a window: devices fetch the opposite blocks.

use crate::window;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::{Array, Trap, indices};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::Stmt;
use spmdc_ir::program::Value;
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::batching::shifted;
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
use spmdc_layout::window::{DimMap, WindowMap};

/// `flip(x, axis=(0,))`: the elements of some dimensions in reverse order.
#[derive(Clone, Debug, PartialEq)]
pub struct Flip {
    /// The dimensions that are reversed.
    pub axes: Vec<usize>,
}

impl Semantics for Flip {
    fn name(&self) -> &'static str {
        "flip"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        window::factors(&self.map(args[0]), args)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let sizes = args[0].shape();
        let strides = shape::strides(sizes);
        let place = |dim: usize, at: usize| if self.axes.contains(&dim) { sizes[dim] - 1 - at } else { at };
        let address =
            |index: Vec<usize>| index.iter().enumerate().map(|(dim, &at)| place(dim, at) * strides[dim]).sum::<usize>();
        let bits = indices(sizes).map(|index| args[0].bits[address(index)]).collect();
        Ok(vec![Array::new(args[0].ty.clone(), bits)])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("flip({}, axis={})", args[0], shape::tuple(&self.axes))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for Flip {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        Ok(vec![args[0].clone()])
    }
}

impl Rules for Flip {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(Flip { axes: shifted(&self.axes) })
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Point(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::Together,
            combines: Combines::Nothing,
            elements: Elements::Window(self),
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

impl WritesStablehlo for Flip {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        Ok(vec![hlo.reverse(&args[0], &self.axes)])
    }
}

impl LinearMap for Flip {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    fn transposed(&self, build: &mut CallBuilder, _: &Stmt, _: usize, cotangent: Value) -> Result<Value, Diagnostic> {
        build.emit1(self.clone(), &[cotangent])
    }
}

impl Point for Flip {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let map = self.map(&kernel.context.ty(stmt.args[0]).array);
        window::point(kernel, stmt, &map, &[], index)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl Windowed for Flip {
    fn window(&self, args: &[&ArrayType]) -> WindowMap {
        self.map(args[0])
    }
}

impl Flip {
    fn map(&self, x: &ArrayType) -> WindowMap {
        let dim = |(dim, &size): (usize, &usize)| match self.axes.contains(&dim) && size > 1 {
            true => DimMap { start: size - 1, step: -1, ..DimMap::identity(size) },
            false => DimMap::identity(size),
        };
        WindowMap { dims: x.shape.iter().enumerate().map(dim).collect(), fill: 0 }
    }
}

impl Call for Flip {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The array with reversed dimensions, by default all.
        flip(x: Array, axis: Ints = None), Any, Planes(x), "(x: f32[4, 6]) { flip(x, axis=1) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let rank = build.ty(value).rank();
        let axes = match args.optional_ints("axis")? {
            Some(given) => shape::axes(&given, rank, args.span)?,
            None => (0..rank).collect(),
        };
        Ok(Term::Array(build.emit1(Flip { axes }, &[value])?))
    }
}
