//! The intermediate representation: one function of structured statements over arrays.
//!
//! Calls are gone (the checker expands every function where it is called), structs and tuples are their leaves, shapes are
//! numbers. A statement has one op, operands, results and, for control flow, blocks. There is no control-flow graph: `for`,
//! `while`, `if` and `manual` hold blocks, so a pass is a walk in order.
//!
//! Every value is defined once. Blocks see the values of the blocks around them.

pub mod build;
pub mod explicit;
pub mod local;
pub mod origin;
pub mod partial_sums;
pub mod typing;
pub mod walk;

use crate::layout::factors::Factors;
use crate::layout::mesh::Mesh;
use crate::layout::types::{ArrayType, AxisSet, Type};
use crate::ops::Op;
use origin::Origin;
use spmdc_abi::CollectiveKind;
use spmdc_grammar::span::Span;
use std::fmt;

/// A value, by number; it prints as its name in dumps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(pub u32);

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

/// How far a program has come. Dumps name it in their first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Types and shapes are known; auto axes are not decided.
    Typed,
    /// Every sharding is decided; operands of an op may still disagree.
    Propagated,
    /// Every op is local under its factor rule; all communication is explicit.
    Partitioned,
    /// Collectives combined; loop nests and buffers decided.
    Optimized,
}

impl Stage {
    pub const ALL: [Stage; 4] = [Stage::Typed, Stage::Propagated, Stage::Partitioned, Stage::Optimized];

    pub fn name(self) -> &'static str {
        match self {
            Stage::Typed => "typed",
            Stage::Propagated => "propagated",
            Stage::Partitioned => "partitioned",
            Stage::Optimized => "optimized",
        }
    }
}

/// A whole program: its mesh and its entry function.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    pub stage: Stage,
    pub mesh: Mesh,
    pub func: Func,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Func {
    pub name: String,
    /// One for each leaf: a struct parameter `p` comes as `p.w`, `p.b`. The values are the parameters of `body`.
    pub params: Vec<Param>,
    /// The names of the results: `0`, `1` for a tuple's fields, field paths for a struct's. The values are the results of `body`.
    pub results: Vec<ResultInfo>,
    pub body: Block,
    pub values: Vec<ValueInfo>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    pub name: String,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ResultInfo {
    pub name: String,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ValueInfo {
    pub ty: Type,
    /// The name of the user's `let`, for reports.
    pub name: Option<String>,
    /// Where the value was given that name.
    pub named: Span,
    pub origin: Origin,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    pub params: Vec<Value>,
    pub stmts: Vec<Stmt>,
    pub results: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    pub op: Op,
    pub args: Vec<Value>,
    pub results: Vec<Value>,
    /// What control flow holds, in the order that the op documents; empty for all other ops.
    pub blocks: Vec<Block>,
    pub origin: Origin,
}

impl Stmt {
    /// A statement without blocks.
    pub fn new(op: Op, args: Vec<Value>, results: Vec<Value>, origin: Origin) -> Stmt {
        Stmt::with_blocks(op, args, results, Vec::new(), origin)
    }

    /// The same, with other results of the same types.
    pub fn making(&self, results: Vec<Value>) -> Stmt {
        Stmt { results, ..self.clone() }
    }

    /// Control flow.
    pub fn with_blocks(op: Op, args: Vec<Value>, results: Vec<Value>, blocks: Vec<Block>, origin: Origin) -> Stmt {
        Stmt { op, args, results, blocks, origin }
    }
}

impl Func {
    pub fn new(name: &str) -> Func {
        Func {
            name: name.to_string(),
            params: Vec::new(),
            results: Vec::new(),
            body: Block::default(),
            values: Vec::new(),
        }
    }

    pub fn ty(&self, value: Value) -> &Type {
        &self.values[value.0 as usize].ty
    }

    pub fn types(&self, values: &[Value]) -> Vec<&Type> {
        values.iter().map(|&value| self.ty(value)).collect()
    }

    pub fn arrays(&self, values: &[Value]) -> Vec<&ArrayType> {
        values.iter().map(|&value| &self.ty(value).array).collect()
    }

    /// The factor rule of a statement that is not control flow.
    pub fn factors(&self, stmt: &Stmt) -> Factors {
        stmt.op.rules().factors(&self.arrays(&stmt.args), &self.arrays(&stmt.results))
    }

    /// How many operations a statement is as a whole; those that it holds do not count.
    pub fn flops(&self, stmt: &Stmt) -> u64 {
        stmt.op.rules().flops(&self.arrays(&stmt.args), &self.arrays(&stmt.results))
    }

    /// What a statement communicates itself, if it does: the kind, and the axes of its groups.
    pub fn collective(&self, stmt: &Stmt, mesh: &Mesh) -> Option<(CollectiveKind, AxisSet)> {
        stmt.op.rules().collective(&self.types(&stmt.args), &self.types(&stmt.results), mesh)
    }

    pub fn info(&self, value: Value) -> &ValueInfo {
        &self.values[value.0 as usize]
    }

    pub fn info_mut(&mut self, value: Value) -> &mut ValueInfo {
        &mut self.values[value.0 as usize]
    }

    pub fn new_value(&mut self, ty: Type, origin: Origin) -> Value {
        self.values.push(ValueInfo { ty, name: None, named: origin.span, origin });
        Value(self.values.len() as u32 - 1)
    }
}

impl Block {
    /// Every statement, in order, those inside others after the one that holds them.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Stmt)) {
        for stmt in &self.stmts {
            visit(stmt);
            for block in &stmt.blocks {
                block.walk(visit);
            }
        }
    }

    /// Every use of a value, in order: operands and the results of blocks.
    pub fn each_use(&self, visit: &mut dyn FnMut(Value)) {
        for stmt in &self.stmts {
            stmt.args.iter().for_each(|&arg| visit(arg));
            stmt.blocks.iter().for_each(|block| block.each_use(visit));
        }
        self.results.iter().for_each(|&result| visit(result));
    }

    /// As [`Block::each_use`], to change them.
    pub fn each_use_mut(&mut self, visit: &mut dyn FnMut(&mut Value)) {
        for stmt in &mut self.stmts {
            stmt.args.iter_mut().for_each(&mut *visit);
            stmt.blocks.iter_mut().for_each(|block| block.each_use_mut(visit));
        }
        self.results.iter_mut().for_each(visit);
    }

    /// As [`Block::walk`], to change them.
    pub fn walk_mut(&mut self, visit: &mut dyn FnMut(&mut Stmt)) {
        for stmt in &mut self.stmts {
            visit(stmt);
            stmt.blocks.iter_mut().for_each(|block| block.walk_mut(visit));
        }
    }
}
