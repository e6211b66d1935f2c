/* teacher.c - runs the model that a student learns from, and maps its classes to the student's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/run/teacher.h"

#include "base/alloc.h"
#include "base/status.h"
#include "engine/core/model_handle.h"
#include "model/vit/vit_plan.h"
#include "renyi/eval.h"

#include <math.h>
#include <string.h>

struct ry_teacher {
    renyi_allocator al;
    const renyi_model *model; /* borrowed */
    ry_vit_plan *plan;
    uint32_t max_batch;
    ry_teacher_tokens tokens;
    uint32_t n_classes;       /* the student's */
    uint32_t *class_map;      /* [n_classes] */
    float *logits;            /* [max_batch, teacher's classes] */
    float *chw;               /* [max_batch, 3, S, S] normalized for the teacher; NULL = as it is */
    float scale[3], shift[3]; /* of each channel, from the student's normalization */
    float *ones, *zeros;      /* [dim] a LayerNorm without weights; NULL unless white */
    uint32_t *taps;           /* [n_taps] */
    uint32_t n_taps;
    uint32_t n_now; /* images of the run */
    float *tokens_now;
    const float *last; /* [n, tokens, dim] after the last block, in the plan's memory */
};

/* ---- options --------------------------------------------------------------------------------- */

static renyi_status check_teacher(const renyi_model *m, const ry_vit_config *student,
                                  const ry_teacher_options *opt, renyi_error *err)
{
    const ry_vit_config *c = &m->vit.config;
    if (!c->n_classes)
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "the teacher has no classifier, so it answers nothing; 'renyi train -m' gives "
            "it one");
    if (c->image_size != student->image_size)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "the teacher was opened for images of %u pixels, the student sees %u",
                       c->image_size, student->image_size);
    if (opt->tokens && c->patch_size != student->patch_size)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "the teacher's patches are %u pixels wide, the student's %u: their tokens "
                       "cannot be compared; distil logits only",
                       c->patch_size, student->patch_size);
    for (uint32_t i = 0; i < opt->n_taps; i++)
        if (opt->taps[i] >= c->n_blocks)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "tokens after block %u of a teacher of %u blocks", opt->taps[i],
                           c->n_blocks);
    for (uint32_t i = 0; opt->class_map && i < student->n_classes; i++)
        if (opt->class_map[i] >= c->n_classes)
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "class %u of the student is class %u of a teacher that has %u", i,
                           opt->class_map[i], c->n_classes);
    if (!opt->class_map && c->n_classes != student->n_classes)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "the teacher has %u classes, the student %u: list the teacher's class of "
                       "each",
                       c->n_classes, student->n_classes);
    return RENYI_OK;
}

/* x for the teacher = scale * x for the student + shift. Returns 0 if both are the same. */
static int find_normalization(ry_teacher *t, const renyi_preprocess *from)
{
    const renyi_preprocess *to = &t->model->vit.config.preprocess;
    int differs = 0;
    for (int c = 0; c < 3; c++) {
        t->scale[c] = (float)(from->std[c] / to->std[c]);
        t->shift[c] = (float)((from->mean[c] - to->mean[c]) / to->std[c]);
        differs |= from->std[c] != to->std[c] || from->mean[c] != to->mean[c];
    }
    return differs;
}

