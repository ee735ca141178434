//! The replay of functions of the runtime.

use super::{Replay, Spot, Stopped, fault, offsets};
use spmdc_abi::mesh::share;
use spmdc_abi::{LibraryArray, LibraryFunction, LibraryStep, ScatterRows};
use spmdc_ir::lower::calls::LibraryCalls;
use std::ops::Range;

impl<'a> Replay<'a> {
    /// Every call reads and writes all elements of its arrays, or of its part of the results; devices that share the results divide
    /// the parts of all calls.
    pub(super) fn library(&mut self, calls: &'a LibraryCalls, step: &LibraryStep) -> Result<(), Stopped> {
        debug_assert_eq!(calls.operands.len(), step.operands.len(), "a step has the arrays of its work");
        let mut written = Vec::new();
        for device in 0..self.mesh.devices() {
            let batch: Vec<i64> = step.batch.iter().map(|extent| self.mesh.resolve(extent, device)).collect();
            let parts = step.parts(|scalar| self.mesh.resolve(scalar, device));
            for sharer in self.mesh.group(device, step.split) {
                if step.parts(|scalar| self.mesh.resolve(scalar, sharer)) != parts {
                    return fault("devices that share the results of a function divide different results".to_string());
                }
                if step.batch.iter().zip(&batch).any(|(extent, &own)| self.mesh.resolve(extent, sharer) != own) {
                    return fault("devices that share the results of a function divide different batches".to_string());
                }
            }
            let split = || step.split.iter();
            let count = batch.iter().product::<i64>().max(0) * parts.max(0);
            let own = share(count, self.mesh.linear(device, split()), self.mesh.count(split()));
            let axes = step.owners.as_ref().map_or(&[][..], |owners| &owners.axes);
            let axes = || axes.iter().map(|&axis| axis as usize);
            let owners: Vec<usize> =
                (0..self.mesh.count(axes())).map(|position| self.mesh.at(device, axes(), position)).collect();
            let mut at = own.start;
            while at < own.end {
                let (call, part) = (at / parts, at % parts);
                let part = part..parts.min(part + own.end - at);
                at += part.end - part.start;
                for (operand, array) in calls.operands.iter().zip(&step.operands) {
                    let (name, size) = (self.name(operand.value), array.dtype.size() as u64);
                    for &owner in &owners {
                        for (at, run) in self.elements(array, &batch, call, owner, None)? {
                            let spot = Spot { place: array.place, device: owner, at: at * size, len: run * size };
                            self.reads(&spot, name, operand.value)?;
                        }
                    }
                }
                for (result, array) in calls.results.iter().zip(&step.results) {
                    let (name, size) = (self.name(result.value), array.dtype.size() as u64);
                    let cut = step.function.divided().map(|dim| (dim, part.clone()));
                    for (at, run) in self.elements(array, &batch, call, device, cut)? {
                        let spot = Spot { place: array.place, device, at: at * size, len: run * size };
                        if let LibraryFunction::Scatter(ScatterRows { start: None, .. }) = step.function {
                            self.reads(&spot, name, result.value)?;
                        }
                        written.push((result.value, spot));
                    }
                }
            }
        }
        for (value, spot) in written {
            self.writes(&spot, value)?;
            self.shadow.write(&spot, self.name(value));
        }
        Ok(())
    }

    /// The runs of neighbouring elements of an array in one call, or in its part `cut` along a dimension: the first element and length
    /// of each.
    fn elements(
        &mut self,
        array: &LibraryArray,
        batch: &[i64],
        call: i64,
        device: usize,
        cut: Option<(usize, Range<i64>)>,
    ) -> Result<Vec<(u64, u64)>, Stopped> {
        let (mut index, mut first) = (call, 0);
        for (&len, &stride) in batch.iter().zip(&array.batch).rev() {
            first += index % len * stride;
            index /= len;
        }
        let mut lens: Vec<i64> = array.dims.iter().map(|dim| self.mesh.resolve(&dim.extent, device)).collect();
        let strides: Vec<i64> = array.dims.iter().map(|dim| dim.stride).collect();
        if let Some((dim, part)) = cut {
            first += part.start * strides[dim];
            lens[dim] = part.end - part.start;
        }
        let runs = offsets(lens, &strides);
        self.count(1 + runs.len() as u64)?;
        Ok(runs.into_iter().map(|(at, run)| ((first + at) as u64, run)).collect())
    }
}
