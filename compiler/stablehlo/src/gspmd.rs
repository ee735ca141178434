//! Shardings of GSPMD, which JAX printed before Shardy, as those of Shardy.
//!
//! `{devices=[2,1,4]<=[8] last_tile_dim_replicate}` lists devices, tile by tile. A tile dimension is one or several factors: devices at equal
//! distances. All factors of a module are made of the axes of one mesh, `d0`, `d1`, ... A call between `@SPMDFullToShardShape` and
//! `@SPMDShardToFullShape` is a manual computation.

use crate::cursor::{Cursor, Read};
use crate::tree::{
    Attribute, Attributes, MeshDeclaration, MlirBlock, MlirFunction, MlirModule, MlirOp, TensorType, ValueName,
};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use std::collections::{BTreeMap, BTreeSet};

/// The name of the mesh that is made.
const MESH: &str = "devices_of_gspmd";

/// The attribute of shardings.
const SHARDING: &str = "mhlo.sharding";

/// Puts shardings of Shardy in the place of all shardings of GSPMD. E0111 for shardings that no axes of one mesh make.
pub fn to_shardy(module: &mut MlirModule) -> Read<()> {
    let mut strings = Vec::new();
    for function in &module.functions {
        function.params.iter().for_each(|param| note(&param.attributes, param.span, &mut strings));
        function.results.iter().for_each(|(_, attributes)| note(attributes, function.span, &mut strings));
        note_body(&function.body, &mut strings);
    }
    let Some((first, span)) = strings.first().cloned() else { return Ok(()) };
    let mut devices: Option<(usize, String)> = None;
    let mut ends = BTreeSet::from([1]);
    for (text, span) in &strings {
        let Tiling::Tiled { dims, kinds } = Tiling::read(text).ok_or_else(|| unsupported(text, *span))? else {
            continue;
        };
        let factors = || dims.iter().flatten().chain(kinds.iter().flat_map(|(_, factors)| factors));
        let count = factors().map(|factor| factor.size).product();
        ends.extend(factors().flat_map(|factor| [factor.stride, factor.stride * factor.size]));
        ends.insert(count);
        match &devices {
            Some((known, before)) if *known != count => {
                let message =
                    format!("shardings over {known} and over {count} devices are not supported: `{before}`, `{text}`");
                return Err(Diagnostic::error(Code::E0111, *span, message));
            }
            Some(_) => {}
            None => devices = Some((count, text.clone())),
        }
    }
    let ends: Vec<usize> = ends.into_iter().collect();
    if ends.windows(2).any(|pair| !pair[1].is_multiple_of(pair[0])) {
        return Err(unsupported(&first, span));
    }
    let mesh = TiledMesh::new(&ends, module, span);
    module.functions.iter_mut().try_for_each(|function| mesh.rewrite_function(function))?;
    if devices.is_some() {
        module.meshes.push(mesh.declaration);
    }
    Ok(())
}

fn unsupported(text: &str, span: Span) -> Diagnostic {
    let message = format!("the sharding `{text}` is not supported: no axes of one mesh make it");
    Diagnostic::error(Code::E0111, span, message)
        .help("print the program with a JAX version that uses Shardy: 0.7 or later")
}

fn sharding_of(attributes: &Attributes) -> Option<&str> {
    match attributes.get(SHARDING) {
        Some(Attribute::Text(text)) => Some(text),
        _ => None,
    }
}

fn note(attributes: &Attributes, span: Span, strings: &mut Vec<(String, Span)>) {
    strings.extend(sharding_of(attributes).map(|text| (text.to_string(), span)));
}

fn note_body(body: &[MlirOp], strings: &mut Vec<(String, Span)>) {
    for operation in body {
        if partition_call(operation).is_some() {
            note(&operation.attributes, operation.span, strings);
        }
        operation.regions.iter().for_each(|region| note_body(&region.body, strings));
    }
}

/// A call of the partitioner.
#[derive(Clone, Copy, PartialEq)]
enum PartitionCall {
    Constraint,
    ToShard,
    ToFull,
}

