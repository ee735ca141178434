//! Functions and operations as items, statements and expressions of the language.

mod bits;
mod collectives;
mod constants;
mod control;
mod devices;
mod dynamic;
mod elementwise;
mod generators;
mod group_axes;
mod indexing;
mod libraries;
mod manual;
mod meshes;
mod products;
mod reductions;
mod scatter_loops;
mod shapes;
mod sharding;
mod sorting;
mod threefry;
mod trips;
mod value;
mod windows;

use self::value::{MlirReduction, MlirValue, ShapedExpr, ValueForm};
use crate::build::Build;
use crate::cursor::Read;
use crate::identifiers::{identifier, numbered, snake_case};
use crate::layers::ProgramNames;
use crate::locations::{NamedLocations, param_path, resolve};
use crate::paths::{FlatParam, PathParams, by_path, last_field};
use crate::tree::{Attribute, MeshDeclaration, MlirBlock, MlirFunction, MlirModule, MlirOp, TensorType, ValueName};
use spmdc_grammar::ast::{BlockNode, Expr, ExprKind, FnItem, ItemKind, ItemNode, ProgramNode, StmtNode};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::print;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The program that computes what a module does. With locations it is one for people, with names from them.
pub fn program(
    module: &MlirModule,
    is_shipped: &dyn Fn(&str) -> bool,
    locations: Option<&NamedLocations<'_>>,
) -> Read<ProgramNode> {
    let mut names = BTreeMap::new();
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let common = meshes::CommonMesh::of_module(module)?;
    let mesh = common.as_ref().map(|common| &common.declaration);
    let axes: Vec<&str> = mesh.iter().flat_map(|mesh| mesh.axes.iter().map(|(name, _)| name.as_str())).collect();
    for function in &module.functions {
        let mut name = identifier(&function.name);
        while (name != "main" && is_shipped(&name)) || taken.contains(&name) || axes.contains(&name.as_str()) {
            name.push('_');
        }
        taken.insert(name.clone());
        names.insert(function.name.clone(), name);
    }
    let mut items = Vec::new();
    items.extend(mesh.map(sharding::mesh_item));
    taken.extend(axes.iter().map(|axis| identifier(axis)));
    let functions = module.functions.iter().map(|function| (function.name.as_str(), function)).collect();
    let context = ModuleContext {
        names,
        functions,
        with_manual_code: with_manual_code(module),
        unfolded: unfolded(module),
        common: common.as_ref(),
        mesh,
        is_shipped,
        locations,
        items: RefCell::new(taken),
    };
    items.extend(functions_of(module, &context)?);
    Ok(ProgramNode { stage: None, items, comments: Vec::new() })
}

/// The functions that `@main` calls, and it; all functions of a module without it.
fn functions_of(module: &MlirModule, context: &ModuleContext<'_>) -> Read<Vec<ItemNode>> {
    let is_main = |function: &&MlirFunction| function.name == "main";
    let first = module.functions.iter().filter(is_main).map(|function| function.name.clone());
    let mut reached: BTreeSet<String> = first.collect();
    if reached.is_empty() {
        reached = module.functions.iter().map(|function| function.name.clone()).collect();
    }
    // The names of functions that are parts of others in the text.
    let mut extracted = Vec::new();
    let mut lowered: BTreeMap<usize, Vec<ItemNode>> = BTreeMap::new();
    loop {
        let is_next =
            |(at, function): &(usize, &MlirFunction)| reached.contains(&function.name) && !lowered.contains_key(at);
        let next: Vec<(usize, &MlirFunction)> = module.functions.iter().enumerate().filter(is_next).collect();
        if next.is_empty() {
            return Ok(lowered.into_values().flatten().collect());
        }
        for (at, function) in next {
            let mut lowering = FunctionReader::new(context);
            lowering.names.extend(extracted.iter().cloned());
            let item = lowering.function(function)?;
            for item in &lowering.items {
                extracted.extend(if let ItemKind::Fn(own) = &item.kind { Some(own.name.name.clone()) } else { None });
            }
            reached.append(&mut lowering.called);
            lowering.items.push(item);
            lowered.insert(at, lowering.items);
        }
    }
}

/// Maximum length of the results of `main` on one line.
const MAX_RESULT_LINE: usize = 100;

