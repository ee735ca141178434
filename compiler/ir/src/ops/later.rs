//! Functions of the language that are not implemented yet: a call is an error of its own (E0901), not that of an unknown name.

use super::Call;
use crate::ops::call::args::Args;
use crate::ops::call::build::CallBuilder;
use crate::ops::call::signature::{Dtypes, Given, ParamKind, ParamSpec, Signature, Status};
use crate::ops::call::term::Term;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;

/// Answers every call with E0901.
pub struct Later;

macro_rules! later {
    ($($name:ident)*) => {
        &[
            Signature {
                name: "tree_map",
                params: &[
                    ParamSpec { name: "f", kind: ParamKind::Of("function"), given: Given::Either, default: None },
                    ParamSpec { name: "trees", kind: ParamKind::Of("arrays, tuples or structs"), given: Given::Rest, default: None },
                ],
                doc: "The function's results for the leaves of the first tree, and the parts of the others in their places.",
                dtypes: Dtypes::NumbersAndBools,
                example: "(x: f32[4, 6]) { tree_map(|a, b| a + b, (x, 1), (2 * x, 3)) }",
                status: Status::Shipped,
            },
            Signature {
                name: "tree_reduce",
                params: &[
                    ParamSpec { name: "f", kind: ParamKind::Of("function"), given: Given::Either, default: None },
                    ParamSpec { name: "tree", kind: ParamKind::Of("array, tuple or struct"), given: Given::Either, default: None },
                    ParamSpec { name: "initializer", kind: ParamKind::Array, given: Given::Either, default: Some("None") },
                ],
                doc: "The leaves of a tree combined by a function of two, in order.",
                dtypes: Dtypes::NumbersAndBools,
                example: "(x: f32[4, 6]) { tree_reduce(|a, b| a + b, (sum(x), { product: prod(x) })) }",
                status: Status::Shipped,
            },
            Signature {
                name: "associative_scan",
                params: &[
                    ParamSpec { name: "f", kind: ParamKind::Of("function"), given: Given::Either, default: None },
                    ParamSpec { name: "elems", kind: ParamKind::Of("array, tuple or struct"), given: Given::Either, default: None },
                    ParamSpec { name: "reverse", kind: ParamKind::Bool, given: Given::Either, default: Some("false") },
                    ParamSpec { name: "axis", kind: ParamKind::Int, given: Given::Either, default: Some("0") },
                ],
                doc: "The elements up to each, combined by an associative function of arrays.",
                dtypes: Dtypes::NumbersAndBools,
                example: "(x: f32[4, 6]) { associative_scan(|a, b| a * b, x, axis=1) }",
                status: Status::Shipped,
            },
            $(Signature {
                name: stringify!($name),
                params: &[],
                doc: "Not there yet.",
                dtypes: Dtypes::Nothing,
                example: "",
                status: Status::Later,
            },)*
        ]
    };
}

impl Call for Later {
    // `tree_map`, `tree_reduce` and `associative_scan` belong to the checker: they call functions of the program.
    const SIGNATURES: &'static [Signature] = later! {
        transfer
    };

    fn call(name: &str, args: &mut Args<'_>, _: &mut CallBuilder) -> Result<Term, Diagnostic> {
        Err(not_supported(name, args.span))
    }
}

/// E0901 for a function of the language, or a form of it, that the compiler does not support yet.
pub fn not_supported(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0901, span, format!("`{name}` is not supported yet"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ops::testing;

    #[test]
    fn a_later_function_says_so() {
        let error = testing::call(&mut testing::builder(), "transfer", &[], &[]).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (Code::E0901, "`transfer` is not supported yet"));
    }
}
