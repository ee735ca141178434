//! `print("loss = {}", l)`, `assert(c, "text {}", x)` and `show_sharding(x)`: the output of a running program.
//!
//! A value prints once, whole; its blocks are read from the devices that hold them, so no collective is needed.

use spmdc_abi::{Form, Piece, Spec, TextPurpose, pieces, places};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::print::string;
use spmdc_grammar::sentences::{must_be, requires, unknown};
use spmdc_grammar::span::Span;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::{Term, TypeTerm};
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Func, Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, NestLowering, Placement, Properties, Reads,
    Rules, Semantics, Typing,
};
use spmdc_ir::stablehlo::Exported;
use spmdc_layout::draw::{Style, draw};
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, AxisSet, DType};

/// `print("x = {}", x)`: prints one line; the operands are the values of the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Print {
    /// `{}` and `{:8.3}` are placeholders for the next value; `{{` and `}}` are braces.
    pub text: String,
}

/// Stops all devices with the text unless its first operand is true; the others are the text's values.
#[derive(Clone, Debug, PartialEq)]
pub struct Assert {
    /// As the text of [`Print`].
    pub text: String,
}

/// Draws the final distribution of its operand over the devices.
#[derive(Clone, Debug, PartialEq)]
pub struct ShowSharding {
    /// Whether the operand is the real plane of the complex numbers that are drawn.
    pub complex: bool,
    /// Some if a part of the program draws it and another one prints it, which has no operand: the number of the drawing. See
    /// `passes/project`.
    pub number: Option<u32>,
}

/// Width of drawings in columns; the terminal is unknown at compile time.
const DRAWING_WIDTH: usize = 100;

/// A rule with which every dimension may have any split.
pub fn any_layout(args: &[&ArrayType]) -> Factors {
    let mut rule = Factors::new();
    for arg in args {
        let dims = arg.shape.iter().map(|&size| vec![rule.add(size, FactorKind::Pass)]).collect();
        rule.operands.push(dims);
    }
    rule
}

/// The properties of an op that shows its operands and has no result.
pub fn properties(effect: Effect) -> Properties<'static> {
    Properties {
        effect,
        manual: Manual::Local,
        placement: Placement::Follows,
        linear: Linear::Apart,
        combines: Combines::Nothing,
        elements: Elements::Other,
        keeps_alignment: false,
    }
}

