//! The commands and their options.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use spmdc_check::MeshOverride;
use spmdc_compiler::pipeline::{MemoryLimit, pass_names};
use spmdc_compiler::report::lints::{Lint, Policy};
use spmdc_grammar::diagnostic::Severity;
use spmdc_kernel::backend::Cpu;
use spmdc_runtime::errors::trap::RunError;
use spmdc_runtime::run::args::{ErrorFormat, RunArgs};

/// Compiles sharded array programs ahead of time and runs them.
#[derive(Debug, Parser)]
#[command(name = "spmdc", version, propagate_version = true, disable_help_subcommand = true)]
pub struct CommandLine {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub messages: MessageOptions,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a folder with a small program to start from
    New {
        /// The folder, which must not exist or be empty
        #[arg(value_name = "NAME")]
        folder: PathBuf,
    },
    /// List the programs that come with the command, or print one
    Examples {
        /// The name of an example
        name: Option<String>,
    },
    /// Compile a program in memory and run it
    Run(RunCommand),
    /// Compile a program to a standalone executable
    Build(BuildCommand),
    /// Start an executable in several processes, on this host or on others, with the launcher of an MPI library
    Launch(LaunchCommand),
    /// Report the errors of a program
    Check(CheckCommand),
    /// Run the tests of source files
    Test(TestCommand),
    /// Format source files
    Fmt(FmtCommand),
    /// Print a JAX program, which is StableHLO text, as a program of the language
    Import(ImportCommand),
    /// Print the program as StableHLO text with shardings of Shardy, which XLA compiles
    Export(ExportCommand),
    /// Print the program after a stage of the compiler
    Dump(DumpCommand),
    /// Draw how parameters, results and named values are laid out over the devices
    Viz(VizCommand),
    /// Show the memory, FLOPs and collectives of each device without running the program
    Plan(PlanCommand),
    /// Write a page with the costs, layouts, messages, memory and times of a program. With arguments it also runs
    Report(ReportCommand),
    /// Explain a line's layouts and collectives, and suggest edits that avoid them
    #[command(mut_arg("program", |program| {
        program.index(1).value_name("PROG:LINE").help("The program and a line number, such as prog.spmd:7")
    }))]
    Why(WhyCommand),
    /// Search for the layouts of parameters, results and named values with which the program is fastest
    #[command(
        mut_arg("memory_limit", |limit| limit.help("Maximum bytes of memory of a device, such as 512MiB").help_heading("Options")),
        mut_arg("explain", |explain| {
            explain.help("Say of each alternative where it communicates more or less than the best layout").help_heading("Options")
        })
    )]
    Shard(ShardCommand),
    /// Measure the cost of communication inside a process and, under a launcher, between processes, for `--machine`
    Tune(TuneCommand),
    /// Explain a diagnostic code or a function
    Explain {
        /// A code or a function, such as E0301 or softmax; without it, all of them are listed
        topic: Option<String>,
    },
    /// Serve an editor on standard input and output, with the language server protocol
    Lsp,
    /// Write manual pages of all commands
    Man {
        /// The folder
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// Print a shell completion script
    Completions { shell: Shell },
}

