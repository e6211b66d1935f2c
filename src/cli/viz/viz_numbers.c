/* viz_numbers.c - the numbers of renyi viz: a table for people and one JSON document.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/output.h"
#include "cli/viz/viz_arguments.h"

#include <math.h>
#include <stdlib.h>

/* ---- the table
 * ----------------------------------------------------------------------------------- */

/* "16 32 48": patches that are no longer tokens of the image after each layer. */
static char *gone_text(const renyi_viz_result *r, const renyi_viz_row *row)
{
    char *text = cli_copy("");

    for (uint32_t i = 0; i < r->n_layers; i++) {
        char *longer =
            cli_format("%s%s%u", text, i ? " " : "", r->n_patches - row->steps[i].n_groups);
        free(text);
        text = longer;
    }
    return text;
}

/* Without classes only the cost is shown. */
static void put_answer(text_table *t, const renyi_viz_answer *a, int is_timed, int has_classes)
{
    text_table_cell(t, "%.3f", a->macs / 1e9);
    if (is_timed) text_table_cell(t, "%.1f", a->ms);
    if (!has_classes) return;
    text_table_cell(t, "%.2f", a->n_top ? 100.0 * (double)a->top[0].probability : (double)NAN);
    text_table_cell(t, "%s", a->n_top ? a->top[0].name : "-");
}

static void put_name(const renyi_viz_result *r)
{
    fputs(cli_bold(stdout), stdout);
    cli_put_clean(stdout, r->photo.name);
    fputs(cli_plain(stdout), stdout);
    cli_print("  %s, %u x %u patches", r->model, r->photo.grid, r->photo.grid);
}

static void put_image(const renyi_viz_result *r)
{
    const int is_timed = !isnan(r->dense.ms), has_classes = r->dense.n_top > 0;
    text_table t = {0};

    text_table_column(&t, TEXT_LEFT, "policy");
    text_table_column(&t, TEXT_LEFT, "patches gone after each layer");
    text_table_column(&t, TEXT_RIGHT, "GMACs");
    if (is_timed) text_table_column(&t, TEXT_RIGHT, "ms");
    if (has_classes) {
        text_table_column(&t, TEXT_RIGHT, "%%");
        text_table_column(&t, TEXT_LEFT, "class");
    }
    text_table_cell(&t, "dense");
    text_table_cell(&t, "-");
    put_answer(&t, &r->dense, is_timed, has_classes);
    for (uint32_t i = 0; i < r->n_rows; i++) {
        char *cell = gone_text(r, &r->rows[i]);
        text_table_cell(&t, "%s", r->rows[i].label);
        text_table_cell(&t, "%s", cell);
        put_answer(&t, &r->rows[i].answer, is_timed, has_classes);
        free(cell);
    }
    put_name(r);
    fputs(", layers", stdout);
    for (uint32_t i = 0; i < r->n_layers; i++) printf(" %u", r->layers[i]);
    fputs("\n", stdout);
    text_table_put(&t, 0, 2);
}

/* "128 96 96": visual tokens of each tile. */
static char *tiles_text(const renyi_viz_tiles *t, uint32_t row)
{
    char *text = cli_copy("");

    for (uint32_t i = 0; i < t->across * t->down; i++) {
        char *longer =
            cli_format("%s%s%u", text, i ? " " : "", t->squares[i]->rows[row].steps->n_tokens);
        free(text);
        text = longer;
    }
    return text;
}

/* A LLaVA-NeXT: visual tokens of the whole image, and of base and tiles. */
static void put_tiles(const renyi_viz_result *r, const renyi_viz_tiles *t)
{
    text_table table = {0};

    text_table_column(&table, TEXT_LEFT, "policy");
    text_table_column(&table, TEXT_RIGHT, "tokens");
    text_table_column(&table, TEXT_RIGHT, "newlines");
    text_table_column(&table, TEXT_RIGHT, "base");
    text_table_column(&table, TEXT_LEFT, "tiles");
    text_table_column(&table, TEXT_RIGHT, "GMACs");
    for (uint32_t i = 0; i <= r->n_rows; i++) {
        char *tiles = i ? tiles_text(t, i - 1) : cli_copy("-");
        text_table_cell(&table, "%s", i ? r->rows[i - 1].label : "dense");
        text_table_cell(&table, "%u", t->n_tokens[i]);
        text_table_cell(&table, "%u", t->n_newlines[i]);
        text_table_cell(&table, "%u", i ? r->rows[i - 1].steps->n_tokens : r->n_patches);
        text_table_cell(&table, "%s", tiles);
        put_answer(&table, i ? &r->rows[i - 1].answer : &r->dense, 0, 0);
        free(tiles);
    }
    put_name(r);
    cli_print(" in base and %u x %u tiles; tiles without border: %u x %u\n", t->across, t->down,
              t->n_columns, t->n_lines);
    text_table_put(&table, 0, 2);
}

