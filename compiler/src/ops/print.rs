//! `print("loss = {}", l)` and `show_sharding(x)`: what a program shows while it runs.
//!
//! A value prints once, whole; the devices that hold it only lend their blocks, so no collective is needed.

use super::factors::{FactorKind, Factors};
use super::{Call, Mismatch, Rules};
use crate::check::args::Args;
use crate::check::term::Term;
use crate::codegen::lower::Lowering;
use crate::ir::build::Builder;
use crate::ir::eval::{Array, Trap};
use crate::ir::mesh::Mesh;
use crate::ir::types::ArrayType;
use crate::ir::{Stmt, Value};
use crate::report::layout::{Style, draw};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_runtime::abi::{Piece, pieces};

#[derive(Clone, Debug, PartialEq)]
pub struct Print {
    /// `{}` stands for the next value; `{{` and `}}` for braces.
    pub text: String,
}

/// Draws how its operand lies on the devices, as decided in the end.
#[derive(Clone, Debug, PartialEq)]
pub struct ShowSharding;

/// Every dimension may be split as it is.
fn any_layout(args: &[&ArrayType]) -> Factors {
    let mut rule = Factors::new();
    for arg in args {
        let dims = arg.shape.iter().map(|&size| vec![rule.add(size, FactorKind::Pass)]).collect();
        rule.operands.push(dims);
    }
    rule
}

/// How many values a text asks for.
fn places(text: &str) -> usize {
    pieces(text).iter().filter(|piece| **piece == Piece::Value).count()
}

/// The text that prints as this one, whatever braces are in it.
fn escaped(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

/// What stands for a term in the text; the arrays in it go to `values`. Tuples and lists print as in Python, structs as written.
fn shown(term: &Term, span: Span, build: &mut Builder, values: &mut Vec<Value>) -> Result<String, Diagnostic> {
    let mut all = |parts: &mut dyn Iterator<Item = &Term>| -> Result<Vec<String>, Diagnostic> {
        parts.map(|part| shown(part, span, build, values)).collect()
    };
    match term {
        Term::Str(text) => Ok(escaped(text)),
        Term::Int(number) => Ok(number.to_string()),
        Term::Nothing => Ok("None".to_string()),
        Term::Tuple(parts) => match all(&mut parts.iter())?.as_slice() {
            [one] => Ok(format!("({one},)")),
            parts => Ok(format!("({})", parts.join(", "))),
        },
        Term::Struct(fields) => {
            let parts = all(&mut fields.iter().map(|(_, part)| part))?;
            let parts: Vec<String> =
                fields.iter().zip(parts).map(|((name, _), part)| format!("{name}: {part}")).collect();
            Ok(format!("{{{{ {} }}}}", parts.join(", ")))
        }
        _ => {
            values.push(build.materialize(term, None, span)?);
            Ok("{}".to_string())
        }
    }
}

/// The text with what stands for each argument in its places.
fn filled(text: &str, parts: &[String], span: Span) -> Result<String, Diagnostic> {
    let places = places(text);
    if places != parts.len() {
        let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        let (places, values) = (plural(places, "place"), plural(parts.len(), "value"));
        return Err(Diagnostic::error(Code::E0201, span, format!("the text has {places} `{{}}` for {values}"))
            .help("`{}` is where a value goes, and nothing stands between its braces; `{{` and `}}` are braces"));
    }
    let mut parts = parts.iter();
    let piece = |piece: Piece| match piece {
        Piece::Text(text) => escaped(&text),
        Piece::Value => parts.next().cloned().unwrap_or_default(),
    };
    Ok(pieces(text).into_iter().map(piece).collect())
}

impl Rules for Print {
    fn name(&self) -> &'static str {
        "print"
    }

    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let places = places(&self.text);
        if places != args.len() {
            let message = format!("the text has {places} places `{{}}` for {} values", args.len());
            return Err(Mismatch::new(Code::E0201, message));
        }
        Ok(Vec::new())
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        any_layout(args)
    }

    fn eval(&self, _: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(Vec::new())
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let mut all = vec![format!("{:?}", self.text)];
        all.extend(args.iter().cloned());
        format!("print({})", all.join(", "))
    }

    fn has_effect(&self) -> bool {
        true
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }

    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        lowering.print(self.text.clone(), stmt.args.clone());
        Ok(())
    }
}

impl Call for Print {
    fn call(_: &str, args: &mut Args<'_>, build: &mut Builder) -> Result<Term, Diagnostic> {
        let first = args.required("text")?;
        let (mut values, mut parts) = (Vec::new(), Vec::new());
        let text = match &first.term {
            Term::Str(text) => Some(text.clone()),
            // `print(x, y)` shows the values, with spaces between.
            term => {
                parts.push(shown(term, first.span, build, &mut values)?);
                None
            }
        };
        for arg in args.positional() {
            parts.push(shown(&arg.term, arg.span, build, &mut values)?);
        }
        let text = match text {
            Some(text) => filled(&text, &parts, args.span)?,
            None => parts.join(" "),
        };
        build.emit(Print { text }, &values)?;
        Ok(Term::Tuple(Vec::new()))
    }
}

impl Rules for ShowSharding {
    fn name(&self) -> &'static str {
        "show_sharding"
    }

    fn infer(&self, _: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        Ok(Vec::new())
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        any_layout(args)
    }

    fn eval(&self, _: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(Vec::new())
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("show_sharding({})", args[0])
    }

    fn has_effect(&self) -> bool {
        true
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }

    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let ty = lowering.ty(stmt.args[0]);
        let name = lowering.func.info(stmt.args[0]).name.as_deref().unwrap_or("value");
        let drawing = draw(ty, lowering.mesh, Style::Unicode);
        let text = format!("{name}: {}\n{}", ty.display(lowering.mesh), drawing.trim_end());
        lowering.print(escaped(&text), Vec::new());
        Ok(())
    }
}

impl Call for ShowSharding {
    fn call(_: &str, args: &mut Args<'_>, build: &mut Builder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        build.emit(ShowSharding, &[value])?;
        Ok(Term::Tuple(Vec::new()))
    }
}