/// The format of messages; every command has these options.
#[derive(Clone, Debug, Args)]
pub struct MessageOptions {
    /// Format of the diagnostics on standard error
    #[arg(long, global = true, value_enum, default_value_t = MessageFormat::Text, value_name = "FORMAT")]
    pub error_format: MessageFormat,
    /// When to colour messages; the variable NO_COLOR is honoured
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub color: Color,
    /// Draw with ASCII characters only
    #[arg(long, global = true)]
    pub ascii: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MessageFormat {
    /// Readable text
    Text,
    /// One JSON object per line
    Json,
}

impl From<MessageFormat> for ErrorFormat {
    fn from(format: MessageFormat) -> ErrorFormat {
        match format {
            MessageFormat::Text => ErrorFormat::Text,
            MessageFormat::Json => ErrorFormat::Json,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// Only on a terminal
    Auto,
    Always,
    Never,
}

impl Color {
    /// Whether output to this stream is coloured.
    pub fn is_used(self, stream: &impl IsTerminal) -> bool {
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
                stream.is_terminal() && !is_refused && !is_dumb
            }
        }
    }
}

/// The program, and the mesh and constants to compile it for.
#[derive(Clone, Debug, Args)]
pub struct ProgramOptions {
    /// The program, a .spmd file; `-` reads standard input, and `:NAME` is an example
    #[arg(value_name = "PROG")]
    pub program: PathBuf,
    /// Sizes of the mesh axes, in order (2x4) or by name (data=4,model=2)
    #[arg(long, value_name = "MESH", value_parser = parse_mesh)]
    pub mesh: Option<MeshOverride>,
    /// Override a constant of the program
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub settings: Vec<(String, String)>,
    /// The entry function, instead of main
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// Treat the findings of a lint, or collectives of a kind, as errors: implicit-reshard, full-gather, replicated-large,
    /// uneven-shard, unused-axis, reduction-in-loop, all_reduce, all_gather, reduce_scatter, all_to_all, collective_permute
    #[arg(long = "deny", value_name = "LINT", value_parser = parse_lint)]
    pub denied: Vec<Lint>,
    /// Treat the findings of a lint, or collectives of a kind, as warnings
    #[arg(long = "warn", value_name = "LINT", value_parser = parse_lint)]
    pub warned: Vec<Lint>,
    /// Maximum bytes that a device may communicate during the whole run, such as 64MiB or 1G
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub max_comm: Option<u64>,
    /// Check the invariants of each stage, and replay the memory plan, before continuing
    #[arg(long)]
    pub verify: bool,
    /// The number of hosts or processes that share the devices in order, or the hosts' names. Layouts are chosen for fewer bytes
    /// between hosts; the result is the same
    #[arg(long, value_name = "P", value_parser = parse_hosts)]
    pub hosts: Option<usize>,
    /// The number of processes that a launcher has started, if the command depends on it.
    #[arg(skip)]
    pub launched: Option<usize>,
    /// The memory limit of each process of the run, if the command depends on it.
    #[arg(skip)]
    pub memory: Option<MemoryLimit>,
    /// A file of `spmdc tune` with the costs of communication inside a host and between hosts
    // Tests use two names instead of a file. `tiny` devices treat a few elements as `real` ones treat large arrays.
    #[arg(long, value_parser = parse_machine, default_value = "real", hide_default_value = true, value_name = "FILE")]
    pub machine: MachineOption,
    /// Multiply matrices of bf16 by the processor's instruction for them, which takes subnormal numbers as zeros
    #[arg(long)]
    pub native_bf16: bool,
}

/// The machine to compile for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineOption {
    Real,
    Tiny,
    /// With the costs in a file.
    File(PathBuf),
}

impl ProgramOptions {
    /// A program with the default options.
    pub fn of(path: &std::path::Path) -> ProgramOptions {
        ProgramOptions {
            program: path.to_path_buf(),
            mesh: None,
            settings: Vec::new(),
            entry: None,
            denied: Vec::new(),
            warned: Vec::new(),
            max_comm: None,
            verify: false,
            hosts: None,
            launched: None,
            memory: None,
            machine: MachineOption::Real,
            native_bf16: false,
        }
    }

    /// The lints and the communication budget of the program.
    pub fn policy(&self) -> Policy {
        let with = |lints: &[Lint], severity| lints.iter().map(move |&lint| (lint, severity)).collect::<Vec<_>>();
        let lints = [with(&self.warned, Severity::Warning), with(&self.denied, Severity::Error)].concat();
        Policy { lints, max_comm: self.max_comm }
    }
}

