//! The communication of programs, compared with XLA's communication in the same programs, which `xla/measure.py` measured.
//!
//! `docs/xla.md` is what [`page`] says; `cargo run -p spmdc-tests --bin xla > docs/xla.md` writes it.

use crate::engine::compiled;
use crate::{root, wrapped};
use serde_json::Value;
use spmdc_compiler::report::plan;
use spmdc_ir::program::Stage;
use std::fmt::Write;

/// A collective, as often as it happens.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// As `CollectiveKind::name` says.
    pub kind: String,
    /// Devices that exchange data with each other.
    pub group: u64,
    /// Of one device's operand.
    pub bytes: u64,
    pub times: u64,
}

impl Step {
    /// Bytes that a device receives, as the kind, the devices of a group and the bytes of an operand say.
    pub fn received(&self) -> Result<f64, String> {
        let (n, bytes) = (self.group as f64, self.bytes as f64);
        let once = match self.kind.as_str() {
            "all_gather" => (n - 1.0) * bytes,
            "reduce_scatter" | "all_to_all" => (n - 1.0) / n * bytes,
            "all_reduce" => 2.0 * (n - 1.0) / n * bytes,
            "collective_permute" => bytes,
            other => return Err(format!("no formula for {other}")),
        };
        Ok(once * self.times as f64)
    }
}

/// A program of the folder `xla`.
#[derive(Clone, Debug)]
pub struct Program {
    pub name: String,
    pub text: String,
    pub xla: Vec<Step>,
    /// Mean, mean of squares, and the elements at the start, after a third and at the end of JAX's result, where the
    /// parameters are `uniform` of seeds 0, 1, ..
    pub answer: Vec<f64>,
}

/// A program with both sides' collectives.
#[derive(Clone, Debug)]
pub struct Row {
    pub program: Program,
    pub ours: Vec<Step>,
    /// Bytes that a device of ours receives, by the formulas and as the plan counts them.
    pub received: f64,
    pub exact: f64,
    pub xla_received: f64,
    /// Bytes of all parameters, whole.
    pub operands: u64,
}

impl Program {
    /// The text after `//! KEY: `; lines that are indented continue it.
    pub fn remark(&self, key: &str) -> Option<String> {
        let mut lines = self.text.lines().map_while(|line| line.strip_prefix("//!"));
        let first = lines.find_map(|line| line.strip_prefix(' ')?.strip_prefix(key)?.strip_prefix(": "))?;
        let more = lines.take_while(|line| line.starts_with("   ")).map(str::trim);
        Some(std::iter::once(first).chain(more).collect::<Vec<_>>().join(" "))
    }

    /// `X = 2, Y = 4`
    pub fn mesh(&self) -> &str {
        let line = self.text.lines().find_map(|line| line.strip_prefix("mesh ("));
        line.and_then(|line| line.strip_suffix(");")).expect("a program beside XLA's has a line `mesh (..);`")
    }

    /// Compiles the program for its own mesh.
    pub fn row(&self) -> Result<Row, String> {
        let failed = |why: String| format!("{}: {why}", self.name);
        let compilation = compiled(&self.name, &self.text, "", Some(Stage::Optimized))
            .map_err(|failures| failed(format!("{failures:?}")))?;
        let module = compilation.stage(Stage::Optimized).ok_or_else(|| failed("no stage".to_string()))?;
        let mut ours = Vec::new();
        let mut exact = 0.0;
        for found in plan::collectives(module) {
            let times = found.trips.ok_or_else(|| failed("unknown trips".to_string()))?;
            exact += (times * found.received) as f64;
            let group = found.group_size as u64;
            ours.push(Step { kind: found.kind.name().to_string(), group, bytes: found.bytes, times });
        }
        let sum = |steps: &[Step]| steps.iter().try_fold(0.0, |sum, step| Ok(sum + step.received()?)).map_err(failed);
        let (received, xla_received) = (sum(&ours)?, sum(&self.xla)?);
        let params = module.func.body.params.iter().map(|&param| &module.func.ty(param).array);
        let operands = params.map(|array| (array.len() * array.dtype.size()) as u64).sum();
        Ok(Row { program: self.clone(), ours, received, exact, xla_received, operands })
    }
}

impl Row {
    fn line(&self) -> String {
        let ratio = if self.xla_received > 0.0 {
            format!("{:.2}", self.received / self.xla_received)
        } else {
            "–".to_string()
        };
        let mark = if self.program.remark("missing").is_some() { " (missing)" } else { "" };
        format!(
            "| [{}](../tests/xla/{0}.spmd) | {} | {} | {} | {} | {} | {} | {ratio}{mark} |",
            self.program.name,
            self.program.mesh(),
            self.operands,
            listed(&self.ours),
            self.received,
            listed(&self.program.xla),
            self.xla_received
        )
    }
}

