//! Random edits of real programs, with requests between them: the server answers each, and its memory stays bounded.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Client, position};

/// Bytes of memory that the server may have used at most.
const MAX_MEMORY: u64 = 2 << 30;

/// Parts of programs that are inserted.
const PARTS: [&str; 32] = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ";",
    ",",
    ".",
    "@",
    "@X",
    "\"",
    "//",
    "\n",
    " ",
    "let x = ",
    "fn f(x) { x }\n",
    "x.",
    "sum(",
    "axis=",
    "f32[8@",
    "P(",
    "mesh (X = 2);\n",
    "import \"std/nn.spmd\" as nn;\n",
    "nn.",
    "if ",
    "for i in 0..3 ",
    "|a| ",
    "\u{1f980}",
    "é",
    "\r\n",
    "0",
];

struct Random(u64);

impl Random {
    /// A number below a bound: splitmix64.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound.max(1) as u64) as usize
    }

    /// The start of a character of a text, or its end.
    fn place(&mut self, text: &str) -> usize {
        let mut at = self.below(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

const METHODS: [&str; 14] = [
    "hover",
    "definition",
    "references",
    "documentHighlight",
    "prepareRename",
    "rename",
    "completion",
    "signatureHelp",
    "documentSymbol",
    "foldingRange",
    "semanticTokens/full",
    "inlayHint",
    "codeAction",
    "formatting",
];

fn params(client: &Client, name: &str, random: &mut Random) -> Value {
    let text = client.text(name);
    let at = position(text, random.place(text));
    let end = json!({ "line": 9999, "character": 0 });
    json!({
        "textDocument": { "uri": client.uri(name) }, "position": at, "newName": "renamed", "range": { "start": at, "end": end },
        "options": { "tabSize": 2, "insertSpaces": true },
        "context": { "includeDeclaration": true, "diagnostics": [], "triggerKind": 1, "isRetrigger": false },
    })
}

/// The largest memory that a process has had, in bytes; None if the system does not say it.
fn peak(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

#[test]
fn random_edits_do_not_stop_the_server() {
    let variable = |name: &str, default: usize| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (edits, seed) = (variable("EDITS", 300), variable("EDIT", 1));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let names = ["tensor_parallel", "heat", "kmeans", "language_model", "manual_total", "pipeline"];
    let texts: Vec<(String, String)> = names
        .iter()
        .map(|name| (format!("{name}.spmd"), fs::read_to_string(root.join(format!("examples/{name}.spmd"))).unwrap()))
        .collect();
    let files: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let mut client = Client::with(&files);
    let mut random = Random(seed as u64);
    let mut undo: Vec<(usize, usize, String)> = Vec::new();
    let mut name = files[0].0;
    client.open(name);
    for edit in 0..edits {
        // Most edits stay in one file; from time to time all of them are taken back, so that the program compiles again.
        if edit % 25 == 24 {
            while let Some((start, len, old)) = undo.pop() {
                client.change(name, start..start + len, &old);
            }
            let uri = client.uri(name);
            client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
            name = files[random.below(files.len())].0;
            client.open(name);
        }
        let text = client.text(name).to_string();
        let start = random.place(&text);
        let mut end = (start + random.below(4) * random.below(12)).min(text.len());
        while !text.is_char_boundary(end) {
            end += 1;
        }
        let new = if random.below(4) == 0 { "" } else { PARTS[random.below(PARTS.len())] };
        undo.push((start, new.len(), text[start..end].to_string()));
        client.change(name, start..end, new);
        // Most texts are replaced before they are checked, and few are compiled.
        if edit % 10 == 0 {
            client.findings(name);
        }
        if edit % 100 == 99 {
            std::thread::sleep(Duration::from_millis(400));
        }
        for _ in 0..2 {
            let method = METHODS[random.below(METHODS.len())];
            let params = params(&client, name, &mut random);
            if let Err(error) = client.request(&format!("textDocument/{method}"), params) {
                // A name that cannot be renamed; a defect is an internal error.
                assert_eq!(error["code"], json!(-32803), "EDIT={seed}, edit {edit}, {method}: {error}");
            }
        }
    }
    let is_defect = |message: &&Value| message["params"]["message"].as_str().unwrap_or_default().contains("defect");
    assert_eq!(client.notifications.iter().find(is_defect), None, "EDIT={seed}");
    let peak = peak(client.process_id());
    assert!(peak.is_none_or(|peak| peak < MAX_MEMORY), "EDIT={seed}: {peak:?} bytes of memory");
    eprintln!("{edits} edits, at most {} MiB", peak.unwrap_or_default() >> 20);
    assert_eq!(client.end(), 0);
}
