#include "harness.h"
static void row(void **in, void **out) {
    int32_t *x = in[0], *y = out[0];
    EACH
    for (long b = 0; b < N; b += 64) {
        uint32_t n[64] = {0};
        int32_t steps[64] = {0};
        for (long k = 0; k < (N - b < 64 ? N - b : 64); k++) n[k] = x[b + k];
        for (int t = 0; t < T; t++)
            for (int k = 0; k < 64; k++) {
                int more = (int32_t)n[k] > 1;
                uint32_t next = n[k] & 1 ? 3 * n[k] + 1 : (uint32_t)((int32_t)n[k] >> 1);
                steps[k] += more;
                n[k] = more ? next : n[k];
            }
        for (long k = 0; k < (N - b < 64 ? N - b : 64); k++) y[b + k] = steps[k];
    }
}
