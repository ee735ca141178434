//! The layouts of values, for drawings in notebooks.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use spmdc_compiler::pipeline::Compilation;
use spmdc_compiler::report::named::shown_values;
use spmdc_driver::errors::{CommandError, absent};
use spmdc_driver::reports::meshes::axes;
use spmdc_ir::program::Stage;
use spmdc_layout::draw::{BlockTable, remarks, tables};

/// The layout of one value.
pub struct DrawnValue {
    mesh: String,
    name: String,
    ty: String,
    tables: Vec<BlockTable>,
    remarks: Vec<String>,
}

/// The layouts of parameters, named values and results of all meshes. The compilation has reached propagation.
pub fn layouts(compilation: &Compilation) -> Result<Vec<DrawnValue>, CommandError> {
    let mut drawn = Vec::new();
    for of_mesh in compilation.of_meshes() {
        let module = of_mesh.stage(Stage::Propagated).ok_or_else(|| absent("layouts"))?;
        for (name, value) in shown_values(module) {
            let ty = module.func.ty_in_program(value);
            let (mut blocks, idle) = tables(&ty, &module.mesh);
            let mut said = remarks(&ty, &module.mesh);
            if ty.array.is_stream {
                (blocks, said) = (Vec::new(), vec!["stays in its file".to_string()]);
            } else {
                said.extend(idle);
            }
            let (mesh, ty) = (axes(&module.mesh).join(", "), ty.display(&module.mesh).to_string());
            drawn.push(DrawnValue { mesh, name, ty, tables: blocks, remarks: said });
        }
    }
    Ok(drawn)
}

/// The layouts as dictionaries.
pub fn listed<'py>(py: Python<'py>, values: Vec<DrawnValue>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for DrawnValue { mesh, name, ty, tables, remarks } in values {
        let drawn = PyList::empty(py);
        for BlockTable { head, side, above, cells } in tables {
            let table = PyDict::new(py);
            table.set_item("head", head)?;
            table.set_item("side", side)?;
            table.set_item("above", above)?;
            table.set_item("cells", cells)?;
            drawn.append(table)?;
        }
        let value = PyDict::new(py);
        value.set_item("mesh", mesh)?;
        value.set_item("name", name)?;
        value.set_item("type", ty)?;
        value.set_item("tables", drawn)?;
        value.set_item("remarks", remarks)?;
        list.append(value)?;
    }
    Ok(list)
}
