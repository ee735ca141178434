//! The fields of all nodes of the tree, for code that treats all of them alike.

/// Calls a macro with all nodes: structs with their fields, then enums with their variants. A new field of a node belongs here, and a new
/// node.
macro_rules! nodes {
    ($call:ident) => {
        $call! {
            structs {
                Ident { name, span }
                ProgramNode { stage, items, comments }
                Comment { text, trailing, span }
                ItemNode { doc, kind, span }
                MeshItem { name, kind }
                MeshAxisNode { name, kind, size }
                FnItem { region, name, size_params, params, ret, body }
                RegionNode { kind, axes }
                ParamNode { pattern, ty, default, span }
                BlockNode { stmts, value, span }
                StmtNode { kind, span }
                PatternNode { kind, span }
                Expr { kind, span }
                ArgNode { name, value }
                ShardingExpr { dims, unreduced, reduced, span }
                DimAxes { axes, open, alignment, span }
                TypeExpr { kind, span }
                DimExpr { size, axes }
            }
            enums {
                ItemKind {
                    Mesh(mesh),
                    Const { name, value },
                    Type { name, size_params, ty },
                    Import { path, path_span, alias },
                    Fn(function),
                    Test(function),
                }
                MeshKind {
                    Axes { axes, devices },
                    Sub { of, fixed },
                }
                StmtNodeKind {
                    Let { mutable, pattern, ty, value },
                    Assign { target, op, value },
                    Expr(expr),
                }
                PatternKind {
                    Name(name),
                    Wildcard,
                    Tuple(parts),
                    Struct(fields),
                }
                ExprKind {
                    Int(value),
                    Float(digits),
                    Bool(value),
                    Str(text),
                    Name(name),
                    Wildcard,
                    None,
                    Unary { op, arg },
                    Binary { op, op_span, lhs, rhs },
                    Call { callee, args },
                    Index { base, indices },
                    Field { base, name },
                    TupleField { base, index, index_span },
                    Lambda { params, body },
                    Tuple(parts),
                    List(parts),
                    Struct(fields),
                    Block(block),
                    If { cond, then, otherwise },
                    For { pattern, start, end, step, collect, body },
                    While { cond, body },
                    Sharding(sharding),
                    Type(ty),
                }
                IndexNode {
                    Expr(expr),
                    Slice { start, stop, step, span },
                    Ellipsis(span),
                }
                ElementType {
                    Name(name),
                    Param(name),
                }
                TypeExprKind {
                    Array { dtype, dims, unreduced, reduced, varying, turned, mesh },
                    Tuple(types),
                    Struct(fields),
                    Named { module, name, args },
                    Stream(ty),
                    On { ty, mesh },
                }
            }
        }
    };
}

pub(crate) use nodes;