static renyi_status allocate_buffers(ry_teacher *t, const ry_vit_config *student, renyi_error *err)
{
    const ry_vit_config *c = &t->model->vit.config;
    const size_t B = t->max_batch, pixels = (size_t)3 * c->image_size * c->image_size;
    const int differs = find_normalization(t, &student->preprocess);
    t->class_map = ry_alloc(&t->al, t->n_classes, sizeof *t->class_map);
    t->logits = ry_alloc(&t->al, B * c->n_classes, sizeof *t->logits);
    if (!t->class_map || !t->logits) return ry_fail_nomem(err, B * c->n_classes * sizeof(float));
    if (differs && !(t->chw = ry_alloc(&t->al, B, pixels * sizeof *t->chw)))
        return ry_fail_nomem(err, B * pixels * sizeof *t->chw);
    if (t->n_taps && !(t->taps = ry_alloc(&t->al, t->n_taps, sizeof *t->taps)))
        return ry_fail_nomem(err, t->n_taps * sizeof *t->taps);
    if (t->tokens != RY_TOKENS_WHITE && !t->n_taps) return RENYI_OK;
    t->ones = ry_alloc(&t->al, c->dim, sizeof *t->ones);
    t->zeros = ry_calloc(&t->al, c->dim, sizeof *t->zeros);
    if (!t->ones || !t->zeros) return ry_fail_nomem(err, c->dim * sizeof *t->ones);
    for (uint32_t i = 0; i < c->dim; i++) t->ones[i] = 1.0f;
    return RENYI_OK;
}

renyi_status ry_teacher_new(ry_teacher **out, const renyi_model *model,
                            const ry_vit_config *student, const ry_teacher_options *opt,
                            const renyi_allocator *al, renyi_error *err)
{
    const ry_vit_plan_options plan = {.level = model->level,
                                      .max_batch = opt->max_batch,
                                      .n_threads = opt->n_threads,
                                      .all_rows = opt->tokens != RY_TOKENS_NONE};
    *out = NULL;
    RY_TRY(check_teacher(model, student, opt, err));
    ry_teacher *t = ry_calloc(al, 1, sizeof *t);
    if (!t) return ry_fail_nomem(err, sizeof *t);
    if (al) t->al = *al;
    t->model = model;
    t->max_batch = opt->max_batch;
    t->tokens = opt->tokens;
    t->n_classes = student->n_classes;
    t->n_taps = opt->tokens == RY_TOKENS_NONE ? 0 : opt->n_taps;
    renyi_status st = allocate_buffers(t, student, err);
    for (uint32_t i = 0; !st && i < t->n_taps; i++) t->taps[i] = opt->taps[i];
    for (uint32_t i = 0; !st && i < t->n_classes; i++)
        t->class_map[i] = opt->class_map ? opt->class_map[i] : i;
    if (!st) st = ry_vit_plan_new(&t->plan, &model->vit, &plan, &t->al, err);
    if (st)
        ry_teacher_free(t);
    else
        *out = t;
    return st;
}

void ry_teacher_free(ry_teacher *t)
{
    if (!t) return;
    const renyi_allocator al = t->al;
    ry_vit_plan_free(t->plan, &al);
    ry_free(&al, t->class_map);
    ry_free(&al, t->logits);
    ry_free(&al, t->chw);
    ry_free(&al, t->ones);
    ry_free(&al, t->zeros);
    ry_free(&al, t->taps);
    ry_free(&al, t);
}

uint32_t ry_teacher_dim(const ry_teacher *t)
{
    return t->tokens == RY_TOKENS_NONE ? 0 : t->model->vit.config.dim;
}

uint32_t ry_teacher_patches(const ry_teacher *t) { return t->model->vit.n_patches; }

uint32_t ry_teacher_prefix(const ry_teacher *t) { return t->model->vit.config.n_prefix; }

uint32_t ry_teacher_rows(const ry_teacher *t)
{
    return ry_teacher_patches(t) + (t->n_taps ? ry_teacher_prefix(t) : 0);
}

double ry_teacher_macs(const ry_teacher *t) { return ry_vit_plan_macs(t->plan); }

/* ---- a run ----------------------------------------------------------------------------------- */

static const float *normalize_for_teacher(ry_teacher *t, const float *chw, uint32_t n)
{
    const size_t side = t->model->vit.config.image_size, plane = side * side;
    const ptrdiff_t planes = (ptrdiff_t)n * 3;
    if (!t->chw) return chw;
#pragma omp parallel for num_threads(t->plan->team.n_threads) schedule(static)
    for (ptrdiff_t k = 0; k < planes; k++) {
        const float scale = t->scale[k % 3], shift = t->shift[k % 3];
        const float *from = chw + (size_t)k * plane;
        float *to = t->chw + (size_t)k * plane;
        for (size_t i = 0; i < plane; i++) to[i] = scale * from[i] + shift;
    }
    return t->chw;
}