/// The text with its braces escaped.
fn escaped(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

/// The text for a term; adds the arrays in it to `values`. Tuples and lists print as in Python, structs as written.
fn shown(
    term: &Term,
    spec: &Spec,
    span: Span,
    build: &mut CallBuilder,
    values: &mut Vec<Value>,
) -> Result<String, Diagnostic> {
    let mut all = |parts: &mut dyn Iterator<Item = &Term>| -> Result<Vec<String>, Diagnostic> {
        parts.map(|part| shown(part, spec, span, build, values)).collect()
    };
    let plain = |text: String| escaped(&spec.pad(text, false));
    if let Term::Tuple(parts) = term {
        return Ok(match all(&mut parts.iter())?.as_slice() {
            [one] => format!("({one},)"),
            parts => format!("({})", parts.join(", ")),
        });
    }
    if let Term::Struct(fields) = term {
        let parts = all(&mut fields.iter().map(|(_, part)| part))?;
        let parts: Vec<String> = fields.iter().zip(parts).map(|((name, _), part)| format!("{name}: {part}")).collect();
        return Ok(format!("{{{{ {} }}}}", parts.join(", ")));
    }
    if let Term::Str(text) = term {
        return Ok(plain(text.clone()));
    }
    if let Term::Type(ty) = term {
        return Ok(plain(ty.text()));
    }
    let no_characters = |what: String| {
        let message = requires("`{:c}`", "integers", &what);
        Err(Diagnostic::error(Code::E0215, span, message).help("convert them, as in `print(\"{:c}\", u8(x))`"))
    };
    if let (Some([re, _]), Form::Characters) = (term.planes(), spec.form) {
        return no_characters(format!("`{}`", build.ty(re).array));
    }
    if let (Some(_), Form::Picture) = (term.planes(), spec.form) {
        let message = requires("`{:p}`", "real numbers", "complex ones");
        return Err(Diagnostic::error(Code::E0215, span, message).help("draw `abs(z)` or `real(z)`"));
    }
    if let Some([re, im]) = term.planes() {
        if spec.form == Form::Type {
            let array = build.ty(re).array.clone();
            return Ok(plain(TypeTerm { array, complex: true, sharding: None, varying: AxisSet::EMPTY }.text()));
        }
        values.extend([re, im]);
        return Ok(Spec { complex: true, ..spec.clone() }.place());
    }
    if let Term::Nothing = term {
        return Ok(plain("None".to_string()));
    }
    if let (Term::Int(number), true) = (term, *spec == Spec::default()) {
        return Ok(number.to_string());
    }
    let value = build.materialize(term, None, span)?;
    if spec.form == Form::Type {
        return Ok(plain(build.ty(value).array.to_string()));
    }
    let dtype = build.ty(value).dtype();
    if spec.form == Form::Characters && !(dtype.is_integer() && dtype != DType::Bool && dtype != DType::Key) {
        return no_characters(format!("`{}`", build.ty(value).array));
    }
    if spec.form == Form::Picture {
        fits_picture("{:p}", &build.ty(value).array, span)?;
    }
    values.push(value);
    Ok(spec.place())
}

/// An error unless a picture can be drawn of an array of this type: it has a line, or shades of a matrix. `who` draws it, for the message.
pub fn fits_picture(who: &str, ty: &ArrayType, span: Span) -> Result<(), Diagnostic> {
    if ty.dtype == DType::Key {
        let message = requires(format_args!("`{who}`"), "numbers", format_args!("`{ty}`"));
        return Err(Diagnostic::error(Code::E0215, span, message).help("draw numbers that the key makes"));
    }
    if ty.rank() > 2 {
        let message = format!("`{who}` is not defined for an array with {} dimensions", ty.rank());
        return Err(Diagnostic::error(Code::E0205, span, message).help("draw a part with 1 or 2, such as `x[0]`"));
    }
    Ok(())
}

/// The text with each argument at its `{}`, and arguments without one after it.
pub fn filled(
    text: &str,
    args: &[Arg],
    build: &mut CallBuilder,
    span: Span,
) -> Result<(String, Vec<Value>), Diagnostic> {
    let parts = pieces(text);
    let without_braces = text.replace("{{", "").replace("}}", "");
    let specs = without_braces.split("{:").skip(1).filter_map(|rest| rest.split_once('}'));
    if let Some(spec) = specs.map(|(spec, _)| spec).find(|spec| Spec::parse(spec).is_none()) {
        let message = unknown("format specifier", format_args!("{{:{spec}}}"));
        return Err(Diagnostic::error(Code::E0228, span, message).help(
            "write `{}`, `{:.4}` (digits), `{:8.3}` (width and digits), `{:e}` (exponent), `{:?}` (shape and type), `{:c}` (characters) \
             or `{:p}` (a picture), with `<^>`, a fill, `+` and `0` as in Rust",
        ));
    }
    let is_plain = |piece: &Piece| if let Piece::Value(spec) = piece { !spec.complex } else { true };
    if !build.is_exact() && !parts.iter().all(is_plain) {
        let error = Diagnostic::error(
            Code::E0108,
            span,
            "the format specifier `j`, which joins two planes, is allowed in dumps only",
        );
        return Err(error.help("`{}` prints complex numbers"));
    }
    let places = places(text);
    if places > args.len() {
        let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        let (places, values) = (plural(places, "place"), plural(args.len(), "value"));
        return Err(Diagnostic::error(Code::E0201, span, format!("the text has {places} `{{}}` for {values}"))
            .help("each `{}` prints one value; write `{{` and `}}` for braces"));
    }
    let (mut text, mut values, mut args) = (String::new(), Vec::new(), args.iter());
    for piece in parts {
        match piece {
            Piece::Text(part) => text += &escaped(&part),
            Piece::Value(spec) if spec.complex => {
                for arg in args.by_ref().take(spec.values()) {
                    values.push(build.materialize(&arg.term, None, arg.span)?);
                }
                text += &spec.place();
            }
            Piece::Value(spec) => {
                if let Some(arg) = args.next() {
                    text += &shown(&arg.term, &spec, arg.span, build, &mut values)?;
                }
            }
        }
    }
    for arg in args {
        if !text.is_empty() {
            text.push(' ');
        }
        text += &shown(&arg.term, &Spec::default(), arg.span, build, &mut values)?;
    }
    Ok((text, values))
}

impl Semantics for Print {
    fn name(&self) -> &'static str {
        "print"
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
        let mut all = vec![string(&self.text)];
        all.extend(args.iter().cloned());
        format!("print({})", all.join(", "))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for Print {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let places = places(&self.text);
        if places != args.len() {
            let message = format!("the text has {places} places `{{}}` for {} values", args.len());
            return Err(Mismatch::new(Code::E0201, message));
        }
        Ok(Vec::new())
    }
}

impl Rules for Print {
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
        properties(Effect::Text)
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Dropped
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl NestLowering for Print {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        lowering.print(self.text.clone(), stmt.args.clone(), TextPurpose::Line);
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Buffer
    }
}

impl Call for Print {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Prints one line, with the values in place of each `{}` of the text, or one after another.
        print(text: Of("string or value"), [rest] values: Of("value")), Any, Own, "(x: f32[4, 6]) { print(\"x = {}\", x); x }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let first = args.required("text")?;
        let mut rest = args.rest("values");
        let mut text = String::new();
        if let Term::Str(given) = first.term {
            text = given;
        } else {
            // `print(x, y)` shows the values, with spaces between.
            rest.insert(0, first);
        }
        let (text, values) = filled(&text, &rest, build, args.span)?;
        build.emit(Print { text }, &values)?;
        Ok(Term::Tuple(Vec::new()))
    }
}

