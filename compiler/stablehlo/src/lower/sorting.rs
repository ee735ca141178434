//! Sorts: the keys that a comparator compares.

use super::bits::is_nan;
use super::reductions::is_identity;
use super::{FunctionReader, at, ints, malformed, unsupported};
use crate::build::Build;
use crate::cursor::Read;
use crate::tree::{Attribute, Dense, MlirBlock, MlirFunction, MlirOp, ValueName};
use spmdc_grammar::ast::Expr;
use std::collections::BTreeMap;

impl FunctionReader<'_> {
    pub(super) fn sort(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let operands = self.all_operands(operation)?;
        let axis = super::shapes::first_of(operation, &["dimension"])?;
        let Some(region) = operation.regions.first() else {
            return Err(malformed(operation, "a sort has a comparator"));
        };
        if operands.is_empty() || region.params.len() != 2 * operands.len() {
            return Err(malformed(operation, "a comparator has two parameters for each operand"));
        }
        let keys = self.sort_keys(region).ok_or_else(|| unsupported(operation, "with this comparator"))?;
        let axis_node = || build.int(axis as i128);
        if let ([x], [SortKey { part: KeyPart::Whole, is_descending, .. }]) = (operands.as_slice(), keys.as_slice()) {
            let named = [("axis", axis_node()), ("descending", build.flag(*is_descending))];
            return self.emit(operation, build.call_with("sort", [x.expr.clone()], named));
        }
        let of_key = |key: &SortKey| key.part.of(build, operands[key.operand].expr.clone());
        let order = match keys.as_slice() {
            [key] => {
                let named = [("axis", axis_node()), ("descending", build.flag(key.is_descending))];
                build.call_with("argsort", [of_key(key)], named)
            }
            keys if keys.iter().all(|key| !key.is_descending) => {
                let keys = keys.iter().rev().map(of_key).collect();
                build.call_with("lexsort", [build.tuple(keys)], [("axis", axis_node())])
            }
            _ => return Err(unsupported(operation, "by several keys in descending order")),
        };
        let order = self.variable(build, "order", order);
        let mut sorted = Vec::new();
        for operand in &operands {
            sorted.push(match operand.counts_along {
                Some(dim) if dim == axis => build.cast(operand.ty.element, order.clone()),
                _ => build.call_with("take_along_axis", [operand.expr.clone(), order.clone()], [("axis", axis_node())]),
            });
        }
        let result = build.together(sorted);
        self.emit_all(operation, result);
        Ok(())
    }

    /// The keys of a comparator that compares pairs of operands in turn; None for other comparators.
    fn sort_keys(&self, region: &MlirBlock) -> Option<Vec<SortKey>> {
        let mut known: BTreeMap<&str, ComparatorValue> = BTreeMap::new();
        for (at, (name, _)) in region.params.iter().enumerate() {
            let key = ComparatorValue::Key { operand: at / 2, part: KeyPart::Whole, is_second: at % 2 == 1 };
            known.insert(name.as_str(), key);
        }
        for operation in &region.body {
            // A constant may be defined before the sort.
            let outer = |name: &ValueName| ComparatorValue::of_constant(self.values.get(name)?.constant.as_ref()?);
            let value = |name: &ValueName| known.get(name.base.as_str()).cloned().or_else(|| outer(name));
            let operands: Vec<ComparatorValue> = operation.operands.iter().map(value).collect::<Option<_>>()?;
            if operation.name == "stablehlo.return" {
                return match operands.as_slice() {
                    [ComparatorValue::Before(keys)] => Some(keys.clone()),
                    _ => None,
                };
            }
            let found = comparator_value(operation, &operands)?;
            let (name, _) = operation.results.first()?;
            known.insert(name.as_str(), found);
        }
        None
    }

    /// `@ApproxTopK`: the first elements in the order of a comparator. The language finds them all, so that the recall is 1.
    pub(super) fn approximate_top_k(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let [x, places, _, _] = self.some_operands(operation)?;
        let Some(Attribute::Map(options)) = operation.attributes.get("mhlo.backend_config") else {
            return Err(malformed(operation, "a search of the largest elements has options"));
        };
        let number = |name: &str| match options.get(name) {
            Some(Attribute::Int(number)) => usize::try_from(*number).ok(),
            _ => None,
        };
        let (Some(axis), Some(count)) = (number("reduction_dim"), number("top_k")) else {
            return Err(malformed(
                operation,
                "a search of the largest elements has a dimension and a number of elements",
            ));
        };
        let comparator = match operation.attributes.get("called_computations") {
            Some(Attribute::List(names)) => match names.as_slice() {
                [Attribute::Symbol(name)] => self.context.functions.get(name.as_str()).copied(),
                _ => None,
            },
            _ => None,
        };
        let direction = comparator.and_then(|function| first_compared(function));
        let is_descending = match direction {
            Some("GT") => true,
            Some("LT") => false,
            Some(_) | None => return Err(unsupported(operation, "with this comparator")),
        };
        if options.get("aggregate_to_topk") != Some(&Attribute::Bool(true)) || axis >= x.ty.rank() {
            return Err(unsupported(operation, "for more elements than are asked for"));
        }
        let along = || build.int(axis as i128);
        let named = [("axis", along()), ("descending", build.flag(is_descending))];
        let order = build.call_with("argsort", [x.expr.clone()], named);
        let mut ranges: Vec<(usize, usize, usize)> = x.ty.shape.iter().map(|&size| (0, size, 1)).collect();
        ranges[axis].1 = count.min(ranges[axis].1);
        let order = self.variable(build, "order", order);
        let first = self.variable(build, "first", super::shapes::sliced(build, order, &x.ty.shape, &ranges));
        let take = |of: &Expr| build.call_with("take_along_axis", [of.clone(), first.clone()], [("axis", along())]);
        let result = build.tuple(vec![take(&x.expr), take(&places.expr)]);
        self.emit_all(operation, result);
        Ok(())
    }

    pub(super) fn top_k(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let [x] = self.some_operands(operation)?;
        if operation.attributes.get("largest") == Some(&Attribute::Bool(false)) {
            return Err(unsupported(operation, "for the smallest elements"));
        }
        let k = ints(operation, "k")?.first().copied().unwrap_or(0);
        self.emit_all(operation, build.call("top_k", [x.expr, build.int(k)]));
        Ok(())
    }
}

