//! All processes of a job, connected: messages between pairs of them.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use crate::library::{Handle, MpiLibrary, MpiStatus};
use crate::{LIBRARY_VARIABLE, Launched, MpiError};

/// The bytes of the largest message of MPI: counts are `int`. Larger ones are sent in pieces.
const LARGEST_PIECE: usize = 1 << 30;

/// The most pieces of a message that is a little too long for a library to send it at once.
const SMALL_PIECES: usize = 3;

/// Tags below this one are valid in every library.
const TAGS: u32 = 32767;

/// The time after which [`World::abort`] gives up waiting for another thread's call.
const ABORT_PATIENCE: Duration = Duration::from_secs(1);

/// All processes of a job. Any thread may use it.
pub struct World {
    library: MpiLibrary,
    communicator: Handle,
    rank: usize,
    size: usize,
    version: String,
    /// Held during each call, if the library does not allow calls of several threads at once. No call blocks.
    turns: Option<Mutex<()>>,
    largest_piece: usize,
}

/// A message that is being sent or received.
#[derive(Debug)]
pub struct MpiTransfer {
    first: MpiChunk,
    /// Additional pieces, apart from the pieces of a message of more than 2^30 bytes.
    small: [Option<MpiChunk>; SMALL_PIECES - 1],
    /// The further pieces of a message of more than 2^30 bytes.
    rest: Vec<MpiChunk>,
}

#[derive(Debug)]
struct MpiChunk {
    request: Handle,
    /// The bytes to receive; None if the piece is sent.
    expected: Option<usize>,
    from: usize,
    is_complete: bool,
}

/// The direction of a message.
#[derive(Clone, Copy)]
enum MpiMessage {
    To(*const u8),
    From(*mut u8),
}

impl World {
    /// Starts MPI, once in a process, and compares its numbers with the launcher's. The thread that calls this must call
    /// [`leave`](World::leave).
    pub fn join(library: MpiLibrary, launched: &Launched) -> Result<World, MpiError> {
        let (functions, constants) = (library.functions, library.constants);
        let name = library.name().to_string();
        let fails = |what: &str, code: c_int| MpiError::new(format!("`{name}` failed to {what} (code {code})"));
        let check = |what: &str, code: c_int| if code == 0 { Ok(()) } else { Err(fails(what, code)) };
        let mut level: c_int = -1;
        // SAFETY: MPI allows null for the arguments of `main`; `level` is valid. It is the first call, as the caller starts MPI once.
        let code =
            unsafe { (functions.init_thread)(ptr::null_mut(), ptr::null_mut(), constants.multiple, &raw mut level) };
        check("start", code)?;
        // SAFETY: MPI has been started; the handles are those of this library.
        let code = unsafe { (functions.comm_set_errhandler)(constants.world, constants.errors_return) };
        check("return errors", code)?;
        for (of, expected) in [(constants.byte, 1), (constants.float, 4)] {
            let mut bytes: c_int = -1;
            // SAFETY: as above; `bytes` is valid.
            let code = unsafe { (functions.type_size)(of, &raw mut bytes) };
            if code != 0 || bytes != expected {
                let message = format!("`{name}` is not a known MPI library: its handles have an unknown format");
                return Err(MpiError::new(message)
                    .with_help(format!("name a library of Open MPI or MPICH in {LIBRARY_VARIABLE}")));
            }
        }
        let mut world = World {
            version: version(&library),
            library,
            communicator: constants.world,
            rank: launched.rank,
            size: launched.size,
            turns: (level < constants.multiple).then(Mutex::default),
            largest_piece: LARGEST_PIECE,
        };
        world.check_place(launched)?;
        if level < constants.serialized {
            let message = format!("`{name}` does not support calls from several threads ({})", world.version);
            return Err(MpiError::new(message).with_help("use a library that was built with thread support"));
        }
        let mut own: Handle = 0;
        // SAFETY: all processes duplicate the world as their first operation in common; `own` is valid for a handle.
        check("open a communicator", unsafe { (functions.comm_dup)(constants.world, &raw mut own) })?;
        // SAFETY: the communicator was made by this library.
        check("return errors", unsafe { (functions.comm_set_errhandler)(own, constants.errors_return) })?;
        world.communicator = own;
        Ok(world)
    }

