//! The components of the runtime: code that an executable contains only if its program needs it.
//!
//! A step says which component it needs ([`Step::components`]); the needs of a program are those of its steps and its parameters
//! ([`Program::components`]). The object of a program refers to the symbol of each of its components, and lists their addresses in its
//! [`Image`](crate::Image). Nothing else refers to these symbols, so the linker drops all other components. A program that runs in the
//! process of its compiler finds all of them there.

use crate::{
    Bound, DType, GemmStep, LibraryFunction, LibraryStep, Program, ReduceOp, ReduceStep, Step, TileStep,
    product_elements,
};
use std::collections::BTreeSet;

/// A component of the runtime. Loops over elements are compiled for each element type, and each type is a component of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    /// Matrix products: [`Step::Gemm`] and [`Step::Tiles`], by their elements ([`product_elements`]).
    Products(DType),
    /// Combinations of the partial values of several devices: [`Step::Reduce`].
    Reductions(DType, ReduceOp),
    /// Updates of elements at indices, which an operation combines, or which replace the elements: [`LibraryFunction::Scatter`].
    Scatters(DType, Option<ReduceOp>),
    /// Sorts, merges of sorted lines and selections: [`LibraryFunction::Sort`], [`LibraryFunction::Merge`], [`LibraryFunction::Select`].
    Sorts,
    /// Fourier transforms: [`LibraryFunction::Fft`].
    Transforms(DType),
    /// Factorizations of matrices and triangular systems: [`LibraryFunction::Matrix`].
    Matrices,
    /// Reads of rows of streams: [`LibraryFunction::Rows`].
    Streams,
    /// Transfers between meshes: [`LibraryFunction::Send`] and [`LibraryFunction::Receive`].
    Transfers,
    /// Printed lines, assertions and saved files: [`Step::Print`].
    Prints,
    /// The arguments of parameters, from files and the command line.
    Inputs,
    /// The display of the progress of loops: [`Step::For`] with known bounds.
    Progress,
}

impl Component {
    /// The symbol of the component in the runtime, such as `spmd_reductions_f32_sum`.
    pub fn symbol(self) -> String {
        match self {
            Component::Products(dtype) => format!("spmd_products_{}", dtype.name()),
            Component::Reductions(dtype, op) => format!("spmd_reductions_{}_{}", dtype.name(), op.name()),
            Component::Scatters(dtype, op) => {
                format!("spmd_scatters_{}_{}", dtype.name(), op.map_or("replace", ReduceOp::name))
            }
            Component::Sorts => "spmd_sorts".to_string(),
            Component::Transforms(dtype) => format!("spmd_transforms_{}", dtype.name()),
            Component::Matrices => "spmd_matrices".to_string(),
            Component::Streams => "spmd_streams".to_string(),
            Component::Transfers => "spmd_transfers".to_string(),
            Component::Prints => "spmd_prints".to_string(),
            Component::Inputs => "spmd_inputs".to_string(),
            Component::Progress => "spmd_progress".to_string(),
        }
    }
}

impl GemmStep {
    /// The component that makes the product.
    pub fn component(&self) -> Component {
        Component::Products(product_elements(self.dtype, self.operands).unwrap_or(self.dtype))
    }
}

impl TileStep {
    /// The component that makes the products, which have one element type.
    pub fn component(&self) -> Component {
        Component::Products(self.products().next().map_or(DType::F32, |product| product.dtype))
    }
}

impl ReduceStep {
    /// The component that combines the values.
    pub fn component(&self) -> Component {
        Component::Reductions(self.to.layout.dtype, self.op)
    }
}

impl LibraryStep {
    /// The component that has the function.
    pub fn component(&self) -> Component {
        let dtype = self.results.first().map_or(DType::F32, |result| result.dtype);
        match &self.function {
            LibraryFunction::Sort(_) | LibraryFunction::Merge(_) | LibraryFunction::Select(_) => Component::Sorts,
            LibraryFunction::Scatter(scatter) => Component::Scatters(dtype, scatter.combine),
            LibraryFunction::Matrix(_) => Component::Matrices,
            LibraryFunction::Fft(_) => Component::Transforms(dtype),
            LibraryFunction::Rows(_) => Component::Streams,
            LibraryFunction::Send(_) | LibraryFunction::Receive(_) => Component::Transfers,
        }
    }
}

impl Step {
    /// The components that the step needs, apart from those of the steps in it.
    pub fn components(&self) -> impl Iterator<Item = Component> {
        let product = if let Step::Reduce(ReduceStep { product, .. }) = self { product.as_deref() } else { None };
        self.component().into_iter().chain(product.map(GemmStep::component))
    }

    fn component(&self) -> Option<Component> {
        match self {
            Step::Gemm(step) => Some(step.component()),
            Step::Tiles(step) => Some(step.component()),
            Step::Reduce(step) => Some(step.component()),
            Step::Library(step) => Some(step.component()),
            Step::Print { .. } => Some(Component::Prints),
            Step::For { start: Bound::Const(_), end: Bound::Const(_), .. } => Some(Component::Progress),
            Step::Kernel(_)
            | Step::Panels { .. }
            | Step::GroupPanels(_)
            | Step::Exchange(_)
            | Step::Permute(_)
            | Step::Fetch(_)
            | Step::Sync { .. }
            | Step::Post { .. }
            | Step::Await { .. }
            | Step::Copy { .. }
            | Step::CheckIndex { .. }
            | Step::For { .. }
            | Step::While { .. }
            | Step::If { .. } => None,
        }
    }
}

impl Program {
    /// The components that the program needs, in their order.
    pub fn components(&self) -> BTreeSet<Component> {
        let steps = self.programs().into_iter().flat_map(|program| Step::walk(&program.body));
        let inputs = (!self.params.is_empty()).then_some(Component::Inputs);
        let mut all = BTreeSet::new();
        // To collect them would take a sort of their own, which executables would have.
        all.extend(steps.flat_map(Step::components).chain(inputs));
        all
    }
}
