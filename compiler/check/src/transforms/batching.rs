//! `vmap`: maps a function of one element over a dimension of its arguments.
//!
//! The function is expanded for one element, for which only types are known. The statements of the expansion are removed, and statements
//! that compute all elements replace them (`spmdc_transform::batching`).

use crate::Checker;
use crate::transforms::derivatives::Derivation;
use crate::transforms::derived::Mapped;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{counted, must_be, must_return, requires};
use spmdc_grammar::span::Span;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::term::{Term, whole_number};
use spmdc_ir::call::trees;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::{Batch, BatchedOperand};
use spmdc_layout::types::Type;
use spmdc_ops::batching::BatchForms;
use spmdc_ops::batching::{from_front, in_front};
use spmdc_transform::batching::map_over;

/// The mapped dimension of a leaf, as written; None if it is not mapped.
type MappedDim = Option<i64>;

/// A leaf of an argument that is mapped.
struct MappedLeaf {
    /// With the mapped dimension in front.
    value: Value,
    /// The argument for one element.
    element: Value,
}

/// The mapped dimensions of a call, as far as they are known.
struct Found {
    batch: Batch,
    /// The source position of the argument that gave the number of elements.
    size_at: Span,
    /// That of the argument that gave the layout.
    layout_at: Option<Span>,
}

