//! Removes variables that nothing uses, and writes those that are used once where they are used: a program reads like one that was written.

use crate::identifiers::numbered;
use crate::visit::{each_block, each_expr, each_part, names};
use spmdc_grammar::ast::{BlockNode, Expr, ExprKind, PatternKind, PatternNode, StmtNode, StmtNodeKind};
use std::collections::{BTreeMap, BTreeSet};

/// Writes values where they are used, and removes what is left over.
pub fn simplify(block: &mut BlockNode) {
    // Unused statements use variables, too.
    remove_unused(block);
    inline_once(block);
    remove_unused(block);
}

/// Removes `let`s of a block, and of the blocks inside, whose names no later statement uses. All of them but loops compute without an
/// effect. Loops keep the rows that are used.
pub fn remove_unused(block: &mut BlockNode) {
    of_block(block, &mut BTreeSet::new());
}

/// Removes unused statements from the last to the first, and adds the names that the others use.
fn of_block(block: &mut BlockNode, used: &mut BTreeSet<String>) {
    if let Some(value) = &mut block.value {
        of_expr(value, used);
    }
    let mut kept = Vec::new();
    for mut stmt in std::mem::take(&mut block.stmts).into_iter().rev() {
        keep_used_rows(&mut stmt, used);
        if let StmtNodeKind::Let { mutable: false, pattern, .. } = &stmt.kind
            && !names(pattern).iter().any(|name| used.contains(*name))
        {
            continue;
        }
        each_expr(&mut stmt, &mut |expr| of_expr(expr, used));
        kept.push(stmt);
    }
    kept.reverse();
    block.stmts = kept;
}

/// Removes the rows of a loop, `let (a, b) = for .. collect { ..; (x, y) }`, whose stacks no later statement uses.
fn keep_used_rows(stmt: &mut StmtNode, used: &BTreeSet<String>) {
    let StmtNodeKind::Let { pattern, value, .. } = &mut stmt.kind else { return };
    let ExprKind::For { collect: collect @ true, body, .. } = &mut value.kind else { return };
    let is_used = |part: &PatternNode| names(part).iter().any(|name| used.contains(*name));
    if !is_used(pattern) {
        *collect = false;
        body.value = None;
        let span = value.span;
        let value = std::mem::replace(value, Expr { kind: ExprKind::None, span });
        stmt.kind = StmtNodeKind::Expr(value);
        return;
    }
    let (PatternKind::Tuple(parts), Some(rows)) = (&mut pattern.kind, &mut body.value) else { return };
    let ExprKind::Tuple(rows) = &mut rows.kind else { return };
    let mut keeps = parts.iter().map(is_used).collect::<Vec<_>>().into_iter();
    rows.retain(|_| keeps.next().unwrap_or(true));
    parts.retain(is_used);
    if let ([_], [_]) = (parts.as_slice(), rows.as_slice()) {
        let (part, row) = (parts.remove(0), rows.remove(0));
        *pattern = part;
        body.value = Some(Box::new(row));
    }
}

fn of_expr(expr: &mut Expr, used: &mut BTreeSet<String>) {
    if let ExprKind::Name(name) = &expr.kind {
        used.insert(name.clone());
    }
    each_part(expr, &mut |part| of_expr(part, used));
    each_block(expr, &mut |block| of_block(block, used));
    if let ExprKind::Lambda { body, .. } = &mut expr.kind {
        of_expr(body, used);
    }
}

/// The number of nodes up to which an expression is written where it is used.
const MAX_NODES: usize = 14;

/// Puts the values of variables that one later statement of the same block uses once into that statement.
fn inline_once(block: &mut BlockNode) {
    let mut uses = BTreeMap::new();
    count_block(block, &mut uses);
    inline_block(block, &uses);
}

fn count_block(block: &mut BlockNode, uses: &mut BTreeMap<String, usize>) {
    block.stmts.iter_mut().for_each(|stmt| each_expr(stmt, &mut |expr| count(expr, uses)));
    if let Some(value) = &mut block.value {
        count(value, uses);
    }
}

