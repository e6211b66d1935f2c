/* viz_arguments.h - renyi viz: its options, what they mean for the library, and its output.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_VIZ_ARGUMENTS_H
#define RENYI_VIZ_ARGUMENTS_H

#include "cli/kit/options.h"
#include "cli/shared/images.h"

#include "renyi/viz.h"
#include <jansson.h>

typedef struct viz_arguments {
    const char *model, *labels, *list, *cpu, *dtype;
    const char *metrics, *layers, *orders, *keeps, *rule, *sweep;
    const char *attention, *query, *token;
    const char *question, *text_tower, *tokenizer; /* of a LLaVA */
    const char *figure, *colours, *graphics, *title;
    cli_strings outputs, policies;
    uint64_t top_k, threads, image_size, cell;
    option_reals scale, opacity;
    int json, exif, recursive, time, term, svg, dark;
    char *command; /* owned */
} viz_arguments;

/* ---- list options (viz_lists.c) ------------------------------------------------------------ */

/* The lists that a renyi_viz_options points to. */
typedef struct viz_lists {
    cli_strings metrics;
    uint32_t layers[256];
    double orders[RENYI_VIZ_MAX_ORDERS], keeps[RENYI_VIZ_MAX_KEEPS];
    const char **class_names; /* owned, and so are the names */
} viz_lists;

/* Parses the options for this model; *out borrows from `a` and `lists`. 0, or -1 after reporting.
 */
int viz_options_make(renyi_viz_options *out, viz_lists *lists, const viz_arguments *a,
                     const renyi_model *model);
/* The value of --attention: 0 = all heads, 1 + a head, RENYI_NONE = neither. */
uint32_t viz_head(const char *text);
void viz_lists_free(viz_lists *lists, const renyi_model *model);

/* ---- output (viz_numbers.c, viz_draw.c) ---------------------------------------------------- */

typedef struct viz_view {
    const viz_arguments *a;
    const renyi_viz_result **images; /* [n] */
    const renyi_viz_tiles **tiles;   /* [n] of a LLaVA-NeXT, NULL for others; NULL = of none */
    size_t n;
    const image_inputs *inputs; /* with those that failed */
} viz_view;

/* Draws and prints what the options ask for. Returns an exit code. */
int viz_show(const viz_view *v);
void viz_table(const viz_view *v);
json_t *viz_json(const viz_view *v);
/* Every file of -o, and the terminal. 0, or -1 after reporting. */
int viz_draw(const viz_view *v);
/* "png", "svg", "html" by the file's ending, or NULL. */
const char *viz_format(const char *path);

/* ---- LLaVA (viz_llava.c) ------------------------------------------------------------------- */

int viz_is_llava(const char *model); /* does -m name one? */
/* Runs and shows all images. Returns an exit code. */
int viz_llava(const viz_arguments *a, image_inputs *inputs);

#endif
