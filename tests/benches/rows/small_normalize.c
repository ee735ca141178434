#include "harness.h"
static void row(void **in, void **out) {
    float *x = in[0], *y = in[1], *u = out[0];
    memcpy(u, x, sizeof(float) * N);
    for (long t = 0; t < T; t++) {
        float s = 0, q = 0;
#pragma omp simd reduction(+ : s)
        for (long i = 0; i < N; i++) {
            u[i] = 0.9f * u[i] + y[i];
            s += u[i];
        }
        s /= N;
#pragma omp simd reduction(+ : q)
        for (long i = 0; i < N; i++) {
            u[i] -= s;
            q += u[i] * u[i];
        }
        q = 1 / sqrtf(q / N + 1e-5f);
        for (long i = 0; i < N; i++) u[i] *= q;
    }
}
