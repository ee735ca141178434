#include "harness.h"
/* By digits of 11 bits, the lowest first, of the bits of the numbers in an order that integers have. */
static void row(void **in, void **out) {
    uint32_t *x = in[0], *y = out[0];
#pragma omp parallel
    {
        static __thread uint32_t *a, *b;
        if (!a) a = memory(4 * C), b = memory(4 * C);
#pragma omp for schedule(static)
        for (long r = 0; r < R; r++) {
            uint32_t places[3][2048] = {0};
            for (long c = 0; c < C; c++) {
                uint32_t k = x[r * C + c];
                k ^= (uint32_t)((int32_t)k >> 31) | 0x80000000u;
                a[c] = k;
                places[0][k & 2047]++, places[1][k >> 11 & 2047]++, places[2][k >> 22]++;
            }
            for (int d = 0; d < 3; d++) {
                uint32_t from = 0;
                for (int k = 0; k < 2048; k++) {
                    uint32_t n = places[d][k];
                    places[d][k] = from;
                    from += n;
                }
                uint32_t *source = d == 1 ? b : a, *target = d == 1 ? a : b;
                for (long c = 0; c < C; c++) target[places[d][source[c] >> 11 * d & 2047]++] = source[c];
            }
            for (long c = 0; c < C; c++) y[r * C + c] = b[c] ^ ((b[c] >> 31) - 1 | 0x80000000u);
        }
    }
}
