//! Operations of statements: any value that keeps [`Rules`].

use crate::rules::{Exchange, Lowered, Rules};
use std::any::Any;
use std::fmt;
use std::panic::RefUnwindSafe;
use std::sync::Arc;

/// The operation of a statement. Copies share it.
#[derive(Clone)]
pub struct Op(Arc<dyn Rules>);

impl Op {
    /// The rules of the op.
    pub fn rules(&self) -> &dyn Rules {
        &*self.0
    }

    /// As [`Op::rules`], mutable, to replace the axes that the op names.
    pub fn rules_mut(&mut self) -> &mut dyn Rules {
        if Arc::get_mut(&mut self.0).is_none() {
            self.0 = self.0.to_shared();
        }
        Arc::get_mut(&mut self.0).expect("a copy has one owner")
    }

    /// Whether it is an op of this type.
    pub fn is<T: Rules>(&self) -> bool {
        self.as_op::<T>().is_some()
    }

    /// The op, if it is of this type.
    pub fn as_op<T: Rules>(&self) -> Option<&T> {
        self.0.as_any().downcast_ref()
    }

    /// As [`Op::as_op`], mutable.
    pub fn as_op_mut<T: Rules>(&mut self) -> Option<&mut T> {
        // Not every op is copied that is only looked at.
        if !self.is::<T>() {
            return None;
        }
        self.rules_mut().as_any_mut().downcast_mut()
    }

    /// Whether one element of the result is an expression of single elements of the operands.
    pub fn is_pointwise(&self) -> bool {
        self.rules().lowered().point().is_some()
    }

    /// The exchange between devices, if the op makes one.
    pub fn exchange(&self) -> Option<&dyn Exchange> {
        match self.rules().lowered() {
            Lowered::Exchange(exchange) => Some(exchange),
            Lowered::Point(_)
            | Lowered::Nest(_)
            | Lowered::Reduction(_)
            | Lowered::Alias(_)
            | Lowered::Library(_)
            | Lowered::Request => None,
        }
    }

    /// Whether the op has an effect besides its results; its statements are kept even if no result is used, and stay in order.
    pub fn has_effect(&self) -> bool {
        self.rules().properties().has_effect()
    }
}

impl<T: Rules> From<T> for Op {
    fn from(op: T) -> Op {
        Op(Arc::new(op))
    }
}

impl PartialEq for Op {
    fn eq(&self, other: &Op) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.equals(&*other.0)
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// The abilities of every op that a trait object cannot derive: to be compared, copied and recognized.
pub trait OpObject: Any + fmt::Debug + Send + Sync + RefUnwindSafe {
    /// Whether the other op has the same type and the same attributes.
    fn equals(&self, other: &dyn Rules) -> bool;

    /// A copy.
    fn to_shared(&self) -> Arc<dyn Rules>;

    /// The op as a value of any type.
    fn as_any(&self) -> &dyn Any;

    /// As [`OpObject::as_any`], mutable.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Rules + Clone + PartialEq> OpObject for T {
    fn equals(&self, other: &dyn Rules) -> bool {
        other.as_any().downcast_ref::<T>() == Some(self)
    }

    fn to_shared(&self) -> Arc<dyn Rules> {
        Arc::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
