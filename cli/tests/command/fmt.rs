//! `spmdc fmt`.

use crate::folder::Folder;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

const WIDE: &str = "fn f( x ){x+1}\nfn main(x:f32[4]){f(x)} // done\n";
const NARROW: &str = "fn f(x) { x + 1 }\nfn main(x: f32[4]) { f(x) }  // done\n";

#[test]
fn files_and_folders_are_formatted_in_place() {
    let wrong = "fn main( { }\n";
    let folder = Folder::with(&[
        ("a.spmd", WIDE),
        ("b/c.spmd", WIDE),
        (".hidden/d.spmd", WIDE),
        ("e.txt", WIDE),
        ("f.spmd", NARROW),
    ]);
    symlink(folder.path().join("a.spmd"), folder.path().join("link.spmd")).unwrap();
    fs::set_permissions(folder.path().join("a.spmd"), fs::Permissions::from_mode(0o640)).unwrap();
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let check = folder.spmdc(&["fmt", "--check", "--color", "never"]);
    check.expect(1, "--- a.spmd\n+++ a.spmd (formatted)\n@@ -1,2 +1,2 @@\n-fn f( x ){x+1}\n", "");
    assert!(check.out.contains("+fn f(x) { x + 1 }\n") && check.out.contains("--- b/c.spmd\n"), "{}", check.out);
    assert!(!check.out.contains("f.spmd\n") && !check.out.contains("hidden"), "{}", check.out);
    assert_eq!(text("a.spmd"), WIDE);
    folder.spmdc(&["fmt"]).expect(0, "", "");
    for (name, expected) in
        [("a.spmd", NARROW), ("b/c.spmd", NARROW), ("link.spmd", NARROW), (".hidden/d.spmd", WIDE), ("e.txt", WIDE)]
    {
        assert_eq!(text(name), expected, "{name}");
    }
    assert!(fs::symlink_metadata(folder.path().join("link.spmd")).unwrap().is_symlink());
    assert_eq!(fs::metadata(folder.path().join("a.spmd")).unwrap().permissions().mode() & 0o777, 0o640);
    folder.spmdc(&["fmt", "--check"]).expect(0, "", "");

    // A file with errors stays as it is, and the others are formatted.
    let folder = Folder::with(&[("a.spmd", wrong), ("b.spmd", WIDE), ("c.mlir", "module {}")]);
    folder.spmdc(&["fmt", "a.spmd", "b.spmd"]).expect(1, "", "E0002");
    assert_eq!(fs::read_to_string(folder.path().join("a.spmd")).unwrap(), wrong);
    assert_eq!(fs::read_to_string(folder.path().join("b.spmd")).unwrap(), NARROW);
    folder.spmdc(&["fmt", "absent.spmd"]).expect(2, "", "cannot read `absent.spmd`");
    folder.spmdc(&["fmt", "c.mlir"]).expect(2, "", "`spmdc import`");
}

#[test]
fn standard_input_is_formatted() {
    let folder = Folder::with(&[]);
    let said = folder.spmdc_reading(&["fmt", "-"], WIDE);
    said.expect(0, NARROW, "");
    assert_eq!(said.out, NARROW);
    folder.spmdc_reading(&["fmt", "--check", "-"], WIDE).expect(1, "+fn f(x) { x + 1 }", "");
    folder.spmdc_reading(&["fmt", "--check", "-"], NARROW).expect(0, "", "");
    folder.spmdc_reading(&["fmt", "-"], "fn f(").expect(1, "", "<stdin>");
}

#[test]
fn comments_and_long_lines_have_a_place() {
    let text = "//! about\n\n\n\nmesh (X=2);\n// before\nfn f(a,// first\n b, ) { // open\n\n\n let y=a+ // sum\n b;\n\n\n y // value\n // end\n}\n\
                fn g(x) { for i in 0..3 { let y = 2*x; print(y) ; } let z = [1,2,\n 3]; if all(z>0) {f(x, |u| {let v=u; v})} else {x[a+1 :, ::2]} }\n\
                // last";
    let expected = "//! about\n\nmesh (X = 2);\n// before\nfn f(\n  a,  // first\n  b,\n) {  // open\n  let y = a\n    +  // sum\n    b;\n\n  \
                    y  // value\n  // end\n}\nfn g(x) {\n  for i in 0..3 {\n    let y = 2 * x;\n    print(y);\n  }\n  let z = [1, 2, 3];\n  \
                    if all(z > 0) {\n    f(x, |u| {\n      let v = u;\n      v\n    })\n  } else {\n    x[a + 1 :, ::2]\n  }\n}\n// last\n";
    assert_eq!(Folder::with(&[]).spmdc_reading(&["fmt", "-"], text).out, expected);
}
