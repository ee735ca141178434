//! The destination of a value that moves to another mesh.

/// The destination of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// This mesh, by its position in [`Mesh::named`](spmdc_layout::mesh::Mesh::named).
    Mesh(u8),
    /// This mesh, on which the value must be unless it is on no mesh: `x: f32[4] on first`. Only while a program is checked.
    Declared(u8),
    /// The mesh of the operand of the transfer with the same number. Only while a program is checked.
    Back,
}

/// The mesh to which a transfer moves its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferTarget {
    /// The destination of the value.
    pub to: Target,
    /// Identifies a transfer of the program, so that its cotangent can be moved back; 0 in a finished module.
    pub number: u32,
}
