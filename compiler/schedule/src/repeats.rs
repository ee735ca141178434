//! Loops whose trips are pointwise, as loops in the body of a kernel.
//!
//! ```text
//! for i in 0..100 { (x, y) = (x * x - y * y + a, 2 * x * y + b); }
//! ```
//!
//! Each point needs only itself in every trip, so the loop over trips and the loop over points are exchanged: one kernel runs all trips of
//! a few points, whose values stay in registers. The bits are the same. Scalars that the loop carries in addition to arrays are computed
//! again for each bundle of points, which bounds their work.

use spmdc_ir::lower::builder::{KernelBuilder, KernelContext};
use spmdc_ir::lower::work::{Lowering, Temporaries};
use spmdc_ir::op::Op;
use spmdc_ir::program::control::ForLoop;
use spmdc_ir::program::{Func, Stmt, StmtKind, Value};
use spmdc_ir::rules::{Effect, Reads};
use spmdc_kernel::loops::{Affine, Elem, Kernel};
use spmdc_kernel::nest::Nest;
use spmdc_kernel::scalar::BinaryOp;
use spmdc_kernel::work::work;
use spmdc_layout::cost::{LONG_TRIP, LONG_TRIP_OF_SCALARS};
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::DType;
use std::collections::{BTreeMap, BTreeSet};

/// A loop that runs in kernels.
pub struct PointwiseLoop<'a> {
    func: &'a Func,
    op: &'a ForLoop,
    stmt: &'a Stmt,
    /// The statements of the body, with their values.
    defined: Vec<(Value, &'a Op, &'a Stmt)>,
    /// Each is one kernel.
    groups: Vec<Group>,
}

/// Carried values that are computed together.
struct Group {
    /// Those that are stored, by position.
    places: Vec<usize>,
    /// All parameters of the body that they need.
    params: BTreeSet<Value>,
}

