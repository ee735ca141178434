//! Random kernels, and every way in which they may be cut.

use super::*;
use spmdc_abi::{LayoutDim, ReduceOp, Scalar};
use spmdc_kernel::loops::Combine;
use spmdc_kernel::nest::Order;
use spmdc_math::MathFn;

/// A random kernel over buffers that are just large enough, with values of small integers where sums must be exact.
struct Generated {
    kernel: Kernel,
    buffers: Vec<Vec<u8>>,
    scalars: Vec<i64>,
    range: i64,
}

/// With `sums` mostly long sums and products of floats.
fn generate(random: &mut Random, sums: bool) -> Generated {
    let mut scalars = Vec::new();
    let mut kernel_scalars = Vec::new();
    let mut lengths = Vec::new();
    let mut dims = Vec::new();
    let parallel_count = 1 + random.below(if sums { 2 } else { 3 });
    let reduced_count = if sums || random.chance(50) { 1 + random.below(2) } else { 0 };
    let lengths_of_sums = [3, 16, 17, 33, 40, 70, 96];
    for dim in 0..parallel_count + reduced_count {
        let room = 3000 / lengths.iter().product::<i64>().max(1);
        let max = if sums && dim >= parallel_count {
            random.pick(&lengths_of_sums)
        } else {
            random.pick(&[1, 2, 3, 4, 5, 8, 16, 17, 33, 40])
        };
        let max = max.min(room.max(1) as usize);
        let is_dynamic = random.chance(25);
        let length = if is_dynamic { 1 + random.below(max) } else { max };
        let extent = if is_dynamic {
            scalars.push(length as i64);
            kernel_scalars.push(Scalar::BlockLen(LayoutDim { size: 1000 + dim, axes: vec![0] }));
            Extent::Scalar { slot: scalars.len() - 1, max: max as u64 }
        } else {
            Extent::Static(max as u64)
        };
        lengths.push(length as i64);
        dims.push(LoopDim { extent, reduced: dim >= parallel_count });
    }
    let maxima: Vec<i64> = dims
        .iter()
        .map(|dim| match dim.extent {
            Extent::Static(n) => n as i64,
            Extent::Scalar { max, .. } => max as i64,
        })
        .collect();
    let mut kernel = Kernel {
        range_dim: parallel_count > 0,
        dims,
        buffers: Vec::new(),
        scalars: kernel_scalars,
        insts: Vec::new(),
        stores: Vec::new(),
    };
    let mut buffers = Vec::new();
    let family = if sums { random.pick(&floats()) } else { random.pick(&numbers()) };
    let mut values: Vec<(Elem, DType)> = Vec::new();
    for _ in 0..1 + random.below(3) {
        let dtype = if random.chance(if sums { 90 } else { 60 }) { family } else { random.pick(&numbers()) };
        let address = random_address(random, &maxima);
        let len = buffer_len(&address, &maxima);
        kernel.buffers.push(slot(dtype, false));
        let elements: Vec<u64> =
            (0..len).map(|_| if sums { uneven(random, dtype) } else { small(random, dtype) }).collect();
        buffers.push(bytes(dtype, &elements));
        kernel.insts.push(Inst::Load { access: access(buffers.len() - 1, address), dtype });
        values.push((Elem(kernel.insts.len() as u32 - 1), dtype));
    }
    for _ in 0..random.below(if sums { 3 } else { 8 }) {
        let inst = random_inst(random, &values, maxima.len());
        let Some((inst, dtype)) = inst else { continue };
        kernel.insts.push(inst);
        values.push((Elem(kernel.insts.len() as u32 - 1), dtype));
    }
    if random.chance(if sums { 15 } else { 35 }) {
        add_repeat(random, &mut kernel, &mut values, (maxima.len(), 1));
    }
    if random.chance(30) {
        add_draw(random, &mut kernel, &mut values, &maxima);
    }
    if random.chance(40) {
        add_gather(random, &mut kernel, &mut buffers, &mut values, (&maxima, family));
    }
    if random.chance(30) {
        add_division(random, &mut kernel, &mut values);
    }
    for _ in 0..1 + random.below(2) {
        let (value, dtype) = random.pick(&values[values.len() / 2..]);
        let rounded = sums && dtype.is_float() && random.chance(70);
        let combine = (reduced_count > 0).then(|| match rounded {
            true => Combine::Reduce(random.pick(&[ReduceOp::Sum, ReduceOp::Product])),
            false => random_combine(random, &mut kernel, dtype),
        });
        let position = matches!(combine, Some(Combine::ArgMax | Combine::ArgMin));
        let stored = if position { DType::I32 } else { dtype };
        let is_scan = combine.is_some_and(Combine::is_scan);
        let written = if is_scan { maxima.len() } else { parallel_count };
        let address = output_address(random, &maxima[..written]);
        let len = buffer_len(&address, &maxima);
        kernel.buffers.push(slot(stored, true));
        buffers.push(vec![0; len * stored.size()]);
        kernel.stores.push(Store { access: access(buffers.len() - 1, address), dtype, value, combine });
    }
    Generated { kernel, buffers, scalars, range: lengths[0] }
}

