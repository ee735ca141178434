//! Prints the tree as text, in one canonical layout. Parsing the text gives the same tree, apart from spans.
//!
//! Blocks without statements stay on one line if they fit; all other statements get a separate line, indented by two spaces. Parentheses
//! are printed only if the tree needs them. A comment is printed before the statement that it preceded, or after the one that it followed.

mod expressions;

use crate::ast::*;

/// Maximum width of lines, in columns, as far as blocks allow.
const WIDTH: usize = 100;

/// A whole file.
pub fn program(program: &ProgramNode) -> String {
    let mut printer = TreePrinter { comments: &program.comments, ..TreePrinter::default() };
    if let Some(stage) = &program.stage {
        printer.push(&format!("stage {};\n", stage.name));
    }
    let mut previous: Option<&ItemNode> = None;
    for (position, item) in program.items.iter().enumerate() {
        if previous.is_some_and(|previous| needs_gap(previous, item)) {
            printer.push("\n");
        }
        printer.comments_before(item.span.start);
        printer.item(item);
        let next = program.items.get(position + 1).map_or(u32::MAX, |next| next.span.start);
        printer.comments_behind(item.span.end, next);
        printer.push("\n");
        previous = Some(item);
    }
    if !printer.comments.is_empty() && !program.items.is_empty() {
        printer.push("\n");
    }
    printer.comments_before(u32::MAX);
    printer.out
}

/// One expression, as on the right of a `let`.
pub fn expr(expr: &Expr) -> String {
    let mut printer = TreePrinter::default();
    printer.expr(expr, Level::Lambda);
    printer.out
}

/// A string literal; characters without an escape are printed unchanged.
pub fn string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            '\0' => quoted.push_str("\\0"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// One type, as after a colon.
pub fn type_expr(ty: &TypeExpr) -> String {
    let mut printer = TreePrinter::default();
    printer.type_expr(ty);
    printer.out
}

/// One pattern, as after `let`.
pub fn pattern(pattern: &PatternNode) -> String {
    let mut printer = TreePrinter::default();
    printer.pattern(pattern);
    printer.out
}

/// `P(X, _)`
pub fn sharding(sharding: &ShardingExpr) -> String {
    let mut printer = TreePrinter::default();
    printer.sharding(sharding);
    printer.out
}

/// Whether a blank line separates two items: functions and documented items are separated; short declarations of one kind are not.
fn needs_gap(previous: &ItemNode, next: &ItemNode) -> bool {
    let is_large = |item: &ItemNode| matches!(item.kind, ItemKind::Fn(_) | ItemKind::Test(_)) || !item.doc.is_empty();
    is_large(previous) || is_large(next) || std::mem::discriminant(&previous.kind) != std::mem::discriminant(&next.kind)
}

/// How tightly an expression binds, loosest first. An operand that binds less tightly than its position requires is put in
/// parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    /// Lambdas, and expressions that end in a brace, although these could be operands.
    Lambda,
    Or,
    And,
    Comparison,
    BitOr,
    BitXor,
    BitAnd,
    Shift,
    Sum,
    Product,
    Prefix,
    Power,
    Postfix,
    Atom,
}

#[derive(Default)]
struct TreePrinter<'a> {
    out: String,
    indent: usize,
    /// The comments not printed yet.
    comments: &'a [Comment],
}

