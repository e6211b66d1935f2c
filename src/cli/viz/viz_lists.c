/* viz_lists.c - the list options of renyi viz: "cls,col n=2", "0-5,11", "1,2,inf", "3,7".
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/shared/models.h"
#include "cli/viz/viz_arguments.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char verb[] = "viz";

/* Splits "a, b" at the commas and removes blanks around the items; an empty item stays. */
static void split_list(const char *text, cli_strings *items)
{
    while (text) {
        const char *comma = strchr(text, ',');
        const char *end = comma ? comma : text + strlen(text);
        while (*text == ' ') text++;
        while (end > text && end[-1] == ' ') end--;
        cli_strings_add(items, cli_format("%.*s", (int)(end - text), text));
        text = comma ? comma + 1 : NULL;
    }
}

/* Parses decimal digits. 1, or 0 if there is anything else. */
static int parse_whole(const char *text, const char *end, uint32_t *out)
{
    uint64_t value = 0;

    if (text == end) return 0;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9' || value > 1000000) return 0;
        value = value * 10 + (uint64_t)(*text - '0');
    }
    *out = (uint32_t)value;
    return 1;
}

uint32_t viz_head(const char *text)
{
    uint32_t head;

    if (!text || strcmp(text, "all") == 0) return 0;
    return parse_whole(text, text + strlen(text), &head) ? 1 + head : RENYI_NONE;
}

/* ---- layers -------------------------------------------------------------------------------- */

static int add_layers(viz_lists *l, uint32_t *n, const char *item, const renyi_model_info *info)
{
    const char *dash = strchr(item, '-'), *end = item + strlen(item);
    uint32_t first, last;

    if (!parse_whole(item, dash ? dash : end, &first) ||
        !parse_whole(dash ? dash + 1 : item, end, &last) || last < first)
        return options_usage_error(
                   verb, "option '--layers': '%s' is not a layer or a range such as 0-5 or 'all'",
                   item),
               -1;
    if (last >= info->n_blocks)
        return options_usage_error(verb, "option '--layers': layer %u; the model has 0 to %u", last,
                                   info->n_blocks - 1),
               -1;
    for (uint32_t i = first; i <= last; i++) {
        if (*n && l->layers[*n - 1] >= i)
            return options_usage_error(verb,
                                       "option '--layers': %u after %u; layers must be ascending",
                                       i, l->layers[*n - 1]),
                   -1;
        l->layers[(*n)++] = i;
    }
    return 0;
}

static int take_layers(viz_lists *l, uint32_t *n, const char *text, const renyi_model_info *info)
{
    const uint32_t most = sizeof l->layers / sizeof *l->layers;
    cli_strings items = {0};
    int code = 0;

    if (!text) return 0;
    if (strcmp(text, "all") == 0) {
        for (*n = 0; *n < info->n_blocks && *n < most; ++*n) l->layers[*n] = *n;
        return 0;
    }
    split_list(text, &items);
    for (size_t i = 0; !code && i < items.count; i++) code = add_layers(l, n, items.items[i], info);
    cli_strings_free(&items);
    return code;
}

/* ---- numbers ------------------------------------------------------------------------------- */

static int take_reals(double *out, uint32_t *n, uint32_t most, const char *name, const char *text)
{
    cli_strings items = {0};
    int code = 0;

    if (!text) return 0;
    split_list(text, &items);
    if (items.count > most) {
        options_usage_error(verb, "option '--%s': %zu numbers; at most %u", name, items.count,
                            most);
        code = -1;
    }
    for (size_t i = 0; !code && i < items.count; i++) {
        char *end;
        out[i] = strtod(items.items[i], &end);
        if (*items.items[i] && !*end && !isnan(out[i])) continue;
        options_usage_error(verb, "option '--%s': '%s' is not a number", name, items.items[i]);
        code = -1;
    }
    *n = code ? 0 : (uint32_t)items.count;
    cli_strings_free(&items);
    return code;
}

