//! Every kernel against the sums of the definition.
#![allow(clippy::unwrap_used)]

use spmdc_product::packed::{PackedElement, PackedKernel, PackedOperand, PackedProduct, has_fused_kernels, sums_lines};

use PackedElement::{Bf16, Bits32, Bits64, F32, F64, I8, I16, U8, U16};

/// Numbers that look random.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 16 ^ self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 8) as usize % end
    }
}

fn size(element: PackedElement) -> usize {
    match element {
        I8 | U8 => 1,
        I16 | U16 | Bf16 => 2,
        Bits32 | F32 => 4,
        Bits64 | F64 => 8,
    }
}

/// The element at an index, as a number.
fn value(bytes: &[u8], element: PackedElement, at: usize) -> i64 {
    let bytes = &bytes[at * size(element)..];
    match element {
        I8 => i64::from(bytes[0] as i8),
        U8 => i64::from(bytes[0]),
        I16 => i64::from(i16::from_ne_bytes(bytes[..2].try_into().unwrap())),
        U16 => i64::from(u16::from_ne_bytes(bytes[..2].try_into().unwrap())),
        Bits32 => i64::from(i32::from_ne_bytes(bytes[..4].try_into().unwrap())),
        Bits64 => i64::from_ne_bytes(bytes[..8].try_into().unwrap()),
        Bf16 | F32 | F64 => unreachable!("floats have tests of their own"),
    }
}

/// How a matrix lies in memory: its strides of rows and columns, in elements.
#[derive(Clone, Copy, Debug)]
enum Order {
    Rows,
    Columns,
    /// Every second column of rows with three elements more.
    Apart,
}

impl Order {
    fn strides(self, [rows, columns]: [usize; 2]) -> [usize; 2] {
        match self {
            Order::Rows => [columns.max(1), 1],
            Order::Columns => [1, rows.max(1)],
            Order::Apart => [2 * columns + 3, 2],
        }
    }
}

/// Bytes for a matrix, without any after its last element.
fn matrix(shape: [usize; 2], strides: [usize; 2], element: PackedElement, fill: &mut impl FnMut() -> u8) -> Vec<u8> {
    let last: usize = shape.iter().zip(strides).map(|(len, stride)| len.saturating_sub(1) * stride).sum();
    let elements = if shape.contains(&0) { 0 } else { last + 1 };
    (0..elements * size(element)).map(|_| fill()).collect()
}

/// Compares all kernels for one product with the definition.
fn compare(
    [m, n, k]: [usize; 3],
    elements: [PackedElement; 2],
    orders: [Order; 3],
    adds: bool,
    mut fill: impl FnMut() -> u8,
) {
    let [of_a, of_b] = elements;
    let [a_strides, b_strides, c_strides] =
        [orders[0].strides([m, k]), orders[1].strides([k, n]), orders[2].strides([m, n])];
    let a = matrix([m, k], a_strides, of_a, &mut fill);
    let b = matrix([k, n], b_strides, of_b, &mut fill);
    let of_c = if of_a == Bits64 { Bits64 } else { Bits32 };
    let start = matrix([m, n], c_strides, of_c, &mut fill);
    let mut expected = start.clone();
    for row in 0..m {
        for column in 0..n {
            let at = row * c_strides[0] + column * c_strides[1];
            let mut sum = if adds { value(&start, of_c, at) } else { 0 };
            for term in 0..k {
                let left = value(&a, of_a, row * a_strides[0] + term * a_strides[1]);
                let right = value(&b, of_b, term * b_strides[0] + column * b_strides[1]);
                sum = sum.wrapping_add(left.wrapping_mul(right));
            }
            let size = size(of_c);
            expected[at * size..(at + 1) * size].copy_from_slice(&sum.to_ne_bytes()[..size]);
        }
    }
    let kernels = PackedKernel::all(of_a, of_b);
    assert!(!kernels.is_empty());
    for kernel in kernels {
        let mut c = start.clone();
        let product = PackedProduct {
            m,
            n,
            k,
            a: PackedOperand {
                first: a.as_ptr(),
                element: of_a,
                across: a_strides[0] as isize,
                along: a_strides[1] as isize,
            },
            b: PackedOperand {
                first: b.as_ptr(),
                element: of_b,
                across: b_strides[1] as isize,
                along: b_strides[0] as isize,
            },
            c: c.as_mut_ptr(),
            c_rows: c_strides[0] as isize,
            c_columns: c_strides[1] as isize,
            adds,
            lines: false,
        };
        // SAFETY: the arrays have the shapes and strides of the product, and the kernel is available.
        unsafe { kernel.run(&product) };
        assert!(c == expected, "{}: {elements:?} {m} {n} {k} {orders:?} {adds}", kernel.name);
    }
}

