//! The contracts between passes.
//!
//! A stage has a contract (`inspect/verify`). The result of each pass is checked against it in debug builds and under `--verify`, so that an
//! error names the pass. In release builds the layouts of each stage are checked once.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_inspect::verify::{Contract, Violation, verify_change, verify_layouts};
use spmdc_ir::program::{Block, Module};
use spmdc_layout::types::ArrayType;
use std::cell::RefCell;

/// Checks the result of each pass against the contract of its stage.
pub struct ContractChecker {
    /// Whether it checks after each pass; otherwise [`verify_layouts`] checks once for each stage.
    checks_passes: bool,
    /// The module that was checked last, and the contract that it keeps: many passes change nothing.
    checked: RefCell<Option<(Module, Contract)>>,
    broken: RefCell<Option<Broken>>,
}

/// A violated contract.
struct Broken {
    /// The first pass that violated it; None if only the layouts of the whole stage were checked.
    pass: Option<&'static str>,
    violations: Vec<Violation>,
}

/// The types of the parameters and results of a program, which no pass changes.
#[derive(Debug, PartialEq)]
pub struct EntryTypes(Vec<ArrayType>);

impl ContractChecker {
    /// A checker that checks after each pass in debug builds, and if `verify`.
    pub fn new(verify: bool) -> ContractChecker {
        ContractChecker {
            checks_passes: cfg!(debug_assertions) || verify,
            checked: RefCell::default(),
            broken: RefCell::default(),
        }
    }

    /// Checks the module that a pass has made.
    pub fn check(&self, pass: &'static str, module: &Module, contract: Contract) {
        if !self.checks_passes {
            return;
        }
        let mut checked = self.checked.borrow_mut();
        if checked.as_ref().is_some_and(|(known, by)| *by == contract && known == module) {
            return;
        }
        match verify_change(module, contract, checked.as_ref().map(|(known, _)| known)) {
            Ok(()) => *checked = Some((module.clone(), contract)),
            Err(violations) => self.broke(Some(pass), violations),
        }
    }

    /// The signature of a module before a pass; None if passes are not checked.
    pub fn signature(&self, module: &Module) -> Option<EntryTypes> {
        let Block { params, results, .. } = &module.func.body;
        let arrays = || params.iter().chain(results).map(|&value| module.func.ty(value).array.clone()).collect();
        self.checks_passes.then(|| EntryTypes(arrays()))
    }

    /// Checks that a pass has kept the signature.
    pub fn same_signature(&self, pass: &'static str, before: Option<EntryTypes>, module: &Module) {
        if before != self.signature(module) {
            let text = "the types of the program's parameters and results have changed".to_string();
            self.broke(Some(pass), vec![Violation { span: Span::default(), text }]);
        }
    }

    /// The violations up to a stage: of the passes, or of its layouts.
    pub fn stage(&self, module: &Module) -> Result<(), Vec<Diagnostic>> {
        if let Err(violations) = verify_layouts(module) {
            self.broke(None, violations);
        }
        self.take_errors().map_or(Ok(()), Err)
    }

    fn broke(&self, pass: Option<&'static str>, violations: Vec<Violation>) {
        self.broken.borrow_mut().get_or_insert(Broken { pass, violations });
    }

    /// E0999 for each violation by the first pass that violates a contract, taken out of the record; None without violations.
    pub fn take_errors(&self) -> Option<Vec<Diagnostic>> {
        self.broken.take().map(Broken::diagnostics)
    }
}

impl Broken {
    fn diagnostics(self) -> Vec<Diagnostic> {
        let error = |violation: Violation| {
            let pass = self.pass.map_or("a pass".to_string(), |pass| format!("the pass `{pass}`"));
            let message = format!("{pass} violates the invariants of its stage: {}", violation.text);
            Diagnostic::error(Code::E0999, violation.span, message)
        };
        self.violations.into_iter().map(error).collect()
    }
}
