//! Where a value goes that moves to another mesh.

/// Where a value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To this mesh, by its position in [`Mesh::named`](spmdc_layout::mesh::Mesh::named).
    Mesh(u8),
    /// To this mesh, on which it must be unless it is on no mesh: `x: f32[4] on first`. Only while a program is checked.
    Declared(u8),
    /// To where the operand of the transfer of the same number was. Only while a program is checked.
    Back,
}

/// The mesh to which a transfer moves its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferTarget {
    /// Where the value goes.
    pub to: Target,
    /// Distinguishes the transfers that a program writes, for those back; 0 in a finished module.
    pub number: u32,
}
