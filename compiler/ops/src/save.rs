//! `save("ckpt-{}.npz", step, p)`: writes arrays to a file while the program continues.
//!
//! The operands are the values of the file's name, then the arrays. Blocks are read from the devices that hold them, so no collective is
//! needed.

use crate::print::{any_layout, filled, properties};
use spmdc_abi::{SavedArray, TextPurpose, places};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::print::string;
use spmdc_grammar::sentences::{count, must_be};
use spmdc_grammar::span::Span;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{Effect, Infer, Lowered, NamedAxes, NestLowering, Properties, Reads, Rules, Semantics, Typing};
use spmdc_ir::stablehlo::Exported;
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::ArrayType;

/// Writes arrays to a file whose name has values in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Save {
    /// The name; `{}` and `{:03}` are placeholders for the next value.
    pub text: String,
    /// The arrays, which are the last operands.
    pub arrays: Vec<SavedArray>,
}

/// The name in a file of an array outside of a tuple or struct, such as a single result.
const LONE: &str = "0";

/// The mark of complex arrays among the names in dumps.
const COMPLEX: &str = ":complex";

/// The name in a `.safetensors` file that belongs to the format.
const RESERVED: &str = "__metadata__";

impl Save {
    /// The number of operands.
    fn operands(&self) -> usize {
        places(&self.text) + self.arrays.iter().map(SavedArray::values).sum::<usize>()
    }

    /// The names of the arrays as one text, for dumps.
    fn names(&self) -> String {
        let name = |array: &SavedArray| format!("{}{}", array.name, if array.complex { COMPLEX } else { "" });
        self.arrays.iter().map(name).collect::<Vec<_>>().join(",")
    }
}

/// The arrays of a tree with their names, and their values.
fn collect(
    (term, path, span): (&Term, &str, Span),
    build: &mut CallBuilder,
    arrays: &mut Vec<SavedArray>,
    values: &mut Vec<Value>,
) -> Result<(), Diagnostic> {
    let below = |part: &str| if path.is_empty() { part.to_string() } else { format!("{path}.{part}") };
    if let Term::Tuple(parts) = term {
        let mut parts = parts.iter().enumerate();
        return parts.try_for_each(|(at, part)| collect((part, &below(&at.to_string()), span), build, arrays, values));
    }
    if let Term::Struct(fields) = term {
        let mut fields = fields.iter();
        return fields.try_for_each(|(name, part)| collect((part, &below(name), span), build, arrays, values));
    }
    let name = if path.is_empty() { LONE.to_string() } else { path.to_string() };
    match term.planes() {
        Some(planes) => {
            arrays.push(SavedArray { name, complex: true });
            values.extend(planes);
        }
        None => {
            arrays.push(SavedArray { name, complex: false });
            values.push(build.materialize(term, None, span)?);
        }
    }
    Ok(())
}

/// An error if files of this name cannot keep these arrays.
fn check_format(text: &str, arrays: &[SavedArray], span: Span) -> Result<(), Diagnostic> {
    let refused =
        |message: String, help: &str| Err(Diagnostic::error(Code::E0225, span, message).help(help.to_string()));
    let instead = "the name must end in `.npz`, `.npy` or `.safetensors`, as in `save(\"ckpt-{}.npz\", step, p)`";
    let extension = text.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("npz") => Ok(()),
        Some("npy") if arrays.len() == 1 => Ok(()),
        Some("npy") => refused(format!("a `.npy` file holds one array; found {}", arrays.len()), instead),
        Some("safetensors") => match arrays.iter().find(|array| array.complex || array.name == RESERVED) {
            Some(array) if array.complex => refused(
                format!("`{}` is complex, but a `.safetensors` file holds real numbers only", array.name),
                instead,
            ),
            Some(array) => {
                refused(format!("no array in a `.safetensors` file can be called `{}`", array.name), instead)
            }
            None => Ok(()),
        },
        Some(_) | None => refused(format!("`{text}` does not name a `.npz`, `.npy` or `.safetensors` file"), instead),
    }
}

