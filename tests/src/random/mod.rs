//! Random programs: shapes, shardings, meshes and element types, all from one seed.

mod accumulators;
pub mod batching;
pub mod call;
pub mod calls;
mod complex;
pub mod composed;
pub mod derivatives;
mod differentiated;
pub mod draws;
pub mod expressions;
mod factors;
pub mod failures;
pub mod gathers;
pub mod lies;
pub mod manual;
pub mod matrices;
pub mod misuse;
pub mod neighbours;
pub mod nesting;
pub mod orders;
mod places;
pub mod precision;
pub mod programs;
mod slopes;
pub mod spectral;
pub mod states;
pub mod streams;
pub mod whole;
pub mod windows;

use spmdc_abi::DType;
use spmdc_kernel::machine::Machine;
use std::sync::Arc;

/// A reproducible source of choices: the bytes of a tape, and then SplitMix64.
#[derive(Clone, Debug)]
pub struct Draw {
    state: u64,
    tape: Arc<[u8]>,
    at: usize,
}

impl Draw {
    /// Choices that depend on the name and the number only.
    pub fn new(name: &str, number: u64) -> Draw {
        let mix = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let state = name.bytes().fold(0xcbf2_9ce4_8422_2325 ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15), mix);
        Draw { state, tape: Arc::new([]), at: 0 }
    }

    /// Choices that the bytes make, two for each as long as there are any.
    pub fn of_tape(bytes: &[u8]) -> Draw {
        Draw { tape: bytes.into(), ..Draw::new("tape", 0) }
    }

    fn next(&mut self) -> u64 {
        if let Some(&[high, low]) = self.tape.get(self.at..self.at + 2) {
            self.at += 2;
            return u64::from(high) << 8 | u64::from(low);
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 up to `bound`, which is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Both ends included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    pub fn shuffled<T: Copy>(&mut self, items: &[T]) -> Vec<T> {
        let mut items = items.to_vec();
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
        items
    }

    /// Devices as they are, or such for which a few elements are many.
    pub fn machine(&mut self) -> Machine {
        if self.chance(50) { Machine::REAL } else { Machine::TINY }
    }

    /// Mostly small; the size that leaves whole blocks empty is as likely as any.
    pub fn size(&mut self) -> usize {
        match self.below(50) {
            0 => 0,
            1..=5 => 1,
            _ => 1 + self.below(9),
        }
    }

    pub fn shape(&mut self, rank: usize) -> Vec<usize> {
        (0..rank).map(|_| self.size()).collect()
    }

    pub fn rank(&mut self, low: i64, high: i64) -> usize {
        self.between(low, high) as usize
    }

    /// A dimension by its number, from the front or from the back.
    pub fn axis(&mut self, rank: usize) -> i64 {
        let axis = self.below(rank) as i64;
        if self.chance(50) { axis } else { axis - rank as i64 }
    }

    /// A shape that broadcasts to `shape`.
    pub fn broadcasts(&mut self, shape: &[usize]) -> Vec<usize> {
        let from = if self.chance(70) { 0 } else { self.below(shape.len() + 1) };
        shape[from..].iter().map(|&size| if self.chance(20) { 1 } else { size }).collect()
    }
}

/// `, axis=..., keepdims=...`, or nothing.
fn axes(draw: &mut Draw, rank: usize) -> String {
    let mut text = String::new();
    if rank > 0 && draw.chance(80) {
        let count = 1 + draw.below(rank);
        let dims: Vec<usize> = (0..rank).collect();
        let chosen: Vec<String> = draw.shuffled(&dims)[..count]
            .iter()
            .map(|&dim| if draw.chance(50) { dim as i64 } else { dim as i64 - rank as i64 }.to_string())
            .collect();
        text += &match chosen.as_slice() {
            [one] => format!(", axis={one}"),
            more => format!(", axis=({})", more.join(", ")),
        };
    }
    if draw.chance(40) {
        text += ", keepdims=true";
    }
    text
}

pub fn floats() -> Vec<DType> {
    DType::ALL.into_iter().filter(|dtype| dtype.is_float()).collect()
}

pub fn ints() -> Vec<DType> {
    DType::ALL.into_iter().filter(|dtype| dtype.is_integer()).collect()
}

pub fn numbers() -> Vec<DType> {
    [floats(), ints()].concat()
}

/// The numbers of this many bytes.
pub fn of_size(size: usize) -> Vec<DType> {
    numbers().into_iter().filter(|dtype| dtype.size() == size).collect()
}

pub fn all() -> Vec<DType> {
    [numbers(), vec![DType::Bool]].concat()
}

/// Element type and shape of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    pub dtype: DType,
    pub shape: Vec<usize>,
}

