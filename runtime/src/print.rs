//! The printed text of a program, with the global values of arrays in it.

use std::io::Write;

use crate::array::ComplexArray;
use crate::blocks::gather;
use crate::io::unwritable_output;
use crate::memory::Memory;
use crate::show;
use crate::trap::RunError;
use spmdc_abi::{AxisSet, MeshAxis, Piece, PrintValue, Site, pieces};

/// A prepared `Print` step.
#[derive(Debug)]
pub(crate) struct PreparedPrint {
    pieces: Vec<Piece>,
    values: Vec<PrintValue>,
    /// For an assertion, the bool that must hold, and the source position of the error if it does not.
    condition: Option<(PrintValue, Site)>,
    /// Axes along which any of the values varies: there is a line for each of their coordinates.
    varying: AxisSet,
    /// The names of these axes, which begin such lines.
    names: Vec<(usize, String)>,
}

impl PreparedPrint {
    pub fn new(text: &str, mut values: Vec<PrintValue>, asserts: Option<Site>, axes: &[MeshAxis]) -> PreparedPrint {
        let varying = values.iter().fold(AxisSet::EMPTY, |all, value| all.union(value.varying));
        let names = varying.iter().filter_map(|axis| Some((axis, axes.get(axis)?.name.clone()))).collect();
        debug_assert!(asserts.is_none() || !values.is_empty(), "an assertion has its condition");
        let condition = asserts.filter(|_| !values.is_empty()).map(|site| (values.remove(0), site));
        PreparedPrint { pieces: pieces(text), values, condition, varying, names }
    }

    /// Writes the lines, or checks that the condition holds. All devices must have written the values, and wait.
    pub fn write(&self, memory: &Memory, out: &mut dyn Write) -> Result<(), RunError> {
        for device in memory.mesh().group(0, self.varying) {
            if let Some((condition, site)) = &self.condition {
                let flag = gather(memory, condition.place, &condition.layout, device);
                if flag.bytes.first() == Some(&0) {
                    return Err(RunError::new("E0806", self.line(memory, device)).at(*site));
                }
                continue;
            }
            let line = self.line(memory, device) + "\n";
            out.write_all(line.as_bytes()).map_err(|error| unwritable_output(&error))?;
        }
        Ok(())
    }

    fn line(&self, memory: &Memory, device: usize) -> String {
        let mut line = self.whose(memory, device);
        let mut values = self.values.iter();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => line.push_str(text),
                Piece::Value(spec) => match values.next() {
                    Some(value) => {
                        let array = gather(memory, value.place, &value.layout, device);
                        let other = if spec.complex { values.next() } else { None };
                        match other.map(|other| gather(memory, other.place, &other.layout, device)) {
                            Some(im) => line.push_str(&show::formatted(&ComplexArray::new(&array, &im), spec)),
                            None => line.push_str(&show::formatted(&array, spec)),
                        }
                    }
                    None => line.push_str(&spec.place()),
                },
            }
        }
        line
    }

    /// The prefix of values that differ between devices, such as `X=0,Y=1: `.
    fn whose(&self, memory: &Memory, device: usize) -> String {
        let place = |(axis, name): &(usize, String)| format!("{name}={}", memory.mesh().coordinate(device, *axis));
        let places: Vec<String> = self.names.iter().map(place).collect();
        if places.is_empty() { String::new() } else { format!("{}: ", places.join(",")) }
    }
}
