#include "harness.h"
static void row(void **in, void **out) {
    double *x = in[0], *y = in[1], *z = out[0];
    EACH_SIMD
    for (long i = 0; i < N; i++) z[i] = sqrt(x[i] * x[i] + y[i] * y[i]);
}
