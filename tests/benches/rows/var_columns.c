#include "harness.h"
static void row(void **in, void **out) {
    float *x = in[0], *y = out[0];
    EACH
    for (long b = 0; b < C; b += 256) {
        long n = b + 256 < C ? 256 : C - b;
        float m[256] = {0}, s[256] = {0};
        for (long r = 0; r < R; r++)
            for (long c = 0; c < n; c++) m[c] += x[r * C + b + c];
        for (long c = 0; c < n; c++) m[c] /= R;
        for (long r = 0; r < R; r++)
            for (long c = 0; c < n; c++) s[c] += (x[r * C + b + c] - m[c]) * (x[r * C + b + c] - m[c]);
        for (long c = 0; c < n; c++) y[b + c] = s[c] / R;
    }
}
