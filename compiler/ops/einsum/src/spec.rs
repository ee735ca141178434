//! The notation of `einsum`: a letter for each dimension of each operand and of the result.
//!
//! `"...ij,jk->...ik"` with operands of rank 4 and 2 becomes the labels `ABij`, `jk` and `ABik`: the dimensions of `...` get unused
//! letters, counted from the last. So operands of different rank broadcast.

use spmdc_grammar::codes::Code;
use spmdc_grammar::sentences::count;
use spmdc_ir::mismatch::Mismatch;

/// The notation for operands of known rank: every dimension has a letter, and `...` is replaced.
#[derive(Clone, Debug, PartialEq)]
pub struct EinsumSpec {
    /// For each operand the letters of its dimensions.
    pub inputs: Vec<Vec<char>>,
    /// The letters of the result's dimensions.
    pub output: Vec<char>,
}

fn malformed(message: impl Into<String>) -> Mismatch {
    Mismatch::new(Code::E0216, message)
}

/// One operand's or the result's labels; `None` represents `...`.
fn parse_term(text: &str) -> Result<Vec<Option<char>>, Mismatch> {
    let mut labels = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            if labels.contains(&None) {
                return Err(malformed(format!("`{text}` has `...` twice")));
            }
            labels.push(None);
            rest = after;
        } else if first.is_ascii_alphabetic() {
            labels.push(Some(first));
            rest = &rest[1..];
        } else {
            return Err(malformed(format!("invalid label `{first}`: labels are letters, as in \"ij,jk->ik\"")));
        }
    }
    Ok(labels)
}

/// Reads the text for operands of these ranks.
pub fn parse(text: &str, ranks: &[usize]) -> Result<EinsumSpec, Mismatch> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, output) = match compact.split_once("->") {
        Some((inputs, output)) => (inputs, Some(parse_term(output)?)),
        None => (compact.as_str(), None),
    };
    let inputs = inputs.split(',').map(parse_term).collect::<Result<Vec<_>, _>>()?;
    if inputs.len() != ranks.len() {
        let message = count(format_args!("\"{text}\""), inputs.len(), "operand", ranks.len());
        return Err(malformed(message));
    }
    let mut hidden = Vec::new();
    for (number, (labels, &rank)) in inputs.iter().zip(ranks).enumerate() {
        let letters = labels.iter().flatten().count();
        let fits = if letters < labels.len() { letters <= rank } else { letters == rank };
        if !fits {
            let (number, labels) = (number + 1, letters);
            return Err(malformed(format!(
                "operand {number} has {rank} dimensions, but \"{text}\" has {labels} labels for it"
            )));
        }
        hidden.push(if letters < labels.len() { rank - letters } else { 0 });
    }
    let most = hidden.iter().copied().max().unwrap_or(0);
    let mut free = ('A'..='Z').chain('a'..='z').filter(|&letter| !compact.contains(letter));
    let ellipsis: Vec<char> = free.by_ref().take(most).collect();
    if ellipsis.len() < most {
        return Err(malformed(format!("\"{text}\" leaves too few letters for the dimensions of `...`")));
    }
    let expand = |labels: &[Option<char>], count: usize| -> Vec<char> {
        let expanded = labels.iter().map(|label| match label {
            Some(letter) => vec![*letter],
            None => ellipsis[most - count..].to_vec(),
        });
        expanded.flatten().collect()
    };
    let labelled: Vec<Vec<char>> = inputs.iter().zip(&hidden).map(|(labels, &count)| expand(labels, count)).collect();
    let output = match output {
        Some(labels) => {
            if most > 0 && !labels.contains(&None) {
                return Err(malformed(format!("the result of \"{text}\" must contain `...`, because an operand does")));
            }
            expand(&labels, most)
        }
        None => {
            // Without `->`: the dimensions of `...`, then the letters that occur once, in alphabetical order.
            let mut once: Vec<char> = inputs.iter().flatten().flatten().copied().collect();
            once.sort_unstable();
            let repeated = |letter: &char| once.iter().filter(|other| *other == letter).count() > 1;
            let single: Vec<char> = once.iter().copied().filter(|letter| !repeated(letter)).collect();
            ellipsis.iter().copied().chain(single).collect()
        }
    };
    for (at, label) in output.iter().enumerate() {
        if output[..at].contains(label) {
            return Err(malformed(format!("label {label} occurs twice in the result of \"{text}\"")));
        }
        if !labelled.iter().flatten().any(|other| other == label) {
            return Err(malformed(format!("label {label} of the result of \"{text}\" is in no operand")));
        }
    }
    Ok(EinsumSpec { inputs: labelled, output })
}