/// The last scope of `jit(f)/Model/Dense_0/dot_general` that a person has named. The transformations of JAX and the parts of loops are none.
fn scope_of(name: &str) -> Option<&str> {
    let (scopes, _) = name.rsplit_once('/')?;
    let unnamed = ["while", "body", "cond", "scan", "closed_call", "checkpoint", "remat", "branch", "custom_jvp_call"];
    let is_named = |scope: &&str| {
        let is_word = scope.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_word && !scope.is_empty() && !unnamed.iter().any(|word| scope.starts_with(word))
    };
    scopes.rsplit('/').find(is_named)
}

/// The parts of a module that every function sees.
pub struct ModuleContext<'m> {
    /// The names of functions in the program.
    names: BTreeMap<String, String>,
    /// The functions by their names in the text.
    functions: BTreeMap<&'m str, &'m MlirFunction>,
    /// The functions that have code for each device.
    with_manual_code: BTreeSet<&'m str>,
    /// The functions whose statements stand where they are called.
    unfolded: BTreeSet<&'m str>,
    common: Option<&'m meshes::CommonMesh>,
    mesh: Option<&'m MeshDeclaration>,
    is_shipped: &'m dyn Fn(&str) -> bool,
    /// The locations by their names, if the program is one for people.
    locations: Option<&'m NamedLocations<'m>>,
    /// The names of items and axes.
    items: RefCell<BTreeSet<String>>,
}

impl ProgramNames for ModuleContext<'_> {
    fn is_item(&self, name: &str) -> bool {
        (self.is_shipped)(name) || self.items.borrow().contains(name)
    }

    fn function(&self, wanted: &str) -> String {
        numbered(wanted, |name| !(self.is_shipped)(name) && self.items.borrow_mut().insert(name.to_string()))
    }
}

/// A function of the program under construction.
pub struct FunctionReader<'m> {
    context: &'m ModuleContext<'m>,
    values: BTreeMap<ValueName, MlirValue>,
    /// The statements of the innermost block.
    stmts: Vec<StmtNode>,
    /// The names that are taken in this function.
    names: BTreeSet<String>,
    /// The items that the function needs besides itself.
    items: Vec<ItemNode>,
    /// The last number of each name with numbers.
    numbers: BTreeMap<String, usize>,
    /// The name scopes after which variables are named.
    scopes: BTreeMap<String, String>,
    /// The manual axes around, and the axes of each regional `manual_computation`.
    manual: Vec<String>,
    /// Whether the statements are those of a function of numbers that is applied to arrays.
    is_lifted: bool,
    /// The functions that it calls, by their names in the text.
    called: BTreeSet<String>,
    /// The number of operations of functions that were put in the place of their calls.
    inlined: usize,
    /// The number of such functions around.
    calls: usize,
}

/// Maximum number of operations of functions that are put in the place of their calls, so that a short text has a bounded meaning.
const MAX_INLINED: usize = 100_000;

/// Maximum number of such functions inside each other.
const MAX_CALLS: usize = 50;

