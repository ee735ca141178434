//! Dumps are programs: that of every stage reads back as itself.

use crate::engine::{self, Failure};
use spmdc_compiler::pipeline::Compilation;
use spmdc_ir::print;
use spmdc_runtime::array::HostArray;

pub fn text(failures: &[Failure]) -> String {
    failures.iter().map(|failure| format!("{} {}", failure.code, failure.message)).collect::<Vec<_>>().join("; ")
}

/// Reads the dump of every stage, and runs that of one of them: it gives the same bits as the program.
pub fn read_back(
    compilation: &Compilation,
    inputs: &[HostArray],
    results: &[HostArray],
    run: usize,
) -> Result<(), String> {
    for module in &compilation.stages {
        let dump = print::module(module);
        let again = engine::compiled("dump.spmd", &dump, "", Some(module.stage));
        let again = again.map_err(|failures| format!("the dump is not read: {}\n{dump}", text(&failures)))?;
        let printed = print::module(&again.stages[0]);
        if printed != dump {
            return Err(format!("the dump reads back as another program:\n{dump}\n{printed}"));
        }
    }
    let module = &compilation.stages[run % compilation.stages.len()];
    let dump = print::module(module);
    let again =
        engine::compiled("dump.spmd", &dump, "", None).map_err(|failures| format!("{}\n{dump}", text(&failures)))?;
    let again = engine::run(&again, inputs, None).map_err(|failure| text(&[failure]))?;
    if again.results != results {
        return Err(format!("the dump of stage `{}` gives other bits:\n{dump}", module.stage.name()));
    }
    Ok(())
}
