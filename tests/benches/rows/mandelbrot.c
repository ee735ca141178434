#include "harness.h"
static void row(void **in, void **out) {
    float *re = in[0], *im = in[1];
    int32_t *y = out[0];
#pragma omp parallel for schedule(dynamic, 8)
    for (long r = 0; r < N; r++)
        for (long b = 0; b < N; b += 64) {
            float a[64] = {0}, u[64] = {0}, v[64] = {0}, c = im[r];
            int32_t n[64] = {0};
            for (long k = 0; k < (N - b < 64 ? N - b : 64); k++) a[k] = re[b + k];
            for (int t = 0; t < T; t++)
                for (int k = 0; k < 64; k++) {
                    float p = u[k] * u[k], q = v[k] * v[k], w = 2 * u[k] * v[k] + c;
                    int inside = p + q <= 4;
                    n[k] += inside;
                    u[k] = inside ? p - q + a[k] : u[k];
                    v[k] = inside ? w : v[k];
                }
            for (long k = 0; k < (N - b < 64 ? N - b : 64); k++) y[r * N + b + k] = n[k];
        }
}
