#include "harness.h"
static void row(void **in, void **out) {
    float *x = in[0], *b = in[1], *y = out[0];
    EACH
    for (long r = 0; r < R; r++)
        SIMD
        for (long c = 0; c < C; c++) {
            float h = x[r * C + c] + b[c];
            y[r * C + c] = h / (1 + expf(-h));
        }
}
