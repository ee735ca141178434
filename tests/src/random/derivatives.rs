//! Random derivatives.

use super::Draw;
use super::call::Call;
use spmdc_abi::DType;

/// Transformations of functions; their results depend on sums of floats.
pub const NAMES: [&str; 7] = ["grad", "value_and_grad", "vjp", "jvp", "stop_gradient", "checkpoint", "custom_vjp"];

/// A random call of a transformation. Functions are smooth, so that no rounding decides.
pub(super) fn call(name: &str, draw: &mut Draw) -> Option<Call> {
    if !NAMES.contains(&name) {
        return None;
    }
    let dtype = draw.pick(&[DType::F32, DType::F64]);
    let rank = draw.rank(1, 3);
    let shape = draw.shape(rank);
    let axis = draw.below(rank);
    // Rows that are updated and read, some of them several times.
    let rows = |draw: &mut Draw| {
        let count = if shape[0] > 0 { draw.below(6) } else { 0 };
        let rows: Vec<String> = (0..count).map(|_| draw.below(shape[0]).to_string()).collect();
        format!("i32([{}])", rows.join(", "))
    };
    let (to, from) = (rows(draw), rows(draw));
    let updated = if to.matches(',').count() == from.matches(',').count() && !to.contains("[]") && !from.contains("[]")
    {
        let operator = draw.pick(&["*= 1 +", "*=", "/= 2 + sin", "+="]);
        format!("{{ let mut h = p; h[{to}] {operator}(q[{from}]); h }}")
    } else {
        "p * q".to_string()
    };
    let parts = [
        updated,
        "sin(p) * q".to_string(),
        "tanh(p + q)".to_string(),
        "exp(-p * p) / (q * q + 1)".to_string(),
        format!("cumsum(p, axis={axis}) * q"),
        format!("flip(p, axis={axis}) * p"),
        format!("roll(p, 1, axis={axis}) + q"),
        format!("concatenate([p, 2 * q], axis={axis})"),
        format!("p * sum(q, axis={axis}, keepdims=true)"),
        format!("p - mean(p * q, axis={axis}, keepdims=true)"),
        "p.T * 3".to_string(),
        "reshape(p * q, (-1,))".to_string(),
        "where(p > q, p * 2, sin(q))".to_string(),
        "{ let mut h = p; for i in 0..3 { h = sin(h) * q + f(i); } h }"
            .replace("f(i)", &format!("{}(i)", dtype.name())),
        "{ let mut h = q; for i in 5..0 step -2 { if i == 3 { h = h * p; } else { h = cos(h); } } h }".to_string(),
        "for i in 0..3 collect { p * sin(q) }".to_string(),
        "{ let c = sin(sum(p)) > 0; if c { p * q } else { sin(p) } }".to_string(),
        "checkpoint(|a, b| tanh(sin(a) * b))(p, q)".to_string(),
    ];
    let body = draw.pick(&parts.iter().map(String::as_str).collect::<Vec<_>>()).to_string();
    let f = format!("let f = |p, q| {body};");
    let (before, expr) = match name {
        "grad" => (f, draw.pick(&["grad(|p, q| sum(sin(f(p, q))))(a, b)", "grad(|q| sum(f(a, q) ** 2))(b)"])),
        "value_and_grad" => {
            let call = "let (value, (g, h)) = value_and_grad(|p, q| sum(f(p, q)), argnums=(0, 1))(a, b);";
            (f + " " + call, draw.pick(&["value", "g", "h"]))
        }
        "vjp" => (f + " let (y, back) = vjp(f, a, b); let (g, h) = back(cos(y));", draw.pick(&["y", "g", "h"])),
        "checkpoint" => (
            f + " let step = checkpoint(f);",
            draw.pick(&[
                "grad(|p, q| sum(sin(step(p, q))))(a, b)",
                "grad(|q| sum(checkpoint(|x| step(a, x) ** 2)(q)))(b)",
            ]),
        ),
        "custom_vjp" => (
            "let f = custom_vjp(|p, q| sin(p) * q, |p, q| (sin(p) * q, (p, q)), |r, g| (g * cos(r.0), g * r.0 * r.1));"
                .to_string()
                + &rule_in_units(draw),
            draw.pick(&[
                "grad(|p, q| sum(f(p, q) * q))(a, b)",
                "grad(|p| { let mut h = p; for i in 0..2 { h = f(h, b); } sum(h) })(a)",
            ]),
        ),
        "jvp" => (f + " let (y, t) = jvp(f, (a, b), (b, a));", draw.pick(&["y", "t"])),
        _ => (f, "grad(|p, q| sum(f(p, stop_gradient(p) + q)))(a, b)"),
    };
    let mut call = Call::new(&[(dtype, &shape), (dtype, &shape)], expr);
    call.before = before;
    Some(call)
}

/// An assertion that a rule which is not the derivative of its function is used, however units contain each other.
fn rule_in_units(draw: &mut Draw) -> String {
    let mut function = "tripled".to_string();
    for _ in 0..1 + draw.below(3) {
        function = match draw.below(4) {
            0 => format!("checkpoint(|p| {function}(p))"),
            1 => format!("checkpoint(|p| {{ let r = {function}(p); r + 0 * p }})"),
            2 => format!("|p| vmap({function})(stack((p, p)))[1]"),
            _ => format!("|p| {{ let mut h = p; for i in 0..1 {{ h = ({function})(h); }} h }}"),
        };
        function = format!("({function})");
    }
    format!(
        " let tripled = custom_vjp(|p| sin(p), |p| (sin(p), ()), |r, g| (g * 3,)); \
         assert(all(grad(|p| sum({function}(p)))(a) == 3), \"a rule is not used\");"
    )
}
