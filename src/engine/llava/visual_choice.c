/* visual_choice.c - binds a rule behind the tower to a session: copies what the rule reads out of
 * the blocks of the tower, runs the rule on all threads, and projects the rows that it chose.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/llava/visual_choice.h"

#include "base/alloc.h"
#include "base/cpu.h"
#include "base/status.h"
#include "kernels/rows/rows.h"

#include <string.h>

/* What one block of the tower shows of an image. */
typedef struct seen_block {
    uint32_t block;             /* RENYI_NONE = no block */
    float *class_row, *columns; /* [N] */
} seen_block;

enum { LAST, EARLY, SEEN };

struct ry_visual_choice {
    ry_visual_rule *rule;
    ry_visual_rule_needs needs;
    const ry_visual *side;
    ry_relevance *relevance; /* NULL = not needed */
    ry_token_hook hook;      /* copies and changes nothing */
    seen_block seen[SEEN];
    float *keys;   /* [N, C / heads] of the last block, the mean over its heads */
    float *floats; /* the memory of all these */
    size_t n_floats;
};

/* ---- what the blocks show ------------------------------------------------------------------ */

static const seen_block *seen_of(const ry_visual_choice *c, uint32_t block)
{
    for (int i = 0; i < SEEN; i++)
        if (c->seen[i].block == block) return &c->seen[i];
    return NULL;
}

static void hook_needs(const void *self, uint32_t block, uint32_t n_tokens, ry_block_needs *out)
{
    const ry_visual_choice *c = self;
    *out = (ry_block_needs){.n_after = n_tokens};
    if (!seen_of(c, block)) return;
    out->look = 1;
    out->what =
        (c->needs.class_row ? RY_NEED_CLASS_ROW : 0u) | (c->needs.columns ? RY_NEED_COLUMNS : 0u);
    out->columns = c->needs.spec;
}

static void copy_keys(float *keys, const ry_block_view *v)
{
    const size_t C = v->dim, d = C / v->n_heads;
    for (size_t j = 0; j < v->n_tokens; j++) {
        const float *from = v->qkv + j * v->qkv_row + C;
        memset(keys + j * d, 0, d * sizeof *keys);
        for (size_t h = 0; h < v->n_heads; h++) ry_row_add(keys + j * d, from + h * d, 1.0f, d);
    }
}

static void hook_watch(void *self, const ry_block_view *v, const ry_cut *cut)
{
    ry_visual_choice *c = self;
    const seen_block *s = seen_of(c, v->block);
    const size_t bytes = v->n_tokens * sizeof(float);
    (void)cut;
    if (!s) return;
    if (c->needs.class_row) memcpy(s->class_row, v->class_row, bytes);
    if (c->needs.columns) memcpy(s->columns, v->columns, bytes);
    if (c->keys && s == &c->seen[LAST]) copy_keys(c->keys, v);
}

/* ---- making -------------------------------------------------------------------------------- */

static renyi_status take_memory(ry_visual_choice *c, const renyi_allocator *al, renyi_error *err)
{
    const ry_vit_config *v = &c->side->config.tower;
    const size_t N = (size_t)c->side->tower.n_patches + v->n_prefix, d = v->dim / v->n_heads;
    c->n_floats = N * (2 * SEEN + (c->needs.keys ? d : 0));
    float *at = c->floats = ry_alloc(al, c->n_floats, sizeof *at);
    if (!at) return ry_fail_nomem(err, c->n_floats * sizeof *at);
    for (int i = 0; i < SEEN; i++) {
        c->seen[i].class_row = at + 2 * (size_t)i * N;
        c->seen[i].columns = c->seen[i].class_row + N;
    }
    if (c->needs.keys) c->keys = at + 2 * (size_t)SEEN * N;
    return RENYI_OK;
}

static renyi_status make_relevance(ry_visual_choice *c, const ry_visual_choice_spec *spec,
                                   const renyi_allocator *al, renyi_error *err)
{
    if (!c->needs.relevance) return RENYI_OK;
    if (!spec->relevance)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "cdpruner metric=text compares patches with the question by the CLIP that "
                       "the image tower is from: give it (--text-tower DIR; in Python "
                       "text_tower; in C renyi_relevance_open), or say metric=cls or metric=col");
    return ry_relevance_new(&c->relevance, spec->relevance, spec->side, spec->n_threads,
                            spec->level, al, err);
}

static renyi_status fill_choice(ry_visual_choice *c, const ry_visual_choice_spec *spec,
                                const renyi_allocator *al, renyi_error *err)
{
    const ry_visual *side = spec->side;
    const ry_visual_rule_needs *n = &c->needs;
    const ry_visual_rule_spec rule = {.policy = spec->policy,
                                      .n_patches = side->tower.n_patches,
                                      .dim = side->config.tower.dim,
                                      .n_threads = spec->n_threads,
                                      .level = spec->level,
                                      .n_heads = side->config.tower.n_heads,
                                      .lm_dim = side->config.lm_dim};
    ry_visual_rule_needs_of(&c->needs, spec->policy);
    if (n->behind && !side->qk)
        return ry_fail(
            err, RENYI_ERR_ARG, -1,
            "prumerge scores by the block after the one that the features come from; this "
            "model takes them from the last of its %u blocks; use vispruner",
            side->config.n_blocks);
    RY_TRY(make_relevance(c, spec, al, err));
    RY_TRY(ry_visual_rule_new(&c->rule, &rule, al, err));
    const int reads_last = !n->behind && (n->class_row || n->columns || n->keys);
    c->seen[LAST].block = reads_last ? side->config.tower.n_blocks - 1 : RENYI_NONE;
    c->seen[EARLY].block = n->early == c->seen[LAST].block ? RENYI_NONE : n->early;
    c->hook = (ry_token_hook){hook_needs, NULL, NULL, hook_watch, c, NULL};
    return take_memory(c, al, err);
}