fn partition_call(operation: &MlirOp) -> Option<PartitionCall> {
    let target = ["callee", "call_target_name"].iter().find_map(|name| operation.attributes.get(*name));
    let (Some(Attribute::Symbol(target) | Attribute::Text(target)), "stablehlo.custom_call") =
        (target, operation.name.as_str())
    else {
        return None;
    };
    match target.as_str() {
        "Sharding" => Some(PartitionCall::Constraint),
        "SPMDFullToShardShape" => Some(PartitionCall::ToShard),
        "SPMDShardToFullShape" => Some(PartitionCall::ToFull),
        _ => None,
    }
}

/// Devices at equal distances.
#[derive(Clone, Copy, Debug)]
struct TileFactor {
    stride: usize,
    size: usize,
}

/// A sharding of GSPMD.
enum Tiling {
    /// All devices have the whole value, or one of them alone has it.
    Whole,
    /// The value is that of each device.
    Manual,
    Tiled {
        /// The factors of each dimension of the value, major to minor.
        dims: Vec<Vec<TileFactor>>,
        /// The factors of devices that do not differ in their tile, with their kind: `replicated`, `manual`.
        kinds: Vec<(String, Vec<TileFactor>)>,
    },
}

impl Tiling {
    /// None for a malformed sharding, and for devices that are not at equal distances.
    fn read(text: &str) -> Option<Tiling> {
        let inside = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
        if inside.starts_with("replicated") || inside.starts_with("maximal") || inside.starts_with("unknown") {
            return Some(Tiling::Whole);
        }
        if inside.starts_with("manual") {
            return Some(Tiling::Manual);
        }
        let mut cursor = Cursor::of_part(inside);
        let numbers = |cursor: &mut Cursor<'_>, close: &str| cursor.list(close, Cursor::unsigned).ok();
        (cursor.take("devices") && cursor.take("=") && cursor.take("[")).then_some(())?;
        let tiles = numbers(&mut cursor, "]")?;
        let count = tiles.iter().try_fold(1usize, |count, &size| count.checked_mul(size)).filter(|&count| count > 0)?;
        let mut factors = match cursor.take("<=") {
            true => {
                cursor.take("[").then_some(())?;
                let sizes = numbers(&mut cursor, "]")?;
                let order = match cursor.take("T(") {
                    true => numbers(&mut cursor, ")")?,
                    false => (0..sizes.len()).collect(),
                };
                iota_factors(&sizes, &order).filter(|_| sizes.iter().product::<usize>() == count)?
            }
            false => {
                let mut devices = vec![cursor.unsigned().ok()?];
                while cursor.take(",") {
                    devices.push(cursor.unsigned().ok()?);
                }
                listed_factors(devices)
                    .filter(|factors| factors.iter().map(|factor| factor.size).product::<usize>() == count)?
            }
        };
        let mut kinds: Vec<String> = Vec::new();
        if cursor.take("last_tile_dim_replicate") {
            kinds.push("replicated".to_string());
        } else if cursor.take("last_tile_dims") {
            (cursor.take("=") && cursor.take("{")).then_some(())?;
            kinds = cursor.list("}", |cursor| cursor.word().map(str::to_string)).ok()?;
        }
        let rank = tiles.len().checked_sub(kinds.len())?;
        let mut split = tiles.iter().map(|&tile| take_factors(&mut factors, tile));
        let dims = split.by_ref().take(rank).collect::<Option<_>>()?;
        let rest = split.collect::<Option<Vec<_>>>()?;
        Some(Tiling::Tiled { dims, kinds: kinds.into_iter().zip(rest).collect() })
    }
}

/// The factors of `<=[sizes]T(order)`, the last of which changes fastest.
fn iota_factors(sizes: &[usize], order: &[usize]) -> Option<Vec<TileFactor>> {
    let end = sizes.iter().try_fold(1usize, |count, &size| count.checked_mul(size)).filter(|&count| count > 0)?;
    let mut all = Vec::new();
    let mut stride = end;
    for &size in sizes {
        stride /= size;
        all.push(TileFactor { stride, size });
    }
    order.iter().map(|&at| all.get(at).copied()).collect()
}

