//! Declared types and sizes, and the layouts of values on explicit axes.

pub mod choices;
pub mod declared;
pub mod layouts;
pub mod sizes;
