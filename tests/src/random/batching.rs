//! Random calls of `vmap`, `jacobian` and `hessian`, and mapped calls of all other functions.

use super::Draw;
use super::call::Call;
use spmdc_abi::DType;

/// Transformations of which derivatives or sums are taken.
pub const NAMES: [&str; 3] = ["vmap", "jacobian", "hessian"];

/// A random call of one of them.
pub(super) fn call(name: &str, draw: &mut Draw) -> Option<Call> {
    if !NAMES.contains(&name) {
        return None;
    }
    let dtype = draw.pick(&[DType::F32, DType::F64]);
    let rank = draw.rank(1, if name == "hessian" { 2 } else { 3 });
    let shape: Vec<usize> = (0..rank).map(|_| 1 + draw.below(4)).collect();
    let body = draw.pick(&[
        "sin(p) * q",
        "cumsum(p, axis=0) * q",
        "p * sum(q)",
        "flip(p, axis=-1) * p + q",
        "where(p > q, p * 2, sin(q))",
        "reshape(p * q, (-1,))",
    ]);
    let f = format!("let f = |p, q| {body};");
    let (before, expr) = match name {
        "vmap" => {
            let loops = "let g = |p, q| { let mut u = p; for i in 0..3 { u = u * 0.5 + sum(q) * i; } if sum(u) > 0 { u } else { -u } };";
            let exprs = [
                "vmap(f)(a, b)",
                "vmap(f, in_axes=(-1, 0), out_axes=-1)(moveaxis(a, 0, -1), b)",
                "vmap(g, in_axes=(0, _))(a, b)",
            ];
            (f + loops, draw.pick(&exprs[if rank == 1 { 2 } else { 0 }..]))
        }
        "jacobian" => {
            let exprs = ["jacobian(f)(a, b)", "jacobian(f, argnums=1)(a, b)", "jacobian(|p| sum(f(p, b)))(a)"];
            (f, draw.pick(&exprs))
        }
        _ => (f, "hessian(|p| sum(f(p, b) ** 2))(a)"),
    };
    let mut call = Call::new(&[(dtype, &shape), (dtype, &shape)], expr);
    call.before = before;
    Some(call)
}

/// A function of one element, mapped over dimensions of some of its arguments.
#[derive(Clone, Debug)]
pub struct MappedCall {
    /// The call for one element.
    pub element: Call,
    /// The number of elements.
    pub size: usize,
    /// The mapped dimension of each parameter.
    pub axes: Vec<Option<usize>>,
    /// Whether dimensions are counted from the end.
    pub from_end: bool,
}

impl MappedCall {
    /// A random mapping of a call; None for a call without parameters.
    pub fn of(element: Call, draw: &mut Draw) -> Option<MappedCall> {
        let count = element.params.len();
        let surely = draw.below(count.max(1));
        let axes = element.params.iter().enumerate().map(|(at, param)| {
            let is_mapped = at == surely || draw.chance(60);
            is_mapped.then(|| draw.below(param.shape.len() + 1))
        });
        let axes: Vec<Option<usize>> = axes.collect();
        let (size, from_end) = (1 + draw.below(5), draw.chance(30));
        (count > 0).then_some(MappedCall { element, size, axes, from_end })
    }

    /// The shape of each parameter of the mapped function.
    pub fn shapes(&self) -> Vec<Vec<usize>> {
        let shape = |(param, axis): (&super::Array, &Option<usize>)| {
            let mut shape = param.shape.clone();
            axis.iter().for_each(|&axis| shape.insert(axis, self.size));
            shape
        };
        self.element.params.iter().zip(&self.axes).map(shape).collect()
    }

    /// The call of `vmap` of `f`.
    pub fn mapped(&self, names: &[&str]) -> String {
        let axis = |(axis, shape): (&Option<usize>, Vec<usize>)| match axis {
            None => "_".to_string(),
            Some(axis) if self.from_end => (*axis as i64 - shape.len() as i64).to_string(),
            Some(axis) => axis.to_string(),
        };
        let axes: Vec<String> = self.axes.iter().zip(self.shapes()).map(axis).collect();
        let args = &names[..axes.len()];
        let out = if self.from_end { -1 } else { 0 };
        format!("vmap(f, in_axes=({},), out_axes={out})({})", axes.join(", "), args.join(", "))
    }

    /// The results of `f` for each element, one after another.
    pub fn stacked(&self, names: &[&str]) -> String {
        let element = |number: usize| {
            let args = self.axes.iter().zip(names).map(|(axis, name)| match axis {
                None => name.to_string(),
                Some(axis) => format!("{name}[{}{number}]", ":, ".repeat(*axis)),
            });
            format!("f({})", args.collect::<Vec<_>>().join(", "))
        };
        let elements: Vec<String> = (0..self.size).map(element).collect();
        let out = if self.from_end { -1 } else { 0 };
        format!("stack([{}], axis={out})", elements.join(", "))
    }
}
