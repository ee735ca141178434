//! Words from NumPy, PyTorch, Python, Rust and C, and the equivalents in the language.

/// Words in the position of a name or a statement, and their equivalents.
pub const WORDS: &[(&[&str], &str)] = &[
    (
        &["np", "jnp", "numpy", "torch", "jax", "lax", "tf", "math", "scipy"],
        "functions have no prefix: `sum(x)`, `exp(x)`",
    ),
    (&["F", "nn"], "functions have no prefix: `relu(x)`; other files are read with `import \"nn.spmd\" as nn;`"),
    (&["elif", "elsif", "elseif"], "write `else if`"),
    (
        &["break", "continue"],
        "a loop makes all its trips: `while` takes a condition, and `if` goes around what a trip leaves out",
    ),
    (&["return"], "the value of a function is the last expression of its body, without `return` and `;`"),
    (&["and"], "both conditions: `a && b`"),
    (&["or"], "either condition: `a || b`"),
    (&["not"], "the opposite of a condition is `!c`"),
    (&["is"], "values are compared with `==`"),
    (&["True"], "did you mean `true`?"),
    (&["False"], "did you mean `false`?"),
    (&["lambda"], "a function without a name is written `|x| ...`"),
    (&["def", "func", "function", "pub"], "functions are declared with `fn name(x) { ... }`"),
    (&["var", "val"], "names are introduced by `let`, or `let mut` if they change"),
    (&["loop", "until"], "loops are `for i in 0..n { ... }` and `while c { ... }`"),
    (&["pass", "del"], "leave it out"),
    (&["println", "printf", "echo"], "`print(\"x = {}\", x)` prints a line"),
    (&["astype", "to", "type_as"], "`cast(x, f32)` or `f32(x)` converts"),
    (&["absolute", "fabs"], "did you mean `abs`?"),
    (&["power"], "a power is `x ** n`"),
    (
        &["concat", "cat", "append", "extend"],
        "`concatenate([a, b], axis=0)` joins arrays, `stack([a, b])` makes a dimension",
    ),
    (&["range", "xrange", "enumerate", "zip"], "a loop counts: `for i in 0..n { ... }`; `arange(n)` is an array"),
    (&["negative"], "the opposite number is `-x`"),
    (&["len"], "the number of rows is `x.shape[0]`, of elements `x.size`"),
    (&["numel"], "the number of elements is `x.size`"),
    (
        &["shape", "dtype", "size", "ndim", "T"],
        "it belongs to an array and is no function: `x.shape`, `x.dtype`, `x.size`, `x.ndim`, `x.T`",
    ),
    (&["unsqueeze", "newaxis"], "`expand_dims(x, axis=0)` or `x[None]` makes a dimension"),
    (&["permute"], "`transpose(x, (1, 0))` gives dimensions another order"),
    (&["view", "flatten"], "`reshape(x, (4, -1))` gives another shape, `reshape(x, -1)` one dimension"),
    (
        &["item", "tolist", "cpu", "cuda", "detach", "clone", "copy", "contiguous"],
        "leave it out: values are immutable, and a scalar is used as it is",
    ),
    (&["mm", "bmm"], "a product of matrices is `a @ b`"),
    (&["array", "asarray", "tensor"], "a list is an array: `[1.0, 2.0]`"),
    (&["amax"], "did you mean `max`?"),
    (&["amin"], "did you mean `min`?"),
    (&["rand", "random"], "`uniform(key(42), f32[4])` gives random numbers"),
    (&["randn"], "`normal(key(42), f32[4])` gives random numbers"),
    (
        &["add", "subtract", "multiply", "divide", "true_divide", "sub", "mul", "div"],
        "write the operator: `a + b`, `a - b`, `a * b`, `a / b`",
    ),
    (&["floor_divide"], "write the operator: `a // b`"),
    (&["mod", "remainder"], "write the operator: `a % b`"),
    (&["logical_and", "logical_or", "logical_not"], "write the operator: `a && b`, `a || b`, `!a`"),
    (
        &["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "invert"],
        "write the operator: `a & b`, `a | b`, `a ^ b`, `!a`",
    ),
    (
        &["equal", "not_equal", "greater", "greater_equal", "less", "less_equal"],
        "write the operator: `==`, `!=`, `<`, `<=`, `>`, `>=`",
    ),
    (&["pi"], "write the number: `3.141592653589793`"),
];

/// Names of parameters elsewhere, and their names here.
pub const KEYWORDS: &[(&str, &str)] = &[
    ("dim", "axis"),
    ("dims", "axis"),
    ("keepdim", "keepdims"),
    ("keep_dims", "keepdims"),
    ("dimension", "axis"),
    ("scatter_dimension", "axis"),
    ("split_axis", "split"),
    ("concat_axis", "concat"),
];

/// The advice for a word that the language does not have.
pub fn of_word(word: &str) -> Option<&'static str> {
    WORDS.iter().find(|(words, _)| words.contains(&word)).map(|(_, help)| *help)
}

/// The parameter that has another name elsewhere.
pub fn of_keyword(keyword: &str, parameters: &[&str]) -> Option<&'static str> {
    KEYWORDS.iter().find(|(word, here)| *word == keyword && parameters.contains(here)).map(|(_, here)| *here)
}
