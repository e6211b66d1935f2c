/* figure_fixture.h - a made-up result to draw: 4 x 4 patches of 8 pixels, two layers, three
 * policies (one drops, one rescues, one merges), two heads. SPDX-License-Identifier: Apache-2.0 */
#ifndef FIGURE_FIXTURE_H
#define FIGURE_FIXTURE_H

#include "renyi/figure.h"

#include <math.h>
#include <string.h>

enum { FIG_GRID = 4, FIG_PATCH = 8, FIG_N = 16, FIG_SIDE = 32, FIG_LAYERS = 2, FIG_ROWS = 3 };

typedef struct figure_fixture {
    renyi_viz_result r;
    uint8_t rgb[FIG_SIDE * FIG_SIDE * 3];
    uint32_t layers[FIG_LAYERS];
    float score[3][FIG_LAYERS][FIG_N];
    renyi_viz_map maps[3][FIG_LAYERS];
    renyi_viz_metric metrics[3];
    uint8_t state[FIG_ROWS][FIG_LAYERS][FIG_N], rescued[FIG_ROWS][FIG_LAYERS][FIG_N];
    uint32_t group[FIG_ROWS][FIG_LAYERS][FIG_N];
    renyi_viz_step steps[FIG_ROWS][FIG_LAYERS];
    renyi_viz_row rows[FIG_ROWS];
    renyi_viz_guess guesses[2];
    float attention[FIG_LAYERS][2 * (FIG_N + 1)];
    renyi_viz_attention_layer attention_layers[FIG_LAYERS];
    renyi_viz_attention attention_of;
} figure_fixture;

/* Each patch has one colour: red by column, green by row, blue the same everywhere. */
static inline void figure_colour(uint32_t patch, uint8_t rgb[3])
{
    rgb[0] = (uint8_t)(100 + 40 * (patch % FIG_GRID));
    rgb[1] = (uint8_t)(80 + 30 * (patch / FIG_GRID));
    rgb[2] = 128;
}

static inline void figure_step(figure_fixture *f, uint32_t row, uint32_t layer)
{
    renyi_viz_step *s = &f->steps[row][layer];
    *s = (renyi_viz_step){.layer = f->layers[layer],
                          .is_cut = 1,
                          .state = f->state[row][layer],
                          .rescued = f->rescued[row][layer],
                          .group = f->group[row][layer],
                          .macs = 3e8 * (layer + 1)};
    for (uint32_t i = 0; i < FIG_N; i++) {
        uint8_t *state = &f->state[row][layer][i];
        f->group[row][layer][i] = i;
        if (row == 2 && i < 2 + layer) { /* the first of the top row are one token */
            *state = RENYI_VIZ_MERGED;
            f->group[row][layer][i] = 0;
            s->n_merged++;
        } else if (i % 4 > 2 - layer) { /* columns from the right */
            *state = row == 1 ? RENYI_VIZ_FUSED : RENYI_VIZ_DROPPED;
            f->group[row][layer][i] = RENYI_NONE;
            *(row == 1 ? &s->n_fused : &s->n_dropped) += 1;
        } else {
            s->n_kept++;
        }
        if (row == 1 && i == 4) f->rescued[row][layer][i] = 1, s->n_rescued++;
    }
    s->n_groups = s->n_kept + (s->n_merged > 0);
    s->n_tokens = s->n_groups + 1 + (s->n_fused > 0);
}

static inline void figure_scores(figure_fixture *f)
{
    static const char *const names[] = {"cls", "col n=4", "random"};
    static const char *const labels[] = {"class attention", "Col-L4", "random"};
    for (uint32_t m = 0; m < 3; m++) {
        for (uint32_t l = 0; l < FIG_LAYERS; l++) {
            for (uint32_t i = 0; i < FIG_N; i++) f->score[m][l][i] = (float)(i * (m + 1));
            f->maps[m][l] =
                (renyi_viz_map){.score = f->score[m][l], .low = 0, .high = (float)(15 * (m + 1))};
        }
        f->metrics[m] = (renyi_viz_metric){names[m], labels[m], NAN, f->maps[m]};
    }
    for (uint32_t l = 0; l < FIG_LAYERS; l++) {
        for (uint32_t i = 0; i < 2 * (FIG_N + 1); i++) f->attention[l][i] = (float)i / 32;
        const float *a = f->attention[l];
        f->attention_layers[l] = (renyi_viz_attention_layer){a, a, a, a};
    }
    f->attention_of = (renyi_viz_attention){.n_heads = 2,
                                            .n_tokens = FIG_N + 1,
                                            .n_prefix = 1,
                                            .query = RENYI_PREFIX,
                                            .token = 5,
                                            .layers = f->attention_layers};
}

static inline void figure_fill(figure_fixture *f)
{
    static const char *const labels[] = {"class attention", "correct", "mosaic keep=0.7"};
    memset(f, 0, sizeof *f);
    for (uint32_t y = 0; y < FIG_SIDE; y++)
        for (uint32_t x = 0; x < FIG_SIDE; x++)
            figure_colour(y / FIG_PATCH * FIG_GRID + x / FIG_PATCH,
                          f->rgb + (y * FIG_SIDE + x) * 3);
    for (uint32_t l = 0; l < FIG_LAYERS; l++) f->layers[l] = 3 * l;
    f->guesses[0] = (renyi_viz_guess){3, "tabby cat", 0.75F};
    f->guesses[1] = (renyi_viz_guess){4, "tiger cat", 0.125F};
    figure_scores(f);
    for (uint32_t row = 0; row < FIG_ROWS; row++) {
        for (uint32_t l = 0; l < FIG_LAYERS; l++) figure_step(f, row, l);
        f->rows[row] = (renyi_viz_row){.policy = labels[row],
                                       .label = labels[row],
                                       .metric = RENYI_NONE,
                                       .keep = NAN,
                                       .merges = row == 2,
                                       .steps = f->steps[row],
                                       .answer = {2, f->guesses, 7e8, NAN}};
    }
    f->r = (renyi_viz_result){.photo = {"folder/cat.jpg", f->rgb, FIG_SIDE, FIG_GRID, FIG_PATCH},
                              .model = "vit_test",
                              .n_blocks = 4,
                              .n_patches = FIG_N,
                              .n_prefix = 1,
                              .n_heads = 2,
                              .n_layers = FIG_LAYERS,
                              .layers = f->layers,
                              .n_metrics = 3,
                              .metrics = f->metrics,
                              .n_norms = 2,
                              .norms = f->metrics,
                              .n_rows = FIG_ROWS,
                              .rows = f->rows,
                              .dense = {2, f->guesses, 1e9, NAN},
                              .attention = &f->attention_of};
}

#endif
