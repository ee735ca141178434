//! Complex numbers in random programs: parameters, arithmetic, movements, reductions, products, transforms, loops and branches.
//!
//! A complex variable has the element type of its planes, and a bound for the magnitude of each of them.

use super::precision::Precision;
use super::programs::{Variable, Writer};
use super::{Array, complex_type};
use spmdc_abi::DType;
use std::fmt::Write;

/// A complex expression: its text, the type of its planes, and how exact these are.
type Made = (String, Array, Precision);

impl Writer {
    /// A statement with complex numbers.
    pub(super) fn complex_statement(&mut self) {
        let Some(z) = self.any_complex(|_| true).filter(|_| self.draw.chance(85)) else {
            return self.made_complex();
        };
        match self.draw.below(12) {
            0 | 1 => self.real_part(&z),
            2 => self.complex_loop(&z),
            3 => self.complex_branch(&z),
            4 => self.complex_assignment(&z),
            _ => {
                let made = match self.draw.below(9) {
                    0 | 1 => self.complex_arithmetic(&z),
                    2 | 3 => self.complex_movement(&z),
                    4 => self.complex_mean(&z),
                    5 => self.complex_product(&z),
                    6 => self.complex_choice(&z),
                    _ => Some(self.transform(&z)),
                };
                if let Some(made) = made {
                    self.define_complex(made);
                }
            }
        }
    }

    fn any_complex(&mut self, fits: impl Fn(&Variable) -> bool) -> Option<Variable> {
        let fitting: Vec<&Variable> = self.complex.iter().filter(|z| fits(z)).collect();
        (!fitting.is_empty()).then(|| fitting[self.draw.below(fitting.len())].clone())
    }

    /// Adds a variable, if it is useful.
    fn define_complex(&mut self, (expr, array, precision): Made) {
        if !precision.is_useful(array.dtype) || array.shape.iter().product::<usize>() > self.most {
            return;
        }
        self.next += 1;
        let name = format!("z{}", self.next);
        let ty = match self.draw.chance(20) {
            true => format!(": {}", complex_type(&self.laid_out(&array))),
            false => String::new(),
        };
        let _ = writeln!(self.body, "  let {name}{ty} = {expr};");
        self.complex.push(Variable { name, array, precision });
    }

    /// Complex numbers of two real values, or the transform of one.
    fn made_complex(&mut self) {
        let is_plane = |v: &Variable| matches!(v.array.dtype, DType::F32 | DType::F64);
        let Some(x) = self.any(|v| is_plane(v) && !v.array.shape.is_empty()) else { return };
        let made = match self.draw.below(3) {
            0 => self.transform_of_real(&x),
            _ => {
                let y = self.any(|y| y.array == x.array).unwrap_or_else(|| x.clone());
                (format!("complex({}, {})", x.name, y.name), x.array, x.precision.or(y.precision))
            }
        };
        self.define_complex(made);
    }

    /// A real value of complex ones.
    fn real_part(&mut self, z: &Variable) {
        let (dtype, known) = (z.array.dtype, z.precision);
        let (expr, array, precision) = match self.draw.below(5) {
            0 => (format!("imag({})", z.name), z.array.clone(), known),
            // The magnitude has a kink at zero.
            1 if known.slopes.is_none() => {
                let size = 1.5 * known.size;
                (format!("abs({})", z.name), z.array.clone(), Precision::of(dtype, size, 2.0, &[(1.5, known)]))
            }
            2 if !z.array.shape.is_empty() => {
                let (axis, mut array) = (self.draw.below(z.array.shape.len()), z.array.clone());
                let n = 2 * (array.shape[axis] - 1) + self.draw.below(2);
                array.shape[axis] = n.max(1);
                let precision = Precision::summed(dtype, 2 * n, 3.0 * known.size, &[(3.0, known)]);
                (format!("irfft({}, n={}, axis={axis})", z.name, n.max(1)), array, precision)
            }
            _ => (format!("real({})", z.name), z.array.clone(), known),
        };
        if precision.is_useful(dtype) && array.shape.iter().product::<usize>() <= self.most {
            self.define(expr, array, precision);
        }
    }

