//! Random bits of XLA's generators.

use super::shapes::{reshaped, sliced};
use super::{FunctionReader, MlirValue, at, malformed, unsupported};
use crate::build::Build;
use crate::cursor::Read;
use crate::tree::{Attribute, MlirElement, MlirOp, TensorType};
use spmdc_grammar::ast::{Expr, ExprKind, IndexNode, InfixOp, StmtNode, StmtNodeKind};

const U32: MlirElement = MlirElement::Unsigned(32);
const U64: MlirElement = MlirElement::Unsigned(64);

/// The multipliers of Philox 4x32, and the steps of its key.
/// Source: J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011.
const MULTIPLIERS: [i128; 2] = [0xD251_1F53, 0xCD9E_8D57];
const KEY_STEPS: [i128; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: i128 = 10;

impl FunctionReader<'_> {
    /// `rng_bit_generator` of XLA's default algorithm on processors, Philox 4x32 with 10 rounds. The state is a key, which is also the upper
    /// half of the counter, and the lower half.
    pub(super) fn random_bits(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let [state] = self.some_operands(operation)?;
        let algorithm = ["algorithm", "rng_algorithm"].iter().find_map(|name| operation.attributes.get(*name));
        let algorithm = match algorithm {
            Some(Attribute::Word(word)) => word.clone(),
            _ => return Err(malformed(operation, "a generator has an algorithm")),
        };
        let [state_type, ty] = operation.types.as_slice() else {
            return Err(malformed(operation, "a generator has a state and numbers as results"));
        };
        let has_state = *state_type == state.ty && state.ty == TensorType { shape: vec![2], element: U64 };
        if !matches!(algorithm.as_str(), "DEFAULT" | "PHILOX") || !has_state {
            return Err(unsupported(operation, format!("for the algorithm {algorithm} with this state")));
        }
        let MlirElement::Unsigned(bits) = ty.element else {
            return Err(unsupported(operation, "for numbers that are not unsigned integers"));
        };
        let words = if bits == 64 { 2 * ty.len() } else { ty.len() };
        let blocks = words.div_ceil(4);
        let random = self.philox(build, &state, blocks);
        let column = |word: &Expr| reshaped(build, word.clone(), &[blocks, 1]);
        let axis = [("axis", build.int(1))];
        let random = build.call_with("concatenate", [build.list(random.iter().map(column).collect())], axis);
        let random = self.variable(build, "random", reshaped(build, random, &[blocks * 4]));
        let numbers = match bits == 64 {
            true => {
                let half = |start: usize| {
                    build.cast(U64, sliced(build, random.clone(), &[blocks * 4], &[(start, blocks * 4, 2)]))
                };
                let upper = build.binary(InfixOp::Shl, half(1), build.cast(U64, build.int(32)));
                build.binary(InfixOp::BitOr, half(0), upper)
            }
            false => random,
        };
        let numbers = self.variable(build, "numbers", numbers);
        let len = if bits == 64 { blocks * 2 } else { blocks * 4 };
        let numbers = reshaped(build, sliced(build, numbers, &[len], &[(0, ty.len(), 1)]), &ty.shape);
        let steps = build.list(vec![build.int(0), build.int(blocks as i128)]);
        let state = build.binary(InfixOp::Add, state.expr, build.cast(U64, steps));
        self.emit_all(operation, build.tuple(vec![state, build.cast(ty.element, numbers)]));
        Ok(())
    }

    /// Four arrays with the words of so many blocks of random bits.
    fn philox(&mut self, build: Build, state: &MlirValue, blocks: usize) -> Vec<Expr> {
        let state = self.variable(build, "state", state.expr.clone());
        let part = |at: i128| build.index(state.clone(), vec![IndexNode::Expr(build.int(at))]);
        let upper = |value: Expr| build.cast(U32, build.binary(InfixOp::Shr, value, build.cast(U64, build.int(32))));
        let count = build.call("iota", [build.type_value(&TensorType { shape: vec![blocks], element: U64 })]);
        let counter = self.variable(build, "counter", build.binary(InfixOp::Add, part(1), count));
        let key = self.variable(build, "key_bits", part(0));
        // The counter has 128 bits.
        let carry = build.binary(InfixOp::Lt, counter.clone(), part(1));
        let high = build.binary(InfixOp::Add, key.clone(), build.cast(U64, carry));
        let high = self.variable(build, "high", high);
        let low = |value: Expr| build.cast(U32, value);
        let first =
            [low(counter.clone()), upper(counter), low(high.clone()), upper(high), low(key.clone()), upper(key)];
        let names: Vec<String> = ["a", "b", "c", "d", "k", "l"].iter().map(|name| self.fresh(name)).collect();
        for (name, value) in names.iter().zip(first) {
            self.stmts.push(build.bind_mutable(name, value));
        }
        let outer = std::mem::take(&mut self.stmts);
        let [a, b, c, d, k, l] = [0, 1, 2, 3, 4, 5].map(|at| build.name(&names[at]));
        let product = |reader: &mut Self, word: &Expr, at: usize| {
            let multiplier = build.cast(U64, build.int(MULTIPLIERS[at]));
            let product = build.binary(InfixOp::Mul, build.cast(U64, word.clone()), multiplier);
            reader.variable(build, "product", product)
        };
        let (of_a, of_c) = (product(self, &a, 0), product(self, &c, 1));
        let xor = |x: Expr, y: Expr| build.binary(InfixOp::BitXor, x, y);
        let next =
            |key: &Expr, at: usize| build.binary(InfixOp::Add, key.clone(), build.cast(U32, build.int(KEY_STEPS[at])));
        let values = [
            xor(xor(upper(of_c.clone()), b), k.clone()),
            low(of_c),
            xor(xor(upper(of_a.clone()), d), l.clone()),
            low(of_a),
            next(&k, 0),
            next(&l, 1),
        ];
        let values = values.map(|value| self.variable(build, "next", value));
        for (name, value) in names.iter().zip(values) {
            self.stmts.push(build.assign(name, value));
        }
        let body = std::mem::replace(&mut self.stmts, outer);
        let trip = self.fresh("round");
        let rounds = build.expr(ExprKind::For {
            pattern: build.pattern(&trip),
            start: Box::new(build.int(0)),
            end: Box::new(build.int(ROUNDS)),
            step: None,
            collect: false,
            body: build.block(body, None),
        });
        self.stmts.push(StmtNode { kind: StmtNodeKind::Expr(rounds), span: build.0 });
        names[..4].iter().map(|name| build.name(name)).collect()
    }
}
