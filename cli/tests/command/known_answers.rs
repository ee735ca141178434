//! Examples whose answers are printed elsewhere: in JAX's documentation, or because anybody can check them by hand.

use crate::folder::spmdc;
use spmdc_runtime::io::npz::NpzArchive;
use spmdc_tests::{MESHES, root};
use std::path::Path;

/// The standard output of an example.
fn run(example: &str, words: &[&str]) -> String {
    let path = format!("examples/{example}.spmd");
    let mut command = spmdc();
    let output = command.args(["run", &path]).args(words).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{example} {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The numbers of an f32 array in a file.
fn floats(file: &Path, name: &str) -> Vec<f32> {
    let array = NpzArchive::open(file).unwrap().array(name).unwrap().unwrap().read().unwrap();
    array.bytes.chunks_exact(4).map(|x| f32::from_ne_bytes(x.try_into().unwrap())).collect()
}

#[test]
fn the_toy_sums_to_jaxs_number_on_every_mesh() {
    for mesh in MESHES {
        let printed = run("toy", &["--mesh", mesh]);
        let value: f64 = printed.lines().last().unwrap().parse().unwrap();
        // The double-precision sum of 32 sines; each is off by half a unit in the last place at most.
        assert!((value - -0.123_987_317_085_266_11).abs() < 5e-7, "{mesh}: {printed}");
    }
}

#[test]
fn sums_of_shards() {
    for devices in ["1", "2", "4", "8"] {
        assert_eq!(run("manual_total", &["--mesh", devices]), "i32\n496\n");
    }
    assert_eq!(run("manual_local_sums", &[]), "i32[8@X]\n[  6  22  38  54  70  86 102 118]\n");
}

#[test]
fn twice_the_sine_and_one() {
    let expected = "f32[32@X]
[ 1.          2.682942    2.818595    1.28224    -0.513605   -0.9178486
  0.44116902  2.3139732   2.9787164   1.824237   -0.08804226 -0.99998045
 -0.07314587  1.840334    2.9812148   2.3005757   0.42419338 -0.92279494
 -0.50197446  1.2997544   2.8258905   2.6733112   0.98229736 -0.69244087
 -0.81115675  0.7352965   2.525117    2.912752    1.5418116  -0.32726777
 -0.97606325  0.19192469]
";
    assert_eq!(run("manual_elementwise", &[]), expected);
}

#[test]
fn types_say_where_data_lives() {
    let sum = run("explicit_add", &[]);
    assert!(sum.starts_with("i32[4@X,8@Y]\n[[ 0  1  2  3  4  5  6  7]\n"), "{sum}");
}

/// NetworkX gives the members 0.1009, 0.0970, 0.0717, 0.0571 and 0.0529.
#[test]
fn the_president_and_the_instructor_matter_most() {
    for mesh in ["1x1", "2x4", "3x2"] {
        let printed = run("pagerank", &["--mesh", mesh, "--arg", "edges=@examples/data/karate/edges.npy"]);
        let expected = "[33  0 32  2  1] with [0.1009 0.0970 0.0717 0.0571 0.0529]";
        assert!(printed.contains(expected), "{mesh}: {printed}");
    }
}

/// A network of this size reads about 98 of 100 digits; how it learns does not depend on the devices.
#[test]
fn a_network_learns_to_read_digits() {
    let files = digits();
    let mut words = vec!["--set", "STEPS=120"];
    words.extend(files.iter().map(String::as_str));
    let mut losses = Vec::new();
    for mesh in ["1", "3", "8"] {
        let printed = run("digits", &[&words[..], &["--mesh", mesh]].concat());
        let number = |title: &str| -> f64 {
            let (_, after) = printed.split_once(&format!("{title}: f32\n")).unwrap();
            after.lines().next().unwrap().parse().unwrap()
        };
        assert!(number("accuracy") >= 0.97, "{mesh}: {printed}");
        // The README shows the run, with the images and what was read below them.
        let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
        let (_, shown) = readme.split_once("```text\n").unwrap();
        let (shown, _) = shown.split_once(" of 360 right").unwrap();
        let drawn: Vec<&str> = shown.lines().filter(|line| line.starts_with(' ')).collect();
        let lines: Vec<&str> = printed.lines().map(str::trim_end).filter(|line| line.starts_with(' ')).collect();
        assert!(drawn.len() == 9 && lines == drawn, "{mesh}: {printed}");
        losses.push((number("first_loss"), number("last_loss")));
    }
    for (first, last) in &losses {
        assert!((first / losses[0].0 - 1.0).abs() < 1e-4, "{losses:?}");
        assert!(*last < 0.01 && (last / losses[0].1 - 1.0).abs() < 1e-3, "{losses:?}");
    }
}

/// The files of the handwritten digits as arguments.
fn digits() -> Vec<String> {
    let files = [("images", "train_x"), ("labels", "train_y"), ("tests", "test_x"), ("answers", "test_y")];
    let argument = |(name, file)| ["--arg".to_string(), format!("{name}=@examples/data/digits/{file}.npy")];
    files.into_iter().flat_map(argument).collect()
}

#[test]
fn a_convolutional_network_reads_digits_better() {
    let files = digits();
    let mut words = vec!["--set", "STEPS=150"];
    words.extend(files.iter().map(String::as_str));
    for mesh in ["4x2", "1x3"] {
        let printed = run("digits_conv", &[&words[..], &["--mesh", mesh]].concat());
        let (_, after) = printed.split_once("accuracy: f32\n").unwrap();
        assert!(after.trim().parse::<f32>().unwrap() >= 0.98, "{mesh}: {printed}");
    }
}

/// A tenth of the training that the example's header asks for; the loss of a model that knows nothing is 5.5.
#[test]
fn a_transformer_learns_to_write() {
    let words =
        ["--set", "STEPS=60", "--set", "BATCH=16", "--set", "LENGTH=64", "--arg", "text=@examples/data/text/pages.npy"];
    let last = |mesh: &str| -> f32 {
        let printed = run("language_model", &[&["--mesh", mesh], &words[..]].concat());
        printed.split_once("last: f32\n").unwrap().1.trim().parse().unwrap()
    };
    let (one, four) = (last("1x1"), last("2x2"));
    assert!(one < 3.5 && (one - four).abs() < 0.05, "{one} on one device, {four} on four");
}

/// The losses of JAX, from `tests/golden/make_training.py`, for the same keys.
#[test]
fn a_network_learns_the_same_in_both_layouts() {
    let losses = floats(&root().join("tests/golden/known.npz"), "network");
    for mesh in ["8x1", "4x2"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("losses.npz");
        let sizes =
            ["--set", "WIDTH=1024", "--set", "BATCH=1024", "--set", "STEPS=30", "--out", file.to_str().unwrap()];
        run("network", &[&["--mesh", mesh], &sizes[..]].concat());
        let found = [floats(&file, "losses"), floats(&file, "after")].concat();
        assert_eq!(found.len(), losses.len());
        for (found, wanted) in found.iter().zip(&losses) {
            assert!((found / wanted - 1.0).abs() < 1e-5, "{mesh}: {found} for {wanted}");
        }
    }
}

/// Logistic regression with its loop, its keys and its parameters as in JAX, on an automatic, an explicit and a manual axis.
#[test]
fn a_regression_learns_the_same_in_three_modes() {
    let golden = root().join("tests/golden/known.npz");
    for example in ["train_step", "train_step_explicit", "train_step_manual"] {
        for mesh in ["1", "8"] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("p.npz");
            run(example, &["--mesh", mesh, "--out", file.to_str().unwrap()]);
            for (name, golden_name) in [("p.w", "regression_w"), ("p.b", "regression_b"), ("loss", "regression_loss")] {
                for (found, wanted) in floats(&file, name).iter().zip(floats(&golden, golden_name)) {
                    assert!(
                        (found - wanted).abs() < 1e-5 * (0.01 + wanted.abs()),
                        "{example} {mesh}: {found} for {wanted}"
                    );
                }
            }
        }
    }
}

/// As NumPy counts them.
#[test]
fn pixels_are_counted() {
    let printed = run("pixels", &["--arg", "images=@examples/data/digits/train_x.npy"]);
    assert!(printed.contains("counts: i32[17]\n[44959  3268  2641"), "{printed}");
    assert!(printed.contains("between 285.0 and 338.0, median 313.0"), "{printed}");
}

#[test]
fn clusters_of_digits_are_pure() {
    let words =
        ["--arg", "images=@examples/data/digits/train_x.npy", "--arg", "labels=@examples/data/digits/train_y.npy"];
    for mesh in ["2x4", "3x2"] {
        let printed = run("kmeans", &[&["--mesh", mesh], words.as_slice()].concat());
        assert!(printed.contains("0.741"), "{mesh}: {printed}");
    }
}
