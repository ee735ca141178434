//! What the compiler can say of a program: drawings, plans, JSON.

pub mod layout;
