//! Prints expressions: with parentheses around operands that bind less tightly than their position requires, and where the text
//! would otherwise be parsed differently.

use super::{Level, TreePrinter, string};
use crate::ast::*;

impl Level {
    fn of(expr: &Expr) -> Level {
        match &expr.kind {
            ExprKind::Lambda { .. } | ExprKind::Block(_) => Level::Lambda,
            ExprKind::If { .. } | ExprKind::For { .. } | ExprKind::While { .. } => Level::Lambda,
            ExprKind::Binary { op, .. } => Level::of_operator(*op),
            ExprKind::Unary { .. } => Level::Prefix,
            ExprKind::Call { .. } | ExprKind::Index { .. } => Level::Postfix,
            ExprKind::Field { .. } | ExprKind::TupleField { .. } => Level::Postfix,
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::Str(_) => Level::Atom,
            ExprKind::Name(_) | ExprKind::Wildcard | ExprKind::None => Level::Atom,
            ExprKind::Tuple(_) | ExprKind::List(_) | ExprKind::Struct(_) => Level::Atom,
            ExprKind::Sharding(_) | ExprKind::Type(_) => Level::Atom,
        }
    }

    fn of_operator(op: InfixOp) -> Level {
        match op {
            InfixOp::Or => Level::Or,
            InfixOp::And => Level::And,
            InfixOp::Eq | InfixOp::Ne | InfixOp::Lt | InfixOp::Le | InfixOp::Gt | InfixOp::Ge => Level::Comparison,
            InfixOp::BitOr => Level::BitOr,
            InfixOp::BitXor => Level::BitXor,
            InfixOp::BitAnd => Level::BitAnd,
            InfixOp::Shl | InfixOp::Shr => Level::Shift,
            InfixOp::Add | InfixOp::Sub => Level::Sum,
            InfixOp::Mul | InfixOp::Div | InfixOp::FloorDiv | InfixOp::Rem | InfixOp::MatMul => Level::Product,
            InfixOp::Pow => Level::Power,
        }
    }

    /// The levels that the operands of a binary operator of this level must have.
    fn operands(self) -> (Level, Level) {
        match self {
            Level::Lambda => (Level::Lambda, Level::Lambda),
            Level::Or => (Level::Or, Level::And),
            Level::And => (Level::And, Level::Comparison),
            Level::Comparison => (Level::BitOr, Level::BitOr),
            Level::BitOr => (Level::BitOr, Level::BitXor),
            Level::BitXor => (Level::BitXor, Level::BitAnd),
            Level::BitAnd => (Level::BitAnd, Level::Shift),
            Level::Shift => (Level::Shift, Level::Sum),
            Level::Sum => (Level::Sum, Level::Product),
            Level::Product => (Level::Product, Level::Prefix),
            Level::Power => (Level::Postfix, Level::Prefix),
            Level::Prefix | Level::Postfix | Level::Atom => (Level::Atom, Level::Atom),
        }
    }
}

