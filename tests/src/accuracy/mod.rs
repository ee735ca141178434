//! How far the math functions are from the truth, in units in the last place.
//!
//! The measured code is machine code: each function is compiled as a separate program and run on chunks of numbers. A few answers of each
//! chunk are also asked of the evaluator, which must give the same bits. The truth comes from C's functions in a wider format. A few of
//! these values per chunk are compared with 113 digits, and so is the largest error, so that the error of the reference is known as well.
//!
//! ```no_run
//! use spmdc_abi::{DType, FloatFormat};
//! use spmdc_tests::accuracy::{Function, Sweep};
//! let sweep = Sweep { samples: Some(1 << 20), threads: 2 };
//! let errors = sweep.run(Function::from_name("exp").ok_or("no such function")?, DType::F32)?;
//! assert!(errors.good());
//! # Ok::<(), String>(())
//! ```

pub mod reference;
pub mod samples;
pub mod subject;

use reference::{Format, Tally};
use spmdc_abi::{DType, FloatFormat};
use spmdc_math::{MathFn, MathFn2, Symmetry};
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use subject::{CHUNK, Subject};

/// How many answers of a chunk are compared with the evaluator and the widest format.
const PROBES: u64 = 16;

/// A function with mathematics of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Function {
    One(MathFn),
    Two(MathFn2),
}

impl Function {
    /// Every function, in the order of the tables.
    pub fn all() -> impl Iterator<Item = Function> {
        let one = MathFn::of_programs().map(Function::One);
        one.chain(MathFn2::ALL.iter().map(|&f| Function::Two(f)))
    }

    pub fn name(self) -> &'static str {
        match self {
            Function::One(f) => f.name(),
            Function::Two(f) => f.name(),
        }
    }

    pub fn from_name(name: &str) -> Option<Function> {
        Function::all().find(|f| f.name() == name)
    }

    pub fn operands(self) -> usize {
        match self {
            Function::One(_) => 1,
            Function::Two(_) => 2,
        }
    }

    /// The number by which the reference knows it.
    fn number(self) -> c_int {
        match self {
            Function::One(f) => f as c_int,
            Function::Two(f) => f as c_int,
        }
    }

    /// `s` where `f(-x) = s f(x)`.
    fn symmetry(self) -> Option<f32> {
        match self {
            Function::One(f) => f.description().symmetry.map(|symmetry| match symmetry {
                Symmetry::Even => 1.0,
                Symmetry::Odd => -1.0,
            }),
            Function::Two(_) => None,
        }
    }
}

/// The largest error that a function may have. Half precision rounds what single precision gives: half a place, and one place of
/// a format with 13 or 16 digits more.
pub fn bound(dtype: DType) -> f64 {
    match (dtype, dtype.format()) {
        (DType::F64, _) => 2.0,
        (DType::F32, _) | (_, None) => 1.0,
        (_, Some(format)) => 0.5 + 0.5_f64.powi((FloatFormat::F32.mantissa - format.mantissa) as i32),
    }
}

/// How much to try.
#[derive(Clone, Copy, Debug)]
pub struct Sweep {
    /// At least so many arguments instead of all numbers, or of 10^8.
    pub samples: Option<u64>,
    pub threads: usize,
}

/// The result of a sweep.
#[derive(Clone, Debug)]
pub struct Errors {
    pub function: Function,
    pub dtype: DType,
    /// The largest error, and where it is.
    pub max: f64,
    pub at: String,
    pub mean: f64,
    /// The largest error of the reference that was met.
    pub doubt: f64,
    /// How many arguments were tried.
    pub tried: u64,
    /// How many answers are wrong in kind: NaN or infinite where they should not be or the other way round, or a zero of the
    /// wrong sign. Then the first of them.
    pub wrong: u64,
    pub wrong_at: String,
    /// How many answers of the evaluator have other bits. Then the first of them.
    pub unequal: u64,
    pub unequal_at: String,
    sum: f64,
}

impl Errors {
    /// Whether the function is within its bound, even if the reference errs.
    pub fn good(&self) -> bool {
        self.wrong == 0 && self.unequal == 0 && self.max + self.doubt <= bound(self.dtype)
    }

    fn new(function: Function, dtype: DType) -> Errors {
        Errors {
            function,
            dtype,
            max: 0.0,
            at: String::new(),
            mean: 0.0,
            doubt: 0.0,
            tried: 0,
            wrong: 0,
            wrong_at: String::new(),
            unequal: 0,
            unequal_at: String::new(),
            sum: 0.0,
        }
    }

