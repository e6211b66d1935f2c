/* eval_report.c - the tables of an evaluation: policies, pairs of policies, classes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/eval/eval_report.h"

#include "cli/kit/output.h"

#include <math.h>
#include <stdlib.h>

void eval_put_real(int width, int digits, double value)
{
    if (isfinite(value))
        printf("%*.*f", width, digits, value);
    else
        printf("%*s", width, "-");
}

static int has_dtypes(const renyi_eval *e)
{
    renyi_eval_result first, last;

    renyi_eval_get_result(e, 0, &first);
    renyi_eval_get_result(e, renyi_eval_policy_count(e) - 1, &last);
    return first.dtype != last.dtype;
}

void eval_table_policies(const renyi_eval *e)
{
    const int dtypes = has_dtypes(e);

    printf("%s  #   top-1 %%      95 %% range    top-5 %%    loss   GMACs   ms model   ms total   "
           "images/s  %spolicy%s\n",
           cli_bold(stdout), dtypes ? "dtype  " : "", cli_plain(stdout));
    for (uint32_t i = 0; i < renyi_eval_policy_count(e); i++) {
        renyi_eval_result p;
        renyi_eval_get_result(e, i, &p);
        printf("%3u", i + 1);
        eval_put_real(10, 2, p.top1);
        printf("   %5.2f to %6.2f", p.top1_range.low, p.top1_range.high);
        eval_put_real(10, 2, p.top5);
        eval_put_real(8, 3, p.loss);
        eval_put_real(8, 2, p.gmacs);
        eval_put_real(11, 2, p.ms_model);
        eval_put_real(11, 2, p.ms_total);
        eval_put_real(11, 1, p.images_per_second);
        if (dtypes) printf("  %-5s", renyi_dtype_name(p.dtype));
        cli_print("  %s\n", p.policy); /* may come from a log */
    }
    for (uint32_t i = 0; i < renyi_eval_policy_count(e); i++) {
        renyi_eval_result p;
        renyi_eval_get_result(e, i, &p);
        eval_put_cascade(i + 1, &p);
    }
}

void eval_put_cascade(size_t number, const renyi_eval_result *p)
{
    if (!p->is_cascade) return;
    if (isnan(p->second_share))
        printf("GMACs of #%zu are the most: an image that needs both passes of the cascade\n",
               number);
    else
        printf("GMACs of #%zu are means over the photos; %.1f %% needed the second pass (executed "
               "%.3f)\n",
               number, 100 * p->second_share, p->gmacs_executed);
}

void eval_table_pairs(const renyi_eval *e)
{
    const uint32_t n = renyi_eval_policy_count(e);

    if (n < 2) return;
    printf("\n%sphoto by photo   points   both right   only first   only second   neither   same "
           "answer        p%s\n",
           cli_bold(stdout), cli_plain(stdout));
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = a + 1; b < n; b++) {
            renyi_eval_pair p;
            char names[32], p_value[24];
            renyi_eval_get_pair(e, a, b, &p);
            snprintf(names, sizeof names, "%u -> %u", a + 1, b + 1);
            snprintf(p_value, sizeof p_value, p.p_value < 1e-4 ? "%.1e" : "%.4f", p.p_value);
            printf("%14s   %+6.2f   %10llu   %10llu   %11llu   %7llu   %11llu  %7s%s\n", names,
                   p.difference, (unsigned long long)p.both, (unsigned long long)p.only_a,
                   (unsigned long long)p.only_b, (unsigned long long)p.none,
                   (unsigned long long)p.same, p_value, p.is_noise ? "  within the noise" : "");
        }
}

/* ---- class by class
 * ------------------------------------------------------------------------------ */

enum { MAX_SHOWN = 10 }; /* policies with a column in the table */

/* Accuracy of every class with every policy. */
typedef struct class_grid {
    renyi_eval_class *cells; /* [n_policies, n_classes] */
    double *means;           /* [n_policies] */
    uint32_t n_policies, n_classes;
} class_grid;

static class_grid count_classes(const eval_report *r)
{
    class_grid g = {.n_policies = renyi_eval_policy_count(r->eval),
                    .n_classes = r->model->n_classes};

    g.cells = cli_alloc((size_t)g.n_policies * g.n_classes, sizeof *g.cells);
    g.means = cli_alloc(g.n_policies, sizeof *g.means);
    for (uint32_t p = 0; p < g.n_policies; p++)
        renyi_eval_get_classes(r->eval, p, g.cells + (size_t)p * g.n_classes, g.n_classes,
                               &g.means[p]);
    return g;
}

static void free_classes(class_grid *g)
{
    free(g->cells);
    free(g->means);
}

