//! Trees and texts at random: every tree prints to text that reads as that tree, printing settles at once, and no text
//! whatever makes the parser panic.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use spmdc_grammar::ast::*;
use spmdc_grammar::format::{FormatError, format};
use spmdc_grammar::print::string;
use spmdc_grammar::span::{FileId, Span};
use spmdc_grammar::strip_spans::strip_spans;
use spmdc_grammar::{parse, print};

/// Makes a tree of bytes: each choice takes one. When they run out, the first choice is taken, and it is a leaf.
struct Maker<'a> {
    bytes: &'a [u8],
    depth: usize,
}

impl Maker<'_> {
    fn below(&mut self, count: usize) -> usize {
        match self.bytes.split_first() {
            Some((first, rest)) => {
                self.bytes = rest;
                usize::from(*first) % count
            }
            None => 0,
        }
    }

    fn flip(&mut self) -> bool {
        self.below(2) == 1
    }

    fn many<T>(&mut self, least: usize, mut each: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = least + self.below(3);
        (0..count).map(|_| each(self)).collect()
    }

    fn maybe<T>(&mut self, each: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flip().then(|| each(self))
    }

    fn text(&mut self) -> String {
        const NAMES: [&str; 15] =
            ["x", "y", "w", "N", "X", "Y", "P", "U", "V", "on", "as", "collect", "auto", "step", "stream"];
        NAMES[self.below(NAMES.len())].to_string()
    }

    fn name(&mut self) -> Ident {
        Ident { name: self.text(), span: Span::default() }
    }

    /// Where some reserved words are allowed.
    fn field(&mut self) -> Ident {
        let name = match self.below(8) {
            1 => "key".to_string(),
            2 => "type".to_string(),
            3 => "f32".to_string(),
            _ => self.text(),
        };
        Ident { name, span: Span::default() }
    }

    fn string(&mut self) -> String {
        const STRINGS: [&str; 7] = ["", "a b", "\"", "\\n\n\t\r\0", "// no", "ij,jk->ik", "é…{}"];
        STRINGS[self.below(STRINGS.len())].to_string()
    }

    fn program(&mut self) -> ProgramNode {
        ProgramNode { stage: self.maybe(Self::name), items: self.many(1, Self::item), comments: Vec::new() }
    }

    fn item(&mut self) -> ItemNode {
        let kind = match self.below(8) {
            0 => ItemKind::Const { name: self.name(), value: self.expr() },
            1 => ItemKind::Type { name: self.name(), size_params: self.many(0, Self::name), ty: self.type_expr() },
            2 => ItemKind::Import { path: self.string(), path_span: Span::default(), alias: self.maybe(Self::name) },
            3 => ItemKind::Mesh(MeshItem {
                name: self.maybe(Self::name),
                kind: MeshKind::Axes {
                    axes: self.many(0, |maker| MeshAxisNode {
                        name: maker.name(),
                        kind: maker.maybe(|maker| (maker.axis_kind(), Span::default())),
                        size: maker.expr(),
                    }),
                    devices: self.maybe(|maker| maker.many(0, Self::expr)),
                },
            }),
            4 => ItemKind::Mesh(MeshItem {
                name: Some(self.name()),
                kind: MeshKind::Sub { of: self.name(), fixed: self.many(1, |maker| (maker.name(), maker.expr())) },
            }),
            5 => ItemKind::Test(FnItem {
                region: None,
                name: Ident { name: format!("test {}", string(&self.string())), span: Span::default() },
                size_params: Vec::new(),
                params: Vec::new(),
                ret: None,
                body: self.block(),
            }),
            _ => ItemKind::Fn(FnItem {
                region: self.maybe(|maker| RegionNode { kind: maker.axis_kind(), axes: maker.many(0, Self::name) }),
                name: Ident { name: "f".to_string(), span: Span::default() },
                size_params: self.many(0, Self::name),
                params: self.many(0, |maker| ParamNode { default: maker.maybe(Self::expr), ..maker.param() }),
                ret: self.maybe(Self::type_expr),
                body: self.block(),
            }),
        };
        let doc = self.many(0, |maker| ["", "Words.", " indented // twice"][maker.below(3)].to_string());
        ItemNode { doc, kind, span: Span::default() }
    }

    fn axis_kind(&mut self) -> AxisKind {
        [AxisKind::Auto, AxisKind::Explicit, AxisKind::Manual][self.below(3)]
    }

    fn param(&mut self) -> ParamNode {
        ParamNode { pattern: self.pattern(), ty: self.maybe(Self::type_expr), default: None, span: Span::default() }
    }

    fn pattern(&mut self) -> PatternNode {
        let kind = match self.nested(4) {
            0 => PatternKind::Name(self.text()),
            1 => PatternKind::Wildcard,
            2 => PatternKind::Tuple(self.many(0, Self::pattern)),
            _ => PatternKind::Struct(self.many(0, |maker| match maker.maybe(Self::pattern) {
                Some(pattern) => (maker.field(), Some(pattern)),
                None => (maker.name(), None),
            })),
        };
        self.depth -= 1;
        PatternNode { kind, span: Span::default() }
    }

    /// A choice that is the first where the tree is deep already. The caller goes up again.
    fn nested(&mut self, count: usize) -> usize {
        self.depth += 1;
        if self.depth > 12 { 0 } else { self.below(count) }
    }

    fn type_expr(&mut self) -> TypeExpr {
        let kind = match self.nested(7) {
            6 => TypeExprKind::Stream(Box::new(self.streamed_type())),
            5 => TypeExprKind::Array {
                dtype: ElementType::Param(self.name()),
                dims: self.many(1, |maker| DimExpr { size: maker.size(), axes: maker.maybe(Self::dim_axes) }),
                unreduced: Vec::new(),
                reduced: Vec::new(),
                varying: Vec::new(),
                turned: Vec::new(),
                mesh: self.maybe(Self::name),
            },
            0 => TypeExprKind::Array {
                dtype: ElementType::Name(DTypeName::ALL[self.below(DTypeName::ALL.len())].0),
                dims: self.many(0, |maker| DimExpr { size: maker.size(), axes: maker.maybe(Self::dim_axes) }),
                unreduced: self.many(0, Self::name),
                reduced: self.many(0, Self::name),
                varying: self.many(0, Self::name),
                turned: self.many(0, Self::name),
                mesh: self.maybe(Self::name),
            },
            1 => TypeExprKind::Tuple(self.many(0, Self::type_expr)),
            2 => TypeExprKind::Struct(self.many(0, |maker| (maker.field(), maker.type_expr()))),
            3 => TypeExprKind::Named {
                module: self.maybe(Self::name),
                name: self.name(),
                args: self.many(0, Self::size),
            },
            _ => {
                let ty = self.type_expr();
                if matches!(ty.kind, TypeExprKind::Array { .. } | TypeExprKind::On { .. } | TypeExprKind::Stream(_)) {
                    ty.kind
                } else {
                    TypeExprKind::On { ty: Box::new(ty), mesh: self.name() }
                }
            }
        };
        self.depth -= 1;
        TypeExpr { kind, span: Span::default() }
    }

    /// The array of a stream: it begins with a name that is not a contextual word.
    fn streamed_type(&mut self) -> TypeExpr {
        loop {
            let ty = self.type_expr();
            let is_plain =
                |name: &Ident| !["on", "as", "collect", "auto", "step", "stream"].contains(&name.name.as_str());
            let fits = match &ty.kind {
                TypeExprKind::Array { dtype: ElementType::Name(_), mesh, .. } => mesh.is_none(),
                TypeExprKind::Array { dtype: ElementType::Param(name), mesh, .. } => mesh.is_none() && is_plain(name),
                TypeExprKind::Named { module, name, .. } => is_plain(module.as_ref().unwrap_or(name)),
                TypeExprKind::Tuple(_)
                | TypeExprKind::Struct(_)
                | TypeExprKind::Stream(_)
                | TypeExprKind::On { .. } => false,
            };
            if fits {
                return ty;
            }
        }
    }

    fn dim_axes(&mut self) -> DimAxes {
        let frame = |maker: &mut Self| AlignmentNode {
            size: maker.below(256) as u64,
            start: maker.below(256) as i64 - 128,
            step: 1 + maker.below(3) as u64,
        };
        let (axes, open) = (self.many(0, Self::name), self.flip());
        DimAxes { axes, open, alignment: self.maybe(frame), span: Span::default() }
    }

    fn size(&mut self) -> Expr {
        let kind = match self.nested(5) {
            0 => ExprKind::Int(self.below(256) as u64),
            1 => ExprKind::Name(self.text()),
            2 => ExprKind::Field {
                base: Box::new(Expr { kind: ExprKind::Name(self.text()), span: Span::default() }),
                name: self.name(),
            },
            3 => ExprKind::Unary { op: PrefixOp::Neg, arg: Box::new(self.size()) },
            _ => {
                let operators =
                    [InfixOp::Add, InfixOp::Sub, InfixOp::Mul, InfixOp::Div, InfixOp::FloorDiv, InfixOp::Rem];
                ExprKind::Binary {
                    op: operators[self.below(6)],
                    op_span: Span::default(),
                    lhs: Box::new(self.size()),
                    rhs: Box::new(self.size()),
                }
            }
        };
        self.depth -= 1;
        Expr { kind, span: Span::default() }
    }

    fn block(&mut self) -> BlockNode {
        let mut block = BlockNode {
            stmts: self.many(0, Self::stmt),
            value: self.maybe(|maker| Box::new(maker.expr())),
            span: Span::default(),
        };
        // A block that consists of one shorthand field, without a comma, is a block; nothing else is ambiguous.
        if self.depth > 12 {
            block.stmts.clear();
        }
        block
    }

    fn stmt(&mut self) -> StmtNode {
        let kind = match self.below(3) {
            0 => StmtNodeKind::Expr(self.expr()),
            1 => StmtNodeKind::Let {
                mutable: self.flip(),
                pattern: self.pattern(),
                ty: self.maybe(Self::type_expr),
                value: self.expr(),
            },
            _ => {
                let target = match self.below(6) {
                    0 => ExprKind::Name(self.text()),
                    1 => ExprKind::Index { base: Box::new(self.expr()), indices: self.many(1, Self::index) },
                    2 => ExprKind::Field { base: Box::new(self.expr()), name: self.field() },
                    3 => ExprKind::Wildcard,
                    4 => ExprKind::Struct(self.fields()),
                    _ => ExprKind::Tuple(self.many(0, Self::expr)),
                };
                let op = self.maybe(Self::operator).filter(|op| {
                    let is_single =
                        matches!(target, ExprKind::Name(_) | ExprKind::Index { .. } | ExprKind::Field { .. });
                    is_single && !is_logical(*op)
                });
                StmtNodeKind::Assign { target: Expr { kind: target, span: Span::default() }, op, value: self.expr() }
            }
        };
        StmtNode { kind, span: Span::default() }
    }

    fn operator(&mut self) -> InfixOp {
        use InfixOp::*;
        let operators = [
            Or, And, Eq, Ne, Lt, Le, Gt, Ge, BitOr, BitXor, BitAnd, Shl, Shr, Add, Sub, Mul, Div, FloorDiv, Rem,
            MatMul, Pow,
        ];
        operators[self.below(operators.len())]
    }

    fn fields(&mut self) -> Vec<(Ident, Option<Expr>)> {
        self.many(1, |maker| match maker.maybe(Self::expr) {
            Some(value) => (maker.field(), Some(value)),
            None => (maker.name(), None),
        })
    }

    fn index(&mut self) -> IndexNode {
        match self.below(3) {
            0 => IndexNode::Expr(self.expr()),
            1 => IndexNode::Slice {
                start: self.maybe(Self::expr),
                stop: self.maybe(Self::expr),
                step: self.maybe(Self::expr),
                span: Span::default(),
            },
            _ => IndexNode::Ellipsis(Span::default()),
        }
    }

    fn boxed(&mut self) -> Box<Expr> {
        Box::new(self.expr())
    }

    fn expr(&mut self) -> Expr {
        let kind = match self.nested(26) {
            0 => ExprKind::Name(self.text()),
            1 => ExprKind::Int([0, 7, u64::MAX][self.below(3)]),
            2 => ExprKind::Float(["1.0", "0.5", "1e-5", "2.5e+10"][self.below(4)].to_string()),
            3 => ExprKind::Bool(self.flip()),
            4 => ExprKind::Str(self.string()),
            5 => ExprKind::Wildcard,
            6 => ExprKind::None,
            7 => ExprKind::Unary { op: [PrefixOp::Neg, PrefixOp::Not][self.below(2)], arg: self.boxed() },
            8..=11 => {
                ExprKind::Binary { op: self.operator(), op_span: Span::default(), lhs: self.boxed(), rhs: self.boxed() }
            }
            12 | 13 => ExprKind::Call {
                callee: self.boxed(),
                args: self.many(0, |maker| ArgNode { name: maker.maybe(Self::field), value: maker.expr() }),
            },
            14 => ExprKind::Index { base: self.boxed(), indices: self.many(1, Self::index) },
            15 => ExprKind::Field { base: self.boxed(), name: self.field() },
            16 => ExprKind::TupleField { base: self.boxed(), index: self.below(12), index_span: Span::default() },
            17 => ExprKind::Lambda { params: self.many(0, Self::param), body: self.boxed() },
            18 => ExprKind::Tuple(self.many(0, Self::expr)),
            19 => ExprKind::List(self.many(0, Self::expr)),
            20 => ExprKind::Struct(self.fields()),
            21 => ExprKind::Block(self.block()),
            22 => ExprKind::If {
                cond: self.boxed(),
                then: self.block(),
                otherwise: self.maybe(|maker| {
                    let kind = if maker.flip() {
                        ExprKind::If { cond: maker.boxed(), then: maker.block(), otherwise: None }
                    } else {
                        ExprKind::Block(maker.block())
                    };
                    Box::new(Expr { kind, span: Span::default() })
                }),
            },
            23 => ExprKind::For {
                pattern: self.pattern(),
                start: self.boxed(),
                end: self.boxed(),
                step: self.maybe(Self::boxed),
                collect: self.flip(),
                body: self.block(),
            },
            24 => ExprKind::While { cond: self.boxed(), body: self.block() },
            _ => {
                if self.flip() {
                    ExprKind::Sharding(ShardingExpr {
                        dims: self.many(0, Self::dim_axes),
                        unreduced: self.many(0, Self::name),
                        reduced: self.many(0, Self::name),
                        span: Span::default(),
                    })
                } else {
                    let mut ty = self.type_expr();
                    while !matches!(ty.kind, TypeExprKind::Array { dtype: ElementType::Name(_), .. }) {
                        ty = self.type_expr();
                    }
                    ExprKind::Type(Box::new(ty))
                }
            }
        };
        self.depth -= 1;
        Expr { kind, span: Span::default() }
    }
}