/// A loop of the body, of a few trips or none, which carries values of any types and may contain another one; its results can be used after
/// it.
fn add_repeat(
    random: &mut Random,
    kernel: &mut Kernel,
    values: &mut Vec<(Elem, DType)>,
    (rank, depth): (usize, usize),
) {
    let add = |kernel: &mut Kernel, inst: Inst| {
        kernel.insts.push(inst);
        Elem(kernel.insts.len() as u32 - 1)
    };
    let mut trips = add(kernel, Inst::Const { dtype: DType::I64, bits: random.below(4) as u64 });
    if random.chance(15) {
        trips = add(kernel, Inst::Unary { op: UnaryOp::Neg, dtype: DType::I64, arg: trips });
    }
    let mut inside = values.clone();
    let mut carried = Vec::new();
    for _ in 0..1 + random.below(3) {
        let (init, dtype) = random.pick(values);
        let number = kernel.insts.len() as u32;
        let value = add(kernel, Inst::Carried { number, dtype, init });
        carried.push((value, dtype));
        // Often, so that most of the trip depends on it.
        inside.extend([(value, dtype); 3]);
    }
    for _ in 0..random.below(4) {
        if let Some((inst, dtype)) = random_inst(random, &inside, rank) {
            let value = add(kernel, inst);
            inside.push((value, dtype));
        }
    }
    if depth > 0 && random.chance(30) {
        add_repeat(random, kernel, &mut inside, (rank, depth - 1));
    }
    let next = |random: &mut Random, kernel: &mut Kernel, dtype: DType| {
        let (value, from) = random.pick(&inside[inside.len().saturating_sub(6)..]);
        if from == dtype { value } else { add(kernel, Inst::Cast { from, to: dtype, arg: value }) }
    };
    let pairs = carried.iter().map(|&(value, dtype)| (value, next(random, kernel, dtype))).collect();
    let repeat = add(kernel, Inst::Repeat { trips, carried: pairs });
    for (place, &(_, dtype)) in carried.iter().enumerate() {
        values.push((add(kernel, Inst::Last { dtype, repeat, place }), dtype));
    }
}

/// Small numbers of random bits, of counters that are consecutive along a loop or not.
fn add_draw(random: &mut Random, kernel: &mut Kernel, values: &mut Vec<(Elem, DType)>, maxima: &[i64]) {
    let dtype = random.pick(&[DType::U8, DType::U16, DType::U32, DType::U64]);
    let at = random_address(random, maxima).offset(random.pick(&[0, (1 << 32) - 50, -20]));
    let next = |kernel: &Kernel| Elem(kernel.insts.len() as u32);
    let key = next(kernel);
    kernel.insts.push(Inst::Const { dtype: DType::Key, bits: random.bits() });
    let bits = next(kernel);
    kernel.insts.push(Inst::RandomBits { dtype, key, at });
    let mask = next(kernel);
    kernel.insts.push(Inst::Const { dtype, bits: 3 });
    values.push((next(kernel), dtype));
    kernel.insts.push(Inst::Binary { op: BinaryOp::And, dtype, lhs: bits, rhs: mask, site: None });
}

