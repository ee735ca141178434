//! The search for the cheapest candidate.
//!
//! Where all candidates are few, all are priced. Otherwise a beam of the cheapest ones is widened round by round. In each round an axis is
//! put on a whole class of dimensions or taken from it, so that one step leads from a replicated program to a split one. When no step of
//! this kind helps, the decisions of single groups are changed. Candidates are compared by the memory beyond the limit, then by the
//! estimated time, then by the bytes received, then by the number of axes written. In the end the one with the fewest bytes comes first among
//! those whose times hardly differ. All steps are in the order of the source, so the result
//! depends neither on time nor on the number of threads, unless a time limit ends the search.

use super::judge::{Judge, Price};
use super::sites::SiteKind;
use super::space::{Candidate, DecisionSpace};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Maximum number of candidates that a round widens.
const BEAM: usize = 4;

/// The number of rounds that the bounds leave room for, at least; the beam of a long program is narrower.
const ROUNDS: usize = 4;

/// Rounds without a better candidate after which the search goes on with single groups.
const PATIENCE: usize = 2;

/// Bounds of a search.
#[derive(Clone, Copy, Debug)]
pub struct SearchBounds {
    /// Maximum number of statements compiled in all candidates.
    pub statements: usize,
    /// Maximum number of candidates in all for which all are priced.
    pub all: usize,
    /// Maximum time; None without a limit.
    pub time: Option<Duration>,
}

impl SearchBounds {
    /// Some seconds on two cores.
    pub const USUAL: SearchBounds = SearchBounds { statements: 150_000, all: 256, time: None };
}

/// The candidates with their prices, and the extent of the search.
#[derive(Clone, Debug)]
pub struct SearchOutcome {
    /// All priced candidates, cheapest first.
    pub ranked: Vec<(Candidate, Price)>,
    /// Whether all candidates were priced.
    pub is_exhaustive: bool,
    /// Whether a bound ended the search.
    pub is_cut: bool,
}

/// Searches.
pub fn search(space: &DecisionSpace, judge: &Judge<'_>, bounds: SearchBounds) -> SearchOutcome {
    let mut search = CandidateSearch {
        space,
        judge,
        priced: HashMap::new(),
        order: Vec::new(),
        beam: BEAM,
        left: bounds.statements / judge.statements().max(1),
        end: bounds.time.map(|time| Instant::now() + time),
        is_cut: false,
    };
    search.left = search.left.max(MIN_CANDIDATES);
    let round = space.axes.len() * (2 * space.classes().len() + 1);
    search.beam = (search.left / (ROUNDS * round).max(1)).clamp(1, BEAM);
    search.price(vec![space.undecided()]);
    let is_exhaustive = search.all(bounds.all);
    if !is_exhaustive {
        search.widen();
        search.polish();
    }
    let (mut ranked, is_cut) = (Vec::new(), search.is_cut);
    for candidate in search.order {
        if let Some(Some(price)) = search.priced.get(&candidate) {
            ranked.push((candidate, *price));
        }
    }
    ranked.sort_by(|a, b| judge.order((&a.0, &a.1), (&b.0, &b.1)));
    let alike = ranked.iter().take_while(|each| judge.is_alike(&ranked[0].1, &each.1)).count();
    ranked[..alike].sort_by(|a, b| judge.order_of_alike((&a.0, &a.1), (&b.0, &b.1)));
    SearchOutcome { ranked, is_exhaustive, is_cut }
}

/// Minimum number of candidates, whatever the length of the program.
const MIN_CANDIDATES: usize = 64;

struct CandidateSearch<'a> {
    space: &'a DecisionSpace,
    judge: &'a Judge<'a>,
    /// The price of each candidate; None if the program cannot be compiled with it.
    priced: HashMap<Candidate, Option<Price>>,
    /// The priced candidates, in order.
    order: Vec<Candidate>,
    /// The number of candidates that a round widens.
    beam: usize,
    /// The number of candidates that may still be priced.
    left: usize,
    end: Option<Instant>,
    is_cut: bool,
}