/// The direction in which a function compares its first two parameters, and does nothing else.
fn first_compared(function: &MlirFunction) -> Option<&str> {
    let ([first, second, ..], [compare, end]) = (function.params.as_slice(), function.body.as_slice()) else {
        return None;
    };
    let uses = |operation: &MlirOp, names: &[&String]| {
        operation.operands.len() == names.len()
            && operation.operands.iter().zip(names).all(|(used, name)| used.base == **name)
    };
    let (result, _) = compare.results.first()?;
    let compares = compare.name == "stablehlo.compare" && uses(compare, &[&first.name, &second.name]);
    match compare.attributes.get("comparison_direction") {
        Some(Attribute::Word(word)) if compares && uses(end, &[result]) => Some(word),
        _ => None,
    }
}

/// The part of an operand that a comparator compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyPart {
    Whole,
    Real,
    Imaginary,
}

impl KeyPart {
    fn of(self, build: Build, x: Expr) -> Expr {
        match self {
            KeyPart::Whole => x,
            KeyPart::Real => build.call("real", [x]),
            KeyPart::Imaginary => build.call("imag", [x]),
        }
    }
}

/// A key of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SortKey {
    operand: usize,
    part: KeyPart,
    is_descending: bool,
}

/// The meaning of a value in a comparator.
#[derive(Clone, Debug, PartialEq)]
enum ComparatorValue {
    Zero,
    NotANumber,
    /// A key of the first element, or of the second one; possibly with one zero and one NaN for all of them.
    Key {
        operand: usize,
        part: KeyPart,
        is_second: bool,
    },
    /// Whether a key is a zero of any sign.
    IsZero,
    /// Whether a key is a NaN.
    IsNotANumber,
    /// Whether the keys of both elements are equal.
    Equal {
        operand: usize,
        part: KeyPart,
    },
    /// Whether the first element comes before the second one, by these keys in turn.
    Before(Vec<SortKey>),
    /// The same among elements whose first key is equal.
    EqualAndBefore {
        operand: usize,
        part: KeyPart,
        rest: Vec<SortKey>,
    },
}