#[derive(Debug, Args)]
pub struct CheckCommand {
    #[command(flatten)]
    pub program: ProgramOptions,
    /// Print nothing if the program has no errors
    #[arg(short, long)]
    pub quiet: bool,
    /// Repeat whenever a file that the command reads changes, until it is stopped, as by Ctrl-C
    #[arg(long)]
    pub watch: bool,
}

#[derive(Debug, Args)]
pub struct ReportCommand {
    #[command(flatten)]
    pub program: ProgramOptions,
    #[command(flatten)]
    pub options: RunSettings,
    /// The output file; by default the name of the program with .html
    #[arg(short, long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Repeat whenever a file that the command reads changes, until it is stopped, as by Ctrl-C
    #[arg(long)]
    pub watch: bool,
}

#[derive(Debug, Args)]
pub struct TestCommand {
    /// Files, and folders with .spmd files
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Sizes of the mesh axes; may be repeated. By default the mesh of the file, one device, and a mesh with sizes that do not divide
    #[arg(long = "mesh", value_name = "MESH", value_parser = parse_mesh)]
    pub meshes: Vec<MeshOverride>,
    /// Override a constant of the program
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub settings: Vec<(String, String)>,
    /// Run only the tests whose names contain this text
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Readable lines, or one JSON object for each test
    #[arg(long, value_enum, default_value_t = MessageFormat::Text)]
    pub format: MessageFormat,
}

#[derive(Debug, Args)]
pub struct FmtCommand {
    /// Print the differences, and fail if there are any, instead of writing files
    #[arg(long)]
    pub check: bool,
    /// Files, and folders with .spmd files; by default the current folder. `-` formats standard input
    #[arg(value_name = "FILE")]
    pub paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ImportCommand {
    #[command(flatten)]
    pub program: ProgramOptions,
}

#[derive(Debug, Args)]
pub struct ExportCommand {
    #[command(flatten)]
    pub program: ProgramOptions,
    /// The output file; by default standard output
    #[arg(short, long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct RunCommand {
    #[command(flatten)]
    pub program: ProgramOptions,
    #[command(flatten)]
    pub options: RunSettings,
    /// Print the devices of each process and its host, and exit
    #[arg(long)]
    pub show_devices: bool,
    /// Output format of --show-devices
    #[arg(long, value_enum, default_value_t = MessageFormat::Text)]
    pub format: MessageFormat,
    /// Repeat whenever a file that the command reads changes, until it is stopped, as by Ctrl-C
    #[arg(long)]
    pub watch: bool,
}

impl RunCommand {
    /// The options in the form that a built executable reads.
    pub fn run_args(&self, format: MessageFormat) -> Result<RunArgs, RunError> {
        let args = self.options.run_args(format)?;
        Ok(RunArgs { shows_devices: self.show_devices, format: self.format.into(), ..args })
    }
}

#[derive(Debug, Args)]
pub struct LaunchCommand {
    /// Number of processes; by default one per host
    #[arg(short = 'n', value_name = "P")]
    pub processes: Option<usize>,
    /// The hosts, which get the processes in order; by default this host
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    pub hosts: Vec<String>,
    /// The MPI library whose launcher to use; by default Open MPI if it is installed
    #[arg(long, value_enum)]
    pub mpi: Option<MpiFamily>,
    /// Seconds that the other processes may take to end after one has failed
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse_seconds)]
    pub grace: f64,
    /// Print the launcher's command line without running it
    #[arg(long)]
    pub dry_run: bool,
    /// The executable and its arguments
    #[arg(last = true, required = true, value_name = "EXE")]
    pub words: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MpiFamily {
    Openmpi,
    /// MPICH and libraries derived from it
    Mpich,
    /// `srun --mpi=pmix`, for Open MPI
    SlurmPmix,
    /// `srun --mpi=pmi2`, for MPICH
    SlurmPmi2,
}

