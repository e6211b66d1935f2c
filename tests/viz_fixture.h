/* viz_fixture.h - made-up results of two photos to draw: 4 x 4 patches of plain colours, four
 * layers, two cuts; every number can be foretold. SPDX-License-Identifier: Apache-2.0 */
#ifndef VIZ_FIXTURE_H
#define VIZ_FIXTURE_H

#include "renyi/viz_page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    VIZ_GRID = 4,
    VIZ_PATCH = 8,
    VIZ_P = VIZ_GRID * VIZ_GRID,
    VIZ_SIZE = VIZ_GRID * VIZ_PATCH,
    VIZ_LAYERS = 4,
    VIZ_METRICS = 3, /* cls, col n=4, random */
    VIZ_NORMS = 4,   /* cls, col n=1, n=4, n=inf */
    VIZ_KEEPS = 3,
    VIZ_ROWS = VIZ_METRICS + 2,                /* and one that merges, one that rescues */
    VIZ_SWEEP = (VIZ_METRICS + 2) * VIZ_KEEPS, /* n=1 and n=inf too */
    VIZ_HEADS = 2,
    VIZ_PHOTOS = 2
};

typedef struct viz_fixture_row {
    char policy[64];
    renyi_viz_step steps[VIZ_LAYERS];
    uint8_t state[VIZ_LAYERS][VIZ_P], rescued[VIZ_LAYERS][VIZ_P];
    uint32_t group[VIZ_LAYERS][VIZ_P], gone_at[VIZ_LAYERS][VIZ_P];
    float score[VIZ_P];
    renyi_viz_guess top[2];
} viz_fixture_row;

typedef struct viz_fixture_photo {
    renyi_viz_result result;
    uint8_t rgb[VIZ_SIZE * VIZ_SIZE * 3];
    renyi_viz_metric metrics[VIZ_METRICS], norms[VIZ_NORMS];
    renyi_viz_map maps[VIZ_METRICS + VIZ_NORMS][VIZ_LAYERS];
    float score[VIZ_METRICS + VIZ_NORMS][VIZ_LAYERS][VIZ_P];
    uint32_t rank[VIZ_METRICS + VIZ_NORMS][VIZ_LAYERS][VIZ_P];
    renyi_viz_row rows[VIZ_ROWS], sweep[VIZ_SWEEP];
    viz_fixture_row row_data[VIZ_ROWS + VIZ_SWEEP];
    renyi_viz_guess top[3];
    renyi_viz_attention attention;
    renyi_viz_attention_layer attention_layers[VIZ_LAYERS];
    float seen[VIZ_HEADS * (VIZ_P + 1)];
} viz_fixture_photo;

typedef struct viz_fixture {
    viz_fixture_photo photos[VIZ_PHOTOS];
    const renyi_viz_result *results[VIZ_PHOTOS];
    renyi_viz_page page;
} viz_fixture;

static const uint32_t viz_layers[VIZ_LAYERS] = {0, 1, 2, 3};
static const double viz_keeps[VIZ_KEEPS] = {0.25, 0.5, 0.75};
static const uint32_t viz_kept[VIZ_KEEPS] = {4, 8, 12};

/* Patch p in its own plain colour; the second photo is darker. */
static inline void viz_fixture_pixels(viz_fixture_photo *f, uint32_t photo)
{
    for (uint32_t y = 0; y < VIZ_SIZE; y++)
        for (uint32_t x = 0; x < VIZ_SIZE; x++) {
            const uint32_t column = x / VIZ_PATCH, row = y / VIZ_PATCH;
            uint8_t *rgb = &f->rgb[3 * (y * VIZ_SIZE + x)];
            rgb[0] = (uint8_t)((40 + 60 * column) >> photo);
            rgb[1] = (uint8_t)((40 + 60 * row) >> photo);
            rgb[2] = 60;
        }
}

/* Places of the scores: larger first, equal ones as they stand. */
static inline void viz_fixture_rank(const float *score, uint32_t *rank)
{
    for (uint32_t p = 0; p < VIZ_P; p++) {
        rank[p] = 0;
        for (uint32_t q = 0; q < VIZ_P; q++)
            rank[p] += score[q] > score[p] || (score[q] == score[p] && q < p);
    }
}

