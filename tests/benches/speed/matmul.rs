//! Matrix products, beside calls of the `gemm` crate on one thread.

use crate::measure::{Clock, Loaded, fastest, line, title};

/// One call, row-major: `c = a @ b`, as the product of the transposed matrices, which lie by columns.
fn gemm_alone([m, k, n]: [usize; 3], a: &[f32], b: &[f32], c: &mut [f32]) {
    // SAFETY: the slices are as long as the sizes say.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            n,
            m,
            k,
            c.as_mut_ptr(),
            n as isize,
            1,
            false,
            b.as_ptr(),
            n as isize,
            1,
            a.as_ptr(),
            k as isize,
            1,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
    }
}

pub fn products() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let square = |n: usize| (format!("{n} x {n} x {n}"), [n, n, n], 1);
    let shapes = [
        square(64),
        square(128),
        square(256),
        square(512),
        square(1024),
        ("8192 x 784 x 128".into(), [8192, 784, 128], 1),
        ("128 x 784 x 512".into(), [128, 784, 512], 1),
        ("1 x 2048 x 2048".into(), [1, 2048, 2048], 1),
        ("2048 x 2048 x 1".into(), [2048, 2048, 1], 1),
        ("64 of 32 x 32 x 32".into(), [32, 32, 32], 64),
    ];
    for threads in if cores > 1 { vec![1, cores] } else { vec![1] } {
        title(&format!("products, f32, {threads} threads, beside gemm on 1"), "GFLOP/s");
        for (name, [m, k, n], batch) in &shapes {
            let text = match batch {
                1 => format!("fn main(a: f32[{m}, {k}], b: f32[{k}, {n}]) {{ a @ b }}"),
                _ => format!("fn main(a: f32[{batch}, {m}, {k}], b: f32[{batch}, {k}, {n}]) {{ a @ b }}"),
            };
            let mut ours = Loaded::new(&text, Some(threads));
            let (a, b) = (vec![0.5; batch * m * k], vec![0.25; batch * k * n]);
            let mut c = vec![0.0; batch * m * n];
            let mut alone = || {
                let matrices = a.chunks(m * k).zip(b.chunks(k * n)).zip(c.chunks_mut(m * n));
                matrices.for_each(|((a, b), c)| gemm_alone([*m, *k, *n], a, b, c));
            };
            let [ours, limit] = fastest(Clock::of(threads), [&mut || ours.run(), &mut alone]);
            let rate = |seconds: f64| 2e-9 * (batch * m * k * n) as f64 / seconds;
            line(name, rate(ours), rate(limit), "gemm", ours / limit);
        }
    }
}
