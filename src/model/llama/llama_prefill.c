/* llama_prefill.c - reads rows with cuts between the stages: all rows pass one stage before the
 * rows that stay begin the next.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/llama/llama_plan.h"

#include <string.h>

/* A feed while it is read. */
typedef struct feed {
    ry_llama_plan *p;
    const renyi_lm_input *in;
    float *logits;
    renyi_progress progress;
    void *user;
    uint32_t n_fed;                        /* rows of the feed */
    uint32_t n, first, n_visual;           /* rows left, and the visual ones among them */
    uint32_t n_merged;                     /* of the visual ones: the last */
    uint32_t added[RY_LLAMA_MAX_CUTS + 1]; /* rows of each stage */
} feed;

/* ---- passes ---------------------------------------------------------------------------------- */

/* All rows through the layers of one stage, or through the beginning of its first. Returns 1 if
 * progress stops it. */
static int run_passes(feed *f, uint32_t stage, ry_llama_look *look, int only_looks)
{
    ry_llama_plan *p = f->p;
    const uint32_t L = p->model->config.n_layers, most = p->opt.max_rows;
    const ry_llama_stage *at = &p->stages[stage];
    const int is_last = stage + 1 == p->n_stages && !only_looks;
    ry_llama_pass pass = {.first_stage = stage, .end_stage = stage + 1, .only_looks = only_looks};
    for (uint32_t done = 0; done < f->n; done += (uint32_t)pass.n) {
        pass.n = f->n - done < most ? f->n - done : most;
        pass.in = stage || only_looks ? NULL : f->in + done;
        pass.x = p->stream + (size_t)done * p->model->config.dim;
        pass.rows = p->rows + done;
        pass.done = done;
        pass.logits = is_last && done + pass.n == f->n ? f->logits : NULL;
        pass.look = look;
        if (look) look->done = done;
        ry_llama_run_pass(p, &pass);
        if (!f->progress || only_looks) continue;
        const uint64_t layers = (uint64_t)(at->end - at->first) * (done + pass.n) / f->n;
        if (f->progress(f->user, (at->first + layers) * f->n_fed / L, f->n_fed)) return 1;
    }
    return 0;
}

/* ---- cuts ------------------------------------------------------------------------------------ */

static ry_llama_look look_of(const feed *f, const ry_llama_cut *cut)
{
    ry_llama_look look = {
        .layer = cut->look, .cut = cut, .first_visual = f->first, .n_visual = f->n_visual};
    if (cut->queries == RY_QUERIES_LAST) look.first_row = f->n - 1;
    if (cut->queries == RY_QUERIES_TEXT || cut->queries == RY_QUERIES_RATERS)
        look.first_row = f->first + f->n_visual;
    if (cut->queries == RY_QUERIES_RATERS) look.raters = f->p->raters;
    return look;
}

static void move_row(const ry_llama_plan *p, uint32_t to, uint32_t from)
{
    const size_t C = p->model->config.dim;
    memmove(p->stream + to * C, p->stream + from * C, C * sizeof *p->stream);
    p->rows[to] = p->rows[from];
}

/* Rows that stay, merged rows, rows after the image. A merged row has the number of the last visual
 * row, so that the sequence forgets it with the image. */
static void replace_rows(feed *f, const ry_llama_choice *c)
{
    const ry_llama_plan *p = f->p;
    const size_t C = p->model->config.dim;
    const uint32_t left = c->n_kept + c->n_merged, end = f->first + f->n_visual;
    const uint32_t number = p->rows[end - 1], merged = f->first + c->n_kept;
    uint32_t n_old = 0; /* merged rows that stay */
    for (uint32_t k = 0; k < c->n_kept; k++) {
        n_old += c->kept[k] >= f->n_visual - f->n_merged;
        if (c->kept[k] != k) move_row(p, f->first + k, f->first + c->kept[k]);
    }
    for (uint32_t k = 0; k < c->n_merged; k++) {
        memcpy(p->stream + (merged + k) * C, c->merged + k * C, C * sizeof *p->stream);
        p->rows[merged + k] = number;
    }
    for (uint32_t i = 0; left < f->n_visual && i < f->n - end; i++)
        move_row(p, f->first + left + i, end + i);
    f->n -= f->n_visual - left;
    f->n_visual = left;
    f->n_merged = n_old + c->n_merged;
}

