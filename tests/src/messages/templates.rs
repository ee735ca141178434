//! Templates: the texts that an expression may give, with placeholders for all that is known only when it is evaluated.

use super::sources::{Called, Index, Source};
use std::collections::{BTreeMap, BTreeSet};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, Lit, Stmt, Token};

/// The meaning of a name inside a function.
#[derive(Clone, Copy)]
pub enum Binding<'a> {
    /// A parameter, by its position.
    Parameter(usize),
    /// The value of an expression, in which only so many of the outer scopes are known.
    Value(&'a Expr, usize),
    /// One part of the tuples that such an expression gives.
    PartOf(&'a Expr, usize, usize),
    /// Any other pattern.
    Opaque,
}

/// The names of a function, later ones last: every `let` has a scope of its own.
pub type Scopes<'a> = Vec<BTreeMap<String, Binding<'a>>>;

/// The meaning of a name in the first `limit` scopes.
pub fn lookup<'a>(scopes: &Scopes<'a>, limit: usize, name: &str) -> Option<Binding<'a>> {
    scopes[..limit].iter().rev().find_map(|scope| scope.get(name)).copied()
}

/// Evaluates expressions to templates.
pub struct Evaluator<'e, 'a> {
    /// The definitions of the sources.
    pub index: &'e Index<'a>,
    /// The parsed files.
    pub sources: &'a [Source],
    /// The file of the expressions.
    pub file: usize,
    /// The names at the expression.
    pub scopes: &'e Scopes<'a>,
    /// The parameters that are the whole text.
    pub whole: BTreeSet<usize>,
    /// The parameters that are inside the text.
    pub inside: BTreeSet<usize>,
    /// The functions whose texts are inside the text.
    pub called: BTreeSet<usize>,
    visiting: Vec<*const Expr>,
    limit: usize,
    depth: usize,
}

/// A placeholder with more text of its own is left to a line of its own.
const MAX_INLINE: usize = 160;

impl<'e, 'a> Evaluator<'e, 'a> {
    /// An evaluator of expressions of a file, where these names are known.
    pub fn new(index: &'e Index<'a>, sources: &'a [Source], file: usize, scopes: &'e Scopes<'a>) -> Self {
        let sets = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let (whole, inside, called) = sets;
        let limit = scopes.len();
        Evaluator { index, sources, file, scopes, whole, inside, called, visiting: Vec::new(), limit, depth: 0 }
    }

    /// The texts that the expression may give.
    pub fn texts(&mut self, expr: &'a Expr) -> Vec<String> {
        if self.visiting.contains(&std::ptr::from_ref(expr)) {
            return Vec::new();
        }
        self.visiting.push(expr);
        let mut found = self.alternatives(expr);
        self.visiting.pop();
        found.dedup();
        found
    }

