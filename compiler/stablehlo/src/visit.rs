//! Visits the nodes of statements and expressions.

use spmdc_grammar::ast::{BlockNode, Expr, ExprKind, IndexNode, PatternKind, PatternNode, StmtNode, StmtNodeKind};

/// The names that a pattern binds, in their order.
pub fn names(pattern: &PatternNode) -> Vec<&str> {
    match &pattern.kind {
        PatternKind::Name(name) => vec![name],
        PatternKind::Wildcard => Vec::new(),
        PatternKind::Tuple(parts) => parts.iter().flat_map(names).collect(),
        // No pattern of this crate has fields.
        PatternKind::Struct(fields) => fields.iter().map(|(name, _)| name.name.as_str()).collect(),
    }
}

/// The expressions of a statement; the target of a plain assignment to a variable is none of them.
pub fn each_expr(stmt: &mut StmtNode, visit: &mut dyn FnMut(&mut Expr)) {
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
pub fn each_part(expr: &mut Expr, visit: &mut dyn FnMut(&mut Expr)) {
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
pub fn each_block(expr: &mut Expr, visit: &mut dyn FnMut(&mut BlockNode)) {
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
