//! Small programs and their typed form, and the arithmetic of their sizes.

#![allow(clippy::unwrap_used)]

use spmdc_check::sizes::{Bindings, Size, SizeError, arithmetic};
use spmdc_check::sources::{NoSources, Source, SourceSet, Sources};
use spmdc_check::{CheckOptions, MeshOverride, check};
use spmdc_grammar::ast::InfixOp;
use spmdc_inspect::print;

fn options() -> CheckOptions {
    CheckOptions::default()
}

/// The program's statements without header and braces, trimmed.
fn typed(text: &str) -> String {
    let (set, diagnostics) = SourceSet::load("test.spmd", text, &NoSources);
    assert!(diagnostics.is_empty(), "{diagnostics:#?}");
    match check(&set, &options()) {
        Ok((module, _)) => print::module(&module),
        Err(diagnostics) => panic!("{diagnostics:#?}"),
    }
}

/// `CODE line` for each error.
fn errors_with(text: &str, options: &CheckOptions) -> Vec<String> {
    let (set, mut diagnostics) = SourceSet::load("test.spmd", text, &NoSources);
    if diagnostics.is_empty() {
        diagnostics = check(&set, options).err().unwrap_or_default();
    }
    let line = |offset: u32| spmdc_grammar::span::line_column(text, offset as usize).0;
    diagnostics.iter().map(|d| format!("{} {}: {}", d.code, line(d.span.start), d.message)).collect()
}

#[track_caller]
fn assert_errors(text: &str, expected: &[&str]) {
    let found = errors_with(text, &options());
    let fits =
        found.len() == expected.len() && found.iter().zip(expected).all(|(found, wanted)| found.starts_with(wanted));
    assert!(fits, "found {found:#?}, expected {expected:#?}");
}

#[test]
fn calls_are_expanded() {
    let text = "
        fn twice(x) { let y = 2 * x; y }
        fn main(x: f32[4, 8]) -> f32[4, 8] { twice(sin(x)) }";
    assert_eq!(
        typed(text),
        "stage typed;
fn main(x: f32[4,8]) -> f32[4,8] {
  let v0: f32[4,8] = sin(x);
  let v1: f32 = f32(2.0);
  let y: f32[4,8] = v1 * v0;
  y
}
"
    );
}

#[test]
fn unknown_names_are_all_reported() {
    let text = "
        fn helper(x: f32[4]) -> f32[4] { sine(x) }
        fn main(x: f32[4]) -> f32[4] { let value = x; valeu }";
    assert_errors(text, &["E0101 2", "E0101 3"]);
}

#[test]
fn structs_are_their_leaves() {
    let text = "
        type Layer<I> = { w: f32[I], b: f32 };
        fn apply<I>(p: Layer<I>, x: f32[I]) -> f32[I] { p.w * x + p.b }
        fn main(p: Layer<3>, t: (f32[3], i32)) -> { y: f32[3], n: i32 } { { y: apply(p, t.0), n: t.1 } }";
    let printed = typed(text);
    assert!(
        printed.contains("fn main(p: { w: f32[3], b: f32 }, t: (f32[3], i32)) -> { y: f32[3], n: i32 } {"),
        "{printed}"
    );
    assert!(printed.contains("= p.w * t.0;"), "{printed}");
    assert!(printed.contains("{ y: v1, n: t.1 }"), "{printed}");
}

#[test]
fn literals_in_carried_variables_adapt() {
    let text = "
        fn main(x: f64[4]) -> (f64[4], i32) {
          let mut total = 0.0;
          let mut n = 0;
          let mut y = x;
          for i in 0..10 { y = y * y; total = total + y; n += i; }
          (total, n)
        }";
    assert_errors(text, &["E0212 6"]);
    let text = text.replace("total = total + y;", "y = y + total; total = 2.5;").replace("(total, n)", "(y, n)");
    let printed = typed(&text);
    assert!(printed.contains("let mut total: f32 = "), "{printed}");
    assert!(printed.contains("for i in 0..10 {"), "{printed}");
}

#[test]
fn one_mistake_does_not_hide_another() {
    let text = "
        fn main(x: f32[4], y: f32[5]) -> f32[4] {
          let a = x + y;
          let b = a * 2;
          let c = x + sin;
          let d: f32[3] = x;
          b + c + d
        }";
    assert_errors(text, &["E0204 3", "E0210 5", "E0203 6"]);
}

