"""Makes the golden arrays of derivatives of generated functions: random statements, loops and branches, each beside what JAX has for it.

    pip install "jax==0.10.2" numpy
    python3 tests/golden/make_generated.py

Each file has six functions of two matrices and a vector. Of each function JAX gives the tangent and the gradient, of every other one also
a product with the Hessian, and of every third the gradient of a function of the gradient.
"""

import random

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import erf, logsumexp

from store import write

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_disable_most_optimizations", True)

# Text with `x` for the operand, and the function of JAX.
UNARY = [
    ("sin(x)", jnp.sin), ("tanh(x)", jnp.tanh), ("exp(-x * x)", lambda x: jnp.exp(-x * x)), ("sqrt(1 + x * x)", lambda x: jnp.sqrt(1 + x * x)),
    ("softplus(x)", jax.nn.softplus), ("log1p(x * x)", lambda x: jnp.log1p(x * x)), ("sigmoid(x)", jax.nn.sigmoid), ("abs(x)", jnp.abs),
    ("erf(x)", erf), ("relu(x) - 0.1 * x", lambda x: jax.nn.relu(x) - 0.1 * x), ("gelu(x)", jax.nn.gelu), ("atan(x)", jnp.arctan),
    ("clip(x, -0.7, 0.9)", lambda x: jnp.clip(x, -0.7, 0.9)), ("x - round(x)", lambda x: x - jnp.round(x)), ("sinc(x)", jnp.sinc),
    ("2 * x", lambda x: 2 * x),
    ("x ** 3 / (1 + x * x)", lambda x: x**3 / (1 + x * x)), ("log(2 + cos(x))", lambda x: jnp.log(2 + jnp.cos(x))),
]
BINARY = [
    ("x + y", lambda x, y: x + y), ("x - 0.5 * y", lambda x, y: x - 0.5 * y), ("x * y", lambda x, y: x * y), ("x / (1 + y * y)", lambda x, y: x / (1 + y * y)),
    ("maximum(x, y)", jnp.maximum), ("minimum(x, y)", jnp.minimum), ("atan2(x, 2 + y * y)", lambda x, y: jnp.arctan2(x, 2 + y * y)),
    ("hypot(x, 1 + y)", lambda x, y: jnp.hypot(x, 1 + y)), ("logaddexp(x, y)", jnp.logaddexp), ("where(x > y, sin(x), y)", lambda x, y: jnp.where(x > y, jnp.sin(x), y)),
    ("(1 + x * x) ** sin(y)", lambda x, y: (1 + x * x) ** jnp.sin(y)),
]
REDUCED = [
    ("sum", jnp.sum), ("mean", jnp.mean), ("max", jnp.max), ("min", jnp.min), ("logsumexp", lambda x, axis, keepdims: logsumexp(x, axis, keepdims=keepdims)),
    ("var", jnp.var), ("prod", jnp.prod), ("norm", lambda x, axis, keepdims: jnp.linalg.norm(x, axis=axis, keepdims=keepdims)),
]
ALONG = [
    ("cumsum(x, axis=A)", jnp.cumsum), ("cumprod(x, axis=A)", jnp.cumprod), ("cummax(x, axis=A)", lambda x, axis: lax.cummax(x, axis)), ("sort(x, axis=A)", jnp.sort),
    ("softmax(x, axis=A)", lambda x, axis: jax.nn.softmax(x, axis)), ("log_softmax(x, axis=A)", lambda x, axis: jax.nn.log_softmax(x, axis)), ("flip(x, axis=A)", jnp.flip),
    ("roll(x, 2, axis=A)", lambda x, axis: jnp.roll(x, 2, axis)), ("cumsum(x, axis=A, reverse=true)", lambda x, axis: jnp.flip(jnp.cumsum(jnp.flip(x, axis), axis), axis)),
    ("concatenate([x, 2 * x], axis=A)", lambda x, axis: jnp.concatenate([x, 2 * x], axis)), ("diff(x, axis=A)", lambda x, axis: jnp.diff(x, axis=axis)),
    ("real(fft(x, axis=A)) / 4", lambda x, axis: jnp.fft.fft(x, axis=axis).real / 4), ("logcumsumexp(x, axis=A)", lambda x, axis: lax.cumlogsumexp(x, axis)),
]


