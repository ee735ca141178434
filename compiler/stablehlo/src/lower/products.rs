//! Products, convolutions and Fourier transforms.

use super::{FunctionReader, MlirValue, at, malformed, optional_ints, result_type, unsupported};
use crate::build::Build;
use crate::cursor::{Cursor, Read};
use crate::tree::{Attribute, MlirElement, MlirOp};
use spmdc_grammar::ast::{Expr, InfixOp};

impl FunctionReader<'_> {
    pub(super) fn dot_general(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let [x, y] = self.some_operands(operation)?;
        let custom = operation.attributes.get("dot_dimension_numbers");
        let list = |name: &str| match custom {
            // `#stablehlo.dot<lhs_contracting_dimensions = [1], ..>`
            Some(Attribute::Custom(_, inside)) => {
                let found = custom_ints(inside, &name.replace("dims", "dimensions"));
                found.into_iter().map(|dim| dim as usize).collect()
            }
            _ => optional_ints(operation, name).into_iter().map(|dim| dim as usize).collect::<Vec<usize>>(),
        };
        let (batch_x, batch_y) = (list("lhs_batching_dims"), list("rhs_batching_dims"));
        let (sum_x, sum_y) = (list("lhs_contracting_dims"), list("rhs_contracting_dims"));
        if batch_x.len() != batch_y.len() || sum_x.len() != sum_y.len() {
            return Err(malformed(operation, "a product pairs dimensions"));
        }
        let mut letters = (b'a'..=b'z').chain(b'A'..=b'Z').map(char::from);
        let mut of_x = vec![' '; x.ty.rank()];
        let mut of_y = vec![' '; y.ty.rank()];
        let mut out = String::new();
        let too_many = || unsupported(operation, "with so many dimensions");
        for (kept, pairs) in [(true, batch_x.iter().zip(&batch_y)), (false, sum_x.iter().zip(&sum_y))] {
            for (&dim_x, &dim_y) in pairs {
                let letter = letters.next().ok_or_else(too_many)?;
                let places = (of_x.get_mut(dim_x), of_y.get_mut(dim_y));
                let (Some(place_x), Some(place_y)) = places else {
                    return Err(malformed(operation, "a product names a dimension that does not exist"));
                };
                (*place_x, *place_y) = (letter, letter);
                if kept {
                    out.push(letter);
                }
            }
        }
        for place in of_x.iter_mut().chain(&mut of_y).filter(|place| **place == ' ') {
            *place = letters.next().ok_or_else(too_many)?;
            out.push(*place);
        }
        let to = result_type(operation)?.element;
        let [x_expr, y_expr] = [&x, &y].map(|operand| match operand.ty.element == to {
            true => operand.expr.clone(),
            false => build.cast(to, operand.expr.clone()),
        });
        let batch: Vec<usize> = (0..batch_x.len()).collect();
        let are_first = batch_x == batch && batch_y == batch;
        let is_product = |rank: usize| sum_x[..] == [x.ty.rank().max(1) - 1] && sum_y[..] == [rank - 2];
        let is_matmul = match y.ty.rank() {
            2 => batch.is_empty() && x.ty.rank() >= 2 && is_product(2),
            rank => rank > 2 && rank == x.ty.rank() && are_first && batch.len() + 2 == rank && is_product(rank),
        };
        if is_matmul {
            return self.emit(operation, build.binary(InfixOp::MatMul, x_expr, y_expr));
        }
        let text = |letters: &[char]| letters.iter().collect::<String>();
        let subscripts = format!("{},{}->{out}", text(&of_x), text(&of_y));
        self.emit(operation, build.call("einsum", [build.text(&subscripts), x_expr, y_expr]))
    }

    pub(super) fn convolution(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let [x, w] = self.some_operands(operation)?;
        let Some(Attribute::Custom(_, numbers)) = operation.attributes.get("dimension_numbers") else {
            return Err(malformed(operation, "a convolution has dimension numbers"));
        };
        let rank = x.ty.rank();
        let orders = dimension_numbers(numbers).filter(|orders| orders.iter().all(|order| order.len() == rank));
        let Some([of_x, of_w, of_out]) = orders else {
            return Err(malformed(operation, "the dimension numbers of this convolution are malformed"));
        };
        if rank < 2 {
            return Err(malformed(operation, "a convolution has images with features"));
        }
        let space = rank - 2;
        // The dimension of an array with each name: numbers are those of space.
        let find = |order: &[String], name: &str| order.iter().position(|known| known == name);
        let order = |names: &[String], first: Option<&str>, last: &[&str]| -> Option<Vec<usize>> {
            let mut places = Vec::new();
            places.extend(first.map(|name| find(names, name)));
            places.extend((0..space).map(|dim| find(names, &dim.to_string())));
            places.extend(last.iter().map(|name| find(names, name)));
            places.into_iter().collect()
        };
        let (Some(order_x), Some(order_w), Some(order_out)) =
            (order(&of_x, Some("b"), &["f"]), order(&of_w, None, &["i", "o"]), order(&of_out, Some("b"), &["f"]))
        else {
            return Err(malformed(operation, "the dimension numbers of this convolution are malformed"));
        };
        let or = |name: &str, number: i128| {
            let found = optional_ints(operation, name);
            if found.is_empty() { vec![number; space] } else { found }
        };
        let (strides, inner, outer) = (or("window_strides", 1), or("lhs_dilation", 1), or("rhs_dilation", 1));
        let reversal = or("window_reversal", 0);
        let padding = padding(operation, space)?;
        let one = |name: &str| optional_ints(operation, name).first().copied().unwrap_or(1);
        let (groups, batch_groups) = (one("feature_group_count"), one("batch_group_count"));
        let to = result_type(operation)?.element;
        let mut image = in_order(build, typed(build, &x, to), &order_x);
        let mut kernel = in_order(build, typed(build, &w, to), &order_w);
        let reversed: Vec<usize> = (0..space).filter(|&dim| reversal.get(dim).is_some_and(|&flag| flag != 0)).collect();
        if !reversed.is_empty() {
            kernel = build.call_with("flip", [kernel], [("axis", build.ints(reversed))]);
        }
        let mut groups = groups as usize;
        if batch_groups > 1 {
            // Each group of images has its own outputs: as groups of features.
            let count = batch_groups as usize;
            let batch = x.ty.shape[order_x[0]];
            let features = x.ty.shape[order_x[rank - 1]];
            if groups != 1 || !batch.is_multiple_of(count) {
                return Err(unsupported(operation, "with groups of images and of features"));
            }
            let sizes: Vec<usize> = order_x[1..rank - 1].iter().map(|&dim| x.ty.shape[dim]).collect();
            let mut shape = vec![count, batch / count];
            shape.extend(&sizes);
            shape.push(features);
            let apart = build.call("reshape", [image, build.ints(shape)]);
            let mut order: Vec<usize> = (1..rank).collect();
            order.extend([0, rank]);
            let moved = build.call("transpose", [apart, build.ints(order)]);
            let mut shape = vec![batch / count];
            shape.extend(&sizes);
            shape.push(count * features);
            image = build.call("reshape", [moved, build.ints(shape)]);
            groups = count;
        }
        let list = |values: &[i128]| build.tuple(values.iter().map(|&value| build.int(value)).collect());
        let pairs = padding.chunks(2).map(list).collect();
        let mut named = vec![("stride", list(&strides)), ("padding", build.tuple(pairs))];
        if outer.iter().any(|&dilation| dilation != 1) {
            named.push(("dilation", list(&outer)));
        }
        if groups != 1 {
            named.push(("groups", build.int(groups as i128)));
        }
        if inner.iter().any(|&dilation| dilation != 1) {
            named.push(("input_dilation", list(&inner)));
        }
        let result = build.call_with("conv", [image, kernel], named);
        let mut back = vec![0; rank];
        for (at, &dim) in order_out.iter().enumerate() {
            back[dim] = at;
        }
        self.emit(operation, in_order(build, result, &back))
    }

    pub(super) fn fft(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let [x] = self.some_operands(operation)?;
        let name = if operation.attributes.contains_key("length") { "length" } else { "fft_length" };
        let lengths = super::ints(operation, name)?;
        let kind = match operation.attributes.get("type").or_else(|| operation.attributes.get("fft_type")) {
            Some(Attribute::Word(word)) => word.clone(),
            _ => String::new(),
        };
        let function = match kind.as_str() {
            "FFT" => "fftn",
            "IFFT" => "ifftn",
            "RFFT" => "rfftn",
            "IRFFT" => "irfftn",
            _ => return Err(malformed(operation, "a Fourier transform has a type")),
        };
        let rank = x.ty.rank();
        let axes: Vec<usize> = (rank - lengths.len().min(rank)..rank).collect();
        let sizes = build.tuple(lengths.iter().map(|&length| build.int(length)).collect());
        let named = [("s", sizes), ("axes", build.ints(axes))];
        let result = build.call_with(function, [x.expr], named);
        self.emit(operation, result)
    }
}

