//! Fits a plane to points with a function of fit.spmd.
//!
//!     spmdc build examples/callers/fit.spmd --emit lib -o libfit.a
//!     cc -shared -o libfit.so -Wl,-u,fit,-u,spmd_error,--version-script=examples/callers/fit.map libfit.a -lpthread -ldl -lm
//!     rustc examples/callers/caller.rs -L . -l fit -C link-arg=-Wl,-rpath,. -o caller
//!     ./caller 100

use std::ffi::{CStr, c_char, c_int};
use std::process::ExitCode;

const POINTS: usize = 1000;

/// As `libfit.h` declares them.
mod native {
    use super::*;

    unsafe extern "C" {
        pub fn fit(x: *const f32, y: *const f32, steps: *const i32, w: *mut f32, b: *mut f32, loss: *mut f32) -> c_int;
        pub fn spmd_error() -> *const c_char;
    }
}

struct Fit {
    w: [f32; 3],
    b: f32,
    loss: f32,
}

/// The plane after this many steps; otherwise the error with the line of fit.spmd.
fn fit(x: &[[f32; 3]; POINTS], y: &[f32; POINTS], steps: i32) -> Result<Fit, String> {
    let mut fit = Fit { w: [0.0; 3], b: 0.0, loss: 0.0 };
    // SAFETY: the arrays have the sizes in `libfit.h`, and nothing else uses them.
    let status = unsafe {
        let (w, b, loss) = (fit.w.as_mut_ptr(), &raw mut fit.b, &raw mut fit.loss);
        native::fit(x.as_flattened().as_ptr(), y.as_ptr(), &steps, w, b, loss)
    };
    if status == 0 {
        return Ok(fit);
    }
    // SAFETY: the text stays valid until the next call of this thread.
    Err(unsafe { CStr::from_ptr(native::spmd_error()) }.to_string_lossy().into_owned())
}

fn main() -> ExitCode {
    let steps = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(100);
    // Points of the plane 2 a - b + 0.5 c + 3.
    let x = std::array::from_fn(|i| std::array::from_fn(|j| ((i * (j + 2)) as f32).sin()));
    let y = x.map(|[a, b, c]: [f32; 3]| 2.0 * a - b + 0.5 * c + 3.0);
    match fit(&x, &y, steps) {
        Ok(Fit { w: [a, b, c], b: d, loss }) => {
            println!("{a:.3} a + {b:.3} b + {c:.3} c + {d:.3}, loss {loss:.1e}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprint!("{error}");
            ExitCode::FAILURE
        }
    }
}