/// A division of integers, sometimes by zero.
fn add_division(random: &mut Random, kernel: &mut Kernel, values: &mut Vec<(Elem, DType)>) {
    let (lhs, dtype) = random.pick(values);
    let others: Vec<Elem> = values.iter().filter(|(_, other)| *other == dtype).map(|&(elem, _)| elem).collect();
    if dtype.is_integer() {
        let (op, rhs) = (random.pick(&[BinaryOp::FloorDiv, BinaryOp::Rem]), random.pick(&others));
        kernel.insts.push(Inst::Binary { op, dtype, lhs, rhs, site: None });
        values.push((Elem(kernel.insts.len() as u32 - 1), dtype));
    }
}

/// A load whose address contains a value of the body, sometimes one that fails its check, sometimes under a condition on it.
fn add_gather(
    random: &mut Random,
    kernel: &mut Kernel,
    buffers: &mut Vec<Vec<u8>>,
    values: &mut Vec<(Elem, DType)>,
    (maxima, dtype): (&[i64], DType),
) {
    let mut add = |kernel: &mut Kernel, inst: Inst, dtype: DType| {
        kernel.insts.push(inst);
        values.push((Elem(kernel.insts.len() as u32 - 1), dtype));
        Elem(kernel.insts.len() as u32 - 1)
    };
    let integers: Vec<DType> = numbers().into_iter().filter(|dtype| dtype.is_integer()).collect();
    let (last, stride) = (random.below(4) as i64 + 2, random.pick(&[1, 7]));
    let (of, own) = (random.pick(&integers), random_address(random, maxima));
    kernel.buffers.push(slot(of, false));
    let numbers: Vec<u64> = (0..buffer_len(&own, maxima)).map(|_| small(random, of)).collect();
    buffers.push(bytes(of, &numbers));
    let index = add(kernel, Inst::Load { access: access(buffers.len() - 1, own), dtype: of }, of);
    let index = match random.chance(50) {
        true => {
            let extent = if random.chance(20) { 2 } else { last + 1 };
            add(kernel, Inst::CheckIndex { dtype: of, arg: index, extent, site: None }, DType::I64)
        }
        false => add(kernel, Inst::Cast { from: of, to: DType::I64, arg: index }, DType::I64),
    };
    let place = add(kernel, Inst::Limit { arg: index, last: last as u64 }, DType::I64);
    let address = random_address(random, maxima);
    let len = buffer_len(&address, maxima) + (last * stride) as usize;
    let address = Affine { dynamic: vec![(place, stride)], ..address };
    // Under the condition fewer elements exist.
    let condition = random.chance(40).then(|| Inst::InRange {
        affine: Affine { dynamic: vec![(place, 1)], ..Affine::default() },
        low: Affine::constant(1),
        high: Affine::constant(last),
    });
    let missing = if condition.is_some() { stride } else { 0 };
    kernel.buffers.push(slot(dtype, false));
    let elements: Vec<u64> = (0..len - missing as usize).map(|_| small(random, dtype)).collect();
    buffers.push(bytes(dtype, &elements));
    kernel.buffers.last_mut().unwrap().len = elements.len();
    let address = address.offset(-missing.min(address.constant));
    let taken = add(kernel, Inst::Load { access: access(buffers.len() - 1, address), dtype }, dtype);
    if let Some(condition) = condition {
        let cond = add(kernel, condition, DType::Bool);
        let otherwise = add(kernel, Inst::Const { dtype, bits: 0 }, dtype);
        // The load is needed under the condition only.
        values.retain(|&(elem, _)| elem != taken);
        kernel.insts.push(Inst::Select { dtype, cond, then: taken, otherwise });
        values.push((Elem(kernel.insts.len() as u32 - 1), dtype));
    }
}

