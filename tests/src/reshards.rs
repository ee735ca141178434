//! All reshards of an array between all its shardings: what they move, beside what they cannot do without.
//!
//! `docs/reshards.md` is what [`page`] says; `cargo run -p spmdc-tests --bin reshards > docs/reshards.md` writes it.

use crate::engine::{Failure, compiled};
use spmdc_compiler::report::plan::{Collective, collectives};
use spmdc_ir::program::Stage;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

/// The axes X = 2 and Y = 4.
const MESH: [(char, usize); 2] = [('X', 2), ('Y', 4)];

/// Bytes of an f32.
const SIZE: u64 = 4;

/// The axes of each dimension, major to minor, and the axes along which there are partial sums.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Layout {
    pub dims: Vec<String>,
    pub partial: String,
}

impl Layout {
    /// Every axis is nowhere or in one of the dimensions.
    pub fn all(rank: usize) -> Vec<Layout> {
        let mut found = vec![Layout { dims: vec![String::new(); rank], partial: String::new() }];
        let mut begin = 0;
        while begin < found.len() {
            for (axis, _) in MESH {
                for dim in 0..rank {
                    let mut next = found[begin].clone();
                    if !next.axes().contains(axis) {
                        next.dims[dim].push(axis);
                        if !found.contains(&next) {
                            found.push(next);
                        }
                    }
                }
            }
            begin += 1;
        }
        found
    }

    /// As [`Layout::all`], with partial sums along one axis or both.
    pub fn all_partial(rank: usize) -> Vec<Layout> {
        let layouts = Layout::all(rank).into_iter();
        let partial = layouts.flat_map(|layout| {
            let free: Vec<&str> =
                ["X", "Y", "XY"].into_iter().filter(|axes| axes.chars().all(|a| !layout.axes().contains(a))).collect();
            free.into_iter().map(move |axes| Layout { partial: axes.to_string(), ..layout.clone() })
        });
        partial.collect()
    }

    fn axes(&self) -> String {
        self.dims.concat()
    }

    /// `X`, `(X,Y)`, `_`
    fn group(axes: &str) -> String {
        let names: Vec<String> = axes.chars().map(String::from).collect();
        match names.as_slice() {
            [] => "_".to_string(),
            [name] => name.clone(),
            names => format!("({})", names.join(",")),
        }
    }

    /// As the language writes it: `P(X,_,Y)`.
    pub fn sharding(&self) -> String {
        let mut parts: Vec<String> = self.dims.iter().map(|axes| Layout::group(axes)).collect();
        if !self.partial.is_empty() {
            parts.push(format!("unreduced={}", Layout::group(&self.partial)));
        }
        format!("P({})", parts.join(","))
    }

    /// The type of an array of this shape, `i32[13@X,22,7]`. Where there are partial sums, it is that of the addends, which lie
    /// along a further dimension, three on each device.
    pub fn addends(&self, dtype: &str, shape: &[usize]) -> String {
        let mut dims: Vec<String> =
            shape.iter().zip(&self.dims).map(|(size, axes)| format!("{size}@{}", Layout::group(axes))).collect();
        if !self.partial.is_empty() {
            dims.push(format!("{}@{}", 3 * self.count(&self.partial), Layout::group(&self.partial)));
        }
        format!("{dtype}[{}]", dims.join(","))
    }

    fn count(&self, axes: &str) -> usize {
        axes.chars().map(size_of).product()
    }

    /// A device's part of a dimension.
    fn range(&self, dim: usize, size: usize, device: &BTreeMap<char, usize>) -> Range<usize> {
        let axes = &self.dims[dim];
        let position = axes.chars().fold(0, |position, axis| position * size_of(axis) + device[&axis]);
        let block = size.div_ceil(self.count(axes));
        (position * block).min(size)..((position + 1) * block).min(size)
    }

    fn block(&self, shape: &[usize]) -> usize {
        shape.iter().zip(&self.dims).map(|(size, axes)| size.div_ceil(self.count(axes))).product()
    }

    /// The same for an array with its dimensions in another order.
    fn permuted(&self, order: &[usize]) -> Layout {
        Layout { dims: order.iter().map(|&dim| self.dims[dim].clone()).collect(), partial: self.partial.clone() }
    }
}

fn size_of(axis: char) -> usize {
    MESH.iter().find(|(name, _)| *name == axis).map_or(1, |(_, size)| *size)
}

fn devices() -> Vec<BTreeMap<char, usize>> {
    let mut devices = vec![BTreeMap::new()];
    for (axis, size) in MESH {
        devices = devices
            .iter()
            .flat_map(|device| {
                (0..size).map(move |at| device.iter().map(|(&k, &v)| (k, v)).chain([(axis, at)]).collect())
            })
            .collect();
    }
    devices
}

