#include "harness.h"
static void row(void **in, void **out) {
    float *a = in[0], *b = in[1], *y = out[0];
    static float x0[N], x1[N], x2[N];
    for (long j = 0; j < N; j++) x0[j] = b[3 * j], x1[j] = b[3 * j + 1], x2[j] = b[3 * j + 2];
    EACH
    for (long i = 0; i < M; i++) {
        float m = INFINITY;
#pragma omp simd reduction(min : m)
        for (long j = 0; j < N; j++) {
            float u = a[3 * i] - x0[j], v = a[3 * i + 1] - x1[j], w = a[3 * i + 2] - x2[j], d = u * u + v * v + w * w;
            m = d < m ? d : m;
        }
        y[i] = m;
    }
}
