"""Programs as functions: arguments, results, errors, descriptions."""

import array
import collections
import dataclasses
import contextlib
import inspect
import io
import multiprocessing
import os
import pickle
import sys
import threading

import numpy as np
import pytest

import spmdc

LAYER = """
type Layer = { w: f32[3, 4], b: f32[4] };
fn main(x: f32[2, 3], layers: (Layer, Layer), lr: f32) -> { y: f32[2, 4], parts: (f32[4], i32) } {
  let h = x @ layers.0.w + layers.0.b * lr + layers.1.b;
  { y: h, parts: (sum(h, axis=0), 7) }
}
"""


def layer(seed):
    random = np.random.default_rng(seed)
    return {"w": random.normal(size=(3, 4)).astype(np.float32), "b": random.normal(size=4).astype(np.float32)}


def test_arguments_by_position_and_name():
    f = spmdc.compile(source="fn main(x: f32[3], y: f32[3]) -> f32[3] { x - 2 * y }")
    x, y = np.arange(3, dtype=np.float32), np.ones(3, np.float32)
    for result in (f(x, y), f(x, y=y), f(y=y, x=x)):
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, [-2, -1, 0])
    assert f.signature == "main(x: f32[3], y: f32[3]) -> f32[3]"
    assert (f.params, f.results) == ({"x": "f32[3]", "y": "f32[3]"}, {"0": "f32[3]"})


@pytest.mark.parametrize("mesh", [None, {"X": 2}, {"X": 3}])
def test_structs_are_dictionaries_named_tuples_and_data_classes(mesh):
    f = spmdc.compile(source="mesh (X = 1);" + LAYER, mesh=mesh)
    first, second = layer(1), layer(2)
    x = np.random.default_rng(3).normal(size=(2, 3)).astype(np.float32)
    named = collections.namedtuple("Layer", ["b", "w"])(**second)
    classed = dataclasses.make_dataclass("Layer", ["w", "b"])(**first)
    expected = x @ first["w"] + first["b"] * np.float32(0.5) + second["b"]
    for layers in [(first, second), [classed, named], {"0": first, "1": named}]:
        result = f(x, layers, lr=0.5)
        np.testing.assert_allclose(result.y, expected, rtol=1e-5)
        np.testing.assert_allclose(result.parts[0], expected.sum(0), rtol=1e-5)
        assert result.parts[1] == 7 and result.parts[1].dtype == np.int32
        assert result._fields == ("y", "parts")