/* Rows of all images between two blocks: patches, then the prefix. */
static void take_rows(const ry_teacher *t, const float *x, float *to)
{
    const size_t P = t->model->vit.n_patches, K = ry_teacher_prefix(t), N = P + K;
    const size_t C = t->model->vit.config.dim;
    const float eps = (float)t->model->vit.config.norm_eps;
    for (size_t i = 0; i < t->n_now; i++, x += N * C, to += N * C) {
        if (t->tokens == RY_TOKENS_RAW) {
            memcpy(to, x + K * C, P * C * sizeof *to);
            memcpy(to + P * C, x, K * C * sizeof *to);
            continue;
        }
        t->plan->kernels.layernorm(to, C, x + K * C, C, P, C, t->ones, t->zeros, eps);
        t->plan->kernels.layernorm(to + P * C, C, x, C, K, C, t->ones, t->zeros, eps);
    }
}

/* Called by one thread while the others wait. Rows after the last block are not overwritten by the
 * head. */
static void copy_tap(void *user, uint32_t block, const float *x, uint32_t n_tokens)
{
    ry_teacher *t = user;
    const size_t of_tap = (size_t)t->max_batch * n_tokens * t->model->vit.config.dim;
    for (uint32_t k = 0; k < t->n_taps; k++)
        if (t->taps[k] == block) take_rows(t, x, t->tokens_now + k * of_tap);
    if (block + 1 == t->model->vit.config.n_blocks) t->last = x;
}

static void finish_tokens(const ry_teacher *t, uint32_t n, float *tokens)
{
    const ry_vit *v = &t->model->vit;
    const ry_kernels *k = &t->plan->kernels;
    const size_t P = v->n_patches, N = P + v->config.n_prefix, C = v->config.dim;
    const float eps = (float)v->config.norm_eps;
#pragma omp parallel for num_threads(t->plan->team.n_threads) schedule(static)
    for (ptrdiff_t i = 0; i < (ptrdiff_t)n; i++) {
        const float *x = t->last + ((size_t)i * N + v->config.n_prefix) * C;
        float *to = tokens + (size_t)i * P * C;
        k->layernorm(to, C, x, C, P, C, v->norm_w, v->norm_b, eps);
        if (t->ones) k->layernorm(to, C, to, C, P, C, t->ones, t->zeros, eps);
    }
}

renyi_status ry_teacher_run(ry_teacher *t, const float *chw, uint32_t n, float *logits,
                            float *tokens, renyi_error *err)
{
    const uint32_t all = t->model->vit.config.n_classes, C = t->n_classes;
    if (n == 0 || n > t->max_batch)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u images for a teacher that takes 1 to %u", n,
                       t->max_batch);
    if (tokens && t->tokens == RY_TOKENS_NONE)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "tokens requested of a teacher that was made for logits only");
    ry_vit_input in = {.chw = normalize_for_teacher(t, chw, n), .n = n, .tap_user = t};
    if (tokens) in.tap = copy_tap;
    t->n_now = n;
    t->tokens_now = tokens;
    RY_TRY(ry_vit_forward(t->plan, &in, t->logits));
    if (tokens && !t->n_taps) finish_tokens(t, n, tokens);
    for (uint32_t i = 0; logits && i < n; i++)
        for (uint32_t c = 0; c < C; c++)
            logits[(size_t)i * C + c] = t->logits[(size_t)i * all + t->class_map[c]];
    return RENYI_OK;
}

/* ---- classes --------------------------------------------------------------------------------- */

