//! Functions in which axes have another kind: `manual`, and `auto` or `explicit`.

pub mod manual;
pub mod summed;
pub mod turned;
