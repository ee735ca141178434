#include "harness.h"
static void row(void **in, void **out) {
    float *x = in[0], *y = in[1], *z = out[0];
    EACH_SIMD
    for (long i = 0; i < N; i++) {
        float a = x[2 * i], b = x[2 * i + 1], c = y[2 * i], d = y[2 * i + 1];
        z[2 * i] = a * c + b * d + (a * a - b * b);
        z[2 * i + 1] = b * c - a * d + 2 * a * b;
    }
}
