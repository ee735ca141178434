#include "harness.h"
static void row(void **in, void **out) {
    float *v = in[0], *y = out[0];
    int32_t *idx = in[1];
    memset(y, 0, sizeof(float) * M);
#pragma omp parallel
    {
        static __thread float *mine;
        if (!mine) mine = memory(sizeof(float) * M);
        memset(mine, 0, sizeof(float) * M);
#pragma omp for schedule(static) nowait
        for (long i = 0; i < N; i++) mine[idx[i]] += v[i];
#pragma omp critical
        for (long k = 0; k < M; k++) y[k] += mine[k];
    }
}
