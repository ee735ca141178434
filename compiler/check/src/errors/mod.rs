//! The checker's messages, one constructor for each, grouped by area, so that wording is reviewed together.

pub mod calls;
pub mod control;
pub mod indices;
pub mod items;
pub mod manual;
pub mod names;
pub mod shardings;
pub mod sizes;
pub mod streams;
pub mod types;
