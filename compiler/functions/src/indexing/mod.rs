//! Indexing: `x[i]`, `x[1:-1, ::2]`, `x[..., None]`, `x[mask] = v`, where indices are numbers, dynamic scalars or integer arrays.
//!
//! Static indices and ranges are slices; `x[k : k + 4]` with a dynamic `k` is a `dynamic_slice`, and `x[k]` an `index`.
//!
//! Integer arrays and scalar indices broadcast together, and become a `gather`. As in NumPy, their dimensions replace the indexed
//! dimensions if these are adjacent, and come first otherwise.
//!
//! | file | does |
//! |---|---|
//! | `places` | indices that are numbers, lists or arrays, counted from the start |
//! | `plan` | which elements an index takes, and the shape of its result |
//! | `get` | `x[i]` |
//! | `rows` | `x[i]` of a stream |
//! | `assign` | `x[i] = v` and `x[i] += v` at slices and numbers |
//! | `put` | the same at indices from arrays |
//! | `masked` | the same at the elements that a mask chooses |

pub mod assign;
pub mod assign_at_indices;
pub mod get;
pub mod masked;
pub mod places;
pub mod plan;
pub mod rows;
