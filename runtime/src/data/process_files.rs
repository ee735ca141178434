//! Files of one process or of one device: `--arg x=@part-{process}.npy`, `--out y=block-{device}.npy`.
//!
//! ```text
//! f32[6@X, 4] on 4 devices in 2 processes     {process}: 0 has the rows 0..4, 1 has 4..6     {device}: 0..2, 2..4, 4..6, none
//! ```
//!
//! A file of a process has the rows of its devices, in their order and each once, whole in all other dimensions; a file of a device has its
//! block. A process reads and writes the files of its own devices.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::data::array::{BlockSource, HostArray};
use crate::data::boxes::Rows;
use crate::errors::trap::{RunCode, RunError};
use crate::processes::assignment::{assigned, label};
use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::{Binding, DType, Layout, LayoutDim, Program};

/// The placeholder for a number in the name of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Placeholder {
    Process,
    Device,
}

impl Placeholder {
    fn text(self) -> &'static str {
        match self {
            Placeholder::Process => "{process}",
            Placeholder::Device => "{device}",
        }
    }

    /// Whether any of these texts names files of one process or device.
    pub fn is_in<'a>(texts: impl IntoIterator<Item = &'a String>) -> bool {
        texts.into_iter().any(|text| Placeholder::of(Path::new(text)).is_some())
    }

    /// The placeholder in the name of a file; None if it is a name like any other. With both, each device has its own file.
    pub fn of(path: &Path) -> Option<Placeholder> {
        let name = path.to_string_lossy();
        [Placeholder::Device, Placeholder::Process].into_iter().find(|each| name.contains(each.text()))
    }
}

/// The block of an array on a device of this process.
#[derive(Clone, Debug, PartialEq)]
struct LocalBlock {
    device: usize,
    range: Vec<Range<usize>>,
}

/// A block of an array, and its range in the whole one.
pub type RangedBlock = (Vec<Range<usize>>, HostArray);

/// The blocks of parameters and results on the devices of one process.
pub struct LocalBlocks {
    process: usize,
    params: Vec<Vec<LocalBlock>>,
    results: Vec<Vec<LocalBlock>>,
}

/// A file of this process, and the elements of the array that it has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProcessFile {
    pub path: PathBuf,
    /// The shape of the array in the file.
    pub shape: Vec<usize>,
    /// Which elements of the whole array are where in the file: boxes, and where each begins.
    boxes: Vec<(Vec<Range<usize>>, Vec<usize>)>,
    /// For messages: `rows of process 1`.
    whose: String,
}

impl LocalBlocks {
    /// The blocks of a program in one of this number of processes.
    pub fn new(program: &Program, process: usize, processes: usize) -> Result<LocalBlocks, RunError> {
        let programs = program.programs();
        let mesh = |own: &&Program| DeviceMesh::new(&own.mesh).map_err(RunError::internal);
        let meshes = assigned(program, programs.iter().map(mesh).collect::<Result<_, _>>()?, processes)?;
        let blocks = |part: usize, layout: &Layout| -> Vec<LocalBlock> {
            let mesh = &meshes[part];
            let own = |place| LocalBlock { device: label(program, part, place), range: mesh.blocks(layout, place) };
            mesh.devices_of(process).into_iter().map(own).collect()
        };
        let (mut params, mut results) =
            (vec![Vec::new(); program.params.len()], vec![Vec::new(); program.results.len()]);
        if program.mesh_programs.is_empty() {
            let of = |bindings: &[Binding]| bindings.iter().map(|binding| blocks(0, &binding.layout)).collect();
            (params, results) = (of(&program.params), of(&program.results));
        }
        for (number, part) in program.mesh_programs.iter().enumerate() {
            for (&whole, binding) in part.params.iter().zip(&part.program.params) {
                params[whole as usize].extend(blocks(number, &binding.layout));
            }
            for (&whole, binding) in part.results.iter().zip(&part.program.results) {
                results[whole as usize].extend(blocks(number, &binding.layout));
            }
        }
        Ok(LocalBlocks { process, params, results })
    }

    /// The files of this process for a parameter.
    pub(crate) fn of_param(&self, index: usize, param: &Binding, path: &Path, which: Placeholder) -> Vec<ProcessFile> {
        self.files(&self.params[index], &sizes(param), (path, which))
    }

    /// The files of this process for a result. E0702 if this process has only a part of the rows that a file should contain.
    pub(crate) fn of_result(
        &self,
        index: usize,
        result: &Binding,
        path: &Path,
        which: Placeholder,
    ) -> Result<Vec<ProcessFile>, RunError> {
        let files = self.files(&self.results[index], &sizes(result), (path, which));
        if files.iter().all(ProcessFile::is_whole) {
            return Ok(files);
        }
        let why = format!("the rows of `{}: {}` are divided among processes", result.name, result.ty);
        let help = format!("write a file for each device: `{}`", path.display()).replace("{process}", "{device}");
        Err(RunError::new(RunCode::E0702, why).with_help(help))
    }

