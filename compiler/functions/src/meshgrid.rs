//! `meshgrid(x, y, indexing="ij")`: coordinates of the points of a grid, as a tuple. It is not an op.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::requires;
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::as_string;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::unknown_value;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ops::broadcast::broadcast;
use spmdc_ops::reshape::reshape;

/// The calls of `meshgrid`; they emit broadcasts, which move nothing.
pub struct Meshgrid;

impl Call for Meshgrid {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The coordinates of the points of a grid, one array for each coordinate; by default the first two dimensions are swapped.
        meshgrid([rest] xi: Of("arrays of one dimension"), [named] sparse: Bool = false, [named] indexing: String = "xy"),
            Any, Planes(xi), "(x: f32[4], y: f32[6]) { meshgrid(x, y, indexing=\"ij\") }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let sparse = args.optional_bool("sparse")?.unwrap_or(false);
        let indexing = match args.take("indexing") {
            Some(arg) => as_string(&arg, "indexing")?,
            None => "xy".to_string(),
        };
        if indexing != "xy" && indexing != "ij" {
            return Err(unknown_value("indexing", &["xy", "ij"], &Term::Str(indexing), args.span));
        }
        let mut lines = Vec::new();
        for arg in args.rest("xi") {
            let line = build.materialize(&arg.term, None, arg.span)?;
            if build.ty(line).rank() != 1 {
                let message = requires("`meshgrid`", "arrays with one dimension", &build.ty(line).array);
                return Err(Diagnostic::error(Code::E0205, arg.span, message));
            }
            lines.push(line);
        }
        let rank = lines.len();
        // "xy": the first array goes along the columns.
        let dim = |at: usize| if indexing == "xy" && rank >= 2 && at < 2 { 1 - at } else { at };
        let mut shape = vec![1; rank];
        lines.iter().enumerate().for_each(|(at, &line)| shape[dim(at)] = build.ty(line).shape()[0]);
        let mut grids = Vec::new();
        for (at, &line) in lines.iter().enumerate() {
            let mut own = vec![1; rank];
            own[dim(at)] = shape[dim(at)];
            let line = reshape(build, line, &own)?;
            grids.push(Term::Array(if sparse { line } else { broadcast(build, line, &shape)? }));
        }
        Ok(Term::Tuple(grids))
    }
}