impl Array {
    pub fn new(dtype: DType, shape: &[usize]) -> Array {
        Array { dtype, shape: shape.to_vec() }
    }

    /// `f32[4@X,8@?]`; `dims` has the text after each `@`; it is empty for a type without layout.
    pub fn text(&self, dims: &[String]) -> String {
        let dim = |(dim, size): (usize, &usize)| match dims.get(dim) {
            Some(text) => format!("{size}@{text}"),
            None => size.to_string(),
        };
        match self.shape.as_slice() {
            [] => self.dtype.name().to_string(),
            shape => {
                let dims: Vec<String> = shape.iter().enumerate().map(dim).collect();
                format!("{}[{}]", self.dtype.name(), dims.join(", "))
            }
        }
    }
}

/// The type of a complex array, from that of its planes.
fn complex_type(of_planes: &str) -> String {
    of_planes.replacen("f32", "c64", 1).replacen("f64", "c128", 1)
}

/// A mesh: a name, a size, and whether types decide shardings, per axis.
#[derive(Clone, Debug)]
pub struct Mesh {
    pub axes: Vec<(&'static str, usize, bool)>,
}

impl Mesh {
    pub fn random(draw: &mut Draw, explicit: bool) -> Mesh {
        const SIZES: &[&[usize]] = &[&[1, 1], &[2, 4], &[4, 2], &[1, 8], &[3, 2], &[5, 3], &[7], &[4], &[2, 2, 2]];
        let axes = draw.pick(SIZES).iter().zip(["X", "Y", "Z"]);
        Mesh { axes: axes.map(|(&size, name)| (name, size, explicit && draw.chance(60))).collect() }
    }

    /// The item of a program.
    pub fn text(&self) -> String {
        let axis = |&(name, size, explicit): &(&str, usize, bool)| {
            format!("{name}: {} = {size}", if explicit { "explicit" } else { "auto" })
        };
        format!("mesh ({});\n", self.axes.iter().map(axis).collect::<Vec<_>>().join(", "))
    }

    /// The text after the `@` of each dimension; every axis is used once at most.
    pub fn sharding(&self, draw: &mut Draw, rank: usize) -> Vec<String> {
        let mut dims: Vec<Vec<&str>> = vec![Vec::new(); rank];
        for (name, _, _) in draw.shuffled(&self.axes) {
            if rank > 0 && draw.chance(70) {
                dims[draw.below(rank)].push(name);
            }
        }
        let all_auto = self.axes.iter().all(|&(_, _, explicit)| !explicit);
        let dim = |names: Vec<&str>| match names.as_slice() {
            [] if all_auto && draw.chance(30) => "?".to_string(),
            [] => "_".to_string(),
            [one] => one.to_string(),
            more => format!("({})", more.join(", ")),
        };
        dims.into_iter().map(dim).collect()
    }

    /// A random layout of an array, which splits its dimensions of one element more often than chance would.
    pub fn sharding_of(&self, draw: &mut Draw, shape: &[usize]) -> Vec<String> {
        let mut dims = self.sharding(draw, shape.len());
        let free: Vec<&str> = self.axes.iter().map(|&(name, _, _)| name).collect();
        let free: Vec<&str> = free.into_iter().filter(|name| dims.iter().all(|dim| !dim.contains(name))).collect();
        let one = shape.iter().zip(&mut dims).find(|(size, dim)| **size == 1 && matches!(dim.as_str(), "_" | "?"));
        if let Some((_, dim)) = one
            && !free.is_empty()
            && draw.chance(50)
        {
            *dim = draw.pick(&free).to_string();
        }
        dims
    }

    /// The type of an array with a random layout, sometimes one of partial sums.
    pub fn laid_out(&self, draw: &mut Draw, array: &Array) -> String {
        let dims = self.sharding(draw, array.shape.len());
        let adds_up = array.dtype != DType::Bool && draw.chance(20);
        let partial = if adds_up { self.partial(draw, &dims) } else { String::new() };
        format!("{}{partial}", array.text(&dims))
    }

    /// `{U:Y}` for an axis that no dimension has and types do not decide about, if there is one: sums are then left to be completed.
    fn partial(&self, draw: &mut Draw, dims: &[String]) -> String {
        let free =
            |&&(name, _, explicit): &&(&str, usize, bool)| !explicit && dims.iter().all(|dim| !dim.contains(name));
        let free: Vec<&str> = self.axes.iter().filter(free).map(|&(name, _, _)| name).collect();
        if free.is_empty() { String::new() } else { format!("{{U:{}}}", draw.pick(&free)) }
    }
}
