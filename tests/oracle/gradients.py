"""Random differentiable programs against JAX: first and second derivatives, in both modes, and batches of them.

    python3 -m venv venv && venv/bin/pip install "jax==0.10.2" numpy scipy
    venv/bin/python tests/oracle/gradients.py target/release/spmdc --programs 100000
    venv/bin/python tests/oracle/gradients.py target/release/spmdc --programs 20000 --special

Each program is a function of two matrices and a vector, drawn statement by statement; fifty are compiled together, on a random mesh. JAX
makes the derivatives of each, as a list of operations, which NumPy computes (`jaxprs.py`); where something differs, JAX computes it itself.
With `--special` the arguments are zeros, ones, ties, and numbers whose squares over- or underflow; there JAX's NaN says nothing, and neither
do its numbers where its two modes differ. A difference counts where it is larger than what changes in the last digits of the arguments, and there
also of what is computed of them, make.
Findings go to `--findings`.
"""

import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "golden"))
import jax
import jax.numpy as jnp
import jaxprs
import make_generated
import numpy as np
from jax.scipy import special
from make_generated import Function, substituted

jax.config.update("jax_disable_most_optimizations", False)
np.seterr(all="ignore")
nn = jax.nn
MESHES = ["1", "2x1", "2x3", "3x2", "1x4", "5x1"]
# What is defined everywhere, beside what `make_generated.py` draws.
UNARY = make_generated.UNARY + [
    ("log(abs(x) + 0.5)", lambda x: jnp.log(jnp.abs(x) + 0.5)), ("sqrt(abs(x))", lambda x: jnp.sqrt(jnp.abs(x))), ("cbrt(x)", jnp.cbrt), ("asinh(x)", jnp.arcsinh),
    ("logit(sigmoid(x))", lambda x: special.logit(nn.sigmoid(x))), ("acosh(1.5 + x * x)", lambda x: jnp.arccosh(1.5 + x * x)), ("atanh(tanh(x) / 2)", lambda x: jnp.arctanh(jnp.tanh(x) / 2)),
    ("asin(tanh(x) / 2)", lambda x: jnp.arcsin(jnp.tanh(x) / 2)), ("acos(x / (2 + x * x))", lambda x: jnp.arccos(x / (2 + x * x))), ("expm1(-abs(x))", lambda x: jnp.expm1(-jnp.abs(x))),
    ("exp2(tanh(x))", lambda x: jnp.exp2(jnp.tanh(x))), ("rsqrt(0.5 + x * x)", lambda x: jax.lax.rsqrt(0.5 + x * x)), ("square(x)", jnp.square), ("x ** 3", lambda x: x**3),
    ("(0.5 + abs(x)) ** -2", lambda x: (0.5 + jnp.abs(x)) ** -2), ("abs(x) ** 1.5", lambda x: jnp.abs(x) ** 1.5), ("2.0 ** tanh(x)", lambda x: 2.0 ** jnp.tanh(x)), ("x ** 0", lambda x: x**0),
    ("lgamma(1 + x * x)", lambda x: jax.lax.lgamma(1 + x * x)), ("digamma(1 + abs(x))", lambda x: jax.lax.digamma(1 + jnp.abs(x))), ("erfc(x)", special.erfc), ("erf_inv(tanh(x) / 2)", lambda x: jax.lax.erf_inv(jnp.tanh(x) / 2)),
    ("relu(x)", nn.relu), ("elu(x)", nn.elu), ("leaky_relu(x)", nn.leaky_relu), ("silu(x)", nn.silu), ("gelu(x, approximate=false)", lambda x: nn.gelu(x, approximate=False)), ("sign(x) * x", lambda x: jnp.sign(x) * x),
    ("reciprocal(2 + sin(x))", lambda x: jnp.reciprocal(2 + jnp.sin(x))), ("nan_to_num(x)", jnp.nan_to_num), ("tan(tanh(x))", lambda x: jnp.tan(jnp.tanh(x))), ("sinh(tanh(x))", lambda x: jnp.sinh(jnp.tanh(x))),
    ("x % 2", lambda x: x % 2), ("where(x > 0, x, 3 * x)", lambda x: jnp.where(x > 0, x, 3 * x)), ("maximum(x, 0)", lambda x: jnp.maximum(x, 0)),
    ("abs(complex(x, 1 + x))", lambda x: jnp.abs(jax.lax.complex(x, 1 + x))), ("real(exp(complex(0 * x, x)))", lambda x: jnp.real(jnp.exp(jax.lax.complex(0 * x, x)))),
    ("imag(sin(complex(x, tanh(x))))", lambda x: jnp.imag(jnp.sin(jax.lax.complex(x, jnp.tanh(x))))), ("real(tanh(complex(x, x / 4)))", lambda x: jnp.real(jnp.tanh(jax.lax.complex(x, x / 4)))),
    ("real(log(complex(1 + x * x, x)))", lambda x: jnp.real(jnp.log(jax.lax.complex(1 + x * x, x)))), ("imag(sqrt(complex(1 + x * x, x)))", lambda x: jnp.imag(jnp.sqrt(jax.lax.complex(1 + x * x, x)))),
]
def scaled_atan2(x, y):
    """JAX's derivative of `atan2` has squares, which overflow."""
    scale = jax.lax.stop_gradient(jnp.maximum(jnp.abs(x), jnp.abs(y)))
    return jnp.arctan2(x / scale, y / scale)


