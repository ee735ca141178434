//! Checks whether all processes of a job are about to do the same.
//!
//! A message of one program is meaningless to another program: processes with different programs would compute wrong values, or wait for
//! each other. So each process first sends all others a description of its program.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Process, numbered_processes, shortened, tags};
use crate::errors::trap::{RunCode, RunError};

/// Bytes of an introduction as it is sent. Its beginning, up to `VERSION`, is the same in all versions of the runtime.
const BYTES: usize = 1024;
/// Marks the beginning of an introduction, and the bytes before its content: this mark, and the version, filled with zeros.
const MARK: &[u8; 8] = b"spmdc-in";
const VERSION: std::ops::Range<usize> = 8..64;
/// The version of the runtime, and of the messages between its processes.
const OWN_VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (protocol 2)");
/// The longest texts that are sent.
const LONGEST_TEXT: usize = 250;

/// A process's description of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Introduction {
    /// A hash of the program with its kernels.
    pub program: u64,
    /// A hash of the options.
    pub options: u64,
    /// The mesh: `X = 2, Y = 4`.
    pub mesh: String,
    /// The number of devices of the mesh.
    pub devices: usize,
    /// The name of the host.
    pub host: String,
}

impl Introduction {
    fn encode(&self) -> Result<Vec<u8>, RunError> {
        let short = Introduction {
            mesh: shortened(&self.mesh, LONGEST_TEXT),
            host: shortened(&self.host, LONGEST_TEXT),
            ..self.clone()
        };
        let content = postcard::to_stdvec(&short);
        let content = content.map_err(|error| RunError::internal(format!("malformed introduction: {error}")))?;
        let mut bytes = MARK.to_vec();
        bytes.extend(OWN_VERSION.bytes());
        debug_assert!(bytes.len() <= VERSION.end, "the version fits");
        bytes.resize(VERSION.end, 0);
        bytes.extend(content);
        debug_assert!(bytes.len() <= BYTES, "texts are short");
        bytes.resize(BYTES, 0);
        Ok(bytes)
    }
}

/// The introduction in these bytes, or the version of the other runtime.
fn decode(bytes: &[u8]) -> Result<Introduction, String> {
    if !bytes.starts_with(MARK) {
        return Err("unknown".to_string());
    }
    let version = String::from_utf8_lossy(&bytes[VERSION]).trim_end_matches('\0').to_string();
    match postcard::take_from_bytes(&bytes[VERSION.end..]) {
        Ok((introduction, _)) if version == OWN_VERSION => Ok(introduction),
        _ => Err(version),
    }
}

/// The descriptions of all processes, in their order. All processes find the same error if they are about to do different things (E0808);
/// E0809 if one does not answer within the limit.
pub(crate) fn introduce(process: &Process, own: &Introduction, limit: Duration) -> Result<Vec<Introduction>, RunError> {
    let answers = process.exchange(tags::INTRODUCTION, &own.encode()?, limit)?;
    let missing: Vec<usize> = (0..answers.len()).filter(|&other| answers[other].is_none()).collect();
    if !missing.is_empty() {
        let message = format!("{} did not answer within {limit:?}", numbered_processes(&missing));
        return Err(RunError::new(RunCode::E0809, message)
            .with_help("a host may be unreachable, or slow to start; `--timeout` sets the longest wait in seconds"));
    }
    let answers: Vec<_> = answers.iter().flatten().map(|bytes| decode(bytes)).collect();
    debug_assert_eq!(answers.len(), process.count(), "all have answered");
    compare(&answers)
}

/// Names the processes that differ from most others: by version first, then by program, mesh and options.
fn compare(answers: &[Result<Introduction, String>]) -> Result<Vec<Introduction>, RunError> {
    let versions: Vec<String> =
        answers.iter().map(|answer| answer.clone().err().unwrap_or_else(|| OWN_VERSION.to_string())).collect();
    let host = |process: usize| answers[process].as_ref().map(|answer| answer.host.as_str()).unwrap_or_default();
    differs("runs another version of spmdc", &versions, host, |version| format!("version {version}"))?;
    let known: Vec<Introduction> = answers.iter().flatten().cloned().collect();
    let each = |of: fn(&Introduction) -> String| known.iter().map(of).collect::<Vec<String>>();
    let nothing = |_: &str| String::new();
    differs("has another mesh", &each(|one| one.mesh.clone()), host, |mesh| format!("({mesh})"))?;
    differs("has another program", &each(|one| format!("{:x}", one.program)), host, nothing)?;
    differs("was started with other options", &each(|one| format!("{:x}", one.options)), host, nothing)?;
    debug_assert!(known.iter().all(|one| one.devices == known[0].devices), "one program has one mesh");
    Ok(known)
}