impl Semantics for Save {
    fn name(&self) -> &'static str {
        "save"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        any_layout(args)
    }

    fn eval(&self, _: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(Vec::new())
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("save({}, {}, arrays={})", string(&self.text), args.join(", "), string(&self.names()))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for Save {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        if self.operands() != args.len() {
            let message = count("`save`", self.operands(), "value", args.len());
            return Err(Mismatch::new(Code::E0201, message));
        }
        match args[..places(&self.text)].iter().find(|array| array.rank() > 0) {
            Some(array) => Err(Mismatch::new(
                Code::E0205,
                must_be("a value in a file name", "a scalar", format_args!("`{array}`")),
            )),
            None => Ok(Vec::new()),
        }
    }
}

impl Rules for Save {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Zero
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Loop
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Nest(self)
    }

    fn properties(&self) -> Properties<'_> {
        properties(Effect::File)
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Missing("writing of files")
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl NestLowering for Save {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        lowering.print(self.text.clone(), stmt.args.clone(), TextPurpose::FileName(self.arrays.clone()));
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Buffer
    }
}

impl Call for Save {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Writes an array, or a tuple or struct of arrays, to a file while the program continues; `{}` in its name takes earlier values.
        save(name: String, [rest] values: Of("value"), [in_dumps "a tuple or struct of arrays"] arrays: String = None), Any, Own,
            "(x: f32[4, 6]) { for step in 0..x.shape[0] // 8 { save(\"x-{}.npz\", step, { x: x }); } x }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let first = args.required("name")?;
        let Term::Str(name) = &first.term else { unreachable!("the binder takes a string for the name") };
        let names = args.take("arrays");
        let mut rest: Vec<Arg> = args.rest("values");
        let (text, values, arrays) = match names {
            Some(Arg { term: Term::Str(names), .. }) => {
                let array = |name: &str| match name.strip_suffix(COMPLEX) {
                    Some(name) => SavedArray { name: name.to_string(), complex: true },
                    None => SavedArray { name: name.to_string(), complex: false },
                };
                let values: Result<Vec<Value>, Diagnostic> =
                    rest.iter().map(|arg| build.materialize(&arg.term, None, arg.span)).collect();
                (name.clone(), values?, names.split(',').map(array).collect())
            }
            Some(_) | None => {
                let Some(tree) = rest.pop() else {
                    let error = Diagnostic::error(Code::E0201, args.span, "`save` is missing the array to write");
                    return Err(error.help("write `save(\"ckpt-{}.npz\", step, p)`"));
                };
                if places(name) != rest.len() {
                    let message = match places(name) {
                        0 => "the name has no `{}` for the values before the array".to_string(),
                        places => format!("the name requires one value for each `{{}}`, {places} before the array"),
                    };
                    return Err(Diagnostic::error(Code::E0201, first.span, message)
                        .help("write `save(\"ckpt-{}.npz\", step, p)`"));
                }
                let (text, mut values) = filled(name, &rest, build, first.span)?;
                let mut arrays = Vec::new();
                collect((&tree.term, "", tree.span), build, &mut arrays, &mut values)?;
                check_format(name, &arrays, first.span)?;
                (text, values, arrays)
            }
        };
        if let Some(&value) = values.iter().find(|&&value| !build.ty(value).varying.is_empty()) {
            let axes = build.ty(value).varying;
            let axes: Vec<&str> = axes.iter().map(|axis| build.mesh().axes[axis].name.as_str()).collect();
            let message =
                format!("a saved value must be the same on all devices, but this one varies over {}", axes.join(", "));
            return Err(Diagnostic::error(Code::E0502, args.span, message)
                .help("save it outside of the `manual` function, or reduce it first"));
        }
        build.emit(Save { text, arrays }, &values)?;
        Ok(Term::Tuple(Vec::new()))
    }
}
