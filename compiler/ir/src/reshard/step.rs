//! The steps by which a value comes to lie otherwise.

use crate::layout::sharding::Sharding;
use spmdc_abi::CollectiveKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReshardStep {
    /// Any layout to any other; not yet a plan.
    Request,
    /// An annotation on auto axes: propagation takes it as given. Communicates no more than a request does.
    Pin,
    /// Every device takes a part of what it has: no communication.
    Slice,
    Collective(CollectiveKind),
}

impl ReshardStep {
    /// The step that a dump names so; `reshard` is what users write.
    pub fn named(name: &str) -> ReshardStep {
        match name {
            "pin" => ReshardStep::Pin,
            "shard" => ReshardStep::Slice,
            _ => CollectiveKind::ALL
                .into_iter()
                .find(|kind| kind.name() == name)
                .map_or(ReshardStep::Request, ReshardStep::Collective),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reshard {
    pub to: Sharding,
    pub step: ReshardStep,
}

impl Reshard {
    pub fn request(to: Sharding) -> Reshard {
        Reshard { to, step: ReshardStep::Request }
    }

    pub fn pin(to: Sharding) -> Reshard {
        Reshard { to, step: ReshardStep::Pin }
    }
}
