/* Limits of the machine, for one thread and for all: fused multiplications and additions of f32 in vectors of 512 bits, and walks through
 * memory: `a = b + 3 * c` with each array once in caches and in memory, the same with stores that bypass the caches, and a sum. Each line: a
 * name, threads, and the best figure of several in GFLOP/s or GB/s. Bytes are those of the arrays. */
#include <immintrin.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef float Vector __attribute__((vector_size(64)));
enum { CHAINS = 12, ROUNDS = 12 };

static double fma_rate(int threads) {
    const long trips = 4000000;
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double start = omp_get_wtime();
#pragma omp parallel num_threads(threads)
        {
            Vector x = {0}, y = {0}, sum[CHAINS] = {{0}};
            __asm__ volatile("" : "+v"(x), "+v"(y));
            for (long i = 0; i < trips; i++)
#pragma GCC unroll 12
                for (int k = 0; k < CHAINS; k++) {
                    sum[k] = sum[k] * x + y;
                    __asm__ volatile("" : "+v"(sum[k]));
                }
        }
        double rate = 2.0 * 16 * CHAINS * trips * threads / (omp_get_wtime() - start) / 1e9;
        best = rate > best ? rate : best;
    }
    return best;
}

enum Walk { TRIAD, BYPASSING, READING };

/* Each thread has arrays of `n` elements. */
static double rate(enum Walk walk, int threads, long n) {
    const long trips = 1 + (1L << 26) / n;
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double start = 0, end = 0;
#pragma omp parallel num_threads(threads)
        {
            const size_t bytes = (sizeof(float) * n + 4096) * 3;
            char *all = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            madvise(all, bytes, MADV_HUGEPAGE);
            memset(all, 0, bytes);
            /* Not a multiple of a page apart, so that no load waits for a store to a like address. */
            const size_t apart = sizeof(float) * n + 1088;
            float *a = (float *)all, *b = (float *)(all + apart), *c = (float *)(all + 2 * apart);
#pragma omp barrier
#pragma omp master
            start = omp_get_wtime();
#pragma omp barrier
            for (long trip = 0; trip < trips; trip++) {
                if (walk == TRIAD)
#pragma GCC ivdep
                    for (long i = 0; i < n; i++) a[i] = b[i] + 3 * c[i];
                else if (walk == BYPASSING)
                    for (long i = 0; i < n; i += 8)
                        _mm256_stream_ps(a + i, _mm256_add_ps(_mm256_loadu_ps(b + i), _mm256_mul_ps(_mm256_set1_ps(3), _mm256_loadu_ps(c + i))));
                else {
                    Vector sum[4] = {{0}};
                    for (long i = 0; i < n; i += 64)
                        for (int k = 0; k < 4; k++) sum[k] += *(Vector *)(b + i + 16 * k);
                    __asm__ volatile("" ::"v"(sum[0] + sum[1] + sum[2] + sum[3]));
                }
                __asm__ volatile("" ::: "memory");
            }
#pragma omp barrier
#pragma omp master
            end = omp_get_wtime();
#pragma omp barrier
            munmap(all, bytes);
        }
        double found = (walk == READING ? 4.0 : 12.0) * n * trips * threads / (end - start) / 1e9;
        best = found > best ? found : best;
    }
    return best;
}

int main(void) {
    for (int threads = 1;; threads = omp_get_max_threads()) {
        printf("fma %d %.1f\n", threads, fma_rate(threads));
        printf("L1 %d %.1f\n", threads, rate(TRIAD, threads, 1 << 11));
        printf("L2 %d %.1f\n", threads, rate(TRIAD, threads, 1 << 15));
        printf("triad %d %.1f\n", threads, rate(TRIAD, threads, 1 << 24));
        printf("bypassing %d %.1f\n", threads, rate(BYPASSING, threads, 1 << 24));
        printf("reading %d %.1f\n", threads, rate(READING, threads, 1 << 24));
        if (threads == omp_get_max_threads()) return 0;
    }
}
