//! The prelude: shipped functions that are written in the language (`compiler/functions/prelude`).
//!
//! The checker expands a call like a call of a function of the program, but every source position in it is the position of the call. A
//! function is parsed when it is first used. A few helpers, which only the prelude can call, express concepts that the language lacks.

use crate::paragraph::{Paragraph, paragraph};
use crate::spectral::{self, resized, scale};
use crate::{complex, draws, matrix_power};
use spmdc_abi::FloatFormat;
use spmdc_fft_ops::fft;
use spmdc_grammar::ast::{FnItem, PatternKind};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::arg::{Arg, as_bool, as_int, as_ints};
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::complex::{ComplexRule, IN_DUMPS};
use spmdc_ir::call::errors::not_real;
use spmdc_ir::call::signature::{Dtypes, Given, ParamKind, ParamSpec, Signature, Status};
use spmdc_ir::call::term::{Operand, Term};
use spmdc_ir::call::trees::joined;
use spmdc_ir::program::Value;
use spmdc_ir::shape;
use spmdc_layout::types::DType;
use spmdc_ops::broadcast::broadcast;
use spmdc_ops::cast::cast;
use spmdc_ops::concatenate::stacked;
use spmdc_ops::constant::Constant;
use spmdc_ops::fma::Fma;
use spmdc_ops::promote::{self, inexact};
use spmdc_ops::reshape::reshape;
use spmdc_ops::transpose::transpose;
use spmdc_ops::{reduce, with_partials};
use spmdc_sort_ops::selection::last_lines;
use std::sync::OnceLock;

/// The files of the prelude with their texts, by subject.
pub const FILES: [(&str, &str); 9] = [
    ("elementwise.spmd", include_str!("../prelude/elementwise.spmd")),
    ("special.spmd", include_str!("../prelude/special.spmd")),
    ("lookup.spmd", include_str!("../prelude/lookup.spmd")),
    ("statistics.spmd", include_str!("../prelude/statistics.spmd")),
    ("shapes.spmd", include_str!("../prelude/shapes.spmd")),
    ("neural.spmd", include_str!("../prelude/neural.spmd")),
    ("linalg.spmd", include_str!("../prelude/linalg.spmd")),
    ("spectral.spmd", include_str!("../prelude/spectral.spmd")),
    ("random.spmd", include_str!("../prelude/random.spmd")),
];

/// The functions of the prelude.
pub const NAMES: [&str; 124] = [
    "complex",
    "real",
    "imag",
    "conj",
    "angle",
    "fft",
    "ifft",
    "rfft",
    "irfft",
    "fft2",
    "ifft2",
    "rfft2",
    "irfft2",
    "fftn",
    "ifftn",
    "rfftn",
    "irfftn",
    "fftfreq",
    "rfftfreq",
    "clip",
    "sinc",
    "logit",
    "heaviside",
    "nan_to_num",
    "isclose",
    "divmod",
    "lcm",
    "allclose",
    "clamp",
    "xlogy",
    "xlog1py",
    "entr",
    "rel_entr",
    "kl_div",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "erfcx",
    "incomplete_gammas",
    "log_tail",
    "gammainc",
    "gammaincc",
    "betainc",
    "zeta",
    "polygamma",
    "eig",
    "eigvals",
    "eigvalsh",
    "tridiagonal_solve",
    "map_coordinates",
    "corners",
    "edge",
    "isin",
    "nanmedian",
    "cov",
    "corrcoef",
    "trapezoid",
    "unwrap",
    "correlate",
    "ptp",
    "average",
    "nansum",
    "nanmean",
    "nanmax",
    "nanmin",
    "nanvar",
    "nanstd",
    "rot90",
    "vdot",
    "cross",
    "elu",
    "leaky_relu",
    "layer_norm",
    "rms_norm",
    "attention",
    "mean",
    "var",
    "std",
    "count_nonzero",
    "median",
    "logsumexp",
    "logcumsumexp",
    "gelu",
    "silu",
    "softplus",
    "softmax",
    "log_softmax",
    "digitize",
    "histogram",
    "interp",
    "solve",
    "inv",
    "det",
    "slogdet",
    "lstsq",
    "pinv",
    "expm",
    "matrix_power",
    "key_data",
    "wrap_key_data",
    "bits",
    "uniform",
    "normal",
    "truncated_normal",
    "bernoulli",
    "randint",
    "permutation",
    "categorical",
    "gumbel",
    "exponential",
    "choice",
    "laplace",
    "logistic",
    "cauchy",
    "gamma",
    "loggamma",
    "beta",
    "chisquare",
    "student_t",
    "dirichlet",
    "multivariate_normal",
    "poisson",
    "binomial",
];