impl<'a> TreePrinter<'a> {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn newline(&mut self) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n("  ", self.indent));
    }

    fn list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        for (position, item) in items.iter().enumerate() {
            if position > 0 {
                self.push(", ");
            }
            each(self, item);
        }
    }

    fn names(&mut self, names: &[Ident]) {
        self.list(names, |printer, name| printer.push(&name.name));
    }

    // --- Comments ---

    fn next_comment(&mut self, before: u32) -> Option<&'a Comment> {
        let (first, rest) = self.comments.split_first()?;
        if first.span.start >= before {
            return None;
        }
        self.comments = rest;
        Some(first)
    }

    /// Prints comments on separate lines, each followed by a line break and the indentation.
    fn comments_before(&mut self, place: u32) {
        while let Some(comment) = self.next_comment(place) {
            self.comment(comment);
            self.newline();
        }
    }

    /// Prints the remaining comments inside the node that ends at `end`, and one that follows it on its line, before `next`.
    fn comments_behind(&mut self, end: u32, next: u32) {
        let mut gap = "  ";
        while let Some(first) = self.comments.first()
            && (first.span.start < end || first.trailing && first.span.start < next)
        {
            self.comments = &self.comments[1..];
            if gap.is_empty() {
                self.newline();
            }
            self.push(gap);
            self.comment(first);
            gap = "";
        }
    }

    fn comment(&mut self, comment: &Comment) {
        self.push("//");
        if !comment.text.is_empty() && !comment.text.starts_with('!') {
            self.push(" ");
        }
        self.push(&comment.text);
    }

    // --- Items ---

    fn item(&mut self, item: &ItemNode) {
        for line in &item.doc {
            self.push("///");
            if !line.is_empty() {
                self.push(" ");
            }
            self.push(line);
            self.push("\n");
        }
        match &item.kind {
            ItemKind::Mesh(mesh) => self.mesh(mesh),
            ItemKind::Const { name, value } => {
                self.push(&format!("const {} = ", name.name));
                self.expr(value, Level::Lambda);
                self.push(";");
            }
            ItemKind::Type { name, size_params, ty } => {
                self.push(&format!("type {}", name.name));
                self.size_params(size_params);
                self.push(" = ");
                self.type_expr(ty);
                self.push(";");
            }
            ItemKind::Import { path, path_span: _, alias } => {
                self.push("import ");
                self.push(&string(path));
                if let Some(alias) = alias {
                    self.push(&format!(" as {}", alias.name));
                }
                self.push(";");
            }
            ItemKind::Fn(function) => self.function(function),
            ItemKind::Test(function) => {
                self.push(&format!("{} ", function.name.name));
                self.block(&function.body);
            }
        }
    }

    fn mesh(&mut self, mesh: &MeshItem) {
        self.push("mesh");
        if let Some(name) = &mesh.name {
            self.push(&format!(" {}", name.name));
        }
        match &mesh.kind {
            MeshKind::Axes { axes, devices } => {
                self.push(" (");
                self.list(axes, |printer, axis| {
                    printer.push(&axis.name.name);
                    if let Some((kind, _)) = axis.kind {
                        printer.push(": ");
                        printer.push(kind.name());
                    }
                    printer.push(" = ");
                    printer.expr(&axis.size, Level::Lambda);
                });
                self.push(")");
                if let Some(devices) = devices {
                    self.push(" devices [");
                    self.list(devices, |printer, device| printer.expr(device, Level::Lambda));
                    self.push("]");
                }
            }
            MeshKind::Sub { of, fixed } => {
                self.push(&format!(" = {}[", of.name));
                self.list(fixed, |printer, (axis, place)| {
                    printer.push(&format!("{} = ", axis.name));
                    printer.expr(place, Level::Lambda);
                });
                self.push("]");
            }
        }
        self.push(";");
    }

    fn function(&mut self, function: &FnItem) {
        if let Some(region) = &function.region {
            self.push(region.kind.name());
            if !region.axes.is_empty() {
                self.push("(");
                self.names(&region.axes);
                self.push(")");
            }
            self.push(" ");
        }
        self.push(&format!("fn {}", function.name.name));
        self.size_params(&function.size_params);
        self.push("(");
        self.list(&function.params, TreePrinter::param);
        self.push(")");
        if let Some(ret) = &function.ret {
            self.push(" -> ");
            self.type_expr(ret);
        }
        self.push(" ");
        self.block(&function.body);
    }

    fn size_params(&mut self, names: &[Ident]) {
        if !names.is_empty() {
            self.push("<");
            self.names(names);
            self.push(">");
        }
    }

    fn param(&mut self, param: &ParamNode) {
        self.pattern(&param.pattern);
        if let Some(ty) = &param.ty {
            self.push(": ");
            self.type_expr(ty);
        }
        if let Some(default) = &param.default {
            self.push(" = ");
            self.expr(default, Level::Lambda);
        }
    }

    // --- Types ---

    fn type_expr(&mut self, ty: &TypeExpr) {
        match &ty.kind {
            TypeExprKind::Array { dtype, dims, unreduced, reduced, varying, turned, mesh } => {
                self.push(match dtype {
                    ElementType::Name(dtype) => dtype.name(),
                    ElementType::Param(name) => &name.name,
                });
                if !dims.is_empty() {
                    self.push("[");
                    self.list(dims, |printer, dim| {
                        printer.expr(&dim.size, Level::Sum);
                        if let Some(axes) = &dim.axes {
                            printer.push("@");
                            printer.dim_axes(axes);
                        }
                    });
                    self.push("]");
                }
                self.suffix("U", unreduced);
                self.suffix("R", reduced);
                self.suffix("V", varying);
                self.suffix("T", turned);
                if let Some(mesh) = mesh {
                    self.push(&format!(" on {}", mesh.name));
                }
            }
            TypeExprKind::Tuple(types) => {
                self.push("(");
                self.list(types, TreePrinter::type_expr);
                self.push(if types.len() == 1 { ",)" } else { ")" });
            }
            TypeExprKind::Struct(fields) => {
                self.push("{ ");
                self.list(fields, |printer, (name, ty)| {
                    printer.push(&format!("{}: ", name.name));
                    printer.type_expr(ty);
                });
                self.push(if fields.is_empty() { "}" } else { " }" });
            }
            TypeExprKind::Named { module, name, args } => {
                if let Some(module) = module {
                    self.push(&format!("{}.", module.name));
                }
                self.push(&name.name);
                if !args.is_empty() {
                    self.push("<");
                    self.list(args, |printer, size| printer.expr(size, Level::Sum));
                    self.push(">");
                }
            }
            TypeExprKind::Stream(ty) => {
                self.push("stream ");
                self.type_expr(ty);
            }
            TypeExprKind::On { ty, mesh } => {
                self.type_expr(ty);
                self.push(&format!(" on {}", mesh.name));
            }
        }
    }

    fn suffix(&mut self, letter: &str, axes: &[Ident]) {
        if !axes.is_empty() {
            self.push(&format!("{{{letter}:"));
            self.axis_list(axes);
            self.push("}");
        }
    }

    fn axis_list(&mut self, axes: &[Ident]) {
        match axes {
            [axis] => self.push(&axis.name),
            axes => {
                self.push("(");
                self.names(axes);
                self.push(")");
            }
        }
    }

    fn dim_axes(&mut self, dim: &DimAxes) {
        match (dim.axes.is_empty(), dim.open) {
            (true, false) => self.push("_"),
            (true, true) => self.push("?"),
            (false, false) => self.axis_list(&dim.axes),
            (false, true) => {
                self.push("(");
                self.names(&dim.axes);
                self.push(", ?)");
            }
        }
        if let Some(AlignmentNode { size, start, step }) = dim.alignment {
            self.push(&format!("/{size}{start:+}"));
            if step != 1 {
                self.push(&format!(":{step}"));
            }
        }
    }

    fn sharding(&mut self, sharding: &ShardingExpr) {
        self.push("P(");
        self.list(&sharding.dims, TreePrinter::dim_axes);
        let mut is_first = sharding.dims.is_empty();
        for (keyword, axes) in [("unreduced=", &sharding.unreduced), ("reduced=", &sharding.reduced)] {
            if !axes.is_empty() {
                self.push(if is_first { "" } else { ", " });
                self.push(keyword);
                self.axis_list(axes);
                is_first = false;
            }
        }
        self.push(")");
    }

    // --- Statements ---

    fn pattern(&mut self, pattern: &PatternNode) {
        match &pattern.kind {
            PatternKind::Name(name) => self.push(name),
            PatternKind::Wildcard => self.push("_"),
            PatternKind::Tuple(parts) => {
                self.push("(");
                self.list(parts, TreePrinter::pattern);
                self.push(if parts.len() == 1 { ",)" } else { ")" });
            }
            PatternKind::Struct(fields) => {
                self.push("{ ");
                self.list(fields, |printer, (name, pattern)| {
                    printer.push(&name.name);
                    if let Some(pattern) = pattern {
                        printer.push(": ");
                        printer.pattern(pattern);
                    }
                });
                self.push(if fields.is_empty() { "}" } else { " }" });
            }
        }
    }

    fn block(&mut self, block: &BlockNode) {
        let has_comments = self.comments.first().is_some_and(|first| first.span.start < block.span.end);
        match &block.value {
            None if block.stmts.is_empty() && !has_comments => self.push("{}"),
            Some(value) if block.stmts.is_empty() && !has_comments => self.block_of_value(value),
            value => {
                self.push("{");
                self.indent += 1;
                for (position, stmt) in block.stmts.iter().enumerate() {
                    self.newline();
                    self.comments_before(stmt.span.start);
                    let is_last = position + 1 == block.stmts.len() && value.is_none();
                    self.stmt(stmt, is_last);
                    let next = block.stmts.get(position + 1).map(|next| next.span.start);
                    let next = next.or(value.as_ref().map(|value| value.span.start)).unwrap_or(block.span.end);
                    self.comments_behind(stmt.span.end, next);
                }
                if let Some(value) = value {
                    self.newline();
                    self.comments_before(value.span.start);
                    let start = self.out.len();
                    self.value(value);
                    self.protect_division(start);
                    self.comments_behind(value.span.end, block.span.end);
                }
                while let Some(comment) = self.next_comment(block.span.end) {
                    self.newline();
                    self.comment(comment);
                }
                self.indent -= 1;
                self.newline();
                self.push("}");
            }
        }
    }

    /// `{ value }` on one line if it fits; the value is printed as if on a separate line, and moved there if it does not.
    fn block_of_value(&mut self, value: &Expr) {
        let start = self.out.len();
        let line = self.out.rfind('\n').map_or(0, |newline| newline + 1);
        self.push("{ ");
        self.indent += 1;
        self.value(value);
        self.indent -= 1;
        if !self.out[start..].contains('\n') && self.out[line..].chars().count() + " }".len() <= WIDTH {
            self.push(" }");
        } else {
            let indentation = format!("\n{}", "  ".repeat(self.indent + 1));
            self.protect_division(start + 2);
            self.out.replace_range(start + 1..start + 2, &indentation);
            self.newline();
            self.push("}");
        }
    }

    /// Encloses a value that ends its line, printed from `start` on, in parentheses if it divides by `//`: nothing else on the line
    /// shows that no comment begins there.
    fn protect_division(&mut self, start: usize) {
        if self.out[start..].contains(" // ") {
            self.out.insert(start, '(');
            self.push(")");
        }
    }

    /// The value of a block. A loop in this position would be parsed as a statement.
    fn value(&mut self, value: &Expr) {
        if crate::actions::may_have_value(&value.kind) {
            self.expr(value, Level::Lambda);
        } else {
            self.parenthesized(value);
        }
    }

    fn stmt(&mut self, stmt: &StmtNode, is_last: bool) {
        match &stmt.kind {
            StmtNodeKind::Let { mutable, pattern, ty, value } => {
                self.push(if *mutable { "let mut " } else { "let " });
                self.pattern(pattern);
                if let Some(ty) = ty {
                    self.push(": ");
                    self.type_expr(ty);
                }
                self.push(" = ");
                self.expr(value, Level::Lambda);
                self.push(";");
            }
            StmtNodeKind::Assign { target, op, value } => {
                self.expr(target, Level::Postfix);
                self.push(" ");
                self.push(op.map_or("", InfixOp::symbol));
                self.push("= ");
                self.expr(value, Level::Lambda);
                self.push(";");
            }
            StmtNodeKind::Expr(expr) => {
                self.expr(expr, Level::Lambda);
                if !ends_in_brace(expr) || is_last && crate::actions::may_have_value(&expr.kind) {
                    self.push(";");
                }
            }
        }
    }
}

fn ends_in_brace(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Block(_) | ExprKind::If { .. } | ExprKind::For { .. } | ExprKind::While { .. })
}
