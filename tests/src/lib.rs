//! The harness: small programs with expectations, run on every mesh and compared with the reference evaluator.

pub mod accuracy;
pub mod case;
pub mod compare;
pub mod dumps;
pub mod engine;
pub mod functions;
pub mod fuzz;
#[allow(clippy::wildcard_enum_match_arm, reason = "the kinds of syntax trees")]
pub mod messages;
pub mod pipeline;
pub mod processes;
pub mod races;
pub mod random;
pub mod reshards;
pub mod screen;
pub mod textmate;
pub mod xla;

#[cfg(debug_assertions)]
use mimalloc::MiMalloc;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The tests compile and evaluate tens of thousands of programs, an eighth of the time in the system's allocator. Benchmarks, which are
/// release builds, measure with that of the product.
#[cfg(debug_assertions)]
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The six meshes that every two-axis program runs on.
pub const MESHES: [&str; 6] = ["1x1", "2x4", "4x2", "1x8", "3x2", "5x3"];

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// A paragraph of a generated page in lines of at most 140 characters; all lines after the first are indented.
pub fn wrapped(text: &str, indent: &str) -> String {
    let (mut lines, mut width) = (String::new(), 0);
    for word in text.split(' ') {
        let length = word.chars().count();
        // A line that begins with one of these would be an item of a list. They are short, so the bound of 140 still holds.
        let is_mark = ["-", "+", "*"].contains(&word);
        if width > 0 && width + 1 + length > 138 && !is_mark {
            lines.push('\n');
            lines.push_str(indent);
            width = indent.len();
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += length;
    }
    lines
}

/// The problems of each of these, in their order; two are checked at a time.
pub fn problems<T: Sync>(items: &[T], check: impl Fn(&T) -> Vec<String> + Sync) -> Vec<String> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(number) else { break };
            let wrong = check(item);
            found.lock().expect("no check panics while it adds problems").push((number, wrong));
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let mut found = found.into_inner().expect("no check panics while it adds problems");
    found.sort();
    found.into_iter().flat_map(|(_, wrong)| wrong).collect()
}
