//! Programs: explicit layouts, partial sums and walks.

mod explicit;
mod walk;
