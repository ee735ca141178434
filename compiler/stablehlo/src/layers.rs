//! Repeated layers as functions: statements that follow each other several times, on other values, become calls of one function.
//!
//! The search compares statements without the names of variables and the numbers of indices. A run of equal statements at a distance of
//! `period` is a repetition. It becomes a function if the variables of its copies correspond: those that a copy computes are inside, all
//! others are parameters. A statement with an index that differs, such as `w[0]` and `w[1]`, is left before the calls.

use crate::build::Build;
use crate::identifiers::{numbered, snake_case};
use crate::visit::{each_block, each_expr, each_part, names};
use spmdc_grammar::ast::{BlockNode, Expr, ExprKind, FnItem, IndexNode, ItemKind, ItemNode, StmtNode, StmtNodeKind};
use spmdc_grammar::print;
use std::collections::{BTreeMap, BTreeSet};

/// Least number of statements of a function.
const MIN_STATEMENTS: usize = 6;

/// Maximum number of parameters and results of a function.
const MAX_VALUES: usize = 40;

/// Maximum number of repetitions that are tried in a block.
const MAX_TRIED: usize = 400;

/// Maximum number of functions that are made of a block.
const MAX_FUNCTIONS: usize = 8;

/// The names of a program, for the functions that repetitions become.
pub trait ProgramNames {
    /// Whether the name is that of an item, an axis or a shipped function, and so of no variable.
    fn is_item(&self, name: &str) -> bool;

    /// A name for a new function.
    fn function(&self, wanted: &str) -> String;
}

/// Replaces repetitions in a block by calls, and returns their functions.
pub fn outline(block: &mut BlockNode, names: &dyn ProgramNames) -> Vec<ItemNode> {
    let mut items = Vec::new();
    for _ in 0..MAX_FUNCTIONS {
        let found = outline_one(block, names);
        if found.is_empty() {
            break;
        }
        items.extend(found);
    }
    items
}

/// A repetition: `count` copies of `period` statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RepeatedRun {
    start: usize,
    period: usize,
    count: usize,
}

/// The functions that the longest repetition becomes; empty without one.
fn outline_one(block: &mut BlockNode, names: &dyn ProgramNames) -> Vec<ItemNode> {
    let mut forms = BTreeMap::new();
    let statements: Vec<OutlinedStmt> =
        block.stmts.iter().map(|stmt| OutlinedStmt::new(stmt, names, &mut forms)).collect();
    let mut found = Vec::new();
    for period in MIN_STATEMENTS..=statements.len() / 2 {
        let mut start = 0;
        while start + period < statements.len() {
            let same = |at: usize| {
                let other = statements.get(at + period);
                other.is_some_and(|other| statements[at].form.is_some() && statements[at].form == other.form)
            };
            let run = (start..).take_while(|&at| same(at)).count();
            // A run that is longer than its copies may begin at several statements.
            for offset in 0..=run % period {
                let count = (run - offset.min(run)) / period + 1;
                if count > 1 {
                    found.push(RepeatedRun { start: start + offset, period, count });
                }
            }
            start += run + 1;
        }
    }
    found.sort_by_key(|run| (std::cmp::Reverse(run.period * (run.count - 1)), run.period, run.start));
    let mut best: Option<(usize, RepeatedRun, OutlinedFunction)> = None;
    for run in found.into_iter().take(MAX_TRIED) {
        let saved = run.period * (run.count - 1);
        if best.as_ref().is_some_and(|(_, known, _)| known.period * (known.count - 1) > saved) {
            break;
        }
        let Some(outline) = OutlinedFunction::of(&statements, run, block.value.as_deref()) else { continue };
        let values = outline.params.len() + outline.results.len();
        if best.as_ref().is_none_or(|(least, ..)| values < *least) {
            best = Some((values, run, outline));
        }
    }
    match best {
        Some((_, run, outline)) => outline.apply(block, run, names),
        None => Vec::new(),
    }
}

