//! Products of matrices of integers, modulo 2^32 or 2^64, of bf16 with sums in f32, and of f32 and f64: `c = a b` or `c += a b`.
//!
//! Sums of integers wrap around, so their order does not matter: all kernels produce the same bits, and so does every cut of a product.
//! Sums of floats have one order in all kernels, which no cut into rows and columns changes.
//!
//! Both operands are copied into panels of *lanes*, the elements in which the kernel sums. A lane has one term, or two or four neighbouring
//! ones along the contraction, for which processors have instructions:
//!
//! ```text
//! format    lane              terms   instruction
//! Bytes     4 x 8 bits        4       vpdpbusd
//! Words     2 x 16 bits       2       vpdpwssd, or vpmaddwd and vpaddd
//! Ints      32 bits           1       vpmulld and vpaddd
//! Longs     64 bits           1       vpmullq and vpaddq
//! Floats    2 x bf16          2       vdpbf16ps, or vfmadd231ps
//! Singles   f32               1       vfmadd231ps
//! Doubles   f64               1       vfmadd231pd
//! ```
//!
//! A format takes all operands whose elements fit into its terms; the copy widens them. `vpdpbusd` multiplies unsigned bytes by signed
//! ones: `panels` says how others are moved into these ranges. `vdpbf16ps` takes subnormal numbers as zeros; a product of two other bf16 is
//! exact in f32, so only sums are rounded. Products and sums of f32 and f64 are rounded together, so processors without this instruction have
//! no kernels for them.

mod blocks;
mod kernel;
mod lines;
mod panels;
mod portable;
#[cfg(target_arch = "x86_64")]
mod transpose;
#[cfg(target_arch = "x86_64")]
mod x86;

/// The type of the elements of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackedElement {
    /// Signed, 8 bits.
    I8,
    /// Unsigned, 8 bits.
    U8,
    /// Signed, 16 bits.
    I16,
    /// Unsigned, 16 bits.
    U16,
    /// 32 bits, signed or not.
    Bits32,
    /// 64 bits, signed or not.
    Bits64,
    /// The upper half of an f32.
    Bf16,
    /// 32 bits.
    F32,
    /// 64 bits.
    F64,
}

/// A matrix that is read.
#[derive(Clone, Copy, Debug)]
pub struct PackedOperand {
    /// The first element.
    pub first: *const u8,
    /// The type of the elements.
    pub element: PackedElement,
    /// From one row of `a`, or column of `b`, to the next, in elements.
    pub across: isize,
    /// From one term of the sums to the next, in elements.
    pub along: isize,
}

/// A product of an m by k and a k by n matrix. Integers below 64 bits have results of 32 bits, others of 64 bits. Both operands are bf16,
/// with results in f32, or both are f32 or f64, as the result, or none is a float.
#[derive(Clone, Copy, Debug)]
pub struct PackedProduct {
    /// The rows of `a` and `c`.
    pub m: usize,
    /// The columns of `b` and `c`.
    pub n: usize,
    /// The terms of each sum.
    pub k: usize,
    /// The left operand.
    pub a: PackedOperand,
    /// The right operand.
    pub b: PackedOperand,
    /// The first element of the result.
    pub c: *mut u8,
    /// From one row of the result to the next, in elements.
    pub c_rows: isize,
    /// From one column of the result to the next, in elements.
    pub c_columns: isize,
    /// Whether the product is added to the present contents of the result.
    pub adds: bool,
    /// Whether sums are along the contraction: see [`sums_lines`].
    pub lines: bool,
}

/// The most rows or columns of a product that sums along the contraction, and its fewest terms.
const FEW_LINES: usize = 12;
const LEAST_TERMS: usize = 64;

/// Whether a product of an m by k and a k by n matrix of floats is fastest as sums along the contraction, in which terms of both operands are
/// `along` elements apart. Such sums round in another order, so this is asked for a product before it is cut.
pub fn sums_lines([m, n, k]: [usize; 3], along: [isize; 2]) -> bool {
    along == [1, 1] && m.min(n) <= FEW_LINES && k >= LEAST_TERMS
}

