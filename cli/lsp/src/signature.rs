//! Signature help.

use std::rc::Rc;

use lsp_types::{Documentation, ParameterInformation, ParameterLabel, SignatureHelp, SignatureInformation};
use spmdc_ir::call::signature::Given;

use crate::completion::{Callee, callee, head};
use crate::cursor::TokenCursor;
use crate::documents::ParsedFile;
use crate::resolve;
use crate::state::ServerState;

/// The signature of the function whose arguments are at an offset.
pub fn help(state: &ServerState, file: &Rc<ParsedFile>, offset: usize) -> Option<SignatureHelp> {
    let call = TokenCursor::new(&file.text, offset).call()?;
    let is_module = call.base.as_ref().is_some_and(|base| resolve::module(&state.documents, file, base).is_some());
    // The value before the dot is the first argument.
    let position = call.commas + usize::from(call.base.is_some() && !is_module);
    let (label, doc, names, labels) = match callee(state, file, &call)? {
        Callee::Item(file, name) => {
            let (item, function) = (resolve::item(&file, &name)?, resolve::function(&file, &name)?);
            let text = |span: spmdc_grammar::span::Span| file.slice(span.start as usize, span.end as usize).to_string();
            let names: Vec<String> = function.params.iter().map(|param| text(param.pattern.span)).collect();
            let labels: Vec<String> = function
                .params
                .iter()
                .map(|param| text(param.span).split_whitespace().collect::<Vec<_>>().join(" "))
                .collect();
            (head(&file, item, function), item.doc.join("\n"), names, labels)
        }
        Callee::Shipped(function) => {
            let signature = function.signature();
            let is_shown = |given: Given| match given {
                Given::Either | Given::Named | Given::Rest => true,
                Given::InDumps(_) => false,
            };
            let params: Vec<_> = signature.params.iter().filter(|param| is_shown(param.given)).collect();
            let label = |param: &&spmdc_ir::call::signature::ParamSpec| {
                let default = param.default.map_or_else(String::new, |default| format!(" = {default}"));
                format!("{}: {}{default}", param.name, param.kind)
            };
            let names = params.iter().map(|param| param.name.to_string()).collect();
            let labels = params.iter().map(label).collect();
            (signature.to_string(), signature.line().to_string(), names, labels)
        }
    };
    let named = call.keyword.and_then(|keyword| names.iter().position(|name| *name == keyword));
    let active = named.unwrap_or(position.min(names.len().saturating_sub(1)));
    let parameters = labels
        .into_iter()
        .map(|label| ParameterInformation { label: ParameterLabel::Simple(label), documentation: None });
    let information = SignatureInformation {
        label,
        documentation: (!doc.is_empty()).then_some(Documentation::String(doc)),
        parameters: Some(parameters.collect()),
        active_parameter: Some(active as u32),
    };
    Some(SignatureHelp {
        signatures: vec![information],
        active_signature: Some(0),
        active_parameter: Some(active as u32),
    })
}
