//! The options after the program on the command line: the same for `spmdc run PROG ...` and for a built executable.
//!
//! ```
//! use spmdc_runtime::run::args::RunArgs;
//! let words = ["--arg", "x=iota", "--bench=3", "--timeout", "1.5"];
//! let args = RunArgs::parse(words.map(Into::into))?;
//! assert_eq!(args.bench, Some(3));
//! assert_eq!(args.arguments[0].path, "x");
//! # Ok::<(), spmdc_runtime::errors::trap::RunError>(())
//! ```

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use crate::data::archive::Archive;
use crate::data::inputs::Argument;
use crate::errors::suggest;
use crate::errors::trap::{RunCode, RunError};
use crate::run::report::RunOptions;

/// The format of errors on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The options of a run.
#[derive(Clone, Debug, Default)]
pub struct RunArgs {
    /// The values of parameters, from `--arg`.
    pub arguments: Vec<Argument>,
    /// The archive of all other parameters, from `--args`.
    pub archive: Option<String>,
    /// The texts after `--out`; the program decides which results they name.
    pub outputs: Vec<String>,
    /// The texts after `--plot`, which `spmdc run` has and executables do not: see [`Viewer`](crate::run::start::Viewer).
    pub plots: Vec<String>,
    /// The number of timed runs after the warm-up run.
    pub bench: Option<u32>,
    /// Whether to write the statistics of the run.
    pub stats: bool,
    /// Whether progress is shown from the beginning, also without a terminal.
    pub progress: bool,
    /// The file for the record of the last run.
    pub trace: Option<String>,
    /// The format of error messages.
    pub error_format: ErrorFormat,
    /// Timeout, number of threads and memory limit.
    pub options: RunOptions,
    /// Whether to print which process has which devices, and stop.
    pub shows_devices: bool,
    /// The output format of `--show-devices`.
    pub format: ErrorFormat,
    /// Whether to print the options and stop.
    pub help: bool,
}

struct RunOption {
    name: &'static str,
    /// Empty for an option without a value.
    value: &'static str,
    help: &'static str,
}

/// All options except `--help`; `spmdc run` has the same.
const OPTIONS: [RunOption; 13] = [
    RunOption {
        name: "--arg",
        value: "NAME=VALUE",
        help: "the value of a parameter: @FILE.npy, @FILE.npz:KEY, @FILE.safetensors:KEY,\n\
               3.5, true, [1,2,3], zeros, ones, iota, full:V, uniform:SEED or normal:SEED",
    },
    RunOption {
        name: "--args",
        value: "FILE",
        help: "the values of all parameters, by their names: FILE.npz or FILE.safetensors; --arg\n\
               overrides the value of a single parameter",
    },
    RunOption {
        name: "--out",
        value: "[NAME=]FILE",
        help: "write a result to FILE.npy, or all of them to FILE.npz or FILE.safetensors, instead\n\
               of printing",
    },
    RunOption { name: "--bench", value: "N", help: "run once to warm up and then N times, and print the times" },
    RunOption { name: "--stats", value: "json", help: "write times, memory and collectives to standard error" },
    RunOption {
        name: "--progress",
        value: "",
        help: "show the progress of the outermost loop and the last printed line",
    },
    RunOption {
        name: "--trace",
        value: "FILE",
        help: "write a trace of the last run on all devices, for Perfetto or chrome://tracing",
    },
    RunOption { name: "--timeout", value: "SECONDS", help: "seconds that a device waits for the others (default 60)" },
    RunOption { name: "--workers", value: "N", help: "number of threads (default: one per core)" },
    RunOption {
        name: "--memory-limit",
        value: "BYTES",
        help: "maximum memory, such as 512M or 2G; a program that needs more does not run",
    },
    RunOption { name: "--show-devices", value: "", help: "print the devices of each process and its host, and exit" },
    RunOption { name: "--format", value: "text|json", help: "output format of --show-devices" },
    RunOption { name: "--error-format", value: "text|json", help: "format of the errors on standard error" },
];

