//! Random whole programs, by number.

use super::programs::{Scale, Writer};
use super::{Draw, Mesh};
use crate::compare::Tolerance;
use crate::dumps;
use crate::engine;
use spmdc_ir::program::Stage;
use std::iter::successors;

/// Sizes of X and Y; 12 divides by each, as `manual` code needs it.
pub const MESHES: [&str; 4] = ["1x1", "2x3", "4x2", "3x4"];

/// On explicit axes a layout may be ambiguous, or other than annotated, or differ from one trip or branch to the other.
const REFUSALS: [&str; 6] = ["E0212", "E0213", "E0301", "E0302", "E0303", "E0305"];

/// Number of statements that are checked together: most are accepted, and to check one takes as long as to check all of a program.
const AT_ONCE: usize = 8;

/// A program of 20 to 60 statements. Explicit axes refuse some statements: those are left out.
pub fn program(number: u64) -> Result<(String, Vec<Tolerance>), String> {
    let mut draw = Draw::new("program", number);
    let explicit = draw.chance(30);
    let mode = |draw: &mut Draw| explicit && draw.chance(60);
    let mesh = Mesh { axes: vec![("X", 2, mode(&mut draw)), ("Y", 3, mode(&mut draw))] };
    let may_refuse = mesh.axes.iter().any(|&(_, _, explicit)| explicit);
    // One in fifty has large arrays, and fewer statements; one in five has derivatives.
    let has_derivatives = number % 5 == 2 || std::env::var_os("DERIVATIVES").is_some();
    let (scale, wanted, derivatives) = match number % 50 {
        _ if has_derivatives => (Scale::Small, 6 + draw.below(10), 4),
        49 => (Scale::Large, 10 + draw.below(10), 0),
        _ => (Scale::Small, 20 + draw.below(41), 0),
    };
    let mut writer = Writer::new(draw, mesh.clone(), scale).with_derivatives(derivatives);
    let types = writer.param_types();
    let mut left = wanted;
    while left > 0 {
        let next = |writer: &Writer| {
            let mut next = writer.clone();
            next.statement();
            Some(next)
        };
        let mut states: Vec<Writer> = successors(Some(writer), next).take(1 + left.min(AT_ONCE)).collect();
        let drawn = states.len() - 1;
        let accepted = if may_refuse { accepted(&states, |writer| writer.text(&mesh, &types))? } else { drawn };
        writer = states.swap_remove(accepted);
        left -= accepted;
        if accepted < drawn {
            // The next draw must not be the same one.
            writer = writer.skipping();
            left -= 1;
        }
    }
    Ok((writer.text(&mesh, &types), writer.tolerances()))
}

/// The number of statements that explicit axes accept, of writers that each have one more than the one before; the first is accepted.
fn accepted(states: &[Writer], text: impl Fn(&Writer) -> String) -> Result<usize, String> {
    let is_accepted = |number: usize| {
        let program = text(&states[number]);
        match engine::compiled("program.spmd", &program, "", Some(Stage::Typed)) {
            Ok(_) => Ok(true),
            Err(failures) if failures.iter().all(|failure| REFUSALS.contains(&failure.code.as_str())) => Ok(false),
            Err(failures) => Err(format!("{}\n{program}", dumps::text(&failures))),
        }
    };
    let (mut accepted, mut refused) = (0, states.len());
    // Mostly all are.
    let mut tried = refused - 1;
    while accepted + 1 < refused {
        *if is_accepted(tried)? { &mut accepted } else { &mut refused } = tried;
        tried = accepted.midpoint(refused);
    }
    Ok(accepted)
}
