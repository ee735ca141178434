//! The memory of a device over time: which value is where, from which statement to which.

use super::Place;
use crate::pipeline::Compilation;
use serde::Serialize;
use spmdc_abi::Program;
use spmdc_grammar::span::Span;
use spmdc_ir::program::{Block, Module, Value};
use std::collections::BTreeMap;

/// A buffer while it holds one value, or several of one name in turn.
#[derive(Debug, Serialize)]
pub struct HeldBuffer {
    name: String,
    r#type: String,
    bytes: u64,
    /// The first byte in the memory of a device; memory that devices share comes first.
    offset: u64,
    /// The number of the statement that writes it, and of the last that uses it.
    first: usize,
    last: usize,
    place: Place,
}

/// The buffers of a device in the order of their beginnings, and the positions of all statements. Statements in loops come once.
pub fn held_buffers(
    compilation: &Compilation,
    program: &Program,
    module: &Module,
    place: &dyn Fn(Span) -> Place,
) -> (Vec<HeldBuffer>, Vec<Place>) {
    let mut seen = StatementUses { ranges: BTreeMap::new(), spans: Vec::new() };
    module.func.body.params.iter().for_each(|&param| seen.uses(param, 0));
    seen.block(&module.func.body);
    let end = seen.spans.len().max(1) - 1;
    module.func.body.results.iter().for_each(|&result| seen.uses(result, end));
    // The arenas of a device, one after the other.
    let mut begins = Vec::new();
    let mut next = 0;
    for arena in &program.arenas {
        begins.push(next);
        next += arena.bytes;
    }
    let mut of_buffer: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for (value, (first, last)) in seen.ranges {
        let Some(Some(buffer)) = compilation.buffer_of.get(value.0 as usize) else { continue };
        let range = of_buffer.entry(*buffer).or_insert((first, last));
        *range = (range.0.min(first), range.1.max(last));
    }
    let mut uses: Vec<HeldBuffer> = of_buffer
        .into_iter()
        .filter_map(|(number, (first, last))| {
            let buffer = program.buffers.get(number)?;
            let begin = begins.get(buffer.place.arena as usize)?;
            let site = &buffer.site;
            Some(HeldBuffer {
                name: buffer.name.clone(),
                r#type: buffer.ty.clone(),
                bytes: buffer.bytes,
                offset: begin + buffer.place.offset,
                first,
                last,
                place: (site.file as usize, site.line as usize, site.column as usize),
            })
        })
        .collect();
    uses.sort_by_key(|buffer| (buffer.first, buffer.offset));
    (uses, seen.spans.iter().map(|&span| place(span)).collect())
}

/// The numbers of the statements that use each value.
struct StatementUses {
    ranges: BTreeMap<Value, (usize, usize)>,
    spans: Vec<Span>,
}

impl StatementUses {
    fn uses(&mut self, value: Value, at: usize) {
        let range = self.ranges.entry(value).or_insert((at, at));
        *range = (range.0.min(at), range.1.max(at));
    }

    fn block(&mut self, block: &Block) {
        for stmt in &block.stmts {
            let at = self.spans.len();
            self.spans.push(stmt.origin.span);
            stmt.args.iter().for_each(|&arg| self.uses(arg, at));
            for inner in stmt.blocks() {
                inner.params.iter().for_each(|&param| self.uses(param, at));
                self.block(inner);
                let end = self.spans.len() - 1;
                inner.results.iter().for_each(|&result| self.uses(result, end));
                // What a trip reads stays for the next one.
                stmt.args.iter().for_each(|&arg| self.uses(arg, end));
            }
            let end = self.spans.len() - 1;
            stmt.results.iter().for_each(|&result| self.uses(result, end.max(at)));
        }
    }
}