fn is_logical(op: InfixOp) -> bool {
    use InfixOp::*;
    matches!(op, Or | And | Eq | Ne | Lt | Le | Gt | Ge)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_printed_reads_as_itself(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut tree = Maker { bytes: &bytes, depth: 0 }.program();
        let text = print(&tree);
        let (mut again, diagnostics) = parse(&text, FileId::default());
        prop_assert!(diagnostics.is_empty(), "{text}\n{diagnostics:#?}");
        prop_assert_eq!(print(&again), text.clone());
        strip_spans(&mut tree);
        strip_spans(&mut again);
        prop_assert!(tree == again, "{text}\n{tree:#?}\n{again:#?}");
        // The formatter compares the trees itself.
        let formatted = format(&text, FileId::default());
        match formatted {
            Ok(formatted) => prop_assert_eq!(format(&formatted, FileId::default()).unwrap(), formatted),
            // A divisor that needs several lines.
            Err(FormatError::Changed(changed)) if changed.contains("//") => {}
            Err(error) => return Err(TestCaseError::fail(format!("{error:?}\n{text}"))),
        }
    }

    #[test]
    fn no_text_panics(text in "[ -~\n]{0,200}") {
        parse(&text, FileId::default());
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        parse(&String::from_utf8_lossy(&bytes), FileId::default());
    }

    #[test]
    fn no_words_panic(words in prop::collection::vec(0..WORDS.len(), 0..60)) {
        let text: Vec<&str> = words.iter().map(|word| WORDS[*word]).collect();
        complains_sensibly(&text.join(" "));
        complains_sensibly(&text.concat());
    }

    #[test]
    fn no_changed_program_panics(edits in prop::collection::vec((any::<u16>(), 0..4u8, 0..WORDS.len()), 1..6)) {
        let mut text = PROGRAM.to_string();
        for (place, kind, word) in edits {
            let at = text.floor_char_boundary(usize::from(place) % (text.len() + 1));
            let end = text.ceil_char_boundary(at + WORDS[word].len());
            match kind {
                0 => text.insert_str(at, WORDS[word]),
                1 => text.replace_range(at..end, ""),
                2 => text.truncate(at),
                _ => text.replace_range(at..end, WORDS[word]),
            }
        }
        complains_sensibly(&text);
    }
}

