//! Lints and budgets: limits on the communication and memory of a program.
//!
//! Every lint is off by default; if it is on, it warns or fails the build. A denied collective or an exceeded budget fails it.

use crate::report::deferral::{Deferral, deferrals};
use crate::totals::{Collective, collectives};
use spmdc_abi::CollectiveKind;
use spmdc_abi::words::counted;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::{Diagnostic, Severity};
use spmdc_grammar::span::Span;
use spmdc_ir::program::{Module, Value};
use spmdc_layout::types::{AxisSet, Type};

/// Minimum size of a large array, in bytes: 16 MiB.
pub const LARGE: u64 = 16 << 20;

/// A lint for communication or memory, which `--deny` and `--warn` name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lint {
    /// Communication that the program does not ask for.
    ImplicitReshard,
    /// An array that is gathered whole onto every device.
    FullGather,
    /// A large array that every device holds whole.
    ReplicatedLarge,
    /// A dimension that does not divide by its axes.
    UnevenShard,
    /// A mesh axis over which nothing is split.
    UnusedAxis,
    /// A sum in every trip of a loop that only adds it up.
    ReductionInLoop,
    /// Any collective of this kind.
    Collective(CollectiveKind),
}

impl Lint {
    const NAMED: [(&'static str, Lint); 6] = [
        ("implicit-reshard", Lint::ImplicitReshard),
        ("full-gather", Lint::FullGather),
        ("replicated-large", Lint::ReplicatedLarge),
        ("uneven-shard", Lint::UnevenShard),
        ("unused-axis", Lint::UnusedAxis),
        ("reduction-in-loop", Lint::ReductionInLoop),
    ];

    /// The lint of this name, or of this kind of collective.
    pub fn named(name: &str) -> Option<Lint> {
        let kinds = CollectiveKind::ALL.iter().map(|&kind| (kind.name(), Lint::Collective(kind)));
        Lint::NAMED.into_iter().chain(kinds).find(|(known, _)| *known == name).map(|(_, lint)| lint)
    }

    /// All names, for messages.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Lint::NAMED.iter().map(|(name, _)| *name).chain(CollectiveKind::ALL.iter().map(|kind| kind.name()))
    }
}

/// The lints and budgets of a compilation.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The lints that are on, each with the severity of its findings.
    pub lints: Vec<(Lint, Severity)>,
    /// Maximum number of bytes that one device may receive in collectives over the whole run.
    pub max_comm: Option<u64>,
}

/// The findings of the policy in a partitioned module, in program order for each lint.
pub fn findings(module: &Module, policy: &Policy) -> Vec<Diagnostic> {
    if policy.lints.is_empty() && policy.max_comm.is_none() {
        return Vec::new();
    }
    let collectives = collectives(module);
    let mut found = Vec::new();
    for &(lint, severity) in &policy.lints {
        let before = found.len();
        match lint {
            Lint::ImplicitReshard => found.extend(collectives.iter().filter(|c| !c.asked).map(implicit)),
            Lint::FullGather => found.extend(collectives.iter().filter(|c| c.gathers_all).map(full_gather)),
            Lint::ReplicatedLarge => each_named(module, &mut |name, ty, span| {
                found.extend(replicated_large(module, name, ty, span));
            }),
            Lint::UnevenShard => each_named(module, &mut |name, ty, span| found.extend(uneven(module, name, ty, span))),
            Lint::UnusedAxis => found.extend(unused_axes(module)),
            Lint::ReductionInLoop => {
                let deferrals = deferrals(module);
                let of = |c: &Collective| Some(reduction_in_loop(c, deferrals.iter().find(|of| of.is_of(c))?));
                found.extend(collectives.iter().filter_map(of));
            }
            Lint::Collective(kind) => found.extend(collectives.iter().filter(|c| c.kind == kind).map(denied)),
        }
        found[before..].iter_mut().for_each(|diagnostic| diagnostic.severity = severity);
    }
    found.extend(policy.max_comm.and_then(|budget| over_budget(&collectives, budget)));
    found
}

fn shape(collective: &Collective) -> String {
    let sizes: Vec<String> = collective.local_shape.iter().map(usize::to_string).collect();
    match sizes.as_slice() {
        [] => collective.dtype.name().to_string(),
        sizes => format!("{}[{}]", collective.dtype.name(), sizes.join(",")),
    }
}

/// `all_reduce over Y of f32[8,16], 512 bytes per device, 10 times`
fn described(collective: &Collective) -> String {
    let times = match collective.trips {
        Some(1) => String::new(),
        Some(trips) => format!(", {trips} times"),
        None => ", in each trip of a loop".to_string(),
    };
    let axes = collective.axes.join(", ");
    format!(
        "{} over {axes} of {}, {} bytes per device{times}",
        collective.kind.name(),
        shape(collective),
        collective.bytes
    )
}

fn because(diagnostic: Diagnostic, collective: &Collective) -> Diagnostic {
    if collective.reason.is_empty() { diagnostic } else { diagnostic.here(collective.reason.clone()) }
}

fn implicit(collective: &Collective) -> Diagnostic {
    let message = format!("the program does not request this communication: {}", described(collective));
    because(Diagnostic::warning(Code::E1001, collective.span, message), collective)
        .help("`spmdc why` explains the layouts; `reshard` or an annotation requests the communication")
}