/// The options of a run. Commands that only inspect a program accept and ignore them, so the same command line works for
/// every command.
#[derive(Clone, Debug, Default, Args)]
pub struct RunSettings {
    /// The value of a parameter: @FILE.npy, @FILE.npz:KEY, @FILE.safetensors:KEY, 3.5, true, [1,2,3], zeros, ones, iota,
    /// full:V, uniform:SEED or normal:SEED
    // The text of `--help` has no links.
    #[allow(rustdoc::broken_intra_doc_links)]
    #[arg(long = "arg", value_name = "NAME=VALUE", allow_hyphen_values = true)]
    pub arguments: Vec<String>,
    /// The values of all parameters, by their names: FILE.npz or FILE.safetensors; --arg overrides the value of a single parameter
    #[arg(long = "args", value_name = "FILE")]
    pub archive: Option<String>,
    /// Write a result to FILE.npy, or all of them to FILE.npz or FILE.safetensors, instead of printing
    #[arg(long = "out", value_name = "[NAME=]FILE")]
    pub outputs: Vec<String>,
    /// Draw a result, or all of them, in FILE.svg or FILE.png: a vector as a line, a matrix as an image, two vectors as points
    #[arg(long = "plot", value_name = "[NAME=]FILE")]
    pub plots: Vec<String>,
    /// First print the program with the communication of each line, and draw the layouts of its values
    #[arg(long)]
    pub explain: bool,
    /// First print the memory, FLOPs and collectives, as `spmdc plan` does
    #[arg(long)]
    pub plan: bool,
    /// Run once to warm up and then N times, and print the times
    #[arg(long, value_name = "N")]
    pub bench: Option<String>,
    /// Write times, memory and collectives to standard error
    #[arg(long, value_name = "json")]
    pub stats: Option<String>,
    /// Show the progress of the outermost loop and the last printed line
    #[arg(long)]
    pub progress: bool,
    /// Write a trace of the last run on all devices, for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE")]
    pub trace: Option<String>,
    /// Seconds that a device waits for the others (default 60)
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<String>,
    /// Number of threads (default: one per core)
    #[arg(long, value_name = "N")]
    pub workers: Option<String>,
    /// Maximum memory, such as 512M or 2G; a program that needs more does not run
    #[arg(long, value_name = "BYTES")]
    pub memory_limit: Option<String>,
    /// Compile even if the program has been compiled before, and do not keep its code
    #[arg(long)]
    pub no_cache: bool,
}

impl RunSettings {
    /// Maximum bytes of memory of a process, if there is a limit.
    pub fn most_memory(&self) -> Result<Option<u64>, RunError> {
        let mut args = RunArgs::default();
        self.memory_limit.as_ref().map_or(Ok(()), |bytes| args.set("--memory-limit", bytes))?;
        Ok(args.options.memory_limit)
    }

    /// The options in the form that a built executable reads.
    pub fn run_args(&self, format: MessageFormat) -> Result<RunArgs, RunError> {
        let mut args = RunArgs { error_format: format.into(), progress: self.progress, ..RunArgs::default() };
        args.plots.clone_from(&self.plots);
        let single = [
            ("--args", &self.archive),
            ("--bench", &self.bench),
            ("--stats", &self.stats),
            ("--trace", &self.trace),
            ("--timeout", &self.timeout),
            ("--workers", &self.workers),
            ("--memory-limit", &self.memory_limit),
        ];
        let single = single.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let arguments = self.arguments.iter().map(|value| ("--arg", value));
        let outputs = self.outputs.iter().map(|value| ("--out", value));
        for (name, value) in arguments.chain(outputs).chain(single) {
            args.set(name, value)?;
        }
        Ok(args)
    }
}

