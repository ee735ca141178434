//! Products of matrices by the crate `runtime/product`.
//!
//! The bits do not depend on the cut of a product into rows and columns.

use super::matrix_product::MatrixProduct;
use spmdc_abi::DType;
use spmdc_product::packed::{
    PackedElement, PackedOperand, PackedProduct, has_fused_kernels, multiply_bf16, multiply_bytes, multiply_f32,
    multiply_f64, multiply_ints, multiply_longs, multiply_words,
};

/// Whether the operands are f32 or f64.
fn are_floats(operands: [DType; 2]) -> bool {
    matches!(operands, [DType::F32, DType::F32] | [DType::F64, DType::F64])
}

/// Whether products of these operands are by this crate, and not by `gemm`. The names of the kernels would keep them in every executable.
pub(crate) fn multiplies(operands: [DType; 2]) -> bool {
    !are_floats(operands) || has_fused_kernels()
}

/// Whether the operands are f32 or f64, and their products by this crate.
pub(crate) fn multiplies_floats(operands: [DType; 2]) -> bool {
    are_floats(operands) && has_fused_kernels()
}

/// # Safety
/// As for `PreparedProduct::run`.
pub(crate) unsafe fn product_i8(product: &MatrixProduct<'_>) {
    // SAFETY: as promised by the caller.
    unsafe { contract(product, multiply_bytes) }
}

/// # Safety
/// As for [`product_i8`].
pub(crate) unsafe fn product_i16(product: &MatrixProduct<'_>) {
    // SAFETY: as promised by the caller.
    unsafe { contract(product, multiply_words) }
}

/// # Safety
/// As for [`product_i8`].
pub(crate) unsafe fn product_i32(product: &MatrixProduct<'_>) {
    // SAFETY: as promised by the caller.
    unsafe { contract(product, multiply_ints) }
}

/// # Safety
/// As for [`product_i8`].
pub(crate) unsafe fn product_i64(product: &MatrixProduct<'_>) {
    // SAFETY: as promised by the caller.
    unsafe { contract(product, multiply_longs) }
}

/// # Safety
/// As for [`product_i8`].
pub(crate) unsafe fn product_bf16(product: &MatrixProduct<'_>) {
    // SAFETY: as promised by the caller.
    unsafe { contract(product, multiply_bf16) }
}

/// # Safety
/// As for [`product_i8`]; [`multiplies`] the operands.
pub(crate) unsafe fn product_f32(product: &MatrixProduct<'_>) {
    // SAFETY: as promised by the caller.
    unsafe { contract(product, multiply_f32) }
}

/// # Safety
/// As for [`product_i8`]; [`multiplies`] the operands.
pub(crate) unsafe fn product_f64(product: &MatrixProduct<'_>) {
    // SAFETY: as promised by the caller.
    unsafe { contract(product, multiply_f64) }
}

/// The elements of an operand. Programs with other types have been refused.
fn element(dtype: DType) -> Option<PackedElement> {
    match dtype {
        DType::I8 => Some(PackedElement::I8),
        DType::Bool | DType::U8 => Some(PackedElement::U8),
        DType::I16 => Some(PackedElement::I16),
        DType::U16 => Some(PackedElement::U16),
        DType::I32 | DType::U32 => Some(PackedElement::Bits32),
        DType::I64 | DType::U64 => Some(PackedElement::Bits64),
        DType::Bf16 => Some(PackedElement::Bf16),
        DType::F32 => Some(PackedElement::F32),
        DType::F64 => Some(PackedElement::F64),
        DType::F16 | DType::F8e4m3 | DType::F8e5m2 | DType::Key => None,
    }
}

/// Sums the products over all contracted dimensions.
///
/// # Safety
/// As for [`product_i8`].
unsafe fn contract(product: &MatrixProduct<'_>, multiply: unsafe fn(&PackedProduct)) {
    let MatrixProduct { m, n, k, .. } = *product;
    let elements = product.operands.map(element);
    debug_assert!(elements.iter().all(Option::is_some), "products of {:?} are refused", product.operands);
    let [Some(of_a), Some(of_b)] = elements else { return };
    let sizes = product.operands.map(|operand| operand.size() as isize);
    product.each_pass(|(a, b), depth, adds| {
        let operand =
            |first: *const u8, element, across: isize, along: isize| PackedOperand { first, element, across, along };
        let part = PackedProduct {
            m: m.len,
            n: n.len,
            k: depth,
            a: operand(product.a.wrapping_offset(a * sizes[0]), of_a, m.a, k.a),
            b: operand(product.b.wrapping_offset(b * sizes[1]), of_b, n.b, k.b),
            c: product.c,
            c_rows: m.c,
            c_columns: n.c,
            adds,
            lines: product.lines,
        };
        // SAFETY: as promised by the caller.
        unsafe { multiply(&part) };
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::matrix_product::GemmExtent;

    #[test]
    fn further_contracted_dimensions_are_summed() {
        // c[m, n] = a[m, j, k] b[j, k, n], and an empty sum.
        let (m, n, k) = (3, 5, 7);
        for j in [0, 1, 2] {
            let a: Vec<u8> = (0..m * j * k).map(|i| (i * 37 % 256) as u8).collect();
            let b: Vec<i8> = (0..j * k * n).map(|i| (i * 91 % 256) as u8 as i8).collect();
            let mut c = vec![-1_i32; m * n];
            let extent = |len: usize, a: usize, b: usize, c: usize| GemmExtent {
                len,
                a: a as isize,
                b: b as isize,
                c: c as isize,
            };
            let product = MatrixProduct {
                operands: [DType::U8, DType::I8],
                a: a.as_ptr(),
                b: b.as_ptr().cast(),
                c: c.as_mut_ptr().cast(),
                m: extent(m, j * k, 0, n),
                n: extent(n, 0, 1, 1),
                k: extent(k, 1, n, 0),
                contracted: &[extent(j, k, k * n, 0)],
                adds: false,
                lines: false,
            };
            // SAFETY: the arrays have the sizes that the product was made for.
            unsafe { product_i8(&product) };
            for (at, value) in c.iter().enumerate() {
                let (row, column) = (at / n, at % n);
                let terms = (0..j * k).map(|i| i32::from(a[row * j * k + i]) * i32::from(b[i * n + column]));
                assert_eq!(*value, terms.sum::<i32>(), "{j}");
            }
        }
    }
}
