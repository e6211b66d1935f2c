/* viz_squares.h - renyi viz with a LLaVA: one image, seen as one square or as base and tiles, as
 * the results that figures and pages draw.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_VIZ_SQUARES_H
#define RENYI_VIZ_SQUARES_H

#include "cli/kit/cli.h"

#include "renyi/llava.h"
#include "renyi/viz.h"

/* The result of a square, and the memory behind it. */
typedef struct viz_square {
    renyi_viz_result r;
    renyi_visual_square at; /* of the run without pruning; its pixels are copied */
    char *name;
    uint8_t *pixels;
    renyi_viz_row *rows;       /* [n_policies] */
    renyi_viz_step *steps;     /* [n_policies] */
    renyi_viz_metric *metrics; /* [n_policies] of those with scores */
    renyi_viz_map *maps;       /* [n_policies] */
} viz_square;

typedef struct viz_picture {
    uint32_t n_squares, n_policies;
    viz_square *squares; /* [n_squares] */
    uint32_t layers[1];  /* the last block of the tower that runs */
    uint32_t n_patches;
    cli_strings policies;  /* in full */
    renyi_viz_tiles tiles; /* of a LLaVA-NeXT; else across is 0 */
    const renyi_viz_result **tile_results;
    uint32_t *n_tokens, *n_newlines; /* [1 + n_policies] */
} viz_picture;

/* What a policy made of an image. */
typedef struct viz_run {
    const char *policy;                  /* in full */
    const renyi_visual_session *session; /* NULL = the policy acts in the language model */
    renyi_visual_tokens t;               /* then only kept, scores, squares and tiles are set */
    double macs;                         /* of tower and projector, for the whole image */
} viz_run;

/* From the run without pruning. model and name are for display; model is borrowed. *out also after
 * a failure (viz_picture_free). */
renyi_status viz_picture_new(viz_picture **out, const renyi_visual_info *info, const viz_run *dense,
                             size_t n_policies, const char *model, const char *name,
                             renyi_error *err);
/* Adds the run of the next policy. label: as given; borrowed. */
renyi_status viz_picture_add(viz_picture *p, const viz_run *run, const char *label,
                             renyi_error *err);
void viz_picture_free(viz_picture *p);

#endif
