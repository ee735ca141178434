//! Parameters of `main` by their paths in Python: `state.params['w']` and `state.params['b']` are fields of one parameter `state`.

use crate::build::Build;
use crate::identifiers::field_name;
use spmdc_grammar::ast::{Expr, ExprKind, Ident, ItemKind, ItemNode, ParamNode, TypeExpr, TypeExprKind};
use spmdc_grammar::print;
use std::collections::BTreeSet;

/// Maximum number of items of a tuple of parameters.
const MAX_TUPLE: usize = 1000;

/// A parameter as JAX flattens it.
pub struct FlatParam {
    /// `state.params['w']`, if it is known.
    pub path: Option<String>,
    /// The name without a path: `arg0`.
    pub name: String,
    pub ty: TypeExpr,
    pub build: Build,
}

/// The parameters of a function, the types of structs among them, and the expression of each flat parameter.
pub struct PathParams {
    pub params: Vec<ParamNode>,
    pub types: Vec<ItemNode>,
    pub exprs: Vec<Expr>,
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq)]
enum PathKey {
    /// `.w`, `['w']`
    Field(String),
    /// `[0]`
    Index(usize),
}

/// A tree of flat parameters, by position.
enum PathTree {
    Leaf(usize),
    Node(Vec<(PathKey, PathTree)>),
}

/// A path as the name of a parameter and its keys.
fn read_path(path: &str) -> Option<(String, Vec<PathKey>)> {
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (root, mut rest) = path.split_at(end);
    let mut keys = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("['") {
            let (key, after) = after.split_once("']")?;
            keys.push(PathKey::Field(key.to_string()));
            rest = after;
        } else if let Some(after) = rest.strip_prefix('[') {
            let (index, after) = after.split_once(']')?;
            keys.push(PathKey::Index(index.parse().ok()?));
            rest = after;
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[']).unwrap_or(after.len());
            keys.push(PathKey::Field(after[..end].to_string()));
            rest = &after[end..];
        }
    }
    Some((root.to_string(), keys)).filter(|(root, _)| !root.is_empty())
}

/// The last name in the path of a result: `loss` of `result[0]['loss']`.
pub fn last_field(path: &str) -> Option<String> {
    let (_, keys) = read_path(path)?;
    let name = |key: &PathKey| match key {
        PathKey::Field(name) => Some(field_name(name)),
        PathKey::Index(_) => None,
    };
    keys.iter().rev().find_map(name)
}

impl PathTree {
    /// Adds a parameter; whether its path has a place beside the others.
    fn insert(&mut self, keys: &[PathKey], param: usize) -> bool {
        let PathTree::Node(children) = self else { return false };
        let Some((key, rest)) = keys.split_first() else { return false };
        if let Some((_, child)) = children.iter_mut().find(|(known, _)| known == key) {
            return child.insert(rest, param);
        }
        if rest.is_empty() {
            children.push((key.clone(), PathTree::Leaf(param)));
            return true;
        }
        children.push((key.clone(), PathTree::Node(Vec::new())));
        children.last_mut().is_some_and(|(_, child)| child.insert(rest, param))
    }

    fn leaves(&self, found: &mut Vec<usize>) {
        match self {
            PathTree::Leaf(param) => found.push(*param),
            PathTree::Node(children) => children.iter().for_each(|(_, child)| child.leaves(found)),
        }
    }

    /// The positions of its children, if it is a tuple: its keys are ascending numbers. Those that are missing have no leaves.
    fn positions(children: &[(PathKey, PathTree)]) -> Option<Vec<usize>> {
        let position = |(key, _): &(PathKey, PathTree)| match key {
            PathKey::Index(index) => Some(*index).filter(|index| *index < MAX_TUPLE),
            PathKey::Field(_) => None,
        };
        let positions: Vec<usize> = children.iter().map(position).collect::<Option<_>>()?;
        positions.is_sorted().then_some(positions)
    }
}

/// Makes the types and expressions of trees.
struct PathWriter<'n> {
    params: &'n [FlatParam],
    /// The names of types that are taken.
    taken: BTreeSet<String>,
    types: Vec<(ItemNode, TypeExpr)>,
    exprs: Vec<Option<Expr>>,
}

