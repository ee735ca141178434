//! Layouts that must agree on explicit axes where control flow joins: the branches of an `if`, the trips of a loop.
//!
//! The program must choose one of the layouts. Each [`LayoutEdit`] is an edit of its text, with its cost.

use crate::Checker;
use crate::control::assigned::Assigned;
use spmdc_grammar::ast::{BlockNode, Expr, ExprKind, StmtNode, StmtNodeKind};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::program::choice::{cost_of_move, spaced};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::Type;

/// An edit of the program that resolves the choice.
pub(crate) struct LayoutEdit {
    pub place: Span,
    pub replacement: String,
    /// The position of an insertion, in words; empty for a replacement.
    pub at: &'static str,
    /// The cost, in words.
    pub note: String,
    /// Maximum bytes received by any device.
    pub cost: f64,
}

/// Adds the edits to a message, cheapest first.
pub(crate) fn choose(mut diagnostic: Diagnostic, mut ways: Vec<LayoutEdit>) -> Diagnostic {
    if ways.is_empty() {
        return diagnostic;
    }
    ways.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    let line = |way: &LayoutEdit| {
        let at = if way.at.is_empty() { String::new() } else { format!(" {}", way.at) };
        format!("`{}`{at}: {}", way.replacement.trim(), way.note)
    };
    let mut lines: Vec<String> = Vec::new();
    for way in ways {
        // One variable may be several operands.
        let line = line(&way);
        if !lines.contains(&line) {
            lines.push(line);
            diagnostic = diagnostic.edit(way.place, way.replacement, way.note);
        }
    }
    diagnostic.help = Some(format!("the program must choose:\n{}", lines.join("\n")));
    diagnostic
}

/// An array that control flow joins: a part of a block's value, or of a variable.
#[derive(Clone, Copy)]
pub(crate) struct FlowLeaf<'n> {
    /// None for the value of the block.
    pub variable: Option<&'n str>,
    /// `.w.0`; empty for the whole value.
    pub path: &'n str,
}

impl FlowLeaf<'_> {
    /// The part, for messages.
    pub fn describe(&self) -> String {
        match self.variable {
            Some(name) => format!("`{name}{}`", self.path),
            None => format!("its value{}", self.path),
        }
    }

    /// A part of a variable in the syntax of the program.
    fn text(&self) -> Option<String> {
        self.variable.map(|name| format!("{name}{}", self.path))
    }

    /// `u = reshard(u, P(X));`
    fn assignment(&self, to: &str) -> Option<String> {
        self.text().map(|text| format!("{text} = reshard({text}, {to});"))
    }
}

impl Checker<'_> {
    /// The edit that reshards a value of this type; inside a loop its cost counts once per trip.
    pub(crate) fn way(
        &self,
        edit: Option<(Span, String)>,
        at: &'static str,
        ty: &Type,
        to: &Sharding,
        trips: Option<f64>,
    ) -> Option<LayoutEdit> {
        let (place, replacement) = edit?;
        let is_insertion = place.start == place.end && !replacement.starts_with(" else");
        let at = if is_insertion { at } else { "" };
        let (mut note, cost) = cost_of_move(ty, &to.close(), self.build.mesh());
        if trips.is_some() && cost > 0.0 {
            note = format!("in each trip {note}");
        }
        Some(LayoutEdit { place, replacement, at, note, cost: cost * trips.unwrap_or(1.0) })
    }

    /// A sharding in the syntax of the program.
    pub(crate) fn written(&self, to: &Sharding) -> String {
        spaced(&to.close(), self.build.mesh())
    }

    /// The edit that gives a part another layout if the condition of an `if` fails.
    pub(crate) fn at_end_of_else(
        &self,
        then: &BlockNode,
        otherwise: Option<&Expr>,
        part: FlowLeaf<'_>,
        to: &str,
    ) -> Option<(Span, String)> {
        let Some(otherwise) = otherwise else {
            let behind = Span { start: then.span.end, ..then.span };
            return Some((behind, format!(" else {{ {} }}", part.assignment(to)?)));
        };
        if let ExprKind::Block(block) = &otherwise.kind {
            return self.at_end(block, part, to);
        }
        // `else if`
        let text = self.source(otherwise.span);
        let moved = match part.assignment(to) {
            Some(assignment) => format!("{{ {text} {assignment} }}"),
            None if part.path.is_empty() => format!("{{ reshard({text}, {to}) }}"),
            None => return None,
        };
        Some((otherwise.span, moved))
    }

    /// The edit that gives a part another layout at the end of a block.
    pub(crate) fn at_end(&self, block: &BlockNode, part: FlowLeaf<'_>, to: &str) -> Option<(Span, String)> {
        let Some(name) = part.variable else {
            let (place, field) = literal_part(block.value.as_deref()?, part.path)?;
            return Some((place, format!("{field}reshard({}, {to})", self.source(place))));
        };
        let assigns = |look: &dyn Fn(&mut Assigned)| {
            let mut assigned = Assigned { scopes: Vec::new(), names: Vec::new() };
            look(&mut assigned);
            assigned.names.iter().any(|other| other == name)
        };
        let at_value = block.value.as_deref().is_some_and(|value| assigns(&|found| found.expr(value)));
        if at_value {
            return None;
        }
        // Statements that assign to other fields do not change this part.
        let text = part.text()?;
        let is_other = |stmt: &StmtNode| match &stmt.kind {
            StmtNodeKind::Assign { target, .. } => {
                let target = self.source(target.span);
                target.starts_with(&format!("{name}.")) && !target.starts_with(&text) && !text.starts_with(target)
            }
            StmtNodeKind::Let { .. } | StmtNodeKind::Expr(_) => false,
        };
        let last = block.stmts.iter().rev().find(|stmt| assigns(&|found| found.stmt(stmt)) && !is_other(stmt));
        if let Some(StmtNodeKind::Assign { target, op: None, value }) = last.map(|stmt| &stmt.kind)
            && text == self.source(target.span)
        {
            return Some((value.span, format!("reshard({}, {to})", self.source(value.span))));
        }
        let end = match &block.value {
            Some(value) => value.span.start,
            None => block.span.end.checked_sub(1)?,
        };
        Some((Span { start: end, end, ..block.span }, format!("{} ", part.assignment(to)?)))
    }

    /// The edit that gives a part of a variable another layout before the statement being checked.
    pub(crate) fn in_front(&self, part: FlowLeaf<'_>, to: &str) -> Option<(Span, String)> {
        let place = Span { end: self.statement.start, ..self.statement };
        Some((place, format!("{} ", part.assignment(to)?)))
    }
}

/// The expression of a part of a tuple or struct literal; also the field name to write before it, if that is omitted.
fn literal_part(expr: &Expr, path: &str) -> Option<(Span, String)> {
    let mut expr = expr;
    let mut fields = path.split('.').skip(1).peekable();
    while let Some(field) = fields.next() {
        while let ExprKind::Block(block) = &expr.kind {
            expr = block.value.as_deref()?;
        }
        if let ExprKind::Tuple(parts) = &expr.kind {
            expr = parts.get(field.parse::<usize>().ok()?)?;
            continue;
        }
        let ExprKind::Struct(parts) = &expr.kind else { return None };
        let (name, value) = parts.iter().find(|(name, _)| name.name == field)?;
        expr = match value {
            Some(value) => value,
            None => return fields.peek().is_none().then(|| (name.span, format!("{field}: "))),
        };
    }
    Some((expr.span, String::new()))
}