/// A function of the prelude.
#[derive(Debug)]
pub struct PreludeFunction {
    /// The parameters from the declaration, and the documentation from the lines above it.
    pub signature: Signature,
    /// The parsed declaration and body; their spans are in the file of the prelude.
    pub function: FnItem,
    /// Its text, without the parts in the signature.
    pub source: &'static str,
}

/// The function of this name.
pub fn function(name: &str) -> Option<&'static PreludeFunction> {
    static WRITTEN: [OnceLock<PreludeFunction>; NAMES.len()] = [const { OnceLock::new() }; NAMES.len()];
    let at = NAMES.iter().position(|known| *known == name)?;
    Some(WRITTEN[at].get_or_init(|| read(NAMES[at])))
}

fn read(name: &'static str) -> PreludeFunction {
    let Paragraph { text, function } = paragraph(&FILES.map(|(_, text)| text), name);
    let head = format!("fn {name}(");
    let source = text.find(&head).map_or(text, |start| &text[start..]).trim_end();
    PreludeFunction { signature: signature(name, text, &function), function, source }
}

/// The signature of a function: its parameters and defaults, and the documentation above it.
fn signature(name: &'static str, text: &'static str, function: &FnItem) -> Signature {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("/// "));
    let doc = lines.next().unwrap_or_default();
    let said: Vec<(&str, &str)> = lines.filter_map(|line| line.strip_prefix("- ")?.split_once(": ")).collect();
    let of = |what: &str| said.iter().find(|(said, _)| *said == what).map(|(_, value)| *value);
    let within = |span: Span| &text[span.start as usize..span.end as usize];
    let params = function.params.iter().map(|param| {
        let PatternKind::Name(_) = param.pattern.kind else { panic!("a parameter of `{name}` has no name") };
        let own = within(param.pattern.span);
        // `key` is a type: a parameter of this name has another one in the body.
        if let Some(kind) = of(&format!("`{own}`, called `key`")) {
            return ParamSpec { name: "key", kind: kind_of(kind), given: Given::Either, default: None };
        }
        let (by, kind) = match (of(&format!("`{own}`")), of(&format!("`{own}`, by name"))) {
            (Some(kind), _) => (Given::Either, kind),
            (None, Some(kind)) => (Given::Named, kind),
            (None, None) => panic!("nothing is said of `{own}` of `{name}`"),
        };
        let default = param.default.as_ref().map(|default| within(default.span));
        ParamSpec { name: own, kind: kind_of(kind), given: by, default }
    });
    Signature {
        name,
        params: params.collect::<Vec<ParamSpec>>().leak(),
        doc,
        dtypes: of("element types").map_or(Dtypes::Nothing, dtypes_of),
        complex: match (of("complex numbers"), of("in dumps")) {
            (Some(words), _) => ComplexRule::from_words(words)
                .unwrap_or_else(|| panic!("`{name}` has no rule for complex numbers in {words:?}")),
            (None, Some(_)) => ComplexRule::Refused(IN_DUMPS),
            (None, None) => panic!("nothing is said of `{name}` of complex numbers"),
        },
        example: of("example").unwrap_or_default(),
        status: of("in dumps").map_or(Status::Shipped, |instead| Status::InDumps { with: "", instead }),
    }
}