impl<'m> FunctionReader<'m> {
    fn new(context: &'m ModuleContext<'m>) -> FunctionReader<'m> {
        let mut names: BTreeSet<String> = context.names.values().cloned().collect();
        names.extend(context.mesh.iter().flat_map(|mesh| mesh.axes.iter().map(|(name, _)| identifier(name))));
        FunctionReader {
            context,
            values: BTreeMap::new(),
            stmts: Vec::new(),
            names,
            items: Vec::new(),
            numbers: BTreeMap::new(),
            scopes: BTreeMap::new(),
            manual: Vec::new(),
            is_lifted: false,
            called: BTreeSet::new(),
            inlined: 0,
            calls: 0,
        }
    }

    /// A name that nothing has yet.
    fn fresh(&mut self, wanted: &str) -> String {
        let base = identifier(wanted);
        // Many variables have the same base: the search goes on where it ended.
        let number = self.numbers.entry(base.clone()).or_insert(0);
        *number += 1;
        let mut name = if *number == 1 { base.clone() } else { format!("{base}_{number}") };
        while (self.context.is_shipped)(&name) || !self.names.insert(name.clone()) {
            *number += 1;
            name = format!("{base}_{number}");
        }
        name
    }

    fn function(&mut self, function: &MlirFunction) -> Read<ItemNode> {
        let build = Build(function.span);
        let mut params = Vec::new();
        let locations = self.context.locations.filter(|_| function.name == "main");
        if let Some(locations) = locations {
            params = self.params_by_path(function, locations)?;
        }
        for (at, param) in function.params.iter().enumerate().filter(|_| locations.is_none()) {
            let build = Build(param.span);
            let name = match function.name.as_str() {
                // The names of arguments are those by which the user passes them.
                "main" => format!("arg{at}"),
                _ => self.fresh(&param.name),
            };
            self.names.insert(name.clone());
            let ty = self.param_type(build, &param.ty, param.attributes.get("sdy.sharding"))?;
            params.push(build.param(&name, Some(ty)));
            let value = MlirValue::new(build.name(name), param.ty.clone());
            self.values.insert(ValueName { base: param.name.clone(), index: 0 }, value);
        }
        let (stmts, values) = self.body(&function.body)?;
        let mut rets = Vec::new();
        for (ty, attributes) in &function.results {
            rets.push(self.param_type(build, ty, attributes.get("sdy.sharding"))?);
        }
        let value = build.together(values);
        let ret = build.types_together(rets);
        let name = build.ident(self.context.names[&function.name].clone());
        let mut body = build.block(stmts, Some(value));
        if self.context.locations.is_some() {
            crate::tidy::remove_unused(&mut body);
            self.items.extend(crate::layers::outline(&mut body, self.context));
        }
        crate::tidy::simplify(&mut body);
        if locations.is_some() {
            self.name_results(function, &mut body);
        }
        if self.context.locations.is_some() {
            crate::tidy::number_again(&mut body, &self.scopes, &self.names);
            for item in &mut self.items {
                if let ItemKind::Fn(function) = &mut item.kind {
                    let params = function.params.iter().flat_map(|param| crate::visit::names(&param.pattern));
                    let taken = params.map(str::to_string).chain(self.context.items.borrow().iter().cloned()).collect();
                    crate::tidy::number_again(&mut function.body, &self.scopes, &taken);
                }
            }
        }
        let item = FnItem { region: None, name, size_params: Vec::new(), params, ret: Some(ret), body };
        Ok(ItemNode { doc: Vec::new(), kind: ItemKind::Fn(item), span: function.span })
    }

    /// The parameters by their paths in Python; the types of structs become items.
    fn params_by_path(
        &mut self,
        function: &MlirFunction,
        locations: &NamedLocations<'_>,
    ) -> Read<Vec<spmdc_grammar::ast::ParamNode>> {
        let mut flat = Vec::new();
        for param in &function.params {
            let build = Build(param.span);
            let ty = self.param_type(build, &param.ty, param.attributes.get("sdy.sharding"))?;
            let path = param_path(param, locations);
            flat.push(FlatParam { path, name: param.name.clone(), ty, build });
        }
        let items = self.context.items.borrow().clone();
        let name = |name: &str| {
            let name = identifier(name);
            if (self.context.is_shipped)(&name) { format!("{name}_") } else { name }
        };
        let PathParams { params, types, exprs } = by_path(&flat, &items, &name);
        for (param, expr) in function.params.iter().zip(exprs) {
            let value = MlirValue::new(expr, param.ty.clone());
            self.values.insert(ValueName { base: param.name.clone(), index: 0 }, value);
        }
        for param in &params {
            self.names.extend(crate::visit::names(&param.pattern).into_iter().map(str::to_string));
        }
        self.items.extend(types);
        Ok(params)
    }

    /// Gives long results of `main` variables with their names in Python.
    fn name_results(&mut self, function: &MlirFunction, body: &mut BlockNode) {
        let Some(Expr { kind: ExprKind::Tuple(items), .. }) = body.value.as_deref_mut() else { return };
        if items.iter().map(|item| print::expr(item).len()).sum::<usize>() <= MAX_RESULT_LINE {
            return;
        }
        for (at, (item, (_, attributes))) in items.iter_mut().zip(&function.results).enumerate() {
            if matches!(item.kind, ExprKind::Name(_) | ExprKind::Field { .. } | ExprKind::TupleField { .. }) {
                continue;
            }
            let field = match attributes.get("jax.result_info") {
                Some(Attribute::Text(path)) => last_field(path),
                Some(_) | None => None,
            };
            let build = Build(item.span);
            let name = self.fresh(&field.unwrap_or_else(|| format!("out{at}")));
            let value = std::mem::replace(item, build.name(&name));
            body.stmts.push(build.bind(build.pattern(&name), value));
        }
    }

    /// The statements of a body, and the values that it returns.
    fn body(&mut self, operations: &[MlirOp]) -> Read<(Vec<StmtNode>, Vec<Expr>)> {
        let outer = std::mem::take(&mut self.stmts);
        let returned = self.statements(operations);
        let stmts = std::mem::replace(&mut self.stmts, outer);
        returned.map(|values| (stmts, values.into_iter().map(|value| value.expr).collect()))
    }

    /// As [`FunctionReader::body`], as a block whose value is a tuple of the values, or the only one.
    fn block(&mut self, build: Build, region: &MlirBlock) -> Read<BlockNode> {
        let (stmts, values) = self.body(&region.body)?;
        let value = build.together(values);
        Ok(build.block(stmts, Some(value)))
    }

    fn value(&self, operation: &MlirOp, name: &ValueName) -> Read<&MlirValue> {
        self.values.get(name).ok_or_else(|| {
            let message = format!("`%{}` is not defined here", name.base);
            Diagnostic::error(Code::E0110, operation.span, message)
        })
    }

    /// The operands of an operation, of which there must be `count`.
    fn operands(&self, operation: &MlirOp, count: usize) -> Read<Vec<MlirValue>> {
        if operation.operands.len() != count {
            let message =
                format!("`{}` has {count} operands, but {} were given", operation.name, operation.operands.len());
            return Err(Diagnostic::error(Code::E0110, operation.span, message));
        }
        self.all_operands(operation)
    }

    fn all_operands(&self, operation: &MlirOp) -> Read<Vec<MlirValue>> {
        operation.operands.iter().map(|name| self.value(operation, name).cloned()).collect()
    }

    /// Gives the only result of an operation this value.
    fn define(&mut self, operation: &MlirOp, value: MlirValue) {
        if let Some((name, _)) = operation.results.first() {
            self.values.insert(ValueName { base: name.clone(), index: 0 }, value);
        }
    }

    /// The names under which the results of an operation are used.
    fn result_names(operation: &MlirOp) -> Vec<ValueName> {
        let mut names = Vec::new();
        for (base, count) in &operation.results {
            names.extend((0..*count).map(|index| ValueName { base: base.clone(), index }));
        }
        names
    }

    /// `let name = expr;` for the only result.
    fn emit(&mut self, operation: &MlirOp, expr: Expr) -> Read<()> {
        let lowered = self.bound(operation, expr)?;
        self.define(operation, lowered);
        Ok(())
    }

    fn bound(&mut self, operation: &MlirOp, expr: Expr) -> Read<MlirValue> {
        let build = Build(operation.span);
        let ty = result_type(operation)?;
        let number = operation.results.first().map_or("v", |(name, _)| name.as_str());
        let scope = self.scope(operation);
        let name = self.fresh(scope.as_deref().unwrap_or(number));
        if let Some(scope) = scope {
            self.scopes.insert(name.clone(), identifier(&scope));
        }
        self.stmts.push(build.bind(build.pattern(&name), expr));
        Ok(MlirValue::new(build.name(name), ty))
    }

    /// The innermost name scope of an operation, such as a layer: `dense_0` for `jit(f)/Model/Dense_0/dot_general`.
    fn scope(&self, operation: &MlirOp) -> Option<String> {
        let location = resolve(operation.location.as_ref()?, self.context.locations?);
        let name = location.name?;
        // Variables begin with small letters.
        scope_of(&name).map(snake_case)
    }

    /// A new variable for an expression.
    fn variable(&mut self, build: Build, wanted: &str, expr: Expr) -> Expr {
        if let ExprKind::Name(_) = expr.kind {
            return expr;
        }
        let name = self.fresh(wanted);
        self.stmts.push(build.bind(build.pattern(&name), expr));
        build.name(name)
    }

    /// `let (a, b) = expr;` for all results.
    fn emit_all(&mut self, operation: &MlirOp, expr: Expr) {
        let build = Build(operation.span);
        let names = Self::result_names(operation);
        let own: Vec<String> = names
            .iter()
            .map(|name| if names.len() == 1 { name.base.clone() } else { format!("{}_{}", name.base, name.index) })
            .collect();
        let own: Vec<String> = own.iter().map(|name| self.fresh(name)).collect();
        if own.is_empty() {
            self.stmts.push(build.bind(build.pattern("_unused"), expr));
            return;
        }
        self.stmts.push(build.bind(build.patterns(&own), expr));
        for ((name, own), ty) in names.into_iter().zip(own).zip(&operation.types) {
            self.values.insert(name, MlirValue::new(build.name(own), ty.clone()));
        }
    }

    fn operation(&mut self, operation: &MlirOp) -> Read<()> {
        self.lower(operation)?;
        self.note_counter(operation)?;
        self.note_range(operation)?;
        // These give their results the axes along which the values in them vary.
        if operation.name != "sdy.manual_computation" && !self.is_inlined(operation) {
            self.note_varying(operation);
        }
        Ok(())
    }

    /// The results of an operation vary where its operands do, and where the values do that its regions use.
    fn note_varying(&mut self, operation: &MlirOp) {
        if self.manual.is_empty() {
            return;
        }
        let mut varying = BTreeSet::new();
        self.varying_of(operation, &mut varying);
        let ends = matches!(operation.name.as_str(), "stablehlo.all_reduce");
        let axes = match (ends, self.context.mesh) {
            (true, Some(mesh)) => self.axes_of_collective(operation, mesh).unwrap_or_default(),
            (true, None) | (false, _) => Vec::new(),
        };
        varying.retain(|axis| !axes.contains(axis));
        for name in Self::result_names(operation) {
            let part = self.values.get(&name).and_then(|value| value.device);
            let own = part.map(|part| self.axes_of_part(part).into_iter().collect());
            if let Some(value) = self.values.get_mut(&name) {
                value.varying = own.unwrap_or_else(|| varying.clone());
            }
        }
    }

    fn varying_of(&self, operation: &MlirOp, varying: &mut BTreeSet<String>) {
        for name in &operation.operands {
            if let Some(value) = self.values.get(name) {
                varying.extend(value.varying.iter().cloned());
            }
        }
        for inner in operation.regions.iter().flat_map(|region| &region.body) {
            if inner.name == "stablehlo.partition_id" {
                varying.extend(self.manual.iter().cloned());
            }
            self.varying_of(inner, varying);
        }
    }

    fn lower(&mut self, operation: &MlirOp) -> Read<()> {
        match operation.name.as_str() {
            "stablehlo.constant" => self.constant(operation),
            "call" => self.call(operation),
            "stablehlo.while" => self.while_loop(operation),
            "stablehlo.case" => self.case(operation),
            "stablehlo.if" => self.if_else(operation),
            "stablehlo.optimization_barrier" => self.same_as_operands(operation),
            "stablehlo.reduce" => self.reduce(operation),
            "stablehlo.reduce_window" => self.reduce_window(operation),
            "stablehlo.select_and_scatter" => self.select_and_scatter(operation),
            "stablehlo.sort" => self.sort(operation),
            "chlo.top_k" => self.top_k(operation),
            "stablehlo.gather" => self.gather(operation),
            "stablehlo.scatter" => self.scatter(operation),
            "stablehlo.dynamic_slice" => self.dynamic_slice(operation),
            "stablehlo.dynamic_update_slice" => self.dynamic_update_slice(operation),
            "stablehlo.dot_general" => self.dot_general(operation),
            "stablehlo.convolution" => self.convolution(operation),
            "stablehlo.fft" => self.fft(operation),
            "stablehlo.map" => self.map(operation),
            "stablehlo.rng_bit_generator" => self.random_bits(operation),
            "stablehlo.custom_call" => self.custom_call(operation),
            "sdy.sharding_constraint" | "sdy.reshard" => self.sharding_constraint(operation),
            "sdy.manual_computation" => self.manual_computation(operation),
            "sdy.propagation_barrier" => self.same_as_operands(operation),
            "sdy.sharding_group" => Ok(()),
            "stablehlo.all_reduce"
            | "stablehlo.all_gather"
            | "stablehlo.reduce_scatter"
            | "stablehlo.all_to_all"
            | "stablehlo.collective_permute" => self.collective(operation),
            "stablehlo.partition_id" => self.partition_id(operation),
            "stablehlo.replica_id" => self.only_one(operation),
            _ => {
                let is_done = self.part_of_device(operation)?
                    || self.shape_operation(operation)?
                    || self.dynamic_operation(operation)?;
                if is_done { Ok(()) } else { self.elementwise(operation) }
            }
        }
    }

    /// Each result is another name of the operand at its position.
    fn same_as_operands(&mut self, operation: &MlirOp) -> Read<()> {
        let values = self.all_operands(operation)?;
        for (name, value) in Self::result_names(operation).into_iter().zip(values) {
            self.values.insert(name, value);
        }
        Ok(())
    }

    fn constant(&mut self, operation: &MlirOp) -> Read<()> {
        let Some(Attribute::Dense(dense)) = operation.attributes.get("value") else {
            return Err(malformed(operation, "a constant has elements"));
        };
        let build = Build(operation.span);
        let expr = constants::constant(build, dense);
        // A scalar is written where it is used.
        let value = match dense.ty.rank() {
            0 => MlirValue::new(expr, dense.ty.clone()),
            _ => self.bound(operation, expr)?,
        };
        self.define(operation, MlirValue { constant: Some(dense.clone()), ..value });
        Ok(())
    }

    fn call(&mut self, operation: &MlirOp) -> Read<()> {
        let Some(Attribute::Symbol(callee)) = operation.attributes.get("callee") else {
            return Err(malformed(operation, "a call names its function"));
        };
        let Some(name) = self.context.names.get(callee).cloned() else {
            return Err(malformed(operation, format!("the function `@{callee}` is not defined")));
        };
        let operands = self.all_operands(operation)?;
        if self.is_inlined(operation) {
            return self.inline(operation, callee, operands);
        }
        if self.threefry(operation, callee)? {
            return Ok(());
        }
        self.called.insert(callee.clone());
        let call = Build(operation.span).call(&name, operands.into_iter().map(|operand| operand.expr));
        self.emit_all(operation, call);
        Ok(())
    }
}