BINARY = [(text, lambda x, y: scaled_atan2(x, 2 + y * y)) if text == "atan2(x, 2 + y * y)" else (text, f) for text, f in make_generated.BINARY] + [
    ("copysign(x, y)", jnp.copysign), ("clip(x, -1, 1) * y", lambda x, y: jnp.clip(x, -1, 1) * y), ("(0.5 + abs(x)) ** y", lambda x, y: (0.5 + jnp.abs(x)) ** y), ("x % (2 + abs(y))", lambda x, y: x % (2 + jnp.abs(y))),
    ("atan2(x, 1 + abs(y))", lambda x, y: scaled_atan2(x, 1 + jnp.abs(y))), ("hypot(x, y)", jnp.hypot), ("elu(x, alpha=y)", nn.elu), ("x / (0.5 + abs(y))", lambda x, y: x / (0.5 + jnp.abs(y))),
]
REDUCED = [entry for entry in make_generated.REDUCED if entry[0] != "prod"] + [("std", jnp.std), ("median", jnp.median), ("ptp", jnp.ptp), ("nansum", jnp.nansum), ("nanmax", jnp.nanmax)]
# JAX derives running extremes from sums with zeros, which lose the sign of -0 that `copysign` reads: there is none in their operands.
signless = lambda extreme: lambda x, axis: extreme(x + 0, axis)
ALONG = [("cummax(x + 0, axis=A)", signless(jax.lax.cummax)) if "cummax" in entry[0] else entry for entry in make_generated.ALONG if "prod" not in entry[0]] + [
    ("cummin(x + 0, axis=A)", signless(jax.lax.cummin)), ("layer_norm(x, axis=A)", lambda x, axis: nn.standardize(x, axis, epsilon=1e-5)), ("real(rfft(x, axis=A))", lambda x, axis: jnp.fft.rfft(x, axis=axis).real),
]
# Functions with conventions of their own at ties and zeros, listed in docs/language/derivatives.md.
APART = ["hypot(x, y)", "hypot(x, 1 + y)", "sinc(x)"]
SPECIAL = [0.0, 0.0, -0.0, 1.0, 1.0, -1.0, 2.0, 0.5, 1e-170, -1e-170, 1e170, 1e-300]


