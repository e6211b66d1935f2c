/* viz_table.c - renyi viz for people: a row for each policy and photo.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/output.h"
#include "cli/viz/viz_arguments.h"

#include <math.h>
#include <stdlib.h>

/* "16 32 48": patches that are no longer a token of the picture after each layer. */
static char *gone(const renyi_viz_result *r, const renyi_viz_row *row)
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

/* Without classes there is nothing to say of the answer but its cost. */
static void put_answer(text_table *t, const renyi_viz_answer *a, int is_timed, int has_classes)
{
    text_table_cell(t, "%.3f", a->macs / 1e9);
    if (is_timed) text_table_cell(t, "%.1f", a->ms);
    if (!has_classes) return;
    text_table_cell(t, "%.2f", a->n_top ? 100.0 * (double)a->top[0].probability : (double)NAN);
    text_table_cell(t, "%s", a->n_top ? a->top[0].name : "-");
}

static void put_photo(const renyi_viz_result *r)
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
        char *cell = gone(r, &r->rows[i]);
        text_table_cell(&t, "%s", r->rows[i].label);
        text_table_cell(&t, "%s", cell);
        put_answer(&t, &r->rows[i].answer, is_timed, has_classes);
        free(cell);
    }
    fputs(cli_bold(stdout), stdout);
    cli_put_clean(stdout, r->photo.name);
    printf("%s  %s, %u x %u patches, layers", cli_plain(stdout), r->model, r->photo.grid,
           r->photo.grid);
    for (uint32_t i = 0; i < r->n_layers; i++) printf(" %u", r->layers[i]);
    fputs("\n", stdout);
    text_table_put(&t, 0, 2);
}

void viz_table(const viz_view *v)
{
    for (size_t i = 0; i < v->n; i++) put_photo(v->photos[i]);
}
