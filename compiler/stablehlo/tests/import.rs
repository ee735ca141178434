//! Programs for people: names from locations, structs for trees, and functions for repeated layers.

#![allow(clippy::unwrap_used)]

use spmdc_grammar::span::FileId;

fn imported(text: &str) -> String {
    let is_shipped = |name: &str| ["maximum", "sum", "square", "exp", "max"].contains(&name);
    spmdc_grammar::print(&spmdc_stablehlo::import(text, FileId(0), &is_shipped).unwrap())
}

/// A perceptron with one layer for each path.
fn layers(paths: &[&str]) -> String {
    let params: Vec<String> = paths
        .iter()
        .enumerate()
        .map(|(at, path)| {
            let (w, b) = (2 * at, 2 * at + 1);
            format!("%arg{w}: tensor<4x4xf32> loc(\"{path}['w']\"), %arg{b}: tensor<4xf32> loc(\"{path}['b']\")")
        })
        .collect();
    let mut body = String::new();
    let mut last = "%x".to_string();
    for at in 0..paths.len() {
        let (w, b, n) = (2 * at, 2 * at + 1, 10 * at);
        let name = |number: usize| format!("%{}", n + number);
        let ty = "tensor<8x4xf32>";
        body += &format!(
            "    {} = stablehlo.dot_general {last}, %arg{w}, contracting_dims = [1] x [0] : ({ty}, tensor<4x4xf32>) -> {ty}\n",
            name(0)
        );
        body +=
            &format!("    {} = stablehlo.broadcast_in_dim %arg{b}, dims = [1] : (tensor<4xf32>) -> {ty}\n", name(1));
        let steps = [("add", 0, 1, 2), ("multiply", 2, 2, 3), ("subtract", 3, 2, 4), ("maximum", 4, 2, 5)];
        for (op, x, y, to) in steps {
            body += &format!("    {} = stablehlo.{op} {}, {} : {ty}\n", name(to), name(x), name(y));
        }
        body += &format!("    {} = stablehlo.exponential {} : {ty}\n", name(6), name(5));
        body += &format!("    {} = stablehlo.add {}, {last} : {ty}\n", name(7), name(6));
        last = name(7);
    }
    format!(
        "module @jit_f {{\n  func.func public @main({}, %x: tensor<8x4xf32> loc(\"x\")) -> tensor<8x4xf32> {{\n{body}    \
         return {last} : tensor<8x4xf32>\n  }}\n}}\n",
        params.join(", ")
    )
}

#[test]
fn repeated_layers_are_calls_of_one_function() {
    let text = imported(&layers(&["p.layers[0]", "p.layers[1]", "p.layers[2]"]));
    assert_eq!(
        text,
        "type Layer = { w: f32[4, 4], b: f32[4] };\n\
         type P = { layers: (Layer, Layer, Layer) };\n\n\
         fn layer(x, p) {\n  let v2 = x @ p.w + p.b;\n  exp(maximum(v2 * v2 - v2, v2)) + x\n}\n\n\
         fn main(p: P, x: f32[8, 4]) -> f32[8, 4] {\n  \
         layer(layer(layer(x, p.layers.0), p.layers.1), p.layers.2)\n}\n"
    );
}

#[test]
fn a_tree_with_a_gap_keeps_flat_names() {
    // The second parameter of the text is between two fields of one struct.
    let text = layers(&["p"]).replace("p['b']", "q").replace("loc(\"x\")", "loc(\"p['z']\")");
    let text = imported(&text);
    assert!(text.contains("fn main(p: P, q: f32[4], x: f32[8, 4]) -> f32[8, 4] {"), "{text}");
}

/// The first copy uses one value twice, the second one two values.
#[test]
fn copies_that_differ_in_the_number_of_values_are_no_layers() {
    let chain = |from: usize, x: &str, y: &str| {
        let ops = [
            ("add", x.to_string(), y.to_string()),
            ("multiply", format!("%{from}"), y.to_string()),
            ("subtract", format!("%{}", from + 1), x.to_string()),
            ("maximum", format!("%{}", from + 2), x.to_string()),
            ("add", format!("%{}", from + 3), y.to_string()),
            ("multiply", format!("%{}", from + 4), format!("%{}", from + 4)),
        ];
        let line = |(at, (op, x, y)): (usize, &(&str, String, String))| {
            format!("    %{} = stablehlo.{op} {x}, {y} : tensor<4xf32>\n", from + at)
        };
        ops.iter().enumerate().map(line).collect::<String>()
    };
    let text = format!(
        "module @jit_f {{\n  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {{\n{}{}    \
         return %11 : tensor<4xf32>\n  }}\n}}\n",
        chain(0, "%arg0", "%arg0"),
        chain(6, "%5", "%arg1")
    );
    let text = imported(&text);
    assert!(!text.contains("fn layer"), "{text}");
    let two = imported(&layers(&["p.layers[0]", "p.layers[1]"]));
    assert!(two.contains("layer(layer(x, p.layers.0), p.layers.1)"), "{two}");
}

/// Two computations per device, of which the second takes `second` of the first and the parameter again.
fn consecutive(second: &str) -> String {
    let manual = |name: &str, operands: &str, ins: &str, args: &str, types: &str| {
        let gather = "\"stablehlo.all_gather\"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : \
                      tensor<1x2xi64>, use_global_device_ids}> : (tensor<2xf32>) -> tensor<4xf32>";
        format!(
            "    %{name} = sdy.manual_computation({operands}) in_shardings=[{ins}] out_shardings=[<@mesh, [{{\"X\"}}]>] \
             manual_axes={{\"X\"}} ({args}) {{\n      %1 = {gather}\n      %2 = stablehlo.multiply %1, %1 : tensor<4xf32>\n      \
             sdy.return %2 : tensor<4xf32>\n    }} : ({types}) -> tensor<8xf32>\n"
        )
    };
    let first = manual("0", "%arg0", "<@mesh, [{\"X\"}]>", "%a: tensor<2xf32>", "tensor<4xf32>");
    let last = manual(
        "3",
        "%0, %arg0",
        &format!("<@mesh, [{second}]>, <@mesh, [{{\"X\"}}]>"),
        "%b: tensor<4xf32>, %a: tensor<2xf32>",
        "tensor<8xf32>, tensor<4xf32>",
    );
    format!(
        "module @jit_f {{\n  sdy.mesh @mesh = <[\"X\"=2]>\n  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<8xf32>, \
         tensor<8xf32>) {{\n{first}{last}    return %0, %3 : tensor<8xf32>, tensor<8xf32>\n  }}\n}}\n"
    )
}

#[test]
fn consecutive_code_for_each_device_is_one_function() {
    let functions = |text: &str| text.matches("manual fn").count();
    let together = imported(&consecutive("{\"X\"}"));
    assert_eq!(functions(&together), 1, "{together}");
    // The second one wants the whole result of the first.
    let apart = imported(&consecutive("{}").replace("%b: tensor<4xf32>", "%b: tensor<8xf32>"));
    assert_eq!(functions(&apart), 2, "{apart}");
}
