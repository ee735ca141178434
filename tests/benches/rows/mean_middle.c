#include "harness.h"
static void row(void **in, void **out) {
    float *x = in[0], *y = out[0];
    EACH
    for (long a = 0; a < A; a++) {
        float s[C] = {0};
        for (long b = 0; b < B; b++)
            for (long c = 0; c < C; c++) s[c] += x[(a * B + b) * C + c];
        for (long c = 0; c < C; c++) y[a * C + c] = s[c] / B;
    }
}