fn count(expr: &mut Expr, uses: &mut BTreeMap<String, usize>) {
    if let ExprKind::Name(name) = &expr.kind {
        *uses.entry(name.clone()).or_default() += 1;
    }
    each_part(expr, &mut |part| count(part, uses));
    each_block(expr, &mut |block| count_block(block, uses));
    if let ExprKind::Lambda { body, .. } = &mut expr.kind {
        count(body, uses);
    }
}

fn inline_block(block: &mut BlockNode, uses: &BTreeMap<String, usize>) {
    let mut waiting: BTreeMap<String, Expr> = BTreeMap::new();
    let mut kept: Vec<StmtNode> = Vec::new();
    // The last statement moves past nothing if the block returns its value.
    let last = if let Some(Expr { kind: ExprKind::Name(name), .. }) = block.value.as_deref() {
        Some(name.clone())
    } else {
        None
    };
    let count = block.stmts.len();
    for (at, mut stmt) in std::mem::take(&mut block.stmts).into_iter().enumerate() {
        // A statement computes the expressions outside of its blocks before it assigns.
        each_expr(&mut stmt, &mut |expr| inline(expr, &mut waiting, uses));
        let mut changed = BTreeSet::new();
        assigned_names(&mut stmt, &mut changed);
        if !changed.is_empty() {
            waiting.retain(|_, value| !mentions(value, &changed));
        }
        if let StmtNodeKind::Let { mutable: false, pattern, value, .. } = &stmt.kind
            && let PatternKind::Name(name) = &pattern.kind
            && uses.get(name) == Some(&1)
            && (is_short(value) || last.as_ref() == Some(name) && at + 1 == count && !is_loop(value))
        {
            waiting.insert(name.clone(), value.clone());
        }
        kept.push(stmt);
    }
    if let Some(value) = &mut block.value {
        inline(value, &mut waiting, uses);
    }
    block.stmts = kept;
}

fn is_loop(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::For { .. } | ExprKind::While { .. })
}

/// The variables that a statement, or a block inside of it, assigns.
fn assigned_names(stmt: &mut StmtNode, names: &mut BTreeSet<String>) {
    if let StmtNodeKind::Assign { target, .. } = &mut stmt.kind {
        all_names(target, names);
    }
    each_expr(stmt, &mut |expr| assigned_inside(expr, names));
}

fn assigned_inside(expr: &mut Expr, names: &mut BTreeSet<String>) {
    each_part(expr, &mut |part| assigned_inside(part, names));
    each_block(expr, &mut |block| {
        block.stmts.iter_mut().for_each(|stmt| assigned_names(stmt, names));
        if let Some(value) = &mut block.value {
            assigned_inside(value, names);
        }
    });
}

fn all_names(expr: &mut Expr, names: &mut BTreeSet<String>) {
    if let ExprKind::Name(name) = &expr.kind {
        names.insert(name.clone());
    }
    each_part(expr, &mut |part| all_names(part, names));
}

/// Numbers the variables again that have the name of a scope, `dense_0_7`, without the numbers of removed ones. `taken` are other names.
pub fn number_again(block: &mut BlockNode, scopes: &BTreeMap<String, String>, taken: &BTreeSet<String>) {
    let mut taken: BTreeSet<String> = taken.iter().filter(|name| !scopes.contains_key(*name)).cloned().collect();
    let mut renamed = BTreeMap::new();
    bound_names(block, &mut |name| {
        let Some(scope) = scopes.get(name.as_str()) else { return };
        let new = numbered(scope, |name| taken.insert(name.to_string()));
        renamed.insert(std::mem::replace(name, new.clone()), new);
    });
    rename_block(block, &renamed);
}

