//! `x[i]`: the elements at an index.

use crate::indexing::plan::{IndexItem, Taken, plan};
use crate::indexing::rows;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::program::Value;
use spmdc_ops::dynamic_slice::DynamicSlice;
use spmdc_ops::gather::Gather;
use spmdc_ops::index::Index;
use spmdc_ops::reshape::reshape;
use spmdc_ops::slice::{SliceRange, slice};

/// `x[items]`
pub fn indexed(build: &mut CallBuilder, value: Value, items: &[IndexItem], span: Span) -> Result<Value, Diagnostic> {
    if build.ty(value).array.is_stream {
        return rows::index(build, value, items, span);
    }
    let shape = build.ty(value).shape().to_vec();
    let plan = plan(build, &shape, items, span)?;
    let ranges: Vec<SliceRange> = plan.taken.iter().zip(&shape).map(|(taken, &size)| taken.range(size)).collect();
    let mut value = slice(build, value, &ranges)?;
    let has_window = plan.taken.iter().any(|taken| matches!(taken, Taken::Window(..)));
    // Dimensions, with the number of elements that remain of each. Beside arrays dynamic scalars are index arrays, too.
    let mut dims = Vec::new();
    let mut args = vec![value];
    for (dim, taken) in plan.taken.iter().enumerate() {
        let (place, len) = match taken {
            Taken::Dynamic(place) if !plan.has_arrays() => (*place, 1),
            Taken::Window(place, len) => (*place, *len),
            Taken::Dynamic(_) | Taken::Places(_) | Taken::Range(_) | Taken::Fixed(_) => continue,
        };
        dims.push((dim, len));
        args.push(place);
    }
    let (of_arrays, at, arrays) = plan.gathered();
    let gather = |build: &mut CallBuilder, value: Value| {
        build.emit1(Gather::new(of_arrays.clone(), Vec::new(), at), &[&[value], &arrays[..]].concat())
    };
    // The smaller result first.
    let sizes = build.ty(value).shape().to_vec();
    let all = |dims: &[usize]| dims.iter().map(|&dim| sizes[dim]).product::<usize>();
    let windows: usize = dims.iter().map(|&(_, len)| len).product();
    let cut: Vec<usize> = dims.iter().map(|&(dim, _)| dim).collect();
    let places: usize = plan.places.iter().product();
    if has_window && plan.has_arrays() && places.saturating_mul(all(&cut)) < windows.saturating_mul(all(&of_arrays)) {
        value = gather(build, value)?;
        let kept: Vec<usize> = (0..sizes.len()).filter(|dim| !of_arrays.contains(dim)).collect();
        let moved = |dim: usize| {
            let own = kept.iter().position(|&other| other == dim).expect("an index array is of another dimension");
            if own < at { own } else { own + plan.places.len() }
        };
        args[0] = value;
        let dims = dims.into_iter().map(|(dim, len)| (moved(dim), len)).collect();
        value = build.emit1(DynamicSlice { dims }, &args)?;
        return reshape(build, value, &plan.result_shape());
    }
    if has_window {
        value = build.emit1(DynamicSlice { dims }, &args)?;
    } else if !dims.is_empty() {
        let dims = dims.into_iter().map(|(dim, _)| dim).collect();
        value = build.emit1(Index { dims }, &args)?;
    }
    if plan.has_arrays() {
        value = gather(build, value)?;
    }
    reshape(build, value, &plan.result_shape())
}
