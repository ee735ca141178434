//! Complex numbers: pairs of real arrays, which only the checker knows as one.
//!
//! A call with a complex argument follows the rule in the signature of the function: it is made for each plane, expanded from
//! `complex.spmd`, or refused. Control flow and `manual` functions carry the planes as two leaves of a tree (`ir/src/call/trees.rs`).

use crate::Checker;
use crate::errors::types as errors;
use crate::types::choices::{WrittenOperator, with_terms};
use spmdc_abi::DType;
use spmdc_functions::builtin;
use spmdc_functions::complex::{self, OperatorRule};
use spmdc_functions::indexing::assign;
use spmdc_functions::indexing::masked::MaskedIndex;
use spmdc_functions::indexing::plan::{IndexItem, is_array};
use spmdc_grammar::ast::{FnItem, InfixOp, PatternKind, PrefixOp};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::complex::ComplexRule;
use spmdc_ir::call::errors::not_real;
use spmdc_ir::call::signature::{Given, ParamKind, Signature};
use spmdc_ir::call::term::{Term, TypeTerm};
use spmdc_ir::call::trees;
use spmdc_ir::program::Value;
use spmdc_layout::types::{ArrayType, AxisSet};

/// Calls.
impl Checker<'_> {
    /// A call of a shipped function with complex numbers, or their type, among its arguments.
    pub(crate) fn call_complex(&mut self, name: &str, args: Vec<Arg>, span: Span) -> Term {
        let Some(function) = builtin(name) else { return self.call_real(name, args, span) };
        match function.signature().complex {
            ComplexRule::Refused(why) => self.report(complex::refused(name, why, span)),
            ComplexRule::Planes(params) => self.by_planes(name, params, args, span),
            ComplexRule::Products(params) => self.by_products(name, params, args, span),
            ComplexRule::Made => self.made(name, args, span),
            ComplexRule::Written => {
                let function = complex::written(name).expect("a test of the signatures looks for it");
                let result = self.call_hiding(name, function, args, span);
                self.or_report(result)
            }
            ComplexRule::Cast => self.cast_complex(args, span),
            ComplexRule::Own => self.call_real(name, args, span),
        }
    }

    /// The parameter that each argument is for, as far as the call shows it.
    fn parameters_of(name: &str, args: &[Arg]) -> Vec<&'static str> {
        let Some(function) = builtin(name) else { return vec![""; args.len()] };
        let params = function.signature().params;
        let mut positions = params.iter().filter(|param| param.given == Given::Either);
        let rest = params.iter().find(|param| param.given == Given::Rest).map_or("", |param| param.name);
        let named = |name: &str| params.iter().find(|param| param.name == name).map_or("", |param| param.name);
        args.iter()
            .map(|arg| match &arg.name {
                Some(name) => named(name),
                None => positions.next().map_or(rest, |param| param.name),
            })
            .collect()
    }

    /// The call for each plane; the arguments for these parameters are passed by planes, and types are the types of planes.
    fn by_planes(&mut self, name: &str, params: &[&str], args: Vec<Arg>, span: Span) -> Term {
        let known = Checker::parameters_of(name, &args);
        let mut sides = [Vec::new(), Vec::new()];
        for (arg, param) in args.into_iter().zip(known) {
            let is_taken = params.contains(&param) || matches!(arg.term, Term::Type(_));
            if !is_taken && arg.term.holds_complex() {
                return self.report(not_real(arg.span));
            }
            self.build.set_span(span);
            let planes = match is_taken {
                true => complex::planes(&mut self.build, &arg.term),
                false => Ok([arg.term.clone(), arg.term.clone()]),
            };
            match planes {
                Ok(planes) => {
                    for (side, term) in sides.iter_mut().zip(planes) {
                        side.push(Arg { term, ..arg.clone() });
                    }
                }
                Err(diagnostic) => return self.report(diagnostic),
            }
        }
        let [re, im] = sides;
        // What is complex still is no operand of the function, and no reason to take the planes again.
        let re = self.call_real(name, re, span);
        if let Term::Poison = re {
            return Term::Poison;
        }
        let im = self.call_real(name, im, span);
        trees::joined(re, im)
    }

    /// The sum over all choices of one plane of each complex factor: `(a + ib)(c + id)` is `ac - bd + i(ad + bc)`.
    fn by_products(&mut self, name: &str, params: &[&str], args: Vec<Arg>, span: Span) -> Term {
        let known = Checker::parameters_of(name, &args);
        let is_factor = |(arg, param): (&Arg, &&str)| params.contains(param) && matches!(arg.term, Term::Complex(_));
        let factors: Vec<bool> = args.iter().zip(&known).map(is_factor).collect();
        let others = args.iter().zip(&factors).filter(|(_, is_factor)| !**is_factor);
        if let Some((other, _)) = others.into_iter().find(|(arg, _)| arg.term.holds_complex()) {
            return self.report(not_real(other.span));
        }
        let count = factors.iter().filter(|is_factor| **is_factor).count();
        if count > MAX_FACTORS {
            let why = "multiply at most four complex arrays at a time";
            return self.report(complex::refused(name, why, span));
        }
        let mut sums = [None, None];
        for choice in 0..1u32 << count {
            let (mut number, mut chosen) = (0, Vec::new());
            for (arg, &is_factor) in args.iter().zip(&factors) {
                let term = match arg.term.planes() {
                    Some(planes) if is_factor => {
                        number += 1;
                        Term::Array(planes[(choice >> (number - 1) & 1) as usize])
                    }
                    Some(_) | None => arg.term.clone(),
                };
                chosen.push(Arg { term, ..arg.clone() });
            }
            let product = self.call_real(name, chosen, span);
            // The powers of i are 1, i, -1 and -i.
            let turns = choice.count_ones();
            let sum = &mut sums[turns as usize % 2];
            *sum = Some(match (sum.take(), turns % 4 >= 2) {
                (None, false) => product,
                (None, true) => self.unary_terms(PrefixOp::Neg, span, (product, span)),
                (Some(sum), false) => self.binary_terms(InfixOp::Add, span, (sum, span), (product, span)),
                (Some(sum), true) => self.binary_terms(InfixOp::Sub, span, (sum, span), (product, span)),
            });
        }
        let [Some(re), Some(im)] = sums else { return Term::Poison };
        trees::joined(re, im)
    }

    /// Real numbers, in a complex type.
    fn made(&mut self, name: &str, mut args: Vec<Arg>, span: Span) -> Term {
        for arg in &mut args {
            if let Term::Type(ty) = &mut arg.term {
                ty.complex = false;
            } else if arg.term.holds_complex() {
                return self.report(complex::refused(name, "its arguments are real numbers", arg.span));
            }
        }
        let re = self.call_real(name, args, span);
        let Term::Array(value) = re else { return re };
        self.build.set_span(span);
        let im = complex::zero_like(&mut self.build, value).map(|im| Term::complex(value, im));
        self.or_report(im)
    }

    /// `cast(z, c128)`, `c64(x)`
    fn cast_complex(&mut self, args: Vec<Arg>, span: Span) -> Term {
        let known = Checker::parameters_of("cast", &args);
        let of = |name: &str| args.iter().zip(&known).find(|(_, known)| **known == name).map(|(arg, _)| arg);
        let (Some(x), Some(Arg { term: Term::Type(to), .. })) = (of("x"), of("dtype")) else {
            return self.call_real("cast", args, span);
        };
        let Term::Complex(_) = x.term else {
            if !to.complex {
                return self.call_real("cast", args, span);
            }
            // A list, or a real array, each element by itself.
            let plane = Term::Type(TypeTerm { complex: false, ..to.clone() });
            let Some(array) = self.numeric(&x.term, x.span) else { return Term::Poison };
            if let Term::Complex(_) = array {
                let given = Arg { term: array, ..x.clone() };
                return self.cast_complex(vec![given, Arg { name: None, term: Term::Type(to.clone()), span }], span);
            }
            let re = self.call_builtin("cast", vec![(None, array, x.span), (None, plane, span)], span);
            let Term::Array(value) = re else { return re };
            self.build.set_span(span);
            let im = complex::zero_like(&mut self.build, value).map(|im| Term::complex(value, im));
            return self.or_report(im);
        };
        if to.array.dtype == DType::Bool && !to.complex {
            return self.binary_terms(InfixOp::Ne, span, (x.term.clone(), x.span), (Term::Int(0), span));
        }
        if !to.complex {
            return self.report(not_real(x.span));
        }
        self.by_planes("cast", &["x"], args.clone(), span)
    }

    /// Expands a function of `complex.spmd` in place of the shipped function of this name, which has the same parameters.
    fn call_hiding(&mut self, name: &str, function: &FnItem, args: Vec<Arg>, span: Span) -> Result<Term, Diagnostic> {
        let signature: &'static Signature = builtin(name).expect("it hides a shipped function").signature();
        let mut bound = Args::bind(signature.name, signature, args, span, false)?;
        let mut given = Vec::new();
        for param in signature.params {
            let Some(arg) = bound.take(param.name) else { continue };
            let takes = function.params.iter().any(|own| parameter(&own.pattern.kind) == param.name);
            if !takes {
                let why = format!("`{name}` of complex numbers has no parameter `{}`", param.name);
                return Err(complex::refused(name, &why, arg.span));
            }
            let term = match param.kind == ParamKind::Array {
                true => self.numeric(&arg.term, arg.span).unwrap_or(Term::Poison),
                false => arg.term,
            };
            given.push((param.name, term, arg.span));
        }
        self.expand_written(name, function, given, span)
    }

    /// The array of a term, real or complex: numbers and lists become constants.
    pub(crate) fn numeric(&mut self, term: &Term, span: Span) -> Option<Term> {
        if let Term::Complex(_) = term {
            return Some(term.clone());
        }
        if !term.holds_complex() {
            return self.value(term, span).map(Term::Array);
        }
        // A list with complex numbers in it.
        self.build.set_span(span);
        let made = complex::complex(&mut self.build, (term, span), None);
        match made {
            Ok(made) => Some(made),
            Err(diagnostic) => {
                self.report(diagnostic);
                None
            }
        }
    }
}