/// The operand with the elements of the result.
fn typed(build: Build, x: &MlirValue, to: MlirElement) -> Expr {
    if x.ty.element == to { x.expr.clone() } else { build.cast(to, x.expr.clone()) }
}

/// The array with its dimensions in this order.
pub(super) fn in_order(build: Build, x: Expr, order: &[usize]) -> Expr {
    let is_same = order.iter().enumerate().all(|(at, &dim)| at == dim);
    if is_same { x } else { build.call("transpose", [x, build.ints(order.iter().copied())]) }
}

/// The numbers of a list in a custom attribute: `lhs_contracting_dimensions = [1]`.
pub(super) fn custom_ints(inside: &str, name: &str) -> Vec<i128> {
    let Some(at) = inside.find(&format!("{name} =")).or_else(|| inside.find(&format!("{name}="))) else {
        return Vec::new();
    };
    let mut cursor = Cursor::of_part(&inside[at + name.len()..]);
    let value = cursor.expect("=").and_then(|()| cursor.attribute());
    value.ok().and_then(|value| value.ints()).unwrap_or_default()
}

/// `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`
fn dimension_numbers(text: &str) -> Option<[Vec<String>; 3]> {
    let lists: Vec<Vec<String>> = text
        .split('[')
        .skip(1)
        .map(|list| {
            let inside = list.split(']').next().unwrap_or_default();
            inside.split(',').map(|name| name.trim().to_string()).collect()
        })
        .collect();
    lists.try_into().ok()
}

/// The elements before and after each dimension of space.
fn padding(operation: &MlirOp, space: usize) -> Read<Vec<i128>> {
    let flat = match operation.attributes.get("padding") {
        None => vec![0; 2 * space],
        Some(Attribute::List(pairs)) => pairs.iter().flat_map(|pair| pair.ints().unwrap_or_default()).collect(),
        Some(other) => other.ints().unwrap_or_default(),
    };
    if flat.len() == 2 * space {
        Ok(flat)
    } else {
        Err(malformed(operation, "a pair of widths for each dimension is required"))
    }
}
