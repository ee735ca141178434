#include "harness.h"
static void row(void **in, void **out) {
    float *x = in[0], *scale = out[1];
    int8_t *y = out[0];
    EACH
    for (long r = 0; r < R; r++) {
        float m = 0;
#pragma omp simd reduction(max : m)
        for (long c = 0; c < C; c++) m = larger(m, fabsf(x[r * C + c]));
        scale[r] = m / 127;
        for (long c = 0; c < C; c++) y[r * C + c] = (int8_t)(int)rintf(x[r * C + c] / (m / 127));
    }
}
