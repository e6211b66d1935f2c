/* viz_squares.c - what the policies of a LLaVA did to the squares of one image: states of the
 * patches, scores, counts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/viz/viz_squares.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a policy did to the patches -------------------------------------------------------- */

static renyi_viz_answer cost_only(double macs)
{
    return (renyi_viz_answer){.macs = macs, .ms = NAN};
}

static int is_inside(const renyi_visual_square *at, uint32_t patch, uint32_t grid)
{
    const uint32_t x = patch % grid, y = patch / grid;

    return x >= at->first_column && x - at->first_column < at->n_columns && y >= at->first_line &&
           y - at->first_line < at->n_lines;
}

/* The rows of a smaller picture are no patches of this one. */
static int has_own_picture(const char *policy) { return strncmp(policy, "downsample ", 11) == 0; }

/* Marks the patches that are a row of their own. Returns the rows that are of one patch. */
static uint32_t mark_kept(renyi_viz_step *s, uint8_t *state, uint32_t *group, uint32_t *gone_at,
                          const renyi_visual_tokens *t, uint32_t first, uint32_t n_patches)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->n; i++) {
        const uint32_t at = t->kept[i] - first;
        if (t->kept[i] < first || at >= n_patches) continue;
        n++;
        if (state[at] == RENYI_VIZ_KEPT) continue;
        state[at] = RENYI_VIZ_KEPT;
        group[at] = at;
        gone_at[at] = RENYI_NONE;
        s->n_groups++;
    }
    return n;
}

/* A patch of a row is kept. The others are fused if the square has a row made of several patches,
 * else dropped. Those of the border are dropped. */
static renyi_viz_step make_step(const viz_picture *p, uint32_t square, const viz_run *run,
                                const char *policy, uint32_t n_rows)
{
    const viz_square *q = &p->squares[square];
    const uint32_t n = p->n_patches, grid = q->r.photo.grid;
    uint8_t *state = cli_alloc(n, 1), *rescued = cli_alloc(n, 1);
    uint32_t *group = cli_alloc(n, sizeof *group), *gone_at = cli_alloc(n, sizeof *gone_at);
    float *score = cli_alloc(n, sizeof *score);
    renyi_viz_step step = {.layer = p->layers[0],
                           .is_cut = n_rows < q->at.n_columns * q->at.n_lines,
                           .state = state,
                           .rescued = rescued,
                           .group = group,
                           .gone_at = gone_at,
                           .score = score,
                           .n_tokens = n_rows,
                           .macs = run->macs};
    uint32_t n_own = 0;

    memset(state, RENYI_VIZ_DROPPED, n);
    for (uint32_t i = 0; i < n; i++) {
        group[i] = RENYI_NONE;
        gone_at[i] = step.layer;
        score[i] = run->t.scores ? run->t.scores[(size_t)square * n + i] : NAN;
    }
    if (!has_own_picture(policy))
        n_own = mark_kept(&step, state, group, gone_at, &run->t, square * n, n);
    for (uint32_t i = 0; i < n; i++)
        if (n_rows > n_own && state[i] == RENYI_VIZ_DROPPED && is_inside(&q->at, i, grid))
            state[i] = RENYI_VIZ_FUSED;
    uint32_t *counts[] = {&step.n_kept, &step.n_merged, &step.n_fused, &step.n_dropped};
    for (uint32_t i = 0; i < n; i++) ++*counts[state[i]];
    return step;
}

static void free_step(const renyi_viz_step *s)
{
    free((void *)(uintptr_t)s->state);
    free((void *)(uintptr_t)s->rescued);
    free((void *)(uintptr_t)s->group);
    free((void *)(uintptr_t)s->gone_at);
    free((void *)(uintptr_t)s->score);
}

/* ---- scores ---------------------------------------------------------------------------------- */

typedef struct ranked {
    float score;
    uint32_t patch;
} ranked;

/* The best first; ties: the lower patch. */
static int by_score(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->patch > y->patch) - (x->patch < y->patch);
}

