"""A random function of the language, statement by statement, each together with what NumPy makes of it.

What is not continuous (comparisons, rounding, `argmax`) is applied to exact values only.
"""

import random

import numpy as np
from values import (EPS, F64, FLOATS, INTS, MOST, TINY, TYPES, V, Refused, as_type, cast, grained, is_float, is_int, moved, need, promoted,
                    summed, ulp, wide)

# ------------------------------------------------------------------------------------------------------ the generator


class Writer:
    def __init__(self, rng, large, axes):
        self.r, self.large, self.axes = rng, large, axes
        self.limit = 400_000 if large else 4_000
        self.vars, self.lines, self.code, self.params, self.count = [], [], [], [], 0
        r = rng
        if large:
            sizes = r.choice([[331, 317, 3], [73, 1409, 5], [105_000, 7, 64], [48, 50, 53], [1024, 128, 9]])
        else:
            sizes = [r.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16]) for _ in range(3)]
            if r.random() < 0.06:
                sizes[r.randrange(3)] = 0
        self.sizes = sizes
        for number in range(r.randint(2, 4)):
            if large and number < 2:
                shape = sizes[:2] if np.prod(sizes) > self.limit else sizes
                shape = shape if number == 0 or r.random() < 0.6 else shape[-1:]
                shape = [n for n in shape if n < 100_000] if number and r.random() < 0.5 else shape
            else:
                shape = [r.choice(sizes) for _ in range(r.choice([0, 1, 1, 2, 2, 2, 3, 3] + ([4] if not large else [])))]
                while room(shape) > self.limit:
                    shape.pop()
            dt = r.choice(INTS + ["i32", "i32", "bool"] + FLOATS + ["f32", "f32"])
            value = V(self.values(dt, tuple(shape)), name=f"p{number}")
            self.vars.append(value)
            self.params.append(value)

    def values(self, dt, shape):
        g = np.random.default_rng(self.r.getrandbits(60))
        if dt == "bool":
            return g.random(shape) < 0.5
        if is_int(dt):
            limits = np.iinfo(TYPES[dt])
            how = self.r.random()
            if how < 0.3:
                return g.integers(limits.min, limits.max, shape, dtype=TYPES[dt], endpoint=True)
            low = 0 if dt[0] == "u" else -9
            a = g.integers(low, 9, shape, dtype=TYPES[dt], endpoint=True)
            if how < 0.4 and a.size:
                a.flat[g.integers(a.size)] = self.r.choice([limits.min, limits.max])
            return a
        how = self.r.random()
        if how < 0.6:
            return cast(g.integers(-16, 16, shape, endpoint=True) / 4, dt)
        a = cast(g.standard_normal(shape), dt)
        if how < 0.7 and a.size:
            for special in [0.0, -0.0, np.inf, -np.inf, np.nan, TINY[dt], 1.5]:
                a.flat[g.integers(a.size)] = special
        return a

    # ---- choosing

    def any(self, fits=lambda v: True):
        fitting = [v for v in self.vars if fits(v)]
        need(fitting)
        return self.r.choice(fitting[-4:] if self.r.random() < 0.6 else fitting)

    def beside(self, x, same_type=True):
        """Something that broadcasts to x."""
        def fits(y):
            if same_type and y.dt != x.dt or len(y.shape) > len(x.shape):
                return False
            return all(a == b or a == 1 for a, b in zip(y.shape[::-1], x.shape[::-1]))
        return self.any(fits)

    def axis(self, x):
        need(x.shape)
        axis = self.r.randrange(len(x.shape))
        return axis, axis - self.r.choice([0, len(x.shape)])

    def dims(self, shape, taken=()):
        """`[4@X, 5]`, or nothing said."""
        if not shape:
            return ""
        dims = [[] for _ in shape]
        for axis in self.r.sample(self.axes, len(self.axes)):
            if self.r.random() < 0.7:
                dims[self.r.randrange(len(shape))].append(axis)
        text = [f"{n}" + (f"@{a[0]}" if len(a) == 1 else f"@({', '.join(a)})" if a else self.r.choice(["", "", "@_", "@?"]))
                for n, a in zip(shape, dims)]
        return f"[{', '.join(text)}]"

    def type(self, v, annotated):
        plain = f"[{', '.join(map(str, v.shape))}]" if v.shape else ""
        return v.dt + (self.dims(v.shape) if annotated else plain)

    # ---- statements

    def run(self, fn, args):
        with np.errstate(all="ignore"):
            result = fn(*args)
        results = result if isinstance(result, list) else [result]
        for v in results:
            need(room(v.shape) <= self.limit)
            if not v.exact:
                size = np.abs(v.a.astype(F64))
                top = size.max(initial=0.0)
                need(np.isfinite(top) and np.all(np.isfinite(v.e)) and top <= MOST[v.dt])
                need(v.e.max(initial=0.0) <= (0.1 if EPS[v.dt] > 1e-4 else 1e-3) * max(top, 1e-3))
        return result

    def new(self):
        self.count += 1
        return f"v{self.count}"

    def define(self, text, fn, args):
        value = self.run(fn, args)
        value.name = self.new()
        annotation = f": {self.type(value, True)}" if value.shape and self.r.random() < 0.15 else ""
        if value.shape and self.r.random() < 0.05:
            text = f"reshard({text}, P({self.axes[0]}))" if self.r.random() < 0.5 else f"reshard({text}, P())"
        self.line(f"  let {value.name}{annotation} = {text};", [value], args)

    def line(self, text, targets, args):
        self.code.append((text, [v.name for v in targets], [v.name for v in args]))
        self.vars += targets

    def statement(self):
        for _ in range(30):
            kind = self.r.choice(KINDS)
            count = self.count
            try:
                return kind(self)
            except Refused:
                self.count = count

    # ---- one by one

    def unary(self):
        x = self.any()
        n, dt = x.name, x.dt
        if dt == "bool":
            return self.define(f"!{n}", lambda x: V(~x.a), [x])
        plain = {"-{}": np.negative, "abs({})": np.abs, "square({})": lambda a: a * a, "{} ** 3": lambda a: a * a * a, "sign({})": np.sign,
                 "{} * 2": lambda a: a * a.dtype.type(2), "3 - {}": lambda a: a.dtype.type(3) - a}
        if is_int(dt):
            plain |= {"!{}": np.invert, "{} ** 2": lambda a: a * a, "{} << 1": lambda a: a << 1, "clip({}, 2, 5)": lambda a: np.clip(a, 2, 5)}
            text, f = self.r.choice(list(plain.items()))
            return self.define(text.format(n), lambda x: V(f(x.a)), [x])
        if x.exact and self.r.random() < 0.6:
            plain |= {f"{name}({{}})": f for name, f in [("floor", np.floor), ("ceil", np.ceil), ("round", np.round), ("trunc", np.trunc)]}
            plain |= {"isnan({})": np.isnan, "isinf({})": np.isinf, "isfinite({})": np.isfinite, "relu({})": lambda a: np.maximum(a, a.dtype.type(0)),
                      "{} / 4": lambda a: a / a.dtype.type(4), "{} + 1": lambda a: a + a.dtype.type(1), "sqrt(abs({}))": lambda a: np.sqrt(np.abs(a)),
                      "reciprocal({})": lambda a: a.dtype.type(1) / a}
            del plain["{} ** 3"]  # rounded twice in halves
            text, f = self.r.choice(list(plain.items()))
            def exactly(x):
                y = np.asarray(f(wide(x.a)))
                return V(y if y.dtype == bool else cast(y, x.dt))
            # Which zero is the larger one is not NumPy's concern.
            need("reciprocal" not in text or np.all(wide(x.a) != 0))
            return self.define(text.format(n), exactly, [x])
        smooth = {"sin({})": (np.sin, 1), "cos({})": (np.cos, 1), "tanh({})": (np.tanh, 1), "atan({})": (np.arctan, 1),
                  "log1p(abs({}))": (lambda a: np.log1p(np.abs(a)), 1), "exp(-abs({}))": (lambda a: np.exp(-np.abs(a)), 1),
                  "asinh({})": (np.arcsinh, 1), "sigmoid({})": (lambda a: 1 / (1 + np.exp(-a)), 0.25)}
        text, (f, slope) = self.r.choice(list(smooth.items()))
        def smoothly(x):
            need(np.all(np.isfinite(wide(x.a))))
            a = cast(f(x.a.astype(F64)), x.dt)
            # Compositions round in between.
            return V(a, slope * x.err() + (6 if x.dt == "f64" else 4) * ulp(a) + (EPS[x.dt] * 2 if "sigmoid" in text else 0)
                     + (2 * ulp(cast(-np.log(np.maximum(a.astype(F64), 1e-300)), x.dt)) * a.astype(F64) if "exp" in text else 0))
        self.define(text.format(n), smoothly, [x])

    def binary(self):
        x = self.any()
        y = self.beside(x, self.r.random() < 0.7)
        dt = promoted(x.dt, y.dt)
        if self.r.random() < 0.5:
            x, y = y, x
        args, text = [x, y], "({0} {op} {1})"
        if dt == "bool":
            op, f = self.r.choice([("&", np.bitwise_and), ("|", np.bitwise_or), ("^", np.bitwise_xor), ("&&", np.logical_and), ("||", np.logical_or)])
            return self.define(text.format(x.name, y.name, op=op), lambda x, y: V(f(x.a, y.a)), args)
        kind = self.r.random()
        if kind < 0.15:
            need(x.exact and y.exact)
            op, f = self.r.choice([("==", np.equal), ("!=", np.not_equal), ("<", np.less), ("<=", np.less_equal), (">", np.greater), (">=", np.greater_equal)])
            return self.define(f"{x.name} {op} {y.name}", lambda x, y: V(f(wide(cast(x.a, dt)), wide(cast(y.a, dt)))), args)
        if is_int(dt):
            return self.define(*self.integers(x, y, dt), args)
        op = self.r.choice(["+", "-", "*", "/", "max", "min", "//", "%"])
        def add(x, y, a, b): return x.err() + y.err()
        def times(x, y, a, b): return np.abs(a) * y.err() + np.abs(b) * x.err() + x.err() * y.err()
        def over(x, y, a, b):
            need(np.all(np.abs(b) > 4 * y.err()))
            return (x.err() + np.abs(a / b) * y.err()) / (np.abs(b) - y.err())
        f, error = {"+": (np.add, add), "-": (np.subtract, add), "*": (np.multiply, times), "/": (np.divide, over),
                    "max": (np.maximum, add), "min": (np.minimum, add), "//": (None, None), "%": (None, None)}[op]
        if f is None:
            need(x.exact and y.exact)
            # Where the quotient is representable in f64, this is the definition.
            def floored(x, y):
                a, b = cast(x.a, dt).astype(F64), cast(y.a, dt).astype(F64)
                need(dt != "f64" and np.all(np.isfinite(a)) and np.all(np.isfinite(b)) and np.all(np.abs(a) < 1e4) and np.all(np.abs(b) > 1e-3))
                need(grained(V(cast(x.a, dt)), V(cast(y.a, dt))))
                # A remainder of zero has the dividend's sign, as in JAX.
                rest = np.fmod(a, b)
                return V(cast(np.floor(a / b) if op == "//" else np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest), dt))
            return self.define(f"({x.name} {op} {y.name})", floored, args)
        def compute(x, y):
            x, y = as_type(x, dt), as_type(y, dt)
            need(op != "/" or np.all(wide(y.a) != 0))
            a = cast(np.asarray(f(wide(x.a), wide(y.a))), dt)
            if x.exact and y.exact:
                return V(a)
            return V(a, np.broadcast_to(error(x, y, x.a.astype(F64), y.a.astype(F64)), a.shape) + 1.5 * ulp(a))
        call = {"max": "maximum({}, {})", "min": "minimum({}, {})"}.get(op, f"({{}} {op} {{}})")
        self.define(call.format(x.name, y.name), compute, args)

    def integers(self, x, y, dt):
        t, a, b = TYPES[dt], x.name, y.name
        bits = t.itemsize * 8
        def shift(left):
            def f(a, b):
                inside = (b >= 0) & (b < bits)
                s = np.where(inside, b, 0).astype(t)
                return np.where(inside, a << s if left else a >> s, 0 if left else np.where(a < 0, t.type(0) - t.type(1), t.type(0))).astype(t)
            return f
        def power(a, b):
            return np.power(a, b & t.type(3))
        kinds = {f"({a} + {b})": np.add, f"({a} - {b})": np.subtract, f"{a} * {b}": np.multiply, f"minimum({a}, {b})": np.minimum,
                 f"maximum({a}, {b})": np.maximum, f"({a} & {b})": np.bitwise_and, f"({a} | {b})": np.bitwise_or, f"({a} ^ {b})": np.bitwise_xor,
                 f"{a} // ({b} | 1)": lambda a, b: np.floor_divide(a, b | t.type(1)), f"{a} % ({b} | 1)": lambda a, b: np.remainder(a, b | t.type(1)),
                 f"({a} << {b})": shift(True), f"({a} >> {b})": shift(False), f"{a} ** ({b} & 3)": power}
        if y.dt == "bool":
            kinds = {k: f for k, f in kinds.items() if "|" not in k and "& 3" not in k}
        text, f = self.r.choice(list(kinds.items()))
        return text, lambda x, y: V(np.asarray(f(cast(x.a, dt), cast(y.a, dt))).astype(t))

    def divide(self):
        x = self.any(lambda v: is_int(v.dt))
        y = self.beside(x)
        to = "f64" if "64" in x.dt else "f32"
        self.define(f"{x.name} / {y.name}", lambda x, y: V(cast(x.a, to) / cast(y.a, to)), [x, y])

    def casting(self):
        x = self.any()
        to = self.r.choice(list(TYPES))
        self.define(self.r.choice([f"{to}({x.name})", f"cast({x.name}, {to})"]), lambda x: as_type(x, to), [x])

    def where(self):
        x = self.any()
        y, c = self.beside(x), self.beside(V(np.zeros(x.shape, bool)))
        need(c.dt == "bool")
        def f(c, x, y):
            e = None if x.exact and y.exact else np.broadcast_to(np.where(c.a, x.err(), y.err()), x.shape)
            return V(np.where(c.a, x.a, y.a), e)
        self.define(f"where({c.name}, {x.name}, {y.name})", f, [c, x, y])

    def entries(self, x):
        """An index with ranges, steps, places and new dimensions: its text, and NumPy's."""
        r, texts, items = self.r, [], []
        for n in x.shape:
            if r.random() < 0.08:
                texts.append("None"), items.append(None)
            kind = r.random()
            if kind < 0.3:
                texts.append(":"), items.append(slice(None))
            elif kind < 0.42 and n:
                at = r.randrange(-n, n)
                texts.append(str(at)), items.append(at)
            else:
                bound = lambda: r.choice([None, r.randint(-n - 2, n + 2), r.randint(0, n), r.randint(0, 3), -r.randint(1, 3)])
                start, stop, step = bound(), bound(), r.choice([None, None, 1, 2, 3, -1, -2, -3, 7])
                text = ("" if start is None else str(start)) + ":" + ("" if stop is None else str(stop)) + ("" if step is None else f":{step}")
                texts.append(text), items.append(slice(start, stop, step))
        if r.random() < 0.1 and texts[-1] == ":":
            texts[-1], items[-1] = "...", Ellipsis
        while r.random() < 0.1 and len(texts) > 1 and texts[-1] == ":":
            texts.pop(), items.pop()
        return ", ".join(texts), tuple(items)

    def slicing(self):
        x = self.any(lambda v: v.shape)
        text, items = self.entries(x)
        self.define(f"{x.name}[{text}]", lambda x: moved(x, lambda a: a[items]), [x])

    def pad(self):
        x = self.any(lambda v: v.shape)
        mode = self.r.choice(["constant", "edge", "reflect", "symmetric", "wrap"])
        wide_ones = [0, 0, 1, 2, 3, self.r.randint(0, 9)]
        need(mode == "constant" or 0 not in x.shape)
        widths = [(self.r.choice(wide_ones), self.r.choice(wide_ones)) for _ in x.shape]
        need(room([before + n + after for n, (before, after) in zip(x.shape, widths)]) <= self.limit)
        text = f"({', '.join(map(str, widths))},)"
        number = self.r.choice([0, 1, 7])
        if mode == "constant":
            t = number if x.dt != "bool" else number == 1
            tail = f", constant_values={str(t).lower()}" if number or x.dt == "bool" else ""
            f = lambda a: np.pad(a, widths, constant_values=a.dtype.type(t))
            return self.define(f"pad({x.name}, {text}{tail})", lambda x: V(f(x.a), None if x.exact else np.pad(x.e, widths)), [x])
        def f(a):
            for axis, (before, after) in enumerate(widths):
                each = [(0, 0)] * a.ndim
                each[axis] = (before, after)
                index = np.pad(np.arange(a.shape[axis]), [each[axis]], mode=mode)
                a = np.take(a, index, axis)
            return a
        self.define(f"pad({x.name}, {text}, mode=\"{mode}\")", lambda x: moved(x, f), [x])

    def joined(self):
        x = self.any(lambda v: v.shape)
        axis, said = self.axis(x)
        others = [self.any(lambda y: y.dt == x.dt and len(y.shape) == len(x.shape)
                           and all(d == axis or a == b for d, (a, b) in enumerate(zip(x.shape, y.shape)))) for _ in range(self.r.randint(0, 2))]
        args, texts, cuts = [x, *others], [], []
        self.r.shuffle(args)
        for v in args:
            cut = slice(None)
            if self.r.random() < 0.4:
                n = v.shape[axis]
                start = self.r.randint(-n, n)
                cut = self.r.choice([slice(start, None), slice(None, start), slice(start, None, -1)])
            cuts.append(cut)
            step = f":{cut.step}" if cut.step else ""
            where = ", ".join([":"] * axis + [f"{'' if cut.start is None else cut.start}:{'' if cut.stop is None else cut.stop}{step}"])
            texts.append(v.name if cut == slice(None) else f"{v.name}[{where}]")
        if self.r.random() < 0.3:
            need(len({v.shape for v in args}) == 1)
            at = self.r.randint(-len(x.shape) - 1, len(x.shape))
            return self.define(f"stack([{', '.join(v.name for v in args)}], axis={at})", lambda *vs: self.both(vs, lambda l: np.stack(l, at)), args)
        place = lambda cut: (slice(None),) * axis + (cut,)
        f = lambda l: np.concatenate([a[place(cut)] for a, cut in zip(l, cuts)], axis)
        self.define(f"concatenate([{', '.join(texts)}], axis={said})", lambda *vs: self.both(vs, f), args)

    def both(self, vs, f):
        return V(f([v.a for v in vs]), None if all(v.exact for v in vs) else f([v.err() for v in vs]))

    def shaping(self):
        x = self.any()
        r, n, rank = self.r, x.name, len(x.shape)
        axis, said = self.axis(x) if rank else (0, 0)
        k = r.randint(-9, 9)
        choice = r.randrange(14)
        if choice == 0:
            text, f = f"roll({n}, {k}, axis={said})", lambda a: np.roll(a, k, axis)
        elif choice == 1:
            text, f = f"roll({n}, {k})", lambda a: np.roll(a, k)
        elif choice == 2:
            text, f = r.choice([(f"flip({n}, axis={said})", lambda a: np.flip(a, axis)), (f"flip({n})", np.flip)])
        elif choice == 3:
            order = r.sample(range(rank), rank)
            text, f = f"transpose({n}, ({''.join(f'{d}, ' for d in order)}))", lambda a: np.transpose(a, order)
        elif choice == 4:
            shape = factored(r, x.a.size)
            if 0 not in shape and r.random() < 0.3:
                shape[r.randrange(len(shape))] = -1
            text, f = f"reshape({n}, ({''.join(f'{d}, ' for d in shape)}))", lambda a: np.reshape(a, shape)
        elif choice == 5:
            text, f = r.choice([(f"ravel({n})", np.ravel), (f"{n}.T", np.transpose), (f"reshape({n}, -1)", np.ravel)])
        elif choice == 6:
            reps = r.randint(0, 3)
            text, f = f"repeat({n}, {reps}, axis={said})", lambda a: np.repeat(a, reps, axis)
        elif choice == 7:
            need(rank and x.shape[axis] <= 16)
            reps = [r.randint(0, 3) for _ in range(x.shape[axis])]
            need(reps)
            text, f = f"repeat({n}, [{', '.join(map(str, reps))}], axis={said})", lambda a: np.repeat(a, reps, axis)
        elif choice == 8:
            reps = [r.randint(0 if r.random() < 0.1 else 1, 3) for _ in range(r.randint(1, rank + 1))]
            need(room(x.shape) * room(reps) <= self.limit)
            text, f = f"tile({n}, ({''.join(f'{d}, ' for d in reps)}))", lambda a: np.tile(a, reps)
        elif choice == 9:
            at = r.randint(-rank - 1, rank)
            text, f = f"expand_dims({n}, {at})", lambda a: np.expand_dims(a, at)
        elif choice == 10:
            shape = tuple(r.choice([s, s, r.choice([2, 3])]) if s == 1 else s for s in x.shape)
            shape = (r.randint(1, 3),) * r.randint(0, 1) + shape
            text, f = f"broadcast_to({n}, ({''.join(f'{d}, ' for d in shape)}))", lambda a: np.broadcast_to(a, shape)
        elif choice == 11:
            need(rank >= 2 and x.dt != "bool")
            name, g = r.choice([("tril", np.tril), ("triu", np.triu)])
            need(np.all(np.isfinite(x.a.astype(F64))))
            text, f = f"{name}({n}, k={k})", lambda a: g(a, k).astype(a.dtype)
        elif choice == 12:
            text, f = f"squeeze({n})", np.squeeze
        else:
            need(rank == 2)
            text, f = f"diag({n}, k={k})", lambda a: np.diagonal(a, k)
            need(-x.shape[0] < k < x.shape[1])
        need(rank or choice in (5, 9, 10))
        self.define(text, lambda x: moved(x, f), [x])

    def reduction(self):
        r, x = self.r, self.any(lambda v: v.shape)
        rank = len(x.shape)
        axes = tuple(r.sample(range(rank), r.randint(1, rank))) if r.random() < 0.85 else None
        if axes and len(axes) > 1 or axes is None:
            said = "" if axes is None else f", axis=({', '.join(str(d - r.choice([0, rank])) for d in axes)})"
        else:
            said = f", axis={axes[0] - r.choice([0, rank])}"
        keep = r.random() < 0.4
        said += ", keepdims=true" if keep else ""
        dims = axes if axes is not None else tuple(range(rank))
        terms = int(np.prod([x.shape[d] for d in dims]))
        name = r.choice(["sum", "sum", "prod", "max", "min", "mean", "argmax", "argmin", "count_nonzero", "any", "all", "var"])
        n = x.name
        if name in ("any", "all"):
            x = self.any(lambda v: v.dt == "bool" and len(v.shape) == rank)
            f = np.any if name == "any" else np.all
            return self.define(f"{name}({x.name}{said})", lambda x: V(f(x.a, axis=axes, keepdims=keep)), [x])
        if name == "count_nonzero":
            need(x.exact)
            return self.define(f"{name}({n}{said})", lambda x: V(np.count_nonzero(cast(x.a, "bool"), axis=axes, keepdims=keep).astype(np.int32)
                               if axes is not None or keep else np.int32(np.count_nonzero(cast(x.a, "bool")))), [x])
        if name in ("max", "min"):
            need(terms and x.dt != "bool")
            f = np.max if name == "max" else np.min
            def extreme(x):
                return V(cast(np.asarray(f(wide(x.a), axis=axes, keepdims=keep)), x.dt), None if x.exact else np.max(x.e, axis=axes, keepdims=keep))
            return self.define(f"{name}({n}{said})", extreme, [x])
        if name in ("argmax", "argmin"):
            need(x.exact and terms and x.dt != "bool")
            f = np.argmax if name == "argmax" else np.argmin
            axis = r.choice(dims) if axes is not None else None
            said = ("" if axis is None else f", axis={axis}") + (", keepdims=true" if keep else "")
            return self.define(f"{name}({n}{said})", lambda x: V(f(wide(x.a), axis=axis, keepdims=keep).astype(np.int32)), [x])
        if x.dt == "bool" or is_int(x.dt):
            need(name in ("sum", "prod"))
            to = r.choice([None, None, None] + INTS)
            out = to or {"bool": "i32", "i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32"}.get(x.dt, x.dt)
            f = np.sum if name == "sum" else np.prod
            said += f", dtype={to}" if to else ""
            masks = [v for v in self.vars if v.dt == "bool" and v.shape == x.shape]
            if masks and r.random() < 0.5:
                m = r.choice(masks)
                return self.define(f"{name}({n}{said}, where={m.name})", lambda x, m: V(np.asarray(f(cast(x.a, out), axis=axes, keepdims=keep, where=m.a, dtype=TYPES[out]))), [x, m])
            return self.define(f"{name}({n}{said})", lambda x: V(np.asarray(f(cast(x.a, out), axis=axes, keepdims=keep, dtype=TYPES[out]))), [x])
        need(np.all(np.isfinite(wide(x.a))))
        kw = dict(axis=axes, keepdims=keep)
        def floats(x):
            a = x.a.astype(F64)
            size = np.abs(a)
            if name == "prod":
                need(terms <= 30 and np.all((size > 0.05) | (size == 0)) and np.all(size < 20))
                p = np.prod(a, **kw)
                e = np.sum(x.err() / np.maximum(size, 0.05), **kw)
                need(np.all(np.prod(np.maximum(size, 1), **kw) < MOST[x.dt]) and np.all(np.prod(np.where(size > 0, np.minimum(size, 1), 1), **kw) > 1e-4) and np.all(e < 0.1))
                y = cast(p, x.dt)
                return V(y, 2 * e * np.abs(p) + 2 * (terms + 2) * EPS["f64" if x.dt == "f64" else "f32"] * np.abs(p) + 3 * ulp(y))
            if name == "var":
                need(terms > 0)
                y, size = np.var(a, **kw), np.mean(size**2, **kw)
                e = 4 * np.sqrt(size) * np.max(x.err(), **kw)
                s = summed(y, size * 8, e, x.dt, terms)
                return V(s.a, s.e + 4 * ulp(s.a))
            s = summed(np.sum(a, **kw), np.sum(size, **kw), np.sum(x.err(), **kw), x.dt, terms, x)
            if name == "sum":
                return s
            need(terms > 0)
            a = cast(np.mean(a, **kw), x.dt)
            return V(a, s.e / terms + 2 * ulp(a))
        self.define(f"{name}({n}{said})", floats, [x])

    def scan(self):
        r, x = self.r, self.any(lambda v: v.shape)
        axis, said = self.axis(x)
        name = r.choice(["cumsum", "cumsum", "cumprod", "cummax", "cummin"])
        need(name in ("cumsum", "cumprod") or x.dt != "bool")
        back = r.random() < 0.4
        f = {"cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum, "cummin": np.minimum}[name].accumulate
        turn = (lambda a: np.flip(a, axis)) if back else (lambda a: a)
        text = f"{name}({x.name}, axis={said}{', reverse=true' if back else ''}"
        if name in ("cummax", "cummin"):
            def extreme(x):
                e = None if x.exact else turn(np.maximum.accumulate(turn(x.e), axis))
                return V(cast(turn(f(turn(wide(x.a)), axis)), x.dt), e)
            return self.define(text + ")", extreme, [x])
        if not is_float(x.dt):
            to = r.choice([None, None] + INTS)
            out = to or ("i32" if x.dt == "bool" else x.dt)
            return self.define(text + (f", dtype={to})" if to else ")"), lambda x: V(turn(f(turn(cast(x.a, out)), axis, dtype=TYPES[out]))), [x])
        need(name == "cumsum" and np.all(np.isfinite(wide(x.a))))
        def sums(x):
            add = lambda a: turn(np.cumsum(turn(a), axis))
            a = x.a.astype(F64)
            s = summed(add(a), add(np.abs(a)), add(x.err()), x.dt, x.shape[axis], x, in_order=True)
            return V(s.a, s.e + (ulp(cast(add(np.abs(a)), x.dt)) if EPS[x.dt] > 1e-4 else 0))
        self.define(text + ")", sums, [x])

    def product(self):
        r, x = self.r, self.any(lambda v: v.shape and v.dt != "bool")
        y = self.any(lambda v: v.shape and v.dt == x.dt)
        need(max(len(x.shape), len(y.shape)) <= 8)
        letters = r.sample("abcdefgh", len(x.shape))
        right = []
        for n in y.shape:
            same = [c for c, m in zip(letters, x.shape) if m == n and c not in right]
            right.append(r.choice(same) if same and r.random() < 0.7 else r.choice([c for c in "ijklmnop" if c not in right]))
        all_letters = list(dict.fromkeys(letters + right))
        out = [c for c in all_letters if r.random() < (0.4 if c in letters and c in right else 0.85)]
        r.shuffle(out)
        sizes = dict(zip(letters, x.shape)) | dict(zip(right, y.shape))
        need(room(sizes.values()) < (4e6 if self.large else 2e5) and room(sizes[c] for c in out) <= self.limit)
        terms = int(np.prod([sizes[c] for c in all_letters if c not in out]))
        spec = f"{''.join(letters)},{''.join(right)}->{''.join(out)}"
        text = f"einsum(\"{spec}\", {x.name}, {y.name})"
        if len(x.shape) == 2 and len(y.shape) <= 2 and r.random() < 0.4 and x.shape[1] == y.shape[0]:
            spec, text = ("ab,b->a" if len(y.shape) == 1 else "ab,bc->ac"), f"{x.name} @ {y.name}"
            terms = x.shape[1]
        def f(x, y):
            if is_int(x.dt):
                return V(np.einsum(spec, x.a, y.a))
            a, b = x.a.astype(F64), y.a.astype(F64)
            need(np.all(np.isfinite(a)) and np.all(np.isfinite(b)))
            ein = lambda p, q: np.einsum(spec, p, q, optimize=self.large)
            e = np.zeros(()) if x.exact and y.exact else ein(np.abs(a) + x.err(), y.err()) + ein(x.err(), np.abs(b))
            return summed(ein(a, b), ein(np.abs(a), np.abs(b)), e, x.dt, terms + 1, x, y)
        self.define(text, f, [x, y])

    def made(self):
        r = self.r
        dt, n, m = r.choice(INTS + FLOATS), r.randint(1, 12), r.randint(1, 12)
        shape = [n, m][:r.randint(1, 2)]
        axis, k = r.randrange(len(shape)), r.randint(-3, 3)
        ty = f"{dt}[{', '.join(map(str, shape))}]"
        iota = cast(np.broadcast_to(np.arange(shape[axis]).reshape([-1 if d == axis else 1 for d in range(len(shape))]), shape), dt)
        start, step = r.randint(-9, 9), r.choice([1, 2, 3, -1])
        stop = start + step * r.randint(0, 9) + (1 if step > 1 else 0)
        text, a = r.choice([(f"iota({ty}, axis={axis})", iota), (f"full({ty}, 7)", np.full(shape, 7, TYPES[dt])),
                            (f"arange({start}, {stop}, {step})", np.arange(start, stop, step, np.int32)),
                            (f"arange({k + 3}, {200 * n}, {m}, dtype={dt})", cast(np.arange(k + 3, 200 * n, m), dt)),
                            (f"eye({n}, {m}, k={k})", np.eye(n, m, k, np.float32)), (f"zeros({ty})", np.zeros(shape, TYPES[dt]))])
        self.define(text, lambda: V(a), [])

    def assignment(self):
        r, x = self.r, self.any(lambda v: v.shape)
        text, items = self.entries(x)
        need("None" not in text)
        region = V(x.a[items])
        y = self.beside(V(np.zeros(region.shape, x.a.dtype)))
        op = r.choice(["=", "=", "+="]) if x.dt != "bool" else "="
        name = self.new()
        def f(x, y):
            a, e = x.a.copy(), None if x.exact and y.exact else x.err().copy()
            new = y if op == "=" else V(cast(np.asarray(wide(a[items]) + wide(y.a)), x.dt), None if e is None else e[items] + y.err())
            a[items] = new.a
            if e is not None:
                e[items] = new.err() + (1.5 * ulp(np.asarray(a[items])) if op == "+=" else 0)
            return V(a, e)
        value = self.run(f, [x, y])
        value.name = name
        self.line(f"  let mut {name} = {x.name};\n  {name}[{text}] {op} {y.name};", [value], [x, y])

    def dynamic(self):
        r, x = self.r, self.any(lambda v: v.shape)
        i = self.any(lambda v: not v.shape and is_int(v.dt) and -2**31 <= int(v.a) < 2**31)
        axis, said = self.axis(x)
        n = x.shape[axis]
        need(n)
        at = int(i.a) % n
        index = ", ".join([":"] * axis + [f"i32({i.name} % {n})" if r.random() < 0.5 else f"i32({i.name} % {n}) - {n}"])
        need(n < 100 or i.dt not in ("i8", "u8"))
        need(n < 30_000)
        place = (slice(None),) * axis
        if r.random() < 0.4:
            return self.define(f"{x.name}[{index}]", lambda x, i: moved(x, lambda a: a[place + (at,)]), [x, i])
        if r.random() < 0.4:
            name = self.new()
            y = self.beside(V(np.zeros(np.delete(x.shape, axis), x.a.dtype)))
            def put(x, y, i):
                a, e = x.a.copy(), None if x.exact and y.exact else x.err().copy()
                a[place + (at,)] = y.a
                if e is not None:
                    e[place + (at,)] = y.err()
                return V(a, e)
            value = self.run(put, [x, y, i])
            value.name = name
            return self.line(f"  let mut {name} = {x.name};\n  {name}[{index}] = {y.name};", [value], [x, y, i])
        lens = [r.randint(0, s) for s in x.shape]
        raw = [r.randint(-3, 12) for _ in x.shape]
        starts = [min(max(s + n if s < 0 else s, 0), n - l) for s, n, l in zip(raw, x.shape, lens)]
        begin = int(i.a) % 7
        texts = [f"i32({i.name} % 7) + {s - begin}" if r.random() < 0.5 else str(s) for s in raw]
        region = tuple(slice(s, s + l) for s, l in zip(starts, lens))
        tuples = lambda l: f"({''.join(f'{t}, ' for t in l)})"
        self.define(f"dynamic_slice({x.name}, {tuples(texts)}, {tuples(lens)})", lambda x, i: moved(x, lambda a: a[region]), [x, i])

    def loop(self):
        """An array of integers or exact floats goes round: by arithmetic of its type, rolls, slices of itself, another array."""
        r, x = self.r, self.any(lambda v: is_int(v.dt) and v.a.size)
        ys = [v for v in self.vars if v.dt == x.dt and v.shape == x.shape]
        y, u, k = r.choice(ys), self.new(), self.new()
        t = x.a.dtype.type
        axis, _ = self.axis(x) if x.shape else (None, None)
        where = ", ".join([":"] * axis + ["1:"]) if x.shape else None
        before = (slice(None),) * (axis or 0)
        one, less = before + (slice(1, None),), before + (slice(None, -1),)
        def shifted(u, y, k):
            u = u.copy()
            u[one] = u[less] + y[one]
            return u
        steps = {f"{u} = {u} * 3 + {y.name};": lambda u, y, k: u * t(3) + y, f"{u} = ({u} ^ {y.name}) - {x.dt}({k});": lambda u, y, k: (u ^ y) - np.asarray(k).astype(u.dtype),
                 f"{u} = where({u} > {y.name}, {u} - 1, {y.name});": lambda u, y, k: np.where(u > y, u - t(1), y),
                 f"if {k} % 2 == 0 {{ {u} = {u} + 1; }} else {{ {u} = {y.name} - {u}; }}": lambda u, y, k: u + t(1) if k % 2 == 0 else y - u}
        if x.shape:
            steps |= {f"{u} = roll({u}, 1, axis={axis});": lambda u, y, k: np.roll(u, 1, axis), f"{u} = flip({u}) + {y.name};": lambda u, y, k: np.flip(u) + y,
                      f"{u} = {u} - {x.dt}(sum({u}, axis={axis}, keepdims=true));": lambda u, y, k: u - np.sum(u, axis, keepdims=True, dtype=np.int64).astype(u.dtype),
                      f"{u}[{where}] = {u}[{where[:-2]}:-1] + {y.name}[{where}];": shifted,
                      f"{u} = cumsum({u}, axis={axis}, dtype={x.dt});": lambda u, y, k: np.cumsum(u, axis, dtype=u.dtype)}
        body = r.choices(list(steps.items()), k=r.randint(1, 4))
        trips = r.randint(0, 4)
        form = r.randrange(4)
        start, step = r.randint(-3, 3), r.choice([1, 2, -1, -3])
        def f(x, y, stacks):
            a, each = x.a, []
            for trip in range(trips):
                counter = trip if form == 0 else start + step * trip
                for _, change in body:
                    a = np.asarray(change(a, y.a, counter)).astype(x.a.dtype)
                each.append(a)
            return V(np.stack(each)) if stacks else V(a)
        text = "".join(f"    {line}\n" for line, _ in body)
        value = self.run(lambda x, y: f(x, y, False), [x, y])
        value.name = u
        head = f"  let mut {u} = {x.name};\n"
        steps_text = f"{start}..{start + step * trips}" + (f" step {step}" if step != 1 else "")
        if form == 0:
            return self.line(f"{head}  let mut {k} = 0;\n  while {k} < {trips} {{\n{text}    {k} += 1;\n  }}", [value], [x, y])
        if form == 1 and trips:
            stack = self.run(lambda x, y: f(x, y, True), [x, y])
            stack.name = self.new()
            return self.line(f"{head}  let {stack.name} = for {k} in {steps_text} collect {{\n{text}    {u}\n  }};", [value, stack], [x, y])
        self.line(f"{head}  for {k} in {steps_text} {{\n{text}  }}", [value], [x, y])

    def counted(self):
        """A loop that reads and writes places by its counter."""
        r, x = self.r, self.any(lambda v: is_int(v.dt) and v.shape and 0 < v.shape[-1] and 0 < v.shape[0] <= 64)
        y = self.any(lambda v: v.dt == x.dt and v.shape == x.shape)
        n, u, k = x.shape[0], self.new(), self.new()
        t = x.a.dtype.type
        rest = ", :" * (len(x.shape) - 1) if r.random() < 0.5 else ""
        steps = {f"{u}[{k}{rest}] = {u}[{k} - 1{rest}] + {y.name}[{k}{rest}];": lambda u, y, k: (k, u[k - 1] + y[k]),
                 f"{u}[{k}{rest}] -= {y.name}[{n - 1} - {k}{rest}];": lambda u, y, k: (k, u[k] - y[n - 1 - k]),
                 f"{u}[{n - 1} - {k}{rest}] = {u}[{k}{rest}] * 3 ^ {y.name}[0{rest}];": lambda u, y, k: (n - 1 - k, u[k] * t(3) ^ y[0]),
                 f"{u}[-1 - {k}{rest}] += {u}[{k}{rest}];": lambda u, y, k: (-1 - k, u[-1 - k] + u[k])}
        body = r.choices(list(steps.items()), k=r.randint(1, 2))
        first, step = r.randint(0, n - 1), r.choice([1, 1, 2, -1])
        last = n if step > 0 else -1
        def f(x, y):
            a, rows = x.a.copy(), []
            for trip in range(first, last, step):
                for _, change in body:
                    place, row = change(a, y.a, trip)
                    a[place] = row
                rows.append(a[trip].copy())
            return [V(a), V(np.stack(rows))]
        value, stack = self.run(f, [x, y])
        value.name, stack.name = u, self.new()
        text = "".join(f"    {line}\n" for line, _ in body)
        steps_text = f"{first}..{last}" + (f" step {step}" if step != 1 else "")
        self.line(f"  let mut {u} = {x.name};\n  let {stack.name} = for {k} in {steps_text} collect {{\n{text}    {u}[{k}]\n  }};", [value, stack], [x, y])

    def statistic(self):
        """Composites of sums, and extremes with `where=` and `initial=`."""
        r, x = self.r, self.any(lambda v: v.shape and v.dt != "bool")
        axis, said = self.axis(x)
        n = x.shape[axis]
        keep = r.random() < 0.4
        tail = f", axis={said}{', keepdims=true' if keep else ''}"
        kw = dict(axis=axis, keepdims=keep)
        masks = [v for v in self.vars if v.dt == "bool" and v.shape == x.shape]
        if not is_float(x.dt) or masks and r.random() < 0.3:
            m, (name, f) = r.choice(masks) if masks else None, r.choice([("max", np.max), ("min", np.min)])
            first = r.randint(0, 9)
            need(m is not None and x.exact)
            def extreme(x, m):
                return V(cast(np.asarray(f(wide(x.a), where=m.a, initial=first, **kw)), x.dt))
            return self.define(f"{name}({x.name}{tail}, where={m.name}, initial={first})", extreme, [x, m])
        need(n and np.all(np.isfinite(wide(x.a))) and np.all(np.abs(wide(x.a)) < 100))
        def bounded(name, x):
            a, e = x.a.astype(F64), np.max(x.err(), initial=0.0)
            top, eps = np.max(np.abs(a), initial=1.0), EPS["f64" if x.dt == "f64" else "f32"]
            grown = (8 + 2 * n**0.5) * eps * max(top, 1)
            if name == "std":
                y, own = np.std(a, **kw), np.sqrt(8 * n * eps) * top + e
            elif name == "norm":
                y = np.sqrt(np.sum(a * a, **kw))
                own = grown * n**0.5 + e * n**0.5
            else:
                high = np.max(a, axis=axis, keepdims=True)
                z = np.exp(a - high)
                total = np.sum(z, axis=axis, keepdims=True)
                y, own = (z / total, grown + 2 * e) if name == "softmax" else (np.squeeze(high + np.log(total), axis) if not keep else high + np.log(total), grown + e)
            y = cast(np.asarray(y), x.dt)
            return V(y, np.broadcast_to(own, y.shape) + 6 * ulp(y) + 4 * TINY[x.dt])
        name = r.choice(["std", "norm", "softmax", "logsumexp"])
        self.define(f"{name}({x.name}, axis={said})" if name == "softmax" else f"{name}({x.name}{tail})", lambda x: bounded(name, x), [x])

    def updated(self):
        """`dynamic_update_slice`, whose region is moved until it lies inside."""
        r, x = self.r, self.any(lambda v: v.shape)
        i = self.any(lambda v: not v.shape and is_int(v.dt) and 0 <= int(v.a) < 100)
        y = self.any(lambda v: v.dt == x.dt and len(v.shape) == len(x.shape) and all(m <= n for m, n in zip(v.shape, x.shape)))
        raw = [r.choice([r.randint(-3, 12), int(i.a)]) for _ in x.shape]
        starts = [min(max(s + n if s < 0 else s, 0), n - m) for s, n, m in zip(raw, x.shape, y.shape)]
        texts = [f"i32({i.name})" if s == int(i.a) else str(s) for s in raw]
        region = tuple(slice(s, s + m) for s, m in zip(starts, y.shape))
        def put(x, y, i):
            a, e = x.a.copy(), None if x.exact and y.exact else x.err().copy()
            a[region] = y.a
            if e is not None:
                e[region] = y.err()
            return V(a, e)
        self.define(f"dynamic_update_slice({x.name}, {y.name}, ({''.join(f'{t}, ' for t in texts)}))", put, [x, y, i])

    def branch(self):
        x = self.any()
        c = self.any(lambda v: v.exact and not v.shape and v.dt != "bool")
        y = self.any(lambda v: v.dt == x.dt and v.shape == x.shape)
        taken = bool(wide(c.a) > 2)
        self.define(f"if {c.name} > 2 {{ {x.name} }} else {{ {y.name} }}", lambda c, x, y: V((x if taken else y).a, (x if taken else y).e), [c, x, y])

    # ---- the function

    def text(self, name, wanted):
        """The function with the statements that these results need, and their names in its tuple."""
        needed, lines = set(wanted), []
        for text, targets, args in reversed(self.code):
            if needed & set(targets):
                needed |= set(args)
                lines.append(text)
        used = [p for p in self.params if p.name in needed]
        r = random.Random(name)
        params = [p.name + (f": {self.type(p, r.random() < 0.4)}" if r.random() < 0.6 else "") for p in used]
        body = "\n".join(reversed(lines))
        return used, f"fn {name}({', '.join(params)}) {{\n{body}\n  ({''.join(f'{n}, ' for n in wanted)})\n}}\n"


KINDS = ([Writer.unary] * 3 + [Writer.binary] * 6 + [Writer.divide, Writer.casting, Writer.casting, Writer.where] + [Writer.slicing] * 4 + [Writer.pad] * 2
         + [Writer.joined] * 3 + [Writer.shaping] * 5 + [Writer.reduction] * 4 + [Writer.scan] * 2 + [Writer.product] * 2 + [Writer.made]
         + [Writer.assignment] * 3 + [Writer.dynamic, Writer.loop, Writer.loop, Writer.counted, Writer.counted,
            *[Writer.statistic] * 4, Writer.updated, Writer.branch])


def room(shape):
    """The elements of an array of this shape. A dimension without any counts as one: it may be summed or padded away, and the others stay."""
    return np.prod([max(n, 1) for n in shape], dtype=float)


def factored(r, size):
    shape = []
    while size > 1 and len(shape) < 3:
        part = r.choice([d for d in range(1, min(size, 400) + 1) if size % d == 0])
        shape.append(part)
        size //= part
    shape.append(size)
    r.shuffle(shape)
    return shape
