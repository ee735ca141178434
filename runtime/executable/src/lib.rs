//! The library that `spmdc build` links into executables and libraries: it connects the entry function of the compiler's object
//! with the runtime.

#![warn(missing_docs)]

use std::alloc::System;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__m128i;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};

use spmdc_abi::Image;
use spmdc_runtime::errors::exhausted::{self, NotingAllocator};
use spmdc_runtime::run::args::ErrorFormat;
use spmdc_threefry::BitsForm;

#[global_allocator]
static ALLOCATOR: NotingAllocator = NotingAllocator(System);

/// The rest of `main`.
///
/// # Safety
/// The image must be unchanged output of the compiler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spmd_main(image: &'static Image) -> c_int {
    exhausted::end_with_status();
    // SAFETY: as promised by the caller.
    unsafe { spmdc_runtime::run::start::start(image, std::env::args_os()).into() }
}

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// The rest of a library's function. Returns 0, or another number after an error that [`spmd_error`] describes.
///
/// # Safety
/// As for `spmdc_runtime::run::call::call`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spmd_call(image: &'static Image, inputs: *const *const u8, outputs: *const *mut u8) -> c_int {
    // SAFETY: as promised by the caller.
    let done = unsafe { spmdc_runtime::run::call::call(image, inputs, outputs) };
    let (status, text) = match done {
        Ok(()) => (0, String::new()),
        Err(failure) => (failure.status.into(), failure.render(ErrorFormat::Text)),
    };
    ERROR.with(|error| *error.borrow_mut() = CString::new(text.replace('\0', " ")).unwrap_or_default());
    status
}

/// The error message of this thread's last call, empty if the call succeeded; valid until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn spmd_error() -> *const c_char {
    ERROR.with(|error| error.borrow().as_ptr())
}

/// Random bits, which kernels call for a tile of elements.
///
/// # Safety
/// As for [`spmdc_threefry::fill`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn spmd_random_bits(to: *mut u8, key: u64, first: u64, count: u64, form: BitsForm) {
    // SAFETY: as promised by the caller.
    unsafe { spmdc_threefry::fill(to, key, first, count, form) }
}

/// A shuffle of bytes, which generated code calls if the processor has no instruction for it. Generated code passes vectors by the
/// calling convention of C.
#[cfg(target_arch = "x86_64")]
#[allow(improper_ctypes_definitions)]
#[unsafe(no_mangle)]
pub extern "C" fn __cranelift_x86_pshufb(bytes: __m128i, picks: __m128i) -> __m128i {
    // SAFETY: all of these are sixteen bytes, of which every pattern is valid.
    unsafe {
        let [bytes, picks] = std::mem::transmute::<[__m128i; 2], [[u8; 16]; 2]>([bytes, picks]);
        let picked = picks.map(|pick| if pick & 0x80 == 0 { bytes[usize::from(pick & 15)] } else { 0 });
        std::mem::transmute::<[u8; 16], __m128i>(picked)
    }
}
