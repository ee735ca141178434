//! A program from its command line to its results.
#![allow(clippy::unwrap_used)]

use std::ffi::{OsString, c_void};
use std::fs;

use spmdc_abi::{
    ABI_VERSION, Arena, AxisSet, Binding, Component, DType, Image, Kernels, Layout, LayoutDim, MeshAxis, Place,
    Program, Site, Step,
};
use spmdc_runtime::component_table::in_process;
use spmdc_runtime::errors::trap::{RunCode, RunError};
use spmdc_runtime::io::npy::NpySource;
use spmdc_runtime::run::args::{ErrorFormat, RunArgs};
use spmdc_runtime::run::call::call;
use spmdc_runtime::run::start::{Failure, encode, execute, start, without_panic};

/// `fn main(x: i32[5@X], i: i32) -> i32[5@X] { check i in 0..5; x }` on the mesh X = 2.
fn program() -> Program {
    let all = AxisSet::of(0);
    let place = |offset| Place { arena: 0, offset };
    let array = Layout { dtype: DType::I32, dims: vec![LayoutDim { size: 5, axes: vec![0] }] };
    let scalar = Layout { dtype: DType::I32, dims: Vec::new() };
    let binding = |name: &str, ty: &str, layout: &Layout, offset| Binding {
        name: name.to_string(),
        second_name: None,
        ty: ty.to_string(),
        plane: None,
        layout: layout.clone(),
        place: Some(place(offset)),
    };
    Program {
        abi_version: ABI_VERSION,
        entry: "main".to_string(),
        files: vec!["p.spmd".to_string()],
        mesh: vec![MeshAxis { name: "X".to_string(), size: 2 }],
        arenas: vec![Arena { axes: all, bytes: 256 }],
        buffers: Vec::new(),
        params: vec![binding("x", "i32[5@X]", &array, 0), binding("i", "i32", &scalar, 64)],
        results: vec![binding("0", "i32[5@X]", &array, 128)],
        constants: vec![],
        body: vec![
            Step::CheckIndex {
                index: place(64),
                dtype: DType::I32,
                extent: 5,
                len: 1,
                to: place(192),
                site: Site { file: 0, line: 3, column: 7 },
            },
            Step::Copy { from: place(0), to: place(128), bytes: 12, split: AxisSet::EMPTY },
        ],
        kernels: Vec::new(),
        fingerprint: 0,
        compile_ms: 1.0,
        mesh_programs: Vec::new(),
        devices: Vec::new(),
        channels: Vec::new(),
    }
}

fn no_kernels() -> Kernels {
    // SAFETY: the program has no kernel steps.
    unsafe { Kernels::new(Vec::new()) }
}

fn run(words: &[&str]) -> Result<(), Failure> {
    execute(program(), in_process(no_kernels()), &RunArgs::parse(words.iter().map(OsString::from)).unwrap())
}

#[test]
fn arguments_come_in_and_results_go_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("y.npy");
    let out = format!("--out={}", path.display());
    run(&["--arg", "x=[5,6,7,8,9]", "--arg", "i=-1", &out]).unwrap();
    let written = NpySource::open(&path).unwrap().read().unwrap();
    let expected: Vec<u8> = [5i32, 6, 7, 8, 9].iter().flat_map(|x| x.to_ne_bytes()).collect();
    assert_eq!((written.shape, written.bytes), (vec![5], expected));
    run(&["--arg", "x=iota", "--arg", "i=0", "--bench", "3", &out]).unwrap();
    assert_eq!(NpySource::open(&path).unwrap().read().unwrap().bytes[4], 1);
}

