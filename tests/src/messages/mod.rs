//! The listing of all messages, `docs/messages.txt`, so that their wording is read together and every change of it is a diff.
//!
//! The sources are parsed, not run. A message is an argument of a call that makes a diagnostic (`Diagnostic::error`, `help`, `RunError::new`),
//! or of a function that passes a parameter on to such a call, however far. Its texts are followed through variables, branches, `format!` and
//! constants.

mod sources;
mod templates;

use sources::{Called, Index, Source, index, sources};
use spmdc_grammar::ast::{self, ExprKind};
use spmdc_grammar::span::FileId;
use spmdc_grammar::walk::{SyntaxNode, Walk};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Expr, Pat, Stmt};
use templates::{Binding, Evaluator, Scopes, has_words, lookup};

/// The first lines of the listing.
const HEADER: &str = "\
# Every message of the compiler, the runtime and the command, by code; written by `cargo run -p spmdc-tests --bin messages`.
#
# A line has the code, the kind, the text, and the file that makes it. `{name}` stands for a value, `{one | other}` for one of several texts;
# a `part` fills a placeholder of another line, and a `reason` is a text that becomes a message elsewhere. `-` stands for a code that the
# caller chooses.
#
# The sources are read, not run. Not found are texts that come from outside of them (the operating system, MPI, the parser of options),
# texts that are put together piece by piece in a `String`, and fields of structures.

";

/// Where a call has a text of a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sink {
    argument: usize,
    kind: &'static str,
    code: CodeOf,
}

/// The code of a message that a call makes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CodeOf {
    /// These codes.
    Fixed(Vec<String>),
    /// The code in an argument.
    Argument(usize),
    /// The code of the diagnostic whose method is called.
    Receiver,
    /// The code of a mistake of the compiler.
    Internal,
}

/// A line of the listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Such as `E0201`, or `-`.
    pub code: String,
    /// Such as `error` or `help`.
    pub kind: &'static str,
    /// The text with its placeholders.
    pub template: String,
    /// The file that makes it.
    pub file: String,
}

/// The functions that make messages, by the numbers of the functions.
type Sinks = BTreeMap<usize, BTreeSet<Sink>>;

/// The text of `docs/messages.txt`.
pub fn listing() -> Result<String, String> {
    let mut text = HEADER.to_string();
    for Message { code, kind, template, file } in messages()? {
        let template = template.replace('\n', "\\n");
        text.push_str(&format!("{code:<5} {kind:<7} {template}  [{file}]\n"));
    }
    Ok(text)
}

/// Every message, by code and file, in the order of the sources.
pub fn messages() -> Result<Vec<Message>, String> {
    let sources = sources()?;
    let index = index(&sources);
    let mut sinks = Sinks::new();
    // A function that passes a parameter on makes messages itself.
    loop {
        let mut scan = Scan::new(&index, &sources, &sinks);
        scan.all();
        let found = scan.passed_on;
        if found == sinks {
            break;
        }
        sinks = found;
    }
    let mut scan = Scan::new(&index, &sources, &sinks);
    scan.all();
    scan.parts();
    let mut messages = scan.messages;
    messages.extend(advice(&sources));
    messages.extend(requirements()?);
    let mut seen = BTreeSet::new();
    messages.retain(|message| {
        // Names of functions and parameters are parts, too.
        has_words(&message.template)
            && (message.kind != "part" || message.template.contains(' '))
            && seen.insert((message.code.clone(), message.kind, message.template.clone(), message.file.clone()))
    });
    messages.sort_by(|a, b| (&a.code, &a.file).cmp(&(&b.code, &b.file)));
    Ok(messages)
}

/// The advice of the tables of words from other languages.
fn advice(sources: &[Source]) -> Vec<Message> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| TABLES.contains(&source.path.as_str())) {
        let mut texts = Texts(Vec::new());
        texts.visit_file(source.file());
        let message =
            |template| Message { code: "E0101".to_string(), kind: "advice", template, file: source.path.clone() };
        found.extend(texts.0.into_iter().map(message));
    }
    found
}

/// The files whose tables say what words of other languages are here.
const TABLES: [&str; 2] = ["grammar/src/elsewhere.rs", "grammar/src/habits.rs"];

