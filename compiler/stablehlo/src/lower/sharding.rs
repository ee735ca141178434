//! Meshes and shardings of Shardy.

use super::{FunctionReader, at, malformed};
use crate::build::Build;
use crate::cursor::{Cursor, Read};
use crate::identifiers::identifier;
use crate::tree::{Attribute, MeshDeclaration, MlirOp, TensorType};
use spmdc_grammar::ast::{
    DimAxes, DimExpr, Expr, ExprKind, ItemKind, ItemNode, MeshAxisNode, MeshItem, MeshKind, ShardingExpr, TypeExpr,
    TypeExprKind,
};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;

/// A sharding: `<@mesh, [{"X"}, {?}], unreduced={"Y"}>`.
#[derive(Clone, Debug, Default)]
pub(super) struct SdySharding {
    pub dims: Vec<SplitDim>,
    pub unreduced: Vec<String>,
    pub replicated: Vec<String>,
}

/// The split of a dimension.
#[derive(Clone, Debug, Default)]
pub(super) struct SplitDim {
    pub axes: Vec<String>,
    pub is_open: bool,
}

/// The mesh of the program.
pub(super) fn mesh_item(mesh: &MeshDeclaration) -> ItemNode {
    let build = Build(mesh.span);
    let axis = |(name, size): &(String, usize)| MeshAxisNode {
        name: build.ident(identifier(name)),
        kind: None,
        size: build.int(*size as i128),
    };
    let in_order = |devices: &Vec<usize>| devices.iter().enumerate().all(|(at, &device)| at == device);
    let devices = mesh.devices.as_ref().filter(|devices| !in_order(devices));
    let devices = devices.map(|devices| devices.iter().map(|&device| build.int(device as i128)).collect());
    let kind = MeshKind::Axes { axes: mesh.axes.iter().map(axis).collect(), devices };
    ItemNode { doc: Vec::new(), kind: ItemKind::Mesh(MeshItem { name: None, kind }), span: mesh.span }
}

/// A sharding with the name of its mesh, whose axes are those of the text.
pub(super) struct NamedSharding {
    pub mesh: String,
    pub sharding: SdySharding,
}

impl NamedSharding {
    /// `@mesh, [{"X"}, {?}], unreduced={"Y"}`
    pub fn read(text: &str) -> Read<NamedSharding> {
        let mut cursor = Cursor::of_part(text);
        let mesh = match cursor.take("mesh<") {
            true => format!("<{}>", cursor.until_closed('<')?),
            false => cursor.name_after('@')?,
        };
        let mut sharding = SdySharding::default();
        cursor.expect(",")?;
        cursor.expect("[")?;
        sharding.dims = cursor.list("]", |cursor| {
            cursor.expect("{")?;
            let mut dim = SplitDim::default();
            let axes = cursor.list("}", |cursor| {
                if cursor.take("?") {
                    return Ok(None);
                }
                axis(cursor).map(Some)
            })?;
            for entry in axes {
                match entry {
                    Some(name) => dim.axes.push(name),
                    None => dim.is_open = true,
                }
            }
            // A priority, `p1`, orders propagation; the compiler chooses by cost.
            if cursor.peek() == Some('p') {
                cursor.word()?;
            }
            Ok(dim)
        })?;
        while cursor.take(",") {
            let kind = cursor.word()?;
            cursor.expect("=")?;
            cursor.expect("{")?;
            let axes = cursor.list("}", axis)?;
            match kind {
                "unreduced" => sharding.unreduced = axes,
                _ => sharding.replicated = axes,
            }
        }
        Ok(NamedSharding { mesh, sharding })
    }
}

/// E0110
pub(super) fn no_axis(span: Span, mesh: &str, axis: &str) -> Diagnostic {
    let message = format!("the mesh `@{mesh}` has no axis, or part of an axis, `{axis}`");
    Diagnostic::error(Code::E0110, span, message)
}

/// The name of an axis; a part of one has a name of its own: `"x":(2)4`.
pub(super) fn axis(cursor: &mut Cursor<'_>) -> Read<String> {
    let name = cursor.string()?;
    if !cursor.take(":") {
        return Ok(name);
    }
    Ok(format!("{name}:{}", part_of_axis(cursor)?))
}

/// `(2)4`
pub(super) fn part_of_axis(cursor: &mut Cursor<'_>) -> Read<String> {
    cursor.expect("(")?;
    let before = cursor.unsigned()?;
    cursor.expect(")")?;
    let size = cursor.unsigned()?;
    Ok(format!("({before}){size}"))
}

impl SdySharding {
    /// All axes that it names.
    pub fn axes(&self) -> impl Iterator<Item = &String> {
        self.dims.iter().flat_map(|dim| &dim.axes).chain(&self.unreduced).chain(&self.replicated)
    }

    /// Whether it says nothing at all.
    fn is_silent(&self) -> bool {
        self.unreduced.is_empty()
            && self.replicated.is_empty()
            && self.dims.iter().all(|dim| dim.axes.is_empty() && dim.is_open)
    }

    fn dim_axes(build: Build, dim: &SplitDim, hidden: &[String]) -> DimAxes {
        let axes =
            dim.axes.iter().filter(|axis| !hidden.contains(axis)).map(|axis| build.ident(identifier(axis))).collect();
        DimAxes { axes, open: dim.is_open, alignment: None, span: build.0 }
    }

