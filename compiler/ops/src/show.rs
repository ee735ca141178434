//! `show(x)`: a small picture of an array in the terminal, which is the text `{:p}` of a [`Print`].

use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;

use crate::print::{Print, filled, fits_picture};

/// The calls of `show`, which print pictures.
pub struct Show;

impl Call for Show {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Draws a vector as a line, or a matrix in shades, with the smallest and the largest element. A scalar is printed.
        show(x: Array), NumbersAndBools, Refused(REAL), "(x: f32[4, 6]) { show(x); x }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let x = args.required("x")?;
        let value = build.materialize(&x.term, None, x.span)?;
        fits_picture("show", &build.ty(value).array, x.span)?;
        let (text, values) = filled("{:p}", &[x], build, args.span)?;
        build.emit(Print { text }, &values)?;
        Ok(Term::Tuple(Vec::new()))
    }
}
