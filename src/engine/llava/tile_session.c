/* tile_session.c - visual tokens of a LLaVA-NeXT: tower and pruning of the base and of each tile,
 * and the order in which the language model reads their rows.
 *
 * Base and tiles are squares; square 0 is the base. Patch p of square t has the number
 * t * patches + p. Rows of border patches are removed after pruning.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "engine/llava/visual_session.h"

#include <math.h>
#include <string.h>

struct ry_tile_session {
    void *arena;
    size_t arena_bytes;
    uint32_t n_squares; /* T: the most that an image has */
    uint8_t *pixels;    /* [T, S, S, 3] */
    /* What the squares gave: */
    float *features;  /* [T * (P + 1), C] */
    uint32_t *number; /* [T * (P + 1)] of the patch; RENYI_NONE for a merged row */
    uint32_t n_base, n_rows;
    float *scores; /* [T, P] */
    /* In the order of the language model: */
    uint32_t *row_at; /* [lines, columns] of the whole grid: a row above, RENYI_NONE for none */
    uint32_t *rest;   /* [T * (P + 1)] rows of tiles that have no place */
    uint32_t *kept;   /* [n_most] */
    ry_tile_plan plan;
    renyi_visual_session *session;    /* whose progress is reported */
    uint32_t square, n_now;           /* the square that runs, and how many the image has */
    uint32_t n_done;                  /* squares of the last image; 0 = there is none */
    uint32_t count[1 + RY_MAX_TILES]; /* rows that each gave */
    uint32_t share[1 + RY_MAX_TILES]; /* patches that a rule behind the tower may keep of each; with
                                         budget=tile not used */
};

/* ---- making -------------------------------------------------------------------------------- */

static void lay_out(ry_arena *a, ry_tile_session *t, const renyi_visual_session *s)
{
    const ry_visual_config *c = &s->side->config;
    const size_t T = t->n_squares, S = c->tower.image_size, C = c->tower.dim;
    const size_t P = s->side->tower.n_patches;
    t->features = RY_TAKE(a, T * (P + 1) * C, float);
    t->scores = RY_TAKE(a, T * P, float);
    t->number = RY_TAKE(a, T * (P + 1), uint32_t);
    t->row_at = RY_TAKE(a, (T - 1) * P, uint32_t);
    t->rest = RY_TAKE(a, T * (P + 1), uint32_t);
    t->kept = RY_TAKE(a, s->n_most, uint32_t);
    t->pixels = RY_TAKE(a, T * S * S * 3, uint8_t);
}

renyi_status ry_tile_session_new(renyi_visual_session *s, renyi_error *err)
{
    const renyi_allocator *al = &s->visual->al;
    ry_tile_session *t = s->tiles = ry_calloc(al, 1, sizeof *t);
    if (!t) return ry_fail_nomem(err, sizeof *t);
    t->session = s;
    t->n_squares = ry_tile_most_squares(&s->side->config.tiles);
    ry_arena measure = {0};
    lay_out(&measure, t, s);
    t->arena = measure.overflow ? NULL : ry_alloc(al, measure.used, 1);
    if (!t->arena) return ry_fail_nomem(err, measure.overflow ? SIZE_MAX : measure.used);
    t->arena_bytes = measure.used;
    ry_arena bind = {t->arena, 0, measure.used, 0};
    lay_out(&bind, t, s);
    return RENYI_OK;
}

void ry_tile_session_free(ry_tile_session *t, const renyi_allocator *al)
{
    if (!t) return;
    ry_free(al, t->arena);
    ry_free(al, t);
}

size_t ry_tile_session_bytes(const ry_tile_session *t) { return t ? t->arena_bytes : 0; }

/* ---- the budget ---------------------------------------------------------------------------- */

uint32_t ry_tile_session_most(const renyi_visual_session *s, uint32_t each)
{
    const ry_visual_config *c = &s->side->config;
    const int ends = c->ends_lines && !s->policy.drops_newlines;
    const uint32_t most = ry_tile_most_rows(&c->tiles, each, ends);
    const uint32_t squares = ry_tile_most_squares(&c->tiles);
    if (!s->policy.over_image) return most;
    /* a rule may add a row to each square */
    const uint32_t shared =
        squares + ry_tile_most_rows(&c->tiles, 0, ends) +
        ry_policy_visual_count(&s->policy, squares * c->tiles.patches * c->tiles.patches);
    return shared < most ? shared : most;
}

/* Shares the budget of an image in proportion to the visual tokens of base and tiles: rounded down,
 * then one more to the largest remainders, of equal ones to the first. A budget for all visual
 * tokens keeps every patch. */
