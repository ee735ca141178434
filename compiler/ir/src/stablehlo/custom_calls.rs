//! Calls of LAPACK, as JAX prints them for CPUs.

use super::builder::{HloBuilder, signature};
use super::names::{HloElement, HloType, HloValue};
use spmdc_abi::DType;

impl HloBuilder<'_> {
    /// A function of LAPACK on the matrices in the last two dimensions of its operands. `config` are its options, and `aliased` pairs of a
    /// result and the operand whose memory it may take.
    ///
    /// Matrices are stored by columns. The batch dimensions of operands and results are the same ones; the others are needed whole.
    pub fn lapack(
        &mut self,
        function: &str,
        args: &[&HloValue],
        results: &[HloType],
        config: &str,
        batch: usize,
    ) -> Vec<HloValue> {
        let letter = match args[0].ty.element {
            HloElement::Complex(DType::F64) => "z",
            HloElement::Complex(_) => "c",
            HloElement::Real(DType::F64) => "d",
            HloElement::Real(_) => "s",
        };
        let layout = |ty: &HloType| {
            let mut order: Vec<usize> = (0..ty.rank()).rev().collect();
            // Of a matrix the rows are adjacent.
            if ty.rank() >= batch + 2 {
                order.swap(0, 1);
            }
            let shown: Vec<String> = order.iter().map(usize::to_string).collect();
            match order.as_slice() {
                [] => "dense<> : tensor<0xindex>".to_string(),
                [one] => format!("dense<{one}> : tensor<1xindex>"),
                _ => format!("dense<[{}]> : tensor<{}xindex>", shown.join(", "), order.len()),
            }
        };
        let of_args: Vec<String> = args.iter().map(|arg| layout(&arg.ty)).collect();
        let of_results: Vec<String> = results.iter().map(layout).collect();
        let rule = sharding_rule(args, results, batch);
        let names: Vec<&str> = args.iter().map(|arg| arg.name.as_str()).collect();
        let attributes = [
            "backend_config = \"\"".to_string(),
            format!("mhlo.backend_config = {{{config}}}"),
            format!("mhlo.frontend_attributes = {{num_batch_dims = \"{batch}\"}}"),
            format!("operand_layouts = [{}]", of_args.join(", ")),
            format!("result_layouts = [{}]", of_results.join(", ")),
            format!("sdy.sharding_rule = {rule}"),
        ];
        let target = format!("lapack_{letter}{function}_ffi");
        let name = self.fresh();
        let made = if results.len() == 1 { name.clone() } else { format!("{name}:{}", results.len()) };
        self.line(&format!(
            "{made} = stablehlo.custom_call @{target}({}) {{{}}} : {}",
            names.join(", "),
            attributes.join(", "),
            signature(args, results)
        ));
        HloValue::all(&name, results)
    }
}

/// The rule of Shardy for a call: the batch dimensions pass, and all others have factors of their own.
fn sharding_rule(args: &[&HloValue], results: &[HloType], batch: usize) -> String {
    let mut sizes: Vec<usize> = args[0].ty.shape[..batch].to_vec();
    let mut side = |ty: &HloType| {
        let factors = ty.shape.iter().enumerate().map(|(dim, &size)| match dim < batch {
            true => factor(dim),
            false => {
                sizes.push(size);
                factor(sizes.len() - 1)
            }
        });
        format!("[{}]", factors.collect::<Vec<String>>().join(", "))
    };
    let of_args: Vec<String> = args.iter().map(|arg| side(&arg.ty)).collect();
    let of_results: Vec<String> = results.iter().map(&mut side).collect();
    let shown = sizes.iter().enumerate().map(|(at, size)| format!("{}={size}", factor(at)));
    let shown = shown.collect::<Vec<String>>().join(", ");
    format!("#sdy.op_sharding_rule<({})->({}) {{{shown}}}, custom>", of_args.join(", "), of_results.join(", "))
}

/// The name of a factor: `i` to `z`, then `z_1` and so on.
fn factor(number: usize) -> String {
    match u8::try_from(number) {
        Ok(small) if small < 18 => char::from(b'i' + small).to_string(),
        Ok(_) | Err(_) => format!("z_{}", number - 17),
    }
}
