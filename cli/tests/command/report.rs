//! The page of `spmdc report`.

use crate::folder::{Folder, spmdc};
use serde_json::Value;
use spmdc_tests::root;
use std::path::Path;
use std::process::Command;

/// Examples on meshes of one and two axes, with loops, several meshes, and collectives of all kinds.
const EXAMPLES: [&str; 11] = [
    "edges",
    "heat",
    "kmeans",
    "layer",
    "life",
    "pipeline",
    "resume",
    "tensor_parallel",
    "train_step",
    "train_step_manual",
    "transformer_explicit",
];

/// The page of an example.
fn page(example: &str, words: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.html");
    let path = format!("examples/{example}.spmd");
    let output = spmdc().args(["report", &path, "-o"]).arg(&file).args(words).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty(), "{example}: {}", String::from_utf8_lossy(&output.stdout));
    std::fs::read_to_string(&file).unwrap()
}

/// The data of a page.
fn data(page: &str) -> Value {
    let (_, after) = page.split_once("id=\"data\">").unwrap();
    serde_json::from_str(after.split_once("</script>").unwrap().0).unwrap()
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("{name} in {value}"))
}

#[test]
fn a_page_needs_no_other_file_and_is_small() {
    for example in EXAMPLES {
        let page = page(example, &[]);
        assert!(page.len() < 1_000_000, "{example}: {} bytes", page.len());
        let addresses = page.matches("://").count();
        assert_eq!(addresses, 1, "{example}: the name of SVG elements is the only address");
        for placeholder in ["{title}", "{style}", "{script}", "{data}"] {
            assert!(!page.contains(placeholder), "{example}: {placeholder}");
        }
    }
}

/// The collectives of a report.
fn collectives(report: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    list(&report["program"], "meshes")
        .iter()
        .flat_map(|mesh| list(mesh, "collectives").iter().map(move |collective| (mesh, collective)))
}

/// The messages of a collective.
fn moves(collective: &Value) -> Vec<&Value> {
    list(collective, "phases").iter().flat_map(|phase| list(phase, "moves")).collect()
}

/// Compares the bytes that the device receives which receives most with those of the plan.
fn check_bytes(name: &str, mesh: &Value, collective: &Value) {
    let moves = moves(collective);
    let received = |device: usize| -> u64 {
        let own = moves.iter().filter(|sent| sent["to"].as_u64() == Some(device as u64));
        own.map(|sent| sent["bytes"].as_u64().unwrap()).sum()
    };
    let most = (0..list(mesh, "devices").len()).map(received).max().unwrap_or(0);
    let expected = collective["received"].as_u64().unwrap();
    // Shares of sums are whole elements.
    let rounding = if collective["kind"] == "all_reduce" { 8 * moves.len() as u64 } else { 0 };
    assert!(most.abs_diff(expected) <= rounding, "{name}: {most} in {collective}");
    assert!(moves.iter().all(|sent| sent["from"] != sent["to"]), "{name}: {collective}");
}

#[test]
fn messages_that_are_drawn_have_the_bytes_of_the_plan() {
    let mut drawn = 0;
    for example in EXAMPLES {
        for (mesh, collective) in collectives(&data(&page(example, &[]))) {
            if !moves(collective).is_empty() {
                check_bytes(example, mesh, collective);
                drawn += 1;
            }
        }
    }
    assert!(drawn > 20, "{drawn} collectives are drawn");
}

