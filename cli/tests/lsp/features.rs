//! Each request on small programs.

use serde_json::{Value, json};

use crate::client::{Client, located};

const NETWORK: &str = "\
mesh (X = 2, Y = 4);
import \"nn.spmd\" as nn;
import \"std/nn.spmd\" as std;

/// Twice the value.
fn twice(value, times = 2) { times * value }

fn main(x: f32[16@X, 32], w: f32[32@Y, 8]) -> f32[16@X, 8] {
  let h = x @ w;
  let s = nn.dense(h, scale=2.0);
  twice(relu(s), times=3)
}
";

const NN: &str = "\
/// A layer.
fn dense(x, scale = 1.0) {
  let y = x * scale;
  y
}
";

fn network() -> Client {
    let mut client = Client::with(&[("main.spmd", NETWORK), ("nn.spmd", NN)]);
    client.open("main.spmd");
    assert_eq!(client.findings("main.spmd"), Vec::<Value>::new());
    client
}

fn messages(found: &[Value]) -> Vec<&str> {
    found.iter().map(|one| one["message"].as_str().unwrap()).collect()
}

#[test]
fn findings_follow_edits() {
    let mut client = network();
    client.replace("main.spmd", "relu(s)", "rleu(s)");
    let found = client.findings("main.spmd");
    assert_eq!(messages(&found), ["unknown name `rleu`\nnot found in this scope"], "{found:?}");
    assert_eq!((&found[0]["severity"], &found[0]["source"]), (&json!(1), &json!("spmdc")));
    assert_eq!(found[0]["range"]["start"], json!({ "line": 10, "character": 8 }));
    assert!(found[0]["code"].as_str().unwrap().starts_with('E'));
    assert!(found[0]["relatedInformation"][0]["message"].as_str().unwrap().contains("relu"), "{found:?}");
    client.replace("main.spmd", "rleu(s)", "relu(");
    assert!(!client.findings("main.spmd").is_empty());
    client.replace("main.spmd", "relu(", "relu(s)");
    client.wait_for("main.spmd", "no findings", <[Value]>::is_empty);
    // Findings of the checker stay where they are while another line does not parse.
    client.replace("main.spmd", "relu(s)", "rleu(s)");
    assert_eq!(client.findings("main.spmd").len(), 1);
    client.replace("main.spmd", "let h = x @ w;", "\n  let h = x @ ;");
    let found = client.findings("main.spmd");
    let lines: Vec<u64> = found.iter().map(|one| one["range"]["start"]["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [9, 11], "{found:?}");
    assert_eq!(client.end(), 0);
}

#[test]
fn unsaved_texts_of_imports_count() {
    let mut client = network();
    client.open("nn.spmd");
    client.replace("nn.spmd", "fn dense", "fn layer");
    let found = client.wait_for("main.spmd", "an unknown member", |found| !found.is_empty());
    assert!(messages(&found)[0].contains("dense"), "{found:?}");
    client.replace("nn.spmd", "fn layer", "fn dense");
    client.wait_for("main.spmd", "no findings", <[Value]>::is_empty);
    // A file without `main` has no findings about it.
    assert_eq!(client.findings("nn.spmd"), Vec::<Value>::new());
    // The file on disk counts again after the document is closed.
    client.replace("nn.spmd", "fn dense", "fn layer");
    client.wait_for("main.spmd", "an unknown member", |found| !found.is_empty());
    let uri = client.uri("nn.spmd");
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    client.wait_for("main.spmd", "no findings", <[Value]>::is_empty);
    assert_eq!(client.end(), 0);
}

#[test]
fn findings_in_an_import_are_shown_there() {
    let mut client = Client::with(&[("main.spmd", NETWORK), ("nn.spmd", "fn dense(x, scale = 1.0) { x * scal }\n")]);
    client.open("main.spmd");
    let found = client.wait_for("nn.spmd", "an unknown name", |found| !found.is_empty());
    assert_eq!(messages(&found), ["unknown name `scal`\nnot found in this scope"]);
    assert_eq!(client.end(), 0);
}

#[test]
fn hints_show_layouts_and_collectives() {
    let mut client = network();
    let hints = client.hints("main.spmd");
    let expected = ["9:: f32[16@X,8]", "9:all_reduce over Y: ", "10:: f32[16@X,8]"];
    assert_eq!(hints.len(), expected.len(), "{hints:?}");
    assert!(hints.iter().zip(expected).all(|(hint, start)| hint.starts_with(start)), "{hints:?}");
    // Hints move with the text, also while it has errors.
    client.replace("main.spmd", "\n\n///", "\n\nfn broken( {\n\n///");
    assert!(client.hints("main.spmd")[0].starts_with("11:: f32[16@X,8]"));
    // An imported file has the hints of the programs that import it.
    client.open("nn.spmd");
    assert_eq!(client.hints("nn.spmd"), ["3:: f32[16@X,8]"]);
    assert_eq!(client.end(), 0);
}

#[test]
fn hovers_show_types_functions_and_causes() {
    let mut client = network();
    client.hints("main.spmd");
    let text = client.hover("main.spmd", "h = x", 0);
    for part in [
        "let h: f32[16@X,8]",
        "512 bytes in all, at most 256 bytes on a device: `f32[8,8]`",
        "┌──",
        "`X` splits dimension 0",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(
        text.contains("all_reduce over Y") && text.contains("sums over a dimension that is split over Y"),
        "{text}"
    );
    let text = client.hover("main.spmd", "relu", 1);
    for part in ["fn relu(x: array)", "Element types: ", "Rule:", "Collectives on mesh (X = 2, Y = 2)"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let text = client.hover("main.spmd", "twice(relu", 0);
    assert!(text.contains("fn twice(value, times = 2)") && text.contains("Twice the value."), "{text}");
    assert!(client.hover("main.spmd", "@ w", 0).contains("f32[16@X,8]"));
    assert!(client.hover("main.spmd", "value }", 0).contains("parameter value: f32[16@X,8]"));
    assert!(client.hover("main.spmd", "times=3", 0).contains("times = 2"));
    assert!(client.hover("main.spmd", "dense(h", 0).contains("A layer."));
    assert!(client.hover("main.spmd", "X, 32", 0).contains("mesh (X = 2, Y = 4)"));
    assert_eq!(client.hover("main.spmd", "// Twice", 0), "");
    assert_eq!(client.end(), 0);
}

#[test]
fn definitions_lead_over_imports_and_into_the_prelude() {
    let mut client = network();
    let mut definition = |text: &str, by: usize| {
        let params = client.at("main.spmd", text, by);
        let answer = client.request("textDocument/definition", params).unwrap();
        let (path, text) = located(&answer);
        (
            path.file_name().unwrap().to_string_lossy().into_owned(),
            text,
            answer["range"]["start"]["line"].as_u64().unwrap() + 1,
        )
    };
    let found = |file: &str, text: &str, line| (file.to_string(), text.to_string(), line);
    assert_eq!(definition("h, scale", 0), found("main.spmd", "h", 9));
    assert_eq!(definition("twice(relu", 2), found("main.spmd", "twice", 6));
    assert_eq!(definition("dense(h", 0), found("nn.spmd", "dense", 2));
    assert_eq!(definition("scale=2", 0), found("nn.spmd", "scale", 2));
    assert_eq!(definition("\"nn.spmd\"", 3).0, "nn.spmd");
    assert_eq!(definition("X, 32", 0), found("main.spmd", "X", 1));
    client.replace("main.spmd", "relu(s)", "softplus(s) + std.linear(s, s, s)");
    let mut definition = |text: &str| {
        let params = client.at("main.spmd", text, 0);
        let answer = client.request("textDocument/definition", params).unwrap();
        if answer.is_null() { (std::path::PathBuf::new(), String::new()) } else { located(&answer) }
    };
    let (path, text) = definition("softplus");
    assert!(path.ends_with("prelude/elementwise.spmd") && text == "softplus", "{path:?} {text}");
    assert_eq!(client.end(), 0);
}

#[test]
fn references_and_names_are_found_in_all_files() {
    let mut client = network();
    let mut params = client.at("main.spmd", "dense(h", 0);
    params["context"] = json!({ "includeDeclaration": true });
    let answer = client.request("textDocument/references", params).unwrap();
    let mut found: Vec<String> = answer.as_array().unwrap().iter().map(|one| located(one).1).collect();
    found.sort();
    assert_eq!(found, ["dense", "dense"]);
    let mut params = client.at("main.spmd", "scale=2", 0);
    params["newName"] = json!("factor");
    let edit = client.request("textDocument/rename", params).unwrap();
    client.apply(&edit);
    assert!(client.text("main.spmd").contains("nn.dense(h, factor=2.0)"));
    assert!(client.text("nn.spmd").contains("fn dense(x, factor = 1.0) {\n  let y = x * factor;"));
    client.wait_for("main.spmd", "no findings", <[Value]>::is_empty);
    assert_eq!(client.end(), 0);
}

#[test]
fn renaming_keeps_fields_and_refuses_taken_names() {
    let text = "fn main(a: f32[2]) {\n  let w = a;\n  let p = { w, b: a };\n  let { w, b } = p;\n  w + b\n}\n";
    let mut client = Client::with(&[("main.spmd", text)]);
    client.open("main.spmd");
    assert!(client.findings("main.spmd").is_empty());
    let mut rename = |text: &str, name: &str| {
        let mut params = client.at("main.spmd", text, 0);
        params["newName"] = json!(name);
        client.request("textDocument/rename", params)
    };
    let refused = |result: Result<Value, Value>| result.unwrap_err()["message"].as_str().unwrap().to_string();
    assert_eq!(refused(rename("w = a", "let")), "`let` is not a name");
    assert_eq!(refused(rename("w = a", "p")), "`p` is already defined here");
    let edit = rename("w = a", "v").unwrap();
    client.apply(&edit);
    let renamed = "fn main(a: f32[2]) {\n  let v = a;\n  let p = { w: v, b: a };\n  let { w, b } = p;\n  w + b\n}\n";
    assert_eq!(client.text("main.spmd"), renamed);
    let mut params = client.at("main.spmd", "w, b } = p", 0);
    params["newName"] = json!("u");
    let edit = client.request("textDocument/rename", params).unwrap();
    client.apply(&edit);
    assert!(client.text("main.spmd").ends_with("let { w: u, b } = p;\n  u + b\n}\n"), "{}", client.text("main.spmd"));
    assert_eq!(client.findings("main.spmd"), Vec::<Value>::new());
    assert_eq!(client.end(), 0);
}

#[test]
fn an_axis_is_renamed_wherever_it_is_named() {
    let text = "mesh (X = 2, Y = 2);\nmanual(X) fn total(x: f32[4@X]) -> f32 { psum(sum(x), X) }\nfn main(x: f32[4@X]) -> f32 {\n  \
                total(reshard(x, P(X)))\n}\n";
    let mut client = Client::with(&[("main.spmd", text)]);
    client.open("main.spmd");
    assert_eq!(client.findings("main.spmd"), Vec::<Value>::new());
    let mut params = client.at("main.spmd", "X)))", 0);
    params["newName"] = json!("rows");
    let edit = client.request("textDocument/rename", params).unwrap();
    client.apply(&edit);
    assert_eq!(client.text("main.spmd"), text.replace('X', "rows"));
    assert_eq!(client.findings("main.spmd"), Vec::<Value>::new());
    let params = client.at("main.spmd", "psum", 0);
    let error = client.request("textDocument/prepareRename", params).unwrap_err();
    assert_eq!(error["message"], json!("`psum` is a name of the compiler"));
    assert_eq!(client.end(), 0);
}

#[test]
fn completions_fit_their_places() {
    let mut client = network();
    client.hints("main.spmd");
    // A text with errors, as it is while one types.
    client.replace("main.spmd", "twice(relu(s), times=3)", "let z = nn.\n}\n");
    assert_eq!(client.completions("main.spmd", "let z = nn."), ["dense"]);
    client.replace("main.spmd", "let z = nn.", "let z = h.su");
    let found = client.completions("main.spmd", "let z = h.su");
    for name in ["sum", "shape", "twice"] {
        assert!(found.iter().any(|label| label == name), "{name}: {found:?}");
    }
    assert!(!found.iter().any(|label| label == "let" || label == "X"), "{found:?}");
    client.replace("main.spmd", "let z = h.su", "let z = sum(h, ");
    let found = client.completions("main.spmd", "let z = sum(h, ");
    assert_eq!(found[..5], ["x=", "axis=", "keepdims=", "dtype=", "initial="]);
    for name in ["h", "s", "x", "w", "twice", "nn", "X", "relu", "f32", "let"] {
        assert!(found.iter().any(|label| label == name), "{name}: {found:?}");
    }
    assert!(!found.iter().any(|label| label == "pin"), "a function of dumps");
    client.replace("main.spmd", "let z = sum(h, ", "let z: f32[16@");
    assert_eq!(client.completions("main.spmd", "let z: f32[16@"), ["X", "Y"]);
    client.replace("main.spmd", "import \"nn.spmd\"", "import \"");
    let found = client.completions("main.spmd", "import \"");
    assert!(
        found.iter().any(|label| label == "nn.spmd") && found.iter().any(|label| label == "std/optim.spmd"),
        "{found:?}"
    );
    assert_eq!(client.end(), 0);
}

#[test]
fn signatures_follow_the_arguments() {
    let mut client = network();
    client.replace("main.spmd", "twice(relu(s), times=3)", "nn.dense(relu(s), ");
    let mut help = |after: &str| {
        let params = client.at("main.spmd", after, after.len());
        let answer = client.request("textDocument/signatureHelp", params).unwrap();
        let label = answer["signatures"][0]["label"].as_str().unwrap().to_string();
        (label, answer["activeParameter"].as_u64().unwrap())
    };
    assert_eq!(help("nn.dense(relu(s), "), ("fn dense(x, scale = 1.0)".to_string(), 1));
    assert_eq!(help("nn.dense(relu("), ("relu(x: array)".to_string(), 0));
    client.replace("main.spmd", "nn.dense(relu(s), ", "s.sum(keepdims=");
    let params = client.at("main.spmd", "keepdims=", 9);
    assert_eq!(client.request("textDocument/signatureHelp", params).unwrap()["activeParameter"], json!(2));
    assert_eq!(client.end(), 0);
}

#[test]
fn outlines_folds_and_tokens_are_those_of_the_text() {
    let mut client = network();
    let document = json!({ "textDocument": { "uri": client.uri("main.spmd") } });
    let symbols = client.request("textDocument/documentSymbol", document.clone()).unwrap();
    let names: Vec<&str> = symbols.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["mesh", "nn", "std", "twice", "main"]);
    assert_eq!(symbols[0]["children"][1]["name"], json!("Y"));
    let folds = client.request("textDocument/foldingRange", document.clone()).unwrap();
    assert!(folds.as_array().unwrap().iter().any(|fold| fold["startLine"] == json!(7) && fold["endLine"] == json!(10)));
    assert!(folds.as_array().unwrap().iter().any(|fold| fold["kind"] == json!("imports")));
    let tokens = client.request("textDocument/semanticTokens/full", document).unwrap();
    let data = tokens["data"].as_array().unwrap();
    assert!(data.len() > 100 && data.len().is_multiple_of(5));
    // `mesh` is a keyword, `X` a declared axis.
    assert_eq!(data[..4], [json!(0), json!(0), json!(4), json!(0)]);
    assert_eq!(data[5..10], [json!(0), json!(6), json!(1), json!(12), json!(1)]);
    assert_eq!(client.end(), 0);
}

#[test]
fn formatting_changes_the_lines_that_differ() {
    let text = "// one\nfn f(x) { x }\ntest \"all\"   { assert(f( 1)==1); }\nfn main() { f(2) }\n";
    let mut client = Client::with(&[("main.spmd", text)]);
    client.open("main.spmd");
    let params = json!({
        "textDocument": { "uri": client.uri("main.spmd") }, "options": { "tabSize": 2, "insertSpaces": true },
    });
    let edits = client.request("textDocument/formatting", params.clone()).unwrap();
    let range = json!({ "start": { "line": 2, "character": 0 }, "end": { "line": 3, "character": 0 } });
    assert_eq!(edits, json!([{ "range": range, "newText": "test \"all\" { assert(f(1) == 1); }\n" }]));
    let symbols = client.request("textDocument/documentSymbol", params.clone()).unwrap();
    assert_eq!(symbols[1]["name"], json!("test \"all\""));
    client.replace("main.spmd", "f( 1)==1", "f( 1)==");
    assert_eq!(client.request("textDocument/formatting", params), Ok(json!(null)));
    assert_eq!(client.end(), 0);
}

#[test]
fn an_action_applied_gives_a_program_that_checks() {
    let text = "\
mesh (X: explicit = 2, Y: explicit = 4);
fn main(a: f32[8@X, 16@Y], b: f32[16@Y, 8]) -> f32[8@X, 8] { a @ b }
";
    let mut client = Client::with(&[("main.spmd", text)]);
    client.open("main.spmd");
    let found = client.findings("main.spmd");
    assert_eq!(found[0]["code"], json!("E0301"));
    let actions = client.actions("main.spmd", "@ b");
    assert!(actions.len() > 1, "{actions:?}");
    let titles: Vec<&str> = actions.iter().map(|action| action["title"].as_str().unwrap()).collect();
    assert!(titles.iter().any(|title| title.contains("all_reduce") && title.contains("bytes")), "{titles:?}");
    let action =
        actions.iter().find(|action| action["title"].as_str().unwrap().contains("out=P(X, _)")).unwrap_or(&actions[0]);
    assert_eq!((&action["kind"], &action["diagnostics"][0]["code"]), (&json!("quickfix"), &json!("E0301")));
    client.apply(&action["edit"]);
    client.wait_for("main.spmd", "no findings", <[Value]>::is_empty);
    assert_eq!(client.end(), 0);
}

const GATHERED: &str = "\
mesh (X = 4);
fn main(x: f32[64@X, 64]) -> f32[64@X, 64] {
  let y: f32[64@_, 64@_] = x * 2.0;
  y + 1.0
}
";

#[test]
fn a_client_that_cannot_wait_for_edits_gets_them_at_once() {
    let mut client = Client::started(&[("main.spmd", GATHERED)], json!(null), &json!({}));
    client.open("main.spmd");
    client.hints("main.spmd");
    let actions = client.actions("main.spmd", "y: f32");
    let titles: Vec<&str> = actions.iter().map(|action| action["title"].as_str().unwrap()).collect();
    assert!(titles.iter().any(|title| title.contains("a device receives 0 bytes instead of ")), "{titles:?}");
    assert_eq!(client.end(), 0);
}

#[test]
fn a_search_finds_the_layout_that_avoids_a_collective() {
    let text = GATHERED;
    let mut client = Client::with(&[("main.spmd", text)]);
    client.open("main.spmd");
    assert!(client.hints("main.spmd").iter().any(|hint| hint.starts_with("3:all_gather over X: ")));
    let actions = client.actions("main.spmd", "y: f32");
    let search = actions.iter().find(|action| !action["data"].is_null()).unwrap();
    let action = client.request("codeAction/resolve", search.clone()).unwrap();
    client.apply(&action["edit"]);
    assert_ne!(client.text("main.spmd"), text);
    assert_eq!(client.findings("main.spmd"), Vec::<Value>::new());
    client.wait_for_hints("main.spmd", |hints| !hints.iter().any(|hint| hint.starts_with("3:all_gather")));
    assert_eq!(client.end(), 0);
}

#[test]
fn the_type_of_a_variable_can_be_written() {
    let mut client = network();
    client.hints("main.spmd");
    let actions = client.actions("main.spmd", "h = x");
    let write = actions.iter().find(|action| action["title"] == json!("Write the type of `h`: `f32[16@X,8]`")).unwrap();
    client.apply(&write["edit"]);
    assert!(client.text("main.spmd").contains("let h: f32[16@X,8] = x @ w;"));
    assert_eq!(client.findings("main.spmd"), Vec::<Value>::new());
    assert_eq!(client.end(), 0);
}

#[test]
fn positions_are_utf16_units() {
    let text = "fn main(x: f32[2]) {\n  /* \u{1f980} */ x\n}\n";
    let text = text.replace("/* \u{1f980} */ x", "print(\"\u{1f980}\u{1f980} {}\", x); xx");
    let mut client = Client::with(&[("main.spmd", &text)]);
    client.open("main.spmd");
    let found = client.findings("main.spmd");
    // Two characters outside of the basic plane are four units.
    assert_eq!(found[0]["range"]["start"], json!({ "line": 1, "character": 23 }), "{found:?}");
    client.replace("main.spmd", "xx", "x");
    client.wait_for("main.spmd", "no findings", <[Value]>::is_empty);
    let params = client.at("main.spmd", "x); x", 0);
    let answer = client.request("textDocument/definition", params).unwrap();
    assert_eq!(answer["range"]["start"], json!({ "line": 0, "character": 8 }));
    client.replace("main.spmd", "\u{1f980} {}", "{} \u{1f600}");
    assert_eq!(client.findings("main.spmd"), Vec::<Value>::new());
    assert_eq!(client.end(), 0);
}

#[test]
fn settings_give_the_mesh_and_constants() {
    let text = "const N = 8;\nfn main(x: f32[N@X]) -> f32 {\n  sum(x)\n}\n";
    let options = json!({ "mesh": "X=4", "set": { "N": 16 }, "warn": ["implicit-reshard", "nonsense"] });
    let mut client = Client::configured(&[("main.spmd", text)], options);
    client.open("main.spmd");
    assert_eq!(client.hints("main.spmd"), ["3:all_reduce over X: 6 bytes received"]);
    assert!(
        client
            .notifications
            .iter()
            .any(|one| one["params"]["message"].as_str().unwrap_or_default().contains("nonsense"))
    );
    assert_eq!(client.end(), 0);
}
