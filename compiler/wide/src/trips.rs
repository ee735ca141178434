//! Counted loops in the body of a kernel ([`spmdc_kernel::repeats`]): all trips of some groups of lanes, with carried values in registers.

use crate::code::V;
use crate::emitter::LoopEmitter;
use crate::graph::{Graph, LaneOp, Node};

impl Graph {
    /// For each operation the innermost loop that computes it in every trip: operations that depend on a carried value, and that the next
    /// trip needs or that are checked.
    pub fn inside(&self) -> Vec<Option<Node>> {
        let mut inside = vec![None; self.len()];
        // Inner loops first: outer ones need them.
        for at in 0..self.len() {
            let LaneOp::Repeat { number, .. } = self.op(Node(at as u32)) else { continue };
            let carried = &self.repeats[number as usize];
            let mut depends = vec![false; at];
            carried.iter().for_each(|(value, _)| depends[value.0 as usize] = true);
            for before in 0..at {
                let op = self.op(Node(before as u32));
                depends[before] |= self.operands(op).any(|operand| depends[operand.0 as usize]);
            }
            let checks = (0..at as u32).map(Node).filter(|&node| matches!(self.op(node), LaneOp::Fail { .. }));
            let mut stack: Vec<Node> = carried.iter().flat_map(|&(value, next)| [value, next]).chain(checks).collect();
            let mut seen = vec![false; at];
            while let Some(node) = stack.pop() {
                let place = node.0 as usize;
                if depends[place] && !std::mem::replace(&mut seen[place], true) {
                    inside[place] = inside[place].or(Some(Node(at as u32)));
                    stack.extend(self.operands(self.op(node)));
                }
            }
        }
        inside
    }
}

impl LoopEmitter<'_> {
    /// Emits a loop of the body. Afterwards the carried values are the last ones.
    pub fn repeat(&mut self, depth: usize, repeat: Node, number: u32, trips: Node) {
        let plan = self.plan;
        let carried = &plan.graph.repeats[number as usize];
        let known = plan.graph.constant(trips).map(|trips| trips as i64);
        let trips = match known {
            Some(trips) => self.body.int(trips),
            None => {
                let trips = self.get(trips, 0)[0];
                self.body.first_double(trips)
            }
        };
        let zero = self.body.int(0);
        let mut first = vec![zero];
        for &(value, _) in carried {
            let LaneOp::Carried { init, .. } = plan.graph.op(value) else { unreachable!("{value:?} is not carried") };
            self.gather_registers(value, init, &mut first);
        }
        let runs = known.is_some_and(|known| known > 0);
        let last = self.repeat_until(trips, first, runs, |e, inside| {
            e.set_registers(carried, &inside[1..]);
            for &node in plan.schedule[depth].iter().filter(|node| plan.inside[node.0 as usize] == Some(repeat)) {
                if !matches!(plan.graph.op(node), LaneOp::Carried { .. }) {
                    e.in_groups(depth, node, None);
                }
            }
            let mut next = vec![e.body.add_constant(inside[0], 1)];
            carried.iter().for_each(|&(value, of_next)| e.gather_registers(value, of_next, &mut next));
            next
        });
        self.set_registers(carried, &last[1..]);
    }

    /// Appends the registers of a value in as many groups as a carried one has.
    fn gather_registers(&mut self, carried: Node, value: Node, registers: &mut Vec<V>) {
        let each = self.plan.graph.lane(carried).registers();
        for group in 0..self.groups_of_value(carried) {
            let of_group = self.get(value, group);
            registers.extend(&of_group[..each]);
        }
    }

    /// Sets the carried values to these registers.
    fn set_registers(&mut self, carried: &[(Node, Node)], registers: &[V]) {
        let mut registers = registers.iter().copied();
        let mut next = || registers.next().expect("as many values come back as went in");
        for &(value, _) in carried {
            let each = self.plan.graph.lane(value).registers();
            let of_group = |_| {
                let low = next();
                [low, if each == 2 { next() } else { low }]
            };
            self.values[value.0 as usize] = (0..self.groups_of_value(value)).map(of_group).collect();
        }
    }
}
