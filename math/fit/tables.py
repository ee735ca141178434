"""What is approximated, where, and by which powers. The names are those of the constants in the Rust files."""

import minimax
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

# asin(s) = s + s^3 * P(s^2), and the like
ASIN = high(lambda z: (mp.asin(mp.sqrt(z)) - mp.sqrt(z)) / mp.sqrt(z) ** 3)
ATAN = high(lambda z: (mp.atan(mp.sqrt(z)) - mp.sqrt(z)) / mp.sqrt(z) ** 3)
SINH = high(lambda z: (mp.sinh(mp.sqrt(z)) - mp.sqrt(z)) / mp.sqrt(z) ** 3)
# cosh(r) = 1 + r^2 * P(r^2)
COSH = high(lambda z: (mp.cosh(mp.sqrt(z)) - 1) / z)

# erf(x) = x + x * P(x^2) near zero.
ERF = high(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1)
# erf(a) = 1 - exp(-(a + a * P(a))) elsewhere, for single precision.
ERF_EXPONENT = high(lambda a: -mp.log(mp.erfc(a)) / a - 1)


# ln gamma(2 + t) = t (1 + t) P(t), and psi(3/2 + t) = (3/2 + t - its zero) P(t)
LGAMMA = high(lambda t: mp.loggamma(2 + t) / t / (1 + t))
PSI_ZERO = mp.findroot(mp.digamma, 1.46)
DIGAMMA = high(lambda t: mp.digamma(mp.mpf(3) / 2 + t) / (mp.mpf(3) / 2 + t - mp.findroot(mp.digamma, PSI_ZERO)))


def beyond_stirling(z):
    """ln gamma(x) = (x - 1/2) ln x - x + ln(2 pi) / 2 + P(z) / x, where z = 1 / x^2."""
    x = 1 / mp.sqrt(z)
    return (mp.loggamma(x) - (x - mp.mpf(1) / 2) * mp.log(x) + x - mp.log(2 * mp.pi) / 2) * x


def beyond_logarithm(z):
    """psi(x) = ln x - 1 / (2 x) - z P(z), where z = 1 / x^2."""
    x = 1 / mp.sqrt(z)
    return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) / z


def erfcx_fraction(k):
    """exp(a^2) erfc(a) = (1 - q) * P(q), where q = (a - k) / (a + k)."""

    def f(q):
        a = k * (1 + q) / (1 - q)
        return mp.erfc(a) * mp.exp(a * a) / (1 - q)

    return high(f)


def compressed(a, k):
    return (mp.mpf(a) - k) / (mp.mpf(a) + k)


@high
def erf_inv_factor(w):
    """y / erf(y) for the y whose erf is sqrt(1 - exp(-w)), by Halley's method."""
    if w < mp.mpf(10) ** -40:
        return mp.sqrt(mp.pi) / 2
    above = mp.exp(-w)
    x = mp.sqrt(1 - above)
    below_one = above / (1 + x)
    b = 2 / (mp.pi * mp.mpf("0.147")) - w / 2
    y = mp.sqrt(mp.sqrt(b * b + w / mp.mpf("0.147")) - b)
    for _ in range(6):
        miss = mp.erf(y) - x if x < 0.5 else below_one - mp.erfc(y)
        newton = miss * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
        y -= newton / (1 + y * newton)
    return y / x


def shifted(f, by):
    """`f` as a function of the distance from the middle of the interval."""
    return lambda t: f(t + mp.mpf(by))


def of_root(w_root):
    return erf_inv_factor(w_root**2)