impl Checker<'_> {
    /// A call of a mapped function.
    pub(crate) fn call_mapped(&mut self, mapped: &Mapped, args: Vec<Arg>, span: Span) -> Derivation<Term> {
        let dims = mapped_dims(mapped, &args, span)?;
        if let Some(axes) = &mapped.in_axes {
            let trees = args.iter().filter(|arg| arg.name.is_none()).map(|arg| arg.term.clone()).collect();
            trees::link_fields(&axes.term, &Term::Tuple(trees), &mut self.build.fields);
        }
        let given = self.mapped_leaves(&args, &dims)?;
        let found = self.common_batch(&given, span)?;
        let mut leaves = Vec::new();
        let mut elements = Vec::new();
        let mut given = given.into_iter();
        for arg in args {
            let mut found_leaves = Vec::new();
            trees::leaves(&arg.term, "", &mut found_leaves);
            let mut terms = Vec::new();
            for (_, leaf) in found_leaves {
                terms.push(match given.next().expect("there is an entry for each leaf") {
                    None => leaf.clone(),
                    Some((value, dim, place)) => {
                        let leaf = self.one_element(&found, value, dim, place)?;
                        let element = Term::Array(leaf.element);
                        leaves.push(leaf);
                        element
                    }
                });
            }
            let term = trees::rebuild(&arg.term, &mut terms.into_iter());
            elements.push(Arg { term, ..arg });
        }
        let around = self.mapped_axes;
        self.mapped_axes = around.union(found.batch.layout.axes.iter().map(|&axis| usize::from(axis)).collect());
        let expanded = self.expanded_apart(&mapped.function, elements, span);
        self.mapped_axes = around;
        let (result, outputs, stmts) = expanded?;
        let inputs: Vec<(Value, Value)> = leaves.iter().map(|leaf| (leaf.element, leaf.value)).collect();
        self.build.set_span(span);
        let outputs = map_over(&mut self.build, &stmts, &inputs, &outputs, found.batch.clone())?;
        self.placed(mapped, &result, outputs, &found.batch, span)
    }

    /// The mapped leaves of the arguments, each with its dimension and source position.
    fn mapped_leaves(
        &mut self,
        args: &[Arg],
        dims: &[Vec<MappedDim>],
    ) -> Derivation<Vec<Option<(Value, usize, Span)>>> {
        let mut given = Vec::new();
        for (arg, dims) in args.iter().zip(dims) {
            let mut found = Vec::new();
            trees::leaves(&arg.term, "", &mut found);
            for ((path, leaf), dim) in found.into_iter().zip(dims) {
                let Some(dim) = *dim else {
                    given.push(None);
                    continue;
                };
                let value = self.build.materialize(leaf, None, arg.span)?;
                let value = self.build.in_memory(value, "a mapped argument", arg.span)?;
                let ty = self.build.ty(value);
                let Some(at) = from_start(dim, ty.rank()) else {
                    let path = if path.is_empty() { String::new() } else { format!("`{path}` of ") };
                    let message =
                        format!("`in_axes` maps dimension {dim} of {path}this argument, which is `{}`", ty.array);
                    let help = "an argument that is not mapped has the entry `_`, as in vmap(f, in_axes=(0, _))";
                    return Err(Some(Diagnostic::error(Code::E0206, arg.span, message).help(help)));
                };
                given.push(Some((value, at, arg.span)));
            }
        }
        Ok(given)
    }

    /// The number of elements and their layout, on which all mapped arguments agree.
    fn common_batch(&mut self, given: &[Option<(Value, usize, Span)>], span: Span) -> Derivation<Found> {
        let mut found: Option<Found> = None;
        for &(value, dim, place) in given.iter().flatten() {
            let ty = self.build.ty(value);
            let (size, layout) = (ty.shape()[dim], self.build.explicit_part(ty).dims[dim].clone());
            let known = found.get_or_insert_with(|| Found {
                batch: Batch { size, layout: layout.clone() },
                size_at: place,
                layout_at: (!layout.axes.is_empty()).then_some(place),
            });
            if known.batch.size != size {
                let message = format!(
                    "the mapped dimensions have different sizes: {size} here, and {} in another argument",
                    known.batch.size
                );
                return Err(Some(
                    Diagnostic::error(Code::E0205, place, message)
                        .label(known.size_at, format!("the mapped dimension has size {}", known.batch.size))
                        .help("`in_axes` selects the mapped dimensions, with `_` for arguments that are not mapped"),
                ));
            }
            if layout.axes.is_empty() || layout.axes == known.batch.layout.axes {
                continue;
            }
            if let Some(other) = known.layout_at {
                let [one, another] =
                    [&layout, &known.batch.layout].map(|dim| self.build.mesh().display_axes(&dim.axes));
                let message =
                    format!("the mapped dimension is split over {one} here, but over {another} in another argument");
                return Err(Some(
                    Diagnostic::error(Code::E0302, place, message)
                        .label(other, format!("split over {another}"))
                        .help("reshard one of the arguments, so that their mapped dimensions have the same layout"),
                ));
            }
            known.batch.layout = layout;
            known.layout_at = Some(place);
        }
        found.ok_or_else(|| {
            let message = "`vmap` needs at least one mapped argument to determine the batch size";
            Some(
                Diagnostic::error(Code::E0205, span, message)
                    .help("`in_axes` must hold the dimension of at least one argument"),
            )
        })
    }

    /// The argument for one element, for the statements of its expansion.
    fn one_element(&mut self, found: &Found, value: Value, dim: usize, place: Span) -> Derivation<MappedLeaf> {
        self.build.set_span(place);
        let mut value = in_front(&mut self.build, value, dim)?;
        let used = self.build.ty(value).sharding.used_axes();
        let is_free = found.batch.layout.axes.iter().all(|&axis| !used.contains(usize::from(axis)));
        if is_free {
            value = found.batch.laid_out(&mut self.build, value)?;
        }
        let mut ty = self.build.carried_type(value);
        ty.array.shape.remove(0);
        ty.sharding.dims.remove(0);
        Ok(MappedLeaf { value, element: self.placeholder(ty) })
    }

    /// A value that no statement defines, for an expansion that is taken back.
    pub(crate) fn placeholder(&mut self, ty: Type) -> Value {
        let origin = self.build.origin();
        self.build.new_value(ty, origin)
    }

    /// The result of a function, its arrays, and the statements of its expansion, which are not in the program.
    fn expanded_apart(
        &mut self,
        function: &Arg,
        args: Vec<Arg>,
        span: Span,
    ) -> Derivation<(Term, Vec<Value>, Vec<Stmt>)> {
        let start = self.build.innermost().stmts.len();
        let result = self.call_term(&function.term, args, span, function.span);
        self.build.set_span(span);
        let outputs = self.result_arrays(&result, span);
        let stmts = self.build.innermost().stmts.split_off(start);
        Ok((result, outputs?, stmts))
    }

    fn result_arrays(&mut self, result: &Term, span: Span) -> Derivation<Vec<Value>> {
        if result.is_poisoned() {
            return Err(None);
        }
        let mut leaves = Vec::new();
        trees::leaves(result, "", &mut leaves);
        let mut outputs = Vec::new();
        for (_, leaf) in leaves {
            if !trees::is_number(leaf) {
                let message = must_return("a mapped function", "arrays", leaf.describe());
                return Err(Some(Diagnostic::error(Code::E0226, span, message)));
            }
            let value = self.build.materialize(leaf, None, span)?;
            outputs.push(self.build.in_memory(value, "the result of a mapped function", span)?);
        }
        Ok(outputs)
    }

    /// The results, with the mapped dimension where `out_axes` has it.
    fn placed(
        &mut self,
        mapped: &Mapped,
        result: &Term,
        outputs: Vec<BatchedOperand>,
        batch: &Batch,
        span: Span,
    ) -> Derivation<Term> {
        let default = Term::Int(0);
        let (axes, place) = match &mapped.out_axes {
            Some(arg) => (&arg.term, arg.span),
            None => (&default, span),
        };
        let mut dims = Vec::new();
        trees::link_fields(axes, result, &mut self.build.fields);
        spread(axes, result, "out_axes", place, &mut dims)?;
        let mut terms = Vec::new();
        for (operand, dim) in outputs.into_iter().zip(dims) {
            let Some(dim) = dim else {
                if operand.is_mapped() {
                    let message = "this result is batched, so its `out_axes` entry cannot be `_`";
                    return Err(Some(
                        Diagnostic::error(Code::E0206, place, message)
                            .help("pass the position of the mapped dimension, as in out_axes=0"),
                    ));
                }
                terms.push(Term::Array(operand.value()));
                continue;
            };
            let value = batch.mapped(&mut self.build, operand)?;
            let rank = self.build.ty(value).rank();
            let Some(at) = from_start(dim, rank) else {
                let ty = &self.build.ty(value).array;
                let message =
                    format!("`out_axes` puts the mapped dimension at position {dim}, but the result is `{ty}`");
                return Err(Some(Diagnostic::error(Code::E0206, place, message)));
            };
            terms.push(Term::Array(from_front(&mut self.build, value, at)?));
        }
        Ok(trees::rebuild(result, &mut terms.into_iter()))
    }
}

