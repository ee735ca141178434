//! Finds the outer variables that blocks assign to: a loop carries these.

use crate::program::names;
use spmdc_grammar::ast::{BlockNode, Expr, ExprKind, IndexNode, StmtNode, StmtNodeKind};

/// The variables of outer scopes that some code assigns to, in order of their first assignment.
pub(crate) struct Assigned {
    pub(crate) scopes: Vec<Vec<String>>,
    pub(crate) names: Vec<String>,
}

impl Assigned {
    pub(crate) fn block(&mut self, block: &BlockNode) {
        self.scopes.push(Vec::new());
        block.stmts.iter().for_each(|stmt| self.stmt(stmt));
        if let Some(value) = &block.value {
            self.expr(value);
        }
        self.scopes.pop();
    }

    pub(crate) fn stmt(&mut self, stmt: &StmtNode) {
        match &stmt.kind {
            StmtNodeKind::Let { pattern, value, .. } => {
                self.expr(value);
                let mut bound = Vec::new();
                names::pattern_names(pattern, &mut bound);
                if let Some(scope) = self.scopes.last_mut() {
                    scope.append(&mut bound);
                }
            }
            StmtNodeKind::Assign { target, value, .. } => {
                self.expr(value);
                self.target(target);
            }
            StmtNodeKind::Expr(expr) => self.expr(expr),
        }
    }

    fn target(&mut self, target: &Expr) {
        if let ExprKind::Name(name) = &target.kind {
            let is_inner = self.scopes.iter().flatten().any(|inner| inner == name);
            if !is_inner && !self.names.contains(name) {
                self.names.push(name.clone());
            }
        } else if let ExprKind::Field { base, .. } | ExprKind::TupleField { base, .. } | ExprKind::Index { base, .. } =
            &target.kind
        {
            self.target(base);
        } else if let ExprKind::Tuple(parts) = &target.kind {
            parts.iter().for_each(|part| self.target(part));
        }
    }

    /// Visits the blocks inside expressions, which may assign, too. A lambda cannot assign to outer variables.
    pub(crate) fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::Str(_)
            | ExprKind::Name(_)
            | ExprKind::Wildcard
            | ExprKind::None
            | ExprKind::Lambda { .. }
            | ExprKind::Sharding(_)
            | ExprKind::Type(_) => {}
            ExprKind::Unary { arg, .. } => self.expr(arg),
            ExprKind::Binary { lhs, rhs, .. } => {
                self.expr(lhs);
                self.expr(rhs);
            }
            ExprKind::Call { callee, args } => {
                self.expr(callee);
                args.iter().for_each(|arg| self.expr(&arg.value));
            }
            ExprKind::Index { base, indices } => {
                self.expr(base);
                indices.iter().flat_map(IndexNode::exprs).for_each(|expr| self.expr(expr));
            }
            ExprKind::Field { base, .. } | ExprKind::TupleField { base, .. } => self.expr(base),
            ExprKind::Tuple(parts) | ExprKind::List(parts) => parts.iter().for_each(|part| self.expr(part)),
            ExprKind::Struct(fields) => {
                fields.iter().filter_map(|(_, value)| value.as_ref()).for_each(|v| self.expr(v))
            }
            ExprKind::Block(block) => self.block(block),
            ExprKind::If { cond, then, otherwise } => {
                self.expr(cond);
                self.block(then);
                if let Some(otherwise) = otherwise {
                    self.expr(otherwise);
                }
            }
            ExprKind::For { pattern, start, end, step, body, .. } => {
                self.expr(start);
                self.expr(end);
                step.iter().for_each(|step| self.expr(step));
                let mut bound = Vec::new();
                names::pattern_names(pattern, &mut bound);
                self.scopes.push(bound);
                self.block(body);
                self.scopes.pop();
            }
            ExprKind::While { cond, body } => {
                self.expr(cond);
                self.block(body);
            }
        }
    }
}
