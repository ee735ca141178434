//! An editor without a window.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The longest wait for an answer: machines of tests are busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// The client, its server and the files of both.
pub struct Client {
    process: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    asked: i32,
    folder: TempDir,
    /// The texts of the open documents, with their versions.
    open: BTreeMap<String, (i64, String)>,
    /// The newest findings of each file: the version and the list.
    found: BTreeMap<String, (Option<i64>, Vec<Value>)>,
    /// Answers that came before they were asked for.
    answers: BTreeMap<i64, Value>,
    /// Other notifications.
    pub notifications: Vec<Value>,
}

impl Client {
    /// A server in a folder with these files.
    pub fn with(files: &[(&str, &str)]) -> Client {
        Client::configured(files, json!(null))
    }

    /// The same with options of the client.
    pub fn configured(files: &[(&str, &str)], options: Value) -> Client {
        let abilities = json!({
            "textDocument": { "codeAction": { "resolveSupport": { "properties": ["edit"] } } },
            "workspace": { "inlayHint": { "refreshSupport": true } },
        });
        Client::started(files, options, &abilities)
    }

    /// The same with options and abilities of the client.
    pub fn started(files: &[(&str, &str)], options: Value, abilities: &Value) -> Client {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_spmdc"));
        command.arg("lsp").env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, messages) = channel();
        thread::spawn(move || read(output, &|message| sender.send(message).is_ok()));
        let input = process.stdin.take().unwrap();
        let mut client = Client {
            process,
            input,
            messages,
            asked: 0,
            folder,
            open: BTreeMap::new(),
            found: BTreeMap::new(),
            answers: BTreeMap::new(),
            notifications: Vec::new(),
        };
        let root = client.uri("");
        let params = json!({
            "processId": null, "rootUri": root, "capabilities": abilities, "initializationOptions": options,
            "workspaceFolders": [{ "uri": root, "name": "test" }],
        });
        client.request("initialize", params).unwrap();
        client.notify("initialized", json!({}));
        client
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn uri(&self, name: &str) -> String {
        format!("file://{}", self.path(name).display())
    }

    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        self.input.flush().unwrap();
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request, and returns its number.
    pub fn ask(&mut self, method: &str, params: Value) -> i32 {
        self.asked += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }));
        self.asked
    }

    /// The answer to a request: its result or its error.
    pub fn answer(&mut self, id: i32) -> Result<Value, Value> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(mut answer) = self.answers.remove(&i64::from(id)) {
                return match answer.get_mut("error") {
                    Some(error) => Err(error.take()),
                    None => Ok(answer["result"].take()),
                };
            }
            self.take(end.saturating_duration_since(Instant::now()));
        }
    }

    pub fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Waits for a message.
    fn take(&mut self, patience: Duration) {
        let message = self.messages.recv_timeout(patience).unwrap_or_else(|_| panic!("the server is silent"));
        match (message["method"].as_str(), message["id"].as_i64()) {
            (None, Some(id)) => {
                self.answers.insert(id, message);
            }
            (Some("textDocument/publishDiagnostics"), _) => {
                let params = &message["params"];
                let list = params["diagnostics"].as_array().unwrap().clone();
                self.found.insert(params["uri"].as_str().unwrap().to_string(), (params["version"].as_i64(), list));
            }
            (Some(_), Some(_) | None) if !message["id"].is_null() => {
                let id = message["id"].clone();
                self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": null }));
            }
            _ => self.notifications.push(message),
        }
    }

    /// Opens a file with the text on disk.
    pub fn open(&mut self, name: &str) {
        let text = fs::read_to_string(self.path(name)).unwrap();
        self.open_with(name, &text);
    }

    /// Opens a file with another text.
    pub fn open_with(&mut self, name: &str, text: &str) {
        let document = json!({ "uri": self.uri(name), "languageId": "spmd", "version": 1, "text": text });
        self.open.insert(name.to_string(), (1, text.to_string()));
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    pub fn text(&self, name: &str) -> &str {
        &self.open[name].1
    }

    /// Replaces a range of bytes of an open file.
    pub fn change(&mut self, name: &str, range: std::ops::Range<usize>, new: &str) {
        let text = self.text(name).to_string();
        let (start, end) = (position(&text, range.start), position(&text, range.end));
        let change = json!({ "range": { "start": start, "end": end }, "text": new });
        let (version, text) = self.open.get_mut(name).unwrap();
        *version += 1;
        text.replace_range(range, new);
        let document =
            json!({ "uri": format!("file://{}", self.folder.path().join(name).display()), "version": version });
        self.notify("textDocument/didChange", json!({ "textDocument": document, "contentChanges": [change] }));
    }

    /// Replaces the first occurrence of a text of an open file.
    pub fn replace(&mut self, name: &str, old: &str, new: &str) {
        let at = self.text(name).find(old).unwrap_or_else(|| panic!("{old:?} is not in {name}"));
        self.change(name, at..at + old.len(), new);
    }

    /// The findings of the present version of an open file.
    pub fn findings(&mut self, name: &str) -> Vec<Value> {
        let (uri, version) = (self.uri(name), self.open[name].0);
        let end = Instant::now() + PATIENCE;
        loop {
            // The server sends the findings of each version that it has checked.
            if let Some((Some(known), list)) = self.found.get(&uri)
                && *known == version
            {
                return list.clone();
            }
            self.take(end.saturating_duration_since(Instant::now()));
        }
    }

    /// Waits until the findings of a file are as wanted.
    pub fn wait_for(&mut self, name: &str, what: &str, wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let uri = self.uri(name);
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some((_, list)) = self.found.get(&uri)
                && wanted(list)
            {
                return list.clone();
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what}: {:?}", self.found.get(&uri));
            if let Ok(message) = self.messages.recv_timeout(left.min(Duration::from_millis(100))) {
                let (sender, single) = channel();
                sender.send(message).unwrap();
                let others = std::mem::replace(&mut self.messages, single);
                self.take(Duration::ZERO);
                self.messages = others;
            }
        }
    }

    /// The parameters of a request at the start of a text of an open file, or `by` bytes after it.
    pub fn at(&self, name: &str, text: &str, by: usize) -> Value {
        let whole = self.text(name);
        let start = whole.find(text).unwrap_or_else(|| panic!("{text:?} is not in {whole}"));
        json!({ "textDocument": { "uri": self.uri(name) }, "position": position(whole, start + by) })
    }

    /// The text of a hover at the start of a text, or `by` bytes after it.
    pub fn hover(&mut self, name: &str, text: &str, by: usize) -> String {
        let params = self.at(name, text, by);
        let answer = self.request("textDocument/hover", params).unwrap();
        answer["contents"]["value"].as_str().unwrap_or_default().to_string()
    }

    /// The labels of hints as `line:label`, once there are any.
    pub fn hints(&mut self, name: &str) -> Vec<String> {
        self.wait_for_hints(name, |hints| !hints.is_empty())
    }

    /// The same, once they are as wanted.
    pub fn wait_for_hints(&mut self, name: &str, wanted: impl Fn(&[String]) -> bool) -> Vec<String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 9999, "character": 0 } });
            let params = json!({ "textDocument": { "uri": self.uri(name) }, "range": range });
            let answer = self.request("textDocument/inlayHint", params).unwrap();
            let label = |hint: &Value| {
                let line = hint["position"]["line"].as_u64().unwrap() + 1;
                format!("{line}:{}", hint["label"].as_str().unwrap())
            };
            let labels: Vec<String> = answer.as_array().unwrap().iter().map(label).collect();
            if wanted(&labels) {
                return labels;
            }
            assert!(Instant::now() < end, "{labels:?}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// The labels of the completions at the end of a text.
    pub fn completions(&mut self, name: &str, after: &str) -> Vec<String> {
        let params = self.at(name, after, after.len());
        let answer = self.request("textDocument/completion", params).unwrap();
        answer.as_array().unwrap().iter().map(|item| item["label"].as_str().unwrap().to_string()).collect()
    }

    /// The code actions at the start of a text.
    pub fn actions(&mut self, name: &str, text: &str) -> Vec<Value> {
        let params = self.at(name, text, 0);
        let range = json!({ "start": params["position"], "end": params["position"] });
        let context = json!({ "diagnostics": [], "triggerKind": 1 });
        let params = json!({ "textDocument": params["textDocument"], "range": range, "context": context });
        self.request("textDocument/codeAction", params).unwrap().as_array().unwrap().clone()
    }

    /// Applies an edit of the workspace to open files, and writes them to disk.
    pub fn apply(&mut self, edit: &Value) {
        for (uri, edits) in edit["changes"].as_object().unwrap() {
            let folder = format!("file://{}/", self.folder.path().display());
            let name = uri.strip_prefix(&folder).unwrap().to_string();
            if !self.open.contains_key(&name) {
                self.open(&name);
            }
            let text = self.text(&name).to_string();
            let place = |position: &Value| offset(&text, position);
            let mut edits: Vec<(usize, usize, String)> = edits
                .as_array()
                .unwrap()
                .iter()
                .map(|edit| {
                    let new = edit["newText"].as_str().unwrap().to_string();
                    (place(&edit["range"]["start"]), place(&edit["range"]["end"]), new)
                })
                .collect();
            edits.sort();
            for (start, end, new) in edits.into_iter().rev() {
                self.change(&name, start..end, &new);
            }
            fs::write(self.path(&name), self.text(&name)).unwrap();
        }
    }

    /// Ends the server, and returns its exit status.
    pub fn end(mut self) -> i32 {
        assert_eq!(self.request("shutdown", json!(null)), Ok(json!(null)));
        self.notify("exit", json!(null));
        self.process.wait().unwrap().code().unwrap()
    }

    /// Closes standard input, and returns the exit status.
    pub fn leave(self) -> i32 {
        let Client { mut process, input, .. } = self;
        drop(input);
        process.wait().unwrap().code().unwrap()
    }

    /// The exit status after `exit` without `shutdown`.
    pub fn exit(mut self) -> i32 {
        self.notify("exit", json!(null));
        self.process.wait().unwrap().code().unwrap()
    }
}

