//! The steps by which a value comes to lie otherwise.

use crate::layout::sharding::Sharding;
use spmdc_abi::CollectiveKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Any layout to any other; not yet a plan.
    Request,
    /// An annotation on auto axes: propagation takes it as given. Communicates no more than a request does.
    Pin,
    /// Every device takes a part of what it has: no communication.
    Slice,
    Collective(CollectiveKind),
}

impl Step {
    /// The step that a dump names so; `reshard` is what users write.
    pub fn named(name: &str) -> Step {
        match name {
            "pin" => Step::Pin,
            "shard" => Step::Slice,
            _ => {
                CollectiveKind::ALL.into_iter().find(|kind| kind.name() == name).map_or(Step::Request, Step::Collective)
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reshard {
    pub to: Sharding,
    pub step: Step,
}

impl Reshard {
    pub fn request(to: Sharding) -> Reshard {
        Reshard { to, step: Step::Request }
    }

    pub fn pin(to: Sharding) -> Reshard {
        Reshard { to, step: Step::Pin }
    }
}
