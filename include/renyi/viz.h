/* viz.h - shows what a model attends to in an image and what pruning removes: data, figures, pages.
 *
 * Call order: renyi_model_open -> renyi_viz_new -> renyi_viz_run (once per image) ->
 * renyi_figure_png, renyi_viz_html, ... -> free in reverse order.
 *
 * One pass without pruning gives all metrics, layers and orders, the prediction and the attention;
 * each policy is one more run. A result has its own copy of all data and may outlive the renyi_viz
 * and the model. Patches are numbered in raster order (row * grid + column), independent of earlier
 * cuts. Layers are blocks of the encoder, from 0. The same image and options give the same result,
 * except the times (`ms`), which are NaN unless requested. The rules of renyi.h apply.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_VIZ_H
#define RENYI_VIZ_H

#include "renyi/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what to compute ------------------------------------------------------------------------- */

/* Metrics, layers, norm orders, keep rates and policies for renyi_viz_run. Zero or NULL is the
 * default. */

typedef struct renyi_viz renyi_viz;

#define RENYI_VIZ_MAX_METRICS 16
#define RENYI_VIZ_MAX_ORDERS 16
#define RENYI_VIZ_MAX_KEEPS 32
#define RENYI_VIZ_MAX_ROWS 64
#define RENYI_VIZ_MAX_TOP 20

/* Texts and lists are borrowed for renyi_viz_new. */
typedef struct renyi_viz_options {
    uint32_t struct_size;
    uint32_t n_metrics;          /* 0 = cls (if there is a class token), col n=4, random */
    const char *const *metrics;  /* [n_metrics] as after metric= in a policy: "col n=4"; the default
                                    of n is the rule's: 4 for naive, 2 for evit */
    uint32_t n_layers;           /* 0 = the first six blocks and every block in which a row cuts */
    const uint32_t *layers;      /* [n_layers] ascending */
    uint32_t n_orders;           /* 0 = 1, 2, 3, 4, infinity */
    const double *orders;        /* [n_orders] orders n of Col-Ln: each >= 1 or INFINITY */
    uint32_t n_keeps;            /* 0 = 0.3, 0.4 ... 0.9 */
    const double *keeps;         /* [n_keeps] keep rates, ascending, above 0 and at most 1 */
    const char *rule;            /* policy for the row of each metric, without metric=. NULL = naive
                                    with a p that removes half of the patches, cutting in the layers
                                    shown, at most six. "" = no rows for metrics */
    uint32_t n_policies;         /* rows after those of the metrics */
    const char *const *policies; /* [n_policies] complete policies */
    /* 1 = also run the rule for every metric and keep rate (n_metrics x n_keeps more runs); 2 =
     * also for every norm, at every keep rate and as given. A rule with keep= uses the rate at each
     * cut; a rule with p= removes so many patches that this share is left after its last cut. */
    uint32_t sweep;
    uint32_t attention; /* 1 = fill renyi_viz_result.attention */
    uint32_t has_query; /* 0 = the class token, or the patch in the middle if there is none */
    uint32_t query;     /* patch whose attention row is shown */
    uint32_t has_token; /* 0 = the patch with the highest Col-L4 in the last of the layers */
    uint32_t token;     /* patch whose attention column is shown */
    uint32_t n_top;     /* classes per prediction; 0 = 5 */
    const char *const *class_names; /* [n_classes of the model], copied; NULL = the model's labels,
                                       else "class N" */
    uint32_t time;      /* timed runs per policy after one warm-up run; `ms` is the fastest. 0 = no
                           times, one run per policy */
    uint32_t n_threads; /* 0 = as in renyi_session_options */
    renyi_allocator allocator;
    renyi_progress progress; /* called in renyi_viz_run: forward passes done, all passes */
    void *progress_user;
} renyi_viz_options;

/* Borrows m until renyi_viz_free. RENYI_ERR_ARG names the wrong metric, layer, order, keep rate or
 * policy and what is allowed. On success *out is owned by the caller (renyi_viz_free). */
RENYI_API RENYI_CHECK renyi_status renyi_viz_new(renyi_viz **out, const renyi_model *m,
                                                 const renyi_viz_options *opt, renyi_error *err);
RENYI_API void renyi_viz_free(renyi_viz *v);

/* ---- results --------------------------------------------------------------------------------- */

/* A renyi_viz_result has everything that figures and pages show. Call order: renyi_viz_run -> read
 * or draw -> renyi_viz_result_free. All pointers are valid until renyi_viz_result_free. */

/* The image as the model sees it: resized and cropped, not normalized. */
typedef struct renyi_viz_photo {
    const char *name;
    const uint8_t *rgb; /* [size, size, 3] */
    uint32_t size;      /* side in pixels = grid * patch */
    uint32_t grid;      /* patches per side */
    uint32_t patch;     /* side of a patch in pixels */
} renyi_viz_photo;

