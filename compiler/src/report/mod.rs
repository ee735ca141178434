//! The compiler's reports on a program: drawings, plans, JSON.

pub mod deferral;
pub mod document;
pub mod estimate;
pub mod functions;
pub mod json;
pub mod kept;
pub mod lints;
pub mod named;
pub mod plan;
mod step_time;
pub mod timeline;
pub mod why;
