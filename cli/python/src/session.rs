//! A compiled program with its memory and threads, which runs in this process.

use std::process;

use spmdc_abi::{Binding, Kernels, Plane, Program};
use spmdc_driver::errors::CommandError;
use spmdc_runtime::component_table::in_process;
use spmdc_runtime::data::array::{ArrayView, ComplexArray};
use spmdc_runtime::data::inputs::{Argument, bind};
use spmdc_runtime::errors::trap::RunError;
use spmdc_runtime::run::report::RunOptions;
use spmdc_runtime::run::session::Session;
use spmdc_runtime::run::start::Failure;

use crate::buffers::{ArgumentBytes, ArgumentSource, ResultMemory};
use crate::output::PythonOutput;

/// The value of a parameter; both planes of complex numbers are one.
pub enum PassedValue {
    Elements(ArgumentBytes),
    /// The file of a stream, as `--arg` names it: `data.npy`, `all.npz:data`.
    File(String),
}

/// A program and its code, with a session from the first run on.
pub struct LoadedProgram {
    program: Program,
    kernels: Kernels,
    options: RunOptions,
    /// With the process that it was loaded in.
    session: Option<(u32, Session)>,
}

impl LoadedProgram {
    pub fn new(program: Program, kernels: Kernels, options: RunOptions) -> LoadedProgram {
        LoadedProgram { program, kernels, options, session: None }
    }

    /// Runs the program once. `values` has one for each parameter, and the result one for each result.
    pub fn run(&mut self, values: &[PassedValue], out: &mut PythonOutput) -> Result<Vec<ResultMemory>, CommandError> {
        let files = self.program.files.clone();
        self.loaded()
            .and_then(|session| run(session, values, out))
            .map_err(|error| Failure::of_run(error, &files).into())
    }

    fn loaded(&mut self) -> Result<&mut Session, RunError> {
        if let Some((_, forked)) = self.session.take_if(|(owner, _)| *owner != process::id()) {
            // A forked process has no workers: waiting for their end would last forever.
            std::mem::forget(forked);
        }
        if self.session.is_none() {
            let code = in_process(self.kernels.clone());
            let session = Session::load_in(None, self.program.clone(), code, self.options.clone())?;
            self.session = Some((process::id(), session));
        }
        match &mut self.session {
            Some((_, session)) => Ok(session),
            None => Err(RunError::internal("the session was not loaded")),
        }
    }
}

fn run(session: &mut Session, values: &[PassedValue], out: &mut PythonOutput) -> Result<Vec<ResultMemory>, RunError> {
    let params = session.program().params.clone();
    let mut whole = values.iter();
    let mut value = None;
    for (index, param) in params.iter().enumerate() {
        if param.plane != Some(Plane::Imaginary) {
            value = whole.next();
        }
        match value {
            Some(PassedValue::Elements(elements)) => {
                let mut source = source(param, elements.as_slice());
                match param.place {
                    Some(_) => session.write_param(index, &mut source)?,
                    None => session.give(index, Box::new(source.to_array()))?,
                }
            }
            Some(PassedValue::File(file)) => {
                let argument = Argument::parse(&format!("{}=@{file}", param.name))?;
                let sources = bind(std::slice::from_ref(param), &[argument])?;
                sources.into_iter().try_for_each(|source| session.give(index, source))?;
            }
            None => return Err(RunError::internal(format!("`{}` has no argument", param.name))),
        }
    }
    session.run(out)?;
    results(session)
}

fn source<'a>(param: &Binding, bytes: &'a [u8]) -> ArgumentSource<'a> {
    let shape = param.layout.dims.iter().map(|dim| dim.size).collect();
    ArgumentSource { dtype: param.layout.dtype, shape, bytes, plane: param.plane }
}

fn results(session: &mut Session) -> Result<Vec<ResultMemory>, RunError> {
    let planes: Vec<Option<Plane>> = session.program().results.iter().map(|result| result.plane).collect();
    let mut memories = Vec::with_capacity(planes.len());
    for (index, plane) in planes.iter().enumerate() {
        match plane {
            None => memories.push(match session.take_result(index)? {
                Some(pages) => ResultMemory::Pages(pages),
                None => ResultMemory::Copied(session.read_result(index)?.bytes),
            }),
            Some(Plane::Real) => {
                let whole = ComplexArray::new(&session.read_result(index)?, &session.read_result(index + 1)?);
                memories.push(ResultMemory::Copied(ArrayView::from(&whole).bytes.to_vec()));
            }
            Some(Plane::Imaginary) => {}
        }
    }
    Ok(memories)
}
