/* test_paper.c - checks the paper's ViT tables: printed figures, valid policies, costs that agree,
 * and the plan of tables for a model.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/paper_records.h"
#include "fixtures/test_heap.h"
#include "renyi/paper.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static renyi_paper *new_ok(const renyi_model *m, const char *arch, const renyi_paper_options *o)
{
    renyi_error err = {0};
    renyi_paper *p;
    if (renyi_paper_new(&p, m, arch, o, &err)) fail_msg("%s", err.message);
    return p;
}

/* ---- what is printed ------------------------------------------------------------------------ */

static size_t place_of(uint32_t number)
{
    size_t i;
    assert_int_equal(renyi_paper_find_table(number, &i, NULL), RENYI_OK);
    return i;
}

static void tables_have_their_numbers(void **state)
{
    static const uint32_t ours[] = {1, 2, 3, 7, 8, 9, 10, 11, 14, 15};
    (void)state;
    assert_int_equal(renyi_paper_table_count(), 10);
    for (size_t i = 0; i < 10; i++) {
        renyi_paper_table t;
        renyi_paper_get_table(i, &t);
        assert_int_equal(t.number, ours[i]);
        assert_int_equal(place_of(ours[i]), i);
        assert_non_null(t.methods[RENYI_PAPER_CLS]);
        assert_string_equal(t.methods[RENYI_PAPER_MOSAIC], "mosaic");
        assert_true(!t.methods[RENYI_PAPER_OURS] == !t.about_ours);
        assert_true(!t.methods[RENYI_PAPER_RANDOM] == !t.about_random);
    }
    for (uint32_t number = 0; number < 30; number++) {
        renyi_error err = {0};
        size_t i;
        int is_ours = 0;
        for (size_t k = 0; k < 10; k++) is_ours |= ours[k] == number;
        if (is_ours) continue;
        assert_int_equal(renyi_paper_find_table(number, &i, &err), RENYI_ERR_ARG);
        assert_non_null(strstr(err.message, "1, 2, 3, 7, 8, 9, 10, 11, 14, 15"));
        if (number == 4) assert_non_null(strstr(err.message, "CLIP"));
        if (number == 12) assert_non_null(strstr(err.message, "LLaVA"));
    }
}

/* The policy of every cell, through `look`. */
static void for_every_cell(void (*look)(const renyi_paper_table *t, const renyi_paper_row *r,
                                        renyi_paper_method m, const char *policy))
{
    for (size_t i = 0; i < renyi_paper_table_count(); i++) {
        renyi_paper_table t;
        renyi_paper_get_table(i, &t);
        for (uint32_t row = 0; row < t.n_rows; row++)
            for (int m = 0; m < RENYI_PAPER_METHODS; m++) {
                char policy[RENYI_PAPER_POLICY_MAX];
                renyi_paper_row r;
                renyi_paper_get_row(i, row, &r);
                renyi_paper_policy(i, row, (renyi_paper_method)m, policy);
                assert_true(!t.methods[m] == !*policy);
                assert_true(isnan(r.top1[m]) == (!t.methods[m] || m == RENYI_PAPER_MOSAIC));
                if (*policy) look(&t, &r, (renyi_paper_method)m, policy);
            }
    }
}

/* Policies are valid, and cost what the paper prints except in rows marked as off. */
static void look_at_cost(const renyi_paper_table *t, const renyi_paper_row *r, renyi_paper_method m,
                         const char *policy)
{
    char full[RENYI_POLICY_MAX];
    renyi_error err = {0};
    renyi_cost cost;

    if (renyi_policy_check(policy, NULL, full, sizeof full, &err) ||
        renyi_policy_cost(NULL, r->architecture, policy, &cost, NULL, 0, &err))
        fail_msg("Table %u, %s: %s", t->number, policy, err.message);
    assert_true(!r->layers == !strcmp(full, "none"));
    if (isnan(r->gflops) || m == RENYI_PAPER_MOSAIC) return;
    const double gflops = cost.total.macs_paper * 1e-9;
    const int is_off = fabs(gflops - r->gflops) > 0.05 + 1e-9; /* one decimal is printed */
    if (is_off != r->gflops_are_off)
        fail_msg("Table %u, %s, %s: %.4f, printed %.1f", t->number, r->model, policy, gflops,
                 r->gflops);
    if (is_off) assert_non_null(t->about_gflops);
}

