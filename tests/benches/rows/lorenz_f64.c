#include "harness.h"
struct slope { double x, y, z; };
static inline struct slope slope(double x, double y, double z) {
    return (struct slope){10 * (y - x), x * (28 - z) - y, x * y - 8.0 / 3.0 * z};
}
static void row(void **in, void **out) {
    double *x = out[0], *y = out[1], *z = out[2], h = 0.001;
    for (int k = 0; k < 3; k++) memcpy(out[k], in[k], sizeof(double) * M);
    for (long t = 0; t < T; t++)
        SIMD
        for (long i = 0; i < M; i++) {
            double u = x[i], v = y[i], w = z[i];
            struct slope a = slope(u, v, w), b = slope(u + h / 2 * a.x, v + h / 2 * a.y, w + h / 2 * a.z);
            struct slope c = slope(u + h / 2 * b.x, v + h / 2 * b.y, w + h / 2 * b.z);
            struct slope d = slope(u + h * c.x, v + h * c.y, w + h * c.z);
            x[i] = u + h / 6 * (a.x + 2 * b.x + 2 * c.x + d.x);
            y[i] = v + h / 6 * (a.y + 2 * b.y + 2 * c.y + d.y);
            z[i] = w + h / 6 * (a.z + 2 * b.z + 2 * c.z + d.z);
        }
}
