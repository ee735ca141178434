//! The JSON form of a dump, as the language's reference describes it.

use super::plan::{collectives, flops_per_device, peak_bytes_per_device};
use crate::ir::mesh::AxisKind;
use crate::ir::{Module, Value};
use serde_json::{Value as Json, json};
use spmdc_grammar::span::Span;
use spmdc_runtime::abi::Program;

/// One object for a partitioned module; `place` gives the line and column of a span.
pub fn module_json(module: &Module, program: &Program, place: &dyn Fn(Span) -> (usize, usize)) -> Json {
    let (func, mesh) = (&module.func, &module.mesh);
    let axes: Vec<Json> = mesh
        .axes
        .iter()
        .map(|axis| {
            let kind = match axis.kind {
                AxisKind::Auto => "auto",
                AxisKind::Explicit => "explicit",
                AxisKind::Manual => "manual",
            };
            json!({"name": axis.name, "size": axis.size, "type": kind})
        })
        .collect();
    let binding = |name: &str, value: Value| {
        let ty = func.ty(value);
        json!({"name": name, "type": ty.display(mesh), "local_shape": ty.block_shape(mesh)})
    };
    let params = func.params.iter().zip(&func.body.params);
    let params: Vec<Json> = params.map(|(param, &value)| binding(&param.name, value)).collect();
    let results = func.results.iter().zip(&func.body.results);
    let results: Vec<Json> = results.map(|(result, &value)| binding(&result.name, value)).collect();
    let values: Vec<Json> = func
        .values
        .iter()
        .filter(|info| info.ty.sharding.is_closed())
        .filter_map(|info| {
            let name = info.name.as_ref()?;
            let (line, _) = place(info.origin.span);
            Some(json!({"name": name, "type": info.ty.display(mesh), "line": line}))
        })
        .collect();
    let collectives: Vec<Json> = collectives(module)
        .into_iter()
        .map(|collective| {
            let (line, column) = place(collective.span);
            json!({
                "kind": collective.kind.name(),
                "axes": collective.axes,
                "group_size": collective.group_size,
                "dtype": collective.dtype.name(),
                "local_shape": collective.local_shape,
                "bytes": collective.bytes,
                "trips": collective.trips,
                "line": line,
                "column": column,
                "reason": collective.reason,
            })
        })
        .collect();
    json!({
        "mesh": axes,
        "entry": func.name,
        "params": params,
        "results": results,
        "values": values,
        "collectives": collectives,
        "flops_per_device": flops_per_device(module),
        "peak_bytes_per_device": peak_bytes_per_device(program),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::check::sources::{NoSources, SourceSet};
    use crate::ir::Stage;
    use crate::pipeline::{Options, compile};
    use spmdc_grammar::span::line_column;

    #[test]
    fn a_collective_in_a_loop_says_where_and_how_often() {
        let source = "mesh (X = 2, Y = 4);\nfn main(x: f32[8@X, 16@Y]) {\n  let mut t = 0.0;\n  for i in 0..5 {\n    \
                      let s = sum(x * t);\n    t = s;\n  }\n  t\n}";
        let (set, _) = SourceSet::load("test.spmd", source, &NoSources);
        let compilation = compile(&set, &Options::default()).unwrap();
        let module = compilation.stage(Stage::Partitioned).unwrap();
        let place = |span: Span| line_column(source, span.start as usize);
        let json = module_json(module, compilation.program.as_ref().unwrap(), &place);
        let found = &json["collectives"][0];
        assert_eq!(found["kind"], "all_reduce");
        assert_eq!(found["axes"], json!(["X", "Y"]));
        assert_eq!((&found["group_size"], &found["trips"], &found["line"]), (&json!(8), &json!(5), &json!(5)));
        assert_eq!(found["bytes"], 4);
        assert_eq!(json["collectives"].as_array().unwrap().len(), 1);
        assert_eq!(json["params"][0], json!({"name": "x", "type": "f32[8@X,16@Y]", "local_shape": [4, 4]}));
        assert!(json["values"].as_array().unwrap().iter().any(|value| value["name"] == "s" && value["line"] == 5));
    }
}