/* One metric at one layer of the model without pruning. Exact. */
typedef struct renyi_viz_map {
    const float *score;   /* [n_patches] larger is better; any scale */
    const uint32_t *rank; /* [n_patches] 0 = best; ties: the lower patch first. A policy with a
                             single cut here at keeps[k] keeps the patches with rank < kept[k]. With
                             earlier cuts this is only a preview */
    float low, high; /* 1st and 99th percentile of the scores, for a color scale; finite, low <=
                        high */
} renyi_viz_map;

typedef struct renyi_viz_metric {
    const char *name;          /* with all parameters that are not defaults: "col n=4" */
    const char *label;         /* for display: "Col-L4", "class attention", "random" */
    double order;              /* n of the metric; NaN if it has none */
    const renyi_viz_map *maps; /* [n_layers] */
} renyi_viz_metric;

typedef struct renyi_viz_guess {
    uint32_t index;   /* class index */
    const char *name; /* never NULL */
    float probability;
} renyi_viz_guess;

typedef struct renyi_viz_answer {
    uint32_t n_top;
    const renyi_viz_guess *top; /* [n_top] most probable first */
    double macs;                /* total multiply-accumulates (`macs` of renyi_layer_cost) */
    double ms;                  /* model time; NaN = not measured */
} renyi_viz_answer;

/* What happened to a patch. The patches in a fused token are FUSED; the token itself is counted
 * only in n_tokens. */
typedef enum renyi_viz_state {
    RENYI_VIZ_KEPT = 0,   /* a token of its own */
    RENYI_VIZ_MERGED = 1, /* in a token with other patches */
    RENYI_VIZ_FUSED = 2,  /* in a token that took all leftovers of a cut */
    RENYI_VIZ_DROPPED = 3 /* removed */
} renyi_viz_state;

/* State after one layer of a policy, all cuts so far included. This is what really ran. */
typedef struct renyi_viz_step {
    uint32_t layer;
    uint32_t is_cut;         /* 1 = this layer cuts */
    const uint8_t *state;    /* [n_patches] renyi_viz_state */
    const uint8_t *rescued;  /* [n_patches] 1 = in a token that the last cut kept because of Col-Ln
                                although class attention had not chosen it (metric=correct) */
    const uint32_t *group;   /* [n_patches] patch that its token grew from, itself if KEPT.
                                Patches of the same token have the same group. RENYI_NONE = fused
                                or dropped */
    const uint32_t *gone_at; /* [n_patches] layer where it was fused or dropped; else RENYI_NONE */
    const float *score;      /* [n_patches] score of the patch's token in this layer's cut; NaN
                                without a cut, or if the token did not grow from this patch */
    uint32_t n_kept, n_merged, n_fused, n_dropped; /* patches; their sum is n_patches */
    uint32_t n_rescued;
    uint32_t n_groups; /* tokens that represent patches, without fused ones */
    uint32_t n_tokens; /* tokens that leave the layer, prefix and fused tokens included */
    double macs;       /* from the image to the end of this layer */
} renyi_viz_step;

typedef struct renyi_viz_row {
    const char *policy; /* with all defaults */
    const char *label;  /* for display: the metric's label, or the policy as given */
    uint32_t metric;    /* index into metrics; RENYI_NONE = a policy of its own, or a norm */
    uint32_t norm;      /* index into norms for a row of the sweep that is no metric; else
                           RENYI_NONE */
    double keep;        /* keep rate of a row of the sweep; NaN = the policy as given */
    uint32_t merges;    /* 1 = some cut merges patches: a mosaic can be drawn */
    uint32_t adaptive;  /* 1 = token counts depend on the image (ats): macs is an upper bound */
    const renyi_viz_step *steps; /* [n_layers] */
    renyi_viz_answer answer;
} renyi_viz_row;

/* Attention per head at one layer of the model without pruning. Token t is patch t - n_prefix. */
typedef struct renyi_viz_attention_layer {
    const float *row;         /* [n_heads, n_tokens] from the query to every token; sums to 1 */
    const float *column;      /* [n_heads, n_tokens] from every token to `token` */
    const float *row_mean;    /* [n_tokens] mean over heads */
    const float *column_mean; /* [n_tokens] mean over heads; its norm is Col-Ln of the token */
} renyi_viz_attention_layer;

typedef struct renyi_viz_attention {
    uint32_t n_heads, n_tokens, n_prefix;
    int32_t query;                           /* patch, or RENYI_PREFIX = the class token */
    int32_t token;                           /* patch */
    const renyi_viz_attention_layer *layers; /* [n_layers] */
} renyi_viz_attention;