/* Metric m likes patch (5 m + 3 layer + p) mod 16 by its number. */
static inline void viz_fixture_maps(viz_fixture_photo *f)
{
    static const char *const names[] = {"cls", "col n=4", "random",   "cls",
                                        "col", "col n=4", "col n=inf"};
    static const char *const labels[] = {"class attention", "Col-L4", "random", "class attention",
                                         "Col-L1",          "Col-L4", "Col-L∞"};
    static const double orders[] = {NAN, 4, NAN, NAN, 1, 4, INFINITY};
    static const uint32_t likes[] = {0, 1, 2, 0, 3, 1, 4};
    for (uint32_t m = 0; m < VIZ_METRICS + VIZ_NORMS; m++) {
        for (uint32_t k = 0; k < VIZ_LAYERS; k++) {
            for (uint32_t p = 0; p < VIZ_P; p++)
                f->score[m][k][p] = 0.01f * (float)((5 * likes[m] + 3 * k + p) % VIZ_P + 1);
            viz_fixture_rank(f->score[m][k], f->rank[m][k]);
            f->maps[m][k] = (renyi_viz_map){f->score[m][k], f->rank[m][k], 0.01f, 0.16f};
        }
        const renyi_viz_metric metric = {names[m], labels[m], orders[m], f->maps[m]};
        if (m < VIZ_METRICS)
            f->metrics[m] = metric;
        else
            f->norms[m - VIZ_METRICS] = metric;
    }
}

/* One step of a row that cuts at layers 1 and 3: patches of score rank >= left are gone; with
 * `merges` those of the second cut are in one token with patch 0. */
static inline void viz_fixture_step(viz_fixture_row *d, uint32_t k, const uint32_t *rank,
                                    uint32_t left, int merges)
{
    renyi_viz_step *s = &d->steps[k];
    *s = (renyi_viz_step){.layer = k,
                          .is_cut = k % 2,
                          .state = d->state[k],
                          .rescued = d->rescued[k],
                          .group = d->group[k],
                          .gone_at = d->gone_at[k],
                          .score = d->score,
                          .macs = 1e6 * (k + 1)};
    for (uint32_t p = 0; p < VIZ_P; p++) {
        const int cut1 = k >= 1 && rank[p] >= (left + VIZ_P) / 2, cut3 = k >= 3 && rank[p] >= left;
        const int is_merged = merges && cut3 && !cut1, is_gone = cut1 || (cut3 && !merges);
        d->state[k][p] = is_gone     ? RENYI_VIZ_DROPPED
                         : is_merged ? RENYI_VIZ_MERGED
                                     : RENYI_VIZ_KEPT;
        d->gone_at[k][p] = cut1 ? 1 : is_gone ? 3 : RENYI_NONE;
        d->group[k][p] = is_gone ? RENYI_NONE : is_merged ? 0 : p;
        s->n_dropped += (uint32_t)is_gone;
        s->n_merged += (uint32_t)is_merged;
        s->n_kept += (uint32_t)(!is_gone && !is_merged);
        d->score[p] = p % 5 ? (float)rank[p] : NAN;
    }
    s->n_tokens = 1 + VIZ_P - s->n_dropped;
}

static inline void viz_fixture_row_of(viz_fixture_photo *f, uint32_t i, uint32_t metric,
                                      double keep, const char *label)
{
    viz_fixture_row *d = &f->row_data[i];
    renyi_viz_row *row = i < VIZ_ROWS ? &f->rows[i] : &f->sweep[i - VIZ_ROWS];
    const int merges = i == VIZ_METRICS, rescues = i == VIZ_METRICS + 1;
    const uint32_t left = isnan(keep) ? 8 : (uint32_t)(keep * VIZ_P);
    if (isnan(keep))
        snprintf(d->policy, sizeof d->policy, "naive p=4 layers=1,3 metric=%s", label);
    else
        snprintf(d->policy, sizeof d->policy, "evit keep=%.2f layers=1,3 metric=%s", keep, label);
    for (uint32_t k = 0; k < VIZ_LAYERS; k++)
        viz_fixture_step(d, k, f->rank[metric][1], left, merges);
    for (uint32_t k = 1; rescues && k < VIZ_LAYERS; k++)
        d->rescued[k][5] = d->steps[k].n_rescued = 1;
    d->top[0] = (renyi_viz_guess){rescues ? 4 : 2, rescues ? "apple" : "pear", 0.5f};
    d->top[1] = (renyi_viz_guess){7, "plum", 0.25f};
    *row =
        (renyi_viz_row){.policy = d->policy,
                        .label = label,
                        .metric = merges || rescues || metric >= VIZ_METRICS ? RENYI_NONE : metric,
                        .norm = metric >= VIZ_METRICS ? metric - VIZ_METRICS : RENYI_NONE,
                        .keep = keep,
                        .merges = (uint32_t)merges,
                        .steps = d->steps,
                        .answer = {2, d->top, 1e6 * (VIZ_LAYERS + left), NAN}};
}

