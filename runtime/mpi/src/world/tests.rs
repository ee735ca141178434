//! Tests with functions that replace those of a library: each thread has its own MPI, in which a message to another process returns from
//! it.
#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::CStr;

use super::*;
use crate::Launcher;
use crate::library::{MpiConstants, MpiFunctions};

const CONSTANTS: MpiConstants =
    MpiConstants { world: 7, byte: 10, float: 11, errors_return: 12, serialized: 2, multiple: 3, at_once: 1 << 20 };
const COMMUNICATOR: Handle = 8;
const TRUNCATED: c_int = 15;

/// A message by its tag.
type Sent = (c_int, Vec<u8>);

struct Fake {
    level: c_int,
    size: c_int,
    bytes_of_float: c_int,
    sent: VecDeque<Sent>,
    /// By request: the buffer, its length and the tag; None for a message that is sent.
    requests: Vec<Option<(*mut u8, c_int, c_int)>>,
    calls: Vec<&'static str>,
}

thread_local! {
    static FAKE: RefCell<Fake> = const {
        RefCell::new(Fake {
            level: 3, size: 2, bytes_of_float: 4, sent: VecDeque::new(), requests: Vec::new(), calls: Vec::new(),
        })
    };
}

fn fake<T>(action: impl FnOnce(&mut Fake) -> T) -> T {
    FAKE.with(|fake| action(&mut fake.borrow_mut()))
}

unsafe extern "C" fn init(_: *mut c_int, _: *mut *mut *mut c_char, wanted: c_int, level: *mut c_int) -> c_int {
    assert_eq!(wanted, CONSTANTS.multiple);
    // SAFETY: the caller passes a valid number.
    unsafe { *level = fake(|fake| fake.level) };
    0
}

unsafe extern "C" fn finalize() -> c_int {
    fake(|fake| fake.calls.push("finalize"));
    0
}

unsafe extern "C" fn abort(_: Handle, _: c_int) -> c_int {
    fake(|fake| fake.calls.push("abort"));
    0
}

unsafe extern "C" fn rank(_: Handle, rank: *mut c_int) -> c_int {
    // SAFETY: the caller passes a valid number.
    unsafe { *rank = 0 };
    0
}

unsafe extern "C" fn size(_: Handle, size: *mut c_int) -> c_int {
    // SAFETY: the caller passes a valid number.
    unsafe { *size = fake(|fake| fake.size) };
    0
}

unsafe extern "C" fn dup(of: Handle, copy: *mut Handle) -> c_int {
    assert_eq!(of, CONSTANTS.world);
    // SAFETY: the caller passes a valid handle, whose upper half is zero.
    unsafe { *copy.cast::<u32>() = COMMUNICATOR as u32 };
    0
}

unsafe extern "C" fn set_errhandler(_: Handle, handler: Handle) -> c_int {
    assert_eq!(handler, CONSTANTS.errors_return);
    fake(|fake| fake.calls.push("errors return"));
    0
}

fn write(text: &CStr, to: *mut c_char, len: *mut c_int) -> c_int {
    // SAFETY: the caller has room for a short text.
    unsafe {
        to.copy_from_nonoverlapping(text.as_ptr(), text.count_bytes() + 1);
        *len = text.count_bytes() as c_int;
    }
    0
}

unsafe extern "C" fn library_version(text: *mut c_char, len: *mut c_int) -> c_int {
    write(c"Test MPI \t v1, package: of a test\nsecond line", text, len)
}

unsafe extern "C" fn error_string(code: c_int, text: *mut c_char, len: *mut c_int) -> c_int {
    assert_eq!(code, TRUNCATED);
    write(c"message truncated", text, len)
}

unsafe extern "C" fn type_size(of: Handle, bytes: *mut c_int) -> c_int {
    // SAFETY: the caller passes a valid number.
    unsafe { *bytes = if of == CONSTANTS.byte { 1 } else { fake(|fake| fake.bytes_of_float) } };
    0
}

