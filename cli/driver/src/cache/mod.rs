//! The code cache of `spmdc run`: compiled programs, kept in a folder of the user, so that the next run does not compile.
//!
//! `key` lists everything that a compiled program depends on, `entry` is its form in a file, and `folder` keeps the files. The cache
//! never fails: an entry that cannot be read, trusted or written is as one that does not exist. `docs/design/0022-code-cache.md` gives
//! the reasons.

mod entry;
mod folder;
mod key;

use std::path::Path;

use spmdc_abi::{EncodedProgram, Program};
use spmdc_check::sources::SourceSet;
use spmdc_compiler::backends;
use spmdc_compiler::pipeline::Options;
use spmdc_compiler::report::lints::Policy;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_kernel::backend::LoadedCode;

pub use self::folder::folder_of_user;
pub use self::key::executable;

use self::entry::CacheEntry;
use self::folder::CacheFolder;

/// The place of one program in the cache.
pub struct CachePlace {
    folder: CacheFolder,
    key: Vec<u8>,
    /// The names of the program's files.
    files: Vec<String>,
}

/// A compiled program, ready to run.
pub struct CachedProgram {
    /// The program, as the compiler returned it.
    pub program: Program,
    /// The code of its kernels.
    pub code: Box<dyn LoadedCode>,
    /// The warnings that the compiler reported, in the lists in which it did.
    pub warnings: Vec<Vec<Diagnostic>>,
}

impl CachePlace {
    /// The place of this program, compiled with these options by the code in the file `compiler`; None if this user or system has no cache.
    pub fn of(set: &SourceSet, options: &Options, policy: &Policy, compiler: &Path) -> Option<CachePlace> {
        let key = key::of(set, options, policy, compiler)?;
        let files = set.files.iter().map(|file| file.name.clone()).collect();
        Some(CachePlace { folder: CacheFolder::of_user()?, key, files })
    }

    /// The compiled program, if it is there.
    pub fn read(&self) -> Option<CachedProgram> {
        let bytes = self.folder.read(&self.key)?;
        let entry = CacheEntry::decode(&bytes, &self.key)?;
        let mut program = Program::decode(entry.program).ok()?;
        program.files.clone_from(&self.files);
        // SAFETY: the file belongs to this user, and no one else may write it; its checksum is that of its content, and its key is ours,
        // which has the build of the compiler and the target. So a process of this build stored the code for this target.
        let code = unsafe { backends::DEFAULT.load_stored(entry.code) }.ok()?;
        Some(CachedProgram { program, code, warnings: entry.warnings })
    }

    /// Keeps a compiled program, if that is possible.
    pub fn write(&self, program: &Program, code: &dyn LoadedCode, warnings: &[Vec<Diagnostic>]) {
        if let (Ok(program), Some(code)) = (EncodedProgram::new(program), code.stored()) {
            self.folder.write(&self.key, &entry::encode(&self.key, &program.bytes, &code, warnings));
        }
    }
}
