//! The units of an instance of memory, with a set of names or a mark in each.

use std::ops::Range;
use std::sync::Arc;

/// The number of a set of names; 0 is the empty set.
pub type SetId = u32;

/// The number of units that are copied together.
const CHUNK: usize = 256;

/// The contents of each unit. Copies share the chunks that none of them has changed, and a chunk whose units are all equal is one entry:
/// loops and branches are replayed from copies, and most values fill many chunks.
#[derive(Clone, Debug, PartialEq)]
pub struct Units<T> {
    len: usize,
    chunks: Vec<UnitChunk<T>>,
}

#[derive(Clone, Debug)]
enum UnitChunk<T> {
    Same(T),
    /// One for each unit.
    Each(Arc<[T]>),
}

impl<T: PartialEq> PartialEq for UnitChunk<T> {
    fn eq(&self, other: &UnitChunk<T>) -> bool {
        match (self, other) {
            (UnitChunk::Same(one), UnitChunk::Same(other)) => one == other,
            (UnitChunk::Each(each), UnitChunk::Same(set)) | (UnitChunk::Same(set), UnitChunk::Each(each)) => {
                each.iter().all(|own| own == set)
            }
            (UnitChunk::Each(one), UnitChunk::Each(other)) => Arc::ptr_eq(one, other) || one == other,
        }
    }
}

impl<T: Copy + PartialEq> UnitChunk<T> {
    /// The content of each unit, mutable.
    fn each(&mut self, len: usize) -> &mut [T] {
        if let UnitChunk::Same(content) = self {
            *self = UnitChunk::Each(std::iter::repeat_n(*content, len).collect());
        }
        match self {
            UnitChunk::Each(each) => Arc::make_mut(each),
            UnitChunk::Same(_) => unreachable!("it has just become one entry for each unit"),
        }
    }

    /// Replaces the contents of these units, `len` in total, by the results of `to` for their positions and contents.
    fn replace(&mut self, range: Range<usize>, len: usize, to: &mut impl FnMut(usize, T) -> T) {
        let start = range.start;
        let own = &mut self.each(len)[range];
        own.iter_mut().enumerate().for_each(|(at, content)| *content = to(start + at, *content));
    }
}

impl<T: Copy + Default + PartialEq> Units<T> {
    /// So many units with the default content.
    pub fn new(len: usize) -> Units<T> {
        Units { len, chunks: vec![UnitChunk::Same(T::default()); len.div_ceil(CHUNK)] }
    }

    /// The number of units.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The chunks of these units: for each its number, the part of it, and its length.
    fn parts(&self, range: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>, usize)> + use<T> {
        debug_assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {} units", self.len);
        let len = self.len;
        let end = if range.is_empty() { 0 } else { range.end.div_ceil(CHUNK) };
        (range.start / CHUNK..end).map(move |chunk| {
            let first = chunk * CHUNK;
            let part = range.start.max(first) - first..range.end.min(first + CHUNK) - first;
            (chunk, part, CHUNK.min(len - first))
        })
    }

    /// The contents of these units in order, each with the number of neighbours that have it.
    pub fn runs(&self, range: Range<usize>) -> impl Iterator<Item = (usize, T)> {
        self.parts(range).flat_map(|(chunk, part, _)| {
            let (same, each) = match &self.chunks[chunk] {
                UnitChunk::Same(content) => (Some((part.len(), *content)), &[][..]),
                UnitChunk::Each(each) => (None, &each[part]),
            };
            same.into_iter().chain(each.iter().map(|&content| (1, content)))
        })
    }

    /// Gives these units this content.
    pub fn fill(&mut self, range: Range<usize>, content: T) {
        for (chunk, part, len) in self.parts(range) {
            let own = &mut self.chunks[chunk];
            if part.len() == len {
                *own = UnitChunk::Same(content);
            } else if *own != UnitChunk::Same(content) {
                own.each(len)[part].fill(content);
            }
        }
    }
}