impl<'a> PointwiseLoop<'a> {
    /// None for all other loops, and for those with trips that are too long. Results that are not among the `used` values of the function are
    /// not computed. The answer does not depend on the values that are computed where they are used, which themselves depend on it.
    pub fn of(
        func: &'a Func,
        mesh: &Mesh,
        used: &BTreeSet<Value>,
        op: &'a ForLoop,
        stmt: &'a Stmt,
    ) -> Option<PointwiseLoop<'a>> {
        if op.collected > 0 || op.trips().is_some_and(|trips| trips < 2) || op.body.results.is_empty() {
            return None;
        }
        let mut defined = Vec::new();
        for stmt in &op.body.stmts {
            let (StmtKind::Op(op), &[value]) = (&stmt.kind, stmt.results.as_slice()) else { return None };
            if op.rules().lowered().point().is_none() || op.rules().properties().effect != Effect::None {
                return None;
            }
            defined.push((value, op, stmt));
        }
        let mut found = PointwiseLoop { func, op, stmt, defined, groups: Vec::new() };
        found.groups = found.grouped(used)?;
        found.fits(mesh).then_some(found)
    }

    /// Whether the value has one element, which every device has.
    fn is_scalar(&self, value: Value) -> bool {
        let ty = self.func.ty(value);
        ty.array.len() == 1 && ty.sharding.dims.iter().all(|dim| dim.axes.is_empty())
    }

    fn carries(&self) -> &'a [Value] {
        &self.op.body.params[1..]
    }

    /// The groups: arrays that depend on each other, and one of all scalars. None if an element of an array depends on other elements.
    fn grouped(&self, used: &BTreeSet<Value>) -> Option<Vec<Group>> {
        // For each value that differs from trip to trip the parameters from which it is computed.
        let mut sources: BTreeMap<Value, BTreeSet<Value>> =
            self.op.body.params.iter().map(|&param| (param, BTreeSet::from([param]))).collect();
        for &(value, op, stmt) in &self.defined {
            let mut of_value = BTreeSet::new();
            let factors = self.func.factors(op, stmt);
            let arrays = self.func.arrays(&stmt.args);
            for (operand, &arg) in stmt.args.iter().enumerate() {
                let Some(of_arg) = sources.get(&arg) else { continue };
                let reads = op.rules().lowered().reads(operand, &arrays);
                let same_place = self.is_scalar(arg) || is_aligned(&factors, operand);
                if reads == Reads::Buffer || !same_place {
                    return None;
                }
                of_value.extend(of_arg.iter().copied());
            }
            if !of_value.is_empty() {
                sources.insert(value, of_value);
            }
        }
        let carries = self.carries();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut scalars = Vec::new();
        for (place, (&param, next)) in carries.iter().zip(&self.op.body.results).enumerate() {
            let needed = sources.get(next).cloned().unwrap_or_default();
            if self.is_scalar(param) {
                scalars.push(place);
                if !needed.iter().all(|&param| self.is_scalar(param)) {
                    return None;
                }
                continue;
            }
            let with = |group: &Vec<usize>| {
                let known = |other: &usize| {
                    let of_other = sources.get(&self.op.body.results[*other]);
                    needed.contains(&carries[*other]) || of_other.is_some_and(|others| others.contains(&param))
                };
                group.iter().any(known)
            };
            let (joined, mut rest): (Vec<_>, Vec<_>) = groups.into_iter().partition(with);
            rest.push(joined.into_iter().flatten().chain([place]).collect());
            groups = rest;
        }
        let alike = |group: &Vec<usize>| {
            let ty = |place: usize| self.func.ty(carries[place]);
            let first = ty(group[0]);
            group.iter().all(|&place| ty(place).shape() == first.shape() && ty(place).sharding == first.sharding)
        };
        if !groups.iter().all(alike) {
            return None;
        }
        groups.push(scalars);
        groups.iter_mut().for_each(|group| group.retain(|&place| used.contains(&self.stmt.results[place])));
        groups.retain(|group| !group.is_empty());
        groups.iter_mut().for_each(|group| group.sort_unstable());
        let group = |places: Vec<usize>| {
            let mut params: BTreeSet<Value> = places.iter().map(|&place| carries[place]).collect();
            loop {
                let known = |param: &Value| carries.iter().position(|carry| carry == param);
                let next =
                    params.iter().filter_map(known).filter_map(|place| sources.get(&self.op.body.results[place]));
                let all: BTreeSet<Value> = next.flatten().chain(&params).copied().collect();
                if all.len() == params.len() {
                    return Group { places, params };
                }
                params = all;
            }
        };
        let groups: Vec<Group> = groups.into_iter().map(group).collect();
        debug_assert!(groups.iter().all(|group| group.places.len() <= group.params.len()), "results are carried");
        Some(groups)
    }

    /// Whether the initial value is read at the index of its loop nest, by one kernel; None for values that must be in memory, such as
    /// bounds.
    pub fn takes_in_one_kernel(&self, value: Value) -> Option<bool> {
        let (bounds, inits) = self.stmt.args.split_at(self.op.bounds());
        if bounds.contains(&value) {
            return None;
        }
        let params = inits.iter().zip(self.carries()).filter(|(init, _)| **init == value).map(|(_, param)| param);
        let params: Vec<&Value> = params.collect();
        let needs = |group: &&Group| params.iter().any(|param| group.params.contains(param));
        Some(self.groups.iter().filter(needs).count() == 1)
    }

    /// Whether the loop can run in kernels, with trips that are not too long, if all its initial values are in memory.
    fn fits(&self, mesh: &Mesh) -> bool {
        let temporaries = Temporaries::starting_at(self.func.values.len() as u32);
        let inlined = self.inlined(&vec![None; self.func.values.len()]);
        let context = KernelContext { func: self.func, mesh, inlined: &inlined, temporaries: &temporaries };
        self.groups.iter().all(|group| {
            let kernel = self.kernel(context, group);
            self.is_closed(&kernel) && !is_long(&kernel.kernel)
        })
    }

    /// Adds the kernels of the loop.
    pub fn lower(&self, lowering: &mut Lowering<'_>) {
        let inlined = self.inlined(lowering.inlined);
        let (mesh, temporaries) = (lowering.mesh, lowering.temporaries);
        let context = KernelContext { func: self.func, mesh, inlined: &inlined, temporaries };
        let kernels: Vec<KernelBuilder<'_>> = self.groups.iter().map(|group| self.kernel(context, group)).collect();
        debug_assert!(lowering.work.is_empty(), "a loop is a statement of its own");
        for kernel in kernels {
            debug_assert!(self.is_closed(&kernel), "values that are computed where they are used add none of the body");
            lowering.run(kernel);
        }
    }

    /// The statements that are computed where they are used, with all of the body.
    fn inlined(&self, others: &[Option<(&'a Op, &'a Stmt)>]) -> Vec<Option<(&'a Op, &'a Stmt)>> {
        let mut inlined = others.to_vec();
        self.defined.iter().for_each(|&(value, op, stmt)| inlined[value.0 as usize] = Some((op, stmt)));
        inlined
    }

    /// Whether all that differs from trip to trip is an expression of carried values at the same place.
    fn is_closed(&self, kernel: &KernelBuilder<'_>) -> bool {
        let is_inside = |value: &Value| {
            self.op.body.params.contains(value) || self.defined.iter().any(|(defined, _, _)| defined == value)
        };
        !kernel.values.iter().any(is_inside)
    }

    /// The kernel of a group.
    fn kernel<'c>(&self, context: KernelContext<'c>, group: &Group) -> KernelBuilder<'c> {
        let mut kernel = KernelBuilder::new(context, self.stmt.origin.span);
        self.emit(&mut kernel, group);
        kernel
    }

    fn emit(&self, kernel: &mut KernelBuilder<'_>, group: &Group) {
        let (carries, bounds) = (self.carries(), self.op.bounds());
        let one = carries[group.places[0]];
        let ty = kernel.context.ty(one);
        let index = if self.is_scalar(one) { Vec::new() } else { kernel.block_dims(ty, false) };
        let at = |value: Value| match self.is_scalar(value) {
            true => vec![Affine::default(); self.func.ty(value).rank()],
            false => index.clone(),
        };
        let limit = |kernel: &mut KernelBuilder<'_>, end: bool| match self.op.range {
            Some((first, last)) => kernel.constant(DType::I32, (if end { last } else { first }) as u32 as u64),
            None => kernel.operand(self.stmt.args[usize::from(end)], &[]),
        };
        let trips = match self.op.trips() {
            Some(trips) => kernel.constant(DType::I64, trips),
            None => {
                let [first, last] = [false, true].map(|end| {
                    let limit = limit(kernel, end);
                    kernel.cast(DType::I32, DType::I64, limit)
                });
                kernel.binary(BinaryOp::Sub, DType::I64, last, first)
            }
        };
        let carry = |param: Value| carries.iter().position(|&carry| carry == param);
        let mut values: Vec<(Value, Elem)> = Vec::new();
        for &param in &group.params {
            let first = match carry(param) {
                Some(place) => {
                    let init = self.stmt.args[bounds + place];
                    kernel.operand(init, &at(init))
                }
                None => limit(kernel, false),
            };
            let dtype = kernel.context.ty(param).dtype();
            values.push((param, kernel.carried(dtype, first)));
        }
        values.iter().for_each(|&(param, elem)| kernel.define(param, &at(param), elem));
        let one = kernel.constant(DType::I32, 1);
        let next: Vec<Elem> = values
            .iter()
            .map(|&(param, elem)| match carry(param) {
                Some(place) => {
                    let next = self.op.body.results[place];
                    kernel.operand(next, &at(next))
                }
                None => kernel.binary(BinaryOp::Add, DType::I32, elem, one),
            })
            .collect();
        debug_assert_eq!(next.len(), group.params.len(), "each carried value has a next one");
        let last = kernel.repeat(trips, values.iter().map(|&(_, elem)| elem).zip(next).collect());
        for &place in &group.places {
            let result = self.stmt.results[place];
            let of = values.iter().position(|&(param, _)| param == carries[place]).expect("the group is carried");
            kernel.store(result, &at(result), last[of]);
        }
    }
}