/// Maximum number of complex factors of a product, which has two products of planes for each.
const MAX_FACTORS: usize = 4;

fn parameter(pattern: &PatternKind) -> &str {
    if let PatternKind::Name(name) = pattern { name } else { "_" }
}

/// Operators.
impl Checker<'_> {
    pub(crate) fn complex_prefix(&mut self, op: PrefixOp, span: Span, arg: (Term, Span)) -> Term {
        let Some(term) = self.numeric(&arg.0, arg.1) else { return Term::Poison };
        match complex::prefix(op) {
            OperatorRule::Refused(why) => self.report(complex::refused(op.symbol(), why, span)),
            OperatorRule::Written(name) => self.expand_operator(op.symbol(), name, vec![("a", term, arg.1)], span),
            OperatorRule::Function(name) => self.call_builtin(name, vec![(None, term, arg.1)], span),
            OperatorRule::Power => unreachable!("a power has two operands"),
        }
    }

    fn expand_operator(&mut self, symbol: &str, name: &str, given: Vec<(&str, Term, Span)>, span: Span) -> Term {
        let function = complex::written(name).expect("operators have their functions");
        let (names, given): (Vec<&str>, Vec<(Term, Span)>) =
            given.into_iter().map(|(name, term, span)| (name, (term, span))).unzip();
        self.or_choose(span, &WrittenOperator::Operator(None), &given, &|checker, moved, _| {
            let given = names.iter().zip(moved).map(|(name, (term, place))| (*name, term.clone(), *place)).collect();
            checker.expand_written(symbol, function, given, span)
        })
    }

    pub(crate) fn complex_infix(&mut self, op: InfixOp, span: Span, lhs: (Term, Span), rhs: (Term, Span)) -> Term {
        let mut sides = Vec::new();
        for (term, place) in [&lhs, &rhs] {
            let is_number = term.static_scalar().is_some();
            if !is_number && !trees::is_number(term) && !matches!(term, Term::Complex(_)) {
                return self.report(spmdc_ir::call::errors::no_array(term, *place));
            }
            let term = if is_number { Some(term.clone()) } else { self.numeric(term, *place) };
            let Some(term) = term else { return Term::Poison };
            sides.push((term, *place));
        }
        let (rhs, lhs) = (sides.pop().expect("two sides"), sides.pop().expect("two sides"));
        match complex::infix(op) {
            OperatorRule::Refused(why) => self.report(complex::refused(op.symbol(), why, span)),
            OperatorRule::Power => self.complex_power(span, lhs, rhs),
            OperatorRule::Function(name) => {
                let written = WrittenOperator::Operator((op == InfixOp::MatMul).then_some("matmul"));
                self.complex_function(name, span, (lhs, rhs), &written)
            }
            OperatorRule::Written(name) => {
                self.expand_operator(op.symbol(), name, vec![("a", lhs.0, lhs.1), ("b", rhs.0, rhs.1)], span)
            }
        }
    }

    /// The function that an operator calls.
    fn complex_function(
        &mut self,
        name: &str,
        span: Span,
        (lhs, rhs): ((Term, Span), (Term, Span)),
        written: &WrittenOperator<'_>,
    ) -> Term {
        let args = [&lhs, &rhs].map(|(term, span)| Arg { name: None, term: term.clone(), span: *span });
        self.or_choose(span, written, &[lhs, rhs], &|checker, moved, out| {
            Ok(checker.call_shipped(name, with_terms(&args, moved, out, span), span))
        })
    }

    /// `z ** n` with a small integer is repeated squaring, otherwise the function `pow`.
    fn complex_power(&mut self, span: Span, base: (Term, Span), exponent: (Term, Span)) -> Term {
        let small = if let Term::Int(count) = exponent.0 { Some(count) } else { None };
        let Some(count) = small.filter(|&count| count != 0 && count.unsigned_abs() <= MAX_MULTIPLIED) else {
            return self.complex_function("pow", span, (base, exponent), &WrittenOperator::Operator(None));
        };
        let (mut square, mut rest, mut product) = (base.0, count.unsigned_abs(), None);
        while rest > 0 {
            if rest & 1 == 1 {
                product = Some(match product {
                    None => square.clone(),
                    Some(product) => self.binary_terms(InfixOp::Mul, span, (product, span), (square.clone(), span)),
                });
            }
            rest >>= 1;
            if rest > 0 {
                square = self.call_builtin("square", vec![(None, square, span)], span);
            }
        }
        let product = product.unwrap_or(Term::Poison);
        match count < 0 {
            true => self.binary_terms(InfixOp::Div, span, (Term::Int(1), span), (product, span)),
            false => product,
        }
    }
}