    /// Under the launcher of another library, MPI would start every process as a separate world: all would do the whole work, and all would
    /// seem to succeed.
    fn check_place(&self, launched: &Launched) -> Result<(), MpiError> {
        let (functions, world) = (self.library.functions, self.library.constants.world);
        let (mut rank, mut size): (c_int, c_int) = (-1, -1);
        // SAFETY: MPI has been started; the numbers are valid.
        let codes =
            unsafe { [(functions.comm_rank)(world, &raw mut rank), (functions.comm_size)(world, &raw mut size)] };
        let is = |number: c_int, expected| usize::try_from(number) == Ok(expected);
        if codes == [0, 0] && is(rank, launched.rank) && is(size, launched.size) {
            return Ok(());
        }
        let message = format!(
            "{} started {} processes, but `{}` reports process {rank} of {size}",
            launched.launcher.name(),
            launched.size,
            self.library.name(),
        );
        Err(MpiError::new(message).with_help(format!(
            "the launcher and the library must belong to the same MPI ({}); name another library in {LIBRARY_VARIABLE}",
            self.version
        )))
    }

    /// The number of this process.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of processes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Name and version of the library, as it gives them.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Begins to send bytes to another process. Messages between two processes with the same tag, which is below 32767, arrive in the
    /// order in which they were sent; one thread at a time begins those with the same tag.
    ///
    /// # Safety
    /// The bytes must stay valid and unchanged until the transfer is complete.
    pub unsafe fn send(&self, to: usize, tag: u32, bytes: *const u8, len: usize) -> Result<MpiTransfer, MpiError> {
        // SAFETY: as promised by the caller.
        unsafe { self.begin(MpiMessage::To(bytes), to, tag, len) }
    }

    /// Begins to receive a message of just these many bytes from another process.
    ///
    /// # Safety
    /// The bytes must stay valid, and be used by nothing else, until the transfer is complete.
    pub unsafe fn receive(&self, from: usize, tag: u32, bytes: *mut u8, len: usize) -> Result<MpiTransfer, MpiError> {
        // SAFETY: as promised by the caller.
        unsafe { self.begin(MpiMessage::From(bytes), from, tag, len) }
    }

    /// # Safety
    /// As for [`World::send`] and [`World::receive`].
    unsafe fn begin(&self, message: MpiMessage, other: usize, tag: u32, len: usize) -> Result<MpiTransfer, MpiError> {
        debug_assert!(tag < TAGS, "tag {tag} is not valid in every library");
        debug_assert!(other < self.size && other != self.rank, "process {other} is not another one");
        let _turn = self.turn();
        let (at_once, is_small) =
            (self.library.constants.at_once, len <= SMALL_PIECES * self.library.constants.at_once);
        let longest = if is_small { at_once.min(self.largest_piece) } else { self.largest_piece };
        let piece = |start: usize| {
            let len = (len - start).min(longest);
            // SAFETY: the piece lies within the bytes of the message.
            unsafe { self.begin_piece(message, start, other, tag, len) }
        };
        let mut transfer = MpiTransfer { first: piece(0)?, small: [None, None], rest: Vec::new() };
        let mut small = transfer.small.iter_mut().filter(|_| is_small);
        for start in (longest..len).step_by(longest) {
            match small.next() {
                Some(place) => *place = Some(piece(start)?),
                None => transfer.rest.push(piece(start)?),
            }
        }
        Ok(transfer)
    }

    /// # Safety
    /// As for [`World::send`] and [`World::receive`], for the bytes from `start` on.
    unsafe fn begin_piece(
        &self,
        message: MpiMessage,
        start: usize,
        other: usize,
        tag: u32,
        len: usize,
    ) -> Result<MpiChunk, MpiError> {
        let functions = &self.library.functions;
        let byte = self.library.constants.byte;
        let count = c_int::try_from(len).expect("a piece has at most 2^30 bytes");
        let process = c_int::try_from(other).expect("MPI counts processes by `int`");
        let tag = tag as c_int;
        let mut request: Handle = 0;
        // SAFETY: the caller promises that the bytes stay valid; the handles are those of this library.
        let (code, expected) = unsafe {
            match message {
                MpiMessage::To(bytes) => {
                    let bytes = bytes.add(start).cast::<c_void>();
                    ((functions.isend)(bytes, count, byte, process, tag, self.communicator, &raw mut request), None)
                }
                MpiMessage::From(bytes) => {
                    let bytes = bytes.add(start).cast::<c_void>();
                    let code = (functions.irecv)(bytes, count, byte, process, tag, self.communicator, &raw mut request);
                    (code, Some(len))
                }
            }
        };
        if code != 0 {
            return Err(self.failed(expected.is_some(), other, code));
        }
        Ok(MpiChunk { request, expected, from: other, is_complete: false })
    }

