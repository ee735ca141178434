//! Integers in known ranges, above all the counters of loops: the rows of arrays at such places, and those that a loop stacks.

use super::shapes::in_shape;
use super::value::StackedRow;
use super::{FunctionReader, MlirValue, ValueForm};
use crate::build::Build;
use crate::cursor::Read;
use crate::tree::{DenseNumber, MlirBlock, MlirElement, MlirOp};
use spmdc_grammar::ast::{Expr, ExprKind, PatternKind, StmtNode, StmtNodeKind};
use std::collections::BTreeSet;

impl MlirValue {
    /// The least and the largest number that a scalar integer may be.
    fn bounds(&self) -> Option<(i128, i128)> {
        if self.ty.rank() > 0 {
            return None;
        }
        match (self.splat(), self.range) {
            (Some(DenseNumber::Int(number)), _) => Some((*number, *number)),
            (Some(DenseNumber::Decimal(_) | DenseNumber::Bits(_)) | None, Some(range)) => Some(range),
            (Some(DenseNumber::Decimal(_) | DenseNumber::Bits(_)) | None, None) => bounds_of(self.ty.element),
        }
    }

    /// Whether it is not negative.
    pub(super) fn is_counting(&self) -> bool {
        self.bounds().is_some_and(|(least, _)| least >= 0)
    }

    /// As an index: the counter of a loop is one without a conversion.
    fn index(&self, build: Build) -> Expr {
        match &self.trip {
            Some(trip) => build.name(trip),
            None => self.expr.clone(),
        }
    }
}

/// The integers of a type.
fn bounds_of(element: MlirElement) -> Option<(i128, i128)> {
    match element {
        MlirElement::Signed(bits) => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
        MlirElement::Unsigned(bits) => Some((0, (1 << bits) - 1)),
        MlirElement::Bool
        | MlirElement::F8e4m3
        | MlirElement::F8e5m2
        | MlirElement::F16
        | MlirElement::Bf16
        | MlirElement::F32
        | MlirElement::F64
        | MlirElement::C64
        | MlirElement::C128 => None,
    }
}

/// The truth of a comparison of integers in ranges that decide it.
pub(super) fn decided(direction: &str, x: &MlirValue, y: &MlirValue) -> Option<bool> {
    let (x, y) = (x.bounds()?, y.bounds()?);
    let known = |holds: bool, fails: bool| if holds { Some(true) } else { Some(false).filter(|_| fails) };
    match direction {
        "LT" => known(x.1 < y.0, x.0 >= y.1),
        "LE" => known(x.1 <= y.0, x.0 > y.1),
        "GT" => known(x.0 > y.1, x.1 <= y.0),
        "GE" => known(x.0 >= y.1, x.1 < y.0),
        _ => None,
    }
}

