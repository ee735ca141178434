// What the accuracy sweep compares with: the platform's own functions in a wider format.
//
// Single precision is measured against `double`, double precision against `long double`; a `long double` answer is handed
// over as the sum of two doubles. The function numbers are those of the tables in `ulp.rs`.
#include <math.h>
#include <stddef.h>

enum {
    SQRT, RSQRT, CBRT, EXP, EXP2, EXPM1, LOG, LOG2, LOG10, LOG1P, SIN, COS, TAN, ASIN, ACOS, ATAN, SINH, COSH, TANH,
    ASINH, ACOSH, ATANH, ERF, ERFC, ERF_INV, FLOOR, CEIL, ROUND, TRUNC
};
enum { POW, ATAN2, HYPOT, LOGADDEXP };

// The inverse of erf, by Halley's method on erf, or on erfc where erf is close to one; both steps are far more
// than the start needs. `start` is good to a few bits, and the answer of each step has three times as many.
#define ERF_INV_BODY(T, ERF, ERFC, LOG, SQRT, EXP, FABS)                                                  \
    T a = FABS(x);                                                                                        \
    if (!(a < 1)) return a == 1 ? copysign(INFINITY, x) : NAN;                                            \
    const T half_root_pi = 0.88622692545275801364908374167057259L;                                        \
    if (a < 1e-9) return half_root_pi * x;                                                                \
    T l = LOG((1 - a) * (1 + a)), b = 4.33074675L + l / 2;                                                \
    T y = SQRT(SQRT(b * b - l / 0.147L) - b);                                                             \
    for (int step = 0; step < 3; step++) {                                                                \
        T miss = a < 0.5 ? ERF(y) - a : (1 - a) - ERFC(y);                                                \
        T newton = miss * half_root_pi * EXP(y * y);                                                      \
        y -= newton / (1 + y * newton);                                                                   \
    }                                                                                                     \
    return copysign(1.0, x) * y;

static double erf_inv(double x) { ERF_INV_BODY(double, erf, erfc, log, sqrt, exp, fabs) }
static long double erf_invl(long double x) { ERF_INV_BODY(long double, erfl, erfcl, logl, sqrtl, expl, fabsl) }

static double unary(int f, double x) {
    switch (f) {
    case SQRT: return sqrt(x);
    case RSQRT: return 1 / sqrt(x);
    case CBRT: return cbrt(x);
    case EXP: return exp(x);
    case EXP2: return exp2(x);
    case EXPM1: return expm1(x);
    case LOG: return log(x);
    case LOG2: return log2(x);
    case LOG10: return log10(x);
    case LOG1P: return log1p(x);
    case SIN: return sin(x);
    case COS: return cos(x);
    case TAN: return tan(x);
    case ASIN: return asin(x);
    case ACOS: return acos(x);
    case ATAN: return atan(x);
    case SINH: return sinh(x);
    case COSH: return cosh(x);
    case TANH: return tanh(x);
    case ASINH: return asinh(x);
    case ACOSH: return acosh(x);
    case ATANH: return atanh(x);
    case ERF: return erf(x);
    case ERFC: return erfc(x);
    case ERF_INV: return erf_inv(x);
    case FLOOR: return floor(x);
    case CEIL: return ceil(x);
    case ROUND: return nearbyint(x);
    case TRUNC: return trunc(x);
    }
    return NAN;
}

static long double unaryl(int f, long double x) {
    switch (f) {
    case SQRT: return sqrtl(x);
    case RSQRT: return 1 / sqrtl(x);
    case CBRT: return cbrtl(x);
    case EXP: return expl(x);
    case EXP2: return exp2l(x);
    case EXPM1: return expm1l(x);
    case LOG: return logl(x);
    case LOG2: return log2l(x);
    case LOG10: return log10l(x);
    case LOG1P: return log1pl(x);
    case SIN: return sinl(x);
    case COS: return cosl(x);
    case TAN: return tanl(x);
    case ASIN: return asinl(x);
    case ACOS: return acosl(x);
    case ATAN: return atanl(x);
    case SINH: return sinhl(x);
    case COSH: return coshl(x);
    case TANH: return tanhl(x);
    case ASINH: return asinhl(x);
    case ACOSH: return acoshl(x);
    case ATANH: return atanhl(x);
    case ERF: return erfl(x);
    case ERFC: return erfcl(x);
    case ERF_INV: return erf_invl(x);
    case FLOOR: return floorl(x);
    case CEIL: return ceill(x);
    case ROUND: return nearbyintl(x);
    case TRUNC: return truncl(x);
    }
    return NAN;
}

static long double logaddexp(long double x, long double y) {
    if (x == y) return x + 0.69314718055994530941723212145817656808L;
    if (isnan(x) || isnan(y)) return NAN;
    return fmaxl(x, y) + log1pl(expl(-fabsl(x - y)));
}

static long double binaryl(int f, long double x, long double y) {
    switch (f) {
    case POW: return powl(x, y);
    case ATAN2: return atan2l(x, y);
    case HYPOT: return hypotl(x, y);
    case LOGADDEXP: return logaddexp(x, y);
    }
    return NAN;
}

// Hands over `value` as the nearest double and what is left.
static void split(long double value, double *high, double *low) {
    *high = (double)value;
    *low = isfinite(*high) ? (double)(value - *high) : 0;
}

void reference_unary_f32(int f, size_t n, const float *x, double *y) {
    for (size_t i = 0; i < n; i++) y[i] = unary(f, x[i]);
}

void reference_unary_f64(int f, size_t n, const double *x, double *high, double *low) {
    for (size_t i = 0; i < n; i++) split(unaryl(f, x[i]), &high[i], &low[i]);
}

void reference_binary(int f, size_t n, const double *x, const double *y, double *high, double *low) {
    for (size_t i = 0; i < n; i++) split(binaryl(f, x[i], y[i]), &high[i], &low[i]);
}
