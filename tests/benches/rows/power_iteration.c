#include "harness.h"
static void row(void **in, void **out) {
    float *a = in[0], *x = in[1], *v = out[0], w[N];
    memcpy(v, x, sizeof(float) * N);
    for (long t = 0; t < T; t++) {
        float q = 0;
        for (long i = 0; i < N; i++) {
            float s = 0;
#pragma omp simd reduction(+ : s)
            for (long j = 0; j < N; j++) s += a[i * N + j] * v[j];
            w[i] = s;
        }
#pragma omp simd reduction(+ : q)
        for (long i = 0; i < N; i++) q += w[i] * w[i];
        q = sqrtf(q);
        for (long i = 0; i < N; i++) v[i] = w[i] / q;
    }
}
