/* figure.h - figures of what a model looks at and what pruning drops: PNG, SVG, terminal.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each call draws what renyi_viz_run found in one or more photos and writes one file to memory. The
 * same results and options give the same bytes on one machine: no clock is read, and text is set
 * in one font (Open Sans; another one where it is missing, so that bytes then differ).
 *
 * Texts may be any bytes; what is not UTF-8 or cannot be printed is shown as U+FFFD. Scores that
 * are not finite are left open. Memory is as in renyi.h, but for what cairo and pango allocate
 * inside: cairo's failures are errors, while pango (GLib) ends the process when memory runs out in
 * it. Calls may run at the same time in different threads.
 */
#ifndef RENYI_FIGURE_H
#define RENYI_FIGURE_H

#include "renyi/viz.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Columns are the layers of the results. */
typedef enum renyi_figure_kind {
    RENYI_FIGURE_ALL = 0,         /* on one page: all below that the results have something for */
    RENYI_FIGURE_OVERLAY = 1,     /* rows: policies; what is gone so far is dimmed, what was rescued
                                     has an outline; a fused token is no patch */
    RENYI_FIGURE_HEAT = 2,        /* rows: metrics; scores on the unpruned model, over the photo */
    RENYI_FIGURE_MOSAIC = 3,      /* rows: policies that merge; each token in its mean colour */
    RENYI_FIGURE_NORMS = 4,       /* rows: class attention, Col-Ln of each order */
    RENYI_FIGURE_PREDICTIONS = 5, /* dense and pruned side by side */
    RENYI_FIGURE_ATTENTION = 6    /* rows: heads; the query's row and the token's column */
} renyi_figure_kind;

/* "all", "overlay", "heat", "mosaic", "norms", "predictions", "attention"; NULL = no such kind. */
RENYI_API const char *renyi_figure_name(renyi_figure_kind kind);
/* 1 if there is something to draw: a mosaic wants a policy that merges, attention must have been
 * asked for, and so on. */
RENYI_API int renyi_figure_has(const renyi_viz_result *r, renyi_figure_kind kind);

typedef enum renyi_colours {
    RENYI_COLOURS_EVEN = 0,    /* perceptually even: dark violet, teal, yellow */
    RENYI_COLOURS_RED_BLUE = 1 /* the paper's: blue is low, red is high */
} renyi_colours;

/* The colour of t, 0 to 1 (others: the nearer end), as bytes red, green, blue. */
RENYI_API void renyi_colour(renyi_colours map, double t, uint8_t rgb[3]);

typedef struct renyi_figure_options {
    uint32_t struct_size;
    renyi_figure_kind kind;
    renyi_colours colours;
    uint32_t is_dark;  /* 1 = light text on a dark ground */
    uint32_t cell;     /* side of a picture in units, 48 to 1024, rounded to whole units per patch;
                          0 = 112 to 210, smaller the more layers there are */
    double scale;      /* pixels of a PNG per unit, 0.25 to 8; 0 = 2: print */
    uint32_t head;     /* of the attention figure: 1 + its number; 0 = all */
    double opacity;    /* of heat over the photo, above 0 to 1; 0 = 0.7 */
    const char *title; /* NULL = made of the model's and the photo's name; "" = none */
    renyi_allocator allocator;
} renyi_figure_options;

#define RENYI_FIGURE_MAX_RESULTS 64
#define RENYI_FIGURE_MAX_SIDE 32000 /* pixels of a PNG */
#define RENYI_FIGURE_MAX_PIXELS 268435456

typedef struct renyi_figure_file {
    char *bytes; /* [size + 1], NUL-terminated */
    size_t size;
    renyi_allocator allocator; /* that made it; for renyi_figure_free */
} renyi_figure_file;

/* On success *out is owned by the caller (renyi_figure_free), otherwise it is empty. Results are
 * drawn one below the other. RENYI_ERR_ARG: an option out of its range, or nothing to draw;
 * RENYI_ERR_LIMIT: the picture would be too large. */
RENYI_API RENYI_CHECK renyi_status renyi_figure_png(renyi_figure_file *out,
                                                    const renyi_viz_result *const *results,
                                                    size_t n_results,
                                                    const renyi_figure_options *opt,
                                                    renyi_error *err);
RENYI_API RENYI_CHECK renyi_status renyi_figure_svg(renyi_figure_file *out,
                                                    const renyi_viz_result *const *results,
                                                    size_t n_results,
                                                    const renyi_figure_options *opt,
                                                    renyi_error *err);

/* ---- in a terminal ------------------------------------------------------------------------- */

typedef enum renyi_terminal {
    RENYI_TERMINAL_BLOCKS = 0, /* half blocks in 24-bit colour: any modern terminal */
    RENYI_TERMINAL_KITTY = 1,  /* kitty's graphics protocol: kitty, ghostty, WezTerm, Konsole */
    RENYI_TERMINAL_ITERM2 = 2  /* iTerm2's inline images: iTerm2, WezTerm, mintty */
} renyi_terminal;

/* The figure as bytes to print. columns: width of the terminal in characters, 20 to 1000; 0 = 80.
 * With half blocks the pictures are drawn small, and labels are characters; otherwise the figure
 * is the PNG one, as wide as the terminal. */
RENYI_API RENYI_CHECK renyi_status renyi_figure_terminal(
    renyi_figure_file *out, const renyi_viz_result *const *results, size_t n_results,
    const renyi_figure_options *opt, renyi_terminal terminal, uint32_t columns, renyi_error *err);

RENYI_API void renyi_figure_free(renyi_figure_file *f); /* an empty one is fine */

#ifdef __cplusplus
}
#endif
#endif