/// A whole number, of which sums are exact.
fn small(random: &mut Random, dtype: DType) -> u64 {
    number::cast(DType::I64, dtype, random.below(4) as u64).unwrap()
}

/// A number of which sums are rounded at every step, so that they show their order.
fn uneven(random: &mut Random, dtype: DType) -> u64 {
    let value = random.below(2000) as f64 / 700.0 - 0.9;
    number::cast(DType::F64, dtype, value.to_bits()).unwrap()
}

/// Scans begin with a small number.
fn random_combine(random: &mut Random, kernel: &mut Kernel, dtype: DType) -> Combine {
    match random.below(6) {
        0 => Combine::ArgMax,
        1 => Combine::ArgMin,
        2 | 3 if dtype != DType::Bool => {
            kernel.insts.push(Inst::Const { dtype, bits: number::cast(DType::U8, dtype, 2).unwrap() });
            let first = Elem(kernel.insts.len() as u32 - 1);
            let op = random.pick(&[ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min]);
            Combine::Scan { op, first, exclusive: kernel.insts.len().is_multiple_of(2) }
        }
        _ if dtype == DType::Bool => Combine::Reduce(random.pick(&[ReduceOp::And, ReduceOp::Or, ReduceOp::Max])),
        _ => Combine::Reduce(random.pick(&[ReduceOp::Sum, ReduceOp::Product, ReduceOp::Max, ReduceOp::Min])),
    }
}

/// Row-major, broadcast, transposed, strided, backwards, or a mixture; every address within the buffer.
fn random_address(random: &mut Random, maxima: &[i64]) -> Affine {
    let mut order: Vec<usize> = (0..maxima.len()).collect();
    if random.chance(30) {
        for i in (1..order.len()).rev() {
            order.swap(i, random.below(i + 1));
        }
    }
    let mut stride = if random.chance(15) { 2 } else { 1 };
    let mut address = Affine::default();
    for &dim in order.iter().rev() {
        if random.chance(20) {
            continue;
        }
        let backwards = random.chance(10);
        address = address.plus(&Affine::dim(dim).times(if backwards { -stride } else { stride }));
        if backwards {
            address.constant += stride * (maxima[dim] - 1);
        }
        stride *= maxima[dim];
    }
    address.offset(random.below(3) as i64)
}

/// Row-major over the dimensions that stay, sometimes in another order: no two points share an element.
fn output_address(random: &mut Random, maxima: &[i64]) -> Affine {
    let mut order: Vec<usize> = (0..maxima.len()).collect();
    if random.chance(25) {
        order.reverse();
    }
    let mut stride = 1;
    let mut address = Affine::default();
    for &dim in order.iter().rev() {
        address = address.plus(&Affine::dim(dim).times(stride));
        stride *= maxima[dim];
    }
    address
}

fn buffer_len(address: &Affine, maxima: &[i64]) -> usize {
    let last: i64 = address.terms.iter().map(|&(dim, stride)| (stride * (maxima[dim] - 1)).max(0)).sum();
    (address.constant + last + 1) as usize
}

