//! Plans of Fourier transforms of one line, by `rustfft` and `realfft`, whose generic code is compiled here, once, for both element types.
//!
//! Transforms are not scaled: a transform and its inverse multiply a line by its length.

#![warn(missing_docs)]

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

pub use realfft::{ComplexToReal, FftNum, RealToComplex};
pub use rustfft::Fft;
pub use rustfft::num_complex::Complex;

use realfft::RealFftPlanner;
use rustfft::FftPlanner;

/// An element type of lines. Plans of one length share their tables, whoever asks for them.
pub trait LineElement: FftNum + Default {
    /// The transform of a complex line of this length, or its inverse.
    fn complex(len: usize, inverse: bool) -> Arc<dyn Fft<Self>>;

    /// The transform of a real line of this length into `len / 2 + 1` complex numbers.
    fn of_real(len: usize) -> Arc<dyn RealToComplex<Self>>;

    /// The inverse of [`LineElement::of_real`].
    fn to_real(len: usize) -> Arc<dyn ComplexToReal<Self>>;
}

/// The planners of an element type keep the tables of all lengths that were asked for. Each is made when it is first needed.
struct Planners<T: FftNum> {
    complex: LazyLock<Mutex<FftPlanner<T>>>,
    real: LazyLock<Mutex<RealFftPlanner<T>>>,
}

static SINGLE: Planners<f32> = Planners::new(|| Mutex::new(FftPlanner::new()), || Mutex::new(RealFftPlanner::new()));
static DOUBLE: Planners<f64> = Planners::new(|| Mutex::new(FftPlanner::new()), || Mutex::new(RealFftPlanner::new()));

impl<T: FftNum> Planners<T> {
    const fn new(complex: fn() -> Mutex<FftPlanner<T>>, real: fn() -> Mutex<RealFftPlanner<T>>) -> Planners<T> {
        Planners { complex: LazyLock::new(complex), real: LazyLock::new(real) }
    }
}

/// A planner is only a cache of tables: a panic elsewhere leaves it usable.
fn locked<P>(planner: &Mutex<P>) -> MutexGuard<'_, P> {
    planner.lock().unwrap_or_else(PoisonError::into_inner)
}

macro_rules! real_types {
    ($($type:ty => $planners:ident)*) => {$(
        impl LineElement for $type {
            fn complex(len: usize, inverse: bool) -> Arc<dyn Fft<$type>> {
                let mut planner = locked(&$planners.complex);
                if inverse { planner.plan_fft_inverse(len) } else { planner.plan_fft_forward(len) }
            }

            fn of_real(len: usize) -> Arc<dyn RealToComplex<$type>> {
                locked(&$planners.real).plan_fft_forward(len)
            }

            fn to_real(len: usize) -> Arc<dyn ComplexToReal<$type>> {
                locked(&$planners.real).plan_fft_inverse(len)
            }
        }
    )*};
}

real_types!(f32 => SINGLE f64 => DOUBLE);
