//! The answers to requests.

use lsp_server::ErrorCode;
use lsp_types::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use spmdc_grammar::format::format;
use spmdc_grammar::span::FileId;

use crate::actions::{self, LayoutSearch};
use crate::documents::{ParsedFile, is_stablehlo};
use crate::searches::{Reply, SearchTask};
use crate::state::ServerState;
use crate::{completion, hints, hover, navigation, outline, signature, tokens};

/// The answer to a request.
pub enum Answer {
    /// The result.
    Value(Value),
    /// A search has the result later.
    Search(Box<SearchTask>),
    /// The reason why there is none.
    Refused(ErrorCode, String),
}

/// The answer without a result.
const NOTHING: Answer = Answer::Value(Value::Null);

fn value(result: impl Serialize) -> Answer {
    match serde_json::to_value(result) {
        Ok(value) => Answer::Value(value),
        Err(error) => Answer::Refused(ErrorCode::InternalError, error.to_string()),
    }
}

/// Calls `answer` with the parameters of the request.
fn with<P: DeserializeOwned>(params: Value, answer: impl FnOnce(P) -> Option<Answer>) -> Answer {
    match serde_json::from_value(params) {
        Ok(params) => answer(params).unwrap_or(NOTHING),
        Err(error) => Answer::Refused(ErrorCode::InvalidParams, error.to_string()),
    }
}

/// The answer to a request of this method.
pub fn answer(state: &ServerState, method: &str, params: Value) -> Answer {
    let is_answered = matches!(method, "textDocument/hover" | "textDocument/documentSymbol");
    if !is_answered && method.starts_with("textDocument/") && is_of_stablehlo(state, &params) {
        return NOTHING;
    }
    match method {
        "textDocument/hover" => with(params, |params: HoverParams| {
            let view = state.view(&params.text_document_position_params)?;
            Some(value(hover::hover(state, &view)))
        }),
        "textDocument/inlayHint" => with(params, |params: InlayHintParams| {
            let file = state.documents.file(&state.path(&params.text_document.uri)?)?;
            Some(value(hints::hints(state, &file, params.range)))
        }),
        "textDocument/definition" => with(params, |params: GotoDefinitionParams| {
            let view = state.view(&params.text_document_position_params)?;
            Some(value(navigation::definition(state, &view)))
        }),
        "textDocument/references" => with(params, |params: ReferenceParams| {
            let view = state.view(&params.text_document_position)?;
            Some(value(navigation::references(state, &view, params.context.include_declaration)))
        }),
        "textDocument/documentHighlight" => with(params, |params: DocumentHighlightParams| {
            let view = state.view(&params.text_document_position_params)?;
            Some(value(highlights(navigation::highlights(state, &view)?)))
        }),
        "textDocument/prepareRename" => with(params, |params: TextDocumentPositionParams| {
            let view = state.view(&params)?;
            Some(or_refused(navigation::renamable(state, &view)))
        }),
        "textDocument/rename" => with(params, |params: RenameParams| {
            let view = state.view(&params.text_document_position)?;
            Some(or_refused(navigation::rename(state, &view, &params.new_name)))
        }),
        "textDocument/completion" => with(params, |params: CompletionParams| {
            let (file, offset) = state.place(&params.text_document_position)?;
            Some(value(completion::completions(state, &file, offset)))
        }),
        "textDocument/signatureHelp" => with(params, |params: SignatureHelpParams| {
            let (file, offset) = state.place(&params.text_document_position_params)?;
            Some(value(signature::help(state, &file, offset)))
        }),
        "textDocument/documentSymbol" => with(params, |params: DocumentSymbolParams| {
            let file = state.documents.file(&state.path(&params.text_document.uri)?)?;
            Some(value(outline::symbols(&file)))
        }),
        "textDocument/foldingRange" => with(params, |params: FoldingRangeParams| {
            let file = state.documents.file(&state.path(&params.text_document.uri)?)?;
            Some(value(outline::folding(&file)))
        }),
        "textDocument/semanticTokens/full" => with(params, |params: SemanticTokensParams| {
            let file = state.documents.file(&state.path(&params.text_document.uri)?)?;
            Some(value(SemanticTokens { result_id: None, data: tokens::tokens(state, &file) }))
        }),
        "textDocument/formatting" => with(params, |params: DocumentFormattingParams| {
            let file = state.documents.file(&state.path(&params.text_document.uri)?)?;
            Some(value(formatting(&file)))
        }),
        "textDocument/codeAction" => with(params, |params: CodeActionParams| code_actions(state, &params)),
        "codeAction/resolve" => with(params, |action: CodeAction| Some(resolve(state, action))),
        _ => Answer::Refused(ErrorCode::MethodNotFound, format!("`{method}` is not supported")),
    }
}

