//! Groups of devices as axes of a mesh, as JAX 0.11 prints those of collectives.

use super::sharding::{axis, part_of_axis};
use crate::cursor::{Cursor, Read};
use crate::tree::Attribute;

/// The axes of a mesh along which the devices of a collective lie.
pub(super) struct GroupAxes {
    pub mesh: String,
    pub axes: Vec<String>,
}

impl GroupAxes {
    /// `#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x", sub_axis_info = (1)2>]>`; None for other
    /// attributes.
    pub fn of_attribute(attribute: &Attribute) -> Option<GroupAxes> {
        let Attribute::Custom(name, inside) = attribute else { return None };
        (name == "stablehlo.replica_group_mesh_axes").then(|| GroupAxes::read(inside).ok()).flatten()
    }

    fn read(text: &str) -> Read<GroupAxes> {
        let mut cursor = Cursor::of_part(text);
        let mut found = GroupAxes { mesh: String::new(), axes: Vec::new() };
        cursor.expect("mesh")?;
        cursor.expect("=")?;
        found.mesh = match cursor.take("#stablehlo.mesh<") {
            true => inline_mesh(&mut cursor)?,
            false => cursor.name_after('@')?,
        };
        for word in [",", "axes", "=", "["] {
            cursor.expect(word)?;
        }
        found.axes = cursor.list("]", |cursor| {
            if cursor.take("#sdy<axis_ref") {
                let name = axis(cursor)?;
                cursor.expect(">")?;
                return Ok(name);
            }
            for word in ["#stablehlo.axis_ref<", "name", "="] {
                cursor.expect(word)?;
            }
            let mut name = cursor.string()?;
            if cursor.take(",") {
                cursor.expect("sub_axis_info")?;
                cursor.expect("=")?;
                name = format!("{name}:{}", part_of_axis(cursor)?);
            }
            cursor.expect(">")?;
            Ok(name)
        })?;
        Ok(found)
    }
}

/// A mesh that is given without a name, under the name that the common mesh gives it: `axes = [#stablehlo.mesh_axis<name = "x", size = 2>]>`.
fn inline_mesh(cursor: &mut Cursor<'_>) -> Read<String> {
    for word in ["axes", "=", "["] {
        cursor.expect(word)?;
    }
    let axes = cursor.list("]", |cursor| {
        for word in ["#stablehlo.mesh_axis<", "name", "="] {
            cursor.expect(word)?;
        }
        let name = cursor.string()?;
        for word in [",", "size", "="] {
            cursor.expect(word)?;
        }
        let size = cursor.unsigned()?;
        cursor.expect(">")?;
        Ok(format!("\"{name}\"={size}"))
    })?;
    let mut mesh = format!("<[{}]", axes.join(", "));
    if cursor.take(",") {
        cursor.expect("device_ids")?;
        cursor.expect("=")?;
        let devices = cursor.attribute()?.ints().ok_or_else(|| cursor.expected("the devices of a mesh"))?;
        let devices: Vec<String> = devices.iter().map(ToString::to_string).collect();
        mesh += &format!(", device_ids=[{}]", devices.join(", "));
    }
    cursor.expect(">")?;
    Ok(mesh + ">")
}