/// The requirements of functions that are written in the language for their arguments.
fn requirements() -> Result<Vec<Message>, String> {
    let mut found = Vec::new();
    for (path, text) in sources::prelude()? {
        let (program, _) = spmdc_grammar::parse(&text, FileId::default());
        program.walk(&mut |node| {
            if let SyntaxNode::Expr(ast::Expr { kind: ExprKind::Call { callee, args }, .. }) = node
                && matches!(&callee.kind, ExprKind::Name(name) if name == "require")
                && let Some(ExprKind::Str(template)) = args.last().map(|last| &last.value.kind)
            {
                let template = template.clone();
                found.push(Message { code: "E0205".to_string(), kind: "error", template, file: path.clone() });
            }
        });
    }
    Ok(found)
}

struct Scan<'s, 'a> {
    index: &'s Index<'a>,
    sources: &'a [Source],
    sinks: &'s Sinks,
    function: usize,
    scopes: Scopes<'a>,
    /// Codes that the function names, for helps whose diagnostic comes from elsewhere.
    codes: Vec<String>,
    passed_on: Sinks,
    messages: Vec<Message>,
    called: BTreeSet<usize>,
    /// The closures whose calls are followed.
    closures: Vec<&'a syn::ExprClosure>,
}

/// The longest chain of closures that call each other.
const MAX_CLOSURES: usize = 4;

impl<'s, 'a> Scan<'s, 'a> {
    fn new(index: &'s Index<'a>, sources: &'a [Source], sinks: &'s Sinks) -> Self {
        let scopes = Scopes::new();
        let (passed_on, messages, codes, called) = (Sinks::new(), Vec::new(), Vec::new(), BTreeSet::new());
        Scan { index, sources, sinks, function: 0, scopes, codes, passed_on, messages, called, closures: Vec::new() }
    }

    fn all(&mut self) {
        for number in 0..self.index.functions.len() {
            let function = &self.index.functions[number];
            self.function = number;
            let names = function.parameters.iter().enumerate();
            let parameters = names.map(|(at, name)| (name.clone(), Binding::Parameter(at))).collect();
            self.scopes = vec![parameters];
            let mut codes = Codes(Vec::new());
            codes.visit_block(function.body);
            self.codes = codes.0;
            self.visit_block(function.body);
        }
    }

    /// The texts of functions that fill placeholders, and of those that fill theirs.
    fn parts(&mut self) {
        let mut done = BTreeSet::new();
        while let Some(number) = self.called.difference(&done).next().copied() {
            done.insert(number);
            let function = &self.index.functions[number];
            let names = function.parameters.iter().enumerate();
            let parameters: BTreeMap<_, _> = names.map(|(at, name)| (name.clone(), Binding::Parameter(at))).collect();
            let mut results = Results { scopes: vec![parameters], is_inside: false, found: Vec::new() };
            results.visit_block(function.body);
            for (expr, scopes) in results.found {
                let mut evaluator = Evaluator::new(self.index, self.sources, function.file, &scopes);
                let texts = evaluator.texts(expr);
                self.called.extend(evaluator.called);
                for text in texts.into_iter().filter(|text| text.contains(' ')) {
                    let template = format!("{}() = {text}", function.name);
                    self.add("-".to_string(), "part", template, function.file);
                }
            }
        }
    }

    fn add(&mut self, code: String, kind: &'static str, template: String, file: usize) {
        self.messages.push(Message { code, kind, template, file: self.sources[file].path.clone() });
    }

