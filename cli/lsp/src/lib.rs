//! The language server of the language, which `spmdc lsp` starts.
//!
//! The loop (`server`) takes messages in order. It keeps the open documents (`documents`) and answers requests (`handlers`) from their trees
//! and names (`symbols`, `resolve`), and from the newest results of the compiler (`analysis`), which come from two other threads. Positions of
//! results are those of the compiled text; `positions` maps them to the present one.
#![warn(missing_docs)]

mod actions;
mod analysis;
mod capabilities;
mod carried;
mod completion;
mod cursor;
mod documents;
mod fields;
mod findings;
mod functions;
mod handlers;
mod hints;
mod hover;
mod navigation;
mod outline;
mod positions;
mod programs;
mod resolve;
mod searches;
mod server;
mod shipped;
mod signature;
mod state;
mod symbols;
mod tokens;
mod values;
mod worker;
mod workspace;

use std::path::PathBuf;
use std::thread;

use lsp_server::Connection;

pub use crate::server::ServerEnd;

/// Serves the client at standard input and output. `folder` is where copies of the sources of the compiler are written for the editor; None if
/// the user has no folder for caches. An error if a thread cannot be started.
pub fn serve(folder: Option<PathBuf>) -> std::io::Result<ServerEnd> {
    let (connection, threads) = Connection::stdio();
    // Trees may be deep, and requests walk them.
    let server = thread::Builder::new().name("server".to_string()).stack_size(worker::STACK_BYTES);
    let server = server.spawn(move || server::serve(connection, folder))?;
    let end = server.join().unwrap_or(Ok(ServerEnd::Disconnected))?;
    if end == ServerEnd::Shutdown {
        // The reader ends with the message `exit`, and the writer when all messages are written.
        let _ = threads.join();
    }
    Ok(end)
}
