//! Arrays as text, exactly as `str(numpy.array(...))` writes them.
//!
//! ```
//! use spmdc_abi::DType;
//! use spmdc_runtime::{data::array::HostArray, text::show};
//! let bytes = [1.5f32, 2.0, -0.25].iter().flat_map(|x| x.to_ne_bytes()).collect();
//! let array = HostArray { dtype: DType::F32, shape: vec![3], bytes };
//! assert_eq!(show::format(&array), "[ 1.5   2.   -0.25]");
//! ```
//!
//! The rules are NumPy's default print options. Numbers have the shortest digits that read back as the same number, at most 8 of them after
//! the point. All elements shown have one common form (with or without exponent), decided by their range. Columns are aligned, and lines
//! have at most 75 characters. If there are more than 1000 elements, only the edges are shown. A float that NumPy does not have, such as
//! `bf16`, is written as the `ml_dtypes` package writes it: each element by itself, with up to six digits. A key is two `u32`.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::data::array::ArrayView;
use spmdc_abi::{DType, Form, Kind, Spec, Width};

/// The reason why there is an exponent to read.
const EXPONENT: &str = "a finite number written so has an exponent";
const LINE_WIDTH: usize = 75;
/// Maximum number of elements of an array that is shown whole; of a larger one only the edges of each dimension are shown.
const THRESHOLD: usize = 1000;
const EDGE_ITEMS: usize = 3;
/// Maximum number of digits after the decimal point.
const PRECISION: usize = 8;

/// The array in NumPy's format, without a newline at the end.
pub fn format<'a>(array: impl Into<ArrayView<'a>>) -> String {
    formatted(array, &Spec::default())
}

/// The array with each of its elements formatted by `spec`; unspecified properties follow NumPy.
pub fn formatted<'a>(array: impl Into<ArrayView<'a>>, spec: &Spec) -> String {
    let array = array.into();
    let mut shape = array.shape.to_vec();
    let mut dtype = array.dtype;
    if dtype == DType::Key {
        shape.push(2);
        dtype = DType::U32;
    }
    let step = if array.complex { 2 } else { 1 };
    let elements = ShownElements { dtype, bytes: array.bytes, step, offset: 0 };
    let count: usize = shape.iter().product();
    if spec.form == Form::Characters {
        return characters(&elements, &shape);
    }
    debug_assert_eq!(array.bytes.len(), count * step * dtype.size(), "the array has all its elements");
    if shape.is_empty() {
        return if array.complex {
            complex_scalar(&elements, spec)
        } else {
            asked(&elements, 0, spec, || scalar(&elements))
        };
    }
    if count == 0 {
        return "[]".to_string();
    }
    let summarise = count > THRESHOLD;
    let mut shown = Vec::new();
    collect_shown(&shape, 0, summarise, &mut shown);
    debug_assert!(shown.is_sorted() && shown.iter().all(|&index| index < count), "elements are shown in order");
    let mut format = match array.complex {
        true => Format::Complex(Box::new([
            Format::choose(&elements, &shown, false),
            Format::choose(&elements.imaginary(), &shown, true),
        ])),
        false => Format::choose(&elements, &shown, false),
    };
    if (Spec { complex: false, ..spec.clone() }) != Spec::default() {
        let text = |&index: &usize| {
            if let Format::Complex(planes) = &format {
                return complex_text(&elements, index, spec, planes);
            }
            asked(&elements, index, spec, || format.write(&elements, index))
        };
        let mut texts = BTreeMap::new();
        texts.extend(shown.iter().map(|index| (*index, text(index))));
        let width = texts.values().map(|text| text.chars().count()).max().unwrap_or(0);
        format = Format::Asked { texts, width };
    }
    let layout = Page { elements: &elements, format: &format, shape: &shape, summarise };
    layout.write(0, 0, " ", LINE_WIDTH)
}