static void costs_agree(void **state)
{
    (void)state;
    for_every_cell(look_at_cost);
}

static int is_a_preset(const char *text)
{
    char a[RENYI_POLICY_MAX], b[RENYI_POLICY_MAX];
    renyi_preset preset;

    assert_int_equal(renyi_policy_check(text, NULL, a, sizeof a, NULL), RENYI_OK);
    for (size_t i = 0; i < renyi_preset_count(); i++) {
        renyi_preset_get(i, &preset);
        assert_int_equal(renyi_policy_check(preset.policy, NULL, b, sizeof b, NULL), RENYI_OK);
        if (strcmp(a, b) == 0) return 1;
    }
    return 0;
}

/* The presets named after the tables are the rows at keep 0.7, p 16 (early) and p 8 (all). */
static void look_at_preset(const renyi_paper_table *t, const renyi_paper_row *r,
                           renyi_paper_method m, const char *policy)
{
    const int is_typical = r->p == 16 || (r->p == 8 && r->layers && !strcmp(r->layers, "all")) ||
                           fabs(r->keep - 0.7) < 1e-9;
    if (!is_typical || m == RENYI_PAPER_MOSAIC) return;
    if (!is_a_preset(policy)) fail_msg("Table %u: %s is no preset", t->number, policy);
}

static void presets_are_rows(void **state)
{
    (void)state;
    for_every_cell(look_at_preset);
}

/* ---- record by record ----------------------------------------------------------------------- */

