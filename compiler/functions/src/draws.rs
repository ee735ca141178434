//! The parts of random functions that the prelude cannot express (`compiler/functions/prelude/random.spmd`): types from arguments, numbers from
//! bits, and layouts.

use spmdc_abi::Width;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{expected, must_be, undefined};
use spmdc_ir::call::arg::complete;
use spmdc_ir::call::arg::{Arg, as_dtype, as_int, as_ints, as_sharding};
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::term::{Term, TypeTerm, whole_number};
use spmdc_ir::program::Value;
use spmdc_ir::shape;
use spmdc_kernel::number;
use spmdc_kernel::scalar::{BinaryOp, CompareOp};
use spmdc_layout::types::{ArrayType, DType};
use spmdc_ops::broadcast::broadcast;
use spmdc_ops::cast::{Cast, cast};
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::{Binary, Compare, Select};
use spmdc_ops::random_bits::RandomBits;
use spmdc_ops::reshard::Reshard;

fn type_term(array: ArrayType) -> Term {
    Term::Type(TypeTerm { array, complex: false, sharding: None, varying: Default::default() })
}

/// The type of an array, of a list of numbers, or of a type.
fn type_of(build: &mut CallBuilder, arg: &Arg) -> Result<ArrayType, Diagnostic> {
    if let Term::Type(ty) = &arg.term {
        if ty.complex {
            let error = Diagnostic::error(Code::E0215, arg.span, "this function generates real numbers only");
            return Err(error.help("only `normal` generates complex numbers"));
        }
        return Ok(ty.array.clone());
    }
    let value = build.materialize(&arg.term, None, arg.span)?;
    Ok(build.ty(value).array.clone())
}

/// `drawn(k, shape, dtype, like)`: the type of the numbers that a call requests. `shape` is a type, or sizes, or None for the sizes of
/// `like`, whose element type is the default. An error unless `k` is one key.
pub fn drawn(build: &mut CallBuilder, args: &[Arg]) -> Result<Term, Diagnostic> {
    let [key, shape, dtype, like] = args else { panic!("`drawn` takes four arguments") };
    one_key(build, key)?;
    let like = type_of(build, like)?;
    let asked = if let Term::Nothing = dtype.term { None } else { Some(as_dtype(dtype, "dtype")?) };
    if let Term::Type(ty) = &shape.term {
        let own = type_of(build, shape)?;
        if let Some(asked) = asked
            && asked != ty.array.dtype
        {
            let message = format!("`dtype` is {}, but the type of the result is {}", asked.name(), ty.array);
            return Err(Diagnostic::error(Code::E0203, dtype.span, message).help("remove `dtype`"));
        }
        return Ok(type_term(own));
    }
    let dtype = asked.unwrap_or(like.dtype);
    if let Term::Nothing = shape.term {
        return Ok(type_term(like.with_dtype(dtype)));
    }
    Ok(type_term(ArrayType::of(dtype, sizes(shape)?)))
}

fn sizes(shape: &Arg) -> Result<Vec<usize>, Diagnostic> {
    let size = |size: i64| {
        let message = must_be("a size", "at least 0", size);
        usize::try_from(size).map_err(|_| Diagnostic::error(Code::E0218, shape.span, message))
    };
    as_ints(shape, "shape")?.into_iter().map(size).collect()
}

fn one_key(build: &CallBuilder, key: &Arg) -> Result<(), Diagnostic> {
    let found = if let Term::Array(value) = key.term { Some(build.ty(value)) } else { None };
    match found {
        Some(ty) if ty.dtype() == DType::Key && ty.rank() == 0 => Ok(()),
        Some(ty) if ty.dtype() == DType::Key => {
            let message = expected("a single key", &ty.array);
            Err(Diagnostic::error(Code::E0205, key.span, message).help("use one of the keys, as in `keys[0]`"))
        }
        _ => {
            let name = found.map_or(key.term.describe(), |ty| ty.dtype().name());
            let message = expected("a random key", name);
            Err(Diagnostic::error(Code::E0203, key.span, message).help("`key(42)` makes a key from a seed"))
        }
    }
}

