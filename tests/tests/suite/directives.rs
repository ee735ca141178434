//! The headers of small programs: a header that would test nothing is an error that says what is possible.

use spmdc_tests::case::{Case, DIRECTIVES, MARKS};
use spmdc_tests::root;
use std::path::Path;

fn parsed(text: &str) -> Result<Case, String> {
    Case::parse(Path::new("a.spmd"), text)
}

#[test]
fn directives_and_expectations_are_read() {
    let text = "\
//! Sums over rows: what they move.
//! meshes: 1x1 3x2x1
//! args: x=iota y=normal:3
//! collectives: all_reduce 1, all_gather 2
//! combined: none
//! bytes: 16 8
let y = f(x);  //: f32[8@X]
print(y)  //>  3.0
//>
w(y)  //? E0507 per device
";
    let case = parsed(text).unwrap();
    assert_eq!(case.meshes.unwrap(), ["1x1", "3x2x1"]);
    assert_eq!(case.args, ["x=iota", "y=normal:3"]);
    let collectives: Vec<(String, usize)> = case.collectives.unwrap().into_iter().collect();
    assert_eq!(collectives, [("all_gather".to_string(), 2), ("all_reduce".to_string(), 1)]);
    assert!(case.combined.unwrap().is_empty());
    assert_eq!(case.bytes.unwrap(), [16, 8]);
    assert_eq!((case.types[0].line, case.types[0].text.as_str()), (7, "f32[8@X]"));
    assert_eq!(case.printed, [" 3.0", ""]);
    assert_eq!((case.warnings[0].line, case.warnings[0].text.as_str()), (10, "E0507 per device"));
    let case =
        parsed("//! run: spmdc run a.spmd --arg x=iota --mesh 2x4 --arg y=@y.npy\nx  //~ E0401 index\n").unwrap();
    assert_eq!(case.args, ["x=iota", "y=@y.npy"]);
    assert_eq!((case.errors[0].line, case.errors[0].text.as_str()), (2, "E0401 index"));
}

/// Each header with the error that it is.
#[test]
fn headers_that_would_test_nothing_are_refused() {
    let directives = DIRECTIVES.join(", ");
    let collective = "all_reduce, all_gather, reduce_scatter, all_to_all, collective_permute, transfer";
    let refused = [
        (
            "//! collective: none",
            format!("unknown directive `collective`: expected one of {directives}; did you mean `collectives`?"),
        ),
        (
            "//! Meshes: 1x1",
            format!("unknown directive `Meshes`: expected one of {directives}; did you mean `meshes`?"),
        ),
        ("//! types: a=f32[4]", format!("unknown directive `types`: expected one of {directives}")),
        ("//! collectives none", "expected a colon after `collectives`".to_string()),
        ("//!collectives: none", "expected a space after `//!`".to_string()),
        ("// collectives: none", "expected `//! collectives:`, found `// collectives:`".to_string()),
        ("mesh (X = 2); //! meshes: 1", "expected `//!` at the beginning of its line".to_string()),
        ("//! args:", "expected a value after `args:`".to_string()),
        ("//! meshes: 1x1\n//! meshes: 2x4", "the directive `meshes` occurs twice".to_string()),
        ("//! meshes: 1x1, 3x2", "expected a mesh such as `3x2`, found `1x1,`".to_string()),
        ("//! meshes: 0", "expected a mesh such as `3x2`, found `0`".to_string()),
        ("//! args: x", "expected an argument such as `x=iota`, found `x`".to_string()),
        (
            "//! run: spmdc run a.spmd --arg",
            "expected an argument such as `x=iota` after `--arg`, found ``".to_string(),
        ),
        ("//! bytes: 16 none", "expected a number of bytes, found `none`".to_string()),
        (
            "//! tolerance: exactly",
            "expected one of exact, elementwise, reduction, double, found `exactly`".to_string(),
        ),
        ("//! small: N", "expected a constant such as `N=37`, found `N`".to_string()),
        (
            "//! collectives: all_reduced 1",
            format!("unknown collective `all_reduced`: expected one of {collective}; did you mean `all_reduce`?"),
        ),
        ("//! collectives: none, all_reduce 1", format!("unknown collective `none`: expected one of {collective}")),
        (
            "//! combined: all_reduce",
            "expected a collective and its number, such as `all_reduce 1`, or `none`, found `all_reduce`".to_string(),
        ),
        (
            "//! combined: all_reduce 0",
            "expected a collective and its number, such as `all_reduce 1`, or `none`, found `all_reduce 0`".to_string(),
        ),
        ("//! combined: all_reduce 1,", format!("unknown collective ``: expected one of {collective}")),
        ("//! combined: all_reduce 1, all_reduce 2", "the collective `all_reduce` occurs twice".to_string()),
        ("let y = x;  //:f32", "expected a space and a text after `//:`".to_string()),
        ("let y = x;  //: ", "expected a text after `//:`".to_string()),
        ("print(x)  //>3", "expected a space and a text after `//>`".to_string()),
        ("x[9]  //~E0401", "expected a space and a text after `//~`".to_string()),
        ("x[9]  //~ index", "expected the code of a diagnostic after `//~`, found `index`".to_string()),
        ("x[9]  //? E9999", "expected the code of a diagnostic after `//?`, found `E9999`".to_string()),
        ("x[9]  //~ e0401", "expected the code of a diagnostic after `//~`, found `e0401`".to_string()),
        ("let y = x;  //: f32  //~ E0401", "expected one expectation on a line, found `//:` and `//~`".to_string()),
    ];
    for (header, error) in refused {
        let line = header.lines().count();
        assert_eq!(parsed(header).err(), Some(format!("a.spmd:{line}: {error}")), "{header}");
    }
    // Nothing else is compared where a program fails.
    let found = parsed("//! collectives: none\nx[9]  //~ E0401\n").err();
    let expected = "a.spmd: `collectives` has no effect here: the program fails, so only its errors are compared";
    assert_eq!(found.as_deref(), Some(expected));
}

#[test]
fn a_test_refuses_what_it_does_not_compare() {
    let case = parsed("//! tolerance: exact\n//! meshes: 1\n").unwrap();
    assert_eq!(case.allow(&["meshes", "tolerance"]), Ok(()));
    assert_eq!(case.allow(&["meshes"]), Err("a.spmd: `tolerance` has no effect here".to_string()));
}

/// The guide lists each directive and mark of a test case; `run` belongs to examples, the other two to folders of their own.
#[test]
fn the_guide_lists_the_directives() {
    let guide = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let (_, section) = guide.split_once("\n## A test case\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    for name in DIRECTIVES {
        assert!(section.contains(&format!("| `//! {name}: ")), "CONTRIBUTING.md does not list `//! {name}:`");
    }
    for mark in MARKS {
        assert!(section.contains(&format!("  {mark} ")), "CONTRIBUTING.md does not list `{mark}`");
    }
}