static const char *text_of(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static int same_setting(const renyi_paper_row *r, const json_t *setting)
{
    const json_t *p = json_object_get(setting, "p"),
                 *l = json_object_get(setting, "pruning_layers");
    char layers[32] = "";

    if (p) { /* naive */
        const char *mode = strncmp(text_of(setting, "mode"), "early", 5) == 0 ? "early" : "all";
        if (r->p != (uint32_t)json_integer_value(p)) return 0;
        return r->layers ? !strcmp(r->layers, mode) : r->p == 0;
    }
    if (fabs(r->keep - json_number_value(json_object_get(setting, "keep_rate"))) > 1e-9) return 0;
    for (size_t i = 0; i < json_array_size(l); i++)
        snprintf(layers + strlen(layers), sizeof layers - strlen(layers), "%s%d", i ? "," : "",
                 (int)json_integer_value(json_array_get(l, i)));
    return r->layers ? !strcmp(r->layers, layers) : !*layers;
}

static int method_of(const renyi_paper_table *t, const char *name)
{
    for (int m = 0; m < RENYI_PAPER_MOSAIC; m++)
        if (t->methods[m] && strcmp(t->methods[m], name) == 0) return m;
    fail_msg("Table %u has no column %s", t->number, name);
    return 0;
}

/* 1 = the record belongs to a table of the library; checks its value. */
static int check_record(const json_t *record)
{
    const uint32_t number = (uint32_t)json_integer_value(json_object_get(record, "table"));
    const json_t *gflops = json_object_get(record, "gflops");
    renyi_paper_table t;
    renyi_paper_row r;
    size_t i;
    uint32_t found = 0;

    if (renyi_paper_find_table(number, &i, NULL)) return 0; /* 4 and 5: test_paper_benchmarks.c */
    renyi_paper_get_table(i, &t);
    assert_string_equal(t.label, text_of(record, "table_id"));
    const int m = method_of(&t, text_of(record, "method"));
    for (uint32_t row = 0; row < t.n_rows; row++) {
        renyi_paper_get_row(i, row, &r);
        if (strcmp(r.model, text_of(record, "model")) ||
            !same_setting(&r, json_object_get(record, "setting")))
            continue;
        found++;
        assert_true(fabs(r.top1[m] - json_number_value(json_object_get(record, "value"))) < 1e-9);
        assert_true(json_is_null(gflops) ? isnan(r.gflops)
                                         : fabs(r.gflops - json_number_value(gflops)) < 1e-9);
        assert_true(r.gflops_are_off ==
                    json_is_false(json_object_get(record, "gflops_consistent")));
    }
    if (found != 1) fail_msg("Table %u: a record is in %u rows", number, found);
    return 1;
}

static void figures_are_the_papers(void **state)
{
    json_t *tables = paper_records();
    size_t i, n_records = 0, n_cells = 0;
    json_t *record;

    (void)state;
    if (!tables) return;
    json_array_foreach(tables, i, record) n_records += (size_t)check_record(record);
    json_decref(tables);
    for (i = 0; i < renyi_paper_table_count(); i++) {
        renyi_paper_table t;
        renyi_paper_get_table(i, &t);
        for (int m = 0; m < RENYI_PAPER_MOSAIC; m++) n_cells += t.methods[m] ? t.n_rows : 0;
    }
    printf("%zu records of the paper's tables\n", n_records);
    assert_int_equal(n_records, n_cells); /* each found once, so every cell is in the paper */
}

/* ---- fine-tuning ---------------------------------------------------------------------------- */

/* Table 13: six records, policies that are presets, GFLOPs that agree. */
static void tuned_figures_are_the_papers(void **state)
{
    json_t *records = paper_records(), *record;
    renyi_paper_table t;
    size_t i, n_records = 0;

    (void)state;
    renyi_tuned_get(&t);
    assert_int_equal(t.number, RENYI_TUNED_TABLE);
    for (uint32_t row = 0; row < t.n_rows; row++)
        for (int m = 0; m < RENYI_PAPER_METHODS; m++) {
            char policy[RENYI_PAPER_POLICY_MAX];
            renyi_paper_row r;
            renyi_tuned_get_row(row, &r);
            renyi_tuned_policy(row, (renyi_paper_method)m, policy);
            look_at_cost(&t, &r, (renyi_paper_method)m, policy);
            look_at_preset(&t, &r, (renyi_paper_method)m, policy);
        }
    if (!records) return;
    json_array_foreach(records, i, record)
    {
        if (json_integer_value(json_object_get(record, "table")) != RENYI_TUNED_TABLE) continue;
        const json_t *setting = json_object_get(record, "setting");
        const int m = method_of(&t, text_of(record, "method"));
        assert_string_equal(t.label, text_of(record, "table_id"));
        assert_int_equal(json_integer_value(json_object_get(setting, "fine_tuned_epochs")),
                         RENYI_TUNED_EPOCHS);
        for (uint32_t row = 0; row < t.n_rows; row++) {
            renyi_paper_row r;
            renyi_tuned_get_row(row, &r);
            if (!same_setting(&r, setting)) continue;
            assert_string_equal(r.model, text_of(record, "model"));
            assert_float_equal(r.top1[m], json_number_value(json_object_get(record, "value")),
                               1e-9);
            assert_float_equal(r.gflops, json_number_value(json_object_get(record, "gflops")),
                               1e-9);
            n_records++;
        }
    }
    json_decref(records);
    assert_int_equal(n_records, 6);
}

/* Table 16: every record is a row with its value. */
static void hyper_values_are_the_papers(void **state)
{
    json_t *records = paper_records(), *record;
    size_t at, n_records = 0;

    (void)state;
    if (!records) return;
    json_array_foreach(records, at, record)
    {
        const json_t *value = json_object_get(record, "value");
        int is_found = 0;
        if (json_integer_value(json_object_get(record, "table")) != RENYI_HYPER_TABLE) continue;
        for (size_t i = 0; i < renyi_hyper_count(); i++) {
            renyi_hyper h;
            renyi_hyper_get(i, &h);
            if (strcmp(h.item, text_of(record, "metric")) != 0) continue;
            is_found++;
            if (json_is_string(value))
                assert_string_equal(h.value, json_string_value(value));
            else
                assert_float_equal(strtod(h.value, NULL), json_number_value(value), 1e-15);
        }
        assert_int_equal(is_found, 1);
        n_records++;
    }
    json_decref(records);
    assert_int_equal(n_records, renyi_hyper_count());
}

/* ---- for a model ---------------------------------------------------------------------------- */

static void parts_suit_the_model(void **state)
{
    static const uint32_t naive[] = {2, 3, 7, 8}, wrong[] = {2, 4};
    const renyi_paper_options own = {.struct_size = sizeof own, .own_only = 1};
    const renyi_paper_options few = {.struct_size = sizeof few, .tables = naive, .n_tables = 4};
    const renyi_paper_options bad = {.struct_size = sizeof bad, .tables = wrong, .n_tables = 2};
    renyi_paper_part part;
    renyi_paper_row r;
    renyi_error err = {0};
    renyi_paper *p;

    (void)state;
    p = new_ok(NULL, "vit_large_patch16_224", &own); /* in Tables 2, 3, 7, 8 */
    assert_int_equal(renyi_paper_part_count(p), 4);
    renyi_paper_get_part(p, 3, &part);
    assert_true(part.is_own && part.table == place_of(8) && part.n_rows == 4);
    renyi_paper_get_row(part.table, part.first_row, &r);
    assert_string_equal(r.model, "ViT-L/16");
    renyi_paper_free(p);

    p = new_ok(NULL, "vit_tiny_patch16_224", &few); /* 12 blocks: beside ViT-S, not ViT-L */
    assert_int_equal(renyi_paper_part_count(p), 4);
    renyi_paper_get_part(p, 0, &part);
    assert_true(!part.is_own && part.first_row == 0 && part.n_rows == 7);
    renyi_paper_free(p);

    p = new_ok(NULL, "vit_tiny_patch16_224", &own);
    assert_int_equal(renyi_paper_part_count(p), 0);
    renyi_paper_free(p);

    assert_int_equal(renyi_paper_new(&p, NULL, "vit_tiny_patch16_224", &bad, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "Table 4"));
    assert_null(p);
    assert_int_equal(renyi_paper_new(&p, NULL, "vit_enormous", NULL, &err), RENYI_ERR_ARG);
    assert_int_equal(renyi_paper_new(&p, NULL, NULL, NULL, &err), RENYI_ERR_ARG);
}

static void policies_are_shared(void **state)
{
    const renyi_paper_options plain = {.struct_size = sizeof plain, .no_mosaic = 1};
    uint32_t n, n_plain;

    (void)state;
    renyi_paper *p = new_ok(NULL, "deit_tiny_patch16_224", NULL);
    renyi_paper *q = new_ok(NULL, "deit_tiny_patch16_224", &plain);
    const char *const *texts = renyi_paper_policies(p, &n);
    renyi_paper_policies(q, &n_plain);
    /* dense; naive: 12 settings x CLS, Col-Ln, correcting; EViT: 9 settings x 3 methods */
    assert_int_equal(n_plain, 1 + 12 * 3 + 9 * 3);
    assert_int_equal(n, n_plain + 12 + 9);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++) assert_string_not_equal(texts[i], texts[j]);
    renyi_paper_free(p);
    renyi_paper_free(q);
}