class Drawn(Function):
    """A function whose loops are those of Python."""

    FEWEST, MOST = 1, 6

    def unary(self):
        x = self.any()
        text, f = self.r.choice(self.units)
        return self.let(substituted(text, x=x), self.shapes[x], lambda env: f(env[x]))

    def binary(self):
        x = self.any()
        y = self.any(lambda s: len(s) <= len(self.shapes[x]) and all(a in (1, b) for a, b in zip(s[::-1], self.shapes[x][::-1])))
        text, f = self.r.choice(self.pairs)
        return self.let(substituted(text, x=x, y=y), self.shapes[x], lambda env: f(env[x], env[y]))

    def product(self):
        """XLA adds the terms to a zero, so that zeros have no sign."""
        made = super().product()
        return made and ([line.replace(";", " + 0;") for line in made[0]], made[1])

    def assigned(self):
        x = self.any(lambda s: len(s) > 0 and s[0] > 2)
        if not x:
            return None
        shape = self.shapes[x]
        i, j, name = self.r.randrange(shape[0]), self.r.randrange(shape[0]), self.new(shape)
        adds = self.r.random() < 0.5
        def step(env):
            a = env[x]
            env[name] = a.at[jnp.array([i, j, i])].add(jnp.cos(a[:3])) if adds else a.at[i].set(jnp.sin(a[j]) * 2)
        line = f"{name}[[{i}, {j}, {i}]] += cos({name}[:3]);" if adds else f"{name}[{i}] = sin({name}[{j}]) * 2;"
        return [f"let mut {name} = {x};", line], step

    def segments(self):
        x = self.any(lambda s: len(s) > 0)
        shape = self.shapes[x]
        numbers = [self.r.randrange(3) for _ in range(shape[0])]
        name, f = self.r.choice([("segment_sum", jax.ops.segment_sum), ("segment_max", jax.ops.segment_max)])
        present = max(numbers) + 1
        if name == "segment_max" and len(set(numbers)) < present:
            return None
        return self.let(f"{name}({x}, {numbers}, num_segments={present})", (present, *shape[1:]), lambda env: f(env[x], jnp.array(numbers), present))

    def loop(self, depth):
        start = self.any()
        shape, trips = self.shapes[start], self.r.randint(1, 3)
        name = self.new(shape)
        lines, text, run = self.block(name, depth)
        def step(env):
            h = env[start]
            for k in range(trips):
                h = run(env | {name: h}) * (1 + 0.25 * k)
            env[name] = h
        inner = [f"  {line}" for line in lines] + [f"  {name} = ({text}) * (1 + 0.25 * f64(k{name}));"]
        return [f"let mut {name} = {start};", f"for k{name} in 0..{trips} {{", *inner, "}"], step

    def branch(self, depth):
        start, decides = self.any(), self.any()
        then, text, run = self.block(start, depth)
        otherwise, other, run_other = self.block(start, depth)
        name = self.new(self.shapes[start])
        def step(env):
            env[name] = jax.lax.cond(env[decides].sum() > 0.1, run, run_other, dict(env))
        lines = [f"let {name} = if sum({decides}) > 0.1 {{", *[f"  {line}" for line in then], f"  {text}", "} else {",
                 *[f"  {line}" for line in otherwise], f"  {other}", "};"]
        return lines, step

    def statement(self, depth):
        while True:
            kinds = [self.unary] * 4 + [self.binary] * 3 + [self.product, self.reduction, self.reduction, self.along, self.slices, self.gathered, self.assigned, self.segments]
            kind = self.r.choice(kinds + ([lambda: self.loop(depth), lambda: self.branch(depth)] if depth else []))
            made = kind()
            if made:
                return made


def drawn(seed, number, is_special):
    Drawn.units = [entry for entry in UNARY if not (is_special and entry[0] in APART)]
    Drawn.pairs = [entry for entry in BINARY if not (is_special and entry[0] in APART)]
    make_generated.REDUCED, make_generated.ALONG = REDUCED, ALONG
    make_generated.BINARY = [entry for entry in BINARY if not (is_special and entry[0] in APART)]
    return Drawn(f"{seed}/{number}", 3, 2)


def inputs(seed, number, is_special):
    r = random.Random(f"{seed}/{number}/inputs")
    g = np.random.default_rng(r.getrandbits(60))
    shapes = [(3, 2), (2, 2), (2,)] * 2
    if number % 4 == 3:
        shapes = [(2, *shape) for shape in shapes]
    arrays = [g.standard_normal(shape) for shape in shapes]
    if is_special:
        for a in arrays[:3]:
            few = [r.choice(SPECIAL) for _ in range(3)]
            for at in np.ndindex(a.shape):
                if r.random() < 0.7:
                    a[at] = r.choice(few)
    return arrays


