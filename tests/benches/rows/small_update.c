#include "harness.h"
static void row(void **in, void **out) {
    float *x = in[0], *y = in[1], *u = out[0];
    memcpy(u, x, sizeof(float) * N);
    for (long t = 0; t < T; t++)
        for (long i = 0; i < N; i++) u[i] = u[i] + 0.01f * (y[i] - u[i] * u[i] * u[i]);
}