    fn merge(&mut self, other: Errors) {
        if other.max > self.max {
            (self.max, self.at) = (other.max, other.at);
        }
        if self.wrong == 0 {
            self.wrong_at = other.wrong_at;
        }
        if self.unequal == 0 {
            self.unequal_at = other.unequal_at;
        }
        self.doubt = self.doubt.max(other.doubt);
        self.tried += other.tried;
        self.wrong += other.wrong;
        self.unequal += other.unequal;
        self.sum += other.sum;
        self.mean = self.sum / self.tried.max(1) as f64;
    }

    /// Adds a chunk; `argument` and `got` are called for answers that need a closer look.
    fn add(&mut self, tally: Tally, argument: impl Fn(usize) -> (f64, Option<f64>), got: impl Fn(usize) -> f64) {
        self.tried += CHUNK as u64;
        self.sum += tally.sum;
        if tally.wrong > 0 {
            if self.wrong == 0 {
                self.wrong_at = self.text(argument(tally.wrong_at), got(tally.wrong_at));
            }
            self.wrong += tally.wrong as u64;
        }
        if tally.max > self.max {
            self.exact(argument(tally.at), got(tally.at));
        }
    }

    /// Measures one answer by the widest format.
    fn exact(&mut self, (x, y): (f64, Option<f64>), got: f64) {
        let (error, doubt) = reference::exact(Format::of(self.dtype), self.function.number(), x, y, got);
        self.doubt = self.doubt.max(doubt);
        if error.is_infinite() {
            if self.wrong == 0 {
                self.wrong_at = self.text((x, y), got);
            }
            self.wrong += 1;
        } else if error > self.max {
            (self.max, self.at) = (error, self.argument((x, y)));
        }
    }

    /// Measures one answer by the widest format, and compares it with the evaluator's.
    fn probe(&mut self, subject: &Subject, (x, y): (f64, Option<f64>), got: f64) {
        self.exact((x, y), got);
        let evaluated = subject.evaluated(x, y);
        if evaluated.to_bits() != got.to_bits() && !(evaluated.is_nan() && got.is_nan()) {
            if self.unequal == 0 {
                self.unequal_at = format!("{}, evaluated {evaluated:e}", self.text((x, y), got));
            }
            self.unequal += 1;
        }
    }

    fn argument(&self, (x, y): (f64, Option<f64>)) -> String {
        let number = |x: f64| if self.dtype == DType::F64 { format!("{x:e}") } else { format!("{:e}", x as f32) };
        match y {
            None => number(x),
            Some(y) => format!("{}, {}", number(x), number(y)),
        }
    }

    fn text(&self, argument: (f64, Option<f64>), got: f64) -> String {
        format!("{}({}) gives {got:e}", self.function.name(), self.argument(argument))
    }
}

impl Sweep {
    /// Measures one function in one type: on all numbers of a narrow type, else on samples, and on special arguments.
    pub fn run(&self, function: Function, dtype: DType) -> Result<Errors, String> {
        let subject = Subject::new(function, dtype)?;
        let whole = match (function, dtype) {
            (Function::One(_), DType::F32) => 1 << if function.symmetry().is_some() { 31 } else { 32 },
            (Function::One(_), narrow) if narrow.is_narrow() => 1 << (8 * narrow.size()),
            _ => 100_000_000,
        };
        let mirrored = if dtype == DType::F32 && function.symmetry().is_some() { 2 } else { 1 };
        let wanted = self.samples.map_or(whole, |samples| (samples / mirrored).min(whole));
        let chunks = wanted.div_ceil(CHUNK as u64);
        let stride = (whole / (chunks * CHUNK as u64)) | 1;
        let next = AtomicU64::new(0);
        let mut total = Errors::new(function, dtype);
        std::thread::scope(|scope| {
            let work = || {
                let mut errors = Errors::new(function, dtype);
                loop {
                    let chunk = next.fetch_add(1, Ordering::Relaxed);
                    if chunk >= chunks {
                        return errors;
                    }
                    if function.operands() == 1 && dtype == DType::F32 {
                        every_number(&subject, chunk, stride, &mut errors);
                    } else {
                        samples(&subject, chunk, &mut errors);
                    }
                }
            };
            let threads: Vec<_> = (0..self.threads.max(1)).map(|_| scope.spawn(work)).collect();
            for thread in threads {
                total.merge(thread.join().expect("a sweep does not panic"));
            }
        });
        special_arguments(&subject, &mut total);
        Ok(total)
    }
}