/// A statement with its variables and the numbers of its indices, in order.
struct OutlinedStmt {
    /// The number of its text without them; None if the statement cannot be in a function.
    form: Option<usize>,
    defined: Vec<String>,
    used: Vec<VariablePath>,
    indices: Vec<u64>,
}

/// A variable, or a field of a parameter: `params.layers.0.w`.
#[derive(Clone, Debug, PartialEq)]
struct VariablePath {
    text: String,
    expr: Expr,
}

impl OutlinedStmt {
    fn new(stmt: &StmtNode, names: &dyn ProgramNames, forms: &mut BTreeMap<String, usize>) -> OutlinedStmt {
        let mut own = OutlinedStmt { form: None, defined: Vec::new(), used: Vec::new(), indices: Vec::new() };
        let StmtNodeKind::Let { mutable: false, pattern, value, .. } = &stmt.kind else {
            let mut stmt = stmt.clone();
            if let StmtNodeKind::Let { pattern, .. } = &stmt.kind {
                own.defined = crate::visit::names(pattern).into_iter().map(str::to_string).collect();
            }
            each_expr(&mut stmt, &mut |expr| all_variables(expr, &mut own.used));
            if let StmtNodeKind::Assign { target, .. } = &mut stmt.kind {
                all_variables(target, &mut own.used);
            }
            return own;
        };
        own.defined = crate::visit::names(pattern).into_iter().map(str::to_string).collect();
        let mut form = value.clone();
        if take_variables(&mut form, names, &mut own) {
            let text = format!("{} {}", own.defined.len(), print::expr(&form));
            let next = forms.len();
            own.form = Some(*forms.entry(text).or_insert(next));
        }
        own
    }
}

/// Whether an expression is a variable, or a field of one. `x.T` is another array.
fn is_path(expr: &Expr) -> bool {
    if let ExprKind::Field { base, name } = &expr.kind {
        name.name != "T" && is_path(base)
    } else if let ExprKind::TupleField { base, .. } = &expr.kind {
        is_path(base)
    } else {
        matches!(expr.kind, ExprKind::Name(_))
    }
}

/// Replaces the variables and the numbers of indices by placeholders, and collects them; false if the expression has blocks.
fn take_variables(expr: &mut Expr, names: &dyn ProgramNames, own: &mut OutlinedStmt) -> bool {
    if matches!(&expr.kind, ExprKind::Name(name) if names.is_item(name)) {
        return true;
    }
    if is_path(expr) {
        own.used.push(VariablePath { text: print::expr(expr), expr: expr.clone() });
        expr.kind = ExprKind::Name("_".to_string());
        return true;
    }
    let mut is_flat = !matches!(expr.kind, ExprKind::Lambda { .. });
    each_block(expr, &mut |_| is_flat = false);
    if !is_flat {
        return false;
    }
    if let ExprKind::Index { indices: items, .. } = &mut expr.kind {
        for item in items {
            let numbers = match item {
                IndexNode::Expr(index) => vec![index],
                IndexNode::Slice { start, stop, .. } => start.iter_mut().chain(stop).collect(),
                IndexNode::Ellipsis(_) => Vec::new(),
            };
            for number in numbers {
                if let ExprKind::Int(value) = &mut number.kind {
                    own.indices.push(std::mem::take(value));
                }
            }
        }
    }
    each_part(expr, &mut |part| is_flat &= take_variables(part, names, own));
    is_flat
}

/// All variables of an expression, those in its blocks too.
fn all_variables(expr: &mut Expr, used: &mut Vec<VariablePath>) {
    if is_path(expr) {
        used.push(VariablePath { text: print::expr(expr), expr: expr.clone() });
        return;
    }
    each_part(expr, &mut |part| all_variables(part, used));
    each_block(expr, &mut |block| {
        for stmt in &mut block.stmts {
            each_expr(stmt, &mut |expr| all_variables(expr, used));
            if let StmtNodeKind::Assign { target, .. } = &mut stmt.kind {
                all_variables(target, used);
            }
        }
        if let Some(value) = &mut block.value {
            all_variables(value, used);
        }
    });
    if let ExprKind::Lambda { body, .. } = &mut expr.kind {
        all_variables(body, used);
    }
}

