//! Transformations of functions: derivatives and batching.

pub mod batching;
pub mod derivatives;
pub mod derived;
pub mod jacobians;
pub mod rule_layouts;
