//! `spmdc shard`: layouts by search, as edits of the source.

use std::fs;

use crate::folder::Folder;

const LAYERS: &str = "\
/// Two layers.
fn main(x: f32[512, 256], w1: f32[256, 1024], w2: f32[1024, 256]) -> f32[512, 256] {
  relu(x @ w1) @ w2
}
";

/// The object that a search prints.
fn found(folder: &Folder, words: &[&str]) -> serde_json::Value {
    let said = folder.spmdc(&[&["shard", "layers.spmd", "--format", "json"], words].concat());
    assert_eq!(said.status, 0, "{}", said.err);
    serde_json::from_str(&said.out).unwrap()
}

#[test]
fn the_best_layout_is_shown_with_the_effect_of_each_annotation() {
    let folder = Folder::with(&[("layers.spmd", LAYERS)]);
    let said = folder.spmdc(&["shard", "layers.spmd", "--mesh", "data=4,model=2", "--explain"]);
    assert_eq!(said.status, 0, "{}", said.err);
    // Each device computes an eighth, without any communication.
    let best = said.out.lines().find(|line| line.starts_with("best found")).unwrap();
    assert!(best.contains("0 bytes") && best.contains("67,174,400"), "{best}");
    assert!(said.out.contains("f32[512, 256]  ->  f32[512@(data, model), 256]"), "{}", said.out);
    assert!(said.out.contains("received the same, memory 2.6 MiB less"), "{}", said.out);
    assert_eq!(fs::read_to_string(folder.path().join("layers.spmd")).unwrap(), LAYERS, "nothing is written");
}

#[test]
fn written_programs_have_the_costs_that_were_promised() {
    let folder = Folder::with(&[("layers.spmd", LAYERS)]);
    let promised = found(&folder, &["--devices", "8", "--memory-limit", "2MiB", "--write"]);
    let price = &promised["layouts"][0]["price"];
    assert!(price["memory"].as_u64().unwrap() <= 2 << 20, "{price}");
    assert_eq!(promised["shapes"].as_array().unwrap().len(), 4, "1 x 8, 2 x 4, 4 x 2 and 8 x 1 devices");
    let text = fs::read_to_string(folder.path().join("layers.spmd")).unwrap();
    assert!(text.starts_with("mesh (data = ") && text.contains("/// Two layers.\nfn main"), "{text}");
    let again = found(&folder, &["--time-limit", "0"]);
    assert_eq!(again["before"], *price, "{text}");
    folder.spmdc(&["fmt", "--check", "layers.spmd"]).expect(0, "", "");
}

#[test]
fn annotations_of_the_program_are_kept() {
    let kept = LAYERS.replace("w1: f32[256, 1024]", "w1: f32[256, 1024@model]");
    let folder = Folder::with(&[("layers.spmd", &format!("mesh (data = 4, model = 2);\n\n{kept}"))]);
    let object = found(&folder, &["--write"]);
    assert_eq!(object["kept"], 1);
    let text = fs::read_to_string(folder.path().join("layers.spmd")).unwrap();
    assert!(text.contains("w1: f32[256, 1024@model]"), "{text}");
}

#[test]
fn requests_that_cannot_be_met_are_errors() {
    let meshes = "mesh a (X = 2);\nmesh b (X = 2);\nfn main(x: f32[4] on a) -> f32[4] on b { transfer(x, b) }\n";
    let explicit = "mesh (X: explicit = 2);\nfn main(x: f32[4@X]) -> f32[4@X] { x + 1 }\n";
    let files = [("layers.spmd", LAYERS), ("meshes.spmd", meshes), ("explicit.spmd", explicit)];
    let folder = Folder::with(&files);
    let cases: [(&[&str], &str); 6] = [
        (
            &["layers.spmd", "--mesh", "2x4", "--memory-limit", "1000"],
            "no layout was found with which a device needs at most",
        ),
        (&["meshes.spmd"], "layouts of a program with several meshes cannot be searched"),
        (&["explicit.spmd"], "layouts along explicit axes, which types decide, cannot be searched"),
        (&["layers.spmd", "--devices", "0"], "write a number of devices, from 1 to"),
        (&["layers.spmd", "--devices", "8", "--mesh", "2x4"], "cannot be used with"),
        (&["layers.spmd", "--devices", "8", "--hosts", "3"], "cannot be divided equally among 3 hosts"),
    ];
    for (words, message) in cases {
        let said = folder.spmdc(&[&["shard"], words].concat());
        let text = said.err.split_whitespace().collect::<Vec<_>>().join(" ").replace("│ ", "");
        assert_eq!(said.status, 2, "{words:?}: {text}");
        assert!(text.contains(message), "{words:?}: {text}");
    }
    folder.spmdc_reading(&["shard", "-", "--mesh", "2x4"], LAYERS).expect(0, "best found", "");
    let said = folder.spmdc_reading(&["shard", "-", "--mesh", "2x4", "--write"], LAYERS);
    said.expect(2, "", "cannot write into `-`: it is not a file");
}
