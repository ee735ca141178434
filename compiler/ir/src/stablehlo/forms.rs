//! Operations without regions: elementwise ones, changes of shape and type, products.

use super::builder::{HloBuilder, list, signature};
use super::names::{HloElement, HloType, HloValue};
use spmdc_abi::{DType, Kind};
use spmdc_kernel::number;

impl HloBuilder<'_> {
    /// An operation of one operand whose result has the operand's type: `stablehlo.negate`, `chlo.erf`.
    pub fn unary(&mut self, name: &str, x: &HloValue) -> HloValue {
        // The text of CHLO names both types.
        let ty = match name.starts_with("chlo.") {
            true => format!("{} -> {}", x.ty, x.ty),
            false => x.ty.to_string(),
        };
        self.emit(x.ty.clone(), &format!("{name} {} : {ty}", x.name))
    }

    /// An operation of two operands of the same type, which is the type of the result.
    pub fn binary(&mut self, name: &str, x: &HloValue, y: &HloValue) -> HloValue {
        let ty = match name.starts_with("chlo.") {
            true => format!("{}, {} -> {}", x.ty, y.ty, x.ty),
            false => x.ty.to_string(),
        };
        self.emit(x.ty.clone(), &format!("{name} {}, {} : {ty}", x.name, y.name))
    }

    /// `compare LT, x, y`: a truth value for each pair of elements.
    pub fn compare(&mut self, direction: &str, x: &HloValue, y: &HloValue) -> HloValue {
        let kind = match x.ty.dtype().kind() {
            Kind::Bool | Kind::Unsigned | Kind::Key => "UNSIGNED",
            Kind::Signed => "SIGNED",
            Kind::Float => "FLOAT",
        };
        self.compare_as(direction, kind, x, y)
    }

    /// As [`HloBuilder::compare`], by the order of this name: `FLOAT`, `TOTALORDER`, `SIGNED`, `UNSIGNED`.
    pub fn compare_as(&mut self, direction: &str, kind: &str, x: &HloValue, y: &HloValue) -> HloValue {
        let ty = x.ty.with_dtype(DType::Bool);
        let types = signature(&[x, y], std::slice::from_ref(&ty));
        self.emit(ty, &format!("stablehlo.compare {direction}, {}, {}, {kind} : {types}", x.name, y.name))
    }

    /// An element of `x` where the condition holds, otherwise of `y`; the condition has their shape, or none.
    pub fn select(&mut self, condition: &HloValue, x: &HloValue, y: &HloValue) -> HloValue {
        let types = format!("{}, {}", condition.ty, x.ty);
        let text = format!("stablehlo.select {}, {}, {} : {types}", condition.name, x.name, y.name);
        self.emit(x.ty.clone(), &text)
    }

    /// The elements moved to the nearer one of two bounds, which have no dimensions, if they are not between them.
    pub fn clamp(&mut self, low: &HloValue, x: &HloValue, high: &HloValue) -> HloValue {
        let types = signature(&[low, x, high], std::slice::from_ref(&x.ty));
        self.emit(x.ty.clone(), &format!("stablehlo.clamp {}, {}, {} : {types}", low.name, x.name, high.name))
    }

    /// The elements converted to another type: to truth values by "not zero", and between keys and integers word by word.
    pub fn convert(&mut self, x: &HloValue, to: DType) -> HloValue {
        let from = x.ty.dtype();
        if x.ty.element == HloElement::Real(to) {
            return x.clone();
        }
        match (from, to) {
            (_, DType::Bool) => {
                let zero = self.whole_like(x, 0);
                self.compare("NE", x, &zero)
            }
            (DType::Key, _) | (_, DType::Key) => {
                // The first word is the upper half of the integer, and the lower half of the key.
                let half = self.splat(from, 32, &x.ty.shape);
                let upper = self.binary("stablehlo.shift_left", x, &half);
                let lower = self.binary("stablehlo.shift_right_logical", x, &half);
                let turned = self.binary("stablehlo.or", &upper, &lower);
                HloValue { ty: turned.ty.with_dtype(to), ..turned }
            }
            (_, _) => self.converted(x, HloType::new(to, &x.ty.shape)),
        }
    }

    /// `stablehlo.convert`.
    pub fn converted(&mut self, x: &HloValue, ty: HloType) -> HloValue {
        let types = signature(&[x], std::slice::from_ref(&ty));
        self.emit(ty, &format!("stablehlo.convert {} : {types}", x.name))
    }

    /// The bits of the elements as another type of the same size.
    pub fn bitcast(&mut self, x: &HloValue, to: DType) -> HloValue {
        let ty = x.ty.with_dtype(to);
        if ty.element.to_string() == x.ty.element.to_string() {
            return HloValue { ty, ..x.clone() };
        }
        let types = signature(&[x], std::slice::from_ref(&ty));
        self.emit(ty, &format!("stablehlo.bitcast_convert {} : {types}", x.name))
    }

    /// Complex numbers of two planes.
    pub fn complex(&mut self, re: &HloValue, im: &HloValue) -> HloValue {
        let ty = HloType { element: HloElement::Complex(re.ty.dtype()), shape: re.ty.shape.clone() };
        self.emit(ty.clone(), &format!("stablehlo.complex {}, {} : {ty}", re.name, im.name))
    }

    /// The planes of complex numbers.
    pub fn planes(&mut self, z: &HloValue) -> [HloValue; 2] {
        let ty = z.ty.with_dtype(z.ty.dtype());
        let types = signature(&[z], std::slice::from_ref(&ty));
        ["real", "imag"].map(|plane| self.emit(ty.clone(), &format!("stablehlo.{plane} {} : {types}", z.name)))
    }

    /// Each dimension of `x` becomes the dimension of this number in the result; dimensions of size 1 are repeated.
    pub fn broadcast_in_dim(&mut self, x: &HloValue, dims: &[usize], shape: &[usize]) -> HloValue {
        if x.ty.shape == shape && dims.iter().copied().eq(0..shape.len()) {
            return x.clone();
        }
        let ty = x.ty.with_shape(shape);
        let types = signature(&[x], std::slice::from_ref(&ty));
        self.emit(ty, &format!("stablehlo.broadcast_in_dim {}, dims = {} : {types}", x.name, list(dims)))
    }

    /// NumPy broadcasting: the dimensions of `x` are the last ones of the result.
    pub fn broadcast(&mut self, x: &HloValue, shape: &[usize]) -> HloValue {
        let skipped = shape.len() - x.ty.rank();
        let dims: Vec<usize> = (skipped..shape.len()).collect();
        self.broadcast_in_dim(x, &dims, shape)
    }

    /// The same elements, row-major, in another shape.
    pub fn reshape(&mut self, x: &HloValue, shape: &[usize]) -> HloValue {
        if x.ty.shape == shape {
            return x.clone();
        }
        let ty = x.ty.with_shape(shape);
        let types = signature(&[x], std::slice::from_ref(&ty));
        self.emit(ty, &format!("stablehlo.reshape {} : {types}", x.name))
    }

    /// Dimension `i` of the result is dimension `axes[i]` of `x`.
    pub fn transpose(&mut self, x: &HloValue, axes: &[usize]) -> HloValue {
        if axes.iter().copied().eq(0..axes.len()) {
            return x.clone();
        }
        let shape: Vec<usize> = axes.iter().map(|&axis| x.ty.shape[axis]).collect();
        let ty = x.ty.with_shape(&shape);
        let types = signature(&[x], std::slice::from_ref(&ty));
        self.emit(ty, &format!("stablehlo.transpose {}, dims = {} : {types}", x.name, list(axes)))
    }

    /// The elements `start`, `start + step`, .. before `limit` of each dimension.
    pub fn slice(&mut self, x: &HloValue, ranges: &[(usize, usize, usize)]) -> HloValue {
        // XLA makes mistakes with the steps of single elements in blocks of different sizes (jaxlib 0.10.2).
        let single = |&(start, limit, step): &(usize, usize, usize)| {
            if limit <= start + step { (start, limit.min(start + 1), 1) } else { (start, limit, step) }
        };
        let ranges: Vec<(usize, usize, usize)> = ranges.iter().map(single).collect();
        let is_whole = ranges.iter().zip(&x.ty.shape).all(|(range, size)| *range == (0, *size, 1));
        if is_whole {
            return x.clone();
        }
        let shape: Vec<usize> =
            ranges.iter().map(|&(start, limit, step)| limit.saturating_sub(start).div_ceil(step)).collect();
        let ty = x.ty.with_shape(&shape);
        let types = signature(&[x], std::slice::from_ref(&ty));
        let range = |&(start, limit, step): &(usize, usize, usize)| match step {
            1 => format!("{start}:{limit}"),
            _ => format!("{start}:{limit}:{step}"),
        };
        let ranges: Vec<String> = ranges.iter().map(range).collect();
        self.emit(ty, &format!("stablehlo.slice {} {} : {types}", x.name, list(&ranges)))
    }

    /// A range of one dimension.
    pub fn slice_dim(&mut self, x: &HloValue, dim: usize, range: (usize, usize, usize)) -> HloValue {
        let mut ranges: Vec<(usize, usize, usize)> = x.ty.shape.iter().map(|&size| (0, size, 1)).collect();
        ranges[dim] = range;
        self.slice(x, &ranges)
    }

    /// These dimensions in reverse.
    pub fn reverse(&mut self, x: &HloValue, dims: &[usize]) -> HloValue {
        if dims.is_empty() {
            return x.clone();
        }
        self.emit(x.ty.clone(), &format!("stablehlo.reverse {}, dims = {} : {}", x.name, list(dims), x.ty))
    }

    /// A number around the elements of each dimension (before, after), and between neighbours.
    pub fn pad(&mut self, x: &HloValue, number: &HloValue, widths: &[(usize, usize, usize)]) -> HloValue {
        if widths.iter().all(|&width| width == (0, 0, 0)) {
            return x.clone();
        }
        let size = |(&size, &(low, high, between)): (&usize, &(usize, usize, usize))| {
            low + high + size + size.saturating_sub(1) * between
        };
        let shape: Vec<usize> = x.ty.shape.iter().zip(widths).map(size).collect();
        let ty = x.ty.with_shape(&shape);
        let types = signature(&[x, number], std::slice::from_ref(&ty));
        let [low, high, between] = [
            widths.iter().map(|width| width.0).collect::<Vec<usize>>(),
            widths.iter().map(|width| width.1).collect(),
            widths.iter().map(|width| width.2).collect(),
        ]
        .map(|widths| list(&widths));
        let attributes = format!("low = {low}, high = {high}, interior = {between}");
        self.emit(ty, &format!("stablehlo.pad {}, {}, {attributes} : {types}", x.name, number.name))
    }

    /// Arrays one after another along a dimension.
    pub fn concatenate(&mut self, parts: &[HloValue], dim: usize) -> HloValue {
        if let [one] = parts {
            return one.clone();
        }
        let mut shape = parts[0].ty.shape.clone();
        shape[dim] = parts.iter().map(|part| part.ty.shape[dim]).sum();
        let ty = parts[0].ty.with_shape(&shape);
        let types = signature(&parts.iter().collect::<Vec<_>>(), std::slice::from_ref(&ty));
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        self.emit(ty, &format!("stablehlo.concatenate {}, dim = {dim} : {types}", names.join(", ")))
    }

    /// Arrays side by side along a new dimension.
    pub fn stack(&mut self, parts: &[HloValue], dim: usize) -> HloValue {
        let wide: Vec<HloValue> = parts
            .iter()
            .map(|part| {
                let mut shape = part.ty.shape.clone();
                shape.insert(dim, 1);
                self.reshape(part, &shape)
            })
            .collect();
        self.concatenate(&wide, dim)
    }

    /// The index of each element along a dimension.
    pub fn iota(&mut self, dtype: DType, shape: &[usize], dim: usize) -> HloValue {
        let ty = HloType::new(dtype, shape);
        self.emit(ty.clone(), &format!("stablehlo.iota dim = {dim} : {ty}"))
    }

    /// A product: the dimensions in both operands and in the result, and those that are summed. The result has the first ones, then the
    /// others of `x`, then those of `y`.
    pub fn dot_general(&mut self, [x, y]: [&HloValue; 2], batch: [&[usize]; 2], contracted: [&[usize]; 2]) -> HloValue {
        let mut shape: Vec<usize> = batch[0].iter().map(|&dim| x.ty.shape[dim]).collect();
        for (side, value) in [x, y].into_iter().enumerate() {
            let others =
                (0..value.ty.rank()).filter(|dim| !batch[side].contains(dim) && !contracted[side].contains(dim));
            shape.extend(others.map(|dim| value.ty.shape[dim]));
        }
        let ty = x.ty.with_shape(&shape);
        let types = signature(&[x, y], std::slice::from_ref(&ty));
        let dims = |name: &str, dims: [&[usize]; 2]| match dims[0].is_empty() {
            true => String::new(),
            false => format!(", {name} = {} x {}", list(dims[0]), list(dims[1])),
        };
        let batching = dims("batching_dims", batch);
        let contracting = format!(", contracting_dims = {} x {}", list(contracted[0]), list(contracted[1]));
        self.emit(ty, &format!("stablehlo.dot_general {}, {}{batching}{contracting} : {types}", x.name, y.name))
    }

    /// A region of these sizes from scalar indices on, one for each dimension.
    pub fn dynamic_slice(&mut self, x: &HloValue, starts: &[HloValue], sizes: &[usize]) -> HloValue {
        if x.ty.shape == sizes {
            return x.clone();
        }
        let ty = x.ty.with_shape(sizes);
        let args: Vec<&HloValue> = std::iter::once(x).chain(starts).collect();
        let types = signature(&args, std::slice::from_ref(&ty));
        let names: Vec<&str> = args.iter().map(|arg| arg.name.as_str()).collect();
        self.emit(ty, &format!("stablehlo.dynamic_slice {}, sizes = {} : {types}", names.join(", "), list(sizes)))
    }

    /// `x` with a region replaced, from scalar indices on.
    pub fn dynamic_update_slice(&mut self, x: &HloValue, region: &HloValue, starts: &[HloValue]) -> HloValue {
        if x.ty.shape == region.ty.shape {
            return region.clone();
        }
        let args: Vec<&HloValue> = [x, region].into_iter().chain(starts).collect();
        let types = signature(&args, std::slice::from_ref(&x.ty));
        let names: Vec<&str> = args.iter().map(|arg| arg.name.as_str()).collect();
        self.emit(x.ty.clone(), &format!("stablehlo.dynamic_update_slice {} : {types}", names.join(", ")))
    }

    /// A scalar i64 index for each dimension: these values, or 0.
    pub fn starts(&mut self, rank: usize, given: &[(usize, HloValue)]) -> Vec<HloValue> {
        let mut starts = Vec::new();
        for dim in 0..rank {
            starts.push(match given.iter().find(|(own, _)| *own == dim) {
                Some((_, start)) => start.clone(),
                None => self.whole(DType::I64, 0, &[]),
            });
        }
        starts
    }

    /// The identity element of a combination, without dimensions.
    pub fn identity(&mut self, op: spmdc_abi::ReduceOp, dtype: DType) -> HloValue {
        self.splat(dtype, number::identity_element(op, dtype), &[])
    }
}
