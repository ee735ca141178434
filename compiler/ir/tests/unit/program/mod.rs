//! Programs: explicit layouts, partial sums and walks.

mod explicit;
mod partial_sums;
mod walk;
