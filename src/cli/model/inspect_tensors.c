/* inspect_tensors.c - see inspect_tensors.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/model/inspect_tensors.h"

#include "cli/kit/cli.h"
#include "cli/kit/output.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int tensor_list_add(void *user, const renyi_tensor_info *t)
{
    tensor_list *list = user;

    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->items = cli_grow(list->items, list->room, sizeof *list->items);
    }
    list->items[list->count] = *t;
    list->items[list->count++].name = cli_copy(t->name);
    return 0;
}

void tensor_list_free(tensor_list *list)
{
    for (size_t i = 0; i < list->count; i++) free((void *)(uintptr_t)list->items[i].name);
    free(list->items);
    *list = (tensor_list){0};
}

/* ---- text ---------------------------------------------------------------------------------- */

/* "12 x 197 x 64"; "scalar" without dimensions. */
static void shape_text(const renyi_tensor_info *t, char *out, size_t size)
{
    size_t at = 0;

    snprintf(out, size, "scalar");
    for (uint32_t i = 0; i < t->n_dims && i < 8 && at < size; i++) {
        const int n = snprintf(out + at, size - at, "%s%" PRIu64, i ? " x " : "", t->shape[i]);
        at += n > 0 ? (size_t)n : 0;
    }
}

/* A LLaVA's names are long, but no line is as long as a name may be. */
static size_t name_width(const tensor_list *list)
{
    size_t width = 44;

    for (size_t i = 0; i < list->count; i++) {
        const size_t length = strlen(list->items[i].name);
        if (length > width && length <= 80) width = length;
    }
    return width;
}

void tensor_list_put(const tensor_list *list)
{
    const size_t width = name_width(list);
    char shape[200];

    printf("\n%-*s %-6s %-22s %12s\n", (int)width, "tensor", "dtype", "shape", "bytes");
    for (size_t i = 0; i < list->count; i++) {
        const renyi_tensor_info *t = &list->items[i];
        const size_t length = strlen(t->name);
        shape_text(t, shape, sizeof shape);
        cli_put_clean(stdout, t->name);
        printf("%*s %-6s %-22s %12" PRIu64 "\n", length < width ? (int)(width - length) : 0, "",
               t->dtype, shape, t->bytes);
    }
}

void tensor_list_put_dtypes(const tensor_list *list)
{
    enum { MAX_KINDS = 16 };
    const char *kinds[MAX_KINDS];
    size_t counts[MAX_KINDS] = {0}, n_kinds = 0;

    for (size_t i = 0; i < list->count; i++) {
        size_t k = 0;
        while (k < n_kinds && strcmp(kinds[k], list->items[i].dtype) != 0) k++;
        if (k == MAX_KINDS) continue;
        if (k == n_kinds) kinds[n_kinds++] = list->items[i].dtype;
        counts[k]++;
    }
    printf("tensors         ");
    for (size_t k = 0; k < n_kinds; k++) printf("%s%zu x %s", k ? ", " : "", counts[k], kinds[k]);
    putchar('\n');
}

/* ---- JSON ---------------------------------------------------------------------------------- */

json_t *tensor_list_json(const tensor_list *list)
{
    json_t *all = json_array();

    for (size_t i = 0; i < list->count; i++) {
        const renyi_tensor_info *t = &list->items[i];
        json_t *shape = json_array();
        for (uint32_t d = 0; d < t->n_dims && d < 8; d++)
            json_array_append_new(shape, json_integer((json_int_t)t->shape[d]));
        json_array_append_new(all,
                              json_pack("{s:o, s:s, s:o, s:I}", "name", json_text(t->name), "dtype",
                                        t->dtype, "shape", shape, "bytes", (json_int_t)t->bytes));
    }
    return all;
}