/// The elements of its new block that a device does not have: of the device that lacks most, and of all.
pub fn lacking(shape: &[usize], from: &Layout, to: &Layout) -> (usize, usize) {
    let lacks = devices().into_iter().map(|device| {
        let (mut wanted, mut held) = (1, 1);
        for (dim, &size) in shape.iter().enumerate() {
            let (old, new) = (from.range(dim, size, &device), to.range(dim, size, &device));
            wanted *= new.len();
            held *= old.end.min(new.end).saturating_sub(old.start.max(new.start));
        }
        wanted - held
    });
    let lacks: Vec<usize> = lacks.collect();
    (lacks.iter().copied().max().unwrap_or(0), lacks.iter().sum())
}

/// A program that brings arrays from one layout to others: one line and one parameter for each. Its results are whole values.
pub fn program(dtype: &str, shape: &[usize], from: &Layout, targets: &[Layout]) -> String {
    let ty = from.addends(dtype, shape);
    let params: Vec<String> = (0..targets.len()).map(|number| format!("x{number}: {ty}")).collect();
    let mut text = format!("mesh (X = 2, Y = 4);\nfn main({}) {{\n", params.join(", "));
    let mut results = Vec::new();
    for (number, to) in targets.iter().enumerate() {
        let value = match from.partial.as_str() {
            "" => format!("x{number}"),
            _ => format!("sum(x{number}, axis={})", shape.len()),
        };
        let _ = writeln!(text, "let y{number} = reshard({value}, {});", to.sharding());
        results.push(if to.partial.is_empty() { format!("y{number}") } else { format!("reshard(y{number}, P())") });
    }
    text + &format!("({},) }}\n", results.join(", "))
}

/// The reshards of an f32 array from one layout to others, each as the collectives that it takes.
fn plans(shape: &[usize], from: &Layout, targets: &[Layout]) -> Result<Vec<Vec<Collective>>, Vec<Failure>> {
    let text = program("f32", shape, from, targets);
    let compilation = compiled("reshards.spmd", &text, "", Some(Stage::Partitioned))?;
    let mut plans = vec![Vec::new(); targets.len()];
    if let Some(module) = compilation.stage(Stage::Partitioned) {
        for collective in collectives(module) {
            let line = text[..collective.span.start as usize].matches('\n').count();
            plans[line - 2].push(collective);
        }
    }
    Ok(plans)
}

/// `all_to_all(X) 256`
fn show(collective: &Collective) -> String {
    format!("{}({}) {}", collective.kind.name(), collective.axes.join(","), collective.bytes)
}

/// One line of the table, for all pairs that are the same but for the order of dimensions.
struct Row {
    from: Layout,
    to: Layout,
    pairs: usize,
    steps: Vec<String>,
    received: u64,
    least: u64,
}

/// The plans between all layouts of an array in sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    pub pairs: usize,
    /// Maximum bytes received by any device, over the fewest possible: in sum over all pairs, and of the worst pair.
    pub device: f64,
    pub worst_device: f64,
    /// Bytes received by all devices, likewise.
    pub all: f64,
    pub worst_all: f64,
    pub most_steps: usize,
    /// Pairs for which there is a step that makes more than the larger of the first and the last block.
    pub over_cap: usize,
}

fn orders(rank: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    for _ in 0..rank {
        orders = orders
            .iter()
            .flat_map(|order: &Vec<usize>| {
                (0..rank).filter(|dim| !order.contains(dim)).map(|dim| [order.as_slice(), &[dim]].concat())
            })
            .collect();
    }
    orders
}

/// All pairs of layouts, in sum and as rows.
fn compare(shape: &[usize], sources: &[Layout]) -> Result<(Summary, Vec<Row>), Vec<Failure>> {
    let targets = Layout::all(shape.len());
    let symmetric = shape.windows(2).all(|pair| pair[0] == pair[1]);
    let orders = if symmetric { orders(shape.len()) } else { vec![(0..shape.len()).collect()] };
    let mut summary = Summary::default();
    let (mut received, mut least) = ([0; 2], [0; 2]);
    let mut rows: BTreeMap<(usize, Layout, Layout), Row> = BTreeMap::new();
    for from in sources {
        for (to, plan) in targets.iter().zip(plans(shape, from, &targets)?) {
            if from == to {
                continue;
            }
            let lacking = lacking(shape, from, to);
            let own = [lacking.0 as u64 * SIZE, lacking.1 as u64 * SIZE];
            let worst: u64 = plan.iter().map(|collective| collective.received).sum();
            let total: u64 = plan.iter().map(|collective| collective.received_by_all).sum();
            summary.pairs += 1;
            summary.most_steps = summary.most_steps.max(plan.len());
            let cap = from.block(shape).max(to.block(shape)) as u64 * SIZE;
            summary.over_cap += usize::from(plan.iter().any(|collective| collective.bytes > cap));
            for (i, bytes) in [worst, total].into_iter().enumerate() {
                received[i] += bytes;
                least[i] += own[i];
            }
            let ratio = |bytes: u64, least: u64| if least > 0 { bytes as f64 / least as f64 } else { 1.0 };
            summary.worst_device = summary.worst_device.max(ratio(worst, own[0]));
            summary.worst_all = summary.worst_all.max(ratio(total, own[1]));
            let key = orders.iter().map(|order| (from.permuted(order), to.permuted(order)));
            let Some((first, second)) = key.max() else { continue };
            let level = first.axes().len();
            let row = rows.entry((level, first.clone(), second.clone())).or_insert_with(|| Row {
                from: first,
                to: second,
                pairs: 0,
                steps: plan.iter().map(show).collect(),
                received: worst,
                least: own[0],
            });
            row.pairs += 1;
        }
    }
    let ratio = |i: usize| if least[i] > 0 { received[i] as f64 / least[i] as f64 } else { 1.0 };
    (summary.device, summary.all) = (ratio(0), ratio(1));
    Ok((summary, rows.into_values().collect()))
}