def orders(number):
    """What is asked of a program: the text of calls of F at P along T, the functions of JAX, and these in JAX's other mode."""
    n = (0, 1, 2)
    total = lambda f: lambda *a: sum(jnp.sin(g).sum() for g in jax.grad(f, n)(*a))
    whole = "let (a, b, c) = grad(F, argnums=(0, 1, 2))(x, w, v); sum(sin(a)) + sum(sin(b)) + sum(sin(c))"
    first = ("grad(F, argnums=(0, 1, 2))(P)", lambda f, p, t: jax.grad(f, n)(*p), lambda f, p, t: jax.jacfwd(f, n)(*p))
    second = (f"grad(|x, w, v| {{ {whole} }}, argnums=(0, 1, 2))(P)", lambda f, p, t: jax.grad(total(f), n)(*p),
              lambda f, p, t: jax.jacfwd(total(f), n)(*p))
    mixed = ("jvp(grad(F, argnums=(0, 1, 2)), (P), (T)).1", lambda f, p, t: jax.jvp(jax.grad(f, n), p, t)[1],
             lambda f, p, t: jax.grad(lambda *p: jax.jvp(f, p, t)[1], n)(*p))
    forward = ("jvp(F, (P), (T)).1", lambda f, p, t: (jax.jvp(f, p, t)[1],),
               lambda f, p, t: (sum((a * b).sum() for a, b in zip(jax.grad(f, n)(*p), t)),))
    batch = ("vmap(grad(F, argnums=(0, 1, 2)))(P)", lambda f, p, t: jax.vmap(jax.grad(f, n))(*p), lambda f, p, t: jax.vmap(jax.jacfwd(f, n))(*p))
    return [[first, forward], [second], [mixed], [batch]][number % 4]


def program(parts):
    """One text of several functions, and its arguments."""
    fields, arrays, body, results = [], {}, [], []
    for at, (number, function, arguments) in enumerate(parts):
        names = [f"{name}{at}" for name in ["x", "w", "v", "tx", "tw", "tv"]]
        fields += [f"{name}: f64{list(a.shape)}" for name, a in zip(names, arguments)]
        arrays |= dict(zip(names, arguments))
        body.append(f"  let g{at} = |x, w, v| {function.text};\n")
        given, tangents = (", ".join(f"p.{name}" for name in some) for some in (names[:3], names[3:]))
        calls = [substituted(text, F=f"g{at}", P=given, T=tangents) for text, *_ in orders(number)]
        results += [f"    {call}" for call in calls]
    return f"type Arguments = {{ {', '.join(fields)} }};\nfn main(p: Arguments) {{\n{''.join(body)}  (\n" + ",\n".join(results) + ",\n  )\n}\n", arrays


