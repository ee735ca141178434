//! The parts of a step: the lists of steps in it, and its calls of kernels; and the steps of a program one by one.

use crate::{GroupPanels, KernelStep, Site, Step, TileMember};

impl Step {
    /// The source position of a step; the default for a step without one.
    pub fn site(&self) -> Site {
        match self {
            Step::Kernel(step) => step.site,
            Step::Panels { kernels, .. } => kernels.first().map_or(Site::default(), |step| step.site),
            Step::GroupPanels(panels) => panels.kernels().next().map_or(Site::default(), |step| step.site),
            Step::Gemm(step) => step.site,
            Step::Tiles(step) => step.site,
            Step::Library(step) => step.site,
            Step::Exchange(step) => step.site,
            Step::Reduce(step) => step.site,
            Step::Permute(step) => step.site,
            Step::Fetch(step) => step.site,
            Step::Copy { .. } => Site::default(),
            Step::Sync { site, .. }
            | Step::Post { site, .. }
            | Step::Await { site, .. }
            | Step::CheckIndex { site, .. }
            | Step::For { site, .. }
            | Step::While { site, .. }
            | Step::If { site, .. }
            | Step::Print { site, .. } => *site,
        }
    }

    /// These steps and all steps in them, each before those in it.
    pub fn walk(steps: &[Step]) -> impl Iterator<Item = &Step> {
        // The rests of the lists that have begun, outermost first.
        let mut lists = vec![steps];
        std::iter::from_fn(move || {
            while let Some(list) = lists.pop() {
                if let Some((step, rest)) = list.split_first() {
                    lists.push(rest);
                    lists.extend(step.blocks().collect::<Vec<_>>().into_iter().rev());
                    return Some(step);
                }
            }
            None
        })
    }

    /// The lists of steps in it, in the order in which they run; empty for all but loops, branches and panels of groups.
    pub fn blocks(&self) -> impl Iterator<Item = &[Step]> {
        let blocks: [&[Step]; 2] = match self {
            Step::For { body, .. } => [body, &[]],
            Step::While { cond, body, .. } => [cond, body],
            Step::If { then, otherwise, .. } => [then, otherwise],
            Step::GroupPanels(GroupPanels { steps, .. }) => [steps, &[]],
            Step::Kernel(_)
            | Step::Panels { .. }
            | Step::Tiles(_)
            | Step::Gemm(_)
            | Step::Library(_)
            | Step::Exchange(_)
            | Step::Reduce(_)
            | Step::Permute(_)
            | Step::Fetch(_)
            | Step::Sync { .. }
            | Step::Post { .. }
            | Step::Await { .. }
            | Step::Copy { .. }
            | Step::CheckIndex { .. }
            | Step::Print { .. } => [&[]; 2],
        };
        blocks.into_iter()
    }

    /// As [`Step::blocks`], to be changed.
    pub fn blocks_mut(&mut self) -> impl Iterator<Item = &mut [Step]> {
        let blocks: [&mut [Step]; 2] = match self {
            Step::For { body, .. } => [body, &mut []],
            Step::While { cond, body, .. } => [cond, body],
            Step::If { then, otherwise, .. } => [then, otherwise],
            Step::GroupPanels(GroupPanels { steps, .. }) => [steps, &mut []],
            Step::Kernel(_)
            | Step::Panels { .. }
            | Step::Tiles(_)
            | Step::Gemm(_)
            | Step::Library(_)
            | Step::Exchange(_)
            | Step::Reduce(_)
            | Step::Permute(_)
            | Step::Fetch(_)
            | Step::Sync { .. }
            | Step::Post { .. }
            | Step::Await { .. }
            | Step::Copy { .. }
            | Step::CheckIndex { .. }
            | Step::Print { .. } => [&mut [], &mut []],
        };
        blocks.into_iter()
    }

    /// Its calls of kernels, which run one after the other on each part of their range; without those in its lists of steps.
    pub fn kernels(&self) -> &[KernelStep] {
        match self {
            Step::Panels { kernels, .. } => kernels,
            Step::Kernel(kernel) => std::slice::from_ref(kernel),
            Step::GroupPanels(_)
            | Step::Tiles(_)
            | Step::Gemm(_)
            | Step::Library(_)
            | Step::Exchange(_)
            | Step::Reduce(_)
            | Step::Permute(_)
            | Step::Fetch(_)
            | Step::Sync { .. }
            | Step::Post { .. }
            | Step::Await { .. }
            | Step::Copy { .. }
            | Step::CheckIndex { .. }
            | Step::For { .. }
            | Step::While { .. }
            | Step::If { .. }
            | Step::Print { .. } => &[],
        }
    }

    /// As [`Step::kernels`], to be changed.
    pub fn kernels_mut(&mut self) -> &mut [KernelStep] {
        match self {
            Step::Panels { kernels, .. } => kernels,
            Step::Kernel(kernel) => std::slice::from_mut(kernel),
            Step::GroupPanels(_)
            | Step::Tiles(_)
            | Step::Gemm(_)
            | Step::Library(_)
            | Step::Exchange(_)
            | Step::Reduce(_)
            | Step::Permute(_)
            | Step::Fetch(_)
            | Step::Sync { .. }
            | Step::Post { .. }
            | Step::Await { .. }
            | Step::Copy { .. }
            | Step::CheckIndex { .. }
            | Step::For { .. }
            | Step::While { .. }
            | Step::If { .. }
            | Step::Print { .. } => &mut [],
        }
    }

    /// The numbers of all kernels that it calls, without those in its lists of steps.
    pub fn kernel_numbers_mut(&mut self) -> Vec<&mut u32> {
        if let Step::Tiles(tiles) = self {
            let members = tiles.members.iter_mut();
            let numbers = members.filter_map(|member| match member {
                TileMember::Kernel(kernel) => Some(&mut kernel.kernel),
                TileMember::Product(_) => None,
            });
            return numbers.collect();
        }
        self.kernels_mut().iter_mut().map(|kernel| &mut kernel.kernel).collect()
    }
}
