#include "harness.h"
static void row(void **in, void **out) {
    float *x = in[0], *y = out[0];
    int32_t *idx = in[1];
    EACH
    for (long i = 0; i < N; i++) y[i] = x[idx[i]];
}
