#include "harness.h"
static void row(void **in, void **out) {
    float *a = in[0], *b = in[1];
    uint8_t *c = in[2], *m = out[0];
    int32_t count = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : count)
    for (long i = 0; i < N; i++) {
        m[i] = ((a[i] > 0) & (b[i] < a[i])) | c[i];
        count += m[i];
    }
    *(int32_t *)out[1] = count;
}