    /// An expression that is the text of a message.
    fn text(
        &mut self,
        expr: &'a Expr,
        kind: &'static str,
        code: CodeOf,
        arguments: &[&'a Expr],
        receiver: Option<&'a Expr>,
    ) {
        let file = self.index.functions[self.function].file;
        let mut evaluator = Evaluator::new(self.index, self.sources, file, &self.scopes);
        let texts = evaluator.texts(expr);
        let (whole, inside, called) = (evaluator.whole, evaluator.inside, evaluator.called);
        self.called.extend(called);
        let code = match code {
            CodeOf::Argument(at) => match arguments.get(at) {
                Some(argument) => self.code(argument, self.scopes.len()),
                None => CodeOf::Fixed(Vec::new()),
            },
            CodeOf::Receiver => {
                CodeOf::Fixed(receiver.map_or_else(Vec::new, |receiver| self.codes_of(receiver, self.scopes.len())))
            }
            CodeOf::Internal => CodeOf::Fixed(vec!["E0999".to_string()]),
            CodeOf::Fixed(codes) => CodeOf::Fixed(codes),
        };
        let passed = self.passed_on.entry(self.function).or_default();
        for (parameters, kind) in [(whole, kind), (inside, "part")] {
            passed.extend(parameters.into_iter().map(|argument| Sink { argument, kind, code: code.clone() }));
        }
        if passed.is_empty() {
            self.passed_on.remove(&self.function);
        }
        let codes = match code {
            CodeOf::Fixed(codes) if !codes.is_empty() => codes,
            CodeOf::Fixed(_) | CodeOf::Argument(_) | CodeOf::Receiver | CodeOf::Internal => vec!["-".to_string()],
        };
        for code in codes {
            texts.iter().for_each(|text| self.add(code.clone(), kind, text.clone(), file));
        }
    }

    /// The code that an expression gives.
    fn code(&self, expr: &'a Expr, limit: usize) -> CodeOf {
        if let Expr::Path(path) = expr
            && let Some(name) = path.path.get_ident()
        {
            match lookup(&self.scopes, limit, &name.to_string()) {
                Some(Binding::Parameter(at)) => return CodeOf::Argument(at),
                Some(Binding::Value(value, limit) | Binding::PartOf(value, _, limit)) => {
                    return self.code(value, limit);
                }
                Some(Binding::Opaque) | None => {}
            }
        }
        let mut codes = Codes(Vec::new());
        codes.visit_expr(expr);
        CodeOf::Fixed(codes.0)
    }

    /// The codes of the diagnostic that an expression gives.
    fn codes_of(&self, expr: &'a Expr, limit: usize) -> Vec<String> {
        let mut codes = Codes(Vec::new());
        codes.visit_expr(expr);
        if !codes.0.is_empty() {
            return codes.0;
        }
        let (name, arguments, is_method) = match expr {
            Expr::MethodCall(call) => {
                let of_receiver = self.codes_of(&call.receiver, limit);
                if !of_receiver.is_empty() && of_receiver != self.codes {
                    return of_receiver;
                }
                (call.method.to_string(), call.args.len(), true)
            }
            Expr::Call(call) => match &*call.func {
                Expr::Path(path) => {
                    let name = path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
                    (name, call.args.len(), false)
                }
                _ => return self.codes.clone(),
            },
            Expr::Path(path) => match path.path.get_ident() {
                Some(name) => match lookup(&self.scopes, limit, &name.to_string()) {
                    Some(Binding::Value(value, limit)) => return self.codes_of(value, limit),
                    Some(Binding::Parameter(_) | Binding::PartOf(..) | Binding::Opaque) | None => {
                        return self.codes.clone();
                    }
                },
                None => return self.codes.clone(),
            },
            _ => return self.codes.clone(),
        };
        let file = self.index.functions[self.function].file;
        let mut found = Codes(Vec::new());
        let called = Called { name: &name, arguments, is_method };
        for number in self.index.called(called, file, self.sources) {
            found.visit_block(self.index.functions[number].body);
        }
        if found.0.is_empty() { self.codes.clone() } else { found.0 }
    }

    fn call(&mut self, name: &str, arguments: Vec<&'a Expr>, receiver: Option<&'a Expr>, qualifier: &str) {
        let fixed: &[(usize, &'static str, CodeOf)] = match (qualifier, name, arguments.len()) {
            ("Diagnostic", "error", 3) => &[(2, "error", CodeOf::Argument(0))],
            ("Diagnostic", "warning", 3) => &[(2, "warning", CodeOf::Argument(0))],
            ("Mismatch", "new", 2) => &[(1, "error", CodeOf::Argument(0))],
            ("RunError", "internal", 1) => &[(0, "error", CodeOf::Internal)],
            ("RunError", "new", 2) => &[(1, "error", CodeOf::Argument(0))],
            ("", "help" | "with_help", 1) => &[(0, "help", CodeOf::Receiver)],
            ("", "here", 1) => &[(0, "label", CodeOf::Receiver)],
            ("", "label", 2) => &[(1, "label", CodeOf::Receiver)],
            ("", "edit", 3) => &[(2, "note", CodeOf::Receiver)],
            (_, "Err" | "ok_or", 1) => &[(0, "reason", CodeOf::Fixed(Vec::new()))],
            (_, "ok_or_else", 1) => &[(0, "reason", CodeOf::Fixed(Vec::new()))],
            _ => &[],
        };
        if !fixed.is_empty() {
            for (at, kind, code) in fixed {
                self.text(arguments[*at], kind, code.clone(), &arguments, receiver);
            }
            return;
        }
        // A closure of this function, called with texts.
        if qualifier == "-"
            && let Some(Binding::Value(Expr::Closure(closure), _)) = lookup(&self.scopes, self.scopes.len(), name)
        {
            let outer = self.scopes.len();
            for (input, argument) in closure.inputs.iter().zip(&arguments) {
                let mut scope = BTreeMap::new();
                bind_value(input, argument, outer, &mut scope);
                self.scopes.push(scope);
            }
            if self.closures.len() < MAX_CLOSURES {
                self.closures.push(closure);
                self.visit_expr(&closure.body);
                self.closures.pop();
            }
            self.scopes.truncate(outer);
            return;
        }
        let file = self.index.functions[self.function].file;
        if !qualifier.is_empty() && self.index.form(name, arguments.len(), file, self.sources).is_some() {
            return;
        }
        let called = Called { name, arguments: arguments.len(), is_method: qualifier.is_empty() };
        for number in self.index.called(called, file, self.sources) {
            for Sink { argument, kind, code } in self.sinks.get(&number).into_iter().flatten().cloned() {
                self.text(arguments[argument], kind, code, &arguments, receiver);
            }
        }
    }

    fn bind(&mut self, pattern: &'a Pat, value: Option<&'a Expr>) {
        bind(pattern, value, &mut self.scopes);
    }
}

/// Adds a scope of the names that a pattern binds.
fn bind<'a>(pattern: &'a Pat, value: Option<&'a Expr>, scopes: &mut Scopes<'a>) {
    let mut names = Names(Vec::new());
    names.visit_pat(pattern);
    let mut scope: BTreeMap<_, _> = names.0.into_iter().map(|name| (name, Binding::Opaque)).collect();
    if let Some(value) = value {
        bind_value(pattern, value, scopes.len(), &mut scope);
    }
    scopes.push(scope);
}

fn bind_value<'a>(pattern: &'a Pat, value: &'a Expr, limit: usize, scope: &mut BTreeMap<String, Binding<'a>>) {
    match pattern {
        Pat::Type(typed) => bind_value(&typed.pat, value, limit, scope),
        Pat::Ident(name) => {
            scope.insert(name.ident.to_string(), Binding::Value(value, limit));
        }
        Pat::Tuple(tuple) => {
            for (at, item) in tuple.elems.iter().enumerate() {
                if let Pat::Ident(name) = item {
                    scope.insert(name.ident.to_string(), Binding::PartOf(value, at, limit));
                }
            }
        }
        _ => {}
    }
}

