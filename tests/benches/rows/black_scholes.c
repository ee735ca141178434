#include "harness.h"
static inline float normal_cdf(float x) { return 0.5f * (1 + erff(x * 0.70710678f)); }
static void row(void **in, void **out) {
    float *s = in[0], *k = in[1], *t = in[2], *call = out[0], *put = out[1], r = 0.02f, v = 0.3f;
    EACH_SIMD
    for (long i = 0; i < N; i++) {
        float d = v * sqrtf(t[i]), d1 = (logf(s[i] / k[i]) + (r + 0.5f * v * v) * t[i]) / d;
        float e = k[i] * expf(-r * t[i]), c = s[i] * normal_cdf(d1) - e * normal_cdf(d1 - d);
        call[i] = c;
        put[i] = c + e - s[i];
    }
}
