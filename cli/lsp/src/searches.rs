//! Searches for edits that avoid collectives. Each compiles the program many times, so they run on a thread of their own.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use lsp_server::{ErrorCode, Message, Notification, RequestId, Response};
use lsp_types::CodeAction;
use serde_json::Value;

use crate::actions::{LayoutSearch, resolve};
use crate::analysis::Send;
use crate::programs::CompiledProgram;
use crate::worker::{STACK_BYTES, lock};

/// Maximum number of searches that wait; older ones are refused.
const MAX_WAITING: usize = 8;

/// A search for a request.
#[derive(Debug)]
pub struct SearchTask {
    /// The line.
    pub search: LayoutSearch,
    /// The program.
    pub compiled: Arc<CompiledProgram>,
    /// The kind of the answer.
    pub reply: Reply,
}

/// The kind of the answer to a search.
#[derive(Debug)]
pub enum Reply {
    /// The actions of a line, after these.
    List(Vec<CodeAction>),
    /// This action with its edit.
    Action(Box<CodeAction>),
}

/// The thread, and the requests that wait for its answers.
pub struct Searches {
    queue: Sender<(RequestId, SearchTask)>,
    waiting: Arc<Mutex<VecDeque<RequestId>>>,
    send: Send,
}

impl Searches {
    /// Starts the thread.
    pub fn start(send: Send) -> std::io::Result<Searches> {
        let (queue, tasks) = channel();
        let waiting: Arc<Mutex<VecDeque<RequestId>>> = Arc::default();
        let (own, to) = (Arc::clone(&waiting), Arc::clone(&send));
        thread::Builder::new()
            .name("search".to_string())
            .stack_size(STACK_BYTES)
            .spawn(move || work(&tasks, &own, &to))?;
        Ok(Searches { queue, waiting, send })
    }

    /// Adds a search, whose result answers the request.
    pub fn add(&self, id: RequestId, task: SearchTask) {
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= MAX_WAITING
            && let Some(oldest) = waiting.pop_front()
        {
            (self.send)(cancelled(oldest));
        }
        waiting.push_back(id.clone());
        drop(waiting);
        // The thread ends with the server only.
        let _ = self.queue.send((id, task));
    }

    /// Answers a request as cancelled, unless it has been answered.
    pub fn cancel(&self, id: &RequestId) {
        if take(&self.waiting, id) {
            (self.send)(cancelled(id.clone()));
        }
    }
}

/// Removes a request from those that wait, and returns whether it was one.
fn take(waiting: &Mutex<VecDeque<RequestId>>, id: &RequestId) -> bool {
    let mut waiting = lock(waiting);
    let before = waiting.len();
    waiting.retain(|known| known != id);
    waiting.len() < before
}

/// The answer to a cancelled request.
pub fn cancelled(id: RequestId) -> Message {
    let message = "the request was cancelled".to_string();
    Message::Response(Response::new_err(id, ErrorCode::RequestCanceled as i32, message))
}

fn work(tasks: &Receiver<(RequestId, SearchTask)>, waiting: &Mutex<VecDeque<RequestId>>, send: &Send) {
    while let Ok((id, task)) = tasks.recv() {
        if !lock(waiting).contains(&id) {
            continue;
        }
        let found = catch_unwind(AssertUnwindSafe(|| resolve(&task.search, &task.compiled))).unwrap_or_default();
        if take(waiting, &id) {
            send(Message::Response(Response::new_ok(id, answer(task.reply, found, send))));
        }
    }
}

fn answer(reply: Reply, mut found: Vec<CodeAction>, send: &Send) -> Value {
    let value = match reply {
        Reply::List(mut actions) => {
            actions.append(&mut found);
            serde_json::to_value(actions)
        }
        Reply::Action(action) => {
            // Edits for several collectives of a line may change the same annotation, so only the best is made.
            let best = if found.is_empty() { None } else { Some(found.swap_remove(0)) };
            let message = best.as_ref().map_or(
                "no change of one annotation avoids these collectives and communicates less by 1% or more",
                |best| best.title.as_str(),
            );
            let params = serde_json::json!({ "type": 3, "message": message });
            send(Message::Notification(Notification { method: "window/showMessage".to_string(), params }));
            let edit = best.and_then(|best| best.edit);
            serde_json::to_value(CodeAction { edit, ..*action })
        }
    };
    value.unwrap_or_default()
}