void viz_table(const viz_view *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->tiles && v->tiles[i])
            put_tiles(v->images[i], v->tiles[i]);
        else
            put_image(v->images[i]);
}

static json_t *floats_json(const float *values, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++) json_array_append_new(list, json_number((double)values[i]));
    return list;
}

/* RENYI_NONE gives null. */
static json_t *counts_json(const uint32_t *values, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list,
                              values[i] == RENYI_NONE ? json_null() : json_integer(values[i]));
    return list;
}

static json_t *index_or_null(uint32_t value)
{
    return value == RENYI_NONE ? json_null() : json_integer(value);
}

/* ---- the dense part ------------------------------------------------------------------------ */

static json_t *metric_json(const renyi_viz_result *r, const renyi_viz_metric *m)
{
    json_t *maps = json_array();

    for (uint32_t i = 0; i < r->n_layers; i++) {
        const renyi_viz_map *map = &m->maps[i];
        json_array_append_new(
            maps, json_pack("{s:i, s:o, s:o, s:o, s:o}", "layer", (int)r->layers[i], "low",
                            json_number((double)map->low), "high", json_number((double)map->high),
                            "score", floats_json(map->score, r->n_patches), "rank",
                            counts_json(map->rank, r->n_patches)));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "name", json_text(m->name), "label",
                     json_text(m->label), "order",
                     isinf(m->order) ? json_string("inf") : json_number(m->order), "maps", maps);
}

static json_t *metrics_json(const renyi_viz_result *r, const renyi_viz_metric *m, uint32_t n)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < n; i++) json_array_append_new(list, metric_json(r, &m[i]));
    return list;
}

static json_t *answer_json(const renyi_viz_answer *a)
{
    json_t *top = json_array();

    for (uint32_t i = 0; i < a->n_top; i++)
        json_array_append_new(top, json_pack("{s:i, s:o, s:o}", "index", (int)a->top[i].index,
                                             "label", json_text(a->top[i].name), "probability",
                                             json_number((double)a->top[i].probability)));
    return json_pack("{s:o, s:o, s:o}", "macs", json_number(a->macs), "ms", json_number(a->ms),
                     "top", top);
}

/* ---- policies ------------------------------------------------------------------------------ */

static json_t *states_json(const renyi_viz_step *s, size_t n)
{
    static const char *const names[] = {"kept", "merged", "fused", "dropped"};
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++) json_array_append_new(list, json_string(names[s->state[i]]));
    return list;
}

static json_t *rescued_json(const renyi_viz_step *s, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        if (s->rescued[i]) json_array_append_new(list, json_integer((json_int_t)i));
    return list;
}

static json_t *step_json(const renyi_viz_step *s, uint32_t n)
{
    json_t *out = json_pack(
        "{s:i, s:b, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o}", "layer", (int)s->layer, "cut",
        (int)s->is_cut, "tokens", (int)s->n_tokens, "groups", (int)s->n_groups, "kept",
        (int)s->n_kept, "merged", (int)s->n_merged, "fused", (int)s->n_fused, "dropped",
        (int)s->n_dropped, "rescued", (int)s->n_rescued, "macs", json_number(s->macs));

    json_object_set_new(out, "state", states_json(s, n));
    json_object_set_new(out, "group", counts_json(s->group, n));
    json_object_set_new(out, "gone_at", counts_json(s->gone_at, n));
    json_object_set_new(out, "rescued_patches", rescued_json(s, n));
    if (s->is_cut) json_object_set_new(out, "score", floats_json(s->score, n));
    return out;
}

static json_t *rows_json(const renyi_viz_result *r, const renyi_viz_row *rows, uint32_t n)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < n; i++) {
        const renyi_viz_row *row = &rows[i];
        json_t *steps = json_array();
        for (uint32_t l = 0; l < r->n_layers; l++)
            json_array_append_new(steps, step_json(&row->steps[l], r->n_patches));
        json_array_append_new(
            list,
            json_pack("{s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o}", "policy", json_text(row->policy),
                      "label", json_text(row->label), "metric", index_or_null(row->metric), "keep",
                      json_number(row->keep), "merges", (int)row->merges, "adaptive",
                      (int)row->adaptive, "answer", answer_json(&row->answer), "steps", steps));
    }
    return list;
}

