//! Measures how far the math functions are from the truth, in units in the last place.
//!
//! ```text
//! cargo run --release -p spmdc-tests --bin ulp                       every f32 of every function
//! cargo run --release -p spmdc-tests --bin ulp -- --f64 exp log      10^8 samples of two functions
//! cargo run --release -p spmdc-tests --bin ulp -- --samples 1000000  a quick look, f32 inputs evenly spread
//! ```
//!
//! With `RUSTFLAGS="-C target-cpu=native"` a fused multiply-add is an instruction instead of a call, which saves half of the
//! time.
//!
//! Prints one row of a table per function: the largest error and where it is, the mean error, and how many answers are
//! wrong in kind (NaN or not, infinite or not, the sign of a zero). The exit status is 1 if a bound is exceeded: 1 ULP in
//! single and 2 ULP in double precision. The truth comes from C's functions in a wider format (`reference/reference.c`).

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use spmdc_compiler::math::{Bundle, MathFn, MathFn2, eval_f32, eval_f64, eval2_f32, eval2_f64, unary_f32};

/// How many inputs are evaluated between two looks at the shared counter.
const CHUNK: u64 = 1 << 16;
/// The reference functions are slow enough for two threads to be worth it, and for more to be unkind to others.
const THREADS: usize = 2;

mod reference {
    use std::ffi::c_int;

    // A build script's libraries reach a package's library only, and the sweep is a program.
    #[link(name = "reference", kind = "static")]
    unsafe extern "C" {
        pub fn reference_unary_f32(f: c_int, n: usize, x: *const f32, y: *mut f64);
        pub fn reference_unary_f64(f: c_int, n: usize, x: *const f64, high: *mut f64, low: *mut f64);
        pub fn reference_binary(f: c_int, n: usize, x: *const f64, y: *const f64, high: *mut f64, low: *mut f64);
    }
}

fn main() -> ExitCode {
    let mut wide = false;
    let mut samples = None;
    let mut names = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--f64" => wide = true,
            "--samples" => {
                samples = arguments.next().and_then(|n| n.parse().ok());
                if samples.is_none() {
                    eprintln!("--samples needs a number");
                    return ExitCode::from(2);
                }
            }
            name if Function::from_name(name).is_some() => names.push(argument),
            name => {
                eprintln!("there is no function `{name}`");
                return ExitCode::from(2);
            }
        }
    }
    println!("| function | max ULP | at | mean ULP | wrong in kind | inputs |");
    println!("|---|---|---|---|---|---|");
    let mut good = true;
    for function in Function::all().filter(|f| names.is_empty() || names.iter().any(|n| n == f.name())) {
        let sweep = if wide { Sweep::f64(function, samples) } else { Sweep::f32(function, samples) };
        let result = sweep.run();
        println!("{}", result.row(function));
        good &= result.wrong == 0 && result.max <= if wide { 2.0 } else { 1.0 };
    }
    if good { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

#[derive(Clone, Copy)]
enum Function {
    Unary(MathFn),
    Binary(MathFn2),
}

impl Function {
    fn all() -> impl Iterator<Item = Function> {
        let unary = MathFn::ALL.iter().map(|&f| Function::Unary(f));
        unary.chain(MathFn2::ALL.iter().map(|&f| Function::Binary(f)))
    }

    fn name(self) -> &'static str {
        match self {
            Function::Unary(f) => f.name(),
            Function::Binary(f) => f.name(),
        }
    }

    fn from_name(name: &str) -> Option<Function> {
        Function::all().find(|f| f.name() == name)
    }

    /// The interval in which the function does most of its work.
    fn interval(self) -> (f64, f64) {
        match self {
            Function::Unary(f) => match f {
                MathFn::Exp | MathFn::Expm1 | MathFn::Sinh | MathFn::Cosh => (-750.0, 712.0),
                MathFn::Exp2 => (-1080.0, 1026.0),
                MathFn::Log | MathFn::Log2 | MathFn::Log10 => (0.25, 4.0),
                MathFn::Log1p => (-1.0, 4.0),
                MathFn::Sin | MathFn::Cos | MathFn::Tan => (-1e4, 1e4),
                MathFn::Asin | MathFn::Acos | MathFn::Atanh | MathFn::ErfInv => (-1.0, 1.0),
                MathFn::Erf => (-6.5, 6.5),
                MathFn::Erfc => (-6.5, 28.0),
                MathFn::Tanh => (-20.0, 20.0),
                MathFn::Acosh => (1.0, 10.0),
                MathFn::Sqrt | MathFn::Rsqrt => (0.0, 100.0),
                MathFn::Cbrt | MathFn::Atan | MathFn::Asinh => (-10.0, 10.0),
                MathFn::Floor | MathFn::Ceil | MathFn::Round | MathFn::Trunc => (-100.0, 100.0),
            },
            Function::Binary(f) => match f {
                MathFn2::Pow => (0.0, 3.0),
                MathFn2::Atan2 | MathFn2::Hypot | MathFn2::Logaddexp => (-40.0, 40.0),
            },
        }
    }
}

