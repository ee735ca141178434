// What the math functions are compared with: the C library's functions in a wider format.
//
// Formats of up to 24 digits are measured against `double` (53 digits), pairs and `double` itself against `long double` (64 on
// x86-64). How far these are from the truth is measured in turn, against 113 digits where the library has them. The numbers of
// the functions are those of `MathFn` and `MathFn2`.
#define _GNU_SOURCE
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { POW, ATAN2, HYPOT, LOGADDEXP };

// A wrong answer rather than an inexact one.
#define WRONG INFINITY

// A floating-point format: its digits, the exponent of the last place of subnormal numbers, and that of the largest number.
struct format {
    int digits, last, largest;
};

// What a run of answers came to: the sum of the errors, the largest error and its place, how many answers are wrong.
struct tally {
    double sum, max;
    size_t at, wrong, wrong_at;
};

#if defined(__HAVE_FLOAT128) && __HAVE_FLOAT128 && !defined(__clang__)
typedef _Float128 quad;
#define QUAD(f) f##f128
#define QUAD_C(x) x##F128
#define QUAD_EPSILON 1.92592994438723585305597794258492732e-34F128
const int reference_digits = 113;
#else
typedef long double quad;
#define QUAD(f) f##l
#define QUAD_C(x) x##L
#define QUAD_EPSILON LDBL_EPSILON
const int reference_digits = LDBL_MANT_DIG;
#endif

// The zeros of digamma need more digits than the format has that asks.
#define T long double
#define F(f) f##l
#define C(x) x##L
#define PSI psi_64
#include "psi.h"
#undef T
#undef F
#undef C
#undef PSI

#define T quad
#define F QUAD
#define C QUAD_C
#define PSI psi_113
#include "psi.h"
#undef T
#undef F
#undef C
#undef PSI

#define T double
#define F(f) f
#define C(x) x
#define NAME(f) f##_53
#define PSI psi_64
#define EPSILON DBL_EPSILON
#include "functions.h"
#undef T
#undef F
#undef C
#undef NAME
#undef PSI
#undef EPSILON

#define T long double
#define F(f) f##l
#define C(x) x##L
#define NAME(f) f##_64
#define PSI psi_113
#define EPSILON LDBL_EPSILON
#include "functions.h"
#undef T
#undef F
#undef C
#undef NAME
#undef PSI
#undef EPSILON

#define T quad
#define F QUAD
#define C QUAD_C
#define NAME(f) f##_113
#define PSI psi_113
#define EPSILON QUAD_EPSILON
#include "functions.h"

static void add(struct tally *tally, size_t at, double error) {
    if (error == WRONG) {
        if (tally->wrong++ == 0) tally->wrong_at = at;
        return;
    }
    tally->sum += error;
    if (error > tally->max) {
        tally->max = error;
        tally->at = at;
    }
}

static double with_exponent(int exponent) {
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

void reference_narrow(int f, size_t n, const float *x, double *truth) {
    for (size_t i = 0; i < n; i++) truth[i] = unary_53(f, x[i]);
}

// The answers `got`, each times `sign`, in a format of at most 24 digits.
struct tally reference_tally_narrow(struct format format, size_t n, const double *truth, const float *got, float sign) {
    struct tally tally = {0};
    for (size_t i = 0; i < n; i++) {
        double answer = got[i] * sign, target = truth[i];
        uint64_t bits;
        memcpy(&bits, &target, sizeof bits);
        int exponent = (int)(bits >> 52 & 2047) - 1023, place = exponent - format.digits + 1;
        double error;
        // Ordinary numbers are most of them; for others the place is not that of the exponent.
        if (place > format.last && exponent <= format.largest && answer != 0 && isfinite(answer)) {
            error = fabs(answer - target) * with_exponent(-place);
        } else {
            error = distance_53(format, answer, target, 0);
        }
        add(&tally, i, error);
    }
    return tally;
}

// Where logaddexp cancels so many digits or more, its error counts in places of a number that much smaller than the larger
// argument.
static int cancelled_digits(struct format format) { return format.digits <= 24 ? 22 : 34; }

// Where it cancels more than these, the digits of the reference do not suffice either.
static int cancels(double x, double y, long double truth) { return fabsl(truth) < fabs(fmax(x, y)) / 8; }

// The function of `x`, or of `x` and `y` if that is not null.
struct tally reference_tally_wide(struct format format, int f, size_t n, const double *x, const double *y, const double *got) {
    struct tally tally = {0};
    for (size_t i = 0; i < n; i++) {
        long double truth = y ? binary_64(f, x[i], y[i]) : unary_64(f, x[i]), least = 0;
        if (y && f == LOGADDEXP) {
            long double larger = fabsl(fmaxl(x[i], y[i]));
            least = isinf(larger) ? 0 : ldexpl(larger, -cancelled_digits(format));
            if (cancels(x[i], y[i], truth)) truth = (long double)binary_113(f, x[i], y[i]);
        }
        if (!y) least = terms_64(f, x[i]);
        add(&tally, i, distance_64(format, got[i], truth, least));
    }
    return tally;
}

// The error of one answer by the widest format, and in `doubt` how far the reference that the tallies use is from that.
double reference_exact(struct format format, int f, const double *x, const double *y, double got, double *doubt) {
    quad truth = y ? binary_113(f, *x, *y) : unary_113(f, *x), least = 0, reference;
    if (y && f == LOGADDEXP) {
        double larger = fabs(fmax(*x, *y));
        least = isinf(larger) ? 0 : (quad)ldexp(larger, -cancelled_digits(format));
    }
    if (!y && format.digits > 24) least = terms_113(f, *x);
    if (y) {
        long double value = binary_64(f, *x, *y);
        reference = f == LOGADDEXP && cancels(*x, *y, value) ? (long double)truth : value;
    } else {
        reference = format.digits <= 24 ? (quad)unary_53(f, *x) : (quad)unary_64(f, *x);
    }
    // Both may be beyond the range, the narrower one without a number for it.
    quad limit = F(ldexp)(1, format.largest + 1);
    int beyond = F(fabs)(truth) >= limit && F(fabs)(reference) >= limit;
    *doubt = beyond ? 0 : distance_113(format, reference, truth, least);
    return distance_113(format, got, truth, least);
}
