#include <math.h>
void reference(const struct rung_task *t)
{
    for (long long r = 0; r < t->rows; r++) {
        const real *x = t->x + r * t->cols;
        real most = x[0], sum = 0;
        for (long long c = 1; c < t->cols; c++)
            most = x[c] > most ? x[c] : most;
        for (long long c = 0; c < t->cols; c++)
            sum += (real)exp(x[c] - most);
        for (long long c = 0; c < t->cols; c++)
            t->y[r * t->cols + c] = (real)exp(x[c] - most) / sum;
    }
}
