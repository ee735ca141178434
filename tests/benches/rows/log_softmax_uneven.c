#include "harness.h"
static void row(void **in, void **out) {
    float *x = in[0], *y = out[0];
    EACH
    for (long r = 0; r < R; r++) {
        float *p = x + r * C, *q = y + r * C, m = -INFINITY, s = 0;
#pragma omp simd reduction(max : m)
        for (long c = 0; c < C; c++) m = larger(m, p[c]);
#pragma omp simd reduction(+ : s)
        for (long c = 0; c < C; c++) s += expf(p[c] - m);
        m += logf(s);
        for (long c = 0; c < C; c++) q[c] = p[c] - m;
    }
}