/// The factors of a list of devices.
fn listed_factors(mut devices: Vec<usize>) -> Option<Vec<TileFactor>> {
    let mut factors = Vec::new();
    if devices.first() != Some(&0) {
        return None;
    }
    while devices.len() > 1 {
        let stride = devices[1].checked_sub(devices[0]).filter(|&stride| stride > 0)?;
        let is_next = |(place, device): &(usize, &usize)| **device == place * stride;
        let size = devices.iter().enumerate().take_while(is_next).count();
        let chunks = devices.chunks_exact(size);
        let are_alike = chunks.remainder().is_empty()
            && chunks
                .clone()
                .all(|chunk| chunk.iter().enumerate().all(|(at, device)| *device == chunk[0] + at * stride));
        if !are_alike {
            return None;
        }
        devices = chunks.map(|chunk| chunk[0]).collect();
        factors.insert(0, TileFactor { stride, size });
    }
    Some(factors)
}

/// The first factors, of so many devices together; they are taken from the list.
fn take_factors(factors: &mut Vec<TileFactor>, mut count: usize) -> Option<Vec<TileFactor>> {
    let mut taken = Vec::new();
    while count > 1 {
        let first = factors.first_mut()?;
        if count.is_multiple_of(first.size) {
            count /= first.size;
            taken.push(factors.remove(0));
        } else if first.size.is_multiple_of(count) {
            let rest = first.size / count;
            taken.push(TileFactor { stride: first.stride * rest, size: count });
            first.size = rest;
            count = 1;
        } else {
            return None;
        }
    }
    taken.retain(|factor| factor.size > 1);
    Some(taken)
}

/// The mesh whose axes make all factors.
struct TiledMesh {
    declaration: MeshDeclaration,
    /// The factor of each axis.
    factors: Vec<TileFactor>,
}

impl TiledMesh {
    fn new(ends: &[usize], module: &MlirModule, span: Span) -> TiledMesh {
        let known: BTreeSet<&str> =
            module.meshes.iter().flat_map(|mesh| mesh.axes.iter().map(|(name, _)| name.as_str())).collect();
        let mut axes = Vec::new();
        let mut factors = Vec::new();
        for pair in ends.windows(2).rev() {
            let mut name = format!("d{}", axes.len());
            while known.contains(name.as_str()) {
                name.push('_');
            }
            let factor = TileFactor { stride: pair[0], size: pair[1] / pair[0] };
            axes.push((name, factor.size));
            factors.push(factor);
        }
        let declaration = MeshDeclaration { name: MESH.to_string(), axes, devices: None, span };
        TiledMesh { declaration, factors }
    }

    /// The axes of factors, major to minor.
    fn axes(&self, factors: &[TileFactor]) -> Vec<&str> {
        let mut found = Vec::new();
        for wanted in factors {
            let end = wanted.stride * wanted.size;
            let axes = self.declaration.axes.iter().zip(&self.factors);
            let inside = axes.filter(|(_, own)| own.stride >= wanted.stride && own.stride * own.size <= end);
            found.extend(inside.map(|((name, _), _)| name.as_str()));
        }
        found
    }

    /// The sharding of Shardy for a value of this rank, of which some dimensions are open; None if it says nothing.
    fn sharding(&self, text: &str, rank: usize, open: &[usize], span: Span) -> Read<Option<Attribute>> {
        let dims = match Tiling::read(text).ok_or_else(|| unsupported(text, span))? {
            Tiling::Manual => return Ok(None),
            Tiling::Whole if self.declaration.axes.is_empty() || text.contains("maximal") => return Ok(None),
            Tiling::Whole => vec![Vec::new(); rank],
            Tiling::Tiled { dims, .. } if dims.len() == rank => dims,
            Tiling::Tiled { .. } => return Err(unsupported(text, span)),
        };
        let dim = |(at, factors): (usize, &Vec<TileFactor>)| {
            let mut entries: Vec<String> = self.axes(factors).iter().map(|axis| format!("\"{axis}\"")).collect();
            entries.extend(open.contains(&at).then(|| "?".to_string()));
            format!("{{{}}}", entries.join(", "))
        };
        let dims: Vec<String> = dims.iter().enumerate().map(dim).collect();
        Ok(Some(Attribute::Custom("sdy.sharding".to_string(), format!("@{MESH}, [{}]", dims.join(", ")))))
    }

    fn rewrite_function(&self, function: &mut MlirFunction) -> Read<()> {
        for param in &mut function.params {
            self.rewrite_attributes(&mut param.attributes, &param.ty, param.span)?;
        }
        for (ty, attributes) in &mut function.results {
            self.rewrite_attributes(attributes, ty, function.span)?;
        }
        self.rewrite_body(&mut function.body)
    }