fn full_gather(collective: &Collective) -> Diagnostic {
    let message = format!("a whole array is gathered on every device: {}", described(collective));
    because(Diagnostic::warning(Code::E1002, collective.span, message), collective)
        .help("an annotation on the values computed from it may keep it split")
}

fn reduction_in_loop(collective: &Collective, deferral: &Deferral) -> Diagnostic {
    let message = format!(
        "this loop reduces its summands over the mesh in every trip instead of once: {}",
        described(collective)
    );
    because(Diagnostic::warning(Code::E1008, collective.span, message), collective).help(deferral.advice(collective))
}

fn denied(collective: &Collective) -> Diagnostic {
    let message = format!("{} is not allowed here: {}", collective.kind.name(), described(collective));
    because(Diagnostic::error(Code::E1006, collective.span, message), collective)
        .help("`spmdc why` explains the layouts that require it")
}

fn replicated_large(module: &Module, name: &str, ty: &Type, span: Span) -> Option<Diagnostic> {
    let bytes = ty.block_bytes(&module.mesh) as u64;
    if module.mesh.device_count() == 1 || !ty.distinct_axes().is_empty() || bytes < LARGE {
        return None;
    }
    let ty = ty.display(&module.mesh);
    let message = format!("`{name}`, an `{ty}` of {bytes} bytes, is replicated on every device");
    Some(Diagnostic::warning(Code::E1003, span, message).help("split a dimension over a mesh axis"))
}

fn uneven(module: &Module, name: &str, ty: &Type, span: Span) -> Option<Diagnostic> {
    let dims = || ty.shape().iter().zip(&ty.sharding.dims);
    let (&size, dim) = dims().find(|(size, dim)| !size.is_multiple_of(module.mesh.size_of(&dim.axes)))?;
    let blocks = module.mesh.size_of(&dim.axes);
    let block = size.div_ceil(blocks);
    let (elements, devices) = (counted(size, "element"), counted(blocks, "device"));
    let verb = if size == 1 { "does" } else { "do" };
    let message = format!(
        "`{name}` is `{}`: {elements} {verb} not divide evenly by {devices}, so blocks have {block}, and the last ones fewer",
        ty.display(&module.mesh)
    );
    let next = size.next_multiple_of(blocks);
    Some(Diagnostic::warning(Code::E1004, span, message).help(format!("a size of {next} divides evenly")))
}

/// The axes along which all devices hold the same data and do the same work. A cut axis is unused if all of its parts are.
fn unused_axes(module: &Module) -> Vec<Diagnostic> {
    let used = module.func.values.iter().fold(AxisSet::EMPTY, |used, info| used.union(info.ty.distinct_axes()));
    let axes: Vec<u8> = (0..module.mesh.axes.len() as u8).collect();
    let is_used = |parts: &[u8]| parts.iter().any(|&part| used.contains(part as usize));
    let wholes = module.mesh.wholes(&axes).into_iter();
    let sizes = wholes.map(|(name, parts)| (name, module.mesh.size_of(parts), is_used(parts)));
    let unused = sizes.filter(|&(_, size, is_used)| size > 1 && !is_used);
    let finding = |(name, size, _)| {
        let message =
            format!("nothing is split over `{name}`: its {size} devices hold the same data and do the same work");
        Diagnostic::warning(Code::E1007, Span::default(), message)
            .help(format!("split a dimension over `{name}`, or run on a mesh without it"))
    };
    unused.map(finding).collect()
}

fn over_budget(collectives: &[Collective], budget: u64) -> Option<Diagnostic> {
    let unknown = collectives.iter().find(|collective| collective.trips.is_none());
    if let Some(collective) = unknown {
        let message = format!("the communication volume is unknown at compile time: {}", described(collective));
        let error = Diagnostic::error(Code::E1005, collective.span, message);
        return Some(
            because(error, collective).help("the number of trips of a `while` loop is unknown; use a `for` loop"),
        );
    }
    let total: u64 = collectives.iter().filter_map(Collective::total_bytes).sum();
    let largest = collectives.iter().max_by_key(|collective| collective.total_bytes())?;
    if total <= budget {
        return None;
    }
    let message = format!("collectives communicate {total} bytes per device, but the budget is {budget}");
    let error = Diagnostic::error(Code::E1005, largest.span, message);
    Some(error.here(format!("the largest: {}", described(largest))).help("`spmdc plan` lists all of them"))
}

/// Parameters and values with names, each once.
fn each_named(module: &Module, visit: &mut dyn FnMut(&str, &Type, Span)) {
    let func = &module.func;
    // No device holds a stream.
    let in_memory = |value: &Value| !func.ty(*value).array.is_stream;
    for (param, &value) in func.params.iter().zip(&func.body.params).filter(|(_, value)| in_memory(value)) {
        visit(&param.name, func.ty(value), param.span);
    }
    let mut seen: Vec<(&str, Span)> = Vec::new();
    for info in &func.values {
        let Some(name) = &info.name else { continue };
        let span = info.origin.span;
        let is_param = func.params.iter().any(|param| param.name == *name && param.span == span);
        if is_param || info.ty.array.is_stream || seen.contains(&(name, span)) || !info.ty.varying.is_empty() {
            continue;
        }
        seen.push((name, span));
        visit(name, &info.ty, span);
    }
}