/// Whether an operation is code for each device.
fn has_device_code(operation: &MlirOp) -> bool {
    matches!(
        operation.name.as_str(),
        "sdy.manual_computation"
            | "stablehlo.all_reduce"
            | "stablehlo.all_gather"
            | "stablehlo.reduce_scatter"
            | "stablehlo.all_to_all"
            | "stablehlo.collective_permute"
            | "stablehlo.partition_id"
    )
}

/// The names of the functions that have code for each device, or call one that has.
fn with_manual_code(module: &MlirModule) -> BTreeSet<&str> {
    fn has<'m>(body: &'m [MlirOp], found: &BTreeSet<&'m str>) -> bool {
        body.iter().any(|operation| {
            let calls = |name: &str| operation.name == "call" && found.contains(name);
            has_device_code(operation)
                || matches!(operation.attributes.get("callee"), Some(Attribute::Symbol(name)) if calls(name))
                || operation.regions.iter().any(|region| has(&region.body, found))
        })
    }
    let mut found = BTreeSet::new();
    loop {
        let before = found.len();
        // Functions are printed after their callers.
        for function in module.functions.iter().rev() {
            if has(&function.body, &found) {
                found.insert(function.name.as_str());
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// The names of the functions that only take or replace a part of an array at places that they compute, and of the bodies of loops, which JAX
/// prints as functions.
fn unfolded(module: &MlirModule) -> BTreeSet<&str> {
    fn count<'m>(body: &'m [MlirOp], calls: &mut BTreeMap<&'m str, usize>) {
        for operation in body {
            if let Some(Attribute::Symbol(name)) = operation.attributes.get("callee") {
                *calls.entry(name).or_default() += 1;
            }
            operation.regions.iter().for_each(|region| count(&region.body, calls));
        }
    }
    let mut calls = BTreeMap::new();
    module.functions.iter().for_each(|function| count(&function.body, &mut calls));
    let is_body = |name: &str| name.starts_with("closed_call") && calls.get(name) == Some(&1);
    let is_unfolded = |function: &&MlirFunction| is_body(&function.name) || only_indexes(function);
    module.functions.iter().filter(is_unfolded).map(|function| function.name.as_str()).collect()
}

/// Whether a function only takes or replaces a part of an array.
fn only_indexes(function: &MlirFunction) -> bool {
    let is_part = |operation: &MlirOp| match operation.name.as_str() {
        "stablehlo.dynamic_slice"
        | "stablehlo.dynamic_update_slice"
        | "stablehlo.reshape"
        | "stablehlo.broadcast_in_dim"
        | "return" => true,
        "stablehlo.constant" | "stablehlo.compare" | "stablehlo.add" | "stablehlo.select" | "stablehlo.convert" => {
            operation.types.iter().all(|ty| ty.rank() == 0)
        }
        _ => false,
    };
    let slices = |operation: &MlirOp| operation.name.starts_with("stablehlo.dynamic_");
    function.body.iter().all(is_part) && function.body.iter().any(slices)
}

impl<'m> FunctionReader<'m> {
    /// Puts the statements of a function in the place of its call. The parameters of functions have types, which are those of numbers where
    /// the statements are applied to arrays.
    fn inline(&mut self, operation: &MlirOp, callee: &str, operands: Vec<MlirValue>) -> Read<()> {
        let Some(function) = self.context.functions.get(callee).copied() else {
            return Err(malformed(operation, format!("the function `@{callee}` is not defined")));
        };
        if function.params.len() != operands.len() || function.results.len() != operation.types.len() {
            return Err(malformed(operation, format!("this call does not fit the function `@{callee}`")));
        }
        if !self.context.unfolded.contains(callee) {
            self.inlined += function.body.len() + 1;
        }
        if self.inlined > MAX_INLINED || self.calls > MAX_CALLS {
            return Err(unsupported(operation, "with so many operations in code for each device, or in a reduction"));
        }
        self.calls += 1;
        let outer = std::mem::take(&mut self.values);
        for (param, operand) in function.params.iter().zip(operands) {
            self.values.insert(ValueName { base: param.name.clone(), index: 0 }, operand);
        }
        let returned = self.statements(&function.body);
        self.values = outer;
        self.calls -= 1;
        let returned = returned?;
        for (name, value) in Self::result_names(operation).into_iter().zip(returned) {
            self.values.insert(name, value);
        }
        Ok(())
    }

    /// The function that an operation calls.
    fn callee(&self, operation: &MlirOp) -> Option<&'m MlirFunction> {
        match operation.attributes.get("callee") {
            Some(Attribute::Symbol(name)) if operation.name == "call" => {
                self.context.functions.get(name.as_str()).copied()
            }
            _ => None,
        }
    }

    /// Whether a call is replaced by the statements of its function.
    fn is_inlined(&self, operation: &MlirOp) -> bool {
        let Some(callee) = self.callee(operation) else { return false };
        let is_unfolded = self.context.unfolded.contains(callee.name.as_str());
        is_unfolded || self.is_lifted || (!self.manual.is_empty() && self.has_manual_code(callee))
    }

    /// Whether a function, or one that it calls, has code for each device.
    fn has_manual_code(&self, function: &MlirFunction) -> bool {
        self.context.with_manual_code.contains(function.name.as_str())
    }

    /// Lowers statements into the innermost block: the values that they return.
    fn statements(&mut self, operations: &[MlirOp]) -> Read<Vec<MlirValue>> {
        for operation in operations {
            if matches!(operation.name.as_str(), "return" | "stablehlo.return" | "sdy.return") {
                return self.all_operands(operation);
            }
            self.operation(operation)?;
        }
        Ok(Vec::new())
    }
}

/// The type of the only result.
fn result_type(operation: &MlirOp) -> Read<TensorType> {
    match operation.types.as_slice() {
        [ty] => Ok(ty.clone()),
        types => Err(malformed(operation, format!("`{}` has one result, not {}", operation.name, types.len()))),
    }
}

fn malformed(operation: &MlirOp, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::E0110, operation.span, message)
}