    fn rewrite_attributes(&self, attributes: &mut Attributes, ty: &TensorType, span: Span) -> Read<()> {
        if let Some(text) = sharding_of(attributes)
            && let Some(sharding) = self.sharding(text, ty.rank(), &[], span)?
        {
            attributes.insert("sdy.sharding".to_string(), sharding);
        }
        Ok(())
    }

    fn rewrite_body(&self, body: &mut Vec<MlirOp>) -> Read<()> {
        self.join_computations(body)?;
        for operation in body.iter_mut() {
            for region in &mut operation.regions {
                self.rewrite_body(&mut region.body)?;
            }
            if partition_call(operation) != Some(PartitionCall::Constraint) {
                continue;
            }
            let Some(text) = sharding_of(&operation.attributes) else { continue };
            let rank = operation.types.first().map_or(0, TensorType::rank);
            let sharding = self.sharding(text, rank, &open_dims(operation), operation.span)?;
            // The value itself where the sharding says nothing.
            operation.name =
                if sharding.is_some() { "sdy.sharding_constraint" } else { "sdy.propagation_barrier" }.to_string();
            operation.attributes.extend(sharding.map(|sharding| ("sharding".to_string(), sharding)));
        }
        Ok(())
    }

    /// Makes a manual computation of each call of a function of shards, and of the conversions around it.
    fn join_computations(&self, body: &mut Vec<MlirOp>) -> Read<()> {
        let base = |operation: &MlirOp| operation.results.first().map(|(name, _)| name.clone());
        // Operations by their first result, and by their first operand.
        let places: BTreeMap<String, usize> =
            body.iter().enumerate().filter_map(|(at, operation)| Some((base(operation)?, at))).collect();
        let mut users: BTreeMap<ValueName, usize> = BTreeMap::new();
        for (at, operation) in body.iter().enumerate() {
            if partition_call(operation).is_some()
                && let Some(operand) = operation.operands.first()
            {
                users.insert(operand.clone(), at);
            }
        }
        let mut joined = Vec::new();
        for (at, call) in body.iter().enumerate() {
            let to_shard = |name: &ValueName| {
                let place = *places.get(&name.base)?;
                (partition_call(&body[place]) == Some(PartitionCall::ToShard)).then_some(place)
            };
            if call.name == "call" && call.operands.iter().any(|operand| to_shard(operand).is_some()) {
                joined.extend(self.computation(body, at, (&to_shard, &places, &users))?);
            }
        }
        let removed: BTreeSet<usize> = joined.iter().flat_map(|(_, removed, _)| removed.iter().copied()).collect();
        let mut made: BTreeMap<usize, MlirOp> = joined.into_iter().map(|(at, _, made)| (at, made)).collect();
        let mut rest = Vec::new();
        for (at, operation) in std::mem::take(body).into_iter().enumerate() {
            match made.remove(&at) {
                Some(made) => rest.push(made),
                None if removed.contains(&at) => {}
                None => rest.push(operation),
            }
        }
        *body = rest;
        Ok(())
    }