renyi_status ry_visual_choice_new(ry_visual_choice **out, const ry_visual_choice_spec *spec,
                                  const renyi_allocator *al, renyi_error *err)
{
    *out = NULL;
    ry_visual_choice *c = ry_calloc(al, 1, sizeof *c);
    if (!c) return ry_fail_nomem(err, sizeof *c);
    c->side = spec->side;
    const renyi_status st = fill_choice(c, spec, al, err);
    if (st) {
        ry_visual_choice_free(c, al);
        return st;
    }
    *out = c;
    return RENYI_OK;
}

void ry_visual_choice_free(ry_visual_choice *c, const renyi_allocator *al)
{
    if (!c) return;
    ry_visual_rule_free(c->rule, al);
    ry_relevance_free(c->relevance, al);
    ry_free(al, c->floats);
    ry_free(al, c);
}

size_t ry_visual_choice_bytes(const ry_visual_choice *c)
{
    return ry_visual_rule_bytes(c->rule) + c->n_floats * sizeof(float) +
           (c->relevance ? ry_relevance_bytes(c->relevance) : 0);
}

const ry_token_hook *ry_visual_choice_hook(const ry_visual_choice *c)
{
    for (int i = 0; i < SEEN; i++)
        if (c->seen[i].block != RENYI_NONE) return &c->hook;
    return NULL;
}

int ry_visual_choice_looks_behind(const ry_visual_choice *c) { return c->needs.behind; }
ry_relevance *ry_visual_choice_relevance(const ry_visual_choice *c) { return c->relevance; }
const ry_visual_rule *ry_visual_choice_rule(const ry_visual_choice *c) { return c->rule; }

void ry_visual_choice_set_count(ry_visual_choice *c, uint32_t count)
{
    ry_visual_rule_set_count(c->rule, count);
}

/* ---- running ------------------------------------------------------------------------------- */

/* What the rule sees of the last image: rows and scores from the first patch on. */
static ry_visual_rule_view view_of(const ry_visual_choice *c, const ry_visual_plan *p)
{
    const size_t C = c->side->config.tower.dim, prefix = c->side->config.tower.n_prefix;
    const seen_block *last = &c->seen[LAST];
    const seen_block *early = c->seen[EARLY].block == RENYI_NONE ? last : &c->seen[EARLY];
    const float *class_row = c->needs.behind ? p->class_row : last->class_row;
    const float *columns = c->needs.behind ? p->columns : last->columns;
    ry_visual_rule_view v = {.x = p->x + prefix * C,
                             .class_row = class_row + prefix,
                             .columns = columns + prefix,
                             .class_column = columns[0],
                             .early_class_row = early->class_row + prefix,
                             .early_columns = early->columns + prefix,
                             .projected = p->rows};
    if (c->needs.behind) {
        v.key_row = ry_visual_qk_row(p);
        v.keys = p->qk_rows + prefix * v.key_row + C;
    } else if (c->keys) {
        v.key_row = C / c->side->config.tower.n_heads;
        v.keys = c->keys + prefix * v.key_row;
    }
    return v;
}

typedef struct job {
    ry_visual_rule *rule;
    ry_visual_rule_view view;
    float *rows;
} job;

static void choose_on_thread(ry_runner *r, void *user)
{
    const job *j = user;
    for (uint32_t phase = 0; phase < RY_VISUAL_PHASES; phase++) {
        ry_step step = ry_runner_step(r, ry_visual_rule_tiles(j->rule, phase));
        for (size_t t; ry_step_next(&step, &t);)
            ry_visual_rule_work(j->rule, &j->view, j->rows, phase, (uint32_t)t, r->thread);
        ry_step_end(&step);
    }
}

/* Rows of all patches, for a rule that compares them. */
static void project_all(const ry_visual_choice *c, ry_visual_plan *p)
{
    const size_t C = c->side->config.tower.dim, P = c->side->tower.n_patches;
    memcpy(p->features, p->x + c->side->config.tower.n_prefix * C, P * C * sizeof *p->features);
    ry_visual_project(p, P);
}

/* The projected rows of the kept patches move to the front; kept ascends, so none is overwritten
 * before it has moved. */
static void gather_projected(const ry_visual_choice *c, ry_visual_plan *p, uint32_t n)
{
    const uint32_t *kept = ry_visual_rule_kept(c->rule);
    const size_t D = c->side->config.lm_dim;
    for (uint32_t i = 0; i < n; i++)
        if (kept[i] != i) memcpy(p->rows + i * D, p->rows + kept[i] * D, D * sizeof *p->rows);
}

uint32_t ry_visual_choice_run(ry_visual_choice *c, ry_visual_plan *plan, uint64_t image_key)
{
    if (c->needs.behind) ry_visual_look(plan, c->needs.columns ? &c->needs.spec : NULL);
    if (c->needs.projected) project_all(c, plan);
    const double begin = ry_clock();
    job j = {c->rule, view_of(c, plan), plan->features};
    j.view.image_key = image_key;
    if (c->relevance) j.view.relevance = ry_relevance_run(c->relevance, plan);
    ry_team_run(&plan->team, choose_on_thread, &j);
    plan->work.tower_macs += ry_visual_rule_macs(c->rule);
    plan->work.choice_seconds += ry_clock() - begin;
    return ry_visual_rule_count(c->rule);
}

void ry_visual_choice_project(const ry_visual_choice *c, ry_visual_plan *plan, uint32_t n)
{
    if (c->needs.projected)
        gather_projected(c, plan, n);
    else
        ry_visual_project(plan, n);
}