fn kind_of(words: &'static str) -> ParamKind {
    let kinds = [
        ParamKind::Array,
        ParamKind::Int,
        ParamKind::Ints,
        ParamKind::Bool,
        ParamKind::String,
        ParamKind::Type,
        ParamKind::ElementType,
        ParamKind::Sharding,
    ];
    kinds.into_iter().find(|kind| kind.to_string() == words).unwrap_or(ParamKind::Of(words))
}

fn dtypes_of(words: &str) -> Dtypes {
    let all = [
        Dtypes::Any,
        Dtypes::NumbersAndBools,
        Dtypes::Wide,
        Dtypes::Numbers,
        Dtypes::Integers,
        Dtypes::Floats,
        Dtypes::Bools,
    ];
    let found = all.into_iter().find(|dtypes| dtypes.describe() == Some(words));
    found.unwrap_or_else(|| panic!("there are no element types `{words}`"))
}

/// Functions that only the prelude can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Helper {
    /// `is_none(v)`: whether an argument is None.
    IsNone,
    /// `is_number(v)`: whether an argument is a number known at compile time.
    IsNumber,
    /// `as_float(x)`: in the float type in which functions of x are computed.
    AsFloat,
    /// `widened(x)`: floats below 32 bits in f32.
    Widened,
    /// `count(x, axis)`: the number of elements that a reduction combines into one.
    Count,
    /// `mask(x, where)`: the mask of a call, in the shape of x.
    Mask,
    /// `is_float(x)`: whether the elements are floats.
    IsFloat,
    /// `common(a, b)`: a tuple of both in their common element type.
    Common,
    /// `limit(x)`: infinity in the float type of x, or the largest number of a type without infinity.
    Limit,
    /// `along(w, x, axis)`: an array of the shape of x, or of its sizes along these dimensions, in a shape that broadcasts with x.
    Along,
    /// `same_shape(a, b)`: whether both have the same shape.
    SameShape,
    /// `matched(a, b)`: a tuple of both, whose dimensions before the last two are broadcast to each other.
    Matched,
    /// `epsilon(x)`: the distance from 1 to the next number of the float type of x.
    Epsilon,
    /// `power(a, n)`: the n-th power of square matrices, for n from 0 on.
    Power,
    /// `is_complex(x)`: whether the elements are complex.
    IsComplex,
    /// `real_plane(z)`: the real parts; real numbers as they are.
    RealPlane,
    /// `imaginary_plane(z)`: the imaginary parts; zeros for real numbers.
    ImaginaryPlane,
    /// `pair(re, im)`: complex numbers of two planes of one float type and shape.
    Pair,
    /// `resized(x, n, axis)`: cut, or continued with zeros, to n elements along a dimension.
    Resized,
    /// `spectrum(re, im, axis, inverse)`: the planes of a Fourier transform; im is None for real numbers.
    Spectrum,
    /// `half_spectrum(x, axis)`: the planes of the first half of a transform of real numbers.
    HalfSpectrum,
    /// `of_half_spectrum(re, im, axis, n)`: the n real numbers that have such a transform.
    OfHalfSpectrum,
    /// `scale(norm, n, inverse)`: the factor of a Fourier transform of n points.
    Scale,
    /// `transforms(x, s, axes, norm, of_real, inverse)`: a Fourier transform along several dimensions.
    Transforms,
    /// `drawn(k, shape, dtype, like)`: the type of the random numbers that a call asks for.
    Drawn,
    /// `asks_complex(shape)`: whether a type is one of complex numbers.
    AsksComplex,
    /// `real_type(shape)`: the type of their planes.
    RealType,
    /// `retyped(t, x)`: a type with the element type of an array or another type.
    Retyped,
    /// `wider(t, n)`: a type with one more dimension.
    Wider,
    /// `unit(k, t)`: uniform numbers from 0 up to 1.
    Unit,
    /// `laid_out(x, t, shape, out)`: an array in the shape of a type, and in the layout that a call asks for.
    LaidOut,
    /// `tiny(x)`: the smallest normal number of the float type of x.
    Tiny,
    /// `equals(v, n)`: whether an argument is this number, known at compile time.
    Equals,
    /// `rounds(n)`: how often n elements are sorted by random bits to permute them.
    Rounds,
    /// `categories(shape, logits, axis)`: the type of the noise on logits.
    Categories,
    /// `integers(t, minval, maxval)`: the first number of a range, and the number of numbers in it.
    Integers,
    /// `lines(x, axis)`: the dimensions of a reduction as one, the last.
    Lines,
    /// `partials(y, x, d, ...)`: y, and zeros whose partial derivative with respect to each x is the following d.
    Partials,
    /// `polynomial(x, [c, b, a])`: a + b x + c x x, by fused steps.
    Polynomial,
    /// `stacked(v)`: an array, or a list of arrays as one.
    Stacked,
    /// `is_text(v, text)`: whether an argument is this string.
    IsText,
    /// `require(condition, message)`: an error of the call unless the condition holds.
    Require,
}

