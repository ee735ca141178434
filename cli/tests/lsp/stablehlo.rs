//! StableHLO texts: findings, hovers and symbols.

use serde_json::{Value, json};

use crate::client::Client;

const LAYER: &str = "\
module @jit_f {
  sdy.mesh @mesh = <[\"X\"=2, \"Y\"=4]>
  func.func public @main(%arg0: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"X\"}, {\"Y\"}]>}, %arg1: tensor<32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"Y\"}, {}]>}) -> (tensor<16x8xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
    %1 = call @act(%0) : (tensor<16x8xf32>) -> tensor<16x8xf32>
    return %1 : tensor<16x8xf32>
  }
  func.func private @act(%arg0: tensor<16x8xf32>) -> (tensor<16x8xf32>) {
    %0 = stablehlo.tanh %arg0 : tensor<16x8xf32>
    return %0 : tensor<16x8xf32>
  }
}
";

#[test]
fn texts_have_findings_hovers_and_symbols() {
    let mut client = Client::with(&[("f.mlir", LAYER)]);
    client.open("f.mlir");
    assert_eq!(client.findings("f.mlir"), Vec::<Value>::new());
    let document = json!({ "textDocument": { "uri": client.uri("f.mlir") } });
    let symbols = client.request("textDocument/documentSymbol", document.clone()).unwrap();
    let names: Vec<&str> = symbols.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["mesh", "main", "act"], "{symbols}");
    assert_eq!(symbols[1]["children"][1]["name"], json!("%arg1"), "{symbols}");
    // The layouts are known when the program is compiled.
    let mut hover = String::new();
    for _ in 0..600 {
        hover = client.hover("f.mlir", "stablehlo.dot_general", 3);
        if !hover.is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(hover.contains("f32[16@X,8]"), "{hover}");
    assert!(hover.contains("all_reduce over Y"), "{hover}");
    assert!(client.hover("f.mlir", "stablehlo.tanh", 3).contains("f32[16@X,8]"));
    for method in ["definition", "references", "completion", "signatureHelp", "prepareRename", "documentHighlight"] {
        let mut params = client.at("f.mlir", "arg0, %arg1, contracting", 2);
        params["context"] = json!({ "includeDeclaration": true });
        assert_eq!(client.request(&format!("textDocument/{method}"), params), Ok(json!(null)), "{method}");
    }
    for method in ["foldingRange", "semanticTokens/full", "formatting"] {
        let mut params = document.clone();
        params["options"] = json!({ "tabSize": 2, "insertSpaces": true });
        assert_eq!(client.request(&format!("textDocument/{method}"), params), Ok(json!(null)), "{method}");
    }
    assert_eq!(client.end(), 0);
}

#[test]
fn findings_of_a_text_are_in_its_lines() {
    let mut client = Client::with(&[("f.mlir", LAYER)]);
    client.open("f.mlir");
    client.replace("f.mlir", "stablehlo.tanh", "stablehlo.tanhh");
    let found = client.findings("f.mlir");
    assert_eq!((&found[0]["code"], &found[0]["range"]["start"]["line"]), (&json!("E0111"), &json!(8)), "{found:?}");
    client.replace("f.mlir", "stablehlo.tanhh", "stablehlo.tanh");
    client.wait_for("f.mlir", "no findings", <[Value]>::is_empty);
    client.replace("f.mlir", "return %1", "retrun %1");
    let found = client.findings("f.mlir");
    assert_eq!(found[0]["range"]["start"]["line"], json!(5), "{found:?}");
    assert_eq!(client.end(), 0);
}