const ORDERS: [Order; 3] = [Order::Rows, Order::Columns, Order::Apart];

const PAIRS: [[PackedElement; 2]; 13] = [
    [I8, I8],
    [U8, U8],
    [I8, U8],
    [U8, I8],
    [I16, I16],
    [I16, I8],
    [U8, I16],
    [U16, U16],
    [U16, I16],
    [Bits32, I8],
    [U16, Bits32],
    [Bits32, Bits32],
    [Bits64, Bits64],
];

#[test]
fn kernels_match_the_definition() {
    let mut noise = Noise(1);
    for round in 0..600 {
        let shape = [noise.below(71), noise.below(71), noise.below(71)];
        let orders = [ORDERS[noise.below(3)], ORDERS[noise.below(3)], ORDERS[noise.below(3)]];
        let adds = noise.below(2) == 1;
        compare(shape, PAIRS[round % PAIRS.len()], orders, adds, || noise.next() as u8);
    }
}

#[test]
fn all_orders_of_strides_are_read() {
    let mut noise = Noise(2);
    for pair in PAIRS {
        for orders in ORDERS.iter().flat_map(|&a| ORDERS.iter().flat_map(move |&b| ORDERS.map(|c| [a, b, c]))) {
            compare([13, 34, 21], pair, orders, false, || noise.next() as u8);
        }
    }
}

#[test]
fn products_are_cut_into_blocks() {
    let mut noise = Noise(3);
    for (shape, pair) in [
        ([3, 2, 5000], [I8, I8]),
        ([100, 530, 9], [U8, U8]),
        ([200, 1100, 70], [I8, U8]),
        ([97, 33, 2100], [I16, I16]),
        ([98, 520, 520], [Bits32, Bits32]),
        ([5, 519, 600], [Bits64, Bits64]),
    ] {
        for order in [Order::Rows, Order::Columns] {
            compare(shape, pair, [order, Order::Rows, order], true, || noise.next() as u8);
        }
    }
}

#[test]
fn extreme_values_wrap_around() {
    // 128 * 128 * 140,000 is more than 2^31; (-2^15)^2 * 2 is 2^31.
    for (pair, byte) in [([I8, I8], 0x80), ([U8, U8], 0xff), ([U8, I8], 0x80), ([I8, U8], 0xff)] {
        compare([2, 3, 140_000], pair, [Order::Rows; 3], false, || byte);
    }
    let mut high = false;
    compare([5, 20, 300], [I16, I16], [Order::Rows; 3], true, || {
        high = !high;
        if high { 0 } else { 0x80 }
    });
    compare([5, 20, 300], [Bits32, Bits32], [Order::Rows; 3], true, || 0x7f);
    compare([5, 20, 300], [Bits64, Bits64], [Order::Rows; 3], true, || 0x81);
}

#[test]
fn this_processor_has_fast_kernels() {
    let names: Vec<&str> = PackedKernel::all(I8, I8).iter().map(|kernel| kernel.name).collect();
    assert_eq!(names.last(), Some(&"ints"));
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512vnni") && is_x86_feature_detected!("avx512vl") {
        assert_eq!(names[0], "bytes avx512vnni");
    }
}

/// The bf16 at an index.
fn float(bytes: &[u8], at: usize) -> f32 {
    f32::from_bits(u32::from(u16::from_ne_bytes(bytes[2 * at..2 * at + 2].try_into().unwrap())) << 16)
}

