//! Random whole programs, by number.

use super::programs::{Scale, Writer};
use super::{Draw, Mesh};
use crate::compare::Tolerance;
use crate::dumps::text;
use crate::engine;
use spmdc_ir::program::Stage;

/// Sizes of X and Y; 12 divides by each, as `manual` code needs it.
pub const MESHES: [&str; 4] = ["1x1", "2x3", "4x2", "3x4"];

/// On explicit axes a layout may be ambiguous, or other than annotated, or differ from one trip or branch to the other.
const REFUSALS: [&str; 6] = ["E0212", "E0213", "E0301", "E0302", "E0303", "E0305"];

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
    for _ in 0..wanted {
        let before = writer.clone();
        writer.statement();
        if !may_refuse {
            continue;
        }
        let program = writer.text(&mesh, &types);
        match engine::compiled("program.spmd", &program, "", Some(Stage::Typed)) {
            Ok(_) => {}
            Err(failures) if failures.iter().all(|failure| REFUSALS.contains(&failure.code.as_str())) => {
                // The next draw must not be the same one.
                writer = before.skipping();
            }
            Err(failures) => return Err(format!("{}\n{program}", text(&failures))),
        }
    }
    Ok((writer.text(&mesh, &types), writer.tolerances()))
}
