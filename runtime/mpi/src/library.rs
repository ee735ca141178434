//! The MPI library: its family, the form of its handles, and its functions.
//!
//! MPI defines functions, but not the representation of handles and constants in memory. There are three families: Open MPI, whose handles
//! are addresses of its variables; MPICH and its relatives, whose handles are 32-bit numbers; and the ABI of MPI 5.0.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use crate::{Launcher, MpiError};

/// The environment variable that names the library to load, as a file name or a path.
pub const LIBRARY_VARIABLE: &str = "SPMDC_MPI_LIB";

/// A handle of any family. MpiFunctions that take 32-bit handles read the lower half. Functions that return one write the lower half of a
/// zero.
pub(crate) type Handle = usize;

/// `MPI_Status` of any family: at most 32 bytes.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(crate) struct MpiStatus(pub [u64; 8]);

macro_rules! functions {
    ($($name:ident = $symbol:literal ($($parameter:ty),*);)*) => {
        /// The functions that are used. Each returns 0 or an error code.
        #[derive(Clone, Copy)]
        pub(crate) struct MpiFunctions {
            $(pub $name: unsafe extern "C" fn($($parameter),*) -> c_int,)*
        }

        impl MpiFunctions {
            /// The functions at the addresses of these symbols.
            ///
            /// # Safety
            /// The symbols must belong to an MPI library.
            unsafe fn find(address: impl Fn(&str) -> Result<*mut c_void, MpiError>) -> Result<MpiFunctions, MpiError> {
                Ok(MpiFunctions {
                    $($name: {
                        let found = address($symbol)?;
                        // SAFETY: every MPI library defines the function with these parameters; handles are passed as described at
                        // `Handle`.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($parameter),*) -> c_int>(found) }
                    },)*
                })
            }
        }
    };
}