impl<'a> Visit<'a> for Scan<'_, 'a> {
    fn visit_block(&mut self, block: &'a syn::Block) {
        let outer = self.scopes.len();
        self.scopes.push(BTreeMap::new());
        visit::visit_block(self, block);
        self.scopes.truncate(outer);
    }

    fn visit_stmt(&mut self, statement: &'a Stmt) {
        visit::visit_stmt(self, statement);
        if let Stmt::Local(local) = statement {
            self.bind(&local.pat, local.init.as_ref().map(|init| &*init.expr));
        }
    }

    fn visit_arm(&mut self, arm: &'a syn::Arm) {
        let outer = self.scopes.len();
        self.scopes.push(BTreeMap::new());
        self.bind(&arm.pat, None);
        visit::visit_arm(self, arm);
        self.scopes.truncate(outer);
    }

    fn visit_expr_closure(&mut self, closure: &'a syn::ExprClosure) {
        let outer = self.scopes.len();
        self.scopes.push(BTreeMap::new());
        closure.inputs.iter().for_each(|input| self.bind(input, None));
        visit::visit_expr_closure(self, closure);
        self.scopes.truncate(outer);
    }

    fn visit_expr_if(&mut self, branch: &'a syn::ExprIf) {
        let outer = self.scopes.len();
        self.scopes.push(BTreeMap::new());
        visit::visit_expr_if(self, branch);
        self.scopes.truncate(outer);
    }

