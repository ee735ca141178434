//! `grad`, `value_and_grad`, `vjp`, `jvp`, `checkpoint` and `custom_vjp`, and the calls of all transformations.
//!
//! A function is expanded where its derivative is called, and the statements of that expansion are differentiated
//! (`spmdc_transform::derivatives`). Its arguments are copied before: so a value that is given twice, or that the function sees otherwise, counts
//! as another one.

use crate::Checker;
use crate::transforms::derived::{CustomVjp, Derived, Gradient, Jacobian, Leaf, Mapped, Pullback};
use crate::transforms::rule_layouts::RuleFunction;
use spmdc_functions::complex::refused;
use spmdc_functions::transformations::Transformation;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{count, counted, expected, must_return, requires};
use spmdc_grammar::span::Span;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::complex::DERIVATIVES;
use spmdc_ir::call::expand::Expanded;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::call::term::Term;
use spmdc_ir::call::trees;
use spmdc_ir::program::origin::{DerivativePart, Lineage};
use spmdc_ir::program::units::{CustomRule, UnitKind};
use spmdc_ir::program::{Block, Stmt, Value, walk};
use spmdc_ir::rules::derivative::is_differentiable;
use spmdc_kernel::scalar::UnaryOp;
use spmdc_layout::mesh::AxisKind;
use spmdc_ops::constant::Constant;
use spmdc_ops::derivative::{conformed, zeros_like};
use spmdc_ops::elementwise::Unary;
use spmdc_ops::reshape::Reshape;
use spmdc_ops::reshard::Reshard;
use spmdc_transform::derivatives::{pull_back, pullback, push_forward, repeated};
use std::fmt::Display;

/// The result of a derivation: see [`Expanded`].
pub(crate) type Derivation<T> = Expanded<T>;