typedef struct renyi_viz_result {
    renyi_viz_photo photo;
    const char *model; /* architecture */
    uint32_t n_blocks, n_patches, n_prefix, n_heads;
    uint32_t n_layers;
    const uint32_t *layers; /* [n_layers] ascending; the columns of every figure */
    uint32_t n_metrics;
    const renyi_viz_metric *metrics; /* [n_metrics] rows of the heat maps */
    uint32_t n_norms;
    const renyi_viz_metric *norms; /* [n_norms] rows of the norm figure: cls if there is a class
                                      token, then col of each order */
    uint32_t n_keeps;
    const double *keeps;  /* [n_keeps] */
    const uint32_t *kept; /* [n_keeps] patches left by one cut at this rate: ceil(keep x
                             n_patches) */
    uint32_t n_rows;
    const renyi_viz_row *rows; /* [n_rows] rows of the pruning overlay: one per metric, then
                                  policies */
    uint32_t n_sweep;
    const renyi_viz_row *sweep; /* [n_sweep] row m * n_keeps + k is metric m at keeps[k]; then, if
                                   requested, the same for the norms that are not among the metrics,
                                   then each of these norms with the rule as given (keep is NaN).
                                   NULL = no sweep */
    renyi_viz_answer dense;
    const renyi_viz_attention *attention; /* NULL = not requested */
} renyi_viz_result;

/* Runs one image of any size. name: for display, any bytes; NULL = "photo". One call at a time. On
 * success *out is owned by the caller (renyi_viz_result_free). */
RENYI_API RENYI_CHECK renyi_status renyi_viz_run(renyi_viz *v, const renyi_image *photo,
                                                 const char *name, renyi_viz_result **out,
                                                 renyi_error *err);
RENYI_API void renyi_viz_result_free(renyi_viz_result *r);

/* ---- figures --------------------------------------------------------------------------------- */

/* Each function draws one or more results and writes one PNG, SVG or terminal output to memory.
 * Call order: renyi_viz_run -> renyi_figure_png, _svg or _terminal -> write the bytes ->
 * renyi_figure_free. Functions may run in different threads at the same time.
 *
 * The same results and options give the same bytes on one machine: no clock is used and the font is
 * fixed (Open Sans; bytes differ if it is missing). Texts may be any bytes; U+FFFD replaces what is
 * not UTF-8 or not printable. Scores that are not finite are left blank. Memory is as in renyi.h,
 * except what cairo and pango allocate: a failure in cairo is returned as an error, but pango
 * (GLib) ends the process if memory runs out. */

/* The columns of a figure are the layers of the results, or base and tiles. */
typedef enum renyi_figure_kind {
    RENYI_FIGURE_ALL = 0,         /* one page with every figure below that can be drawn */
    RENYI_FIGURE_OVERLAY = 1,     /* rows: policies; removed patches are dimmed, rescued ones
                                     outlined; a fused token is no patch */
    RENYI_FIGURE_HEAT = 2,        /* rows: metrics; scores without pruning, over the image */
    RENYI_FIGURE_MOSAIC = 3,      /* rows: policies that merge; each token in its mean color */
    RENYI_FIGURE_NORMS = 4,       /* rows: class attention, Col-Ln of each order */
    RENYI_FIGURE_PREDICTIONS = 5, /* without and with pruning, side by side */
    RENYI_FIGURE_ATTENTION = 6    /* rows: heads; row of the query and column of the token */
} renyi_figure_kind;

/* Name of a kind: "all", "overlay", "heat", "mosaic", "norms", "predictions", "attention"; NULL =
 * unknown. Static string. */
RENYI_API const char *renyi_figure_name(renyi_figure_kind kind);
/* 1 if this figure can be drawn: a mosaic needs a policy that merges, attention must have been
 * requested. */
RENYI_API int renyi_figure_has(const renyi_viz_result *r, renyi_figure_kind kind);

/* The tiles of a LLaVA-NeXT, beside a result that is its base. Base and tiles have one layer, the
 * same patches, metrics and policies; the answers are those of the base. Borrowed for the call. */
typedef struct renyi_viz_tiles {
    uint32_t struct_size;
    uint32_t across, down; /* tiles; at most RENYI_VIZ_MAX_TILES in all */
    /* The part without border, in patches of the whole grid of tiles. */
    uint32_t first_column, first_line, n_columns, n_lines;
    const renyi_viz_result *const *squares; /* [across * down] line by line */
    /* Visual tokens of the whole image, and the newline rows among them: without pruning, then of
     * every row of the base. */
    const uint32_t *n_tokens, *n_newlines; /* [1 + n_rows] */
} renyi_viz_tiles;

