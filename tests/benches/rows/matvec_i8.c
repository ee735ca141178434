#include "harness.h"
static void row(void **in, void **out) {
    int8_t *a = in[0], *b = in[1];
    int32_t *y = out[0];
    EACH
    for (long r = 0; r < R; r++) {
        int32_t s = 0;
        for (long c = 0; c < C; c++) s += a[r * C + c] * b[c];
        y[r] = s;
    }
}
