//! Eigenvalues and eigenvectors of symmetric tridiagonal matrices, by divide and conquer (Cuppen, "A divide and conquer method for the
//! symmetric tridiagonal eigenproblem", 1981; Gu and Eisenstat, "A divide-and-conquer algorithm for the symmetric tridiagonal
//! eigenproblem", 1995).
//!
//! Eigenvalues, and the first and last elements of eigenvectors, on which they depend, are in f64. The vectors are in the type of the
//! matrix; their products take most of the time.

use crate::lanes::{column_mut, widest};
use crate::memory::stack;
use crate::secular::{ExactZ, RootOf, Secular, SecularRoot};
use crate::workers::SharedMatrix;
use crate::{MatrixElement, STRIP, Workers, multiply};
use faer::diag::{DiagMut, DiagRef};
use faer::linalg::evd;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{MatMut, Par, Spec};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows of a part that is not divided.
const LEAF: usize = 32;
/// Elements of memory for a leaf: its vectors, its elements on and beside the diagonal, and the memory of the iteration.
const LEAF_MEMORY: usize = LEAF * LEAF + 8 * LEAF + 64;
/// Roots that a task computes.
const ROOTS: usize = 16;
/// Lines of f64, with one element for each row.
const LINES: usize = 15;

/// The most elements of f64 of the scratch memory of [`tridiagonal`].
pub(crate) fn tridiagonal_scratch(n: usize) -> usize {
    LINES * n + n.div_ceil(LEAF / 2) * LEAF_MEMORY
}

/// Halves of a matrix, and halves of them, down to the leaves: calls `visit` with the rows of each part, the larger ones first or last.
fn each_part(rows: Range<usize>, larger_first: bool, visit: &mut dyn FnMut(Range<usize>)) {
    let middle = middle_of(&rows);
    let is_divided = rows.len() > LEAF;
    if !is_divided || larger_first {
        visit(rows.clone());
    }
    if is_divided {
        each_part(rows.start..middle, larger_first, visit);
        each_part(middle..rows.end, larger_first, visit);
        if !larger_first {
            visit(rows);
        }
    }
}

fn middle_of(rows: &Range<usize>) -> usize {
    rows.start + rows.len() / 2
}

/// The places of the nonzero elements in the vectors of a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Upper,
    Both,
    Lower,
}

impl Half {
    /// By a number in a line.
    fn of(number: usize) -> Half {
        [Half::Upper, Half::Both, Half::Lower][number.min(2)]
    }
}

/// The lines of a part, by the columns of its vectors.
struct PartLines<'a> {
    values: &'a mut [f64],
    /// The first and the last element of each vector.
    first: &'a mut [f64],
    last: &'a mut [f64],
    /// The columns in ascending order of their values.
    order: &'a mut [usize],
    /// The elements of the vector of the matrix of rank one.
    z: &'a mut [f64],
    /// Numbers of [`Half`].
    halves: &'a mut [usize],
    /// Columns that are combined in ascending order of their values, then those that are kept.
    columns: &'a mut [usize],
    /// The places of combined columns among those that are packed.
    places: &'a mut [usize],
    /// Of the combined columns.
    poles: &'a mut [f64],
    weights: &'a mut [f64],
    exact: &'a mut [f64],
    /// Of the roots.
    root_poles: &'a mut [usize],
    distances: &'a mut [f64],
    /// The new values, first and last elements.
    made: [&'a mut [f64]; 3],
}