/// Whether element `i` of the result needs element `i` of the operand: each dimension of both is the same factor.
pub fn is_aligned(rule: &Factors, operand: usize) -> bool {
    let passes = |dims: &[Vec<usize>]| {
        dims.iter().flatten().all(|&f| rule.factors[f].size == 1 || rule.factors[f].kind == FactorKind::Pass)
    };
    rule.results.iter().all(|result| *result == rule.operands[operand]) && passes(&rule.operands[operand])
}

/// All values that a function uses.
pub fn used(func: &Func) -> BTreeSet<Value> {
    let mut used = BTreeSet::new();
    func.body.each_use(&mut |value| {
        used.insert(value);
    });
    used
}

/// Whether a trip has more work than pays in registers, or work that each bundle of points would repeat.
fn is_long(kernel: &Kernel) -> bool {
    let nest = Nest::uncut(kernel);
    let varies = nest.varying(0..nest.dims.len());
    let sum = |of_points: bool| -> f64 {
        let inside = nest.order.iter().map(|elem| elem.0 as usize).filter(|&at| nest.inside[at].is_some());
        inside.filter(|&at| varies[at] == of_points).map(|at| work(&nest.insts[at])).sum()
    };
    let (of_points, of_scalars) = (sum(true), sum(false));
    of_points + of_scalars > LONG_TRIP as f64 || of_points > 0.0 && of_scalars > LONG_TRIP_OF_SCALARS as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use spmdc_check::sources::{NoSources, SourceSet};
    use spmdc_compiler::pipeline::{Options, compile};
    use spmdc_kernel::loops::{Inst, Kernel};

    fn kernels(source: &str) -> Vec<Kernel> {
        let (set, diagnostics) = SourceSet::load("test.spmd", source, &NoSources);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        compile(&set, &Options::default()).unwrap().kernels
    }

    /// The number of values that each loop in a kernel carries.
    fn carried(source: &str) -> Vec<usize> {
        let insts = |kernel: Kernel| kernel.insts.into_iter();
        let of_loop = |inst: Inst| if let Inst::Repeat { carried, .. } = inst { Some(carried.len()) } else { None };
        kernels(source).into_iter().flat_map(insts).filter_map(of_loop).collect()
    }

    /// Those of a loop over `i` with this body, over arrays of 64 elements and a scalar.
    fn of_body(body: &str) -> Vec<usize> {
        let params = "x0: f32[64], y0: f32[64], s0: f32, n: i32, k: i32[64]";
        let start = "let mut x = x0; let mut y = y0; let mut s = s0;";
        carried(&format!("fn main({params}) {{ {start} for i in 0..20 {{ {body} }} (x, y, s) }}"))
    }

    #[test]
    fn pointwise_trips_run_in_a_kernel() {
        assert_eq!(of_body("(x, y) = (x * x - y * y + x0, 2 * x * y);"), [2]);
        assert_eq!(of_body("x = where(x < y, x + 1, x0);"), [1]);
        // The counter and scalars that are needed are carried, too; those alone have a kernel without points.
        assert_eq!(of_body("x = x * f32(i) + y;"), [2]);
        assert_eq!(of_body("s = s / 2; x = x + s;"), [2, 1]);
        // Arrays that do not need each other are computed by themselves.
        assert_eq!(of_body("x = x + 1; y = y * 2;"), [1, 1]);
        let source = "fn main(x0: f32[64], n: i32) { let mut x = x0; for i in 2..n { x = x * 0.5; } x }";
        assert_eq!(carried(source), [1]);
    }

    #[test]
    fn other_loops_stay() {
        for body in [
            "x = x + roll(y, 1); y = x;",
            "x = x / sum(x);",
            "x[1:] = x[:-1];",
            "x = x + y0[i];",
            "x = x + f32(k // (n + i));",
        ] {
            assert_eq!(of_body(body), [] as [usize; 0], "{body}");
        }
        // What each bundle would repeat takes longer than the rest.
        assert_eq!(of_body("s = exp(s) / 2; x = x + s;"), [] as [usize; 0]);
        assert_eq!(carried("fn main(x: f32[64]) { for i in 0..9 collect { x * f32(i) } }"), [] as [usize; 0]);
    }
}