#[test]
fn size_parameters_are_inferred_and_checked() {
    let text = "
        fn f<N, M>(a: f32[N, 2 * M], b: f32[M]) -> f32[N, M] { N * b }
        fn main(a: f32[4, 6], b: f32[3]) -> f32[4, 3] { f(a, b) }";
    assert_errors(text, &["E0203 2: the result of `f` is declared `f32[4,3]`, but the value is `f32[3]`"]);
    assert_errors("fn f<N>() -> f32[N] { 1.0 } fn main() -> f32 { f() }", &["E0209 1"]);
    assert_errors("const N = 10; fn main(x: f32[N / 4]) -> f32 { 1.0 }", &["E0208 1"]);
}

#[test]
fn branches_join() {
    let text = "
        fn main(c: bool, x: f32[4]) -> (f32[4], f32) {
          let mut y = x;
          let z = if c { y = y + 1; 2 } else { 0.5 };
          (y, z)
        }";
    let printed = typed(text);
    assert!(printed.contains("let (z, y): (f32, f32[4]) = if c {"), "{printed}");
    assert_errors("fn main(c: bool, x: f32[4]) -> f32 { if x { 1.0 } else { 2.0 } }", &["E0214 1"]);
    assert_errors("fn main(c: bool, x: f32[4]) -> f32[4] { if c { x } else { 2.0 } }", &["E0213 1"]);
    let text = "
        mesh (X: explicit = 2);
        fn main(x: f32[4@X]) {
          let mut (u, v) = (zeros(f32[4]), ones(f32[4]));
          for i in 0..3 { u += x; v *= x; }
        }";
    assert_errors(
        text,
        &[
            "E0212 5: the type of `u` changes in this loop: it is `f32[4]` before",
            "E0212 5: the type of `v` changes in this loop: it is `f32[4]` before",
        ],
    );
}

#[test]
fn explicit_axes_follow_from_the_operands() {
    let text = "
        mesh (X: explicit = 2, Y: explicit = 4);
        fn main(a: i32[4@X, 1], b: i32[1, 8@Y]) -> i32[4@X, 8@Y] { a + b }";
    let printed = typed(text);
    assert!(printed.contains("let v0: i32[4@X,8@Y] = a + b;"), "{printed}");
    let text = "
        mesh (X: explicit = 2);
        fn main(a: f32[8@X, 6]) -> f32[4, 2, 6] { sin(reshape(a, (4, 2, 6))) }";
    let printed = typed(text);
    assert!(printed.contains(": f32[4@X,2,6] = sin("), "{printed}");
    let text = "
        mesh (data: auto = 2, model: explicit = 4);
        fn main(x: f32[6@data, 8], w: f32[6, 8@model]) -> f32[6, 8@model] { x + w }";
    let printed = typed(text);
    assert!(printed.contains("let v0: f32[6@?,8@(model,?)] = x + w;"), "{printed}");
}

#[test]
fn explicit_axes_that_disagree_are_errors_with_ways_out() {
    let text = "
        mesh (X: explicit = 2, Y: explicit = 4);
        fn main(a: f32[8@X], b: f32[8@Y]) -> f32[8] { a + b }";
    let (set, _) = SourceSet::load("test.spmd", text, &NoSources);
    let diagnostics = check(&set, &options()).unwrap_err();
    assert_eq!(diagnostics.len(), 1, "{diagnostics:#?}");
    let edits: Vec<&str> = diagnostics[0].edits.iter().map(|edit| edit.replacement.as_str()).collect();
    assert_eq!(edits, ["reshard(a, P(Y))", "reshard(b, P(X))"]);
    assert_eq!(diagnostics[0].labels.len(), 2, "{diagnostics:#?}");
    let text = "
        mesh (X: explicit = 2);
        fn main(a: f32[8@X, 16], b: f32[8, 16@X]) -> f32[8, 16] { a + b }";
    assert_errors(text, &["E0302 3"]);
    let text = "
        mesh (X: explicit = 2);
        fn main(a: f32[8@X]) -> f32[8@X] { let b: f32[8@_] = a; b }";
    assert_errors(
        text,
        &["E0305 3: this variable is declared `f32[8@_]`, but on explicit axes the value is `f32[8@X]`"],
    );
    assert_errors("mesh (X = 2); fn main(a: f32[8@X, 8@X]) -> f32[8, 8] { a }", &["E0303 1"]);
    assert_errors("mesh (X = 2); fn main(a: f32[8@Z]) -> f32[8] { a }", &["E0304 1"]);
}

#[test]
fn partial_sums_are_pinned_in_types_that_say_nothing_else() {
    let text = "
        mesh (X = 2, Y = 4);
        fn main(x: f32[8, 8]) { let y: f32[8, 8]{U:Y} = sin(x); let s: f32{U:X} = sum(x); let z: f32[8@?, 8] = x; (y, s, z) }";
    let printed = typed(text);
    assert!(printed.contains("pin(v0, P(?,?,unreduced=Y));"), "{printed}");
    assert!(printed.contains("P(unreduced=X));"), "{printed}");
    assert_eq!(printed.matches("pin(").count(), 3, "{printed}");
}