    /// `P(X, _, ?)`, without these axes.
    fn literal(&self, build: Build, hidden: &[String]) -> Expr {
        let dims = self.dims.iter().map(|dim| SdySharding::dim_axes(build, dim, hidden)).collect();
        let unreduced = self.unreduced.iter().map(|axis| build.ident(identifier(axis))).collect();
        build.expr(ExprKind::Sharding(ShardingExpr { dims, unreduced, reduced: Vec::new(), span: build.0 }))
    }

    /// `f32[8@X, 16]`
    pub fn ty(&self, build: Build, ty: &TensorType) -> TypeExpr {
        let dims = ty
            .shape
            .iter()
            .zip(&self.dims)
            .map(|(&size, dim)| DimExpr {
                size: build.int(size as i128),
                axes: Some(SdySharding::dim_axes(build, dim, &[])),
            })
            .collect();
        let mut found = build.ty_of(ty.element, dims);
        if let TypeExprKind::Array { unreduced, .. } = &mut found.kind {
            *unreduced = self.unreduced.iter().map(|axis| build.ident(identifier(axis))).collect();
        }
        found
    }
}

impl FunctionReader<'_> {
    /// The sharding that an attribute states, over axes of the program; None for one of a mesh without axes.
    pub(super) fn read_sharding(&self, place: &Diagnostic, attribute: &Attribute) -> Read<Option<SdySharding>> {
        let Attribute::Custom(_, inside) = attribute else { return Err(place.clone()) };
        let NamedSharding { mesh, sharding } =
            NamedSharding::read(inside).map_err(|error| Diagnostic { span: place.span, ..error })?;
        let known = self.context.common.filter(|common| common.has_mesh(&mesh));
        let Some(common) = known else {
            let names_axes = sharding.axes().next().is_some();
            let message = format!("the mesh `@{mesh}` is not defined");
            return if names_axes { Err(Diagnostic::error(Code::E0110, place.span, message)) } else { Ok(None) };
        };
        let resolve = |axes: &[String]| -> Read<Vec<String>> {
            let mut all = Vec::new();
            for axis in axes {
                all.extend(common.axes_of(&mesh, axis).ok_or_else(|| no_axis(place.span, &mesh, axis))?);
            }
            Ok(all)
        };
        let dim = |dim: &SplitDim| Ok(SplitDim { axes: resolve(&dim.axes)?, is_open: dim.is_open });
        Ok(Some(SdySharding {
            dims: sharding.dims.iter().map(dim).collect::<Read<_>>()?,
            unreduced: resolve(&sharding.unreduced)?,
            replicated: resolve(&sharding.replicated)?,
        }))
    }

    /// The type of a parameter or result with its sharding.
    pub(super) fn param_type(&self, build: Build, ty: &TensorType, sharding: Option<&Attribute>) -> Read<TypeExpr> {
        let Some(attribute) = sharding else { return Ok(build.ty(ty)) };
        let place = Diagnostic::error(Code::E0110, build.0, "this sharding is malformed");
        let Some(sharding) = self.read_sharding(&place, attribute)? else { return Ok(build.ty(ty)) };
        if sharding.dims.len() != ty.rank() {
            return Err(place);
        }
        if sharding.is_silent() || ty.rank() == 0 {
            return Ok(build.ty(ty));
        }
        Ok(sharding.ty(build, ty))
    }

    pub(super) fn sharding_constraint(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let [x] = self.some_operands(operation)?;
        let place = malformed(operation, "this sharding is malformed");
        let Some(attribute) = operation.attributes.get("sharding") else { return Err(place) };
        let Some(sharding) = self.read_sharding(&place, attribute)? else {
            return self.same_as_operands(operation);
        };
        if sharding.dims.len() != x.ty.rank() {
            return Err(place);
        }
        // Inside of `manual` functions their axes are used up.
        let is_left = |axis: &String| !self.manual.contains(axis);
        let states = sharding.dims.iter().any(|dim| dim.axes.iter().any(is_left));
        let is_closed = sharding.dims.iter().any(|dim| !dim.is_open);
        let has_all_manual = self.context.mesh.is_some_and(|mesh| mesh.axes.iter().all(|(axis, _)| !is_left(axis)));
        if sharding.is_silent() || x.ty.rank() == 0 || has_all_manual || (!states && !is_closed) {
            return self.same_as_operands(operation);
        }
        let literal = sharding.literal(build, &self.manual);
        self.emit(operation, build.call("reshard", [x.expr, literal]))
    }

    pub(super) fn shardings(&self, operation: &MlirOp, name: &str, count: usize) -> Read<Vec<SdySharding>> {
        let place = malformed(operation, format!("`{name}` has a sharding for each value"));
        let list = match operation.attributes.get(name) {
            Some(Attribute::List(list)) => list.clone(),
            // `#sdy.sharding_per_value<[<@mesh, [..]>]>`
            Some(Attribute::Custom(_, inside)) => match Cursor::of_part(inside).attribute() {
                Ok(Attribute::List(list)) => list,
                _ => return Err(place),
            },
            _ => return Err(place),
        };
        if list.len() != count {
            return Err(place);
        }
        let read = |attribute: &Attribute| self.read_sharding(&place, attribute).map(Option::unwrap_or_default);
        list.iter().map(read).collect()
    }
}
