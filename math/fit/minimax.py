"""Best polynomials for the math functions, by the Remez exchange algorithm.

    python3 minimax.py             fits everything in `tables.py` and prints it
    python3 minimax.py EXP_TAIL    only that
    python3 minimax.py --write     puts everything into the Rust files; rustfmt does the rest

A fit has the form  sum over p of c[p] * x**p  for the given powers, and minimises the largest |weight * (fit - f)| over an
interval. Coefficients are then rounded to the target precision, and the error is measured once more.
"""

import pathlib
import re
import struct
import sys

import mpmath as mp

mp.mp.prec = 180


def round_to(value, bits):
    """`value` with so many significant bits."""
    if value == 0:
        return value
    mantissa, exponent = mp.frexp(value)
    return mp.ldexp(mp.nint(mp.ldexp(mantissa, bits)), exponent - bits)


def remez(f, weight, grid, powers):
    """Coefficients and the largest weighted error on the grid, both of which hold values at the same points."""
    n = len(powers)
    count = len(grid)
    # The grid is as dense as the extrema of a Chebyshev polynomial, which are close to those that the error will have.
    at = [round(i * (count - 1) / n) for i in range(n + 1)]
    basis = [[x**p for p in powers] for x in grid]
    for _ in range(60):
        matrix = mp.matrix(n + 1, n + 1)
        right = mp.matrix(n + 1, 1)
        for row, i in enumerate(at):
            for column in range(n):
                matrix[row, column] = basis[i][column]
            matrix[row, n] = (-1) ** row / weight[i]
            right[row] = f[i]
        solution = mp.lu_solve(matrix, right)
        errors = [weight[i] * (mp.fdot(solution[:n], basis[i]) - f[i]) for i in range(count)]
        # One extremum per run of errors of equal sign; then the best n + 1 in a row.
        runs = []
        for i, e in enumerate(errors):
            if runs and (errors[runs[-1]] > 0) == (e > 0):
                if abs(e) > abs(errors[runs[-1]]):
                    runs[-1] = i
            else:
                runs.append(i)
        while len(runs) > n + 1:
            if abs(errors[runs[0]]) < abs(errors[runs[-1]]):
                runs.pop(0)
            else:
                runs.pop()
        largest = max(abs(e) for e in errors)
        if len(runs) < n + 1 or largest <= abs(solution[n]) * mp.mpf("1.001"):
            break
        at = runs
    return [solution[i] for i in range(n)], largest


def fit(f, low, high, powers, weight=lambda x, y: 1 / y, bits=53, pairs=0):
    """Fits, and rounds the coefficients.

    `weight` is given x and f(x); the default measures relative errors. The point zero is left out. So many coefficients of
    the lowest powers as `pairs` says are given with what their rounding has cut off.

    Returns the coefficients, highest power first, the parts that were cut off, likewise, and the largest weighted errors
    before and after rounding.
    """
    points = max(300, 40 * len(powers))
    low, high = mp.mpf(low), mp.mpf(high)
    grid = [low + (high - low) * (1 - mp.cos(mp.pi * i / (points - 1))) / 2 for i in range(points)]
    grid = [x for x in grid if x != 0]
    values = [f(x) for x in grid]
    weights = [mp.mpf(weight(x, y)) for x, y in zip(grid, values)]
    exact, ideal = remez(values, weights, grid, powers)
    rounded = [round_to(c, bits) for c in exact]
    rest = [round_to(c - r, bits) for c, r in zip(exact[:pairs], rounded)]
    total = [c + r for c, r in zip(rounded, rest + [0] * len(rounded))]
    fitted = [mp.fdot(total, [x**p for p in powers]) for x in grid]
    error = max(abs(w * (a - y)) for w, a, y in zip(weights, fitted, values))
    return rounded[::-1], rest[::-1], ideal, error


def literal(value, bits=53):
    """The shortest decimal number that is read back as `value`, as Rust writes it."""
    text = repr(float(value))
    if bits == 24:
        single = struct.unpack("f", struct.pack("f", float(value)))[0]
        digits = (n for n in range(6, 10) if struct.unpack("f", struct.pack("f", float(f"{float(value):.{n}g}")))[0] == single)
        text = f"{float(value):.{next(digits)}g}"
    text = re.sub(r"e([+-])0*", lambda m: "e-" if m[1] == "-" else "e", text)
    return text if "." in text or "e" in text else text + ".0"


def literals(values, bits=53):
    return "[" + ", ".join(literal(v, bits) for v in values) + "]"


def exponent(error):
    return f"2^{float(mp.log(error, 2)):.1f}"


def definitions(wanted):
    """The fitted constants, as (name, type, value, error)."""
    for name, arguments in tables.TABLES.items():
        if not wanted or name in wanted:
            coefficients, rest, ideal, error = fit(**arguments)
            yield name, "&[f64]", "&" + literals(coefficients, arguments.get("bits", 53)), error
            if rest:
                yield f"{name}_REST", f"[f64; {len(rest)}]", literals(rest), None
    for name, parts in tables.CONSTANTS.items():
        if not wanted or name in wanted:
            yield name, f"[f64; {len(parts)}]", literals(parts), None


def write(name, value, error):
    """Puts the value in the place of the one that some Rust file has, and the error into the comment before it."""
    for path in (pathlib.Path(__file__).parent.parent / "src").glob("*.rs"):
        text = path.read_text()
        found = re.search(rf"(?:const|static) {name}: [^=]*=\s*([^;]*);", text)
        if found:
            head = text[: found.start(1)]
            if error:
                comment = head.rindex("error 2^")
                head = head[:comment] + re.sub(r"^error 2\^-[0-9.]*[0-9]", f"error {exponent(error)}", head[comment:])
            path.write_text(head + value + text[found.end(1) :])
            return
    raise SystemExit(f"{name} is nowhere")


if __name__ == "__main__":
    import tables

    arguments = sys.argv[1:]
    for name, kind, value, error in definitions([a for a in arguments if a != "--write"]):
        if "--write" in arguments:
            write(name, value, error)
        else:
            comment = f" // error {exponent(error)}" if error else ""
            print(f"const {name}: {kind} = {value};{comment}", flush=True)