impl Units<SetId> {
    /// Replaces the sets of these units by the results of `to` for their positions in the range and sets.
    pub fn replace(&mut self, range: Range<usize>, mut to: impl FnMut(usize, SetId) -> SetId) {
        let start = range.start;
        for (chunk, part, len) in self.parts(range) {
            let first = chunk * CHUNK;
            self.chunks[chunk].replace(part, len, &mut |at, set| to(first + at - start, set));
        }
    }

    /// Replaces each set of these units by another.
    pub fn map(&mut self, range: Range<usize>, mut to: impl FnMut(SetId) -> SetId) {
        // Neighbours mostly have the same names.
        let mut last = (0, to(0));
        let mut to = |set: SetId| {
            if set != last.0 {
                last = (set, to(set));
            }
            last.1
        };
        for (chunk, part, len) in self.parts(range) {
            let own = &mut self.chunks[chunk];
            match own {
                UnitChunk::Same(set) if part.len() == len => *set = to(*set),
                UnitChunk::Same(set) if to(*set) == *set => {}
                UnitChunk::Each(each) if each[part.clone()].iter().all(|&set| to(set) == set) => {}
                UnitChunk::Same(_) | UnitChunk::Each(_) => own.replace(part, len, &mut |_, set| to(set)),
            }
        }
    }

    /// Replaces the set of each unit by the result of `to` for it and the set of the same unit in `other`, unless they are equal.
    pub fn join(&mut self, other: &Units<SetId>, mut to: impl FnMut(SetId, SetId) -> SetId) {
        debug_assert_eq!(self.len, other.len, "both are states of one instance");
        let len = self.len;
        for (chunk, (ours, theirs)) in self.chunks.iter_mut().zip(&other.chunks).enumerate() {
            match (&mut *ours, theirs) {
                (ours, theirs) if ours == theirs => {}
                (UnitChunk::Same(ours), UnitChunk::Same(theirs)) => *ours = to(*ours, *theirs),
                (ours, theirs) => {
                    let all = 0..CHUNK.min(len - chunk * CHUNK);
                    let their = |at: usize| match theirs {
                        UnitChunk::Same(set) => *set,
                        UnitChunk::Each(each) => each[at],
                    };
                    ours.replace(all.clone(), all.len(), &mut |at, set| {
                        if set == their(at) { set } else { to(set, their(at)) }
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(units: &Units<SetId>) -> Vec<SetId> {
        units.runs(0..units.len()).flat_map(|(count, set)| std::iter::repeat_n(set, count)).collect()
    }

    #[test]
    fn units_are_those_of_a_plain_list() {
        let mut state = 1u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for len in [0, 1, CHUNK - 1, CHUNK, 3 * CHUNK + 7] {
            let (mut units, mut plain) = (Units::new(len), vec![0; len]);
            let mut before = (units.clone(), plain.clone());
            for step in 0..300 {
                let start = draw(len + 1);
                let range = start..start + draw(len - start + 1);
                match draw(6) {
                    0 | 1 => {
                        let set = draw(4) as SetId;
                        units.fill(range.clone(), set);
                        plain[range].fill(set);
                    }
                    2 => {
                        units.map(range.clone(), |set| (set + 1) % 5);
                        plain[range].iter_mut().for_each(|set| *set = (*set + 1) % 5);
                    }
                    3 => {
                        units.replace(range.clone(), |at, set| if at % 3 == 0 { 1 } else { set });
                        plain[range].iter_mut().step_by(3).for_each(|set| *set = 1);
                    }
                    4 => {
                        units.join(&before.0, |one, other| one.min(other));
                        plain.iter_mut().zip(&before.1).for_each(|(one, &other)| *one = other.min(*one));
                    }
                    _ => {
                        assert_eq!(units == before.0, plain == before.1, "{len} units, step {step}");
                        before = (units.clone(), plain.clone());
                    }
                }
                assert_eq!(sets(&units), plain, "{len} units, step {step}");
            }
        }
    }
}
