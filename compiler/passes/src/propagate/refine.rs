//! The same program on a mesh in which axes are cut into parts.
//!
//! ```text
//! mesh (Y = 8);                                     mesh (Y_0 = 2, Y_1 = 4);
//! fn main(x: f32[16@Y,4]) { reshape(x, (2, 8, 4)) }   =>   x: f32[16@(Y_0,Y_1),4]; the reshape: f32[2@Y_0,8@Y_1,4]
//! ```
//!
//! Parts take the position of their axis, major to minor, so every device keeps its number and its blocks. All later passes treat
//! parts as ordinary axes.

use super::{PropagationEdge, SlotGraph};
use spmdc_functions::is_builtin;
use spmdc_ir::program::{Block, Func, Module, Value};
use spmdc_ir::rules::Effect;
use spmdc_layout::mesh::MAX_AXES;
use spmdc_layout::mesh::{Axis, AxisKind, Mesh, SubAxis};
use spmdc_layout::sharding::{DimSharding, Sharding};
use spmdc_layout::sub_axes::SubAxes;
use spmdc_layout::types::Type;
use std::collections::BTreeMap;

/// For each axis, by position, the products of the sizes of its leading parts: 8 devices cut at 2 are 2 groups of 4.
pub type Cuts = BTreeMap<u8, Vec<usize>>;

/// The cuts of both, as far as they are compatible.
pub fn both(a: &Cuts, b: &Cuts) -> Cuts {
    let mut all = a.clone();
    for (&axis, more) in b {
        let cuts = all.entry(axis).or_default();
        cuts.extend(more);
        cuts.sort_unstable();
        let mut last = 1;
        cuts.retain(|&cut| {
            let fits = cut != last && cut % last == 0;
            last = if fits { cut } else { last };
            fits
        });
    }
    all
}

/// A program whose axes are cut.
pub struct Refined {
    /// The program over the parts of its axes.
    pub module: Module,
    parts: SubAxes,
    /// For each part, its axis and the product of the sizes of the parts before it.
    origins: Vec<(u8, usize)>,
}

impl Refined {
    /// None where the program prints coordinates of axes, which parts cannot express, or a cut does not divide.
    pub fn new(module: &Module, cuts: &Cuts) -> Option<Refined> {
        let mesh = &module.mesh;
        let (mut axes, mut parts, mut origins) = (Vec::new(), Vec::new(), Vec::new());
        for (position, axis) in mesh.axes.iter().enumerate() {
            let mut sizes = Vec::new();
            let mut before = 1;
            let cuts = cuts.get(&(position as u8)).map_or(&[][..], Vec::as_slice);
            parts.push((axes.len()..=axes.len() + cuts.len()).map(|part| part as u8).collect());
            for &cut in cuts.iter().chain([&axis.size]) {
                if cut % before != 0 {
                    return None;
                }
                origins.push((position as u8, before));
                sizes.push(cut / before);
                before = cut;
            }
            axes.extend(axes_of(axis, &sizes, module));
        }
        let are_whole = mesh.axes.iter().all(|axis| axis.part.is_none());
        let auto = mesh.of_kind(AxisKind::Auto).minus(module.func.turned());
        let are_ours = cuts.keys().all(|&axis| auto.contains(usize::from(axis)));
        if !are_whole || !are_ours || axes.len() > MAX_AXES || prints_places(&module.func) {
            return None;
        }
        let mut refined = Refined { module: module.clone(), parts: SubAxes(parts), origins };
        let mut func = std::mem::replace(&mut refined.module.func, Func::new(""));
        debug_assert_eq!(axes.len(), refined.origins.len(), "each part knows what it is a part of");
        debug_assert_eq!(
            axes.iter().map(|axis| axis.size).product::<usize>(),
            mesh.device_count(),
            "axes in parts have the devices that they had"
        );
        func.infos_mut().for_each(|info| {
            refined.cut_type(&mut info.ty);
            info.origin.turned = refined.parts.set(info.origin.turned);
        });
        func.body.walk_mut(&mut |stmt| stmt.name_parts(&refined.parts));
        refined.module.func = func;
        refined.module.mesh = refined.module.mesh.with_axes(axes);
        Some(refined)
    }

