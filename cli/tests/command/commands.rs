//! The command as a user runs it: words in; standard output, standard error and exit status out.

use std::fs;
use std::process::Command;

use crate::folder::{Folder, SPMDC, Said, spmdc};

#[test]
fn a_wrong_command_line_is_status_2() {
    let folder = Folder::with(&[("p.spmd", "fn main() -> f32 { 1.0 }\n")]);
    folder.spmdc(&["rnu", "p.spmd"]).expect(2, "", "rnu");
    folder.spmdc(&["check", "absent.spmd"]).expect(2, "", "cannot read the program `absent.spmd`: No such file");
    folder.spmdc(&["run", "p.spmd", "--bench", "none"]).expect(2, "", "invalid value `none` of `--bench`");
    folder.spmdc(&["check", "p.spmd", "--mesh", "2xtwo"]).expect(2, "", "2x4");
    let messages = folder.spmdc(&["--error-format", "json", "check", "p.spmd", "--meh", "2"]).messages();
    assert_eq!((&messages[0]["code"], &messages[0]["severity"]), (&"E0702".into(), &"error".into()));
}

#[test]
fn a_command_line_that_does_not_fit_the_program_is_status_2() {
    let text = "mesh (X = 2, Y = 4);\nconst N = 4;\nfn main(x: f32[N]) -> f32[N] { x }\n";
    let folder = Folder::with(&[("p.spmd", text)]);
    folder.spmdc(&["check", "p.spmd", "--mesh", "2x2x2"]).expect(
        2,
        "",
        "--mesh gives 3 sizes, but the mesh has 2 axes",
    );
    folder.spmdc(&["check", "p.spmd", "--mesh", "Z=2"]).expect(2, "", "as in --mesh X=2,Y=4");
    folder.spmdc(&["check", "p.spmd", "--mesh", "0x2"]).expect(2, "", "the axis `X` has no devices");
    folder.spmdc(&["check", "p.spmd", "--set", "N=half"]).expect(2, "", "`half` is not an integer");
    folder.spmdc(&["check", "p.spmd", "--entry", "mian"]).expect(2, "", "did you mean --entry main?");
    let said = folder.spmdc(&["check", "p.spmd", "--set", "M=1", "--set", "K=2", "--error-format", "json"]);
    assert_eq!((said.status, said.messages().len()), (2, 2), "{}", said.err);
    assert_eq!(said.messages()[0]["file"], serde_json::Value::Null);
    // The program itself is wrong, too.
    let folder = Folder::with(&[("p.spmd", "fn main(x: f32[2]) -> f32[3] { x }\n")]);
    folder.spmdc(&["check", "p.spmd", "--set", "N=2"]).expect(1, "", "E0107");
    folder.spmdc(&["check", "p.spmd"]).expect(1, "", "see `spmdc explain E0203`");
}

#[test]
fn codes_are_explained() {
    let folder = Folder::with(&[]);
    folder.spmdc(&["explain", "e0301"]).expect(0, "# E0301: the layout of a result is ambiguous\n", "");
    folder.spmdc(&["explain"]).expect(0, "E0999  internal error\n", "");
    folder.spmdc(&["explain", "E5555"]).expect(2, "", "unknown diagnostic `E5555`");
    folder.spmdc(&["explain", "softmax"]).expect(0, "x: f32[4, 6@X]    all_reduce over X, 16 bytes", "");
    folder.spmdc(&["explain", "sofmax"]).expect(2, "", "did you mean `softmax`?");
}

#[test]
fn completions_are_scripts() {
    Folder::with(&[]).spmdc(&["completions", "bash"]).expect(0, "complete -F", "");
}

#[test]
fn a_wrong_program_is_status_1_and_all_mistakes_are_reported() {
    let folder = Folder::with(&[("p.spmd", "fn f(x) { sine(x) }\nfn main(x: f32[4]) -> f32[4] { valeu + f(x) }\n")]);
    folder.spmdc(&["check", "p.spmd"]).expect(1, "", "p.spmd:1:11");
    let messages = folder.spmdc(&["check", "p.spmd", "--error-format", "json"]).messages();
    let number = |message: &serde_json::Value, key: &str| message[key].as_u64().unwrap();
    let mut places: Vec<_> =
        messages.iter().map(|message| (number(message, "line"), number(message, "column"))).collect();
    places.sort_unstable();
    assert_eq!(places, [(1, 11), (2, 32)]);
    assert!(messages.iter().all(|message| message["code"] == "E0101" && message["file"] == "p.spmd"), "{messages:?}");
}

#[test]
fn messages_are_plain_where_nobody_looks_and_coloured_on_request() {
    let folder = Folder::with(&[("p.spmd", "fn main() -> f32 { x }\n")]);
    assert!(!folder.spmdc(&["check", "p.spmd"]).err.contains('\u{1b}'));
    assert!(folder.spmdc(&["check", "p.spmd", "--color", "always"]).err.contains('\u{1b}'));
    assert!(folder.spmdc(&["check", "p.spmd", "--ascii"]).err.is_ascii());
}

#[test]
fn imports_are_found_beside_the_file_that_names_them() {
    let folder = Folder::with(&[
        ("p.spmd", "import \"lib/a.spmd\" as a;\nfn main(x: f32) -> f32 { a.twice(x) }\n"),
        ("lib/a.spmd", "import \"./b.spmd\" as b;\nfn twice(x) { b.two() * x }\n"),
        ("lib/b.spmd", "fn two() { 2 }\n"),
        ("q.spmd", "import \"absent.spmd\" as a;\nfn main(x: f32) -> f32 { x }\n"),
    ]);
    folder.spmdc(&["check", "p.spmd"]).expect(0, "", "");
    folder.spmdc(&["check", "q.spmd"]).expect(1, "", "E0104");
}

