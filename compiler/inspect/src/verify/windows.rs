//! Checks that a window finds all elements that it reads: in the blocks of its operand, in halos, or in margins.
//!
//! Missing elements are counted from blocks alone. It also checks that halos and margins have the form that the kernels expect: kernels
//! compute indices from the same layouts, so another halo would give wrong elements.

use crate::verify::{Verifier, blocks};
use spmdc_ir::op::Op;
use spmdc_ir::program::Stmt;
use spmdc_layout::margin::{Margin, Spread};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::Type;
use spmdc_layout::window::{DimMap, Reaches, WindowMap};
use spmdc_ops::margins::Margins;
use spmdc_ops::window::Window;
use spmdc_window_ops::halo::Halo;
use std::ops::Range;

impl Verifier<'_> {
    /// Every element that a window reads is on the device, or in the halo for the two layouts.
    pub fn window(&mut self, op: &Op, stmt: &Stmt, map: &WindowMap) {
        let (from, to) = (self.func.ty(stmt.args[0]), self.func.ty(stmt.results[0]));
        let alike = blocks::kept_sums(self.func, op, stmt) == Ok(to.sharding.unreduced);
        self.expect(alike, |_| "moves partial values".to_string());
        let Some(window) = op.as_op::<Window>() else {
            let local = is_local(map, from, to, self.mesh);
            return self.expect(local, |_| "moves elements along a dimension that is split".to_string());
        };
        if !window.margins.is_empty() {
            return self.beyond(stmt, window);
        }
        let reaches = Reaches::new(&map.dims, &from.sharding, &to.sharding, self.mesh);
        let Some(reaches) = reaches else { return self.violation("its halo has no layout") };
        self.expect(reaches.halos() == window.halos, |_| format!("lacks elements along {:?}", reaches.halos()));
        for (dim, map) in map.dims.iter().enumerate() {
            let halo = window.halos.iter().position(|&known| known == dim).and_then(|at| stmt.args.get(at + 1));
            let halo = halo.map(|&halo| self.func.ty(halo));
            let has_all = has_halos(map, (from, to, halo), dim, self.mesh);
            self.expect(has_all, |_| format!("lacks more along dimension {dim} than its halo has"));
        }
        for (&dim, &halo) in window.halos.iter().zip(&stmt.args[1..]) {
            let place = ((stmt.args[0], dim), (map.dims.as_slice(), &to.sharding));
            let is_its_own = self.halos.get(&halo).is_some_and(|&(maker, at)| {
                maker.as_op::<Halo>().is_some_and(|made| made.is_for(at, place.0, place.1, &maker.args))
            });
            self.expect(is_its_own, |it| format!("{} is not what it lacks", it.display(halo)));
            let wanted = reaches.halo_type(dim, from, self.mesh);
            self.expect(*self.func.ty(halo) == wanted, |it| {
                format!("{} should be {}", it.display(halo), wanted.display(it.mesh))
            });
        }
    }

    /// Every element that a window reads outside of blocks is in the margins of its operand.
    fn beyond(&mut self, stmt: &Stmt, window: &Window) {
        let [from, to] = [stmt.args[0], stmt.results[0]].map(|value| &self.func.ty(value).sharding);
        let Some(spread) = Spread::new(&window.map.dims, from, to, self.mesh) else {
            return self.violation("reads margins with another layout");
        };
        let needs = spread.margins();
        let has_all = needs.len() == window.margins.len()
            && needs.iter().zip(&window.margins).all(|(need, margin)| margin.covers(need))
            && window.halos.iter().eq(window.margins.iter().map(|margin| &margin.dim))
            && has_margins(window, from, to, self.mesh);
        self.expect(has_all, |_| "lacks what is not in its margins".to_string());
        for (known, &margin) in window.margins.iter().zip(&stmt.args[1..]) {
            let is_such = self.halos.get(&margin).is_some_and(|&(maker, at)| {
                maker.args[0] == stmt.args[0]
                    && maker.as_op::<Margins>().is_some_and(|made| made.parts.get(at) == Some(known))
            });
            self.expect(is_such, |it| format!("{} is no margin of its operand", it.display(margin)));
        }
    }
}

/// Whether every device has the elements that it reads, without halos: a dimension in which elements move is whole on both sides,
/// any other has the same blocks on both.
fn is_local(map: &WindowMap, from: &Type, to: &Type, mesh: &Mesh) -> bool {
    map.dims.iter().enumerate().all(|(dim, map)| {
        let (from, to) = (&from.sharding.dims[dim], &to.sharding.dims[dim]);
        match map.is_identity() {
            true => from.has_blocks_of(to, map.size, mesh),
            false => mesh.size_of(&from.axes) == 1 && mesh.size_of(&to.axes) == 1,
        }
    })
}

