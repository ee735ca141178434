//! Loops in branches in calls of random programs, up to 40 deep.

use super::precision::Precision;
use super::programs::{Variable, Writer};
use std::fmt::Write;

/// As deep as blocks stand in each other.
const DEEPEST: usize = 40;
/// Loops that run twice; around each other they would make 2^40 trips.
const TWICE: usize = 3;

/// The names of the values in the statements of a block.
#[derive(Clone, Debug)]
struct Scope {
    carried: String,
    other: String,
    decides: String,
    /// Whether a function of the values may have a kink.
    may_bend: bool,
}

impl Writer {
    /// A variable goes through nested blocks, each of which perhaps changes it.
    pub(super) fn nest(&mut self) {
        let Some(x) = self.any(|_| true) else { return };
        let Some(other) = self.any(|y| y.array == x.array) else { return };
        let Some(decides) = self.any(|v| v.array.dtype.is_integer()) else { return };
        let items = self.items.clone();
        let depth = if self.draw.chance(20) { DEEPEST } else { 2 + self.draw.below(6) };
        let carried = self.fresh("deep");
        let may_bend = self.may_bend(&x) && self.may_bend(&other);
        let scope = Scope { carried: carried.clone(), other: other.name.clone(), decides: decides.name, may_bend };
        let mut steps = 0;
        let lines = self.inside(&scope, depth, TWICE, &x, &mut steps);
        let start = x.precision.or(other.precision);
        let precision =
            (0..steps).fold(start, |known, _| Precision::of(x.array.dtype, known.size, 2.0, &[(1.0, known)]));
        if !precision.is_useful(x.array.dtype) {
            self.items = items;
            return;
        }
        let _ = write!(self.body, "  let mut {carried} = {};\n{lines}", x.name);
        self.add(Variable { name: carried, array: x.array, precision });
    }

    /// A name that nothing else has.
    pub(super) fn fresh(&mut self, stem: &str) -> String {
        self.next += 1;
        format!("{stem}_{}", self.next)
    }

    /// The statements of a block; counts how often the value changes at most.
    fn inside(&mut self, scope: &Scope, depth: usize, twice: usize, x: &Variable, steps: &mut usize) -> String {
        let mut lines = String::new();
        let mut step = |writer: &mut Writer, lines: &mut String| {
            if writer.draw.chance(40) {
                *steps += 1 << (TWICE - twice);
                let _ = writeln!(lines, "  {}", writer.step(scope, x));
            }
        };
        step(self, &mut lines);
        if depth > 0 {
            let inner = self.nested(scope, depth, twice, x, steps);
            lines += &inner;
        }
        lines
    }

    /// One statement with a block in it.
    fn nested(&mut self, scope: &Scope, depth: usize, twice: usize, x: &Variable, steps: &mut usize) -> String {
        let Scope { carried, other, decides, .. } = scope;
        // How often `while` runs is not known, so it has no reverse.
        let kind = match self.draw.below(10) {
            4 | 5 if self.inside.reversed => 3,
            kind => kind,
        };
        if kind == 0 {
            let function = self.fresh("within");
            let [a, b, c] = ["a", "b", "c"].map(str::to_string);
            let inner = Scope { carried: self.fresh("own"), other: b, decides: c, may_bend: scope.may_bend };
            let body = self.inside(&inner, depth - 1, twice, x, steps);
            let own = &inner.carried;
            let _ = writeln!(self.items, "fn {function}({a}, b, c) {{\n  let mut {own} = {a};\n{body}  {own}\n}}");
            return format!("  {carried} = {function}({carried}, {other}, {decides});\n");
        }
        let again = twice > 0 && self.draw.chance(10);
        let loops = matches!(kind, 1..=5);
        let left = if loops && again { twice - 1 } else { twice };
        let inner = self.inside(scope, depth - 1, left, x, steps);
        let trips = match self.draw.chance(4) {
            true => 0,
            false => 1 + usize::from(again),
        };
        let counter = self.fresh("count");
        match kind {
            1 | 2 => format!("  for {counter} in 0..{trips} {{\n{inner}  }}\n"),
            3 => format!("  for {counter} in {trips}..0 step -1 {{\n{inner}  }}\n"),
            4 | 5 => {
                format!("  let mut {counter} = 0;\n  while {counter} < {trips} {{\n{inner}    {counter} += 1;\n  }}\n")
            }
            6 => format!("  if sum({decides}) % 2 == {} {{\n{inner}  }}\n", self.draw.below(2)),
            7 => format!("  if sum({decides}) % 3 == 1 {{\n  {carried} = {other};\n  }} else {{\n{inner}  }}\n"),
            8 => format!(
                "  {carried} = if max({decides}) % 2 == 0 {{\n{inner}    {carried}\n  }} else {{\n    {other}\n  }};\n"
            ),
            _ => format!("  {carried} = {{\n{inner}    {carried}\n  }};\n"),
        }
    }

    /// An assignment that makes no error larger.
    fn step(&mut self, scope: &Scope, x: &Variable) -> String {
        let Scope { carried, other, .. } = scope;
        if !x.array.shape.is_empty() && self.draw.chance(20) {
            let axis = self.draw.below(x.array.shape.len());
            return format!("{carried} = roll({carried}, {}, axis={axis});", self.draw.between(-3, 3));
        }
        if x.array.dtype.is_float() {
            let kinds = ["({u} + {y}) / 2", "sin({u})", "{u} * 0.5", "maximum({u}, {y})"];
            let of = self.draw.pick(&kinds[..if scope.may_bend { 4 } else { 3 }]);
            return format!("{carried} = {};", of.replace("{u}", carried).replace("{y}", other));
        }
        let is_bool = !x.array.dtype.is_integer();
        let of = if is_bool {
            self.draw.pick(&["!{u}", "{u} ^ {y}"])
        } else {
            self.draw.pick(&["{u} * 3 + {y}", "{u} - {y}", "{u} ^ {y}"])
        };
        format!("{carried} = {};", of.replace("{u}", carried).replace("{y}", other))
    }
}
