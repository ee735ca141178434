#include "harness.h"
static const float COEFFICIENT[] = {0.5, -0.25, 0.125, 0.3,   -0.7, 0.11, 0.013, -0.2,
                                    0.07, 0.21, -0.03, 0.17, -0.05, 0.02, 0.009, -0.001};
static void row(void **in, void **out) {
    float *x = in[0], *y = out[0];
    EACH_SIMD
    for (long i = 0; i < N; i++) {
        float p = 1;
        for (int k = 0; k < 16; k++) p = p * x[i] + COEFFICIENT[k];
        y[i] = p;
    }
}
