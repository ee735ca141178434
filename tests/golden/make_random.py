"""Makes the golden arrays of random numbers: what JAX draws, beside the spmd text of each program, and the checksums of long draws.

    pip install "jax==0.10.2" "scipy"
    python3 tests/golden/make_random.py

`draws.txt` has a line for each sampler: a call, and the 64-bit FNV-1a hash of the bytes of its result. `distributions.txt` has calls, and for
each some points of the distribution function, by SciPy.
"""

import pathlib
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats as st

warnings.filterwarnings("ignore")
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")
assert jax.config.jax_threefry_partitionable

HERE = pathlib.Path(__file__).parent
R = jax.random
TYPES = {"f8e4m3": jnp.float8_e4m3fn, "f8e5m2": jnp.float8_e5m2, "f16": jnp.float16, "bf16": jnp.bfloat16, "f32": jnp.float32,
         "f64": jnp.float64, "i8": jnp.int8, "i16": jnp.int16, "i32": jnp.int32, "i64": jnp.int64, "u8": jnp.uint8, "u16": jnp.uint16,
         "u32": jnp.uint32, "u64": jnp.uint64}
SHAPES = [(), (0,), (5,), (2, 3), (3, 0, 2), (2, 3, 4)]
K = R.key(42)


def text(name, shape):
    return name + (f"[{', '.join(map(str, shape))}]" if shape else "")


def floats(call, draw, names=("f16", "bf16", "f32")):
    """The call with each shape in f32, and with each type."""
    for shape in SHAPES:
        yield call.replace("T", text("f32", shape)), draw(shape, jnp.float32)
    for name in names:
        yield call.replace("T", f"{name}[37]"), draw((37,), TYPES[name])


