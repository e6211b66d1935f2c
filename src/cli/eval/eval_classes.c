/* eval_classes.c - renyi eval and zeroshot, class by class.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/eval/eval_report.h"
#include "cli/kit/output.h"

#include <math.h>
#include <stdlib.h>

enum { SHOWN = 10 }; /* policies that have a column in the table */

/* Accuracies of every class under every policy. */
typedef struct class_grid {
    renyi_eval_class *cells; /* [n_policies, n_classes] */
    double *means;           /* [n_policies] */
    uint32_t n_policies, n_classes;
} class_grid;

static class_grid count(const eval_report *r)
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

static void grid_free(class_grid *g)
{
    free(g->cells);
    free(g->means);
}

/* Photos of a class; those that only some policies answered count too. */
static uint64_t photos_of(const class_grid *g, uint32_t class)
{
    uint64_t most = 0;

    for (uint32_t p = 0; p < g->n_policies; p++) {
        const uint64_t n = g->cells[(size_t)p * g->n_classes + class].images;
        if (n > most) most = n;
    }
    return most;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

void eval_classes_means(const eval_report *r, json_t *results)
{
    class_grid g = count(r);

    for (uint32_t p = 0; p < g.n_policies; p++)
        json_object_set_new(json_array_get(results, p), "top1_class_mean", json_number(g.means[p]));
    grid_free(&g);
}

json_t *eval_classes_json(const eval_report *r)
{
    class_grid g = count(r);
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
                                        (json_int_t)photos_of(&g, c), "top1", top1, "top5", top5));
    }
    grid_free(&g);
    return list;
}

/* ---- for people ---------------------------------------------------------------------------- */

/* Names come from folders and lists: no terminal is hijacked by them. Owned. */
static char *clean(const char *name)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    if (!f) return cli_copy("");
    cli_put_clean(f, name);
    fclose(f);
    return text;
}

static void put_classes(const eval_report *r, const class_grid *g)
{
    const uint32_t shown = g->n_policies < SHOWN ? g->n_policies : SHOWN;
    text_table t = {0};

    text_table_column(&t, TEXT_RIGHT, "class");
    text_table_column(&t, TEXT_RIGHT, "photos");
    for (uint32_t p = 0; p < shown; p++)
        text_table_column(&t, TEXT_RIGHT, shown > 1 ? "top-1 %% %u" : "top-1 %%", p + 1);
    text_table_column(&t, TEXT_LEFT, "name");
    for (uint32_t c = 0; c < g->n_classes; c++) {
        const uint64_t photos = photos_of(g, c);
        if (!photos) continue;
        text_table_cell(&t, "%u", c);
        text_table_cell(&t, "%llu", (unsigned long long)photos);
        for (uint32_t p = 0; p < shown; p++) {
            const renyi_eval_class *cell = &g->cells[(size_t)p * g->n_classes + c];
            if (cell->images)
                text_table_cell(&t, "%.2f", cell->top1);
            else
                text_table_cell(&t, "-");
        }
        char *name = clean(class_name(r->names, c));
        text_table_cell(&t, "%s", name);
        free(name);
    }
    putchar('\n');
    text_table_put(&t, 0, 0);
}

void eval_classes_table(const eval_report *r)
{
    class_grid g = count(r);
    uint32_t n = 0;

    for (uint32_t c = 0; c < g.n_classes; c++) n += photos_of(&g, c) > 0;
    if (r->a->per_class) put_classes(r, &g);
    printf("\ntop-1 %%, mean over %u classes:", n);
    for (uint32_t p = 0; p < g.n_policies; p++) {
        printf(p ? " | " : " ");
        if (isfinite(g.means[p]))
            printf("%.2f", g.means[p]);
        else
            printf("-");
    }
    putchar('\n');
    grid_free(&g);
}