/// One function in one precision over one set of inputs.
struct Sweep {
    function: Function,
    wide: bool,
    inputs: u64,
}

impl Sweep {
    /// All single precision numbers, or every n-th of them; as many pairs as the samples of double precision.
    fn f32(function: Function, samples: Option<u64>) -> Sweep {
        let all = match function {
            Function::Unary(_) => 1 << 32,
            Function::Binary(_) => 100_000_000,
        };
        Sweep { function, wide: false, inputs: samples.unwrap_or(all) }
    }

    fn f64(function: Function, samples: Option<u64>) -> Sweep {
        Sweep { function, wide: true, inputs: samples.unwrap_or(100_000_000) }
    }

    fn run(&self) -> Errors {
        let next = AtomicU64::new(0);
        let mut total = Errors::default();
        std::thread::scope(|scope| {
            let work = || {
                let mut errors = Errors::default();
                loop {
                    let begin = next.fetch_add(CHUNK, Ordering::Relaxed);
                    if begin >= self.inputs {
                        return errors;
                    }
                    self.chunk(begin, self.inputs.min(begin + CHUNK), &mut errors);
                }
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
            for thread in threads {
                total.merge(thread.join().expect("a sweep does not panic"));
            }
        });
        self.specials(&mut total);
        total
    }

    fn chunk(&self, begin: u64, end: u64, errors: &mut Errors) {
        match (self.function, self.wide) {
            (Function::Unary(f), false) => {
                // An odd stride visits numbers of every exponent and, taken 2^32 / stride times, none twice.
                let stride = ((1 << 32) / self.inputs) | 1;
                let x: Vec<f32> = (begin..end).map(|i| f32::from_bits((i * stride) as u32)).collect();
                errors.unary_f32(f, &x);
            }
            (Function::Unary(f), true) => {
                let mut x: Vec<f64> = (begin..end).map(|i| sample(self.function.interval(), i, 0)).collect();
                if matches!(f, MathFn::Sin | MathFn::Cos | MathFn::Tan) {
                    // Every eighth is next to a multiple of a right angle, where the reduction is hardest.
                    let right = std::f64::consts::FRAC_PI_2;
                    x.iter_mut().step_by(8).for_each(|x| *x = (*x / right).round() * right);
                }
                errors.unary_f64(f, &x);
            }
            (Function::Binary(f), _) => {
                let pairs: Vec<(f64, f64)> = (begin..end).map(|i| self.pair(f, i)).collect();
                errors.binary(f, self.wide, &pairs);
            }
        }
    }

    /// The i-th pair of arguments.
    fn pair(&self, f: MathFn2, i: u64) -> (f64, f64) {
        let interval = self.function.interval();
        let (x, mut y) = (sample(interval, i, 1), sample(interval, i, 2));
        // Most random powers overflow; half the time the exponent is chosen to avoid that.
        if f == MathFn2::Pow && i.is_multiple_of(2) {
            let limit = if self.wide { 745.0 } else { 104.0 };
            y = (2.0 * unit(random(i, 3)) - 1.0) * limit / x.abs().ln();
        }
        // Half the time the two are of one size, where hypot and logaddexp have something to do.
        if f != MathFn2::Pow && i.is_multiple_of(2) {
            y = x * (1.0 + unit(random(i, 3)) - unit(random(i, 4)));
        }
        if self.wide { (x, y) } else { (f64::from(x as f32), f64::from(y as f32)) }
    }

    /// The arguments that C's annex F names, and their neighbours.
    fn specials(&self, errors: &mut Errors) {
        let mut x =
            vec![0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 1e-300, 1e300, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY, f64::NAN];
        x.extend([f64::from_bits(1), 1.0 - f64::EPSILON / 2.0, 1.0 + f64::EPSILON, 9007199254740993.0, 1e22]);
        x.extend([f64::from(f32::MAX), f64::from(f32::MIN_POSITIVE), f64::from(f32::from_bits(1)), 709.79, -745.2]);
        x.extend(x.clone().iter().map(|x| -x));
        match (self.function, self.wide) {
            (Function::Unary(f), false) => errors.unary_f32(f, &x.iter().map(|&x| x as f32).collect::<Vec<_>>()),
            (Function::Unary(f), true) => errors.unary_f64(f, &x),
            (Function::Binary(f), wide) => {
                if !wide {
                    x.iter_mut().for_each(|x| *x = f64::from(*x as f32));
                }
                let pairs: Vec<_> = x.iter().flat_map(|&a| x.iter().map(move |&b| (a, b))).collect();
                errors.binary(f, wide, &pairs);
            }
        }
    }
}

/// A random number that depends on `i` and `stream` only.
fn random(i: u64, stream: u64) -> u64 {
    let mut z = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(stream.wrapping_mul(0xd1b5_4a32_d192_ed03));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// From 0 to 1.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (0.5 / (1u64 << 52) as f64)
}

/// Half of the samples lie evenly in the interval, a quarter has any exponent from -60 to 11, the rest any bits at all.
fn sample((low, high): (f64, f64), i: u64, stream: u64) -> f64 {
    let bits = random(i, 2 * stream);
    match random(i, 2 * stream + 1) % 4 {
        0 => f64::from_bits(bits),
        1 => {
            let exponent = 1023 - 60 + (bits >> 52) % 72;
            let negative = low < 0.0 && bits >> 63 == 1;
            f64::from_bits(bits << 12 >> 12 | exponent << 52 | u64::from(negative) << 63)
        }
        _ => low + (high - low) * unit(bits),
    }
}

#[derive(Default)]
struct Errors {
    max: f64,
    at: String,
    sum: f64,
    counted: u64,
    wrong: u64,
    wrong_at: String,
}

impl Errors {
    fn merge(&mut self, other: Errors) {
        if other.max > self.max {
            (self.max, self.at) = (other.max, other.at);
        }
        if self.wrong == 0 {
            self.wrong_at = other.wrong_at;
        }
        self.sum += other.sum;
        self.counted += other.counted;
        self.wrong += other.wrong;
    }