static void make_cut(feed *f, uint32_t cut, const ry_llama_look *look)
{
    ry_llama_plan *p = f->p;
    const ry_llama_cuts *cuts = p->opt.cuts;
    const ry_llama_cut *c = &cuts->cut[cut];
    if (c->queries != RY_QUERIES_NONE) ry_llama_look_end(p, look);
    const uint32_t n_plain = f->n_visual - f->n_merged;
    for (uint32_t j = 0; j < f->n_visual; j++)
        p->place[j] = j < n_plain ? p->rows[f->first + j] - p->position - f->first : RENYI_NONE;
    const ry_llama_view view = {.cut = cut,
                                .n = f->n,
                                .first = f->first,
                                .n_visual = f->n_visual,
                                .place = p->place,
                                .score = c->queries == RY_QUERIES_NONE ? NULL : p->sums.score,
                                .key_sizes = c->key_sizes ? p->sums.key_sizes : NULL,
                                .x = p->stream,
                                .dim = p->model->config.dim,
                                .norm = p->model->norm,
                                .norm_eps = p->model->config.norm_eps};
    ry_llama_choice choice = {.kept = p->kept};
    cuts->choose(cuts->self, &view, &choice);
    p->choice_macs += choice.macs;
    replace_rows(f, &choice);
}

/* Products of the looking rows with the keys that they see; looking ahead, also those of queries,
 * keys and values, which are computed again for the rows that stay. */
static void count_look(const feed *f, const ry_llama_look *look, int looks_ahead)
{
    const ry_llama_config *c = &f->p->model->config;
    const double seen = (double)ry_llama_stage_of(f->p, look->layer)->n + f->n;
    const double rows = (double)f->n - look->first_row;
    const double pairs = rows * seen - rows * (rows - 1.0) / 2.0;
    if (look->cut->queries != RY_QUERIES_NONE) f->p->choice_macs += (double)ry_llama_q(c) * pairs;
    if (looks_ahead) f->p->choice_macs += (double)f->n * c->dim * (double)ry_llama_qkv(c);
}

/* One stage, and the cut after it. */
static int run_stage(feed *f, uint32_t stage)
{
    ry_llama_plan *p = f->p;
    const ry_llama_cut *cut = stage + 1 < p->n_stages ? &p->opt.cuts->cut[stage] : NULL;
    memcpy(p->stages[stage].rows + p->stages[stage].n, p->rows, f->n * sizeof *p->rows);
    f->added[stage] = f->n;
    if (!cut) return run_passes(f, stage, NULL, 0);
    ry_llama_look look = look_of(f, cut);
    const int looks = cut->queries != RY_QUERIES_NONE || cut->key_sizes;
    const int looks_ahead = looks && cut->look == cut->layer;
    count_look(f, &look, looks_ahead);
    ry_llama_look_begin(p, &look);
    if (run_passes(f, stage, looks && !looks_ahead ? &look : NULL, 0)) return 1;
    if (looks_ahead && run_passes(f, stage + 1, &look, 1)) return 1;
    make_cut(f, stage, &look);
    return 0;
}

/* ---- a feed ---------------------------------------------------------------------------------- */

static int has_raters(const ry_llama_cuts *cuts)
{
    for (uint32_t i = 0; i < cuts->n; i++)
        if (cuts->cut[i].queries == RY_QUERIES_RATERS) return 1;
    return 0;
}

static void find_visual_rows(feed *f)
{
    uint32_t end = f->n;
    while (!f->in[f->first].embedding) f->first++;
    while (!f->in[end - 1].embedding) end--;
    f->n_visual = end - f->first;
}

int ry_llama_prefill(ry_llama_plan *p, const renyi_lm_input *in, uint32_t n, float *logits,
                     renyi_progress progress, void *user)
{
    feed f = {.p = p, .in = in, .logits = logits, .progress = progress, .user = user};
    f.n = f.n_fed = n;
    p->choice_macs = 0.0;
    find_visual_rows(&f);
    if (has_raters(p->opt.cuts)) {
        ry_llama_find_raters(p, in, n, f.first, f.n_visual);
        const double text = (double)(n - f.first - f.n_visual);
        p->choice_macs += (double)f.n_visual * text * p->model->config.dim;
    }
    for (uint32_t i = 0; i < n; i++) p->rows[i] = p->position + i;
    for (uint32_t s = 0; s < p->n_stages; s++)
        if (run_stage(&f, s)) return 1;
    for (uint32_t s = 0; s < p->n_stages; s++) p->stages[s].n += f.added[s];
    p->position += n;
    return 0;
}