impl TreePrinter<'_> {
    /// An expression in a position that requires `level`.
    pub(super) fn expr(&mut self, expr: &Expr, level: Level) {
        if Level::of(expr) < level {
            return self.parenthesized(expr);
        }
        match &expr.kind {
            ExprKind::Int(value) => self.push(&value.to_string()),
            ExprKind::Float(digits) => self.push(digits),
            ExprKind::Bool(value) => self.push(if *value { "true" } else { "false" }),
            ExprKind::Str(text) => self.push(&string(text)),
            ExprKind::Name(name) => self.push(name),
            ExprKind::Wildcard => self.push("_"),
            ExprKind::None => self.push("None"),
            ExprKind::Unary { op, arg } => {
                self.push(op.symbol());
                self.expr(arg, Level::Prefix);
            }
            ExprKind::Binary { .. } => self.binary(expr),
            ExprKind::Call { .. } | ExprKind::Index { .. } => self.postfix(expr),
            ExprKind::Field { .. } | ExprKind::TupleField { .. } => self.postfix(expr),
            ExprKind::Lambda { params, body } => {
                self.push("|");
                self.list(params, TreePrinter::param);
                self.push("| ");
                self.expr(body, Level::Lambda);
            }
            ExprKind::Tuple(parts) => {
                self.push("(");
                self.list(parts, |printer, part| printer.expr(part, Level::Lambda));
                self.push(if parts.len() == 1 { ",)" } else { ")" });
            }
            ExprKind::List(parts) => {
                self.push("[");
                self.list(parts, |printer, part| printer.expr(part, Level::Lambda));
                self.push("]");
            }
            ExprKind::Struct(fields) => self.struct_of(fields),
            ExprKind::Block(block) => self.block(block),
            ExprKind::If { .. } => self.branches(expr),
            ExprKind::For { pattern, start, end, step, collect, body } => {
                self.push("for ");
                self.pattern(pattern);
                self.push(" in ");
                self.expr(start, Level::Or);
                self.push("..");
                self.expr(end, Level::Or);
                if let Some(step) = step {
                    self.push(" step ");
                    self.expr(step, Level::Or);
                }
                self.push(if *collect { " collect " } else { " " });
                self.block(body);
            }
            ExprKind::While { cond, body } => {
                self.push("while ");
                self.expr(cond, Level::Or);
                self.push(" ");
                self.block(body);
            }
            ExprKind::Sharding(sharding) => self.sharding(sharding),
            ExprKind::Type(ty) => self.type_expr(ty),
        }
    }

    pub(super) fn parenthesized(&mut self, expr: &Expr) {
        self.push("(");
        self.expr(expr, Level::Lambda);
        self.push(")");
    }

    /// Operators of one level in a row, left to right, by a loop because rows can be long.
    fn binary(&mut self, expr: &Expr) {
        let mut row = Vec::new();
        let mut first = expr;
        let mut level = Level::Lambda;
        while let ExprKind::Binary { op, lhs, rhs, .. } = &first.kind {
            let own = Level::of_operator(*op);
            if own < level {
                break;
            }
            level = own.operands().0;
            row.push((*op, rhs));
            first = lhs;
        }
        let start = self.out.len();
        self.expr(first, level);
        for (op, rhs) in row.into_iter().rev() {
            // After a brace, `//` begins a comment.
            if op == InfixOp::FloorDiv && self.out.ends_with('}') {
                self.out.insert(start, '(');
                self.push(")");
            }
            self.push(&format!(" {} ", op.symbol()));
            let start = self.out.len();
            self.expr(rhs, Level::of_operator(op).operands().1);
            // And before an apparent shape.
            let rhs = &self.out[start..];
            if op == InfixOp::FloorDiv && (rhs.starts_with(['[', '{']) || rhs.starts_with('(') && rhs.contains(',')) {
                self.out.insert(start, '(');
                self.push(")");
            }
        }
    }

    /// Calls, indices and fields in a row.
    fn postfix(&mut self, expr: &Expr) {
        let mut row = Vec::new();
        let mut first = expr;
        while let ExprKind::Call { callee: base, .. }
        | ExprKind::Index { base, .. }
        | ExprKind::Field { base, .. }
        | ExprKind::TupleField { base, .. } = &first.kind
        {
            row.push(first);
            first = base;
            if is_misread_before(first, &row[row.len() - 1].kind) {
                break;
            }
        }
        match row.last() {
            Some(next) if is_misread_before(first, &next.kind) => self.parenthesized(first),
            _ => self.expr(first, Level::Postfix),
        }
        for part in row.into_iter().rev() {
            self.postfix_part(&part.kind);
        }
    }

    fn postfix_part(&mut self, part: &ExprKind) {
        if let ExprKind::Call { args, .. } = part {
            self.push("(");
            self.list(args, |printer, arg| {
                if let Some(name) = &arg.name {
                    printer.push(&format!("{}=", name.name));
                }
                printer.expr(&arg.value, Level::Lambda);
            });
            self.push(")");
        } else if let ExprKind::Index { indices, .. } = part {
            self.push("[");
            self.list(indices, TreePrinter::index);
            self.push("]");
        } else if let ExprKind::Field { name, .. } = part {
            self.push(&format!(".{}", name.name));
        } else if let ExprKind::TupleField { index, .. } = part {
            self.push(&format!(".{index}"));
        } else {
            unreachable!("a row of postfix operators has no {part:?}");
        }
    }

    fn index(&mut self, index: &IndexNode) {
        match index {
            IndexNode::Expr(expr) => self.expr(expr, Level::Lambda),
            IndexNode::Slice { start, stop, step, span: _ } => {
                if let Some(start) = start {
                    self.expr(start, Level::Or);
                }
                self.push(":");
                if let Some(stop) = stop {
                    self.expr(stop, Level::Or);
                }
                if let Some(step) = step {
                    self.push(":");
                    self.expr(step, Level::Or);
                }
            }
            IndexNode::Ellipsis(_) => self.push("..."),
        }
    }

    fn struct_of(&mut self, fields: &[(Ident, Option<Expr>)]) {
        self.push("{ ");
        self.list(fields, |printer, (name, value)| {
            printer.push(&name.name);
            if let Some(value) = value {
                printer.push(": ");
                printer.expr(value, Level::Lambda);
            }
        });
        // `{ w }` would be a block.
        self.push(if matches!(fields, [(_, None)]) { ", }" } else { " }" });
    }

    /// `if`, `else if` and so on, in a loop.
    fn branches(&mut self, expr: &Expr) {
        let mut expr = expr;
        while let ExprKind::If { cond, then, otherwise } = &expr.kind {
            self.push("if ");
            self.expr(cond, Level::Or);
            self.push(" ");
            self.block(then);
            let Some(otherwise) = otherwise else { return };
            self.push(" else ");
            expr = otherwise;
        }
        if let ExprKind::Block(block) = &expr.kind {
            self.block(block);
        } else {
            self.push("{ ");
            self.expr(expr, Level::Lambda);
            self.push(" }");
        }
    }
}

/// Whether `base` directly before `next` would be parsed differently: `2.0`, `f32[3]`, `P(x)`.
fn is_misread_before(base: &Expr, next: &ExprKind) -> bool {
    let is_call = matches!(next, ExprKind::Call { .. });
    if let ExprKind::Int(_) | ExprKind::Float(_) = &base.kind {
        matches!(next, ExprKind::Field { .. } | ExprKind::TupleField { .. })
    } else if let ExprKind::Name(name) = &base.kind {
        is_call && name == "P"
    } else if let ExprKind::Field { name, .. } = &base.kind {
        is_call && name.name == "P"
    } else if let ExprKind::Type(ty) = &base.kind {
        !is_call || matches!(ty.kind, TypeExprKind::Array { mesh: Some(_), .. })
    } else {
        false
    }
}