#[test]
fn a_dump_is_a_program() {
    let folder = Folder::with(&[("p.spmd", "fn main(x: f32[4]) -> f32[4] { 2*sin(x)+1 }\n")]);
    folder.spmdc(&["dump", "p.spmd", "--stage", "ast"]).expect(
        0,
        "fn main(x: f32[4]) -> f32[4] { 2 * sin(x) + 1 }\n",
        "",
    );
    folder.spmdc(&["dump", "p.spmd", "--stage", "typed"]).expect(0, "stage typed;\n", "");
}

/// Lines are sorted only if so many of their elements are used that a selection takes longer.
#[test]
fn few_of_the_first_elements_are_selected() {
    for (uses, op) in
        [("top_k(x, 4).0", "select_blocks"), ("sort(x)[:, :4]", "select_blocks"), ("top_k(x, 300).0", "sort")]
    {
        let program = format!("mesh (X = 2);\nfn main(x: f32[8@X, 512]) {{ {uses} }}\n");
        let dump = Folder::with(&[("p.spmd", &program)]).spmdc(&["dump", "p.spmd"]);
        assert_eq!(dump.status, 0, "{}", dump.err);
        assert!(dump.out.contains(op) && (op != "sort" || !dump.out.contains("select_blocks")), "{uses}\n{}", dump.out);
    }
}

#[test]
fn a_dump_shows_the_program_after_a_pass() {
    let text = "mesh (X = 2);\nfn main(x: f32[8@X]) { let unused = cos(x); sum(sin(x)) + sum(sin(x)) }\n";
    let folder = Folder::with(&[("p.spmd", text)]);
    folder.spmdc(&["dump", "p.spmd", "--after", "simplify", "--stage", "differentiated"]).expect(0, "= cos(x)", "");
    let tidy = folder.spmdc(&["dump", "p.spmd", "--after", "cse", "--stage", "differentiated"]);
    assert_eq!((tidy.status, tidy.out.matches("sin(x)").count()), (0, 1), "{}", tidy.out);
    folder.spmdc(&["dump", "p.spmd", "--after", "propagate"]).expect(0, "stage propagated;\n", "");
    folder.spmdc(&["dump", "p.spmd", "--after", "insert_reshards"]).expect(0, " = reshard(", "");
    let last = folder.spmdc(&["dump", "p.spmd", "--after", "overlap"]);
    let statements = |out: &str| out.lines().skip(1).map(str::to_string).collect::<Vec<_>>();
    let optimized = folder.spmdc(&["dump", "p.spmd", "--stage", "optimized"]);
    assert_eq!(statements(&last.out), statements(&optimized.out));
    folder.spmdc(&["dump", "p.spmd", "--after", "csee"]).expect(2, "", "tip: a similar value exists: 'cse'");
    folder.spmdc(&["dump", "p.spmd", "--after", "cse", "--stage", "typed"]).expect(
        2,
        "",
        "between the stages `typed` and `optimized`",
    );
    fs::write(folder.path().join("d.spmd"), &optimized.out).unwrap();
    folder.spmdc(&["dump", "d.spmd", "--after", "cse"]).expect(
        2,
        "",
        "the pass `cse` does not run up to stage `optimized`",
    );
    let meshes = "mesh a (X = 1) devices [0];\nmesh b (X = 1) devices [1];\n\
                  fn main(x: f32[4] on a) { sin(transfer(x, b)) }\n";
    let folder = Folder::with(&[("p.spmd", meshes)]);
    let each = folder.spmdc(&["dump", "p.spmd", "--after", "partition"]);
    assert_eq!((each.status, each.out.matches("stage partitioned;").count()), (0, 2), "{}{}", each.out, each.err);
}

#[test]
fn a_program_runs_and_says_what_it_computed() {
    let folder = Folder::with(&[("p.spmd", "fn main(x: i32[4], n: i32) { { y: x[n] * x, n: n } }\n")]);
    folder.spmdc(&["run", "p.spmd", "--arg", "x=[1,2,3,4]", "--arg", "n=-1"]).expect(
        0,
        "y: i32[4]\n[ 4  8 12 16]\nn: i32\n-1\n",
        "",
    );
    folder.spmdc(&["run", "p.spmd", "--arg", "x=iota", "--arg", "n=1", "--out", "all.npz"]).expect(0, "", "");
    assert!(folder.path().join("all.npz").exists());
    let said = folder.spmdc(&["run", "p.spmd", "--arg", "x=iota", "--arg", "n=9"]);
    said.expect(3, "", "p.spmd:1:");
    said.expect(3, "", "x[n] * x");
    let said = folder.spmdc(&["run", "p.spmd", "--arg", "x=iota", "--arg", "n=9", "--error-format", "json"]);
    let message = &said.messages()[0];
    assert_eq!((&message["code"], &message["file"], &message["line"]), (&"E0801".into(), &"p.spmd".into(), &1.into()));
    let said = folder.spmdc(&["run", "p.spmd", "--arg", "x=iota", "--arg", "n=0", "--stats", "json", "--bench", "2"]);
    said.expect(0, "2 runs: min", "");
    assert_eq!(said.messages()[0]["run_ms"].as_array().unwrap().len(), 2);
    folder.spmdc(&["run", "p.spmd", "--arg", "x=iota"]).expect(2, "", "1 argument is missing: `n: i32`");
}