unsafe extern "C" fn isend(
    bytes: *const c_void,
    count: c_int,
    of: Handle,
    to: c_int,
    tag: c_int,
    communicator: Handle,
    request: *mut Handle,
) -> c_int {
    assert_eq!((of, to, communicator), (CONSTANTS.byte, 1, COMMUNICATOR));
    // SAFETY: the caller passes this many bytes, and a valid handle.
    unsafe {
        let bytes = std::slice::from_raw_parts(bytes.cast::<u8>(), count as usize).to_vec();
        *request = fake(|fake| {
            fake.sent.push_back((tag, bytes));
            fake.requests.push(None);
            fake.requests.len() - 1
        });
    }
    0
}

unsafe extern "C" fn irecv(
    bytes: *mut c_void,
    count: c_int,
    of: Handle,
    from: c_int,
    tag: c_int,
    communicator: Handle,
    request: *mut Handle,
) -> c_int {
    assert_eq!((of, from, communicator), (CONSTANTS.byte, 1, COMMUNICATOR));
    // SAFETY: the caller passes a valid handle.
    unsafe {
        *request = fake(|fake| {
            fake.requests.push(Some((bytes.cast(), count, tag)));
            fake.requests.len() - 1
        });
    }
    0
}

unsafe extern "C" fn test(request: *mut Handle, done: *mut c_int, status: *mut MpiStatus) -> c_int {
    // SAFETY: the caller passes valid memory, and its buffers stay valid.
    unsafe {
        *done = 1;
        let Some((buffer, room, tag)) = fake(|fake| fake.requests[*request]) else { return 0 };
        let message = fake(|fake| {
            let place = fake.sent.iter().position(|sent| sent.0 == tag)?;
            fake.sent.remove(place)
        });
        let Some((_, message)) = message else {
            *done = 0;
            return 0;
        };
        if message.len() > room as usize {
            return TRUNCATED;
        }
        buffer.copy_from_nonoverlapping(message.as_ptr(), message.len());
        (*status).0[0] = message.len() as u64;
    }
    0
}

unsafe extern "C" fn get_count(status: *const MpiStatus, of: Handle, count: *mut c_int) -> c_int {
    assert_eq!(of, CONSTANTS.byte);
    // SAFETY: the caller passes the status of a message, and a valid number.
    unsafe { *count = (*status).0[0] as c_int };
    0
}

fn library() -> MpiLibrary {
    let functions = MpiFunctions {
        init_thread: init,
        finalize,
        abort,
        comm_rank: rank,
        comm_size: size,
        comm_dup: dup,
        comm_set_errhandler: set_errhandler,
        get_library_version: library_version,
        error_string,
        type_size,
        isend,
        irecv,
        test,
        get_count,
    };
    MpiLibrary::of(functions, CONSTANTS)
}

const LAUNCHED: Launched = Launched { launcher: Launcher::Pmi, rank: 0, size: 2, local_size: None };

/// The received message if these bytes were sent and this number is expected.
fn echoed(world: &World, sent: &[u8], expected: usize) -> Result<Vec<u8>, MpiError> {
    let mut received = vec![0; expected];
    // SAFETY: both live until the transfers are complete, and `received` is not touched before.
    unsafe {
        let mut sending = world.send(1, 5, sent.as_ptr(), sent.len())?;
        let mut receiving = world.receive(1, 5, received.as_mut_ptr(), expected)?;
        assert!(world.is_complete(&mut sending)?);
        assert!(world.is_complete(&mut receiving)?);
        assert!(world.is_complete(&mut receiving)?, "a complete transfer stays complete");
    }
    Ok(received)
}

#[test]
fn large_messages_go_in_pieces() {
    let mut world = World::join(library(), &LAUNCHED).unwrap();
    assert_eq!((world.rank(), world.size(), world.version()), (0, 2, "Test MPI v1"));
    assert_eq!(fake(|fake| fake.calls.clone()), ["errors return", "errors return"]);
    world.largest_piece = 4;
    for len in [0, 1, 4, 5, 8, 10] {
        let sent: Vec<u8> = (0..len).collect();
        assert_eq!(echoed(&world, &sent, sent.len()), Ok(sent));
        assert_eq!(fake(|fake| fake.requests.drain(..).count()), 2 * usize::from(len).div_ceil(4).max(1));
    }
    world.leave().unwrap();
    assert_eq!(fake(|fake| fake.calls.pop()), Some("finalize"));
}