/// Programs whose collectives are of one sort, the mesh, and the messages of the first: from, to, bytes and indices.
const DRAWN: [(&str, &str, &str, &str); 14] = [
    ("a shift", "4", "fn main(x: f32[10@X]) -> f32[10@X] { roll(x, 1) }", "3 to 0: 4 bytes of [[9,10]]"),
    ("every second", "2", "fn main(x: f32[16@X]) -> f32[8@X] { x[::-2] }", "1 to 0: 16 bytes of [[9,16,2]]"),
    (
        "corners",
        "2x2",
        "fn main(x: f32[8@X, 8@Y]) -> f32[6, 6] { x[:-2, :-2] + x[2:, 2:] + x[1:-1, 1:-1] }",
        "0 to 1: 12 bytes of [[0,3],[3,4]]",
    ),
    (
        "a convolution",
        "4",
        "fn main(x: f32[1, 16@X, 8, 2], w: f32[3, 3, 2, 2]) { conv(x, w) }",
        "1 to 0: 64 bytes of [[0,1],[4,5],[0,8],[0,2]]",
    ),
    (
        "steps of a stencil",
        "2x4",
        "fn main(x: f32[64@X, 64@Y]) { let mut u = x; for i in 0..20 { u = roll(u, 1, axis=0) + roll(u, -1, axis=1); } u }",
        "",
    ),
    ("a sum", "4", "manual(X) fn main(x: f32[32@X]) -> f32[8] { psum(x, X) }", "1 to 0: 8 bytes of [[0,2]]"),
    ("a gather", "4", "manual(X) fn main(x: f32[32@X]) -> f32[32] { all_gather(x, X) }", "1 to 0: 32 bytes of [[0,8]]"),
    (
        "a scattered sum",
        "4",
        "manual(X) fn main(x: f32[32@X]) -> f32[8@X] { psum_scatter(x, X) }",
        "1 to 0: 8 bytes of [[0,2]]",
    ),
    (
        "a transposition",
        "4",
        "manual(X) fn main(x: f32[8@X, 12]) -> f32[8, 12@X] { all_to_all(x, X, split=1, concat=0) }",
        "1 to 0: 24 bytes of [[0,2],[0,3]]",
    ),
    (
        "a permutation",
        "4",
        "manual(X) fn main(x: f32[8@X]) -> f32[8@X] { ppermute(x, X, ((0, 1), (2, 2))) }",
        "0 to 1: 8 bytes of [[0,2]]",
    ),
    (
        "a cyclic shift",
        "4",
        "manual(X) fn main(x: i8[8@X]) -> i8[8@X] { pshift(x, X, 2) }",
        "2 to 0: 2 bytes of [[0,2]]",
    ),
    (
        "groups of two axes",
        "2x2x2",
        "manual(X, Z) fn main(x: f32[8@(X, Z), 4@Y]) -> f32[8, 4@Y] { all_gather(x, (X, Z)) }",
        "1 to 0: 16 bytes of [[0,2],[0,2]]",
    ),
    (
        "the other axes",
        "2x2",
        "manual(X) fn main(x: f32[8@X, 6]) -> f32[8@X, 6] { let y = reshard(x, P(_, Y)); reshard(roll(y, 1, axis=1), P()) }",
        "",
    ),
    ("several halos", "4", "fn main(x: f32[9@X], y: f32[9@X]) { concatenate((x[1:], y[2:])) }", ""),
];

#[test]
fn windows_and_collectives_of_manual_functions_are_drawn() {
    for (name, mesh, program, first) in DRAWN {
        let folder = Folder::with(&[("a.spmd", &format!("{program}\n"))]);
        folder.spmdc(&["report", "a.spmd", "--mesh", mesh]).expect(0, "", "");
        let data = data(&std::fs::read_to_string(folder.path().join("a.html")).unwrap());
        let mut count = 0;
        for (mesh, collective) in collectives(&data) {
            let moves = moves(collective);
            check_bytes(name, mesh, collective);
            assert_eq!(collective["is_local"], program.starts_with("manual") && name != "the other axes", "{name}");
            if count == 0 && !first.is_empty() {
                let sent = moves.first().unwrap_or_else(|| panic!("{name}: {collective}"));
                let found = format!("{} to {}: {} bytes of {}", sent["from"], sent["to"], sent["bytes"], sent["range"]);
                assert_eq!(found, first, "{name}: {collective}");
            }
            count += 1;
        }
        assert!(count > 0, "{name} moves nothing");
    }
}

#[test]
fn a_page_has_layouts_costs_of_lines_and_memory() {
    let data = data(&page("tensor_parallel", &[]));
    let mesh = &data["program"]["meshes"][0];
    let hidden = list(mesh, "values").iter().find(|value| value["name"] == "hidden").unwrap();
    assert_eq!(hidden["type"], "f32[16@data,64@model]");
    let blocks = list(hidden, "blocks");
    assert_eq!(blocks.len(), 8);
    assert_eq!(blocks[1]["range"], serde_json::json!([[0, 8], [16, 32]]));
    assert_eq!(blocks[1]["devices"], serde_json::json!([1]));
    let costs = list(mesh, "lines").iter().find(|line| line["line"] == 9).unwrap();
    assert_eq!((costs["operations"].as_u64(), costs["received"].as_u64()), (Some(8192), Some(1536)));
    let buffers = list(mesh, "buffers");
    let named = |name: &str| buffers.iter().find(|buffer| buffer["name"] == name).unwrap();
    assert!(named("hidden")["last"].as_u64() > named("x")["last"].as_u64(), "{buffers:?}");
    assert!(data.get("run").is_none(), "nothing has run");
}