def programs():
    keys = [("key_data(key(-1))", R.key_data(jax.random.wrap_key_data(jnp.array([0, 2**32 - 1], jnp.uint32)))),
            ("key_data(key(1099511627781))", R.key_data(R.key(2**40 + 5)))]
    keys += [("key_data(split(key(42)))", R.key_data(R.split(K))), ("key_data(split(key(42), 3))", R.key_data(R.split(K, 3))),
             ("key_data(split(key(42), num=(2, 3)))", R.key_data(R.split(K, (2, 3)))),
             ("key_data(fold_in(key(42), 7))", R.key_data(R.fold_in(K, 7))),
             ("key_data(fold_in(key(42), -1))", R.key_data(R.fold_in(K, np.uint32(2**32 - 1)))),
             ("key_data(fold_in(key(42), arange(5)))", R.key_data(jax.vmap(lambda i: R.fold_in(K, i))(jnp.arange(5, dtype=jnp.int32))))]
    yield "random_keys", "exact", keys

    bits = [(f"bits(key(42), {text(name, shape)})", R.bits(K, shape, TYPES[name]))
            for name in ["u8", "u16", "u32", "u64"] for shape in SHAPES]
    yield "random_bits", "exact", bits

    uniform = list(floats("uniform(key(42), T)", lambda shape, ty: R.uniform(K, shape, ty), ["f8e4m3", "f8e5m2", "f16", "bf16", "f64"]))
    for name in ["f16", "bf16", "f32", "f64"]:
        ty = TYPES[name]
        uniform += [(f"uniform(key(42), {name}[500], 0.1, 0.7)", R.uniform(K, (500,), ty, 0.1, 0.7)),
                    (f"uniform(key(42), {name}[500], minval=-3, maxval=5)", R.uniform(K, (500,), ty, -3, 5))]
    ends = "[1.0, 2.0, -3.5]"
    uniform += [(f"uniform(key(42), f32[4, 3], {ends}, 10)", R.uniform(K, (4, 3), jnp.float32, jnp.array([1, 2, -3.5], jnp.float32), 10.0)),
                ("uniform(key(42), (2, 3))", R.uniform(K, (2, 3), jnp.float32)),
                ("uniform(key(42), (2, 3), dtype=f64)", R.uniform(K, (2, 3), jnp.float64))]
    yield "random_uniform", "exact", uniform

    yield "random_normal", "exact", list(floats("normal(key(42), T)", lambda shape, ty: R.normal(K, shape, ty), ["f8e4m3", "f8e5m2", "f16", "bf16"]))
    yield "random_normal_f64", "elementwise", [("normal(key(42), f64[1000])", R.normal(K, (1000,), jnp.float64))]

    truncated = [(f"truncated_normal(key(42), {low}, {high}, f32[200])", R.truncated_normal(K, low, high, (200,), jnp.float32))
                 for low, high in [(-2, 2), (0, 1), (1.5, 4), (-9, 9), (-0.1, 0.3)]]
    truncated += [("truncated_normal(key(42), [-1.0, 0.0, 1.0], [0.0, 2.0, 4.0])",
                   R.truncated_normal(K, jnp.array([-1, 0, 1], jnp.float32), jnp.array([0, 2, 4], jnp.float32), dtype=jnp.float32))]
    yield "random_truncated_normal", "exact", truncated
    yield "random_truncated_normal_f64", "elementwise", [
        ("truncated_normal(key(42), -2, 2, f64[200])", R.truncated_normal(K, -2, 2, (200,), jnp.float64))]

    p = jnp.array([0.1, 0.5, 0.9], jnp.float32)
    yield "random_bernoulli", "exact", [
        ("bernoulli(key(42), 0.3, (8,))", R.bernoulli(K, np.float32(0.3), (8,))),
        ("bernoulli(key(42), 0.3, bool[40])", R.bernoulli(K, np.float32(0.3), (40,))),
        ("bernoulli(key(42))", R.bernoulli(K, np.float32(0.5))),
        ("bernoulli(key(42), shape=(9,))", R.bernoulli(K, np.float32(0.5), (9,))),
        ("bernoulli(key(42), [0.1, 0.5, 0.9])", R.bernoulli(K, p)),
        ("bernoulli(key(42), [0.1, 0.5, 0.9], (5, 3))", R.bernoulli(K, p, (5, 3))),
        ("bernoulli(key(42), bf16(0.25), (50,))", R.bernoulli(K, jnp.bfloat16(0.25), (50,)))]

    integers = []
    for name in ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]:
        ends = jnp.iinfo(TYPES[name])
        for low, high in [(0, 10), (0, 1), (5, 5), (7, 3), (3, 100), (int(ends.min), int(ends.max)), (int(ends.min), int(ends.max) + 1),
                          (int(ends.max) - 3, int(ends.max) + 1)]:
            if high > 2**63 - 1:
                continue
            integers.append((f"randint(key(42), {name}[30], {low}, {high})".replace("--", "- -"),
                             R.randint(K, (30,), low, high, TYPES[name])))
    integers += [("randint(key(42), (6,), 0, 10)", R.randint(K, (6,), 0, 10, jnp.int32)),
                 ("randint(key(42), i32[4, 3], [0, -5, 7], [1, 5, 1000])",
                  R.randint(K, (4, 3), jnp.array([0, -5, 7], jnp.int32), jnp.array([1, 5, 1000], jnp.int32), jnp.int32)),
                 ("randint(key(42), u8[4, 3], [0, -5, 7], [1, 5, 1000])",
                  R.randint(K, (4, 3), jnp.array([0, -5, 7], jnp.int32), jnp.array([1, 5, 1000], jnp.int32), jnp.uint8))]
    yield "random_integers", "exact", integers

    square = jnp.arange(12, dtype=jnp.int32).reshape(3, 4)
    yield "random_permutations", "exact", [
        ("permutation(key(42), 10)", R.permutation(K, jnp.arange(10, dtype=jnp.int32))),
        ("permutation(key(42), 0)", R.permutation(K, jnp.arange(0, dtype=jnp.int32))),
        ("permutation(key(42), 1)", R.permutation(K, jnp.arange(1, dtype=jnp.int32))),
        ("permutation(key(42), 1700)", R.permutation(K, jnp.arange(1700, dtype=jnp.int32))),
        ("permutation(key(42), [2.5, 1.5, -1.0])", R.permutation(K, jnp.array([2.5, 1.5, -1], jnp.float32))),
        ("permutation(key(42), reshape(arange(12), (3, 4)))", R.permutation(K, square)),
        ("permutation(key(42), reshape(arange(12), (3, 4)), axis=1)", R.permutation(K, square, 1)),
        ("permutation(key(42), reshape(arange(12), (3, 4)), axis=1, independent=true)", R.permutation(K, square, 1, True))]

    logits = jnp.sin(jnp.arange(12, dtype=jnp.float32)).reshape(3, 4)
    wave = "reshape(sin(arange(12)), (3, 4))"
    categories = [
        ("categorical(key(42), zeros(f32[5]), shape=(6,))", R.categorical(K, jnp.zeros(5, jnp.float32), shape=(6,))),
        (f"categorical(key(42), {wave})", R.categorical(K, logits)),
        (f"categorical(key(42), {wave}, axis=0)", R.categorical(K, logits, axis=0)),
        (f"categorical(key(42), {wave}, axis=0, shape=(5, 2, 4))", R.categorical(K, logits, axis=0, shape=(5, 2, 4))),
        (f"categorical(key(42), {wave}, shape=(2, 3), replace=false)", R.categorical(K, logits, shape=(2, 3), replace=False)),
        ("categorical(key(42), zeros(bf16[5]), shape=(40,))", R.categorical(K, jnp.zeros(5, jnp.bfloat16), shape=(40,)))]
    yield "random_categories", "exact", [(call, chosen.astype(jnp.int32)) for call, chosen in categories]
    yield "random_gumbel", "exact", list(floats("gumbel(key(42), T)", lambda shape, ty: R.gumbel(K, shape, ty), ["bf16"]))
    yield "random_exponential", "exact", list(floats("exponential(key(42), T)", lambda shape, ty: R.exponential(K, shape, ty)))
    yield "random_gumbel_f64", "elementwise", [("gumbel(key(42), f64[200])", R.gumbel(K, (200,), jnp.float64)),
                                               ("exponential(key(42), f64[200])", R.exponential(K, (200,), jnp.float64))]

    yield "random_weights", "exact", [
        (f"nn.{name}(key(42), f32[{', '.join(map(str, shape))}])", getattr(jax.nn.initializers, name)()(K, shape, jnp.float32))
        for name in ["glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "lecun_normal", "lecun_uniform"]
        for shape in [(7, 5), (3, 3, 4, 6)]]

    yield "random_gumbel_f16", "exact", [("gumbel(key(42), f16[2000])", R.gumbel(K, (2000,), jnp.float16)),
                                         ("gumbel(key(7), f8e4m3[300])", R.gumbel(R.key(7), (300,), jnp.float8_e4m3fn))]
    yield "random_normal_complex", "exact", [("normal(key(42), c64[2000])", R.normal(K, (2000,), jnp.complex64)),
                                             ("normal(key(42), c128[300])", R.normal(K, (300,), jnp.complex128))]

    five = jnp.array([10, 20, 30, 40, 50], jnp.int32)
    p = jnp.array([0.1, 0.2, 0.05, 0.4, 0.25], jnp.float32)
    some = lambda draw: jax.tree.map(lambda x: x.astype(jnp.int32), draw)
    yield "random_choices", "exact", [
        ("choice(key(42), 5)", R.randint(K, (), 0, 5, jnp.int32)),
        ("choice(key(42), 5, (3, 4))", R.randint(K, (3, 4), 0, 5, jnp.int32)),
        ("choice(key(42), [10, 20, 30, 40, 50], (3,), replace=false)", R.choice(K, five, (3,), False)),
        ("choice(key(42), 7, (2, 2), replace=false)", R.permutation(K, jnp.arange(7, dtype=jnp.int32))[:4].reshape(2, 2)),
        ("choice(key(42), 5, (20,), p=[0.1, 0.2, 0.05, 0.4, 0.25])", some(R.choice(K, 5, (20,), True, p))),
        ("choice(key(42), [10, 20, 30, 40, 50], (3,), replace=false, p=[0.1, 0.2, 0.05, 0.4, 0.25])", R.choice(K, five, (3,), False, p)),
        ("choice(key(42), reshape(arange(12), (3, 4)), (2, 3), axis=1)",
         jnp.take(square, R.randint(K, (2, 3), 0, 4, jnp.int32), axis=1))]

    yield "random_truncated_normal_narrow", "exact", [
        (f"truncated_normal(key(42), {low}, {high}, {name}[500])", R.truncated_normal(K, low, high, (500,), TYPES[name]))
        for name in ["f16", "bf16", "f8e5m2"] for low, high in [(-2, 2), (0, 1), (0.5, 1.5), (-1, 0), (-3, -1)]]


def fnv(array):
    hashed = 0xCBF29CE484222325
    for byte in np.asarray(array).tobytes():
        hashed = (hashed ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return hashed


def draws():
    n = 1_000_000
    yield f"bits(key(7), u32[{n}])", R.bits(R.key(7), (n,), jnp.uint32)
    yield f"bits(key(7), u64[1000, 1000])", R.bits(R.key(7), (n,), jnp.uint64)
    for name in ["bf16", "f32", "f64"]:
        yield f"uniform(key(7), {name}[{n}])", R.uniform(R.key(7), (n,), TYPES[name])
    yield f"uniform(key(7), f32[{n}], 0.1, 0.7)", R.uniform(R.key(7), (n,), jnp.float32, 0.1, 0.7)
    for name in ["f16", "bf16", "f32"]:
        yield f"normal(key(7), {name}[{n}])", R.normal(R.key(7), (n,), TYPES[name])
    yield f"truncated_normal(key(7), -1.5, 3, f32[{n}])", R.truncated_normal(R.key(7), -1.5, 3, (n,), jnp.float32)
    yield f"bernoulli(key(7), 0.3, ({n},))", R.bernoulli(R.key(7), np.float32(0.3), (n,))
    yield f"randint(key(7), i32[{n}], -1000, 12345)", R.randint(R.key(7), (n,), -1000, 12345, jnp.int32)
    yield f"permutation(key(7), {n})", R.permutation(R.key(7), jnp.arange(n, dtype=jnp.int32))
    yield f"gumbel(key(7), f32[{n}])", R.gumbel(R.key(7), (n,), jnp.float32)
    yield f"exponential(key(7), f32[{n}])", R.exponential(R.key(7), (n,), jnp.float32)
    logits = jnp.arange(8, dtype=jnp.float32) / 4
    yield f"categorical(key(7), arange(8) / f32(4), shape=({n},))", R.categorical(R.key(7), logits, shape=(n,)).astype(jnp.int32)


def distributions():
    """Calls, each with its distribution as SciPy has it."""
    n = 20_000
    one = f"f32[{n}]"
    yield f"normal(key(3), {one})", st.norm()
    yield f"truncated_normal(key(3), -1, 2, {one})", st.truncnorm(-1, 2)
    yield f"exponential(key(3), {one})", st.expon()
    yield f"gumbel(key(3), {one})", st.gumbel_r()
    yield f"laplace(key(3), {one})", st.laplace()
    yield f"logistic(key(3), {one})", st.logistic()
    yield f"cauchy(key(3), {one})", st.cauchy()
    for a in [0.05, 0.5, 1.0, 2.5, 30.0]:
        yield f"gamma(key(3), {a}, {one})", st.gamma(a)
    yield f"loggamma(key(3), 0.3, {one})", st.loggamma(0.3)
    yield f"beta(key(3), 0.5, 2.5, {one})", st.beta(0.5, 2.5)
    yield f"chisquare(key(3), 4, {one})", st.chi2(4)
    yield f"student_t(key(3), 3.5, {one})", st.t(3.5)
    for mean in [0.1, 3.0, 9.9, 10.0, 35.5, 1e6]:
        yield f"poisson(key(3), {mean}, i32[{n}])", st.poisson(mean)
    for trials, p in [(1, 0.3), (20, 0.1), (20, 0.9), (50, 0.5), (1000, 0.02), (100000, 0.7)]:
        yield f"binomial(key(3), {trials}, {p}, {one})", st.binom(trials, p)
    yield f"dirichlet(key(3), [1.0, 2.0, 3.0], ({n},))[:, 1]", st.beta(2, 4)
    yield f"multivariate_normal(key(3), [1.0, -2.0], [[2.0, 1.0], [1.0, 3.0]], ({n},)) @ [1.0, 1.0]", st.norm(-1, 7**0.5)
    yield f"randint(key(3), i32[{n}], -5, 95)", st.randint(-5, 95)


def points(distribution):
    """Some points, each with the value of the distribution function there."""
    quantiles = np.unique(distribution.ppf(np.arange(1, 50) / 50))
    return " ".join(f"{x:.9g}:{distribution.cdf(x):.7g}" for x in quantiles)


def main():
    for name, tolerance, calls in programs():
        lines = ",\n  ".join(call for call, _ in calls)
        imports = 'import "std/nn.spmd" as nn;\n' if "nn." in lines else ""
        program = f"//! tolerance: {tolerance}\n// Made by make_random.py.\n{imports}fn main() {{ (\n  {lines},\n) }}\n"
        arrays = {}
        for number, (_, result) in enumerate(calls):
            arrays[f"out.{number}"] = np.asarray(result)
        (HERE / f"{name}.spmd").write_text(program)
        np.savez_compressed(HERE / f"{name}.npz", **arrays)
    lines = [f"{call} = {fnv(result):#018x}\n" for call, result in draws()]
    (HERE / "draws.txt").write_text("".join(lines))
    lines = [f"{call} = {points(distribution)}\n" for call, distribution in distributions()]
    (HERE / "distributions.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
