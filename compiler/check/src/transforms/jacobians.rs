//! `jacobian` and `hessian`: derivatives of all elements of a function's results by all elements of its arguments.
//!
//! The function's tangents are computed for each element of an argument at once, or its cotangents for each element of a result: one
//! direction is differentiated and mapped over all of them (`spmdc_transform::batching`). Whichever has fewer elements decides.

use crate::Checker;
use crate::transforms::derivatives::{Derivation, without_aux};
use crate::transforms::derived::{Jacobian, Leaf};
use spmdc_functions::complex::refused;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_return;
use spmdc_grammar::span::Span;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::complex::DERIVATIVES;
use spmdc_ir::call::term::Term;
use spmdc_ir::call::trees;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::Batch;
use spmdc_ir::rules::derivative::is_differentiable;
use spmdc_layout::sharding::DimSharding;
use spmdc_ops::batching::BatchForms;
use spmdc_ops::batching::from_front;
use spmdc_ops::derivative::zeros_like;
use spmdc_ops::makers::identity;
use spmdc_ops::reshape::reshape;
use spmdc_ops::reshard::Reshard;
use spmdc_transform::batching::map_over;
use spmdc_transform::derivatives::{pullback, push_forward};

/// An expanded function.
struct Differentiated<'a> {
    function: &'a Arg,
    args: Vec<Arg>,
    has_aux: bool,
    /// The position of the first statement of its expansion.
    start: usize,
    inputs: Vec<Leaf>,
    outputs: Vec<Value>,
}

/// All directions of a value, one along each element, in a first dimension.
struct Basis {
    /// One of them, in statements that are taken back.
    one: Value,
    all: Value,
    batch: Batch,
}

