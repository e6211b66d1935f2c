/* scores.c - scores every patch at every block of an unpruned run by several metrics. Every
 * (image, metric) has its own scratch memory, since any thread may work on it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/viz/scores.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"
#include "engine/core/model_handle.h"
#include "engine/core/policy_api.h"
#include "image/patches.h"
#include "model/vit/vit_plan.h"
#include "prune/rules/metric.h"

#include <stdio.h>
#include <string.h>

typedef struct metric {
    ry_pruner *pruner; /* of a policy with one cut by this metric */
    ry_block_needs needs;
    char name[RY_MAX_POLICY_TEXT];
} metric;

/* Scratch of one (image, metric) for a block of N tokens. */
typedef struct scratch {
    double *parts;  /* [row blocks, sets, N] */
    float *columns; /* [N] */
    float *score;   /* [N] */
    float *kernel;  /* scratch of the attention kernel */
} scratch;

struct ry_scores {
    const renyi_model *model; /* borrowed */
    uint32_t max_batch, n_metrics, n_kept;
    size_t n_tokens;
    metric *metrics; /* [n_metrics] */
    ry_kernels kernels;
    ry_token_hook hook;
    void (*watch)(void *user, const ry_block_view *view);
    void *user;
    ry_vit_plan *plan;
    float lut[3][256];
    uint64_t *image_keys; /* [max_batch] */
    float *logits;        /* [max_batch, classes] */
    float *scores;        /* [max_batch, n_metrics, blocks, patches] */
    unsigned char *arena; /* [max_batch, n_metrics, arena_each] */
    size_t arena_each;
};

/* ---- scoring a block ----------------------------------------------------------------------- */

static size_t lay_out(const ry_scores *s, unsigned char *base, scratch *out)
{
    const ry_vit_config *c = &s->model->vit.config;
    const size_t N = s->n_tokens, rows = s->kernels.attention_rows;
    ry_arena a = {base, 0, base ? s->arena_each : 0, 0};
    size_t sets = 1;
    for (uint32_t m = 0; m < s->n_metrics; m++) {
        const size_t mine = ry_column_sets(&s->metrics[m].needs.columns, c->n_heads);
        sets = mine > sets ? mine : sets;
    }
    out->parts = RY_TAKE(&a, ry_attention_blocks(N, rows) * sets * N, double);
    out->columns = RY_TAKE(&a, N, float);
    out->score = RY_TAKE(&a, N, float);
    out->kernel = RY_TAKE(&a, ry_attention_scratch(N, c->dim / c->n_heads, rows), float);
    return a.overflow ? SIZE_MAX : a.used;
}

static float *scores_at(const ry_scores *s, size_t image, size_t m, size_t block)
{
    const ry_vit *v = &s->model->vit;
    return s->scores + ((image * s->n_metrics + m) * v->config.n_blocks + block) * v->n_patches;
}

static void scores_needs(const void *self, uint32_t block, uint32_t n_tokens, ry_block_needs *out)
{
    const ry_scores *s = self;
    (void)block;
    *out = (ry_block_needs){.n_after = n_tokens, .look = 1};
    for (uint32_t m = 0; m < s->n_metrics; m++)
        out->what |= s->metrics[m].needs.what & (RY_NEED_CLASS_ROW | RY_NEED_POOL_ROW);
}

static uint32_t metric_tiles(const void *self, uint32_t block, uint32_t phase)
{
    (void)block;
    return phase == 0 ? ((const ry_scores *)self)->n_metrics : 0;
}

/* The column statistic of one metric, in row blocks as in a run. */
static void find_columns(const ry_scores *s, const ry_column_spec *spec, const ry_block_view *v,
                         const scratch *mine)
{
    const ry_attention at = {.n_tokens = v->n_tokens,
                             .n_heads = v->n_heads,
                             .head = v->dim / v->n_heads,
                             .qkv = v->qkv,
                             .qkv_row = v->qkv_row,
                             .column_parts = mine->parts,
                             .columns = *spec};
    const size_t blocks = ry_attention_blocks(v->n_tokens, s->kernels.attention_rows);
    for (size_t b = 0; b < blocks; b++) s->kernels.attention(&at, b, mine->kernel);
    ry_attention_scores(mine->columns, &at, blocks);
}

