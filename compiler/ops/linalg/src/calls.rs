//! The calls of factorizations, with the parameters of `jax.numpy.linalg` and `jax.lax.linalg`.

use crate::factorization::Factorization;
use spmdc_abi::{MatrixFunction, TriangularSystem};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::requires;
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::unknown_value;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::program::Value;
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::types::DType;
use spmdc_ops::cast::cast;
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::Binary;
use spmdc_ops::promote::{inexact, promoted};
use spmdc_ops::reshape::reshape;
use spmdc_ops::transpose::transpose;

/// The array of a parameter in the float type that functions of it are computed in.
fn operand(args: &mut Args<'_>, build: &mut CallBuilder, name: &str) -> Result<Value, Diagnostic> {
    let value = args.array(build, name)?;
    let dtype = inexact(build.ty(value).dtype());
    cast(build, value, dtype)
}

/// The matrices with rows and columns exchanged.
fn turned(build: &mut CallBuilder, value: Value) -> Result<Value, Diagnostic> {
    let rank = build.ty(value).rank();
    let mut order: Vec<usize> = (0..rank).collect();
    if rank >= 2 {
        order.swap(rank - 2, rank - 1);
    }
    transpose(build, value, &order)
}

/// The mean of a square matrix and its transpose; other arrays as they are, which is an error of the factorization.
fn symmetrized(build: &mut CallBuilder, value: Value) -> Result<Value, Diagnostic> {
    let is_square = matches!(build.ty(value).shape(), [.., rows, columns] if rows == columns);
    let dtype = build.ty(value).dtype();
    if !is_square || !crate::factorization::is_supported(dtype) {
        return Ok(value);
    }
    let other = turned(build, value)?;
    let sum = build.emit1(Binary(BinaryOp::Add), &[value, other])?;
    let half = build.emit1(Constant::float(dtype, 0.5), &[])?;
    build.emit1(Binary(BinaryOp::Mul), &[sum, half])
}

