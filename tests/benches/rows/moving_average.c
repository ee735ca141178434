#include "harness.h"
static void row(void **in, void **out) {
    float *x = in[0], *w = in[1], *y = out[0], v[9];
    for (int k = 0; k < 9; k++) v[k] = w[8 - k];
    EACH_SIMD
    for (long i = 0; i < N - 8; i++) {
        float s = 0;
        for (int k = 0; k < 9; k++) s += v[k] * x[i + k];
        y[i] = s;
    }
}
