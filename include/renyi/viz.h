/* viz.h - what a model looks at in one photo and what pruning drops of it, as plain numbers.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Life of a program:  renyi_model_open -> renyi_viz_new -> renyi_viz_run* -> draw -> free.
 *
 * A result holds everything that a figure or a page needs, copies of all names included: it lives
 * on without the photo, the renyi_viz and the model. One forward pass of the unpruned model gives
 * all metrics, layers and orders, the prediction and the attention; every policy is one run more.
 *
 * Patches are counted in raster order, row * grid + column, whatever was cut away before. Layers
 * are blocks of the encoder, from 0. The same photo and options give the same result, but for the
 * times (`ms`), which are NaN unless they are asked for. The rest is as in renyi.h.
 */
#ifndef RENYI_VIZ_H
#define RENYI_VIZ_H

#include "renyi/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what is to be seen -------------------------------------------------------------------- */

typedef struct renyi_viz renyi_viz;

#define RENYI_VIZ_MAX_METRICS 16
#define RENYI_VIZ_MAX_ORDERS 16
#define RENYI_VIZ_MAX_KEEPS 32
#define RENYI_VIZ_MAX_ROWS 64
#define RENYI_VIZ_MAX_TOP 20

/* Texts and lists are borrowed for the call of renyi_viz_new. */
typedef struct renyi_viz_options {
    uint32_t struct_size;
    uint32_t n_metrics;         /* 0 = cls (with a class token), col n=4, random */
    const char *const *metrics; /* [n_metrics] what a policy says behind metric=: "col n=4"; without
                                   n= it is the rule's, 4 for naive and 2 for evit */
    uint32_t n_layers;          /* 0 = the first six blocks, or all if there are fewer */
    const uint32_t *layers;     /* [n_layers] ascending */
    uint32_t n_orders;          /* 0 = 1, 2, 3, 4, infinity */
    const double *orders;       /* [n_orders] of Col-Ln: each >= 1 or INFINITY */
    uint32_t n_keeps;           /* 0 = 0.3, 0.4 ... 0.9 */
    const double *keeps;        /* [n_keeps] keep rates, ascending, each above 0 and at most 1 */
    const char *rule;           /* the policy of each metric's row, without metric=; NULL = naive
                                   with a p that half of the patches are gone by in the end, cutting
                                   in the layers shown, six at most. "" = no such rows */
    uint32_t n_policies;        /* rows below those of the metrics */
    const char *const *policies; /* [n_policies] policies in their own words */
    uint32_t sweep;     /* 1 = run the rule for every metric and keep rate: n_metrics x n_keeps runs
                           more. A rule that says keep does so at each of its cuts; one that says p
                           removes as many as leave that share of the patches after its last cut. 2 =
                           for every norm too */
    uint32_t attention; /* 1 = fill renyi_viz_result.attention */
    uint32_t has_query; /* 0 = the class token, or the patch in the middle without one */
    uint32_t query;     /* patch whose attention row is shown */
    uint32_t has_token; /* 0 = the patch that Col-L4 likes best in the last of the layers */
    uint32_t token;     /* patch whose received column is shown */
    uint32_t n_top;     /* classes of each prediction; 0 = 5 */
    const char *const *class_names; /* [n_classes of the model], copied; NULL = the model's own
                                       labels, else "class N" */
    uint32_t time;      /* so many timed runs of each policy after one to warm up: `ms` is the
                           fastest. 0 = no times, and each policy runs once */
    uint32_t n_threads; /* 0 = physical cores */
    renyi_allocator allocator;
    renyi_progress progress; /* in renyi_viz_run: forward passes done of all */
    void *progress_user;
} renyi_viz_options;

/* Borrows m. On success *out is owned by the caller. RENYI_ERR_ARG names the metric, layer, order,
 * keep rate or policy at fault and what is allowed. */
RENYI_API RENYI_CHECK renyi_status renyi_viz_new(renyi_viz **out, const renyi_model *m,
                                                 const renyi_viz_options *opt, renyi_error *err);
RENYI_API void renyi_viz_free(renyi_viz *v);

/* ---- what there is to see ------------------------------------------------------------------ */

/* The photo as the model sees it: resized and cropped, not normalised. */
typedef struct renyi_viz_photo {
    const char *name;
    const uint8_t *rgb; /* [size, size, 3] */
    uint32_t size;      /* pixels a side = grid * patch */
    uint32_t grid;      /* patches a side */
    uint32_t patch;     /* pixels of a patch a side */
} renyi_viz_photo;

