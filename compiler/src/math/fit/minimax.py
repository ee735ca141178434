"""Best polynomials for the math functions, by the Remez exchange algorithm.

    python3 minimax.py            fits everything in `tables.py` and prints it
    python3 minimax.py exp_f32    only that

A fit has the form  sum over p of c[p] * x**p  for the given powers, and minimises the largest |weight * (fit - f)| over an
interval. Coefficients are then rounded to the target precision, and the error is measured once more.
"""

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
    # The extrema of a Chebyshev polynomial are close to where the error will have its extrema.
    at = sorted({int((1 - mp.cos(mp.pi * i / n)) / 2 * (count - 1)) for i in range(n + 1)})
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


def fit(f, low, high, powers, weight=lambda x, y: 1 / y, bits=53, points=None):
    """The rounded coefficients, highest power first, and the largest weighted error.

    `weight` is given x and f(x); the default measures relative errors. The point zero is left out.
    """
    points = points or max(300, 40 * len(powers))
    low, high = mp.mpf(low), mp.mpf(high)
    grid = [low + (high - low) * (1 - mp.cos(mp.pi * i / (points - 1))) / 2 for i in range(points)]
    grid = [x for x in grid if x != 0]
    values = [f(x) for x in grid]
    weights = [mp.mpf(weight(x, y)) for x, y in zip(grid, values)]
    exact, ideal = remez(values, weights, grid, powers)
    rounded = [round_to(c, bits) for c in exact]
    fitted = [mp.fdot(rounded, [x**p for p in powers]) for x in grid]
    error = max(abs(w * (a - y)) for w, a, y in zip(weights, fitted, values))
    return rounded[::-1], ideal, error


def show(name, coefficients, ideal, error, bits):
    print(f"// {name}: error 2^{float(mp.log(error, 2)):.2f} (unrounded 2^{float(mp.log(ideal, 2)):.2f})")
    digits = 17 if bits > 24 else 9
    print("&[" + ", ".join(mp.nstr(c, digits, min_fixed=-3, max_fixed=6) for c in coefficients) + "],")


if __name__ == "__main__":
    import tables

    for name, arguments in tables.TABLES.items():
        if len(sys.argv) == 1 or name in sys.argv[1:]:
            show(name, *fit(**arguments), arguments.get("bits", 53))
            sys.stdout.flush()
