//! JAX's generator of random bits, Threefry: its calls become calls of the language's generator, which gives the same bits.
//!
//! JAX counts the elements in row-major order with 64 bits, enciphers the two halves of each number under a key, and combines the words by
//! `xor`. The upper half is zero for fewer than 2^32 elements. Then `fold_in` gives the words, and `bits` their `xor`.

use super::{FunctionReader, MlirValue, ValueForm, at};
use crate::cursor::Read;
use crate::tree::{Attribute, Dense, DenseNumber, MlirElement, MlirFunction, MlirOp, TensorType};
use spmdc_grammar::ast::IndexNode;

/// The constant of the key schedule.
const SCHEDULE: i128 = 0x1BD1_1BDA;

/// The rotations of the rounds.
const ROTATIONS: [i128; 8] = [13, 15, 26, 6, 17, 29, 16, 24];

impl FunctionReader<'_> {
    /// Whether a call enciphers numbers below 2^32 with Threefry; then it is done.
    pub(super) fn threefry(&mut self, operation: &MlirOp, callee: &str) -> Read<bool> {
        let is_cipher = self.context.functions.get(callee).is_some_and(|function| is_threefry(function));
        let operands = self.all_operands(operation)?;
        let [first, second, upper, lower] = operands.as_slice() else { return Ok(false) };
        if !is_cipher || !upper.is_number(0) || Self::result_names(operation).len() != 2 {
            return Ok(false);
        }
        let build = at(operation);
        let pair = build.list(vec![first.expr.clone(), second.expr.clone()]);
        let words = match (&first.form, &second.form) {
            // Both words of one key.
            (ValueForm::Element(of, 0), ValueForm::Element(other, 1))
                if of.shape == [2] && of.expr.kind == other.expr.kind =>
            {
                of.expr.clone()
            }
            _ if first.ty.rank() == 0 && second.ty.rank() == 0 => pair,
            _ => build.call_with("stack", [pair], [("axis", build.int(-1))]),
        };
        let key = self.variable(build, "draw_key", build.call("wrap_key_data", [words]));
        let folded = build.call("fold_in", [key.clone(), lower.expr.clone()]);
        let words = self.variable(build, "words", build.call("key_data", [folded]));
        let is_counted =
            first.ty.rank() == 0 && lower.counter.as_ref().is_some_and(|strides| *strides == row_major(&lower.ty));
        for (word, (name, ty)) in Self::result_names(operation).into_iter().zip(&operation.types).enumerate() {
            let mut items = vec![IndexNode::Expr(build.int(word as i128))];
            if ty.rank() > 0 {
                items.insert(0, IndexNode::Ellipsis(build.0));
            }
            let expr = self.variable(build, "word", build.index(words.clone(), items));
            let form = if is_counted { ValueForm::Drawn(key.clone(), word) } else { ValueForm::Other };
            self.values.insert(name, MlirValue { form, ..MlirValue::new(expr, ty.clone()) });
        }
        Ok(true)
    }

    /// Whether an operation combines both words of all elements that a key gives; then it is done.
    pub(super) fn drawn_bits(&mut self, operation: &MlirOp) -> Read<bool> {
        if operation.name != "stablehlo.xor" {
            return Ok(false);
        }
        let operands = self.all_operands(operation)?;
        let [x, y] = operands.as_slice() else { return Ok(false) };
        let (ValueForm::Drawn(key, one), ValueForm::Drawn(other, two)) = (&x.form, &y.form) else { return Ok(false) };
        if key.kind != other.kind || one == two {
            return Ok(false);
        }
        let build = at(operation);
        self.emit(operation, build.call("bits", [key.clone(), build.type_value(&x.ty)]))?;
        Ok(true)
    }

    /// Notes the results that count elements, each with the distance between elements along each dimension.
    pub(super) fn note_counter(&mut self, operation: &MlirOp) -> Read<()> {
        let names = Self::result_names(operation);
        let ([name], [ty]) = (names.as_slice(), operation.types.as_slice()) else { return Ok(()) };
        let operands = match operation.name.as_str() {
            "stablehlo.iota" => Vec::new(),
            "stablehlo.multiply" | "stablehlo.add" | "stablehlo.convert" | "stablehlo.shift_right_logical" => {
                self.all_operands(operation)?
            }
            _ => return Ok(()),
        };
        let counter = |value: &MlirValue| value.counter.clone();
        let number = |value: &MlirValue| match value.splat() {
            Some(DenseNumber::Int(number)) => Some(*number),
            Some(DenseNumber::Decimal(_) | DenseNumber::Bits(_)) | None => None,
        };
        let mut is_zero = false;
        let strides = match (operation.name.as_str(), operands.as_slice()) {
            ("stablehlo.iota", []) => {
                let along = self.values.get(name).and_then(|value| value.counts_along);
                along.map(|along| (0..ty.rank()).map(|dim| i128::from(dim == along)).collect())
            }
            ("stablehlo.multiply", [x, y]) => {
                let scaled = |x: &MlirValue, y: &MlirValue| {
                    let factor = number(y)?;
                    counter(x)?.iter().map(|stride| stride.checked_mul(factor)).collect::<Option<Vec<i128>>>()
                };
                scaled(x, y).or_else(|| scaled(y, x))
            }
            ("stablehlo.add", [x, y]) => counter(x).zip(counter(y)).map(|(x, y)| sums(&x, &y)),
            ("stablehlo.convert", [x]) => {
                is_zero = x.ty.element.is_integer() && x.is_number(0);
                counter(x)
            }
            ("stablehlo.shift_right_logical", [x, y]) => {
                is_zero = number(y) == Some(32) && counter(x).is_some();
                None
            }
            _ => None,
        };
        let is_integer = matches!(ty.element, MlirElement::Signed(32 | 64) | MlirElement::Unsigned(32 | 64));
        let Some(value) = self.values.get_mut(name).filter(|_| is_integer) else { return Ok(()) };
        value.counter = strides.filter(|strides| fits(strides, ty));
        if is_zero {
            value.constant = Some(Dense { ty: ty.clone(), elements: vec![DenseNumber::Int(0)] });
        }
        Ok(())
    }
}

