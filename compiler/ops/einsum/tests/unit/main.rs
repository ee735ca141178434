//! The notation of products.
#![allow(clippy::unwrap_used)]

mod spec;
