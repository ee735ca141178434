//! The machine file: the costs of communication inside a host and between hosts.
//!
//! ```text
//! {"inside": {"bytes_per_second": 16000000000, "latency_nanos": 300},
//!  "between": {"bytes_per_second": 2000000000, "latency_nanos": 10000}}
//! ```

use serde_json::{Map, Value, json};
use spmdc_grammar::sentences::{must_be, unknown};
use spmdc_layout::cost::{LevelSpeed, Levels};
use spmdc_runtime::errors::trap::{RunCode, RunError};
use std::path::Path;

/// Costs outside of these bounds are mistakes: a kilobyte to a petabyte per second, and up to ten minutes.
const SPEEDS: (u64, u64) = (1_000, 1_000_000_000_000_000);
const LATENCIES: (u64, u64) = (0, 600_000_000_000);

/// The costs in the text of a file; missing costs have the default values.
pub fn parse(path: &Path, text: &str) -> Result<Levels, RunError> {
    levels(text).map_err(|why| {
        let error = RunError::new(RunCode::E0703, format!("malformed machine file `{}`: {why}", path.display()));
        error.with_help("`spmdc tune` writes a machine file; `spmdc explain E0703` describes its format")
    })
}

fn levels(text: &str) -> Result<Levels, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut levels = Levels::DEFAULT;
    for (name, value) in object(&value, "it")? {
        match name.as_str() {
            "inside" => levels.inside = level(value, name, levels.inside)?,
            "between" => levels.between = level(value, name, levels.between)?,
            _ => return Err(unknown("field", format_args!("{name}`: the fields are `inside` and `between"))),
        }
    }
    Ok(levels)
}

fn object<'v>(value: &'v Value, name: &str) -> Result<&'v Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{name} must be a JSON object"))
}

fn level(value: &Value, of: &str, mut level: LevelSpeed) -> Result<LevelSpeed, String> {
    for (name, value) in object(value, &format!("`{of}`"))? {
        let (figure, (least, most)) = match name.as_str() {
            "bytes_per_second" => (&mut level.bytes_per_second, SPEEDS),
            "latency_nanos" => (&mut level.latency_nanos, LATENCIES),
            _ => {
                return Err(unknown(
                    "field",
                    format_args!("{name}` of `{of}`: the fields are `bytes_per_second` and `latency_nanos"),
                ));
            }
        };
        let found = value.as_u64().filter(|found| (least..=most).contains(found));
        *figure = found.ok_or_else(|| {
            must_be(format_args!("`{name}` of `{of}`"), format_args!("an integer from {least} to {most}"), value)
        })?;
    }
    Ok(level)
}

/// The text of a file with these figures, within the bounds of a file.
pub fn text(inside: LevelSpeed, between: Option<LevelSpeed>) -> String {
    let object = |level: LevelSpeed| {
        let (bytes, latency) = (level.bytes_per_second, level.latency_nanos);
        json!({
            "bytes_per_second": bytes.clamp(SPEEDS.0, SPEEDS.1),
            "latency_nanos": latency.clamp(LATENCIES.0, LATENCIES.1)
        })
    };
    let mut all = Map::from_iter([("inside".to_string(), object(inside))]);
    all.extend(between.map(|between| ("between".to_string(), object(between))));
    format!("{:#}\n", Value::Object(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let (inside, between) = (
            LevelSpeed { bytes_per_second: 5_000_000_000, latency_nanos: 200 },
            LevelSpeed { bytes_per_second: 1_000_000_000, latency_nanos: 20_000 },
        );
        assert_eq!(levels(&text(inside, Some(between))), Ok(Levels { inside, between }));
        assert_eq!(levels(&text(inside, None)), Ok(Levels { inside, between: Levels::DEFAULT.between }));
        assert_eq!(levels("{}"), Ok(Levels::DEFAULT));
        let lowest = levels(&text(LevelSpeed { bytes_per_second: 0, latency_nanos: 0 }, None));
        assert_eq!(lowest.map(|levels| levels.inside.bytes_per_second), Ok(1000));
    }

    #[test]
    fn mistakes_are_named() {
        let wrong = |text: &str| levels(text).err().unwrap_or_default();
        assert!(wrong("[1]").contains("it must be a JSON object"));
        assert!(wrong(r#"{"inside": 3}"#).contains("`inside` must be a JSON object"));
        assert!(wrong(r#"{"outside": {}}"#).contains("unknown field `outside`"));
        assert!(wrong(r#"{"inside": {"bytes": 3}}"#).contains("unknown field `bytes` of `inside`"));
        assert!(wrong(r#"{"between": {"bytes_per_second": 0}}"#).contains("must be an integer from 1000"));
        assert!(wrong(r#"{"between": {"latency_nanos": -1}}"#).contains("found -1"));
        assert!(wrong("{").contains("EOF"));
    }
}