static inline void viz_fixture_rows(viz_fixture_photo *f)
{
    for (uint32_t m = 0; m < VIZ_METRICS; m++) {
        viz_fixture_row_of(f, m, m, NAN, f->metrics[m].label);
        for (uint32_t k = 0; k < VIZ_KEEPS; k++)
            viz_fixture_row_of(f, VIZ_ROWS + m * VIZ_KEEPS + k, m, viz_keeps[k],
                               f->metrics[m].label);
    }
    for (uint32_t k = 0; k < 2 * VIZ_KEEPS; k++) {
        const uint32_t norm = k < VIZ_KEEPS ? 1 : 3;
        viz_fixture_row_of(f, VIZ_ROWS + VIZ_METRICS * VIZ_KEEPS + k, VIZ_METRICS + norm,
                           viz_keeps[k % VIZ_KEEPS], f->norms[norm].label);
    }
    viz_fixture_row_of(f, VIZ_METRICS, 0, NAN, "mosaic keep=0.5");
    viz_fixture_row_of(f, VIZ_METRICS + 1, 1, NAN, "evit metric=correct");
}

static inline void viz_fixture_attention(viz_fixture_photo *f)
{
    for (uint32_t i = 0; i < VIZ_HEADS * (VIZ_P + 1); i++)
        f->seen[i] = (float)(i % (VIZ_P + 1)) / 136.0f;
    for (uint32_t k = 0; k < VIZ_LAYERS; k++)
        f->attention_layers[k] = (renyi_viz_attention_layer){f->seen, f->seen, f->seen, f->seen};
    f->attention =
        (renyi_viz_attention){VIZ_HEADS, VIZ_P + 1, 1, RENYI_PREFIX, 6, f->attention_layers};
}

static inline void viz_fixture_photo_of(viz_fixture_photo *f, uint32_t photo)
{
    viz_fixture_pixels(f, photo);
    viz_fixture_maps(f);
    viz_fixture_rows(f);
    viz_fixture_attention(f);
    f->top[0] = (renyi_viz_guess){2, "pear", 0.75f};
    f->top[1] = (renyi_viz_guess){4, "apple", 0.125f};
    f->top[2] = (renyi_viz_guess){9, "fig", 0.0625f};
    f->result = (renyi_viz_result){
        .photo = {photo ? "dark.png" : "bright.png", f->rgb, VIZ_SIZE, VIZ_GRID, VIZ_PATCH},
        .model = "vit_toy",
        .n_blocks = VIZ_LAYERS,
        .n_patches = VIZ_P,
        .n_prefix = 1,
        .n_heads = VIZ_HEADS,
        .n_layers = VIZ_LAYERS,
        .layers = viz_layers,
        .n_metrics = VIZ_METRICS,
        .metrics = f->metrics,
        .n_norms = VIZ_NORMS,
        .norms = f->norms,
        .n_keeps = VIZ_KEEPS,
        .keeps = viz_keeps,
        .kept = viz_kept,
        .n_rows = VIZ_ROWS,
        .rows = f->rows,
        .n_sweep = VIZ_SWEEP,
        .sweep = f->sweep,
        .dense = {3, f->top, 1e6 * (VIZ_LAYERS + VIZ_P), NAN},
        .attention = &f->attention};
}

static inline void viz_fixture_fill(viz_fixture *f)
{
    memset(f, 0, sizeof *f);
    for (uint32_t i = 0; i < VIZ_PHOTOS; i++) {
        viz_fixture_photo_of(&f->photos[i], i);
        f->results[i] = &f->photos[i].result;
    }
    f->page = (renyi_viz_page){.struct_size = sizeof f->page,
                               .n_photos = VIZ_PHOTOS,
                               .photos = f->results,
                               .command = "renyi viz"};
}

#endif