    /// The manual computation of a call: its place, the places of the operations that it replaces, and itself. None if a value goes elsewhere
    /// than through conversions.
    #[expect(clippy::type_complexity, reason = "these are local indices of the body")]
    fn computation(
        &self,
        body: &[MlirOp],
        at: usize,
        (to_shard, places, users): (
            &dyn Fn(&ValueName) -> Option<usize>,
            &BTreeMap<String, usize>,
            &BTreeMap<ValueName, usize>,
        ),
    ) -> Read<Option<(usize, Vec<usize>, MlirOp)>> {
        let call = &body[at];
        let value = |base: &str| ValueName { base: base.to_string(), index: 0 };
        let mut removed = vec![at];
        let mut manual: Option<Vec<TileFactor>> = None;
        let (mut operands, mut ins, mut params) = (Vec::new(), Vec::new(), Vec::new());
        for (number, operand) in call.operands.iter().enumerate() {
            let Some(place) = to_shard(operand) else { return Ok(None) };
            let conversion = &body[place];
            let Some(whole) = conversion.operands.first().cloned() else { return Ok(None) };
            let constraint = places.get(&whole.base).map(|&place| &body[place]);
            let Some(constraint) = constraint.filter(|one| partition_call(one) == Some(PartitionCall::Constraint))
            else {
                return Ok(None);
            };
            let (Some(text), Some(ty), Some(local)) =
                (sharding_of(&constraint.attributes), constraint.types.first(), conversion.types.first())
            else {
                return Ok(None);
            };
            let Some(sharding) = self.sharding(text, ty.rank(), &open_dims(constraint), constraint.span)? else {
                return Ok(None);
            };
            manual = manual.or(sharding_of(&conversion.attributes).and_then(manual_factors));
            ins.push(sharding);
            params.push((format!("shard{number}"), local.clone()));
            removed.push(place);
            operands.push(whole);
        }
        let count = call.types.len();
        let names: Vec<ValueName> = call
            .results
            .iter()
            .flat_map(|(base, count)| (0..*count).map(|index| ValueName { base: base.clone(), index }))
            .collect();
        let (mut results, mut types, mut outs) = (Vec::new(), Vec::new(), Vec::new());
        for name in &names {
            let Some(&constraint) = users.get(name) else { return Ok(None) };
            let own = body[constraint].results.first().map(|(base, _)| value(base));
            let Some(&full) = own.as_ref().and_then(|own| users.get(own)) else { return Ok(None) };
            let conversion = &body[full];
            let (Some(PartitionCall::ToFull), Some(text), Some(ty)) =
                (partition_call(conversion), sharding_of(&conversion.attributes), conversion.types.first())
            else {
                return Ok(None);
            };
            let sharding = self.sharding(text, ty.rank(), &open_dims(conversion), conversion.span)?;
            outs.push(sharding.ok_or_else(|| unsupported(text, conversion.span))?);
            results.extend(conversion.results.clone());
            types.push(ty.clone());
            removed.extend([constraint, full]);
        }
        let axes = match manual {
            Some(factors) => self.axes(&factors),
            None => self.declaration.axes.iter().map(|(name, _)| name.as_str()).collect(),
        };
        let plain =
            |name: &str, operands: Vec<ValueName>, results: Vec<(String, usize)>, types: Vec<TensorType>| MlirOp {
                name: name.to_string(),
                results,
                operands,
                attributes: Attributes::new(),
                regions: Vec::new(),
                types,
                location: call.location.clone(),
                span: call.span,
            };
        let inner_operands = params.iter().map(|(name, _)| value(name)).collect();
        let mut inner = plain("call", inner_operands, vec![("parts".to_string(), count)], call.types.clone());
        inner.attributes.extend(call.attributes.get("callee").map(|callee| ("callee".to_string(), callee.clone())));
        let parts = (0..count).map(|index| ValueName { base: "parts".to_string(), index }).collect();
        let end = plain("sdy.return", parts, Vec::new(), Vec::new());
        let mut made = plain("sdy.manual_computation", operands, results, types);
        made.regions.push(MlirBlock { params, body: vec![inner, end] });
        let names = axes.into_iter().map(|axis| Attribute::Text(axis.to_string())).collect();
        for (name, list) in [("in_shardings", ins), ("out_shardings", outs), ("manual_axes", names)] {
            made.attributes.insert(name.to_string(), Attribute::List(list));
        }
        Ok(Some((at, removed, made)))
    }
}

/// The dimensions that a call of the partitioner leaves open: `backend_config = "unspecified_dims=[0,1]"`.
fn open_dims(operation: &MlirOp) -> Vec<usize> {
    let Some(Attribute::Text(text)) = operation.attributes.get("backend_config") else { return Vec::new() };
    let list = text.split("unspecified_dims=[").nth(1).and_then(|rest| rest.split(']').next()).unwrap_or_default();
    list.split(',').filter_map(|dim| dim.trim().parse().ok()).collect()
}

/// The factors of the manual devices of a sharding that is manual along some of them.
fn manual_factors(text: &str) -> Option<Vec<TileFactor>> {
    match Tiling::read(text)? {
        Tiling::Tiled { kinds, .. } => {
            Some(kinds.into_iter().filter(|(kind, _)| kind == "manual").flat_map(|(_, factors)| factors).collect())
        }
        Tiling::Whole | Tiling::Manual => None,
    }
}