    /// Whether a transfer is complete; never waits. MPI moves bytes during such calls, so a waiting process should repeat them.
    pub fn is_complete(&self, transfer: &mut MpiTransfer) -> Result<bool, MpiError> {
        let _turn = self.turn();
        let MpiTransfer { first, small, rest } = transfer;
        for piece in std::iter::once(first).chain(small.iter_mut().flatten()).chain(rest) {
            // Pieces arrive in their order.
            if !piece.is_complete && !self.test(piece)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn test(&self, piece: &mut MpiChunk) -> Result<bool, MpiError> {
        let functions = &self.library.functions;
        let mut done: c_int = 0;
        let mut status = MpiStatus([0; 8]);
        // SAFETY: the request is one that has not completed; `MpiStatus` is at least as large as that of every library.
        let code = unsafe { (functions.test)(&raw mut piece.request, &raw mut done, &raw mut status) };
        if code != 0 {
            return Err(self.failed(piece.expected.is_some(), piece.from, code));
        }
        piece.is_complete = done != 0;
        if let (true, Some(expected)) = (piece.is_complete, piece.expected) {
            let mut count: c_int = -1;
            // SAFETY: the status is that of a message that has been received.
            let code = unsafe { (functions.get_count)(&raw const status, self.library.constants.byte, &raw mut count) };
            if code != 0 || usize::try_from(count) != Ok(expected) {
                let message = format!("expected {expected} bytes from process {}, received {count}", piece.from);
                return Err(MpiError::new(message));
            }
        }
        Ok(piece.is_complete)
    }

    /// Ends all processes of the job. Returns if MPI cannot, or if another thread's call does not return within a second; the caller
    /// then ends this process, and leaves the others to the launcher.
    pub fn abort(&self, code: u8) {
        let until = Instant::now() + ABORT_PATIENCE;
        let _turn = loop {
            match self.turns.as_ref().map(Mutex::try_lock) {
                None => break None,
                Some(Ok(turn)) => break Some(turn),
                Some(Err(TryLockError::Poisoned(turn))) => break Some(turn.into_inner()),
                Some(Err(TryLockError::WouldBlock)) if Instant::now() > until => return,
                Some(Err(TryLockError::WouldBlock)) => thread::sleep(Duration::from_millis(1)),
            }
        };
        // SAFETY: MPI has been started, and the calls of other threads are over unless it allows several at once.
        unsafe { (self.library.functions.abort)(self.library.constants.world, c_int::from(code)) };
    }

    /// Leaves the job, after all transfers are complete. Waits for the other processes, and with some libraries forever: the caller
    /// needs a bound.
    pub fn leave(&self) -> Result<(), MpiError> {
        let _turn = self.turn();
        // SAFETY: MPI has been started by this thread, and the caller uses it no longer.
        match unsafe { (self.library.functions.finalize)() } {
            0 => Ok(()),
            code => Err(MpiError::new(format!("`{}` failed to finalize (code {code})", self.library.name()))),
        }
    }

    fn failed(&self, is_received: bool, other: usize, code: c_int) -> MpiError {
        let what = if is_received { "receive from" } else { "send to" };
        let mut text = [0 as c_char; 2048];
        let mut len: c_int = 0;
        // SAFETY: every library's texts of errors fit.
        let named = unsafe { (self.library.functions.error_string)(code, text.as_mut_ptr(), &raw mut len) };
        let reason = if named == 0 { readable(&text) } else { format!("code {code}") };
        MpiError::new(format!("MPI failed to {what} process {other}: {reason}"))
    }

    fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        self.turns.as_ref().map(|turns| turns.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// `Open MPI v4.1.4, package: ...`: the first line of the library's version text.
fn version(library: &MpiLibrary) -> String {
    // The bound of all libraries is at most 8192.
    let mut text = vec![0 as c_char; 8193];
    let mut len: c_int = 0;
    // SAFETY: the text has room for the longest answer.
    let code = unsafe { (library.functions.get_library_version)(text.as_mut_ptr(), &raw mut len) };
    if code == 0 { readable(&text) } else { library.name().to_string() }
}

/// The text before the first zero byte, on one line: the first one, without the package of a version, or the last one of a stack of
/// errors, which has the reason.
fn readable(text: &[c_char]) -> String {
    let bytes: Vec<u8> = text.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let first = text.lines().next().unwrap_or_default();
    let line = if first.ends_with("error stack:") { text.lines().next_back().unwrap_or_default() } else { first };
    line.split(", package").next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