/// One kernel does the work of all these statements.
#[test]
fn a_failure_names_the_statement_that_failed() {
    let text = "mesh (X = 2);\nfn main(x: i32[6@X], y: i32[6]) {\n  let good = x // 3;\n  let bad = x // y;\n  good + bad\n}\n";
    let folder = Folder::with(&[("p.spmd", text)]);
    folder.spmdc(&["build", "p.spmd", "-o", "p"]).expect(0, "", "");
    let args = ["--arg", "x=iota", "--arg", "y=[1,2,3,4,0,6]"];
    let ran = folder.spmdc(&[&["run", "p.spmd"], &args[..]].concat());
    let built = Said::of(Command::new(folder.path().join("p")).args(args).current_dir(folder.path()).output().unwrap());
    for said in [ran, built] {
        said.expect(3, "", "p.spmd:4:");
    }
}

#[test]
fn arguments_come_from_safetensors_files() {
    let text =
        "mesh (X = 2);\nfn main(x: f32[3@X, 2], p: { w: f16[2], k: (i64, bool[2]) }) { (x, p.w * 2, p.k.0, p.k.1) }\n";
    let folder = Folder::with(&[("p.spmd", text)]);
    let header = r#"{"x":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},"w":{"dtype":"F16","shape":[2],"data_offsets":[24,28]},
        "k.0":{"dtype":"I64","shape":[],"data_offsets":[28,36]},"k.1":{"dtype":"BOOL","shape":[2],"data_offsets":[36,38]}}"#;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend((0..6u8).flat_map(|x| f32::from(x).to_le_bytes()));
    file.extend([0x00, 0x3c, 0x00, 0x40]);
    file.extend((-7i64).to_le_bytes());
    file.extend([1, 0]);
    fs::write(folder.path().join("all.safetensors"), &file).unwrap();
    folder.spmdc(&["run", "p.spmd", "--arg", "x=@all.safetensors:x", "--arg", "p=@all.safetensors"]).expect(
        0,
        "0: f32[3@X,2]\n[[0. 1.]\n [2. 3.]\n [4. 5.]]\n1: f16[2]\n[2. 4.]\n2: i64\n-7\n3: bool[2]\n[ True False]\n",
        "",
    );
    let x = |value: &str| folder.spmdc(&["run", "p.spmd", "--arg", &format!("x={value}"), "--arg", "p=zeros"]);
    x("@all.safetensors:w").expect(2, "", "`x` has type f32[3@X,2], but `all.safetensors:w` is f16[2]");
    x("@all.safetensors:xx").expect(2, "", "did you mean `x`?");
    file.pop();
    fs::write(folder.path().join("cut.safetensors"), &file).unwrap();
    x("@cut.safetensors:x").expect(2, "", "cannot read `cut.safetensors`: it is truncated");
}

/// Structs of structs, by the names of their leaves; the files are read back by the program itself and by one that wants other names.
#[test]
fn nested_structs_go_into_archives_and_come_back() {
    let ty = "{ w: bf16[3, 2], layer: { w: f8e4m3[2], b: (i64, bool[2]) }, seed: key }";
    let text = format!("mesh (X = 2);\nfn main(p: {ty}, n: i32) {{ {{ p: p, n: n }} }}\n");
    let other = "fn main(p: { w: bf16[3, 2], layer: { wt: f8e4m3[2], b: (i64, bool[2]) } }) { p.w }\n";
    let folder = Folder::with(&[("p.spmd", &text), ("other.spmd", other)]);
    let leaves =
        ["p.w=[[1,2],[3,4],[5,6]]", "p.layer.w=[448,nan]", "p.layer.b.0=-7", "p.layer.b.1=[true,false]", "n=3"];
    let given: Vec<&str> = leaves.iter().chain(&["p.seed=42"]).flat_map(|leaf| ["--arg", leaf]).collect();
    let shown = folder.spmdc(&[&["run", "p.spmd"], &given[..]].concat());
    shown.expect(0, "p.layer.w: f8e4m3[2]\n[448 nan]\n", "");
    for ending in ["npz", "safetensors"] {
        let (part, all) = (format!("p=part.{ending}"), format!("all.{ending}"));
        let out = ["run", "p.spmd", "--out", &part, "--out", &all];
        folder.spmdc(&[&out, &given[..]].concat()).expect(0, "", "");
        for file in [format!("part.{ending}"), all] {
            let p = format!("p=@{file}");
            let again = folder.spmdc(&["run", "p.spmd", "--arg", &p, "--arg", "n=3"]);
            assert_eq!((again.status, &again.out), (0, &shown.out), "{file}: {}", again.err);
            let said = folder.spmdc(&["run", "other.spmd", "--arg", &p]);
            said.expect(2, "", "`p.layer.wt: f8e4m3[2]` is missing: ");
            said.expect(2, "", "layer.w`? it holds");
        }
        let few = "fn main(p: { w: bf16[3, 2] }) { p.w }\n";
        fs::write(folder.path().join("few.spmd"), few).unwrap();
        let said = folder.spmdc(&["run", "few.spmd", "--arg", &format!("p=@part.{ending}")]);
        said.expect(2, "", &format!("`part.{ending}` has arrays that `p` does not have: "));
        folder.spmdc(&["run", "few.spmd", "--arg", &format!("p.w=@part.{ending}:w")]).expect(0, " [5 6]]\n", "");
    }
}

