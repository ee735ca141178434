//! Random programs of which one statement fails while running: by which code, and on which line.

use super::Draw;
use std::fmt::Write;

pub struct Failing {
    pub text: String,
    /// One-based.
    pub line: usize,
    pub code: &'static str,
}

/// Arguments that the program takes besides generated ones: an index that exists, and one that does not.
pub const ARGS: [&str; 2] = ["near=1", "far=100"];

/// Elementwise statements, reductions and movements of whole arrays, so that every element of every value is needed.
pub fn program(draw: &mut Draw) -> Failing {
    let (rows, columns) = (2 + draw.below(40), 2 + draw.below(40));
    let split = draw.pick(&["", "@X", "@Y", "@(X, Y)"]);
    let ty = format!("i32[{rows}{split}, {columns}]");
    let mut text =
        format!("mesh (X = 2, Y = 3);\nfn main(a: {ty}, b: i32[{rows}, {columns}], near: i32, far: i32) {{\n");
    // Zero at one place, which one device has.
    let zero = draw.below(rows * columns);
    let _ = writeln!(
        text,
        "  let holed = iota(i32[{rows}, {columns}], axis=0) * {columns} + iota(i32[{rows}, {columns}], axis=1) - {zero};"
    );
    let mut names = vec!["a".to_string(), "b".to_string()];
    let count = 2 + draw.below(10);
    let fails = draw.below(count);
    let (mut line, mut code) = (0, "");
    for number in 0..count {
        let (x, y) = (names[draw.below(names.len())].clone(), names[draw.below(names.len())].clone());
        let good = draw.pick(&[
            "x + y",
            "x * 3 - y",
            "x // (y | 1)",
            "x % (y | 1)",
            "maximum(x, y)",
            "where(x > 2, x, y)",
            "roll(x, 1, axis=0)",
            "flip(x, axis=1)",
            "x - sum(y, axis=1, keepdims=true)",
            "x + y[near]",
            "x + y[near : near + 1]",
            "x.T.T & y",
            "x[y[:, 0] % ROWS]",
        ]);
        let (bad, bad_code) = draw.pick(&[
            ("x // holed", "E0802"),
            ("y % holed", "E0802"),
            ("(x // (y | 1)) % holed + x", "E0802"),
            ("x + y[far]", "E0801"),
            ("x - y[far - 1 : far]", "E0801"),
            ("x + y[arange(ROWS) + far]", "E0801"),
            ("x[(arange(ROWS) // (y[:, 0] | 1)) * 0 - far]", "E0801"),
            ("x // max(holed * 0, axis=0) - y", "E0802"),
        ]);
        let is_bad = number == fails;
        let expr = if is_bad { bad } else { good };
        let expr = expr.replace("maximum", "\u{1}").replace("max", "\u{2}").replace("axis", "\u{3}");
        let expr = expr
            .replace('x', &x)
            .replace('y', &y)
            .replace('\u{1}', "maximum")
            .replace('\u{2}', "max")
            .replace("ROWS", &rows.to_string());
        let expr = expr.replace('\u{3}', "axis");
        let name = format!("v{number}");
        let before = text.lines().count();
        let own = match draw.below(5) {
            0 => {
                let _ = writeln!(text, "  let mut {name} = {x} + 1;\n  for k in 0..3 {{\n    {name} = {name} - k;");
                let _ = writeln!(text, "    {name} = {name} + ({expr});\n  }}");
                before + 4
            }
            1 => {
                let _ =
                    writeln!(text, "  let {name} = if near == 1 {{\n    {expr}\n  }} else {{\n    {y} - {x}\n  }};");
                before + 2
            }
            _ => {
                let _ = writeln!(text, "  let {name} = {expr};");
                before + 1
            }
        };
        if is_bad {
            (line, code) = (own, bad_code);
        }
        names.push(name);
    }
    let _ = writeln!(text, "  ({}, {})\n}}", names.join(" + "), names[names.len() - 1]);
    Failing { text, line, code }
}
