//! The protocol itself: cancellation, unknown requests, and the end.

use serde_json::json;

use crate::client::Client;

/// A program that takes long to search.
fn long() -> String {
    let mut text =
        "mesh (X = 2, Y = 2);\nfn main(x: f32[64@X, 64]) -> f32[64@X, 64] {\n  let y0: f32[64@_, 64@_] = x;\n"
            .to_string();
    for at in 0..150 {
        text += &format!("  let y{} = tanh(y{at} @ transpose(y{at})) + {at}.0;\n", at + 1);
    }
    text + "  y150\n}\n"
}

#[test]
fn a_search_can_be_cancelled() {
    let text = long();
    let mut client = Client::with(&[("main.spmd", &text)]);
    client.open("main.spmd");
    client.hints("main.spmd");
    let actions = client.actions("main.spmd", "y0: f32");
    let search = actions.iter().find(|action| !action["data"].is_null()).unwrap().clone();
    let id = client.ask("codeAction/resolve", search);
    // The server goes on while it searches.
    assert!(client.hover("main.spmd", "tanh", 0).contains("fn tanh"));
    client.notify("$/cancelRequest", json!({ "id": id }));
    assert_eq!(client.answer(id).unwrap_err()["code"], json!(-32800));
    assert!(!client.completions("main.spmd", "let y1 = ").is_empty());
    assert_eq!(client.end(), 0);
}

#[test]
fn a_search_of_another_text_is_refused() {
    let text = long();
    let mut client = Client::with(&[("main.spmd", &text)]);
    client.open("main.spmd");
    client.hints("main.spmd");
    let actions = client.actions("main.spmd", "y0: f32");
    let search = actions.iter().find(|action| !action["data"].is_null()).unwrap().clone();
    client.replace("main.spmd", "tanh", "sin");
    assert_eq!(client.request("codeAction/resolve", search).unwrap_err()["code"], json!(-32801));
    assert_eq!(client.end(), 0);
}

#[test]
fn unknown_and_wrong_requests_are_refused() {
    let mut client = Client::with(&[]);
    let error = client.request("textDocument/magic", json!({})).unwrap_err();
    assert_eq!(error["code"], json!(-32601));
    assert_eq!(client.request("textDocument/hover", json!({ "position": 3 })).unwrap_err()["code"], json!(-32602));
    client.notify("$/magic", json!({ "a": [1] }));
    client.notify("textDocument/didChange", json!(7));
    let nowhere = json!({ "textDocument": { "uri": "untitled:1" }, "position": { "line": 0, "character": 0 } });
    assert_eq!(client.request("textDocument/hover", nowhere), Ok(json!(null)));
    let gone =
        json!({ "textDocument": { "uri": "file:///no/such/file.spmd" }, "position": { "line": 9, "character": 9 } });
    for method in ["hover", "definition", "completion", "signatureHelp", "prepareRename"] {
        assert_eq!(client.request(&format!("textDocument/{method}"), gone.clone()), Ok(json!(null)), "{method}");
    }
    assert_eq!(client.end(), 0);
}

#[test]
fn the_server_ends_as_the_protocol_says() {
    let mut client = Client::with(&[]);
    assert_eq!(client.request("shutdown", json!(null)), Ok(json!(null)));
    assert_eq!(client.request("textDocument/hover", json!(null)).unwrap_err()["code"], json!(-32600));
    client.notify("exit", json!(null));
    assert_eq!(client.leave(), 0);
    assert_eq!(Client::with(&[]).exit(), 1);
    assert_eq!(Client::with(&[]).leave(), 1);
}
