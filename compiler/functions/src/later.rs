//! The signatures of functions that belong to the checker, because they call functions of the program, and the error (E0901) for forms of
//! the language that are not implemented yet.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::complex::ComplexRule;
use spmdc_ir::call::signature::{Dtypes, Given, ParamKind, ParamSpec, Signature, Status};
use spmdc_ir::call::term::Term;

/// Functions that the checker expands. A call that it leaves is E0901.
pub struct Later;

impl Call for Later {
    const SIGNATURES: &'static [Signature] = &[
        Signature {
            name: "tree_map",
            params: &[
                ParamSpec { name: "f", kind: ParamKind::Of("function"), given: Given::Either, default: None },
                ParamSpec {
                    name: "trees",
                    kind: ParamKind::Of("arrays, tuples or structs"),
                    given: Given::Rest,
                    default: None,
                },
            ],
            doc: "The function's results for the leaves of the first tree and the corresponding parts of the others.",
            dtypes: Dtypes::NumbersAndBools,
            complex: ComplexRule::Own,
            example: "(x: f32[4, 6]) { tree_map(|a, b| a + b, (x, 1), (2 * x, 3)) }",
            status: Status::Shipped,
        },
        Signature {
            name: "tree_reduce",
            params: &[
                ParamSpec { name: "f", kind: ParamKind::Of("function"), given: Given::Either, default: None },
                ParamSpec {
                    name: "tree",
                    kind: ParamKind::Of("array, tuple or struct"),
                    given: Given::Either,
                    default: None,
                },
                ParamSpec { name: "initializer", kind: ParamKind::Array, given: Given::Either, default: Some("None") },
            ],
            doc: "The leaves of a tree, combined in order by a function of two.",
            dtypes: Dtypes::NumbersAndBools,
            complex: ComplexRule::Own,
            example: "(x: f32[4, 6]) { tree_reduce(|a, b| a + b, (sum(x), { product: prod(x) })) }",
            status: Status::Shipped,
        },
        Signature {
            name: "associative_scan",
            params: &[
                ParamSpec { name: "f", kind: ParamKind::Of("function"), given: Given::Either, default: None },
                ParamSpec {
                    name: "elems",
                    kind: ParamKind::Of("array, tuple or struct"),
                    given: Given::Either,
                    default: None,
                },
                ParamSpec { name: "reverse", kind: ParamKind::Bool, given: Given::Either, default: Some("false") },
                ParamSpec { name: "axis", kind: ParamKind::Int, given: Given::Either, default: Some("0") },
            ],
            doc: "For each element, the elements up to and including it, combined by an associative function of arrays.",
            dtypes: Dtypes::NumbersAndBools,
            complex: ComplexRule::Own,
            example: "(x: f32[4, 6]) { associative_scan(|a, b| a * b, x, axis=1) }",
            status: Status::Shipped,
        },
    ];

    fn call(name: &str, args: &mut Args<'_>, _: &mut CallBuilder) -> Result<Term, Diagnostic> {
        Err(not_supported(name, args.span))
    }
}

/// E0901 for a function of the language, or a form of it, that the compiler does not support yet.
pub fn not_supported(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0901, span, format!("`{name}` is not supported yet"))
}
