//! Other names of arrays while a program is checked.
//!
//! A derivative by a value is that by the uses of its name: a function that is differentiated gets other names of its arguments. A name that
//! is *stopped* counts as another array.

use crate::program::value::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Other names of arrays.
#[derive(Clone, Debug, Default)]
pub struct Aliases {
    /// For each name, the array or the name that it is another name of.
    of: BTreeMap<Value, Value>,
    /// The names that count as other arrays.
    stopped: BTreeSet<Value>,
}

impl Aliases {
    /// Lets `name` be another name of `value`.
    pub(super) fn alias(&mut self, name: Value, value: Value) {
        debug_assert_ne!(self.original(value), name, "a value is another name of itself");
        self.of.insert(name, value);
    }

    /// Lets a name count as another array.
    pub(super) fn stop(&mut self, name: Value) {
        debug_assert!(self.of.contains_key(&name), "only a name of another value is stopped");
        self.stopped.insert(name);
    }

    /// Undoes [`Aliases::stop`].
    pub(super) fn release(&mut self, name: Value) {
        self.stopped.remove(&name);
    }

    /// The array of which a value is a name, up to names that are stopped.
    pub fn resolve(&self, mut value: Value) -> Value {
        while let (Some(&of), false) = (self.of.get(&value), self.stopped.contains(&value)) {
            value = of;
        }
        value
    }

    /// The array of which a value is a name, in the end.
    pub fn original(&self, mut value: Value) -> Value {
        while let Some(of) = self.next(value) {
            value = of;
        }
        value
    }

    /// The array or the name that a value aliases; None if it is not an alias.
    pub fn next(&self, value: Value) -> Option<Value> {
        self.of.get(&value).copied()
    }

    /// Whether a name counts as another array.
    pub fn is_stopped(&self, name: Value) -> bool {
        self.stopped.contains(&name)
    }

    /// The value itself, or the first one of which it is another name, that `holds`.
    pub fn first(&self, mut value: Value, holds: impl Fn(Value) -> bool) -> Option<Value> {
        while !holds(value) {
            value = self.next(value)?;
        }
        Some(value)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Forgets the names from a value on.
    pub(super) fn forget(&mut self, first: Value) {
        self.of.split_off(&first);
        self.stopped.split_off(&first);
    }
}