impl Checker<'_> {
    /// A call of a function that is a transformation of another one.
    pub(crate) fn call_derived(&mut self, derived: &Derived, args: Vec<Arg>, span: Span) -> Term {
        let result = match derived {
            Derived::Gradient(gradient) => self.gradient(gradient, args, span),
            Derived::Pullback(pullback) => self.pulled_back(pullback, args, span),
            Derived::Jacobian(jacobian) => self.jacobian(jacobian, args, span),
            Derived::Mapped(mapped) => self.call_mapped(mapped, args, span),
            Derived::Checkpoint(function) => self.checkpointed(function, args, span),
            Derived::Custom(custom) => self.customized(custom, args, span),
        };
        self.derived(result)
    }

    fn derived(&mut self, result: Derivation<Term>) -> Term {
        match result {
            Ok(term) => term,
            Err(Some(diagnostic)) => self.report(diagnostic),
            Err(None) => Term::Poison,
        }
    }

    /// A call of one of the transformations.
    pub(crate) fn transformed(&mut self, transformation: Transformation, args: &mut Args<'_>) -> Derivation<Term> {
        let function = args.required("fun")?;
        self.check_function(args.function, &function)?;
        let derived = match transformation {
            Transformation::Vjp => {
                let primals = args.rest("primals");
                return self.vjp(&function, primals, args.span);
            }
            Transformation::Jvp => {
                let (primals, tangents) = (args.required("primals")?, args.required("tangents")?);
                return self.jvp(&function, &primals, &tangents, args.span);
            }
            Transformation::Grad | Transformation::ValueAndGrad => {
                let Differentiation { argnums, is_tuple, has_aux } = Differentiation::of(args)?;
                let with_value = transformation == Transformation::ValueAndGrad;
                Derived::Gradient(Gradient { function, argnums, is_tuple, has_aux, with_value })
            }
            Transformation::Jacobian => Derived::Jacobian(Differentiation::of(args)?.jacobian(function)),
            Transformation::Hessian => {
                let by = Differentiation::of(args)?;
                let span = function.span;
                let first = Derived::Jacobian(by.clone().jacobian(function)).into_term();
                Derived::Jacobian(by.jacobian(Arg { name: None, term: first, span }))
            }
            Transformation::Checkpoint => Derived::Checkpoint(function),
            Transformation::CustomVjp => {
                let (forward, reverse) = (args.required("fwd")?, args.required("bwd")?);
                self.check_function(args.function, &forward)?;
                self.check_function(args.function, &reverse)?;
                Derived::Custom(CustomVjp { function, forward, reverse })
            }
            Transformation::Vmap => {
                let [in_axes, out_axes] = ["in_axes", "out_axes"].map(|name| args.take(name).map(Box::new));
                Derived::Mapped(Mapped { function, in_axes, out_axes })
            }
        };
        Ok(derived.into_term())
    }

    fn check_function(&self, name: &str, function: &Arg) -> Derivation<()> {
        if self.function_term(&function.term).is_some() {
            return Ok(());
        }
        let message = requires(format_args!("`{name}`"), "a function", function.term.describe());
        Err(Some(Diagnostic::error(Code::E0210, function.span, message)))
    }

    /// The leaves of an argument, and the argument with copies of them.
    pub(crate) fn copied(&mut self, arg: &Arg) -> Derivation<(Vec<Leaf>, Arg)> {
        let mut found = Vec::new();
        trees::leaves(&arg.term, "", &mut found);
        let mut leaves = Vec::new();
        for (path, leaf) in found {
            let given = self.build.materialize(leaf, None, arg.span)?;
            let given = self.build.in_memory(given, "an argument by which a derivative is taken", arg.span)?;
            let dtype = self.build.ty(given).dtype();
            if !is_differentiable(dtype) {
                let path = if path.is_empty() { String::new() } else { format!("`{path}` of ") };
                let message =
                    format!("only float arguments can be differentiated; found {path}an argument of {}", dtype.name());
                let help = "convert it with `f32(x)`, or select other arguments with `argnums`";
                return Err(Some(Diagnostic::error(Code::E0215, arg.span, message).help(help)));
            }
            self.build.set_span(arg.span);
            leaves.push(Leaf { given, copy: self.build.stopped_alias(given), is_imaginary: false });
        }
        let mut copies = leaves.iter().map(|leaf| Term::Array(leaf.copy));
        let term = trees::rebuild(&arg.term, &mut copies);
        for (leaf, is_imaginary) in leaves.iter_mut().zip(trees::imaginary(&term)) {
            leaf.is_imaginary = is_imaginary;
        }
        Ok((leaves, Arg { term, ..arg.clone() }))
    }

    /// The result of a function, and the position of the first statement of its expansion.
    pub(crate) fn expanded(&mut self, function: &Arg, args: Vec<Arg>, span: Span) -> Derivation<(Term, usize)> {
        let start = self.build.innermost().stmts.len();
        let result = self.call_term(&function.term, args, span, function.span);
        if result.is_poisoned() {
            return Err(None);
        }
        self.build.set_span(span);
        Ok((result, start))
    }

    fn gradient(&mut self, gradient: &Gradient, mut args: Vec<Arg>, span: Span) -> Derivation<Term> {
        let (leaves, forms) = self.chosen_arguments(&gradient.argnums, &mut args, span)?;
        let (result, start) = self.expanded(&gradient.function, args, span)?;
        let (value, aux) = without_aux(result, gradient.has_aux, span)?;
        if let Term::Complex(_) = value {
            return Err(Some(refused("grad", DERIVATIVES, span)));
        }
        if !value.is_operand() {
            return Err(Some(not_a_scalar(value.describe(), span)));
        }
        let loss = self.build.materialize(&value, None, span)?;
        let (rank, dtype) = (self.build.ty(loss).rank(), self.build.ty(loss).dtype());
        if rank > 0 || !is_differentiable(dtype) {
            let ty = self.build.display_closed(self.build.ty(loss));
            return Err(Some(not_a_scalar(format_args!("`{ty}`"), span)));
        }
        let seed = self.build.emit1(Constant::float(dtype, 1.0), &[])?;
        let all: Vec<Leaf> = leaves.iter().flatten().copied().collect();
        let inputs: Vec<Value> = all.iter().map(|leaf| leaf.copy).collect();
        let found = pull_back(&mut self.build, start, &inputs, &[(loss, seed)])?;
        self.build.release(&inputs);
        let found = self.laid_out(&found, &all)?;
        let mut found = found.into_iter().map(Term::Array);
        let mut gradients: Vec<Term> = forms.iter().map(|form| trees::rebuild(form, &mut found)).collect();
        let gradients = if gradient.is_tuple { Term::Tuple(gradients) } else { gradients.swap_remove(0) };
        let value = Term::Array(loss);
        Ok(match (gradient.with_value, aux) {
            (false, None) => gradients,
            (false, Some(aux)) => Term::Tuple(vec![gradients, aux]),
            (true, None) => Term::Tuple(vec![value, gradients]),
            (true, Some(aux)) => Term::Tuple(vec![Term::Tuple(vec![value, aux]), gradients]),
        })
    }

    /// The leaves and forms of the arguments by which a derivative is taken; copies take their places.
    pub(crate) fn chosen_arguments(
        &mut self,
        argnums: &[i64],
        args: &mut [Arg],
        span: Span,
    ) -> Derivation<(Vec<Vec<Leaf>>, Vec<Term>)> {
        let count = args.iter().filter(|arg| arg.name.is_none()).count();
        let mut leaves: Vec<Vec<Leaf>> = Vec::new();
        let mut forms: Vec<Term> = Vec::new();
        let mut places: Vec<usize> = Vec::new();
        for &argnum in argnums {
            let at = if argnum < 0 { argnum + count as i64 } else { argnum };
            let Some(at) = usize::try_from(at).ok().filter(|&at| at < count) else {
                let count = counted(count, "argument");
                let message = format!("`argnums` names argument {argnum}, but the call has only {count}");
                return Err(Some(Diagnostic::error(Code::E0206, span, message)));
            };
            if let Some(same) = places.iter().position(|&place| place == at) {
                forms.push(forms[same].clone());
                leaves.push(leaves[same].clone());
            } else {
                let (own, copy) = self.copied(&args[at])?;
                forms.push(args[at].term.clone());
                leaves.push(own);
                args[at] = copy;
            }
            places.push(at);
        }
        Ok((leaves, forms))
    }

    /// The cotangent of an imaginary plane has the opposite sign of the derivative with respect to it. So the cotangent of a function with
    /// a complex derivative is the product with it, as in JAX.
    fn conjugated(&mut self, value: Value, is_imaginary: bool) -> Derivation<Value> {
        Ok(if is_imaginary { self.build.emit1(Unary(UnaryOp::Neg), &[value])? } else { value })
    }

    /// The cotangents of leaves, each with the layout of its leaf.
    fn laid_out(&mut self, found: &[Value], leaves: &[Leaf]) -> Derivation<Vec<Value>> {
        let mut laid_out = Vec::new();
        let around = self.build.lineage();
        for (&value, leaf) in found.iter().zip(leaves) {
            let order = self.build.info(value).origin.lineage.order;
            let of = Some(leaf.given);
            self.build.set_lineage(Lineage { part: DerivativePart::Gradient, of, order, ..Lineage::default() });
            let value = self.conjugated(value, leaf.is_imaginary)?;
            let sharding = self.build.ty(leaf.given).sharding.clone();
            let is_auto = self.build.mesh().axes.iter().all(|axis| axis.kind == AxisKind::Auto);
            let is_pinned = is_auto && sharding.dims.iter().any(|dim| !dim.axes.is_empty() && !dim.open);
            laid_out.push(if is_pinned {
                self.build.emit1(Reshard::pin_of_gradient(sharding), &[value])?
            } else {
                value
            });
        }
        self.build.set_lineage(around);
        Ok(laid_out)
    }

    fn vjp(&mut self, function: &Arg, primals: Vec<Arg>, span: Span) -> Derivation<Term> {
        let (mut inputs, mut args) = (Vec::new(), Vec::new());
        for arg in &primals {
            let (own, copy) = self.copied(arg)?;
            inputs.push(own);
            args.push(copy);
        }
        let (output, start) = self.expanded(function, args, span)?;
        let given = primals.into_iter().map(|arg| arg.term).collect();
        let copies: Vec<Value> = inputs.iter().flatten().map(|leaf: &Leaf| leaf.copy).collect();
        let reverse = pullback(&mut self.build, start, &copies, &arrays(&output))?;
        self.build.release(&copies);
        let pullback = Pullback { reverse, inputs, given, output: output.clone() };
        let pullback = Derived::Pullback(pullback).into_term();
        Ok(Term::Tuple(vec![output, pullback]))
    }

    fn pulled_back(&mut self, pullback: &Pullback, args: Vec<Arg>, span: Span) -> Derivation<Term> {
        let [arg] = args.as_slice() else {
            let message = count("a function returned by `vjp`", 1, "cotangent", args.len());
            return Err(Some(Diagnostic::error(Code::E0201, span, message)));
        };
        let seeds = self.like(&pullback.output, arg, "cotangent")?;
        self.build.set_span(span);
        let all: Vec<Leaf> = pullback.inputs.iter().flatten().copied().collect();
        let flags = trees::imaginary(&pullback.output);
        let seeds: Vec<Value> = seeds
            .into_iter()
            .zip(flags)
            .map(|((output, seed), is_imaginary)| {
                let ty = self.build.gradient_type(output);
                let seed = conformed(&mut self.build, seed, &ty)?;
                self.conjugated(seed, is_imaginary)
            })
            .collect::<Derivation<_>>()?;
        let found = repeated(&mut self.build, &pullback.reverse, &seeds)?;
        let found = self.laid_out(&found, &all)?;
        let mut found = found.into_iter().map(Term::Array);
        Ok(Term::Tuple(pullback.given.iter().map(|form| trees::rebuild(form, &mut found)).collect()))
    }

    fn jvp(&mut self, function: &Arg, primals: &Arg, tangents: &Arg, span: Span) -> Derivation<Term> {
        let lists = [primals, tangents].map(|arg| arg.term.sequence().map(<[Term]>::to_vec));
        let [Some(given), Some(directions)] = lists else {
            let message = "`jvp` requires a tuple of arguments and a tuple of their tangents";
            return Err(Some(Diagnostic::error(Code::E0210, span, message)));
        };
        if given.len() != directions.len() {
            let (tangent, argument) = (counted(directions.len(), "tangent"), counted(given.len(), "argument"));
            let message = requires("`jvp`", "one tangent per argument", format_args!("{tangent} for {argument}"));
            return Err(Some(Diagnostic::error(Code::E0201, tangents.span, message)));
        }
        let (mut seeds, mut args) = (Vec::new(), Vec::new());
        for (term, direction) in given.into_iter().zip(directions) {
            let (_, copy) = self.copied(&Arg { name: None, term, span: primals.span })?;
            let direction = Arg { name: None, term: direction, span: tangents.span };
            for (value, tangent) in self.like(&copy.term, &direction, "tangent")? {
                seeds.push((value, self.build.in_layout_of(tangent, value)?));
            }
            args.push(copy);
        }
        let (output, start) = self.expanded(function, args, span)?;
        let mut found = Vec::new();
        trees::leaves(&output, "", &mut found);
        let mut results = Vec::new();
        for (_, leaf) in &found {
            results.push(self.build.materialize(leaf, None, span)?);
        }
        let tangents = push_forward(&mut self.build, start, &seeds, &results)?;
        let copies: Vec<Value> = seeds.iter().map(|&(copy, _)| copy).collect();
        self.build.release(&copies);
        let mut terms = Vec::new();
        for (tangent, &result) in tangents.into_iter().zip(&results) {
            terms.push(Term::Array(match tangent {
                Some(tangent) => tangent,
                None => zeros_like(&mut self.build, result)?,
            }));
        }
        let tangent = trees::rebuild(&output, &mut terms.into_iter());
        Ok(Term::Tuple(vec![output, tangent]))
    }

    /// A call of a function of `checkpoint`.
    fn checkpointed(&mut self, function: &Arg, args: Vec<Arg>, span: Span) -> Derivation<Term> {
        let (result, _) = self.recomputed_if(true, |checker| checker.expanded(function, args, span))?;
        Ok(result)
    }

    /// Expands the function of a `checkpoint` if this is one: derivatives compute its values again.
    pub(crate) fn recomputed_if<T>(&mut self, is_checkpoint: bool, expand: impl FnOnce(&mut Self) -> T) -> T {
        if !is_checkpoint {
            return expand(self);
        }
        let (unit, result) = self.in_unit(expand);
        self.build.close_unit(unit, UnitKind::Recomputed);
        result
    }

    /// A call of a function of `custom_vjp`. The statements of its rule are templates, until a derivative is taken.
    fn customized(&mut self, custom: &CustomVjp, mut args: Vec<Arg>, span: Span) -> Derivation<Term> {
        let mut inputs = Vec::new();
        let mut forms = Vec::new();
        for arg in &mut args {
            if arg.term.holds_complex() {
                return Err(Some(refused("custom_vjp", DERIVATIVES, arg.span)));
            }
            forms.push(arg.term.clone());
            let mut found = Vec::new();
            trees::leaves(&arg.term, "", &mut found);
            let mut names = Vec::new();
            for (_, leaf) in found {
                names.push(if let Term::Array(given) = leaf {
                    let given = &self.build.in_memory(*given, "an argument of a function of `custom_vjp`", arg.span)?;
                    let name = self.build.stopped_alias(*given);
                    inputs.push((name, *given));
                    Term::Array(name)
                } else {
                    leaf.clone()
                });
            }
            arg.term = trees::rebuild(&arg.term, &mut names.into_iter());
        }
        let names: Vec<Value> = inputs.iter().map(|&(name, _)| name).collect();
        let start = self.build.innermost().stmts.len();
        let (unit, expanded) = self.in_unit(|checker| checker.custom_function(custom, args.clone(), span));
        let (result, outputs) = expanded?;

        let (_, rule) = self
            .in_block(Block::default(), |checker| checker.custom_rule(custom, args, &result, (&forms, &inputs), span));
        let (forward, forward_outputs, reverse) = rule?;
        let own = Block { stmts: self.build.innermost().stmts[start..].to_vec(), ..Block::default() };
        let again = Block {
            params: reverse.params.clone(),
            stmts: [forward.as_slice(), &reverse.stmts].concat(),
            results: reverse.results.clone(),
        };
        let mut captured = walk::free_values(&own);
        captured.extend(walk::free_values(&again));
        captured.retain(|value| !names.contains(value) && !outputs.contains(value));
        self.build.release(&names);
        let rule = CustomRule { inputs, captured, outputs, forward, forward_outputs, reverse };
        self.build.close_unit(unit, UnitKind::Custom(Box::new(rule)));
        Ok(result)
    }

    /// The result of the function itself, and its arrays. Each has a statement of its own, which the rule can replace.
    fn custom_function(&mut self, custom: &CustomVjp, args: Vec<Arg>, span: Span) -> Derivation<(Term, Vec<Value>)> {
        let (result, _) = self.expanded(&custom.function, args, span)?;
        let mut leaves = Vec::new();
        trees::leaves(&result, "", &mut leaves);
        let (mut outputs, mut terms) = (Vec::new(), Vec::new());
        for (_, leaf) in leaves {
            let value = self.build.materialize(leaf, None, span)?;
            let shape = self.build.ty(value).shape().to_vec();
            let output = self.build.emit1(Reshape::new(&shape, &shape), &[value])?;
            outputs.push(output);
            terms.push(Term::Array(output));
        }
        Ok((trees::rebuild(&result, &mut terms.into_iter()), outputs))
    }

    /// The statements of the forward function, its results, and the block of the reverse function.
    fn custom_rule(
        &mut self,
        custom: &CustomVjp,
        args: Vec<Arg>,
        result: &Term,
        (forms, inputs): (&[Term], &[(Value, Value)]),
        span: Span,
    ) -> Derivation<(Vec<Stmt>, Vec<Value>, Block)> {
        let place = custom.forward.span;
        let (pair, _) = self.expanded(&custom.forward, args, span)?;
        let (value, residuals) = if let Term::Tuple(parts) = &pair
            && let [value, residuals] = parts.as_slice()
        {
            (value.clone(), residuals.clone())
        } else {
            let message =
                must_return("the forward function", "a pair of the result and the residuals", pair.describe());
            return Err(Some(Diagnostic::error(Code::E0226, place, message)));
        };
        let function = (RuleFunction::Forward(forms.len()), &custom.forward);
        trees::link_fields(result, &value, &mut self.build.fields);
        self.check_rule_layouts(function, result, &value).map_err(Some)?;
        let value = Arg { name: None, term: value, span: place };
        let mut forward_outputs = Vec::new();
        for (output, found) in self.like(result, &value, "result of the forward function")? {
            forward_outputs.push(self.build.laid_out_like(found, output)?);
        }
        let forward = std::mem::take(&mut self.build.innermost().stmts);
        let mut params = Vec::new();
        for output in arrays(result) {
            let (ty, origin) = (self.build.gradient_type(output), self.build.origin());
            params.push(self.build.new_value(ty, origin));
        }
        let cotangent = trees::rebuild(result, &mut params.iter().map(|&param| Term::Array(param)));
        let place = custom.reverse.span;
        let arg = |term: Term| Arg { name: None, term, span: place };
        let (found, _) = self.expanded(&custom.reverse, vec![arg(residuals), arg(cotangent)], span)?;
        let Some(found) = found.sequence().filter(|found| found.len() == forms.len()).map(<[Term]>::to_vec) else {
            let wanted = format!("a tuple of {}, one per argument", counted(forms.len(), "cotangent"));
            let message = must_return("the reverse function", wanted, found.describe());
            return Err(Some(Diagnostic::error(Code::E0226, place, message)));
        };
        let [form, given] = [forms, &found].map(|terms| Term::Tuple(terms.to_vec()));
        trees::link_fields(&form, &given, &mut self.build.fields);
        self.check_rule_layouts((RuleFunction::Reverse, &custom.reverse), &form, &given).map_err(Some)?;
        let mut results = Vec::new();
        for (form, found) in forms.iter().zip(found) {
            let changes = |value: &Value| is_differentiable(self.build.ty(*value).dtype());
            let own = arrays(form);
            // Cotangents of integers mean nothing.
            if own.iter().all(|value| !changes(value)) {
                results.extend(own);
                continue;
            }
            let integers: Vec<bool> = own.iter().map(|value| !changes(value)).collect();
            let pairs = self.like(form, &arg(found), "cotangent")?;
            for ((own, found), is_integer) in pairs.into_iter().zip(integers) {
                results.push(if is_integer { own } else { found });
            }
        }
        debug_assert_eq!(results.len(), inputs.len(), "each argument has its cotangent");
        let stmts = std::mem::take(&mut self.build.innermost().stmts);
        Ok((forward, forward_outputs, Block { params, stmts, results }))
    }

    /// The arrays of a tree of this form, each with the array for which it is given: E0203 if their types differ.
    fn like(&mut self, form: &Term, given: &Arg, role: &str) -> Derivation<Vec<(Value, Value)>> {
        if !trees::same_form(form, &given.term) {
            let (wanted, found) = (self.display_term(form), self.display_term(&given.term));
            let message = expected(format_args!("a {role} of the form `{wanted}`"), format_args!("`{found}`"));
            return Err(Some(Diagnostic::error(Code::E0203, given.span, message)));
        }
        trees::link_fields(form, &given.term, &mut self.build.fields);
        let (mut own, mut others) = (Vec::new(), Vec::new());
        trees::leaves(form, "", &mut own);
        trees::leaves(&given.term, "", &mut others);
        let mut pairs = Vec::new();
        for ((_, own), (_, other)) in own.iter().zip(&others) {
            let Term::Array(own) = own else { continue };
            let dtype = self.build.ty(*own).dtype();
            let other = self.build.materialize(other, Some(dtype), given.span)?;
            let (wanted, found) = (&self.build.ty(*own).array, &self.build.ty(other).array);
            if wanted != found {
                let message = expected(format_args!("a {role} of type `{wanted}`"), format_args!("`{found}`"));
                return Err(Some(Diagnostic::error(Code::E0203, given.span, message)));
            }
            pairs.push((*own, other));
        }
        Ok(pairs)
    }
}

