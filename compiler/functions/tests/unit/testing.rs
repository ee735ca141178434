//! Common functions of the tests: a mesh, checked programs, and the statements and values of calls.

use spmdc_abi::threefry;
use spmdc_functions::{Body, builtin};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::array::Array;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::term::Term;
use spmdc_ir::op::Op;
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::{Func, Value};
use spmdc_kernel::number;
use spmdc_layout::mesh::{Axis, AxisKind, Mesh};
use spmdc_layout::types::{ArrayType, DType, Type};

/// A mesh of `X = 2, Y = 4`, all auto.
pub fn mesh() -> Mesh {
    let axis = |name: &str, size| Axis::new(name, size, AxisKind::Auto);
    Mesh { axes: vec![axis("X", 2), axis("Y", 4)], ..Mesh::default() }
}

/// A builder with an empty function.
pub fn builder() -> CallBuilder {
    spmdc_ops::builder(mesh(), Func::new("main"))
}

pub fn parameter(build: &mut CallBuilder, dtype: DType, shape: &[usize]) -> Value {
    let value = build.new_value(Type::open(ArrayType::new(dtype, shape)), Origin::default());
    build.outermost().params.push(value);
    value
}

/// A call by name, with positional and keyword arguments.
pub fn call(
    build: &mut CallBuilder,
    name: &'static str,
    positional: &[Term],
    named: &[(&str, Term)],
) -> Result<Term, Diagnostic> {
    let arg = |name: Option<&str>, term: &Term| Arg {
        name: name.map(str::to_string),
        term: term.clone(),
        span: Span::default(),
    };
    let mut rest: Vec<Arg> = positional.iter().map(|term| arg(None, term)).collect();
    rest.extend(named.iter().map(|(name, term)| arg(Some(name), term)));
    let function = builtin(name).unwrap_or_else(|| panic!("`{name}` is not in the table"));
    let Body::Emitted(emit) = function.body(&rest) else { panic!("`{name}` emits no statements by itself") };
    let mut args = function.bind(rest, Span::default(), build.is_exact())?;
    emit(name, &mut args, build)
}

/// Calls a function on arrays and evaluates its statements; `terms` gets the arrays' terms.
pub fn run(
    name: &'static str,
    arrays: &[Array],
    terms: impl FnOnce(Vec<Term>) -> Vec<Term>,
    named: &[(&str, Term)],
) -> Result<Array, Diagnostic> {
    let mut build = builder();
    let inputs: Vec<Value> = arrays.iter().map(|array| parameter(&mut build, array.dtype(), array.shape())).collect();
    let positional = terms(inputs.iter().map(|&value| Term::Array(value)).collect());
    let result = call(&mut build, name, &positional, named)?;
    let Term::Array(result) = result else { panic!("`{name}` gave {result:?}") };
    Ok(evaluate(&build, &inputs, arrays, result))
}

/// The value of a result, given the values of the parameters.
pub fn evaluate(build: &CallBuilder, inputs: &[Value], arrays: &[Array], result: Value) -> Array {
    let mut known: Vec<Option<Array>> = vec![None; build.value_count()];
    for (value, array) in inputs.iter().zip(arrays) {
        known[value.0 as usize] = Some(array.clone());
    }
    for stmt in &build.blocks()[0].stmts {
        let args: Vec<Array> = stmt.args.iter().filter_map(|arg| known[arg.0 as usize].clone()).collect();
        let op = stmt.op().expect("calls make no control flow");
        let results = op.rules().eval(&args.iter().collect::<Vec<_>>());
        let results = results.unwrap_or_else(|trap| panic!("{trap:?}"));
        for (value, array) in stmt.results.iter().zip(results) {
            assert_eq!(array.ty, build.ty(*value).array, "{op:?} evaluates to what it infers");
            known[value.0 as usize] = Some(array);
        }
    }
    known[result.0 as usize].clone().unwrap_or_else(|| panic!("{result} has no value"))
}

/// The ops of the statements so far, as printed, with operands named `a`, `b`, ...
pub fn printed(build: &CallBuilder) -> Vec<String> {
    let print = |op: &Op, count: usize| {
        let names: Vec<String> = (0..count).map(|i| char::from(b'a' + i as u8).to_string()).collect();
        op.rules().print(&names, build.mesh())
    };
    build.blocks()[0].stmts.iter().filter_map(|stmt| Some(print(stmt.op()?, stmt.args.len()))).collect()
}

/// The words of a key.
pub fn words(key: u64) -> [u32; 2] {
    threefry::words(number::cast(DType::Key, DType::U64, key).unwrap())
}

pub fn int(value: i64) -> Term {
    Term::Int(value.into())
}

pub fn ints(values: &[i64]) -> Term {
    Term::Tuple(values.iter().map(|&value| int(value)).collect())
}

pub fn floats(shape: &[usize], values: &[f64]) -> Array {
    Array::from_floats(DType::F32, shape, values)
}

pub fn integers(shape: &[usize], values: &[i128]) -> Array {
    Array::from_ints(DType::I32, shape, values)
}
