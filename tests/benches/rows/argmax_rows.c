#include "harness.h"
static void row(void **in, void **out) {
    float *x = in[0];
    int32_t *y = out[0];
    EACH
    for (long r = 0; r < R; r++) {
        float *p = x + r * C, m = -INFINITY;
#pragma omp simd reduction(max : m)
        for (long c = 0; c < C; c++) m = larger(m, p[c]);
        int32_t at = 0;
        while (p[at] != m) at++;
        y[r] = at;
    }
}
