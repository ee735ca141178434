//! Plain loops over memory, as fast as this machine runs them: what a kernel with the same traffic cannot beat by much.

/// Compiles a loop for what the processor has, if it has AVX2.
macro_rules! loops {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) $(-> $result:ty)? $body:block)*) => {$(
        $(#[$doc])*
        pub fn $name($($arg: $ty),*) $(-> $result)? {
            #[inline(always)]
            fn body($($arg: $ty),*) $(-> $result)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn wide($($arg: $ty),*) $(-> $result)? {
                    body($($arg),*)
                }
                if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
                    // SAFETY: the processor has been asked.
                    return unsafe { wide($($arg),*) };
                }
            }
            body($($arg),*)
        }
    )*};
}

loops! {
    /// Reads one array, writes another.
    fn scale(x: &[f32], y: &mut [f32]) {
        y.iter_mut().zip(x).for_each(|(y, x)| *y = 1.5 * x);
    }

    /// Reads two arrays, writes a third.
    fn triad(x: &[f32], y: &[f32], z: &mut [f32]) {
        z.iter_mut().zip(x.iter().zip(y)).for_each(|(z, (x, y))| *z = 1.5 * x + y);
    }

    /// Reads an array.
    fn read(x: &[f32]) -> f32 {
        let mut sums = [0.0; 64];
        for chunk in x.chunks_exact(64) {
            sums.iter_mut().zip(chunk).for_each(|(sum, x)| *sum += x);
        }
        sums.iter().sum()
    }
}

/// The limit of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    Read,
    Scale,
    Triad,
}

impl Traffic {
    pub fn name(self) -> &'static str {
        match self {
            Traffic::Read => "read",
            Traffic::Scale => "scale",
            Traffic::Triad => "triad",
        }
    }
}

/// Arrays of the traffic's size, walked by several threads.
pub struct Streams {
    traffic: Traffic,
    arrays: [Vec<f32>; 3],
    threads: usize,
}

impl Streams {
    /// `bytes` of each array.
    pub fn new(traffic: Traffic, bytes: usize, threads: usize) -> Streams {
        Streams { traffic, arrays: [0.5, 0.25, 0.0].map(|value| vec![value; bytes / 4]), threads }
    }

    pub fn walk(&mut self) {
        let part = self.arrays[0].len().div_ceil(self.threads).max(1);
        let traffic = self.traffic;
        let [x, y, z] = &mut self.arrays;
        let walk = |x: &[f32], y: &[f32], z: &mut [f32]| match traffic {
            Traffic::Read => drop(std::hint::black_box(read(x))),
            Traffic::Scale => scale(std::hint::black_box(x), z),
            Traffic::Triad => triad(std::hint::black_box(x), y, z),
        };
        if self.threads == 1 {
            return walk(x, y, z);
        }
        std::thread::scope(|scope| {
            for ((x, y), z) in x.chunks(part).zip(y.chunks(part)).zip(z.chunks_mut(part)) {
                scope.spawn(move || walk(x, y, z));
            }
        });
    }
}
