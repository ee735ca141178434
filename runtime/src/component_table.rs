//! The table of the runtime's components: the code of each, under a symbol of its own.
//!
//! The object of a built program refers to the symbols of its components, and the linker drops the others with all code that only they refer
//! to. So no other file of the runtime refers to this one, and nothing that every program runs may refer to the code of a component other
//! than through [`Components`].

use std::marker::PhantomData;
use std::num::Wrapping;

use crate::check::{CheckFn, ProductChecks};
use crate::collectives::reduce::{CombineFn, combine_function};
use crate::components::{ComponentCode, Components, ProgramCode};
use crate::data::inputs;
use crate::errors::trap::RunError;
use crate::library::gemm::{self, sums};
use crate::library::matrix::MatrixCalls;
use crate::library::packed_products;
use crate::library::rows_and_transfers::{RowReads, TransferEnds};
use crate::library::scatter::Scatters;
use crate::library::sort::SortCalls;
use crate::library::transform::Transforms;
use crate::load::{LoadFn, PrintFn, ProductCode};
use crate::run::report::RunOptions;
use crate::run::session::{InputsCode, Session};
use crate::text::progress::{self, ShowFn};
use spmdc_abi::{Component, DType, Kernels, LibraryStep, Program, ReduceOp};

/// A component with its symbol. Each is a static variable, of which nothing else in executables has the address.
macro_rules! component {
    ($symbol:expr, $component:expr, $code:expr) => {
        component!($symbol, $component, $code, &())
    };
    ($symbol:expr, $component:expr, $code:expr, $check:expr) => {{
        // SAFETY: every symbol with this prefix is of the runtime, and there is one of this name.
        #[unsafe(export_name = $symbol)]
        static CODE: ComponentCode = ComponentCode { component: $component, check: $check, code: $code };
        &CODE
    }};
}

macro_rules! product {
    ($name:literal, $dtype:ident, $multiply:path, $type:ty) => {
        component!(
            concat!("spmd_products_", $name),
            Component::Products(DType::$dtype),
            &ProductCode {
                product: |loader, step| loader.product(step, $multiply),
                tiles: |loader, step| loader.tiles(step, $multiply),
                sum: |loader, step| loader.sum(step, ($multiply, sums::add_rows::<$type>)),
            },
            &ProductChecks {
                product: |checker, step| checker.product(step),
                tiles: |checker, step| checker.tiles(step),
                sum: |checker, step| checker.sum(step),
            }
        )
    };
}

/// A family of functions.
macro_rules! library {
    ($symbol:expr, $component:expr, $code:expr) => {
        component!(
            $symbol,
            $component,
            &((|loader, step| loader.library(step, const { &$code })) as LoadFn<LibraryStep>),
            &((|checker, step| checker.library(step, const { &$code })) as CheckFn<LibraryStep>)
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
            &(const { combine_function(DType::$dtype, ReduceOp::$op) } as Option<CombineFn>)
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
    &[
        product!("f32", F32, gemm::product_f32, f32),
        product!("f64", F64, gemm::product_f64, f64),
        product!("bf16", Bf16, packed_products::product_bf16, f32),
        product!("i8", I8, packed_products::product_i8, Wrapping<i32>),
        product!("i16", I16, packed_products::product_i16, Wrapping<i32>),
        product!("i32", I32, packed_products::product_i32, Wrapping<i32>),
        product!("i64", I64, packed_products::product_i64, Wrapping<i64>),
    ],
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
            &((|loader, step| loader.read_rows(step)) as LoadFn<LibraryStep>),
            &((|checker, step| checker.library(step, &RowReads)) as CheckFn<LibraryStep>)
        ),
        component!(
            "spmd_transfers",
            Component::Transfers,
            &((|loader, step| loader.transfer(step)) as LoadFn<LibraryStep>),
            &((|checker, step| checker.library(step, &TransferEnds)) as CheckFn<LibraryStep>)
        ),
        component!("spmd_prints", Component::Prints, &((|loader, text| loader.print(text)) as PrintFn)),
        component!("spmd_inputs", Component::Inputs, &InputsCode { bind: inputs::bind_all, give: Session::give }),
        component!("spmd_progress", Component::Progress, &(progress::shown as ShowFn)),
    ],
];

/// The code of a program that runs in the process of its compiler, where all components are.
pub fn in_process(kernels: Kernels) -> ProgramCode {
    ProgramCode { kernels, components: Components::of(ALL.iter().copied().flatten().copied()) }
}

impl Session {
    /// Loads a program that runs in the process of its compiler: as [`Session::load_in`], with all components.
    pub fn load(program: Program, kernels: Kernels, options: RunOptions) -> Result<Session, RunError> {
        Session::load_in(None, program, in_process(kernels), options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_has_its_symbol_and_its_code() {
        let all = Components::of(ALL.iter().copied().flatten().copied());
        assert_eq!(all.len(), ALL.iter().copied().flatten().count(), "each is in the table once");
        for dtype in DType::ALL {
            for op in ReduceOp::ALL {
                assert!(all.code::<Option<CombineFn>>(Component::Reductions(dtype, op)).is_ok(), "{dtype:?} {op:?}");
                assert!(is_library(&all, Component::Scatters(dtype, Some(op))), "{dtype:?} {op:?}");
            }
            assert!(is_library(&all, Component::Scatters(dtype, None)), "{dtype:?}");
        }
        for component in ALL.iter().copied().flatten().map(|code| code.component) {
            let fits = match component {
                Component::Products(_) => {
                    all.code::<ProductCode>(component).is_ok() && all.check::<ProductChecks>(component).is_ok()
                }
                Component::Reductions(..) => all.code::<Option<CombineFn>>(component).is_ok(),
                Component::Scatters(..)
                | Component::Sorts
                | Component::Transforms(_)
                | Component::Matrices
                | Component::Streams
                | Component::Transfers => is_library(&all, component),
                Component::Prints => all.code::<PrintFn>(component).is_ok(),
                Component::Inputs => all.code::<InputsCode>(component).is_ok(),
                Component::Progress => all.code::<ShowFn>(component).is_ok(),
            };
            assert!(fits, "{component:?} has the code of another one");
        }
    }

    fn is_library(all: &Components, component: Component) -> bool {
        let checks = all.check::<CheckFn<LibraryStep>>(component).is_ok();
        checks && all.code::<LoadFn<LibraryStep>>(component).is_ok()
    }
}