/// E0808 unless all values are the same.
fn differs<'a>(
    what: &str,
    values: &[String],
    host: impl Fn(usize) -> &'a str,
    shown: impl Fn(&str) -> String,
) -> Result<(), RunError> {
    // The value of most processes; of several, that of the first one.
    let count = |value: &String| values.iter().filter(|other| *other == value).count();
    let usual = values.iter().rev().max_by_key(|value| count(value)).expect("a job has processes");
    let odd: Vec<usize> = (0..values.len()).filter(|&process| values[process] != *usual).collect();
    let Some(&first) = odd.first() else { return Ok(()) };
    let usual_one =
        (0..values.len()).find(|process| !odd.contains(process)).expect("the usual value is that of a process");
    let place = |process: usize| match host(process) {
        "" => format!("process {process}"),
        host => format!("process {process} on `{host}`"),
    };
    let words = |words: String| if words.is_empty() { words } else { format!(" {words}") };
    let mut message = format!(
        "{} {what}{} than {}{}",
        place(first),
        words(shown(&values[first])),
        place(usual_one),
        words(shown(usual)),
    );
    if odd.len() > 1 {
        message += &format!("; these differ from the majority: {}", numbered_processes(&odd));
    }
    Err(RunError::new(RunCode::E0808, message).with_help(
        "start the same executable with the same options on every host; after a new build, copy it to all of them",
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::thread;

    use super::*;

    fn introduction(process: usize) -> Introduction {
        let host = format!("h{process}");
        Introduction { program: 7, options: 8, mesh: "X = 4".to_string(), devices: 4, host }
    }

    /// The messages of each process of a job.
    fn introduced(own: &[Introduction]) -> Vec<Result<Vec<Introduction>, RunError>> {
        let limit = Duration::from_secs(60);
        thread::scope(|scope| {
            let processes: Vec<_> = Process::threads(own.len())
                .into_iter()
                .zip(own)
                .map(|(process, own)| scope.spawn(move || introduce(&process, own, limit)))
                .collect();
            processes.into_iter().map(|process| process.join().unwrap()).collect()
        })
    }

    #[test]
    fn processes_that_agree_know_each_other() {
        let all: Vec<Introduction> = (0..3).map(introduction).collect();
        assert_eq!(introduced(&all), vec![Ok(all.clone()); 3]);
        let long = Introduction { mesh: "é".repeat(1000), host: "h".repeat(1000), ..introduction(0) };
        assert_eq!(decode(&long.encode().unwrap()).unwrap().mesh, "é".repeat(LONGEST_TEXT / 2));
    }

    #[test]
    fn every_process_names_the_odd_one() {
        type Change = fn(&mut Introduction);
        let changes: [(Change, &str); 3] = [
            (|odd| odd.program = 1, "process 1 on `h1` has another program than process 0 on `h0`"),
            (|odd| odd.options = 1, "process 1 on `h1` was started with other options than process 0 on `h0`"),
            (
                |odd| odd.mesh = "X = 2".into(),
                "process 1 on `h1` has another mesh (X = 2) than process 0 on `h0` (X = 4)",
            ),
        ];
        for (change, expected) in changes {
            let mut all: Vec<Introduction> = (0..3).map(introduction).collect();
            change(&mut all[1]);
            for said in introduced(&all) {
                let error = said.unwrap_err();
                assert_eq!((error.code, error.message.as_str()), (RunCode::E0808, expected));
            }
        }
        let mut all: Vec<Introduction> = (0..5).map(introduction).collect();
        all[0].program = 1;
        all[3].program = 2;
        let error = introduced(&all)[4].clone().unwrap_err();
        assert!(error.message.starts_with("process 0 on `h0` has another program than process 1 on `h1`; "), "{error}");
        assert!(error.message.ends_with("these differ from the majority: processes 0 and 3"), "{error}");
    }

    #[test]
    fn another_version_is_named_whatever_else_it_says() {
        let mut other = introduction(1).encode().unwrap();
        other[VERSION].fill(0);
        other[VERSION.start..VERSION.start + 6].copy_from_slice(b"99.0.1");
        other[VERSION.end..].fill(0xff);
        let known = decode(&introduction(0).encode().unwrap());
        let error = compare(&[known.clone(), known, decode(&other)]).unwrap_err();
        let start = "process 2 runs another version of spmdc version 99.0.1 than process 0 on `h0` version ";
        assert!(error.message.starts_with(start), "{error}");
        assert_eq!(decode(&[1; BYTES]), Err("unknown".to_string()));
    }

    #[test]
    fn a_process_that_does_not_answer_is_named() {
        let mut job = Process::threads(2);
        let own = introduction(0);
        let error = introduce(&job.remove(0), &own, Duration::from_millis(1)).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (RunCode::E0809, "process 1 did not answer within 1ms"));
    }
}