    fn row(&self, function: Function) -> String {
        let mean = self.sum / self.counted.max(1) as f64;
        let wrong = if self.wrong == 0 { "0".to_string() } else { format!("{}, {}", self.wrong, self.wrong_at) };
        format!("| {} | {:.4} | {} | {mean:.4} | {wrong} | {} |", function.name(), self.max, self.at, self.counted)
    }

    /// Counts one answer: `got` was computed, the truth is `high + low`, and the error is measured in places of a number
    /// like `size` in the given format.
    fn add(&mut self, got: f64, (high, low): (f64, f64), size: f64, format: &Format, input: impl Fn() -> String) {
        self.counted += 1;
        let truth = format.round(high);
        let same_kind = got.is_nan() == truth.is_nan()
            && (!truth.is_infinite() && !got.is_infinite() || got == truth || format.barely_finite(got, truth))
            && (high != 0.0 || got == 0.0 && got.is_sign_negative() == high.is_sign_negative());
        if !same_kind {
            if self.wrong == 0 {
                self.wrong_at = format!("{} gives {got:e} for {truth:e}", input());
            }
            self.wrong += 1;
            return;
        }
        if truth.is_nan() || got == truth && low == 0.0 && high == truth {
            return;
        }
        let limited = got.clamp(-format.beyond, format.beyond);
        let error = ((limited - high.clamp(-format.beyond, format.beyond)) - low).abs() / format.ulp(size);
        self.sum += error;
        if error > self.max {
            self.max = error;
            self.at = input();
        }
    }

