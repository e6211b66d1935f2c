/* zeroshot_adapt.c - --adapt: policies that learn from the images they see (TCA); state, report.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/eval/zeroshot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int adapt_is_on(const adapt_arguments *a) { return a->text && strcmp(a->text, "none") != 0; }

/* ---- options ------------------------------------------------------------------------------- */

/* Where the value of a key such as "beta" goes; NULL = unknown key. */
static double *find_value(renyi_tca_options *o, const char *key, size_t n, double *size,
                          double *anchors, double *correction)
{
    const struct {
        const char *key;
        double *to;
    } keys[] = {{"size", size},     {"scale", &o->scale}, {"lambda", &o->lambda},
                {"beta", &o->beta}, {"anchors", anchors}, {"correction", correction}};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strlen(keys[i].key) == n && strncmp(keys[i].key, key, n) == 0) return keys[i].to;
    return NULL;
}

/* Parses "tca size=3 beta=5" into *o, which holds the defaults. Returns an exit code. */
static int parse_adapt(renyi_tca_options *o, const char *verb, const char *text)
{
    double size = o->size, anchors = 1, correction = 1;
    const char *at = text + strspn(text, " ");
    size_t n = strcspn(at, " ");

    if (n != 3 || strncmp(at, "tca", 3) != 0)
        return options_usage_error(verb, "--adapt '%s': only tca is known", text);
    for (at += n; *(at += strspn(at, " ")); at += n) {
        n = strcspn(at, " ");
        const size_t key = strcspn(at, "=");
        char *end = NULL;
        double *to = key < n ? find_value(o, at, key, &size, &anchors, &correction) : NULL;
        const double value = to ? strtod(at + key + 1, &end) : NAN;
        if (!to || end != at + n || !isfinite(value) || value < 0)
            return options_usage_error(verb,
                                       "--adapt: '%.*s' is none of size=, scale=, lambda=, "
                                       "beta= with a number, anchors=, correction= with 0 or 1",
                                       (int)n, at);
        *to = value;
    }
    if (size != floor(size) || size < 2 || size > 1024 || o->scale <= 0)
        return options_usage_error(verb,
                                   "--adapt: size %g and scale %g; size must be a whole number "
                                   "from 2 to 1024, scale above 0",
                                   size, o->scale);
    o->size = (uint32_t)size;
    o->no_anchors = anchors == 0;
    o->no_correction = correction == 0 || o->lambda == 0;
    return CLI_OK;
}

static renyi_tca_options default_options(const char *collection)
{
    renyi_tca_options o = {
        .struct_size = sizeof o, .size = 3, .scale = 0.1, .lambda = 3, .beta = 5};
    renyi_collection c;

    if (!collection || renyi_collection_find(collection, &c, NULL) != RENYI_OK) return o;
    o.size = c.tca_size;
    o.scale = c.tca_scale;
    o.lambda = c.tca_lambda;
    o.beta = c.tca_beta;
    return o;
}

int adapt_check(const char *verb, const adapt_arguments *a)
{
    renyi_tca_options o = default_options(NULL);

    if (adapt_is_on(a)) return parse_adapt(&o, verb, a->text);
    if (a->state || a->in_order)
        return options_usage_error(verb, "--adapt-state and --in-order need --adapt tca");
    return CLI_OK;
}

/* ---- run ----------------------------------------------------------------------------------- */

static int open_item(adaptation *t, uint32_t i, const renyi_model *model)
{
    renyi_error err = {0};

    if (renyi_tca_new(&t->items[i], model, &t->o, &err) != RENYI_OK) return cli_fail(&err);
    if (!t->a->state || access(t->a->state, F_OK) != 0) return CLI_OK;
    return renyi_tca_load(t->items[i], t->a->state, &err) == RENYI_OK ? CLI_OK : cli_fail(&err);
}