/* From "ROW,COL" to the index of a patch. */
static int take_patch(uint32_t *given, uint32_t *patch, const char *name, const char *text,
                      const renyi_model_info *info)
{
    const uint32_t grid = info->image_size / info->patch_size;
    const char *comma = text ? strchr(text, ',') : NULL;
    uint32_t row, column;

    if (!text) return 0;
    if (!comma || !parse_whole(text, comma, &row) ||
        !parse_whole(comma + 1, text + strlen(text), &column))
        return options_usage_error(verb, "option '--%s': '%s' is not ROW,COL such as 6,7", name,
                                   text),
               -1;
    if (row >= grid || column >= grid)
        return options_usage_error(
                   verb,
                   "option '--%s': row %u, column %u; the model's %u x %u patches are 0 to %u",
                   name, row, column, grid, grid, grid - 1),
               -1;
    *given = 1;
    *patch = row * grid + column;
    return 0;
}

static int check_head(const char *text, const renyi_model_info *info)
{
    const uint32_t head = viz_head(text);

    if (!text || head == 0 || (head != RENYI_NONE && head <= info->n_heads)) return 0;
    options_usage_error(verb, "option '--attention': '%s' is neither a head, 0 to %u, nor 'all'",
                        text, info->n_heads - 1);
    return -1;
}

/* ---- all options ----------------------------------------------------------------------------- */

static int take_names(viz_lists *l, const renyi_model *model, const renyi_model_info *info,
                      const char *path)
{
    class_names names;
    const int code = class_names_open(&names, model, info, path);

    if (!code) {
        l->class_names = cli_alloc(info->n_classes, sizeof *l->class_names);
        for (uint32_t i = 0; i < info->n_classes; i++)
            l->class_names[i] = cli_copy(class_name(&names, i));
    }
    class_names_free(&names);
    return code;
}

static uint32_t sweep_of(const viz_arguments *a)
{
    uint32_t sweep = 0;

    if (a->sweep) return strcmp(a->sweep, "all") == 0 ? 2 : strcmp(a->sweep, "metrics") == 0;
    for (size_t i = 0; i < a->outputs.count; i++)
        if (strcmp(viz_format(a->outputs.items[i]), "html") == 0) sweep = 2;
    return a->rule && !*a->rule ? 0 : sweep;
}

int viz_options_make(renyi_viz_options *out, viz_lists *l, const viz_arguments *a,
                     const renyi_model *model)
{
    renyi_model_info info;

    renyi_model_get_info(model, &info);
    *out = (renyi_viz_options){.struct_size = sizeof *out,
                               .rule = a->rule,
                               .n_policies = (uint32_t)a->policies.count,
                               .policies = (const char *const *)a->policies.items,
                               .attention = a->attention != NULL,
                               .n_top = (uint32_t)a->top_k,
                               .time = a->time ? 5 : 0,
                               .n_threads = (uint32_t)a->threads};
    out->sweep = sweep_of(a);
    if (a->metrics) split_list(a->metrics, &l->metrics);
    if (take_layers(l, &out->n_layers, a->layers, &info) ||
        take_reals(l->orders, &out->n_orders, RENYI_VIZ_MAX_ORDERS, "orders", a->orders) ||
        take_reals(l->keeps, &out->n_keeps, RENYI_VIZ_MAX_KEEPS, "keep", a->keeps) ||
        check_head(a->attention, &info) ||
        take_patch(&out->has_query, &out->query, "query", a->query, &info) ||
        take_patch(&out->has_token, &out->token, "token", a->token, &info) ||
        take_names(l, model, &info, a->labels))
        return -1;
    out->n_metrics = (uint32_t)l->metrics.count;
    out->metrics = (const char *const *)l->metrics.items;
    out->layers = l->layers;
    out->orders = l->orders;
    out->keeps = l->keeps;
    out->class_names = l->class_names;
    return 0;
}

void viz_lists_free(viz_lists *l, const renyi_model *model)
{
    renyi_model_info info;

    renyi_model_get_info(model, &info);
    for (uint32_t i = 0; l->class_names && i < info.n_classes; i++)
        free((char *)(uintptr_t)l->class_names[i]);
    free(l->class_names);
    cli_strings_free(&l->metrics);
}
