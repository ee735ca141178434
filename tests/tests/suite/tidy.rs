//! The house rules that a compiler cannot check: which crate may use which, and that every code has its page.

use spmdc_abi::RunCode;
use spmdc_functions::transformations::Transformation;
use spmdc_grammar::codes::Code;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries.map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() && path.file_name().unwrap() != "target" {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The crates of the workspace and what each is built on, lower ones first.
const CRATES: [(&str, &[&str]); 38] = [
    ("grammar", &[]),
    ("math", &[]),
    ("runtime/abi", &[]),
    ("runtime/threefry", &["spmdc-abi"]),
    ("runtime/fourier", &[]),
    ("runtime/matrix", &[]),
    ("runtime/mpi", &[]),
    ("runtime/product", &[]),
    ("runtime", &["spmdc-abi", "spmdc-fourier", "spmdc-math", "spmdc-matrix", "spmdc-mpi", "spmdc-product"]),
    ("runtime/executable", &["spmdc-abi", "spmdc-runtime", "spmdc-threefry"]),
    ("compiler/kernel", &["spmdc-abi", "spmdc-grammar", "spmdc-math", "spmdc-threefry"]),
    ("compiler/wide", &["spmdc-abi", "spmdc-kernel", "spmdc-math"]),
    ("compiler/cranelift", &["spmdc-abi", "spmdc-kernel", "spmdc-math", "spmdc-threefry", "spmdc-wide"]),
    ("compiler/layout", &["spmdc-abi", "spmdc-grammar", "spmdc-kernel"]),
    ("compiler/ir", &["spmdc-abi", "spmdc-grammar", "spmdc-kernel", "spmdc-layout"]),
    ("compiler/ops", &["spmdc-abi", "spmdc-grammar", "spmdc-ir", "spmdc-kernel", "spmdc-layout"]),
    (
        "compiler/ops/collectives",
        &["spmdc-abi", "spmdc-grammar", "spmdc-ir", "spmdc-kernel", "spmdc-layout", "spmdc-ops"],
    ),
    ("compiler/ops/einsum", &["spmdc-abi", "spmdc-grammar", "spmdc-ir", "spmdc-kernel", "spmdc-layout", "spmdc-ops"]),
    ("compiler/ops/fft", &["spmdc-abi", "spmdc-grammar", "spmdc-ir", "spmdc-kernel", "spmdc-layout", "spmdc-ops"]),
    ("compiler/ops/sort", &["spmdc-abi", "spmdc-grammar", "spmdc-ir", "spmdc-kernel", "spmdc-layout", "spmdc-ops"]),
    ("compiler/ops/windows", &["spmdc-abi", "spmdc-grammar", "spmdc-ir", "spmdc-kernel", "spmdc-layout", "spmdc-ops"]),
    (
        "compiler/ops/linalg",
        &["spmdc-abi", "spmdc-einsum-ops", "spmdc-grammar", "spmdc-ir", "spmdc-kernel", "spmdc-layout", "spmdc-ops"],
    ),
    (
        "compiler/functions",
        &[
            "spmdc-abi",
            "spmdc-collective-ops",
            "spmdc-einsum-ops",
            "spmdc-fft-ops",
            "spmdc-grammar",
            "spmdc-ir",
            "spmdc-kernel",
            "spmdc-layout",
            "spmdc-linalg-ops",
            "spmdc-ops",
            "spmdc-sort-ops",
            "spmdc-window-ops",
        ],
    ),
    (
        "compiler/inspect",
        &[
            "spmdc-abi",
            "spmdc-fft-ops",
            "spmdc-functions",
            "spmdc-grammar",
            "spmdc-ir",
            "spmdc-kernel",
            "spmdc-layout",
            "spmdc-linalg-ops",
            "spmdc-ops",
            "spmdc-sort-ops",
            "spmdc-window-ops",
        ],
    ),
    (
        "compiler/transform",
        &[
            "spmdc-abi",
            "spmdc-collective-ops",
            "spmdc-grammar",
            "spmdc-ir",
            "spmdc-kernel",
            "spmdc-layout",
            "spmdc-ops",
        ],
    ),
    ("compiler/stablehlo", &["spmdc-grammar"]),
    ("compiler/export", &["spmdc-abi", "spmdc-grammar", "spmdc-ir", "spmdc-layout"]),
    (
        "compiler/check",
        &[
            "spmdc-abi",
            "spmdc-functions",
            "spmdc-grammar",
            "spmdc-inspect",
            "spmdc-ir",
            "spmdc-kernel",
            "spmdc-layout",
            "spmdc-ops",
            "spmdc-transform",
        ],
    ),
    (
        "compiler/passes",
        &[
            "spmdc-abi",
            "spmdc-einsum-ops",
            "spmdc-fft-ops",
            "spmdc-functions",
            "spmdc-grammar",
            "spmdc-ir",
            "spmdc-kernel",
            "spmdc-layout",
            "spmdc-linalg-ops",
            "spmdc-ops",
            "spmdc-sort-ops",
            "spmdc-window-ops",
        ],
    ),
    ("compiler/schedule", &["spmdc-abi", "spmdc-grammar", "spmdc-ir", "spmdc-kernel", "spmdc-layout", "spmdc-ops"]),
    (
        "compiler",
        &[
            "spmdc-abi",
            "spmdc-check",
            "spmdc-cranelift",
            "spmdc-functions",
            "spmdc-grammar",
            "spmdc-inspect",
            "spmdc-ir",
            "spmdc-kernel",
            "spmdc-layout",
            "spmdc-ops",
            "spmdc-passes",
            "spmdc-schedule",
            "spmdc-stablehlo",
        ],
    ),
    ("cli/embed", &[]),
    (
        "cli/driver",
        &[
            "spmdc-abi",
            "spmdc-check",
            "spmdc-compiler",
            "spmdc-grammar",
            "spmdc-inspect",
            "spmdc-ir",
            "spmdc-kernel",
            "spmdc-layout",
            "spmdc-runtime",
        ],
    ),
    (
        "cli/lsp",
        &[
            "spmdc-abi",
            "spmdc-check",
            "spmdc-compiler",
            "spmdc-driver",
            "spmdc-functions",
            "spmdc-grammar",
            "spmdc-ir",
            "spmdc-layout",
        ],
    ),
    ("cli/plot", &[]),
    (
        "cli/python",
        &[
            "spmdc-abi",
            "spmdc-check",
            "spmdc-compiler",
            "spmdc-driver",
            "spmdc-grammar",
            "spmdc-ir",
            "spmdc-kernel",
            "spmdc-layout",
            "spmdc-runtime",
        ],
    ),
    (
        "cli",
        &[
            "spmdc-abi",
            "spmdc-check",
            "spmdc-compiler",
            "spmdc-driver",
            "spmdc-embed",
            "spmdc-executable",
            "spmdc-export",
            "spmdc-functions",
            "spmdc-grammar",
            "spmdc-ir",
            "spmdc-kernel",
            "spmdc-layout",
            "spmdc-lsp",
            "spmdc-plot",
            "spmdc-runtime",
        ],
    ),
    (
        "tests",
        &[
            "spmdc-abi",
            "spmdc-check",
            "spmdc-compiler",
            "spmdc-export",
            "spmdc-functions",
            "spmdc-grammar",
            "spmdc-inspect",
            "spmdc-ir",
            "spmdc-kernel",
            "spmdc-layout",
            "spmdc-math",
            "spmdc-ops",
            "spmdc-runtime",
        ],
    ),
];

#[test]
fn dependencies_point_one_way() {
    let mut below = BTreeSet::new();
    for (folder, expected) in CRATES {
        let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        assert!(
            manifest.contains("\npublish.workspace = true\n"),
            "{folder}/Cargo.toml does not have `publish.workspace = true`"
        );
        let (_, rest) = manifest.split_once("\n[dependencies]\n").unwrap();
        let section = rest.split("\n[").next().unwrap();
        let found: Vec<&str> = section
            .lines()
            .filter_map(|line| line.split('.').next().filter(|name| name.starts_with("spmdc-")))
            .collect();
        assert_eq!(found, expected, "{folder}/Cargo.toml");
        assert!(found.iter().all(|name| below.contains(*name)), "{folder} is built on what stands above it");
        let (_, name) = manifest.split_once("\nname = \"").unwrap();
        below.insert(name.split('"').next().unwrap().to_string());
    }
    let arrows = CRATES.iter().rev().map(|(folder, on)| {
        let on: Vec<&str> = on.iter().map(|name| name.trim_start_matches("spmdc-")).collect();
        format!("{folder:<24} → {}", on.join(" ")).trim_end_matches(" → ").trim_end().to_string()
    });
    let arrows = arrows.collect::<Vec<_>>().join("\n");
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    assert!(page.contains(&arrows), "ARCHITECTURE.md draws other arrows than:\n{arrows}");
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, members) = workspace.split_once("members = [").unwrap();
    assert_eq!(members.split(']').next().unwrap().matches('"').count() / 2, CRATES.len(), "not all crates are listed");
}