#[test]
fn a_dump_runs_like_its_program() {
    let text = "mesh (X = 2);\nfn main(x: f32[4@X, 3]) -> f32 { sum(x * x) }\n";
    let folder = Folder::with(&[("p.spmd", text)]);
    let whole = folder.spmdc(&["run", "p.spmd", "--arg", "x=iota"]);
    whole.expect(0, "f32\n506.0\n", "");
    for stage in ["typed", "propagated", "partitioned", "optimized"] {
        let dump = folder.spmdc(&["dump", "p.spmd", "--stage", stage]);
        fs::write(folder.path().join("dump.spmd"), &dump.out).unwrap();
        folder.spmdc(&["check", "dump.spmd", "--mesh", "2"]).expect(0, "", "");
        folder.spmdc(&["check", "dump.spmd", "--mesh", "4"]).expect(
            2,
            "",
            "a dump can only run on the mesh that it was made for",
        );
        let again = folder.spmdc(&["run", "dump.spmd", "--arg", "x=iota"]);
        assert_eq!((again.status, &again.out), (0, &whole.out), "{stage}: {}\n{}", again.err, dump.out);
    }
    let json = folder.spmdc(&["dump", "p.spmd", "--stage", "partitioned", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["collectives"][0]["kind"], "all_reduce");
}

#[test]
fn edits_of_complex_powers_name_their_operands() {
    let axes = "mesh (X: explicit = 2);\n";
    let text = format!("{axes}fn main(z: c64[4@X, 4], w: c64[4, 4@X]) {{ z ** w }}\n");
    Folder::with(&[("p.spmd", &text)]).spmdc(&["check", "p.spmd"]).expect(1, "", "`reshard(w, P(X, _))`");
}

#[test]
fn layouts_are_drawn_and_costs_are_planned() {
    let text = "mesh (X = 2);\nfn main(x: f32[4@X, 3]) -> f32 { let total = sum(x); total }\n";
    let folder = Folder::with(&[("p.spmd", text)]);
    folder.spmdc(&["viz", "p.spmd"]).expect(0, "x: f32[4@X,3]\n", "");
    assert!(folder.spmdc(&["viz", "p.spmd", "--ascii"]).out.is_ascii());
    folder.spmdc(&["viz", "p.spmd", "--value", "totl"]).expect(2, "", "did you mean `total`?");
    assert!(!folder.spmdc(&["viz", "p.spmd", "--value", "total"]).out.contains("x: "));
    // A variable that is a result is drawn once.
    let named = Folder::with(&[("p.spmd", "mesh (X = 2);\nfn main(x: f32[4@X]) { let y = 2 * x; y }\n")]);
    let drawn = named.spmdc(&["viz", "p.spmd"]);
    drawn.expect(0, "\ny, result 0: f32[4@X]\n", "");
    assert_eq!(drawn.out.matches("f32[4@X]\n").count(), 2, "{}", drawn.out);
    named.spmdc(&["viz", "p.spmd", "--value", "result 0"]).expect(0, "\nresult 0: f32[4@X]\n", "");
    folder.spmdc(&["plan", "p.spmd"]).expect(0, "all_reduce", "");
}

#[test]
fn words_agree_with_their_numbers_and_reasons_are_sentences() {
    let one = "mesh (X = 1);\nfn main(x: f32[1@X]) { x }\n";
    let whole = "mesh (X = 4);\nfn main(x: f32[128, 128]) { x + 1 }\n";
    let turned = "mesh (X = 2);\nmanual(X) fn f(p: f32[8@X, 4]) -> f32 {\n  \
                  psum(sum(tanh(all_to_all(p * p, X, split=0, concat=1))), X)\n}\n\
                  fn main(p: f32[8@X, 4]) { grad(|p| f(p))(p) }\n";
    let factors = "mesh (X = 8);\nfn main(x: f32[128@X, 128]) { let (w, v) = eigh(x); v }\n";
    let programs = [("one.spmd", one), ("whole.spmd", whole), ("turned.spmd", turned), ("factors.spmd", factors)];
    let folder = Folder::with(&programs);
    folder.spmdc(&["plan", "factors.spmd"]).expect(
        0,
        "v           f32[128,128]        65,536  whole, once for all",
        "",
    );
    folder.spmdc(&["plan", "one.spmd"]).expect(0, "`main` on the mesh (X = 1), 1 device\n", "");
    let message = "1 element does not divide evenly by 2 devices, so blocks have 1, and the last ones fewer";
    folder
        .spmdc(&["check", "one.spmd", "--mesh", "2", "--deny", "uneven-shard", "--error-format", "json"])
        .expect(1, "", message);
    folder.spmdc(&["plan", "whole.spmd"]).expect(0, "whole, once for all", "");
    let of_hosts = folder.spmdc(&["plan", "whole.spmd", "--hosts", "2"]);
    of_hosts.expect(0, "whole, once on each host", "");
    assert!(!of_hosts.out.contains("once for all"), "{}", of_hosts.out);
    folder.spmdc(&["plan", "turned.spmd"]).expect(0, ") needs it\n", "");
}

#[test]
fn a_derivative_is_seen_as_a_program_with_its_costs_and_reasons() {
    let text = "mesh (X = 4);\nfn layer(h, w) {\n  tanh(h @ w)\n}\nfn main(w: f32[16, 16], x: f32[64@X, 16]) {\n  \
                grad(|w| { let mut h = x; for i in 0..5 { h = layer(h, w); } sum(h) })(w)\n}\n";
    let folder = Folder::with(&[("p.spmd", text)]);
    let arguments = ["--arg", "w=normal:1", "--arg", "x=normal:2"];
    let whole = folder.spmdc(&[&["run", "p.spmd"][..], &arguments].concat());
    let dump = folder.spmdc(&["dump", "p.spmd", "--stage", "differentiated"]);
    for line in [
        "stage differentiated;\n",
        "  let (kept_h_2, kept_h): (f32[5,64,16], f32[5,64,16]) = for i in 0..5 collect {  // 6:29\n",
        "    let h_2: f32[64,16] = tanh(v0);  // 3:3, h\n",
        ", d_v0, w);  // 3:8, the gradient of `h`, line 3: `h @ w`\n",
        "  d_w\n}\n",
    ] {
        dump.expect(0, line, "");
    }
    fs::write(folder.path().join("d.spmd"), &dump.out).unwrap();
    let again = folder.spmdc(&[&["run", "d.spmd"][..], &arguments].concat());
    assert_eq!((again.status, &again.out), (0, &whole.out), "{}", again.err);
    folder.spmdc(&["check", "d.spmd"]).expect(0, "ok: ", "");
    folder.spmdc(&["dump", "p.spmd", "--stage", "differentiated", "--format", "json"]).expect(
        2,
        "",
        "cannot be written as JSON",
    );

    let reason = "partial sums of the gradient of `w` (line 3: `h @ w`) over X are combined once, behind the loop";
    let said = folder.spmdc(&["why", "p.spmd:3"]);
    said.expect(
        0,
        "all_reduce over X, 3:8: 1,024 bytes per device\n  partial sums of the gradient of `w` (line 3: `h @ w`)",
        "",
    );
    let plan = folder.spmdc(&["plan", "p.spmd", "--format", "json"]);
    let plan: serde_json::Value = serde_json::from_str(&plan.out).unwrap();
    assert_eq!(plan["collectives"][0]["reason"], reason);
    let value =
        serde_json::json!({"name": "h", "type": "f32[64@X,16]", "bytes": 5120, "trips": 5, "line": 6, "column": 29});
    assert!(plan["kept"].as_array().unwrap().contains(&value), "{plan}");
    assert_eq!(plan["kept_bytes"], 10240);
    assert_eq!(plan["checkpoints"][0]["function"], "layer");
    assert_eq!(plan["checkpoints"][0]["kept_bytes"], 5120);
    folder.spmdc(&["plan", "p.spmd"]).expect(
        0,
        "total: 10.0 KiB kept\n`checkpoint` of `layer` (2:4) would keep 5.0 KiB",
        "",
    );
}

#[test]
fn a_layout_and_a_collective_are_accounted_for() {
    let text = "mesh (X = 2, Y = 4);\nfn main(x: f32[8@X, 16@Y], w: f32[16, 4]) -> f32[8@X, 4] {\n  let h = 2 * x;\n  h @ w\n}\n";
    let folder = Folder::with(&[("p.spmd", text)]);
    let said = folder.spmdc(&["why", "p.spmd:3", "h"]);
    said.expect(0, "`h: f32[8@X,16@Y]`, 3:11", "");
    assert!(
        said.out.contains("Y splits dimension 1\n")
            && said.out.contains("written in the program: parameter `x: f32[8@X,16@Y]`")
    );
    let said = folder.spmdc(&["why", "p.spmd:4"]);
    said.expect(0, "all_reduce over Y, 4:3: 64 bytes per device\n", "");
    said.expect(0, "a device then receives 0 bytes instead of 96", "");
    folder.spmdc(&["why", "p.spmd:3", "g"]).expect(2, "", "line 3 does not define a value `g`");
    folder.spmdc(&["why", "p.spmd:4", "h"]).expect(2, "", "`h` is defined on another line");
    folder.spmdc(&["why", "p.spmd"]).expect(2, "", "does not name a line");
    folder.spmdc(&["why", "p.spmd:1"]).expect(0, "line 1 names no value and needs no collective", "");
}

#[test]
fn commands_that_look_take_what_a_run_takes() {
    let text = "mesh (X = 2);\nfn main(x: f32[4@X]) -> f32 { let total = sum(x); total }\n";
    let folder = Folder::with(&[("p.spmd", text)]);
    let words = ["--arg", "x=-1", "--arg=y=@absent.npy", "--out", "0=y.npy", "--bench", "3", "--stats", "json"];
    for command in [&["plan", "p.spmd"][..], &["viz", "p.spmd"], &["why", "p.spmd:2", "total"]] {
        let more = ["--timeout", "5", "--workers", "2", "--memory-limit", "1G"];
        let said = folder.spmdc(&[command, &words, &more].concat());
        said.expect(0, "", "");
        assert_eq!(said.out, folder.spmdc(command).out, "{command:?}");
    }
    assert!(!folder.path().join("y.npy").exists());
    let help = folder.spmdc(&["why", "--help"]).out;
    assert!(help.contains("<PROG:LINE>") && !help.contains("<PROG>"), "{help}");
}

#[test]
fn a_way_is_shown_once() {
    let text = "mesh (X = 2);\nfn main(x: f32[4@X, 3]) {\n  let a = 2 * x; let b = a + 1; let c = b * b;\n  c\n}\n";
    let folder = Folder::with(&[("p.spmd", text)]);
    let said = folder.spmdc(&["why", "p.spmd:3"]);
    said.expect(0, "as shown for `b: f32[4@X,3]`", "");
    assert_eq!(said.out.matches("written in the program: parameter").count(), 1, "{}", said.out);
    let said = folder.spmdc(&["why", "p.spmd:3", "d"]);
    said.expect(2, "", "this line defines `a: f32[4@X,3]`, `b: f32[4@X,3]`, `c: f32[4@X,3]`");
}

#[test]
fn a_right_program_is_said_to_be_right() {
    let text = "mesh (X = 2);\nfn main(x: f32[512@X, 3]) {\n  let s = sum(x, axis=0);\n  s\n}\n";
    let folder = Folder::with(&[("p.spmd", text), ("q.spmd", "fn main() { 1 }\n")]);
    assert_eq!(folder.spmdc(&["check", "p.spmd"]).out, "ok: 2 values, 1 collective, 12 bytes received\n");
    assert_eq!(folder.spmdc(&["check", "q.spmd"]).out, "ok: 0 values, no collectives\n");
    for quiet in ["--quiet", "-q"] {
        let said = folder.spmdc(&["check", "p.spmd", quiet]);
        assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (0, "", ""));
    }
}