impl ComparatorValue {
    fn of_constant(dense: &Dense) -> Option<ComparatorValue> {
        match dense.elements.as_slice() {
            [number] if number.is_zero() => Some(ComparatorValue::Zero),
            [number] if is_nan(dense.ty.element, number) => Some(ComparatorValue::NotANumber),
            _ => None,
        }
    }
}

fn comparator_value(operation: &MlirOp, operands: &[ComparatorValue]) -> Option<ComparatorValue> {
    use ComparatorValue::{Before, Equal, EqualAndBefore, IsNotANumber, IsZero, Key, NotANumber, Zero};
    match (operation.name.as_str(), operands) {
        ("stablehlo.constant", []) => match operation.attributes.get("value") {
            Some(Attribute::Dense(dense)) => ComparatorValue::of_constant(dense),
            _ => None,
        },
        (name, [value]) if is_identity(name) => Some(value.clone()),
        ("stablehlo.real", [Key { operand, part: KeyPart::Whole, is_second }]) => {
            Some(Key { operand: *operand, part: KeyPart::Real, is_second: *is_second })
        }
        ("stablehlo.imag", [Key { operand, part: KeyPart::Whole, is_second }]) => {
            Some(Key { operand: *operand, part: KeyPart::Imaginary, is_second: *is_second })
        }
        ("stablehlo.compare", [left, right]) => compared(operation, left, right),
        ("stablehlo.select", [IsZero, Zero, key @ Key { .. }] | [IsNotANumber, NotANumber, key @ Key { .. }]) => {
            Some(key.clone())
        }
        ("stablehlo.select", [Equal { operand, part }, Before(rest), Before(first)])
        | ("stablehlo.or", [Before(first), EqualAndBefore { operand, part, rest }])
        | ("stablehlo.or", [EqualAndBefore { operand, part, rest }, Before(first)]) => match first.as_slice() {
            [key] if (key.operand, key.part) == (*operand, *part) => {
                Some(Before(first.iter().chain(rest).copied().collect()))
            }
            _ => None,
        },
        ("stablehlo.and", [Equal { operand, part }, Before(rest)])
        | ("stablehlo.and", [Before(rest), Equal { operand, part }]) => {
            Some(EqualAndBefore { operand: *operand, part: *part, rest: rest.clone() })
        }
        (_, _) => None,
    }
}

fn compared(operation: &MlirOp, left: &ComparatorValue, right: &ComparatorValue) -> Option<ComparatorValue> {
    use ComparatorValue::{Before, Equal, IsNotANumber, IsZero, Key, Zero};
    let Some(Attribute::Word(direction)) = operation.attributes.get("comparison_direction") else { return None };
    let (Key { operand, part, is_second }, Key { operand: other, part: other_part, is_second: other_second }) =
        (left, right)
    else {
        let is_zero_test = matches!((left, right), (Key { .. }, Zero)) && direction == "EQ";
        return is_zero_test.then_some(IsZero);
    };
    if (operand, part) != (other, other_part) {
        return None;
    }
    let (operand, part) = (*operand, *part);
    if is_second == other_second {
        return (direction == "NE").then_some(IsNotANumber);
    }
    let key = |is_descending: bool| Before(vec![SortKey { operand, part, is_descending }]);
    match direction.as_str() {
        "LT" => Some(key(*is_second)),
        "GT" => Some(key(!is_second)),
        "EQ" => Some(Equal { operand, part }),
        _ => None,
    }
}
