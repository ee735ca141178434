//! The decisions about the layout of a program.
//!
//! Places whose dimensions are in the same classes ([`DimClasses`]) are decided together: a weight, its moments and its successor, and one
//! field of all layers. A decision gives each dimension of such a group the axes that split it, or leaves the group to propagation. The
//! number of decisions therefore does not grow with the number of layers of one type.

use super::sites::{AnnotationSite, DimAxesList, SiteKind};
use spmdc_ir::program::{Module, Value};
use spmdc_layout::mesh::{AxisKind, Mesh};
use spmdc_layout::sharding::{DimSharding, Sharding};
use spmdc_layout::types::AxisSet;
use spmdc_passes::propagate::alike::DimClasses;
use std::collections::BTreeMap;

/// Places that are decided together.
#[derive(Clone, Debug)]
pub struct SiteGroup {
    /// The most important kind of the places.
    pub kind: SiteKind,
    /// The places, by position.
    pub sites: Vec<usize>,
    /// The least size of each dimension.
    pub shape: Vec<usize>,
    /// The class of each dimension.
    pub classes: Vec<usize>,
    /// The bytes of all values, whole.
    pub bytes: usize,
}

/// The decision about each group; None leaves it to propagation.
pub type Candidate = Vec<Option<DimAxesList>>;

/// All decisions that a search makes.
#[derive(Clone, Debug)]
pub struct DecisionSpace {
    /// The places, decided or not.
    pub sites: Vec<AnnotationSite>,
    /// The groups of places without annotations.
    pub groups: Vec<SiteGroup>,
    /// The axes that may split them: `auto` axes of several devices.
    pub axes: Vec<u8>,
    /// The size of every axis of the mesh.
    sizes: Vec<usize>,
    /// The axes that are not like another one of their size, because the program names them or because hosts tell them apart.
    known: AxisSet,
}

impl DecisionSpace {
    /// The decisions about a checked program.
    pub fn new(sites: Vec<AnnotationSite>, module: &Module) -> DecisionSpace {
        let classes = DimClasses::new(module);
        let mut groups: BTreeMap<(SiteKind, Vec<usize>, Vec<usize>), SiteGroup> = BTreeMap::new();
        for (at, site) in sites.iter().enumerate().filter(|(_, site)| !site.is_kept) {
            // Values that are copied for each use have no class of their own.
            let Some(known) = site.values.iter().find_map(|&value| classes.of(value)) else { continue };
            let bytes = |&value: &Value| {
                let array = &module.func.ty(value).array;
                array.len() * array.dtype.size()
            };
            // Parameters and results of one class are one decision.
            let kind = if site.kind == SiteKind::Named { SiteKind::Named } else { SiteKind::Parameter };
            let key = (kind, site.shape.clone(), known.to_vec());
            let group = groups.entry(key).or_insert_with(|| SiteGroup {
                kind: site.kind,
                sites: Vec::new(),
                shape: site.shape.clone(),
                classes: known.to_vec(),
                bytes: 0,
            });
            group.kind = group.kind.min(site.kind);
            group.sites.push(at);
            group.bytes += site.values.iter().map(bytes).sum::<usize>();
        }
        let mut groups: Vec<SiteGroup> = groups.into_values().collect();
        groups.sort_by_key(|group| (group.kind, group.sites[0]));
        let Mesh { axes, .. } = &module.mesh;
        let is_open = |axis: &u8| axes[usize::from(*axis)].kind == AxisKind::Auto && axes[usize::from(*axis)].size > 1;
        let open = (0..axes.len() as u8).filter(is_open).collect();
        let named = module.func.values.iter().map(|info| info.ty.sharding.used_axes());
        let known = match module.mesh.hosts {
            Some(_) => AxisSet::all(axes.len()),
            None => named.fold(AxisSet::EMPTY, AxisSet::union),
        };
        DecisionSpace { sites, groups, axes: open, sizes: axes.iter().map(|axis| axis.size).collect(), known }
    }