impl Call for Factorization {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The lower factor L of symmetric positive definite matrices L Lᵀ, or the upper one; NaN for other matrices.
        cholesky(a: Array, [named] upper: Bool = false, [named] symmetrize_input: Bool = true), Wide, Refused(MATRICES), "(x: f32[4, 4]) { cholesky(exp(-abs(sqrt(x) - sqrt(x.T)))) }";
        /// The solution x of x a = b, or of a x = b, for triangular matrices a; only one triangle is read.
        triangular_solve(
            a: Array, b: Array, [named] left_side: Bool = false, [named] lower: Bool = false, [named] transpose_a: Bool = false,
            [named] conjugate_a: Bool = false, [named] unit_diagonal: Bool = false,
        ), Wide, Refused(MATRICES), "(x: f32[4, 4]) { triangular_solve(x + 1, x[:, :3], left_side=true, lower=true) }";
        /// The solution x of a x = b, by elimination.
        lu_solve(a: Array, b: Array) in_dumps "" "write `solve`";
        /// L and U in one matrix, the row exchanged in each step, and the source of each row, by partial pivoting.
        lu(x: Array), Wide, Refused(MATRICES), "(x: f32[4, 4]) { lu(sqrt(x)) }";
        /// The diagonal of U, and the rows that were exchanged in each step.
        lu_diagonal(x: Array) in_dumps "" "write `lu`";
        /// L and U in one matrix, the source of each row and the source of each column, by full pivoting.
        lu_complete(x: Array) in_dumps "" "write `lu`";
        /// Q with orthonormal columns and R, upper triangular, with a = Q R; or R alone if mode is `r`.
        qr(a: Array, mode: String = "reduced"), Wide, Refused(MATRICES), "(x: f32[6, 4]) { qr(sqrt(x)) }";
        /// The signs of the columns of Q, from its first rows.
        qr_signs(q: Array) in_dumps "" "write `qr`";
        /// The eigenvalues of symmetric matrices in ascending order, and the eigenvectors as columns.
        eigh(a: Array, UPLO: String = None, symmetrize_input: Bool = true), Wide, Refused(MATRICES), "(x: f32[4, 4]) { eigh(sqrt(x)) }";
        /// The planes of the eigenvalues, and of the eigenvectors.
        eig_planes(re: Array, im: Array = None, [named] vectors: Bool = true) in_dumps "" "write `eig` or `eigvals`";
        /// U, the singular values in descending order, and V transposed, with a = U diag(s) Vᵀ; or the values alone.
        svd(a: Array, full_matrices: Bool = true, compute_uv: Bool = true, hermitian: Bool = false), Wide, Refused(MATRICES), "(x: f32[6, 4]) { svd(sqrt(x), full_matrices=false) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        match name {
            "cholesky" => {
                let upper = args.optional_bool("upper")?.unwrap_or(false);
                let symmetrize = args.optional_bool("symmetrize_input")?.unwrap_or(true);
                let a = operand(args, build, "a")?;
                let a = if symmetrize { symmetrized(build, a)? } else { a };
                let lower = build.emit1(Factorization(MatrixFunction::Cholesky), &[a])?;
                Ok(Term::Array(if upper { turned(build, lower)? } else { lower }))
            }
            "triangular_solve" => triangular_solve(args, build).map(Term::Array),
            "lu_solve" => {
                let (a, b) = (operand(args, build, "a")?, operand(args, build, "b")?);
                Ok(Term::Array(build.emit1(Factorization(MatrixFunction::Solve), &[a, b])?))
            }
            "lu" => {
                let x = operand(args, build, "x")?;
                emitted(build, MatrixFunction::Lu, x)
            }
            "lu_diagonal" => {
                let x = operand(args, build, "x")?;
                emitted(build, MatrixFunction::LuDiagonal, x)
            }
            "lu_complete" => {
                let x = operand(args, build, "x")?;
                emitted(build, MatrixFunction::LuComplete, x)
            }
            "qr" => {
                let mode = args.optional_string("mode")?.unwrap_or_else(|| "reduced".to_string());
                let (full, q) = match mode.as_str() {
                    "reduced" | "full" => (false, true),
                    "complete" => (true, true),
                    "r" => (false, false),
                    _ => return Err(unknown_value("mode", &["reduced", "complete", "r"], &Term::Str(mode), args.span)),
                };
                let a = operand(args, build, "a")?;
                emitted(build, MatrixFunction::Qr { full, q }, a)
            }
            "qr_signs" => {
                let q = operand(args, build, "q")?;
                emitted(build, MatrixFunction::QrSigns, q)
            }
            "eigh" => {
                let lower = match args.optional_string("UPLO")?.as_deref() {
                    None | Some("L") => true,
                    Some("U") => false,
                    Some(found) => {
                        return Err(unknown_value("UPLO", &["L", "U"], &Term::Str(found.to_string()), args.span));
                    }
                };
                let symmetrize = args.optional_bool("symmetrize_input")?.unwrap_or(true);
                let a = operand(args, build, "a")?;
                let a = if symmetrize { symmetrized(build, a)? } else { a };
                emitted(build, MatrixFunction::Eigh { lower }, a)
            }
            "eig_planes" => {
                let vectors = args.optional_bool("vectors")?.unwrap_or(true);
                let mut planes = vec![args.array(build, "re")?];
                if let Some(im) = args.take("im") {
                    planes.push(build.materialize(&im.term, None, im.span)?);
                }
                Ok(Term::of_results(&build.emit(Factorization(MatrixFunction::Eig { vectors }), &planes)?))
            }
            "svd" => {
                let full = args.optional_bool("full_matrices")?.unwrap_or(true);
                let vectors = args.optional_bool("compute_uv")?.unwrap_or(true);
                // A symmetric matrix has singular values like any other.
                args.optional_bool("hermitian")?;
                let a = operand(args, build, "a")?;
                emitted(build, MatrixFunction::Svd { vectors: vectors.then_some(full) }, a)
            }
            _ => unreachable!("the table has no other names"),
        }
    }
}

fn emitted(build: &mut CallBuilder, function: MatrixFunction, a: Value) -> Result<Term, Diagnostic> {
    let results = build.emit(Factorization(function), &[a])?;
    Ok(Term::of_results(&results))
}

fn triangular_solve(args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Value, Diagnostic> {
    let mut flag = |name: &str| args.optional_bool(name).map(|flag| flag.unwrap_or(false));
    let (left, lower) = (flag("left_side")?, flag("lower")?);
    let (transposed, unit) = (flag("transpose_a")?, flag("unit_diagonal")?);
    // Real matrices are their own conjugates.
    flag("conjugate_a")?;
    let (a, b) = (args.required("a")?, args.required("b")?);
    let operands = promoted(build, &[(&a.term, a.span), (&b.term, b.span)])?;
    let dtype: DType = inexact(build.ty(operands[0]).dtype());
    let (a, b) = (cast(build, operands[0], dtype)?, cast(build, operands[1], dtype)?);
    if build.ty(a).rank() < 2 {
        let found = &build.ty(a).array;
        return Err(Diagnostic::error(Code::E0206, args.span, requires("`triangular_solve`", "matrices", found)));
    }
    let shape = build.ty(b).shape().to_vec();
    // Vectors are matrices of one column, or one row.
    let is_vector = shape.len() + 1 == build.ty(a).rank();
    let b = if is_vector {
        let mut wide = shape.clone();
        wide.insert(if left { shape.len() } else { shape.len() - 1 }, 1);
        reshape(build, b, &wide)?
    } else {
        b
    };
    let system = TriangularSystem { left, lower, transposed, unit };
    let x = build.emit1(Factorization(MatrixFunction::TriangularSolve(system)), &[a, b])?;
    if is_vector { reshape(build, x, &shape) } else { Ok(x) }
}
