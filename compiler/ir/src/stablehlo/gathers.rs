//! `gather` and `scatter`, with their dimension numbers.

use super::builder::{HloBuilder, array, list, signature};
use super::names::HloValue;
use super::reductions::HloCombination;

/// The dimension numbers of a `gather` with one element, or the whole size, of each dimension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HloGather {
    /// The dimensions of the result that are whole dimensions of the operand.
    pub kept: Vec<usize>,
    /// The indexed dimensions of the operand, in the order of the numbers of an index.
    pub indexed: Vec<usize>,
    /// Dimensions of the operand, each with the dimension of the indices that it is.
    pub batch: Vec<(usize, usize)>,
}

/// A `scatter` to the places that a gather reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HloScatter {
    /// The places.
    pub places: HloGather,
    /// The combination of an element with an update; None: the update replaces it.
    pub combine: Option<HloCombination>,
}

impl HloGather {
    /// The batching dimensions of the operand and those of the indices, in the order of the operand's.
    fn batching(&self) -> [Vec<usize>; 2] {
        let mut pairs = self.batch.clone();
        pairs.sort_unstable();
        let (own, of): (Vec<usize>, Vec<usize>) = pairs.into_iter().unzip();
        [own, of]
    }

    fn attribute(fields: &[(&str, &[usize])], index_vector: usize) -> String {
        let shown = fields.iter().filter(|(_, dims)| !dims.is_empty());
        let mut parts: Vec<String> = shown.map(|(name, dims)| format!("{name} = {}", list(dims))).collect();
        parts.push(format!("index_vector_dim = {index_vector}"));
        parts.join(", ")
    }
}

impl HloBuilder<'_> {
    /// The elements of `x` at indices, whose last dimension has one number for each indexed dimension.
    pub fn gather(&mut self, numbers: &HloGather, x: &HloValue, indices: &HloValue, shape: &[usize]) -> HloValue {
        let [own, of] = numbers.batching();
        let fields = [
            ("offset_dims", numbers.kept.as_slice()),
            ("collapsed_slice_dims", &numbers.indexed),
            ("operand_batching_dims", &own),
            ("start_indices_batching_dims", &of),
            ("start_index_map", &numbers.indexed),
        ];
        let dims = HloGather::attribute(&fields, indices.ty.rank() - 1);
        let is_one = |dim: usize| numbers.indexed.contains(&dim) || own.contains(&dim);
        let sizes: Vec<usize> =
            x.ty.shape.iter().enumerate().map(|(dim, &size)| if is_one(dim) { 1 } else { size }).collect();
        let ty = x.ty.with_shape(shape);
        let types = signature(&[x, indices], std::slice::from_ref(&ty));
        let attributes = format!(
            "dimension_numbers = #stablehlo.gather<{dims}>, indices_are_sorted = false, slice_sizes = {}",
            array(&sizes)
        );
        self.emit(ty, &format!("\"stablehlo.gather\"({}, {}) <{{{attributes}}}> : {types}", x.name, indices.name))
    }

    /// `x` with its elements at indices updated. Updates outside of the array are left out.
    pub fn scatter(&mut self, scatter: &HloScatter, x: &HloValue, indices: &HloValue, updates: &HloValue) -> HloValue {
        let numbers = &scatter.places;
        let [own, of] = numbers.batching();
        let fields = [
            ("update_window_dims", numbers.kept.as_slice()),
            ("inserted_window_dims", &numbers.indexed),
            ("input_batching_dims", &own),
            ("scatter_indices_batching_dims", &of),
            ("scatter_dims_to_operand_dims", &numbers.indexed),
        ];
        let dims = HloGather::attribute(&fields, indices.ty.rank() - 1);
        let attributes = format!(
            "indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<{dims}>, unique_indices = false"
        );
        let name = self.fresh();
        let operands = format!("{}, {}, {}", x.name, indices.name, updates.name);
        self.line(&format!("{name} = \"stablehlo.scatter\"({operands}) <{{{attributes}}}> ({{"));
        match scatter.combine {
            Some(combination) => self.combination(combination.name(), x.ty.dtype()),
            None => {
                let ty = x.ty.with_shape(&[]);
                let [old, new] = [self.fresh(), self.fresh()].map(|name| HloValue { name, ty: ty.clone() });
                self.line(&format!("^bb0({}: {ty}, {}: {ty}):", old.name, new.name));
                self.deeper(|hlo| hlo.returns("stablehlo.return", &[new]));
            }
        }
        let types = signature(&[x, indices, updates], std::slice::from_ref(&x.ty));
        self.line(&format!("}}) : {types}"));
        HloValue { name, ty: x.ty.clone() }
    }
}