class Function:
    """Statements on the variables `x`, `w` and `v`, in both languages."""

    FEWEST, MOST = 4, 8

    def __init__(self, seed, rows, columns):
        self.r, self.count, self.rows, self.columns = random.Random(f"{seed}/gradients"), 0, rows, columns
        shapes = {"x": (rows, columns), "w": (columns, columns), "v": (columns,)}
        self.shapes, steps = dict(shapes), []
        for _ in range(self.r.randint(self.FEWEST, self.MOST)):
            steps.append(self.statement(2))
        last = [name for name in self.shapes if name not in shapes][-4:]
        body = "".join(f"    {line}\n" for step in steps for line in step[0])
        self.text = "{\n" + body + f"    {' + '.join(f'sum(sin({name}))' for name in last)} + sum({last[0]}) * mean({last[-1]} * {last[-1]})\n  }}"
        self.steps, self.last = steps, last

    def __call__(self, x, w, v):
        env = {"x": x, "w": w, "v": v}
        for _, step in self.steps:
            step(env)
        return sum(jnp.sin(env[name]).sum() for name in self.last) + env[self.last[0]].sum() * (env[self.last[-1]] ** 2).mean()

    def new(self, shape):
        self.count += 1
        self.shapes[f"a{self.count}"] = shape
        return f"a{self.count}"

    def any(self, fits=lambda shape: True):
        fitting = [name for name, shape in self.shapes.items() if fits(shape)]
        return self.r.choice(fitting[-3:] if self.r.random() < 0.7 and fitting[-3:] else fitting) if fitting else None

    def let(self, text, shape, f):
        name = self.new(shape)
        def step(env):
            env[name] = f(env)
        return [f"let {name} = {text};"], step

    def statement(self, depth):
        while True:
            kinds = [self.unary, self.binary, self.product, self.reduction, self.along, self.slices, self.gathered, self.assigned, self.solved]
            kind = self.r.choice(kinds + ([lambda: self.loop(depth), lambda: self.branch(depth)] * 2 if depth else []))
            made = kind()
            if made:
                return made

    def same(self, name):
        """A function that keeps the shape of its operand: the statements of blocks."""
        shape, r = self.shapes[name], self.r
        other = self.any(lambda s: len(s) <= len(shape) and all(a in (1, b) for a, b in zip(s[::-1], shape[::-1])))
        text, f = r.choice(BINARY[:4] + BINARY[7:9])
        outer, g = r.choice(UNARY[:4])
        text = substituted(outer, x=f"({substituted(text, x=name, y=other)})")
        return text, lambda env: g(f(env[name], env[other]))

    def unary(self):
        x = self.any()
        text, f = self.r.choice(UNARY)
        return self.let(substituted(text, x=x), self.shapes[x], lambda env: f(env[x]))

    def binary(self):
        x = self.any()
        y = self.any(lambda s: len(s) <= len(self.shapes[x]) and all(a in (1, b) for a, b in zip(s[::-1], self.shapes[x][::-1])))
        text, f = self.r.choice(BINARY)
        return self.let(substituted(text, x=x, y=y), self.shapes[x], lambda env: f(env[x], env[y]))

    def product(self):
        x = self.any(lambda s: len(s) == 2)
        if not x:
            return None
        n, k = self.shapes[x]
        y = self.any(lambda s: len(s) == 2 and k in s)
        if not y:
            return None
        m = self.shapes[y][1] if self.shapes[y][0] == k else self.shapes[y][0]
        if self.shapes[y][0] == k:
            return self.let(f"{x} @ {y} / {k}", (n, m), lambda env: env[x] @ env[y] / k)
        return self.let(f"einsum(\"ik,jk->ij\", {x}, {y}) / {k}", (n, m), lambda env: jnp.einsum("ik,jk->ij", env[x], env[y]) / k)

    def reduction(self):
        x = self.any(lambda s: len(s) > 0 and min(s) > 1)
        if not x:
            return None
        axis, keep = self.r.randrange(len(self.shapes[x])), self.r.random() < 0.6
        name, f = self.r.choice(REDUCED)
        shape = [1 if at == axis else n for at, n in enumerate(self.shapes[x]) if keep or at != axis]
        return self.let(f"{name}({x}, axis={axis}, keepdims={str(keep).lower()})", tuple(shape), lambda env: f(env[x], axis=axis, keepdims=keep))

    def along(self):
        x = self.any(lambda s: len(s) > 0 and 1 < min(s) and np.prod(s) < 100)
        if not x:
            return None
        axis = self.r.randrange(len(self.shapes[x]))
        text, f = self.r.choice(ALONG)
        shape = jax.eval_shape(lambda a: f(a, axis=axis), jax.ShapeDtypeStruct(self.shapes[x], jnp.float64)).shape
        return self.let(substituted(text, x=x, A=str(axis)), shape, lambda env: f(env[x], axis=axis))

    def slices(self):
        x = self.any(lambda s: len(s) > 0)
        shape = self.shapes[x]
        axis, r = self.r.randrange(len(shape)), self.r
        start, step = r.randrange(shape[axis]), r.choice([1, 2, -1])
        entries = [":"] * len(shape)
        entries[axis] = f"{start}::{step}"
        at = (slice(None),) * axis + (slice(start, None, step),)
        if r.random() < 0.3:
            widths = [(r.randint(0, 2), r.randint(0, 1)) for _ in shape]
            mode = r.choice(["edge", "reflect", "wrap", "constant"]) if min(shape) > 2 else "edge"
            padded = tuple(n + a + b for n, (a, b) in zip(shape, widths))
            text = f"pad({x}, ({', '.join(map(str, widths))},)" + (")" if mode == "constant" else f", mode=\"{mode}\")")
            return self.let(text, padded, lambda env: jnp.pad(env[x], widths, mode=mode))
        if r.random() < 0.3:
            return self.let(f"reshape({x}.T, (-1, {shape[axis]}))", (int(np.prod(shape)) // shape[axis], shape[axis]), lambda env: env[x].T.reshape(-1, shape[axis]))
        size = len(range(shape[axis])[slice(start, None, step)])
        return self.let(f"{x}[{', '.join(entries)}]", tuple(size if i == axis else n for i, n in enumerate(shape)), lambda env: env[x][at])

    def gathered(self):
        x = self.any(lambda s: len(s) > 0)
        shape = self.shapes[x]
        axis = self.r.randrange(len(shape))
        index = [self.r.randrange(shape[axis]) for _ in range(self.r.randint(2, 6))]
        return self.let(f"take({x}, [{', '.join(map(str, index))}], axis={axis})", tuple(len(index) if i == axis else n for i, n in enumerate(shape)),
                        lambda env: jnp.take(env[x], jnp.array(index), axis=axis))

    def assigned(self):
        x = self.any(lambda s: len(s) > 0 and s[0] > 2)
        if not x:
            return None
        shape, name = self.shapes[x], None
        i, j = self.r.randrange(shape[0]), self.r.randrange(shape[0])
        way = self.r.randrange(3)
        name = self.new(shape)
        def step(env):
            a = env[x]
            if way == 0:
                a = a.at[i].set(jnp.sin(a[j]) * 2)
            elif way == 1:
                a = a.at[jnp.array([i, j, i])].add(jnp.cos(a[:3]))
            else:
                a = a.at[1:].multiply(a[:-1])
            env[name] = a
        lines = [f"{name}[{i}] = sin({name}[{j}]) * 2;", f"{name}[[{i}, {j}, {i}]] += cos({name}[:3]);", f"{name}[1:] *= {name}[:-1];"]
        return [f"let mut {name} = {x};", lines[way]], step

    def solved(self):
        x = self.any(lambda s: len(s) == 2 and s[0] == self.columns)
        if not x or self.r.random() < 0.5:
            return None
        m = self.columns
        spd = lambda w: w @ w.T / m + 2 * jnp.eye(m)
        text = f"w @ w.T / {m} + 2 * eye({m}, dtype=f64)"
        if self.r.random() < 0.5:
            return self.let(f"solve({text}, {x})", self.shapes[x], lambda env: jnp.linalg.solve(spd(env["w"]), env[x]))
        return self.let(f"cholesky({text}) @ {x}", self.shapes[x], lambda env: jnp.linalg.cholesky(spd(env["w"])) @ env[x])

    def block(self, carried, depth):
        """Statements that end in a new value for the carried name."""
        known, steps = dict(self.shapes), []
        for _ in range(self.r.randint(0, 2)):
            steps.append(self.statement(depth - 1))
        text, f = self.same(carried)
        self.shapes = known
        lines = [line for step in steps for line in step[0]]
        def run(env):
            env = dict(env)
            for _, step in steps:
                step(env)
            return f(env)
        return lines, text, run

    def loop(self, depth):
        start = self.any()
        shape, trips, collects = self.shapes[start], self.r.randint(1, 3), self.r.random() < 0.5
        name, rows = self.new(shape), None
        by = self.r.choice([1, 1, 2, -1])
        i = f"k{self.count}"
        lines, text, run = self.block(name, depth)
        if collects:
            rows = self.new((trips, *shape))
        first = trips if by < 0 else 0
        def step(env):
            def trip(h, k):
                h = run(env | {name: h}) * (1 + 0.25 * k)
                return h, jnp.sin(h)
            h, stack = lax.scan(trip, env[start], first + by * jnp.arange(trips).astype(jnp.float64))
            env[name] = h
            if rows:
                env[rows] = stack
        head = f"for {i} in {first}..{first + by * trips} step {by}"
        inner = [f"  {line}" for line in lines] + [f"  {name} = ({text}) * (1 + 0.25 * f64({i}));"]
        body = [f"let {rows} = {head} collect {{", *inner, f"  sin({name})", "};"] if rows else [f"{head} {{", *inner, "}"]
        return [f"let mut {name} = {start};", *body], step

    def branch(self, depth):
        start = self.any()
        decides = self.any()
        then, text, run = self.block(start, depth)
        otherwise, other, run_other = self.block(start, depth)
        name = self.new(self.shapes[start])
        def step(env):
            env[name] = lax.cond(env[decides].sum() > 0.1, lambda: run(env), lambda: run_other(env))
        lines = [f"let {name} = if sum({decides}) > 0.1 {{", *[f"  {line}" for line in then], f"  {text}", "} else {",
                 *[f"  {line}" for line in otherwise], f"  {other}", "};"]
        return lines, step


def substituted(text, **names):
    """The template with names for its variables."""
    parts, word = [], ""
    for char in text + " ":
        if char.isalnum() or char == "_":
            word += char
        else:
            parts += [names.get(word, word), char]
            word = ""
    return "".join(parts)[:-1]


def of(number, function, x, w, v, tangents):
    """What JAX makes of a function, and whether all of it is of a size that says something."""
    args = (x, w, v)
    grads = jax.grad(function, (0, 1, 2))
    found = [jax.jvp(function, args, tangents)[1], *grads(*args)]
    if number % 2 == 0:
        found += jax.jvp(grads, args, tangents)[1]
    if number % 3 == 0:
        found += jax.grad(lambda *args: sum(jnp.sin(g).sum() for g in grads(*args)), (0, 1, 2))(*args)
    return found


def calls(number):
    f, names = f"f{number}", "(x, w, v)"
    found = [f"    jvp({f}, {names}, (tx, tw, tv)).1", f"    grad({f}, argnums=(0, 1, 2)){names}"]
    if number % 2 == 0:
        found.append(f"    jvp(grad({f}, argnums=(0, 1, 2)), {names}, (tx, tw, tv)).1")
    if number % 3 == 0:
        found.append(f"    grad(|x, w, v| {{ let (a, b, c) = grad({f}, argnums=(0, 1, 2)){names}; sum(sin(a)) + sum(sin(b)) + sum(sin(c)) }}, argnums=(0, 1, 2)){names}")
    return found


def file(at):
    rows, columns = [(5, 3), (7, 4), (6, 6), (10, 3), (3, 5), (9, 2), (4, 7), (8, 4)][at]
    rng = np.random.default_rng(100 + at)
    inputs = [rng.standard_normal(shape) for shape in [(rows, columns), (columns, columns), (columns,)] * 2]
    functions, answers, seed = [], [], 0
    while len(functions) < 6:
        seed += 1
        function = Function(f"{at}/{seed}", rows, columns)
        number = len(functions)
        found = jax.jit(lambda x, w, v, *tangents: of(number, function, x, w, v, tangents))(*inputs)
        # Functions as steep as that are ill-conditioned.
        if all(np.all(np.isfinite(a)) and np.max(np.abs(a)) < 1e5 for a in found):
            functions.append(function)
            answers += found
    types = [f"f64[{rows}@X, {columns}]", f"f64[{columns}, {columns}@Y]", f"f64[{columns}]"]
    params = ", ".join(f"{name}: {ty}" for name, ty in zip(["x", "w", "v", "tx", "tw", "tv"], types * 2))
    lets = "".join(f"  let f{n} = |x, w, v| {f.text};\n" for n, f in enumerate(functions))
    text = f"fn main({params}) {{\n{lets}  (\n" + ",\n".join(call for n in range(len(functions)) for call in calls(n)) + "\n  )\n}"
    write(f"generated_gradients_{at}", "reduction", text, inputs, tuple(answers), meshes=["2x4", "3x2", "1x1", "8x1"][at % 4])


if __name__ == "__main__":
    for at in range(8):
        file(at)
