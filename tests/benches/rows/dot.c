#include "harness.h"
static void row(void **in, void **out) {
    float *x = in[0], *y = in[1];
    double total = 0;
#pragma omp parallel for schedule(static) reduction(+ : total)
    for (long b = 0; b < N; b += 4096) {
        long end = b + 4096 < N ? b + 4096 : N;
        float s = 0;
#pragma omp simd reduction(+ : s)
        for (long i = b; i < end; i++) s += x[i] * y[i];
        total += s;
    }
    *(float *)out[0] = total;
}
