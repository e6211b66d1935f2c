/* viz_arguments.h - renyi viz: its words, what they mean for the library, and what was found.
 * SPDX-License-Identifier: Apache-2.0
 */
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
    const char *figure, *colours, *graphics, *title;
    cli_strings outputs, policies;
    uint64_t top_k, threads, image_size, cell;
    option_reals scale, opacity;
    int json, exif, recursive, time, term, svg, dark;
    char *command; /* owned */
} viz_arguments;

/* The lists behind a renyi_viz_options. */
typedef struct viz_lists {
    cli_strings metrics;
    uint32_t layers[256];
    double orders[RENYI_VIZ_MAX_ORDERS], keeps[RENYI_VIZ_MAX_KEEPS];
    const char **class_names; /* owned, and so are the names */
} viz_lists;

/* What can be judged before a model is open. 0, or -1 after reporting wrong usage. */
int viz_check(const viz_arguments *a);

/* viz_lists.c: the words into *out, which borrows from a and lists. 0, or -1 after reporting. */
int viz_options_make(renyi_viz_options *out, viz_lists *lists, const viz_arguments *a,
                     const renyi_model *model);
/* The word of --attention: 0 = all heads, 1 + a head, RENYI_NONE = neither. */
uint32_t viz_head(const char *text);
void viz_lists_free(viz_lists *lists, const renyi_model *model);

/* What was found. */
typedef struct viz_view {
    const viz_arguments *a;
    const renyi_viz_result **photos; /* [n] */
    size_t n;
    const image_inputs *inputs; /* with those that failed */
} viz_view;

int viz_execute(const viz_arguments *a, const cli_strings *words); /* an exit code */
json_t *viz_json(const viz_view *v);
void viz_table(const viz_view *v);
/* viz_draw.c: every file, and the terminal. 0, or -1 after reporting why. */
int viz_draw(const viz_view *v);
/* "png", "svg", "html" by the file's ending, or NULL. */
const char *viz_format(const char *path);

/* viz_terminal.c: by --graphics, else by what the environment says; and its width. */
renyi_terminal viz_terminal(const char *word);
uint32_t viz_columns(void);

#endif
