//! Words from NumPy, PyTorch, Python, Rust and C, and the equivalents in the language.

/// Words in the position of a name or a statement, and their equivalents.
pub const WORDS: &[(&[&str], &str)] = &[
    (
        &["np", "jnp", "numpy", "torch", "jax", "lax", "tf", "math", "scipy"],
        "functions have no prefix: `sum(x)`, `exp(x)`",
    ),
    (&["F", "nn"], "functions have no prefix: `relu(x)`; `import \"nn.spmd\" as nn;` imports another file"),
    (&["elif", "elsif", "elseif"], "write `else if`"),
    (&["break", "continue"], "a loop cannot be left early; use the condition of a `while`, or an `if` in the body"),
    (&["return"], "a function returns the last expression of its body; write it without `return` and `;`"),
    (&["and"], "write `a && b`"),
    (&["or"], "write `a || b`"),
    (&["not"], "write `!c`"),
    (&["is"], "write `==` to compare values"),
    (&["True"], "did you mean `true`?"),
    (&["False"], "did you mean `false`?"),
    (&["lambda"], "write a lambda as `|x| ...`"),
    (&["def", "func", "function", "pub"], "declare a function with `fn name(x) { ... }`"),
    (&["var", "val"], "declare a variable with `let`, or with `let mut` if it changes"),
    (&["loop", "until"], "write `for i in 0..n { ... }` or `while c { ... }`"),
    (&["pass", "del"], "remove it"),
    (&["println", "printf", "echo"], "write `print(\"x = {}\", x)`"),
    (&["astype", "to", "type_as"], "write `f32(x)` or `cast(x, f32)`"),
    (&["absolute", "fabs"], "did you mean `abs`?"),
    (&["power"], "write the operator: `x ** n`"),
    (
        &["concat", "cat", "append", "extend"],
        "write `concatenate([a, b], axis=0)`, or `stack([a, b])` for a new dimension",
    ),
    (&["range", "xrange", "enumerate", "zip"], "write a loop, `for i in 0..n { ... }`, or `arange(n)` for an array"),
    (&["negative"], "write the operator: `-x`"),
    (&["len"], "write `x.shape[0]` for the number of rows, or `x.size` for the number of elements"),
    (&["numel"], "write `x.size`"),
    (
        &["shape", "dtype", "size", "ndim", "T"],
        "it is a field of an array: `x.shape`, `x.dtype`, `x.size`, `x.ndim`, `x.T`",
    ),
    (&["unsqueeze", "newaxis"], "write `expand_dims(x, axis=0)` or `x[None]`"),
    (&["permute"], "write `transpose(x, (1, 0))`"),
    (&["flatten"], "write `reshape(x, (4, -1))`, or `reshape(x, -1)` for one dimension"),
    (
        &["view"],
        "write `reshape(x, (4, -1))` for another shape, or `bitcast(x, i32)` for the bits as another element type",
    ),
    (
        &["item", "tolist", "cpu", "cuda", "detach", "clone", "copy", "contiguous"],
        "remove it: values are immutable, and scalars need no conversion",
    ),
    (&["mm", "bmm"], "write the operator: `a @ b`"),
    (&["array", "asarray", "tensor"], "write a list: `[1.0, 2.0]`"),
    (&["amax"], "did you mean `max`?"),
    (&["amin"], "did you mean `min`?"),
    (&["rand", "random"], "write `uniform(key(42), f32[4])`"),
    (&["randn"], "write `normal(key(42), f32[4])`"),
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

/// Whether a name is that of a library in other languages, whose functions the language has without the name before them.
pub fn is_library(name: &str) -> bool {
    ["np", "jnp", "numpy", "torch", "jax", "lax", "tf", "math", "scipy", "F"].contains(&name)
}

/// The advice for a word that the language does not have.
pub fn of_word(word: &str) -> Option<&'static str> {
    WORDS.iter().find(|(words, _)| words.contains(&word)).map(|(_, help)| *help)
}

/// The parameter that has another name elsewhere.
pub fn of_keyword(keyword: &str, parameters: &[&str]) -> Option<&'static str> {
    KEYWORDS.iter().find(|(word, here)| *word == keyword && parameters.contains(here)).map(|(_, here)| *here)
}