# m^(-1/3) over an octave
CUBE = high(lambda m: 1 / mp.cbrt(m))
# log2((1 + s) / (1 - s)) = s * (C + C/3 * s^2 + s^4 * P(s^2)), C = 2 / ln 2
LOG2 = high(lambda z: (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1 - z / 3) / z**2 * 2 / mp.log(2))


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
    "ASIN_TAIL": dict(f=ASIN, low=0, high=0.2501, powers=powers(13), weight=weight(lambda z: mp.asin(mp.sqrt(z)) / mp.sqrt(z), 1)),
    "ASIN_TAIL_SHORT": dict(f=ASIN, low=0, high=0.2501, powers=powers(6), weight=weight(lambda z: mp.asin(mp.sqrt(z)) / mp.sqrt(z), 1)),
    "ATAN_TAIL": dict(f=ATAN, low=0, high=ROOT_TWO**2 * 1.001, powers=powers(11), weight=weight(lambda z: mp.atan(mp.sqrt(z)) / mp.sqrt(z), 1)),
    "ATAN_TAIL_SHORT": dict(f=ATAN, low=0, high=ROOT_TWO**2 * 1.001, powers=powers(5), weight=weight(lambda z: mp.atan(mp.sqrt(z)) / mp.sqrt(z), 1)),
    "SINH_TAIL": dict(f=SINH, low=0, high=HALF_LN2**2, powers=powers(5), weight=weight(lambda z: mp.sinh(mp.sqrt(z)) / mp.sqrt(z), 1)),
    "COSH_TAIL": dict(f=COSH, low=0, high=HALF_LN2**2, powers=powers(5), weight=weight(lambda z: mp.cosh(mp.sqrt(z)), 1)),
    "SINH_TAIL_SHORT": dict(f=SINH, low=0, high=HALF_LN2**2, powers=powers(3), weight=weight(lambda z: mp.sinh(mp.sqrt(z)) / mp.sqrt(z), 1)),
    "COSH_TAIL_SHORT": dict(f=COSH, low=0, high=HALF_LN2**2, powers=powers(3), weight=weight(lambda z: mp.cosh(mp.sqrt(z)), 1)),
    "ERF_TAIL_F32": dict(f=ERF, low=0, high=0.8101, powers=powers(7), weight=lambda z, y: 1 / (1 + y), bits=24),
    "ERF_EXPONENT_F32": dict(f=ERF_EXPONENT, low=0.8999, high=4, powers=powers(6), weight=lambda a, y: a * mp.erfc(a) / mp.erf(a), bits=24),
    "ERF_TAIL": dict(f=ERF, low=0, high=0.2501, powers=powers(9), weight=lambda z, y: 1 / (1 + y)),
    "ERFCX": dict(f=erfcx_fraction(4), low=compressed(0.4999, 4), high=compressed(27.3, 4), powers=powers(21), pairs=2),
    "ERFCX_SHORT": dict(f=erfcx_fraction(3), low=-1, high=compressed(10.1, 3), powers=powers(10)),
    "ERF_INV_NEAR": dict(f=shifted(erf_inv_factor, 3.125), low=-3.125, high=3.125, powers=powers(25), pairs=1),
    "ERF_INV_MIDDLE": dict(f=shifted(of_root, 3.25), low=-0.7501, high=0.7501, powers=powers(20), pairs=1),
    "ERF_INV_FAR": dict(f=shifted(of_root, 5), low=-1.001, high=1.05, powers=powers(18), pairs=1),
    "ERF_INV_NEAR_SHORT": dict(f=shifted(erf_inv_factor, 3.125), low=-3.125, high=3.125, powers=powers(13)),
    "ERF_INV_FAR_SHORT": dict(f=shifted(of_root, 3.25), low=-0.7501, high=0.8, powers=powers(10)),
    "LGAMMA_NEAR": dict(f=LGAMMA, low=-0.7501, high=0.5001, powers=powers(23), pairs=1),
    "STIRLING_TAIL": dict(f=high(beyond_stirling), low=0, high=mp.mpf("7.49") ** -2, powers=powers(7)),
    "DIGAMMA_NEAR": dict(f=DIGAMMA, low=-0.5001, high=0.5001, powers=powers(23), pairs=1),
    "DIGAMMA_TAIL": dict(f=high(beyond_logarithm), low=0, high=mp.mpf("4.99") ** -2, powers=powers(9)),
    "CUBE_START": dict(f=CUBE, low=1, high=2, powers=powers(5)),
    "LOG2_TAIL": dict(f=LOG2, low=0, high=ATANH_END, powers=powers(7), weight=weight(lambda z: mp.atanh(mp.sqrt(z)) / mp.sqrt(z), 2)),
    "LOG2_TAIL_SHORT": dict(f=LOG2, low=0, high=ATANH_END, powers=powers(3), weight=weight(lambda z: mp.atanh(mp.sqrt(z)) / mp.sqrt(z), 2)),
}


def parts(value, *bits):
    """`value` as a sum of numbers with so many digits."""
    result = []
    for n in bits:
        result.append(minimax.round_to(value, n))
        value -= result[-1]
    return result


def digit_groups(value, count):
    """`value`, which is below one, as integers of 53 digits times falling powers of two, all times 2^128."""
    result = []
    with mp.workprec(53 * count + 100):
        value = +value()
        for i in range(count):
            value *= 2**53
            integer = mp.floor(value)
            value -= integer
            result.append(mp.ldexp(integer, 128 - 53 * (i + 1)))
    return result


CONSTANTS = {
    "LN2_F32": parts(mp.log(2), 16, 24),
    "LN2": parts(mp.log(2), 32, 53),
    "LN2_FULL": parts(mp.log(2), 53, 53),
    "LN2_FULL_F32": parts(mp.log(2), 24, 24),
    "LOG2_E": parts(1 / mp.log(2), 53, 53),
    "LOG10_E": parts(1 / mp.log(10), 53, 53),
    "LOG10_2": parts(mp.log10(2), 42, 53),
    "HALF_PI_F32": parts(mp.pi / 2, 24, 24, 24),
    "HALF_PI": parts(mp.pi / 2, 53, 53, 53),
    "THREE_QUARTERS_PI": parts(3 * mp.pi / 4, 53, 53),
    "C": parts(2 / mp.log(2), 53, 53),
    "C_THIRD": parts(2 / mp.log(2) / 3, 53, 53),
    "LN_PI": parts(mp.log(mp.pi), 53, 53),
    "PSI_ZERO": parts(PSI_ZERO, 53, 53),
    "FRAC_2_PI_DIGITS": digit_groups(lambda: 2 / mp.pi, 22),
}
