#include "harness.h"
static void row(void **in, void **out) {
    float *a = in[0], *b = in[1], *y = out[0];
    EACH
    for (long i = 0; i < M; i++) {
        float s = 0;
#pragma omp simd reduction(+ : s)
        for (long j = 0; j < N; j++) {
            float v = a[i] * b[j] - 0.5f;
            s += v > 0 ? v : 0;
        }
        y[i] = s;
    }
}
