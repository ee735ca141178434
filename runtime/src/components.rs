//! The code of the runtime's components, and how a program finds the components that it needs.
//!
//! Each component is a static variable with a symbol of its own. The object of a built program refers to the symbols of its components, and
//! the linker drops the others with all code that only they refer to. So nothing that every program runs may refer to a component, or
//! to its code, other than through [`Components`].

use std::collections::BTreeMap;
use std::io::Write;
use std::marker::PhantomData;

use crate::check::ProgramChecker;
use crate::collectives::reduce::{CombineFn, combine_function};
use crate::gemm;
use crate::inputs::{self, Argument, Source};
use crate::library::matrix::MatrixCalls;
use crate::library::rows_and_transfers::{RowReads, TransferEnds};
use crate::library::scatter::Scatters;
use crate::library::sort::SortCalls;
use crate::library::transform::Transforms;
use crate::load::{Loader, PrintedText};
use crate::pieces::LocalBlocks;
use crate::progress::{self, LoopProgress};
use crate::report::RunReport;
use crate::session::Session;
use crate::trap::RunError;
use spmdc_abi::words::counted;
use spmdc_abi::{Binding, Component, DType, GemmStep, Image, Kernels, LibraryStep, Program, ReduceOp, ReduceStep};

/// A component with its code.
pub struct ComponentCode {
    component: Component,
    code: ComponentKind,
}

#[derive(Clone, Copy)]
enum ComponentKind {
    Product(StepCode<GemmStep>),
    /// None if the type does not support the operation.
    Reduction(Option<CombineFn>),
    Library(StepCode<LibraryStep>),
    Prints(PrintFn),
    Inputs(InputsCode),
    Progress(ShowFn),
}