int adapt_open(adaptation *out, const char *verb, const adapt_arguments *a, const char *collection,
               const renyi_model *model, const cli_strings *policies)
{
    uint32_t n_adapted = 0;

    *out = (adaptation){.a = a, .o = default_options(collection)};
    if (!adapt_is_on(a)) return CLI_OK;
    int code = parse_adapt(&out->o, verb, a->text);
    out->n = (uint32_t)policies->count;
    out->items = cli_alloc(out->n, sizeof *out->items);
    out->condition =
        cli_format("tca size=%u scale=%g lambda=%g beta=%g%s%s", out->o.size, out->o.scale,
                   out->o.lambda, out->o.beta, out->o.no_anchors ? " anchors=0" : "",
                   out->o.no_correction ? " correction=0" : "");
    for (uint32_t i = 0; code == CLI_OK && i < out->n; i++) {
        if (strcmp(policies->items[i], "none") == 0) continue;
        code = open_item(out, i, model);
        n_adapted++;
    }
    if (code != CLI_OK) return code;
    if (!n_adapted)
        return options_usage_error(verb, "--adapt: give a policy that adapts; 'none' is only for "
                                         "comparison");
    if (a->state && n_adapted > 1)
        return options_usage_error(verb, "--adapt-state is the state of one policy, but %u adapt",
                                   n_adapted);
    cli_note("adapting: %s", out->condition);
    return CLI_OK;
}

int adapt_save(const adaptation *t)
{
    renyi_error err = {0};

    for (uint32_t i = 0; t->items && t->a->state && i < t->n; i++)
        if (t->items[i] && renyi_tca_save(t->items[i], t->a->state, &err) != RENYI_OK)
            return cli_fail(&err);
    return CLI_OK;
}

void adapt_free(adaptation *t)
{
    for (uint32_t i = 0; t->items && i < t->n; i++) renyi_tca_free(t->items[i]);
    free(t->items);
    free(t->condition);
}

/* ---- report -------------------------------------------------------------------------------- */

void adapt_table(const adaptation *t)
{
    putchar('\n');
    for (uint32_t i = 0; t->items && i < t->n; i++) {
        renyi_tca_info info;
        if (!t->items[i]) continue;
        renyi_tca_get_info(t->items[i], &info);
        printf("policy %u adapted: %llu photos seen, %llu ran with anchors", i + 1,
               (unsigned long long)info.n_images, (unsigned long long)info.n_anchored);
        if (info.n_anchored)
            printf(" (from number %llu on)", (unsigned long long)info.first_anchored);
        printf(", %llu answers changed; %u items of %u class%s, %u of %u classes %s two\n",
               (unsigned long long)info.n_changed, info.n_items, info.n_seen_classes,
               info.n_seen_classes == 1 ? "" : "es", info.n_ready_classes, info.n_classes,
               info.n_ready_classes == 1 ? "has" : "have");
    }
}

void adapt_results(const adaptation *t, json_t *results)
{
    for (uint32_t i = 0; t->items && i < t->n; i++) {
        json_t *result = json_array_get(results, i);
        renyi_tca_info k;
        json_object_set_new(result, "adapt", t->items[i] ? json_string("tca") : json_null());
        if (!t->items[i]) continue;
        renyi_tca_get_info(t->items[i], &k);
        json_object_set_new(
            result, "tca",
            json_pack("{s:i, s:f, s:f, s:f, s:I, s:I, s:o, s:I, s:i, s:i, s:i}", "size",
                      (int)k.size, "scale", k.scale, "lambda", k.lambda, "beta", k.beta, "images",
                      (json_int_t)k.n_images, "anchored", (json_int_t)k.n_anchored,
                      "first_anchored",
                      k.n_anchored ? json_integer((json_int_t)k.first_anchored) : json_null(),
                      "changed", (json_int_t)k.n_changed, "items", (int)k.n_items, "classes_seen",
                      (int)k.n_seen_classes, "classes_ready", (int)k.n_ready_classes));
    }
}
