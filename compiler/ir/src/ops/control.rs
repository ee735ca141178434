//! Control flow: statements that hold blocks. Passes match on them; as ops they only print their names.

use super::{Mismatch, Rules};
use crate::array::{Array, Trap};
use crate::layout::factors::Factors;
use crate::layout::mesh::Mesh;
use crate::layout::parts::Parts;
use crate::layout::sharding::Sharding;
use crate::layout::types::{ArrayType, AxisSet};

/// `for i in start..end`, with carried values and, under `collect`, one value per trip.
///
/// Operands: with `range` the initial carries; without, the i32 scalars start and end before them. Block 0 takes `i` (an i32
/// scalar) and the carries, and gives the next carries and then the `collected` values. Results: the last carries, then each
/// collected value stacked along a new first dimension (`range` is known then).
#[derive(Clone, Debug, PartialEq)]
pub struct ForLoop {
    pub range: Option<(i64, i64)>,
    pub collected: usize,
}

impl ForLoop {
    /// How many operands stand before the carries.
    pub fn bounds(&self) -> usize {
        if self.range.is_some() { 0 } else { 2 }
    }

    pub fn trips(&self) -> Option<u64> {
        self.range.map(|(start, end)| (end - start).max(0) as u64)
    }
}

/// `while`: operands are the initial carries; block 0 takes the carries and gives a bool scalar, block 1 takes the carries and
/// gives the next; results are the last carries.
#[derive(Clone, Debug, PartialEq)]
pub struct WhileLoop;

/// `if`: the operand is a bool scalar; block 0 and block 1 take nothing and give the results.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch;

/// The body of a `manual` function: block 0 takes the local blocks of the operands and gives local results.
///
/// `inputs` and `outputs` say for each operand and result how its dimensions are split over the manual axes (and only those).
#[derive(Clone, Debug, PartialEq)]
pub struct ManualRegion {
    pub name: String,
    pub axes: AxisSet,
    pub inputs: Vec<Sharding>,
    pub outputs: Vec<Sharding>,
}

macro_rules! structural {
    ($($ty:ty = $name:literal $({ $($more:item)* })?)*) => { $(
        impl Rules for $ty {
            fn name(&self) -> &'static str {
                $name
            }

            fn infer(&self, _: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
                unreachable!("the types of `{}` come from its blocks", $name)
            }

            fn factors(&self, _: &[&ArrayType], _: &[&ArrayType]) -> Factors {
                unreachable!("`{}` carries shardings by value, not by factors", $name)
            }

            fn eval(&self, _: &[&Array]) -> Result<Vec<Array>, Trap> {
                unreachable!("`{}` is interpreted by the evaluator itself", $name)
            }

            fn print(&self, _: &[String], _: &Mesh) -> String {
                unreachable!("`{}` is printed by the printer itself", $name)
            }

            fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
                0
            }

            $($($more)*)?
        }
    )* };
}

structural! {
    ForLoop = "for"
    WhileLoop = "while"
    Branch = "if"
    ManualRegion = "manual" {
        fn name_parts(&mut self, parts: &Parts) {
            self.axes = parts.set(self.axes);
            self.inputs.iter_mut().chain(&mut self.outputs).for_each(|layout| *layout = parts.sharding(layout));
        }
    }
}