/// The name of a variable at the beginning of a path.
fn root(text: &str) -> &str {
    text.split('.').next().unwrap_or(text)
}

/// The function of a repetition.
struct OutlinedFunction {
    /// The statements that stay before the calls, by their position in a copy.
    before: BTreeSet<usize>,
    /// For each parameter its arguments in all copies.
    params: Vec<Vec<VariablePath>>,
    /// The variables that copies return: statement and position in its pattern.
    results: Vec<(usize, usize)>,
}

impl OutlinedFunction {
    /// The function of a repetition, if the variables of its copies correspond.
    fn of(statements: &[OutlinedStmt], run: RepeatedRun, value: Option<&Expr>) -> Option<OutlinedFunction> {
        let RepeatedRun { start, period, count } = run;
        let copies: Vec<&[OutlinedStmt]> =
            (0..count).map(|copy| &statements[start + copy * period..][..period]).collect();
        // The statement of a copy that makes a variable.
        let makers: Vec<BTreeMap<&str, (usize, usize)>> = copies
            .iter()
            .map(|copy| {
                let own = |(at, stmt): (usize, &OutlinedStmt)| {
                    let places = stmt.defined.iter().enumerate().map(move |(part, _)| (at, part));
                    places.collect::<Vec<_>>()
                };
                let places = copy.iter().enumerate().flat_map(own);
                places.map(|(at, part)| (copy[at].defined[part].as_str(), (at, part))).collect()
            })
            .collect();
        let mut before: BTreeSet<usize> = BTreeSet::new();
        let mut params: Vec<Vec<VariablePath>> = Vec::new();
        for at in 0..period {
            let differs = copies.iter().any(|copy| copy[at].indices != copies[0][at].indices);
            let mut arguments = Vec::new();
            for use_at in 0..copies[0][at].used.len() {
                let paths: Vec<&VariablePath> = copies.iter().map(|copy| &copy[at].used[use_at]).collect();
                let made: Vec<Option<&(usize, usize)>> =
                    paths.iter().zip(&makers).map(|(path, makers)| makers.get(root(&path.text))).collect();
                if made.iter().any(|place| *place != made[0]) {
                    return None;
                }
                match made[0] {
                    Some((maker, _)) if !before.contains(maker) => {
                        if differs {
                            return None;
                        }
                    }
                    Some(_) | None => arguments.push(paths.into_iter().cloned().collect::<Vec<_>>()),
                }
            }
            if differs {
                before.insert(at);
                continue;
            }
            let texts = |paths: &[VariablePath]| paths.iter().map(|path| path.text.clone()).collect::<Vec<_>>();
            for argument in arguments {
                if !params.iter().any(|known| texts(known) == texts(&argument)) {
                    params.push(argument);
                }
            }
        }
        // The body is that of the first copy, where each parameter must have an argument of its own.
        let first: BTreeSet<&str> = params.iter().map(|paths| paths[0].text.as_str()).collect();
        if first.len() < params.len() {
            return None;
        }
        // The variables that are used outside of the copy that makes them.
        let mut leaving: BTreeSet<(usize, usize)> = BTreeSet::new();
        let mut last = Vec::new();
        if let Some(value) = value {
            all_variables(&mut value.clone(), &mut last);
        }
        for (copy, makers) in makers.iter().enumerate() {
            let own = start + copy * period..start + (copy + 1) * period;
            let others = statements.iter().enumerate().filter(|(at, _)| !own.contains(at));
            let used = others.flat_map(|(_, stmt)| &stmt.used).chain(&last);
            leaving.extend(used.filter_map(|path| makers.get(root(&path.text))));
        }
        let results: Vec<(usize, usize)> = leaving.into_iter().filter(|(at, _)| !before.contains(at)).collect();
        let is_small = params.len() <= MAX_VALUES && results.len() <= MAX_VALUES;
        let statements = period - before.len();
        let has_body = statements >= MIN_STATEMENTS.max(3 * results.len());
        (is_small && has_body && !results.is_empty()).then_some(OutlinedFunction { before, params, results })
    }