impl Helper {
    /// The helper of this name; None if no helper has it.
    pub fn named(name: &str) -> Option<Helper> {
        match name {
            "is_none" => Some(Helper::IsNone),
            "is_number" => Some(Helper::IsNumber),
            "as_float" => Some(Helper::AsFloat),
            "widened" => Some(Helper::Widened),
            "count" => Some(Helper::Count),
            "mask" => Some(Helper::Mask),
            "is_float" => Some(Helper::IsFloat),
            "common" => Some(Helper::Common),
            "limit" => Some(Helper::Limit),
            "along" => Some(Helper::Along),
            "same_shape" => Some(Helper::SameShape),
            "matched" => Some(Helper::Matched),
            "epsilon" => Some(Helper::Epsilon),
            "power" => Some(Helper::Power),
            "is_complex" => Some(Helper::IsComplex),
            "real_plane" => Some(Helper::RealPlane),
            "imaginary_plane" => Some(Helper::ImaginaryPlane),
            "pair" => Some(Helper::Pair),
            "resized" => Some(Helper::Resized),
            "spectrum" => Some(Helper::Spectrum),
            "half_spectrum" => Some(Helper::HalfSpectrum),
            "of_half_spectrum" => Some(Helper::OfHalfSpectrum),
            "scale" => Some(Helper::Scale),
            "transforms" => Some(Helper::Transforms),
            "drawn" => Some(Helper::Drawn),
            "asks_complex" => Some(Helper::AsksComplex),
            "real_type" => Some(Helper::RealType),
            "retyped" => Some(Helper::Retyped),
            "wider" => Some(Helper::Wider),
            "unit" => Some(Helper::Unit),
            "laid_out" => Some(Helper::LaidOut),
            "tiny" => Some(Helper::Tiny),
            "equals" => Some(Helper::Equals),
            "rounds" => Some(Helper::Rounds),
            "categories" => Some(Helper::Categories),
            "integers" => Some(Helper::Integers),
            "lines" => Some(Helper::Lines),
            "partials" => Some(Helper::Partials),
            "polynomial" => Some(Helper::Polynomial),
            "stacked" => Some(Helper::Stacked),
            "is_text" => Some(Helper::IsText),
            "require" => Some(Helper::Require),
            _ => None,
        }
    }