impl CandidateSearch<'_> {
    /// Prices those candidates that are new.
    fn price(&mut self, candidates: Vec<Candidate>) {
        let mut new: Vec<Candidate> = Vec::new();
        for candidate in candidates {
            if !self.priced.contains_key(&candidate) && !new.contains(&candidate) {
                new.push(candidate);
            }
        }
        if new.len() > self.left || self.is_late() {
            new.truncate(if self.is_late() { 0 } else { self.left });
            self.is_cut = true;
        }
        self.left -= new.len();
        let prices = self.judge.prices(self.space, &new, self.end);
        for (candidate, price) in new.into_iter().zip(prices) {
            match price {
                Some(price) => {
                    self.order.push(candidate.clone());
                    self.priced.insert(candidate, price);
                }
                // The time was over before its turn.
                None => self.is_cut = true,
            }
        }
    }

    fn is_late(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// The cheapest candidates, at most this many.
    fn best(&self, count: usize) -> Vec<Candidate> {
        let known = self.order.iter().filter_map(|each| Some((each, self.priced.get(each)?.as_ref()?)));
        let mut known: Vec<(&Candidate, &Price)> = known.collect();
        known.sort_by(|a, b| self.judge.order(*a, *b));
        known.into_iter().take(count).map(|(candidate, _)| candidate.clone()).collect()
    }

    /// Prices all candidates if they are at most this many; false otherwise.
    fn all(&mut self, most: usize) -> bool {
        let choices: Vec<_> = (0..self.space.groups.len()).map(|group| self.space.choices(group)).collect();
        let count = choices.iter().try_fold(1_usize, |all, each| all.checked_mul(each.len()));
        let Some(count) = count.filter(|&count| count <= most.min(self.left)) else { return false };
        let candidate = |mut at: usize| -> Candidate {
            let mut next = |each: &Vec<Option<Vec<Vec<u8>>>>| {
                let chosen = each[at % each.len()].clone();
                at /= each.len();
                chosen
            };
            choices.iter().map(&mut next).collect()
        };
        self.price((0..count).map(candidate).collect());
        true
    }

    /// Puts axes on classes of dimensions, and takes them away.
    fn widen(&mut self) {
        let mut beam = self.best(self.beam);
        let mut waited = 0;
        while waited < PATIENCE && !self.is_cut {
            let before = beam.first().cloned();
            let steps: Vec<Candidate> = beam.iter().flat_map(|each| self.steps(each)).collect();
            self.price(steps);
            let after = self.best(self.beam);
            waited = if after.first() == before.as_ref() { waited + 1 } else { 0 };
            if after == beam {
                break;
            }
            beam = after;
        }
    }

    /// The candidates that differ by one axis on one class.
    fn steps(&self, from: &Candidate) -> Vec<Candidate> {
        let space = self.space;
        let mut found = Vec::new();
        let is_border = |group: usize| space.groups[group].kind != SiteKind::Named;
        let groups = || 0..space.groups.len();
        let new_axes = space.distinct_axes(from);
        for &axis in &space.axes {
            let is_new = new_axes.contains(&axis);
            for class in space.classes() {
                let dims = |group: usize| {
                    let classes = space.groups[group].classes.iter().enumerate();
                    classes.filter(|(_, of)| **of == class).map(|(dim, _)| dim)
                };
                // One candidate is widened only where each costs much.
                for &with_named in if self.beam > 1 { &[false, true][..] } else { &[false][..] } {
                    let (mut put, mut taken) = (from.clone(), from.clone());
                    for group in groups().filter(|&group| with_named || is_border(group)) {
                        if is_new && let Some(placed) = dims(group).find_map(|dim| space.placed(from, group, dim, axis))
                        {
                            put[group] = Some(placed);
                        }
                        if dims(group).next().is_some()
                            && let Some(removed) = space.removed(from, group, axis)
                        {
                            taken[group] = Some(removed);
                        }
                    }
                    found.extend([put, taken].into_iter().filter(|each| each != from));
                }
            }
            // Storage: each weight without the axis is split along its longest dimension that divides.
            let mut stored = from.clone();
            for group in groups().filter(|&group| space.groups[group].kind == SiteKind::Parameter) {
                let has = from[group].as_ref().is_some_and(|dims| dims.iter().any(|axes| axes.contains(&axis)));
                let mut dims: Vec<usize> = (0..space.groups[group].shape.len()).collect();
                dims.sort_by_key(|&dim| std::cmp::Reverse(space.groups[group].shape[dim]));
                if !has && let Some(placed) = dims.into_iter().find_map(|dim| space.placed(from, group, dim, axis)) {
                    stored[group] = Some(placed);
                }
            }
            found.extend((is_new && stored != *from).then_some(stored));
        }
        found
    }

    /// Changes the decisions of single groups of the best candidate as long as that helps; larger groups come first.
    fn polish(&mut self) {
        let mut groups: Vec<usize> = (0..self.space.groups.len()).collect();
        groups.sort_by_key(|&group| std::cmp::Reverse(self.space.groups[group].bytes));
        loop {
            let Some(best) = self.best(1).pop() else { return };
            let single = |&group: &usize| -> Vec<Candidate> {
                let dims = 0..self.space.groups[group].shape.len();
                let axes = || self.space.axes.iter().copied();
                let placed = dims.flat_map(|dim| axes().map(move |axis| (dim, axis)));
                let placed = placed.filter_map(|(dim, axis)| self.space.placed(&best, group, dim, axis));
                let removed = axes().filter_map(|axis| self.space.removed(&best, group, axis));
                let silent = best[group].is_some().then_some(None);
                let changes = placed.chain(removed).map(Some).chain(silent);
                let with = |change| {
                    let mut candidate = best.clone();
                    candidate[group] = change;
                    candidate
                };
                changes.map(with).collect()
            };
            let steps = groups.iter().flat_map(single).collect();
            self.price(steps);
            if self.is_cut || self.best(1).pop().as_ref() == Some(&best) {
                return;
            }
        }
    }
}