/// An instruction on known values that keeps small integers exact.
fn random_inst(random: &mut Random, values: &[(Elem, DType)], rank: usize) -> Option<(Inst, DType)> {
    let (arg, dtype) = random.pick(values);
    let others: Vec<Elem> = values.iter().filter(|(_, other)| *other == dtype).map(|&(elem, _)| elem).collect();
    let other = random.pick(&others);
    let bools: Vec<Elem> = values.iter().filter(|(_, other)| *other == DType::Bool).map(|&(elem, _)| elem).collect();
    Some(match random.below(9) {
        0 => {
            let to = random.pick(&numbers());
            (Inst::Cast { from: dtype, to, arg }, to)
        }
        // The bits of a NaN that was computed are free, so they become no integers.
        8 if dtype.is_integer() => {
            let of_size: Vec<DType> = numbers().into_iter().filter(|to| to.size() == dtype.size()).collect();
            let to = random.pick(&of_size);
            if to == DType::Bool {
                return None;
            }
            (Inst::Bitcast { from: dtype, to, arg }, to)
        }
        1 => (Inst::Compare { op: random.pick(&COMPARE), dtype, lhs: arg, rhs: other }, DType::Bool),
        2 if !bools.is_empty() => {
            (Inst::Select { dtype, cond: random.pick(&bools), then: arg, otherwise: other }, dtype)
        }
        3 => {
            let to = random.pick(&numbers()[1..]);
            (Inst::Index { affine: Affine::dim(random.below(rank)), dtype: to }, to)
        }
        4 => {
            let affine = Affine::dim(random.below(rank));
            let low = Affine::dim(random.below(rank)).offset(-2);
            (Inst::InRange { affine, low, high: Affine::constant(9) }, DType::Bool)
        }
        5 => {
            let bits = number::cast(DType::I64, dtype, random.below(4) as u64)?;
            (Inst::Const { dtype, bits }, dtype)
        }
        6 => {
            let op =
                random.pick(&[UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Sign, UnaryOp::Not, UnaryOp::Math(MathFn::Exp)]);
            number::eval_unary(op, dtype, 1)?;
            (Inst::Unary { op, dtype, arg }, dtype)
        }
        _ => {
            let op = random.pick(&[BinaryOp::Add, BinaryOp::Minimum, BinaryOp::Maximum, BinaryOp::And, BinaryOp::Sub]);
            number::eval_binary(op, dtype, 1, 1)?;
            (Inst::Binary { op, dtype, lhs: arg, rhs: other, site: None }, dtype)
        }
    })
}

#[test]
fn random_kernels_equal_the_interpreter() {
    let mut random = Random(8);
    for _ in 0..20 {
        let generated: Vec<Generated> = (0..30).map(|_| generate(&mut random, false)).collect();
        let kernels: Vec<Kernel> = generated.iter().map(|generated| generated.kernel.clone()).collect();
        let code = load(&kernels);
        for (generated, function) in generated.iter().zip(code.functions()) {
            let Generated { kernel, buffers, scalars, range } = generated;
            check(kernel, function, buffers, scalars, 0, *range);
            check(kernel, function, buffers, scalars, range / 3, *range);
        }
    }
}

/// Every float reduction takes a math function of what it took.
fn sum_exponentials(kernel: &mut Kernel) {
    let Kernel { insts, stores, .. } = kernel;
    for store in stores.iter_mut().filter(|store| store.dtype.is_float()) {
        if let Some(Combine::Reduce(_)) = store.combine {
            insts.push(Inst::Unary { op: UnaryOp::Math(MathFn::Exp), dtype: store.dtype, arg: store.value });
            store.value = Elem(insts.len() as u32 - 1);
        }
    }
}

/// Whatever the cutter could choose, the terms of sums come in the order of the kernel.
#[test]
fn every_cut_gives_the_same_bits() {
    let mut random = Random(11);
    let mut seen = [0; 3];
    for _ in 0..3 {
        let mut generated: Vec<Generated> = (0..40).map(|at| generate(&mut random, at % 4 != 0)).collect();
        generated.iter_mut().step_by(3).for_each(|generated| sum_exponentials(&mut generated.kernel));
        let kernels: Vec<Kernel> = generated.iter().map(|generated| generated.kernel.clone()).collect();
        for kernel in &kernels {
            match Nest::all(kernel)[0].sums {
                Order::Any => seen[0] += 1,
                Order::InTurn => seen[1] += 1,
                Order::Lanes { .. } => seen[2] += 1,
            }
        }
        in_all_nests(&kernels, |at, function| {
            let Generated { kernel, buffers, scalars, range } = &generated[at];
            check(kernel, function, buffers, scalars, 0, *range);
            check(kernel, function, buffers, scalars, range / 3, *range);
        });
    }
    assert!(seen.iter().all(|&count| count > 3), "{seen:?}");
}
