//! Programs made by hand.
#![allow(dead_code)]

use std::time::Duration;

use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::*;
use spmdc_runtime::data::array::HostArray;
use spmdc_runtime::errors::trap::RunError;
use spmdc_runtime::run::report::RunOptions;
use spmdc_runtime::run::session::Session;

/// A program that grows step by step, and its kernels.
#[derive(Clone)]
pub struct Maker {
    pub program: Program,
    pub kernels: Vec<KernelFn>,
}

impl Maker {
    /// On a mesh of axes of these sizes.
    pub fn new(sizes: &[usize]) -> Maker {
        let mesh = sizes.iter().map(|&size| MeshAxis { name: "A".into(), size }).collect();
        let program = Program {
            abi_version: ABI_VERSION,
            entry: "main".into(),
            files: vec!["test.spmd".into()],
            mesh,
            arenas: vec![],
            buffers: vec![],
            params: vec![],
            results: vec![],
            constants: vec![],
            body: vec![],
            kernels: vec![],
            fingerprint: 0,
            compile_ms: 0.0,
            mesh_programs: Vec::new(),
            devices: Vec::new(),
            channels: Vec::new(),
        };
        Maker { program, kernels: vec![] }
    }

    pub fn mesh(&self) -> DeviceMesh {
        DeviceMesh::new(&self.program.mesh).unwrap()
    }

    pub fn all(&self) -> AxisSet {
        AxisSet::all(self.program.mesh.len())
    }

    /// Space in an arena with an instance for every combination of coordinates along the axes.
    pub fn bytes(&mut self, axes: AxisSet, bytes: u64) -> Place {
        let arenas = &mut self.program.arenas;
        let arena = arenas.iter().position(|arena| arena.axes == axes).unwrap_or_else(|| {
            arenas.push(Arena { axes, bytes: 0 });
            arenas.len() - 1
        });
        let offset = arenas[arena].bytes;
        arenas[arena].bytes = (offset + bytes).next_multiple_of(64);
        Place { arena: arena as u16, offset }
    }

    pub fn buffer(&mut self, layout: &Layout, axes: AxisSet) -> Place {
        let elements: usize = self.mesh().stored_shape(layout).iter().product();
        let bytes = (elements * layout.dtype.size()) as u64;
        let place = self.bytes(axes, bytes);
        self.program.buffers.push(BufferInfo {
            name: format!("b{}", self.program.buffers.len()),
            ty: "?".into(),
            place,
            bytes,
            site: site(1),
        });
        place
    }

    pub fn param(&mut self, layout: &Layout, axes: AxisSet) -> Place {
        let place = self.buffer(layout, axes);
        self.program.params.push(Binding {
            name: "x".into(),
            second_name: None,
            ty: "?".into(),
            plane: None,
            layout: layout.clone(),
            place: Some(place),
        });
        place
    }

    pub fn result(&mut self, layout: &Layout, axes: AxisSet) -> Place {
        let place = self.buffer(layout, axes);
        self.program.results.push(Binding {
            name: "0".into(),
            second_name: None,
            ty: "?".into(),
            plane: None,
            layout: layout.clone(),
            place: Some(place),
        });
        place
    }

    pub fn step(&mut self, step: Step) {
        self.program.body.push(step);
    }

    /// A kernel over `0..range`.
    pub fn kernel(&mut self, function: KernelFn, buffers: &[Place], scalars: &[Scalar], range: Scalar) -> Step {
        self.kernels.push(function);
        self.program.kernels.push(format!("k{}", self.kernels.len()));
        Step::Kernel(KernelStep {
            kernel: self.kernels.len() as u32 - 1,
            buffers: buffers.to_vec(),
            scalars: scalars.to_vec(),
            range,
            part: None,
            split: AxisSet::EMPTY,
            grain: 1,
            cost: 1.0,
            site: site(40 + self.kernels.len() as u32),
            checks: [40, 140]
                .map(|line| Check { site: site(line + self.kernels.len() as u32), of: Checked::Divisor })
                .to_vec(),
        })
    }

    pub fn load(&self, workers: usize) -> Result<Session, RunError> {
        self.load_with(RunOptions { workers: Some(workers), timeout: Duration::from_secs(20), ..RunOptions::default() })
    }

    pub fn load_with(&self, options: RunOptions) -> Result<Session, RunError> {
        // SAFETY: the tests write their kernels for these programs.
        let kernels = unsafe { Kernels::new(self.kernels.clone()) };
        Session::load(self.program.clone(), kernels, options)
    }
}

pub fn site(line: u32) -> Site {
    Site { file: 0, line, column: 1 }
}

/// A layout from the size and the axes of every dimension.
pub fn layout(dtype: DType, dims: &[(usize, &[u8])]) -> Layout {
    let dims = dims.iter().map(|&(size, axes)| LayoutDim { size, axes: axes.to_vec() }).collect();
    Layout { dtype, dims }
}

/// The axes that split the layout.
pub fn split(layout: &Layout) -> AxisSet {
    layout.dims.iter().flat_map(|dim| dim.axes.iter().map(|&axis| axis as usize)).collect()
}

/// An array of this shape whose elements all differ, as far as the type allows.
pub fn counting(dtype: DType, shape: &[usize]) -> HostArray {
    let mut array = HostArray::zeros(dtype, shape);
    for (i, element) in array.bytes.chunks_exact_mut(dtype.size()).enumerate() {
        let bytes = (i as u64 * 257 + 1).to_le_bytes();
        element.copy_from_slice(&bytes[..dtype.size()]);
        if dtype == DType::Bool {
            element[0] &= 1;
        }
    }
    array
}

pub fn shape(layout: &Layout) -> Vec<usize> {
    layout.dims.iter().map(|dim| dim.size).collect()
}

/// The block of the array that a device holds, element by element.
pub fn block_of(array: &HostArray, mesh: &DeviceMesh, layout: &Layout, device: usize) -> HostArray {
    let ranges = mesh.blocks(layout, device);
    let lens: Vec<usize> = ranges.iter().map(|range| range.len()).collect();
    let mut block = HostArray::zeros(array.dtype, &lens);
    let size = array.dtype.size();
    for at in 0..block.len() {
        let mut rest = at;
        let mut index = vec![0; lens.len()];
        for i in (0..lens.len()).rev() {
            index[i] = ranges[i].start + rest % lens[i];
            rest /= lens[i];
        }
        let whole = index.iter().zip(&array.shape).fold(0, |whole, (i, size)| whole * size + i);
        block.bytes[at * size..][..size].copy_from_slice(&array.bytes[whole * size..][..size]);
    }
    block
}

pub fn f32s(array: &HostArray) -> Vec<f32> {
    assert_eq!(array.dtype, DType::F32);
    array.bytes.chunks_exact(4).map(|bytes| f32::from_ne_bytes(bytes.try_into().unwrap())).collect()
}

pub fn from_f32s(shape: &[usize], values: &[f32]) -> HostArray {
    let bytes = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    HostArray { dtype: DType::F32, shape: shape.to_vec(), bytes }
}
