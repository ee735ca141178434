"""What is approximated, where, and by which powers. The names are those of the constants in the Rust files."""

import mpmath as mp

# Half an octave, plus what rounding the quotient may add.
HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.001")
ROOT_HALF = mp.sqrt(mp.mpf("0.5")) - 1
ROOT_TWO = mp.sqrt(2) - 1
QUADRANT = mp.pi / 4 * mp.mpf("1.01")


def high(f):
    """`f` computed with many more digits, for formulas with cancellation."""

    def g(x):
        with mp.workprec(600):
            return +f(x)

    return g


def powers(n):
    return list(range(n))


EXP = high(lambda r: (mp.exp(r) - 1 - r) / r**2)
EXP2 = high(lambda r: (mp.mpf(2) ** r - 1 - r * mp.log(2)) / r**2)
LOG = high(lambda f: (mp.log(1 + f) - f + f**2 / 2) / f**3)
# log((1 + s) / (1 - s)) = 2 s + s^3 * P(s^2); the largest s is that of 1 + f = sqrt(2).
ATANH = high(lambda z: (2 * mp.atanh(mp.sqrt(z)) - 2 * mp.sqrt(z)) / mp.sqrt(z) ** 3)
ATANH_END = (ROOT_TWO / (2 + ROOT_TWO)) ** 2 * mp.mpf("1.001")

# sin(r) = r + r^3 * P(r^2) and cos(r) = 1 - r^2 / 2 + r^4 * P(r^2)
SIN = high(lambda z: (mp.sin(mp.sqrt(z)) - mp.sqrt(z)) / mp.sqrt(z) ** 3)
COS = high(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2)


def relative_to(result, power):
    """Errors of the polynomial count relative to `result(x)`, in which it is multiplied by x**power."""
    return high(lambda x: x**power / result(x))


def weight(result, power):
    measure = relative_to(result, power)
    return lambda x, y: measure(x)


TABLES = {
    "EXP_TAIL_F32": dict(f=EXP, low=-HALF_LN2, high=HALF_LN2, powers=powers(5), weight=weight(mp.exp, 2), bits=24),
    "EXP_TAIL": dict(f=EXP, low=-HALF_LN2, high=HALF_LN2, powers=powers(11), weight=weight(mp.expm1, 2)),
    "EXP_TAIL_SHORT": dict(f=EXP, low=-HALF_LN2, high=HALF_LN2, powers=powers(6), weight=weight(mp.expm1, 2)),
    "EXP2_TAIL_F32": dict(f=EXP2, low=-0.5, high=0.5, powers=powers(5), weight=weight(lambda r: 2**r, 2), bits=24),
    "EXP2_TAIL": dict(f=EXP2, low=-0.5, high=0.5, powers=powers(10), weight=weight(lambda r: 2**r, 2)),
    "LOG_TAIL_F32": dict(f=LOG, low=ROOT_HALF, high=ROOT_TWO, powers=powers(8), weight=weight(mp.log1p, 3), bits=24),
    "ATANH_TAIL": dict(f=ATANH, low=0, high=ATANH_END, powers=powers(7), weight=weight(lambda z: mp.atanh(mp.sqrt(z)) / mp.sqrt(z), 1)),
    "ATANH_TAIL_SHORT": dict(f=ATANH, low=0, high=ATANH_END, powers=powers(3), weight=weight(lambda z: mp.atanh(mp.sqrt(z)) / mp.sqrt(z), 1)),
    "SIN_TAIL_F32": dict(f=SIN, low=0, high=QUADRANT**2, powers=powers(3), weight=weight(lambda z: mp.sin(mp.sqrt(z)) / mp.sqrt(z), 1), bits=24),
    "COS_TAIL_F32": dict(f=COS, low=0, high=QUADRANT**2, powers=powers(3), weight=weight(lambda z: mp.cos(mp.sqrt(z)), 2), bits=24),
    "SIN_TAIL": dict(f=SIN, low=0, high=QUADRANT**2, powers=powers(6), weight=weight(lambda z: mp.sin(mp.sqrt(z)) / mp.sqrt(z), 1)),
    "COS_TAIL": dict(f=COS, low=0, high=QUADRANT**2, powers=powers(6), weight=weight(lambda z: mp.cos(mp.sqrt(z)), 2)),
    "SIN_TAIL_SHORT": dict(f=SIN, low=0, high=QUADRANT**2, powers=powers(4), weight=weight(lambda z: mp.sin(mp.sqrt(z)) / mp.sqrt(z), 1)),
    "COS_TAIL_SHORT": dict(f=COS, low=0, high=QUADRANT**2, powers=powers(4), weight=weight(lambda z: mp.cos(mp.sqrt(z)), 2)),
}