/// Integers as characters; the last dimension is a line. Bytes are UTF-8. Control characters would change the terminal, so they are replaced,
/// except for ends of lines and tabs.
fn characters(elements: &ShownElements, shape: &[usize]) -> String {
    let length = shape.last().copied().unwrap_or(1);
    let count: usize = shape.iter().product();
    let line = |start: usize| -> String {
        let numbers = (start..start + length).map(|index| elements.integer(index));
        let text: String = if elements.dtype == DType::U8 {
            String::from_utf8_lossy(&numbers.map(|number| number as u8).collect::<Vec<u8>>()).into_owned()
        } else {
            let character = |number: i128| u32::try_from(number).ok().and_then(char::from_u32);
            numbers.map(|number| character(number).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        };
        let is_kept = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
        text.chars().map(|c| if is_kept(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
    };
    if length == 0 {
        return String::new();
    }
    (0..count).step_by(length).map(line).collect::<Vec<String>>().join("\n")
}

/// The lines that show a result on standard output: its type (after its name, if there are several), then its value.
pub fn result<'a>(name: Option<&str>, ty: &str, array: impl Into<ArrayView<'a>>) -> String {
    let value = format(array);
    match name {
        Some(name) => format!("{name}: {ty}\n{value}\n"),
        None => format!("{ty}\n{value}\n"),
    }
}

/// The row-major indices of the elements that will be written.
fn collect_shown(shape: &[usize], base: usize, summarise: bool, shown: &mut Vec<usize>) {
    let Some((&len, inner)) = shape.split_first() else {
        shown.push(base);
        return;
    };
    let stride: usize = inner.iter().product();
    for i in shown_positions(len, summarise).into_iter().flatten() {
        collect_shown(inner, base + i * stride, summarise, shown);
    }
}

/// The positions along one dimension that are written; `None` represents `...`.
fn shown_positions(len: usize, summarise: bool) -> Vec<Option<usize>> {
    if summarise && len > 2 * EDGE_ITEMS {
        let first = (0..EDGE_ITEMS).map(Some);
        first.chain([None]).chain((len - EDGE_ITEMS..len).map(Some)).collect()
    } else {
        (0..len).map(Some).collect()
    }
}

#[derive(Clone, Copy)]
struct ShownElements<'a> {
    dtype: DType,
    bytes: &'a [u8],
    /// The numbers from one element to the next: 2 where they are complex.
    step: usize,
    /// 1 for imaginary parts.
    offset: usize,
}

impl ShownElements<'_> {
    /// The imaginary parts of complex elements.
    fn imaginary(self) -> Self {
        ShownElements { offset: 1, ..self }
    }

    /// The bits of an element.
    fn bits(&self, index: usize) -> u64 {
        let size = self.dtype.size();
        let index = index * self.step + self.offset;
        let mut raw = [0; 8];
        raw[..size].copy_from_slice(&self.bytes[index * size..(index + 1) * size]);
        u64::from_le_bytes(raw)
    }

    /// An element of an integer type or bool.
    fn integer(&self, index: usize) -> i128 {
        let bits = self.bits(index);
        match (self.dtype.kind(), self.dtype.width()) {
            (Kind::Bool, _) => i128::from(bits != 0),
            (Kind::Signed, Width::W8) => (bits as i8).into(),
            (Kind::Signed, Width::W16) => (bits as i16).into(),
            (Kind::Signed, Width::W32) => (bits as i32).into(),
            (Kind::Signed, Width::W64) => (bits as i64).into(),
            (Kind::Unsigned | Kind::Key, _) => bits.into(),
            (Kind::Float, _) => self.float(index) as i128,
        }
    }

    /// An element of a float type; `f64` holds all of them exactly.
    fn float(&self, index: usize) -> f64 {
        match self.dtype.kind() {
            Kind::Float => self.dtype.widen(self.bits(index)),
            Kind::Bool | Kind::Signed | Kind::Unsigned | Kind::Key => self.integer(index) as f64,
        }
    }
}

