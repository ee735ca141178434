//! From the partitioned program to the schedule: which kernels run in which order, over which buffers.

use super::builder::{KernelBuilder, KernelContext};
use super::loops::Kernel;
use crate::ir::mesh::Mesh;
use crate::ir::origin::Origin;
use crate::ir::types::{ArrayType, Type};
use crate::ir::{Func, Stmt, Value};
use spmdc_runtime::abi::{DType, Scalar};

/// A product as the library computes it: `c (+)= a * b`, with further loops around. Strides are in elements of each block.
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    pub dtype: DType,
    pub a: Value,
    pub b: Value,
    pub c: Value,
    pub m: ProductDim,
    pub n: ProductDim,
    pub k: ProductDim,
    /// Batch dimensions and further free ones.
    pub loops: Vec<ProductDim>,
    /// Further contracted dimensions.
    pub contracted: Vec<ProductDim>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ProductDim {
    pub extent: Scalar,
    pub a: i64,
    pub b: i64,
    pub c: i64,
}

/// One unit of work, in terms of values; memory and machine code come later.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    Kernel {
        kernel: Kernel,
        buffers: Vec<Value>,
        origin: Origin,
    },
    Product {
        product: Product,
        origin: Origin,
    },
    /// `to` is the same bytes as `from`: a reshape, a squeeze.
    Alias {
        from: Value,
        to: Value,
    },
}

/// Where ops put their work. One is made for each statement that is not fused away.
pub struct Lowering<'a> {
    pub func: &'a Func,
    pub mesh: &'a Mesh,
    pub inlined: &'a [Option<&'a Stmt>],
    pub work: Vec<Work>,
    /// Values that ops needed in between, numbered after the function's own.
    pub temporaries: Vec<Type>,
    pub origin: Origin,
}

impl<'a> Lowering<'a> {
    pub fn kernel(&self) -> KernelBuilder<'a> {
        KernelBuilder::new(KernelContext { func: self.func, mesh: self.mesh, inlined: self.inlined })
    }

    /// The kernel is complete: its first dimension, if it is not reduced, is the one that is divided among workers.
    pub fn run(&mut self, builder: KernelBuilder<'_>) {
        let mut kernel = builder.kernel;
        kernel.range_dim = kernel.dims.first().is_some_and(|dim| !dim.reduced);
        self.work.push(Work::Kernel { kernel, buffers: builder.values, origin: self.origin.clone() });
    }

    pub fn product(&mut self, product: Product) {
        self.work.push(Work::Product { product, origin: self.origin.clone() });
    }

    pub fn alias(&mut self, from: Value, to: Value) {
        self.work.push(Work::Alias { from, to });
    }

    pub fn ty(&self, value: Value) -> &Type {
        match (value.0 as usize).checked_sub(self.func.values.len()) {
            None => self.func.ty(value),
            Some(temporary) => &self.temporaries[temporary],
        }
    }

    /// A buffer for in between, in this layout. It is not zeroed.
    pub fn temporary(&mut self, ty: Type) -> Value {
        self.temporaries.push(ty);
        Value((self.func.values.len() + self.temporaries.len()) as u32 - 1)
    }

    /// As [`Lowering::temporary`], with the layout of another value of the same shape.
    pub fn temporary_like(&mut self, value: Value, dtype: DType) -> Value {
        let mut ty = self.ty(value).clone();
        ty.array = ArrayType::new(dtype, ty.shape());
        self.temporary(ty)
    }
}
