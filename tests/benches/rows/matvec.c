#include "harness.h"
static void row(void **in, void **out) {
    float *a = in[0], *x = in[1], *y = out[0];
    EACH
    for (long r = 0; r < R; r++) {
        float s = 0;
#pragma omp simd reduction(+ : s)
        for (long c = 0; c < C; c++) s += a[r * C + c] * x[c];
        y[r] = s;
    }
}
