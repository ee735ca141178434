//! Renaming of the fields of structs, and their references.

use serde_json::{Value, json};

use crate::client::{Client, located};

/// A layer and a state that have a field of one name, over an import.
const MAIN: &str = "\
import \"nn.spmd\" as nn;
type State = { w: f32[2], t: f32 };
fn update(s: State) -> State { { w: s.w * 2.0, t: s.t + 1.0 } }
fn main(x: f32[3, 4], p: nn.Layer<4, 2>, s: State) {
  let { w, b } = p;
  let mut q = { w: w + 1.0, b };
  q.w = q.w * 0.5;
  let g = grad(|q| sum(nn.dense(x, q)))(q);
  let r = tree_map(|a, g| a - g, q, g);
  (nn.dense(x, r), update(s))
}
test \"a layer\" {
  let p = { w: ones(f32[4, 2]), b: zeros(f32[2]) };
  assert(all(nn.dense(ones(f32[3, 4]), p) == 4.0));
}
";

const NN: &str = "\
type Layer<I, O> = { w: f32[I, O], b: f32[O] };
fn dense<B, I, O>(x: f32[B, I], p: Layer<I, O>) -> f32[B, O] { x @ p.w + p.b }
";

fn opened(files: &[(&str, &str)]) -> Client {
    let mut client = Client::with(files);
    client.open("main.spmd");
    assert_eq!(client.findings("main.spmd"), Vec::<Value>::new());
    client
}

fn rename(client: &mut Client, at: &str, by: usize, name: &str) -> Result<Value, String> {
    let mut params = client.at("main.spmd", at, by);
    params["newName"] = json!(name);
    let answer = client.request("textDocument/rename", params);
    answer.map_err(|error| error["message"].as_str().unwrap().to_string())
}

#[test]
fn a_field_is_renamed_in_its_types_uses_literals_and_patterns() {
    let mut client = opened(&[("main.spmd", MAIN), ("nn.spmd", NN)]);
    let edit = rename(&mut client, "q.w = ", 2, "weights").unwrap();
    client.apply(&edit);
    let expected = MAIN
        .replace("{ w, b } = p", "{ weights: w, b } = p")
        .replace("{ w: w + 1.0", "{ weights: w + 1.0")
        .replace("q.w", "q.weights")
        .replace("{ w: ones", "{ weights: ones");
    assert_eq!(client.text("main.spmd"), expected);
    assert_eq!(client.text("nn.spmd"), NN.replace("{ w:", "{ weights:").replace("p.w", "p.weights"));
    client.wait_for("main.spmd", "no findings", <[Value]>::is_empty);
    // The other type of struct has the name still.
    let edit = rename(&mut client, "w: f32[2]", 0, "v").unwrap();
    client.apply(&edit);
    let expected = expected.replace("{ w: f32[2]", "{ v: f32[2]").replace("{ w: s.w", "{ v: s.v");
    assert_eq!(client.text("main.spmd"), expected);
    client.wait_for("main.spmd", "no findings", <[Value]>::is_empty);
    assert_eq!(client.end(), 0);
}

#[test]
fn references_of_a_field_are_those_of_its_struct() {
    let mut client = opened(&[("main.spmd", MAIN), ("nn.spmd", NN)]);
    let mut references = |at: &str, by: usize| {
        let mut params = client.at("main.spmd", at, by);
        params["context"] = json!({ "includeDeclaration": true });
        let answer = client.request("textDocument/references", params).unwrap();
        let place = |one: &Value| {
            let (path, text) = located(one);
            assert_eq!(text, "w");
            format!(
                "{}:{}",
                path.file_name().unwrap().to_str().unwrap(),
                one["range"]["start"]["line"].as_u64().unwrap() + 1
            )
        };
        let mut found: Vec<String> = answer.as_array().unwrap().iter().map(place).collect();
        found.sort();
        found
    };
    assert_eq!(references("s.w", 2), ["main.spmd:2", "main.spmd:3", "main.spmd:3"]);
    let layer = ["main.spmd:13", "main.spmd:5", "main.spmd:6", "main.spmd:7", "main.spmd:7", "nn.spmd:1", "nn.spmd:2"];
    assert_eq!(references("q.w = ", 2), layer);
    let params = client.at("main.spmd", "q.w = ", 2);
    let definition = client.request("textDocument/definition", params).unwrap();
    assert!(definition["uri"].as_str().unwrap().ends_with("nn.spmd"), "{definition}");
    assert_eq!(client.end(), 0);
}

