// The reference functions in one format, and the distance of a number from them. `reference.c` includes this once for each
// type `T`, with `F(sin)` the C library's function for that type, `C(0.5)` a constant of it, and `NAME(x)` a name of its own.

// The inverse of erf, by Halley's method on erf, or on erfc where erf is close to one. The start (by S. Winitzki) is good to
// eight bits, and each step triples them.
static inline T NAME(erf_inv)(T x) {
    T a = F(fabs)(x);
    if (!(a < 1)) return a == 1 ? F(copysign)(INFINITY, x) : NAN;
    const T half_root_pi = C(0.88622692545275801364908374167057259139877473);
    if (a * a < EPSILON) return half_root_pi * x;
    T l = F(log)((1 - a) * (1 + a)), b = C(4.3307467507) + l / 2;
    T y = F(sqrt)(F(sqrt)(b * b - l / C(0.147)) - b);
    for (int step = 0; step < 3; step++) {
        T miss = a < C(0.5) ? F(erf)(y) - a : (1 - a) - F(erfc)(y);
        T newton = miss * half_root_pi * F(exp)(y * y);
        y -= newton / (1 + y * newton);
    }
    return F(copysign)(y, x);
}

static inline T NAME(digamma)(T x) { return (T)PSI(x); }

static inline T NAME(unary)(int f, T x) {
    // A case for each function of one number, written by the build script.
    switch (f) {
#include "unary.h"
    }
    return NAN;
}

// The size of the terms of which the function of one number is the sum, where they cancel.
static inline T NAME(terms)(int f, T x) {
    switch (f) {
#include "terms.h"
    }
    return 0;
}

// ln(exp(x) + exp(y))
static inline T NAME(logaddexp)(T x, T y) {
    if (isnan(x) || isnan(y)) return NAN;
    T larger = F(fmax)(x, y), smaller = F(fmin)(x, y);
    if (isinf(larger)) return larger;
    if (isinf(smaller)) return larger + 0;
    // The distance is rounded, by so much:
    T distance = larger - smaller, lost = distance - larger, low = (larger - (distance - lost)) - (smaller + lost);
    T power = F(exp)(-distance);
    return larger + F(log1p)(power - power * low);
}

static inline T NAME(binary)(int f, T x, T y) {
    switch (f) {
    case POW: return F(pow)(x, y);
    case ATAN2: return F(atan2)(x, y);
    case HYPOT: return F(hypot)(x, y);
    case LOGADDEXP: return NAME(logaddexp)(x, y);
    }
    return NAN;
}

// How many units in the last place `got` is away from the truth. The place is that of the truth or, if it is larger, of `least`.
// WRONG if one of the two is NaN or infinite and the other is not, or if a zero has the wrong sign; but a number that is within
// one place of the largest may be called infinite.
static inline double NAME(distance)(struct format format, T got, T truth, T least) {
    if (isnan(got) || isnan(truth)) return isnan(got) && isnan(truth) ? 0 : WRONG;
    // Below `least`, zero stands for numbers of either sign.
    if (got == 0 && !signbit(got) != !signbit(truth) && !(F(fabs)(truth) < least)) return WRONG;
    if (got == truth) return 0;
    T size = F(fmax)(F(fabs)(truth), least);
    int place = size == 0 ? format.last : (size < INFINITY ? F(ilogb)(size) : format.largest) - format.digits + 1;
    place = place < format.last ? format.last : place;
    int highest = format.largest - format.digits + 1;
    place = place > highest ? highest : place;
    T limit = F(ldexp)(1, format.largest + 1);
    if (isinf(got)) {
        // Beyond the limit, infinity is the answer; a place below it, it is still as good as the largest number.
        T finite = F(copysign)(F(fabs)(truth) < limit ? F(fabs)(truth) : limit, truth);
        double error = (double)F(ldexp)(F(fabs)(F(copysign)(limit, got) - finite), -place);
        return error <= 1 ? error : WRONG;
    }
    return isinf(truth) ? WRONG : (double)F(ldexp)(F(fabs)(got - truth), -place);
}
