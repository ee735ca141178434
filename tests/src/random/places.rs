//! Assignments to single places, rows and slices of a value, from what stands there or elsewhere in it: in loops, and under conditions.
//!
//! All of these may be done in place, if what is read is read before it is overwritten.

use super::precision::Precision;
use super::programs::{Variable, Writer};
use std::fmt::Write;

impl Writer {
    /// Some assignments, perhaps in a loop, whose counter then decides where and whether.
    pub(super) fn places(&mut self) {
        let Some(x) = self.any(|v| !v.array.shape.is_empty() && v.array.dtype != spmdc_abi::DType::Bool) else {
            return;
        };
        let before = self.clone();
        let decides = self.any(|v| v.array.dtype.is_integer());
        let name = self.new_name();
        let trips = self.draw.below(4);
        let mut lines = Lines { x: Variable { name: name.clone(), ..x.clone() }, trips, count: 0, text: String::new() };
        lines.block(self, decides.as_ref(), 0);
        let text = match trips {
            0 => lines.text,
            _ => format!("  for {name}_i in 0..{trips} {{\n{}  }}\n", lines.text),
        };
        let _ = write!(self.body, "  let mut {name} = {};\n{text}", x.name);
        let precision = (0..lines.count * trips.max(1))
            .fold(x.precision, |known, _| Precision::of(x.array.dtype, known.size, 2.0, &[(1.0, known)]));
        match precision.is_useful(x.array.dtype) {
            true => self.add(Variable { name, array: x.array, precision }),
            false => *self = before.going_on(self),
        }
    }
}

/// The assignments to one variable.
struct Lines {
    x: Variable,
    /// How often they run; zero outside of a loop.
    trips: usize,
    count: usize,
    text: String,
}

impl Lines {
    fn block(&mut self, writer: &mut Writer, decides: Option<&Variable>, depth: usize) {
        for _ in 0..1 + writer.draw.below(3 - depth) {
            let counter = (self.trips > 1).then(|| format!("{}_i", self.x.name));
            let decision = counter.or(decides.map(|v| format!("sum({})", v.name)));
            let Some(decision) = decision.filter(|_| depth < 2 && writer.draw.chance(30)) else {
                self.assignment(writer);
                continue;
            };
            let _ = writeln!(self.text, "  if {decision} % 2 == {} {{", writer.draw.below(2));
            self.block(writer, decides, depth + 1);
            if writer.draw.chance(50) {
                let _ = writeln!(self.text, "  }} else {{");
                self.block(writer, decides, depth + 1);
            }
            let _ = writeln!(self.text, "  }}");
        }
    }

    fn assignment(&mut self, writer: &mut Writer) {
        self.count += 1;
        let rank = self.x.array.shape.len();
        let single = writer.draw.below(rank);
        let kinds: Vec<bool> = (0..rank).map(|dim| dim == single || writer.draw.chance(40)).collect();
        let moved = writer.draw.chance(30).then_some(single);
        let len = 1 + writer.draw.below(self.x.array.shape[single]);
        let [at, from] = [0, 1].map(|_| self.place(writer, &kinds, moved.map(|dim| (dim, len))));
        let (name, is_integer) = (&self.x.name, self.x.array.dtype.is_integer());
        let _ = match (is_integer, writer.draw.below(5)) {
            (_, 0) => writeln!(self.text, "  {name}[{at}] = {name}[{from}];"),
            (true, 1) => writeln!(self.text, "  {name}[{at}] += 1;"),
            (true, 2) => writeln!(self.text, "  {name}[{at}] //= 2;\n  {name}[{at}] ^= 3;"),
            (true, _) => writeln!(self.text, "  {name}[{at}] = ({name}[{at}] - 2 * {name}[{from}]) % 9;"),
            (false, 1) => {
                self.count += 1;
                writeln!(self.text, "  {name}[{at}] *= 0.5;\n  {name}[{at}] += 0.5 * sin({name}[{from}]);")
            }
            (false, 2) => {
                self.count += 1;
                let bounded = format!("maximum({name}[{at}], -0.5)");
                writeln!(
                    self.text,
                    "  {name}[{at}] = {bounded};\n  {name}[{at}] = where({name}[{at}] > 0.25, -{name}[{at}], {name}[{at}]);"
                )
            }
            (false, _) => writeln!(self.text, "  {name}[{at}] = 0.5 * ({name}[{at}] + sin({name}[{from}]));"),
        };
    }

    /// Indices of single elements of some dimensions, and of so many in a row of one.
    fn place(&mut self, writer: &mut Writer, singles: &[bool], row: Option<(usize, usize)>) -> String {
        let mut entries = Vec::new();
        for (dim, &size) in self.x.array.shape.iter().enumerate() {
            let len = row.filter(|&(moved, _)| moved == dim).map(|(_, len)| len);
            if !singles[dim] {
                entries.push(":".to_string());
                continue;
            }
            let beginnings = size + 1 - len.unwrap_or(1);
            let start = writer.draw.below(beginnings);
            let is_dynamic = self.trips > 0 && writer.draw.chance(60);
            let mut at = start.to_string();
            if is_dynamic {
                at = writer.new_name();
                let _ = writeln!(self.text, "  let {at} = ({}_i + {start}) % {beginnings};", self.x.name);
            }
            entries.push(match len {
                Some(len) if is_dynamic => format!("{at}:{at} + {len}"),
                Some(len) => format!("{at}:{}", start + len),
                None if writer.draw.chance(50) => format!("{at} - {size}"),
                None => at,
            });
        }
        entries.join(", ")
    }
}