/// The common format of the elements of one array.
enum Format {
    Bool,
    /// Right-aligned in this width.
    Integer(usize),
    /// Without an exponent: the widths before and after the point, and whether positive numbers have a sign.
    Fixed {
        left: usize,
        right: usize,
        plus: bool,
    },
    /// With an exponent: the width before the point, the digits after it, the digits of the exponent.
    Exponent {
        left: usize,
        digits: usize,
        exponent: usize,
        right: usize,
        plus: bool,
    },
    /// The real and the imaginary parts.
    Complex(Box<[Format; 2]>),
    /// Each element separately, not aligned.
    Brief,
    /// The text of each shown element, padded to the widest one.
    Asked {
        texts: BTreeMap<usize, String>,
        width: usize,
    },
}

impl Format {
    fn choose(elements: &ShownElements, shown: &[usize], plus: bool) -> Format {
        match elements.dtype.kind() {
            Kind::Bool => Format::Bool,
            Kind::Float if elements.dtype.is_foreign_to_numpy() => Format::Brief,
            Kind::Float => Format::for_floats(elements, shown, plus),
            Kind::Signed | Kind::Unsigned | Kind::Key => {
                let width = shown.iter().map(|&i| elements.integer(i).to_string().len()).max();
                Format::Integer(width.unwrap_or(0))
            }
        }
    }

    fn for_floats(elements: &ShownElements, shown: &[usize], plus: bool) -> Format {
        let dtype = elements.dtype;
        let values: Vec<f64> = shown.iter().map(|&i| elements.float(i)).collect();
        let finite: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
        let nonzero = finite.iter().copied().filter(|&x| x != 0.0).map(f64::abs);
        let (least, largest) = nonzero.fold((f64::INFINITY, 0.0), |(lo, hi), x| (x.min(lo), x.max(hi)));
        let has_nonzero = largest > 0.0;
        let with_exponent = has_nonzero
            && (largest >= exponent_from(dtype)
                || least < round_to(1e-4, dtype)
                || round_to(largest / least, dtype) > 1000.0);
        let mut format = if finite.is_empty() {
            Format::Fixed { left: 0, right: 0, plus }
        } else if with_exponent {
            let texts: Vec<String> =
                finite.iter().map(|&x| signed(with_exponent_text(x, dtype, PRECISION, false, 0), plus)).collect();
            let part = |text: &str| {
                let (mantissa, exponent) = text.split_once('e').unwrap_or((text, ""));
                let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
                (before.len(), after.len(), exponent.len().saturating_sub(1))
            };
            let widths = texts.iter().map(|text| part(text));
            let (left, digits, exponent) =
                widths.fold((0, 0, 0), |most, w| (most.0.max(w.0), most.1.max(w.1), most.2.max(w.2)));
            Format::Exponent { left, digits, exponent, right: exponent + 2 + digits, plus }
        } else {
            let widths = finite.iter().map(|&x| {
                let text = signed(fixed_text(x, dtype, Some(PRECISION)), plus);
                let point = text.find('.').unwrap_or(text.len());
                (point, text.len().saturating_sub(point + 1))
            });
            let (left, right) = widths.fold((0, 0), |most, w| (most.0.max(w.0), most.1.max(w.1)));
            Format::Fixed { left, right, plus }
        };
        // `nan` and `inf` are as wide as a number, including the point.
        let mut widest = 0;
        if values.len() != finite.len() {
            widest = if plus || values.contains(&f64::NEG_INFINITY) { 4 } else { 3 };
        }
        if let Format::Fixed { left, right, .. } | Format::Exponent { left, right, .. } = &mut format {
            *left = (*left).max(usize::saturating_sub(widest, *right + 1));
        }
        format
    }