impl RunArgs {
    /// The words after the name of the executable.
    pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<RunArgs, RunError> {
        let mut args = RunArgs::default();
        let mut words = words.into_iter().map(into_text);
        let mut given = Vec::new();
        while let Some(word) = words.next() {
            let word = word?;
            let (name, value) = match word.split_once('=') {
                Some((name, value)) if word.starts_with("--") => (name, Some(value.to_string())),
                _ => (word.as_str(), None),
            };
            if name == "--help" || name == "-h" {
                args.help = true;
                continue;
            }
            let Some(option) = OPTIONS.iter().find(|option| option.name == name) else {
                return Err(unknown_option(name));
            };
            if given.contains(&option.name) && !matches!(option.name, "--arg" | "--out") {
                return Err(RunError::new(RunCode::E0702, format!("`{name}` is given twice")));
            }
            given.push(option.name);
            let value = match value {
                Some(value) if option.value.is_empty() => {
                    return Err(RunError::new(RunCode::E0702, format!("unexpected value `{value}` of `{name}`"))
                        .with_help(format!("{name} takes no value")));
                }
                None if option.value.is_empty() => String::new(),
                Some(value) => value,
                None => words
                    .next()
                    .ok_or_else(|| RunError::new(RunCode::E0702, format!("`{name}` requires a value")))??,
            };
            args.set(name, &value)?;
        }
        Ok(args)
    }

    /// Sets one option, or adds to it: `set("--arg", "x=iota")`.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), RunError> {
        let wrong = |expected: &str| {
            RunError::new(RunCode::E0702, format!("invalid value `{value}` of `{name}`"))
                .with_help(format!("{name} takes {expected}"))
        };
        match name {
            "--arg" => self.arguments.push(Argument::parse(value)?),
            "--args" if !Archive::is_one(Path::new(value)) => return Err(wrong("FILE.npz or FILE.safetensors")),
            "--args" => self.archive = Some(value.to_string()),
            "--out" => self.outputs.push(value.to_string()),
            "--bench" => {
                let runs = value.parse().ok().filter(|&runs| runs > 0);
                self.bench = Some(runs.ok_or_else(|| wrong("how many times to run, at least 1"))?);
            }
            "--progress" => self.progress = true,
            "--trace" if value.is_empty() => return Err(wrong("the name of a file")),
            "--trace" => {
                self.trace = Some(value.to_string());
                self.options.records = true;
            }
            "--stats" if value == "json" => self.stats = true,
            "--stats" => return Err(wrong("the word json")),
            "--timeout" => {
                let seconds = value.parse().ok().filter(|&seconds: &f64| seconds > 0.0);
                let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                self.options.timeout = timeout.ok_or_else(|| wrong("a number of seconds greater than 0"))?;
            }
            "--workers" => {
                let workers = value.parse().ok().filter(|&workers| workers > 0);
                self.options.workers = Some(workers.ok_or_else(|| wrong("a number of threads, at least 1"))?);
            }
            "--memory-limit" => {
                let limit = parse_bytes(value);
                self.options.memory_limit = Some(limit.ok_or_else(|| wrong("a number of bytes, such as 512M or 2G"))?);
            }
            "--show-devices" => self.shows_devices = true,
            "--format" | "--error-format" => {
                let format = match value {
                    "text" => ErrorFormat::Text,
                    "json" => ErrorFormat::Json,
                    _ => return Err(wrong("text or json")),
                };
                *(if name == "--format" { &mut self.format } else { &mut self.error_format }) = format;
            }
            _ => return Err(unknown_option(name)),
        }
        Ok(())
    }

    /// The error format for errors in these words themselves.
    pub fn error_format_of(words: &[OsString]) -> ErrorFormat {
        let text: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
        let is_json =
            text.contains(&"--error-format=json") || text.windows(2).any(|pair| pair == ["--error-format", "json"]);
        if is_json { ErrorFormat::Json } else { ErrorFormat::Text }
    }

    /// The options, one a line, for `--help`.
    pub fn options_help() -> String {
        let mut help = String::new();
        for option in &OPTIONS {
            let usage = format!("{} {}", option.name, option.value);
            for (i, line) in option.help.lines().enumerate() {
                let left = if i == 0 { usage.as_str() } else { "" };
                help.push_str(&format!("  {left:<26} {line}\n"));
            }
        }
        help.push_str(&format!("  {:<26} {}\n", "--help", "print this help"));
        help
    }
}