/// Code for products in a format.
#[derive(Clone, Copy, Debug)]
pub struct PackedKernel {
    /// Its format and instructions, such as `bytes avx512vnni`.
    pub name: &'static str,
    format: LaneFormat,
    is_available: fn() -> bool,
    multiply: unsafe fn(&PackedProduct),
}

/// The meaning of a lane of a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaneFormat {
    Bytes,
    Words,
    Ints,
    Longs,
    Floats,
    Singles,
    Doubles,
}

impl LaneFormat {
    /// Whether these elements fit into its terms.
    fn takes(self, element: PackedElement) -> bool {
        match element {
            PackedElement::I8 | PackedElement::U8 => {
                matches!(self, LaneFormat::Bytes | LaneFormat::Words | LaneFormat::Ints)
            }
            PackedElement::I16 => matches!(self, LaneFormat::Words | LaneFormat::Ints),
            PackedElement::U16 | PackedElement::Bits32 => self == LaneFormat::Ints,
            PackedElement::Bits64 => self == LaneFormat::Longs,
            PackedElement::Bf16 => self == LaneFormat::Floats,
            PackedElement::F32 => self == LaneFormat::Singles,
            PackedElement::F64 => self == LaneFormat::Doubles,
        }
    }
}

/// For 8-bit operands; the fastest first, as in the other lists.
const BYTES: &[PackedKernel] = &[
    #[cfg(target_arch = "x86_64")]
    x86::BYTES_512,
    #[cfg(target_arch = "x86_64")]
    x86::BYTES_256,
];

/// For operands of up to 16 bits, except unsigned ones of 16.
const WORDS: &[PackedKernel] = &[
    #[cfg(target_arch = "x86_64")]
    x86::WORDS_512,
    #[cfg(target_arch = "x86_64")]
    x86::WORDS_256,
    #[cfg(target_arch = "x86_64")]
    x86::WORDS_MADD_512,
    #[cfg(target_arch = "x86_64")]
    x86::WORDS_MADD_256,
];

/// For operands of up to 32 bits.
const INTS: &[PackedKernel] = &[
    #[cfg(target_arch = "x86_64")]
    x86::INTS_512,
    #[cfg(target_arch = "x86_64")]
    x86::INTS_256,
    portable::INTS,
];

/// For operands of 64 bits.
const LONGS: &[PackedKernel] = &[
    #[cfg(target_arch = "x86_64")]
    x86::LONGS_512,
    #[cfg(target_arch = "x86_64")]
    x86::LONGS_256,
    portable::LONGS,
];

/// For operands of bf16.
const FLOATS: &[PackedKernel] = &[
    #[cfg(target_arch = "x86_64")]
    x86::FLOATS_512,
    #[cfg(target_arch = "x86_64")]
    x86::FLOATS_256,
    portable::FLOATS,
];

/// For operands of f32, on processors that round a product and a sum once.
const SINGLES: &[PackedKernel] = &[
    #[cfg(target_arch = "x86_64")]
    x86::SINGLES_512,
    #[cfg(target_arch = "x86_64")]
    x86::SINGLES_256,
];

/// For operands of f64, on the same processors.
const DOUBLES: &[PackedKernel] = &[
    #[cfg(target_arch = "x86_64")]
    x86::DOUBLES_512,
    #[cfg(target_arch = "x86_64")]
    x86::DOUBLES_256,
];

impl PackedKernel {
    /// All kernels that this processor has and that take these operands.
    pub fn all(a: PackedElement, b: PackedElement) -> Vec<PackedKernel> {
        let all = [BYTES, WORDS, INTS, LONGS, FLOATS, SINGLES, DOUBLES].concat();
        all.into_iter().filter(|kernel| kernel.takes(a, b) && (kernel.is_available)()).collect()
    }

    /// Whether it multiplies elements of these types.
    pub fn takes(&self, a: PackedElement, b: PackedElement) -> bool {
        self.format.takes(a) && self.format.takes(b)
    }