/// `asks_complex(shape)`: whether it is a type of complex numbers.
pub fn asks_complex(args: &[Arg]) -> Term {
    Term::Bool(matches!(&args[0].term, Term::Type(ty) if ty.complex))
}

/// `real_type(shape)`: the type of the planes of a type of complex numbers.
pub fn real_type(args: &[Arg]) -> Term {
    if let Term::Type(ty) = &args[0].term {
        Term::Type(TypeTerm { complex: false, ..ty.clone() })
    } else {
        args[0].term.clone()
    }
}

/// `retyped(t, x)`: the type `t` with the element type of `x`, an array or a type.
pub fn retyped(build: &mut CallBuilder, args: &[Arg]) -> Result<Term, Diagnostic> {
    let dtype = type_of(build, &args[1])?.dtype;
    Ok(type_term(type_of(build, &args[0])?.with_dtype(dtype)))
}

/// `wider(t, n)`: the type `t` with a last dimension of `n`.
pub fn wider(build: &mut CallBuilder, args: &[Arg]) -> Result<Term, Diagnostic> {
    let mut ty = type_of(build, &args[0])?;
    ty.shape.push(as_int(&args[1], "n")? as usize);
    Ok(type_term(ty))
}

/// `unit(k, t)`: numbers of the float type `t`, each with random bits as its mantissa, from 0 up to 1.
pub fn unit(build: &mut CallBuilder, args: &[Arg]) -> Result<Value, Diagnostic> {
    let Term::Array(key) = args[0].term else { panic!("the prelude draws numbers with a key") };
    let ty = type_of(build, &args[1])?;
    let Some(format) = ty.dtype.format() else {
        let message = format!("this function generates floats; found {}", ty.dtype.name());
        let error = Diagnostic::error(Code::E0215, build.span(), message);
        return Err(error.help("`randint` draws integers, `bernoulli` bools, `bits` all bits"));
    };
    // As many random bits as the type has, but only 8 if they fill the mantissa.
    let (bits, signed) = match ty.dtype.width() {
        Width::W64 => (DType::U64, DType::I64),
        Width::W32 => (DType::U32, DType::I32),
        Width::W16 if format.mantissa < 8 => (DType::U8, DType::I32),
        Width::W16 => (DType::U16, DType::I32),
        Width::W8 => (DType::U8, DType::I32),
    };
    let drawn = build.emit1(RandomBits { ty: ty.with_dtype(bits) }, &[key])?;
    let unused = 8 * bits.size() as u32 - format.mantissa;
    let unused = build.emit1(Constant::scalar(bits, u64::from(unused)), &[])?;
    let mantissa = build.emit1(Binary(BinaryOp::Shr), &[drawn, unused])?;
    // Processors convert signed numbers faster; these have room to spare.
    let whole = build.emit1(Cast { to: signed }, &[mantissa])?;
    let number = build.emit1(Cast { to: ty.dtype }, &[whole])?;
    let unit = (-f64::from(format.mantissa)).exp2();
    let unit = build.emit1(Constant::scalar(ty.dtype, ty.dtype.narrow(unit)), &[])?;
    build.emit1(Binary(BinaryOp::Mul), &[number, unit])
}

/// `laid_out(x, t, shape, out)`: the numbers in the shape of `t`, laid out as the type `shape` or `out` says.
pub fn laid_out(build: &mut CallBuilder, args: &[Arg]) -> Result<Value, Diagnostic> {
    let [numbers, ty, shape, out] = args else { panic!("`laid_out` takes four arguments") };
    let Term::Array(value) = numbers.term else { panic!("the prelude lays out an array") };
    let ty = type_of(build, ty)?;
    let mut value = broadcast(build, value, &ty.shape)?;
    if let Term::Type(TypeTerm { sharding: Some(sharding), .. }) = &shape.term {
        value = build.emit1(Reshard::pin(sharding.clone()), &[value])?;
    }
    if let Term::Nothing = out.term {
        return Ok(value);
    }
    let to = complete(as_sharding(out, "out")?.sharding, ty.rank(), out.span)?;
    build.emit1(Reshard::pin(to), &[value])
}

