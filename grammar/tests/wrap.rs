//! Long lines of printed programs.

use spmdc_grammar::wrap;

#[test]
fn lines_break_where_few_brackets_are_open() {
    let text = "fn f() {\n  let a = g(x, y) + h(\"a, b, c, d\", z);\n  (first, second, third, fourth)\n}\n";
    assert_eq!(wrap(text, 80), text);
    let narrow =
        "fn f() {\n  let a = g(x, y)\n      + h(\"a, b, c, d\", z);\n  (first, second, third,\n      fourth)\n}\n";
    assert_eq!(wrap(text, 28), narrow);
    assert_eq!(wrap("abcdefghij\n", 5), "abcdefghij\n");
}
