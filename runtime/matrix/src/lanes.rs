//! Loops over columns, compiled for the widest vectors of the processor. They round each product and each difference, and the order of a
//! sum does not depend on the vectors: so the bits are the same on every processor.

use crate::MatrixElement;
use faer::{MatMut, MatRef};
use pulp::NullaryFnOnce;
use std::marker::PhantomData;

/// Terms of a sum that are added side by side.
const LANES: usize = 16;

/// A function of these arguments that is compiled for the vectors of the processor. It is always inlined: a closure, or a function that is
/// passed as an argument, would be compiled on its own, for the least vectors.
pub(crate) trait VectorLoop<A> {
    type Output;

    fn run(arguments: A) -> Self::Output;
}

/// Makes a type that stands for a function of matrices of T, which is always inlined.
macro_rules! vector_loop {
    ($name:ident, $function:ident, $arguments:ty => $output:ty) => {
        #[doc = concat!("Stands for `", stringify!($function), "`.")]
        pub(crate) struct $name;

        impl<T: $crate::MatrixElement> $crate::lanes::VectorLoop<$arguments> for $name {
            type Output = $output;

            #[inline(always)]
            fn run(arguments: $arguments) -> $output {
                $function(arguments)
            }
        }
    };
}
pub(crate) use vector_loop;

vector_loop!(Dot, dot, (&[T], &[T]) => T);
vector_loop!(LargestOf, largest_of, &[T] => T);

/// A call of a loop.
struct LoopCall<L, A>(PhantomData<L>, A);

impl<A, L: VectorLoop<A>> NullaryFnOnce for LoopCall<L, A> {
    type Output = L::Output;

    #[inline(always)]
    fn call(self) -> L::Output {
        L::run(self.1)
    }
}

/// Runs a loop with the widest vectors of the processor.
#[inline(always)]
pub(crate) fn widest<L: VectorLoop<A>, A>(_: L, arguments: A) -> L::Output {
    pulp::Arch::new().dispatch(LoopCall(PhantomData::<L>, arguments))
}

/// Column `j` as a slice.
#[inline(always)]
pub(crate) fn column<T>(a: MatRef<'_, T>, j: usize) -> &[T] {
    a.col(j).try_as_col_major().expect("columns are contiguous").as_slice()
}

/// Column `j` as a slice, to be written.
#[inline(always)]
pub(crate) fn column_mut<T>(a: MatMut<'_, T>, j: usize) -> &mut [T] {
    a.col_mut(j).try_as_col_major_mut().expect("columns are contiguous").as_slice_mut()
}

/// Subtracts a multiple of a column.
#[inline(always)]
pub(crate) fn subtract_multiple<T: MatrixElement>(to: &mut [T], from: &[T], factor: T) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to -= *from * factor);
}

/// The sum of products of two columns.
#[inline(always)]
pub(crate) fn dot<T: MatrixElement>((a, b): (&[T], &[T])) -> T {
    let mut sums = [T::of(0.0); LANES];
    let (own, other) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = own.remainder().iter().zip(other.remainder());
    for (a, b) in own.zip(other) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    for (sum, (a, b)) in sums.iter_mut().zip(rest) {
        *sum += *a * *b;
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            let other = sums[lane + width];
            sums[lane] += other;
        }
    }
    sums[0]
}

/// The largest magnitude, at least zero. NaN is passed over.
#[inline(always)]
pub(crate) fn largest_of<T: MatrixElement>(column: &[T]) -> T {
    let mut most = [T::of(0.0); LANES];
    let chunks = column.chunks_exact(LANES);
    let rest = chunks.remainder();
    let larger = |most: T, x: T| if x.magnitude() > most { x.magnitude() } else { most };
    for chunk in chunks {
        for lane in 0..LANES {
            most[lane] = larger(most[lane], chunk[lane]);
        }
    }
    let all = most.into_iter().chain(rest.iter().copied());
    all.fold(T::of(0.0), larger)
}

/// The first place with the largest magnitude. NaN in the first place is the largest, and is passed over elsewhere.
#[inline(always)]
pub(crate) fn place_of_largest<T: MatrixElement>(column: &[T]) -> usize {
    let most = largest_of(column);
    // A NaN in the first place is not smaller than the others.
    if column.first().is_none_or(|first| first.magnitude().partial_cmp(&most).is_none_or(|order| order.is_ge())) {
        return 0;
    }
    column.iter().position(|x| x.magnitude() == most).unwrap_or(0)
}

/// The power of two near a magnitude; 1 for zero. Its reciprocal is a number, too.
pub(crate) fn power_near<T: MatrixElement>(largest: f64) -> f64 {
    if largest == 0.0 {
        return 1.0;
    }
    f64::from_bits(largest.to_bits() & 0x7ff0_0000_0000_0000)
        .clamp(2.0_f64.powi(-T::EXPONENT), 2.0_f64.powi(T::EXPONENT))
}