#define RENYI_VIZ_MAX_TILES 16

typedef enum renyi_colours {
    RENYI_COLOURS_EVEN = 0,    /* perceptually uniform: dark violet, teal, yellow */
    RENYI_COLOURS_RED_BLUE = 1 /* colors of the paper: blue is low, red is high */
} renyi_colours;

/* Color of t in [0, 1] as red, green, blue; t outside is clamped. */
RENYI_API void renyi_colour(renyi_colours map, double t, uint8_t rgb[3]);

typedef struct renyi_figure_options {
    uint32_t struct_size;
    renyi_figure_kind kind;
    renyi_colours colours;
    uint32_t is_dark;  /* 1 = light text on a dark background */
    uint32_t cell;     /* side of an image in units, 48 to 1024, rounded to whole units per patch; 0
                          = 112 to 210, smaller with more layers */
    double scale;      /* PNG pixels per unit, 0.25 to 8; 0 = 2 */
    uint32_t head;     /* head of the attention figure: 1 + its number; 0 = all */
    double opacity;    /* opacity of heat maps over the image, above 0 to 1; 0 = 0.7 */
    const char *title; /* NULL = from the names of model and image; "" = none */
    renyi_allocator allocator;
    const renyi_viz_tiles *const *tiles; /* [n_results] of the results that are the base of a
                                            LLaVA-NeXT, NULL for others; NULL = of none */
} renyi_figure_options;

#define RENYI_FIGURE_MAX_RESULTS 64
#define RENYI_FIGURE_MAX_SIDE 32000 /* pixels of a PNG */
#define RENYI_FIGURE_MAX_PIXELS 268435456

typedef struct renyi_figure_file {
    char *bytes; /* [size + 1], NUL-terminated */
    size_t size;
    renyi_allocator allocator; /* used by renyi_figure_free */
} renyi_figure_file;

/* Draws the results one below the other. RENYI_ERR_ARG: an option out of range, or nothing to draw.
 * RENYI_ERR_LIMIT: the figure would be too large. On success *out is owned by the caller
 * (renyi_figure_free); otherwise it is empty. */
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

/* ---- figures in a terminal ------------------------------------------------------------------- */

/* The same figures as bytes to print. */

typedef enum renyi_terminal {
    RENYI_TERMINAL_BLOCKS = 0, /* half blocks in 24-bit color: any modern terminal */
    RENYI_TERMINAL_KITTY = 1,  /* kitty's graphics protocol: kitty, ghostty, WezTerm, Konsole */
    RENYI_TERMINAL_ITERM2 = 2  /* iTerm2's inline images: iTerm2, WezTerm, mintty */
} renyi_terminal;

/* columns: width of the terminal in characters, 20 to 1000; 0 = 80. With half blocks, images are
 * drawn small and labels are text; otherwise the PNG figure is shown at the width of the terminal.
 * On success *out is owned by the caller (renyi_figure_free); otherwise it is empty. */
RENYI_API RENYI_CHECK renyi_status renyi_figure_terminal(
    renyi_figure_file *out, const renyi_viz_result *const *results, size_t n_results,
    const renyi_figure_options *opt, renyi_terminal terminal, uint32_t columns, renyi_error *err);

RENYI_API void renyi_figure_free(renyi_figure_file *f); /* an empty file is allowed */

/* ---- HTML page ------------------------------------------------------------------------------- */

/* One HTML file with the images, the scores of all layers and what each policy kept. It opens from
 * disk without a network and works with a keyboard, on a phone, in light and dark mode. The same
 * results give the same bytes. Texts may be any bytes, as in report.h. Call order: renyi_viz_run
 * per image -> renyi_viz_html -> write the text -> renyi_report_text_free. */

#define RENYI_VIZ_MAX_PHOTOS 100 /* per page */

/* All pointers are borrowed for the call. A text that is NULL is left out. */
typedef struct renyi_viz_page {
    uint32_t struct_size;
    uint32_t n_photos;
    const renyi_viz_result *const *photos; /* [n_photos] results of one renyi_viz, at least one: the
                                              same layers, metrics, keep rates and policies */
    const char *title;                     /* NULL = names the model */
    const char *note;                      /* a sentence below the title */
    const char *command;                   /* command line that made the page */
    renyi_allocator allocator;
} renyi_viz_page;

/* RENYI_ERR_ARG: a result that does not match the first one, or contradicting numbers. On success
 * *out is owned by the caller (renyi_report_text_free); otherwise it is empty. */
RENYI_API RENYI_CHECK renyi_status renyi_viz_html(renyi_report_text *out,
                                                  const renyi_viz_page *page, renyi_error *err);

#ifdef __cplusplus
}
#endif
#endif
