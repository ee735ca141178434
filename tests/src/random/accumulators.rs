//! Loops that add up products and gradients of parts of a batch, as of microbatches, of layers in a loop inside, and of the times of a recurrence.
//!
//! Where the batch is split, each device adds its parts, and the sum over devices may be anywhere after them: in the trip, under a
//! condition or after the loop.

use super::Array;
use super::precision::{Precision, unit};
use super::programs::{Variable, Writer};
use spmdc_abi::DType;
use std::fmt::Write;

/// The names and sizes of what a loop adds up.
struct Batch {
    dtype: DType,
    /// Parts of a batch, rows of a part, columns of a row.
    sizes: [usize; 3],
    rows: String,
    weights: String,
    counter: String,
}

impl Writer {
    /// A loop over parts of a batch that adds up what each gives.
    pub(super) fn accumulators(&mut self) {
        let dtype = self.draw.pick(&[DType::F32, DType::F64]);
        let sizes = [1 + self.draw.below(4), self.draw.pick(&[1, 7, 12, 24]), 2 + self.draw.below(4)];
        // Dumps keep these names.
        let [rows, weights, counter] = ["rows", "weights", "part"].map(|stem| self.fresh(stem));
        let batch = Batch { dtype, sizes, rows, weights, counter };
        let [parts, count, columns] = sizes;
        let layers = self.draw.below(3);
        let of_weights = if layers > 0 { vec![layers, columns, columns] } else { vec![columns, columns] };
        let weights = Array::new(dtype, &of_weights);
        for (name, array) in [(&batch.rows, &Array::new(dtype, &[parts, count, columns])), (&batch.weights, &weights)] {
            let (laid_out, seed) = (self.laid_out(array), self.draw.below(100));
            let _ = writeln!(self.body, "  let {name}: {laid_out} = uniform(key({seed}), {}) - 0.5;", array.text(&[]));
        }
        if layers == 0 && self.draw.chance(25) {
            let (name, loss) = (self.new_name(), batch.through_time());
            let _ = writeln!(self.body, "  let {name} = grad({loss})({});", batch.weights);
            return self.keep_sum(name, weights);
        }
        let part = match layers {
            0 if self.draw.chance(40) => batch.product(),
            0 => format!("grad({})({})", batch.loss(), batch.weights),
            _ => {
                let pinned = self.draw.chance(40).then(|| self.laid_out(&Array::new(dtype, &[columns, columns])));
                format!("grad({})({})", batch.loss_of_layers(layers, pinned), batch.weights)
            }
        };
        self.added(&batch, &part, &weights);
    }

    /// The loop; each accumulator adds the part in its own way.
    fn added(&mut self, batch: &Batch, part: &str, array: &Array) {
        let (i, [parts, ..], zeros) = (&batch.counter, batch.sizes, array.text(&[]));
        let d = self.new_name();
        let (mut begin, mut lines) = (String::new(), format!("    let {d} = {part};\n"));
        let mut sums: Vec<(String, Array)> = Vec::new();
        for _ in 0..1 + self.draw.below(3) {
            let g = self.fresh("sum");
            let unreduced = self.unreduced();
            let ty = if self.draw.chance(30) { format!(": {}", self.laid_out(array)) } else { String::new() };
            let init = match &unreduced {
                Some(axes) if self.draw.chance(40) => format!("reshard(zeros({zeros}), {axes})"),
                _ => format!("zeros({zeros})"),
            };
            let kind = self.draw.below(8);
            let line = match (kind, unreduced) {
                (0, _) => format!("{g} = 0.5 * {g} + {d};"),
                (1, _) => format!("if {i} % 2 == 0 {{ {g} += {d}; }}"),
                (2, _) => format!("if {i} % 2 == 1 {{ {g} -= {d}; }} else {{ {g} = {d} / 2; }}"),
                (3, _) => format!("{g} += where({i} % 2 == 0, {d}, 0);"),
                (4, _) => format!("{g}[{i} % 2] += {d};"),
                (5, Some(axes)) => format!("{g} = reshard({g} + {d}, {axes});"),
                _ => format!("{g} += {d};"),
            };
            let _ = writeln!(lines, "    {line}");
            if kind == 4 {
                let two = Array::new(array.dtype, &[&[2], array.shape.as_slice()].concat());
                let _ = writeln!(begin, "  let mut {g} = zeros({});", two.text(&[]));
                sums.push((g, two));
            } else {
                let _ = writeln!(begin, "  let mut {g}{ty} = {init};");
                sums.push((g, array.clone()));
            }
        }
        if self.draw.chance(30) {
            let each = self.new_name();
            let _ =
                writeln!(self.body, "{begin}  let {each} = for {i} in 0..{parts} collect {{\n{lines}    {d}\n  }};");
            if self.draw.chance(50) {
                let total = self.new_name();
                let _ = writeln!(self.body, "  let {total} = sum({each}, axis=0);");
                sums.push((total, array.clone()));
            } else {
                sums.push((each, Array::new(array.dtype, &[&[parts], array.shape.as_slice()].concat())));
            }
        } else {
            let _ = writeln!(self.body, "{begin}  for {i} in 0..{parts} {{\n{lines}  }}");
        }
        sums.into_iter().for_each(|(name, array)| self.keep_sum(name, array));
    }

    /// Adds up to four parts with elements of one at most.
    fn keep_sum(&mut self, name: String, array: Array) {
        let precision = Precision { error: 256.0 * unit(array.dtype), ..Precision::exact(8.0) };
        self.add(Variable { name, array, precision });
    }
}

impl Batch {
    fn product(&self) -> String {
        let Batch { rows, counter, sizes: [_, count, _], .. } = self;
        format!("{rows}[{counter}].T @ tanh({rows}[{counter}]) / {count}")
    }

    fn loss(&self) -> String {
        let Batch { rows, counter, .. } = self;
        format!("|w| mean(tanh({rows}[{counter}] @ w) ** 2)")
    }

    fn loss_of_layers(&self, layers: usize, pinned: Option<String>) -> String {
        let Batch { rows, counter, sizes: [_, _, columns], .. } = self;
        let ty = pinned.map_or(String::new(), |ty| format!(": {ty}"));
        format!(
            "|w| {{ let mut h = {rows}[{counter}]; for l in 0..{layers} {{ let wl{ty} = w[l]; h = tanh(h @ wl / {columns} + h); }} mean(h * h) }}"
        )
    }

    fn through_time(&self) -> String {
        let Batch { rows, sizes: [parts, count, columns], dtype, .. } = self;
        let zeros = Array::new(*dtype, &[*count, *columns]).text(&[]);
        format!(
            "|w| {{ let mut h = zeros({zeros}); for t in 0..{parts} {{ h = tanh(h @ w / {columns} + {rows}[t]); }} mean(h * h) }}"
        )
    }
}