fn into_text(word: OsString) -> Result<String, RunError> {
    word.into_string()
        .map_err(|word| RunError::new(RunCode::E0702, format!("`{}` is not valid UTF-8", word.to_string_lossy())))
}

fn unknown_option(name: &str) -> RunError {
    let what = if name.starts_with('-') { "unknown option" } else { "unexpected argument" };
    let error = RunError::new(RunCode::E0702, format!("{what} `{name}`"));
    match suggest::nearest(name, OPTIONS.iter().map(|option| option.name).chain(["--help"])) {
        Some(near) => error.with_help(format!("did you mean `{near}`?")),
        None => error.with_help("--help lists the options"),
    }
}

/// `512M`, `1.5GiB`, `4096`; units are powers of 1024.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1u64,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return None,
    };
    if let Ok(whole) = digits.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let bytes = digits.parse::<f64>().ok()? * factor as f64;
    (0.0..u64::MAX as f64).contains(&bytes).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parse(words: &[&str]) -> Result<RunArgs, RunError> {
        RunArgs::parse(words.iter().map(Into::into))
    }

    #[test]
    fn both_forms_of_an_option_are_read() {
        let words = ["--arg=p.w=@w.npy", "--arg", "x=-1", "--args", "all.npz", "--out", "y.npy", "--stats=json"];
        let args = parse(&words).unwrap();
        assert_eq!(args.archive.as_deref(), Some("all.npz"));
        let paths: Vec<&str> = args.arguments.iter().map(|argument| argument.path.as_str()).collect();
        assert_eq!(paths, ["p.w", "x"]);
        assert_eq!(args.outputs, ["y.npy"]);
        assert!(args.stats && !args.help);
        let args = parse(&[
            "--memory-limit",
            "1.5G",
            "--workers",
            "2",
            "--timeout",
            "0.5",
            "--progress",
            "--error-format",
            "json",
        ])
        .unwrap();
        assert!(args.progress);
        assert_eq!(args.options.memory_limit, Some(3 << 29));
        assert_eq!(args.options.workers, Some(2));
        assert_eq!(args.options.timeout, Duration::from_millis(500));
        assert_eq!(args.error_format, ErrorFormat::Json);
    }

    #[test]
    fn mistakes_are_named_with_a_way_out() {
        for (words, message, help) in [
            (vec!["--bnech", "3"], "unknown option `--bnech`", "did you mean `--bench`?"),
            (vec!["x.npy"], "unexpected argument `x.npy`", "--help lists the options"),
            (vec!["--bench", "0"], "invalid value `0` of `--bench`", "--bench takes how many times to run, at least 1"),
            (vec!["--timeout", "nan"], "invalid value `nan` of `--timeout`", "--timeout takes a number of seconds"),
            (vec!["--progress=1"], "unexpected value `1` of `--progress`", "--progress takes no value"),
            (vec!["--stats", "xml"], "invalid value `xml` of `--stats`", "--stats takes the word json"),
            (vec!["--args", "x.npy"], "invalid value `x.npy` of `--args`", "--args takes FILE.npz or FILE.safetensors"),
            (vec!["--arg", "x"], "does not name a parameter", "write --arg NAME=VALUE"),
            (vec!["--arg", "x=zeroes"], "did you mean `zeros`?", "write @FILE.npy"),
            (vec!["--arg", "x=uniform"], "`uniform` requires an integer seed", "write @FILE"),
            (vec!["--arg", "x=full:[1]"], "`full` requires a single number", "write @FILE"),
        ] {
            let error = parse(&words).unwrap_err();
            assert_eq!(error.code, RunCode::E0702);
            assert!(error.message.contains(message), "{}", error.message);
            assert!(error.help.as_ref().is_some_and(|text| text.contains(help)), "{:?}", error.help);
        }
        assert!(parse(&["--arg"]).unwrap_err().message.contains("requires a value"));
        assert_eq!(parse(&["--bench", "2", "--bench=3"]).unwrap_err().message, "`--bench` is given twice");
        let twice = parse(&["--args=a.npz", "--args=b.npz"]).unwrap_err();
        assert_eq!(twice.message, "`--args` is given twice");
        assert_eq!(parse(&["--out", "a=a.npy", "--out", "b=b.npy"]).unwrap().outputs.len(), 2);
    }
}