    /// The result of a call; emits statements if needed. An argument of the wrong kind is a defect of the prelude.
    pub fn call(self, args: &[Arg], build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let span = build.span();
        if args.iter().any(|arg| matches!(arg.term, Term::Complex(_))) {
            return self.of_complex(args, build);
        }
        let array = |at: usize| -> Value {
            let Term::Array(value) = args[at].term else {
                panic!("a helper of the prelude takes an array, not {}", args[at].term.describe());
            };
            value
        };
        match self {
            Helper::IsNone => Ok(Term::Bool(matches!(args[0].term, Term::Nothing))),
            Helper::IsNumber => Ok(Term::Bool(args[0].term.number().is_some())),
            Helper::AsFloat => {
                // A default of the prelude is a number still.
                let value = build.materialize(&args[0].term, None, args[0].span)?;
                let dtype = inexact(build.ty(value).dtype());
                cast(build, value, dtype).map(Term::Array)
            }
            Helper::Widened => {
                let dtype = build.ty(array(0)).dtype();
                let wide = if dtype.size() < 4 { DType::F32 } else { dtype };
                cast(build, array(0), wide).map(Term::Array)
            }
            Helper::Count => {
                let sizes = build.ty(array(0)).shape().to_vec();
                let axes = if let Term::Nothing = args[1].term {
                    (0..sizes.len()).collect()
                } else {
                    shape::axes(&as_ints(&args[1], "axis")?, sizes.len(), span)?
                };
                Ok(Term::Int(axes.iter().map(|&axis| sizes[axis] as i128).product()))
            }
            Helper::Mask => {
                let sizes = build.ty(array(0)).shape().to_vec();
                reduce::mask(build, &args[1], &sizes).map(Term::Array)
            }
            Helper::IsFloat => Ok(Term::Bool(build.ty(array(0)).dtype().is_float())),
            Helper::Common => {
                let operands: Vec<Operand<'_>> = args.iter().map(|arg| (&arg.term, arg.span)).collect();
                let values = promote::promoted(build, &operands)?;
                Ok(Term::Tuple(values.into_iter().map(Term::Array).collect()))
            }
            Helper::Limit => {
                let dtype = build.ty(array(0)).dtype();
                let bits = dtype.format().map(FloatFormat::last);
                let bits = bits.expect("the prelude asks for the limit of floats only");
                build.emit1(Constant::scalar(dtype, bits), &[]).map(Term::Array)
            }
            Helper::Along => {
                let sizes = build.ty(array(1)).shape().to_vec();
                along(build, array(0), &sizes, &args[2], args[0].span).map(Term::Array)
            }
            Helper::SameShape => Ok(Term::Bool(build.ty(array(0)).shape() == build.ty(array(1)).shape())),
            Helper::Matched => {
                let shapes = [0, 1].map(|at| build.ty(array(at)).shape().to_vec());
                let [Some((m, a)), Some((n, b))] = [0, 1].map(|at| shapes[at].split_last_chunk::<2>()) else {
                    panic!("the prelude matches matrices");
                };
                let batch = shape::broadcast(&[m, n])
                    .map_err(|mismatch| Diagnostic::error(mismatch.code, span, mismatch.message))?;
                let mut wide = |at: usize, own: &[usize; 2]| {
                    let to: Vec<usize> = batch.iter().chain(own).copied().collect();
                    broadcast(build, array(at), &to).map(Term::Array)
                };
                Ok(Term::Tuple(vec![wide(0, a)?, wide(1, b)?]))
            }
            Helper::Epsilon => {
                let format = build.ty(array(0)).dtype().format();
                let format = format.expect("the prelude asks for the precision of floats only");
                Ok(Term::Float((-f64::from(format.mantissa)).exp2()))
            }
            Helper::Power => matrix_power::power(build, array(0), as_int(&args[1], "n")?).map(Term::Array),
            Helper::IsComplex => Ok(Term::Bool(false)),
            Helper::RealPlane => Ok(args[0].term.clone()),
            Helper::ImaginaryPlane if args[0].term.static_scalar().is_some() => Ok(Term::Int(0)),
            Helper::ImaginaryPlane => complex::zero_like(build, array(0)).map(Term::Array),
            Helper::Pair => {
                let operands: Vec<Operand<'_>> = args.iter().map(|arg| (&arg.term, arg.span)).collect();
                complex::pair(build, operands[0], operands[1])
            }
            Helper::Spectrum => {
                let mut planes = vec![array(0)];
                planes.extend(matches!(args[1].term, Term::Array(_)).then(|| array(1)));
                let axis = shape::axis(as_int(&args[2], "axis")?, build.ty(planes[0]).rank(), span)?;
                let planes = fft::spectrum(build, &planes, axis, as_bool(&args[3], "inverse")?)?;
                Ok(Term::Tuple(planes.map(Term::Array).into()))
            }
            Helper::HalfSpectrum => {
                let axis = shape::axis(as_int(&args[1], "axis")?, build.ty(array(0)).rank(), span)?;
                let planes = fft::half_spectrum(build, array(0), axis)?;
                Ok(Term::Tuple(planes.map(Term::Array).into()))
            }
            Helper::OfHalfSpectrum => {
                let planes = [array(0), array(1)];
                let axis = shape::axis(as_int(&args[2], "axis")?, build.ty(planes[0]).rank(), span)?;
                let n = usize::try_from(as_int(&args[3], "n")?).expect("the prelude has checked the number of points");
                fft::of_half_spectrum(build, planes, axis, n).map(Term::Array)
            }
            Helper::Scale => scale(&args[0], as_int(&args[1], "n")?, as_bool(&args[2], "inverse")?),
            Helper::Resized => {
                resized(build, array(0), as_int(&args[1], "n")?, as_int(&args[2], "axis")?).map(Term::Array)
            }
            Helper::Transforms => spectral::transforms(build, args),
            Helper::Drawn => draws::drawn(build, args),
            Helper::AsksComplex => Ok(draws::asks_complex(args)),
            Helper::RealType => Ok(draws::real_type(args)),
            Helper::Retyped => draws::retyped(build, args),
            Helper::Wider => draws::wider(build, args),
            Helper::Unit => draws::unit(build, args).map(Term::Array),
            Helper::LaidOut => draws::laid_out(build, args).map(Term::Array),
            Helper::Tiny => draws::tiny(build, args),
            Helper::Equals => Ok(draws::equals(args)),
            Helper::Rounds => draws::rounds(args),
            Helper::Categories => draws::categories(build, args),
            Helper::Integers => draws::integers(build, args),
            Helper::Lines => {
                let rank = build.ty(array(0)).rank();
                let axes = if let Term::Nothing = args[1].term {
                    (0..rank).collect()
                } else {
                    shape::axes(&as_ints(&args[1], "axis")?, rank, span)?
                };
                last_lines(build, array(0), &axes).map(Term::Array)
            }
            Helper::Partials => with_partials::with_partials(build, args).map(Term::Array),
            Helper::Stacked => match args[0].term.sequence() {
                Some(arrays) => stacked(build, arrays, None, args[0].span).map(Term::Array),
                None => build.materialize(&args[0].term, None, args[0].span).map(Term::Array),
            },
            Helper::IsText => {
                let Term::Str(known) = &args[1].term else { panic!("the prelude knows the strings") };
                Ok(Term::Bool(matches!(&args[0].term, Term::Str(text) if text == known)))
            }
            Helper::Polynomial => polynomial(build, array(0), &args[1]).map(Term::Array),
            Helper::Require => {
                let (Term::Bool(holds), Term::Str(message)) = (&args[0].term, &args[1].term) else {
                    panic!("the prelude requires what is known at compile time");
                };
                if *holds { Ok(Term::Tuple(Vec::new())) } else { Err(Diagnostic::error(Code::E0205, span, message)) }
            }
        }
    }
}

