/* board.c - the manifests of renyi board in groups, and the pairs of each group.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/result/board.h"

#include <stdlib.h>
#include <string.h>

/* Runs of a group of which every two are compared; in a larger one, baselines. */
enum { ALL_PAIRS = 32 };

void board_add(board *b, const char *file, renyi_manifest *m)
{
    b->runs = cli_grow(b->runs, b->count + 1, sizeof *b->runs);
    board_run *r = &b->runs[b->count++];
    *r = (board_run){.file = cli_copy(file), .manifest = m};
    renyi_manifest_get_info(m, &r->info);
}

static uint64_t data_of(const board_run *r) { return renyi_manifest_data_hash(r->manifest); }

static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* Texts by their bytes, but numbers by their value: tokens=64 before tokens=128. */
static int compare_natural(const char *a, const char *b)
{
    while (*a && *b) {
        if (!is_digit(*a) || !is_digit(*b)) {
            if (*a != *b) return (unsigned char)*a - (unsigned char)*b;
            a++, b++;
            continue;
        }
        a += strspn(a, "0"), b += strspn(b, "0");
        const size_t n = strspn(a, "0123456789"), m = strspn(b, "0123456789");
        const int order = n != m ? (n < m ? -1 : 1) : memcmp(a, b, n);
        if (order) return order;
        a += n, b += m;
    }
    return (unsigned char)*a - (unsigned char)*b;
}

/* By benchmark, data, model, then unpruned first, then policy, then file. */
static int by_group(const void *a, const void *b)
{
    const board_run *x = a, *y = b;
    const int task = strcmp(x->info.task, y->info.task);
    if (task) return task;
    if (data_of(x) != data_of(y)) return data_of(x) < data_of(y) ? -1 : 1;
    const int model = strcmp(x->info.model, y->info.model);
    if (model) return model;
    const int dense = !strcmp(y->info.policy, "none") - !strcmp(x->info.policy, "none");
    if (dense) return dense;
    const int policy = compare_natural(x->info.policy, y->info.policy);
    return policy ? policy : strcmp(x->file, y->file);
}

static int is_same_group(const board_run *x, const board_run *y)
{
    return strcmp(x->info.task, y->info.task) == 0 && data_of(x) == data_of(y);
}

/* The runs that others are compared with if there are too many: unpruned, random, pool. */
static int is_baseline(const board_run *r)
{
    static const char *const words[] = {"none", "random", "pool"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i]);
        const char *policy = r->info.policy;
        if (strncmp(policy, words[i], n) == 0 && (!policy[n] || policy[n] == ' ')) return 1;
    }
    return 0;
}

static int add_pair(board *b, board_group *g, size_t x, size_t y)
{
    renyi_error err = {0};

    g->pairs = cli_grow(g->pairs, g->n_pairs + 1, sizeof *g->pairs);
    board_pair *p = &g->pairs[g->n_pairs++];
    *p = (board_pair){.a = x, .b = y};
    if (renyi_manifest_compare(b->runs[x].manifest, b->runs[y].manifest, &p->pair, &err) ==
        RENYI_OK)
        return CLI_OK;
    return cli_fail(&err);
}

static int compare_group(board *b, board_group *g)
{
    size_t n_baselines = 0;
    int code = CLI_OK;

    g->is_partial = g->count > ALL_PAIRS;
    for (size_t i = g->first; i < g->first + g->count; i++) {
        board_run *r = &b->runs[i];
        r->is_baseline = n_baselines < ALL_PAIRS && is_baseline(r);
        n_baselines += (size_t)r->is_baseline;
    }
    for (size_t i = g->first; i < g->first + g->count; i++)
        for (size_t k = i + 1; code == CLI_OK && k < g->first + g->count; k++)
            if (!g->is_partial || b->runs[i].is_baseline || b->runs[k].is_baseline)
                code = add_pair(b, g, i, k);
    return code;
}

int board_compare(board *b)
{
    int code = CLI_OK;

    if (b->count) qsort(b->runs, b->count, sizeof *b->runs, by_group);
    for (size_t i = 0; i < b->count; i++) {
        if (!i || !is_same_group(&b->runs[i - 1], &b->runs[i])) {
            b->groups = cli_grow(b->groups, b->n_groups + 1, sizeof *b->groups);
            b->groups[b->n_groups++] = (board_group){.first = i};
        }
        b->groups[b->n_groups - 1].count++;
    }
    for (size_t i = 0; code == CLI_OK && i < b->n_groups; i++)
        code = compare_group(b, &b->groups[i]);
    return code;
}

void board_free(board *b)
{
    for (size_t i = 0; i < b->count; i++) {
        renyi_manifest_free(b->runs[i].manifest);
        free(b->runs[i].file);
    }
    for (size_t i = 0; i < b->n_groups; i++) free(b->groups[i].pairs);
    free(b->runs);
    free(b->groups);
}