/* Two classes of the student may not be the same class of the teacher. */
static renyi_status check_different(const uint32_t *map, uint32_t n, renyi_error *err)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (map[i] == map[j])
                return ry_fail(err, RENYI_ERR_ARG, -1,
                               "classes %u and %u of the student are both class %u of the teacher",
                               j, i, map[i]);
    return RENYI_OK;
}

/* A number is an index in the student's own dataset, not a class of the teacher. */
static int is_number(const char *name) { return name[strspn(name, "0123456789")] == 0; }

/* If some names are unknown and the student has as many classes as the teacher, class i is class i,
 * unless a known name contradicts that. */
static renyi_status map_by_names(uint32_t *map, const renyi_model *teacher, const char **names,
                                 uint32_t n, renyi_error *err)
{
    renyi_model_info info;
    uint32_t unknown = n;
    int same = 1;
    renyi_model_get_info(teacher, &info);
    RY_TRY(renyi_classes_find(teacher, names, n, map, err));
    for (uint32_t i = n; i-- > 0;) {
        same &= map[i] == RENYI_NO_CLASS || map[i] == i;
        if (map[i] == RENYI_NO_CLASS) unknown = i;
    }
    if (unknown == n) return check_different(map, n, err);
    if (!same || n != info.n_classes)
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "the teacher has %u classes, and the student's class %u (\"%.60s\") is neither a "
            "WordNet id nor a label of it: list the teacher's class of each",
            info.n_classes, unknown, names[unknown] ? names[unknown] : "no name");
    for (uint32_t i = 0; i < n; i++) map[i] = i;
    return RENYI_OK;
}

renyi_status ry_teacher_classes(uint32_t *map, const renyi_model *teacher, const char *const *names,
                                uint32_t n, const renyi_allocator *al, renyi_error *err)
{
    const char **known = ry_calloc(al, n, sizeof *known);
    if (!known) return ry_fail_nomem(err, n * sizeof *known);
    for (uint32_t i = 0; names && i < n; i++)
        known[i] = names[i] && !is_number(names[i]) ? names[i] : NULL;
    const renyi_status st = map_by_names(map, teacher, known, n, err);
    ry_free(al, known);
    return st;
}

/* Splits a text at its commas, in place. Returns the number of parts; the first n are stored. */
static size_t split_at_commas(char *text, const char **parts, uint32_t n)
{
    size_t count = 0;
    for (char *at = text;;) {
        char *comma = strchr(at, ',');
        if (comma) *comma = 0;
        if (count < n) parts[count] = at;
        count++;
        if (!comma) return count;
        at = comma + 1;
    }
}

static renyi_status find_listed(uint32_t *map, const renyi_model *teacher, const char **parts,
                                uint32_t n, renyi_error *err)
{
    renyi_model_info info;
    renyi_model_get_info(teacher, &info);
    RY_TRY(renyi_classes_find(teacher, parts, n, map, err));
    for (uint32_t i = 0; i < n; i++)
        if (map[i] == RENYI_NO_CLASS)
            return ry_fail(
                err, RENYI_ERR_ARG, -1,
                "\"%.60s\" in the list of the teacher's classes: expected an index below "
                "%u, a WordNet id of ImageNet's 1000 or a label of the teacher",
                parts[i], info.n_classes);
    return check_different(map, n, err);
}

renyi_status ry_teacher_class_list(uint32_t *map, const renyi_model *teacher, const char *list,
                                   uint32_t n, const renyi_allocator *al, renyi_error *err)
{
    const char **parts = ry_calloc(al, n, sizeof *parts);
    char *text = ry_strdup(al, list);
    renyi_status st = parts && text ? RENYI_OK : ry_fail_nomem(err, n * sizeof *parts);
    const size_t count = st ? 0 : split_at_commas(text, parts, n);
    if (!st && count != n)
        st = ry_fail(err, RENYI_ERR_ARG, -1,
                     "the list names %zu classes of the teacher; the student has %u", count, n);
    if (!st) st = find_listed(map, teacher, parts, n, err);
    ry_free(al, text);
    ry_free(al, parts);
    return st;
}