#[test]
fn programs_come_from_standard_input_and_go_to_standard_output() {
    let text = "fn main(x: f32[2]) { 3 * x }\n";
    let folder = Folder::with(&[("lib.spmd", "\u{feff}fn f(x) { 3 * x }\n")]);
    let run = ["run", "-", "--arg", "x=iota"];
    folder.spmdc_reading(&run, text).expect(0, "f32[2]\n[0. 3.]\n", "");
    folder.spmdc_reading(&run, &format!("\u{feff}{text}")).expect(0, "[0. 3.]", "");
    let importing = "import \"lib.spmd\" as lib;\nfn main(x: f32[2]) { lib.f(x) }\n";
    folder.spmdc_reading(&run, importing).expect(0, "[0. 3.]", "");
    folder.spmdc_reading(&["why", "--", "-:1", "x"], text).expect(0, "`x: f32[2]`", "");
    folder.spmdc_reading(&["check", "-"], "fn main() { y }\n").expect(1, "", "<stdin>:1:13");
    folder.spmdc_reading(&["build", "-", "-o", "-", "--emit", "clif"], text).expect(0, "; kernel 0: ", "");
    folder.spmdc_reading(&["build", "-"], text).expect(2, "", "write -o FILE");
    folder.spmdc_reading(&["build", "-", "-o", "-", "--emit", "lib"], text).expect(2, "", "standard output");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_plan_fits_the_terminal_and_says_what_its_numbers_are() {
    let text = "
        mesh (X = 2, Y = 4);
        fn main(a_rather_long_name_of_a_parameter: f32[64@X, 32@Y], w: f32[32@Y, 48], c: f32[1000]) {
          (a_rather_long_name_of_a_parameter @ w, c * 2)
        }";
    let folder = Folder::with(&[("p.spmd", text)]);
    for columns in [None, Some("80")] {
        let mut command = spmdc();
        command.args(["plan", "p.spmd"]).current_dir(folder.path()).env_remove("COLUMNS");
        let said = Said::of(command.envs(columns.map(|columns| ("COLUMNS", columns))).output().unwrap());
        for words in [
            "4 blocks, 2 copies each",
            "8 blocks",
            "8 partial sums",
            "whole, 8 copies",
            "6,144",
            "    the product sums over a dimension that is split over Y\n",
            "total: 9.0 KiB received in 1 collective\n",
        ] {
            said.expect(0, words, "");
        }
        let width = columns.map_or(100, |columns| columns.parse().unwrap());
        assert!(said.out.lines().all(|line| line.chars().count() <= width), "{}", said.out);
    }
}

#[test]
fn hosts_and_their_costs_are_seen() {
    let text = "mesh (X = 2, Y = 4);\nfn main(a: f32[64@X, 8], b: f32[64@Y, 8]) {\n  a + b\n}\n";
    let folder =
        Folder::with(&[("p.spmd", text), ("q.spmd", "mesh (X = 2);\nfn main(x: f32[64@X]) -> f32 { sum(x) }\n")]);
    let tuned = folder.spmdc(&["tune"]);
    tuned.expect(0, "`machine.json` is written", "");
    assert!(tuned.out.contains("inside a process: ") && tuned.out.contains("assumed"), "{}", tuned.out);
    folder.spmdc(&["plan", "p.spmd", "--hosts", "2"]).expect(0, "by a host", "");
    folder.spmdc(&["plan", "q.spmd", "--hosts", "2", "--machine", "machine.json"]).expect(
        0,
        "hosts: 2, with about 8 bytes each",
        "",
    );
    let json = folder.spmdc(&["plan", "q.spmd", "--hosts", "a,b", "--format", "json"]);
    json.expect(0, "\"received\":4,\"received_by_host\":4,", "");
    json.expect(0, "\"hosts\":2,\"message_bytes_per_host\":8}", "");
    let none = folder.spmdc(&["plan", "q.spmd", "--format", "json"]);
    assert!(!none.out.contains("host"), "{}", none.out);
    let reason = folder.spmdc(&["why", "p.spmd:3", "--hosts", "2"]);
    reason.expect(0, "inside each host", "");
    assert!(reason.out.replace("\n  ", " ").contains("a host receives 0 bytes from others"), "{}", reason.out);
    folder.spmdc(&["why", "q.spmd:2", "--hosts", "2"]).expect(0, "4 bytes to a host from others", "");
    // The layout that is chosen runs, and the files say what is wrong with them.
    folder.spmdc(&["run", "p.spmd", "--hosts", "2", "--arg", "a=ones", "--arg", "b=ones"]).expect(0, "2", "");
    folder.spmdc(&["dump", "p.spmd", "--hosts", "2"]).expect(0, "f32[64@X,8]", "");
    folder.spmdc(&["check", "p.spmd", "--hosts", "3"]).expect(2, "", "cannot be divided equally among 3 hosts");
    folder.spmdc(&["check", "p.spmd", "--hosts", "0"]).expect(2, "", "there is at least one host");
    folder.spmdc(&["check", "p.spmd", "--machine", "p.spmd"]).expect(2, "", "malformed machine file `p.spmd`");
    folder.spmdc(&["check", "p.spmd", "--machine", "absent"]).expect(2, "", "cannot read the machine file `absent`");
    folder.spmdc(&["tune", "-o", "absent/machine.json"]).expect(2, "", "E0704");
}

#[test]
fn axes_of_one_device_cost_nothing() {
    let text = "
        fn main(p: f32[128@X, 3], mass: f32[128@X]) -> f32[128@X, 3] {
          let d = p[None, :, :] - p[:, None, :];
          let w = mass[None, :] / (sum(d * d, axis=-1) + 1e-3);
          sum(d * w[:, :, None], axis=1)
        }";
    let folder =
        Folder::with(&[("split.spmd", &format!("mesh (X = 8);{text}")), ("whole.spmd", &text.replace("@X", ""))]);
    let split = folder.spmdc(&["dump", "split.spmd", "--mesh", "1", "--stage", "clif"]);
    let whole = folder.spmdc(&["dump", "whole.spmd", "--stage", "clif"]);
    split.expect(0, "; kernel 0", "");
    assert!(split.out == whole.out, "{}\n{}", split.out, whole.out);
}

#[test]
fn a_built_program_needs_nothing_else() {
    let text = "mesh (X = 2, Y = 3);\nfn main(x: f32[5@X, 7@Y]) -> f32[5@X] { sum(exp(x / 8.0), axis=1) }\n";
    let folder = Folder::with(&[("p.spmd", text)]);
    folder.spmdc(&["build", "p.spmd", "-o", "program"]).expect(0, "", "");
    let executable = folder.path().join("program");
    let run = |words: &[&str]| Said::of(Command::new(&executable).args(words).env_clear().output().unwrap());
    let expected = folder.spmdc(&["run", "p.spmd", "--arg", "x=iota"]).out;
    let built = run(&["--arg", "x=iota"]);
    assert_eq!((built.status, built.out), (0, expected), "{}", built.err);
    run(&["--help"]).expect(0, "x: f32[5@X,7@Y]", "");
    run(&["--arg", "x=[1]"]).expect(2, "", "`x` has type f32[5@X,7@Y], but `[1]` is f32[1]");
    let said = spmdc()
        .args(["build", "p.spmd", "-o", "other"])
        .current_dir(folder.path())
        .env("CC", "no-such-compiler")
        .output();
    Said::of(said.unwrap()).expect(2, "", "the linker `no-such-compiler` could not be started");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left behind");
}

/// Whether there is a C compiler; without one, executables and libraries cannot be tried.
fn has_cc(test: &str) -> bool {
    let found = Command::new("cc").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("{test}: skipped, as there is no `cc`");
    }
    found
}

