/* loss.c - losses of a student: cross entropy with labels or a teacher, distance of tokens.
 *
 * Every cross entropy is -sum q log p of one row: p = softmax(z / T) of the student, and q a target
 * that is computed on the fly. Sums over classes are in double; their cost is small beside the
 * model's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/run/loss.h"

#include "model/common/hook.h"

#include <math.h>
#include <string.h>

/* One sample's logits: of one head, or the mean of two with `b`. */
typedef struct row {
    const float *a, *b;
    uint32_t n;
    double inverse_t; /* 1 / temperature */
    double top, sum;  /* p_i = exp(z_i / T - top) / sum */
    double log_sum;
} row;

static double logit_at(const row *r, uint32_t i)
{
    const float z = r->b ? 0.5f * (r->a[i] + r->b[i]) : r->a[i]; /* as the model averages */
    return (double)z * r->inverse_t;
}

static row row_of(const float *a, const float *b, uint32_t n, double temperature)
{
    row r = {a, b, n, 1.0 / temperature, -INFINITY, 0.0, 0.0};
    for (uint32_t i = 0; i < n && !isnan(r.top); i++) {
        const double z = logit_at(&r, i);
        if (!(z <= r.top)) r.top = z; /* NaN too: then the whole row is NaN */
    }
    for (uint32_t i = 0; i < n; i++) r.sum += exp(logit_at(&r, i) - r.top);
    r.log_sum = log(r.sum);
    return r;
}

static double p_of(const row *r, uint32_t i) { return exp(logit_at(r, i) - r->top) / r->sum; }
static double log_p_of(const row *r, uint32_t i) { return logit_at(r, i) - r->top - r->log_sum; }

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

/* -sum q log p; with a teacher minus the entropy of q. Adds scale * dloss/dz to d; with two heads
 * half of it to each. */
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

/* The best class of a teacher. NaN logits have none: then `on` is NaN. */
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

/* ---- the loss of a model --------------------------------------------------------------------- */

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

/* ---- distance of patch tokens ---------------------------------------------------------------- */

/* d (may be NULL) gets scale * gradient; returns the sum over elements. `unit` multiplies a
 * difference before it is measured. */
static double smooth_l1(const float *s, const float *t, size_t n, double unit, double beta,
                        double scale, float *d)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double e = ((double)s[i] - (double)t[i]) * unit, far = fabs(e);
        const int is_near = far < beta;
        sum += is_near ? 0.5 * e * e / beta : far - 0.5 * beta;
        if (d)
            d[i] = (float)(scale * unit *
                           (is_near   ? e / beta
                            : e > 0.0 ? 1.0
                            : e < 0.0 ? -1.0
                                      : e));
    }
    return sum;
}

static double squares(const float *s, const float *t, size_t n, double unit, double scale, float *d)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double e = ((double)s[i] - (double)t[i]) * unit;
        sum += e * e;
        if (d) d[i] = (float)(2.0 * scale * unit * e);
    }
    return sum;
}

/* 1 / deviation of a row's elements; 1 for a constant row. */
static double inverse_deviation(const float *t, size_t n)
{
    double mean = 0.0, variance = 0.0;
    for (size_t i = 0; i < n; i++) mean += (double)t[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        variance += ((double)t[i] - mean) * ((double)t[i] - mean) / (double)n;
    return variance > 1e-12 ? 1.0 / sqrt(variance) : 1.0;
}

/* 1 - s t / (|s| |t|); a row of zeros has no direction: 1, without gradient. */
static double cosine(const float *s, const float *t, size_t n, double scale, float *d)
{
    double st = 0.0, ss = 0.0, tt = 0.0;
    for (size_t i = 0; i < n; i++) {
        st += (double)s[i] * (double)t[i];
        ss += (double)s[i] * (double)s[i];
        tt += (double)t[i] * (double)t[i];
    }
    if (ss == 0.0 || tt == 0.0) {
        if (d) memset(d, 0, n * sizeof *d);
        return 1.0;
    }
    const double length = sqrt(ss) * sqrt(tt), similarity = st / length;
    for (size_t i = 0; d && i < n; i++)
        d[i] = (float)(scale * ((double)s[i] * similarity / ss - (double)t[i] / length));
    return 1.0 - similarity;
}

static double row_distance(const ry_feature_spec *spec, const float *s, const float *t, size_t n,
                           double scale, float *d)
{
    const double inverse = 1.0 / (double)n;
    const double unit = spec->relative ? inverse_deviation(t, n) : 1.0;
    switch (spec->distance) {
    case RY_FEATURE_SMOOTH_L1:
        return inverse *
               smooth_l1(s, t, n, unit, spec->beta > 0.0 ? spec->beta : 1.0, scale * inverse, d);
    case RY_FEATURE_MSE: return inverse * squares(s, t, n, unit, scale * inverse, d);
    case RY_FEATURE_COSINE: break;
    }
    return cosine(s, t, n, scale, d);
}

static double image_distance(const ry_feature_spec *spec, const ry_feature_batch *b, size_t image,
                             double scale, float *d)
{
    const size_t n = b->dim;
    const uint32_t *patch = b->patch + image * b->n_rows;
    const float *rows = b->rows + image * b->n_rows * n;
    const float *teacher = b->teacher + image * b->n_patches * n;
    size_t known = 0;
    double sum = 0.0;
    for (uint32_t r = 0; r < b->n_rows; r++) known += patch[r] != RY_NO_TOKEN;
    for (uint32_t r = 0; r < b->n_rows; r++) {
        float *to = d ? d + (image * b->n_rows + r) * n : NULL;
        if (patch[r] != RY_NO_TOKEN)
            sum += row_distance(spec, rows + r * n, teacher + patch[r] * n, n,
                                scale / (double)known, to);
        else if (to)
            memset(to, 0, n * sizeof *to);
    }
    return known ? sum / (double)known : 0.0;
}

double ry_loss_features(const ry_feature_spec *spec, const ry_feature_batch *b, double scale,
                        float *d)
{
    double sum = 0.0;
    for (size_t i = 0; i < b->n; i++) sum += image_distance(spec, b, i, scale, d);
    return sum;
}