/// Reads messages until the end of the stream.
fn read(mut from: impl BufRead, send: &dyn Fn(Value) -> bool) {
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if from.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            match line.trim() {
                "" => break,
                line => length = line.strip_prefix("Content-Length: ").map_or(length, |text| text.parse().unwrap()),
            }
        }
        let mut body = vec![0; length];
        if from.read_exact(&mut body).is_err() || !send(serde_json::from_slice(&body).unwrap()) {
            return;
        }
    }
}

/// The position of a byte offset, in UTF-16 code units.
pub fn position(text: &str, offset: usize) -> Value {
    let line = text[..offset].matches('\n').count();
    let start = text[..offset].rfind('\n').map_or(0, |end| end + 1);
    json!({ "line": line, "character": text[start..offset].encode_utf16().count() })
}

/// The byte offset of a position.
pub fn offset(text: &str, position: &Value) -> usize {
    let line = position["line"].as_u64().unwrap() as usize;
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let mut left = position["character"].as_u64().unwrap() as usize;
    for (at, c) in text[start..].char_indices() {
        if left == 0 || c == '\n' {
            return start + at;
        }
        left = left.saturating_sub(c.len_utf16());
    }
    text.len()
}

/// The text of a file at a location.
pub fn located(location: &Value) -> (PathBuf, String) {
    let path = Path::new(location["uri"].as_str().unwrap().strip_prefix("file://").unwrap()).to_path_buf();
    let text = fs::read_to_string(&path).unwrap();
    let range = offset(&text, &location["range"]["start"])..offset(&text, &location["range"]["end"]);
    (path, text[range].to_string())
}