#[test]
fn a_library_is_called_from_c() {
    if !has_cc("a_library_is_called_from_c") {
        return;
    }
    let layer = "
        mesh (X = 2, Y = 3);
        type Weights = { w: f32[3], bias: f32 };
        fn main(x: f32[5@X, 3], float: Weights, n: i32) -> (f32[5@X], bool) {
          let y = x @ float.w + float.bias;
          (y[n] + y, y[n] > 400)
        }";
    let scale = "fn main(x: f16[2], y: f8e4m3[2]) -> (f16[2], f8e4m3[2]) { (2 * x, 2 * y) }";
    let caller = r#"
        #include "layer.h"
        #include "scale.h"
        #include <stdio.h>
        int main(void) {
            float x[15], w[3] = {1, 10, 100}, bias = 0.5f, y[5];
            bool large;
            for (int i = 0; i < 15; i++) x[i] = i;
            for (int32_t n = 0; n < 3; n++) {
                if (layer(x, w, &bias, &n, y, &large)) return 1;
                printf("%g %g %d\n", y[0], y[4], large);
            }
            int32_t beyond = 5;
            printf("%d ", layer(x, w, &bias, &beyond, y, &large));
            printf("%s", spmd_error());
            const uint16_t numbers[2] = {0x3c00, 0x4000};
            const uint8_t small[2] = {0x38, 0x7e};
            uint16_t doubled[2];
            uint8_t twice[2];
            int status = scale(numbers, small, doubled, twice);
            printf("%d %x %x %x %x %s\n", status, doubled[0], doubled[1], twice[0], twice[1], spmd_error());
        }"#;
    let folder = Folder::with(&[("layer.spmd", layer), ("scale.spmd", scale), ("main.c", caller)]);
    folder.spmdc(&["build", "layer.spmd", "--emit", "lib", "-o", "liblayer.a"]).expect(0, "", "");
    folder.spmdc(&["build", "scale.spmd", "--emit", "lib"]).expect(0, "", "");
    fs::rename(folder.path().join("liblayer.h"), folder.path().join("layer.h")).unwrap();
    let words = ["-Wall", "-Werror", "-o", "main", "main.c", "liblayer.a", "scale.a", "-lpthread", "-ldl", "-lm"];
    Said::of(Command::new("cc").args(words).current_dir(folder.path()).output().unwrap()).expect(0, "", "");
    let said = Said::of(Command::new(folder.path().join("main")).output().unwrap());
    let header = fs::read_to_string(folder.path().join("layer.h")).unwrap();
    assert!(header.contains(" *   float_w: f32[3]\n"), "{header}");
    said.expect(0, "421 1753 0\n754 2086 1\n1087 2419 1\n3 error[E0801]: ", "");
    said.expect(0, "layer.spmd:6:14\n", "");
    said.expect(0, "\n0 4000 4400 40 7f \n", "");
}

