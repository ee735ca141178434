//! The abilities of the server and of the client.

use lsp_types::*;

use crate::state::ClientAbilities;
use crate::tokens;

/// The abilities of the server.
pub fn of_server() -> ServerCapabilities {
    let characters = |all: &[&str]| Some(all.iter().map(|text| (*text).to_string()).collect());
    ServerCapabilities {
        position_encoding: Some(PositionEncodingKind::UTF16),
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::INCREMENTAL),
            save: Some(TextDocumentSyncSaveOptions::Supported(true)),
            ..TextDocumentSyncOptions::default()
        })),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        inlay_hint_provider: Some(OneOf::Left(true)),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        document_highlight_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        })),
        completion_provider: Some(CompletionOptions {
            trigger_characters: characters(&[".", "@", "\"", "/"]),
            ..CompletionOptions::default()
        }),
        signature_help_provider: Some(SignatureHelpOptions {
            trigger_characters: characters(&["(", ","]),
            retrigger_characters: characters(&["="]),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        }),
        document_symbol_provider: Some(OneOf::Left(true)),
        document_formatting_provider: Some(OneOf::Left(true)),
        folding_range_provider: Some(FoldingRangeProviderCapability::Simple(true)),
        semantic_tokens_provider: Some(SemanticTokensServerCapabilities::SemanticTokensOptions(
            SemanticTokensOptions {
                legend: SemanticTokensLegend {
                    token_types: tokens::TYPES.to_vec(),
                    token_modifiers: tokens::MODIFIERS.to_vec(),
                },
                full: Some(SemanticTokensFullOptions::Bool(true)),
                ..SemanticTokensOptions::default()
            },
        )),
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![CodeActionKind::QUICKFIX, CodeActionKind::REFACTOR_REWRITE]),
            resolve_provider: Some(true),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        })),
        ..ServerCapabilities::default()
    }
}

/// The abilities of a client that the server uses.
pub fn of_client(params: &InitializeParams) -> ClientAbilities {
    let text = params.capabilities.text_document.as_ref();
    let resolves = |client: &TextDocumentClientCapabilities| {
        let resolve = client.code_action.as_ref()?.resolve_support.as_ref()?;
        Some(resolve.properties.iter().any(|property| property == "edit"))
    };
    let has_snippets =
        |client: &TextDocumentClientCapabilities| client.completion.as_ref()?.completion_item.as_ref()?.snippet_support;
    let refreshes = || params.capabilities.workspace.as_ref()?.inlay_hint.as_ref()?.refresh_support;
    let watches = || params.capabilities.workspace.as_ref()?.did_change_watched_files.as_ref()?.dynamic_registration;
    ClientAbilities {
        watches_files: watches().unwrap_or(false),
        resolves_edits: text.and_then(resolves).unwrap_or(false),
        refreshes_hints: refreshes().unwrap_or(false),
        has_snippets: text.and_then(has_snippets).unwrap_or(false),
    }
}