    fn alternatives(&mut self, expr: &'a Expr) -> Vec<String> {
        match expr {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => vec![text.value()],
                Lit::Char(text) => vec![text.value().to_string()],
                _ => vec![placeholder(expr)],
            },
            Expr::Reference(inner) => self.texts(&inner.expr),
            Expr::Paren(inner) => self.texts(&inner.expr),
            Expr::Try(inner) => self.texts(&inner.expr),
            Expr::Closure(closure) => self.texts(&closure.body),
            Expr::Block(block) => self.tail(&block.block),
            Expr::If(branch) => {
                let mut found = self.tail(&branch.then_branch);
                if let Some((_, otherwise)) = &branch.else_branch {
                    found.extend(self.texts(otherwise));
                }
                found
            }
            Expr::Match(choice) => choice.arms.iter().flat_map(|arm| self.texts(&arm.body)).collect(),
            Expr::Binary(sum) if matches!(sum.op, syn::BinOp::Add(_)) => {
                let (lhs, rhs) = (self.nested(&sum.left), self.nested(&sum.right));
                vec![format!("{lhs}{rhs}")]
            }
            Expr::Macro(call) => self.macro_texts(call).unwrap_or_else(|| vec![placeholder(expr)]),
            Expr::Path(path) => match path.path.get_ident() {
                Some(name) => self.name(&name.to_string(), expr),
                None => {
                    let last = path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
                    match self.index.constants.get(&last) {
                        Some(value) => self.texts(value),
                        None => vec![placeholder(expr)],
                    }
                }
            },
            Expr::MethodCall(call) => self.method(call, expr),
            Expr::Call(call) => self.call(call, expr),
            _ => vec![placeholder(expr)],
        }
    }

    fn tail(&mut self, block: &'a syn::Block) -> Vec<String> {
        let Some(Stmt::Expr(last, None)) = block.stmts.last() else { return Vec::new() };
        // The names of the block, where the whole block is evaluated at once.
        if let Expr::Path(path) = last
            && let Some(name) = path.path.get_ident()
        {
            let own = block.stmts.iter().rev().find_map(|statement| match statement {
                Stmt::Local(local) if is_named(&local.pat, &name.to_string()) => local.init.as_ref(),
                _ => None,
            });
            if let Some(init) = own {
                return self.texts(&init.expr);
            }
        }
        self.texts(last)
    }

    fn name(&mut self, name: &str, expr: &'a Expr) -> Vec<String> {
        match lookup(self.scopes, self.limit, name) {
            Some(Binding::Value(value, limit)) => {
                let outer = std::mem::replace(&mut self.limit, limit);
                let found = self.texts(value);
                self.limit = outer;
                if found.iter().any(|text| has_words(text)) { found } else { vec![placeholder(expr)] }
            }
            Some(Binding::PartOf(tuples, part, limit)) => {
                let mut items = Vec::new();
                parts(tuples, part, &mut items);
                let outer = std::mem::replace(&mut self.limit, limit);
                let found: Vec<String> = items.into_iter().flat_map(|item| self.texts(item)).collect();
                self.limit = outer;
                if found.iter().any(|text| has_words(text)) { found } else { vec![placeholder(expr)] }
            }
            Some(Binding::Parameter(number)) => {
                if self.depth == 0 { &mut self.whole } else { &mut self.inside }.insert(number);
                vec![placeholder(expr)]
            }
            Some(Binding::Opaque) => vec![placeholder(expr)],
            None => match self.index.constants.get(name) {
                Some(value) => self.texts(value),
                None => vec![placeholder(expr)],
            },
        }
    }

    fn method(&mut self, call: &'a syn::ExprMethodCall, expr: &'a Expr) -> Vec<String> {
        let name = call.method.to_string();
        match name.as_str() {
            "to_string" | "into" | "to_owned" | "clone" | "as_str" | "as_deref" | "as_ref" | "into_owned" => {
                self.texts(&call.receiver)
            }
            "unwrap_or" | "unwrap_or_else" | "unwrap_or_default" | "or_else" | "or" => {
                let mut found = self.texts(&call.receiver);
                found.extend(call.args.iter().flat_map(|argument| self.texts(argument)));
                found
            }
            "map" | "and_then" | "then" | "then_some" | "map_or_else" | "map_or" | "join" => {
                let mut found: Vec<String> = call.args.iter().flat_map(|argument| self.texts(argument)).collect();
                found.extend(if name == "join" { self.texts(&call.receiver) } else { Vec::new() });
                found.retain(|text| has_words(text) && !text.starts_with(", "));
                if found.is_empty() { vec![placeholder(expr)] } else { found }
            }
            _ => self.of_function(Called { name: &name, arguments: call.args.len(), is_method: true }, expr),
        }
    }

    fn call(&mut self, call: &'a syn::ExprCall, expr: &'a Expr) -> Vec<String> {
        let Expr::Path(path) = &*call.func else { return vec![placeholder(expr)] };
        let name = path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        match (name.as_str(), call.args.first()) {
            ("Some" | "Ok" | "from", Some(inner)) => self.texts(inner),
            _ => match self.index.form(&name, call.args.len(), self.file, self.sources) {
                Some(form) => vec![self.filled_sentence(form, call)],
                None => self.of_function(Called { name: &name, arguments: call.args.len(), is_method: false }, expr),
            },
        }
    }

    /// The sentence with texts in place of its parameters.
    fn filled_sentence(&mut self, number: usize, call: &'a syn::ExprCall) -> String {
        let function = &self.index.functions[number];
        let names = function.parameters.iter().enumerate();
        let scopes = vec![names.map(|(at, name)| (name.clone(), Binding::Parameter(at))).collect()];
        let mut form = Evaluator::new(self.index, self.sources, function.file, &scopes).tail(function.body);
        let mut text = form.drain(..).next().unwrap_or_default();
        for (name, argument) in function.parameters.iter().zip(&call.args) {
            text = text.replace(&format!("{{{name}}}"), &self.nested(argument));
        }
        text
    }

    /// The placeholder of a call; its texts are listed once, as those of the function.
    fn of_function(&mut self, call: Called<'_>, expr: &Expr) -> Vec<String> {
        let functions = self.index.called(call, self.file, self.sources);
        self.called.extend(functions.into_iter().filter(|number| self.index.functions[*number].is_text));
        vec![placeholder(expr)]
    }

    fn macro_texts(&mut self, call: &'a syn::ExprMacro) -> Option<Vec<String>> {
        let name = call.mac.path.segments.last()?.ident.to_string();
        if !["format", "format_args", "concat"].contains(&name.as_str()) {
            return None;
        }
        // Arguments live as long as the listing is made, as all parsed sources do.
        let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
        let arguments: &'static [Expr] =
            Box::leak(parser.parse2(call.mac.tokens.clone()).ok()?.into_iter().collect::<Vec<_>>().into_boxed_slice());
        let (first, rest) = arguments.split_first()?;
        let Expr::Lit(syn::ExprLit { lit: Lit::Str(text), .. }) = first else { return None };
        Some(vec![self.filled(&text.value(), rest)])
    }

    /// The text of a format string, with texts in place of placeholders where they are known.
    fn filled(&mut self, format: &str, arguments: &'a [Expr]) -> String {
        let mut text = String::new();
        let mut next = 0;
        let mut rest = format;
        while let Some(at) = rest.find(['{', '}']) {
            text.push_str(&rest[..at]);
            let doubled = rest[at..].starts_with("{{") || rest[at..].starts_with("}}");
            if doubled {
                text.push_str(&rest[at..=at]);
                rest = &rest[at + 2..];
                continue;
            }
            let end = rest[at..].find('}').map_or(rest.len(), |end| at + end);
            let inner = rest.get(at + 1..end).unwrap_or_default();
            rest = rest.get(end + 1..).unwrap_or_default();
            let name = inner.split(':').next().unwrap_or_default();
            let positional = name.is_empty().then(|| {
                next += 1;
                next - 1
            });
            let argument = match positional.or_else(|| name.parse().ok()) {
                Some(number) => arguments.get(number),
                None => arguments.iter().find_map(|argument| match argument {
                    Expr::Assign(named) if placeholder(&named.left) == format!("{{{name}}}") => Some(&*named.right),
                    _ => None,
                }),
            };
            let filled = match argument {
                Some(expr) => self.nested(expr),
                None => self.nested(named(name)),
            };
            text.push_str(&filled);
        }
        text.push_str(rest);
        text
    }

    /// A text inside another one: all alternatives, or a placeholder.
    fn nested(&mut self, expr: &'a Expr) -> String {
        self.depth += 1;
        let mut texts = self.texts(expr);
        self.depth -= 1;
        let mut seen = BTreeSet::new();
        texts.retain(|text| seen.insert(text.clone()));
        let one = texts.len() == 1;
        let inline = texts.join(" | ");
        match texts.is_empty() || inline.len() > MAX_INLINE {
            true => placeholder(expr),
            false if one => inline,
            false => format!("{{{inline}}}"),
        }
    }
}