impl Helper {
    /// The result of a call with complex numbers.
    fn of_complex(self, args: &[Arg], build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let span = build.span();
        // By planes, of which the imaginary one does not matter for a shape.
        let real = |build: &mut CallBuilder| -> Result<Vec<Arg>, Diagnostic> {
            let plane = |arg: &Arg| Ok(Arg { term: complex::planes(build, &arg.term)?[0].clone(), ..arg.clone() });
            args.iter().map(plane).collect()
        };
        match self {
            Helper::IsComplex => Ok(Term::Bool(true)),
            Helper::IsNone | Helper::IsNumber | Helper::IsFloat => Ok(Term::Bool(false)),
            Helper::AsFloat | Helper::Widened => Ok(args[0].term.clone()),
            Helper::RealPlane => Ok(complex::planes(build, &args[0].term)?[0].clone()),
            Helper::ImaginaryPlane => Ok(complex::planes(build, &args[0].term)?[1].clone()),
            Helper::Transforms => spectral::transforms(build, args),
            Helper::Count | Helper::Mask | Helper::SameShape | Helper::Epsilon => {
                let args = real(build)?;
                self.call(&args, build)
            }
            Helper::Common => {
                let operands: Vec<Operand<'_>> = args.iter().map(|arg| (&arg.term, arg.span)).collect();
                complex::promoted(build, &operands).map(Term::Tuple)
            }
            Helper::Along | Helper::Matched | Helper::Resized => {
                let mut results = Vec::new();
                for plane in 0..2 {
                    // Sizes and dimensions are the same for both planes.
                    let of_plane = |arg: &Arg| -> Result<Arg, Diagnostic> {
                        let is_array = matches!(arg.term, Term::Complex(_) | Term::Array(_));
                        let term =
                            if is_array { complex::planes(build, &arg.term)?[plane].clone() } else { arg.term.clone() };
                        Ok(Arg { term, ..arg.clone() })
                    };
                    let args = args.iter().map(of_plane).collect::<Result<Vec<Arg>, Diagnostic>>()?;
                    results.push(self.call(&args, build)?);
                }
                let im = results.pop().expect("there are two planes");
                Ok(joined(results.remove(0), im))
            }
            Helper::Limit
            | Helper::Power
            | Helper::Pair
            | Helper::Spectrum
            | Helper::HalfSpectrum
            | Helper::OfHalfSpectrum
            | Helper::Scale
            | Helper::Drawn
            | Helper::AsksComplex
            | Helper::RealType
            | Helper::Retyped
            | Helper::Wider
            | Helper::Unit
            | Helper::LaidOut
            | Helper::Tiny
            | Helper::Equals
            | Helper::Rounds
            | Helper::Categories
            | Helper::Integers
            | Helper::Lines
            | Helper::Partials
            | Helper::Polynomial
            | Helper::IsText
            | Helper::Stacked
            | Helper::Require => Err(not_real(span)),
        }
    }
}