def outcome(options, folder, mesh, parts):
    text, arrays = program(parts)
    axes = ", ".join(f"{axis} = {size}" for axis, size in zip("XY", mesh.split("x")))
    source, given, out = (os.path.join(folder, name) for name in ("p.spmd", "in.npz", "out.npz"))
    pathlib.Path(source).write_text(f"mesh ({axes});\n{text}")
    np.savez(given, **arrays)
    command = [options.spmdc, "run", source, "--arg", f"p=@{given}", "--out", out, "--timeout", "120", "--no-cache"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr
    with np.load(out) as results:
        return dict(results), ""


def expected(number, function, arguments, is_special):
    """For each order the arrays of JAX, others that are as good, how JAX computes them itself, and in its other mode."""
    p, t = tuple(arguments[:3]), tuple(arguments[3:])
    near = tuple(np.where(np.abs(a) < 1e-100, a, a * (1 + 1e-13 * np.cos(np.arange(a.size).reshape(a.shape)))) for a in p)
    found = []
    for _, order, other in orders(number):
        traced = jax.make_jaxpr(lambda p, t, order=order: order(function, p, t))(p, t)
        computed = lambda at, is_nudged=False, traced=traced: jaxprs.run(traced.jaxpr, traced.consts, [*at, *t], is_nudged)
        beside = lambda computed=computed: [computed(near)] + ([computed(p, True)] if is_special else [])
        direct = lambda f: lambda: [np.asarray(a) for a in f(function, p, t)]
        found.append((computed(p), beside, direct(order), direct(other)))
    return found


def close(a, b, scale, is_special):
    return (a == b) | np.isnan(a) & (np.isnan(b) | is_special) | (np.abs(a - b) <= 1e-9 * np.abs(a) + 1e-11 * min(scale, 1e6) + 1e-150)


def differences(wanted, beside, other, found, is_special):
    """What differs between arrays, or None."""
    wanted, found = ([np.atleast_1d(a) for a in arrays] for arrays in (wanted, found))
    scale = max([np.max(np.abs(a[np.isfinite(a)]), initial=0.0) for a in wanted], default=0.0)
    bad = [~close(a, b, scale, is_special) for a, b in zip(wanted, found)]
    if not any(np.any(x) for x in bad):
        return None
    is_sure = True
    for moved in beside():
        for a, b, c, x in zip(wanted, found, moved, bad):
            near = np.abs(a - c)
            # Sums that cancel to zero here leave last digits in another order.
            x &= ~((np.abs(a - b) <= 1e3 * near) | (np.abs(a - b) <= np.max(near[np.isfinite(near)], initial=0.0)))
            if is_special:
                x &= np.isfinite(a) & np.isfinite(c)
            if is_special and np.any(near > 1e-3 * np.abs(a) + 1):
                is_sure = False
    if is_special and not is_sure:
        # Numbers near a pole, which may be the pole itself.
        bad = [x & ~np.isnan(b) for x, b in zip(bad, found)]
    if is_special and any(np.any(x) for x in bad):
        bad = [x & close(a, c, scale, False) for x, a, c in zip(bad, wanted, other())]
    for a, b, x in zip(wanted, found, bad):
        if np.any(x):
            at = tuple(int(i[0]) for i in np.nonzero(x))
            return f"at {at} JAX has {a[at]}, found {b[at]}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("spmdc")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--special", action="store_true")
    parser.add_argument("--together", type=int, default=50)
    parser.add_argument("--findings", default="findings")
    parser.add_argument("--minutes", type=float, default=1e9)
    options = parser.parse_args()
    os.makedirs(options.findings, exist_ok=True)
    start, done, findings, number = time.time(), 0, 0, options.first
    spent = [0.0, 0.0]
    with tempfile.TemporaryDirectory() as folder:
        while number < options.first + options.programs and time.time() - start < 60 * options.minutes:
            mesh = random.Random(f"{options.seed}/{number}/mesh").choice(MESHES)
            parts = [(n, drawn(options.seed, n, options.special), inputs(options.seed, n, options.special)) for n in range(number, number + options.together)]
            number += options.together
            begun = time.time()
            results, error = outcome(options, folder, mesh, parts)
            spent[0] += time.time() - begun
            if results is None:
                findings += 1
                alone = next((part for part in parts if outcome(options, folder, mesh, [part])[0] is None), None)
                message = outcome(options, folder, mesh, [alone])[1] if alone else error
                keep(options, alone and [alone] or parts, mesh, message)
                continue
            begun = time.time()
            at = 0
            for part in parts:
                for wanted, beside, itself, other in expected(*part, options.special):
                    names = [f"{at}.{i}" for i in range(len(wanted))] if len(wanted) > 1 else [f"{at}"]
                    found = [results[name] for name in names]
                    wrong = differences(wanted, beside, other, found, options.special) and differences(itself(), beside, other, found, options.special)
                    at += 1
                    if wrong:
                        findings += 1
                        keep(options, [part], mesh, wrong)
                        break
                done += 1
                at = sum(len(orders(n)) for n, *_ in parts[:parts.index(part) + 1])
            spent[1] += time.time() - begun
            if number // options.together % 20 == 0:
                print(f"{done} programs, {findings} findings, {time.time() - start:.0f} s, of which {spent[0]:.0f} s here and {spent[1]:.0f} s in JAX", flush=True)
    print(f"{done} programs, {findings} findings, {time.time() - start:.0f} s")
    sys.exit(1 if findings else 0)


def keep(options, parts, mesh, message):
    text, arrays = program(parts)
    stem = os.path.join(options.findings, f"{options.seed}-{'special-' if options.special else ''}{parts[0][0]}")
    np.savez(stem + ".npz", **arrays)
    pathlib.Path(stem + ".spmd").write_text(text + "".join(f"// {line}\n" for line in [f"on {mesh}", *message.splitlines()]))
    print(f"FINDING {stem}.spmd: {message[:300]}", flush=True)


if __name__ == "__main__":
    main()