/// All pairs of shardings of an f32 array over X = 2 and Y = 4.
pub fn summary(shape: &[usize]) -> Result<Summary, Vec<Failure>> {
    Ok(compare(shape, &Layout::all(shape.len()))?.0)
}

/// `docs/reshards.md`
pub fn page() -> Result<String, Vec<Failure>> {
    let shape = [64, 64, 64];
    let (even, rows) = compare(&shape, &Layout::all(3))?;
    let uneven = summary(&[13, 22, 7])?;
    let (_, sums) = compare(&shape, &Layout::all_partial(3))?;
    let mut text = INTRODUCTION.to_string();
    let _ = writeln!(
        text,
        "| array | pairs | device, sum | device, worst | all, sum | all, worst | most steps | over the cap |"
    );
    let _ = writeln!(text, "|---|---|---|---|---|---|---|---|");
    for (name, summary) in [("f32[64,64,64]", even), ("f32[13,22,7]", uneven)] {
        let Summary { pairs, device, worst_device, all, worst_all, most_steps, over_cap } = summary;
        let _ = writeln!(
            text,
            "| `{name}` | {pairs} | {device:.4} | {worst_device:.4} | {all:.4} | {worst_all:.4} | {most_steps} | {over_cap} |"
        );
    }
    text += TABLE;
    let _ = writeln!(text, "| from | to | pairs | steps | received | least | ratio |\n|---|---|---|---|---|---|---|");
    let steps = |row: &Row| if row.steps.is_empty() { "–".to_string() } else { row.steps.join(", ") };
    for row in &rows {
        let Row { from, to, pairs, received, least, .. } = row;
        let ratio = if *least > 0 { format!("{:.3}", *received as f64 / *least as f64) } else { "–".to_string() };
        let (from, to, steps) = (from.sharding(), to.sharding(), steps(row));
        let _ = writeln!(text, "| `{from}` | `{to}` | {pairs} | {steps} | {received} | {least} | {ratio} |");
    }
    text += PARTIAL;
    let _ = writeln!(text, "| from | to | pairs | steps | received |\n|---|---|---|---|---|");
    for row in &sums {
        let (from, to, steps) = (row.from.sharding(), row.to.sharding(), steps(row));
        let _ = writeln!(text, "| `{from}` | `{to}` | {} | {steps} | {} |", row.pairs, row.received);
    }
    Ok(text)
}

const INTRODUCTION: &str = "\
# Reshards

This page shows the cost of changing an array from one sharding to another, on the mesh (X = 2, Y = 4). It is the output of
`cargo run -p spmdc-tests --bin reshards`.

A search finds the steps (`compiler/layout/src/reshard/search.rs`) with the lowest maximum bytes received by any device. Among these it
prefers the lowest bytes received by all devices together, and then the fewest statements. No step makes a block that is
larger than both the first and the last one (*the cap*), and no array is ever made whole in between.

Every plan has a lower bound: each device receives the part of its new block that it does not have. The table divides received
bytes by this bound, for the maximum of any device (*device*) and for all devices together (*all*). It has the total over all ordered
pairs of the 19 shardings, and the worst pair. If sizes are not divisible, blocks have `ceil(size / n)` elements, and the last ones
are shorter or empty.

";

const TABLE: &str = "
## Every pair

The array is `f32[64,64,64]`, 1 MiB. Pairs that differ only in the order of dimensions share a line. A step is a collective, the axes
of its groups and the bytes of one device's operand; *received* and *least* are the maximum bytes received by any device. A collective
takes only the needed part of a block, so slices are not steps.

";

const PARTIAL: &str = "
## From partial sums

Here the same array is partial sums along X, Y or both. In an `all_reduce` of `B` bytes over `n` devices each receives
`2 (n-1)/n B`, and in a `reduce_scatter` half of this.

";