/* Patches of the border have no score: their own is not used for a visual token. */
static renyi_viz_map make_map(const viz_square *q, const float *scores, uint32_t n)
{
    float *copy = cli_alloc(n, sizeof *copy);
    uint32_t *rank = cli_alloc(n, sizeof *rank), n_finite = 0;
    ranked *order = cli_alloc(n, sizeof *order);
    renyi_viz_map map = {.score = copy, .rank = rank};

    for (uint32_t i = 0; i < n; i++) {
        copy[i] = is_inside(&q->at, i, q->r.photo.grid) ? scores[i] : NAN;
        order[i] = (ranked){isfinite(copy[i]) ? copy[i] : -INFINITY, i};
        n_finite += isfinite(copy[i]) != 0;
    }
    qsort(order, n, sizeof *order, by_score);
    for (uint32_t i = 0; i < n; i++) rank[order[i].patch] = i;
    if (n_finite) {
        map.high = order[n_finite / 100].score;
        map.low = order[n_finite - 1 - n_finite / 100].score;
    }
    free(order);
    return map;
}

/* ---- one policy ------------------------------------------------------------------------------ */

static void count_tokens(viz_picture *p, size_t row, const renyi_visual_tokens *t)
{
    p->n_tokens[row] = t->n;
    for (uint32_t i = 0; i < t->n; i++) p->n_newlines[row] += t->kept[i] == RENYI_NEWLINE;
}

static void add_to_square(viz_picture *p, uint32_t square, const viz_run *run, const char *label,
                          uint32_t n_rows)
{
    viz_square *q = &p->squares[square];
    const uint32_t i = q->r.n_rows++, m = q->r.n_metrics;
    const char *full = p->policies.items[i];

    q->steps[i] = make_step(p, square, run, full, n_rows);
    q->rows[i] = (renyi_viz_row){.policy = full,
                                 .label = label,
                                 .metric = run->t.scores ? m : RENYI_NONE,
                                 .norm = RENYI_NONE,
                                 .keep = NAN,
                                 .steps = &q->steps[i],
                                 .answer = cost_only(run->macs)};
    if (!run->t.scores) return;
    q->maps[m] = make_map(q, run->t.scores + (size_t)square * p->n_patches, p->n_patches);
    q->metrics[m] =
        (renyi_viz_metric){.name = full, .label = label, .order = NAN, .maps = &q->maps[m]};
    q->r.n_metrics++;
}

/* Visual tokens of a square. The language model sees no squares: those of its patches that stay. */
static renyi_status count_rows(const viz_run *run, uint32_t square, uint32_t n_patches,
                               uint32_t *out, renyi_error *err)
{
    renyi_visual_square at;

    *out = 0;
    if (run->session) {
        const renyi_status st = renyi_visual_session_get_square(run->session, square, &at, err);
        if (st == RENYI_OK) *out = at.n_rows;
        return st;
    }
    for (uint32_t i = 0; i < run->t.n; i++)
        *out += run->t.kept[i] < RENYI_NEWLINE && run->t.kept[i] / n_patches == square;
    return RENYI_OK;
}

renyi_status viz_picture_add(viz_picture *p, const viz_run *run, const char *label,
                             renyi_error *err)
{
    const renyi_visual_tiles *t = &run->t.tiles;
    const size_t row = p->policies.count;

    if (t->across != p->tiles.across || t->down != p->tiles.down) { /* a smaller picture */
        snprintf(err->message, sizeof err->message,
                 "'%s' reads this image in %u x %u tiles, without pruning it is %u x %u: they "
                 "cannot be drawn side by side",
                 label, t->across, t->down, p->tiles.across, p->tiles.down);
        return err->code = RENYI_ERR_UNSUPPORTED;
    }
    cli_strings_add(&p->policies, cli_copy(run->policy));
    count_tokens(p, row + 1, &run->t);
    for (uint32_t i = 0; i < p->n_squares; i++) {
        uint32_t n_rows;
        const renyi_status st = count_rows(run, i, p->n_patches, &n_rows, err);
        if (st) return st;
        add_to_square(p, i, run, label, n_rows);
    }
    return RENYI_OK;
}

/* ---- one image ------------------------------------------------------------------------------- */

