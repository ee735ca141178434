//! `--plot`: pictures of results.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::folder::{Folder, SPMDC, Said, starter};

const RESULTS: &str = "fn main() {
  {
    loss: 1.0 / (arange(50) + 1),
    u: outer(arange(4), arange(6)),
    xy: (arange(9) * 2, arange(9)),
    both: { width: arange(5) > 2, height: f16(arange(5)) },
    steps: 7,
    w: zeros(f32[2, 2, 2]),
  }
}
";

/// The picture of a program.
fn drawn(program: &str, words: &[&str], file: &str) -> String {
    let folder = Folder::with(&[("p.spmd", program)]);
    folder.spmdc(&[&["run", "p.spmd"], words].concat()).expect(0, "", "");
    fs::read_to_string(folder.path().join(file)).unwrap()
}

/// The lines of text in a picture that are not numbers.
fn titles(picture: &str) -> Vec<&str> {
    let is_text = |line: &&str| !line.starts_with('<') && line.starts_with(|c: char| c.is_ascii_alphabetic());
    picture.lines().filter(is_text).collect()
}

fn count(picture: &str, tag: &str) -> usize {
    picture.matches(&format!("<{tag} ")).count()
}

#[test]
fn each_rank_has_its_drawing() {
    let line = drawn("fn main() { arange(100) ** 2 }", &["--plot", "y.svg"], "y.svg");
    assert!(line.contains("\n10000\n") && line.contains("#1F77B4"), "{line}");
    assert_eq!((count(&line, "circle"), count(&line, "path"), titles(&line).len()), (0, 0, 0));
    let image = drawn("fn main() { outer(arange(4), arange(6)) }", &["--plot=y.svg"], "y.svg");
    assert!(image.contains("<path stroke=\"#440154\" d=\"M0 0h6M0 1h1M0 2h1M0 3h1\"/>"), "{image}");
    let points = drawn("fn main() { (arange(9), arange(9) * 3) }", &["--plot", "y.svg"], "y.svg");
    assert_eq!((points.matches("h0").count(), titles(&points).len()), (9, 0));
    let scalar = drawn("fn main() { 7 }", &["--plot", "y.svg"], "y.svg");
    assert_eq!(count(&scalar, "circle"), 1);
}

#[test]
fn a_result_is_chosen_by_its_name() {
    let of = |name: &str| drawn(RESULTS, &["--plot", &format!("{name}=y.svg")], "y.svg");
    assert_eq!(titles(&of("loss")), ["loss"]);
    assert_eq!(titles(&of("xy.1")), ["xy.1"]);
    assert_eq!(titles(&of("both")), ["both", "height", "width"]);
    assert_eq!(of("xy").matches("h0").count(), 9);
    // The other results have a panel each, but a scalar and an array of rank 3 have none.
    let all = drawn(RESULTS, &["--plot", "y.svg"], "y.svg");
    assert_eq!(titles(&all), ["loss", "u", "xy", "both", "height", "width"]);
}

#[test]
fn pictures_do_not_change_other_output() {
    let folder = Folder::with(&[("p.spmd", RESULTS)]);
    let plain = folder.spmdc(&["run", "p.spmd"]);
    let said = folder.spmdc(&["run", "p.spmd", "--plot", "a.png", "--plot", "xy=b.svg"]);
    assert_eq!((said.status, &said.out, said.err.as_str()), (0, &plain.out, ""));
    assert!(fs::read(folder.path().join("a.png")).unwrap().starts_with(b"\x89PNG"));
    let written = folder.spmdc(&["run", "p.spmd", "--out", "loss=y.npy", "--plot", "loss=c.svg"]);
    assert_eq!((written.status, written.out.as_str()), (0, ""));
    let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a.png", "b.svg", "c.svg", "p.spmd", "y.npy"]);
}

#[test]
fn a_picture_is_the_same_on_every_mesh() {
    let program = "mesh (X = 1, Y = 1);\nfn main() { normal(key(0), f32[50@X, 30@Y]) }";
    let on = |mesh: &str| drawn(program, &["--mesh", mesh, "--plot", "y.svg"], "y.svg");
    assert_eq!(on("1x1"), on("4x3"));
}

#[test]
fn undrawable_results_are_refused_before_the_run() {
    for (result, message, help) in [
        ("zeros(f32[2, 2, 2])", "`f32[2,2,2]` has rank 3", "such as `x[0]`"),
        ("c64(arange(4))", "`c64[4]` is complex", "return `abs(z)`"),
        ("key(0)", "`key` is a key of random numbers", "return numbers"),
        ("zeros(f32[0])", "`f32[0]` has no elements", "return an array with elements"),
        ("print(1)", "the program has no result to draw", "end `main` with the value"),
    ] {
        let program = format!("fn main() {{ print(\"runs\"); {result} }}");
        let folder = Folder::with(&[("p.spmd", &program)]);
        let said = folder.spmdc(&["run", "p.spmd", "--plot", "y.svg"]);
        said.expect(2, "", message);
        assert!(said.err.contains(help) && !said.out.contains("runs"), "{}", said.err);
    }
    let folder = Folder::with(&[("p.spmd", RESULTS)]);
    for (words, message) in [
        (&["--plot", "los=y.svg"][..], "did you mean `loss`?"),
        (&["--plot", "w=y.svg"], "`w` cannot be drawn: `f32[2,2,2]` has rank 3"),
        (&["--plot", "y.pdf"], "`--plot y.pdf` does not name a .svg or .png file"),
        (&["--plot", "u=y.svg", "--plot", "loss=./y.svg"], "would be written twice"),
        (&["--plot", "no/y.svg"], "cannot write `no/y.svg`: No such file or directory"),
    ] {
        folder.spmdc(&[&["run", "p.spmd"], words].concat()).expect(2, "", message);
    }
    let many = format!("fn main() {{ ({}) }}", ["arange(2)"; 26].join(", "));
    let folder = Folder::with(&[("p.spmd", &many)]);
    folder.spmdc(&["run", "p.spmd", "--plot", "y.svg"]).expect(2, "", "26 parts, but a picture has at most 25");
}

