// The derivative of ln(gamma(x)) for a type `T`, with `F(log)` the C library's function for it, `C(0.5)` a constant of it, and `PSI`
// the name: by the recurrence up to 40, the asymptotic series from there on, and the reflection for negative numbers.

static inline T PSI(T x) {
    if (isnan(x) || (isinf(x) && x > 0)) return x;
    if (isinf(x) || (x <= 0 && x == F(floor)(x))) return NAN;
    T reflected = 0;
    if (x < 0) {
        const T pi = C(3.14159265358979323846264338327950288);
        T r = x - F(round)(x);
        // psi(x) = psi(-x) - 1 / x - pi cot(pi x)
        reflected = -1 / x - pi * F(cos)(pi * r) / F(sin)(pi * r);
        x = -x;
    }
    T sum = 0;
    for (; x < 40; x += 1) sum -= 1 / x;
    // B(2k) / (2k)
    const T terms[] = {C(1.0) / 12, -C(1.0) / 120, C(1.0) / 252, -C(1.0) / 240, C(1.0) / 132, -C(691.0) / 32760, C(1.0) / 12,
                       -C(3617.0) / 8160, C(43867.0) / 14364, -C(174611.0) / 6600, C(77683.0) / 276, -C(236364091.0) / 65520,
                       C(657931.0) / 12, -C(3392780147.0) / 3480, C(1723168255201.0) / 85932};
    T inverse = 1 / (x * x), series = 0;
    for (int k = sizeof terms / sizeof *terms - 1; k >= 0; k--) series = (series + terms[k]) * inverse;
    return F(log)(x) - 1 / (2 * x) - series + sum + reflected;
}
