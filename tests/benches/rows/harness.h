/* The clock of a peer in C: reads arrays, runs `row` for some time, writes the results, and prints the least seconds of a run.
 *
 *     ROW SECONDS ARRAY.npy .. -- BYTES:FILE ..
 *
 * Memory has pages of 2 MiB where the system gives them, and results are allocated once. The functions of the C library below have vector
 * forms, which its own header declares under -ffast-math only. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define EACH _Pragma("omp parallel for schedule(static)")
#define EACH_SIMD _Pragma("omp parallel for simd schedule(static)")
#define SIMD _Pragma("omp simd")

#pragma omp declare simd notinbranch
float expf(float);
#pragma omp declare simd notinbranch
float logf(float);
#pragma omp declare simd notinbranch
float erff(float);
#pragma omp declare simd notinbranch
double exp(double);
#pragma omp declare simd notinbranch
double sin(double);

/* Has an instruction, which `fmaxf` has not, as it passes over NaN. */
static inline float larger(float a, float b) { return b > a ? b : a; }

/* The work of a row, from its arguments in the order of the program's parameters to its results. */
static void row(void **in, void **out);

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void *memory(size_t bytes) {
    void *p = mmap(0, bytes + 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) exit(2);
    madvise(p, bytes + 64, MADV_HUGEPAGE);
    return p;
}

/* The elements of a .npy file of version 1, whose header has its length in two bytes at 8. */
static void *elements(const char *path) {
    FILE *file = fopen(path, "rb");
    unsigned char head[10];
    if (!file || fread(head, 1, 10, file) != 10) exit(2);
    fseek(file, 0, SEEK_END);
    long start = 10 + head[8] + 256 * head[9], bytes = ftell(file) - start;
    void *p = memory(bytes);
    fseek(file, start, SEEK_SET);
    if (fread(p, 1, bytes, file) != (size_t)bytes) exit(2);
    fclose(file);
    return p;
}

int main(int argc, char **argv) {
    void *in[8], *out[8];
    size_t bytes[8];
    int at = 2, ins = 0, outs = 0;
    for (; at < argc && strcmp(argv[at], "--"); at++) in[ins++] = elements(argv[at]);
    int first = at + 1;
    for (at = first; at < argc; at++, outs++) {
        bytes[outs] = strtoul(argv[at], 0, 10);
        out[outs] = memory(bytes[outs]);
    }
    row(in, out);
    double least = 1e9, end = now() + atof(argv[1]);
    for (int runs = 0; runs < 3 || now() < end; runs++) {
        double start = now();
        row(in, out);
        double taken = now() - start;
        least = taken < least ? taken : least;
    }
    for (int i = 0; i < outs; i++) {
        FILE *file = fopen(strchr(argv[first + i], ':') + 1, "wb");
        if (!file || fwrite(out[i], 1, bytes[i], file) != bytes[i] || fclose(file)) exit(2);
    }
    printf("%.9g\n", least);
    return 0;
}