#[test]
fn elements_that_are_not_finite_are_gaps() {
    let program = "fn main(x: f32[2]) { (log(x), log(x[:1] - 1)) }";
    let folder = Folder::with(&[("p.spmd", program)]);
    let run = |plot: &str| folder.spmdc(&["run", "p.spmd", "--arg", "x=[0.5,-1]", "--plot", plot]);
    run("0=y.svg").expect(0, "", "");
    run("y.svg").expect(0, "", "");
    let picture = fs::read_to_string(folder.path().join("y.svg")).unwrap();
    assert!(picture.contains("\n1 (no finite elements)\n"), "{picture}");
    fs::remove_file(folder.path().join("y.svg")).unwrap();
    let nothing = Folder::with(&[("p.spmd", "fn main(x: f32[2]) { log(x) }")]);
    let said = nothing.spmdc(&["run", "p.spmd", "--arg", "x=[-1,-2]", "--plot", "y.svg"]);
    said.expect(3, "", "cannot draw `y.svg`: there are no finite elements");
    assert!(!nothing.path().join("y.svg").exists());
}

#[test]
fn a_link_to_a_picture_stays() {
    let folder = Folder::with(&[("p.spmd", "fn main() { arange(3) }"), ("there/old", "")]);
    symlink("there/old", folder.path().join("y.svg")).unwrap();
    folder.spmdc(&["run", "p.spmd", "--plot", "y.svg"]).expect(0, "", "");
    assert!(folder.path().join("y.svg").is_symlink());
    assert!(fs::read_to_string(folder.path().join("there/old")).unwrap().starts_with("<svg"));
}

#[test]
fn other_commands_take_the_option() {
    let folder = Folder::with(&[("p.spmd", "fn main() { arange(3) }")]);
    folder.spmdc(&["plan", "p.spmd", "--plot", "y.svg"]).expect(0, "", "");
    assert!(!folder.path().join("y.svg").exists());
    folder.spmdc(&["report", "p.spmd", "-o", "r.html", "--plot", "y.svg"]).expect(0, "", "");
    assert!(folder.path().join("y.svg").exists());
    // An executable has no code that draws.
    folder.spmdc(&["build", "p.spmd", "-o", "p"]).expect(0, "", "");
    let run = |word: &str| Said::of(starter(folder.path().join("p")).arg(word).output().unwrap());
    run("--plot=y.svg").expect(2, "", "unknown option `--plot`");
    assert!(!run("--help").out.contains("--plot"));
    assert!(Said::of(starter(SPMDC).args(["run", "--help"]).output().unwrap()).out.contains("--plot"));
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The text between the numbers of a picture, and the numbers.
fn parts(picture: &str) -> (Vec<&str>, Vec<f64>) {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let between = picture.split(is_number).filter(|text| !text.is_empty()).collect();
    let numbers = picture.split(|c| !is_number(c)).filter_map(|text| text.parse().ok()).collect();
    (between, numbers)
}

#[test]
fn the_pictures_of_the_examples_are_by_their_commands() {
    let page = fs::read_to_string(root().join("examples/README.md")).unwrap();
    let commands: Vec<&str> = page.lines().filter(|line| line.starts_with("spmdc run ")).collect();
    assert_eq!(commands.len(), 3, "{commands:?}");
    let folder = tempfile::tempdir().unwrap();
    for command in commands {
        let (command, file) = command.rsplit_once("examples/pictures/").unwrap();
        let new = folder.path().join(file);
        let command = format!("{command}{}", new.display());
        let said = starter(SPMDC).args(command.split(' ').skip(1)).current_dir(root()).output().unwrap();
        assert!(said.status.success(), "{command}: {}", String::from_utf8_lossy(&said.stderr));
        let (drawn, kept) = (fs::read_to_string(new).unwrap(), root().join("examples/pictures").join(file));
        let kept = fs::read_to_string(&kept).unwrap_or_else(|error| panic!("{}: {error}", kept.display()));
        let ((drawn, places), (kept, known)) = (parts(&drawn), parts(&kept));
        assert!(drawn == kept && places.len() == known.len(), "{command} draws another picture");
        // Products of matrices differ in their last bits between processors, and so by a unit in the picture, a quarter of a point.
        let differs = places.iter().zip(&known).find(|(place, known)| (**place - **known).abs() > 1.0);
        assert_eq!(differs, None, "{command} draws another picture");
        assert!(page.contains(&format!("](pictures/{file})")), "the page does not show {file}");
    }
}

#[test]
fn the_page_shows_what_a_program_draws_in_the_terminal() {
    let page = fs::read_to_string(root().join("docs/language/command.md")).unwrap();
    let (_, section) = page.split_once("\n## Pictures in the terminal\n").unwrap();
    let blocks: Vec<&str> = section.split("```").skip(1).step_by(2).take(2).collect();
    let folder = Folder::with(&[("p.spmd", blocks[0].strip_prefix("spmd\n").unwrap())]);
    assert_eq!(folder.spmdc(&["run", "p.spmd"]).out, blocks[1].strip_prefix('\n').unwrap());
    // An executable draws them as well.
    folder.spmdc(&["build", "p.spmd", "-o", "p"]).expect(0, "", "");
    let said = Said::of(starter(folder.path().join("p")).output().unwrap());
    assert_eq!(said.out, blocks[1].strip_prefix('\n').unwrap());
}
