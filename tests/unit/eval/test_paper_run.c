/* test_paper_run.c - checks measured tables of the paper with a small random model on made-up
 * images: cells have the results of the evaluation, and failed allocations are errors.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/test_heap.h"
#include "renyi/paper.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

enum { IMAGES = 6, CLASSES = 3 };
static char root[] = "/tmp/renyi_paper_XXXXXX";
static renyi_model *model;
static renyi_dataset *data;
static const uint32_t wanted[] = {1, 11};
static const renyi_paper_options two_tables = {
    .struct_size = sizeof two_tables, .tables = wanted, .n_tables = 2};

static const char *at(const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

static void make_image(int i)
{
    char name[64];
    snprintf(name, sizeof name, "photos/%d", i % CLASSES);
    mkdir(at(name), 0777);
    snprintf(name, sizeof name, "photos/%d/%d.ppm", i % CLASSES, i);
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    fputs("P6\n16 16\n255\n", f);
    for (int k = 0; k < 768; k++) putc((k * k * (i + 3) + 31 * i) % 251, f);
    fclose(f);
}

static int setup(void **state)
{
    const renyi_init_options o = {.struct_size = sizeof o,
                                  .seed = 5,
                                  .n_classes = CLASSES,
                                  .dim = 64,
                                  .n_blocks = 12,
                                  .n_heads = 2};
    renyi_error err = {0};

    (void)state;
    assert_non_null(mkdtemp(root));
    mkdir(at("photos"), 0777);
    for (int i = 0; i < IMAGES; i++) make_image(i);
    if (renyi_model_init_file(at("m.safetensors"), "vit_tiny_patch16_112", &o, &err) ||
        renyi_model_open(&model, at("m.safetensors"), NULL, &err) ||
        renyi_dataset_open(&data, at("photos"), model, NULL, &err))
        fail_msg("%s", err.message);
    return 0;
}

static int teardown(void **state)
{
    char command[600];
    (void)state;
    renyi_dataset_free(data);
    renyi_model_free(model);
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

static renyi_eval *run_ok(const char *const *policies, uint32_t n)
{
    const renyi_eval_options o = {
        .struct_size = sizeof o, .policies = policies, .n_policies = n, .batch = 3, .n_threads = 1};
    renyi_error err = {0};
    renyi_eval *e;
    if (renyi_eval_new(&e, model, data, &o, &err) || renyi_eval_run(e, &err))
        fail_msg("%s", err.message);
    return e;
}

/* Index of a policy among those that were run. */
static uint32_t find(const renyi_eval *e, const char *policy)
{
    renyi_eval_result r;
    for (uint32_t i = 0; i < renyi_eval_policy_count(e); i++) {
        renyi_eval_get_result(e, i, &r);
        if (strcmp(r.policy, policy) == 0) return i;
    }
    fail_msg("%s was not run", policy);
    return 0;
}

static void check_cells(const renyi_paper *p, const renyi_eval *e, size_t part, uint32_t row)
{
    renyi_paper_cell cells[RENYI_PAPER_METHODS];
    renyi_paper_pair pairs[RENYI_PAPER_PAIRS];
    renyi_eval_result r;
    renyi_eval_pair pair;

    for (int m = 0; m < RENYI_PAPER_METHODS; m++) {
        renyi_paper_get_cell(p, part, row, (renyi_paper_method)m, &cells[m]);
        if (!cells[m].policy) continue;
        renyi_eval_get_result(e, find(e, cells[m].policy), &r);
        assert_int_equal(cells[m].measured->images, IMAGES);
        assert_int_equal(cells[m].measured->n_top1, r.n_top1);
        assert_true(fabs(cells[m].gmacs - r.gmacs) < 1e-9 && cells[m].gmacs_paper > r.gmacs);
    }
    const uint32_t n = renyi_paper_get_pairs(p, part, row, pairs);
    for (uint32_t i = 0; i < n; i++) {
        const char *a = cells[pairs[i].a].policy, *b = cells[pairs[i].b].policy;
        assert_int_equal(pairs[i].is_measured, strcmp(a, b) != 0);
        if (!pairs[i].is_measured) continue;
        renyi_eval_get_pair(e, find(e, a), find(e, b), &pair);
        assert_int_equal(pairs[i].pair.only_a, pair.only_a);
        assert_int_equal(pairs[i].pair.only_b, pair.only_b);
        assert_int_equal(pairs[i].pair.same, pair.same);
    }
    assert_int_equal(n, cells[RENYI_PAPER_OURS].policy ? 3 : 2);
}

static void cells_have_the_answers(void **state)
{
    renyi_error err = {0};
    renyi_paper *p;
    renyi_paper_part part;
    renyi_paper_cell cell;
    uint32_t n;

    (void)state;
    if (renyi_paper_new(&p, model, NULL, &two_tables, &err)) fail_msg("%s", err.message);
    const char *const *policies = renyi_paper_policies(p, &n);
    renyi_paper_get_cell(p, 0, 0, RENYI_PAPER_CLS, &cell);
    assert_true(cell.policy && !cell.measured && fabs(cell.paper - 66.1) < 1e-9);
    renyi_paper_get_cell(p, 0, 0, RENYI_PAPER_OURS, &cell);
    assert_true(!cell.policy && isnan(cell.paper)); /* Table 1 has no such column */
    renyi_eval *e = run_ok(policies, n);
    assert_int_equal(renyi_paper_take(p, e, &err), RENYI_OK);
    for (size_t i = 0; i < renyi_paper_part_count(p); i++) {
        renyi_paper_get_part(p, i, &part);
        for (uint32_t row = 0; row < part.n_rows; row++) check_cells(p, e, i, row);
    }
    renyi_eval_free(e);
    renyi_paper_get_cell(p, 1, 0, RENYI_PAPER_CLS, &cell);
    assert_string_equal(cell.measured->policy, "none"); /* outlives the evaluation */
    renyi_paper_free(p);
}

static void another_evaluation_is_refused(void **state)
{
    static const char *const other[] = {"none"};
    renyi_error err = {0};
    renyi_paper *p;

    (void)state;
    if (renyi_paper_new(&p, model, NULL, &two_tables, &err)) fail_msg("%s", err.message);
    renyi_eval *e = run_ok(other, 1);
    assert_int_equal(renyi_paper_take(p, e, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_paper_take(p, NULL, &err), RENYI_ERR_ARG);
    renyi_eval_free(e);
    renyi_paper_free(p);
}

static void short_memory_is_an_error(void **state)
{
    size_t fail_at = 1;
    renyi_status st;

    (void)state;
    do {
        test_heap heap = {.fail_at = fail_at++};
        renyi_paper_options o = two_tables;
        renyi_error err = {0};
        renyi_paper *p;
        o.allocator = test_heap_of(&heap);
        st = renyi_paper_new(&p, model, NULL, &o, &err);
        assert_true(st == RENYI_OK || st == RENYI_ERR_NOMEM);
        assert_true(!p == (st != RENYI_OK));
        renyi_paper_free(p);
        assert_int_equal(heap.live, 0);
    } while (st != RENYI_OK);
    assert_true(fail_at > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_have_the_answers),
        cmocka_unit_test(another_evaluation_is_refused),
        cmocka_unit_test(short_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