#[test]
fn with_arguments_it_runs_and_has_the_times_of_lines() {
    let words = ["--arg", "x=normal:1", "--arg", "w1=normal:2", "--arg", "w2=normal:3"];
    let data = data(&page("tensor_parallel", &words));
    let lines: Vec<u64> = list(&data["run"], "lines").iter().map(|line| line["line"].as_u64().unwrap()).collect();
    assert!(lines.contains(&8) && lines.contains(&9), "{lines:?}");
    assert!(data["run"]["ns"].as_f64().unwrap() > 0.0);
}

#[test]
fn texts_of_a_program_are_no_html() {
    let program = "fn main(x: f32[2]) {\n  // </script><b>&\n  print(\"<i>{}\", x);\n  x + 1\n}\n";
    let folder = Folder::with(&[("a.spmd", program)]);
    folder.spmdc(&["report", "a.spmd"]).expect(0, "", "");
    let page = std::fs::read_to_string(folder.path().join("a.html")).unwrap();
    assert_eq!(page.matches("</script>").count(), 2, "of the data and of the script");
    assert_eq!(data(&page)["files"][0]["text"], program);
}

#[test]
fn wrong_programs_and_places_are_refused() {
    let folder = Folder::with(&[("a.spmd", "fn main() { y }\n"), ("b.spmd", "fn main(x: f32[2]) { x[3] }\n")]);
    folder.spmdc(&["report", "a.spmd"]).expect(1, "", "E0101");
    assert!(!folder.path().join("a.html").exists());
    folder.spmdc(&["report", "b.spmd", "-o", "none/b.html"]).expect(1, "", "");
}

/// The browser of the variable `CHROMIUM`, or the one that is installed.
fn browser() -> Option<String> {
    let names = std::env::var("CHROMIUM").into_iter().chain(["chromium", "google-chrome"].map(str::to_string));
    names
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success()))
}

/// Opens the page in a browser without a window, with a script at its end, and returns the document afterwards.
fn opened(browser: &str, page: &str, script: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.html");
    let early = "<head><script>window.failures = []; window.onerror = (text) => { failures.push(text); };</script>";
    let page = page.replacen("<head>", early, 1).replace("</body>", &format!("<script>{script}</script></body>"));
    std::fs::write(&file, page).unwrap();
    let profile = format!("--user-data-dir={}", folder.path().join("profile").display());
    let words = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=4000", "--dump-dom", &profile];
    let output = Command::new(browser).args(words).arg(address(&file)).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn address(file: &Path) -> String {
    format!("file://{}", file.display())
}

#[test]
fn a_browser_steps_through_a_collective() {
    let Some(browser) = browser() else {
        println!("skipped: no browser is installed");
        return;
    };
    let script = "
      document.querySelectorAll('[role=group] button')[5].click();
      const details = document.querySelector('.card[id] details');
      details.open = true;
      setTimeout(() => {
        document.querySelector('[data-step=next]').click();
        const found = document.createElement('output');
        found.textContent = [
          document.querySelector('[role=status]').textContent, document.querySelectorAll('path.arrow').length,
          document.querySelectorAll('[aria-pressed=true]')[0].textContent, failures.length,
          document.querySelectorAll('svg[role=img]:not([aria-label])').length].join(' | ');
        found.id = 'probe';
        document.body.append(found);
      }, 500);";
    let document = opened(&browser, &page("tensor_parallel", &[]), script);
    let (_, probe) = document.split_once("<output id=\"probe\">").unwrap_or_else(|| panic!("{document}"));
    let found = probe.split_once("</output>").unwrap().0;
    let expected = "Step 2 of 6. Each device adds a part of the sums of its partner in round 2. | 8 | 5 | 0 | 0";
    assert_eq!(found, expected);
}
