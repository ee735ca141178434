//! The programs of several meshes, one after the other.

use spmdc_compiler::pipeline::Compilation;
use spmdc_layout::mesh::Mesh;

use crate::errors::CommandError;

/// The texts of all meshes, one after the other.
pub fn each_part(
    compilation: &Compilation,
    show: impl FnMut(&Compilation) -> Result<String, CommandError>,
) -> Result<String, CommandError> {
    let texts: Result<Vec<String>, CommandError> = compilation.of_meshes().into_iter().map(show).collect();
    Ok(texts?.join("\n"))
}

/// The compilation of each mesh, under the heading of that mesh if there are several.
pub fn each_mesh(
    compilation: &Compilation,
    mut show: impl FnMut(&Compilation) -> Result<String, CommandError>,
) -> Result<String, CommandError> {
    if compilation.parts.is_empty() {
        return show(compilation);
    }
    let mut text = Vec::new();
    for part in &compilation.parts {
        text.push(format!("on {}\n\n{}", part.mesh.describe(), show(&part.compilation)?));
    }
    Ok(text.join("\n"))
}

/// The axes of a mesh, as the program has them, with their sizes: `X = 2`.
pub fn axes(mesh: &Mesh) -> Vec<String> {
    mesh.whole().axes.iter().map(|axis| format!("{} = {}", axis.name, axis.size)).collect()
}
