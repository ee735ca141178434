#include "harness.h"
static void row(void **in, void **out) {
    uint8_t *p = in[0], *y = out[0];
    EACH_SIMD
    for (long i = 0; i < (long)H * W; i++) y[i] = (77u * p[3 * i] + 150u * p[3 * i + 1] + 29u * p[3 * i + 2]) >> 8;
}
