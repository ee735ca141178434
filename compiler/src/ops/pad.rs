//! `pad(x, ((before, after), ...))`: a number around an array. Padded dimensions are needed whole.

use super::factors::Factors;
use super::flip::whole_dims;
use super::regions::{Span, box_indices, copy_box};
use super::{Call, Mismatch, Rules, shape};
use crate::check::args::Args;
use crate::check::term::Term;
use crate::codegen::lower::Lowering;
use crate::ir::Stmt;
use crate::ir::build::Builder;
use crate::ir::eval::{Array, Trap};
use crate::ir::mesh::Mesh;
use crate::ir::types::ArrayType;
use crate::ops::constant::number_bits;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;

#[derive(Clone, Debug, PartialEq)]
pub struct Pad {
    /// (before, after) for each dimension.
    pub widths: Vec<(usize, usize)>,
    /// The bits of the number.
    pub value: u64,
}

impl Rules for Pad {
    fn name(&self) -> &'static str {
        "pad"
    }

    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let sizes = args[0].shape.iter().zip(&self.widths).map(|(size, (before, after))| size + before + after);
        Ok(vec![ArrayType::new(args[0].dtype, &sizes.collect::<Vec<_>>())])
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        whole_dims(&args[0].shape, &results[0].shape, |dim| self.widths[dim] != (0, 0))
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let ty =
            self.infer(&[&args[0].ty]).map(|mut types| types.swap_remove(0)).unwrap_or_else(|_| args[0].ty.clone());
        let mut result = Array::filled(ty, self.value);
        let strides = shape::strides(result.shape());
        for (index, &bits) in shape::indices(args[0].shape()).zip(&args[0].bits) {
            let places = index.iter().zip(&self.widths).zip(&strides);
            let address: usize = places.map(|((at, (before, _)), stride)| (at + before) * stride).sum();
            result.bits[address] = bits;
        }
        Ok(vec![result])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let widths: Vec<String> = self.widths.iter().map(|(before, after)| format!("({before}, {after})")).collect();
        format!("pad({}, [{}], bits={})", args[0], widths.join(", "), self.value)
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }

    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let sizes = lowering.ty(stmt.args[0]).shape().to_vec();
        let dtype = lowering.ty(stmt.results[0]).dtype();
        // The frame, dimension by dimension: earlier dimensions only as far as the operand, later ones in full.
        for (dim, &(before, after)) in self.widths.iter().enumerate() {
            for (len, to) in [(before, 0), (after, before + sizes[dim])] {
                let full = |other: usize| {
                    let (low, high) = self.widths[other];
                    ((low, high) != (0, 0)).then_some(Span { len: sizes[other] + low + high, from: 0, to: 0 })
                };
                let inner =
                    |other: usize| full(other).map(|_| Span { len: sizes[other], from: 0, to: self.widths[other].0 });
                let spans: Vec<Option<Span>> = (0..sizes.len())
                    .map(|other| match other.cmp(&dim) {
                        std::cmp::Ordering::Less => inner(other),
                        std::cmp::Ordering::Equal => Some(Span { len, from: 0, to }),
                        std::cmp::Ordering::Greater => full(other),
                    })
                    .collect();
                if spans.iter().flatten().any(|span| span.len == 0) {
                    continue;
                }
                let mut kernel = lowering.kernel();
                let (_, index) = box_indices(&mut kernel, stmt.results[0], &spans);
                let number = kernel.constant(dtype, self.value);
                kernel.store(stmt.results[0], &index, number);
                lowering.run(kernel);
            }
        }
        let padded = self.widths.iter().zip(&sizes);
        let spans: Vec<Option<Span>> = padded
            .map(|(&(before, after), &len)| ((before, after) != (0, 0)).then_some(Span { len, from: 0, to: before }))
            .collect();
        copy_box(lowering, stmt, stmt.args[0], &spans);
        Ok(())
    }
}

/// The (before, after) of each dimension, from what NumPy accepts: a number, a pair, or a pair for each dimension.
fn widths(term: &Term, rank: usize, args: &Args<'_>) -> Result<Vec<(usize, usize)>, Diagnostic> {
    let malformed = |text: &str| Diagnostic::error(Code::E0205, args.span, text.to_string());
    let number = |term: &Term| match term {
        Term::Int(width) => usize::try_from(*width).map_err(|_| malformed("a pad width cannot be negative")),
        other => Err(malformed(&format!("a pad width is an integer, not {}", other.describe()))),
    };
    let pair = |items: &[Term]| match items {
        [both] => number(both).map(|width| (width, width)),
        [before, after] => Ok((number(before)?, number(after)?)),
        _ => Err(malformed("pad widths come in pairs (before, after)")),
    };
    match term {
        Term::Int(_) => number(term).map(|width| vec![(width, width); rank]),
        Term::Tuple(items) | Term::List(items) if items.iter().all(|item| matches!(item, Term::Int(_))) => {
            pair(items).map(|both| vec![both; rank])
        }
        Term::Tuple(items) | Term::List(items) => {
            let pairs = items.iter().map(|item| match item {
                Term::Tuple(items) | Term::List(items) => pair(items),
                other => number(other).map(|width| (width, width)),
            });
            let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
            match pairs.len() {
                1 => Ok(vec![pairs[0]; rank]),
                len if len == rank => Ok(pairs),
                len => Err(malformed(&format!("pad widths for {len} dimensions, but the array has {rank}"))),
            }
        }
        other => Err(malformed(&format!("pad widths are numbers or pairs, not {}", other.describe()))),
    }
}

impl Call for Pad {
    fn call(_: &str, args: &mut Args<'_>, build: &mut Builder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let (dtype, rank) = (build.ty(value).dtype(), build.ty(value).rank());
        let given = args.required("pad_width")?;
        let widths = widths(&given.term, rank, args)?;
        if let Some(mode) = args.take("mode")
            && !matches!(&mode.term, Term::Str(mode) if mode == "constant")
        {
            return Err(Diagnostic::error(Code::E0901, mode.span, "`pad` knows the mode \"constant\" only, so far"));
        }
        let number = match (args.take_named("bits"), args.take_named("constant_values")) {
            // In dumps: any number, NaN included.
            (Some(arg), _) => match arg.term {
                Term::Int(bits) => bits as u64,
                other => {
                    return Err(Diagnostic::error(
                        Code::E0210,
                        arg.span,
                        format!("bits are an integer, not {}", other.describe()),
                    ));
                }
            },
            (None, Some(arg)) => number_bits(&arg.term, dtype, arg.span)?,
            (None, None) => 0,
        };
        Ok(Term::Array(build.emit1(Pad { widths, value: number }, &[value])?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::types::DType;

    #[test]
    fn the_operand_lies_inside_the_frame() {
        let pad = Pad { widths: vec![(1, 0), (0, 2)], value: 7 };
        let x = Array::new(ArrayType::new(DType::I32, &[1, 2]), vec![1, 2]);
        let y = pad.eval(&[&x]).map(|mut all| all.swap_remove(0));
        assert_eq!(y.map(|y| (y.ty.shape, y.bits)).ok(), Some((vec![2, 4], vec![7, 7, 7, 7, 1, 2, 7, 7])));
    }
}
