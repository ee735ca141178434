//! Ops over the values of a group of devices, in `manual` functions.

use crate::array::Array;
use spmdc_layout::types::AxisSet;

/// The properties of an op over a group of devices, besides its rules.
pub trait GroupCollective {
    /// The manual axes of the group, major to minor.
    fn axes(&self) -> &[u8];

    /// Whether devices wait for each other.
    fn communicates(&self) -> bool {
        true
    }

    /// Whether it adds up the values of its devices, so that these may be summands of one value.
    fn sums(&self) -> bool;

    /// Whether its transpose sums the devices' parts of a cotangent, so that no sum is needed before.
    fn transposes_to_sum(&self) -> bool;

    /// The manual axes along which the results vary, given the ones along which the operands vary.
    fn varying(&self, operands: AxisSet) -> AxisSet;

    /// The message of one member of the group to another one, given their positions along the axes.
    fn message(&self, from: usize, to: usize) -> GroupMessage;

    /// The results of all members, in the order of their position along the axes. `members` holds the operands of each.
    fn eval_group(&self, members: &[Vec<&Array>]) -> Vec<Array>;
}

/// A message between two members of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupMessage {
    /// The sender's value.
    Whole,
    /// The receiver's share of the sender's value, which is cut along this dimension into as many shares as the group has members.
    Share(usize),
    /// A share of the sender's value, to be added up, and later a share of the results.
    Summands,
    /// No message.
    Nothing,
}