/// The largest exponent that is expanded into multiplications, as for real numbers.
const MAX_MULTIPLIED: u128 = 64;

/// Elements.
impl Checker<'_> {
    /// The elements of complex numbers at these indices.
    pub(crate) fn index_complex(&mut self, planes: [Value; 2], items: &[IndexItem], span: Span, base: Span) -> Term {
        let mut taken = Vec::new();
        for plane in planes {
            taken.push(self.index_items_of(plane, items, span, base));
        }
        let im = taken.pop().expect("there are two planes");
        trees::joined(taken.remove(0), im)
    }

    /// `z[indices] = value`, or `z[indices] op= value`: the numbers with the elements replaced.
    pub(crate) fn assign_complex(
        &mut self,
        planes: [Value; 2],
        items: &[IndexItem],
        op: Option<InfixOp>,
        (new, value): (Term, Span),
        (place, span): (Span, Span),
    ) -> Term {
        let Some(new) = (if new.static_scalar().is_some() { Some(new) } else { self.numeric(&new, value) }) else {
            return Term::Poison;
        };
        let is_real = !matches!(new, Term::Complex(_));
        self.build.set_span(span);
        let masked = match MaskedIndex::of(&mut self.build, planes[0], items, place) {
            Ok(masked) => masked,
            Err(diagnostic) => return self.report(diagnostic),
        };
        let by_planes = match op {
            None | Some(InfixOp::Add | InfixOp::Sub) => true,
            Some(InfixOp::Mul | InfixOp::Div) => is_real,
            Some(_) => false,
        };
        let mut news = match complex::planes(&mut self.build, &new) {
            Ok(planes) => planes,
            Err(diagnostic) => return self.report(diagnostic),
        };
        if by_planes {
            if let (Some(InfixOp::Mul | InfixOp::Div), true) = (op, is_real) {
                news[1] = news[0].clone();
            }
            let mut results = Vec::new();
            for (plane, new) in planes.into_iter().zip(news) {
                // What adds nothing leaves the plane as it is.
                let is_kept = is_real && results.len() == 1 && matches!(op, Some(InfixOp::Add | InfixOp::Sub));
                results.push(match is_kept {
                    true => Term::Array(plane),
                    false => self.assign_items(plane, items, op, (new, value), place, span),
                });
            }
            let im = results.pop().expect("there are two planes");
            return trees::joined(results.remove(0), im);
        }
        let op = op.expect("an assignment without an operator is one of planes");
        if masked.is_none() && items.iter().any(|item| is_array(&self.build, item)) {
            let why = "with index arrays, complex numbers can only be replaced, added or subtracted";
            return self.report(complex::refused(&format!("{}=", op.symbol()), why, span));
        }
        let at = masked.as_ref().map_or(items, |masked| &masked.items).to_vec();
        let current = self.index_complex(planes, &at, place, place);
        let Some(elements) = current.planes() else { return Term::Poison };
        if let Some(masked) = &masked {
            let mut spread = Vec::new();
            for plane in &news {
                let term = masked.spread(&mut self.build, (plane, value));
                spread.push(self.or_report(term));
            }
            let im = spread.pop().expect("there are two planes");
            news = [spread.remove(0), im];
        }
        let [re, im] = news;
        let factor = if is_real { re } else { trees::joined(re, im) };
        let combined = self.binary_terms(op, span, (current, place), (factor, value));
        let Some(combined) = combined.planes() else { return Term::Poison };
        let mut results = Vec::new();
        for ((plane, new), own) in planes.into_iter().zip(combined).zip(elements) {
            self.build.set_span(span);
            let new = Term::Array(new);
            let result = match &masked {
                Some(masked) => masked.set(&mut self.build, plane, own, (&new, span), span),
                None => assign::set(&mut self.build, plane, &at, (&new, span), span),
            };
            let result = result.map(Term::Array);
            results.push(self.or_report(result));
        }
        let im = results.pop().expect("there are two planes");
        trees::joined(results.remove(0), im)
    }

    /// The type of complex numbers, for messages and `z.dtype`.
    pub(crate) fn complex_type(&self, planes: [Value; 2]) -> TypeTerm {
        let array = self.build.ty(planes[0]).array.clone();
        TypeTerm { array, complex: true, sharding: None, varying: AxisSet::EMPTY }
    }

    /// `z.dtype`
    pub(crate) fn complex_dtype(&self, planes: [Value; 2]) -> Term {
        let array = ArrayType::scalar(self.build.ty(planes[0]).dtype());
        Term::Type(TypeTerm { array, complex: true, sharding: None, varying: AxisSet::EMPTY })
    }

    /// E0203 for complex numbers, or real ones, that are declared to be of another type.
    pub(crate) fn other_numbers(&mut self, term: &Term, wanted: &str, span: Span, place: &str) -> Term {
        let found = self.display_term(term);
        let error = errors::mismatch(place, wanted, &found, span);
        let name = wanted.split(['[', '@']).next().unwrap_or(wanted);
        let error = match term.planes() {
            None => error.help(format!("convert it with `{name}(...)`")),
            Some(_) if DType::plane_of(name).is_some() => error.help(format!("convert it with `{name}(...)`")),
            Some(_) => error.help("`real(z)` and `imag(z)` are the planes, `abs(z)` the magnitudes"),
        };
        self.report(error)
    }
}
