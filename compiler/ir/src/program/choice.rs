//! The ways to make a layout unambiguous on explicit axes, each with its cost.

use spmdc_layout::mesh::Mesh;
use spmdc_layout::reshard;
use spmdc_layout::reshard::step::ReshardStep;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::Type;

/// One way to make a layout unambiguous.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The change of the program.
    pub edit: ChoiceEdit,
    /// Its cost, in words.
    pub note: String,
    /// Maximum bytes received by any device.
    pub cost: f64,
}

impl Choice {
    /// `out=P(X, _)`, or `reshard(..., P(X, _))` with the operand's text if it is known.
    pub fn text(&self, operand: Option<&str>, mesh: &Mesh) -> String {
        match &self.edit {
            ChoiceEdit::Out(sharding) => format!("out={}", spaced(sharding, mesh)),
            ChoiceEdit::Reshard { to, .. } => format!("reshard({}, {})", operand.unwrap_or("..."), spaced(to, mesh)),
            ChoiceEdit::Reshards(moves) => {
                let moves = moves.iter().map(|(_, to)| format!("reshard(..., {})", spaced(to, mesh)));
                moves.collect::<Vec<_>>().join(" and ")
            }
        }
    }
}

/// A sharding with spaces, as in programs: `P(X, _)`.
pub fn spaced(sharding: &Sharding, mesh: &Mesh) -> String {
    sharding.display(mesh).replace(',', ", ")
}

/// The change of the program that makes a layout unambiguous.
#[derive(Clone, Debug, PartialEq)]
pub enum ChoiceEdit {
    /// `out=` on the call.
    Out(Sharding),
    /// `reshard` around an operand.
    Reshard {
        /// The position of the operand.
        operand: usize,
        /// Its layout after the change.
        to: Sharding,
    },
    /// `reshard` around several operands.
    Reshards(Vec<(usize, Sharding)>),
}

/// Two moves, one after the other.
pub fn then(first: &(String, f64), second: &(String, f64)) -> (String, f64) {
    (in_turn([first.0.as_str(), second.0.as_str()].into_iter()), first.1 + second.1)
}

const NOTHING_MOVES: &str = "no communication";

/// The cost of a reshard: in one line, and as the maximum bytes received by any device.
pub fn cost_of_move(ty: &Type, to: &Sharding, mesh: &Mesh) -> (String, f64) {
    let mut from = ty.sharding.close();
    let mut steps = Vec::new();
    let plan = reshard::plan(&ty.array, &from, to, mesh);
    for step in plan.steps {
        if let ReshardStep::Collective(kind) = step.step {
            let group = mesh.display_set(reshard::group(&ty.array, &from, &step.to, mesh));
            let [before, after] = [&from, &step.to].map(|at| Type { sharding: at.clone(), ..ty.clone() });
            let operand = reshard::traffic(kind, &before, &after, mesh).operand;
            let bytes = operand.iter().product::<usize>() * ty.dtype().size();
            steps.push(format!("one {} over {group}, {bytes} bytes per device", kind.name()));
        }
        from = step.to;
    }
    (in_turn(steps.iter().map(String::as_str)), plan.cost)
}

/// Several costs in one line.
pub fn in_turn<'a>(notes: impl Iterator<Item = &'a str>) -> String {
    let notes: Vec<&str> = notes.filter(|note| !note.is_empty() && *note != NOTHING_MOVES).collect();
    if notes.is_empty() { NOTHING_MOVES.to_string() } else { notes.join(", then ") }
}