/// The polynomial with these coefficients, the one of the highest power first.
fn polynomial(build: &mut CallBuilder, x: Value, coefficients: &Arg) -> Result<Value, Diagnostic> {
    let dtype = build.ty(x).dtype();
    let mut sum = None;
    for term in coefficients.term.sequence().expect("the prelude gives a list") {
        let number = term.number().expect("the prelude gives numbers");
        let coefficient = build.emit1(Constant::float(dtype, number), &[])?;
        sum = Some(match sum {
            Some(sum) => build.emit1(Fma, &[x, sum, coefficient])?,
            None => coefficient,
        });
    }
    Ok(sum.expect("a polynomial has coefficients"))
}

/// A value that has a shape of these sizes already, or the sizes of the dimensions `axis` in their order: then in a shape with these
/// sizes there, and 1 elsewhere.
fn along(build: &mut CallBuilder, value: Value, sizes: &[usize], axis: &Arg, span: Span) -> Result<Value, Diagnostic> {
    let own = build.ty(value).shape().to_vec();
    if own == sizes {
        return Ok(value);
    }
    let found = shape::display(&own);
    if let Term::Nothing = axis.term {
        let message = format!("an array of shape {found} does not match the shape {}", shape::display(sizes));
        return Err(
            Diagnostic::error(Code::E0205, span, message).help("pass `axis` to select the dimensions it belongs to")
        );
    }
    let axes = shape::axes(&as_ints(axis, "axis")?, sizes.len(), span)?;
    if !own.iter().copied().eq(axes.iter().map(|&axis| sizes[axis])) {
        let (axes, sizes) = (shape::tuple(&axes), shape::display(sizes));
        let message = format!("an array of shape {found} does not match dimensions {axes} of the shape {sizes}");
        return Err(Diagnostic::error(Code::E0205, span, message));
    }
    // In the order of the array's dimensions.
    let mut order: Vec<usize> = (0..axes.len()).collect();
    order.sort_by_key(|&at| axes[at]);
    let value = if order.is_sorted() { value } else { transpose(build, value, &order)? };
    let wide: Vec<usize> =
        sizes.iter().enumerate().map(|(dim, &size)| if axes.contains(&dim) { size } else { 1 }).collect();
    reshape(build, value, &wide)
}
