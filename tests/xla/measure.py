"""Measures what XLA communicates in the programs of this folder; `docs/xla.md` compares with what it writes to `xla.json`.

    pip install "jax==0.10.2" numpy
    python3 tests/xla/measure.py

Each program is written once more in JAX. Shapes, the mesh, and the layouts of arguments and results are read from its text
in spmd. The collectives are those of the compiled HLO; one in a loop counts as often as the loop runs. A few figures of the
results, for arguments from `jax.random.uniform`, go into the file as well: by them a test sees that both texts mean the same.
With HLO=FOLDER in the environment, the HLO is stored there.
"""

import json
import os
import pathlib
import re

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

HERE = pathlib.Path(__file__).parent

# ------------------------------------------------------------------------------------------------------------ programs


def mlp(x, w1, w2):
    return jax.nn.relu(x @ w1) @ w2


def attend(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 2
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), v)


def attend_once(q, k, v):
    scores = jnp.einsum("bhd,bhkd->bhk", q, k) / 2
    return jnp.einsum("bhk,bhkd->bhd", jax.nn.softmax(scores, axis=-1), v)


def attention(x, wq, wk, wv, wo):
    q, k, v = (jnp.einsum("btm,mhd->bhtd", x, w) for w in (wq, wk, wv))
    return jnp.einsum("bhqd,hdm->bqm", attend(q, k, v), wo)


def heat_rolls(u):
    def step(_, u):
        around = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)
        return u + 0.1 * (around - 4 * u)

    return jax.lax.fori_loop(0, 4, step, u)


def five_point(u):
    def step(_, u):
        return u.at[1:-1, 1:-1].set(0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]))

    return jax.lax.fori_loop(0, 4, step, u)


def three_point(u):
    def step(_, u):
        return u.at[1:-1].set(0.25 * u[:-2] + 0.5 * u[1:-1] + 0.25 * u[2:])

    return jax.lax.fori_loop(0, 4, step, u)


def kmeans(x):
    def step(_, centres):
        distances = jnp.sum(jnp.square(centres), axis=1) - 2 * (x @ centres.T)
        member = jax.nn.one_hot(jnp.argmin(distances, axis=1), 10, dtype=jnp.float32)
        count = jnp.sum(member, axis=0)[:, None]
        return jnp.where(count > 0, (member.T @ x) / jnp.maximum(count, 1), centres)

    return jax.lax.fori_loop(0, 5, step, x[0:160:16])


