//! Removes variables that nothing uses, and writes those that are used once where they are used: a program reads like one that was written.

use spmdc_grammar::ast::{BlockNode, Expr, ExprKind, IndexNode, PatternKind, PatternNode, StmtNode, StmtNodeKind};
use std::collections::{BTreeMap, BTreeSet};

/// Writes values where they are used, and removes what is left over.
pub fn simplify(block: &mut BlockNode) {
    // Unused statements use variables, too.
    remove_unused(block);
    inline_once(block);
    remove_unused(block);
}

/// Removes `let`s of a block, and of the blocks inside, whose names no later statement uses. All of them compute without an effect.
fn remove_unused(block: &mut BlockNode) {
    of_block(block, &mut BTreeSet::new());
}

/// Removes unused statements from the last to the first, and adds the names that the others use.
fn of_block(block: &mut BlockNode, used: &mut BTreeSet<String>) {
    if let Some(value) = &mut block.value {
        of_expr(value, used);
    }
    let mut kept = Vec::new();
    for mut stmt in std::mem::take(&mut block.stmts).into_iter().rev() {
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

fn names(pattern: &PatternNode) -> Vec<&str> {
    match &pattern.kind {
        PatternKind::Name(name) => vec![name],
        PatternKind::Wildcard => Vec::new(),
        PatternKind::Tuple(parts) => parts.iter().flat_map(names).collect(),
        // No pattern of this crate has fields.
        PatternKind::Struct(fields) => fields.iter().map(|(name, _)| name.name.as_str()).collect(),
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
    let last = block.value.as_ref().and_then(|value| match &value.kind {
        ExprKind::Name(name) => Some(name.clone()),
        _ => None,
    });
    let count = block.stmts.len();
    for (at, mut stmt) in std::mem::take(&mut block.stmts).into_iter().enumerate() {
        let mut changed = BTreeSet::new();
        assigned_names(&mut stmt, &mut changed);
        // A statement of one assignment reads its operands before.
        let is_assignment = matches!(stmt.kind, StmtNodeKind::Assign { .. });
        if !is_assignment {
            waiting.retain(|_, value| !mentions(value, &changed));
        }
        each_expr(&mut stmt, &mut |expr| inline(expr, &mut waiting, uses));
        if is_assignment {
            waiting.retain(|_, value| !mentions(value, &changed));
        }
        if let StmtNodeKind::Let { mutable: false, pattern, value, .. } = &stmt.kind
            && let PatternKind::Name(name) = &pattern.kind
            && uses.get(name) == Some(&1)
            && (is_short(value) || last.as_ref() == Some(name) && at + 1 == count)
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

/// Whether one of these variables is in an expression without blocks.
fn mentions(expr: &mut Expr, names: &BTreeSet<String>) -> bool {
    let mut found = matches!(&expr.kind, ExprKind::Name(name) if names.contains(name));
    if !names.is_empty() {
        each_part(expr, &mut |part| found |= mentions(part, names));
    }
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
    match &expr.kind {
        ExprKind::Lambda { .. }
        | ExprKind::Block(_)
        | ExprKind::If { .. }
        | ExprKind::For { .. }
        | ExprKind::While { .. } => {
            *moves = false;
        }
        ExprKind::Name(_)
        | ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Bool(_)
        | ExprKind::Str(_)
        | ExprKind::Wildcard
        | ExprKind::None
        | ExprKind::Sharding(_)
        | ExprKind::Type(_)
        | ExprKind::Unary { .. }
        | ExprKind::Binary { .. }
        | ExprKind::Call { .. }
        | ExprKind::Index { .. }
        | ExprKind::Field { .. }
        | ExprKind::TupleField { .. }
        | ExprKind::Tuple(_)
        | ExprKind::List(_)
        | ExprKind::Struct(_) => {}
    }
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

/// The expressions of a statement; the target of a plain assignment to a variable is none of them.
fn each_expr(stmt: &mut StmtNode, visit: &mut dyn FnMut(&mut Expr)) {
    match &mut stmt.kind {
        StmtNodeKind::Let { value, .. } | StmtNodeKind::Expr(value) => visit(value),
        StmtNodeKind::Assign { target, value, .. } => {
            if !matches!(target.kind, ExprKind::Name(_)) {
                each_part(target, visit);
            }
            visit(value);
        }
    }
}

/// The expressions that are computed as often as this one.
fn each_part(expr: &mut Expr, visit: &mut dyn FnMut(&mut Expr)) {
    match &mut expr.kind {
        ExprKind::Name(_)
        | ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Bool(_)
        | ExprKind::Str(_)
        | ExprKind::Wildcard
        | ExprKind::None
        | ExprKind::Sharding(_)
        | ExprKind::Type(_)
        | ExprKind::Lambda { .. }
        | ExprKind::Block(_)
        | ExprKind::While { .. } => {}
        ExprKind::Unary { arg, .. } => visit(arg),
        ExprKind::Binary { lhs, rhs, .. } => {
            visit(lhs);
            visit(rhs);
        }
        ExprKind::Call { callee, args } => {
            visit(callee);
            args.iter_mut().for_each(|arg| visit(&mut arg.value));
        }
        ExprKind::Index { base, indices } => {
            visit(base);
            for index in indices {
                match index {
                    IndexNode::Expr(index) => visit(index),
                    IndexNode::Slice { start, stop, step, .. } => {
                        [start, stop, step].into_iter().flatten().for_each(&mut *visit);
                    }
                    IndexNode::Ellipsis(_) => {}
                }
            }
        }
        ExprKind::Field { base, .. } | ExprKind::TupleField { base, .. } => visit(base),
        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter_mut().for_each(visit),
        ExprKind::Struct(fields) => fields.iter_mut().filter_map(|(_, value)| value.as_mut()).for_each(visit),
        ExprKind::If { cond, otherwise, .. } => {
            visit(cond);
            // The condition of `else if`.
            if let Some(otherwise) = otherwise {
                each_part(otherwise, visit);
            }
        }
        ExprKind::For { start, end, step, .. } => {
            visit(start);
            visit(end);
            step.iter_mut().for_each(|step| visit(step));
        }
    }
}

/// The blocks inside of an expression, and conditions that each trip computes again, as blocks of their own.
fn each_block(expr: &mut Expr, visit: &mut dyn FnMut(&mut BlockNode)) {
    match &mut expr.kind {
        ExprKind::Block(block) | ExprKind::For { body: block, .. } => visit(block),
        ExprKind::While { cond, body } => {
            let mut alone = BlockNode { stmts: Vec::new(), value: Some(cond.clone()), span: cond.span };
            visit(&mut alone);
            *cond = alone.value.expect("it has the condition");
            if let ExprKind::Block(block) = &mut cond.kind
                && block.stmts.is_empty()
                && let Some(value) = block.value.take()
            {
                *cond = value;
            }
            visit(body);
        }
        ExprKind::If { then, otherwise, .. } => {
            visit(then);
            if let Some(otherwise) = otherwise {
                each_block(otherwise, visit);
            }
        }
        ExprKind::Name(_)
        | ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Bool(_)
        | ExprKind::Str(_)
        | ExprKind::Wildcard
        | ExprKind::None
        | ExprKind::Sharding(_)
        | ExprKind::Type(_)
        | ExprKind::Lambda { .. }
        | ExprKind::Unary { .. }
        | ExprKind::Binary { .. }
        | ExprKind::Call { .. }
        | ExprKind::Index { .. }
        | ExprKind::Field { .. }
        | ExprKind::TupleField { .. }
        | ExprKind::Tuple(_)
        | ExprKind::List(_)
        | ExprKind::Struct(_) => {}
    }
}