/// A file's code, without its comments and tests.
fn code(text: &str) -> String {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap()).collect();
    code.join("\n").split("#[cfg(test)]\nmod tests").next().unwrap().to_string()
}

/// The paths in code that begin with this name.
fn paths(code: &str, first: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(&format!("{first}::")) {
        // `super::super::x` is read from its beginning.
        let continues = code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        if !continues {
            tree(&code[at..], &[], &mut found);
        }
    }
    found
}

/// Adds the paths of a tree such as `super::{a, b::{c, d}}`, and returns the rest of the text.
fn tree<'a>(text: &'a str, prefix: &[String], found: &mut Vec<Vec<String>>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = tree(rest, prefix, found).trim_start();
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => return rest.strip_prefix('}').unwrap_or(""),
            }
        }
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let path = [prefix, &[text[..end].to_string()]].concat();
    match text[end..].strip_prefix("::") {
        Some(rest) => tree(rest, &path, found),
        None => {
            found.push(path);
            &text[end..]
        }
    }
}

/// For each file of a crate the files that it names, by their module paths. The root is left out, as it declares the others.
fn imports(source: &Path) -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
    let module = |file: &PathBuf| -> Vec<String> {
        let path = file.strip_prefix(source).unwrap().with_extension("");
        let names = path.iter().map(|name| name.to_string_lossy().into_owned());
        names.filter(|name| !["mod", "lib", "main"].contains(&name.as_str())).collect()
    };
    let files = files(source, "rs");
    let modules: BTreeSet<Vec<String>> = files.iter().map(module).filter(|module| !module.is_empty()).collect();
    // The path from the root of the crate.
    let full = |from: &[String], path: Vec<String>| -> Option<Vec<String>> {
        let ups = path.iter().take_while(|name| *name == "super").count();
        let (base, rest) = match path[0].as_str() {
            "crate" => (&from[..0], &path[1..]),
            "self" => (from, &path[1..]),
            _ => (&from[..from.len().checked_sub(ups)?], &path[ups..]),
        };
        // `a::{self}` is `a`.
        let rest = rest.strip_suffix(&["self".to_string()]).unwrap_or(rest);
        Some([base, rest].concat())
    };
    let file_of =
        |path: &[String]| (1..=path.len()).rev().map(|len| path[..len].to_vec()).find(|path| modules.contains(path));
    let mut found = BTreeMap::new();
    for file in &files {
        let from = module(file);
        if from.is_empty() {
            continue;
        }
        let code = code(&fs::read_to_string(file).unwrap());
        let named = ["crate", "super", "self"].into_iter().flat_map(|first| paths(&code, first));
        let mut named: Vec<Vec<String>> = named.filter_map(|path| full(&from, path)).collect();
        // After `use super::errors` the path `errors::types::mismatch` is in the file of `types`.
        let imported: BTreeSet<Vec<String>> = named.iter().filter(|path| modules.contains(*path)).cloned().collect();
        for module in imported {
            let inside = paths(&code, module.last().unwrap());
            named.extend(inside.into_iter().map(|path| [&module[..], &path[1..]].concat()));
        }
        let used = named.iter().filter_map(|path| file_of(path)).filter(|used| *used != from).collect();
        found.insert(from, used);
    }
    found
}