/// `tiny(x)`: the smallest number of the float type of x that is not subnormal.
pub fn tiny(build: &mut CallBuilder, args: &[Arg]) -> Result<Term, Diagnostic> {
    let format = type_of(build, &args[0])?.dtype.format().expect("the prelude asks for floats only");
    Ok(Term::Float(format.smallest_normal()))
}

/// `equals(v, n)`: whether v is this number, and known at compile time.
pub fn equals(args: &[Arg]) -> Term {
    Term::Bool(args[0].term.number().is_some_and(|number| Some(number) == args[1].term.number()))
}

/// `rounds(n)`: the number of sorts by random bits that permute this number of elements without bias (the same as in JAX).
pub fn rounds(args: &[Arg]) -> Result<Term, Diagnostic> {
    let elements = as_int(&args[0], "n")?.max(1) as f64;
    Ok(Term::Int((3.0 * elements.ln() / f64::from(u32::MAX).ln()).ceil() as i128))
}

/// `categories(shape, logits, axis)`: the type of the noise that is added to logits, for a result of this shape.
pub fn categories(build: &mut CallBuilder, args: &[Arg]) -> Result<Term, Diagnostic> {
    let [asked, logits, axis] = args else { panic!("`categories` takes three arguments") };
    let ty = type_of(build, logits)?;
    let axis = shape::axis(as_int(axis, "axis")?, ty.rank(), axis.span)?;
    if let Term::Nothing = asked.term {
        return Ok(type_term(ty));
    }
    let mut batch = ty.shape.clone();
    let classes = batch.remove(axis);
    let mut wanted = if let Term::Type(ty) = &asked.term { ty.array.shape.clone() } else { sizes(asked)? };
    let fits = shape::broadcast(&[&wanted, &batch]).is_ok_and(|both| both == wanted);
    if !fits {
        let (wanted, batch) = (shape::display(&wanted), shape::display(&batch));
        let message = format!("the batch shape {batch} of the logits does not broadcast to the shape {wanted}");
        return Err(Diagnostic::error(Code::E0204, asked.span, message));
    }
    let prefix = wanted.len() - batch.len();
    wanted.insert(prefix + axis, classes);
    Ok(type_term(ArrayType::of(ty.dtype, wanted)))
}