/// E0111
fn unsupported(operation: &MlirOp, what: impl Into<String>) -> Diagnostic {
    let message = format!("`{}` is not supported {}", operation.name, what.into());
    Diagnostic::error(Code::E0111, operation.span, message.trim_end().to_string())
}

/// The integers of an attribute.
fn ints(operation: &MlirOp, name: &str) -> Read<Vec<i128>> {
    let found = operation.attributes.get(name).and_then(Attribute::ints);
    found.ok_or_else(|| malformed(operation, format!("`{}` requires integers as `{name}`", operation.name)))
}

/// The integers of an attribute, or none if it is absent.
fn optional_ints(operation: &MlirOp, name: &str) -> Vec<i128> {
    operation.attributes.get(name).and_then(Attribute::ints).unwrap_or_default()
}

/// Dimensions that exist.
fn dims(operation: &MlirOp, name: &str, rank: usize) -> Read<Vec<usize>> {
    let found = ints(operation, name)?;
    let dims: Option<Vec<usize>> =
        found.iter().map(|&dim| usize::try_from(dim).ok().filter(|&dim| dim < rank)).collect();
    dims.ok_or_else(|| malformed(operation, format!("`{name}` names a dimension that does not exist")))
}

/// The place of a whole operation, for expressions that belong to it.
fn at(operation: &MlirOp) -> Build {
    Build(operation.span)
}