/// The circle of files: a statement holds an op, and the rules of an op build and lower statements.
const CIRCLES: [&str; 10] = [
    "compiler/ir: call/build",
    "compiler/ir: lower/builder",
    "compiler/ir: lower/work",
    "compiler/ir: op",
    "compiler/ir: program",
    "compiler/ir: program/control",
    "compiler/ir: program/units",
    "compiler/ir: rules",
    "compiler/ir: rules/batching",
    "compiler/ir: rules/derivative",
];

/// Other files of a crate use each other in one direction only.
#[test]
fn files_form_the_known_circle_only() {
    let mut circles = Vec::new();
    for (folder, _) in CRATES {
        let mut left = imports(&root().join(folder).join("src"));
        loop {
            // A file that uses no remaining file is below all circles, and one that no remaining file uses is above them.
            let used: BTreeSet<Vec<String>> = left.values().flatten().cloned().collect();
            let outside = left.iter().find(|(module, uses)| uses.is_empty() || !used.contains(*module));
            let Some(outside) = outside.map(|(module, _)| module.clone()) else { break };
            left.remove(&outside);
            left.values_mut().for_each(|uses| {
                uses.remove(&outside);
            });
        }
        circles.extend(left.keys().map(|module| format!("{folder}: {}", module.join("/"))));
    }
    assert_eq!(circles, CIRCLES, "files in circles");
}