/* A model too shallow for layers 0,3,6 and 0-5: these cells have a fault and no cost. */
static void unfit_policies_have_faults(void **state)
{
    renyi_init_options o = {
        .struct_size = sizeof o, .n_classes = 10, .dim = 64, .n_heads = 2, .n_blocks = 2};
    char path[] = "/tmp/renyi_paper_XXXXXX";
    renyi_model *m;
    renyi_paper_part part;
    renyi_paper_cell cell;
    uint32_t n, n_faults = 0;

    (void)state;
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(renyi_model_init_file(path, "vit_tiny_patch16_224", &o, NULL), RENYI_OK);
    assert_int_equal(renyi_model_open(&m, path, NULL, NULL), RENYI_OK);
    renyi_paper *p = new_ok(m, NULL, NULL);
    for (size_t i = 0; i < renyi_paper_part_count(p); i++) {
        renyi_paper_get_part(p, i, &part);
        for (uint32_t row = 0; row < part.n_rows; row++) {
            renyi_paper_get_cell(p, i, row, RENYI_PAPER_CLS, &cell);
            assert_true(!cell.fault == !isnan(cell.gmacs));
            n_faults += cell.fault != NULL;
        }
    }
    assert_true(n_faults > 20);
    renyi_paper_policies(p, &n);
    assert_int_equal(n, 1 + 6 * 4); /* dense, and every p of layers=all */
    renyi_paper_free(p);
    renyi_model_free(m);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_have_their_numbers),
        cmocka_unit_test(costs_agree),
        cmocka_unit_test(presets_are_rows),
        cmocka_unit_test(figures_are_the_papers),
        cmocka_unit_test(parts_suit_the_model),
        cmocka_unit_test(policies_are_shared),
        cmocka_unit_test(unfit_policies_have_faults),
        cmocka_unit_test(tuned_figures_are_the_papers),
        cmocka_unit_test(hyper_values_are_the_papers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
