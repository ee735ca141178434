//! The layouts of the results of `custom_vjp`'s functions: on explicit axes they follow from the types of arguments and results.

use crate::Checker;
use crate::types::layouts::{LayoutEdit, choose};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::fields::FieldName;
use spmdc_ir::call::term::Term;
use spmdc_ir::call::trees;
use spmdc_ir::program::choice::{cost_of_move, spaced};
use spmdc_ir::rules::derivative::is_differentiable;
use spmdc_layout::explicit::explicit_part;
use spmdc_layout::types::Type;

/// A function of `custom_vjp`, and the form of its result.
pub enum RuleFunction {
    /// The forward function, with this number of arguments. It returns a pair, whose first part is like the result of the function itself.
    Forward(usize),
    /// The reverse function: cotangents like the gradients of the arguments.
    Reverse,
}

impl Checker<'_> {
    /// E0305 if an array in `given`, which this function returns, has another layout than follows from the corresponding array in `form`.
    /// Arithmetic of different forms are not compared.
    pub(crate) fn check_rule_layouts(
        &self,
        (function, source): (RuleFunction, &Arg),
        form: &Term,
        given: &Term,
    ) -> Result<(), Diagnostic> {
        if !trees::same_form(form, given) {
            return Ok(());
        }
        let (mut own, mut leaves) = (Vec::new(), Vec::new());
        trees::leaves(form, "", &mut own);
        trees::leaves(given, "", &mut leaves);
        let mut moves = Vec::new();
        let mut error: Option<(Diagnostic, Vec<(String, f64)>)> = None;
        for ((_, leaf), (_, of)) in leaves.into_iter().zip(own) {
            let (Term::Array(found), Some((of, wanted))) = (leaf, self.wanted(&function, of)) else {
                moves.push(None);
                continue;
            };
            let found = self.build.ty(*found);
            if found.array != wanted.array || self.lies_like(found, &wanted) {
                moves.push(None);
                continue;
            }
            let to = wanted.sharding.close();
            let price = cost_of_move(found, &to, self.build.mesh());
            moves.push(Some(spaced(&to, self.build.mesh())));
            let [found, of, wanted] = [found, of, &wanted].map(|ty| self.build.annotated(ty));
            let message = match function {
                RuleFunction::Forward(_) => {
                    format!("this forward function returns `{found}`, but the function itself returns `{wanted}`")
                }
                RuleFunction::Reverse => format!(
                    "this reverse function returns `{found}` for an argument of type `{of}`, but its cotangent is `{wanted}`"
                ),
            };
            let new = || (Diagnostic::error(Code::E0305, source.span, message), Vec::new());
            error.get_or_insert_with(new).1.push(price);
        }
        let Some((error, prices)) = error else { return Ok(()) };
        let replacement = self.wrapped(&function, source, given, moves);
        let notes: Vec<&str> = prices.iter().map(|(note, _)| note.as_str()).collect();
        let cost = prices.iter().map(|(_, cost)| cost).sum();
        let way = LayoutEdit { place: source.span, replacement, at: "", note: notes.join("; "), cost };
        Err(choose(error, vec![way]))
    }

    /// The type of an array that corresponds to another one, and the type that follows from it; None for leaves without a rule.
    fn wanted(&self, function: &RuleFunction, of: &Term) -> Option<(&Type, Type)> {
        let &Term::Array(of) = of else { return None };
        let ty = self.build.ty(of);
        match function {
            RuleFunction::Forward(_) => Some((ty, self.build.carried_type(of))),
            // Cotangents of integers mean nothing.
            RuleFunction::Reverse => is_differentiable(ty.dtype()).then(|| (ty, self.build.gradient_type(of))),
        }
    }

    /// Whether both types have the same layout along explicit axes outside of `manual` code.
    fn lies_like(&self, found: &Type, wanted: &Type) -> bool {
        let part = |ty: &Type| {
            let own = explicit_part(&ty.sharding, self.build.mesh());
            let [unreduced, reduced] = [own.unreduced, own.reduced].map(|axes| axes.minus(self.build.manual()));
            (own.close().dims, unreduced, reduced)
        };
        part(found) == part(wanted)
    }

    /// The function as a program would write it if it has to move parts of the result of the given function.
    fn wrapped(&self, function: &RuleFunction, source: &Arg, given: &Term, moves: Vec<Option<String>>) -> String {
        let written = self.source(source.span);
        let is_name = written.chars().all(|c| c.is_alphanumeric() || c == '_');
        let called = if is_name { written.to_string() } else { format!("({written})") };
        let new = |name: &str| {
            let mut name = name.to_string();
            while written.contains(&name) {
                name.push('_');
            }
            name
        };
        let (found, mut moves) = (new("found"), moves.into_iter());
        let (params, result): (Vec<String>, String) = match function {
            RuleFunction::Forward(count) => {
                let value = rebuilt(given, &format!("{found}.0"), &mut moves);
                ((0..*count).map(|at| new(&format!("arg{at}"))).collect(), format!("({value}, {found}.1)"))
            }
            RuleFunction::Reverse => {
                (["residuals", "cotangents"].map(new).to_vec(), rebuilt(given, &found, &mut moves))
            }
        };
        let params = params.join(", ");
        format!("|{params}| {{ let {found} = {called}({params}); {result} }}")
    }
}

/// The text of a tree in which some leaves move to another layout.
fn rebuilt(term: &Term, path: &str, moves: &mut impl Iterator<Item = Option<String>>) -> String {
    if let Term::Tuple(parts) = term {
        let part = |(at, part): (usize, &Term)| rebuilt(part, &format!("{path}.{at}"), moves);
        return format!("({},)", parts.iter().enumerate().map(part).collect::<Vec<String>>().join(", "));
    }
    if let Term::Struct(fields) = term {
        let field = |(name, part): &(FieldName, Term)| {
            let part = rebuilt(part, &format!("{path}.{name}"), moves);
            format!("{name}: {part}")
        };
        return format!("{{ {} }}", fields.iter().map(field).collect::<Vec<String>>().join(", "));
    }
    match moves.next().flatten() {
        Some(to) => format!("reshard({path}, {to})"),
        None => path.to_string(),
    }
}
