//! Removes variables that nothing uses, so that a program has the statements of its results.

use spmdc_grammar::ast::{BlockNode, Expr, ExprKind, IndexNode, PatternKind, PatternNode, StmtNode, StmtNodeKind};
use std::collections::BTreeSet;

/// Removes `let`s of a block, and of the blocks inside, whose names no later statement uses. All of them compute without an effect.
pub fn remove_unused(block: &mut BlockNode) {
    let mut used = BTreeSet::new();
    of_block(block, &mut used);
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
        of_stmt(&mut stmt, used);
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

fn of_stmt(stmt: &mut StmtNode, used: &mut BTreeSet<String>) {
    match &mut stmt.kind {
        StmtNodeKind::Let { value, .. } => of_expr(value, used),
        StmtNodeKind::Assign { target, value, .. } => {
            of_expr(value, used);
            of_expr(target, used);
        }
        StmtNodeKind::Expr(value) => of_expr(value, used),
    }
}

fn of_expr(expr: &mut Expr, used: &mut BTreeSet<String>) {
    match &mut expr.kind {
        ExprKind::Name(name) => {
            used.insert(name.clone());
        }
        ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Bool(_)
        | ExprKind::Str(_)
        | ExprKind::Wildcard
        | ExprKind::None
        | ExprKind::Sharding(_)
        | ExprKind::Type(_) => {}
        ExprKind::Unary { arg, .. } => of_expr(arg, used),
        ExprKind::Binary { lhs, rhs, .. } => {
            of_expr(lhs, used);
            of_expr(rhs, used);
        }
        ExprKind::Call { callee, args } => {
            of_expr(callee, used);
            args.iter_mut().for_each(|arg| of_expr(&mut arg.value, used));
        }
        ExprKind::Index { base, indices } => {
            of_expr(base, used);
            for index in indices {
                match index {
                    IndexNode::Expr(index) => of_expr(index, used),
                    IndexNode::Slice { start, stop, step, .. } => {
                        [start, stop, step].into_iter().flatten().for_each(|bound| of_expr(bound, used));
                    }
                    IndexNode::Ellipsis(_) => {}
                }
            }
        }
        ExprKind::Field { base, .. } | ExprKind::TupleField { base, .. } => of_expr(base, used),
        ExprKind::Lambda { body, .. } => of_expr(body, used),
        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter_mut().for_each(|item| of_expr(item, used)),
        ExprKind::Struct(fields) => {
            for (name, value) in fields {
                match value {
                    Some(value) => of_expr(value, used),
                    None => {
                        used.insert(name.name.clone());
                    }
                }
            }
        }
        ExprKind::Block(block) => of_block(block, used),
        ExprKind::If { cond, then, otherwise } => {
            of_block(then, used);
            if let Some(otherwise) = otherwise {
                of_expr(otherwise, used);
            }
            of_expr(cond, used);
        }
        ExprKind::For { start, end, step, body, .. } => {
            of_block(body, used);
            of_expr(start, used);
            of_expr(end, used);
            if let Some(step) = step {
                of_expr(step, used);
            }
        }
        ExprKind::While { cond, body } => {
            of_block(body, used);
            of_expr(cond, used);
        }
    }
}