#[test]
fn annotations_pin_auto_axes() {
    let text = "
        mesh (X = 2, Y = 4);
        fn main(x: f32[8, 8]) -> f32[8@X, 8] { let y: f32[8@?, 8@Y] = sin(x); y }";
    let printed = typed(text);
    assert!(printed.contains("pin(v0, P(?,Y));"), "{printed}");
    assert!(printed.contains("let v1: f32[8@X,8] = pin(y, P(X,_));"), "{printed}");
}

#[test]
fn manual_functions_become_regions() {
    let text = "
        mesh (X = 2, Y = 4);
        manual(X) fn total(x: f32[8@X]) -> f32 { psum(x + axis_index(X), X) }
        fn main(x: f32[8]) -> f32 { total(x) }";
    assert_errors(text, &["E0203 3"]);
    let text = "
        mesh (X = 2);
        manual(X) fn f(x: f32[8@X], y: f32[4]) -> (f32[8@X], f32[4]) { (x * y, psum(x, X)) }
        fn main(x: f32[8], y: f32[4]) -> (f32[8], f32[4]) { f(x, y) }";
    let printed = typed(text);
    let expected = "stage typed;
mesh (X = 2);
manual(X) fn f(x: f32[8@X], y: f32[4@_]) -> (f32[8@X], f32[4@_]) {
  let v0: f32[4]{V:X} = x * y;
  let v1: f32[4] = psum(x, X);
  (v0, v1)
}
fn main(x: f32[8], y: f32[4]) -> (f32[8@X], f32[4@_]) {
  let v0: f32[8@X] = reshard(x, P(X));
  let v1: f32[4@_] = reshard(y, P(_));
  let (v2, v3): (f32[8@X], f32[4@_]) = f(v0, v1);
  (v2, v3)
}
";
    assert_eq!(printed, expected);
}

#[test]
fn manual_mistakes_are_found() {
    let text = "
        mesh (X = 2);
        manual(X) fn f(x: f32[8@X]) -> f32[4] { x }
        fn main(x: f32[8@X]) -> f32[4] { f(x) }";
    assert_errors(text, &["E0501 3"]);
    let text = "
        mesh (X = 2);
        manual(X) fn f(c: bool[2@X], x: f32[8@X]) -> f32[4] {
          let y = x;
          if reshape(c, ()) { psum(y, X) } else { pmax(x, X) * 0 + 1 }
        }
        fn main(c: bool[2], x: f32[8@X]) -> f32[4] { f(c, x) }";
    assert_errors(text, &["E0502 5", "E0502 5"]);
    let text = "
        mesh (X = 4);
        manual(X) fn f(x: f32[10@X]) -> f32[10@X] { 2 * x }
        fn main(x: f32[10]) -> f32[10] { f(x) }";
    assert_errors(text, &["E0503 3"]);
    assert_errors("mesh (X = 2); fn main(x: f32[8@X]) -> f32[8] { psum(x, X) }", &["E0504 1"]);
    let text = "
        mesh (X = 2, Y = 2);
        manual(X) fn f(x: f32[8@X]) -> f32[4] { psum(x, (X, Y)) }
        fn main(x: f32[8]) -> f32[4] { f(x) }";
    assert_errors(text, &["E0506 3"]);
}

#[test]
fn a_loop_whose_condition_varies_makes_its_variables_vary() {
    let text = "
        mesh (X = 2);
        manual(X) fn f(x: i32[2@X]) -> i32 {
          let mut n = 0;
          let limit = reshape(x, ());
          while n < limit { n += 1; }
          n
        }
        fn main(x: i32[2]) -> i32 { f(x) }";
    assert_errors(text, &["E0501 7"]);
    let fixed = text.replace("\n          n\n", "\n          pmax(n, X)\n");
    let printed = typed(&fixed);
    assert!(printed.contains("let mut n: i32{V:X} = "), "{printed}");
}

/// Checks that printing and reading gives the same module.
#[track_caller]
fn assert_round_trip(text: &str) {
    let printed = typed(text);
    assert_eq!(typed(&printed), printed);
    // Later stages have no open dimensions.
    let later = typed(&printed.replace("stage typed;", "stage propagated;"));
    assert!(!later.contains('?'), "{later}");
    assert_eq!(typed(&later), later);
}

