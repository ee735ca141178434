//! Parts of kernels.

use spmdc_abi::Scalar;

/// The position of the range of a kernel in that of the larger kernel that it was cut out of. Devices that fill a buffer together
/// divide the range of the larger kernel: it is equal on all of them, while the cuts may differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Cutout {
    /// Length of the larger kernel's range.
    pub whole: Scalar,
    /// The unit of the larger kernel's range that is unit 0 of this one's.
    pub first: Scalar,
    /// Whether another part, over the same buffers, comes right before it. Each device works on the same units of both, so no
    /// device waits between them.
    pub continues: bool,
    /// As in [`spmdc_abi::KernelStep`], of the larger kernel.
    pub grain: u32,
}