/// `all_reduce(4) 512, 5 × all_gather(8) 32`; equal ones together.
fn listed(steps: &[Step]) -> String {
    let mut merged: Vec<(String, u64)> = Vec::new();
    for step in steps {
        let group = if step.kind == "collective_permute" { String::new() } else { format!("({})", step.group) };
        let text = format!("{}{group} {}", step.kind, step.bytes);
        match merged.iter_mut().find(|(other, _)| *other == text) {
            Some((_, times)) => *times += step.times,
            None => merged.push((text, step.times)),
        }
    }
    let one = |(text, times): &(String, u64)| if *times == 1 { text.clone() } else { format!("{times} × {text}") };
    if merged.is_empty() { "–".to_string() } else { merged.iter().map(one).collect::<Vec<_>>().join(", ") }
}

/// The programs in the order of `xla.json`, and the version of JAX.
pub fn programs() -> Result<(String, Vec<Program>), String> {
    let folder = root().join("tests/xla");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| format!("{name}: {error}"));
    let data: Value = serde_json::from_str(&read("xla.json")?).map_err(|error| error.to_string())?;
    let malformed = || "xla.json is malformed".to_string();
    let mut found = Vec::new();
    for entry in data["programs"].as_array().ok_or_else(malformed)? {
        let name = entry["name"].as_str().ok_or_else(malformed)?.to_string();
        let step = |step: &Value| {
            let number = |key: &str| step[key].as_u64();
            let kind = step["kind"].as_str()?.to_string();
            Some(Step { kind, group: number("group")?, bytes: number("bytes")?, times: number("trips")? })
        };
        let list = |key: &str| entry[key].as_array().ok_or_else(malformed);
        let xla = list("collectives")?.iter().map(step).collect::<Option<_>>().ok_or_else(malformed)?;
        let answer = list("answer")?.iter().map(Value::as_f64).collect::<Option<_>>().ok_or_else(malformed)?;
        found.push(Program { text: read(&format!("{name}.spmd"))?, name, xla, answer });
    }
    Ok((data["jax"].as_str().ok_or_else(malformed)?.to_string(), found))
}

/// `docs/xla.md`.
pub fn page() -> Result<String, String> {
    let (version, programs) = programs()?;
    let rows: Vec<Row> = programs.iter().map(Program::row).collect::<Result<_, _>>()?;
    let table: Vec<String> = rows.iter().map(Row::line).collect();
    let mut page = format!(
        "# Communication compared with XLA

This page compares the communication of programs with XLA's communication in the same programs. It is the output of
`cargo run -p spmdc-tests --bin xla`. A test compiles the programs again and fails if one receives more bytes than XLA's.

Each program is in `tests/xla` in two forms: as `.spmd` text, and as a function in `tests/xla/measure.py`. JAX {version}
compiles the function by `jax.jit` for the same mesh, with the same shardings of arguments and results and none in between, for
eight CPU devices (`XLA_FLAGS=--xla_force_host_platform_device_count=8`, no other flags, the Shardy partitioner). The script
reads the collectives of the compiled HLO and writes them to `tests/xla/xla.json`, so that tests do not need JAX. It also records
figures of the function's results. The test compares them with the `.spmd` text, run on the program's mesh and two others.

A step is a collective, the devices of a group, and the bytes of one device's operand. In a loop it counts once for each trip.
A step with several arrays has the bytes of all of them. *Received* are the bytes that reach a device by the usual algorithms. For an
operand of b bytes in a group of n, `all_gather` receives (n - 1) b, `reduce_scatter` and `all_to_all` (n - 1) / n b, `all_reduce` twice
that, and `collective_permute` b. *Operands* are the bytes of all arguments, whole. Sizes are small, and all of them are divisible, as
JAX requires for arguments.

| program | mesh | operands | spmdc | received | XLA | received | ratio |
|---|---|---|---|---|---|---|---|
{}

The programs, and the reasons if XLA receives more:

",
        table.join("\n")
    );
    for row in &rows {
        let title = row.program.text.lines().next().and_then(|line| line.strip_prefix("//! ")).unwrap_or_default();
        let remarks =
            ["less", "missing"].map(|key| row.program.remark(key).map_or(String::new(), |text| format!(" {text}")));
        let item = format!("- `{}`: {title}{}", row.program.name, remarks.concat());
        let _ = writeln!(page, "{}", wrapped(&item, "  "));
    }
    Ok(page)
}
