//! The limits of tuples, structs and lists, and of their types.

/// Maximum number of leaves of a tuple, struct or list.
pub const MAX_LEAVES: usize = 1 << 16;

/// Maximum depth of tuples, structs and lists in each other.
pub const MAX_NESTING: usize = 200;

/// Maximum number of numbers in a list, which becomes an array.
pub const MAX_NUMBERS: usize = 1 << 20;