@pytest.mark.parametrize("name", ["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "c64", "c128"])
def test_types_of_numpy_pass_through(name):
    f = spmdc.compile(source=f"mesh (X = 2); fn main(x: {name}[5@X, 3]) -> ({name}[5@X, 3], {name}[3, 5]) {{ (x, transpose(x)) }}")
    from spmdc._values import NUMPY

    x = (np.arange(15).reshape(5, 3) % 2 if name == "bool" else np.arange(15).reshape(5, 3)).astype(NUMPY[name])
    if name.startswith("c"):
        x = (x + 1j * np.arange(15)[::-1].reshape(5, 3)).astype(NUMPY[name])
    same, transposed = f(x)
    assert same.dtype == x.dtype and transposed.dtype == x.dtype
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(transposed, x.T)
    # Not contiguous, and of another byte order.
    np.testing.assert_array_equal(f(np.asfortranarray(x))[0], x)
    np.testing.assert_array_equal(f(x.astype(x.dtype.newbyteorder(">")))[1], x.T)


@pytest.mark.parametrize("name, bits", [("bf16", 0x3FC0), ("f8e4m3", 0x3C), ("f8e5m2", 0x3E)])
def test_other_floats_are_bits_or_of_ml_dtypes(name, bits, monkeypatch):
    import spmdc._values as values

    source = f"fn main(x: {name}[2]) -> ({name}[2], f32[2]) {{ (x, f32(x)) }}"
    raw = np.full(2, bits, np.uint16 if name == "bf16" else np.uint8)
    with monkeypatch.context() as patch:
        patch.setattr(values, "ml_dtype", lambda name: None)
        f = spmdc.compile(source=source)
        same, number = f(raw)
        assert same.dtype == raw.dtype and same[0] == bits and number[0] == 1.5
        with pytest.raises(spmdc.ArgumentError, match="ml_dtypes"):
            f([1.5, 1.5])
    ml_dtypes = pytest.importorskip("ml_dtypes")
    f = spmdc.compile(source=source)
    dtype = getattr(ml_dtypes, values.ML_DTYPES[name][0])
    for given in (raw, raw.view(dtype), [1.5, 1.5]):
        same, number = f(given)
        assert same.dtype == dtype and same[0] == 1.5 and number[1] == 1.5


def test_other_arrays():
    f = spmdc.compile(source="fn main(x: f32[4], k: i32, flags: bool[2]) -> f32 { where(flags[0], sum(x) + f32(k), 0.0) }")
    x = np.arange(4, dtype=np.float32)

    class HasDlpack:
        def __dlpack__(self, **kwargs):
            return x.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    for given in [x, memoryview(x), array.array("f", x), [0, 1, 2.0, 3], (0, 1, 2, 3), HasDlpack()]:
        for number in [2, np.int32(2), np.array(2, np.int32)]:
            assert f(given, number, [True, False]) == 8


def test_random_keys_are_seeds_or_words():
    f = spmdc.compile(source="fn main(k: key, ks: key[2]) -> (f32[3], key) { (uniform(k, f32[3]), ks[1]) }")
    words = np.array([[1, 2], [3, 4]], np.uint32)
    drawn, key = f(42, words)
    np.testing.assert_array_equal(drawn, f(np.array([0, 42], np.uint32), words)[0])
    np.testing.assert_array_equal(key, [3, 4])
    assert (0 <= drawn).all() and (drawn < 1).all()


def test_wrong_arguments_show_both_types():
    f = spmdc.compile(source="mesh (X = 2);" + LAYER)
    x, layers = np.zeros((2, 3), np.float32), (layer(1), layer(2))
    wrong = [
        ((x.astype(np.float64), layers, 1.0), "E0701", "`x` has type f32[2,3], but f64[2, 3] was given"),
        ((x.T, layers, 1.0), "E0701", "`x` has type f32[2,3], but f32[3, 2] was given"),
        ((x, layers, 1j), "E0701", "`lr` has type f32, but c128 was given"),
        ((x, layers, "a"), "E0701", "`lr` has type f32, but a value of the Python type `str` was given"),
        ((x, layers, None), "E0701", "`lr` has type f32, but a value of the Python type `NoneType` was given"),
        ((x, 3, 1.0), "E0701", "`layers` has type ({ w: f32[3,4], b: f32[4] }, { w: f32[3,4], b: f32[4] }), but a value"),
        ((x, layers), "E0702", "1 argument is missing: `lr: f32`"),
        ((x, (layer(1),), 1), "E0702", "2 arguments are missing: `layers.1.w: f32[3,4]`, `layers.1.b: f32[4]`"),
        ((x, (layer(1), layer(2) | {"c": 1}), 1), "E0702", "the program has no parameter `layers.1.c`"),
        ((x, layers, 1, 2), "E0702", "the program has 3 parameters, but 4 positional arguments were given"),
    ]
    for args, code, message in wrong:
        with pytest.raises(spmdc.ArgumentError) as caught:
            f(*args)
        assert caught.value.code == code and caught.value.message.startswith(message), caught.value
    with pytest.raises(TypeError, match="no parameter `lx`"):
        f(x, layers, lx=1)
    with pytest.raises(spmdc.ArgumentError, match="`x` is given twice"):
        f(x, layers, 1, x=x)


def test_numbers_of_python_must_fit():
    f = spmdc.compile(source="fn main(a: u8, b: i32[2], c: f32) -> i32 { i32(a) + sum(b) + i32(c) }")
    assert f(255, [1, -1], 3) == 258
    for args in [(256, [0, 0], 0), (-1, [0, 0], 0), (0, [0.5, 0], 0), (True, [0, 0], 0), (0, [1 << 31, 0], 0), (0, [0, [0]], 0)]:
        with pytest.raises(spmdc.ArgumentError):
            f(*args)


def test_results_own_their_memory():
    f = spmdc.compile(source="mesh (X = 2); fn main(x: f32[400000@X]) -> (f32[400000@_], f32[400000@X]) { (x + 1, x + 2) }")
    x = np.arange(400000, dtype=np.float32)
    first = f(x)
    second = f(x + 1)
    for result, added in [(first, 0), (second, 1)]:
        np.testing.assert_array_equal(result[0], x + 1 + added)
        np.testing.assert_array_equal(result[1], x + 2 + added)
    assert first[0].flags.writeable and not np.shares_memory(first[0], second[0])
    first[0][:] = 0
    np.testing.assert_array_equal(np.from_dlpack(second[1]), x + 3)


def test_large_results_are_not_copied():
    f = spmdc.compile(source="fn main(x: f32[1000, 1000]) -> (f32[1000, 1000], f32) { (sin(x), sum(x)) }")
    x = np.random.default_rng(0).normal(size=(1000, 1000)).astype(np.float32)
    kept = []
    for trip in range(3):
        buffers = f._native.run([x + trip])
        if os.uname().sysname == "Linux":
            assert [buffer.is_moved for buffer in buffers] == [True, False]
        kept.append(f._results.value(buffers))
    for trip, (sines, _) in enumerate(kept):
        np.testing.assert_allclose(sines, np.sin(x + np.float32(trip)), atol=1e-6)
    # A result that is a parameter, a constant or another result stays where it is.
    same = spmdc.compile(source="fn main(x: f32[1000000]) -> (f32[1000000], f32[1000000], f32[1000000]) { let y = x + 1; (x, y, y) }")
    for trip in range(2):
        given = np.full(1000000, trip, np.float32)
        a, b, c = same(given)
        assert (a == trip).all() and (b == trip + 1).all() and (c == trip + 1).all()


def test_several_meshes():
    source = """
    mesh all (stage = 2, X = 2);
    mesh first = all[stage = 0];
    mesh second = all[stage = 1];
    fn main(x: f32[600000@X] on first) -> f32[600000@X] on second { transfer(x + 1, second) * 2 }
    """
    f = spmdc.compile(source=source)
    x = np.arange(600000, dtype=np.float32)
    np.testing.assert_array_equal(f(x), (x + 1) * 2)
    assert f.plan()["meshes"] and "second" in f.viz()


def test_constants_and_meshes_and_entries(tmp_path):
    path = tmp_path / "f.spmd"
    path.write_text("mesh (X = 1, Y = 1); const N = 2; const FLAG = false;\nfn g() -> i32 { 5 }\n"
                    "fn main(x: f32[N@X, N@Y]) -> f32 { if FLAG { sum(x) } else { 0.0 } }")
    for mesh, devices in [({"X": 2, "Y": 4}, 8), ((2, 3), 6), ("2x2", 4), (None, 1)]:
        f = spmdc.compile(path, mesh=mesh, set={"N": np.int64(8), "FLAG": np.True_})
        assert f.devices == devices and f(np.ones((8, 8), np.float32)) == 64
    assert spmdc.compile(str(path), entry="g")() == 5
    with pytest.raises(spmdc.CompileError, match="E0"):
        spmdc.compile(path, set={"M": 1})
    with pytest.raises(spmdc.CompileError, match="malformed mesh"):
        spmdc.compile(path, mesh="2y2")
    with pytest.raises(FileNotFoundError):
        spmdc.compile(tmp_path / "none.spmd")
    with pytest.raises(TypeError):
        spmdc.compile()


def test_compile_errors_have_places():
    with pytest.raises(spmdc.CompileError) as caught:
        spmdc.compile(source="fn main(x: f32[4]) -> f32[4] {\n  let a = y;\n  x + z\n}", name="p.spmd")
    error = caught.value
    assert error.code.startswith("E0") and (error.file, error.line, error.column) == ("p.spmd", 2, 11)
    assert "`y`" in error.message and "p.spmd:2:11" in str(error) and "let a = y;" in str(error)
    assert [found.line for found in error.diagnostics] == [2, 3]


def test_warnings_of_the_compiler():
    source = """
    mesh (X = 2);
    fn loss(w, x) { mean((x @ w) ** 2) }
    manual(X) fn twice(w: f32[4], x: f32[8@X, 4]) -> f32[4] { psum(grad(loss)(w, x), X) }
    fn main(w: f32[4], x: f32[8@X, 4]) -> f32[4] { twice(w, x) }
    """
    for _ in range(2):
        # The second time from the cache.
        with pytest.warns(spmdc.CompileWarning, match="`w` is already summed over X") as caught:
            spmdc.compile(source=source, name="p.spmd")
        (warning,) = caught
        diagnostic = warning.message.diagnostic
        assert warning.filename == __file__ and (diagnostic.code, diagnostic.file, diagnostic.line) == ("E0507", "p.spmd", 4)


def test_a_program_that_stops_can_run_again():
    f = spmdc.compile(source='mesh (X = 4);\nfn main(x: f32[8@X], i: i32) -> f32 {\n  assert(all(x >= 0), "x is negative");\n  x[i]\n}', name="p.spmd")
    x = np.ones(8, np.float32)
    assert f(x, 3) == 1
    with pytest.raises(spmdc.ProgramError) as caught:
        f(-x, 0)
    assert (caught.value.code, caught.value.line, caught.value.file) == ("E0806", 3, "p.spmd")
    assert "x is negative" in caught.value.message and "assert(all(x >= 0)" in str(caught.value)
    with pytest.raises(RuntimeError, match="E0801"):
        f(x, 9)
    assert f(x, -1) == 1


def test_errors_can_be_pickled():
    f = spmdc.compile(source="fn main(x: f32[2]) { assert(all(x > 0)); }")
    with pytest.raises(spmdc.CompileError) as wrong:
        spmdc.compile(source="fn main() { y + z }")
    with pytest.raises(spmdc.ArgumentError) as refused:
        f(3)
    with pytest.raises(spmdc.ProgramError) as stopped:
        f([0, 0])
    for error in (wrong.value, refused.value, stopped.value):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and (str(again), again.code, again.line) == (str(error), error.code, error.line)


def test_memory_limits_and_timeouts():
    f = spmdc.compile(source="fn main(x: f32[100000]) -> f32[100000] { x + 1 }", memory_limit=1000)
    with pytest.raises(spmdc.ProgramError, match="E0803"):
        f(np.zeros(100000, np.float32))
    with pytest.raises(ValueError):
        spmdc.compile(source="fn main() -> f32 { 1.0 }", timeout=-1)


def test_printed_text_goes_to_the_output_of_python():
    f = spmdc.compile(source='fn main(n: i32) { for i in 0..3 { print("{} of {}", i, n); } }')
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        assert f(3) is None
    assert text.getvalue() == "0 of 3\n1 of 3\n2 of 3\n"


def test_an_exception_of_the_output_stops_the_program():
    f = spmdc.compile(source='fn main(n: i32) { for i in 0..1000 { print("{}", i); } }')

    class Full(io.StringIO):
        def write(self, text):
            raise KeyboardInterrupt

    with contextlib.redirect_stdout(Full()), pytest.raises(KeyboardInterrupt):
        f(3)
    with contextlib.redirect_stdout(io.StringIO()):
        f(3)


def test_threads_share_a_program():
    f = spmdc.compile(source="mesh (X = 2); fn main(x: f32[64@X, 64]) -> f32[64@X, 64] { x @ x }")
    failures = []

    def work(seed):
        x = np.random.default_rng(seed).normal(size=(64, 64)).astype(np.float32)
        for _ in range(50):
            if not np.allclose(f(x), x @ x, atol=1e-3):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures


SHARED = None


def in_child(x):
    return float(SHARED(x))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.skipif("jax" in sys.modules, reason="the threads of JAX do not survive a fork")
def test_a_forked_process_runs_the_program():
    global SHARED
    SHARED = spmdc.compile(source="mesh (X = 2); fn main(x: f32[8@X]) -> f32 { sum(x) }")
    x = np.ones(8, np.float32)
    assert SHARED(x) == 8
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(in_child, [x, 2 * x]) == [8, 16]
    assert SHARED(x) == 8


def test_streams_are_arrays_or_files(tmp_path):
    f = spmdc.compile(source="fn main(data: stream f32[10, 3]) -> f32[3] { let mut s = zeros(f32[3]); for i in 0..10 { s += data[i]; } s }")
    data = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    np.save(tmp_path / "data.npy", data)
    np.savez(tmp_path / "all.npz", rows=data)
    for given in [data, tmp_path / "data.npy", f"{tmp_path}/all.npz:rows"]:
        np.testing.assert_allclose(f(given), data.sum(0), rtol=1e-5, atol=1e-6)
    with pytest.raises(spmdc.ProgramError, match="E0703"):
        f(tmp_path / "none.npy")


def test_descriptions():
    source = "mesh (X = 2);\nfn main(x: f32[8@X, 4]) -> f32[4] {\n  let s = sum(x, axis=0);\n  s * 2\n}"
    f = spmdc.compile(source=source, name="p.spmd")
    plan = f.plan()
    assert plan["flops_per_device"] > 0 and [each["kind"] for each in plan["collectives"]] == ["all_reduce"]
    assert "all_reduce" in str(plan)
    assert "all_reduce over X" in f.why(3) and "replicated" in f.why(3, "s")
    with pytest.raises(spmdc.ArgumentError, match="does not define a value `t`"):
        f.why(3, "t")
    assert f.dump().startswith("stage partitioned;") and "all_reduce" not in f.dump("typed")
    assert "fn main" in f.dump("ast") and f.dump("asm")
    with pytest.raises(ValueError, match="there is no stage `end`"):
        f.dump("end")
    assert f.source == source and "x: f32[8@X,4]" in f.viz("x") and "result" not in f.viz("x")
    html = f._repr_html_()
    assert "<table>" in html and "main(x: f32[8@X,4])" in html and "<script" not in html
    assert repr(f) == "<spmdc.Program main(x: f32[8@X,4]) -> f32[4] on 2 devices>"
    assert list(inspect.signature(f).parameters) == ["x"]


def test_compiled_programs_are_kept_in_the_cache():
    source = "fn main(x: f32[3]) -> f32[3] { exp(x) * 3 }"
    first = spmdc.compile(source=source)(np.zeros(3, np.float32))
    second = spmdc.compile(source=source)(np.zeros(3, np.float32))
    np.testing.assert_array_equal(first, second)
    assert any(files for _, _, files in os.walk(os.environ["XDG_CACHE_HOME"]))