    /// Puts the calls into the block, and returns the function, with those of the repetitions in it.
    fn apply(self, block: &mut BlockNode, run: RepeatedRun, program: &dyn ProgramNames) -> Vec<ItemNode> {
        let RepeatedRun { start, period, count } = run;
        let copies: Vec<StmtNode> = block.stmts.splice(start..start + period * count, []).collect();
        let build = Build(copies[0].span);
        let mut arguments = self.arguments(&copies[..period]);
        // A function of the parameters of a layer is named after the layer.
        let structs: Vec<usize> = (0..arguments.len()).filter(|&at| !arguments[at].parts[0].1.is_empty()).collect();
        let name = match structs[..] {
            [only] => std::mem::replace(&mut arguments[only].name, "p".to_string()),
            _ => "layer".to_string(),
        };
        let function = program.function(&snake_case(&name));
        let mut calls = Vec::new();
        for (copy, statements) in copies.chunks(period).enumerate() {
            let build = Build(statements[0].span);
            calls.extend(self.before.iter().map(|&at| statements[at].clone()));
            let given = arguments.iter().map(|argument| argument.given[copy].clone());
            let made: Vec<String> = self.results.iter().map(|&place| defined(statements, place)).collect();
            calls.push(build.bind(build.patterns(&made), build.call(&function, given)));
        }
        block.stmts.splice(start..start, calls);

        // The body is the first copy, with parameters in the place of its variables from outside.
        let own = copies[..period].iter().flat_map(defined_names);
        let mut taken: BTreeSet<String> = own.map(str::to_string).collect();
        let mut fresh = |wanted: &str| {
            let base = if wanted.starts_with(|c: char| c.is_ascii_digit()) { "part" } else { wanted };
            numbered(base, |name| !program.is_item(name) && taken.insert(name.to_string()))
        };
        let mut renamed: BTreeMap<String, Expr> = BTreeMap::new();
        let mut params = Vec::new();
        for argument in &arguments {
            let name = fresh(&argument.name);
            params.push(build.param(&name, None));
            for (text, fields) in &argument.parts {
                let field = |base: Expr, name: &String| match name.parse() {
                    Ok(index) => build.part(base, index),
                    Err(_) => {
                        let kind = ExprKind::Field { base: Box::new(base), name: build.ident(name) };
                        build.expr(kind)
                    }
                };
                renamed.insert(text.clone(), fields.iter().fold(build.name(&name), field));
            }
        }
        let inside = (0..period).filter(|at| !self.before.contains(at));
        let stmts = inside.map(|at| {
            let mut stmt = copies[at].clone();
            each_expr(&mut stmt, &mut |expr| rename(expr, &renamed));
            stmt
        });
        let stmts: Vec<StmtNode> = stmts.collect();
        let values = self.results.iter().map(|&place| build.name(defined(&copies[..period], place))).collect();
        let mut body = build.block(stmts, Some(build.together(values)));
        let mut items = outline(&mut body, program);
        crate::tidy::simplify(&mut body);
        let item =
            FnItem { region: None, name: build.ident(function), size_params: Vec::new(), params, ret: None, body };
        items.insert(0, ItemNode { doc: Vec::new(), kind: ItemKind::Fn(item), span: build.0 });
        items
    }
}

/// A parameter of a function: a variable, or the smallest struct with several of them.
struct OutlinedParam {
    name: String,
    /// The argument of each copy.
    given: Vec<Expr>,
    /// The variables of the first copy that it replaces, each with the fields that are it.
    parts: Vec<(String, Vec<String>)>,
}