/// Whether each device's halo of a dimension has room for the elements that the device lacks there.
fn has_halos(map: &DimMap, (from, to, halo): (&Type, &Type, Option<&Type>), dim: usize, mesh: &Mesh) -> bool {
    let axes = from.sharding.used_axes().union(to.sharding.used_axes());
    let axes: Vec<u8> = axes.iter().map(|axis| axis as u8).collect();
    (0..mesh.size_of(&axes)).all(|position| {
        let at = mesh.positions(&axes, position);
        let block = |ty: &Type| {
            let layout = &ty.sharding.dims[dim];
            layout.range(ty.shape()[dim], mesh.position(&layout.axes, &at), mesh)
        };
        let pieces = pieces(map, &block(from), &block(to));
        let lacking: usize = pieces.iter().filter(|piece| !piece.held).map(|piece| piece.count).sum();
        lacking <= halo.map_or(0, |halo| block(halo).len())
    })
}

/// Whether the margins contain the elements that each device reads outside of its block. Along the dimension of a margin these are the
/// missing ones on its side, along earlier dimensions the held ones, and along later ones all.
fn has_margins(window: &Window, from: &Sharding, to: &Sharding, mesh: &Mesh) -> bool {
    let dims = &window.map.dims;
    let axes: Vec<u8> = from.used_axes().iter().map(|axis| axis as u8).collect();
    (0..mesh.size_of(&axes)).all(|position| {
        let at = mesh.positions(&axes, position);
        let place = |dim: usize| mesh.position(&from.dims[dim].axes, &at);
        let pieces: Vec<Vec<WindowSide>> = (0..dims.len())
            .map(|dim| {
                let own = from.dims[dim].range(dims[dim].size, place(dim), mesh);
                let block = to.dims[dim].range(dims[dim].result(), mesh.position(&to.dims[dim].axes, &at), mesh);
                pieces(&dims[dim], &own, &block)
            })
            .collect();
        let reads_nothing = pieces.iter().any(Vec::is_empty);
        let has = |margin: &Margin, dim: usize, piece: &WindowSide| {
            margin.spans[dim].get(place(dim)).is_some_and(|span| piece.is_in(span, dims[dim].size))
        };
        let covers = |margin: &Margin, dim: usize, piece: &WindowSide| {
            let earlier =
                (0..dim).all(|other| pieces[other].iter().all(|piece| !piece.held || has(margin, other, piece)));
            let later = dim + 1..dims.len();
            let later = later.into_iter().all(|other| pieces[other].iter().all(|piece| has(margin, other, piece)));
            margin.dim == dim && has(margin, dim, piece) && later && earlier
        };
        // If the block has no element along some dimension, all elements are in an earlier margin.
        let is_reached = |dim: usize| pieces[..dim].iter().all(|pieces| pieces.iter().any(|piece| piece.held));
        reads_nothing
            || (0..dims.len()).filter(|&dim| is_reached(dim)).all(|dim| {
                let mut lacking = pieces[dim].iter().filter(|piece| !piece.held);
                lacking.all(|piece| window.margins.iter().any(|margin| covers(margin, dim, piece)))
            })
    })
}

/// Elements that a device reads along a dimension: all in its block, or all on one side of it.
#[derive(Debug, PartialEq)]
pub struct WindowSide {
    /// The range from the first to the last of their indices.
    pub places: Range<usize>,
    /// The number of elements.
    pub count: usize,
    /// Whether they are in the device's block.
    pub held: bool,
}

impl WindowSide {
    /// Whether its indices are in a span, modulo the dimension.
    fn is_in(&self, span: &Range<i64>, size: usize) -> bool {
        let first = (self.places.start as i64 - span.start).rem_euclid(size.max(1) as i64);
        first + self.places.len() as i64 <= span.end - span.start
    }
}

/// The elements that a device that holds `own` of the operand reads for its block of the result.
pub fn pieces(map: &DimMap, own: &Range<usize>, block: &Range<usize>) -> Vec<WindowSide> {
    let mut pieces = Vec::new();
    for run in map.runs() {
        let start = (block.start.max(map.before) - map.before).max(run.numbers.start);
        let end = (block.end.max(map.before) - map.before).min(run.numbers.end);
        if start >= end {
            continue;
        }
        let place = |number: usize| (run.origin + number as i64 * map.step) as usize;
        let (first, last) = (place(start).min(place(end - 1)), place(start).max(place(end - 1)));
        let step = map.step.unsigned_abs() as usize;
        // The first index of the run at or after a border.
        let cut = |border: usize| first + border.saturating_sub(first).div_ceil(step) * step;
        let borders =
            [first, cut(own.start).min(last + step), cut(own.end.max(own.start)).min(last + step), last + step];
        for (side, ends) in borders.windows(2).enumerate() {
            if ends[0] < ends[1] {
                let count = (ends[1] - ends[0]) / step;
                let places = ends[0]..ends[1] - step + 1;
                pieces.push(WindowSide { places, count, held: side == 1 });
            }
        }
    }
    pieces
}
