//! Scatters that no function of the language expresses: one update after the other.

use super::indexing::{DimensionNumbers, SourceDim, also_inside, arranged};
use super::reductions::part;
use super::shapes::reshaped;
use super::{FunctionReader, MlirValue, at, malformed, unsupported};
use crate::build::Build;
use crate::cursor::Read;
use crate::tree::{MlirElement, MlirOp, TensorType};
use spmdc_grammar::ast::{Expr, ExprKind, IndexNode, StmtNode, StmtNodeKind};

impl FunctionReader<'_> {
    /// A loop over the indices, in row-major order. Each trip replaces one slice of each array, unless the slice does not fit.
    pub(super) fn scatter_in_order(
        &mut self,
        operation: &MlirOp,
        (arrays, indices, updates): (&[MlirValue], &MlirValue, &[MlirValue]),
        numbers: &DimensionNumbers,
        sizes: &[usize],
    ) -> Read<()> {
        let build = at(operation);
        let Some(region) = operation.regions.first() else {
            return Err(malformed(operation, "a scatter has a function"));
        };
        let shape = &arrays[0].ty.shape;
        let batch = numbers.index_shape(indices);
        let count: usize = batch.iter().product();
        let columns = self.index_columns(build, indices, numbers, (shape.len(), &batch));
        // The updates, each as a slice of the array.
        let mut to: Vec<SourceDim> = (0..batch.len()).map(SourceDim::Index).collect();
        to.extend((0..shape.len()).map(SourceDim::Operand));
        let to_sizes: Vec<usize> = batch.iter().chain(sizes).copied().collect();
        let mut slices = Vec::new();
        for update in updates {
            let from = numbers.sources(shape.len(), update.ty.rank());
            let slice = arranged(build, update.expr.clone(), (&from, &update.ty.shape), (&to, &to_sizes))
                .ok_or_else(|| unsupported(operation, "with these dimension numbers"))?;
            let mut shape = vec![count];
            shape.extend(sizes);
            slices.push(self.variable(build, "slices", reshaped(build, slice, &shape)));
        }
        let names: Vec<String> = arrays.iter().map(|_| self.fresh("x")).collect();
        for (name, array) in names.iter().zip(arrays) {
            self.stmts.push(build.bind_mutable(name, array.expr.clone()));
        }
        let outer = std::mem::take(&mut self.stmts);
        let trip = self.fresh("i");
        let one = |array: Expr| build.index(array, vec![IndexNode::Expr(build.name(&trip))]);
        let mut starts = vec![build.int(0); shape.len()];
        let mut fits: Option<Expr> = None;
        for (dim, column) in columns.into_iter().enumerate() {
            let Some(column) = column else { continue };
            let start = self.variable(build, "start", one(column));
            fits = Some(also_inside(build, fits, &start, shape[dim] as i128 - sizes[dim] as i128));
            starts[dim] = build.call("maximum", [start, build.int(0)]);
        }
        let starts = build.tuple(starts);
        let lens = build.ints(sizes.iter().copied());
        let mut old = Vec::new();
        for name in &names {
            let slice = build.call("dynamic_slice", [build.name(name), starts.clone(), lens.clone()]);
            old.push(self.variable(build, "old", slice));
        }
        let function = self.pair_function(operation, region, arrays.len())?;
        let new = slices.into_iter().map(one).collect();
        let result = build.call_of(function, [build.together(old.clone()), build.together(new)], []);
        let result = self.variable(build, "new", result);
        for (place, (name, old)) in names.iter().zip(old).enumerate() {
            let new = part(build, &result, place, arrays.len());
            let new = match &fits {
                Some(fits) => build.call("where", [fits.clone(), new, old]),
                None => new,
            };
            let value = build.call("dynamic_update_slice", [build.name(name), new, starts.clone()]);
            self.stmts.push(build.assign(name, value));
        }
        let body = std::mem::replace(&mut self.stmts, outer);
        let pass = build.expr(ExprKind::For {
            pattern: build.pattern(&trip),
            start: Box::new(build.int(0)),
            end: Box::new(build.int(count as i128)),
            step: None,
            collect: false,
            body: build.block(body, None),
        });
        self.stmts.push(StmtNode { kind: StmtNodeKind::Expr(pass), span: build.0 });
        let results = build.together(names.iter().map(|name| build.name(name)).collect());
        self.emit_all(operation, results);
        Ok(())
    }

    /// For each dimension of the array its indices, in row-major order; None for a dimension that starts at 0.
    fn index_columns(
        &mut self,
        build: Build,
        indices: &MlirValue,
        numbers: &DimensionNumbers,
        (rank, batch): (usize, &[usize]),
    ) -> Vec<Option<Expr>> {
        let count: usize = batch.iter().product();
        let mut columns = Vec::new();
        for dim in 0..rank {
            let column = if let Some(place) = numbers.map.iter().position(|&own| own == dim) {
                let items = (0..indices.ty.rank()).map(|of| match of == numbers.vector {
                    true => IndexNode::Expr(build.int(place as i128)),
                    false => IndexNode::Slice { start: None, stop: None, step: None, span: build.0 },
                });
                let own = match numbers.vector < indices.ty.rank() {
                    true => build.index(indices.expr.clone(), items.collect()),
                    false => indices.expr.clone(),
                };
                Some(own)
            } else if let Some(place) = numbers.batch.iter().position(|&own| own == dim) {
                let of = numbers.of_indices[place];
                let along = if of > numbers.vector { of - 1 } else { of };
                let ty = TensorType { shape: batch.to_vec(), element: MlirElement::Signed(32) };
                Some(build.call_with("iota", [build.type_value(&ty)], [("axis", build.int(along as i128))]))
            } else {
                None
            };
            let flat = column.map(|column| reshaped(build, column, &[count]));
            columns.push(flat.map(|flat| self.variable(build, "index", flat)));
        }
        columns
    }
}