/// The sums of the definition: of blocks of 1024 terms, in which the later of two neighbours comes first. Products of bf16 are exact.
fn sum_of_floats(terms: &[(f32, f32)], start: Option<f32>) -> f32 {
    let mut total = start;
    for block in terms.chunks(1024) {
        let pairs = block.chunks(2).flat_map(|pair| pair.iter().rev());
        let sum = pairs.fold(0.0_f32, |sum, &(a, b)| sum + a * b);
        total = Some(total.map_or(sum, |total| total + sum));
    }
    total.unwrap_or(0.0)
}

#[test]
fn sums_of_floats_have_one_order() {
    let mut noise = Noise(4);
    let kernels = PackedKernel::all(Bf16, Bf16);
    assert!(kernels.iter().any(|kernel| kernel.name == "floats"));
    for round in 0..200 {
        let [m, n] = [noise.below(71), noise.below(71)];
        let k = if round % 20 == 0 { 1000 + noise.below(2000) } else { noise.below(71) };
        let orders = [ORDERS[noise.below(3)], ORDERS[noise.below(3)], ORDERS[noise.below(3)]];
        let [at_a, at_b, at_c] = [orders[0].strides([m, k]), orders[1].strides([k, n]), orders[2].strides([m, n])];
        let mut high = false;
        // Exponents near that of one: normal numbers, of both signs.
        let mut fill = || {
            high = !high;
            if high { noise.next() as u8 } else { 0x3e + (noise.next() as u8 & 0x81) }
        };
        let [a, b] = [matrix([m, k], at_a, Bf16, &mut fill), matrix([k, n], at_b, Bf16, &mut fill)];
        let start = vec![0.5_f32; matrix([m, n], at_c, I8, &mut || 0).len()];
        let adds = round % 2 == 1;
        let mut expected = start.clone();
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let place = |term: usize| [row * at_a[0] + term * at_a[1], term * at_b[0] + column * at_b[1]];
            let terms: Vec<_> = (0..k).map(place).map(|[i, j]| (float(&a, i), float(&b, j))).collect();
            expected[row * at_c[0] + column * at_c[1]] = sum_of_floats(&terms, adds.then_some(0.5));
        }
        let operand = |bytes: &[u8], across: usize, along: usize| PackedOperand {
            first: bytes.as_ptr(),
            element: Bf16,
            across: across as isize,
            along: along as isize,
        };
        for kernel in &kernels {
            let mut c = start.clone();
            let product = PackedProduct {
                m,
                n,
                k,
                a: operand(&a, at_a[0], at_a[1]),
                b: operand(&b, at_b[1], at_b[0]),
                c: c.as_mut_ptr().cast(),
                c_rows: at_c[0] as isize,
                c_columns: at_c[1] as isize,
                adds,
                lines: false,
            };
            // SAFETY: the arrays have the shapes and strides of the product, and the kernel is available.
            unsafe { kernel.run(&product) };
            let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            assert!(bits(&c) == bits(&expected), "{}: {m} {n} {k} {orders:?} {adds}", kernel.name);
        }
    }
}

/// Floats whose products and sums are rounded once.
trait Fused: Copy + Default + PartialEq + std::ops::Add<Output = Self> + std::fmt::Debug {
    const ELEMENT: PackedElement;
    const LANES: usize;
    fn of(number: i32) -> Self;
    fn plus_product(self, a: Self, b: Self) -> Self;
    fn bits(self) -> u64;
}

macro_rules! fused {
    ($type:ty, $element:ident, $lanes:literal) => {
        impl Fused for $type {
            const ELEMENT: PackedElement = $element;
            const LANES: usize = $lanes;

            fn of(number: i32) -> $type {
                number as $type / 1000.0
            }

            fn plus_product(self, a: $type, b: $type) -> $type {
                a.mul_add(b, self)
            }

            fn bits(self) -> u64 {
                self.to_bits().into()
            }
        }
    };
}

fused!(f32, F32, 16);
fused!(f64, F64, 8);

/// The sum of products of blocks of 512 terms, added to the start if there is one.
fn sum_of_blocks<T: Fused>(terms: &[(T, T)], start: Option<T>) -> T {
    let mut total = start;
    for block in terms.chunks(512) {
        let sum = block.iter().fold(T::default(), |sum, &(a, b)| sum.plus_product(a, b));
        total = Some(total.map_or(sum, |total| total + sum));
    }
    total.unwrap_or_default()
}