#[test]
fn what_is_built_can_be_an_object_or_text() {
    let folder = Folder::with(&[("p.spmd", "fn main(x: f32[64]) -> f32[64] { 2 * x + 1 }\n")]);
    let built = |words: &[&str], name: &str| {
        folder.spmdc(&[&["build", "p.spmd"], words].concat()).expect(0, "", "");
        fs::read(folder.path().join(name)).unwrap()
    };
    let object = built(&["--emit", "obj"], "p.o");
    for symbol in ["spmd_call", "spmd_kernel_0"] {
        assert!(object.windows(symbol.len()).any(|bytes| bytes == symbol.as_bytes()), "{symbol}");
    }
    let clif = String::from_utf8(built(&["--emit", "clif", "-o", "p.txt"], "p.txt")).unwrap();
    assert!(clif.starts_with("; kernel 0: ") && clif.contains("fmul"), "{clif}");
    let asm = |cpu: &str| String::from_utf8(built(&["--emit", "asm", "--cpu", cpu], "p.s")).unwrap();
    if cfg!(target_arch = "x86_64") {
        let (floor, every, here) = (asm("x86-64-v3"), asm("x86-64"), asm("native"));
        assert!(floor.contains("vmulps") && here.contains("vmulps"), "{floor}");
        assert!(!every.contains("vmulps") && every.contains("mulps"), "{every}");
        assert_eq!(built(&["--emit", "asm"], "p.s"), floor.into_bytes());
    } else {
        assert!(asm("native").contains("fmul"));
    }
    folder.spmdc(&["build", "p.spmd", "--cpu", "z80"]).expect(2, "", "possible values");
}

