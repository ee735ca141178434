#include "harness.h"
static void row(void **in, void **out) {
    double *x = in[0], *y = out[0];
    EACH_SIMD
    for (long i = 0; i < N; i++) y[i] = exp(-x[i] * x[i]) * sin(3 * x[i]);
}
