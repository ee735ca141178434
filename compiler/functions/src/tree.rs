//! `tree_map` and `tree_reduce`: functions of the leaves of tuples and structs, as in `jax.tree`.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::expected;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::errors::missing;
use spmdc_ir::call::expand::{Expand, Expanded, Expander};
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::call::trees;

/// The function of each leaf.
pub struct TreeMap;

/// The leaves combined.
pub struct TreeReduce;

impl Expand for TreeMap {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The function's results for the leaves of the first tree and the corresponding parts of the others.
        tree_map(f: Of("function"), [rest] trees: Of("arrays, tuples or structs")), NumbersAndBools, Own,
            "(x: f32[4, 6]) { tree_map(|a, b| a + b, (x, 1), (2 * x, 3)) }";
    };

    fn expand(_: &str, args: &mut Args<'_>, checker: &mut dyn Expander) -> Expanded<Term> {
        let (function, given) = (args.required("f")?, args.rest("trees"));
        let Some(first) = given.first() else { return Err(Some(missing(args.function, "tree", args.span))) };
        let mut columns = Vec::new();
        for arg in &given {
            let mut parts = Vec::new();
            if !trees::parts_at_leaves(&first.term, &arg.term, &mut parts) {
                return Err(Some(other_form(checker, first, arg)));
            }
            trees::link_fields(&first.term, &arg.term, &mut checker.build_mut().fields);
            columns.push(parts);
        }
        let mut results = Vec::new();
        for at in 0..columns[0].len() {
            let parts = columns.iter().zip(&given);
            let leaves = parts.map(|(column, arg)| Arg { name: None, term: column[at].clone(), span: arg.span });
            results.push(checker.call(&function, leaves.collect(), args.span));
        }
        Ok(trees::rebuild_elements(&first.term, &mut results.into_iter()))
    }
}

/// E0203: a tree that does not have the places of the first one.
fn other_form(checker: &dyn Expander, first: &Arg, arg: &Arg) -> Diagnostic {
    let (wanted, found) = (checker.display(&first.term), checker.display(&arg.term));
    let message = expected(format_args!("a tree of the form of the first tree, `{wanted}`"), format_args!("`{found}`"));
    Diagnostic::error(Code::E0203, arg.span, message).here(format!("this is `{found}`"))
}

impl Expand for TreeReduce {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The leaves of a tree, combined in order by a function of two.
        tree_reduce(f: Of("function"), tree: Of("array, tuple or struct"), initializer: Of("array, tuple or struct") = None), NumbersAndBools, Own,
            "(x: f32[4, 6]) { tree_reduce(|a, b| a + b, (sum(x), { product: prod(x) })) }";
    };

    fn expand(_: &str, args: &mut Args<'_>, checker: &mut dyn Expander) -> Expanded<Term> {
        let (function, tree) = (args.required("f")?, args.required("tree")?);
        let initializer = args.take("initializer").map(|arg| Arg { name: None, ..arg });
        let mut leaves = Vec::new();
        trees::elements(&tree.term, &mut leaves);
        let leaf = |term: &Term| Arg { name: None, term: term.clone(), span: tree.span };
        let mut combined = initializer.into_iter().chain(leaves.into_iter().map(leaf));
        let Some(mut result) = combined.next() else {
            return Err(Some(missing(args.function, "initializer", args.span)));
        };
        for next in combined {
            result.term = checker.call(&function, vec![result.clone(), next], args.span);
        }
        Ok(result.term)
    }
}
