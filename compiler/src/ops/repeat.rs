//! `tile` and `repeat`: a new dimension is stretched and merged with the one that it stands beside.

use super::{Call, broadcast, reshape, shape};
use crate::check::args::Args;
use crate::check::term::Term;
use crate::ir::Value;
use crate::ir::build::Builder;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;

/// `tile(x, (2, 1))` and `repeat(x, 3, axis=1)`: no ops of their own.
pub struct Repeat;

/// `times` copies of a dimension: of the whole (`outer`), or of each element.
fn copies(build: &mut Builder, value: Value, dim: usize, times: usize, outer: bool) -> Result<Value, Diagnostic> {
    let sizes = build.ty(value).shape().to_vec();
    let place = if outer { dim } else { dim + 1 };
    let mut wider = sizes.clone();
    wider.insert(place, 1);
    let value = reshape::reshape(build, value, &wider)?;
    wider[place] = times;
    let value = broadcast::broadcast(build, value, &wider)?;
    let mut merged = sizes;
    merged[dim] *= times;
    reshape::reshape(build, value, &merged)
}

impl Call for Repeat {
    fn call(name: &str, args: &mut Args<'_>, build: &mut Builder) -> Result<Term, Diagnostic> {
        let mut value = args.array(build, "x")?;
        let given = args.ints(if name == "tile" { "reps" } else { "repeats" })?;
        let mut times = broadcast::sizes(&given, args)?;
        let mut sizes = build.ty(value).shape().to_vec();
        if name == "repeat" {
            let [times] = times[..] else {
                return Err(Diagnostic::error(
                    Code::E0901,
                    args.span,
                    "`repeat` takes one count for all elements, so far",
                ));
            };
            let dim = match args.optional_int("axis")? {
                Some(axis) => shape::axis(axis, sizes.len(), args.span)?,
                None => {
                    value = reshape::reshape(build, value, &[sizes.iter().product()])?;
                    0
                }
            };
            return Ok(Term::Array(copies(build, value, dim, times, false)?));
        }
        let rank = sizes.len().max(times.len());
        sizes.splice(0..0, vec![1; rank - sizes.len()]);
        times.splice(0..0, vec![1; rank - times.len()]);
        value = reshape::reshape(build, value, &sizes)?;
        for (dim, &times) in times.iter().enumerate().filter(|(_, times)| **times != 1) {
            value = copies(build, value, dim, times, true)?;
        }
        Ok(Term::Array(value))
    }
}
