//! Modules, functions and operations, in the pretty and in the generic form.
//!
//! The pretty forms of most operations are operands, then `name = value` pairs, then types; the others have a function here. All give the
//! attributes of the generic form.

use crate::cursor::{Cursor, Read, Resources};
use crate::tree::{
    Attribute, Attributes, MeshDeclaration, MlirBlock, MlirFunction, MlirModule, MlirOp, MlirParam, TensorType,
    ValueName,
};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::{FileId, Span};
use std::rc::Rc;

/// Maximum number of devices of a mesh.
const MAX_DEVICES: usize = 1 << 20;

/// A module's text as functions and operations. The first error ends the reading.
pub fn parse(text: &str, file: FileId) -> Result<MlirModule, Diagnostic> {
    let mut cursor = Cursor::new(text, file);
    cursor.resources = Rc::new(Cursor::resources_of(text));
    let mut module = MlirModule::default();
    let mut aliases = Attributes::new();
    while !cursor.is_at_end() {
        cursor.module_item(&mut module, &mut aliases)?;
    }
    for function in &mut module.functions {
        resolve_aliases(function, &aliases);
    }
    if module.functions.is_empty() {
        return Err(cursor.expected("a function"));
    }
    Ok(module)
}

/// Puts the values of aliases, `#sharding = ..`, in the place of their uses.
fn resolve_aliases(function: &mut MlirFunction, aliases: &Attributes) {
    let resolve = |attributes: &mut Attributes| attributes.values_mut().for_each(|value| resolve_alias(value, aliases));
    function.params.iter_mut().for_each(|param| resolve(&mut param.attributes));
    function.results.iter_mut().for_each(|(_, attributes)| resolve(attributes));
    fn operations(body: &mut [MlirOp], aliases: &Attributes) {
        for operation in body {
            operation.attributes.values_mut().for_each(|value| resolve_alias(value, aliases));
            operation.regions.iter_mut().for_each(|region| operations(&mut region.body, aliases));
        }
    }
    operations(&mut function.body, aliases);
}

fn resolve_alias(value: &mut Attribute, aliases: &Attributes) {
    if let Attribute::Custom(name, inside) = value
        && inside.is_empty()
        && let Some(known) = aliases.get(name)
    {
        *value = known.clone();
    }
}

/// E0111 for a module of several replicas, each of which has values of its own.
pub fn check_replicas(attributes: &Attributes, span: Span) -> Read<()> {
    match attributes.get("mhlo.num_replicas") {
        Some(Attribute::Int(count)) if *count > 1 => {
            let message = format!("{count} replicas, as `jax.pmap` makes, are not supported");
            Err(Diagnostic::error(Code::E0111, span, message).help("use `jax.shard_map` with a mesh"))
        }
        _ => Ok(()),
    }
}