/// Only the command and the runtime touch files, the environment, or the standard streams.
#[test]
fn the_compiler_does_no_io() {
    let of_the_compiler = |folder: &&str| ["grammar", "runtime/abi"].contains(folder) || folder.starts_with("compiler");
    for (folder, _) in CRATES.into_iter().filter(|(folder, _)| of_the_compiler(folder)) {
        for file in files(&root().join(folder).join("src"), "rs") {
            // Modules that exist for tests only may read what they test with.
            if file.ends_with("tests.rs") || file.parent().is_some_and(|folder| folder.ends_with("tests")) {
                continue;
            }
            let text = fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            for banned in ["std::fs", "std::env::var", "println!(", "eprintln!(", "std::io::std"] {
                assert!(!code.contains(banned), "{}: {banned}", file.display());
            }
        }
    }
}

#[test]
fn every_code_has_a_page_that_names_it() {
    let folder = root().join("docs/errors");
    for code in Code::ALL {
        let page =
            fs::read_to_string(folder.join(format!("{code}.md"))).unwrap_or_else(|_| panic!("no page for {code}"));
        assert!(page.starts_with(&format!("# {code}: {}\n", code.title())), "the page's title is not that of {code}");
    }
    for page in files(&folder, "md") {
        let name = page.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(Code::from_name(&name).is_some(), "{} explains no code", page.display());
    }
}

/// Cargo runs none of them.
#[test]
fn the_runtime_has_the_codes_of_its_errors() {
    let of_run = |code: &&Code| ["E07", "E08"].iter().any(|area| code.name().starts_with(area));
    let explained: Vec<&str> = Code::ALL.iter().filter(of_run).map(|code| code.name()).collect();
    let raised: Vec<&str> = RunCode::ALL.iter().map(|code| code.name()).collect();
    assert!(explained.iter().all(|code| raised.contains(code)), "{explained:?} without {raised:?}");
    for code in raised {
        assert!(Code::from_name(code).is_some(), "`{code}` is in no table of the command");
    }
}