impl PathWriter<'_> {
    /// The name of a field.
    fn field(&self, key: &PathKey) -> String {
        match key {
            PathKey::Field(name) => field_name(name),
            PathKey::Index(index) => format!("item{index}"),
        }
    }

    /// Whether the fields of all structs in a tree have different names.
    fn has_distinct_fields(&self, tree: &PathTree) -> bool {
        let PathTree::Node(children) = tree else { return true };
        let names: BTreeSet<String> = children.iter().map(|(key, _)| self.field(key)).collect();
        names.len() == children.len() && children.iter().all(|(_, child)| self.has_distinct_fields(child))
    }

    /// The type of a tree that is called `name`, and the expressions of its leaves, which begin with `base`.
    fn write(&mut self, build: Build, name: &str, tree: &PathTree, base: Expr) -> TypeExpr {
        let children = match tree {
            PathTree::Leaf(param) => {
                self.exprs[*param] = Some(base);
                return self.params[*param].ty.clone();
            }
            PathTree::Node(children) => children,
        };
        if let Some(positions) = PathTree::positions(children) {
            let mut items = Vec::new();
            for (position, (_, child)) in positions.into_iter().zip(children) {
                items.resize(position, TypeExpr { kind: TypeExprKind::Tuple(Vec::new()), span: build.0 });
                let part = build.part(base.clone(), position);
                // One of several `layers` is a `Layer`.
                let one = name.strip_suffix('s').filter(|one| !one.is_empty()).unwrap_or(name);
                items.push(self.write(build, one, child, part));
            }
            return TypeExpr { kind: TypeExprKind::Tuple(items), span: build.0 };
        }
        let mut fields: Vec<(Ident, TypeExpr)> = Vec::new();
        for (key, child) in children {
            let field = build.ident(self.field(key));
            let part = build.expr(ExprKind::Field { base: Box::new(base.clone()), name: field.clone() });
            let ty = self.write(build, &field.name, child, part);
            fields.push((field, ty));
        }
        self.named(build, name, TypeExpr { kind: TypeExprKind::Struct(fields), span: build.0 })
    }

    /// The name of a struct, which structs with the same fields share.
    fn named(&mut self, build: Build, name: &str, ty: TypeExpr) -> TypeExpr {
        let text = print::type_expr(&ty);
        let known = self.types.iter().find(|(_, known)| print::type_expr(known) == text);
        let type_name = match known {
            Some((ItemNode { kind: ItemKind::Type { name, .. }, .. }, _)) => name.name.clone(),
            Some(_) | None => {
                let mut own = camel_case(name);
                while !self.taken.insert(own.clone()) {
                    own.push('_');
                }
                let name = build.ident(own.clone());
                let kind = ItemKind::Type { name, size_params: Vec::new(), ty: ty.clone() };
                self.types.push((ItemNode { doc: Vec::new(), kind, span: build.0 }, ty));
                own
            }
        };
        let kind = TypeExprKind::Named { module: None, name: build.ident(type_name), args: Vec::new() };
        TypeExpr { kind, span: build.0 }
    }
}

/// `Params` for `params`.
fn camel_case(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect::<String>()
    };
    let text: String = words.map(capital).collect();
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) { text } else { format!("Struct{text}") }
}

/// The flat parameters below one name: the keys and the position of each.
type RootParams = (String, Vec<(Vec<PathKey>, usize)>);

/// The parameters by their paths. Those without a path, and trees that the language cannot express, keep their flat names. `taken` are
/// the names of the module's items and axes.
pub fn by_path(params: &[FlatParam], taken: &BTreeSet<String>, identifier: &dyn Fn(&str) -> String) -> PathParams {
    let mut roots: Vec<RootParams> = Vec::new();
    for (at, param) in params.iter().enumerate() {
        let read = param.path.as_deref().and_then(read_path);
        let (root, keys) = read.unwrap_or_else(|| (param.name.clone(), Vec::new()));
        match roots.last_mut().filter(|(last, members)| *last == root && !members[0].0.is_empty()) {
            Some((_, members)) => members.push((keys, at)),
            None => roots.push((root, vec![(keys, at)])),
        }
    }
    let exprs = params.iter().map(|_| None).collect();
    let mut writer = PathWriter { params, taken: taken.clone(), types: Vec::new(), exprs };
    let mut names: BTreeSet<String> = taken.clone();
    let mut nodes = Vec::new();
    for (root, members) in &roots {
        let build = params[members[0].1].build;
        let name = identifier(root);
        let mut tree = PathTree::Node(Vec::new());
        let fits = members.iter().all(|(keys, param)| tree.insert(keys, *param));
        let mut order = Vec::new();
        tree.leaves(&mut order);
        let is_in_order = order.iter().copied().eq(members.iter().map(|(_, param)| *param));
        let is_lone = members.len() == 1 && members[0].0.is_empty();
        if is_lone {
            tree = PathTree::Leaf(members[0].1);
        }
        if (is_lone || fits && is_in_order) && writer.has_distinct_fields(&tree) && names.insert(name.clone()) {
            let ty = writer.write(build, &name, &tree, build.name(&name));
            nodes.push(build.param(&name, Some(ty)));
            continue;
        }
        for (_, param) in members {
            let FlatParam { name, ty, build, .. } = &params[*param];
            names.insert(name.clone());
            writer.exprs[*param] = Some(build.name(name));
            nodes.push(build.param(name, Some(ty.clone())));
        }
    }
    let exprs = writer.exprs.into_iter().map(|expr| expr.expect("every parameter has an expression")).collect();
    PathParams { params: nodes, types: writer.types.into_iter().map(|(item, _)| item).collect(), exprs }
}