    fn unary_f32(&mut self, f: MathFn, x: &[f32]) {
        let mut truth = vec![0.0; x.len()];
        // SAFETY: both arrays have `x.len()` elements.
        unsafe { reference::reference_unary_f32(f as i32, x.len(), x.as_ptr(), truth.as_mut_ptr()) };
        let mut got = vec![0.0; x.len()];
        let (bundles, rest) = x.as_chunks::<8>();
        let (bundles_got, rest_got) = got.as_chunks_mut::<8>();
        bundles.iter().zip(bundles_got).for_each(|(x, y)| *y = unary_f32(&mut Bundle, f, *x));
        rest.iter().zip(rest_got).for_each(|(&x, y)| *y = eval_f32(f, x));
        for ((&x, &got), &truth) in x.iter().zip(&got).zip(&truth) {
            let error = quick_error(got, truth);
            if error <= self.max {
                self.counted += 1;
                self.sum += error;
            } else {
                self.add(f64::from(got), (truth, 0.0), truth, &Format::SINGLE, || format!("{x:e}"));
            }
        }
    }

    fn unary_f64(&mut self, f: MathFn, x: &[f64]) {
        let (mut high, mut low) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        // SAFETY: all three arrays have `x.len()` elements.
        unsafe { reference::reference_unary_f64(f as i32, x.len(), x.as_ptr(), high.as_mut_ptr(), low.as_mut_ptr()) };
        for (i, &x) in x.iter().enumerate() {
            self.add(eval_f64(f, x), (high[i], low[i]), high[i], &Format::DOUBLE, || format!("{x:e}"));
        }
    }

    fn binary(&mut self, f: MathFn2, wide: bool, pairs: &[(f64, f64)]) {
        let n = pairs.len();
        let (x, y): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let (mut high, mut low) = (vec![0.0; n], vec![0.0; n]);
        // SAFETY: all four arrays have `n` elements.
        unsafe {
            reference::reference_binary(f as i32, n, x.as_ptr(), y.as_ptr(), high.as_mut_ptr(), low.as_mut_ptr())
        };
        for (i, &(x, y)) in pairs.iter().enumerate() {
            let (got, format) = if wide {
                (eval2_f64(f, x, y), &Format::DOUBLE)
            } else {
                (f64::from(eval2_f32(f, x as f32, y as f32)), &Format::SINGLE)
            };
            // ln(exp(x) + exp(y)) is the larger of the two plus a little, which may cancel; the places of the larger count.
            let size = if f == MathFn2::Logaddexp { high[i].abs().max(x.max(y).abs()) } else { high[i] };
            self.add(got, (high[i], low[i]), size, format, || format!("({x:e}, {y:e})"));
        }
    }
}

/// The error of an answer in single precision, or infinity where a closer look is needed.
#[inline(always)]
fn quick_error(got: f32, truth: f64) -> f64 {
    if got.is_nan() && truth.is_nan() {
        return 0.0;
    }
    if truth == 0.0 {
        return if got.to_bits() == (truth as f32).to_bits() { 0.0 } else { f64::INFINITY };
    }
    let place = ((truth.abs().to_bits() >> 52) as i64 - 1023).max(-126) - 23;
    let error = (f64::from(got) - truth).abs() * f64::from_bits(((1023 - place) as u64) << 52);
    if error.is_nan() { f64::INFINITY } else { error }
}

/// What an ULP is.
struct Format {
    wide: bool,
    digits: i32,
    /// The exponent of the last place of subnormal numbers.
    last: i32,
    /// Infinity counts as the power of two that would follow the largest number (as near as the arithmetic allows).
    beyond: f64,
}

impl Format {
    const SINGLE: Format = Format { wide: false, digits: 24, last: -149, beyond: 3.402823669209385e38 };
    const DOUBLE: Format = Format { wide: true, digits: 53, last: -1074, beyond: f64::MAX };

    fn round(&self, x: f64) -> f64 {
        if self.wide { x } else { f64::from(x as f32) }
    }

    /// One of the two is infinite and the other the largest number: an error of at most one place, not of kind.
    fn barely_finite(&self, a: f64, b: f64) -> bool {
        let largest = if self.wide { f64::MAX } else { f64::from(f32::MAX) };
        a.abs() >= largest && b.abs() >= largest && a.is_sign_negative() == b.is_sign_negative()
    }

    /// The distance of neighbouring numbers around `x`.
    fn ulp(&self, x: f64) -> f64 {
        let exponent = (x.abs().to_bits() >> 52) as i32 - 1023;
        let place = (exponent - self.digits + 1).max(self.last);
        if place >= -1022 { f64::from_bits(((place + 1023) as u64) << 52) } else { f64::from_bits(1 << (place + 1074)) }
    }
}