impl Cursor<'_> {
    fn module_item(&mut self, module: &mut MlirModule, aliases: &mut Attributes) -> Read<()> {
        let start = self.position();
        if self.take("module") {
            if self.peek() == Some('@') {
                self.name_after('@')?;
            }
            if self.take("attributes") {
                self.expect("{")?;
                let attributes = self.attributes("}")?;
                check_replicas(&attributes, self.span(start))?;
            }
            self.expect("{")?;
            while !self.take("}") {
                self.module_item(module, aliases)?;
            }
            self.location()?;
            return Ok(());
        }
        if self.looks_at("{-#") {
            return self.resource_sections(&mut Resources::new());
        }
        if self.peek() == Some('#') {
            let name = self.name_after('#')?;
            self.expect("=")?;
            // `locations.rs` reads the names of locations.
            if self.location()?.is_some() {
                return Ok(());
            }
            let value = self.attribute()?;
            aliases.insert(name, value);
            return Ok(());
        }
        if self.take("sdy.mesh") {
            let mesh = self.mesh_declaration(start)?;
            module.meshes.push(mesh);
            return Ok(());
        }
        if self.take("func.func") {
            let function = self.function(start)?;
            module.functions.push(function);
            return Ok(());
        }
        if self.peek() == Some('"') {
            return self.generic_item(module);
        }
        Err(self.expected("a function or a mesh"))
    }

    /// `loc(..)`, if it follows: the text between the brackets.
    fn location(&mut self) -> Read<Option<String>> {
        if !self.take("loc(") {
            return Ok(None);
        }
        Ok(Some(self.until_closed('(')?.to_string()))
    }

    fn mesh_declaration(&mut self, start: usize) -> Read<MeshDeclaration> {
        let name = self.name_after('@')?;
        self.expect("=")?;
        let mesh = self.mesh_declaration_after(name)?;
        if self.take("{") {
            self.attributes("}")?;
        }
        self.location()?;
        Ok(MeshDeclaration { span: self.span(start), ..mesh })
    }

    /// `<["X"=2, "Y"=4], device_ids=[..]>`, of a mesh of this name.
    pub fn mesh_declaration_after(&mut self, name: String) -> Read<MeshDeclaration> {
        let start = self.position();
        self.expect("<")?;
        let mut axes = Vec::new();
        let mut devices = None;
        if self.take("[") {
            axes = self.list("]", |cursor| {
                let axis = cursor.string()?;
                cursor.expect("=")?;
                Ok((axis, cursor.unsigned()?))
            })?;
            if self.take(",") {
                self.expect("device_ids")?;
                self.expect("=")?;
                self.expect("[")?;
                devices = Some(self.list("]", Cursor::unsigned)?);
            }
        } else if self.take("device_ids") {
            self.expect("=")?;
            self.expect("[")?;
            devices = Some(self.list("]", Cursor::unsigned)?);
        }
        self.expect(">")?;
        let span = self.span(start);
        let count = axes.iter().try_fold(1usize, |count, (_, size)| count.checked_mul(*size));
        if count.is_none_or(|count| count == 0 || count > MAX_DEVICES) {
            return Err(self.malformed(start, "a mesh has at least one device, and not more than a million"));
        }
        if devices.as_ref().is_some_and(|devices| !axes.is_empty() && Some(devices.len()) != count) {
            return Err(self.malformed(start, "a mesh lists each of its devices once"));
        }
        Ok(MeshDeclaration { name, axes, devices, span })
    }

    fn function(&mut self, start: usize) -> Read<MlirFunction> {
        for visibility in ["public", "private", "nested"] {
            if self.take(visibility) {
                break;
            }
        }
        let name = self.name_after('@')?;
        self.expect("(")?;
        let params = self.list(")", |cursor| {
            let start = cursor.position();
            let name = cursor.name_after('%')?;
            cursor.expect(":")?;
            let ty = cursor.tensor_type()?;
            let attributes = if cursor.take("{") { cursor.attributes("}")? } else { Attributes::new() };
            let span = cursor.span(start);
            Ok(MlirParam { name, ty, attributes, location: cursor.location()?, span })
        })?;
        let mut results = Vec::new();
        if self.take("->") {
            let result = |cursor: &mut Self| {
                let ty = cursor.tensor_type()?;
                let attributes = if cursor.take("{") { cursor.attributes("}")? } else { Attributes::new() };
                Ok((ty, attributes))
            };
            results = match self.take("(") {
                true => self.list(")", result)?,
                // The brace after it begins the body.
                false => vec![(self.tensor_type()?, Attributes::new())],
            };
        }
        if self.take("attributes") {
            self.expect("{")?;
            self.attributes("}")?;
        }
        let span = self.span(start);
        self.expect("{")?;
        let body = self.operations()?;
        self.location()?;
        Ok(MlirFunction { name, params, results, body, span })
    }

    /// Operations up to a closing brace, which is skipped.
    fn operations(&mut self) -> Read<Vec<MlirOp>> {
        self.enter()?;
        let mut body = Vec::new();
        while !self.take("}") {
            body.push(self.operation()?);
        }
        self.depth -= 1;
        Ok(body)
    }

    /// A region of one block, after the opening brace.
    fn region(&mut self) -> Read<MlirBlock> {
        let mut params = Vec::new();
        if self.peek() == Some('^') {
            self.name_after('^')?;
            if self.take("(") {
                params = self.list(")", Cursor::typed_name)?;
            }
            self.expect(":")?;
        }
        Ok(MlirBlock { params, body: self.operations()? })
    }

    /// `%arg: tensor<f32>`
    fn typed_name(&mut self) -> Read<(String, TensorType)> {
        let name = self.name_after('%')?;
        self.expect(":")?;
        let ty = self.tensor_type()?;
        self.location()?;
        Ok((name, ty))
    }

    pub fn operation(&mut self) -> Read<MlirOp> {
        let start = self.position();
        let mut results = Vec::new();
        while self.peek() == Some('%') {
            let name = self.name_after('%')?;
            let count = if self.rest().starts_with(':') { self.result_count()? } else { 1 };
            results.push((name, count));
            if !self.take(",") {
                self.expect("=")?;
                break;
            }
        }
        let mut operation = MlirOp {
            name: String::new(),
            results,
            operands: Vec::new(),
            attributes: Attributes::new(),
            regions: Vec::new(),
            types: Vec::new(),
            location: None,
            span: self.span(start),
        };
        let count = operation.results.iter().map(|(_, count)| count).sum();
        if self.looks_at("\"") {
            operation.name = self.string()?;
            self.generic(&mut operation)?;
        } else {
            operation.name = self.word()?.to_string();
            self.pretty(&mut operation, count)?;
        }
        operation.span = self.span(start);
        if operation.types.len() != count {
            let message = format!("`{}` has {} results, but {count} are named", operation.name, operation.types.len());
            return Err(self.malformed(start, message));
        }
        operation.location = self.location()?;
        if let Some(short) = operation.name.strip_prefix("func.") {
            operation.name = short.to_string();
        }
        // The decomposition of a composite operation computes the same.
        if operation.name == "stablehlo.composite"
            && let Some(callee) = operation.attributes.get("decomposition").cloned()
        {
            operation.name = "call".to_string();
            operation.attributes.insert("callee".to_string(), callee);
        }
        Ok(operation)
    }

    fn result_count(&mut self) -> Read<usize> {
        self.expect(":")?;
        let start = self.position();
        let count = self.unsigned()?;
        if count > 100_000 {
            return Err(self.malformed(start, "an operation has fewer results"));
        }
        Ok(count)
    }

    /// `(%a, %b) <{..}> ({..}, {..}) {..} : (types) -> types`
    fn generic(&mut self, operation: &mut MlirOp) -> Read<()> {
        self.expect("(")?;
        operation.operands = self.list(")", Cursor::value)?;
        if self.take("<{") {
            operation.attributes = self.attributes("}")?;
            self.expect(">")?;
        }
        if self.take("(") {
            operation.regions = self.list(")", |cursor| {
                cursor.expect("{")?;
                cursor.region()
            })?;
        }
        if self.take("{") {
            let more = self.attributes("}")?;
            operation.attributes.extend(more);
        }
        self.expect(":")?;
        operation.types = self.signature(usize::MAX)?;
        Ok(())
    }

    fn value(&mut self) -> Read<ValueName> {
        let base = self.name_after('%')?;
        if !self.rest().starts_with('#') {
            return Ok(ValueName { base, index: 0 });
        }
        self.skip_char();
        Ok(ValueName { base, index: self.unsigned()? })
    }

    /// The types of the results, of which there are `count`: `(T, T) -> T`, `T -> T`, or only types of operands, the last of which the
    /// results have.
    pub fn signature(&mut self, count: usize) -> Read<Vec<TensorType>> {
        let types = |cursor: &mut Self| match cursor.take("(") {
            true => cursor.list(")", Cursor::tensor_type),
            false => Ok(vec![cursor.tensor_type()?]),
        };
        let mut found = types(self)?;
        while self.take(",") {
            found.push(self.tensor_type()?);
        }
        if self.take("->") {
            return types(self);
        }
        if count == usize::MAX || count > found.len() {
            return Err(self.expected("`->` and the types of results"));
        }
        Ok(found.split_off(found.len() - count))
    }

    fn pretty(&mut self, operation: &mut MlirOp, count: usize) -> Read<()> {
        match operation.name.as_str() {
            "stablehlo.constant" => {
                if self.take("{") {
                    self.attributes("}")?;
                }
                let value = match self.take("dense_resource") {
                    true => self.dense_resource()?,
                    false => {
                        self.expect("dense")?;
                        self.dense()?
                    }
                };
                operation.types = vec![value.ty.clone()];
                operation.attributes.insert("value".into(), Attribute::Dense(value));
                return Ok(());
            }
            "stablehlo.reduce" => return self.reduce(operation, count),
            "stablehlo.while" => return self.while_loop(operation),
            "sdy.manual_computation" => return self.manual_computation(operation, count),
            "stablehlo.convolution" => {
                self.plain_operands(operation)?;
                self.convolution(operation)?;
            }
            "stablehlo.slice" => {
                operation.operands.push(self.value()?);
                self.slice(operation)?;
            }
            "stablehlo.compare" => {
                let direction = self.word()?.to_string();
                operation.attributes.insert("comparison_direction".into(), Attribute::Word(direction));
                self.expect(",")?;
                self.plain_operands(operation)?;
            }
            "stablehlo.dot_general" => {
                self.plain_operands(operation)?;
                self.dot_general(operation)?;
            }
            "stablehlo.custom_call" | "call" | "func.call" | "stablehlo.composite" => {
                let name = match self.looks_at("\"") {
                    true => self.string()?,
                    false => self.name_after('@').or_else(|_| self.word().map(str::to_string))?,
                };
                operation.attributes.insert("callee".into(), Attribute::Symbol(name));
                self.plain_operands(operation)?;
            }
            "sdy.sharding_constraint" | "sdy.reshard" => {
                operation.operands.push(self.value()?);
                let sharding = self.attribute()?;
                operation.attributes.insert("sharding".into(), sharding);
            }
            "sdy.propagation_barrier" => {
                operation.operands.push(self.value()?);
                self.expect("allowed_direction")?;
                self.expect("=")?;
                self.word()?;
            }
            "sdy.sharding_group" => {
                operation.operands.push(self.value()?);
                self.expect("group_id")?;
                self.expect("=")?;
                let group = self.unsigned()?;
                operation.attributes.insert("group_id".into(), Attribute::Int(group as i128));
            }
            "stablehlo.return" | "return" | "func.return" | "sdy.return" => {
                if self.peek() == Some('%') {
                    self.plain_operands(operation)?;
                    self.expect(":")?;
                    self.signature(0)?;
                }
                return Ok(());
            }
            _ => self.plain_operands(operation)?,
        }
        self.pairs(operation)?;
        if self.take(":") {
            operation.types = self.signature(count)?;
        }
        Ok(())
    }

    /// `%a, %b` or `(%a, %b)`; a name with `=` may follow after a comma.
    fn plain_operands(&mut self, operation: &mut MlirOp) -> Read<()> {
        let in_brackets = self.take("(");
        while self.peek() == Some('%') {
            operation.operands.push(self.value()?);
            if !self.take(",") {
                break;
            }
        }
        if in_brackets {
            // `chlo.top_k(%x, k = 8)`
            if self.peek() != Some(')') {
                let pairs = self.attributes(")")?;
                operation.attributes.extend(pairs);
            } else {
                self.expect(")")?;
            }
        }
        Ok(())
    }

    /// `name = value, name = value {..}`, and words alone.
    fn pairs(&mut self, operation: &mut MlirOp) -> Read<()> {
        loop {
            self.take(",");
            if self.take("{") {
                let more = self.attributes("}")?;
                operation.attributes.extend(more);
                continue;
            }
            let Some(name) = self.optional_word() else { return Ok(()) };
            let value = if self.take("=") { self.attribute()? } else { Attribute::Bool(true) };
            // `type = RFFT` and `SIGNED` alike are words of enumerations.
            match (operation.name.as_str(), &value) {
                ("stablehlo.compare", Attribute::Bool(true)) => {
                    operation.attributes.insert("compare_type".into(), Attribute::Word(name.to_string()));
                }
                _ => {
                    operation.attributes.insert(name.to_string(), value);
                }
            }
        }
    }

    /// `[0:1, 2:8:2]`
    fn slice(&mut self, operation: &mut MlirOp) -> Read<()> {
        self.expect("[")?;
        let ranges = self.list("]", |cursor| {
            let start = cursor.unsigned()?;
            cursor.expect(":")?;
            let limit = cursor.unsigned()?;
            let stride = if cursor.take(":") { cursor.unsigned()? } else { 1 };
            Ok([start, limit, stride])
        })?;
        for (at, name) in ["start_indices", "limit_indices", "strides"].into_iter().enumerate() {
            let all = ranges.iter().map(|range| range[at] as i128).collect();
            operation.attributes.insert(name.into(), Attribute::Ints(all));
        }
        Ok(())
    }

    /// `, batching_dims = [0] x [0], contracting_dims = [2] x [1]`
    fn dot_general(&mut self, operation: &mut MlirOp) -> Read<()> {
        loop {
            self.take(",");
            let Some(name) = ["batching_dims", "contracting_dims"].into_iter().find(|name| self.take(name)) else {
                return Ok(());
            };
            self.expect("=")?;
            let left = self.attribute()?;
            self.expect("x")?;
            let right = self.attribute()?;
            operation.attributes.insert(format!("lhs_{name}"), left);
            operation.attributes.insert(format!("rhs_{name}"), right);
        }
    }

    /// `dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], ..}`
    fn convolution(&mut self, operation: &mut MlirOp) -> Read<()> {
        self.expect("dim_numbers")?;
        self.expect("=")?;
        let text = self.dimension_numbers()?;
        operation.attributes.insert("dimension_numbers".into(), Attribute::Custom("stablehlo.conv".into(), text));
        self.expect(",")?;
        self.expect("window")?;
        self.expect("=")?;
        self.expect("{")?;
        let window = self.attributes("}")?;
        let names = [
            ("stride", "window_strides"),
            ("pad", "padding"),
            ("lhs_dilate", "lhs_dilation"),
            ("rhs_dilate", "rhs_dilation"),
            ("reverse", "window_reversal"),
        ];
        for (short, long) in names {
            if let Some(value) = window.get(short) {
                operation.attributes.insert(long.into(), value.clone());
            }
        }
        Ok(())
    }

    /// `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`
    fn dimension_numbers(&mut self) -> Read<String> {
        let start = self.position();
        for between in ["x", "->", ""] {
            self.expect("[")?;
            self.until_closed('[')?;
            if !between.is_empty() {
                self.expect_text(between)?;
            }
        }
        Ok(self.since(start).to_string())
    }

    /// Skips this, which must follow, whatever comes after it.
    fn expect_text(&mut self, text: &str) -> Read<()> {
        if !self.looks_at(text) {
            return Err(self.expected(&format!("`{text}`")));
        }
        text.chars().for_each(|_| self.skip_char());
        Ok(())
    }

    /// `(%x init: %i), (%y init: %j) applies stablehlo.add across dimensions = [0] : ..`, or with `reducer(..) (..) {..}` at the end.
    fn reduce(&mut self, operation: &mut MlirOp, count: usize) -> Read<()> {
        let mut inits = Vec::new();
        loop {
            self.expect("(")?;
            operation.operands.push(self.value()?);
            self.expect("init")?;
            self.expect(":")?;
            inits.push(self.value()?);
            self.expect(")")?;
            if !self.take(",") {
                break;
            }
        }
        operation.operands.extend(inits);
        if self.take("applies") {
            let applied = self.word()?.to_string();
            operation.attributes.insert("applies".into(), Attribute::Word(applied));
        }
        self.expect("across")?;
        self.expect("dimensions")?;
        self.expect("=")?;
        let dimensions = self.attribute()?;
        operation.attributes.insert("dimensions".into(), dimensions);
        if self.take("{") {
            let more = self.attributes("}")?;
            operation.attributes.extend(more);
        }
        self.expect(":")?;
        operation.types = self.signature(count)?;
        if self.take("reducer") {
            // Each pair of brackets has the two numbers of one operand.
            let (mut first, mut second) = (Vec::new(), Vec::new());
            while self.take("(") {
                let mut pair = self.list(")", Cursor::typed_name)?.into_iter();
                first.extend(pair.next());
                second.extend(pair.next());
            }
            self.expect("{")?;
            let body = self.operations()?;
            first.extend(second);
            operation.regions.push(MlirBlock { params: first, body });
        }
        Ok(())
    }

    /// `(%iterArg = %0, ..) : T, .. cond {..} do {..}`
    fn while_loop(&mut self, operation: &mut MlirOp) -> Read<()> {
        self.expect("(")?;
        let pairs = self.list(")", |cursor| {
            let name = cursor.name_after('%')?;
            cursor.expect("=")?;
            Ok((name, cursor.value()?))
        })?;
        let (names, operands): (Vec<String>, Vec<ValueName>) = pairs.into_iter().unzip();
        operation.operands = operands;
        if self.take(":") {
            operation.types = self.signature(names.len())?;
        }
        if self.take("attributes") {
            self.expect("{")?;
            self.attributes("}")?;
        }
        for word in ["cond", "do"] {
            self.expect(word)?;
            self.expect("{")?;
            let body = self.operations()?;
            let params = names.iter().cloned().zip(operation.types.iter().cloned()).collect();
            operation.regions.push(MlirBlock { params, body });
        }
        Ok(())
    }

    /// `(%a) in_shardings=[..] out_shardings=[..] manual_axes={..} (%arg: T) {..} : (T) -> T`
    fn manual_computation(&mut self, operation: &mut MlirOp, count: usize) -> Read<()> {
        self.plain_operands(operation)?;
        for name in ["in_shardings", "out_shardings"] {
            self.expect(name)?;
            self.expect("=")?;
            let shardings = self.attribute()?;
            operation.attributes.insert(name.into(), shardings);
        }
        self.expect("manual_axes")?;
        self.expect("=")?;
        self.expect("{")?;
        let axes = self.list("}", |cursor| Ok(Attribute::Text(cursor.string()?)))?;
        operation.attributes.insert("manual_axes".into(), Attribute::List(axes));
        self.expect("(")?;
        let params = self.list(")", Cursor::typed_name)?;
        self.expect("{")?;
        let body = self.operations()?;
        operation.regions.push(MlirBlock { params, body });
        if self.take("{") {
            self.attributes("}")?;
        }
        self.expect(":")?;
        operation.types = match self.take("(") {
            true => {
                self.list(")", Cursor::tensor_type)?;
                self.expect("->")?;
                match self.take("(") {
                    true => self.list(")", Cursor::tensor_type)?,
                    false => vec![self.tensor_type()?],
                }
            }
            false => self.signature(count)?,
        };
        Ok(())
    }
}