    fn write(&self, elements: &ShownElements, index: usize) -> String {
        match *self {
            Format::Asked { ref texts, width } => format!("{:>width$}", texts.get(&index).map_or("", String::as_str)),
            Format::Bool => if elements.integer(index) != 0 { " True" } else { "False" }.to_string(),
            Format::Integer(width) => format!("{:>width$}", elements.integer(index)),
            Format::Brief => brief_text(elements.float(index)),
            Format::Complex(ref planes) => {
                let imaginary = planes[1].write(&elements.imaginary(), index);
                let text = imaginary.trim_end();
                format!("{}{text}j{}", planes[0].write(elements, index), &imaginary[text.len()..])
            }
            Format::Fixed { left, right, plus } => {
                let x = elements.float(index);
                if !x.is_finite() {
                    let text = signed(not_finite_text(x).to_string(), plus);
                    return format!("{text:>width$}", width = left + 1 + right);
                }
                let text = signed(fixed_text(x, elements.dtype, Some(PRECISION)), plus);
                let (before, after) = text.split_once('.').unwrap_or((&text, ""));
                format!("{before:>left$}.{after:<right$}")
            }
            Format::Exponent { left, digits, exponent, right, plus } => {
                let x = elements.float(index);
                if !x.is_finite() {
                    let text = signed(not_finite_text(x).to_string(), plus);
                    return format!("{text:>width$}", width = left + 1 + right);
                }
                let text = signed(with_exponent_text(x, elements.dtype, digits, true, exponent), plus);
                let point = text.find('.').unwrap_or(text.len());
                format!("{:pad$}{text}", "", pad = left.saturating_sub(point))
            }
        }
    }
}

/// Arrays of the type with an element of at least this magnitude are written with exponents.
fn exponent_from(dtype: DType) -> f64 {
    match dtype.width() {
        Width::W8 | Width::W16 => 1e3,
        Width::W32 => 1e6,
        Width::W64 => 1e8,
    }
}

/// Scalars of the type of at least this magnitude are written with an exponent.
fn scalar_exponent_from(dtype: DType) -> f64 {
    match dtype.width() {
        Width::W8 | Width::W16 => 1e3,
        Width::W32 => 1e6,
        Width::W64 => 1e16,
    }
}

/// The nearest value of the float type: NumPy compares in the array's own type.
fn round_to(x: f64, dtype: DType) -> f64 {
    dtype.widen(dtype.narrow(x))
}

fn not_finite_text(x: f64) -> &'static str {
    if x.is_nan() {
        "nan"
    } else if x < 0.0 {
        "-inf"
    } else {
        "inf"
    }
}

/// The shortest decimal digits that read back as `x` in its type, and the exponent of the first: 0.25 is ("25", -1).
fn shortest_digits(x: f64, dtype: DType) -> (String, i32) {
    let text = match dtype.width() {
        Width::W8 | Width::W16 if !dtype.is_foreign_to_numpy() => {
            let reads_back = |text: &String| text.parse().is_ok_and(|y: f64| round_to(y, dtype) == x);
            let texts = (0..8).map(|digits| format!("{x:.digits$e}"));
            texts.into_iter().find(reads_back).unwrap_or_else(|| format!("{x:e}"))
        }
        Width::W32 => format!("{:e}", x as f32),
        Width::W8 | Width::W16 | Width::W64 => format!("{x:e}"),
    };
    let (mantissa, exponent) = text.split_once('e').expect(EXPONENT);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    (digits, exponent.parse().expect(EXPONENT))
}

/// `x` without an exponent: the shortest digits, but at most `precision` after the point (rounded from the exact value);
/// always with a point, never with zeros at the end.
fn fixed_text(x: f64, dtype: DType, precision: Option<usize>) -> String {
    let sign = if x.is_sign_negative() { "-" } else { "" };
    let x = x.abs();
    let (digits, exponent) = shortest_digits(x, dtype);
    let after = usize::try_from(digits.len() as i32 - 1 - exponent).unwrap_or(0);
    if let Some(precision) = precision.filter(|&precision| after > precision) {
        let rounded = format!("{x:.precision$}");
        return format!("{sign}{}", rounded.trim_end_matches('0'));
    }
    let mut text = String::from(sign);
    if exponent < 0 {
        text.push_str("0.");
        text.extend(std::iter::repeat_n('0', (-1 - exponent) as usize));
        text.push_str(digits.trim_end_matches('0'));
    } else {
        let whole = exponent as usize + 1;
        let padded = format!("{digits:0<whole$}");
        let _ = write!(text, "{}.{}", &padded[..whole], padded[whole..].trim_end_matches('0'));
    }
    text
}