/* Tile = metric. The cut is not touched. */
static void score_block(void *self, const ry_block_view *view, ry_cut *cut, uint32_t phase,
                        uint32_t tile)
{
    ry_scores *s = self;
    const metric *m = &s->metrics[tile];
    ry_block_view seen = *view;
    scratch mine;
    (void)cut;
    (void)phase;
    (void)lay_out(s, s->arena + ((size_t)view->image * s->n_metrics + tile) * s->arena_each, &mine);
    if (m->needs.what & RY_NEED_COLUMNS) {
        find_columns(s, &m->needs.columns, view, &mine);
        seen.columns = mine.columns;
    }
    ry_metric_score(m->pruner, &seen, mine.score);
    memcpy(scores_at(s, view->image, tile, view->block), mine.score + view->n_prefix,
           (view->n_tokens - view->n_prefix) * sizeof *mine.score);
}

static void show_block(void *self, const ry_block_view *view, const ry_cut *cut)
{
    const ry_scores *s = self;
    (void)cut;
    s->watch(s->user, view);
}

/* ---- making -------------------------------------------------------------------------------- */

/* The text between metric= and reduce= in the printed policy, without defaults. */
static void name_metric(char name[RY_MAX_POLICY_TEXT], const ry_policy *policy)
{
    static const char *const defaults[] = {" heads=mean", " class_row=yes", " diagonal=yes",
                                           " seed=0"};
    char text[RY_MAX_POLICY_TEXT];
    ry_policy_print(text, policy);
    char *from = strstr(text, "metric="), *to = from ? strstr(from, " reduce=") : NULL;
    if (to) *to = '\0';
    for (size_t i = 0; from && i < sizeof defaults / sizeof *defaults; i++) {
        const size_t n = strlen(defaults[i]);
        char *at = strstr(from, defaults[i]);
        if (at && (at[n] == ' ' || !at[n])) memmove(at, at + n, strlen(at + n) + 1);
    }
    snprintf(name, RY_MAX_POLICY_TEXT, "%s", from ? from + strlen("metric=") : text);
}

renyi_status ry_scores_read(char name[RY_MAX_POLICY_TEXT], ry_policy *policy, const renyi_model *m,
                            const char *given, renyi_error *err)
{
    char text[RY_MAX_POLICY_TEXT];
    renyi_error why = {0};
    const int n =
        snprintf(text, sizeof text, "evit keep=0.5 layers=0 reduce=drop metric=%s", given);
    if (n < 0 || (size_t)n >= sizeof text)
        return ry_fail(err, RENYI_ERR_ARG, -1, "a metric of %zu bytes", strlen(given));
    if (ry_policy_for_model(policy, text, m, &why))
        return ry_fail(err, why.code, -1, "metric \"%.80s\": %.380s", given, why.message);
    if (policy->metric == RY_METRIC_CORRECT)
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "metric \"%.80s\": correct combines two rankings and has no scores; give the "
            "policy, \"evit metric=correct ...\"",
            given);
    name_metric(name, policy);
    return RENYI_OK;
}

static renyi_status open_metric(ry_scores *s, uint32_t i, const ry_scores_options *o,
                                renyi_error *err)
{
    const ry_vit *v = &s->model->vit;
    metric *m = &s->metrics[i];
    ry_policy policy;
    RY_TRY(ry_scores_read(m->name, &policy, s->model, o->metrics[i], err));
    policy.cuts[0].keep = o->keep;
    s->n_kept = ry_policy_tokens_after(&policy, 0, (uint32_t)s->n_tokens, v->config.n_prefix) -
                v->config.n_prefix;
    for (uint32_t j = 0; j < i; j++)
        if (strcmp(m->name, s->metrics[j].name) == 0)
            return ry_fail(err, RENYI_ERR_ARG, -1, "metric \"%.80s\" is given twice", m->name);
    RY_TRY(ry_policy_pruner(&m->pruner, &policy, &v->config, v->n_patches, s->max_batch,
                            s->model->level, &s->model->al, err));
    ry_metric_needs(m->pruner, &m->needs);
    return RENYI_OK;
}

static renyi_status take_memory(ry_scores *s, renyi_error *err)
{
    const ry_vit *v = &s->model->vit;
    const renyi_allocator *al = &s->model->al;
    const size_t each = (size_t)s->max_batch * s->n_metrics; /* 2^12 x 2^6 at most */
    scratch measured;
    s->arena_each = lay_out(s, NULL, &measured);
    if (s->arena_each == SIZE_MAX) return ry_fail_nomem(err, SIZE_MAX);
    s->arena = ry_alloc(al, each, s->arena_each);
    s->scores = ry_alloc(al, each, sizeof *s->scores * v->config.n_blocks * v->n_patches);
    s->logits = ry_alloc(al, s->max_batch,
                         sizeof *s->logits * ry_vit_outputs(&v->config, RENYI_OUTPUT_AUTO));
    s->image_keys = ry_calloc(al, s->max_batch, sizeof *s->image_keys);
    if (s->arena && s->scores && s->logits && s->image_keys) return RENYI_OK;
    return ry_fail_nomem(err, each * s->arena_each);
}

