//! The components of the runtime that a program is linked with, and how it finds their code.
//!
//! Each component is a static variable with a symbol of its own, in [`component_table`](crate::component_table). The code of a component has a
//! type that only its users know: this file names none of them.

use std::any::Any;
use std::collections::BTreeMap;

use crate::errors::trap::RunError;
use spmdc_abi::words::counted;
use spmdc_abi::{Component, Image, Kernels, Program};

/// A component with its code.
pub struct ComponentCode {
    pub(crate) component: Component,
    /// The check of a step that needs the component; nothing for components of no step.
    pub(crate) check: &'static (dyn Any + Send + Sync),
    /// The function of the component, or several.
    pub(crate) code: &'static (dyn Any + Send + Sync),
}

/// The code of a program: its kernels, and the components of the runtime that it needs.
#[derive(Clone)]
pub struct ProgramCode {
    /// The kernels, in the order of [`Program::kernels`].
    pub kernels: Kernels,
    /// The components.
    pub components: Components,
}

/// The components that a program is linked with.
#[derive(Clone)]
pub struct Components(BTreeMap<Component, &'static ComponentCode>);

impl Components {
    /// These components.
    pub(crate) fn of(components: impl Iterator<Item = &'static ComponentCode>) -> Components {
        Components(components.map(|code| (code.component, code)).collect())
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
            // SAFETY: as promised by the caller, the table has the address of a static component for each that the program needs.
            let found: &'static ComponentCode = unsafe { &**image.components.cast::<*const ComponentCode>().add(at) };
            if found.component != component {
                return Err(not_linked(component));
            }
            linked.insert(component, found);
        }
        debug_assert_eq!(linked.len() as u64, image.component_count, "each component is linked once");
        Ok(Components(linked))
    }

    /// The number of components.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The check of the steps of a component. An error if it is not linked, or has a check of another type.
    pub(crate) fn check<F: Copy + 'static>(&self, component: Component) -> Result<F, RunError> {
        let check = self.0.get(&component).and_then(|found| found.check.downcast_ref());
        check.copied().ok_or_else(|| not_linked(component))
    }

    /// The code of a component. An error if it is not linked, or has code of another type.
    pub(crate) fn code<F: Copy + 'static>(&self, component: Component) -> Result<F, RunError> {
        let code = self.0.get(&component).and_then(|found| found.code.downcast_ref());
        code.copied().ok_or_else(|| not_linked(component))
    }
}

fn not_linked(component: Component) -> RunError {
    RunError::internal(format!("the component `{}` of the runtime is not linked", component.symbol()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use spmdc_abi::DType;

    #[test]
    fn a_missing_component_is_named() {
        let none = Components(BTreeMap::new());
        let error = none.code::<fn()>(Component::Inputs).err();
        assert_eq!(error.map(|error| error.message), Some(not_linked(Component::Inputs).message));
        assert!(not_linked(Component::Scatters(DType::Bf16, None)).message.contains("`spmd_scatters_bf16_replace`"));
    }
}
