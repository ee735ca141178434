//! Elements of windows that share margins: read from the device's own block, or from a margin outside of it.
//!
//! Along each dimension, indices are relative to the start of the own block; adding a number known to each device turns them into indices
//! of a margin. Once an element is known to be in a margin, later dimensions need no conditions: the margin has all of them.

use crate::window::{self, Window, from_runs};
use spmdc_abi::Scalar;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::{Point, Reads};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_layout::blocks::table;
use spmdc_layout::margin::{DimSpread, Spread, Stretch};
use spmdc_layout::types::{ArrayType, Type};

/// The element of a window at an index of this device's block.
fn in_margin(kernel: &mut KernelBuilder<'_>, stmt: &Stmt, window: &Window, index: &[Affine]) -> Elem {
    let (from, to) = (kernel.context.ty(stmt.args[0]).clone(), kernel.context.ty(stmt.results[0]).clone());
    let Some(spread) = Spread::new(&window.map.dims, &from.sharding, &to.sharding, kernel.context.mesh) else {
        unreachable!("a window with margins between layouts that have none: {stmt:?}")
    };
    let reader = MarginReader { x: stmt.args[0], margins: &stmt.args[1..], window, to: &to, spread: &spread, index };
    let mut elem = reader.element(kernel, None, &mut Vec::new());
    for (dim, spread) in spread.dims.iter().enumerate() {
        if spread.map.before + spread.map.after > 0 {
            let fill = kernel.constant(to.dtype(), window.map.fill);
            let inside = reader.between(kernel, dim, |at| (at.body.start, at.body.end));
            elem = kernel.select(to.dtype(), inside, elem, fill);
        }
    }
    elem
}

struct MarginReader<'a> {
    x: Value,
    /// The margins, in the order of the window.
    margins: &'a [Value],
    window: &'a Window,
    to: &'a Type,
    spread: &'a Spread,
    index: &'a [Affine],
}

impl MarginReader<'_> {
    /// `known` are the indices along the first dimensions, relative to the own block; `margin` is the margin that has the element, if one
    /// of these indices is outside of the block.
    fn element(&self, kernel: &mut KernelBuilder<'_>, margin: Option<usize>, known: &mut Vec<Affine>) -> Elem {
        let dim = known.len();
        let Some(spread) = self.spread.dims.get(dim) else { return self.load(kernel, margin, known) };
        if spread.is_whole() {
            return self.whole(kernel, margin, known, spread);
        }
        let step = spread.map.step.max(1);
        let first = number(spread, |at| {
            at.origin + (at.block.start as i64 - spread.map.before as i64) * step - at.own.start as i64
        });
        let place = self.index[dim].times(step).plus(&kernel.scalar_affine(first));
        if margin.is_some() {
            return self.with(kernel, margin, known, place);
        }
        let side = |behind| self.window.margins.iter().position(|part| part.dim == dim && part.behind == behind);
        let (before, behind) = (side(false), side(true));
        let own = spread.holds().then(|| self.with(kernel, None, known, place.clone()));
        let beyond = [before, behind].map(|side| side.map(|_| self.with(kernel, side, known, place.clone())));
        let dtype = self.to.dtype();
        let lacking = match beyond {
            [Some(before), Some(behind)] => {
                let is_before = self.between(kernel, dim, |at| (at.block.start, at.held.start));
                Some(kernel.select(dtype, is_before, before, behind))
            }
            [before, behind] => before.or(behind),
        };
        match (own, lacking) {
            (Some(own), Some(lacking)) => {
                let inside = self.between(kernel, dim, |at| (at.held.start, at.held.end));
                kernel.select(dtype, inside, own, lacking)
            }
            // Of no elements none is ever asked for, but a kernel over none is still written down.
            (own, lacking) => own.or(lacking).unwrap_or_else(|| kernel.constant(dtype, 0)),
        }
    }

    fn with(
        &self,
        kernel: &mut KernelBuilder<'_>,
        margin: Option<usize>,
        known: &mut Vec<Affine>,
        place: Affine,
    ) -> Elem {
        known.push(place);
        let elem = self.element(kernel, margin, known);
        known.pop();
        elem
    }

    fn whole(
        &self,
        kernel: &mut KernelBuilder<'_>,
        margin: Option<usize>,
        known: &mut Vec<Affine>,
        spread: &DimSpread,
    ) -> Elem {
        let dim = known.len();
        let number = kernel.global_index(self.to, dim, &self.index[dim]).offset(-(spread.map.before as i64));
        from_runs(kernel, self.to.dtype(), &spread.map, &number, |kernel, place| {
            self.with(kernel, margin, known, place)
        })
    }

    fn load(&self, kernel: &mut KernelBuilder<'_>, margin: Option<usize>, known: &[Affine]) -> Elem {
        let Some(number_of) = margin else { return kernel.operand(self.x, known) };
        let part = &self.window.margins[number_of];
        let places = known.iter().zip(self.spread.dims.iter().zip(&part.spans));
        let places = places.map(|(place, (spread, spans))| {
            let pairs = spread.positions.iter().zip(spans);
            let first = pairs.map(|(at, span)| if span.is_empty() { 0 } else { at.own.start as i64 - span.start });
            place.plus(&kernel.scalar_affine(table(&spread.axes, first.collect())))
        });
        let places: Vec<Affine> = places.collect();
        kernel.operand(self.margins[number_of], &places)
    }

    /// Whether the index along a dimension is between two indices of the whole result.
    fn between(&self, kernel: &mut KernelBuilder<'_>, dim: usize, ends: impl Fn(&Stretch) -> (usize, usize)) -> Elem {
        let spread = &self.spread.dims[dim];
        let [low, high] = [false, true].map(|upper| {
            let end = number(spread, |at| {
                let (low, high) = ends(at);
                (if upper { high } else { low }) as i64 - at.block.start as i64
            });
            kernel.scalar_affine(end)
        });
        kernel.in_range(self.index[dim].clone(), low, high)
    }
}

/// A number for each device.
fn number(spread: &DimSpread, number: impl Fn(&Stretch) -> i64) -> Scalar {
    table(&spread.axes, spread.positions.iter().map(number).collect())
}

impl Point for Window {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        match self.margins.is_empty() {
            true => window::point(kernel, stmt, &self.map, &self.halos, index),
            false => in_margin(kernel, stmt, self, index),
        }
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}
