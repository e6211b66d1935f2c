/* loss.c - see loss.h. Every loss here is -sum q log p of one row, p = softmax(z / T) of the
 * student and q a target that is described instead of stored. All sums over classes are in double:
 * a few thousand exponentials an image, nothing beside the model.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/run/loss.h"

#include <math.h>
#include <string.h>

/* One sample's logits: of one head, or with `b` the mean of two. */
typedef struct row {
    const float *a, *b;
    uint32_t n;
    double inverse_t; /* 1 / temperature */
    double top, sum;  /* p_i = exp(z_i / T - top) / sum */
    double log_sum;
} row;

static double at(const row *r, uint32_t i)
{
    const float z = r->b ? 0.5f * (r->a[i] + r->b[i]) : r->a[i]; /* as the model averages */
    return (double)z * r->inverse_t;
}

static row row_of(const float *a, const float *b, uint32_t n, double temperature)
{
    row r = {a, b, n, 1.0 / temperature, -INFINITY, 0.0, 0.0};
    for (uint32_t i = 0; i < n && !isnan(r.top); i++) {
        const double z = at(&r, i);
        if (!(z <= r.top)) r.top = z; /* a NaN too: then everything is */
    }
    for (uint32_t i = 0; i < n; i++) r.sum += exp(at(&r, i) - r.top);
    r.log_sum = log(r.sum);
    return r;
}

static double p_of(const row *r, uint32_t i) { return exp(at(r, i) - r->top) / r->sum; }
static double log_p_of(const row *r, uint32_t i) { return at(r, i) - r->top - r->log_sum; }

/* q: given numbers, the softmax of a teacher, or `on` at a label and `off` elsewhere. */
typedef struct target {
    const float *given;
    const row *teacher;
    uint32_t label;
    double on, off;
} target;

static double q_of(const target *t, uint32_t i)
{
    if (t->given) return (double)t->given[i];
    if (t->teacher) return p_of(t->teacher, i);
    return i == t->label ? t->on : t->off;
}

/* -sum q log p, for a teacher's q less its own entropy. Adds scale * dloss/dz to d, and half of it
 * to both with two heads. */
static double row_loss(const row *r, const target *t, double scale, float *d, float *d2)
{
    double loss = 0.0, total = 0.0;
    for (uint32_t i = 0; i < r->n; i++) {
        const double q = q_of(t, i);
        total += q;
        if (q == 0.0) continue; /* 0 log 0 is 0 */
        loss -= q * log_p_of(r, i);
        if (t->teacher) loss += q * log_p_of(t->teacher, i);
    }
    if (!d) return loss;
    const double each = scale * r->inverse_t * (r->b ? 0.5 : 1.0);
    for (uint32_t i = 0; i < r->n; i++) {
        const float g = (float)(each * (total * p_of(r, i) - q_of(t, i)));
        d[i] += g;
        if (d2) d2[i] += g;
    }
    return loss;
}

static const float *row_at(const float *rows, uint32_t i, uint32_t n)
{
    return rows ? rows + (size_t)i * n : NULL;
}

static float *gradient_at(float *rows, uint32_t i, uint32_t n)
{
    return rows ? rows + (size_t)i * n : NULL;
}

double ry_loss_soft(const ry_logits *z, const float *given, double scale, float *d)
{
    const uint32_t C = z->n_classes;
    double sum = 0.0;
    for (uint32_t i = 0; i < z->n; i++) {
        const row r = row_of(row_at(z->rows, i, C), NULL, C, 1.0);
        const target t = {.given = row_at(given, i, C)};
        sum += row_loss(&r, &t, scale, gradient_at(d, i, C), NULL);
    }
    return sum;
}

