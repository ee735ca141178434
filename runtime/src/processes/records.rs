//! The record that a process sends to all others at the end of its run.

use serde::{Deserialize, Serialize};

use super::shortened;
use crate::errors::trap::{DeviceStop, RunCode, RunError};
use spmdc_abi::Site;

/// Bytes of a record, apart from its counts. Longer messages are cut.
const TEXT: usize = 2048;

/// How a process has ended its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EndRecord {
    /// The first failure that the process knows of; None if all its devices reached the end of the program.
    pub failure: Option<FailureRecord>,
    /// Milliseconds of the run.
    pub run_ms: f64,
    /// For each group of devices, the number of messages that the process has sent to the receiver of the record.
    pub sent: Vec<u64>,
    /// The number of executions of each collective.
    pub counts: Vec<u64>,
}

/// A failure as it is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FailureRecord {
    clock: u64,
    device: usize,
    code: RunCode,
    message: String,
    site: Option<Site>,
    help: Option<String>,
    value: Option<i64>,
}

impl FailureRecord {
    pub fn new(stop: &DeviceStop) -> FailureRecord {
        let DeviceStop { clock, device, error } = stop;
        let cut = |text: &str| shortened(text, TEXT / 3);
        FailureRecord {
            clock: *clock,
            device: *device,
            code: error.code,
            message: cut(&error.message),
            site: error.site,
            help: error.help.as_deref().map(cut),
            value: error.value,
        }
    }

    pub fn stop(self) -> DeviceStop {
        let error =
            RunError { code: self.code, message: self.message, site: self.site, help: self.help, value: self.value };
        DeviceStop { clock: self.clock, device: self.device, error }
    }
}

/// Bytes of a record with this number of groups and collectives.
pub(crate) fn record_bytes(groups: usize, collectives: usize) -> usize {
    // A number takes at most 10 bytes.
    TEXT + 10 * (groups + collectives)
}

/// A record as bytes of this length.
pub(crate) fn encode<T: Serialize>(record: &T, len: usize) -> Result<Vec<u8>, RunError> {
    let mut bytes =
        postcard::to_stdvec(record).map_err(|error| RunError::internal(format!("malformed record: {error}")))?;
    if bytes.len() > len {
        return Err(RunError::internal(format!("a record of {} bytes instead of {len}", bytes.len())));
    }
    bytes.resize(len, 0);
    debug_assert_eq!(bytes.len(), len, "records of one kind have one length");
    Ok(bytes)
}

pub(crate) fn decode<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T, RunError> {
    let read = postcard::take_from_bytes(bytes);
    read.map(|(record, _)| record)
        .map_err(|error| RunError::internal(format!("malformed record of another process: {error}")))
}