impl Checker<'_> {
    /// A call of a function that is the Jacobian of another.
    pub(crate) fn jacobian(&mut self, jacobian: &Jacobian, mut args: Vec<Arg>, span: Span) -> Derivation<Term> {
        let (leaves, forms) = self.chosen_arguments(&jacobian.argnums, &mut args, span)?;
        if forms.iter().any(Term::holds_complex) {
            return Err(Some(refused("jacobian", DERIVATIVES, span)));
        }
        let (result, start) = self.expanded(&jacobian.function, args.clone(), span)?;
        let (value, aux) = without_aux(result, jacobian.has_aux, span)?;
        let outputs = self.differentiated(&value, span)?;
        let inputs: Vec<Leaf> = leaves.into_iter().flatten().collect();
        let (function, has_aux) = (&jacobian.function, jacobian.has_aux);
        let expanded = Differentiated { function, args, has_aux, start, inputs, outputs };
        let elements = |build: &Checker<'_>, values: &mut dyn Iterator<Item = Value>| -> usize {
            values.map(|value| build.build.ty(value).array.len()).sum()
        };
        let inputs = elements(self, &mut expanded.inputs.iter().map(|leaf| leaf.copy));
        let outputs = elements(self, &mut expanded.outputs.iter().copied());
        let parts =
            if inputs <= outputs { self.along_inputs(&expanded, span)? } else { self.along_outputs(&expanded, span)? };
        let copies: Vec<Value> = expanded.inputs.iter().map(|leaf| leaf.copy).collect();
        self.build.release(&copies);
        let mut rows = Vec::new();
        for row in parts {
            let mut row = row.into_iter().map(Term::Array);
            let mut of: Vec<Term> = forms.iter().map(|form| trees::rebuild(form, &mut row)).collect();
            rows.push(if jacobian.is_tuple { Term::Tuple(of) } else { of.swap_remove(0) });
        }
        let jacobian = trees::rebuild(&value, &mut rows.into_iter());
        Ok(match aux {
            Some(aux) => Term::Tuple(vec![jacobian, aux]),
            None => jacobian,
        })
    }

    /// The floats of a result.
    fn differentiated(&mut self, result: &Term, span: Span) -> Derivation<Vec<Value>> {
        let mut outputs = Vec::new();
        let mut found = Vec::new();
        trees::leaves(result, "", &mut found);
        for (_, leaf) in found {
            if !leaf.is_operand() {
                let message = must_return("a differentiated function", "floats", leaf.describe());
                return Err(Some(Diagnostic::error(Code::E0226, span, message)));
            }
            let output = self.build.materialize(leaf, None, span)?;
            let dtype = self.build.ty(output).dtype();
            if !is_differentiable(dtype) {
                let message = format!("only float results can be differentiated; found a result of {}", dtype.name());
                return Err(Some(Diagnostic::error(Code::E0215, span, message).help("convert it with `f32(y)`")));
            }
            outputs.push(output);
        }
        Ok(outputs)
    }

    /// For each output the derivatives with respect to each input: forward, one input after the other.
    ///
    /// Loops carry tangents in addition to values, so a function is expanded again for each input. Its computations without tangents are
    /// joined later (`cse`).
    fn along_inputs(&mut self, function: &Differentiated<'_>, span: Span) -> Derivation<Vec<Vec<Value>>> {
        let mut rows = vec![Vec::new(); function.outputs.len()];
        for input in &function.inputs {
            self.build.set_span(span);
            let basis = self.basis(input.copy)?;
            let (result, start) = self.expanded(function.function, function.args.clone(), span)?;
            let (value, _) = without_aux(result, function.has_aux, span)?;
            let outputs = self.differentiated(&value, span)?;
            // What acts does so in the first expansion.
            let mut stmts = self.build.innermost().stmts.split_off(start);
            stmts.retain(|stmt| !stmt.has_effect() || !stmt.results.is_empty());
            self.build.innermost().stmts.extend(stmts);
            let tangents = push_forward(&mut self.build, start, &[(input.copy, basis.one)], &outputs);
            let stmts = self.build.innermost().stmts.split_off(start);
            let tangents = tangents?;
            let known: Vec<Value> = tangents.iter().flatten().copied().collect();
            let mut all = self.of_basis(&stmts, &basis, &known)?.into_iter();
            for ((row, tangent), &output) in rows.iter_mut().zip(&tangents).zip(&function.outputs) {
                let shape = self.jacobian_shape(output, input.copy);
                row.push(match tangent {
                    Some(_) => {
                        let tangents = all.next().expect("there is one for each tangent");
                        let rank = self.build.ty(output).rank();
                        let tangents = from_front(&mut self.build, tangents, rank)?;
                        reshape(&mut self.build, tangents, &shape)?
                    }
                    None => self.no_derivative(output, &shape)?,
                });
            }
        }
        Ok(rows)
    }

    /// For each output the derivatives by each input: backward, one output after the other.
    fn along_outputs(&mut self, function: &Differentiated<'_>, span: Span) -> Derivation<Vec<Vec<Value>>> {
        let copies: Vec<Value> = function.inputs.iter().map(|leaf| leaf.copy).collect();
        let mut rows = Vec::new();
        for &output in &function.outputs {
            self.build.set_span(span);
            let basis = self.basis(output)?;
            let reverse = pullback(&mut self.build, function.start, &copies, &[output])?;
            let basis = Basis { one: reverse.params[0], ..basis };
            let all = self.of_basis(&reverse.stmts, &basis, &reverse.results)?;
            let mut row = Vec::new();
            for (value, &input) in all.into_iter().zip(&copies) {
                let shape = self.jacobian_shape(output, input);
                row.push(reshape(&mut self.build, value, &shape)?);
            }
            rows.push(row);
        }
        Ok(rows)
    }

    /// The shape of the derivatives of one array by another.
    fn jacobian_shape(&self, output: Value, input: Value) -> Vec<usize> {
        [self.build.ty(output).shape(), self.build.ty(input).shape()].concat()
    }

    fn no_derivative(&mut self, output: Value, shape: &[usize]) -> Derivation<Value> {
        let zero = zeros_like(&mut self.build, output)?;
        let ones = vec![1; shape.len() - self.build.ty(zero).rank()];
        let narrow = [self.build.ty(zero).shape(), ones.as_slice()].concat();
        let zero = reshape(&mut self.build, zero, &narrow)?;
        Ok(spmdc_ops::broadcast::broadcast(&mut self.build, zero, shape)?)
    }

    /// The directions of a value.
    fn basis(&mut self, value: Value) -> Derivation<Basis> {
        let ty = self.build.carried_type(value);
        let size = ty.array.len();
        let all = identity(&mut self.build, ty.dtype(), size)?;
        let all = reshape(&mut self.build, all, &[&[size], ty.shape()].concat())?;
        let open = self.build.unknown_layout(1).dims.swap_remove(0);
        let batch = Batch { size, layout: DimSharding { axes: Vec::new(), ..open } };
        let mut to = self.build.explicit_part(&ty);
        to.dims.insert(0, batch.layout.clone());
        let found = self.build.explicit_part(self.build.ty(all));
        let all = if found.dims == to.dims { all } else { self.build.emit1(Reshard::request(to), &[all])? };
        Ok(Basis { one: self.placeholder(ty), all, batch })
    }

    /// Values that statements compute of one direction, for all of them.
    fn of_basis(&mut self, stmts: &[Stmt], basis: &Basis, values: &[Value]) -> Derivation<Vec<Value>> {
        let found = map_over(&mut self.build, stmts, &[(basis.one, basis.all)], values, basis.batch.clone())?;
        let mut all = Vec::new();
        for operand in found {
            all.push(basis.batch.mapped(&mut self.build, operand)?);
        }
        Ok(all)
    }
}