/* One metric at one layer of the unpruned model. Exact. */
typedef struct renyi_viz_map {
    const float *score;   /* [n_patches] larger is better; of any scale */
    const uint32_t *rank; /* [n_patches] 0 = best; equal scores: the lower place first. A single cut
                             here at keeps[k] leaves the patches of rank < kept[k]: this is what a
                             policy with this one cut does. With cuts before it, it is a preview */
    float low, high; /* 1st and 99th percentile of the scores: the ends of a colour scale. low <=
                        high, equal if all scores are; finite */
} renyi_viz_map;

typedef struct renyi_viz_metric {
    const char *name;          /* in full, every word that is not a default: "col n=4" */
    const char *label;         /* for people: "Col-L4", "class attention", "random" */
    double order;              /* n of the metric; NaN if it has none */
    const renyi_viz_map *maps; /* [n_layers] */
} renyi_viz_metric;

typedef struct renyi_viz_guess {
    uint32_t index;   /* class */
    const char *name; /* never NULL */
    float probability;
} renyi_viz_guess;

typedef struct renyi_viz_answer {
    uint32_t n_top;
    const renyi_viz_guess *top; /* [n_top] most likely first */
    double macs;                /* multiply-accumulates in all (`macs` of renyi_layer_cost) */
    double ms;                  /* of the model; NaN = not measured */
} renyi_viz_answer;

/* What has become of a patch. A fused token is no patch: those in it are FUSED, and it is counted
 * in n_tokens alone. */
typedef enum renyi_viz_state {
    RENYI_VIZ_KEPT = 0,   /* a token of its own */
    RENYI_VIZ_MERGED = 1, /* in a token with other patches */
    RENYI_VIZ_FUSED = 2,  /* in a token that all leftovers of a cut went into */
    RENYI_VIZ_DROPPED = 3 /* gone */
} renyi_viz_state;

/* A policy after one layer, all cuts so far counted: what really ran, no preview. */
typedef struct renyi_viz_step {
    uint32_t layer;
    uint32_t is_cut;         /* 1 = this layer cuts */
    const uint8_t *state;    /* [n_patches] renyi_viz_state */
    const uint8_t *rescued;  /* [n_patches] 1 = in a token that the last cut kept by Col-Ln though
                                class attention had not chosen it (metric=correct) */
    const uint32_t *group;   /* [n_patches] patch that the token it is in grew from: itself if KEPT;
                                patches of equal group are one token. RENYI_NONE = fused, dropped */
    const uint32_t *gone_at; /* [n_patches] layer where it was fused or dropped; else RENYI_NONE */
    const float *score;      /* [n_patches] what this layer's cut ranked the patch's token by; NaN
                                for one that did not enter it as its token's own patch, or
                                without a cut */
    uint32_t n_kept, n_merged, n_fused, n_dropped; /* patches; their sum is n_patches */
    uint32_t n_rescued;
    uint32_t n_groups; /* tokens that stand for patches of the picture, fused ones left out */
    uint32_t n_tokens; /* tokens that leave the layer, prefix and fused ones counted in */
    double macs;       /* from the picture to the end of this layer */
} renyi_viz_step;

typedef struct renyi_viz_row {
    const char *policy; /* in full */
    const char *label;  /* for people: the metric's label, or the policy as it was given */
    uint32_t metric;    /* place in metrics; RENYI_NONE = a policy in its own words, or a norm */
    uint32_t norm;      /* place in norms of a sweep's row that is no metric's; else RENYI_NONE */
    double keep;        /* of a row of the sweep; else NaN */
    uint32_t merges;    /* 1 = some cut joins patches into tokens: a mosaic can be drawn */
    uint32_t adaptive;  /* 1 = token counts depend on the photo (ats): macs is the most it may be */
    const renyi_viz_step *steps; /* [n_layers] */
    renyi_viz_answer answer;
} renyi_viz_row;

/* Attention of the unpruned model at one layer, per head. Token t is patch t - n_prefix. */
typedef struct renyi_viz_attention_layer {
    const float *row;         /* [n_heads, n_tokens] from the query to every token; sums to 1 */
    const float *column;      /* [n_heads, n_tokens] from every token to the chosen one */
    const float *row_mean;    /* [n_tokens] over heads */
    const float *column_mean; /* [n_tokens] over heads: the norm of it is Col-Ln of the token */
} renyi_viz_attention_layer;