#[test]
fn results_have_the_same_bits_for_every_processor() {
    if !has_cc("results_have_the_same_bits_for_every_processor") {
        return;
    }
    let text = "
        fn main(x: f32[300], y: f64[70]) {
          let a = tanh(sin(x) * 3.0 + 0.1) / (1 + exp(-x));
          (a, sum(a * x), pow(log(y + 1), 1.7) + y, max(erf(y)), f16(x * 9) * 1.1, floor(x) % 3.0, i32(9 * x) // 7)
        }";
    let folder = Folder::with(&[("p.spmd", text)]);
    let words = ["--arg", "x=normal:3", "--arg", "y=uniform:4"];
    let here = folder.spmdc(&[&["run", "p.spmd"], &words[..], &["--out", "here.npz"]].concat());
    here.expect(0, "", "");
    let expected = fs::read(folder.path().join("here.npz")).unwrap();
    let levels = if cfg!(target_arch = "x86_64") { &["native", "x86-64-v3", "x86-64"][..] } else { &["native"] };
    for cpu in levels {
        folder.spmdc(&["build", "p.spmd", "-o", "program", "--cpu", cpu]).expect(0, "", "");
        let program = Command::new(folder.path().join("program"))
            .args(words)
            .args(["--out", "there.npz"])
            .current_dir(folder.path())
            .output();
        Said::of(program.unwrap()).expect(0, "", "");
        assert!(fs::read(folder.path().join("there.npz")).unwrap() == expected, "{cpu}");
    }
}

#[test]
fn a_plan_of_memory_is_replayed_on_request() {
    let text =
        "mesh (X = 4);\nfn main(x: f32[400@X, 64]) { let mut u = x; for i in 0..3 { u = u + roll(u, 1); } sum(u) }\n";
    let folder = Folder::with(&[("p.spmd", text)]);
    let plain = folder.spmdc(&["run", "p.spmd", "--arg", "x=ones"]);
    for more in [&["--verify"][..], &["--verify", "--machine", "tiny"]] {
        let said = folder.spmdc(&[&["run", "p.spmd", "--arg", "x=ones"], more].concat());
        assert_eq!((said.status, &said.out), (0, &plain.out), "{}", said.err);
    }
    let folder = Folder::with(&[("large.spmd", "fn main(x: f32[1048576, 1048576]) { x + 1 }\n")]);
    let said = folder.spmdc(&["plan", "large.spmd", "--verify"]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(said.err.contains("`--verify` checked only a part of the memory plan"), "{}", said.err);
}

/// Where the system gives no more memory, a command ends with an error and not by a signal.
#[test]
#[cfg(target_os = "linux")]
fn too_little_memory_is_an_error() {
    let lines: String = (0..40_000).map(|i| format!("  let v{} = v{i} + 1.5;\n", i + 1)).collect();
    let text = format!("fn main(x: f32[4]) {{\n  let v0 = x;\n{lines}  v40000\n}}\n");
    let folder = Folder::with(&[("p.spmd", &text)]);
    let script = "ulimit -c 0; ulimit -v 150000; exec \"$0\" check p.spmd";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, SPMDC]).current_dir(folder.path());
    Said::of(shell.output().unwrap()).expect(3, "", "error[E0803]: out of memory");
}

/// A layer and its gradients: three products, two of which read each of `x` and `w`. All sums are exact.
#[test]
fn products_of_bf16_are_native_by_an_option() {
    let layer = "mesh (X = 2);\nfn main(n: i32[96@X, 96], m: i32[96, 96]) {\n  let x = bf16(n % 8);\n  let w = bf16(m % 4);\n  \
                 grad(|x, w| sum(f32(x @ w)), argnums=(0, 1))(x, w)\n}\n";
    let products = "fn main(x: bf16[96, 96], y: bf16[96, 96]) { (x @ y, y @ x) }\n";
    let folder = Folder::with(&[("layer.spmd", layer), ("products.spmd", products)]);
    let results = |words: &[&str]| folder.spmdc(&[&["run", "layer.spmd"], words].concat()).out.clone();
    let [plain, native] =
        [&[][..], &["--native-bf16"]].map(|words| results(&[&["--arg", "n=iota", "--arg", "m=iota"], words].concat()));
    assert!(plain == native && plain.contains("bf16[96,96]"), "{plain}\n{native}");
    let line = "native bf16: 2 products, in which subnormal numbers count as zeros\n";
    let plan = folder.spmdc(&["plan", "products.spmd", "--native-bf16"]);
    plan.expect(0, line, "");
    let is_widened = |line: &str| line.contains("cast") && line.contains("f32[");
    assert!(!plan.out.lines().any(is_widened), "the operands are not stored in f32: {}", plan.out);
    let plan = folder.spmdc(&["plan", "products.spmd", "--native-bf16", "--format", "json"]);
    plan.expect(0, "\"native_bf16_products\":2", "");
    assert!(!folder.spmdc(&["plan", "products.spmd"]).out.contains("native"));
}
