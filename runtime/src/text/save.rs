//! Writes the files that a program saves, while the program continues.
//!
//! The devices wait until each process's part of the arrays has been copied. A thread of each process writes the copies, together with the
//! other processes ([`shared_file`]), to a temporary file, which is renamed when it is complete. At most one file is being written
//! and one is waiting: a program that saves faster than the disk writes waits for the disk, and memory stays bounded. Copies are kept and
//! reused.
//!
//! All processes reach a `save` before any continues. So when a device waits for the disk, the threads of all processes have the data that
//! they need, and none waits for a device. In a run that fails, some processes may have begun a file that others will not. At its end they
//! exchange the numbers of begun files, and files that not all have begun are discarded.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::errors::trap::{RunCode, RunError};
use crate::io::{check_writable, unwritable};
use crate::processes::{Process, numbered_processes, patience, tags};
use crate::shared_file::{self, DeviceElements, SharedFilePlan, Writers};
use spmdc_abi::Site;

/// Copies of the elements of one `save` that a process has.
pub(crate) type Copies = Vec<u8>;

/// A file to write.
pub(crate) struct SavedFile {
    /// Its name, in the process that makes it.
    pub path: Option<PathBuf>,
    pub plan: Arc<SharedFilePlan>,
    /// The processes that write it.
    pub ranks: Arc<[usize]>,
    pub copies: Copies,
    /// The place to which the copies return.
    pub home: Arc<Mutex<Vec<Copies>>>,
    /// The statement that saves.
    pub site: Site,
}

/// The thread that writes files; it starts with the first one.
pub(crate) struct Saver {
    /// None if all devices are in this process, or nothing is saved.
    process: Option<Process>,
    /// Whether this process has devices whose arrays are saved.
    takes_part: bool,
    limit: Duration,
    writer: Mutex<Option<SavingThread>>,
    /// The number of files that this process has begun in this run.
    begun: AtomicU64,
    /// The number of files that all processes write: any, until a run has ended.
    common: Arc<AtomicU64>,
}

/// The thread, and the way to it.
struct SavingThread {
    files: SyncSender<SavedFile>,
    /// Ends with the error of the first file that could not be written.
    thread: JoinHandle<Result<(), RunError>>,
}

impl Saver {
    /// For a process that waits for others for no longer than the limit.
    pub fn new(process: Option<Process>, takes_part: bool, limit: Duration) -> Saver {
        let common = Arc::new(AtomicU64::new(u64::MAX));
        Saver { process, takes_part, limit, writer: Mutex::default(), begun: AtomicU64::new(0), common }
    }

    /// Begins to write a file. An error if it cannot be written, or if an earlier one could not.
    pub fn save(&self, file: SavedFile) -> Result<(), RunError> {
        debug_assert_eq!(
            file.copies.len(),
            file.plan.copied_bytes(),
            "a file has what this process has to write or to send"
        );
        let site = file.site;
        if let Some(path) = &file.path {
            check_writable(path).map_err(|error| error.at(site))?;
        }
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.is_none() {
            let path = file.path.clone().unwrap_or_default();
            *writer = Some(self.start().map_err(|error| unwritable(&path, &error).at(site))?);
        }
        match writer.as_ref().map(|writer| writer.files.send(file)) {
            Some(Ok(())) => {
                self.begun.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Some(Err(_)) | None => end(&mut writer),
        }
    }

    /// Ends the files of a run, which has ended with this failure in all processes: waits until all are complete that all have begun. The
    /// error of the first one that could not be written.
    pub fn finish(&self, failure: Option<&RunError>) -> Result<(), RunError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = self.begun.swap(0, Ordering::Relaxed);
        let common = self.common(begun, failure);
        self.common.store(*common.as_ref().unwrap_or(&0), Ordering::Release);
        let ended = end(&mut writer);
        self.common.store(u64::MAX, Ordering::Release);
        common.and(ended)
    }

    /// The number of files that all processes have begun.
    fn common(&self, begun: u64, failure: Option<&RunError>) -> Result<u64, RunError> {
        let Some(process) = &self.process else { return Ok(begun) };
        if failure.is_some_and(|error| error.code == RunCode::E0809) {
            // Another process is lost, and would be waited for once more.
            return Ok(0);
        }
        let limit = patience(failure, self.limit);
        let own = if self.takes_part { begun } else { u64::MAX };
        let answers = process.exchange(tags::BEGUN, &own.to_le_bytes(), limit)?;
        let missing: Vec<usize> = (0..answers.len()).filter(|&other| answers[other].is_none()).collect();
        if !missing.is_empty() {
            let text = format!("{} did not finish within {limit:?}", numbered_processes(&missing));
            return Err(RunError::new(RunCode::E0809, text).with_help("`--timeout` sets the longest wait in seconds"));
        }
        let counts = answers.iter().flatten().filter_map(|answer| answer.as_slice().try_into().ok());
        Ok(counts.map(u64::from_le_bytes).min().unwrap_or(begun))
    }

    fn start(&self) -> std::io::Result<SavingThread> {
        let (files, waiting) = sync_channel(1);
        let (process, limit, common) = (self.process.clone(), self.limit, self.common.clone());
        let write = move || write_all(&waiting, process.as_ref(), limit, &common);
        let thread = Builder::new().name("save".to_string()).spawn(write)?;
        Ok(SavingThread { files, thread })
    }
}

fn end(writer: &mut Option<SavingThread>) -> Result<(), RunError> {
    let Some(SavingThread { files, thread }) = writer.take() else { return Ok(()) };
    drop(files);
    thread.join().unwrap_or_else(|_| Err(RunError::internal("the thread that writes files ended in a panic")))
}

fn write_all(
    waiting: &Receiver<SavedFile>,
    process: Option<&Process>,
    limit: Duration,
    common: &AtomicU64,
) -> Result<(), RunError> {
    for (number, file) in (0..).zip(waiting) {
        let SavedFile { path, plan, ranks, copies, home, site } = file;
        let expects = || number < common.load(Ordering::Acquire);
        let writers = Writers { process, ranks: &ranks, tag: tags::SAVED, limit, expects: &expects };
        let written = shared_file::write(&plan, &writers, path.as_deref(), &DeviceElements::Copies(&copies));
        written.map_err(|error| error.at(site))?;
        home.lock().unwrap_or_else(PoisonError::into_inner).push(copies);
    }
    Ok(())
}
