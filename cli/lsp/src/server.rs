//! The loop of the server: it takes messages in order, and answers each request from the newest texts.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::{
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, InitializeParams,
    InitializeResult, ServerInfo,
};
use serde_json::Value;
use spmdc_check::MeshOverride;
use spmdc_compiler::report::lints::Lint;

use crate::analysis::{AnalysisJob, Analyst, Send};
use crate::documents::Documents;
use crate::functions::FunctionTexts;
use crate::handlers::{self, Answer};
use crate::positions::path_of;
use crate::programs::Settings;
use crate::searches::Searches;
use crate::shipped::Copies;
use crate::state::{ClientAbilities, ServerState};
use crate::{capabilities, searches};

/// How the server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEnd {
    /// The client asked for it.
    Shutdown,
    /// The client has gone, or ended without announcing it.
    Disconnected,
}

/// Serves a client until it ends the server. `folder` is where copies of the sources of the compiler are written for the editor.
pub fn serve(connection: Connection, folder: Option<PathBuf>) -> std::io::Result<ServerEnd> {
    let Ok((id, params)) = connection.initialize_start() else { return Ok(ServerEnd::Disconnected) };
    // Fields of newer versions of the protocol are skipped; a client with others is served without what it cannot say.
    let params: InitializeParams = serde_json::from_value(params).unwrap_or_default();
    let result = InitializeResult {
        capabilities: capabilities::of_server(),
        server_info: Some(ServerInfo {
            name: "spmdc".to_string(),
            version: Some(env!("CARGO_PKG_VERSION").to_string()),
        }),
    };
    let result = serde_json::to_value(result)?;
    if connection.initialize_finish(id, result).is_err() {
        return Ok(ServerEnd::Disconnected);
    }
    let mut server = Server::start(&connection, &params, folder)?;
    let end = server.run(&connection);
    server.state.analyst.end();
    Ok(end)
}

/// The state of the server.
pub struct Server {
    state: ServerState,
    /// Searches for edits, on a thread of their own.
    searches: Searches,
    send: Send,
    is_shut_down: bool,
}

impl Server {
    fn start(connection: &Connection, params: &InitializeParams, folder: Option<PathBuf>) -> std::io::Result<Server> {
        let sender = connection.sender.clone();
        let send: Send = Arc::new(move |message| {
            // If the client has gone, the loop ends by itself.
            let _ = sender.send(message);
        });
        let client = capabilities::of_client(params);
        let copies = Copies { folder };
        let (settings, wrong) = settings(params.initialization_options.as_ref());
        for message in wrong {
            let params = serde_json::json!({ "type": 2, "message": message });
            send(Message::Notification(Notification { method: "window/showMessage".to_string(), params }));
        }
        if client.watches_files {
            let watchers = serde_json::json!([{ "globPattern": "**/*.spmd" }]);
            let registration = serde_json::json!({
                "id": "files", "method": "workspace/didChangeWatchedFiles", "registerOptions": { "watchers": watchers },
            });
            send(Message::Request(Request {
                id: RequestId::from("files".to_string()),
                method: "client/registerCapability".to_string(),
                params: serde_json::json!({ "registrations": [registration] }),
            }));
        }
        let refresh = refresher(&client, &send);
        let analyst = Analyst::start(Arc::clone(&send), copies.clone(), refresh)?;
        let searches = Searches::start(Arc::clone(&send))?;
        // The prelude is parsed when its functions are first used, so they are used now.
        let parse = || {
            spmdc_functions::functions().for_each(|function| {
                function.signature();
            });
        };
        std::thread::Builder::new().spawn(parse)?;
        let state = ServerState {
            documents: Documents::default(),
            analyst,
            copies,
            folders: folders(params),
            client,
            settings,
            functions: FunctionTexts::default(),
        };
        Ok(Server { state, searches, send, is_shut_down: false })
    }

    fn run(&mut self, connection: &Connection) -> ServerEnd {
        let mut waiting: VecDeque<Message> = VecDeque::new();
        loop {
            if waiting.is_empty() {
                match connection.receiver.recv() {
                    Ok(message) => waiting.push_back(message),
                    Err(_) => return ServerEnd::Disconnected,
                }
            }
            // A request is dropped if its cancellation already waits.
            while let Ok(message) = connection.receiver.try_recv() {
                waiting.push_back(message);
            }
            self.cancel_waiting(&mut waiting);
            let Some(message) = waiting.pop_front() else { continue };
            let has_more = waiting.front().is_some_and(is_change);
            match message {
                Message::Request(request) => self.request(request),
                Message::Notification(notification) if notification.method == "exit" => {
                    return if self.is_shut_down { ServerEnd::Shutdown } else { ServerEnd::Disconnected };
                }
                Message::Notification(notification) => self.notification(notification, has_more),
                // Answers to requests for new hints.
                Message::Response(_) => {}
            }
        }
    }

    /// Answers the waiting requests that have been cancelled.
    fn cancel_waiting(&mut self, waiting: &mut VecDeque<Message>) {
        let cancelled: Vec<RequestId> = waiting.iter().filter_map(cancelled).collect();
        if cancelled.is_empty() {
            return;
        }
        waiting.retain(|message| match message {
            Message::Request(request) if cancelled.contains(&request.id) => {
                (self.send)(searches::cancelled(request.id.clone()));
                false
            }
            Message::Request(_) | Message::Notification(_) | Message::Response(_) => true,
        });
    }