impl OutlinedFunction {
    /// The parameters. A struct is passed as a whole if it is the only difference between the fields that the copies use, as `layers.0` and
    /// `layers.1` are.
    fn arguments(&self, first: &[StmtNode]) -> Vec<OutlinedParam> {
        let mut arguments: Vec<OutlinedParam> = Vec::new();
        for paths in &self.params {
            let steps: Vec<Vec<&str>> = paths.iter().map(|path| path.text.split('.').collect()).collect();
            let own = &steps[0];
            let differing: Vec<usize> = (0..own.len())
                .filter(|&at| steps.iter().any(|other| other.len() != own.len() || other[at] != own[at]))
                .collect();
            let (text, expr) = (paths[0].text.clone(), |path: &VariablePath| path.expr.clone());
            if let [place] = differing[..]
                && place + 1 < own.len()
            {
                let fields: Vec<String> = own[place + 1..].iter().map(|step| step.to_string()).collect();
                let given: Vec<Expr> = paths.iter().map(|path| without_fields(&path.expr, fields.len())).collect();
                let same =
                    |known: &&mut OutlinedParam| known.given.iter().map(print::expr).eq(given.iter().map(print::expr));
                match arguments.iter_mut().find(same) {
                    Some(known) => known.parts.push((text, fields)),
                    None => {
                        let name = [own[place], own[place.max(1) - 1], "layer"]
                            .map(|step| step.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_'))
                            .into_iter()
                            .find(|name| !name.is_empty())
                            .unwrap_or("layer");
                        // One of several has the name in the singular.
                        let name =
                            name.strip_suffix('s').filter(|_| own[place].parse::<usize>().is_ok()).unwrap_or(name);
                        arguments.push(OutlinedParam { name: snake_case(name), given, parts: vec![(text, fields)] });
                    }
                }
                continue;
            }
            // A variable that is left before the calls is named after the array of which it is a part.
            let maker = self.before.iter().find(|&&at| defined_names(&first[at]).any(|name| name == text));
            let mut source = Vec::new();
            if let Some(StmtNodeKind::Let { value, .. }) = maker.map(|&at| &first[at].kind) {
                all_variables(&mut value.clone(), &mut source);
            }
            let named = source.first().map_or(&text, |path| &path.text);
            let name = named.rsplit('.').next().unwrap_or(named).to_string();
            let given = paths.iter().map(expr).collect();
            arguments.push(OutlinedParam { name, given, parts: vec![(text, Vec::new())] });
        }
        arguments
    }
}

/// The struct of which this many fields in each other were taken.
fn without_fields(expr: &Expr, count: usize) -> Expr {
    if let ExprKind::Field { base, .. } | ExprKind::TupleField { base, .. } = &expr.kind
        && count > 0
    {
        return without_fields(base, count - 1);
    }
    expr.clone()
}

/// The variables that a statement of a copy makes.
fn defined_names(stmt: &StmtNode) -> impl Iterator<Item = &str> {
    let pattern = match &stmt.kind {
        StmtNodeKind::Let { pattern, .. } => Some(pattern),
        StmtNodeKind::Assign { .. } | StmtNodeKind::Expr(_) => None,
    };
    pattern.into_iter().flat_map(names)
}

/// The variable at this place of a pattern.
fn defined(statements: &[StmtNode], (at, part): (usize, usize)) -> String {
    match &statements[at].kind {
        StmtNodeKind::Let { pattern, .. } => names(pattern)[part].to_string(),
        StmtNodeKind::Assign { .. } | StmtNodeKind::Expr(_) => unreachable!("a copy consists of `let`s"),
    }
}

/// Replaces paths by the parameters that they have become.
fn rename(expr: &mut Expr, renamed: &BTreeMap<String, Expr>) {
    if is_path(expr) {
        if let Some(param) = renamed.get(&print::expr(expr)) {
            *expr = param.clone();
        }
        return;
    }
    each_part(expr, &mut |part| rename(part, renamed));
}
