//! Semantic tokens.

use std::collections::BTreeMap;
use std::rc::Rc;

use lsp_types::{SemanticToken, SemanticTokenModifier, SemanticTokenType};
use spmdc_grammar::ast::ItemKind;
use spmdc_grammar::classify::{TokenClass, classified};

use crate::documents::ParsedFile;
use crate::resolve::{self, Identity};
use crate::state::ServerState;
use crate::symbols::{BindingKind, Meaning, Occurrence};

/// The types of tokens, in the order of their numbers.
pub const TYPES: [SemanticTokenType; 14] = [
    SemanticTokenType::KEYWORD,
    SemanticTokenType::TYPE,
    SemanticTokenType::NUMBER,
    SemanticTokenType::STRING,
    SemanticTokenType::COMMENT,
    SemanticTokenType::OPERATOR,
    SemanticTokenType::VARIABLE,
    SemanticTokenType::PARAMETER,
    SemanticTokenType::TYPE_PARAMETER,
    SemanticTokenType::FUNCTION,
    SemanticTokenType::NAMESPACE,
    SemanticTokenType::PROPERTY,
    SemanticTokenType::ENUM_MEMBER,
    SemanticTokenType::ENUM,
];

/// The modifiers of tokens, in the order of their bits.
pub const MODIFIERS: [SemanticTokenModifier; 4] = [
    SemanticTokenModifier::DECLARATION,
    SemanticTokenModifier::READONLY,
    SemanticTokenModifier::DEFAULT_LIBRARY,
    SemanticTokenModifier::DOCUMENTATION,
];

const DECLARATION: u32 = 1;
const READONLY: u32 = 2;
const LIBRARY: u32 = 4;
const DOCUMENTATION: u32 = 8;

fn number(ty: &SemanticTokenType) -> u32 {
    TYPES.iter().position(|known| known == ty).unwrap_or_default() as u32
}

/// The tokens of a file, each relative to the one before it.
pub fn tokens(state: &ServerState, file: &Rc<ParsedFile>) -> Vec<SemanticToken> {
    let names: BTreeMap<usize, &Occurrence> =
        file.symbols.occurrences.iter().map(|occurrence| (occurrence.range.start, occurrence)).collect();
    let mut globals: BTreeMap<(Option<&str>, &str), (SemanticTokenType, u32)> = BTreeMap::new();
    let mut found = Vec::new();
    let (mut line, mut character) = (0, 0);
    for token in classified(&file.text) {
        let name = names.get(&token.start).filter(|occurrence| occurrence.range.end == token.end);
        let class = match name {
            Some(occurrence) => Some(of_name(state, file, occurrence, &mut globals)),
            None => of_class(token.class),
        };
        let Some((ty, modifiers)) = class else { continue };
        let at = file.lines.position(&file.text, token.start);
        let length: usize = file.slice(token.start, token.end).chars().map(char::len_utf16).sum();
        let delta_line = at.line - line;
        let delta_start = if delta_line == 0 { at.character - character } else { at.character };
        (line, character) = (at.line, at.character);
        found.push(SemanticToken {
            delta_line,
            delta_start,
            length: length as u32,
            token_type: number(&ty),
            token_modifiers_bitset: modifiers,
        });
    }
    found
}

fn of_class(class: TokenClass) -> Option<(SemanticTokenType, u32)> {
    match class {
        TokenClass::Keyword => Some((SemanticTokenType::KEYWORD, 0)),
        TokenClass::ElementType => Some((SemanticTokenType::TYPE, LIBRARY)),
        TokenClass::Number => Some((SemanticTokenType::NUMBER, 0)),
        TokenClass::String => Some((SemanticTokenType::STRING, 0)),
        TokenClass::Comment => Some((SemanticTokenType::COMMENT, 0)),
        TokenClass::DocComment => Some((SemanticTokenType::COMMENT, DOCUMENTATION)),
        TokenClass::Operator => Some((SemanticTokenType::OPERATOR, 0)),
        TokenClass::Name => Some((SemanticTokenType::VARIABLE, 0)),
        TokenClass::Open
        | TokenClass::Close
        | TokenClass::Comma
        | TokenClass::Dot
        | TokenClass::Punctuation
        | TokenClass::Malformed => None,
    }
}

fn of_name<'f>(
    state: &ServerState,
    file: &Rc<ParsedFile>,
    occurrence: &'f Occurrence,
    globals: &mut BTreeMap<(Option<&'f str>, &'f str), (SemanticTokenType, u32)>,
) -> (SemanticTokenType, u32) {
    let declared = if occurrence.is_definition { DECLARATION } else { 0 };
    match &occurrence.meaning {
        Meaning::Local(start) => {
            let kind = file.symbols.binding(*start).map_or(BindingKind::Variable, |binding| binding.kind);
            let ty = match kind {
                BindingKind::Param => SemanticTokenType::PARAMETER,
                BindingKind::SizeParam => SemanticTokenType::TYPE_PARAMETER,
                BindingKind::Variable => SemanticTokenType::VARIABLE,
            };
            (ty, declared)
        }
        Meaning::Field => (SemanticTokenType::PROPERTY, declared),
        Meaning::Keyword { .. } => (SemanticTokenType::PARAMETER, 0),
        Meaning::Axis => (SemanticTokenType::ENUM_MEMBER, declared),
        Meaning::Mesh => (SemanticTokenType::ENUM, declared),
        Meaning::Global { .. } | Meaning::Method => {
            let module = if let Meaning::Global { module } = &occurrence.meaning { module.as_deref() } else { None };
            let key = (module, occurrence.name.as_str());
            let (ty, modifiers) = globals.entry(key).or_insert_with(|| global(state, file, occurrence)).clone();
            (ty, modifiers | declared)
        }
    }
}

fn global(state: &ServerState, file: &Rc<ParsedFile>, occurrence: &Occurrence) -> (SemanticTokenType, u32) {
    match resolve::identity(&state.documents, file, occurrence) {
        Some(Identity::Item(path, name)) => {
            let defining = state.documents.file(&path);
            let item = defining.as_ref().and_then(|file| resolve::item(file, &name));
            match item.map(|item| &item.kind) {
                Some(ItemKind::Fn(_)) => (SemanticTokenType::FUNCTION, 0),
                Some(ItemKind::Type { .. }) => (SemanticTokenType::TYPE, 0),
                Some(ItemKind::Import { .. }) => (SemanticTokenType::NAMESPACE, 0),
                Some(ItemKind::Const { .. } | ItemKind::Mesh(_) | ItemKind::Test(_)) | None => {
                    (SemanticTokenType::VARIABLE, READONLY)
                }
            }
        }
        Some(Identity::Module(..)) => (SemanticTokenType::NAMESPACE, 0),
        Some(Identity::Axis(_)) => (SemanticTokenType::ENUM_MEMBER, 0),
        Some(Identity::Mesh(_)) => (SemanticTokenType::ENUM, 0),
        Some(Identity::Shipped(_)) => (SemanticTokenType::FUNCTION, LIBRARY),
        Some(Identity::Field(_)) => (SemanticTokenType::PROPERTY, 0),
        Some(Identity::Local(..) | Identity::ShippedParam(..)) | None => (SemanticTokenType::VARIABLE, 0),
    }
}
