#include "harness.h"
static inline uint32_t mix(uint32_t x) {
    x = (x ^ x >> 16) * 0x85ebca6b;
    x = (x ^ x >> 13) * 0xc2b2ae35;
    return x ^ x >> 16;
}
static void row(void **in, void **out) {
    uint32_t *x = in[0], *y = out[0];
    EACH_SIMD
    for (long i = 0; i < N; i++) y[i] = mix(mix(mix(x[i]) + 1) + 2);
}
