//! The texts of a program, with the global values of arrays in them: printed lines, errors, and names of files.

use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::data::array::ComplexArray;
use crate::data::blocks::{FarBlocks, gather, read_blocks};
use crate::errors::trap::{RunCode, RunError};
use crate::io::unwritable_output;
use crate::processes::reads::DeviceReads;
use crate::run::memory::Memory;
use crate::run::shared::PreparedText;
use crate::shared_file::{ArrayOnDevices, Grain, PlaneOnDevices, SharedFilePlan};
use crate::text::picture;
use crate::text::save::{Copies, SavedFile, Saver};
use crate::text::show;
use spmdc_abi::{AxisSet, Form, MeshAxis, Piece, PrintValue, SavedArray, Site, TextPurpose, pieces};

/// A prepared `Print` step.
#[derive(Debug)]
pub(crate) struct PreparedPrint {
    pieces: Vec<Piece>,
    /// The values of the text.
    values: Vec<PrintValue>,
    purpose: PreparedPurpose,
    /// Axes along which any of the values varies: there is a line for each of their coordinates.
    varying: AxisSet,
    /// The names of these axes, which begin such lines.
    names: Vec<(usize, String)>,
    /// The number of the device of this process that prints, or that begins to write this process's part of a file.
    actor: Option<usize>,
    /// Whether that is the first device of the mesh, which says the name of a file.
    is_first: bool,
    /// The blocks of other processes, in the process that prints.
    far: FarBlocks,
}

/// The purpose of a text.
#[derive(Debug)]
enum PreparedPurpose {
    Line,
    /// The bool that must hold, and the source position of the error if it does not.
    Error(PrintValue, Site),
    File(PreparedFile),
}

/// A file that is saved once or often.
#[derive(Debug)]
struct PreparedFile {
    plan: Arc<SharedFilePlan>,
    /// The processes that have devices of the mesh.
    ranks: Arc<[usize]>,
    site: Site,
    /// Copies of the values that have been written, to be filled again.
    spare: Arc<Mutex<Vec<Copies>>>,
}

impl PreparedPrint {
    /// For the mesh of this memory, whose device with the lowest number is at the place `first`.
    pub fn new(
        (text, mut values): (&str, Vec<PrintValue>),
        purpose: &TextPurpose,
        site: Site,
        axes: &[MeshAxis],
        memory: &Memory,
        first: usize,
    ) -> Result<PreparedPrint, RunError> {
        let varying = values.iter().fold(AxisSet::EMPTY, |all, value| all.union(value.varying));
        let names = varying.iter().filter_map(|axis| Some((axis, axes.get(axis)?.name.clone()))).collect();
        let purpose = match purpose {
            TextPurpose::Line => PreparedPurpose::Line,
            TextPurpose::Error => PreparedPurpose::Error(values.remove(0), site),
            TextPurpose::FileName(arrays) => {
                let saved: usize = arrays.iter().map(SavedArray::values).sum();
                let values = values.split_off(values.len() - saved);
                PreparedPurpose::File(PreparedFile::new(arrays, &values, site, memory)?)
            }
        };
        let far = FarBlocks::default();
        let is_first = memory.devices().contains(&first);
        let mut prepared =
            PreparedPrint { pieces: pieces(text), values, purpose, varying, names, actor: None, is_first, far };
        prepared.actor = match is_first {
            true => Some(first),
            false => memory.devices().first().copied().filter(|_| prepared.saves()),
        };
        Ok(prepared)
    }

    /// Adds the reads of the process that prints, and notes where blocks of other processes arrive.
    pub fn read(&mut self, reads: &mut DeviceReads<'_>) {
        let condition = match &self.purpose {
            PreparedPurpose::Line | PreparedPurpose::File(_) => None,
            PreparedPurpose::Error(condition, _) => Some(condition),
        };
        let mut far = FarBlocks::default();
        for device in reads.mesh().group(0, self.varying) {
            for value in self.values.iter().chain(condition) {
                read_blocks(reads, &mut far, (value.place, &value.layout), device);
            }
        }
        self.far = far;
    }