static renyi_viz_result empty_result(const viz_square *q, const viz_picture *p,
                                     const renyi_visual_info *info, const char *model, double macs)
{
    return (renyi_viz_result){.photo = {.name = q->name,
                                        .rgb = q->pixels,
                                        .size = info->image_size,
                                        .grid = info->image_size / info->patch_size,
                                        .patch = info->patch_size},
                              .model = model,
                              .n_blocks = info->n_blocks_run,
                              .n_patches = info->n_patches,
                              .n_prefix = 1,
                              .n_heads = info->n_heads,
                              .n_layers = 1,
                              .layers = p->layers,
                              .metrics = q->metrics,
                              .rows = q->rows,
                              .dense = cost_only(macs)};
}

static void fill_square(viz_square *q, size_t n_policies)
{
    const size_t bytes = (size_t)q->at.size * q->at.size * 3;

    q->pixels = cli_alloc(bytes, 1);
    memcpy(q->pixels, q->at.pixels, bytes);
    q->at.pixels = q->pixels;
    q->rows = cli_alloc(n_policies, sizeof *q->rows);
    q->steps = cli_alloc(n_policies, sizeof *q->steps);
    q->metrics = cli_alloc(n_policies, sizeof *q->metrics);
    q->maps = cli_alloc(n_policies, sizeof *q->maps);
}

static void fill_tiles(viz_picture *p, const renyi_visual_tiles *t)
{
    p->tile_results = cli_alloc(p->n_squares, sizeof *p->tile_results);
    for (uint32_t i = 1; i < p->n_squares; i++) p->tile_results[i - 1] = &p->squares[i].r;
    p->tiles = (renyi_viz_tiles){.struct_size = sizeof p->tiles,
                                 .across = t->across,
                                 .down = t->down,
                                 .first_column = t->first_column,
                                 .first_line = t->first_line,
                                 .n_columns = t->n_columns,
                                 .n_lines = t->n_lines,
                                 .squares = p->tile_results,
                                 .n_tokens = p->n_tokens,
                                 .n_newlines = p->n_newlines};
}

renyi_status viz_picture_new(viz_picture **out, const renyi_visual_info *info, const viz_run *dense,
                             size_t n_policies, const char *model, const char *name,
                             renyi_error *err)
{
    viz_picture *p = *out = cli_alloc(1, sizeof *p);

    p->layers[0] = info->n_blocks_run - 1;
    p->n_patches = info->n_patches;
    p->n_tokens = cli_alloc(n_policies + 1, sizeof *p->n_tokens);
    p->n_newlines = cli_alloc(n_policies + 1, sizeof *p->n_newlines);
    p->squares = cli_alloc(dense->t.n_squares, sizeof *p->squares);
    for (; p->n_squares < dense->t.n_squares; p->n_squares++) {
        viz_square *q = &p->squares[p->n_squares];
        const renyi_status st =
            renyi_visual_session_get_square(dense->session, p->n_squares, &q->at, err);
        if (st) return st;
        fill_square(q, n_policies);
        q->name = p->n_squares ? cli_format("tile %u of %s", p->n_squares, name) : cli_copy(name);
        q->r = empty_result(q, p, info, model, dense->macs);
    }
    count_tokens(p, 0, &dense->t);
    if (dense->t.tiles.across) fill_tiles(p, &dense->t.tiles);
    return RENYI_OK;
}

void viz_picture_free(viz_picture *p)
{
    if (!p) return;
    for (uint32_t k = 0; k < p->n_squares; k++) {
        viz_square *q = &p->squares[k];
        for (uint32_t i = 0; i < q->r.n_rows; i++) free_step(&q->steps[i]);
        for (uint32_t i = 0; i < q->r.n_metrics; i++) {
            free((void *)(uintptr_t)q->maps[i].score);
            free((void *)(uintptr_t)q->maps[i].rank);
        }
        free(q->name);
        free(q->pixels);
        free(q->rows);
        free(q->steps);
        free(q->metrics);
        free(q->maps);
    }
    free(p->squares);
    free((void *)p->tile_results);
    free(p->n_tokens);
    free(p->n_newlines);
    cli_strings_free(&p->policies);
    free(p);
}