/* ---- attention ----------------------------------------------------------------------------- */

/* One list per head; head 0 = all heads, else only head - 1. */
static json_t *heads_json(const float *values, const renyi_viz_attention *a, uint32_t head)
{
    json_t *list = json_array();

    for (uint32_t h = 0; h < a->n_heads; h++)
        if (!head || head == h + 1)
            json_array_append_new(list, floats_json(values + (size_t)h * a->n_tokens, a->n_tokens));
    return list;
}

static json_t *attention_json(const renyi_viz_result *r, uint32_t head)
{
    const renyi_viz_attention *a = r->attention;
    json_t *layers = json_array();

    if (!a) {
        json_decref(layers);
        return json_null();
    }
    for (uint32_t i = 0; i < r->n_layers; i++) {
        const renyi_viz_attention_layer *l = &a->layers[i];
        json_array_append_new(
            layers, json_pack("{s:i, s:o, s:o, s:o, s:o}", "layer", (int)r->layers[i], "row",
                              heads_json(l->row, a, head), "column", heads_json(l->column, a, head),
                              "row_mean", floats_json(l->row_mean, a->n_tokens), "column_mean",
                              floats_json(l->column_mean, a->n_tokens)));
    }
    return json_pack("{s:o, s:i, s:o, s:i, s:i, s:o}", "query",
                     a->query < 0 ? json_null() : json_integer(a->query), "token", (int)a->token,
                     "head", head ? json_integer(head - 1) : json_null(), "n_tokens",
                     (int)a->n_tokens, "n_prefix", (int)a->n_prefix, "layers", layers);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static json_t *image_json(const renyi_viz_result *r, uint32_t head)
{
    json_t *keeps = json_array();

    for (uint32_t i = 0; i < r->n_keeps; i++)
        json_array_append_new(
            keeps, json_pack("{s:f, s:i}", "keep", r->keeps[i], "kept", (int)r->kept[i]));
    return json_pack("{s:o, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
                     json_text(r->photo.name), "size", (int)r->photo.size, "grid",
                     (int)r->photo.grid, "patch", (int)r->photo.patch, "layers",
                     counts_json(r->layers, r->n_layers), "dense", answer_json(&r->dense),
                     "metrics", metrics_json(r, r->metrics, r->n_metrics), "norms",
                     metrics_json(r, r->norms, r->n_norms), "keeps", keeps, "rows",
                     rows_json(r, r->rows, r->n_rows), "sweep", rows_json(r, r->sweep, r->n_sweep),
                     "attention", attention_json(r, head));
}

static void add_tokens(json_t *to, const renyi_viz_tiles *t, size_t row)
{
    json_object_set_new(to, "visual_tokens", json_integer(t->n_tokens[row]));
    json_object_set_new(to, "newlines", json_integer(t->n_newlines[row]));
}

/* What the base of a LLaVA-NeXT has besides its own numbers: tokens of the whole image, tiles. */
static void add_tiles(json_t *image, const renyi_viz_tiles *t)
{
    json_t *squares = json_array(), *row;
    size_t i;

    for (i = 0; i < (size_t)t->across * t->down; i++)
        json_array_append_new(squares, image_json(t->squares[i], 0));
    add_tokens(json_object_get(image, "dense"), t, 0);
    json_array_foreach(json_object_get(image, "rows"), i, row) add_tokens(row, t, i + 1);
    json_object_set_new(image, "tiles",
                        json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:o}", "across", (int)t->across,
                                  "down", (int)t->down, "first_column", (int)t->first_column,
                                  "first_line", (int)t->first_line, "columns", (int)t->n_columns,
                                  "lines", (int)t->n_lines, "squares", squares));
}

json_t *viz_json(const viz_view *v)
{
    const uint32_t head = viz_head(v->a->attention);
    json_t *images = json_array();

    for (size_t i = 0; i < v->n; i++) {
        json_t *image = image_json(v->images[i], head);
        if (v->tiles && v->tiles[i]) add_tiles(image, v->tiles[i]);
        json_array_append_new(images, image);
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "model", json_text(v->a->model), "architecture",
                     v->n ? json_text(v->images[0]->model) : json_null(), "photos", images,
                     "failed", json_failures(&v->inputs->failed, &v->inputs->reasons));
}