    fn line(&self, memory: &Memory, device: usize) -> String {
        let mut line = self.whose(memory, device);
        let mut values = self.values.iter();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => line.push_str(text),
                Piece::Value(spec) => match values.next() {
                    Some(value) => {
                        let array = gather(memory, &self.far, value.place, &value.layout, device);
                        let other = if spec.complex { values.next() } else { None };
                        match other.map(|other| gather(memory, &self.far, other.place, &other.layout, device)) {
                            Some(im) => line.push_str(&show::formatted(&ComplexArray::new(&array, &im), spec)),
                            None if spec.form == Form::Picture => add_picture(&mut line, &picture::drawn(&array)),
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

/// Adds a picture to a text. One of several lines begins a line, so that its rows are aligned.
fn add_picture(text: &mut String, picture: &str) {
    if picture.contains('\n') && !text.is_empty() {
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text.push_str(picture);
}

impl PreparedText for PreparedPrint {
    fn actor(&self) -> Option<usize> {
        self.actor
    }

    fn saves(&self) -> bool {
        match self.purpose {
            PreparedPurpose::Line | PreparedPurpose::Error(..) => false,
            PreparedPurpose::File(_) => true,
        }
    }

    fn is_saved_by(&self, process: usize) -> bool {
        match &self.purpose {
            PreparedPurpose::Line | PreparedPurpose::Error(..) => false,
            PreparedPurpose::File(file) => file.ranks.contains(&process),
        }
    }

    fn write(&self, memory: &Memory, out: &mut dyn Write) -> Result<(), RunError> {
        for device in memory.mesh().group(0, self.varying) {
            match &self.purpose {
                PreparedPurpose::Line => {
                    let line = self.line(memory, device) + "\n";
                    out.write_all(line.as_bytes()).map_err(|error| unwritable_output(&error))?;
                }
                PreparedPurpose::Error(condition, site) => {
                    let flag = gather(memory, &self.far, condition.place, &condition.layout, device);
                    if flag.bytes.first() == Some(&0) {
                        return Err(RunError::new(RunCode::E0806, self.line(memory, device)).at(*site));
                    }
                }
                PreparedPurpose::File(_) => return Err(RunError::internal("a file was given instead of text")),
            }
        }
        Ok(())
    }

    fn save(&self, memory: &Memory, saver: &Saver) -> Result<(), RunError> {
        let PreparedPurpose::File(file) = &self.purpose else { return Ok(()) };
        debug_assert!(self.varying.is_empty(), "a file has one value for all devices");
        let path = self.is_first.then(|| PathBuf::from(self.line(memory, 0)));
        saver.save(file.copied(memory, path))
    }
}

impl PreparedFile {
    fn new(
        arrays: &[SavedArray],
        values: &[PrintValue],
        site: Site,
        memory: &Memory,
    ) -> Result<PreparedFile, RunError> {
        let mesh = memory.mesh();
        let mut planes =
            values.iter().map(|value| PlaneOnDevices { mesh, part: 0, place: value.place, layout: &value.layout });
        let planned = arrays.iter().map(|array| ArrayOnDevices {
            name: array.name.clone(),
            planes: planes.by_ref().take(array.values()).collect(),
        });
        let plan =
            Arc::new(SharedFilePlan::new(planned.collect(), (memory.process(), mesh.processes()), Grain::USUAL)?);
        let ranks = (0..mesh.processes()).filter(|&process| !mesh.devices_of(process).is_empty()).collect();
        Ok(PreparedFile { plan, ranks, site, spare: Arc::default() })
    }

    /// Copies this process's part of the values.
    fn copied(&self, memory: &Memory, path: Option<PathBuf>) -> SavedFile {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut copies = spare.unwrap_or_else(|| vec![0; self.plan.copied_bytes()]);
        self.plan.copy(memory, &mut copies);
        let (plan, ranks, home) = (self.plan.clone(), self.ranks.clone(), self.spare.clone());
        SavedFile { path, plan, ranks, copies, home, site: self.site }
    }
}