functions! {
    init_thread = "MPI_Init_thread" (*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
    finalize = "MPI_Finalize" ();
    abort = "MPI_Abort" (Handle, c_int);
    comm_rank = "MPI_Comm_rank" (Handle, *mut c_int);
    comm_size = "MPI_Comm_size" (Handle, *mut c_int);
    comm_dup = "MPI_Comm_dup" (Handle, *mut Handle);
    comm_set_errhandler = "MPI_Comm_set_errhandler" (Handle, Handle);
    get_library_version = "MPI_Get_library_version" (*mut c_char, *mut c_int);
    error_string = "MPI_Error_string" (c_int, *mut c_char, *mut c_int);
    type_size = "MPI_Type_size" (Handle, *mut c_int);
    isend = "MPI_Isend" (*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    irecv = "MPI_Irecv" (*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    test = "MPI_Test" (*mut Handle, *mut c_int, *mut MpiStatus);
    get_count = "MPI_Get_count" (*const MpiStatus, Handle, *mut c_int);
}

/// See [`MpiConstants::at_once`]: no message is cut.
const LARGE: usize = 1 << 30;

/// The constants that are used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MpiConstants {
    pub world: Handle,
    pub byte: Handle,
    pub float: Handle,
    pub errors_return: Handle,
    /// `MPI_THREAD_SERIALIZED` and `MPI_THREAD_MULTIPLE`.
    pub serialized: c_int,
    pub multiple: c_int,
    /// Bytes of a message that the library sends to another process of a host before that one is ready to receive it. A longer one waits, which
    /// takes longer than two shorter ones.
    pub at_once: usize,
}

/// The families of libraries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MpiAbi {
    OpenMpi,
    Mpich,
    Standard,
}

impl MpiAbi {
    /// The family of a library, by its file name and by whether it has a variable that only Open MPI has.
    fn of(name: &str, has_open_mpi_world: bool) -> MpiAbi {
        let file = name.rsplit('/').next().unwrap_or(name);
        match (file.contains("_abi"), has_open_mpi_world) {
            (true, _) => MpiAbi::Standard,
            (false, true) => MpiAbi::OpenMpi,
            (false, false) => MpiAbi::Mpich,
        }
    }
}

/// A loaded library, which stays loaded.
pub struct MpiLibrary {
    name: String,
    pub(crate) functions: MpiFunctions,
    pub(crate) constants: MpiConstants,
}

impl MpiLibrary {
    /// Loads the library that belongs to the launcher, or the one that `chosen` names: the value of [`LIBRARY_VARIABLE`].
    pub fn load(launcher: Launcher, chosen: Option<&str>) -> Result<MpiLibrary, MpiError> {
        let names = candidates(launcher, chosen);
        debug_assert!(!names.is_empty(), "there is a library to try");
        let mut reasons = Vec::new();
        for name in &names {
            match open(name) {
                Ok(library) => return MpiLibrary::bind(name, library),
                Err(reason) => reasons.push(reason),
            }
        }
        let message = format!("no MPI library could be loaded: {}", reasons.join("; "));
        Err(MpiError::new(message).with_help(format!(
            "install {} on every host, or name a library in {LIBRARY_VARIABLE}, with its path if it is not in the library search \
             path",
            launcher.name()
        )))
    }

    /// The name by which the library was found.
    pub fn name(&self) -> &str {
        &self.name
    }

    #[cfg(test)]
    pub(crate) fn of(functions: MpiFunctions, constants: MpiConstants) -> MpiLibrary {
        MpiLibrary { name: "a library of a test".to_string(), functions, constants }
    }

    fn bind(name: &str, library: *mut c_void) -> Result<MpiLibrary, MpiError> {
        let address = |symbol: &str| -> Result<*mut c_void, MpiError> {
            let text = CString::new(symbol).expect("names of functions have no zero bytes");
            // SAFETY: the library is open, and the name ends with a zero byte.
            let found = unsafe { libc::dlsym(library, text.as_ptr()) };
            let missing = || MpiError::new(format!("`{name}` is not an MPI library: it has no symbol `{symbol}`"));
            if found.is_null() { Err(missing()) } else { Ok(found) }
        };
        // SAFETY: a library with all these functions is one of MPI.
        let functions = unsafe { MpiFunctions::find(address)? };
        let constants = match MpiAbi::of(name, address("ompi_mpi_comm_world").is_ok()) {
            MpiAbi::OpenMpi => MpiConstants {
                world: address("ompi_mpi_comm_world")?.addr(),
                byte: address("ompi_mpi_byte")?.addr(),
                float: address("ompi_mpi_float")?.addr(),
                errors_return: address("ompi_mpi_errors_return")?.addr(),
                serialized: 2,
                multiple: 3,
                // 4096 with the header of a message.
                at_once: 4000,
            },
            MpiAbi::Mpich => MpiConstants {
                world: 0x4400_0000,
                byte: 0x4c00_010d,
                float: 0x4c00_040a,
                errors_return: 0x5400_0001,
                serialized: 2,
                multiple: 3,
                // More than is worth cutting.
                at_once: LARGE,
            },
            MpiAbi::Standard => MpiConstants {
                world: 0x101,
                byte: 0x247,
                float: 0x210,
                errors_return: 0x143,
                serialized: 2048,
                multiple: 4096,
                at_once: LARGE,
            },
        };
        Ok(MpiLibrary { name: name.to_string(), functions, constants })
    }
}

/// The libraries to try, in order.
fn candidates(launcher: Launcher, chosen: Option<&str>) -> Vec<String> {
    if let Some(name) = chosen.filter(|name| !name.is_empty()) {
        return vec![name.to_string()];
    }
    let names: &[(&str, u32)] = match launcher {
        Launcher::OpenMpi => &[("mpi", 40)],
        Launcher::Pmi => &[("mpi_abi", 1), ("mpi", 12), ("mpich", 12)],
        Launcher::SlurmPmix => &[("mpi", 40), ("mpi_abi", 1), ("mpi", 12), ("mpich", 12)],
    };
    let file = |&(name, version): &(&str, u32)| {
        if cfg!(target_os = "macos") { format!("lib{name}.{version}.dylib") } else { format!("lib{name}.so.{version}") }
    };
    names.iter().map(file).collect()
}

fn open(name: &str) -> Result<*mut c_void, String> {
    let path = CString::new(name).map_err(|_| format!("invalid file name `{}`", name.replace('\0', " ")))?;
    // Global, as parts that an MPI library loads itself use its symbols.
    // SAFETY: the name ends with a zero byte. The library runs code of its own when it is loaded, which MPI libraries may.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if !library.is_null() {
        return Ok(library);
    }
    // SAFETY: the text that `dlerror` returns is valid until the next such call of this thread.
    let reason = unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            format!("{name}: no reason given")
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    };
    Err(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launcher_decides_which_library_is_loaded() {
        if cfg!(target_os = "macos") {
            return;
        }
        assert_eq!(candidates(Launcher::OpenMpi, None), ["libmpi.so.40"]);
        assert_eq!(candidates(Launcher::Pmi, None), ["libmpi_abi.so.1", "libmpi.so.12", "libmpich.so.12"]);
        assert_eq!(candidates(Launcher::SlurmPmix, None).first().map(String::as_str), Some("libmpi.so.40"));
        assert_eq!(candidates(Launcher::SlurmPmix, Some("")).len(), 4);
        assert_eq!(candidates(Launcher::Pmi, Some("/opt/mpi/lib/libmpi.so")), ["/opt/mpi/lib/libmpi.so"]);
    }

    #[test]
    fn the_family_of_a_library_is_recognized() {
        assert_eq!(MpiAbi::of("libmpi.so.40", true), MpiAbi::OpenMpi);
        assert_eq!(MpiAbi::of("libmpi.so.12", false), MpiAbi::Mpich);
        assert_eq!(MpiAbi::of("/opt/lib/libmpi_abi.so.1", false), MpiAbi::Standard);
        assert_eq!(MpiAbi::of("/opt/my_abi/libmpich.so.12", false), MpiAbi::Mpich);
        assert_eq!(MpiAbi::of("libmpi_abi.so.1", true), MpiAbi::Standard);
    }

    #[test]
    fn libraries_that_are_missing_or_have_no_mpi_are_named() {
        let error = MpiLibrary::load(Launcher::OpenMpi, Some("libno-such-mpi.so")).err();
        let error = error.expect("there is no such library");
        assert!(error.message.contains("libno-such-mpi.so"), "{error}");
        assert!(error.help.is_some_and(|help| help.contains("SPMDC_MPI_LIB")));
        if cfg!(target_os = "linux") {
            let error = MpiLibrary::load(Launcher::OpenMpi, Some("libm.so.6")).err();
            let error = error.expect("it has no functions of MPI");
            assert!(
                error.message.contains("`libm.so.6` is not an MPI library: it has no symbol `MPI_Init_thread`"),
                "{error}"
            );
        }
    }
}