/// Whether a request is about StableHLO text, of which hovers and symbols are known.
fn is_of_stablehlo(state: &ServerState, params: &Value) -> bool {
    let uri = params.get("textDocument").and_then(|document| serde_json::from_value(document["uri"].clone()).ok());
    uri.and_then(|uri| state.path(&uri)).is_some_and(|path| is_stablehlo(&path))
}

/// The edit that formats a file: of the lines between the first and the last change. None if the text has errors.
fn formatting(file: &ParsedFile) -> Option<Vec<TextEdit>> {
    let formatted = format(&file.text, FileId::default()).ok()?;
    if *formatted == *file.text {
        return Some(Vec::new());
    }
    let same = |(a, b): (&str, &str)| a == b;
    let pairs = || file.text.split_inclusive('\n').zip(formatted.split_inclusive('\n'));
    let start: usize = pairs().take_while(|pair| same(*pair)).map(|(line, _)| line.len()).sum();
    let (old, new) = (&file.text[start..], &formatted[start..]);
    let backwards = old.split_inclusive('\n').rev().zip(new.split_inclusive('\n').rev());
    let end: usize = backwards.take_while(|pair| same(*pair)).map(|(line, _)| line.len()).sum();
    debug_assert!(old.len() >= end && new.len() >= end, "the same lines are lines of both texts");
    let range = file.lines.positions(&file.text, start..file.text.len() - end);
    Some(vec![TextEdit { range, new_text: new[..new.len() - end].to_string() }])
}

fn or_refused(result: Result<impl Serialize, String>) -> Answer {
    match result {
        Ok(result) => value(result),
        Err(reason) => Answer::Refused(ErrorCode::RequestFailed, reason),
    }
}

fn highlights(found: Vec<(Range, bool)>) -> Vec<DocumentHighlight> {
    let highlight = |(range, is_definition)| DocumentHighlight {
        range,
        kind: Some(if is_definition { DocumentHighlightKind::WRITE } else { DocumentHighlightKind::READ }),
    };
    found.into_iter().map(highlight).collect()
}

fn code_actions(state: &ServerState, params: &CodeActionParams) -> Option<Answer> {
    let file = state.documents.file(&state.path(&params.text_document.uri)?)?;
    let offset = |position| file.lines.offset(&file.text, position);
    let range = offset(params.range.start)..offset(params.range.end);
    let mut found = actions::actions(state, &file, &range);
    if let Some((search, compiled)) = actions::searched(state, &file, range.start) {
        if !state.client.resolves_edits && params.context.trigger_kind != Some(CodeActionTriggerKind::AUTOMATIC) {
            let task = SearchTask { search, compiled, reply: Reply::List(found) };
            return Some(Answer::Search(Box::new(task)));
        }
        if state.client.resolves_edits {
            found.push(actions::unresolved(&search));
        }
    }
    Some(value(found))
}

/// The action with its edit; an error if the program has changed since.
fn resolve(state: &ServerState, action: CodeAction) -> Answer {
    let search: Option<LayoutSearch> = action.data.clone().and_then(|data| serde_json::from_value(data).ok());
    let Some(search) = search else { return value(action) };
    let file = state.documents.file(&search.path);
    let found = file.and_then(|file| {
        let offset = file.lines.range(&file.text, search.line).start;
        actions::searched(state, &file, offset)
    });
    match found {
        Some((search, compiled)) => {
            Answer::Search(Box::new(SearchTask { search, compiled, reply: Reply::Action(Box::new(action)) }))
        }
        None => Answer::Refused(ErrorCode::ContentModified, "the program has changed".to_string()),
    }
}