#[test]
fn an_error_while_running_names_its_line_and_leaves_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let out = format!("--out={}", folder.path().join("y.npy").display());
    let failure = run(&["--arg", "x=zeros", "--arg", "i=5", &out]).unwrap_err();
    assert_eq!((failure.status, failure.error.code, failure.file.as_deref()), (3, RunCode::E0801, Some("p.spmd")));
    let text = failure.render(ErrorFormat::Text);
    assert!(text.starts_with("error[E0801]: ") && text.contains("\n  --> p.spmd:3:7\n"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&failure.render(ErrorFormat::Json)).unwrap();
    assert_eq!((json["line"].as_u64(), json["column"].as_u64()), (Some(3), Some(7)));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_wrong_command_line_is_status_2() {
    let failure = run(&["--arg", "x=[1,2]", "--arg", "i=0"]).unwrap_err();
    assert_eq!((failure.status, failure.error.code), (2, RunCode::E0701));
    let failure = run(&["--arg", "x=zeros"]).unwrap_err();
    assert_eq!((failure.status, failure.error.code), (2, RunCode::E0702));
}

unsafe extern "C" {
    /// The component that binds arguments, as objects refer to it.
    static spmd_inputs: u8;
    /// The component for sorts.
    static spmd_sorts: u8;
}

/// The addresses of components.
struct Linked<const N: usize>([*const c_void; N]);

// SAFETY: they are addresses of static variables that do not change.
unsafe impl<const N: usize> Sync for Linked<N> {}

/// The component that the program needs, another one, and none.
static INPUTS: Linked<1> = Linked([(&raw const spmd_inputs).cast()]);
static SORTS: Linked<1> = Linked([(&raw const spmd_sorts).cast()]);
static NONE: Linked<0> = Linked([]);

/// As the compiler puts it into an object.
fn image(bytes: &[u8], features: u64) -> Image {
    linked(bytes, features, &INPUTS)
}

fn linked<const N: usize>(bytes: &[u8], features: u64, components: &'static Linked<N>) -> Image {
    let kernels = std::ptr::NonNull::dangling().as_ptr();
    Image {
        program: bytes.as_ptr(),
        program_len: bytes.len() as u64,
        kernels,
        kernel_count: 0,
        features,
        wide_kernels: kernels,
        wide_features: 0,
        components: components.0.as_ptr(),
        component_count: N as u64,
    }
}

#[test]
fn an_encoded_program_starts() {
    let bytes = encode(&program()).unwrap().bytes;
    let folder = tempfile::tempdir().unwrap();
    let out = format!("--out={}", folder.path().join("y.npz").display());
    // SAFETY: the program has no kernels, and its bytes stay where they are.
    let start = |image: Image, list: &[&str]| unsafe { start(&image, list.iter().map(OsString::from)) };
    assert_eq!(start(image(&bytes, 0), &["p", "--arg=x=ones", "--arg=i=2", &out]), 0);
    assert_eq!(start(image(&bytes, 0), &["p", "--agr=x=ones"]), 2);
    assert_eq!(start(image(&bytes, 0), &["p", "--arg=x=ones", "--arg=i=7"]), 3);
    assert_eq!(start(image(&bytes[..9], 0), &["p"]), 3);
    // No processor has all features of all architectures.
    assert_eq!(start(image(&bytes, u64::MAX), &["p", "--arg=x=ones", "--arg=i=2"]), 3);
}

#[test]
fn a_program_can_be_called_again_and_again() {
    let bytes = Box::leak(encode(&program()).unwrap().bytes.into_boxed_slice());
    let ready: &'static Image = Box::leak(Box::new(image(bytes, 0)));
    let run = |x: [i32; 5], i: i32| {
        let mut y = [0_i32; 5];
        let inputs = [x.as_ptr().cast::<u8>(), std::ptr::from_ref(&i).cast()];
        let outputs = [y.as_mut_ptr().cast::<u8>()];
        // SAFETY: the image is whole and stays in memory; the arrays are those of the program.
        unsafe { call(ready, inputs.as_ptr(), outputs.as_ptr()) }.map(|()| y)
    };
    assert_eq!(run([5, 6, 7, 8, 9], -1), Ok([5, 6, 7, 8, 9]));
    assert_eq!(run([1; 5], 5).map_err(|failure| failure.error.code), Err(RunCode::E0801));
    assert_eq!(run([1, 2, 3, 4, 5], 0), Ok([1, 2, 3, 4, 5]));
    let lacking: &'static Image = Box::leak(Box::new(image(bytes, u64::MAX)));
    // SAFETY: as above; nothing is read before the features are checked.
    let refused = unsafe { call(lacking, std::ptr::null(), std::ptr::null()) };
    assert_eq!(refused.map_err(|failure| failure.error.code), Err(RunCode::E0805));
}

#[test]
fn a_program_is_refused_without_its_components() {
    let encoded = encode(&program()).unwrap();
    assert_eq!(encoded.components.into_iter().collect::<Vec<_>>(), [Component::Inputs]);
    let bytes = encoded.bytes.leak();
    let refused = |image: Image| {
        let image: &'static Image = Box::leak(Box::new(image));
        // SAFETY: the image is whole but for its components, without which no array is used.
        let failure = unsafe { call(image, std::ptr::null(), std::ptr::null()) }.unwrap_err();
        assert_eq!(failure.error.code, RunCode::E0999);
        failure.error.message
    };
    let none = refused(linked(bytes, 0, &NONE));
    assert!(none.contains("needs 1 component of the runtime, but 0 are linked"), "{none}");
    let other = refused(linked(bytes, 0, &SORTS));
    assert!(other.contains("the component `spmd_inputs` of the runtime is not linked"), "{other}");
}

#[test]
fn a_panic_becomes_an_internal_error() {
    let failure = without_panic(|| -> Result<(), Failure> { panic!("on purpose") }).unwrap_err();
    assert_eq!((failure.status, failure.error.code), (3, RunCode::E0999));
    assert!(failure.error.message.contains("on purpose"), "{}", failure.error.message);
    let error = RunError::new(RunCode::E0703, "x");
    assert_eq!(without_panic(|| -> Result<(), Failure> { Err(Failure::new(error)) }).unwrap_err().status, 2);
}
