//! Tests of `report::json`: what the summary of a module says.

use crate::testing::compiled;
use serde_json::{Value as Json, json};
use spmdc_compiler::report::json::module_json;
use spmdc_grammar::span::{Span, line_column};
use spmdc_ir::program::Stage;

fn summary(source: &str, stage: Stage) -> String {
    let compilation = compiled(source);
    let module = compilation.stage(stage).unwrap();
    let place = |span: Span| line_column(source, span.start as usize);
    module_json(module, compilation.program.as_ref().unwrap(), &place).unwrap()
}

#[test]
fn an_axis_in_parts_is_one_of_the_program() {
    let source = "mesh (X = 1, Y = 8);\nfn main(x: f32[16@Y, 4]) {\n  let r = reshape(x, (2, 8, 4));\n  \
                  reshape(r - sum(r, axis=1, keepdims=true), (16, 4))\n}";
    let json: Json = serde_json::from_str(&summary(source, Stage::Partitioned)).unwrap();
    assert_eq!(json["mesh"][1], json!({"name": "Y", "size": 8, "type": "auto"}));
    assert_eq!(json["params"][0]["type"], "f32[16@Y,4]");
    assert_eq!(json["results"][0]["type"], "f32[16@Y,4]");
    assert_eq!(json["values"][0]["type"], "f32[2@Y_0,8@Y_1,4]");
    assert_eq!(json["collectives"][0]["axes"], json!(["Y_1"]));
}

#[test]
fn a_collective_in_a_loop_says_where_and_how_often() {
    let source = "mesh (X = 2, Y = 4);\nfn main(x: f32[8@X, 16@Y]) {\n  let mut t = 0.0;\n  for i in 0..5 {\n    \
                  let s = sum(x * t);\n    t = s;\n  }\n  t\n}";
    let json: Json = serde_json::from_str(&summary(source, Stage::Partitioned)).unwrap();
    let found = &json["collectives"][0];
    assert_eq!(found["kind"], "all_reduce");
    assert_eq!(found["axes"], json!(["X", "Y"]));
    assert_eq!((&found["group_size"], &found["trips"], &found["line"]), (&json!(8), &json!(5), &json!(5)));
    assert_eq!((&found["bytes"], &found["received"]), (&json!(4), &json!(7)));
    assert_eq!(json["collectives"].as_array().unwrap().len(), 1);
    assert_eq!(json["params"][0], json!({"name": "x", "type": "f32[8@X,16@Y]", "local_shape": [4, 4]}));
    let s = json!({"name": "s", "type": "f32", "line": 5});
    let t = json!({"name": "t", "type": "f32", "line": 3});
    assert_eq!(json["values"], json!([s, t]));
}

#[test]
fn keys_stand_in_the_order_of_the_reference_and_variables_once() {
    let source = "mesh (X = 2, Y: explicit = 4);\nfn twice(x) {\n  2 * x\n}\nfn main(x: f32[8]) {\n  \
                  let y: f32[8@X] = twice(x);\n  let z =\n    twice(y);\n  z\n}";
    for stage in [Stage::Typed, Stage::Propagated, Stage::Partitioned, Stage::Optimized] {
        let text = summary(source, stage);
        let start = r#"{"mesh":[{"name":"X","size":2,"type":"auto"},{"name":"Y","size":4,"type":"explicit"}],"#;
        assert!(text.starts_with(&format!(r#"{start}"entry":"main","params":[{{"name":"x","type":"f32[8"#)), "{text}");
        let json: Json = serde_json::from_str(&text).unwrap();
        let lines = json["values"].as_array().unwrap().iter().map(|value| (&value["name"], &value["line"]));
        assert_eq!(lines.collect::<Vec<_>>(), [(&json!("y"), &json!(6)), (&json!("z"), &json!(7))], "{text}");
        assert_eq!(json["values"][0]["type"], "f32[8@X]");
    }
    let text = summary(source, Stage::Partitioned);
    let end = r#""collectives":[],"flops_per_device":8,"peak_bytes_per_device":"#;
    assert!(text.contains(r#""results":[{"name":"0","type":"f32[8@X]","local_shape":[4]}],"values":[{"name":"y","#));
    assert!(text.contains(end), "{text}");
}