/// A dimension counted from the start; None if no dimension has this number.
fn from_start(dim: i64, rank: usize) -> Option<usize> {
    let at = if dim < 0 { dim + rank as i64 } else { dim };
    usize::try_from(at).ok().filter(|&at| at < rank)
}

/// The mapped dimension of each leaf of each argument.
fn mapped_dims(mapped: &Mapped, args: &[Arg], span: Span) -> Derivation<Vec<Vec<MappedDim>>> {
    let default = Term::Int(0);
    let (axes, place) = match &mapped.in_axes {
        Some(arg) => (&arg.term, arg.span),
        None => (&default, span),
    };
    let positional = args.iter().filter(|arg| arg.name.is_none()).count();
    if let Some(listed) = axes.sequence()
        && listed.len() != positional
    {
        let (entries, arguments) = (counted(listed.len(), "entry"), counted(positional, "positional argument"));
        let message = format!("`in_axes` has {entries}, but the call has {arguments}");
        return Err(Some(
            Diagnostic::error(Code::E0201, place, message)
                .label(span, "this call")
                .help("a tuple has one entry per positional argument: a dimension, or `_`"),
        ));
    }
    let mut at = 0;
    let mut dims = Vec::new();
    for arg in args {
        // Arguments by name are mapped over their first dimension.
        let own = match (axes.sequence(), &arg.name) {
            (Some(listed), None) => &listed[at],
            (None, None) => axes,
            (_, Some(_)) => &default,
        };
        at += usize::from(arg.name.is_none());
        let mut found = Vec::new();
        spread(own, &arg.term, "in_axes", place, &mut found)?;
        dims.push(found);
    }
    Ok(dims)
}

/// The dimension of each leaf of a tree: `axes` is a tree of the same form, or ends above the leaves.
fn spread(axes: &Term, tree: &Term, name: &str, span: Span, found: &mut Vec<MappedDim>) -> Derivation<()> {
    let malformed = |message: String| Err(Some(Diagnostic::error(Code::E0225, span, message)));
    let dim = if let Term::Nothing = axes {
        Some(None)
    } else {
        whole_number(axes).and_then(|dim| i64::try_from(dim).ok()).map(Some)
    };
    if let Some(dim) = dim {
        let mut leaves = Vec::new();
        trees::leaves(tree, "", &mut leaves);
        // Functions, strings and the like have no dimensions.
        found.extend(leaves.into_iter().map(|(_, leaf)| dim.filter(|_| trees::is_number(leaf))));
        return Ok(());
    }
    if let (Term::Struct(axes), Term::Struct(fields)) = (axes, tree) {
        for (field, part) in fields {
            let Some((_, own)) = axes.iter().find(|(other, _)| other == field) else {
                return malformed(format!("`{name}` has no entry for field `{field}`"));
            };
            spread(own, part, name, span, found)?;
        }
        return Ok(());
    }
    let (Some(axes), Term::Tuple(_) | Term::Struct(_)) = (axes.sequence(), tree) else {
        let found = if axes.parts().is_empty() { axes.describe() } else { "a tree of another form" };
        let wanted = "an integer or `_`, or a tuple or struct of these with the form of the values";
        return malformed(must_be(format_args!("`{name}`"), wanted, found));
    };
    let parts = tree.parts();
    if axes.len() != parts.len() {
        let (entries, values) = (counted(axes.len(), "entry"), counted(parts.len(), "value"));
        return malformed(requires(
            format_args!("`{name}`"),
            "one entry per value",
            format_args!("{entries} for {values}"),
        ));
    }
    axes.iter().zip(parts).try_for_each(|(axes, part)| spread(axes, part, name, span, found))
}