typedef struct renyi_viz_attention {
    uint32_t n_heads, n_tokens, n_prefix;
    int32_t query;                           /* patch, or RENYI_PREFIX: the class token */
    int32_t token;                           /* patch */
    const renyi_viz_attention_layer *layers; /* [n_layers] */
} renyi_viz_attention;

typedef struct renyi_viz_result {
    renyi_viz_photo photo;
    const char *model; /* architecture */
    uint32_t n_blocks, n_patches, n_prefix, n_heads;
    uint32_t n_layers;
    const uint32_t *layers; /* [n_layers] ascending: the columns of every figure */
    uint32_t n_metrics;
    const renyi_viz_metric *metrics; /* [n_metrics] rows of the heat maps */
    uint32_t n_norms;
    const renyi_viz_metric *norms; /* [n_norms] rows of the norm-order figure: cls if there is a
                                      class token, then col of each order */
    uint32_t n_keeps;
    const double *keeps;  /* [n_keeps] */
    const uint32_t *kept; /* [n_keeps] patches that one cut at this rate leaves: ceil(keep x P) */
    uint32_t n_rows;
    const renyi_viz_row *rows; /* [n_rows] of the pruning overlay: one per metric, then policies */
    uint32_t n_sweep;
    const renyi_viz_row *sweep; /* [n_sweep] row m * n_keeps + k is metric m at keeps[k]; behind
                                   them likewise the norms that are not among the metrics, if
                                   asked for. Or 0 and NULL */
    renyi_viz_answer dense;
    const renyi_viz_attention *attention; /* NULL = not asked for */
} renyi_viz_result;

/* One photo, any size. name: shown, any bytes; NULL = "photo". On success *out is owned by the
 * caller (renyi_viz_result_free). One call at a time. */
RENYI_API RENYI_CHECK renyi_status renyi_viz_run(renyi_viz *v, const renyi_image *photo,
                                                 const char *name, renyi_viz_result **out,
                                                 renyi_error *err);
RENYI_API void renyi_viz_result_free(renyi_viz_result *r);

/* ---- figures --------------------------------------------------------------------------------- */

/* figures of what a model looks at and what pruning drops: PNG, SVG, terminal.
 * *
 * Each call draws what renyi_viz_run found in one or more photos and writes one file to memory. The
 * same results and options give the same bytes on one machine: no clock is read, and text is set
 * in one font (Open Sans; another one where it is missing, so that bytes then differ).
 *
 * Texts may be any bytes; what is not UTF-8 or cannot be printed is shown as U+FFFD. Scores that
 * are not finite are left open. Memory is as in renyi.h, but for what cairo and pango allocate
 * inside: cairo's failures are errors, while pango (GLib) ends the process when memory runs out in
 * it. Calls may run at the same time in different threads. */

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

/* ---- page ------------------------------------------------------------------------------------ */

/* what a model looks at and what pruning drops, as a page to play with.
 * *
 * One HTML file with everything inside: the photos, the scores of all layers, what each policy
 * kept. It opens from disk, asks no network, and works with the keyboard, on a phone, in light and
 * dark. The same results give the same bytes. Texts may be any bytes, as in report.h. */

#define RENYI_VIZ_MAX_PHOTOS 100 /* of one page */

/* All pointers are borrowed for the call; a text that is NULL is left out. */
typedef struct renyi_viz_page {
    uint32_t struct_size;
    uint32_t n_photos;
    const renyi_viz_result *const *photos; /* [n_photos] of one renyi_viz, at least one: the same
                                              layers, metrics, keep rates and policies */
    const char *title;                     /* NULL = says which model it is about */
    const char *note;                      /* a sentence under it */
    const char *command;                   /* that ran this */
    renyi_allocator allocator;
} renyi_viz_page;

/* On success *out is owned by the caller (renyi_report_text_free); otherwise it is empty.
 * RENYI_ERR_ARG: a photo that is not like the first one, or numbers that do not fit together. */
RENYI_API RENYI_CHECK renyi_status renyi_viz_html(renyi_report_text *out,
                                                  const renyi_viz_page *page, renyi_error *err);

#ifdef __cplusplus
}
#endif
#endif
