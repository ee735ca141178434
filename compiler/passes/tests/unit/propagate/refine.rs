//! Tests of `propagate::refine`: axes that are cut into parts.

use crate::testing::typed;
use spmdc_inspect::print;
use spmdc_passes::propagate::refine::{Cuts, Refined, both};

fn refined(text: &str, cuts: &[(u8, &[usize])]) -> Option<Refined> {
    let cuts = cuts.iter().map(|(axis, cuts)| (*axis, cuts.to_vec())).collect();
    Refined::new(&typed(text), &cuts)
}

#[test]
fn parts_stand_where_the_axis_stood() {
    let text = "mesh (X = 2, Y = 12, Z = 2);\nfn main(x: f32[24@(Z, Y), 8@X]) { x }";
    let refined = refined(text, &[(1, &[2, 6])]).unwrap();
    let dump = print::module(&refined.module);
    assert!(dump.contains("mesh (X = 2, Y_0 = 2, Y_1 = 3, Y_2 = 2, Z = 2);"), "{dump}");
    assert!(dump.contains("x: f32[24@(Z,Y_0,Y_1,Y_2),8@X]"), "{dump}");
    let (mesh, x) = (&refined.module.mesh, refined.module.func.ty(refined.module.func.body.params[0]));
    assert_eq!((x.display(mesh).as_str(), mesh.whole()), ("f32[24@(Z,Y),8@X]", typed(text).mesh));
    assert_eq!((mesh.names(&[2, 3]), mesh.names(&[1, 3, 2])), (vec!["Y_1", "Y_2"], vec!["Y_0", "Y_2", "Y_1"]));
    assert_eq!(refined.of_wholes(&Cuts::from([(2, vec![3])])), Cuts::from([(1, vec![6])]));
}

#[test]
fn names_are_new_ones() {
    let text = "mesh (Y = 4, Y_1 = 2);\nfn main(Y__0: f32[8@Y]) { Y__0 }";
    let dump = print::module(&refined(text, &[(0, &[2])]).unwrap().module);
    assert!(dump.contains("mesh (Y___0 = 2, Y___1 = 2, Y_1 = 2);"), "{dump}");
}

#[test]
fn explicit_axes_and_printed_places_are_not_cut() {
    let cut = |text: &str| refined(text, &[(0, &[2])]).is_some();
    assert!(cut("mesh (Y = 4);\nfn main(x: f32[8@Y]) { reshard(x, P(_)) }"));
    assert!(cut("mesh (Y = 4, X: explicit = 2);\nfn main(x: f32[8@Y], y: f32[4@X]) { outer(x, y, out=P(Y, _)) }"));
    assert!(!cut("mesh (Y: explicit = 4);\nfn main(x: f32[8@Y]) { x }"));
    assert!(cut("mesh (Y = 4);\nfn main(x: f32[8@Y]) { show_sharding(x); x }"));
    let manual =
        |body: &str| format!("mesh (Y = 4);\nmanual fn f(x: f32[8@Y]) {{ {body} }}\nfn main(x: f32[8@Y]) {{ f(x) }}");
    assert!(cut(&manual("psum(x * f32(axis_index(Y)), Y)")));
    assert!(!cut(&manual("print(x); psum(x, Y)")));
    assert!(!cut("mesh (Y = 5);\nfn main(x: f32[8@Y]) { x }"));
}

#[test]
fn cuts_join_where_they_divide() {
    let cuts = |a: &[usize], b: &[usize]| both(&Cuts::from([(0, a.to_vec())]), &Cuts::from([(0, b.to_vec())]));
    assert_eq!(cuts(&[4], &[2]), Cuts::from([(0, vec![2, 4])]));
    assert_eq!(cuts(&[2], &[3]), Cuts::from([(0, vec![2])]));
}