/// `integers(t, minval, maxval)`: for the integer type `t`, four values. The smallest number, in the type in which numbers are generated.
/// The number of numbers, in the unsigned type of the same width, or None for all numbers of this type. This unsigned type, in the shape of
/// `t`. The square root of its number of numbers.
pub fn integers(build: &mut CallBuilder, args: &[Arg]) -> Result<Term, Diagnostic> {
    let [ty, minval, maxval] = args else { panic!("`integers` takes three arguments") };
    let shaped = type_of(build, ty)?;
    let dtype = shaped.dtype;
    if !dtype.is_integer() {
        let message = undefined("`randint`", dtype.name());
        return Err(Diagnostic::error(Code::E0215, ty.span, message).help("`uniform` draws floats"));
    }
    let (least, most) = dtype.integer_bounds();
    // Numbers below 32 bits are drawn in 32 bits.
    let (drawn, unsigned, most) = match (dtype.width(), dtype.is_signed_integer()) {
        (Width::W8 | Width::W16, _) => (DType::I32, DType::U32, most + 1),
        (Width::W32, true) => (DType::I32, DType::U32, most),
        (Width::W32, false) => (DType::U32, DType::U32, most),
        (Width::W64, true) => (DType::I64, DType::U64, most),
        (Width::W64, false) => (DType::U64, DType::U64, most),
    };
    let last = dtype.integer_bounds().1;
    let root = Term::Int(1 << (4 * unsigned.size()));
    let result = |first: Value, count: Term| {
        Term::Tuple(vec![Term::Array(first), count, type_term(shaped.with_dtype(unsigned)), root.clone()])
    };
    let bounds = [bound(build, minval, "minval")?, bound(build, maxval, "maxval")?];
    if let [End::Known(low), End::Known(high)] = bounds {
        let low = low.clamp(least, last);
        // The type's largest number is included if the end is beyond it.
        let end = high.clamp(least, last + 1);
        let count = if end <= low { 1 } else { end - low };
        let low = build.emit1(Constant::scalar(drawn, number::from_int(drawn, low)), &[])?;
        if count > unsigned.integer_bounds().1 {
            return Ok(result(low, Term::Nothing));
        }
        let count = build.emit1(Constant::scalar(unsigned, number::from_int(unsigned, count)), &[])?;
        return Ok(result(low, Term::Array(count)));
    }
    let mut ends = Vec::new();
    for (end, limit) in bounds.into_iter().zip([last, most]) {
        ends.push(clamped(build, end, drawn, least, limit)?);
    }
    let [low, high] = ends[..] else { unreachable!("there are two bounds") };
    let distance = build.emit1(Binary(BinaryOp::Sub), &[high, low])?;
    let distance = cast(build, distance, unsigned)?;
    let is_empty = build.emit1(Compare(CompareOp::Le), &[high, low])?;
    let one = build.emit1(Constant::scalar(unsigned, 1), &[])?;
    let count = build.emit1(Select, &[is_empty, one, distance])?;
    Ok(result(low, Term::Array(count)))
}

/// A bound of random integers.
enum End<'a> {
    Known(i128),
    Computed(&'a Arg, Value),
}

fn bound<'a>(build: &mut CallBuilder, arg: &'a Arg, name: &str) -> Result<End<'a>, Diagnostic> {
    if let Some(number) = whole_number(&arg.term) {
        return Ok(End::Known(number));
    }
    let value = build.materialize(&arg.term, None, arg.span)?;
    if build.ty(value).dtype().is_integer() {
        return Ok(End::Computed(arg, value));
    }
    let message = must_be(format_args!("`{name}`"), "an integer", build.ty(value).dtype().name());
    Err(Diagnostic::error(Code::E0215, arg.span, message))
}

/// A bound between `least` and `most`, in the type in which numbers are drawn.
fn clamped(
    build: &mut CallBuilder,
    bound: End<'_>,
    drawn: DType,
    least: i128,
    most: i128,
) -> Result<Value, Diagnostic> {
    let (arg, mut value) = match bound {
        End::Known(number) => {
            return build.emit1(Constant::scalar(drawn, number::from_int(drawn, number.clamp(least, most))), &[]);
        }
        End::Computed(arg, value) => (arg, value),
    };
    let dtype = build.ty(value).dtype();
    let (smallest, largest) = dtype.integer_bounds();
    if largest > drawn.integer_bounds().1 {
        let message = format!("the bounds have type {}, which does not fit into {}", dtype.name(), drawn.name());
        return Err(Diagnostic::error(Code::E0203, arg.span, message).help(format!("write {}(...)", drawn.name())));
    }
    let mut limit = |op: BinaryOp, value: Value, limit: i128| {
        let limit = build.emit1(Constant::scalar(dtype, number::from_int(dtype, limit)), &[])?;
        build.emit1(Binary(op), &[value, limit])
    };
    if smallest < least {
        value = limit(BinaryOp::Maximum, value, least)?;
    }
    if largest > most {
        value = limit(BinaryOp::Minimum, value, most)?;
    }
    cast(build, value, drawn)
}