    fn request(&mut self, request: Request) {
        let Request { id, method, params } = request;
        if self.is_shut_down {
            let message = "the server is shutting down".to_string();
            return self.respond(Response::new_err(id, ErrorCode::InvalidRequest as i32, message));
        }
        if method == "shutdown" {
            self.is_shut_down = true;
            return self.respond(Response::new_ok(id, Value::Null));
        }
        let state = &self.state;
        let answer = catch_unwind(AssertUnwindSafe(|| handlers::answer(state, &method, params)));
        let response = match answer {
            Ok(Answer::Value(value)) => Response::new_ok(id, value),
            Ok(Answer::Search(search)) => return self.searches.add(id, *search),
            Ok(Answer::Refused(code, message)) => Response::new_err(id, code as i32, message),
            Err(_) => {
                let message = format!("`{method}` failed, which is a defect of spmdc");
                Response::new_err(id, ErrorCode::InternalError as i32, message)
            }
        };
        self.respond(response);
    }

    fn respond(&self, response: Response) {
        (self.send)(Message::Response(response));
    }

    fn notification(&mut self, notification: Notification, has_more: bool) {
        let Notification { method, params } = notification;
        let done = catch_unwind(AssertUnwindSafe(|| self.notified(&method, params)));
        // Several changes that have come together are analysed once.
        if !matches!(done, Ok(false)) && !has_more {
            let roots = self.state.documents.recent().cloned().collect();
            let job =
                AnalysisJob { overlay: self.state.documents.overlay(), roots, settings: self.state.settings.clone() };
            self.state.analyst.analyse(job);
        }
    }

    /// Takes a notification, and returns whether the programs have to be analysed again.
    fn notified(&mut self, method: &str, params: Value) -> bool {
        match method {
            "textDocument/didOpen" => {
                let Ok(DidOpenTextDocumentParams { text_document }) = serde_json::from_value(params) else {
                    return false;
                };
                let Some(path) = self.state.path(&text_document.uri) else { return false };
                self.state.documents.open(path, text_document.version, text_document.text);
                true
            }
            "textDocument/didChange" => {
                let Ok(DidChangeTextDocumentParams { text_document, content_changes }) = serde_json::from_value(params)
                else {
                    return false;
                };
                let Some(path) = self.state.path(&text_document.uri) else { return false };
                self.state.documents.change(&path, text_document.version, content_changes);
                true
            }
            "textDocument/didClose" => {
                let Ok(DidCloseTextDocumentParams { text_document }) = serde_json::from_value(params) else {
                    return false;
                };
                let Some(path) = self.state.path(&text_document.uri) else { return false };
                self.state.documents.close(&path);
                true
            }
            // Imported files may have changed on disk.
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => true,
            "$/cancelRequest" => {
                let message = Message::Notification(Notification { method: method.to_string(), params });
                cancelled(&message).iter().for_each(|id| self.searches.cancel(id));
                false
            }
            _ => false,
        }
    }
}

fn is_change(message: &Message) -> bool {
    matches!(message, Message::Notification(notification) if notification.method == "textDocument/didChange")
}

/// The request that a message cancels.
fn cancelled(message: &Message) -> Option<RequestId> {
    let Message::Notification(Notification { method, params }) = message else { return None };
    if method != "$/cancelRequest" {
        return None;
    }
    serde_json::from_value(params.get("id")?.clone()).ok()
}

/// Asks the client for new hints, if it can be asked.
fn refresher(client: &ClientAbilities, send: &Send) -> impl Fn() + std::marker::Send + use<> {
    let (refreshes, send) = (client.refreshes_hints, Arc::clone(send));
    let asked = std::sync::atomic::AtomicU32::new(0);
    move || {
        if refreshes {
            let number = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let id = RequestId::from(format!("hints {number}"));
            let request = Request { id, method: "workspace/inlayHint/refresh".to_string(), params: Value::Null };
            send(Message::Request(request));
        }
    }
}

/// The folders of the workspace.
fn folders(params: &InitializeParams) -> Vec<PathBuf> {
    let folders = params.workspace_folders.iter().flatten();
    let mut found: Vec<PathBuf> = folders.filter_map(|folder| path_of(&folder.uri)).collect();
    if found.is_empty() {
        #[allow(deprecated, reason = "older clients have no folders")]
        found.extend(params.root_uri.as_ref().and_then(path_of));
    }
    found
}

/// The settings in the options of the client, and messages on wrong ones: `{"mesh": "2x4", "set": {"N": "128"}, "entry": "main", "warn":
/// ["implicit-reshard"]}`.
fn settings(options: Option<&Value>) -> (Settings, Vec<String>) {
    let (mut settings, mut wrong) = (Settings::default(), Vec::new());
    let text = |name: &str| options.and_then(|options| options.get(name)).and_then(Value::as_str);
    if let Some(mesh) = text("mesh") {
        match MeshOverride::parse(mesh) {
            Ok(mesh) => settings.check.mesh = Some(mesh),
            Err(error) => wrong.push(format!("the setting `mesh`: {}", error.message)),
        }
    }
    settings.check.entry = text("entry").map(str::to_string);
    let constants = options.and_then(|options| options.get("set")).and_then(Value::as_object);
    let constants: BTreeMap<&String, &Value> = constants.into_iter().flatten().collect();
    for (name, value) in constants {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        settings.check.sets.push((name.clone(), value));
    }
    let lints = options.and_then(|options| options.get("warn")).and_then(Value::as_array);
    for lint in lints.into_iter().flatten().filter_map(Value::as_str) {
        match Lint::named(lint) {
            Some(lint) => settings.lints.push(lint),
            None => wrong.push(format!("the setting `warn`: there is no lint `{lint}`")),
        }
    }
    (settings, wrong)
}
