//! Products of factors in random programs, of which some are exactly zero where their derivatives are taken.

use super::Array;
use super::precision::Precision;
use super::programs::{Made, Variable, Writer};
use std::fmt::Write;

/// More factors make bounds of derivatives that say nothing.
const MAX_FACTORS: usize = 12;

impl Writer {
    /// A value that is zero in every other place, and changes with the parameter: its argument is subtracted there.
    pub(super) fn factors(&mut self, arg: &Variable, param: &Variable) {
        let (shape, dtype) = (&param.array.shape, param.array.dtype);
        if shape.is_empty() || dtype.is_narrow() || shape.contains(&0) {
            return;
        }
        let axis = self.draw.below(shape.len());
        let (first, every) = (self.draw.below(2), self.draw.pick(&[2, 2, 3]));
        let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
        let place = format!("iota(i32[{}], axis={axis}) % {every} == {first}", sizes.join(", "));
        let name = self.new_name();
        let _ = writeln!(
            self.body,
            "  let {name} = where({place}, sin({param} - {arg}), sin({param}));",
            param = param.name,
            arg = arg.name
        );
        let precision = Precision::of(dtype, 1.0, 3.0, &[(1.0, param.precision), (1.0, arg.precision)]);
        let factors = Variable { name, precision, ..param.clone() };
        self.add(factors.clone());
        if let Some((expr, array, precision)) = self.multiplied(&factors) {
            self.define(expr, array, precision);
        }
    }

    /// A product of elements that are not above one.
    pub(super) fn multiplied(&mut self, x: &Variable) -> Option<Made> {
        let (mut shape, dtype) = (x.array.shape.clone(), x.array.dtype);
        let is_small = dtype.is_float() && !dtype.is_narrow() && x.precision.size <= 1.0;
        if !is_small || shape.is_empty() || shape.contains(&0) {
            return None;
        }
        let (name, axis) = (&x.name, self.draw.below(shape.len()));
        let line = shape[axis];
        let (expr, factors) = match self.draw.below(7) {
            0 | 1 => {
                shape.remove(axis);
                (format!("prod({name}, axis={axis})"), line)
            }
            2 => {
                let all = shape.iter().product();
                shape.clear();
                (format!("prod({name})"), all)
            }
            3 => {
                let reverse = if self.draw.chance(40) { ", reverse=true" } else { "" };
                (format!("cumprod({name}, axis={axis}{reverse})"), line)
            }
            4 => (format!("associative_scan(|p, q| p * q, {name}, axis={axis})"), line),
            5 => {
                let sizes: Vec<usize> = shape.iter().map(|_| self.draw.pick(&[1, 2, 3])).collect();
                let window: Vec<String> = sizes.iter().map(usize::to_string).collect();
                let call = format!("reduce_window({name}, None, \"mul\", ({},), padding=\"SAME\")", window.join(", "));
                (call, sizes.iter().product())
            }
            _ => {
                let count = 1 + self.draw.below(4);
                let mut places = || {
                    let places: Vec<String> = (0..count).map(|_| self.draw.below(shape[0]).to_string()).collect();
                    format!("i32([{}])", places.join(", "))
                };
                let (to, from) = (places(), places());
                (format!("{{ let mut u = {name}; u[{to}] *= {name}[{from}]; u }}"), count + 1)
            }
        };
        if factors > MAX_FACTORS {
            return None;
        }
        let precision = Precision::summed(dtype, factors, 1.0, &[(factors as f64, x.precision)]);
        Some((expr, Array::new(dtype, &shape), precision))
    }
}
