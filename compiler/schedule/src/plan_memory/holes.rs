//! The bytes of an arena that are taken during a lifetime, and the holes between them.
//!
//! A segment tree over time (Bentley, "Solutions to Klee's rectangle problems", 1977) has two sets of bytes for each span: taken throughout
//! it, and taken at any time in it. Buffers that live at once are mostly adjacent, so a set of bytes is a few ranges, and placing a buffer
//! takes logarithmic time.

use super::lifetimes::Interval;
use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint ranges of bytes that do not touch: the end of each, by its start.
#[derive(Clone, Debug, Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    fn add(&mut self, range: &Range<u64>) {
        let (mut start, mut end) = (range.start, range.end);
        // Those that begin at or before its end, from the last one on, as long as they reach it.
        while let Some((&other, &its_end)) = self.0.range(..=end).next_back() {
            if its_end < start {
                break;
            }
            (start, end) = (start.min(other), end.max(its_end));
            self.0.remove(&other);
        }
        self.0.insert(start, end);
    }
}

/// The bytes of a span of time.
#[derive(Clone, Debug, Default)]
struct TakenBytes {
    /// TakenSpace all the time, by buffers that do not live all through the span around it.
    throughout: Ranges,
    /// TakenSpace at some time, by buffers that do not live all through the span around it.
    sometime: Ranges,
}

/// The places of buffers in an arena.
pub struct TakenSpace {
    /// The times at which lifetimes begin or end, ascending.
    times: Vec<u32>,
    /// A binary tree: span 1 is the whole time, and the halves of span `i` are `2 i` and `2 i + 1`.
    spans: Vec<TakenBytes>,
}

impl TakenSpace {
    /// Nothing is taken in any of these lifetimes.
    pub fn new<'a>(lifetimes: impl Iterator<Item = &'a [Interval]>) -> TakenSpace {
        let mut times: Vec<u32> = lifetimes.flatten().flat_map(|&(start, end)| [start, end]).collect();
        times.sort_unstable();
        times.dedup();
        let spans = vec![TakenBytes::default(); 2 * times.len().next_power_of_two()];
        TakenSpace { times, spans }
    }

    /// Takes bytes for a lifetime.
    pub fn take(&mut self, lifetime: &[Interval], bytes: &Range<u64>) {
        debug_assert!(bytes.start < bytes.end, "a buffer takes at least one byte");
        for interval in lifetime {
            let during = self.during(interval);
            self.take_in((1, self.whole()), &during, bytes);
        }
    }

    /// The offset, at least `first`, of the smallest hole that is large enough and free throughout the lifetime.
    pub fn best_fit(&self, lifetime: &[Interval], size: u64, first: u64) -> u64 {
        let mut taken = Vec::new();
        for interval in lifetime {
            self.taken_in((1, self.whole()), &self.during(interval), &mut taken);
        }
        taken.sort_unstable();
        let mut best: Option<(u64, u64)> = None;
        let mut free = first;
        for (start, end) in taken {
            if start >= free + size && best.is_none_or(|(hole, _)| start - free < hole) {
                best = Some((start - free, free));
            }
            free = free.max(end);
        }
        let offset = best.map_or(free, |(_, offset)| offset);
        debug_assert!(offset >= first, "a buffer lies on a fixed one");
        offset
    }

    fn whole(&self) -> Range<usize> {
        0..self.spans.len() / 2
    }

    /// The positions of an interval's times.
    fn during(&self, &(start, end): &Interval) -> Range<usize> {
        self.times.partition_point(|&time| time < start)..self.times.partition_point(|&time| time <= end)
    }

    fn take_in(&mut self, (at, span): (usize, Range<usize>), during: &Range<usize>, bytes: &Range<u64>) {
        if during.end <= span.start || span.end <= during.start {
            return;
        }
        self.spans[at].sometime.add(bytes);
        if during.start <= span.start && span.end <= during.end {
            self.spans[at].throughout.add(bytes);
            return;
        }
        for half in halves(at, &span) {
            self.take_in(half, during, bytes);
        }
    }

    fn taken_in(&self, (at, span): (usize, Range<usize>), during: &Range<usize>, taken: &mut Vec<(u64, u64)>) {
        if during.end <= span.start || span.end <= during.start {
            return;
        }
        let is_inside = during.start <= span.start && span.end <= during.end;
        let TakenBytes { throughout, sometime } = &self.spans[at];
        let ranges = if is_inside { sometime } else { throughout };
        taken.extend(ranges.0.iter().map(|(&start, &end)| (start, end)));
        if !is_inside {
            halves(at, &span).into_iter().for_each(|half| self.taken_in(half, during, taken));
        }
    }
}

/// The halves of a span, which is longer than one time.
fn halves(at: usize, span: &Range<usize>) -> [(usize, Range<usize>); 2] {
    let middle = usize::midpoint(span.start, span.end);
    debug_assert!(span.start < middle && middle < span.end, "a span of one time is not divided");
    [(2 * at, span.start..middle), (2 * at + 1, middle..span.end)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As by a list of all buffers.
    fn expected(placed: &[(Interval, Range<u64>)], (start, end): Interval, size: u64, first: u64) -> u64 {
        let mut taken: Vec<&Range<u64>> =
            placed.iter().filter(|((from, to), _)| *from <= end && start <= *to).map(|(_, bytes)| bytes).collect();
        taken.sort_unstable_by_key(|bytes| bytes.start);
        let (mut best, mut free) = (None, first);
        for bytes in taken {
            let hole = bytes.start.saturating_sub(free);
            if bytes.start >= free + size && best.is_none_or(|(smallest, _)| hole < smallest) {
                best = Some((hole, free));
            }
            free = free.max(bytes.end);
        }
        best.map_or(free, |(_, offset)| offset)
    }

    #[test]
    fn buffers_lie_where_the_smallest_hole_is() {
        let mut state = 1u64;
        let mut draw = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for count in [1, 2, 3, 17, 200] {
            let buffers: Vec<(Interval, u64)> = (0..count)
                .map(|_| {
                    let start = draw(100) as u32;
                    ((start, start + draw(30) as u32), 64 * (1 + draw(5)))
                })
                .collect();
            let lifetimes: Vec<[Interval; 1]> = buffers.iter().map(|(interval, _)| [*interval]).collect();
            let mut taken = TakenSpace::new(lifetimes.iter().map(<[Interval; 1]>::as_slice));
            let mut placed = Vec::new();
            for (interval, size) in buffers {
                let offset = taken.best_fit(&[interval], size, 128);
                assert_eq!(offset, expected(&placed, interval, size, 128), "buffer {} of {count}", placed.len());
                taken.take(&[interval], &(offset..offset + size));
                placed.push((interval, offset..offset + size));
            }
        }
    }
}