#[test]
fn no_test_stands_where_none_is_run() {
    for (folder, _) in CRATES {
        let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        let library = manifest.split("\n[").find(|section| section.starts_with("lib]")).unwrap_or_default();
        let (has_tests, has_examples) = (!library.contains("\ntest = false"), !library.contains("doctest = false"));
        for file in files(&root().join(folder).join("src"), "rs") {
            let text = fs::read_to_string(&file).unwrap();
            let fences = text.lines().map(str::trim).filter_map(|line| {
                let comment = line.strip_prefix("//!").or_else(|| line.strip_prefix("///"))?;
                comment.trim().strip_prefix("```")
            });
            let is_test = |line: &str| line.trim() == "#[test]";
            assert!(has_tests || !text.lines().any(is_test), "{} has a test", file.display());
            // Every other fence is an end.
            assert!(has_examples || fences.step_by(2).all(|kind| kind == "text"), "{} has an example", file.display());
        }
    }
}

#[test]
fn sources_stay_readable() {
    for name in ["grammar", "compiler", "runtime", "cli", "tests"] {
        for file in files(&root().join(name), "rs") {
            let text = fs::read_to_string(&file).unwrap();
            let lines = text.lines().count();
            assert!(lines <= 900, "{} has {lines} lines; split it", file.display());
            let header = text.lines().next().is_some_and(|line| line.starts_with("//!") || line.starts_with("#!"));
            assert!(header, "{} has no header", file.display());
        }
    }
}

/// A module of the compiler that has files of its own is the `mod.rs` among them.
#[test]
fn modules_with_files_stand_in_their_folders() {
    for (folder, _) in CRATES.into_iter().filter(|(folder, _)| folder.starts_with("compiler")) {
        for file in files(&root().join(folder).join("src"), "rs") {
            assert!(!file.with_extension("").is_dir(), "{} has a folder: move it there, as mod.rs", file.display());
        }
    }
}

#[test]
fn examples_say_what_they_show_and_how_to_run_them() {
    let readme = fs::read_to_string(root().join("examples/README.md")).unwrap();
    for file in files(&root().join("examples"), "spmd") {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//! "), "{} has no header", file.display());
        assert!(text.contains("//! run: spmdc run examples/"), "{} does not say how to run it", file.display());
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        assert!(readme.contains(&name), "examples/README.md does not list {name}");
    }
}

/// The table of operations and the pages of rules name the same functions.
#[test]
fn every_operation_has_a_documented_rule() {
    let table = fs::read_to_string(root().join("compiler/functions/src/lib.rs")).unwrap();
    let (_, table) = table.split_once("\nops! {").unwrap();
    let (table, _) = table.split_once("\n/// A shipped function.\n").unwrap();
    let mut documented = BTreeSet::new();
    for page in files(&root().join("docs/rules"), "md").iter().filter(|page| !page.ends_with("README.md")) {
        let text = fs::read_to_string(page).unwrap();
        // Programs show what a rule does, they do not say it.
        let prose = text.split("```").step_by(2).collect::<String>();
        for code in prose.split('`').skip(1).step_by(2) {
            let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
            documented.extend(words.map(str::to_string));
        }
    }
    let names: Vec<&str> = table.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let missing: Vec<&str> = names
        .iter()
        .flat_map(|line| line.split('"').skip(1).step_by(2))
        .chain(Transformation::NAMES)
        // It calls a function, and makes no statement of its own.
        .filter(|name| *name != "tree_reduce" && !documented.contains(*name))
        .collect();
    assert!(missing.is_empty(), "no page of docs/rules tells the rule of {missing:?}");
}

/// Signatures and the table of functions say what a function is.
#[test]
fn the_checker_compares_no_names_of_functions() {
    for file in files(&root().join("compiler/check/src"), "rs") {
        let text = fs::read_to_string(&file).unwrap();
        for name in spmdc_functions::builtin_names() {
            let quoted = format!("\"{name}\"");
            let compares = |line: &str| {
                ["== ", "!= "].iter().any(|sign| line.contains(&format!("{sign}{quoted}")))
                    || (line.contains("matches!(") && line.contains(&quoted))
            };
            let line = text.lines().position(compares);
            assert!(
                line.is_none(),
                "{}:{} compares a name with {quoted}",
                file.display(),
                line.unwrap_or_default() + 1
            );
        }
    }
}

/// Where a bug would become a wrong answer, the code says what it relies on: once in so many lines at least.
const LINES_PER_ASSERTION: usize = 60;

