//! Dumps are programs: that of every stage reads back as itself.

use crate::engine::{self, Failure};
use spmdc_compiler::pipeline::Compilation;
use spmdc_inspect::print;
use spmdc_ir::program::Stage;
use spmdc_runtime::data::array::HostArray;

pub fn text(failures: &[Failure]) -> String {
    failures.iter().map(|failure| format!("{} {}", failure.code, failure.message)).collect::<Vec<_>>().join("; ")
}

/// The functions that transform others, by which the text of a program is known to have derivatives or batches.
const TRANSFORMATIONS: [&str; 8] =
    ["grad(", "value_and_grad(", "vjp(", "jvp(", "vmap(", "jacobian(", "hessian(", "checkpoint("];

/// Reads the dump after differentiation of a program that has something to differentiate, and runs it: it gives the same bits as the program.
pub fn differentiated_reads_back(
    text_of_program: &str,
    mesh: &str,
    inputs: &[HostArray],
    results: &[HostArray],
) -> Result<(), String> {
    if !TRANSFORMATIONS.iter().any(|name| text_of_program.contains(name)) {
        return Ok(());
    }
    let stage = Some(Stage::Differentiated);
    let compilation =
        engine::compiled("case.spmd", text_of_program, mesh, stage).map_err(|failures| text(&failures))?;
    let module = compilation.stages.last().ok_or("no stage was reached")?;
    if module.stage != Stage::Differentiated {
        return Err(format!("the compiler stopped after `{}`", module.stage.name()));
    }
    let of_stage = Compilation { stages: vec![module.clone()], ..Compilation::default() };
    read_back(&of_stage, inputs, results, 0)
}

/// Reads the dump of every stage, and runs that of one of them: it gives the same bits as the program.
pub fn read_back(
    compilation: &Compilation,
    inputs: &[HostArray],
    results: &[HostArray],
    run: usize,
) -> Result<(), String> {
    for (number, module) in compilation.stages.iter().enumerate() {
        let dump = print::module(module);
        let again = engine::compiled("dump.spmd", &dump, "", Some(module.stage));
        let again = again.map_err(|failures| format!("the dump is not read: {}\n{dump}", text(&failures)))?;
        let printed = print::module(&again.stages[0]);
        if printed != dump {
            return Err(format!("the dump reads back as another program:\n{dump}\n{printed}"));
        }
        if number == run % compilation.stages.len() {
            let again = engine::compiled_dump(&dump).map_err(|failures| format!("{}\n{dump}", text(&failures)))?;
            let again = engine::run(&again, inputs, None).map_err(|failure| text(&[failure]))?;
            if again.results != results {
                return Err(format!("the dump of stage `{}` gives other bits:\n{dump}", module.stage.name()));
            }
        }
    }
    Ok(())
}
