#include "harness.h"
static void row(void **in, void **out) {
    float *x = in[0], *y = in[1], *z = out[0];
    EACH
    for (long i = 0; i < N; i += 16)
        for (long j = 0; j < N; j += 64)
            for (long a = i; a < (i + 16 < N ? i + 16 : N); a++)
                for (long b = j; b < (j + 64 < N ? j + 64 : N); b++) z[a * N + b] = x[a * N + b] + y[b * N + a];
}
