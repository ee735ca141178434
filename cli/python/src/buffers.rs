//! Arrays of Python as arguments, and results as buffers of Python.

use std::ffi::{c_int, c_void};
use std::ptr;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use spmdc_abi::{DType, Plane};
use spmdc_runtime::data::array::{BlockSource, HostArray, copy_block, for_each_row};
use spmdc_runtime::errors::trap::RunError;
use spmdc_runtime::run::pages::ArrayPages;

/// The elements of an argument, row-major. They must not change during the call.
pub struct ArgumentBytes {
    view: Box<ffi::Py_buffer>,
}

// SAFETY: the view belongs to this value alone, and the memory that it describes is only read.
unsafe impl Send for ArgumentBytes {}
// SAFETY: as above.
unsafe impl Sync for ArgumentBytes {}

impl ArgumentBytes {
    /// The bytes of an object with the buffer protocol, if they are contiguous and this many.
    pub fn of(object: &Bound<'_, PyAny>, bytes: usize) -> PyResult<ArgumentBytes> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: the object and the view are valid; the view stays where it is until it is released.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut *view, ffi::PyBUF_SIMPLE) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        let given = view.len;
        let elements = ArgumentBytes { view };
        if usize::try_from(given) != Ok(bytes) {
            return Err(PyBufferError::new_err(format!("expected {bytes} bytes, but got {given}")));
        }
        Ok(elements)
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match usize::try_from(self.view.len) {
            Ok(0) | Err(_) => &[],
            // SAFETY: a simple view is contiguous, and the exporter keeps its memory until the view is released. Callers must not write to
            // arguments during a call, as the documentation says.
            Ok(len) => unsafe { std::slice::from_raw_parts(self.view.buf.cast::<u8>(), len) },
        }
    }
}

impl Drop for ArgumentBytes {
    fn drop(&mut self) {
        // SAFETY: the view was filled, and is released once.
        Python::attach(|_| unsafe { ffi::PyBuffer_Release(&raw mut *self.view) });
    }
}

/// An argument as the source of a parameter, or of one plane of complex numbers.
pub struct ArgumentSource<'a> {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub bytes: &'a [u8],
    pub plane: Option<Plane>,
}

impl BlockSource for ArgumentSource<'_> {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn read_block(&mut self, start: &[usize], len: &[usize], out: &mut [u8]) -> Result<(), RunError> {
        let Some(plane) = self.plane else {
            copy_block(self.dtype, &self.shape, self.bytes, start, len, out);
            return Ok(());
        };
        let size = self.dtype.size();
        let first = match plane {
            Plane::Real => 0,
            Plane::Imaginary => size,
        };
        for_each_row(&self.shape, start, len, |whole, packed, count| {
            let pairs = self.bytes[2 * size * whole..2 * size * (whole + count)].chunks_exact(2 * size);
            for (part, pair) in out[size * packed..size * (packed + count)].chunks_exact_mut(size).zip(pairs) {
                part.copy_from_slice(&pair[first..first + size]);
            }
        });
        Ok(())
    }
}

impl ArgumentSource<'_> {
    /// The same elements in memory of their own.
    pub fn to_array(&self) -> HostArray {
        HostArray { dtype: self.dtype, shape: self.shape.clone(), bytes: self.bytes.to_vec() }
    }
}

/// The memory of a result.
pub enum ResultMemory {
    /// A copy of its elements.
    Copied(Vec<u8>),
    /// Pages of its own, if it is large.
    Pages(ArrayPages),
}

/// The bytes of a result, row-major, with the buffer protocol. They belong to this object.
#[pyclass(frozen, module = "spmdc._native")]
pub struct ResultBuffer {
    memory: ResultMemory,
}

impl ResultBuffer {
    pub fn new(memory: ResultMemory) -> ResultBuffer {
        ResultBuffer { memory }
    }

    fn bytes(&self) -> (*mut u8, usize) {
        match &self.memory {
            ResultMemory::Copied(bytes) => (bytes.as_ptr().cast_mut(), bytes.len()),
            ResultMemory::Pages(pages) => (pages.as_ptr(), pages.as_slice().len()),
        }
    }
}

#[pymethods]
impl ResultBuffer {
    /// Whether the bytes are those that the program wrote, and not a copy.
    #[getter]
    fn is_moved(&self) -> bool {
        match &self.memory {
            ResultMemory::Copied(_) => false,
            ResultMemory::Pages(pages) => pages.is_moved(),
        }
    }

    fn __len__(&self) -> usize {
        self.bytes().1
    }

    /// # Safety
    /// `view` must be as Python passes it.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("the view is null"));
        }
        let (start, len) = slf.get().bytes();
        // SAFETY: the bytes stay where they are as long as this object lives, which the view keeps alive. Nothing in Rust reads or writes
        // them after the object was made, so that Python may write them.
        let done = unsafe {
            (*view).obj = ptr::null_mut();
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start.cast::<c_void>(), len as isize, 0, flags)
        };
        if done == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
