#include "harness.h"
/* Quotients are rounded down, so remainders have the sign of the divisor. */
static void row(void **in, void **out) {
    int32_t *a = in[0], *b = in[1], *y = out[0];
    EACH
    for (long i = 0; i < N; i++) {
        int32_t q = a[i] / b[i], r = a[i] % 10;
        q -= (a[i] % b[i] != 0) & ((a[i] ^ b[i]) < 0);
        y[i] = q + (r < 0 ? r + 10 : r);
    }
}