/// Who is about an op may name it. All others ask for the properties of ops (`ir/rules`), so that a new op needs no change there.
const NAMED_OPS: [(&str, &[&str]); 38] = [
    ("compiler/check/src/expand/windows.rs", &["Binary", "Cast", "Constant", "PVary", "Unary"]),
    ("compiler/check/src/program/stage.rs", &["Combined", "Reshard"]),
    ("compiler/inspect/src/eval.rs", &["Print"]),
    ("compiler/inspect/src/print.rs", &["Reshard"]),
    (
        "compiler/inspect/src/verify/mod.rs",
        &[
            "BlockTotals",
            "Combined",
            "Factorization",
            "Fft",
            "Ghosted",
            "Halo",
            "Margins",
            "MergeSorted",
            "Patches",
            "Reshard",
            "Scan",
            "Sort",
            "SortBlocks",
            "SelectBlocks",
            "Window",
        ],
    ),
    ("compiler/inspect/src/verify/patches.rs", &["Ghosted"]),
    ("compiler/inspect/src/verify/windows.rs", &["Halo", "Margins", "Window"]),
    ("compiler/passes/src/choose_alignments.rs", &["Reshape"]),
    ("compiler/passes/src/combine_collectives.rs", &["Reshard"]),
    ("compiler/passes/src/commute_reshapes.rs", &["Reshape", "Update"]),
    ("compiler/passes/src/cse.rs", &["Reduce"]),
    ("compiler/passes/src/deepen_halos.rs", &["Update"]),
    ("compiler/passes/src/distribute_factorizations/mod.rs", &["Factorization"]),
    ("compiler/passes/src/distribute_scans.rs", &["Scan"]),
    ("compiler/passes/src/distribute_sorts.rs", &["Iota", "Sort"]),
    ("compiler/passes/src/distribute_transforms/mod.rs", &["Fft", "Iota", "Reshard"]),
    ("compiler/passes/src/erase_reduced.rs", &["PCast", "Reshard"]),
    ("compiler/passes/src/exchange_ghosts.rs", &["Patches"]),
    ("compiler/passes/src/exchange_halos.rs", &["Halo", "Window"]),
    ("compiler/passes/src/insert_reshards/mod.rs", &["Broadcast", "Reshape", "Reshard"]),
    ("compiler/passes/src/insert_reshards/sums/mod.rs", &["Reshard"]),
    ("compiler/passes/src/insert_reshards/sums/rewriter.rs", &["Reshard"]),
    ("compiler/passes/src/keep_sums.rs", &["Reshard"]),
    ("compiler/passes/src/local_argmax.rs", &["ArgReduce"]),
    ("compiler/passes/src/order_cuts.rs", &["Slice"]),
    ("compiler/passes/src/orient_products.rs", &["Cast", "Einsum", "Reshard", "Transpose"]),
    ("compiler/passes/src/project/ahead.rs", &["ReceiveMessage", "SendMessage"]),
    ("compiler/passes/src/project/drawings.rs", &["ShowSharding"]),
    ("compiler/passes/src/project/mod.rs", &["ReceiveMessage", "SendMessage", "Transfer"]),
    ("compiler/passes/src/project/moves.rs", &["Assert", "Print", "ShowSharding"]),
    ("compiler/passes/src/propagate/mod.rs", &["Reshard"]),
    (
        "compiler/passes/src/revise_regions.rs",
        &["Binary", "Cast", "Compare", "DynamicSlice", "Index", "Reshape", "Select", "Slice", "Unary", "Update"],
    ),
    ("compiler/passes/src/share_halos.rs", &["Halo", "Window"]),
    ("compiler/passes/src/simplify.rs", &["Binary", "Bitcast", "Cast", "Minors", "WithPartials"]),
    ("compiler/schedule/src/fuse.rs", &["Reshard"]),
    ("compiler/src/totals.rs", &["ReceiveMessage", "SendMessage"]),
    ("compiler/tests/unit/pipeline.rs", &["Reshard"]),
    ("compiler/transform/src/derivatives/sparse.rs", &["Pad", "Scatter", "Update"]),
];