def layer_norm(x, scale, shift):
    mean, var = jnp.mean(x, axis=1, keepdims=True), jnp.var(x, axis=1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * scale + shift


def transformer(x, scales, wq, wk, wv, wo, w1, w2):
    def norm(x, scale):
        mean, var = jnp.mean(x, axis=-1, keepdims=True), jnp.var(x, axis=-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(var + 1e-5) * scale

    for i in range(2):
        x = x + attention(norm(x, scales[2 * i]), wq[i], wk[i], wv[i], wo[i])
        x = x + jax.nn.gelu(norm(x, scales[2 * i + 1]) @ w1[i]) @ w2[i]
    return x


def recurrence(a, b):
    return jax.lax.associative_scan(lambda l, r: (l[0] * r[0], l[1] * r[0] + r[1]), (a, b))[1]


def conv(x, w, stride=1):
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def triangular(x, y, **system):
    return jax.lax.linalg.triangular_solve(x + 256 * jnp.eye(256), y, left_side=True, lower=True, **system)


def max_pool(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


def accumulation(w, x, y):
    def loss(w, x, y):
        return jnp.sum((jnp.tanh(x @ w / 32) - y) ** 2)

    def step(i, g):
        return g + jax.grad(loss)(w, x[i], y[i])

    return jax.lax.fori_loop(0, 8, step, jnp.zeros_like(w))


def accumulation_layers(w, x, y):
    def loss(w, x, y):
        h, _ = jax.lax.scan(lambda h, w: (jnp.tanh(h @ w / 32), None), x, w)
        return jnp.sum((h - y) ** 2)

    def step(i, g):
        return g + jax.grad(loss)(w, x[i], y[i])

    return jax.lax.fori_loop(0, 8, step, jnp.zeros_like(w))


def through_time(w, x):
    def loss(w):
        h, _ = jax.lax.scan(lambda h, x: (jnp.tanh(h @ w / 32 + x), None), jnp.zeros_like(x[0]), x)
        return jnp.sum(h * h)

    return jax.grad(loss)(w)


def fsdp_layers(w, x):
    return jax.lax.scan(lambda h, w: (jnp.tanh(h @ w / 64), None), x, w)[0]


# In the order of the table.
PROGRAMS = {
    "mlp_data": mlp,
    "mlp_tensor": mlp,
    "mlp_tensor_scattered": mlp,
    "mlp_fsdp": mlp,
    "mlp_fsdp_small_batch": mlp,
    "mlp_fsdp_tensor": mlp,
    "accumulation": accumulation,
    "accumulation_layers": accumulation_layers,
    "through_time": through_time,
    "fsdp_layers": fsdp_layers,
    "attention_heads": attention,
    "attention_sequence": attend,
    "attention_heads_to_sequence": attend,
    "attention_cache": attend_once,
    "heat_rolls": heat_rolls,
    "five_point": five_point,
    "three_point": three_point,
    "kmeans": kmeans,
    "layer_norm": layer_norm,
    "softmax": lambda x: jax.nn.softmax(x, axis=1),
    "transformer": transformer,
    "sort_line": jnp.sort,
    "sort_rows": lambda x: jnp.sort(x, axis=1),
    "argsort_rows": lambda x: jnp.argsort(x, axis=1).astype(jnp.float32),
    "top_k": lambda x: jax.lax.top_k(x, 8)[0],
    "median_rows": lambda x: jnp.median(x, axis=1),
    "quantile_line": lambda x: jnp.quantile(x, jnp.array([0.25, 0.5, 0.75])),
    "embedding": lambda table, at: table[(at * 64).astype(jnp.int32)],
    "cumsum_line": jnp.cumsum,
    "recurrence": recurrence,
    "searchsorted_table": lambda x, v: jnp.searchsorted(jnp.arange(1024) + x, v * 1024).astype(jnp.float32),
    "histogram_line": lambda x: jnp.histogram(x, 16, range=(0, 1))[0].astype(jnp.float32),
    "bincount_line": lambda x: jnp.bincount((x * 64).astype(jnp.int32), length=64).astype(jnp.float32),
    "qr_tall": lambda x: jnp.linalg.qr(x, mode="r"),
    "cholesky_rows": lambda x: jnp.linalg.cholesky(x + 256 * jnp.eye(256), symmetrize_input=False),
    "triangular_rows": lambda x, y: triangular(x, y),
    "triangular_transposed": lambda x, y: triangular(x, y, transpose_a=True),
    "solve_rows": lambda x, y: jnp.linalg.solve(x + 256 * jnp.eye(256), y),
    "segment_sum": lambda x, at: jax.ops.segment_sum(x, (at * 32).astype(jnp.int32), 32),
    "scatter_add_rows": lambda table, at, v: table.at[(at * 64).astype(jnp.int32)].add(v),
    "scatter_add_batch": lambda at, v: jnp.zeros((64, 16)).at[(at * 64).astype(jnp.int32)].add(v),
    "embedding_batch": lambda table, at: table[(at * 64).astype(jnp.int32)],
    "conv_space": conv,
    "conv_strides": lambda x, w: conv(x, w, 2),
    "conv_channels": conv,
    "max_pool_rows": max_pool,
    "fft_rows": lambda x: jnp.abs(jnp.fft.fft(x, axis=0)),
    "fft_filter": lambda x: jnp.fft.ifft2(jnp.fft.fft2(x) / (1 + jnp.fft.fftfreq(64) ** 2)).real,
    "rfft_filter": lambda x, w: jnp.fft.irfft(jnp.fft.rfft(x) * w, n=64),
    "fft_line": lambda x: jnp.abs(jnp.fft.fft(x)),
    "convolution_line": lambda x, y: jnp.fft.ifft(jnp.fft.fft(x) * jnp.fft.fft(y)).real,
    "moving_sum": lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (5,), (1,), "SAME"),
}

# ---------------------------------------------------------------------------------------------------------- spmd texts

TYPE = r"f32\[([^\]]*)\]"


def parts(text):
    """Splits at commas that are in no parentheses."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def layout(dims):
    """The shape and the partition of `16@X, 32@(X, Y), 8`."""
    shape, partition = [], []
    for dim in parts(dims):
        size, _, axes = dim.partition("@")
        names = tuple(re.findall(r"[A-Z]", axes))
        shape.append(int(size))
        partition.append(names or None)
    return tuple(shape), PartitionSpec(*partition)


def signature(text):
    """The mesh, the parameters and the result of `main`."""
    axes = re.findall(r"(\w+) = (\d+)", re.search(r"^mesh \((.*)\);", text, re.M)[1])
    mesh = jax.make_mesh(
        tuple(int(size) for _, size in axes),
        tuple(name for name, _ in axes),
        axis_types=(jax.sharding.AxisType.Auto,) * len(axes),
    )
    head = re.search(r"fn main\((.*?)\) -> " + TYPE + r" \{", text, re.S)
    params = [layout(dims) for dims in re.findall(r"\w+: " + TYPE, head[1])]
    return mesh, params, layout(head[2])


# ----------------------------------------------------------------------------------------------------------------- HLO

KINDS = {
    "all-reduce": "all_reduce",
    "all-gather": "all_gather",
    "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all",
    "collective-permute": "collective_permute",
}
OTHER = ("ragged-all-to-all", "collective-broadcast", "send", "recv")
SIZES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8, "c64": 8, "c128": 16}
CALLS = r"(?:body|condition|to_apply|calls|true_computation|false_computation)=%?([\w.\-]+)"


def size_of(types):
    """Bytes of all arrays in the text of a type."""
    total = 0
    for dtype, dims in re.findall(r"\b([a-z]+\d*)\[([\d,]*)\]", types):
        total += SIZES[dtype] * int(np.prod([int(dim) for dim in dims.split(",") if dim]))
    return total


def group_size(line):
    iota = re.search(r"replica_groups=\[(\d+),(\d+)\]<=", line)
    if iota:
        return int(iota[2])
    named = re.search(r"replica_groups=mesh\[(.*?)\].*?\{(.*?)\}", line)
    if named:
        sizes = {axis: int(size) for axis, size in re.findall(r"'(\w+)'=(\d+)", named[1])}
        axes = re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", named[2])
        return int(np.prod([int(size) if size else sizes[axis] for axis, size in axes]))
    groups = re.search(r"replica_groups=\{\{([\d,]*)\}", line)
    if not groups:
        raise ValueError(f"no groups: {line}")
    return len(groups[1].split(","))


def permuted(line):
    """How many devices receive from another one."""
    pairs = re.search(r"source_target_pairs=\{(.*?)\}\}", line)[1]
    return 1 + sum(source != target for source, target in re.findall(r"(\d+),(\d+)", pairs))


def collectives(hlo):
    """Kind, devices of a group, bytes of one device's operand and trips of every collective."""
    computations, entry, name = {}, None, None
    for line in hlo.splitlines():
        head = re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\{$", line)
        if head:
            name = head[2]
            computations[name] = []
            entry = name if head[1] else entry
        elif name and " = " in line:
            computations[name].append(line.strip())
    found = []

    def visit(name, trips):
        for line in computations[name]:
            statement = re.match(r"(?:ROOT )?%?[\w.\-]+ = (\(.*?\)|\S+) ([\w\-]+)\(", line)
            if not statement:
                raise ValueError(f"not understood: {line}")
            types, op = statement[1], statement[2]
            if op in OTHER or op.removesuffix("-start") in OTHER:
                raise ValueError(f"not counted: {line}")
            if op.endswith("-start") and op.removesuffix("-start") in KINDS:
                raise ValueError(f"asynchronous form: {line}")
            if op in KINDS:
                group = permuted(line) if op == "collective-permute" else group_size(line)
                size = size_of(types)
                size = size // group if op == "all-gather" else size * group if op == "reduce-scatter" else size
                if group > 1:
                    found.append({"kind": KINDS[op], "group": group, "bytes": size, "trips": trips})
            inner = trips
            if op == "while":
                known = re.search(r'"known_trip_count":\{"n":"(\d+)"\}', line)
                if not known:
                    raise ValueError(f"unknown trips: {line}")
                inner = trips * int(known[1])
            called = re.findall(CALLS, line)
            branches = re.search(r"branch_computations=\{([^}]*)\}", line)
            if branches:
                called += re.findall(r"[\w.\-]+", branches[1])
            for callee in called:
                visit(callee, inner)

    visit(entry, 1)
    return found


# ---------------------------------------------------------------------------------------------------------------- main


def measure(name, function):
    mesh, params, result = signature((HERE / f"{name}.spmd").read_text())
    inputs = tuple(NamedSharding(mesh, partition) for _, partition in params)
    compiled = (
        jax.jit(function, in_shardings=inputs, out_shardings=NamedSharding(mesh, result[1]))
        .lower(*(jax.ShapeDtypeStruct(shape, jnp.float32) for shape, _ in params))
        .compile()
    )
    hlo = compiled.as_text()
    if folder := os.environ.get("HLO"):
        (pathlib.Path(folder) / f"{name}.hlo").write_text(hlo)
    args = [jax.random.uniform(jax.random.key(seed), shape) for seed, (shape, _) in enumerate(params)]
    answer = np.asarray(compiled(*(jax.device_put(arg, at) for arg, at in zip(args, inputs))), np.float64)
    if answer.shape != result[0]:
        raise ValueError(f"{name}: a result of shape {answer.shape}")
    answer = answer.ravel()
    figures = [answer.mean(), np.square(answer).mean(), answer[0], answer[answer.size // 3], answer[-1]]
    return {"name": name, "collectives": collectives(hlo), "answer": [float(f"{figure:.6g}") for figure in figures]}


def main():
    programs = [measure(name, function) for name, function in PROGRAMS.items()]
    lines = ",\n".join(json.dumps(program) for program in programs)
    (HERE / "xla.json").write_text(f'{{"jax": "{jax.__version__}", "programs": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
