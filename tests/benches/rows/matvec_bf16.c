#include "harness.h"
static inline float number(uint16_t b) {
    union { uint32_t bits; float value; } u = {(uint32_t)b << 16};
    return u.value;
}
static void row(void **in, void **out) {
    uint16_t *x = in[0], *w = in[1];
    float *y = out[0];
    EACH
    for (long r = 0; r < R; r++) {
        float s = 0;
#pragma omp simd reduction(+ : s)
        for (long c = 0; c < C; c++) s += number(x[r * C + c]) * number(w[c]);
        y[r] = s;
    }
}
