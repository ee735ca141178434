//! The meaning of tokens that look alike, from the tree.

use crate::ast::*;
use crate::token::{Lexeme, Token};
use crate::walk::{SyntaxNode, Walk};
use std::collections::{HashMap, HashSet};

/// The meaning of tokens, by their offsets.
#[derive(Default)]
pub struct Meanings {
    /// Operators between two operands, with their levels: the larger one binds tighter.
    pub operators: HashMap<usize, u8>,
    /// The braces of blocks.
    pub blocks: HashSet<usize>,
    /// Tokens without spaces around them: `=` of keyword arguments, `@` of dimensions and all of alignments.
    pub tight: HashSet<usize>,
    /// Colons of slices, and whether they have spaces around them.
    pub slices: HashMap<usize, bool>,
    /// Words that are keywords only where they stand: `step` of a loop.
    pub keywords: HashSet<usize>,
    /// `<` of size parameters and arguments, with their `>`.
    pub angles: HashMap<usize, usize>,
}

/// The tokens of a file.
struct Tokens<'a, 's> {
    lexemes: &'a [Lexeme<'s>],
}

impl Tokens<'_, '_> {
    /// The index of the first token that begins at this offset or later.
    fn at(&self, offset: u32) -> usize {
        self.lexemes.partition_point(|lexeme| lexeme.start < offset as usize)
    }

    /// The offset of the next token of this kind from here on.
    fn next(&self, offset: u32, token: Token<'_>) -> Option<usize> {
        self.lexemes[self.at(offset)..].iter().find(|lexeme| lexeme.token == token).map(|lexeme| lexeme.start)
    }

    /// The offset of the token that ends at or before this offset.
    fn before(&self, offset: u32) -> Option<usize> {
        self.at(offset).checked_sub(1).map(|at| self.lexemes[at].start)
    }

    /// The `<` after a name, and the `>` after the last of these.
    fn angles(&self, name: &Ident, last: Option<u32>) -> Option<(usize, usize)> {
        let open = self.lexemes.get(self.at(name.span.end)).filter(|lexeme| lexeme.token == Token::Less)?;
        let close = self.next(last.unwrap_or(open.end as u32), Token::Greater)?;
        Some((open.start, close))
    }
}

impl Meanings {
    pub fn new(program: &ProgramNode, lexemes: &[Lexeme<'_>]) -> Meanings {
        let tokens = Tokens { lexemes };
        let mut found = Meanings::default();
        program.walk(&mut |node| found.see(node, &tokens));
        found
    }

    fn see(&mut self, node: SyntaxNode<'_>, tokens: &Tokens<'_, '_>) {
        let last_of = |names: &[Ident]| names.last().map(|last| last.span.end);
        match node {
            SyntaxNode::Expr(expr) => self.expr(expr, tokens),
            SyntaxNode::BlockNode(block) => {
                self.blocks.insert(block.span.start as usize);
            }
            SyntaxNode::FnItem(function) => {
                self.angles.extend(tokens.angles(&function.name, last_of(&function.size_params)));
            }
            SyntaxNode::ItemKind(ItemKind::Type { name, size_params, .. }) => {
                self.angles.extend(tokens.angles(name, last_of(size_params)));
            }
            SyntaxNode::TypeExprKind(TypeExprKind::Named { name, args, .. }) => {
                self.angles.extend(tokens.angles(name, args.last().map(|last| last.span.end)));
            }
            SyntaxNode::DimExpr(dim) => {
                self.tight.extend(dim.axes.as_ref().and_then(|axes| tokens.before(axes.span.start)));
            }
            SyntaxNode::DimAxes(axes) if axes.alignment.is_some() => {
                let all = tokens.at(axes.span.start)..tokens.at(axes.span.end);
                let is_sign = |lexeme: &&Lexeme<'_>| {
                    !lexeme.token.is_name() && !matches!(lexeme.token, Token::Comma | Token::Int(_))
                };
                self.tight.extend(tokens.lexemes[all].iter().filter(is_sign).map(|lexeme| lexeme.start));
            }
            SyntaxNode::ArgNode(ArgNode { name: Some(name), .. }) => {
                self.tight.extend(tokens.next(name.span.end, Token::Assign));
            }
            SyntaxNode::ShardingExpr(sharding) => {
                let all = tokens.at(sharding.span.start)..tokens.at(sharding.span.end);
                let equals = tokens.lexemes[all].iter().filter(|lexeme| lexeme.token == Token::Assign);
                self.tight.extend(equals.map(|lexeme| lexeme.start));
            }
            SyntaxNode::IndexNode(IndexNode::Slice { start, stop, step, span }) => {
                let bounds = || [start, stop, step].into_iter().flatten();
                let is_spaced = bounds().any(|bound| matches!(bound.kind, ExprKind::Binary { .. }));
                let is_bound = |at: usize| {
                    bounds().any(|bound| (bound.span.start as usize..bound.span.end as usize).contains(&at))
                };
                let all = tokens.at(span.start)..tokens.at(span.end);
                let colons =
                    tokens.lexemes[all].iter().filter(|lexeme| lexeme.token == Token::Colon && !is_bound(lexeme.start));
                self.slices.extend(colons.map(|lexeme| (lexeme.start, is_spaced)));
            }
            _ => {}
        }
    }

    fn expr(&mut self, expr: &Expr, tokens: &Tokens<'_, '_>) {
        match &expr.kind {
            ExprKind::Binary { op, op_span, .. } => {
                self.operators.insert(op_span.start as usize, level(*op));
            }
            ExprKind::For { step: Some(step), .. } => self.keywords.extend(tokens.before(step.span.start)),
            _ => {}
        }
    }
}

fn level(op: InfixOp) -> u8 {
    match op {
        InfixOp::Or => 0,
        InfixOp::And => 1,
        InfixOp::Eq | InfixOp::Ne | InfixOp::Lt | InfixOp::Le | InfixOp::Gt | InfixOp::Ge => 2,
        InfixOp::BitOr => 3,
        InfixOp::BitXor => 4,
        InfixOp::BitAnd => 5,
        InfixOp::Shl | InfixOp::Shr => 6,
        InfixOp::Add | InfixOp::Sub => 7,
        InfixOp::Mul | InfixOp::Div | InfixOp::FloorDiv | InfixOp::Rem | InfixOp::MatMul => 8,
        InfixOp::Pow => 9,
    }
}
