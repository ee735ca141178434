//! Tests of the reports.

mod functions;
mod json;
mod kept;
mod lints;
mod timeline;
mod why;