    /// The fastest of a list that takes the operands. The last of each needed list is portable.
    fn fastest(kernels: &[PackedKernel], product: &PackedProduct) -> Option<PackedKernel> {
        let takes = |kernel: &&PackedKernel| kernel.takes(product.a.element, product.b.element);
        kernels.iter().find(|kernel| takes(kernel) && (kernel.is_available)()).copied()
    }

    /// Computes a product. Nothing happens if the kernel does not take the operands.
    ///
    /// # Safety
    /// The processor has the kernel's instructions. All elements of the operands that the extents and strides describe can be read, all of
    /// the result can be written, and no other thread writes them. The result does not overlap the operands, and its elements do not
    /// overlap.
    pub unsafe fn run(&self, product: &PackedProduct) {
        debug_assert!(self.takes(product.a.element, product.b.element), "{} multiplies {product:?}", self.name);
        if product.m > 0 && product.n > 0 && self.takes(product.a.element, product.b.element) {
            // SAFETY: as promised by the caller.
            unsafe { (self.multiply)(product) }
        }
    }
}

/// Computes a product of elements of 8 bits.
///
/// # Safety
/// As for [`PackedKernel::run`], but for the instructions.
pub unsafe fn multiply_bytes(product: &PackedProduct) {
    // SAFETY: as promised by the caller; the kernel is available.
    unsafe { run_first(&[BYTES, WORDS, INTS], product) }
}

/// Computes a product of elements of up to 32 bits.
///
/// # Safety
/// As for [`multiply_bytes`].
pub unsafe fn multiply_words(product: &PackedProduct) {
    // SAFETY: as promised by the caller; the kernel is available.
    unsafe { run_first(&[WORDS, INTS], product) }
}

/// Computes a product of elements of up to 32 bits, of which one operand has 32 bits or is unsigned with 16.
///
/// # Safety
/// As for [`multiply_bytes`].
pub unsafe fn multiply_ints(product: &PackedProduct) {
    // SAFETY: as promised by the caller; the kernel is available.
    unsafe { run_first(&[INTS], product) }
}

/// Computes a product of elements of 64 bits.
///
/// # Safety
/// As for [`multiply_bytes`].
pub unsafe fn multiply_longs(product: &PackedProduct) {
    // SAFETY: as promised by the caller; the kernel is available.
    unsafe { run_first(&[LONGS], product) }
}

/// Computes a product of elements of bf16.
///
/// # Safety
/// As for [`multiply_bytes`].
pub unsafe fn multiply_bf16(product: &PackedProduct) {
    // SAFETY: as promised by the caller; the kernel is available.
    unsafe { run_first(&[FLOATS], product) }
}

/// Computes a product of elements of f32. Nothing happens if the processor has no kernel for them ([`has_fused_kernels`]).
///
/// # Safety
/// As for [`multiply_bytes`].
pub unsafe fn multiply_f32(product: &PackedProduct) {
    // SAFETY: as promised by the caller; the kernel is available.
    unsafe { run_first(&[SINGLES], product) }
}

/// Computes a product of elements of f64. Nothing happens if the processor has no kernel for them ([`has_fused_kernels`]).
///
/// # Safety
/// As for [`multiply_bytes`].
pub unsafe fn multiply_f64(product: &PackedProduct) {
    // SAFETY: as promised by the caller; the kernel is available.
    unsafe { run_first(&[DOUBLES], product) }
}

/// Whether this processor has kernels for f32 and f64. It has one for each of the other types.
pub fn has_fused_kernels() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// # Safety
/// As for [`multiply_bytes`].
unsafe fn run_first(lists: &[&[PackedKernel]], product: &PackedProduct) {
    let found = lists.iter().find_map(|kernels| PackedKernel::fastest(kernels, product));
    debug_assert!(found.is_some(), "no kernel multiplies {product:?}");
    if let Some(kernel) = found {
        // SAFETY: as promised by the caller; the kernel is available.
        unsafe { kernel.run(product) }
    }
}
