#include "harness.h"
static void row(void **in, void **out) {
    float *x = in[0];
    int32_t *t = in[1];
    double total = 0;
#pragma omp parallel for schedule(static) reduction(+ : total)
    for (long i = 0; i < N; i++) {
        float *p = x + i * C, m = -INFINITY, s = 0;
#pragma omp simd reduction(max : m)
        for (long c = 0; c < C; c++) m = larger(m, p[c]);
#pragma omp simd reduction(+ : s)
        for (long c = 0; c < C; c++) s += expf(p[c] - m);
        total += m + logf(s) - p[t[i]];
    }
    *(float *)out[0] = total / N;
}