    /// Layouts for parameters and results: those found with parts if they are over whole axes, otherwise those found without parts.
    pub fn borders(&self, whole: &Module, parts: &Module) -> Vec<(Value, Sharding)> {
        let mesh = &parts.mesh;
        let is_whole = |dim: &DimSharding| {
            mesh.wholes(&dim.axes).iter().all(|(_, axes)| axes.len() > 1 || mesh.axes[axes[0] as usize].part.is_none())
        };
        let layout = |(value, cut): (&Value, &Value)| {
            let found = &parts.func.ty(*cut).sharding;
            match found.dims.iter().all(is_whole) {
                true => found.clone(),
                false => self.parts.sharding(&whole.func.ty(*value).sharding),
            }
        };
        debug_assert_eq!(whole.func.body.params.len(), parts.func.body.params.len(), "both are one program");
        let (whole, parts) = (&whole.func.body, &parts.func.body);
        let both = |of: fn(&Block) -> &[Value]| of(whole).iter().zip(of(parts));
        let all = both(|body| &body.params).chain(both(|body| &body.results));
        all.map(|(value, cut)| (*cut, layout((value, cut)))).collect()
    }

    /// For each part, its axis.
    pub fn wholes(&self) -> Vec<u8> {
        self.origins.iter().map(|(axis, _)| *axis).collect()
    }

    /// For each axis, itself.
    pub fn same(&self) -> Vec<u8> {
        (0..self.module.mesh.axes.len() as u8).collect()
    }

    /// Translates cuts of parts into cuts of the whole axes.
    pub fn of_wholes(&self, cuts: &Cuts) -> Cuts {
        let mut found = Cuts::new();
        for (&part, cuts) in cuts {
            let (axis, before) = self.origins[part as usize];
            let cuts = cuts.iter().map(|cut| cut * before).collect();
            found = both(&found, &BTreeMap::from([(axis, cuts)]));
        }
        found
    }

    fn cut_type(&self, ty: &mut Type) {
        ty.sharding = self.parts.sharding(&ty.sharding);
        ty.varying = self.parts.set(ty.varying);
    }
}

/// The parts of an axis, of these sizes; the axis itself if there is one size.
fn axes_of(axis: &Axis, sizes: &[usize], module: &Module) -> Vec<Axis> {
    if sizes.len() == 1 {
        return vec![axis.clone()];
    }
    let params = module.func.params.iter().map(|param| param.name.split('.').next().unwrap_or_default());
    let mut taken = params.chain([module.func.name.as_str()]).collect::<Vec<_>>();
    taken.extend(module.mesh.axes.iter().map(|axis| axis.name.as_str()));
    let mut between = "_".to_string();
    let name = |between: &str, at: usize| format!("{}{between}{at}", axis.name);
    while (0..sizes.len()).any(|at| taken.contains(&name(&between, at).as_str()) || is_builtin(&name(&between, at))) {
        between.push('_');
    }
    let part = |at| Some(SubAxis { of: axis.name.clone(), at, count: sizes.len() });
    let parts = sizes.iter().enumerate();
    parts.map(|(at, &size)| Axis { name: name(&between, at), size, kind: axis.kind, part: part(at) }).collect()
}

/// Whether the program prints coordinates, as it does for varying values.
fn prints_places(func: &Func) -> bool {
    let mut found = false;
    func.body.walk(&mut |stmt| {
        let args = &stmt.args;
        found |= stmt.op().is_some_and(|op| op.rules().properties().effect == Effect::Text)
            && args.iter().any(|&arg| !func.ty(arg).varying.is_empty());
    });
    found
}

impl SlotGraph {
    /// The cuts of axes with which dimensions of ops could be split like the other dimensions of the op.
    pub(super) fn cuts(&self, mesh: &Mesh) -> Vec<Cuts> {
        let mut found: Vec<Cuts> = Vec::new();
        for edge in &self.edges {
            let PropagationEdge::Op(node) = edge else { continue };
            let rule = &node.projection.rule;
            for (tensor, &slot) in rule.operands.iter().chain(&rule.results).zip(&node.slots) {
                for (factors, dim) in tensor.iter().zip(&self.slots[slot].dims) {
                    let cuts = node.projection.cuts(factors, &dim.axes, mesh);
                    let cuts = cuts.filter(|(axis, _)| mesh.axes[*axis as usize].kind == AxisKind::Auto);
                    let cuts = cuts.map(|(axis, cuts)| BTreeMap::from([(axis, cuts)]));
                    found.extend(cuts.filter(|cuts| !found.contains(cuts)));
                }
            }
        }
        found
    }
}