static renyi_status fill_scores(ry_scores *s, const ry_scores_options *o, renyi_error *err)
{
    const ry_vit *v = &s->model->vit;
    if (!(o->keep > 0.0 && o->keep <= 1.0))
        return ry_fail(err, RENYI_ERR_ARG, -1, "keep %g; above 0 and at most 1 is allowed",
                       o->keep);
    if (!o->n_metrics || o->n_metrics > RY_MAX_METRICS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u metrics; 1 to %d are allowed", o->n_metrics,
                       RY_MAX_METRICS);
    s->metrics = ry_calloc(&s->model->al, o->n_metrics, sizeof *s->metrics);
    if (!s->metrics) return ry_fail_nomem(err, o->n_metrics * sizeof *s->metrics);
    s->n_metrics = o->n_metrics;
    for (uint32_t i = 0; i < s->n_metrics; i++) RY_TRY(open_metric(s, i, o, err));
    RY_TRY(take_memory(s, err));
    s->watch = o->watch;
    s->user = o->user;
    s->hook = (ry_token_hook){
        scores_needs, metric_tiles, score_block, o->watch ? show_block : NULL, s, NULL};
    const ry_vit_plan_options plan = {.level = s->model->level,
                                      .hook = &s->hook,
                                      .max_batch = s->max_batch,
                                      .n_threads = o->n_threads,
                                      .all_rows = 1}; /* else the last block computes one row */
    return ry_vit_plan_new(&s->plan, v, &plan, &s->model->al, err);
}

renyi_status ry_scores_new(ry_scores **out, const renyi_model *m, const ry_scores_options *opt,
                           renyi_error *err)
{
    *out = NULL;
    ry_scores *s = ry_calloc(&m->al, 1, sizeof *s);
    if (!s) return ry_fail_nomem(err, sizeof *s);
    s->model = m;
    s->max_batch = opt->max_batch;
    s->n_tokens = (size_t)m->vit.config.n_prefix + m->vit.n_patches;
    ry_kernels_init(&s->kernels, m->level);
    ry_normalize_lut(s->lut, m->vit.config.preprocess.mean, m->vit.config.preprocess.std);
    const renyi_status st = fill_scores(s, opt, err);
    if (st) {
        ry_scores_free(s);
        return st;
    }
    *out = s;
    return RENYI_OK;
}

void ry_scores_free(ry_scores *s)
{
    if (!s) return;
    const renyi_allocator *al = &s->model->al;
    ry_vit_plan_free(s->plan, al);
    for (uint32_t i = 0; i < s->n_metrics; i++) ry_pruner_free(s->metrics[i].pruner, al);
    ry_free(al, s->metrics);
    ry_free(al, s->arena);
    ry_free(al, s->scores);
    ry_free(al, s->logits);
    ry_free(al, s->image_keys);
    ry_free(al, s);
}

/* ---- running ------------------------------------------------------------------------------- */

/* As in a session, so that `random` gives an image the same scores as in a policy. */
static void name_images(ry_scores *s, const void *input, size_t bytes_each, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        s->image_keys[i] = ry_hash((const unsigned char *)input + i * bytes_each, bytes_each);
    for (uint32_t m = 0; m < s->n_metrics; m++)
        ry_pruner_name_images(s->metrics[m].pruner, s->image_keys, n);
}

void ry_scores_run(ry_scores *s, const uint8_t *pixels, const float *chw, uint32_t n)
{
    const size_t side = s->model->vit.config.image_size, values = 3 * side * side;
    const ry_vit_input in = {
        .pixels = pixels, .chw = chw, .lut = (const float(*)[256])s->lut, .n = n};
    name_images(s, pixels ? (const void *)pixels : chw, pixels ? values : values * sizeof *chw, n);
    (void)!ry_vit_forward(s->plan, &in, s->logits); /* without a progress callback it cannot stop */
}

const float *ry_scores_get(const ry_scores *s, uint32_t image, uint32_t m, uint32_t block)
{
    return scores_at(s, image, m, block);
}

const float *ry_scores_logits(const ry_scores *s, uint32_t image)
{
    return s->logits + (size_t)image * s->plan->n_outputs;
}

uint32_t ry_scores_kept(const ry_scores *s) { return s->n_kept; }

const char *ry_scores_name(const ry_scores *s, uint32_t m) { return s->metrics[m].name; }
