//! `reduce_window(x, init, f, window_dimensions)`: the elements of each window combined by any associative function of the program.
//!
//! The elements of all windows are along a first dimension. Neighbours are combined pairwise, so the number of applications of the function
//! is logarithmic in the elements of a window, each for one pair of every window. Padding is left out: a mask accompanies the elements, and
//! if one side is padding, the other side is the result.

use super::Checker;
use spmdc_functions::reduce_window::{elements_first, window_dims};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{must_be, must_return};
use spmdc_grammar::span::Span;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::term::Term;
use spmdc_ir::program::Value;
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::types::DType;
use spmdc_ops::broadcast::{broadcast, filled};
use spmdc_ops::elementwise::{Binary, Select};
use spmdc_ops::reshape::reshape;
use spmdc_ops::slice::{SliceRange, slice_dim};

/// Some elements of each window, along the first dimension, and a mask of the elements that are not padding; without a mask, none are
/// padding.
#[derive(Clone, Copy)]
struct WindowElements {
    value: Value,
    exist: Option<Value>,
}

/// A failure is a diagnostic; None if it has been reported.
type Reduced<T> = std::result::Result<T, Option<Diagnostic>>;

impl Checker<'_> {
    /// Whether the arguments of a call of `reduce_window` have a function in place of the name of a computation.
    pub(super) fn reduces_by_function(&self, args: &[Arg]) -> bool {
        let is_computation = |arg: &&Arg| arg.name.as_deref() == Some("computation");
        let given = args.iter().find(is_computation).or_else(|| args.get(2).filter(|arg| arg.name.is_none()));
        given.is_some_and(|arg| self.function_term(&arg.term).is_some())
    }

    /// A call of `reduce_window` with a function.
    pub(super) fn reduce_window_by_function(&mut self, args: Vec<Arg>, span: Span) -> Term {
        match self.try_reduce_window(args, span) {
            Ok(value) => Term::Array(value),
            Err(Some(diagnostic)) => self.report(diagnostic),
            Err(None) => Term::Poison,
        }
    }

    fn try_reduce_window(&mut self, args: Vec<Arg>, span: Span) -> Reduced<Value> {
        let function = spmdc_functions::builtin("reduce_window").expect("the table has it");
        self.build.set_span(span);
        let mut args = function.bind(args, span, self.build.is_exact())?;
        let value = args.array(&mut self.build, "x")?;
        let (init, computation) = (args.required("init")?, args.required("computation")?);
        let (shape, dtype) = (self.build.ty(value).shape().to_vec(), self.build.ty(value).dtype());
        let dims = window_dims(&mut args, &shape)?;
        let is_padded = dims.iter().any(|dim| dim.padding != (0, 0) || dim.base_dilation > 1);
        let whole = elements_first(&mut self.build, value, &dims, 0)?;
        let exist = if is_padded {
            let all = filled(&mut self.build, DType::Bool, 1, &shape)?;
            Some(elements_first(&mut self.build, all, &dims, 0)?)
        } else {
            None
        };
        let mut all = WindowElements { value: whole, exist };
        // What is left over at each level comes after all pairs, and before what was left over earlier.
        let mut tail: Option<WindowElements> = None;
        let mut len = self.build.ty(whole).shape()[0];
        while len > 1 {
            if len % 2 == 1 {
                let last = self.window_part(all, len - 1, 1, 1)?;
                tail = Some(match tail {
                    None => last,
                    Some(tail) => self.combine_elements(&computation, last, tail, span)?,
                });
            }
            let (first, second) = (self.window_part(all, 0, 2, len / 2)?, self.window_part(all, 1, 2, len / 2)?);
            all = self.combine_elements(&computation, first, second, span)?;
            len /= 2;
        }
        debug_assert_eq!(self.build.ty(all.value).shape()[0], 1, "windows have an element at least");
        if let Some(tail) = tail {
            all = self.combine_elements(&computation, all, tail, span)?;
        }
        if !matches!(init.term, Term::Nothing) {
            let init = self.build.materialize(&init.term, Some(dtype), init.span)?;
            if self.build.ty(init).rank() > 0 {
                let found = self.build.display_closed(self.build.ty(init));
                let message = must_be("`init`", "a scalar", format_args!("`{found}`"));
                return Err(Some(Diagnostic::error(Code::E0205, span, message)));
            }
            let init = spmdc_ops::cast::cast(&mut self.build, init, dtype)?;
            let like = self.build.ty(all.value).shape().to_vec();
            let first = broadcast(&mut self.build, init, &like)?;
            all = self.combine_elements(&computation, WindowElements { value: first, exist: None }, all, span)?;
        }
        let result = self.build.ty(all.value).shape()[1..].to_vec();
        Ok(reshape(&mut self.build, all.value, &result)?)
    }

    /// `len` elements of each window, `step` apart.
    fn window_part(&mut self, all: WindowElements, start: usize, step: i64, len: usize) -> Reduced<WindowElements> {
        let range = SliceRange { start, step: if len == 1 { 1 } else { step }, len };
        let value = slice_dim(&mut self.build, all.value, 0, range)?;
        let exist = all.exist.map(|exist| slice_dim(&mut self.build, exist, 0, range)).transpose()?;
        Ok(WindowElements { value, exist })
    }

    /// The function's results for pairs of elements, which must be like its operands.
    fn combine_elements(
        &mut self,
        function: &Arg,
        before: WindowElements,
        after: WindowElements,
        span: Span,
    ) -> Reduced<WindowElements> {
        let given = [before, after].map(|side| Arg { name: None, term: Term::Array(side.value), span });
        let term = self.call_term(&function.term, given.to_vec(), span, function.span);
        self.build.set_span(span);
        if term.is_poisoned() {
            return Err(None);
        }
        let expected = self.build.ty(before.value).array.clone();
        let both = if let Term::Array(both) = term
            && self.build.ty(both).array == expected
        {
            both
        } else {
            let (taken, given) = (self.display_term(&Term::Array(before.value)), self.display_term(&term));
            let message =
                must_return("the function of `reduce_window`", format_args!("`{taken}`"), format_args!("`{given}`"));
            let error = Diagnostic::error(Code::E0203, function.span, message);
            return Err(Some(error.help("it combines two elements, and must return an element of the same type")));
        };
        let build = &mut self.build;
        let (value, exist) = match (before.exist, after.exist) {
            (None, None) => (both, None),
            (Some(mask), None) => (build.emit1(Select, &[mask, both, after.value])?, None),
            (None, Some(mask)) => (build.emit1(Select, &[mask, both, before.value])?, None),
            (Some(first), Some(second)) => {
                let one = build.emit1(Select, &[first, before.value, after.value])?;
                let are_both = build.emit1(Binary(BinaryOp::And), &[first, second])?;
                let value = build.emit1(Select, &[are_both, both, one])?;
                (value, Some(build.emit1(Binary(BinaryOp::Or), &[first, second])?))
            }
        };
        Ok(WindowElements { value, exist })
    }
}