impl Semantics for Assert {
    fn name(&self) -> &'static str {
        "assert"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        any_layout(args)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        match args[0].bits.first() {
            Some(0) => Err(Trap { code: Code::E0806, message: self.text.clone() }),
            Some(_) | None => Ok(Vec::new()),
        }
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let mut all = vec![args[0].clone(), string(&self.text)];
        all.extend(args[1..].iter().cloned());
        format!("assert({})", all.join(", "))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for Assert {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let Some((condition, values)) = args.split_first() else {
            return Err(Mismatch::new(Code::E0201, "`assert` is missing its condition"));
        };
        if condition.dtype != DType::Bool || condition.rank() > 0 {
            let message = must_be("the condition of `assert`", "a scalar `bool`", format_args!("`{condition}`"));
            return Err(Mismatch::new(Code::E0214, message));
        }
        Print { text: self.text.clone() }.infer(values)
    }
}

impl Rules for Assert {
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
        properties(Effect::Text)
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Dropped
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl NestLowering for Assert {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        lowering.print(self.text.clone(), stmt.args.clone(), TextPurpose::Error);
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Buffer
    }
}

impl Call for Assert {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Stops the program with the text unless the condition holds.
        assert(condition: Of("bool"), text: String = "assertion failed", [rest] values: Of("value")),
            NumbersAndBools, Own, "(x: f32[4, 6]) { assert(all(x >= x), \"{} is odd\", x); x }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let condition = args.required("condition")?;
        let (text, span) = match args.take("text") {
            None => ("assertion failed".to_string(), args.span),
            Some(Arg { term: Term::Str(text), span, .. }) => (text, span),
            Some(Arg { term, span, .. }) => {
                let message = must_be("`text`", "a string", term.describe());
                return Err(Diagnostic::error(Code::E0210, span, message));
            }
        };
        let rest = args.rest("values");
        let flag = build.materialize(&condition.term, None, condition.span)?;
        let ty = &build.ty(flag).array;
        if ty.dtype != DType::Bool || ty.rank() > 0 {
            let message = must_be("the condition of `assert`", "a scalar `bool`", format_args!("`{ty}`"));
            let error = Diagnostic::error(Code::E0214, condition.span, message);
            return Err(error.help("`all(c)` reduces an array to a scalar `bool`; compare a number, as in `x != 0`"));
        }
        let (text, values) = filled(&text, &rest, build, span)?;
        build.emit(Assert { text }, &[vec![flag], values].concat())?;
        Ok(Term::Tuple(Vec::new()))
    }
}

