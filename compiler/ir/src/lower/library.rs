//! How an op adds calls of the runtime's functions to its work.

use crate::lower::calls::{CallArray, LibraryCalls};
use crate::lower::work::Lowering;
use crate::lower::work::Work;
use crate::program::value::Value;
use spmdc_abi::{LibraryDim, Scalar};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, DType, Type};

/// The most slots of scratch memory, one for each thread of a device.
const SLOTS: usize = 8;

/// The most bytes of several slots of scratch memory.
const SLOT_BYTES: usize = 64 << 20;

impl Lowering<'_> {
    /// Calls of a function of the runtime.
    pub fn library(&mut self, calls: LibraryCalls) {
        debug_assert!(
            calls.operands.iter().chain(&calls.results).all(|array| array.batch.len() == calls.batch.len()),
            "every array has a stride for each batch dimension"
        );
        self.work.push(Work::Library { calls: Box::new(calls), origin: self.origin.clone() });
    }

    /// The blocks of a value as arrays of one call with these dimensions; its other dimensions are the batch.
    pub fn call_array(&self, value: Value, dims: &[usize]) -> CallArray {
        let ty = self.ty(value);
        let strides = self.kernel().context.strides(ty);
        let own = |dim: &usize| LibraryDim { extent: self.kernel().context.block_len(ty, *dim), stride: strides[*dim] };
        let batch = (0..ty.rank()).filter(|dim| !dims.contains(dim)).map(|dim| strides[dim]).collect();
        CallArray { value, batch, dims: dims.iter().map(own).collect() }
    }

    /// The extents of a value's dimensions without these: the batch of calls.
    pub fn call_batch(&self, value: Value, dims: &[usize]) -> Vec<Scalar> {
        let ty = self.ty(value);
        let others = (0..ty.rank()).filter(|dim| !dims.contains(dim));
        others.map(|dim| self.kernel().context.block_len(ty, dim)).collect()
    }

    /// Scratch memory of f64 for calls of a batch of this rank, in slots of `len` elements. The number of slots is at most the number of
    /// calls, the number of threads of a device that run at a time, and the number that fit in [`SLOT_BYTES`], but at least one. Separate
    /// for each device.
    pub fn call_slots(&mut self, calls: usize, rank: usize, len: usize) -> CallArray {
        let few = SLOT_BYTES / len.saturating_mul(DType::F64.size()).max(1);
        let count = calls.min(SLOTS).min(few).max(1);
        let array = ArrayType::new(DType::F64, &[count, len]);
        let scratch = self.temporary(Type { array, sharding: Sharding::replicated(2), varying: self.mesh.all() });
        let dim =
            |extent: usize, stride: usize| LibraryDim { extent: Scalar::Const(extent as i64), stride: stride as i64 };
        CallArray { value: scratch, batch: vec![0; rank], dims: vec![dim(count, len), dim(len, 1)] }
    }

    /// Scratch memory for each call of a batch, like `like` without its dimensions `dims`: a line of `len` elements.
    pub fn call_scratch(&mut self, like: Value, dims: &[usize], dtype: DType, len: usize) -> CallArray {
        let ty = self.ty(like).clone();
        let kept: Vec<usize> = (0..ty.rank()).filter(|dim| !dims.contains(dim)).collect();
        let mut shape: Vec<usize> = kept.iter().map(|&dim| ty.shape()[dim]).collect();
        shape.push(len);
        let mut sharding = ty.sharding.clone();
        sharding.dims = kept.iter().map(|&dim| ty.sharding.dims[dim].clone()).collect();
        sharding.dims.push(Default::default());
        // Devices that have different blocks along the other dimensions of `like` need memory of their own.
        let split = dims.iter().flat_map(|&dim| &ty.sharding.dims[dim].axes).map(|&axis| usize::from(axis)).collect();
        let varying = ty.varying.union(split);
        let scratch = self.temporary(Type { array: ArrayType::of(dtype, shape), sharding, varying });
        let last = kept.len();
        let CallArray { batch, .. } = self.call_array(scratch, &[last]);
        let dims = vec![LibraryDim { extent: Scalar::Const(len as i64), stride: 1 }];
        CallArray { value: scratch, batch, dims }
    }
}
