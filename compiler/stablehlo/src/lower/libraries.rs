//! Calls of LAPACK, which JAX makes for factorizations on processors, as functions of the language.
//!
//! The last result of most of these is an error number, which is tested by the program. The functions of the language give NaN where LAPACK
//! fails, as the program does for such a number, so the number is 0.

use super::{FunctionReader, at, malformed, unsupported};
use crate::build::Build;
use crate::cursor::Read;
use crate::tree::{Attribute, Attributes, MlirOp};
use spmdc_grammar::ast::{Expr, InfixOp};

/// Operations of CHLO in the form of calls.
const MHLO: &[(&str, &str)] = &[
    ("acos", "chlo.acos"),
    ("acosh", "chlo.acosh"),
    ("asin", "chlo.asin"),
    ("asinh", "chlo.asinh"),
    ("atanh", "chlo.atanh"),
    ("cosh", "chlo.cosh"),
    ("erf", "chlo.erf"),
    ("erf_inv", "chlo.erf_inv"),
    ("sinh", "chlo.sinh"),
    ("tan", "chlo.tan"),
    ("topk", "chlo.top_k"),
];

impl FunctionReader<'_> {
    pub(super) fn custom_call(&mut self, operation: &MlirOp) -> Read<()> {
        let target = match operation.attributes.get("callee").or_else(|| operation.attributes.get("call_target_name")) {
            Some(Attribute::Symbol(name) | Attribute::Text(name)) => name.clone(),
            _ => return Err(malformed(operation, "a custom call names its function")),
        };
        if matches!(target.as_str(), "Sharding" | "SPMDFullToShardShape" | "SPMDShardToFullShape") {
            return Err(unsupported(
                operation,
                "here: print the program with a JAX version that uses Shardy, 0.7 or later",
            ));
        }
        if target == "ApproxTopK" {
            return self.approximate_top_k(operation);
        }
        if matches!(target.as_str(), "annotate_device_placement" | "LayoutConstraint") {
            // They say where an array is in memory.
            return self.same_as_operands(operation);
        }
        // Older exporters print operations of CHLO in this form: `@mhlo.topk`, with their attributes in a map.
        let known = MHLO.iter().find(|(name, _)| target == format!("mhlo.{name}"));
        if let Some((_, name)) = known {
            let inner = match operation.attributes.get("mhlo.attributes") {
                Some(Attribute::Map(map)) => map.clone(),
                _ => Attributes::new(),
            };
            return self.lower(&MlirOp { name: name.to_string(), attributes: inner, ..plain_copy(operation) });
        }
        if target.contains("python") {
            return Err(unsupported(operation, format!("for `@{target}`, a call of Python"))
                .help("remove `jax.debug.print` and callbacks; checks of equinox need `EQX_ON_ERROR=nan` or `off`"));
        }
        let build = at(operation);
        let operands = self.all_operands(operation)?;
        let routine = target.strip_prefix("lapack_").and_then(|name| name.strip_suffix("_ffi"));
        let routine = routine.and_then(|name| name.strip_prefix(['s', 'd', 'c', 'z'])).unwrap_or_default();
        let letter = |name: &str| -> char {
            let map =
                operation.attributes.get("mhlo.backend_config").or_else(|| operation.attributes.get("backend_config"));
            match map {
                Some(Attribute::Map(map)) => match map.get(name) {
                    Some(Attribute::Int(code)) => u8::try_from(*code).map_or(' ', char::from),
                    Some(Attribute::Bool(flag)) => {
                        if *flag {
                            'T'
                        } else {
                            'F'
                        }
                    }
                    _ => ' ',
                },
                _ => ' ',
            }
        };
        let Some(x) = operands.first().map(|operand| operand.expr.clone()) else {
            return Err(unsupported(operation, format!("for `@{target}`")));
        };
        let info = |at: usize| self_info(build, operation, at);
        let result = match routine {
            "potrf" => {
                let is_lower = letter("uplo") == 'L';
                let x = if is_lower { x } else { swapped(build, x) };
                let factor = build.call("cholesky", [x]);
                let factor = if is_lower { factor } else { swapped(build, factor) };
                build.tuple(vec![factor, info(1)])
            }
            "trsm" => {
                let Some(b) = operands.get(1) else { return Err(malformed(operation, "an operand is missing")) };
                let flag = |name: &str, yes: char| build.flag(letter(name) == yes);
                let transposes = letter("trans_x");
                let named = [
                    ("left_side", flag("side", 'L')),
                    ("lower", flag("uplo", 'L')),
                    ("transpose_a", build.flag(transposes != 'N')),
                    ("conjugate_a", build.flag(transposes == 'C')),
                    ("unit_diagonal", flag("diag", 'U')),
                ];
                build.call_with("triangular_solve", [x, b.expr.clone()], named)
            }
            "getrf" => {
                let parts = self.variable(build, "parts", build.call("lu", [x]));
                let pivots = build.binary(InfixOp::Add, build.part(parts.clone(), 1), build.int(1));
                build.tuple(vec![build.part(parts, 0), pivots, info(2)])
            }
            "geqrf" => {
                // The vectors of the reflections are not needed: `orgqr` makes Q of the matrices again.
                let of = operands[0].clone();
                let parts = build.call_with("qr", [x], [("mode", build.text("complete"))]);
                let parts = self.variable(build, "parts", parts);
                let zeros = info(1);
                self.emit_all(operation, build.tuple(vec![build.part(parts, 1), zeros]));
                if let Some(name) = Self::result_names(operation).first()
                    && let Some(value) = self.values.get_mut(name)
                {
                    value.factored = Some(Box::new(of));
                }
                return Ok(());
            }
            "orgqr" | "ungqr" => {
                let Some(of) = operands[0].factored.clone() else {
                    return Err(unsupported(operation, "for Householder vectors that are not those of a `geqrf`"));
                };
                let columns = operands[0].ty.shape.last().copied().unwrap_or(0);
                let own = of.ty.shape.last().copied().unwrap_or(0);
                let mode = if columns == own { "reduced" } else { "complete" };
                build.part(build.call_with("qr", [of.expr], [("mode", build.text(mode))]), 0)
            }
            "gesdd" | "gesvd" => {
                let values_only = letter("mode") == 'N';
                let full = build.flag(letter("mode") == 'A');
                let parts = match values_only {
                    true => build.call_with("svd", [x.clone()], [("compute_uv", build.flag(false))]),
                    false => build.call_with("svd", [x.clone()], [("full_matrices", full)]),
                };
                let parts = self.variable(build, "parts", parts);
                let all = match values_only {
                    true => vec![x, parts, info(2), info(3), info(4)],
                    false => vec![
                        x,
                        build.part(parts.clone(), 1),
                        build.part(parts.clone(), 0),
                        build.part(parts, 2),
                        info(4),
                    ],
                };
                build.tuple(all)
            }
            "syevd" | "heevd" => {
                let triangle = if letter("uplo") == 'U' { "U" } else { "L" };
                let named = [("UPLO", build.text(triangle)), ("symmetrize_input", build.flag(false))];
                let parts = self.variable(build, "parts", build.call_with("eigh", [x], named));
                build.tuple(vec![build.part(parts.clone(), 1), build.part(parts, 0), info(2)])
            }
            "geev" if letter("compute_left") != 'V' => {
                let parts = self.variable(build, "parts", build.call("eig", [x]));
                let (w, v) = (build.part(parts.clone(), 0), build.part(parts, 1));
                match operation.types.len() {
                    4 => build.tuple(vec![w, info(1), v, info(3)]),
                    5 => {
                        let part = |name: &str| build.call(name, [w.clone()]);
                        build.tuple(vec![part("real"), part("imag"), info(2), v, info(4)])
                    }
                    _ => return Err(unsupported(operation, format!("for `@{target}`"))),
                }
            }
            _ => return Err(unsupported(operation, format!("for `@{target}`"))),
        };
        self.emit_all(operation, result);
        Ok(())
    }
}

/// An operation without attributes and regions.
fn plain_copy(operation: &MlirOp) -> MlirOp {
    MlirOp {
        name: operation.name.clone(),
        results: operation.results.clone(),
        operands: operation.operands.clone(),
        attributes: Attributes::new(),
        regions: Vec::new(),
        types: operation.types.clone(),
        location: operation.location.clone(),
        span: operation.span,
    }
}

/// The error number 0, of the type of the result at a position.
fn self_info(build: Build, operation: &MlirOp, at: usize) -> Expr {
    match operation.types.get(at) {
        Some(ty) => build.call("zeros", [build.type_value(ty)]),
        None => build.int(0),
    }
}

/// The matrices transposed.
fn swapped(build: Build, x: Expr) -> Expr {
    build.call("swapaxes", [x, build.int(-1), build.int(-2)])
}
