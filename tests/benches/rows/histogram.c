#include "harness.h"
static void row(void **in, void **out) {
    int32_t *x = in[0], *y = out[0];
    memset(y, 0, sizeof(int32_t) * K);
#pragma omp parallel
    {
        int32_t mine[4][K] = {0};
#pragma omp for schedule(static) nowait
        for (long i = 0; i < N / 4; i++)
            for (int k = 0; k < 4; k++) mine[k][x[4 * i + k]]++;
#pragma omp critical
        for (long k = 0; k < K; k++) y[k] += mine[0][k] + mine[1][k] + mine[2][k] + mine[3][k];
    }
    for (long i = N / 4 * 4; i < N; i++) y[x[i]]++;
}
