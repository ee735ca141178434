//! A program as a function: the entry point of a library built with `spmdc build --emit lib`.
//!
//! The program is loaded at the first call and stays loaded, with its threads and memory, so that later calls cost only the run.
//! Calls of one program take turns.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::data::array::{BlockSource, copy_block};
use crate::errors::trap::RunError;
use crate::run::report::RunOptions;
use crate::run::session::Session;
use crate::run::start::{Failure, decode, without_panic};
use spmdc_abi::{DType, Image, Layout};

/// Programs by the address of their image.
static LOADED: Mutex<BTreeMap<usize, Arc<Mutex<Session>>>> = Mutex::new(BTreeMap::new());

/// Runs the program once: `inputs` has an array for each parameter, `outputs` one for each result, row-major and whole.
///
/// # Safety
/// The image must be as the compiler made it, and stay in memory. Every array must be large enough for its parameter or result, and
/// no other thread may write to the inputs, or use the outputs, during the call.
pub unsafe fn call(image: &'static Image, inputs: *const *const u8, outputs: *const *mut u8) -> Result<(), Failure> {
    without_panic(|| {
        // SAFETY: as promised by the caller.
        let session = unsafe { session(image)? };
        let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
        let files = session.program().files.clone();
        let of_program = |error: RunError| Failure::of_program(error, &files);
        let params: Vec<Layout> = session.program().params.iter().map(|param| param.layout.clone()).collect();
        for (index, layout) in params.iter().enumerate() {
            let shape: Vec<usize> = layout.dims.iter().map(|dim| dim.size).collect();
            let len = shape.iter().product::<usize>() * layout.dtype.size();
            // SAFETY: as promised by the caller, there is an input of this size for each parameter.
            let bytes = if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(*inputs.add(index), len) } };
            let mut input = CallerArray { dtype: layout.dtype, shape, bytes };
            session.write_param(index, &mut input).map_err(of_program)?;
        }
        session.run(&mut std::io::stdout()).map_err(of_program)?;
        for index in 0..session.program().results.len() {
            let array = session.read_result(index).map_err(of_program)?.with_one_nan();
            if !array.bytes.is_empty() {
                // SAFETY: as promised by the caller, there is an output of this size for each result, which no other thread uses.
                unsafe { (*outputs.add(index)).copy_from_nonoverlapping(array.bytes.as_ptr(), array.bytes.len()) };
            }
        }
        Ok(())
    })
}

/// # Safety
/// The image must be as the compiler made it, and stay in memory.
unsafe fn session(image: &'static Image) -> Result<Arc<Mutex<Session>>, Failure> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let key = std::ptr::from_ref(image).addr();
    if let Some(session) = loaded.get(&key) {
        return Ok(session.clone());
    }
    // SAFETY: as promised by the caller.
    let (program, code) = unsafe { decode(image)? };
    let files = program.files.clone();
    let session = Session::load_in(None, program, code, RunOptions::default());
    let session = Arc::new(Mutex::new(session.map_err(|error| Failure::of_program(error, &files))?));
    loaded.insert(key, session.clone());
    Ok(session)
}

/// An array that belongs to the caller.
struct CallerArray<'a> {
    dtype: DType,
    shape: Vec<usize>,
    bytes: &'a [u8],
}

impl BlockSource for CallerArray<'_> {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn read_block(&mut self, start: &[usize], len: &[usize], out: &mut [u8]) -> Result<(), RunError> {
        copy_block(self.dtype, &self.shape, self.bytes, start, len, out);
        Ok(())
    }
}