    /// `sizes` are the sizes of the whole array.
    fn files(&self, blocks: &[LocalBlock], sizes: &[usize], (path, which): (&Path, Placeholder)) -> Vec<ProcessFile> {
        let named = |device: usize| {
            let name = path.to_string_lossy().replace("{process}", &self.process.to_string());
            PathBuf::from(name.replace("{device}", &device.to_string()))
        };
        let lens = |range: &[Range<usize>]| range.iter().map(Range::len).collect::<Vec<usize>>();
        match which {
            Placeholder::Device => {
                let file = |LocalBlock { device, range }: &LocalBlock| ProcessFile {
                    path: named(*device),
                    shape: lens(range),
                    boxes: vec![(range.clone(), vec![0; range.len()])],
                    whose: format!("block of device {device}"),
                };
                blocks.iter().map(file).collect()
            }
            Placeholder::Process if blocks.is_empty() => Vec::new(),
            Placeholder::Process => {
                // Where the rows of each distinct range begin in the file.
                let ranges = blocks.iter().filter_map(|block| block.range.first());
                let mut rows: Vec<(usize, usize)> = ranges.map(|rows| (rows.start, rows.len())).collect();
                rows.sort_unstable();
                rows.dedup();
                let mut starts = BTreeMap::new();
                let mut height = 0;
                for (start, len) in rows {
                    starts.entry(start).or_insert(height);
                    height += len;
                }
                let begin =
                    |(at, range): (usize, &Range<usize>)| if at == 0 { starts[&range.start] } else { range.start };
                let mut boxes: Vec<(Vec<Range<usize>>, Vec<usize>)> = Vec::new();
                for LocalBlock { range, .. } in blocks.iter().filter(|block| !block.range.iter().any(Range::is_empty)) {
                    if !boxes.iter().any(|(known, _)| known == range) {
                        boxes.push((range.clone(), range.iter().enumerate().map(begin).collect()));
                    }
                }
                let mut shape = sizes.to_vec();
                if let Some(rows) = shape.first_mut() {
                    *rows = height;
                }
                let whose = format!("rows of process {}", self.process);
                vec![ProcessFile { path: named(0), shape, boxes, whose }]
            }
        }
    }
}

impl ProcessFile {
    /// Whether the process has all elements of the file.
    fn is_whole(&self) -> bool {
        let elements = |range: &[Range<usize>]| range.iter().map(Range::len).product::<usize>();
        self.boxes.iter().map(|(range, _)| elements(range)).sum::<usize>() == self.shape.iter().product::<usize>()
    }

    /// The parameter whose argument this file alone would be.
    pub fn param(&self, whole: &Binding) -> Binding {
        let mut binding = whole.clone();
        for (dim, &size) in binding.layout.dims.iter_mut().zip(&self.shape) {
            *dim = LayoutDim { size, axes: Vec::new() };
        }
        let sizes: Vec<String> = binding.layout.dims.iter().map(|dim| dim.size.to_string()).collect();
        binding.ty = format!("{}, of which the {} should have the shape [{}]", whole.ty, self.whose, sizes.join(", "));
        binding
    }

    /// The array of the file, from the blocks of the devices of this process, which have these ranges of the whole array.
    pub fn array(&self, dtype: DType, blocks: &[RangedBlock]) -> Result<HostArray, RunError> {
        let mut array = HostArray::zeros(dtype, &self.shape);
        for (range, begin) in &self.boxes {
            let block = blocks.iter().find(|(known, _)| known == range);
            let (_, block) = block.ok_or_else(|| RunError::internal("a block of a result is missing"))?;
            let zeros = vec![0; begin.len()];
            let rows = Rows::new(dtype.size(), &block.shape, &block.shape, &zeros, &self.shape, begin);
            rows.for_each(&mut |from, to| {
                array.bytes[to..to + rows.row].copy_from_slice(&block.bytes[from..from + rows.row]);
            });
        }
        Ok(array)
    }
}

/// The size of each dimension of a whole array.
fn sizes(binding: &Binding) -> Vec<usize> {
    binding.layout.dims.iter().map(|dim| dim.size).collect()
}

impl LocalBlocks {
    /// The blocks of a result, in the order in which a session gives them, with their ranges.
    pub(crate) fn ranged(&self, result: usize, blocks: Vec<HostArray>) -> Vec<RangedBlock> {
        debug_assert_eq!(self.results[result].len(), blocks.len(), "the session has the same blocks");
        self.results[result].iter().map(|block| block.range.clone()).zip(blocks).collect()
    }
}

/// The elements of a parameter in several files, each of them a source.
pub(crate) struct ProcessFilesSource {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub pieces: Vec<(ProcessFile, Box<dyn BlockSource + Send>)>,
}

impl BlockSource for ProcessFilesSource {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn read_block(&mut self, start: &[usize], len: &[usize], out: &mut [u8]) -> Result<(), RunError> {
        if out.is_empty() {
            return Ok(());
        }
        for (file, source) in &mut self.pieces {
            let has = |range: &[Range<usize>]| range.iter().zip(start).all(|(range, start)| range.contains(start));
            if let Some((range, begin)) = file.boxes.iter().find(|(range, _)| has(range)) {
                let from =
                    start.iter().zip(range).zip(begin).map(|((start, range), begin)| begin + start - range.start);
                return source.read_block(&from.collect::<Vec<_>>(), len, out);
            }
        }
        Err(RunError::internal("a block of a parameter is in no file of this process"))
    }
}
