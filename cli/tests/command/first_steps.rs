//! The first minute: `spmdc new`, `spmdc examples`, and manual pages.

use crate::folder::Folder;
use std::fs;
use std::path::Path;

#[test]
fn a_new_program_checks_runs_and_tests() {
    let folder = Folder::with(&[("used/file", "")]);
    folder.spmdc(&["new", "fit"]).expect(0, "made fit/main.spmd and fit/README.md\n", "");
    assert!(fs::read_to_string(folder.path().join("fit/README.md")).unwrap().starts_with("# fit\n"));
    folder.spmdc(&["fmt", "--check", "fit"]).expect(0, "", "");
    folder.spmdc(&["check", "fit/main.spmd"]).expect(0, "ok: ", "");
    folder.spmdc(&["test", "fit/main.spmd"]).expect(0, "1 passed, 0 failed", "");
    for mesh in ["1", "4", "7"] {
        folder.spmdc(&["run", "fit/main.spmd", "--mesh", mesh]).expect(0, "loss 0.0102\nslope: f32\n3.00", "");
    }
    for used in ["fit", "used", "used/file"] {
        folder.spmdc(&["new", used]).expect(2, "", "it exists already");
    }
}

#[test]
fn examples_run_by_their_names() {
    let folder = Folder::with(&[("images.npy", "no array")]);
    let list = folder.spmdc(&["examples"]);
    list.expect(0, ":kmeans                K-means", "");
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")).unwrap();
    let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let programs = names.filter(|name| name.ends_with(".spmd")).count();
    assert_eq!(list.out.lines().filter(|line| line.starts_with(':')).count(), programs);
    folder.spmdc(&["examples", "pi"]).expect(0, "//! ", "");
    folder.spmdc(&["run", ":kmeans"]).expect(0, "[145 132 157  92  69 134 139 179  88 302]", "");
    // The command line takes precedence over the header of the example.
    folder.spmdc(&["run", ":pi", "--set", "N=100", "--mesh", "2"]).expect(0, "", "");
    folder.spmdc(&["run", ":kmeans", "--arg", "images=@images.npy"]).expect(2, "", "images.npy");
    folder.spmdc(&["check", ":layer", "--mesh", "2"]).expect(0, "ok: ", "");
    folder.spmdc(&["run", ":kmean"]).expect(2, "", "did you mean `:kmeans`?");
    folder.spmdc(&["examples", "absent"]).expect(2, "", "no example is called `absent`");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = Folder::with(&[]);
    folder.spmdc(&["man", "pages/man1"]).expect(0, "", "");
    let page = |name: &str| fs::read_to_string(folder.path().join("pages/man1").join(name)).unwrap();
    assert!(page("spmdc.1").contains("spmdc\\-run(1)") && page("spmdc-run.1").contains("Run once to warm up"));
    let commands = folder.spmdc(&["--help"]).out;
    let commands = commands.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    for command in commands.filter_map(|line| line.split_whitespace().next()) {
        assert!(page(&format!("spmdc-{command}.1")).contains("NAME"), "{command}");
    }
}
