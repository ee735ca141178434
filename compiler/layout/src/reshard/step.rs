//! The steps that change the layout of a value.

use crate::sharding::Sharding;
use spmdc_abi::CollectiveKind;

/// The kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReshardStep {
    /// Any layout to any other; not yet a plan.
    Request,
    /// An annotation on auto axes: propagation takes it as given. Communicates no more than a request does.
    Pin,
    /// A pin of a gradient whose value has the annotation: it applies to the whole sum, which on auto axes may be combined later.
    PinGradient,
    /// Every device slices its own block: no communication.
    Slice,
    /// A collective of this kind.
    Collective(CollectiveKind),
}

impl ReshardStep {
    /// The step with this name in dumps; `reshard` is the name in programs.
    pub fn named(name: &str) -> ReshardStep {
        match name {
            "pin" => ReshardStep::Pin,
            "pin_gradient" => ReshardStep::PinGradient,
            "shard" => ReshardStep::Slice,
            _ => CollectiveKind::ALL
                .into_iter()
                .find(|kind| kind.name() == name)
                .map_or(ReshardStep::Request, ReshardStep::Collective),
        }
    }
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanStep {
    /// The layout after the step.
    pub to: Sharding,
    /// The kind of the step.
    pub step: ReshardStep,
}