static void share_budget(ry_tile_session *t, const ry_policy *policy, uint32_t patches)
{
    uint64_t rest[1 + RY_MAX_TILES];
    uint32_t n[1 + RY_MAX_TILES], all = 0;
    for (uint32_t i = 0; i < t->n_now; i++) {
        const ry_tile_window w = ry_tile_window_of(&t->plan, patches, i);
        all += n[i] = w.columns * w.lines;
    }
    const uint32_t count = ry_policy_visual_count(policy, all);
    const uint64_t total = count ? count : 1; /* keep was checked for the largest image */
    uint32_t left = (uint32_t)total;
    if (total >= all) { /* of fewer, a rule that sees border patches would lose some to them */
        for (uint32_t i = 0; i < t->n_now; i++) t->share[i] = patches * patches;
        return;
    }
    for (uint32_t i = 0; i < t->n_now; i++) {
        t->share[i] = (uint32_t)(total * n[i] / all);
        rest[i] = total * n[i] % all;
        left -= t->share[i];
    }
    for (; left; left--) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < t->n_now; i++)
            if (rest[i] > rest[best]) best = i;
        t->share[best]++;
        rest[best] = 0;
    }
}

/* ---- the squares --------------------------------------------------------------------------- */

/* All squares are one run to the caller. */
static int report(void *user, uint64_t done, uint64_t total)
{
    const ry_tile_session *t = user;
    const renyi_visual_session *s = t->session;
    return s->progress(s->progress_user, t->square * total + done, t->n_now * total);
}

static int is_in(const ry_tile_window *w, uint32_t patch, uint32_t patches)
{
    const uint32_t x = patch % patches, y = patch / patches;
    return x >= w->left && x - w->left < w->columns && y >= w->top && y - w->top < w->lines;
}

/* Adds the rows of the square that just ran, without those of its border. A merged row stays. */
static void take_rows(renyi_visual_session *s, uint32_t n)
{
    ry_tile_session *t = s->tiles;
    const ry_visual_config *c = &s->side->config;
    const size_t C = c->tower.dim;
    const uint32_t P = s->side->tower.n_patches, G = c->tiles.patches;
    const ry_tile_window w = ry_tile_window_of(&t->plan, G, t->square);
    const uint32_t before = t->n_rows;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t patch = s->kept[i];
        if (patch != RENYI_NONE && !is_in(&w, patch, G)) continue;
        memcpy(t->features + t->n_rows * C, s->plan->features + i * C, C * sizeof(float));
        t->number[t->n_rows++] = patch == RENYI_NONE ? patch : t->square * P + patch;
    }
    t->count[t->square] = t->n_rows - before;
    const float *scores = ry_visual_scores(s);
    if (scores) memcpy(t->scores + (size_t)t->square * P, scores, P * sizeof(float));
}

static renyi_status run_squares(renyi_visual_session *s, renyi_error *err)
{
    ry_tile_session *t = s->tiles;
    const size_t S = s->side->config.tower.image_size;
    const size_t n_scores = (size_t)t->n_squares * s->side->tower.n_patches;
    for (size_t i = 0; i < n_scores; i++) t->scores[i] = NAN;
    t->n_rows = t->n_base = 0;
    t->n_now = 1 + t->plan.across * t->plan.down;
    if (s->policy.over_image) share_budget(t, &s->policy, s->side->config.tiles.patches);
    for (t->square = 0; t->square < t->n_now; t->square++) {
        const ry_tile_window w =
            ry_tile_window_of(&t->plan, s->side->config.tiles.patches, t->square);
        const ry_visual_square square = {.pixels = t->pixels + t->square * S * S * 3,
                                         .progress = s->progress ? report : NULL,
                                         .progress_user = t};
        uint32_t n;
        t->count[t->square] = 0;
        if (!w.columns || !w.lines) continue; /* a tile of nothing but border */
        if (s->policy.over_image) {
            if (!t->share[t->square]) continue;
            ry_visual_choice_set_count(s->choice, t->share[t->square]);
        }
        RY_TRY(ry_visual_run_square(s, &square, &n, err));
        take_rows(s, n);
        if (!t->square) t->n_base = t->n_rows;
    }
    return RENYI_OK;
}

/* ---- the order of the rows ----------------------------------------------------------------- */

/* Where a patch of a tile is in the whole grid. */
static size_t grid_place(const ry_tile_session *t, uint32_t number, uint32_t P, uint32_t G)
{
    const uint32_t tile = number / P - 1, patch = number % P;
    const size_t line = (size_t)(tile / t->plan.across) * G + patch / G;
    return line * t->plan.across * G + tile % t->plan.across * G + patch % G;
}

/* Appends row i of the squares as row n of the image. */
static void emit(renyi_visual_session *s, uint32_t i, uint32_t n)
{
    const size_t C = s->side->config.tower.dim;
    memcpy(s->plan->features + n * C, s->tiles->features + i * C, C * sizeof(float));
    s->tiles->kept[n] = s->tiles->number[i];
}

/* Marks where the rows of tiles are. Rows that have no place, or the place of another row, are
 * listed in t->rest; returns how many. */
