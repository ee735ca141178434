//! The values that have names in the source.

use spmdc_grammar::span::Span;
use spmdc_ir::program::{Block, Func, Module, Value};
use spmdc_ir::rules::Placement;
use std::collections::{BTreeSet, HashMap};

/// The variables of `let` and of assignments in program order; parts of structs and tuples by path. For an annotated variable it is
/// the value with the annotation's layout, for a variable that a loop carries the value after the loop.
pub fn named_values(func: &Func) -> Vec<(&str, Value)> {
    let mut named = NamedValues { func, found: Vec::new(), first: HashMap::new(), before: BTreeSet::new() };
    named.collect(&func.body);
    let NamedValues { mut found, before, .. } = named;
    found.retain(|(_, value)| !before.contains(value) && !func.body.params.contains(value));
    found
}

/// Parameters, then the user's variables in program order, then results: the values that drawings show.
pub fn shown_values(module: &Module) -> Vec<(String, Value)> {
    let func = &module.func;
    let params = func.params.iter().zip(&func.body.params).map(|(param, &value)| (param.name.clone(), value));
    let mut values: Vec<(String, Value)> = params.collect();
    values.extend(named_values(func).into_iter().map(|(name, value)| (name.to_string(), value)));
    let results = func.results.iter().zip(&func.body.results);
    values.extend(results.map(|(result, &value)| (format!("result {}", result.name), value)));
    values
}

struct NamedValues<'f> {
    func: &'f Func,
    found: Vec<(&'f str, Value)>,
    /// The first place in `found` of each name that was given at a source position.
    first: HashMap<(&'f str, Span), usize>,
    /// The values that have a name before the layout of their annotation.
    before: BTreeSet<Value>,
}

impl NamedValues<'_> {
    fn collect(&mut self, block: &Block) {
        for stmt in &block.stmts {
            stmt.blocks().for_each(|inner| self.collect(inner));
            for (at, &result) in stmt.results.iter().enumerate() {
                let info = self.func.info(result);
                let Some(name) = &info.name else { continue };
                // An annotation is a statement of its own, and its operand has the variable's name, too.
                let placement = stmt.op().map(|op| op.rules().properties().placement);
                if let Some(Placement::Requested(_) | Placement::Moved) = placement {
                    let same = |arg: &&Value| self.func.info(**arg).name.as_ref() == Some(name);
                    self.before.extend(stmt.args.get(at).filter(same));
                }
                let key = (name.as_str(), info.named);
                match self.first.get(&key).filter(|_| stmt.is_control()) {
                    Some(&at) => self.found[at].1 = result,
                    None => {
                        self.first.entry(key).or_insert(self.found.len());
                        self.found.push((name, result));
                    }
                }
            }
        }
    }
}
