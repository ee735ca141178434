//! `key(42)`, the key of a seed, and `split(k, 3)`, new keys of a key.

use crate::cast::{Cast, cast};
use crate::constant::{Constant, flatten};
use crate::random_bits::RandomBits;
use spmdc_abi::threefry;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_be;
use spmdc_grammar::span::Span;
use spmdc_ir::array::Array;
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::{Arg, as_ints};
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::{Term, whole_number};
use spmdc_ir::program::Value;
use spmdc_layout::types::{ArrayType, DType};

/// The calls of `key`; they emit constants and casts.
pub struct Keys;

/// The bits of the key of a seed.
fn key_of(seed: &Term, span: Span) -> Result<u64, Diagnostic> {
    let given = if let Term::Float(_) = seed { None } else { whole_number(seed) };
    let Some(seed) = given else {
        return Err(Diagnostic::error(Code::E0210, span, must_be("a seed", "an integer", seed.describe())));
    };
    let words = match (i64::try_from(seed), u64::try_from(seed)) {
        (Ok(seed), _) => threefry::key(seed),
        (Err(_), Ok(seed)) => threefry::words(seed),
        (Err(_), Err(_)) => {
            return Err(Diagnostic::error(Code::E0218, span, format!("the seed {seed} does not fit into 64 bits")));
        }
    };
    Ok(crate::random_bits::element(DType::Key, words))
}

impl Call for Keys {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The key of a seed, for random numbers; an array of seeds gives an array of keys.
        key(seed: Array), Integers, Refused(DRAWS), "(x: i32[3]) { key(x) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let seed = args.required("seed")?;
        if !seed.term.holds_array() {
            let (mut shape, mut leaves) = (Vec::new(), Vec::new());
            flatten(&seed.term, 0, &mut shape, &mut leaves, seed.span)?;
            let bits = leaves.iter().map(|leaf| key_of(leaf, seed.span)).collect::<Result<Vec<u64>, Diagnostic>>()?;
            let array = Array::new(ArrayType::new(DType::Key, &shape), bits);
            return Ok(Term::Array(build.emit1(Constant { array }, &[])?));
        }
        let value = build.materialize(&seed.term, None, seed.span)?;
        let dtype = build.ty(value).dtype();
        if !dtype.is_integer() {
            let message = must_be("a seed", "an integer", dtype.name());
            return Err(Diagnostic::error(Code::E0215, seed.span, message));
        }
        // Seeds up to 32 bits are the second word of their key; those of 64 bits are both.
        let mut value = value;
        if dtype.size() < 8 {
            let narrow = if dtype.is_signed_integer() { cast(build, value, DType::I32)? } else { value };
            value = cast(build, narrow, DType::U32)?;
        }
        let value = cast(build, value, DType::U64)?;
        Ok(Term::Array(build.emit1(Cast { to: DType::Key }, &[value])?))
    }
}

/// New keys of a key: so many, or an array of this shape.
pub fn split(build: &mut CallBuilder, key: Value, num: Option<&Arg>, span: Span) -> Result<Value, Diagnostic> {
    let given = num.map_or_else(|| Ok(vec![2]), |num| as_ints(num, "num"))?;
    let negative = || Diagnostic::error(Code::E0225, span, "the number of new keys must be at least 0");
    let shape = given.iter().map(|&size| usize::try_from(size).map_err(|_| negative()));
    let shape = shape.collect::<Result<Vec<usize>, Diagnostic>>()?;
    build.emit1(RandomBits { ty: ArrayType::new(DType::Key, &shape) }, &[key])
}