/// The expression of a name in a format string.
fn named(name: &str) -> &'static Expr {
    let parsed = syn::parse_str(name).unwrap_or_else(|_| Expr::Verbatim(Default::default()));
    Box::leak(Box::new(parsed))
}

fn is_named(pattern: &syn::Pat, name: &str) -> bool {
    match pattern {
        syn::Pat::Ident(found) => found.ident == name,
        syn::Pat::Type(typed) => is_named(&typed.pat, name),
        _ => false,
    }
}

/// The parts of this number of the tuples that an expression may give.
fn parts<'a>(expr: &'a Expr, part: usize, found: &mut Vec<&'a Expr>) {
    match expr {
        Expr::Tuple(tuple) => found.extend(tuple.elems.iter().nth(part)),
        Expr::Match(choice) => choice.arms.iter().for_each(|arm| parts(&arm.body, part, found)),
        Expr::Block(block) => {
            if let Some(Stmt::Expr(last, None)) = block.block.stmts.last() {
                parts(last, part, found);
            }
        }
        Expr::If(branch) => {
            if let Some(Stmt::Expr(last, None)) = branch.then_branch.stmts.last() {
                parts(last, part, found);
            }
            if let Some((_, otherwise)) = &branch.else_branch {
                parts(otherwise, part, found);
            }
        }
        _ => {}
    }
}

/// Whether a text has a word outside of its placeholders.
pub fn has_words(text: &str) -> bool {
    let mut depth = 0_usize;
    let mut letters = 0;
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 && c.is_alphabetic() => letters += 1,
            _ => {}
        }
    }
    letters > 1 || text.contains(" | ")
}

/// A short form of an expression in braces.
fn placeholder(expr: &Expr) -> String {
    format!("{{{}}}", short(expr))
}

fn short(expr: &Expr) -> String {
    match expr {
        Expr::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default(),
        Expr::Field(field) => match &field.member {
            syn::Member::Named(name) => name.to_string(),
            syn::Member::Unnamed(number) => format!("{}.{}", short(&field.base), number.index),
        },
        Expr::MethodCall(call) => {
            let plain =
                ["to_string", "join", "collect", "clone", "as_str", "unwrap_or", "unwrap_or_default", "map", "iter"];
            let name = call.method.to_string();
            if plain.contains(&name.as_str()) { short(&call.receiver) } else { format!("{name}()") }
        }
        Expr::Call(call) => format!("{}()", short(&call.func)),
        Expr::Reference(inner) => short(&inner.expr),
        Expr::Unary(inner) => short(&inner.expr),
        Expr::Paren(inner) => short(&inner.expr),
        Expr::Cast(inner) => short(&inner.expr),
        Expr::Try(inner) => short(&inner.expr),
        Expr::Index(inner) => short(&inner.expr),
        Expr::Lit(syn::ExprLit { lit: Lit::Int(number), .. }) => number.to_string(),
        Expr::Binary(_) => "number".to_string(),
        _ => "..".to_string(),
    }
}