#[test]
fn messages_that_a_library_would_hold_back_go_in_pieces() {
    let mut library = library();
    library.constants.at_once = 10;
    let world = World::join(library, &LAUNCHED).unwrap();
    for (len, pieces) in [(0, 1), (10, 1), (11, 2), (20, 2), (21, 3), (30, 3), (31, 1), (50, 1)] {
        let sent: Vec<u8> = (0..len).collect();
        assert_eq!(echoed(&world, &sent, sent.len()), Ok(sent));
        assert_eq!(fake(|fake| fake.requests.drain(..).count()), 2 * pieces, "{len} bytes");
    }
}

#[test]
fn the_reason_of_an_error_is_on_one_line() {
    let readable =
        |text: &CStr| super::readable(&text.to_bytes_with_nul().iter().map(|&byte| byte as c_char).collect::<Vec<_>>());
    assert_eq!(readable(c"Test MPI \t v1, package: of a test\nsecond line"), "Test MPI v1");
    let stack = c"Other MPI error, error stack:\ninternal_Isend(60): failed\nsend(9): Connection timed out\n";
    assert_eq!(readable(stack), "send(9): Connection timed out");
}

#[test]
fn messages_of_another_size_are_refused() {
    let world = World::join(library(), &LAUNCHED).unwrap();
    let error = echoed(&world, &[1; 4], 6).unwrap_err();
    assert_eq!(error.message, "expected 6 bytes from process 1, received 4");
    let error = echoed(&world, &[1; 8], 6).unwrap_err();
    assert_eq!(error.message, "MPI failed to receive from process 1: message truncated");
}

#[test]
fn a_message_that_has_not_come_is_not_complete() {
    let world = World::join(library(), &LAUNCHED).unwrap();
    let mut byte = 0;
    // SAFETY: `byte` outlives the transfer, which never becomes complete.
    let mut transfer = unsafe { world.receive(1, 5, &raw mut byte, 1).unwrap() };
    assert_eq!(world.is_complete(&mut transfer), Ok(false));
}

#[test]
fn a_library_of_another_launcher_is_refused() {
    let three = Launched { size: 3, ..LAUNCHED };
    let error = World::join(library(), &three).err().unwrap();
    assert!(error.message.contains("started 3 processes, but `a library of a test` reports process 0 of 2"));
    assert!(error.help.unwrap().contains("must belong to the same MPI (Test MPI v1)"));
    let second = Launched { rank: 1, ..LAUNCHED };
    assert!(World::join(library(), &second).is_err());
}

#[test]
fn handles_of_an_unknown_library_are_noticed() {
    fake(|fake| fake.bytes_of_float = 8);
    let error = World::join(library(), &LAUNCHED).err().unwrap();
    assert!(error.message.contains("is not a known MPI library: its handles have an unknown format"), "{error}");
}

#[test]
fn calls_take_turns_where_the_library_needs_it() {
    assert!(World::join(library(), &LAUNCHED).unwrap().turns.is_none());
    fake(|fake| fake.level = CONSTANTS.serialized);
    let world = World::join(library(), &LAUNCHED).unwrap();
    let turn = world.turn();
    assert!(turn.is_some());
    // The thread that holds the turn does not give it back: the caller ends its process itself.
    world.abort(75);
    assert!(!fake(|fake| fake.calls.contains(&"abort")));
    drop(turn);
    world.abort(75);
    assert!(fake(|fake| fake.calls.contains(&"abort")));
    fake(|fake| fake.level = CONSTANTS.serialized - 1);
    let error = World::join(library(), &LAUNCHED).err().unwrap();
    assert!(error.message.contains("does not support calls from several threads"), "{error}");
}