    fn complex_arithmetic(&mut self, z: &Variable) -> Option<Made> {
        let (dtype, shape, a) = (z.array.dtype, z.array.shape.clone(), z.precision);
        let one = |expr: String, size: f64, slope: f64, roundings: f64| {
            Some((expr, z.array.clone(), Precision::of(dtype, size, roundings, &[(slope, a)])))
        };
        match self.draw.below(8) {
            0 => one(format!("conj({})", z.name), a.size, 1.0, 0.0),
            1 => one(format!("-{} * 0.5", z.name), a.size, 0.5, 1.0),
            2 if a.slopes.is_none() => one(format!("{z} / (2 + abs({z}))", z = z.name), 1.0, 1.5, 6.0),
            3 if a.size <= 4.0 => one(format!("exp({} / 4)", z.name), 3.0, 1.5, 8.0),
            4 => {
                let x = self.any(|x| x.array.dtype == dtype && shape.ends_with(&x.array.shape))?;
                let b = x.precision;
                let size = a.size.max(b.size);
                let precision = Precision::of(dtype, size, 2.0, &[(0.5, a), (0.5, b)]);
                Some((format!("({} + {}) / 2", z.name, x.name), z.array.clone(), precision))
            }
            _ => {
                let w = self.any_complex(|w| w.array.dtype == dtype && shape.ends_with(&w.array.shape))?;
                let b = w.precision;
                let (expr, size, slopes, roundings) = match self.draw.below(3) {
                    0 => (format!("({} - {}) * 0.5", z.name, w.name), a.size.max(b.size), (0.5, 0.5), 2.0),
                    1 => (format!("({} + {}) / 2", z.name, w.name), a.size.max(b.size), (0.5, 0.5), 2.0),
                    _ => {
                        let size = 0.5 * a.size * b.size;
                        (format!("{} * {} * 0.25", z.name, w.name), size, (0.5 * b.size, 0.5 * a.size), 4.0)
                    }
                };
                let precision = Precision::of(dtype, size, roundings, &[(slopes.0, a), (slopes.1, b)]);
                Some((expr, z.array.clone(), precision))
            }
        }
    }

    fn complex_movement(&mut self, z: &Variable) -> Option<Made> {
        let (name, mut array) = (&z.name, z.array.clone());
        let rank = array.shape.len();
        if rank == 0 {
            return Some((format!("stack([{name}, conj({name})])"), Array::new(array.dtype, &[2]), z.precision));
        }
        let axis = self.draw.below(rank);
        let expr = match self.draw.below(7) {
            0 => format!("roll({name}, {}, axis={axis})", self.draw.below(4)),
            1 => format!("flip({name}, axis={axis})"),
            2 => {
                array.shape.reverse();
                format!("{name}.T")
            }
            3 => {
                array.shape = vec![array.shape.iter().product()];
                format!("reshape({name}, (-1,))")
            }
            4 => {
                array.shape[axis] *= 2;
                format!("concatenate([{name}, conj({name})], axis={axis})")
            }
            5 if array.dtype == DType::F32 => {
                array.dtype = DType::F64;
                format!("cast({name}, c128)")
            }
            _ => {
                let start = self.draw.below(array.shape[axis]);
                array.shape[axis] -= start;
                let mut entries = vec![":".to_string(); rank];
                entries[axis] = format!("{start}:");
                format!("{name}[{}]", entries.join(", "))
            }
        };
        Some((expr, array, z.precision))
    }

    fn complex_mean(&mut self, z: &Variable) -> Option<Made> {
        let (mut array, known) = (z.array.clone(), z.precision);
        let rank = array.shape.len();
        if rank == 0 {
            return None;
        }
        let axis = self.draw.below(rank);
        let terms = array.shape.remove(axis);
        let precision = Precision::summed(array.dtype, terms, known.size, &[(1.0, known)]);
        let expr = match self.draw.chance(50) {
            true => format!("mean({}, axis={axis})", z.name),
            false => format!("sum({}, axis={axis}) / {terms}", z.name),
        };
        Some((expr, array, precision))
    }

    fn complex_product(&mut self, z: &Variable) -> Option<Made> {
        let [rows, inner] = z.array.shape[..] else { return None };
        let dtype = z.array.dtype;
        let w =
            self.any_complex(|w| w.array.dtype == dtype && matches!(w.array.shape[..], [_, own] if own == inner))?;
        let (a, b) = (z.precision, w.precision);
        let size = 2.0 * a.size * b.size;
        let precision = Precision::summed(dtype, 2 * inner, size, &[(2.0 * b.size, a), (2.0 * a.size, b)]);
        let expr = format!("({} @ {}.T) / {inner}", z.name, w.name);
        Some((expr, Array::new(dtype, &[rows, w.array.shape[0]]), precision))
    }