/// All errors are inside the text, and the parts that could be read can be printed and read again.
fn complains_sensibly(text: &str) {
    let (program, diagnostics) = parse(text, FileId::default());
    for diagnostic in &diagnostics {
        let span = diagnostic.span;
        assert!(span.start <= span.end && span.end as usize <= text.len(), "{text}\n{diagnostic:?}");
        assert!(text.is_char_boundary(span.start as usize) && text.is_char_boundary(span.end as usize));
        assert!(!diagnostic.message.is_empty());
    }
    let printed = print(&program);
    let (_, again) = parse(&printed, FileId::default());
    assert!(again.is_empty(), "{text}\n---\n{printed}\n{again:#?}");
}

const WORDS: [&str; 76] = [
    "x", "f", "P(", "P", "f32", "key", "12", "1.5", ".5", "1.", "0x", "\"s\"", "\"", "(", ")", "[", "]", "{", "}",
    "{U:", ",", ";", ":", "->", ".", "..", "...", "?", "||", "&&", "==", "<", ">=", "|", "^", "&", "<<", ">>", "+",
    "-", "*", "/", "//", "///", "%", "@", "!", "**", "=", "+=", "//=", "_", "\n", "é", "#", "let", "mut", "if", "else",
    "for", "while", "in", "fn", "mesh", "const", "type", "import", "manual", "stage", "on", "as", "collect", "step",
    "stream", "None", "true",
];

const PROGRAM: &str = "mesh (X = 2, Y: explicit = 4);
mesh first = all[stage = 0];
const N = 4096;
type Layer<I, O> = { w: f32[I, O@X], b: f32[O / 2]{U:Y} };
/// Documented.
manual(X) fn dense<B, I>(x: f32[B, I@(X, Y)], p: Layer<I, 2>) -> f32 on first {
  let mut u = x @ p.w // 2; // half
  for i in 0..N { u[0, :] += 1.0 ** -i; }
  if a < b && !c { g(x, axis=0); } else if d { u = v; } else { w = [1, (2,), { q, }]; }
  let z = for i in 0..3 collect { t.0.1 };
  reshard(vmap(|a, g| a - g, x[1:-1, ..., None]), P(X, _, ?))
}
";