    /// The axes to put somewhere: of those that the candidate does not have and that differ in their names only, the first.
    pub fn distinct_axes(&self, candidate: &Candidate) -> Vec<u8> {
        let used = candidate.iter().flatten().flatten().flatten();
        let used: AxisSet = used.map(|&axis| usize::from(axis)).collect();
        let known = used.union(self.known);
        let is_like = |a: u8, b: u8| {
            self.sizes[usize::from(a)] == self.sizes[usize::from(b)]
                && !known.contains(usize::from(a))
                && !known.contains(usize::from(b))
        };
        let is_first = |(at, axis): &(usize, &u8)| !self.axes[..*at].iter().any(|&before| is_like(before, **axis));
        self.axes.iter().enumerate().filter(is_first).map(|(_, &axis)| axis).collect()
    }

    /// The candidate without any decision.
    pub fn undecided(&self) -> Candidate {
        vec![None; self.groups.len()]
    }

    /// The classes that an axis could split, those of the largest groups first.
    pub fn classes(&self) -> Vec<usize> {
        let mut bytes: BTreeMap<usize, usize> = BTreeMap::new();
        for group in &self.groups {
            for (&class, _) in group.classes.iter().zip(&group.shape).filter(|(_, size)| **size > 1) {
                *bytes.entry(class).or_default() += group.bytes;
            }
        }
        let mut classes: Vec<(usize, usize)> = bytes.into_iter().collect();
        classes.sort_by_key(|&(class, bytes)| (std::cmp::Reverse(bytes), class));
        classes.into_iter().map(|(class, _)| class).collect()
    }

    /// The layouts that a candidate fixes, by value.
    pub fn fixed(&self, candidate: &Candidate) -> Vec<(Value, Sharding)> {
        let mut found = Vec::new();
        for (group, decided) in self.groups.iter().zip(candidate) {
            let Some(dims) = decided else { continue };
            let dims: Vec<DimSharding> = dims.iter().map(|axes| DimSharding::closed(axes.clone())).collect();
            let sharding = Sharding { dims, ..Sharding::replicated(0) };
            let values = group.sites.iter().flat_map(|&site| &self.sites[site].values);
            found.extend(values.map(|&value| (value, sharding.clone())));
        }
        found
    }

    /// The group with an axis at a dimension, and nowhere else; None if its elements are too few, or if it is there already.
    pub fn placed(&self, candidate: &Candidate, group: usize, dim: usize, axis: u8) -> Option<DimAxesList> {
        let SiteGroup { shape, .. } = &self.groups[group];
        let mut dims = candidate[group].clone().unwrap_or_else(|| vec![Vec::new(); shape.len()]);
        if dims[dim].contains(&axis) {
            return None;
        }
        dims.iter_mut().for_each(|axes| axes.retain(|&other| other != axis));
        dims[dim].push(axis);
        dims[dim].sort_unstable();
        let blocks: usize = dims[dim].iter().map(|&axis| self.sizes[usize::from(axis)]).product();
        (blocks <= shape[dim]).then_some(dims)
    }

    /// The group without an axis; None if it does not have it.
    pub fn removed(&self, candidate: &Candidate, group: usize, axis: u8) -> Option<DimAxesList> {
        let mut dims = candidate[group].clone()?;
        let before = dims.clone();
        dims.iter_mut().for_each(|axes| axes.retain(|&other| other != axis));
        (dims != before).then_some(dims)
    }

    /// The number of layouts of a group, with the one that leaves it to propagation.
    pub fn choices(&self, group: usize) -> Vec<Option<DimAxesList>> {
        let mut found: Vec<Option<DimAxesList>> = vec![Some(vec![Vec::new(); self.groups[group].shape.len()])];
        for &axis in &self.axes {
            let mut more = Vec::new();
            for known in &found {
                let mut candidate = self.undecided();
                candidate[group].clone_from(known);
                let dims = 0..self.groups[group].shape.len();
                more.extend(dims.filter_map(|dim| self.placed(&candidate, group, dim, axis)).map(Some));
            }
            found.extend(more);
        }
        found.insert(0, None);
        found
    }

    /// The layouts of each place that a candidate decides.
    pub fn decided<'a>(&'a self, candidate: &'a Candidate) -> Vec<(usize, &'a DimAxesList)> {
        let groups = self.groups.iter().zip(candidate);
        let mut found: Vec<(usize, &DimAxesList)> = groups
            .filter_map(|(group, decided)| Some((group, decided.as_ref()?)))
            .flat_map(|(group, dims)| group.sites.iter().map(move |&site| (site, dims)))
            .collect();
        found.sort_by_key(|(site, _)| *site);
        found
    }
}
