//! Panics, which are bugs of ours, as errors.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

use spmdc_driver::errors::CommandError;
use spmdc_runtime::errors::trap::RunError;

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// From now on a panic keeps its message for [`caught`] instead of printing it. The hook is one of this library, not of the process.
pub fn keep_messages() {
    set_hook(Box::new(|panic| LAST.with(|last| *last.borrow_mut() = panic.to_string().replace('\n', " "))));
}

/// The outcome of an action; a panic on this thread becomes an E0999.
pub fn caught<T>(action: impl FnOnce() -> Result<T, CommandError>) -> Result<T, CommandError> {
    catch_unwind(AssertUnwindSafe(action)).unwrap_or_else(|_| {
        let message = LAST.with(|last| std::mem::take(&mut *last.borrow_mut()));
        Err(RunError::internal(message).into())
    })
}
