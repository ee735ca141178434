//! Violations of the contract of every module are detected.

mod blocks;
mod windows;

use crate::testing::typed;
use spmdc_abi::AxisSet;
use spmdc_inspect::verify::{Contract, Violation, verify, verify_change, verify_layouts};
use spmdc_ir::program::{Module, Stage};
use spmdc_layout::sharding::{Alignment, Sharding};

fn module() -> Module {
    let text = "mesh (X = 2, Y = 2);
        manual(X) fn f(x: f32[8@X]) -> f32[8@X] { x + psum(x, X)[0] }
        fn main(x: f32[8], n: i32) -> f32[8] {
          let mut y = f(x);
          for i in 0..n { y = if i > 2 { sin(y) } else { 2 * y }; }
          y
        }";
    typed(text)
}

#[test]
fn what_the_checker_makes_verifies() {
    assert_eq!(verify(&module()), Ok(()));
}

fn joined(found: Result<(), Vec<Violation>>) -> String {
    let texts = found.unwrap_err().into_iter().map(|violation| violation.text);
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn violations_are_found() {
    let broken = |change: fn(&mut Module)| {
        let (known, mut module) = (module(), module());
        change(&mut module);
        let found = verify(&module);
        assert_eq!(verify_change(&module, Contract::Stage, Some(&known)), found);
        joined(found)
    };
    let late = broken(|module| module.func.body.stmts.reverse());
    assert!(late.contains("is used where it is not defined"), "{late}");
    let open = broken(|module| module.stage = Stage::Propagated);
    assert!(open.contains("is still open"), "{open}");
    let shape = broken(|module| {
        let value = module.func.body.results[0];
        module.func.info_mut(value).ty.array.shape = vec![9];
    });
    assert!(shape.contains("is handed on as"), "{shape}");
    let partial = broken(|module| {
        module.stage = Stage::Partitioned;
        let value = module.func.body.params[0];
        module.func.info_mut(value).ty.sharding.unreduced = AxisSet::of(0);
    });
    assert!(partial.contains("enters or leaves the program as partial sums"), "{partial}");
    let aligned = broken(|module| {
        module.stage = Stage::Partitioned;
        let value = module.func.body.params[0];
        module.func.info_mut(value).ty.sharding.dims[0].alignment = Some(Alignment { size: 9, start: 1, step: 1 });
    });
    assert!(aligned.contains("enters or leaves the program in blocks of another dimension"), "{aligned}");
    let operand = broken(|module| {
        let value = module.func.body.params[0];
        module.func.info_mut(value).ty.array.shape = vec![12];
    });
    assert!(operand.contains("should be f32[12@X]"), "{operand}");
    let other = broken(|module| {
        let number = module.func.body.params[1];
        module.func.body.walk_mut(&mut |stmt| {
            if stmt.name() == "sin" {
                stmt.args[0] = number;
            }
        });
    });
    assert!(other.contains("sin"), "{other}");
    let result = broken(|module| {
        let mut last = None;
        module.func.body.walk(&mut |stmt| last = stmt.op().map_or(last, |_| Some(stmt.results[0])));
        module.func.info_mut(last.unwrap()).ty.array.shape = vec![9];
    });
    assert!(result.contains("should be"), "{result}");
}

#[test]
fn every_build_finds_an_axis_that_occurs_twice() {
    for stage in Stage::ALL {
        let mut module = module();
        assert_eq!(verify_layouts(&module), Ok(()));
        module.stage = stage;
        let value = module.func.body.stmts.last().unwrap().results[0];
        module.func.info_mut(value).ty.sharding = Sharding::closed(vec![vec![0, 1, 0]]);
        let found = joined(verify_layouts(&module));
        assert!(found.contains("f32[8@(X,Y,X)] has an axis twice"), "{found}");
    }
}