/// The sum of products in lanes, which are added in pairs.
fn sum_of_lanes<T: Fused>(terms: &[(T, T)], start: Option<T>) -> T {
    let mut lanes = vec![T::default(); T::LANES];
    for (at, &(a, b)) in terms.iter().enumerate() {
        lanes[at % T::LANES] = lanes[at % T::LANES].plus_product(a, b);
    }
    while lanes.len() > 1 {
        let half = lanes.len() / 2;
        lanes = (0..half).map(|at| lanes[at] + lanes[at + half]).collect();
    }
    start.map_or(lanes[0], |start| start + lanes[0])
}

fn fused_sums_have_the_order_of_the_definition<T: Fused>() {
    let mut noise = Noise(5);
    let kernels = PackedKernel::all(T::ELEMENT, T::ELEMENT);
    assert_eq!(kernels.is_empty(), !has_fused_kernels());
    for round in 0..300 {
        // Many rows are copied in blocks; tiles of columns in place are wider than those of panels.
        let [m, n] = match round % 10 {
            0 => [200 + noise.below(20), 1 + noise.below(40)],
            1 => [1 + noise.below(40), 500 + noise.below(100)],
            _ => [noise.below(71), noise.below(171)],
        };
        let k = if round % 5 == 0 { 300 + noise.below(1000) } else { noise.below(71) };
        let orders = [ORDERS[noise.below(3)], ORDERS[noise.below(3)], ORDERS[noise.below(3)]];
        let lines = round % 3 == 0;
        let orders = if lines { [Order::Rows, Order::Columns, orders[2]] } else { orders };
        let [at_a, at_b, at_c] = [orders[0].strides([m, k]), orders[1].strides([k, n]), orders[2].strides([m, n])];
        let mut numbers = |len: usize| (0..len).map(|_| T::of(noise.below(2001) as i32 - 1000)).collect::<Vec<_>>();
        let elements = |shape, strides| matrix(shape, strides, I8, &mut || 0).len();
        let [a, b] = [numbers(elements([m, k], at_a)), numbers(elements([k, n], at_b))];
        let start = vec![T::of(500); elements([m, n], at_c)];
        let adds = round % 2 == 1;
        let mut expected = start.clone();
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let place = |term: usize| [row * at_a[0] + term * at_a[1], term * at_b[0] + column * at_b[1]];
            let terms: Vec<_> = (0..k).map(place).map(|[i, j]| (a[i], b[j])).collect();
            let sum = if lines { sum_of_lanes::<T> } else { sum_of_blocks::<T> };
            expected[row * at_c[0] + column * at_c[1]] = sum(&terms, adds.then_some(T::of(500)));
        }
        let operand = |elements: &[T], across: usize, along: usize| PackedOperand {
            first: elements.as_ptr().cast(),
            element: T::ELEMENT,
            across: across as isize,
            along: along as isize,
        };
        for kernel in &kernels {
            let mut c = start.clone();
            let product = PackedProduct {
                m,
                n,
                k,
                a: operand(&a, at_a[0], at_a[1]),
                b: operand(&b, at_b[1], at_b[0]),
                c: c.as_mut_ptr().cast(),
                c_rows: at_c[0] as isize,
                c_columns: at_c[1] as isize,
                adds,
                lines,
            };
            // SAFETY: the arrays have the shapes and strides of the product, and the kernel is available.
            unsafe { kernel.run(&product) };
            let same = c.iter().zip(&expected).all(|(a, b)| a.bits() == b.bits());
            assert!(same, "{}: {m} {n} {k} {orders:?} {adds} {lines}", kernel.name);
        }
    }
}

#[test]
fn sums_of_f32_and_f64_have_one_order() {
    fused_sums_have_the_order_of_the_definition::<f32>();
    fused_sums_have_the_order_of_the_definition::<f64>();
}

#[test]
fn few_long_rows_are_summed_along_the_contraction() {
    assert!(sums_lines([1, 1000, 64], [1, 1]) && sums_lines([1000, 12, 64], [1, 1]));
    assert!(!sums_lines([13, 13, 64], [1, 1]) && !sums_lines([1, 1000, 63], [1, 1]));
    assert!(!sums_lines([1, 1000, 64], [1, 1000]));
}
