#include "harness.h"
static void row(void **in, void **out) {
    float *x = in[0], *y = out[0];
    EACH
    for (long b = 0; b < C; b += 256) {
        long n = b + 256 < C ? 256 : C - b;
        float m[256], s[256] = {0};
        for (long c = 0; c < n; c++) m[c] = -INFINITY;
        for (long r = 0; r < R; r++)
            SIMD
            for (long c = 0; c < n; c++) m[c] = larger(m[c], x[r * C + b + c]);
        for (long r = 0; r < R; r++)
            SIMD
            for (long c = 0; c < n; c++) s[c] += expf(x[r * C + b + c] - m[c]);
        for (long c = 0; c < n; c++) y[b + c] = m[c] + logf(s[c]);
    }
}