/* Images of a class; those that only some policies were run on count, too. */
static uint64_t images_of(const class_grid *g, uint32_t class)
{
    uint64_t most = 0;

    for (uint32_t p = 0; p < g->n_policies; p++) {
        const uint64_t n = g->cells[(size_t)p * g->n_classes + class].images;
        if (n > most) most = n;
    }
    return most;
}

void eval_classes_means(const eval_report *r, json_t *results)
{
    class_grid g = count_classes(r);

    for (uint32_t p = 0; p < g.n_policies; p++)
        json_object_set_new(json_array_get(results, p), "top1_class_mean", json_number(g.means[p]));
    free_classes(&g);
}

json_t *eval_classes_json(const eval_report *r)
{
    class_grid g = count_classes(r);
    json_t *list = json_array();

    for (uint32_t c = 0; c < g.n_classes; c++) {
        json_t *top1 = json_array(), *top5 = json_array();
        for (uint32_t p = 0; p < g.n_policies; p++) {
            const renyi_eval_class *cell = &g.cells[(size_t)p * g.n_classes + c];
            json_array_append_new(top1, json_number(cell->top1));
            json_array_append_new(top5, json_number(cell->top5));
        }
        json_array_append_new(list,
                              json_pack("{s:i, s:o, s:I, s:o, s:o}", "class", (int)c, "name",
                                        json_text(class_name(r->names, c)), "photos",
                                        (json_int_t)images_of(&g, c), "top1", top1, "top5", top5));
    }
    free_classes(&g);
    return list;
}

/* Names come from folders and lists, so control characters are removed. Owned. */
static char *clean_name(const char *name)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    if (!f) return cli_copy("");
    cli_put_clean(f, name);
    fclose(f);
    return text;
}

static void put_class_table(const eval_report *r, const class_grid *g)
{
    const uint32_t shown = g->n_policies < MAX_SHOWN ? g->n_policies : MAX_SHOWN;
    text_table t = {0};

    text_table_column(&t, TEXT_RIGHT, "class");
    text_table_column(&t, TEXT_RIGHT, "photos");
    for (uint32_t p = 0; p < shown; p++)
        text_table_column(&t, TEXT_RIGHT, shown > 1 ? "top-1 %% %u" : "top-1 %%", p + 1);
    text_table_column(&t, TEXT_LEFT, "name");
    for (uint32_t c = 0; c < g->n_classes; c++) {
        const uint64_t n_images = images_of(g, c);
        if (!n_images) continue;
        text_table_cell(&t, "%u", c);
        text_table_cell(&t, "%llu", (unsigned long long)n_images);
        for (uint32_t p = 0; p < shown; p++) {
            const renyi_eval_class *cell = &g->cells[(size_t)p * g->n_classes + c];
            if (cell->images)
                text_table_cell(&t, "%.2f", cell->top1);
            else
                text_table_cell(&t, "-");
        }
        char *name = clean_name(class_name(r->names, c));
        text_table_cell(&t, "%s", name);
        free(name);
    }
    putchar('\n');
    text_table_put(&t, 0, 0);
}

static void put_classes(const eval_report *r)
{
    class_grid g = count_classes(r);
    uint32_t n = 0;

    for (uint32_t c = 0; c < g.n_classes; c++) n += images_of(&g, c) > 0;
    if (r->a->per_class) put_class_table(r, &g);
    printf("\ntop-1 %%, mean over %u classes:", n);
    for (uint32_t p = 0; p < g.n_policies; p++) {
        printf(p ? " | " : " ");
        if (isfinite(g.means[p]))
            printf("%.2f", g.means[p]);
        else
            printf("-");
    }
    putchar('\n');
    free_classes(&g);
}

/* ---- the whole report
 * ---------------------------------------------------------------------------- */

void eval_report_table(const eval_report *r)
{
    renyi_eval_result first;
    renyi_eval_times t;

    renyi_eval_get_result(r->eval, 0, &first);
    renyi_eval_get_times(r->eval, &t);
    eval_table_policies(r->eval);
    eval_table_pairs(r->eval);
    if (r->classes || r->a->per_class) put_classes(r);
    if (r->adapt && r->adapt->items) adapt_table(r->adapt);
    printf("\n%llu photos", (unsigned long long)first.images);
    if (t.resumed) printf(", %llu of them from the log", (unsigned long long)t.resumed);
    if (first.failed) printf(", %llu failed", (unsigned long long)first.failed);
    printf(", %u classes", r->data->n_valid ? r->data->n_valid : r->data->n_classes);
    printf("; %.1f s, %.1f of them in the model; ", t.seconds, t.seconds_model / t.n_ranks);
    if (t.n_ranks > 1) printf("%u ranks, ", t.n_ranks);
    printf("peak memory %.0f MB%s\n", r->peak_rss_mb, t.n_ranks > 1 ? " of the first" : "");
}