impl FunctionReader<'_> {
    /// Notes the range of the only result of an operation on scalar integers, and whether it is the counter of a loop.
    pub(super) fn note_range(&mut self, operation: &MlirOp) -> Read<()> {
        let names = Self::result_names(operation);
        let ([name], [ty]) = (names.as_slice(), operation.types.as_slice()) else { return Ok(()) };
        let (Some((least, most)), 0) = (bounds_of(ty.element), ty.rank()) else { return Ok(()) };
        let operands = match operation.name.as_str() {
            "stablehlo.add" | "stablehlo.subtract" | "stablehlo.minimum" | "stablehlo.maximum" | "stablehlo.clamp"
            | "stablehlo.convert" => self.all_operands(operation)?,
            _ => return Ok(()),
        };
        let bounds: Option<Vec<(i128, i128)>> = operands.iter().map(MlirValue::bounds).collect();
        let range = match (operation.name.as_str(), bounds.as_deref()) {
            ("stablehlo.add", Some([x, y])) => (x.0 + y.0, x.1 + y.1),
            ("stablehlo.subtract", Some([x, y])) => (x.0 - y.1, x.1 - y.0),
            ("stablehlo.minimum", Some([x, y])) => (x.0.min(y.0), x.1.min(y.1)),
            ("stablehlo.maximum", Some([x, y])) => (x.0.max(y.0), x.1.max(y.1)),
            ("stablehlo.clamp", Some([low, x, high])) => (x.0.max(low.0).min(high.0), x.1.max(low.1).min(high.1)),
            ("stablehlo.convert", Some([x])) => *x,
            _ => return Ok(()),
        };
        let fits = least <= range.0 && range.1 <= most;
        let trip = operands.first().filter(|_| operation.name == "stablehlo.convert").and_then(|x| x.trip.clone());
        if let Some(value) = self.values.get_mut(name).filter(|_| fits) {
            value.range = Some(range);
            value.trip = trip;
        }
        Ok(())
    }

    /// The indices of a slice that has one element along some dimensions, at places that are inside, and all others along the other ones.
    pub(super) fn row_indices(
        &self,
        build: Build,
        x: &MlirValue,
        starts: &[MlirValue],
        sizes: &[usize],
    ) -> Option<Vec<Option<Expr>>> {
        if self.is_lifted || starts.len() != x.ty.rank() || sizes.len() != starts.len() {
            return None;
        }
        let index = |((start, &len), &size): ((&MlirValue, &usize), &usize)| {
            let is_inside = start.bounds().is_some_and(|(least, most)| least >= 0 && most < size as i128);
            match (len == size, len == 1 && is_inside) {
                (true, _) => Some(None),
                (false, true) => Some(Some(start.index(build))),
                (false, false) => None,
            }
        };
        starts.iter().zip(sizes).zip(&x.ty.shape).map(index).collect()
    }

    /// The row that an update puts at the counter of a loop, if it is one.
    pub(super) fn stacked_row(
        &mut self,
        build: Build,
        x: &MlirValue,
        update: &MlirValue,
        starts: &[MlirValue],
    ) -> ValueForm {
        let (Some((first, others)), false) = (starts.split_first(), self.is_lifted) else { return ValueForm::Other };
        let (Some(trip), Some((1, row))) = (&first.trip, update.ty.shape.split_first()) else {
            return ValueForm::Other;
        };
        if others.len() != row.len() || x.ty.shape.get(1..) != Some(row) {
            return ValueForm::Other;
        }
        let (row, _) = in_shape(build, update, row);
        let row = self.variable(build, "row", row);
        ValueForm::Stacked(StackedRow { onto: x.expr.clone(), row, trip: trip.clone() })
    }

    /// The row that each trip of a loop adds to a carried array, if a trip does nothing else with the array: its statement is removed.
    pub(super) fn take_stacked(
        &self,
        body: &MlirBlock,
        (at, carried): (usize, &str),
        (trip, trips): (&str, i128),
        (stmts, values): (&mut Vec<StmtNode>, &[Expr]),
    ) -> Option<Expr> {
        let name = body.body.last()?.operands.get(at)?;
        let value = self.values.get(name)?;
        let ValueForm::Stacked(stacked) = &value.form else { return None };
        let is = |expr: &Expr, name: &str| matches!(&expr.kind, ExprKind::Name(own) if own == name);
        let own = values.get(at)?;
        if !is(&stacked.onto, carried)
            || stacked.trip != trip
            || value.ty.shape.first().map(|&size| size as i128) != Some(trips)
        {
            return None;
        }
        let ExprKind::Name(made) = &own.kind else { return None };
        let both = BTreeSet::from([made.clone(), carried.to_string()]);
        let mut others = values.iter().enumerate().filter(|(place, _)| *place != at);
        if others.any(|(_, value)| is(value, made) || is(value, carried)) {
            return None;
        }
        let makes = |stmt: &StmtNode| matches!(&stmt.kind, StmtNodeKind::Let { pattern, .. } if matches!(&pattern.kind, PatternKind::Name(name) if name == made));
        let place = stmts.iter().position(makes)?;
        let is_used = stmts.iter().enumerate().any(|(other, stmt)| other != place && crate::tidy::uses(stmt, &both));
        (!is_used).then(|| {
            stmts.remove(place);
            stacked.row.clone()
        })
    }
}
