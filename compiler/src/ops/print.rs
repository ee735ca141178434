//! `print("loss = {}", l)` and `show_sharding(x)`: what a program shows while it runs.
//!
//! A value prints once, whole; the devices that hold it only lend their blocks, so no collective is needed.

use super::factors::{FactorKind, Factors};
use super::{Call, Mismatch, Rules};
use crate::check::args::Args;
use crate::check::term::Term;
use crate::codegen::lower::Lowering;
use crate::ir::Stmt;
use crate::ir::build::Builder;
use crate::ir::eval::{Array, Trap};
use crate::ir::mesh::Mesh;
use crate::ir::types::ArrayType;
use crate::report::layout::{Style, draw};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;

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
    text.replace("{{", "").replace("}}", "").matches("{}").count()
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
        let mut values = Vec::new();
        let text = match &first.term {
            Term::Str(text) => text.clone(),
            // `print(x)` alone shows the value.
            term => {
                values.push(build.materialize(term, None, first.span)?);
                "{}".to_string()
            }
        };
        for arg in args.positional() {
            values.push(build.materialize(&arg.term, None, arg.span)?);
        }
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
        lowering.print(text.replace('{', "{{").replace('}', "}}"), Vec::new());
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
