#include "harness.h"
static void row(void **in, void **out) {
    float *x = in[0], *a = in[1], *y = out[0];
    EACH
    for (long b = 0; b < C; b += 1024) {
        long end = b + 1024 < C ? b + 1024 : C;
        for (long c = b; c < end; c++) y[c] = x[c];
        for (long t = 1; t < T; t++)
            for (long c = b; c < end; c++) y[t * C + c] = a[c] * y[(t - 1) * C + c] + x[t * C + c];
    }
}
