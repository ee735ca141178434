/* Fits a plane to points with a function of fit.spmd.
 *
 *   spmdc build examples/callers/fit.spmd --emit lib -o libfit.a    # also writes libfit.h
 *   cc -I. examples/callers/caller.c libfit.a -lpthread -ldl -lm -o caller
 *   ./caller 100
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "libfit.h"

enum { POINTS = 1000 };

int main(int argc, char **argv) {
    int32_t steps = argc > 1 ? atoi(argv[1]) : 100;
    /* Points of the plane 2 a - b + 0.5 c + 3. */
    static float x[POINTS][3], y[POINTS];
    for (int i = 0; i < POINTS; i++) {
        for (int j = 0; j < 3; j++) x[i][j] = sinf((float)(i * (j + 2)));
        y[i] = 2 * x[i][0] - x[i][1] + 0.5f * x[i][2] + 3;
    }

    float w[3], b, loss;
    int status = fit(&x[0][0], y, &steps, w, &b, &loss);
    if (status != 0) {
        /* The code of the error, the message and the line of fit.spmd. */
        fputs(spmd_error(), stderr);
        return status;
    }
    printf("%.3f a + %.3f b + %.3f c + %.3f, loss %.1e\n", w[0], w[1], w[2], b, loss);
    return 0;
}