double ry_loss_label(const ry_logits *z, const uint32_t *label, double smoothing, double scale,
                     float *d)
{
    const uint32_t C = z->n_classes;
    const double off = smoothing / C;
    double sum = 0.0;
    for (uint32_t i = 0; i < z->n; i++) {
        const row r = row_of(row_at(z->rows, i, C), NULL, C, 1.0);
        const target t = {.label = label[i], .on = 1.0 - smoothing + off, .off = off};
        sum += row_loss(&r, &t, scale, gradient_at(d, i, C), NULL);
    }
    return sum;
}

double ry_loss_teacher_soft(const ry_logits *z, const float *teacher, double temperature,
                            double scale, float *d)
{
    const uint32_t C = z->n_classes;
    const double square = temperature * temperature;
    double sum = 0.0;
    for (uint32_t i = 0; i < z->n; i++) {
        const row r = row_of(row_at(z->rows, i, C), NULL, C, temperature);
        const row q = row_of(row_at(teacher, i, C), NULL, C, temperature);
        const target t = {.teacher = &q};
        sum += square * row_loss(&r, &t, square * scale, gradient_at(d, i, C), NULL);
    }
    return sum;
}

/* The best class of a teacher. Logits that are not numbers have none: its `on` is NaN. */
static target best_of(const float *z, uint32_t n)
{
    target t = {.on = 1.0};
    for (uint32_t i = 0; i < n; i++) {
        if (isnan(z[i])) t.on = NAN;
        if (z[i] > z[t.label]) t.label = i;
    }
    return t;
}

double ry_loss_teacher_hard(const ry_logits *z, const float *teacher, double scale, float *d)
{
    const uint32_t C = z->n_classes;
    double sum = 0.0;
    for (uint32_t i = 0; i < z->n; i++) {
        const row r = row_of(row_at(z->rows, i, C), NULL, C, 1.0);
        const target t = best_of(row_at(teacher, i, C), C);
        sum += row_loss(&r, &t, scale, gradient_at(d, i, C), NULL);
    }
    return sum;
}

/* ---- the loss of a model ------------------------------------------------------------------- */

/* Labels teach the mean of two heads. */
static double loss_of_mean(const ry_loss_batch *b, double scale, float *d, float *d_dist)
{
    const uint32_t C = b->n_classes;
    double sum = 0.0;
    for (uint32_t i = 0; i < b->n; i++) {
        const row r = row_of(row_at(b->logits, i, C), row_at(b->logits_dist, i, C), C, 1.0);
        const target t = {.given = row_at(b->target, i, C)};
        sum += row_loss(&r, &t, scale, gradient_at(d, i, C), gradient_at(d_dist, i, C));
    }
    return sum;
}

ry_loss_sum ry_loss(const ry_loss_spec *spec, const ry_loss_batch *b, double scale, float *d,
                    float *d_dist)
{
    const size_t bytes = (size_t)b->n * b->n_classes * sizeof *d;
    const ry_logits first = {b->logits, b->n, b->n_classes};
    const ry_logits second = {b->logits_dist ? b->logits_dist : b->logits, b->n, b->n_classes};
    float *d_second = b->logits_dist ? d_dist : d;
    const double alpha = spec->distil == RY_DISTIL_NONE ? 0.0 : spec->alpha;
    const ry_distil kind = alpha == 0.0 ? RY_DISTIL_NONE : spec->distil;
    ry_loss_sum sum = {0};

    if (d) memset(d, 0, bytes);
    if (d_dist) memset(d_dist, 0, bytes);
    if (kind == RY_DISTIL_NONE)
        sum.labels = loss_of_mean(b, scale, d, d_dist);
    else
        sum.labels = ry_loss_soft(&first, b->target, scale * (1.0 - alpha), d);
    if (kind == RY_DISTIL_SOFT)
        sum.teacher =
            ry_loss_teacher_soft(&second, b->teacher, spec->temperature, scale * alpha, d_second);
    if (kind == RY_DISTIL_HARD)
        sum.teacher = ry_loss_teacher_hard(&second, b->teacher, scale * alpha, d_second);
    sum.total = (1.0 - alpha) * sum.labels + alpha * sum.teacher;
    return sum;
}