/// The eigenvalues of the matrix with these elements on and beside the diagonal in ascending order, and their vectors as columns. `memory`
/// is two matrices, and `scratch` has [`tridiagonal_scratch`] elements. False if an iteration does not converge.
pub(crate) fn tridiagonal<T: MatrixElement>(
    values: &mut [f64],
    beside: &[f64],
    mut vectors: MatMut<'_, T>,
    [mut packed, mut factors]: [MatMut<'_, T>; 2],
    scratch: &mut [f64],
    workers: &mut dyn Workers,
) -> bool {
    let n = values.len();
    let (lines, leaf_memory) = scratch.split_at_mut(LINES * n);
    let mut lines = lines.chunks_exact_mut(n);
    let mut line = || lines.next().expect("there is a line for each use");
    let [first, last, z, poles, weights, exact, distances] = std::array::from_fn(|_| line());
    let [new_values, new_first, new_last] = std::array::from_fn(|_| line());
    let [order, halves, columns, places, root_poles] = std::array::from_fn(|_| as_places(line()));
    let mut leaves = 0;
    each_part(0..n, true, &mut |rows| {
        if rows.len() > LEAF {
            // The matrix is two blocks, plus a matrix of rank one.
            let middle = middle_of(&rows);
            values[middle - 1] -= beside[middle - 1].abs();
            values[middle] -= beside[middle - 1].abs();
        } else {
            (halves[leaves], columns[leaves]) = (rows.start, rows.end);
            leaves += 1;
        }
    });
    vectors.fill(T::of(0.0));
    let found = AtomicBool::new(true);
    {
        let lines = [&mut *values, &mut *first, &mut *last];
        let lines = lines.map(SharedMatrix::of_line);
        let memory = SharedMatrix::of_line(&mut leaf_memory[..leaves * LEAF_MEMORY]);
        let all = SharedMatrix::new(vectors.rb_mut());
        let (halves, columns) = (&*halves, &*columns);
        workers.each(leaves, &|task| {
            let rows = halves[task]..columns[task];
            // SAFETY: tasks have different leaves.
            let (lines, own, memory) = unsafe {
                let memory = memory.elements(task * LEAF_MEMORY..(task + 1) * LEAF_MEMORY);
                (lines.map(|line| line.elements(rows.clone())), all.part(rows.clone(), rows.clone()), memory)
            };
            if !solve_leaf(lines, &beside[rows.start..rows.end - 1], own, memory) {
                found.store(false, Ordering::Relaxed);
            }
        });
    }
    if !found.into_inner() {
        return false;
    }
    each_part(0..n, false, &mut |rows| {
        let size = rows.len();
        if size <= LEAF {
            order[rows].iter_mut().enumerate().for_each(|(at, place)| *place = at);
            return;
        }
        let half = size / 2;
        let mut part = PartLines {
            values: &mut values[rows.clone()],
            first: &mut first[rows.clone()],
            last: &mut last[rows.clone()],
            order: &mut order[rows.clone()],
            z: &mut z[..size],
            halves: &mut halves[..size],
            columns: &mut columns[..size],
            places: &mut places[..size],
            poles: &mut poles[..size],
            weights: &mut weights[..size],
            exact: &mut exact[..size],
            root_poles: &mut root_poles[..size],
            distances: &mut distances[..size],
            made: [&mut new_values[..size], &mut new_first[..size], &mut new_last[..size]],
        };
        let between = beside[rows.start + half - 1];
        let own = vectors.rb_mut().submatrix_mut(rows.start, rows.start, size, size);
        let memory = [&mut packed, &mut factors].map(|matrix| matrix.rb_mut().submatrix_mut(0, 0, size, size));
        part.merge((half, between), own, memory, workers);
    });
    {
        let (all, from, order) = (SharedMatrix::new(packed.rb_mut()), vectors.rb(), &*order);
        workers.each(n.div_ceil(STRIP), &|task| {
            let columns = task * STRIP..n.min((task + 1) * STRIP);
            for (to, &column) in columns.clone().zip(&order[columns]) {
                // SAFETY: tasks have different columns.
                unsafe { all.part(0..n, to..to + 1) }.copy_from(from.subcols(column, 1));
            }
        });
    }
    vectors.copy_from(packed.rb());
    new_values.iter_mut().zip(&*order).for_each(|(to, &from)| *to = values[from]);
    values.copy_from_slice(new_values);
    true
}

/// A line as numbers of columns.
fn as_places(line: &mut [f64]) -> &mut [usize] {
    const { assert!(size_of::<usize>() <= size_of::<f64>() && align_of::<usize>() <= align_of::<f64>()) };
    // SAFETY: the bytes of the slice, which is borrowed for as long; any bytes are integers.
    unsafe { std::slice::from_raw_parts_mut(line.as_mut_ptr().cast(), line.len()) }
}

/// A part that is not divided: its elements on the diagonal become its values.
fn solve_leaf<T: MatrixElement>(
    [values, first, last]: [&mut [f64]; 3],
    beside: &[f64],
    mut vectors: MatMut<'_, T>,
    memory: &mut [f64],
) -> bool {
    let n = values.len();
    let (own, memory) = memory.split_at_mut(n * n);
    let (diagonal, memory) = memory.split_at_mut(n);
    let (off, memory) = memory.split_at_mut(n);
    diagonal.copy_from_slice(values);
    off.fill(0.0);
    off[..n - 1].copy_from_slice(beside);
    let mut own = MatMut::from_column_major_slice_mut(own, n, n);
    let (diagonal, off) = (DiagRef::from_slice(diagonal), DiagRef::from_slice(off));
    let (values, made) = (DiagMut::from_slice_mut(values), Some(own.rb_mut()));
    let memory = stack(memory);
    let found = evd::tridiagonal_self_adjoint_evd(diagonal, off, values, made, Par::Seq, memory, Spec::default());
    for j in 0..n {
        for i in 0..n {
            vectors[(i, j)] = T::of(own[(i, j)]);
        }
        (first[j], last[j]) = (own[(0, j)], own[(n - 1, j)]);
    }
    found.is_ok()
}

/// Turns two vectors by an angle with this cosine and sine.
fn turn<T: MatrixElement>(mut vectors: MatMut<'_, T>, [p, q]: [usize; 2], [cosine, sine]: [f64; 2]) {
    let (cosine, sine) = (T::of(cosine), T::of(sine));
    for i in 0..vectors.nrows() {
        let (x, y) = (vectors[(i, p)], vectors[(i, q)]);
        (vectors[(i, p)], vectors[(i, q)]) = (cosine * x + sine * y, cosine * y - sine * x);
    }
}

impl PartLines<'_> {
    /// Makes one part of two, of which the first has `half` rows, with this element between them.
    fn merge<T: MatrixElement>(
        &mut self,
        (half, between): (usize, f64),
        mut vectors: MatMut<'_, T>,
        [mut packed, mut factors]: [MatMut<'_, T>; 2],
        workers: &mut dyn Workers,
    ) {
        let n = self.values.len();
        self.order[half..].iter_mut().for_each(|column| *column += half);
        let (count, rho) = self.deflate((half, between), vectors.rb_mut());
        let numbers = self.columns[..count].iter().map(|&column| Half::of(self.halves[column]));
        let upper = numbers.clone().filter(|half| *half == Half::Upper).count();
        let lower = numbers.filter(|half| *half == Half::Lower).count();
        let mut next = [0, upper, count - lower];
        for at in 0..count {
            let column = self.columns[at];
            let place = &mut next[self.halves[column].min(2)];
            (self.poles[at], self.weights[at], self.places[at]) = (self.values[column], self.z[column], *place);
            *place += 1;
        }
        self.pack(count, vectors.rb(), packed.rb_mut(), workers);
        self.solve(count, rho, workers);
        let (own, made) = (SharedMatrix::new(vectors), self.made.each_mut());
        let made = made.map(|line| SharedMatrix::of_line(line));
        let (factors, packed) = (SharedMatrix::new(factors.rb_mut()), packed.rb());
        let lines = (&*self.poles, &*self.exact, &*self.root_poles, &*self.distances);
        let (columns, places) = (&*self.columns, &*self.places);
        let old = (&*self.values, &*self.first, &*self.last);
        workers.each(n.div_ceil(STRIP), &|task| {
            let strip = task * STRIP..n.min((task + 1) * STRIP);
            // SAFETY: tasks have different columns.
            let (mut to, mut s, [values, first, last]) = unsafe {
                let lines = made.map(|line| line.elements(strip.clone()));
                (own.part(0..n, strip.clone()), factors.part(0..n, strip.clone()), lines)
            };
            let combined = strip.len().min(count.saturating_sub(strip.start));
            for at in combined..strip.len() {
                let column = columns[strip.start + at];
                (values[at], first[at], last[at]) = (old.0[column], old.1[column], old.2[column]);
                to.rb_mut().subcols_mut(at, 1).copy_from(packed.subcols(strip.start + at, 1));
            }
            let (poles, exact, root_poles, distances) = lines;
            for at in 0..combined {
                let root = SecularRoot { pole: root_poles[strip.start + at], distance: distances[strip.start + at] };
                let origin = poles[root.pole];
                let element = |i: usize| exact[i] / ((poles[i] - origin) - root.distance);
                let length = (0..count).map(|i| element(i) * element(i)).sum::<f64>().sqrt();
                let (mut ends, own) = ([0.0; 2], column_mut(s.rb_mut(), at));
                for i in 0..count {
                    let x = element(i) / length;
                    own[places[i]] = T::of(x);
                    ends[0] += x * old.1[columns[i]];
                    ends[1] += x * old.2[columns[i]];
                }
                [values[at], first[at], last[at]] = [origin + root.distance, ends[0], ends[1]];
            }
            let s = s.rb().subcols(0, combined);
            let (top, bottom) = to.subcols_mut(0, combined).split_at_row_mut(half);
            let (upper_end, lower_start) = (count - lower, upper);
            multiply(top, packed.submatrix(0, 0, half, upper_end), s.subrows(0, upper_end));
            let rows = count - lower_start;
            multiply(bottom, packed.submatrix(half, lower_start, n - half, rows), s.subrows(lower_start, rows));
        });
        self.values.copy_from_slice(self.made[0]);
        self.first.copy_from_slice(self.made[1]);
        self.last.copy_from_slice(self.made[2]);
        self.order.iter_mut().enumerate().for_each(|(at, column)| *column = at);
        let values = &*self.values;
        self.order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]).then(a.cmp(&b)));
    }

    /// Finds the columns that need not be combined, as their values hardly change, and turns those of nearly equal values so that one
    /// of them does not. Gives the number of the others, and the factor of the matrix of rank one.
    fn deflate<T: MatrixElement>(&mut self, (half, between): (usize, f64), mut vectors: MatMut<'_, T>) -> (usize, f64) {
        let n = self.values.len();
        let scale = std::f64::consts::FRAC_1_SQRT_2;
        for column in 0..n {
            let is_upper = column < half;
            self.halves[column] = if is_upper { 0 } else { 2 };
            if is_upper {
                self.z[column] = scale * std::mem::take(&mut self.last[column]);
            } else {
                self.z[column] = scale.copysign(between) * std::mem::take(&mut self.first[column]);
            }
        }
        let rho = 2.0 * between.abs();
        let values = &*self.values;
        self.order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]).then(a.cmp(&b)));
        let largest = |line: &[f64]| line.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let least = 8.0 * f64::EPSILON * largest(self.values).max(largest(self.z));
        let (mut count, mut kept, mut before) = (0, n, None::<usize>);
        for at in 0..n {
            let column = self.order[at];
            if rho * self.z[column].abs() <= least {
                kept -= 1;
                self.columns[kept] = column;
                continue;
            }
            if let Some(other) = before {
                let length = self.z[other].hypot(self.z[column]);
                let (cosine, sine) = (self.z[column] / length, -self.z[other] / length);
                let apart = self.values[column] - self.values[other];
                if (apart * cosine * sine).abs() <= least {
                    (self.z[column], self.z[other]) = (length, 0.0);
                    turn(vectors.rb_mut(), [other, column], [cosine, sine]);
                    for line in [&mut *self.first, &mut *self.last] {
                        let (x, y) = (line[other], line[column]);
                        (line[other], line[column]) = (cosine * x + sine * y, cosine * y - sine * x);
                    }
                    if self.halves[other] != self.halves[column] {
                        (self.halves[other], self.halves[column]) = (1, 1);
                    }
                    let (x, y) = (self.values[other], self.values[column]);
                    self.values[other] = x * cosine * cosine + y * sine * sine;
                    self.values[column] = x * sine * sine + y * cosine * cosine;
                    kept -= 1;
                    self.columns[kept] = other;
                } else {
                    self.columns[count] = other;
                    count += 1;
                }
            }
            before = Some(column);
        }
        if let Some(other) = before {
            self.columns[count] = other;
            count += 1;
        }
        debug_assert_eq!(count, kept, "each column is combined or kept");
        (count, rho)
    }

    /// Copies the columns: those that are combined to their places, then the others.
    fn pack<T: MatrixElement>(
        &self,
        count: usize,
        from: faer::MatRef<'_, T>,
        to: MatMut<'_, T>,
        workers: &mut dyn Workers,
    ) {
        let n = self.values.len();
        let to = SharedMatrix::new(to);
        workers.each(n.div_ceil(STRIP), &|task| {
            for at in task * STRIP..n.min((task + 1) * STRIP) {
                let place = if at < count { self.places[at] } else { at };
                // SAFETY: columns have different places.
                unsafe { to.part(0..n, place..place + 1) }.copy_from(from.subcols(self.columns[at], 1));
            }
        });
    }

    /// Computes the roots, then the vector for which they are exact.
    fn solve(&mut self, count: usize, rho: f64, workers: &mut dyn Workers) {
        let secular = Secular { poles: &self.poles[..count], z: &self.weights[..count], rho };
        let tasks = count.div_ceil(ROOTS);
        let own = |task: usize| task * ROOTS..count.min((task + 1) * ROOTS);
        {
            let poles = SharedMatrix::of_line(&mut self.root_poles[..count]);
            let distances = SharedMatrix::of_line(&mut self.distances[..count]);
            workers.each(tasks, &|task| {
                let roots = own(task);
                // SAFETY: tasks have different roots.
                let (poles, distances) = unsafe { (poles.elements(roots.clone()), distances.elements(roots.clone())) };
                for (at, root) in roots.enumerate() {
                    let found = widest(RootOf, (&secular, root));
                    (poles[at], distances[at]) = (found.pole, found.distance);
                }
            });
        }
        let (poles, distances) = (&*self.root_poles, &*self.distances);
        let exact = SharedMatrix::of_line(&mut self.exact[..count]);
        workers.each(tasks, &|task| {
            let rows = own(task);
            // SAFETY: tasks have different rows.
            let exact = unsafe { exact.elements(rows.clone()) };
            for (to, row) in exact.iter_mut().zip(rows) {
                *to = widest(ExactZ, (&secular, row, &poles[..count], &distances[..count]));
            }
        });
    }
}
