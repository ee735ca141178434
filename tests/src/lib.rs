//! The harness: small programs with expectations, run on every mesh and compared with the reference evaluator.

pub mod accuracy;
pub mod case;
pub mod compare;
pub mod dumps;
pub mod engine;
pub mod functions;
pub mod fuzz;
pub mod races;
pub mod random;
pub mod reshards;
pub mod screen;
pub mod xla;

use std::path::{Path, PathBuf};

/// The six meshes that every two-axis program runs on.
pub const MESHES: [&str; 6] = ["1x1", "2x4", "4x2", "1x8", "3x2", "5x3"];

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