/// `x` with an exponent of at least `exponent_width` digits, and a point: the shortest digits, but at most `precision` after
/// the point, zeros at the end dropped. With `exact`, precisely that many, even where fewer would tell `x` apart.
fn with_exponent_text(x: f64, dtype: DType, precision: usize, exact: bool, exponent_width: usize) -> String {
    let sign = if x.is_sign_negative() { "-" } else { "" };
    let x = x.abs();
    let (mut digits, mut exponent) = shortest_digits(x, dtype);
    if digits.len() > precision + 1 || exact {
        let rounded = format!("{x:.precision$e}");
        let (mantissa, rounded_exponent) = rounded.split_once('e').expect(EXPONENT);
        digits = mantissa.chars().filter(char::is_ascii_digit).collect();
        exponent = rounded_exponent.parse().expect(EXPONENT);
    }
    let (first, mut rest) = digits.split_at(1);
    if !exact {
        rest = rest.trim_end_matches('0');
    }
    let width = exponent_width.max(2);
    let exponent_sign = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{first}.{rest}e{exponent_sign}{:0width$}", exponent.unsigned_abs())
}

/// The text with a sign: one for positive numbers, too, if `plus`.
fn signed(text: String, plus: bool) -> String {
    if plus && !text.starts_with(['-', '+']) { format!("+{text}") } else { text }
}

/// A complex element formatted by a specification, its parts one after the other.
fn complex_text(elements: &ShownElements, index: usize, spec: &Spec, planes: &[Format; 2]) -> String {
    let of_part = Spec { width: 0, zeros: false, complex: false, ..spec.clone() };
    let imaginary = elements.imaginary();
    let re = asked(elements, index, &of_part, || planes[0].write(elements, index));
    let im = asked(&imaginary, index, &Spec { plus: true, ..of_part }, || planes[1].write(&imaginary, index));
    spec.pad(format!("{}{}j", re.trim(), signed(im.trim().to_string(), true)), true)
}

/// A complex scalar in the format of NumPy's `str`, such as `(1+2j)`, or formatted by a specification.
fn complex_scalar(elements: &ShownElements, spec: &Spec) -> String {
    let imaginary = elements.imaginary();
    let plain = |elements: &ShownElements| {
        let text = scalar(elements);
        text.strip_suffix(".0").map_or(text.clone(), str::to_string)
    };
    if spec.precision.is_some() || spec.form != Form::Plain {
        let planes = [Format::Brief, Format::Brief];
        return complex_text(elements, 0, spec, &planes);
    }
    let (re, im) = (plain(elements), plain(&imaginary));
    let text = match elements.bits(0) {
        // The real part 0 is left out.
        0 => format!("{im}j"),
        _ => format!("({re}{}j)", signed(im, true)),
    };
    spec.pad(text, true)
}

/// An element formatted by a format specification; unspecified properties follow `plain`.
fn asked(elements: &ShownElements, index: usize, spec: &Spec, plain: impl Fn() -> String) -> String {
    let dtype = elements.dtype;
    let text = match (dtype.is_float(), spec.form, spec.precision) {
        _ if dtype == DType::Bool => plain(),
        (false, Form::Exponent, None) => format!("{:e}", elements.integer(index)),
        (false, Form::Exponent, Some(digits)) => format!("{:.digits$e}", elements.integer(index)),
        (false, Form::Plain | Form::Type | Form::Characters | Form::Picture, _) => plain(),
        (true, form, precision) => {
            let x = elements.float(index);
            match (form, precision) {
                _ if !x.is_finite() => not_finite_text(x).to_string(),
                (Form::Exponent, Some(digits)) => format!("{x:.digits$e}"),
                (Form::Exponent, None) => {
                    let (digits, exponent) = shortest_digits(x, dtype);
                    let sign = if x.is_sign_negative() { "-" } else { "" };
                    let (first, rest) = digits.split_at(1);
                    let point = if rest.is_empty() { "" } else { "." };
                    format!("{sign}{first}{point}{rest}e{exponent}")
                }
                (Form::Plain | Form::Type | Form::Characters | Form::Picture, Some(digits)) => format!("{x:.digits$}"),
                (Form::Plain | Form::Type | Form::Characters | Form::Picture, None) => plain(),
            }
        }
    };
    if *spec == Spec::default() {
        return text;
    }
    let text = text.trim().to_string();
    let is_number = dtype != DType::Bool;
    let sign = if spec.plus && is_number && !text.starts_with(['-', 'n']) { "+" } else { "" };
    spec.pad(format!("{sign}{text}"), is_number)
}