#[test]
fn a_field_of_an_unknown_struct_is_refused() {
    let text = "\
type Pair = { a: f32, b: f32 };
fn unused(p) { p.a }
fn main(p: Pair, x: f32[2]) { p.a + p.b + f32(x.size) }
";
    let mut client = opened(&[("main.spmd", text)]);
    let refused = rename(&mut client, "p.a + p.b", 2, "first").unwrap_err();
    let expected = "the struct of `a` in line 2 of `main.spmd` is unknown: nothing calls the function around it";
    assert_eq!(refused, expected);
    assert_eq!(rename(&mut client, "p.a }", 2, "first").unwrap_err(), expected);
    assert_eq!(rename(&mut client, "x.size", 2, "length").unwrap_err(), "`size` is an attribute of arrays");
    let refused = rename(&mut client, "p.b", 2, "a").unwrap_err();
    assert!(refused.starts_with("with the name `a`, the program would have an error: "), "{refused}");
    client.replace("main.spmd", "{ p.a }", "{ let { a, b } = p; a }");
    assert_eq!(rename(&mut client, "p.a + p.b", 2, "first").unwrap_err(), expected);
    client.replace("main.spmd", "{ let { a, b } = p; a }", "{ p.a }");
    // Other fields do not matter.
    let edit = rename(&mut client, "p.b", 2, "second").unwrap();
    client.apply(&edit);
    assert_eq!(client.text("main.spmd"), text.replace("b: f32 }", "second: f32 }").replace("p.b", "p.second"));
    client.replace("main.spmd", "p.second", "p.third");
    client.wait_for("main.spmd", "an error", |found| !found.is_empty());
    let refused = rename(&mut client, "a: f32", 0, "first").unwrap_err();
    assert!(refused.starts_with("`main.spmd` has errors, so the uses of the field `a` are unknown: "), "{refused}");
    assert_eq!(client.end(), 0);
}

#[test]
fn fields_follow_values_through_control_flow_and_functions() {
    let text = "\
mesh (X = 2);
manual(X) fn total(p: { w: f32[4@X], n: f32 }) -> f32 { psum(sum(p.w), X) + p.n }
fn scaled(p, by = 2.0) { { w: p.w * by, n: p.n } }
fn loss(p) { sum(p.w) + p.n }
fn main(x: f32[4]) -> f32 {
  let mut p = { w: x, n: 0.0 };
  for i in 0..3 { p = if p.n > 1.0 { scaled(p) } else { { w: p.w, n: p.n + 1.0 } }; }
  let rows = vmap(|p| p.w + p.n, in_axes=({ w: 0, n: _ },))(p);
  let (l, g) = value_and_grad(loss)(p);
  let q = custom_vjp(|p| p.w, |p| (p.w, ()), |r, g| ({ w: g, n: 0.0 },));
  let h = grad(|p| sum(q(p)))(p);
  let other = { w: 1.0 };
  total({ w: g.w, n: l }) + total(p) + sum(rows) + sum(h.w) + other.w
}
";
    let mut client = opened(&[("main.spmd", text)]);
    let edit = rename(&mut client, "w: x", 0, "values").unwrap();
    client.apply(&edit);
    client.wait_for("main.spmd", "no findings", <[Value]>::is_empty);
    let renamed = client.text("main.spmd").to_string();
    assert!(renamed.contains("other = { w: 1.0 }") && renamed.contains("+ other.w"), "{renamed}");
    assert!(renamed.contains("({ values: 0, n: _ },)") && renamed.contains("{ values: f32[4@X]"), "{renamed}");
    assert_eq!(client.end(), 0);
}
