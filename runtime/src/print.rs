//! What a program prints: a text with the global values of arrays in it.

use std::io::Write;

use crate::abi::{AxisSet, PrintValue};
use crate::blocks::gather;
use crate::memory::Memory;
use crate::show;
use crate::start::unwritable_output;
use crate::trap::RunError;

/// A prepared `Print` step.
#[derive(Debug)]
pub(crate) struct Print {
    text: String,
    values: Vec<PrintValue>,
    /// Axes along which any of the values varies: there is a line for each of their coordinates.
    varying: AxisSet,
}

impl Print {
    pub fn new(text: String, values: Vec<PrintValue>) -> Print {
        let varying = values.iter().fold(AxisSet::EMPTY, |all, value| all.union(value.varying));
        Print { text, values, varying }
    }

    /// Writes the lines. All devices must have written the values, and wait.
    pub fn write(&self, memory: &Memory, out: &mut dyn Write) -> Result<(), RunError> {
        for device in memory.mesh().group(0, self.varying) {
            let mut line = String::new();
            let mut values = self.values.iter();
            let mut rest = self.text.as_str();
            while let Some((before, after)) = rest.split_once("{}") {
                line.push_str(before);
                match values.next() {
                    Some(value) => {
                        let array = gather(memory, value.place, &value.layout, device);
                        line.push_str(&show::format(&array));
                    }
                    None => line.push_str("{}"),
                }
                rest = after;
            }
            line.push_str(rest);
            line.push('\n');
            out.write_all(line.as_bytes()).map_err(|error| unwritable_output(&error))?;
        }
        Ok(())
    }
}
