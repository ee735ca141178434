//! Functions that derivatives treat as one.
//!
//! The origin of each statement names the innermost unit that contains it, so a unit stays the same however values are numbered. Units form
//! a tree: the unit of a function that is called in another unit lies inside that unit.

use crate::program::origin::UnitId;
use crate::program::{Block, Stmt, Value};
use std::collections::BTreeMap;

/// The treatment of the statements of a unit in derivatives.
#[derive(Clone, Debug)]
pub enum UnitKind {
    /// The reverse computes its values again: `checkpoint`.
    Recomputed,
    /// The program defines the reverse: `custom_vjp`.
    Custom(Box<CustomRule>),
}

/// A function with a reverse of its own. All blocks are templates, of which the program has copies at most.
#[derive(Clone, Debug)]
pub struct CustomRule {
    /// The arguments: the name that the function uses, and the value.
    pub inputs: Vec<(Value, Value)>,
    /// The values from outside that the functions use besides.
    pub captured: Vec<Value>,
    /// The results of the function.
    pub outputs: Vec<Value>,
    /// The statements that replace those of the function where its derivative is taken.
    pub forward: Vec<Stmt>,
    /// The results that they give.
    pub forward_outputs: Vec<Value>,
    /// Takes the cotangents of the results, and returns those of the arguments.
    pub reverse: Block,
}

#[derive(Clone, Debug)]
struct Unit {
    parent: Option<UnitId>,
    /// None until all of its statements have been emitted.
    kind: Option<UnitKind>,
}

/// The units of a program.
#[derive(Clone, Debug, Default)]
pub struct UnitTree {
    all: Vec<Unit>,
}

impl UnitTree {
    /// Begins a unit inside another one.
    pub fn open(&mut self, parent: Option<UnitId>) -> UnitId {
        self.all.push(Unit { parent, kind: None });
        UnitId((self.all.len() - 1) as u32)
    }

    /// States the treatment of a unit whose statements have been emitted.
    pub fn close(&mut self, unit: UnitId, kind: UnitKind) {
        let known = &mut self.all[unit.0 as usize].kind;
        debug_assert!(known.is_none(), "{unit:?} is closed once");
        *known = Some(kind);
    }

    /// The treatment of a unit that is closed.
    pub fn kind(&self, unit: UnitId) -> &UnitKind {
        self.all[unit.0 as usize].kind.as_ref().expect("a unit that is being filled, or has failed, is not asked for")
    }

    /// The number of units.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether the program has no units.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Forgets all units but the first ones, because their statements have been removed.
    pub fn truncate(&mut self, len: usize) {
        self.all.truncate(len);
    }

    /// A unit and those around it, the innermost first.
    fn chain(&self, innermost: Option<UnitId>) -> impl Iterator<Item = UnitId> {
        std::iter::successors(innermost, |unit| self.all[unit.0 as usize].parent)
    }

    /// The units that contain a statement of the unit `innermost` and lie inside `outside`, the innermost first. A unit that an error has
    /// left open is none of them.
    pub fn within(&self, innermost: Option<UnitId>, outside: Option<UnitId>) -> impl Iterator<Item = UnitId> {
        let inside = self.chain(innermost).take_while(move |&unit| self.chain(outside).all(|other| other != unit));
        inside.filter(|unit| self.all[unit.0 as usize].kind.is_some())
    }

    /// Whether every unit is closed, as it is unless there was an error.
    pub fn are_closed(&self) -> bool {
        self.all.iter().all(|unit| unit.kind.is_some())
    }
}

/// The copies of units whose statements are emitted again.
#[derive(Debug)]
pub struct UnitCopies {
    /// The unit whose contents are copied: the units inside it have copies.
    of: Option<UnitId>,
    /// The unit that contains the copies.
    parent: Option<UnitId>,
    copies: BTreeMap<UnitId, UnitId>,
}

impl UnitCopies {
    /// No copies yet of the units inside `of`; they will lie inside `parent`.
    pub fn new(of: Option<UnitId>, parent: Option<UnitId>) -> UnitCopies {
        UnitCopies { of, parent, copies: BTreeMap::new() }
    }

    /// The innermost unit for a copy of a statement of the unit `innermost`. Units that are new are open.
    pub fn copy(&mut self, units: &mut UnitTree, innermost: Option<UnitId>) -> Option<UnitId> {
        let inside: Vec<UnitId> = units.within(innermost, self.of).collect();
        let mut parent = self.parent;
        for unit in inside.into_iter().rev() {
            parent = Some(*self.copies.entry(unit).or_insert_with(|| units.open(parent)));
        }
        parent
    }

    /// The unit whose contents are copied.
    pub fn of(&self) -> Option<UnitId> {
        self.of
    }

    /// Each unit that has a copy, with its copy.
    pub fn pairs(&self) -> impl Iterator<Item = (UnitId, UnitId)> {
        self.copies.iter().map(|(&unit, &copy)| (unit, copy))
    }
}