/// The names that the patterns of a block bind, and those of the blocks inside.
fn bound_names(block: &mut BlockNode, visit: &mut dyn FnMut(&mut String)) {
    for stmt in &mut block.stmts {
        if let StmtNodeKind::Let { pattern, .. } = &mut stmt.kind {
            pattern_names(pattern, visit);
        }
        each_expr(stmt, &mut |expr| bound_inside(expr, visit));
    }
    if let Some(value) = &mut block.value {
        bound_inside(value, visit);
    }
}

fn bound_inside(expr: &mut Expr, visit: &mut dyn FnMut(&mut String)) {
    each_part(expr, &mut |part| bound_inside(part, visit));
    each_block(expr, &mut |block| bound_names(block, visit));
    if let ExprKind::Lambda { body, .. } = &mut expr.kind {
        bound_inside(body, visit);
    }
}

fn pattern_names(pattern: &mut PatternNode, visit: &mut dyn FnMut(&mut String)) {
    match &mut pattern.kind {
        PatternKind::Name(name) => visit(name),
        PatternKind::Wildcard | PatternKind::Struct(_) => {}
        PatternKind::Tuple(parts) => parts.iter_mut().for_each(|part| pattern_names(part, visit)),
    }
}

fn rename_block(block: &mut BlockNode, renamed: &BTreeMap<String, String>) {
    for stmt in &mut block.stmts {
        each_expr(stmt, &mut |expr| rename(expr, renamed));
        if let StmtNodeKind::Assign { target, .. } = &mut stmt.kind {
            rename(target, renamed);
        }
    }
    if let Some(value) = &mut block.value {
        rename(value, renamed);
    }
}

fn rename(expr: &mut Expr, renamed: &BTreeMap<String, String>) {
    if let ExprKind::Name(name) = &mut expr.kind
        && let Some(new) = renamed.get(name)
    {
        name.clone_from(new);
    }
    each_part(expr, &mut |part| rename(part, renamed));
    each_block(expr, &mut |block| rename_block(block, renamed));
    if let ExprKind::Lambda { body, .. } = &mut expr.kind {
        rename(body, renamed);
    }
}

/// Whether a statement, or a block inside of it, uses one of these variables.
pub fn uses(stmt: &StmtNode, names: &BTreeSet<String>) -> bool {
    let mut used = BTreeMap::new();
    each_expr(&mut stmt.clone(), &mut |expr| count(expr, &mut used));
    names.iter().any(|name| used.contains_key(name))
}

/// Whether one of these variables is in an expression without blocks.
fn mentions(expr: &mut Expr, names: &BTreeSet<String>) -> bool {
    let mut found = matches!(&expr.kind, ExprKind::Name(name) if names.contains(name));
    each_part(expr, &mut |part| found |= mentions(part, names));
    found
}

/// Whether an expression may stand elsewhere in its block: it has few nodes and no blocks.
fn is_short(expr: &Expr) -> bool {
    let mut expr = expr.clone();
    let (mut nodes, mut moves) = (0, true);
    measure(&mut expr, &mut nodes, &mut moves);
    moves && nodes <= MAX_NODES
}

fn measure(expr: &mut Expr, nodes: &mut usize, moves: &mut bool) {
    *nodes += 1;
    *moves &= !matches!(
        expr.kind,
        ExprKind::Lambda { .. }
            | ExprKind::Block(_)
            | ExprKind::If { .. }
            | ExprKind::For { .. }
            | ExprKind::While { .. }
    );
    if *moves && *nodes <= MAX_NODES {
        each_part(expr, &mut |part| measure(part, nodes, moves));
    }
}

fn inline(expr: &mut Expr, waiting: &mut BTreeMap<String, Expr>, uses: &BTreeMap<String, usize>) {
    if let ExprKind::Name(name) = &expr.kind
        && let Some(value) = waiting.remove(name)
    {
        *expr = value;
        return;
    }
    each_part(expr, &mut |part| inline(part, waiting, uses));
    each_block(expr, &mut |block| inline_block(block, uses));
    if let ExprKind::Lambda { body, .. } = &mut expr.kind {
        inline(body, &mut BTreeMap::new(), uses);
    }
}
