//! Operands of products that are better stored in another order.
//!
//! The library multiplies panels whose elements along the result's last dimension are adjacent. It copies an operand that is stored in the
//! other order into such panels, for each product. If several devices multiply with the same block, as all devices of data parallel
//! training do with the weights in `d @ w.T`, each of them would make these copies. A transposed copy is made once, by all of them
//! together.

use crate::einsum::{Einsum, position};
use spmdc_ir::program::{Func, Stmt};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::Type;
use spmdc_ops::transpose::Transpose;

/// Maximum rows of the other operand on a device. A product with more of them takes so long that the copies do not count: at 512 they
/// are about a twentieth of it.
const MAX_ROWS: usize = 512;

/// An operand to transpose: its number, how, and the product with it.
#[derive(Debug)]
pub struct Turned {
    /// The operand, by its number.
    pub operand: usize,
    /// The statement that makes the operand's other order.
    pub transpose: Transpose,
    /// The product with the operand in that order.
    pub product: Einsum,
}

impl Einsum {
    /// Whether the library computes this statement's product.
    pub fn is_library_product_of(&self, stmt: &Stmt, func: &Func) -> bool {
        self.is_library_product(&[0, 1].map(|at| &func.ty(stmt.args[at]).array))
    }

    /// The same product with another operand in place of its transpose: dimension `i` of the transpose is dimension `axes[i]` of the operand.
    pub fn of_transposed(&self, operand: usize, axes: &[usize]) -> Einsum {
        let mut product = self.clone();
        let labels = if operand == 0 { &mut product.lhs } else { &mut product.rhs };
        let mut stored: Vec<(usize, char)> = axes.iter().copied().zip(labels.chars()).collect();
        stored.sort_unstable();
        *labels = stored.into_iter().map(|(_, label)| label).collect();
        product
    }

    /// The operand that the devices should transpose together before the product; None if the product is fine as it is.
    pub fn turned(&self, stmt: &Stmt, func: &Func, mesh: &Mesh) -> Option<Turned> {
        let types: [&Type; 2] = [0, 1].map(|at| func.ty(stmt.args[at]));
        let result = func.ty(stmt.results[0]);
        let is_aligned = types.iter().any(|ty| ty.sharding.is_aligned());
        // Products of integers pack their operands in any order, and may read narrower ones.
        let is_float = types[0].dtype().is_float();
        if is_aligned || !is_float || !self.is_library_product(&[&types[0].array, &types[1].array]) {
            return None;
        }
        let adjacent = self.result.chars().last()?;
        let labels = [&self.lhs, &self.rhs];
        // The operand that has the result's last dimension, and not as its own last one, which is summed over.
        let operand = (0..2).find(|&at| !labels[1 - at].contains(adjacent) && labels[at].contains(adjacent))?;
        let (own, other) = (labels[operand], labels[1 - operand]);
        let last = own.chars().last()?;
        if last == adjacent || self.result.contains(last) {
            return None;
        }
        let sharing = result.distinct_axes().minus(types[operand].distinct_axes());
        let is_large = types[operand].block_bytes(mesh) >= mesh.machine.shared_operand_bytes;
        let other_shape = types[1 - operand].block_shape(mesh);
        let is_row = |label: &char| !own.contains(*label);
        let rows: usize =
            other.chars().zip(&other_shape).filter(|(label, _)| is_row(label)).map(|(_, &len)| len).product();
        if mesh.size_of_set(sharing) < 2 || !is_large || rows > MAX_ROWS {
            return None;
        }
        let at = position(own, adjacent)?;
        let mut axes: Vec<usize> = (0..own.chars().count()).filter(|&axis| axis != at).collect();
        axes.push(at);
        let turned: String = own.chars().filter(|&label| label != adjacent).chain([adjacent]).collect();
        let mut product = self.clone();
        *(if operand == 0 { &mut product.lhs } else { &mut product.rhs }) = turned;
        Some(Turned { operand, transpose: Transpose { axes }, product })
    }
}