impl Semantics for ShowSharding {
    fn name(&self) -> &'static str {
        "show_sharding"
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
        let mut all = args.to_vec();
        all.extend(self.complex.then(|| "complex=true".to_string()));
        all.extend(self.number.map(|number| format!("number={number}")));
        format!("show_sharding({})", all.join(", "))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for ShowSharding {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        if args.is_empty() && self.number.is_none() {
            return Err(Mismatch::new(Code::E0201, "`show_sharding` takes one value"));
        }
        Ok(Vec::new())
    }
}

impl Rules for ShowSharding {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Zero
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(self.clone())
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Nest(self)
    }

    fn properties(&self) -> Properties<'_> {
        properties(Effect::Layout)
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Dropped
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl ShowSharding {
    /// The drawing of a value, as the text of a [`Print`].
    pub fn drawing(&self, func: &Func, mesh: &Mesh, value: Value) -> String {
        let ty = func.ty(value);
        let own = func.info(value).name.as_deref().unwrap_or("value");
        let drawing = draw(ty, mesh, Style::Unicode, DRAWING_WIDTH);
        let (mut name, mut shown) = (own, ty.display(mesh).to_string());
        if self.complex {
            // The plane has the name and the type of a part of the number.
            name = own.strip_suffix(".re").unwrap_or(own);
            let dims = shown.strip_prefix(ty.dtype().name()).unwrap_or_default();
            shown = format!("{}{dims}", if ty.dtype() == DType::F64 { "c128" } else { "c64" });
        }
        escaped(&format!("{name}: {shown}\n{}", drawing.trim_end()))
    }
}

impl NestLowering for ShowSharding {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        if self.number.is_none() {
            let text = self.drawing(lowering.func, lowering.mesh, stmt.args[0]);
            lowering.print(text, Vec::new(), TextPurpose::Line);
        }
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Buffer
    }
}

impl Call for ShowSharding {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Draws the layout of the value on the devices.
        show_sharding(x: Array), Any, Own, "(x: f32[4, 6]) { show_sharding(x); x }";
        /// Draws the layout of complex numbers, from their real plane.
        show_sharding(x: Array, [named] complex: Bool) in_dumps "" "write `show_sharding(z)`";
        /// Draws the layout of a value, for another part of the program that prints it, or prints a drawing of another part.
        show_sharding(x: Array = None, [named] complex: Bool = None, [named] number: Int) in_dumps "" "write `show_sharding(x)`";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let number = match args.signature().params.iter().any(|param| param.name == "number") {
            true => args.optional_int("number")?.map(u32::try_from).transpose(),
            false => Ok(None),
        };
        let number = number.map_err(|_| Diagnostic::error(Code::E0227, args.span, "unknown number of a drawing"))?;
        if let (Some(_), None) = (number, args.peek("x")) {
            build.emit(ShowSharding { complex: false, number }, &[])?;
            return Ok(Term::Tuple(Vec::new()));
        }
        let arg = args.required("x")?;
        let is_plane = args.signature().params.iter().any(|param| param.name == "complex");
        let is_plane = is_plane && args.optional_bool("complex")? == Some(true);
        // Both planes of complex numbers lie alike, unless the compiler finds a reason against it.
        let (value, complex) = match arg.term.planes() {
            Some([re, _]) => (re, true),
            None => (build.materialize(&arg.term, None, arg.span)?, is_plane),
        };
        build.emit(ShowSharding { complex, number }, &[value])?;
        Ok(Term::Tuple(Vec::new()))
    }
}