/// A chunk of single precision numbers, each so many patterns of bits after the one before. An odd stride visits numbers of every
/// exponent. Where the function is symmetric, only positive numbers count, and the negative ones are tried with them.
fn every_number(subject: &Subject, chunk: u64, stride: u64, errors: &mut Errors) {
    let symmetry = subject.function.symmetry();
    let mask = if symmetry.is_some() { u32::MAX >> 1 } else { u32::MAX };
    let begin = chunk * CHUNK as u64;
    let x: Vec<f32> =
        (begin..begin + CHUNK as u64).map(|i| f32::from_bits((i.wrapping_mul(stride) as u32) & mask)).collect();
    let truth = reference::narrow(subject.function.number(), &x);
    let mut got = vec![0.0; CHUNK];
    let mut tally = |x: &[f32], sign: f32| {
        subject.run(&[x], &mut got);
        let tally = reference::tally_narrow(Format::of(subject.dtype), &truth, &got, sign);
        errors.add(tally, |i| (f64::from(x[i]), None), |i| f64::from(got[i]));
        for probe in 0..PROBES {
            let i = samples::random(chunk, probe) as usize % CHUNK;
            errors.probe(subject, (f64::from(x[i]), None), f64::from(got[i]));
        }
    };
    tally(&x, 1.0);
    if let Some(sign) = symmetry {
        tally(&x.iter().map(|x| -x).collect::<Vec<f32>>(), sign);
    }
}

/// A chunk of samples; of half precision, all numbers.
fn samples(subject: &Subject, chunk: u64, errors: &mut Errors) {
    let dtype = subject.dtype;
    let numbers = chunk * CHUNK as u64..(chunk + 1) * CHUNK as u64;
    let (x, y) = match subject.function {
        Function::One(_) if dtype.size() == 2 => (numbers.map(|i| samples::of_bits(dtype, i)).collect(), None),
        Function::One(f) => (numbers.map(|i| samples::one(f, dtype, i)).collect(), None),
        Function::Two(f) => {
            let (x, y): (Vec<f64>, Vec<f64>) = numbers.map(|i| samples::two(f, dtype, i)).unzip();
            (x, Some(y))
        }
    };
    measure(subject, &x, y.as_deref(), errors, |errors, argument, got| {
        for probe in 0..PROBES {
            let i = samples::random(chunk, probe) as usize % CHUNK;
            errors.probe(subject, argument(i), got(i));
        }
    });
}

/// All special arguments and pairs of them, each measured by the widest format.
fn special_arguments(subject: &Subject, errors: &mut Errors) {
    let (mut x, mut y) = match subject.function {
        Function::One(f) => (samples::specials_of(f, subject.dtype), None),
        Function::Two(f) => {
            let rounded = |x: f64| samples::rounded(subject.dtype, x);
            let specials: Vec<f64> = samples::specials().into_iter().map(rounded).collect();
            let pairs = specials.iter().flat_map(|&x| specials.iter().map(move |&y| (x, y)));
            let hard = samples::hard_pairs_of(f).iter().map(|&(x, y)| (rounded(x), rounded(y)));
            let (x, y): (Vec<f64>, Vec<f64>) = pairs.chain(hard).unzip();
            (x, Some(y))
        }
    };
    let count = x.len();
    assert!(count <= CHUNK);
    x.resize(CHUNK, 1.0);
    y.iter_mut().for_each(|y| y.resize(CHUNK, 1.0));
    measure(subject, &x, y.as_deref(), errors, |errors, argument, got| {
        (0..count).for_each(|i| errors.probe(subject, argument(i), got(i)));
    });
}

/// The argument and the answer with a number.
type Look<'a, T> = &'a dyn Fn(usize) -> T;

fn measure(
    subject: &Subject,
    x: &[f64],
    y: Option<&[f64]>,
    errors: &mut Errors,
    then: impl Fn(&mut Errors, Look<(f64, Option<f64>)>, Look<f64>),
) {
    let got = subject.answers(x, y);
    let tally = reference::tally_wide(Format::of(subject.dtype), subject.function.number(), x, y, &got);
    let (argument, got) = (|i: usize| (x[i], y.map(|y| y[i])), |i: usize| got[i]);
    errors.add(tally, argument, got);
    then(errors, &argument, &got);
}