    fn visit_expr_let(&mut self, condition: &'a syn::ExprLet) {
        visit::visit_expr_let(self, condition);
        self.bind(&condition.pat, None);
    }

    fn visit_expr_for_loop(&mut self, repeated: &'a syn::ExprForLoop) {
        let outer = self.scopes.len();
        self.scopes.push(BTreeMap::new());
        self.bind(&repeated.pat, None);
        visit::visit_expr_for_loop(self, repeated);
        self.scopes.truncate(outer);
    }

    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        if let Expr::Path(path) = &*call.func {
            let names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            let (name, qualifiers) = names.split_last().expect("a path has a name");
            let qualifier = qualifiers.last().map_or("", String::as_str);
            self.call(name, call.args.iter().collect(), None, if qualifier.is_empty() { "-" } else { qualifier });
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        // The diagnostic comes before the help that it gets.
        visit::visit_expr_method_call(self, call);
        self.call(&call.method.to_string(), call.args.iter().collect(), Some(&call.receiver), "");
    }

    // Functions inside of functions are scanned by themselves.
    fn visit_item(&mut self, _: &'a syn::Item) {}
}

/// Collects the codes that an expression names.
struct Codes(Vec<String>);

impl<'a> Visit<'a> for Codes {
    fn visit_path(&mut self, path: &'a syn::Path) {
        let last = path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        self.add(&last);
        visit::visit_path(self, path);
    }

    fn visit_lit_str(&mut self, text: &'a syn::LitStr) {
        self.add(&text.value());
    }
}

impl Codes {
    fn add(&mut self, name: &str) {
        let digits = name.strip_prefix('E').unwrap_or_default();
        let is_code = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_digit());
        if is_code && !self.0.iter().any(|known| known == name) {
            self.0.push(name.to_string());
        }
    }
}

/// Collects texts of several words.
struct Texts(Vec<String>);

impl<'a> Visit<'a> for Texts {
    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}

    fn visit_lit_str(&mut self, text: &'a syn::LitStr) {
        if text.value().contains(' ') {
            self.0.push(text.value());
        }
    }
}

/// Collects the names that a pattern binds.
struct Names(Vec<String>);

impl<'a> Visit<'a> for Names {
    fn visit_pat_ident(&mut self, name: &'a syn::PatIdent) {
        self.0.push(name.ident.to_string());
    }
}

/// Collects the results of a function, with the names at each.
struct Results<'a> {
    scopes: Scopes<'a>,
    is_inside: bool,
    found: Vec<(&'a Expr, Scopes<'a>)>,
}

impl<'a> Visit<'a> for Results<'a> {
    fn visit_block(&mut self, block: &'a syn::Block) {
        let outer = self.scopes.len();
        let is_outermost = !std::mem::replace(&mut self.is_inside, true);
        for statement in &block.stmts {
            visit::visit_stmt(self, statement);
            match statement {
                Stmt::Local(local) => bind(&local.pat, local.init.as_ref().map(|init| &*init.expr), &mut self.scopes),
                Stmt::Expr(last, None) if is_outermost => self.found.push((last, self.scopes.clone())),
                Stmt::Expr(..) | Stmt::Item(_) | Stmt::Macro(_) => {}
            }
        }
        self.scopes.truncate(outer);
    }

    fn visit_expr_return(&mut self, returned: &'a syn::ExprReturn) {
        if let Some(value) = &returned.expr {
            self.found.push((value, self.scopes.clone()));
        }
    }

    fn visit_expr_closure(&mut self, _: &'a syn::ExprClosure) {}
}