#[test]
fn ops_are_named_where_something_is_about_them() {
    let mut found: Vec<(String, BTreeSet<String>)> = Vec::new();
    for path in files(&root().join("compiler"), "rs") {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_string();
        if ["compiler/ops/", "compiler/functions/"].iter().any(|folder| name.starts_with(folder)) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let asked = ["is::<", "as_op::<", "as_op_mut::<"].into_iter().flat_map(|question| {
            let is_whole = |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let places = text.match_indices(question).filter(move |(at, _)| is_whole(*at));
            places.map(|(at, question)| text[at + question.len()..].split('>').next().unwrap())
        });
        let ops: BTreeSet<String> = asked.filter(|op| *op != "T").map(str::to_string).collect();
        if !ops.is_empty() {
            found.push((name, ops));
        }
    }
    let known = NAMED_OPS.map(|(name, ops)| (name.to_string(), ops.iter().map(|op| op.to_string()).collect()));
    assert_eq!(found, known.to_vec(), "ask for a property of the op instead, or say here why a file is about it");
}

#[test]
fn passes_schedule_and_runtime_assert_what_they_rely_on() {
    const CHECKED: [&[&str]; 3] =
        [&["compiler/passes/src"], &["compiler/schedule/src"], &["runtime/src", "runtime/abi/src/mesh.rs"]];
    const ASSERTIONS: [&str; 6] =
        ["assert!(", "assert_eq!(", "assert_ne!(", ".expect(\"", ".expect(EXPONENT", "unreachable!("];
    for places in CHECKED {
        let (mut lines, mut assertions) = (0_usize, 0_usize);
        for place in places {
            let path = root().join(place);
            let files = if path.is_dir() { files(&path, "rs") } else { vec![path] };
            for file in files.iter().filter(|file| file.file_name().unwrap() != "tests.rs") {
                let text = fs::read_to_string(file).unwrap();
                // A module of tests ends a file; one in a file of its own does not.
                let end = text.match_indices("#[cfg(test)]\n").find(|(at, _)| {
                    text[*at..].lines().nth(1).is_some_and(|line| line.contains("mod ") && line.ends_with('{'))
                });
                let code = &text[..end.map_or(text.len(), |(at, _)| at)];
                let code = code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
                for line in code {
                    lines += 1;
                    // `debug_assert!(` ends as `assert!(` does.
                    assertions += ASSERTIONS.iter().map(|name| line.matches(name).count()).sum::<usize>();
                }
            }
        }
        let needed = lines.div_ceil(LINES_PER_ASSERTION);
        assert!(assertions >= needed, "{places:?}: {assertions} assertions in {lines} lines, {needed} are needed");
    }
}

/// A name of a type stands for one thing: in the compiler, the runtime and the command no two types have the same name.
#[test]
fn every_type_has_a_name_of_its_own() {
    let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in ["grammar/src", "compiler", "runtime", "cli"] {
        for path in files(&root().join(folder), "rs") {
            let is_test =
                path.components().any(|part| ["tests", "benches"].iter().any(|name| part.as_os_str() == *name));
            if is_test || path.ends_with("tests.rs") {
                continue;
            }
            let mut is_in_macro = false;
            for line in fs::read_to_string(&path).unwrap().lines() {
                // A macro may declare types; a name that it gets as an argument is `$name`.
                is_in_macro = line.starts_with("macro_rules! ") || (is_in_macro && !line.starts_with('}'));
                let line = if is_in_macro { line.trim_start() } else { line };
                let item = line.trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
                let item = item.trim_start_matches("pub ");
                let kinds = ["struct ", "enum ", "trait "];
                let Some(rest) = kinds.iter().find_map(|kind| item.strip_prefix(kind)) else { continue };
                let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if name.is_empty() {
                    continue;
                }
                defined.entry(name).or_default().push(path.display().to_string());
            }
        }
    }
    defined.retain(|_, places| places.len() > 1);
    assert_eq!(defined, BTreeMap::new(), "types of the same name");
}
