//! Shardings of GSPMD and Shardy become axes of one mesh.

#![allow(clippy::unwrap_used)]

use spmdc_grammar::ast::ProgramNode;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::print;
use spmdc_grammar::span::FileId;

/// A function that returns its argument, which has an attribute, with declarations before it.
fn identity(declarations: &str, attribute: &str) -> Result<ProgramNode, Diagnostic> {
    let text = format!(
        "module @f {{\n{declarations}\nfunc.func public @main(%arg0: tensor<8x8xf32> {{{attribute}}}) -> tensor<8x8xf32> {{\n\
         return %arg0 : tensor<8x8xf32>\n}}\n}}"
    );
    spmdc_stablehlo::read(&text, FileId::default(), &|_| false).map(|read| read.program)
}

/// The mesh and the type of the argument.
fn layout(declarations: &str, attribute: &str) -> (String, String) {
    let text = print::program(&identity(declarations, attribute).unwrap());
    let mesh = text.lines().find(|line| line.starts_with("mesh")).unwrap_or_default().to_string();
    let ty = text.split("arg0: ").nth(1).unwrap().split(") -> ").next().unwrap().to_string();
    (mesh, ty)
}

fn gspmd(text: &str) -> (String, String) {
    layout("", &format!("mhlo.sharding = \"{text}\""))
}

#[test]
fn tiles_are_axes() {
    let one = ("mesh (d0 = 8);".to_string(), "f32[8@d0, 8@_]".to_string());
    assert_eq!(gspmd("{devices=[8,1]<=[8]}"), one);
    assert_eq!(gspmd("{devices=[8,1]0,1,2,3,4,5,6,7}"), one);
    let two = "mesh (d0 = 2, d1 = 4);".to_string();
    assert_eq!(gspmd("{devices=[2,1,4]<=[8] last_tile_dim_replicate}"), (two.clone(), "f32[8@d0, 8@_]".to_string()));
    let turned = (two, "f32[8@d1, 8@d0]".to_string());
    assert_eq!(gspmd("{devices=[4,2]<=[2,4]T(1,0)}"), turned);
    assert_eq!(gspmd("{devices=[4,2]0,4,1,5,2,6,3,7}"), turned);
}

#[test]
fn a_dimension_has_several_axes() {
    let mesh = "mesh (d0 = 2, d1 = 2, d2 = 2);".to_string();
    assert_eq!(gspmd("{devices=[2,4]<=[2,2,2]T(0,2,1)}"), (mesh, "f32[8@d0, 8@(d2, d1)]".to_string()));
}

#[test]
fn whole_values_need_no_mesh() {
    for text in ["{replicated}", "{maximal device=0}"] {
        assert_eq!(gspmd(text), (String::new(), "f32[8, 8]".to_string()));
    }
}

#[test]
fn other_devices_are_errors_that_show_the_sharding() {
    for text in ["{devices=[4,2]0,1,2,3,4,5,7,6}", "{devices=[4,2]<=[9]}", "{devices=[2,2,2]<=[8]}", "{tiles}"] {
        let error = identity("", &format!("mhlo.sharding = \"{text}\"")).unwrap_err();
        assert!(error.message.contains(text), "{}", error.message);
    }
}

#[test]
fn parts_of_axes_are_axes() {
    let mesh = "sdy.mesh @mesh = <[\"x\"=2, \"y\"=8]>";
    let (mesh, ty) = layout(mesh, "sdy.sharding = #sdy.sharding<@mesh, [{\"x\", \"y\":(2)2}, {\"y\":(1)2, ?}]>");
    assert_eq!(mesh, "mesh (x = 2, y_0 = 2, y_1 = 2, y_2 = 2);");
    assert_eq!(ty, "f32[8@(x, y_1), 8@(y_0, ?)]");
}

#[test]
fn an_axis_that_a_mesh_lacks_is_an_error() {
    let mesh = "sdy.mesh @mesh = <[\"x\"=2]>";
    for (axis, wanted) in [("\"z\"", "`z`"), ("\"x\":(1)3", "`x:(1)3`")] {
        let attribute = format!("sdy.sharding = #sdy.sharding<@mesh, [{{{axis}}}, {{}}]>");
        let error = identity(mesh, &attribute).unwrap_err();
        assert!(error.message.contains(wanted), "{}", error.message);
    }
    let error = identity(mesh, "sdy.sharding = #sdy.sharding<@other, [{\"x\"}, {}]>").unwrap_err();
    assert!(error.message.contains("`@other`"), "{}", error.message);
}