    fn complex_choice(&mut self, z: &Variable) -> Option<Made> {
        let shape = z.array.shape.clone();
        let mask = self.any(|v| v.array.dtype == DType::I32 && shape.ends_with(&v.array.shape))?;
        let w = self.any_complex(|w| w.array == z.array)?;
        let expr = format!("where({} % 2 == 0, {}, {})", mask.name, z.name, w.name);
        Some((expr, z.array.clone(), z.precision.or(w.precision)))
    }

    /// A transform along a dimension.
    fn transform(&mut self, z: &Variable) -> Made {
        if z.array.shape.is_empty() {
            return (format!("{} * 1", z.name), z.array.clone(), z.precision);
        }
        let axis = self.draw.below(z.array.shape.len());
        let size = z.array.shape[axis];
        let precision = Precision::summed(z.array.dtype, 2 * size, 1.5 * z.precision.size, &[(1.5, z.precision)]);
        let call = match self.draw.chance(50) {
            true => format!("fft({}, axis={axis}, norm=\"forward\")", z.name),
            false => format!("ifft({}, axis={axis})", z.name),
        };
        (call, z.array.clone(), precision)
    }

    /// Of real numbers.
    fn transform_of_real(&mut self, x: &Variable) -> Made {
        let mut array = x.array.clone();
        let axis = self.draw.below(array.shape.len());
        let size = array.shape[axis];
        let precision = Precision::summed(array.dtype, size, 1.5 * x.precision.size, &[(1.5, x.precision)]);
        let name = match self.draw.chance(60) {
            true => {
                array.shape[axis] = size / 2 + 1;
                "rfft"
            }
            false => "fft",
        };
        (format!("{name}({}, axis={axis}, norm=\"forward\")", x.name), array, precision)
    }

    /// A loop that carries complex numbers, and adds others to them.
    fn complex_loop(&mut self, z: &Variable) {
        let Some(w) = self.any_complex(|w| w.array == z.array) else { return };
        let trips = 1 + self.draw.below(3);
        let dtype = z.array.dtype;
        let size = z.precision.size.max(w.precision.size);
        let precision = (0..trips).fold(z.precision, |known, _| {
            Precision::of(dtype, size, 2.0, &[(0.5, Precision { size, ..known }), (0.5, w.precision)])
        });
        self.next += 1;
        let name = format!("z{}", self.next);
        let _ = writeln!(
            self.body,
            "  let mut {name} = {};\n  for _ in 0..{trips} {{\n    {name} = ({name} + {}) * 0.5;\n  }}",
            z.name, w.name
        );
        self.complex.push(Variable { name, array: z.array.clone(), precision });
    }

    fn complex_branch(&mut self, z: &Variable) {
        let Some(w) = self.any_complex(|w| w.array == z.array) else { return };
        let Some(decides) = self.any(|v| v.array.dtype.is_integer()) else { return };
        self.next += 1;
        let name = format!("z{}", self.next);
        let _ = writeln!(
            self.body,
            "  let {name} = if sum({}) % 2 == 0 {{ conj({}) }} else {{ -{} }};",
            decides.name, z.name, w.name
        );
        self.complex.push(Variable { name, array: z.array.clone(), precision: z.precision.or(w.precision) });
    }

    fn complex_assignment(&mut self, z: &Variable) {
        let Some(w) = self.any_complex(|w| w.array == z.array) else { return };
        let rank = z.array.shape.len();
        if rank == 0 {
            return;
        }
        let axis = self.draw.below(rank);
        let size = z.array.shape[axis];
        let len = 1 + self.draw.below(size);
        let (to, from) = (self.draw.below(size - len + 1), self.draw.below(size - len + 1));
        let place = |start: usize| {
            let mut entries = vec![":".to_string(); rank];
            entries[axis] = format!("{start}:{}", start + len);
            entries.join(", ")
        };
        self.next += 1;
        let name = format!("z{}", self.next);
        let _ = writeln!(
            self.body,
            "  let mut {name} = {};\n  {name}[{}] = {}[{}];",
            z.name,
            place(to),
            w.name,
            place(from)
        );
        self.complex.push(Variable { name, array: z.array.clone(), precision: z.precision.or(w.precision) });
    }
}