/// A scalar in the format of NumPy's `str`.
fn scalar(elements: &ShownElements) -> String {
    match elements.dtype.kind() {
        Kind::Bool => if elements.integer(0) != 0 { "True" } else { "False" }.to_string(),
        Kind::Float if elements.dtype.is_foreign_to_numpy() => brief_text(elements.float(0)),
        Kind::Float => {
            let x = elements.float(0);
            if !x.is_finite() {
                return not_finite_text(x).to_string();
            }
            let dtype = elements.dtype;
            if x == 0.0 || (1e-4..scalar_exponent_from(dtype)).contains(&x.abs()) {
                let text = fixed_text(x, dtype, None);
                return if text.ends_with('.') { text + "0" } else { text };
            }
            with_exponent_text(x, dtype, 20, false, 0).replace(".e", "e")
        }
        Kind::Signed | Kind::Unsigned | Kind::Key => elements.integer(0).to_string(),
    }
}

/// Six significant digits, like C's `%g`.
pub(super) fn brief_text(x: f64) -> String {
    if !x.is_finite() {
        return not_finite_text(x).to_string();
    }
    if x == 0.0 {
        return if x.is_sign_negative() { "-0" } else { "0" }.to_string();
    }
    let rounded = format!("{x:.5e}");
    let (mantissa, exponent) = rounded.split_once('e').expect(EXPONENT);
    let exponent: i32 = exponent.parse().expect(EXPONENT);
    if (-4..6).contains(&exponent) {
        let text = format!("{x:.digits$}", digits = (5 - exponent) as usize);
        return if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text };
    }
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// The layout of the elements: brackets, lines, `...`.
struct Page<'a> {
    elements: &'a ShownElements<'a>,
    format: &'a Format,
    shape: &'a [usize],
    summarise: bool,
}

impl Page<'_> {
    /// The sub-array from element `base` on, of dimension `axis` and below; lines after the first begin with `indent`.
    fn write(&self, axis: usize, base: usize, indent: &str, width: usize) -> String {
        let inner = &self.shape[axis + 1..];
        let stride: usize = inner.iter().product();
        let positions = shown_positions(self.shape[axis], self.summarise);
        if inner.is_empty() {
            let words = positions.iter().map(|position| match position {
                Some(i) => self.format.write(self.elements, base + i),
                None => "...".to_string(),
            });
            return format!("[{}]", wrap(words, indent, width - 1));
        }
        let gap = "\n".repeat(inner.len()) + indent;
        let deeper = format!("{indent} ");
        let rows: Vec<String> = positions
            .iter()
            .map(|position| match position {
                Some(i) => self.write(axis + 1, base + i * stride, &deeper, width - 1),
                None => "...".to_string(),
            })
            .collect();
        format!("[{}]", rows.join(&gap))
    }
}

/// Wraps words into lines of at most `width` characters; the first line omits its indent.
fn wrap(words: impl Iterator<Item = String>, indent: &str, width: usize) -> String {
    let mut text = String::new();
    let mut line = indent.to_string();
    for (i, word) in words.enumerate() {
        if i > 0 {
            line.push(' ');
        }
        // Breaking an empty line gains nothing.
        if line.len() + word.len() > width && line.len() > indent.len() {
            text.push_str(line.trim_end());
            text.push('\n');
            line = indent.to_string();
        }
        line.push_str(&word);
    }
    text.push_str(&line);
    text.split_off(indent.len())
}