/// The arguments by which a derivative is taken, and whether the function has an auxiliary output.
#[derive(Clone)]
struct Differentiation {
    argnums: Vec<i64>,
    is_tuple: bool,
    has_aux: bool,
}

impl Differentiation {
    fn of(args: &mut Args<'_>) -> Derivation<Differentiation> {
        let is_tuple = args.peek("argnums").is_some_and(|arg| arg.term.sequence().is_some());
        let argnums = args.optional_ints("argnums")?.unwrap_or_else(|| vec![0]);
        let has_aux = args.optional_bool("has_aux")?.unwrap_or(false);
        Ok(Differentiation { argnums, is_tuple, has_aux })
    }

    fn jacobian(self, function: Arg) -> Jacobian {
        let Differentiation { argnums, is_tuple, has_aux } = self;
        Jacobian { function, argnums, is_tuple, has_aux }
    }
}

/// The result of a function, without the auxiliary output of `has_aux`.
pub(crate) fn without_aux(result: Term, has_aux: bool, span: Span) -> Derivation<(Term, Option<Term>)> {
    match (&result, has_aux) {
        (Term::Tuple(parts), true) if parts.len() == 2 => Ok((parts[0].clone(), Some(parts[1].clone()))),
        (_, true) => {
            let message = must_return("with `has_aux`, the function", "a pair", result.describe());
            Err(Some(Diagnostic::error(Code::E0226, span, message)))
        }
        (_, false) => Ok((result, None)),
    }
}

/// The arrays among the leaves of a tree.
fn arrays(term: &Term) -> Vec<Value> {
    let mut leaves = Vec::new();
    trees::leaves(term, "", &mut leaves);
    leaves.iter().filter_map(|(_, leaf)| if let Term::Array(value) = leaf { Some(*value) } else { None }).collect()
}

fn not_a_scalar(found: impl Display, span: Span) -> Diagnostic {
    let message = format!("`grad` requires a function with a scalar float result, but this one returns {found}");
    Diagnostic::error(Code::E0226, span, message)
        .help("reduce the result first, as in `sum(y)`; `vjp` differentiates functions that return arrays")
}
