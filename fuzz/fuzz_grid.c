/* fuzz_grid.c - any bytes as the spec of a sweep: refused with a message, or policies that read
 * back as themselves, none twice.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "eval/sweep/grid.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_plain(const renyi_grid *g)
{
    char full[RENYI_POLICY_MAX];
    if (!g->n_models || !g->n_sizes || !g->n_policies) abort();
    for (uint32_t i = 0; i < g->n_policies; i++) {
        if (renyi_policy_check(g->policies[i], NULL, full, sizeof full, NULL)) abort();
        if (strcmp(full, g->policies[i])) abort();
        for (uint32_t j = i > 100 ? i - 100 : 0; j < i; j++)
            if (strcmp(g->policies[j], g->policies[i]) == 0) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const models[] = {"m"};
    const renyi_grid_options o = {.struct_size = sizeof o, .n_models = size % 2, .models = models};
    renyi_error err = {0};
    renyi_grid *g = ry_calloc(NULL, 1, sizeof *g);
    unsigned char *bytes = malloc(size ? size : 1); /* exact size: the sanitizer sees overreads */
    if (!g || !bytes) abort();
    if (size) memcpy(bytes, data, size);
    g->pool.al = &g->al;
    if (ry_grid_read(g, &o, "spec", bytes, size, &err)) {
        if (!err.message[0]) abort();
    } else
        must_be_plain(g);
    free(bytes);
    renyi_grid_free(g);
    return 0;
}
