//! Small rewrites that change no bit of any result.
//!
//! ```text
//! x * 1  =>  x          f32(f32(x))  =>  f32(x)          2 + 3  =>  5
//! ```
//!
//! Only rewrites that are exact for every input are made: `x + 0` stays for floats, because it turns -0 into 0.

use spmdc_ir::array::Array;
use spmdc_ir::program::{Block, Func, Module, Stmt, StmtKind, Value};
use spmdc_kernel::scalar::BinaryOp;
use spmdc_linalg_ops::minors::Minors;
use spmdc_ops::bitcast::Bitcast;
use spmdc_ops::cast::Cast;
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::Binary;
use spmdc_ops::with_partials::WithPartials;

/// Applies the rewrites, first statement first, so that each sees simplified operands.
pub fn simplify(mut module: Module) -> Module {
    let mut body = std::mem::take(&mut module.func.body);
    let count = module.func.values.len();
    let replaced = (0..count as u32).map(Value).collect();
    let mut simplifier = Simplifier { func: &module.func, replaced, scalars: vec![None; count], renamed: Vec::new() };
    simplifier.block(&mut body);
    for (value, from) in simplifier.renamed {
        let name = module.func.info(from).name.clone();
        let info = module.func.info_mut(value);
        info.name = info.name.take().or(name);
    }
    module.func.body = body;
    module
}

struct Simplifier<'a> {
    func: &'a Func,
    replaced: Vec<Value>,
    /// Scalars known at compile time.
    scalars: Vec<Option<Array>>,
    /// Values that get the names of others, which they replace.
    renamed: Vec<(Value, Value)>,
}

impl Simplifier<'_> {
    fn block(&mut self, block: &mut Block) {
        block.stmts.retain_mut(|stmt| {
            stmt.args.iter_mut().for_each(|arg| *arg = self.replaced[arg.0 as usize]);
            stmt.blocks_mut().for_each(|inner| self.block(inner));
            if let Some(same) = self.identity(stmt) {
                debug_assert_eq!(
                    self.replaced[same.0 as usize], same,
                    "a value is replaced by one that is replaced itself"
                );
                self.replaced[stmt.results[0].0 as usize] = same;
                self.renamed.push((same, stmt.results[0]));
                return false;
            }
            self.fold(stmt);
            true
        });
        block.results.iter_mut().for_each(|result| *result = self.replaced[result.0 as usize]);
    }

    /// The operand that the statement returns unchanged.
    fn identity(&self, stmt: &Stmt) -> Option<Value> {
        let &[result] = stmt.results.as_slice() else { return None };
        let op = stmt.op()?;
        // Only their derivatives, which have been taken, are others than those of the operand.
        if op.is::<WithPartials>() || op.is::<Minors>() {
            return Some(stmt.args[0]);
        }
        let binary = if let Some(Binary(binary)) = op.as_op::<Binary>() { Some(*binary) } else { None };
        let same = if binary == Some(BinaryOp::Mul) && self.is_one(stmt.args[1]) {
            stmt.args[0]
        } else if binary == Some(BinaryOp::Mul) && self.is_one(stmt.args[0]) {
            stmt.args[1]
        } else if binary == Some(BinaryOp::Div) && self.is_one(stmt.args[1]) || op.is::<Cast>() {
            stmt.args[0]
        } else {
            return None;
        };
        // A value with a name in the source stays.
        let unnamed = self.func.info(result).name.is_none();
        (self.func.ty(same) == self.func.ty(result) && unnamed).then_some(same)
    }

    fn is_one(&self, value: Value) -> bool {
        let one = |array: &Array| {
            let dtype = array.dtype();
            let one = if dtype.is_float() { dtype.narrow(1.0) } else { 1 };
            array.bits.first() == Some(&one)
        };
        self.scalars[value.0 as usize].as_ref().is_some_and(one)
    }

    /// Computes scalars of known operands.
    fn fold(&mut self, stmt: &mut Stmt) {
        let &[result] = stmt.results.as_slice() else { return };
        if self.func.ty(result).rank() > 0 {
            return;
        }
        let Some(op) = stmt.op() else { return };
        let (rules, properties) = (op.rules(), op.rules().properties());
        if let Some(literal) = properties.elements.literal() {
            self.scalars[result.0 as usize] = Some(literal.clone());
            return;
        }
        if !op.is_pointwise() || properties.has_effect() || stmt.args.is_empty() || properties.group().is_some() {
            return;
        }
        let known: Option<Vec<&Array>> = stmt.args.iter().map(|arg| self.scalars[arg.0 as usize].as_ref()).collect();
        if let Some(known) = known
            && known.iter().all(|array| array.ty.rank() == 0)
            && self.func.ty(result).distinct_axes().is_empty()
            && let Ok(folded) = rules.eval(&known)
            && let [array] = folded.as_slice()
        {
            debug_assert_eq!(array.ty, self.func.ty(result).array, "`{}` is folded to another type", rules.name());
            // A literal has one NaN only, and this one keeps its bits.
            let is_nan = |bits| array.dtype().is_float() && array.dtype().widen(bits).is_nan();
            if op.is::<Bitcast>() && array.bits.iter().any(|&bits| is_nan(bits)) {
                return;
            }
            let array = array.clone();
            stmt.kind = StmtKind::Op(Constant { array: array.clone() }.into());
            stmt.args.clear();
            self.scalars[result.0 as usize] = Some(array);
        }
    }
}