#[derive(Debug, Args)]
pub struct BuildCommand {
    #[command(flatten)]
    pub program: ProgramOptions,
    /// The output file; by default the program's name without its extension, `-` for standard output
    #[arg(short, long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The kind of output
    #[arg(long, value_enum, default_value_t = Emit::Exe)]
    pub emit: Emit,
    /// The processors to generate code for
    #[arg(long, value_enum, default_value_t = CpuOption::FLOOR)]
    pub cpu: CpuOption,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CpuOption {
    /// With AVX2, FMA and BMI: Intel since Haswell, AMD since Excavator
    #[cfg(target_arch = "x86_64")]
    #[value(name = "x86-64-v3")]
    X86_64V3,
    /// Every x86-64 processor; math functions are slow
    #[cfg(target_arch = "x86_64")]
    #[value(name = "x86-64")]
    X86_64,
    /// Every 64-bit Arm processor
    #[cfg(not(target_arch = "x86_64"))]
    #[value(name = "armv8-a")]
    Armv8A,
    /// This processor, and others with the same features
    Native,
}

impl CpuOption {
    #[cfg(target_arch = "x86_64")]
    const FLOOR: CpuOption = CpuOption::X86_64V3;
    #[cfg(not(target_arch = "x86_64"))]
    const FLOOR: CpuOption = CpuOption::Armv8A;