#[test]
fn dumps_read_back() {
    assert_round_trip(
        "mesh (X = 2, Y: explicit = 4);
        fn main(c: bool, x: f32[8, 8@Y], p: { w: f64[2], t: (i32, u8[3]) }) -> { a: f32[8, 8], b: (i32, f32[5, 8, 8]) } {
          let mut y = reshard(2 * x, P(X, Y));
          let mut n = 0;
          let mut a = 1;
          while n < p.t.0 { n += 1; (a, n) = (n, a); }
          let ys = for i in 0..5 collect { y = y + f32(i); y };
          let z = if c { n += 3; y } else { print(\"n = {}\", n); 2.5 * y };
          if c { print(\"done\"); }
          { a: z, b: (n + a, ys) }
        }",
    );
    assert_round_trip(
        "mesh (X = 2, Y = 2);
        manual(X) fn f(x: f32[8@X, 6], y: f32[4]) -> (f32[8@X, 6], f32[4]) { (x * pmax(x, X) + axis_index(X), 2 * y) }
        fn main(x: f32[8, 6@Y], y: f32[4]) -> (f32[8, 6], f32[4]) { let (a, b) = f(x, y); f(a, b) }",
    );
}

#[test]
fn elements_are_read_and_assigned() {
    let text = "
        fn main(x: f32[8, 6], i: i32) -> f32[8, 6] {
          let mut u = x;
          u[1:-1, 0] = 1;
          u[i, :] += x[i] * x[-1];
          u[:, ::2] = u[..., 1::2];
          let (a, b) = ([1, 2], x[0:2]);
          u + b[a[0], None]
        }";
    let printed = typed(text);
    assert!(printed.contains("check_index(i, 8)"), "{printed}");
    assert_round_trip(text);
    assert_errors("fn main(x: f32[4]) -> f32 { x[4] }", &["E0401 1"]);
    assert_errors("fn main(x: f32[4]) -> f32[4] { x[::0] }", &["E0402 1"]);
    assert_errors("fn main(x: f32[4], n: i32) -> f32[4] { x[0:n] }", &["E0207 1"]);
    assert_errors("fn main(x: f32[4]) -> f32[4] { let y = x; y[0] = 1.0; y }", &["E0106 1"]);
}

#[test]
fn ambiguous_products_name_the_choices() {
    let text = "
        mesh (X: explicit = 2, Y: explicit = 4);
        fn main(a: f32[8@X, 16@Y], b: f32[16@Y, 8]) -> f32[8@X, 8] { a @ b }";
    let (set, _) = SourceSet::load("test.spmd", text, &NoSources);
    let diagnostics = check(&set, &options()).unwrap_err();
    assert_eq!(diagnostics[0].code.name(), "E0301", "{diagnostics:#?}");
    let edits: Vec<(&str, &str)> =
        diagnostics[0].edits.iter().map(|edit| (edit.replacement.as_str(), edit.note.as_str())).collect();
    assert_eq!(
        edits,
        [
            ("matmul(a, b, out=P(X, _, unreduced=Y))", "no communication: each device keeps its partial sum"),
            ("matmul(a, b, out=P((X, Y), _))", "one reduce_scatter over Y, 128 bytes per device"),
            ("matmul(a, b, out=P(X, Y))", "one reduce_scatter over Y, 128 bytes per device"),
            ("matmul(a, b, out=P(X, _))", "one all_reduce over Y, 128 bytes per device"),
        ]
    );
    let printed = typed(&text.replace("a @ b", "matmul(a, b, out=P(X, _))"));
    assert!(printed.contains(": f32[8@X,8] = einsum("), "{printed}");
    let one_sided = "
        mesh (X: explicit = 2);
        fn main(x: f32[32@X], w: f32[32, 4]) -> f32[4] { x @ w }";
    let printed = typed(one_sided);
    assert!(printed.contains(": f32[4] = einsum("), "{printed}");
    let partial = "
        mesh (X: explicit = 2);
        fn main(a: f32[8, 4@X], b: f32[4@X, 8]) -> f32[8, 8] {
          let c = matmul(a, b, out=P(_, _, unreduced=X));
          reshard(cos(c), P())
        }";
    assert_errors(partial, &["E0306 5"]);
    let kept = partial.replace("cos(c)", "c + c");
    let printed = typed(&kept);
    assert!(printed.contains(": f32[8,8]{U:X} = c + c;"), "{printed}");
}

#[test]
fn constants_are_set_from_outside() {
    let text = "
        const N = 8;
        const HALF = N / 2;
        const RATE = 0.5;
        mesh (X = N);
        fn main(x: f32[N]) -> f32[HALF] { RATE * x[:HALF] }";
    let set = |pairs: &[(&str, &str)]| CheckOptions {
        sets: pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        ..options()
    };
    let (sources, _) = SourceSet::load("test.spmd", text, &NoSources);
    let (module, _) = check(&sources, &set(&[("N", "12"), ("RATE", "2")])).unwrap();
    let printed = print::module(&module);
    assert!(printed.contains("mesh (X = 12);") && printed.contains("-> f32[6]"), "{printed}");
    assert!(printed.contains("f32(2.0)"), "{printed}");
    assert_eq!(errors_with(text, &set(&[("M", "1")])), ["E0107 1: --set: the program has no constant `M`"]);
    assert!(errors_with(text, &set(&[("N", "1.5")]))[0].starts_with("E0107 2"));
    assert!(
        errors_with(text, &set(&[("N", "9")]))[0].starts_with("E0208"),
        "{:?}",
        errors_with(text, &set(&[("N", "9")]))
    );
    assert_errors("const A = B; const B = A; fn main() -> i32 { A }", &["E0218 1"]);
}

#[test]
fn the_mesh_comes_from_the_program_and_the_command_line() {
    let mesh = |text: &str, given: &str| {
        let (sources, _) = SourceSet::load("test.spmd", text, &NoSources);
        let mesh = Some(MeshOverride::parse(given).unwrap());
        match check(&sources, &CheckOptions { mesh, ..options() }) {
            Ok((module, _)) => module.mesh.axes.iter().map(|axis| format!("{}={}", axis.name, axis.size)).collect(),
            Err(diagnostics) => diagnostics.iter().map(|d| d.code.to_string()).collect::<Vec<_>>(),
        }
    };
    let declared = "mesh (data = 4, model = 2); fn main() -> i32 { 1 }";
    assert_eq!(mesh(declared, "3x5"), ["data=3", "model=5"]);
    assert_eq!(mesh(declared, "model=8"), ["data=4", "model=8"]);
    assert_eq!(mesh(declared, "2x2x2"), ["E0601"]);
    assert_eq!(mesh(declared, "x=2"), ["E0601"]);
    assert_eq!(mesh(declared, "0x2"), ["E0601"]);
    assert_eq!(mesh("fn main(x: f32[8@Y]) -> f32[8] { x }", "2x4"), ["X=2", "Y=4"]);
    assert!(MeshOverride::parse("2xtwo").is_err());
}

struct Files(&'static [(&'static str, &'static str)]);

impl Sources for Files {
    fn read(&self, path: &str, _: &str) -> Result<Source, String> {
        let file = self.0.iter().find(|(name, _)| *name == path);
        let (name, text) = file.ok_or_else(|| "no such file".to_string())?;
        Ok(Source { name: name.to_string(), text: text.to_string() })
    }
}

#[test]
fn names_come_from_imported_files() {
    let files = Files(&[
        ("a.spmd", "import \"b.spmd\"; const N = 3; type V<M> = f32[M]; fn f(x) { g(x) + N }"),
        ("b.spmd", "fn g(x) { 2 * x } fn broken(x: f32[2]) -> f32[2] { nothing }"),
        ("c.spmd", "import \"c.spmd\"; fn h(x) { x }"),
    ]);
    let checked = |text: &str| {
        let (set, diagnostics) = SourceSet::load("main.spmd", text, &files);
        if !diagnostics.is_empty() {
            return Err(diagnostics);
        }
        check(&set, &options()).map(|(module, _)| print::module(&module))
    };
    let errors = checked("import \"a.spmd\" as a; fn main(x: a.V<a.N>) -> f32[a.N] { a.f(x) + a.q(x) }").unwrap_err();
    let codes: Vec<(u16, &str)> = errors.iter().map(|d| (d.span.file.0, d.code.name())).collect();
    assert_eq!(codes, [(0, "E0101"), (2, "E0101")]);
    assert_eq!(checked("import \"c.spmd\"; fn main() -> i32 { 1 }").unwrap_err()[0].code.name(), "E0104");
    assert_eq!(checked("import \"d.spmd\"; fn main() -> i32 { 1 }").unwrap_err()[0].code.name(), "E0104");
    let nn = "import \"std/nn.spmd\" as nn;
        fn main(x: f32[2, 8], p: nn.Dense<8, 4>, labels: i32[2], n: nn.Norm<4>, a: nn.Attention<4, 2, 3>) -> (f32, f32, f32, f32[1, 2, 4]) {
          let y = nn.norm(nn.dense(x, p), n);
          (nn.cross_entropy(y, labels), nn.accuracy(y, labels), nn.mse(y, 1), nn.self_attention(y[None], a))
        }";
    checked(nn).unwrap();
}

#[test]
fn functions_are_values() {
    let text = "
        fn twice(f, x) { f(f(x)) }
        fn main(p: { w: f32[2], b: f32 }, q: { w: f32[2], b: f32 }) -> { w: f32[2], b: f32 } {
          let rate = 0.1;
          let step = |a, g| a - rate * twice(|z| z + g, g);
          let r = tree_map(step, p, q);
          tree_map(sin, r)
        }";
    let printed = typed(text);
    assert!(printed.contains("{ w: v"), "{printed}");
    assert_errors("fn f(x) { g(x) } fn g(x) { f(x) } fn main(x: f32) -> f32 { f(x) }", &["E0103 1"]);
    assert_errors("fn main(x: f32) -> f32 { let f = |g| g(g); f(f) }", &["E0103 1"]);
    assert_errors("fn main(x: f32) -> f32 { (|a, b| a)(x) }", &["E0201 1"]);
}

#[test]
fn a_known_condition_chooses_while_compiling() {
    let text = "
        const DEEP = false;
        fn main(x: f32[4]) -> f32[4] { if DEEP && x.shape[0] > 2 { concatenate([x, x]) } else { x } }";
    let printed = typed(text);
    assert!(!printed.contains("if"), "{printed}");
}

#[test]
fn the_entry_can_be_manual() {
    let text = "
        mesh (X = 2);
        manual(X) fn main(p: { a: f32[8@X], b: f32 }) -> { s: f32, y: f32[8@X] } { { s: psum(sum(p.a), X), y: p.a * p.b } }";
    let printed = typed(text);
    assert!(printed.contains("fn main(p: { a: f32[8@X], b: f32 }) -> { s: f32, y: f32[8@X] } {"), "{printed}");
    assert_round_trip(text);
}

#[test]
fn a_loop_left_by_some_devices_has_no_collective_in_its_condition() {
    let text = "
        mesh (X = 2);
        manual(X) fn f(x: i32[2@X]) -> i32[2@X] {
          let mut n = x;
          while psum(n[0], X) < n[0] { n += 1; }
          n
        }
        fn main(x: i32[2]) -> i32[2] { f(x) }";
    assert_errors(text, &["E0502 5"]);
}

#[test]
fn dimensions_that_an_op_cuts_or_joins_keep_explicit_axes() {
    let text = "
        mesh (X: explicit = 2);
        fn main(x: f32[8@X, 3]) -> (f32[6@X, 3], f32[16@X, 3], f32[8@X, 3], f32[3], f32[9@X, 3]) {
          (x[1:7], concatenate([x, x]), roll(x, 1, axis=0), x[2], pad(x, ((0, 1), (0, 0))))
        }";
    typed(text);
    assert_errors("mesh (X: explicit = 2); fn main(x: f32[8@X], i: i32) -> f32 { x[i] }", &["E0301 1"]);
    let merged = "mesh (X: explicit = 2); fn main(x: f32[4, 6@X]) -> f32[24] { reshape(x, (24,)) }";
    assert_errors(merged, &["E0301 1"]);
}

#[test]
fn long_chains_and_deep_calls_do_not_overflow() {
    let sum = vec!["x"; 400].join(" + ");
    typed(&format!("fn main(x: f32) -> f32 {{ {sum} }}"));
    // So many calls, each inside so many signs.
    let nested = |count: usize, signs: usize| {
        let (open, close) = ("-(".repeat(signs), ")".repeat(signs));
        let function = |n: usize| format!("fn g{n}_(x) {{ {open}g{}_(x){close} + ((((((((x)))))))) }}", n + 1);
        let calls = (0..count).map(function).collect::<String>();
        format!("{calls} fn g{count}_(x) {{ x }} fn main(x: f32) -> f32 {{ g0_(x) }}")
    };
    typed(&nested(150, 0));
    typed(&nested(190, 13));
    assert_errors(&nested(190, 20), &["E0103 1"]);
    let branches = format!("{}1.0{}", "if b { ".repeat(100), " } else { x }".repeat(100));
    typed(&format!("fn main(x: f32, b: bool) -> f32 {{ {branches} }}"));
    let loops = format!("{}{}", "for _ in 0..2 { ".repeat(40), " x = x + 1; }".repeat(40));
    typed(&format!("fn main(x: f32) -> f32 {{ let mut x = x; {loops} x }}"));
}

#[test]
fn dumps_of_other_entries_read_back() {
    let text = "
        mesh (X = 2);
        manual(X) fn main(x: f32[4@X]) -> f32[4@X] { x }
        manual(X) fn max(x: f32[4@X]) -> f32[4@X] { x }
        fn sum((a, b): (f32[4@X], f32), arg0: f32[4@X]) -> f32[4@X] { max(main(a * b + cumsum(arg0))) }";
    let load = |text: &str| SourceSet::load("test.spmd", text, &NoSources).0;
    let entry = CheckOptions { entry: Some("sum".to_string()), ..options() };
    let dump = print::module(&check(&load(text), &entry).unwrap().0);
    assert!(dump.contains("fn sum(arg0_: (f32[4@X], f32), arg0: f32[4@X])"), "{dump}");
    // The names `main` and `max` are taken: a dump begins with its last function.
    assert!(dump.contains("fn main_2(") && dump.contains("fn max_2("), "{dump}");
    assert_eq!(print::module(&check(&load(&dump), &options()).unwrap().0), dump);
}

#[test]
fn habits_from_elsewhere_are_answered() {
    // The text of a function, and a part of the message.
    let habits = [
        ("np.sum(x)", "no prefix: write `sum(x)`"),
        ("jnp.exp(x)", "no prefix"),
        ("torch.relu(x)", "no prefix"),
        ("tf.reduce_sum(x)", "no prefix; did you mean `sum`?"),
        ("x.astype(f64)", "cast(x, f32)"),
        ("absolute(x)", "abs"),
        ("power(x, 2)", "x ** n"),
        ("concat([x, x])", "concatenate"),
        ("range(4)", "arange(n)"),
        ("negative(x)", "-x"),
        ("len(x)", "x.shape[0]"),
        ("x.unsqueeze(0)", "expand_dims"),
        ("x.permute(0)", "transpose"),
        ("x.relu_()", "u = relu(u)"),
        ("relu_(x)", "u = relu(u)"),
        ("x.item()", "remove it"),
        ("x.shape()", "a field of an array"),
        ("x.at[0].set(1.0)", "let mut u = x"),
        ("x.at[0].add(1.0)", "u[i] += w"),
        ("if b { x } elif b { x } else { x }", "else if"),
        ("while b { break; } x", "the condition of a `while`"),
        ("for i in 0..4 { continue; } x", "an `if` in the body"),
        ("return x;", "last expression"),
        ("return x", "last expression"),
        ("x # comment", "comments begin with `//`"),
        ("x ^ 2", "x ** n"),
        ("b and b", "a && b"),
        ("b or b", "a || b"),
        ("not b", "!c"),
        ("if True { x } else { x }", "true"),
        ("if False { x } else { x }", "false"),
        ("lambda a: a + 1", "|x| ..."),
        ("x as f64", "f32(x)"),
        ("def f(x): x", "fn name(x)"),
        ("println!(\"{}\", x); x", "without `!`"),
        ("print(f\"{x}\"); x", "print(\"x = {}\", x)"),
        ("assert b, \"t\"; x", "assert(c"),
        ("x < y < x", "a < b && b < c"),
        ("x, y", "(a, b)"),
        ("let (a, c) = x, y; a", "(a, b)"),
        ("zeros((4, 8))", "zeros(f32[4, 8])"),
        ("ones(4)", "ones(f32[4])"),
        ("x[:n]", "x[k : k + 4]"),
        ("x += 1; x", "let mut x = x;"),
        ("~x", "!x"),
        ("sum(x, dim=0)", "axis"),
        ("sum(x, keepdim=true)", "keepdims"),
        ("b ? x : y", "if c { a } else { b }"),
        ("logical_and(b, b)", "a && b"),
        ("float32(x)", "f32"),
    ];
    for (body, answer) in habits {
        let text = format!("fn main(x: f32[4], y: f32[4], b: bool, n: i32) {{ {body}\n }}");
        let (set, mut diagnostics) = SourceSet::load("test.spmd", &text, &NoSources);
        if diagnostics.is_empty() {
            diagnostics = check(&set, &options()).err().unwrap_or_default();
        }
        let help: Vec<&str> = diagnostics.iter().filter_map(|d| d.help.as_deref()).collect();
        assert!(help.first().is_some_and(|help| help.contains(answer)), "{body}: {diagnostics:#?}");
    }
    // One variable may be both operands.
    let text = "mesh (X: explicit = 2);\nfn main(x: f32[4@X]) { outer(x, x) }";
    let diagnostics = check(&SourceSet::load("test.spmd", text, &NoSources).0, &options()).err().unwrap();
    let lines: Vec<&str> = diagnostics[0].help.as_deref().unwrap().lines().collect();
    assert_eq!(lines[1..], ["`reshard(x, P(_))`: one all_gather over X, 8 bytes per device"]);
    // A name that only shares one or two letters is not suggested.
    for name in ["lne", "add2", "q", "pass2", "jump"] {
        let text = format!("fn main(x: f32[4]) {{ {name}(x) }}");
        let diagnostics = check(&SourceSet::load("test.spmd", &text, &NoSources).0, &options()).err().unwrap();
        assert!(diagnostics.len() == 1 && diagnostics[0].help.is_none(), "{diagnostics:#?}");
    }
}

#[test]
fn what_grows_without_bound_is_refused() {
    let doubled = |first: &str, step: &str, count: usize| {
        format!("fn main(x: f32[4]) {{ let a = {first}; {} print(\"done\"); }}", step.repeat(count))
    };
    let types = |name: &str, part: &str, count: usize| {
        let chain = (0..count).map(|i| format!("type {name}{} = {};", i + 1, part.replace('#', &format!("{name}{i}"))));
        format!("type {name}0 = f32; {} fn main(x: {name}{count}) {{ x }}", chain.collect::<String>())
    };
    let shape = |rank: usize| vec!["1"; rank].join(", ");
    let refused = [
        doubled("x", "let a = (a, a);", 22),
        doubled("x", "let a = { a: a, b: a };", 22),
        doubled("1", "let a = [a, a];", 22),
        doubled("x", "let a = (a, 1);", 10_000),
        types("T", "(#, #)", 25),
        types("T", "{ a: #, b: # }", 25),
        types("T", "(#, f32)", 10_000),
        types("T", "#", 10_000),
        format!("fn main(x: f32[{}]) {{ x @ x }}", shape(64)),
        format!("fn main(x: f32[{}]) {{ x[None] }}", shape(26)),
        format!("fn main(x: f32) {{ zeros(f32[{}]) + x }}", shape(27)),
        format!("fn main(x: f32[4]) {{ {}(x) }}", "a".repeat(1_000_000)),
    ];
    for text in refused {
        let found = errors_with(&text, &options());
        assert!(found.iter().all(|error| error.starts_with("E0004 ")) && !found.is_empty(), "{:.200}: {found:?}", text);
    }
    let accepted = [
        doubled("x", "let a = (a, a);", 15),
        doubled("1", "let a = [a, a];", 18),
        doubled("x", "let a = (a, 1);", 190),
        types("T", "(#, f32)", 90),
        format!("fn main(x: f32[{}]) {{ x @ x }}", shape(26)),
        format!("fn main(x: f32[4]) {{ let {} = x; x }}", "a".repeat(1_000)),
    ];
    for text in accepted {
        assert_eq!(errors_with(&text, &options()), [""; 0], "{:.200}", text);
    }
}

fn binary(op: InfixOp, lhs: Size, rhs: Size) -> Size {
    Size::Binary(op, Box::new(lhs), Box::new(rhs))
}

#[test]
fn a_parameter_is_learnt_through_arithmetic() {
    let mut bindings = Bindings::new();
    let size = binary(InfixOp::Mul, Size::Number(2), Size::Param("M".into()));
    assert!(size.learn(6, &mut bindings));
    assert_eq!(bindings["M"], 3);
    assert!(!size.learn(8, &mut bindings));
    let half = binary(InfixOp::Div, Size::Param("M".into()), Size::Number(2));
    assert_eq!(half.value(&bindings), Err(SizeError::Inexact(3, 2)));
}

#[test]
fn floor_division_follows_python() {
    for (lhs, rhs, quotient, rest) in [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1)] {
        assert_eq!(arithmetic(InfixOp::FloorDiv, lhs, rhs), Ok(quotient), "{lhs} // {rhs}");
        assert_eq!(arithmetic(InfixOp::Rem, lhs, rhs), Ok(rest), "{lhs} % {rhs}");
    }
}

#[test]
fn a_quote_fits_a_sentence() {
    let text = "
        fn main(x: f32) -> f32 {
          grad(|x| {
            let y = sin(x)
              + x;
            y + exp(y + 0.1234567890123456789012345 + y)
          })(x)
        }";
    let (set, _) = SourceSet::load("test.spmd", text, &NoSources);
    let (module, _) = check(&set, &options()).unwrap();
    let quotes: Vec<&str> = module.func.quotes.values().map(String::as_str).collect();
    let expected = [
        "line 3: `grad(|x| { let y = sin(x) + x; y + exp(y...`",
        "line 4: `sin(x)`",
        "line 4: `sin(x) + x`",
        "line 6: `y + exp(y + 0.1234567890123456789012345...`",
        "line 6: `exp(y + 0.1234567890123456789012345 + y)`",
        "line 6: `y + 0.1234567890123456789012345`",
        "line 6: `y + 0.1234567890123456789012345 + y`",
    ];
    assert_eq!(quotes, expected);
}
