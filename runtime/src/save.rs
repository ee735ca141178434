//! Writes the files that a program saves, while the program goes on.
//!
//! The devices wait until the arrays have been copied. A thread writes the copies to a temporary name, which is renamed when the file is
//! complete. At most one file is written and one waits: a program that saves faster than the disk writes waits for the disk, and memory
//! stays bounded. Copies are kept and filled again.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use crate::array::HostArray;
use crate::io::arrays::{WholeArray, write_arrays};
use crate::io::{check_writable, unwritable};
use crate::trap::RunError;
use spmdc_abi::{SavedArray, Site};

/// Copies of the values of one `save`.
pub(crate) type Copies = Vec<HostArray>;

/// A file to write.
pub(crate) struct SavedFile {
    pub path: PathBuf,
    /// The arrays, and their names.
    pub arrays: Arc<Vec<SavedArray>>,
    pub copies: Copies,
    /// The place to which the copies return.
    pub home: Arc<Mutex<Vec<Copies>>>,
    /// The statement that saves.
    pub site: Site,
}

/// The thread that writes files; it starts with the first one.
#[derive(Default)]
pub(crate) struct Saver {
    writer: Mutex<Option<SavingThread>>,
}

/// The thread, and the way to it.
struct SavingThread {
    files: SyncSender<SavedFile>,
    /// Ends with the error of the first file that could not be written.
    thread: JoinHandle<Result<(), RunError>>,
}

impl Saver {
    /// Begins to write a file. An error if it cannot be written, or if an earlier one could not.
    pub fn save(&self, file: SavedFile) -> Result<(), RunError> {
        check_writable(&file.path).map_err(|error| error.at(file.site))?;
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let (path, site) = (file.path.clone(), file.site);
        if writer.is_none() {
            *writer = Some(SavingThread::start().map_err(|error| unwritable(&path, &error).at(site))?);
        }
        match writer.as_ref().map(|writer| writer.files.send(file)) {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => end(&mut writer),
        }
    }

    /// Waits until all files are complete. The error of the first one that could not be written.
    pub fn finish(&self) -> Result<(), RunError> {
        end(&mut self.writer.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn end(writer: &mut Option<SavingThread>) -> Result<(), RunError> {
    let Some(SavingThread { files, thread }) = writer.take() else { return Ok(()) };
    drop(files);
    thread.join().unwrap_or_else(|_| Err(RunError::internal("the thread that writes files ended in a panic")))
}

impl SavingThread {
    fn start() -> std::io::Result<SavingThread> {
        let (files, waiting) = sync_channel(1);
        let thread = Builder::new().name("save".to_string()).spawn(move || write_all(&waiting))?;
        Ok(SavingThread { files, thread })
    }
}

fn write_all(waiting: &Receiver<SavedFile>) -> Result<(), RunError> {
    for file in waiting {
        let SavedFile { path, arrays, copies, home, site } = file;
        debug_assert!(!arrays.is_empty() || copies.is_empty(), "copies belong to arrays");
        let copies: Copies = copies.into_iter().map(HostArray::with_one_nan).collect();
        write(&path, &arrays, &copies).map_err(|error| error.at(site))?;
        home.lock().unwrap_or_else(PoisonError::into_inner).push(copies);
    }
    Ok(())
}

fn write(path: &Path, arrays: &[SavedArray], copies: &[HostArray]) -> Result<(), RunError> {
    debug_assert_eq!(copies.len(), arrays.iter().map(SavedArray::values).sum::<usize>(), "each value has its copy");
    let mut copies = copies.iter();
    let mut next = || copies.next().ok_or_else(|| RunError::internal("an array of a file was not copied"));
    let mut named = Vec::new();
    for array in arrays {
        let re = next()?;
        let im = if array.complex { Some(next()?) } else { None };
        named.push((array.name.as_str(), WholeArray::new(re, im)));
    }
    write_arrays(path, &named)
}