    pub fn cpu(self) -> Cpu {
        match self {
            #[cfg(target_arch = "x86_64")]
            CpuOption::X86_64V3 => Cpu::X86_64V3,
            #[cfg(target_arch = "x86_64")]
            CpuOption::X86_64 => Cpu::X86_64,
            #[cfg(not(target_arch = "x86_64"))]
            CpuOption::Armv8A => Cpu::Armv8A,
            CpuOption::Native => Cpu::Native,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Emit {
    /// An executable
    Exe,
    /// The object file of a library, without the runtime
    Obj,
    /// A static library of the program and its runtime, and a C header
    Lib,
    /// Assembly
    Asm,
    /// Cranelift's intermediate representation as text
    Clif,
}

#[derive(Debug, Args)]
pub struct DumpCommand {
    #[command(flatten)]
    pub program: ProgramOptions,
    /// The stage after which to print the program; `partitioned` if no pass is named
    #[arg(long, value_enum)]
    pub stage: Option<DumpStage>,
    /// Print the program after the last run of this compiler pass, up to the stage if one is given
    #[arg(long, value_name = "PASS", conflicts_with = "format", hide_possible_values = true)]
    #[arg(value_parser = PossibleValuesParser::new(pass_names()).map(pass_named))]
    pub after: Option<&'static str>,
    /// The program's text, or a JSON summary
    #[arg(long, value_enum, default_value_t = MessageFormat::Text)]
    pub format: MessageFormat,
}

/// The name of a pass, as the compiler has it.
fn pass_named(name: String) -> &'static str {
    pass_names().into_iter().find(|known| *known == name).expect("the parser takes only names of passes")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DumpStage {
    Ast,
    Typed,
    Differentiated,
    Propagated,
    Partitioned,
    Optimized,
    Clif,
    Asm,
}

#[derive(Debug, Args)]
pub struct VizCommand {
    #[command(flatten)]
    pub program: ProgramOptions,
    /// Draw only this value
    #[arg(long = "value", value_name = "NAME")]
    pub values: Vec<String>,
    /// The options of `spmdc run`, accepted and ignored
    #[command(flatten, next_help_heading = "Options of `run`, accepted and ignored")]
    pub not_needed: RunSettings,
}

#[derive(Debug, Args)]
pub struct PlanCommand {
    #[command(flatten)]
    pub program: ProgramOptions,
    /// Tables, or one JSON object
    #[arg(long, value_enum, default_value_t = MessageFormat::Text)]
    pub format: MessageFormat,
    /// The options of `spmdc run`, accepted and ignored
    #[command(flatten, next_help_heading = "Options of `run`, accepted and ignored")]
    pub not_needed: RunSettings,
}

#[derive(Debug, Args)]
pub struct ShardCommand {
    #[command(flatten)]
    pub program: ProgramOptions,
    /// Choose the mesh, too: the best one of this number of devices, with the axes of the program, or `data` and `model`
    #[arg(long, value_name = "N", conflicts_with = "mesh", value_parser = parse_devices)]
    pub devices: Option<usize>,
    /// Write the annotations into the program
    #[arg(long)]
    pub write: bool,
    /// End the search after this time; the result may then differ from run to run
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub time_limit: Option<f64>,
    /// Tables, or one JSON object
    #[arg(long, value_enum, default_value_t = MessageFormat::Text)]
    pub format: MessageFormat,
    /// The options of `spmdc run`, accepted and ignored
    #[command(flatten, next_help_heading = "Options of `run`, accepted and ignored")]
    pub not_needed: RunSettings,
}

#[derive(Debug, Args)]
pub struct TuneCommand {
    /// The output file; `-` for standard output
    #[arg(short, long = "output", value_name = "FILE", default_value = "machine.json")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct WhyCommand {
    #[command(flatten)]
    pub program: ProgramOptions,
    /// Explain only this value of the line
    #[arg(index = 2, value_name = "NAME")]
    pub name: Option<String>,
    /// The options of `spmdc run`, accepted and ignored
    #[command(flatten, next_help_heading = "Options of `run`, accepted and ignored")]
    pub not_needed: RunSettings,
}

fn parse_mesh(text: &str) -> Result<MeshOverride, String> {
    MeshOverride::parse(text).map_err(|diagnostic| diagnostic.help.unwrap_or(diagnostic.message))
}

fn parse_hosts(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("there is at least one host".to_string()),
        Ok(count) => Ok(count),
        Err(_) => {
            let names: Vec<&str> = text.split(',').collect();
            let is_name = |name: &&str| {
                name.starts_with(|c: char| c.is_ascii_alphabetic())
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
            };
            if names.iter().all(is_name) {
                Ok(names.len())
            } else {
                Err("write a number such as 4, or names such as a,b,c,d".to_string())
            }
        }
    }
}

// clap wants a result.
#[expect(clippy::unnecessary_wraps)]
fn parse_machine(text: &str) -> Result<MachineOption, String> {
    Ok(match text {
        "real" => MachineOption::Real,
        "tiny" => MachineOption::Tiny,
        path => MachineOption::File(path.into()),
    })
}

/// Maximum number of devices of a mesh.
const MAX_DEVICES: usize = 4096;

fn parse_devices(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=MAX_DEVICES) => Ok(count),
        Ok(_) | Err(_) => Err(format!("write a number of devices, from 1 to {MAX_DEVICES}")),
    }
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    spmdc_runtime::run::args::parse_bytes(text).ok_or_else(|| "write a number of bytes, such as 64MiB".to_string())
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|&seconds: &f64| (0.0..=1e6).contains(&seconds));
    seconds.ok_or_else(|| "write a number of seconds, at most a million".to_string())
}

fn parse_lint(text: &str) -> Result<Lint, String> {
    Lint::named(text).ok_or_else(|| format!("the known ones are {}", Lint::names().collect::<Vec<_>>().join(", ")))
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.trim().to_string(), value.trim().to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_options_are_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn hosts_are_a_number_or_names() {
        assert_eq!(parse_hosts("4"), Ok(4));
        assert_eq!(parse_hosts("a,b-1.local,a"), Ok(3));
        for wrong in ["0", "", "a,", "-1", "1,2", "a b"] {
            assert!(parse_hosts(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn run_takes_what_an_executable_takes() {
        let words = "spmdc run p.spmd --mesh 2x4 --arg x=-1 --args all.npz --bench 3 --stats=json".split(' ');
        let Command::Run(run) = CommandLine::try_parse_from(words).unwrap().command else { panic!("another command") };
        let args = run.run_args(MessageFormat::Json).unwrap();
        assert_eq!((args.bench, args.stats, args.arguments.len()), (Some(3), true, 1));
        assert_eq!((args.archive.as_deref(), args.error_format), (Some("all.npz"), ErrorFormat::Json));
    }
}