static uint32_t map_rows(renyi_visual_session *s)
{
    ry_tile_session *t = s->tiles;
    const uint32_t P = s->side->tower.n_patches, G = s->side->config.tiles.patches;
    uint32_t n_rest = 0;
    memset(t->row_at, 0xff, (size_t)(t->n_now - 1) * P * sizeof *t->row_at); /* RENYI_NONE */
    for (uint32_t i = t->n_base; i < t->n_rows; i++) {
        uint32_t *at =
            t->number[i] == RENYI_NONE ? NULL : &t->row_at[grid_place(t, t->number[i], P, G)];
        if (at && *at == RENYI_NONE)
            *at = i;
        else
            t->rest[n_rest++] = i;
    }
    return n_rest;
}

/* One line of the grid; a line that has patches ends with the newline row. Returns the rows. */
static uint32_t emit_line(renyi_visual_session *s, const uint32_t *line, uint32_t columns,
                          uint32_t n)
{
    const size_t C = s->side->config.tower.dim;
    const uint32_t first = n;
    for (uint32_t x = 0; x < columns; x++)
        if (line[x] != RENYI_NONE) emit(s, line[x], n++);
    if (n == first || !s->side->newline || s->policy.drops_newlines) return n;
    memset(s->plan->features + n * C, 0, C * sizeof(float));
    s->tiles->kept[n] = RENYI_NEWLINE;
    return n + 1;
}

/* The base as its rule orders it, the grid line by line, rows without a place. Returns how many. */
static uint32_t order_rows(renyi_visual_session *s)
{
    ry_tile_session *t = s->tiles;
    const uint32_t G = s->side->config.tiles.patches;
    const uint32_t columns = t->plan.across * G, lines = t->plan.down * G;
    uint32_t n = 0;
    for (; n < t->n_base; n++) emit(s, n, n);
    const uint32_t n_rest = map_rows(s);
    for (uint32_t y = 0; y < lines; y++)
        n = emit_line(s, t->row_at + (size_t)y * columns, columns, n);
    for (uint32_t i = 0; i < n_rest; i++) emit(s, t->rest[i], n++);
    return n;
}

static void put_newlines(renyi_visual_session *s, uint32_t n)
{
    const size_t width = s->side->config.lm_dim;
    for (uint32_t i = 0; i < n; i++)
        if (s->tiles->kept[i] == RENYI_NEWLINE)
            memcpy(s->plan->rows + i * width, s->side->newline, width * sizeof(float));
}

/* Rows of an image without pruning. */
static uint32_t rows_of(const renyi_visual *v, const renyi_image *image)
{
    const ry_visual_config *c = &v->side.config;
    ry_tile_plan p; /* with downsample not that of the session; the image has been placed before */
    if (ry_tile_place(&p, &c->tiles, image->width, image->height, NULL)) return 0;
    return v->side.tower.n_patches + p.n_lines * (p.n_columns + (uint32_t)c->ends_lines);
}

/* ---- running ------------------------------------------------------------------------------- */

renyi_status ry_tile_session_run(renyi_visual_session *s, const renyi_image *image,
                                 renyi_visual_tokens *out, renyi_error *err)
{
    ry_tile_session *t = s->tiles;
    const ry_visual_config *c = &s->side->config;
    const ry_tile_plan *p = &t->plan;
    *out = (renyi_visual_tokens){0};
    t->n_done = 0;
    RY_TRY(ry_tile_place(&t->plan, &c->tiles, image->width, image->height, err));
    RY_TRY(ry_tile_cut(t->pixels, image, &t->plan, c->tower.image_size,
                       c->tower.preprocess.interpolation, ry_resize_best(), &s->visual->al, err));
    RY_TRY(run_squares(s, err));
    const uint32_t n = order_rows(s);
    ry_visual_project(s->plan, n);
    put_newlines(s, n);
    t->n_done = t->n_now;
    *out = (renyi_visual_tokens){
        .n = n,
        .lm_dim = c->lm_dim,
        .dim = c->tower.dim,
        .rows = s->plan->rows,
        .features = s->plan->features,
        .kept = t->kept,
        .scores = ry_visual_scores(s) ? t->scores : NULL,
        .n_full = rows_of(s->visual, image),
        .n_squares = t->n_now,
        .tiles = {p->across, p->down, p->first_column, p->first_line, p->n_columns, p->n_lines}};
    return RENYI_OK;
}

int ry_tile_session_square(const renyi_visual_session *s, uint32_t square, renyi_visual_square *out)
{
    const ry_tile_session *t = s->tiles;
    const ry_tile_grids *g = &s->side->config.tiles;
    if (square >= t->n_done) return 0;
    const ry_tile_window w = ry_tile_window_of(&t->plan, g->patches, square);
    *out = (renyi_visual_square){t->pixels + square * (size_t)g->side * g->side * 3,
                                 g->side,
                                 w.left,
                                 w.top,
                                 w.columns,
                                 w.lines,
                                 t->count[square]};
    return 1;
}