/// The distances between elements in row-major order.
fn row_major(ty: &TensorType) -> Vec<i128> {
    (0..ty.rank()).map(|dim| ty.shape[dim + 1..].iter().map(|&size| size as i128).product()).collect()
}

fn sums(x: &[i128], y: &[i128]) -> Vec<i128> {
    x.iter().zip(y).map(|(x, y)| x.saturating_add(*y)).collect()
}

/// Whether all numbers that count with these strides are below 2^31, so that no integer type changes them.
fn fits(strides: &[i128], ty: &TensorType) -> bool {
    let last = |(stride, size): (&i128, &usize)| stride.checked_mul((*size).max(1) as i128 - 1);
    let lasts: Option<Vec<i128>> = strides.iter().zip(&ty.shape).map(last).collect();
    let sum = lasts.and_then(|lasts| lasts.into_iter().try_fold(0i128, i128::checked_add));
    strides.iter().all(|&stride| stride >= 0) && sum.is_some_and(|sum| sum < 1 << 31)
}

/// Whether a function is the cipher: it has its name, its parameters and the constants of its rounds.
fn is_threefry(function: &MlirFunction) -> bool {
    let is_word = |ty: &TensorType| ty.element == MlirElement::Unsigned(32);
    let has_types = function.params.len() == 4
        && function.params.iter().all(|param| is_word(&param.ty))
        && function.params[0].ty == function.params[1].ty
        && function.results.len() == 2
        && function.results.iter().all(|(ty, _)| is_word(ty));
    let mut numbers = Vec::new();
    constants(&function.body, &mut numbers);
    let has_constants = numbers.contains(&SCHEDULE) && ROTATIONS.iter().all(|rotation| numbers.contains(rotation));
    function.name.starts_with("threefry2x32") && has_types && has_constants
}

/// The integers in the constants of a body.
fn constants(body: &[MlirOp], numbers: &mut Vec<i128>) {
    for operation in body {
        if let Some(Attribute::Dense(dense)) = operation.attributes.get("value") {
            numbers.extend(dense.elements.iter().filter_map(|number| match number {
                DenseNumber::Int(number) => Some(*number),
                DenseNumber::Decimal(_) | DenseNumber::Bits(_) => None,
            }));
        }
        operation.regions.iter().for_each(|region| constants(&region.body, numbers));
    }
}