/// How a step is checked, and how it is turned into operations.
pub(crate) struct StepCode<S> {
    check: fn(&ProgramChecker<'_>, &S) -> Result<(), RunError>,
    load: fn(&mut Loader<'_>, &S) -> Result<(), RunError>,
}

impl<S> Clone for StepCode<S> {
    fn clone(&self) -> StepCode<S> {
        *self
    }
}

impl<S> Copy for StepCode<S> {}

impl<S> StepCode<S> {
    pub fn check(self, checker: &ProgramChecker<'_>, step: &S) -> Result<(), RunError> {
        (self.check)(checker, step)
    }

    pub fn load(self, loader: &mut Loader<'_>, step: &S) -> Result<(), RunError> {
        (self.load)(loader, step)
    }
}

/// Turns a text into operations.
type PrintFn = fn(&mut Loader<'_>, &PrintedText<'_>) -> Result<(), RunError>;

/// How arguments become the elements of parameters.
#[derive(Clone, Copy)]
pub(crate) struct InputsCode {
    /// See [`inputs::bind_blocks`].
    pub bind: BindFn,
    /// See [`Session::give`].
    pub give: fn(&mut Session, usize, Source) -> Result<(), RunError>,
}

type BindFn = fn(&[Binding], &[Argument], Option<&LocalBlocks>) -> Result<Vec<Source>, RunError>;

/// Shows the progress of a run: see [`progress::shown`].
type ShowFn = fn(bool, &LoopProgress, &mut dyn Write, &mut dyn FnMut(&mut dyn Write) -> RunResult) -> RunResult;

/// The end of a run.
pub(crate) type RunResult = Result<RunReport, RunError>;

/// A component with its symbol. Each is a static variable, of which nothing else in executables has the address.
macro_rules! component {
    ($symbol:expr, $component:expr, $code:expr) => {{
        // SAFETY: every symbol with this prefix is of the runtime, and there is one of this name.
        #[unsafe(export_name = $symbol)]
        static CODE: ComponentCode = ComponentCode { component: $component, code: $code };
        &CODE
    }};
}

macro_rules! product {
    ($name:literal, $dtype:ident, $multiply:path) => {
        component!(
            concat!("spmd_products_", $name),
            Component::Products(DType::$dtype),
            ComponentKind::Product(StepCode {
                check: |checker, step| checker.product(step),
                load: |loader, step| loader.product(step, $multiply),
            })
        )
    };
}

/// A family of functions.
macro_rules! library {
    ($symbol:expr, $component:expr, $code:expr) => {
        component!(
            $symbol,
            $component,
            ComponentKind::Library(StepCode {
                check: |checker, step| checker.library(step, const { &$code }),
                load: |loader, step| loader.library(step, const { &$code }),
            })
        )
    };
}

macro_rules! transforms {
    ($name:literal, $dtype:ident, $element:ty) => {
        library!(
            concat!("spmd_transforms_", $name),
            Component::Transforms(DType::$dtype),
            Transforms::<$element>(PhantomData)
        )
    };
}

macro_rules! reduction {
    ($name:literal, $dtype:ident, $op_name:literal, $op:ident) => {
        component!(
            concat!("spmd_reductions_", $name, "_", $op_name),
            Component::Reductions(DType::$dtype, ReduceOp::$op),
            ComponentKind::Reduction(const { combine_function(DType::$dtype, ReduceOp::$op) })
        )
    };
}

macro_rules! scatter {
    ($name:literal, $dtype:ident, $op_name:literal, $op:expr) => {
        library!(
            concat!("spmd_scatters_", $name, "_", $op_name),
            Component::Scatters(DType::$dtype, $op),
            Scatters::new(DType::$dtype, $op)
        )
    };
}

/// The reductions and updates of an element type.
macro_rules! of_type {
    ($name:literal, $dtype:ident) => {
        &[
            reduction!($name, $dtype, "sum", Sum),
            reduction!($name, $dtype, "product", Product),
            reduction!($name, $dtype, "max", Max),
            reduction!($name, $dtype, "min", Min),
            reduction!($name, $dtype, "and", And),
            reduction!($name, $dtype, "or", Or),
            scatter!($name, $dtype, "replace", None),
            scatter!($name, $dtype, "sum", Some(ReduceOp::Sum)),
            scatter!($name, $dtype, "product", Some(ReduceOp::Product)),
            scatter!($name, $dtype, "max", Some(ReduceOp::Max)),
            scatter!($name, $dtype, "min", Some(ReduceOp::Min)),
            scatter!($name, $dtype, "and", Some(ReduceOp::And)),
            scatter!($name, $dtype, "or", Some(ReduceOp::Or)),
        ]
    };
}

/// All components. Only programs that run in the process of their compiler refer to this table.
static ALL: &[&[&ComponentCode]] = &[
    &[product!("f32", F32, gemm::product_f32), product!("f64", F64, gemm::product_f64)],
    of_type!("bool", Bool),
    of_type!("i8", I8),
    of_type!("i16", I16),
    of_type!("i32", I32),
    of_type!("i64", I64),
    of_type!("u8", U8),
    of_type!("u16", U16),
    of_type!("u32", U32),
    of_type!("u64", U64),
    of_type!("f8e4m3", F8e4m3),
    of_type!("f8e5m2", F8e5m2),
    of_type!("f16", F16),
    of_type!("bf16", Bf16),
    of_type!("f32", F32),
    of_type!("f64", F64),
    of_type!("key", Key),
    &[
        library!("spmd_sorts", Component::Sorts, SortCalls),
        transforms!("f32", F32, f32),
        transforms!("f64", F64, f64),
        library!("spmd_matrices", Component::Matrices, MatrixCalls),
        component!(
            "spmd_streams",
            Component::Streams,
            ComponentKind::Library(StepCode {
                check: |checker, step| checker.library(step, &RowReads),
                load: |loader, step| loader.read_rows(step),
            })
        ),
        component!(
            "spmd_transfers",
            Component::Transfers,
            ComponentKind::Library(StepCode {
                check: |checker, step| checker.library(step, &TransferEnds),
                load: |loader, step| loader.transfer(step),
            })
        ),
        component!("spmd_prints", Component::Prints, ComponentKind::Prints(|loader, text| loader.print(text))),
        component!(
            "spmd_inputs",
            Component::Inputs,
            ComponentKind::Inputs(InputsCode { bind: inputs::bind_blocks, give: Session::give })
        ),
        component!("spmd_progress", Component::Progress, ComponentKind::Progress(progress::shown)),
    ],
];

/// The code of a program: its kernels, and the components of the runtime that it needs.
#[derive(Clone)]
pub struct ProgramCode {
    /// The kernels, in the order of [`Program::kernels`].
    pub kernels: Kernels,
    /// The components.
    pub components: Components,
}

impl ProgramCode {
    /// The code of a program that runs in the process of its compiler, where all components are.
    pub fn in_process(kernels: Kernels) -> ProgramCode {
        ProgramCode { kernels, components: Components::all() }
    }
}

/// The components that a program is linked with.
#[derive(Clone)]
pub struct Components(BTreeMap<Component, ComponentKind>);

impl Components {
    /// All components, for a program that runs in the process of its compiler.
    pub fn all() -> Components {
        Components(ALL.iter().copied().flatten().map(|it| (it.component, it.code)).collect())
    }

    /// The components of an image: those of the program in it, in their order.
    ///
    /// # Safety
    /// The image must be as the compiler made it.
    pub(crate) unsafe fn of_image(image: &Image, program: &Program) -> Result<Components, RunError> {
        let needed = program.components();
        if needed.len() as u64 != image.component_count {
            return Err(RunError::internal(format!(
                "the program needs {} of the runtime, but {} are linked",
                counted(needed.len(), "component"),
                image.component_count
            )));
        }
        let mut linked = BTreeMap::new();
        for (at, component) in needed.into_iter().enumerate() {
            // SAFETY: as promised by the caller, the table has the address of a component for each that the program needs.
            let found = unsafe { &**image.components.cast::<*const ComponentCode>().add(at) };
            if found.component != component {
                return Err(not_linked(component));
            }
            linked.insert(component, found.code);
        }
        debug_assert_eq!(linked.len() as u64, image.component_count, "each component is linked once");
        Ok(Components(linked))
    }

    fn find(&self, component: Component) -> Result<ComponentKind, RunError> {
        self.0.get(&component).copied().ok_or_else(|| not_linked(component))
    }

    /// The code of a product.
    pub(crate) fn product(&self, step: &GemmStep) -> Result<StepCode<GemmStep>, RunError> {
        let component = step.component();
        let ComponentKind::Product(code) = self.find(component)? else { return Err(not_linked(component)) };
        Ok(code)
    }

    /// The loop of a reduction.
    pub(crate) fn reduction(&self, step: &ReduceStep) -> Result<CombineFn, RunError> {
        let component = step.component();
        let ComponentKind::Reduction(code) = self.find(component)? else { return Err(not_linked(component)) };
        code.ok_or_else(|| {
            let dtype = step.to.layout.dtype.name();
            RunError::internal(format!("{:?} is not defined for {dtype}", step.op)).at(step.site)
        })
    }

    /// The code of a step in the form of a library function.
    pub(crate) fn library(&self, step: &LibraryStep) -> Result<StepCode<LibraryStep>, RunError> {
        let component = step.component();
        let ComponentKind::Library(code) = self.find(component)? else { return Err(not_linked(component)) };
        Ok(code)
    }

    /// The code of texts.
    pub(crate) fn prints(&self) -> Result<PrintFn, RunError> {
        let ComponentKind::Prints(code) = self.find(Component::Prints)? else {
            return Err(not_linked(Component::Prints));
        };
        Ok(code)
    }

    /// The code of arguments, for a program with parameters.
    pub(crate) fn inputs(&self) -> Result<InputsCode, RunError> {
        let ComponentKind::Inputs(code) = self.find(Component::Inputs)? else {
            return Err(not_linked(Component::Inputs));
        };
        Ok(code)
    }

    /// Shows the progress of a run; None for a program without loops whose progress is known.
    pub(crate) fn progress(&self) -> Option<ShowFn> {
        match self.0.get(&Component::Progress)? {
            ComponentKind::Progress(code) => Some(*code),
            ComponentKind::Product(_)
            | ComponentKind::Reduction(_)
            | ComponentKind::Library(_)
            | ComponentKind::Prints(_)
            | ComponentKind::Inputs(_) => None,
        }
    }
}

fn not_linked(component: Component) -> RunError {
    RunError::internal(format!("the component `{}` of the runtime is not linked", component.symbol()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_has_its_symbol_and_its_code() {
        let Components(all) = Components::all();
        assert_eq!(all.len(), ALL.iter().copied().flatten().count(), "each is in the table once");
        for dtype in DType::ALL {
            for op in ReduceOp::ALL {
                assert!(all.contains_key(&Component::Reductions(dtype, op)), "{dtype:?} {op:?}");
                assert!(all.contains_key(&Component::Scatters(dtype, Some(op))), "{dtype:?} {op:?}");
            }
            assert!(all.contains_key(&Component::Scatters(dtype, None)), "{dtype:?}");
        }
        for (component, code) in all {
            let fits = match component {
                Component::Products(_) => matches!(code, ComponentKind::Product(_)),
                Component::Reductions(..) => matches!(code, ComponentKind::Reduction(_)),
                Component::Scatters(..)
                | Component::Sorts
                | Component::Transforms(_)
                | Component::Matrices
                | Component::Streams
                | Component::Transfers => matches!(code, ComponentKind::Library(_)),
                Component::Prints => matches!(code, ComponentKind::Prints(_)),
                Component::Inputs => matches!(code, ComponentKind::Inputs(_)),
                Component::Progress => matches!(code, ComponentKind::Progress(_)),
            };
            assert!(fits, "{component:?} has the code of another one");
        }
    }

    #[test]
    fn a_missing_component_is_named() {
        let none = Components(BTreeMap::new());
        let error = none.inputs().err();
        assert_eq!(error.map(|error| error.message), Some(not_linked(Component::Inputs).message));
        assert!(not_linked(Component::Scatters(DType::Bf16, None)).message.contains("`spmd_scatters_bf16_replace`"));
    }
}
