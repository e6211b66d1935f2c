/* test_viz_page.c - the viz page from invented results. `test_viz_page write` writes the files
 * that tests/cli/viz_browser.sh reads to the current folder.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/report_fixture.h" /* NASTY */
#include "fixtures/test_heap.h"
#include "fixtures/viz_fixture.h"
#include "report/markup.h"

#include "test.h"
#include <jansson.h>

static viz_fixture fixture; /* too large for the stack */

static renyi_report_text draw_page(void)
{
    renyi_report_text t;
    renyi_error err;
    if (renyi_viz_html(&t, &fixture.page, &err)) fail_msg("%s", err.message);
    assert_int_equal(strlen(t.bytes), t.size);
    return t;
}

/* The JSON data of the page. */
static json_t *data_of(const renyi_report_text *t)
{
    static const char start[] = "id=\"data\">";
    const char *from = strstr(t->bytes, start), *to = from ? strstr(from, "</script>") : NULL;
    json_error_t why;
    assert_non_null(to);
    from += sizeof start - 1;
    json_t *d = json_loadb(from, (size_t)(to - from), 0, &why);
    if (!d) fail_msg("JSON: %s", why.text);
    return d;
}

static void test_content(void **state)
{
    (void)state;
    viz_fixture_fill(&fixture);
    renyi_report_text t = draw_page();
    assert_int_equal(count_text(t.bytes, "src=\"data:image/png;base64,iVBOR"), VIZ_IMAGES);
    assert_non_null(strstr(t.bytes, "<h1>What vit_toy looks at, and what it drops</h1>"));
    assert_int_equal(count_text(t.bytes, "http://www.w3.org/2000/svg"), count_text(t.bytes, "://"));
    json_t *d = data_of(&t), *image = json_array_get(json_object_get(d, "photos"), 1);
    assert_int_equal(json_array_size(json_object_get(d, "maps")), 5); /* cls, n=4, random; 1, inf */
    assert_int_equal(json_integer_value(json_array_get(json_object_get(d, "norms"), 3)), 4);
    assert_int_equal(json_array_size(json_object_get(d, "rows")), VIZ_ROWS + VIZ_SWEEP);
    assert_string_equal(json_string_value(json_object_get(image, "name")), "dark.png");
    assert_int_equal(strlen(json_string_value(json_object_get(image, "scores"))),
                     (5 * VIZ_LAYERS * VIZ_P * 4 + 2) / 3 * 4);
    json_t *row = json_array_get(json_object_get(image, "rows"), VIZ_METRICS);
    json_t *groups = json_object_get(row, "group");
    assert_true(json_is_string(json_array_get(groups, 1)));
    assert_int_equal(json_integer_value(json_array_get(groups, 2)),
                     0); /* no cut: the same as before */
    assert_true(json_is_string(json_array_get(groups, 3)));
    row = json_array_get(json_object_get(image, "rows"), VIZ_METRICS + 1);
    assert_int_equal(json_array_size(json_array_get(json_object_get(row, "rescued"), 1)), 1);
    json_decref(d);
    renyi_report_text_free(&t);
}

static void test_pack(void **state)
{
    (void)state;
    ry_buffer s = {0};
    ry_pack p = ry_pack_to(&s);
    ry_pack_u16(&p, 0x4241);
    ry_pack_f32(&p, 1.0f);
    ry_pack_f32(&p, -NAN);
    ry_pack_end(&p);
    ry_pack_end(&p); /* writes nothing more */
    ry_buffer_put(&s, "", 1);
    assert_string_equal(s.bytes, "QUIAAIA/AADAfw==");
    renyi_report_text t = {.bytes = s.bytes};
    renyi_report_text_free(&t);
}

static void fill_nasty(void)
{
    viz_fixture_fill(&fixture);
    fixture.page.title = fixture.page.note = fixture.page.command = NASTY;
    for (uint32_t i = 0; i < VIZ_IMAGES; i++) {
        viz_fixture_image *f = &fixture.images[i];
        f->result.photo.name = f->result.model = NASTY;
        for (uint32_t m = 0; m < VIZ_METRICS; m++) f->metrics[m].label = NASTY;
        for (uint32_t r = 0; r < VIZ_ROWS; r++) f->rows[r].label = NASTY;
        f->top[0].name = f->top[1].name = NASTY;
        f->top[0].probability = NAN;
        f->result.dense.n_top = 0;
        f->score[0][1][3] = NAN;
        f->score[1][1][3] = INFINITY;
        f->maps[0][1].low = f->maps[0][1].high = 0;
        for (uint32_t r = 0; r < VIZ_ROWS; r++) f->rows[r].answer.macs = INFINITY;
        for (uint32_t p = 0; p < VIZ_P; p++) f->row_data[VIZ_METRICS].score[p] = NAN;
    }
}

static void test_nasty(void **state)
{
    (void)state;
    fill_nasty();
    renyi_report_text t = draw_page();
    assert_null(strstr(t.bytes, "<script>alert"));
    assert_null(strstr(t.bytes, "<b a="));
    assert_null(strstr(t.bytes, "\xff"));
    json_decref(data_of(&t));
    renyi_report_text_free(&t);
}

/* The smallest page: one image, one layer, one metric, nothing pruned. */
static void fill_smallest(void)
{
    viz_fixture_fill(&fixture);
    renyi_viz_result *r = &fixture.images[0].result;
    fixture.page.n_photos = 1;
    r->n_layers = r->n_metrics = 1;
    r->n_norms = r->n_keeps = r->n_rows = r->n_sweep = 0;
    r->norms = NULL;
    r->keeps = NULL;
    r->kept = NULL;
    r->rows = r->sweep = NULL;
    r->attention = NULL;
}

static void test_spare(void **state)
{
    (void)state;
    fill_smallest();
    renyi_report_text t = draw_page();
    json_t *d = data_of(&t);
    assert_int_equal(json_array_size(json_object_get(d, "rows")), 0);
    json_decref(d);
    renyi_report_text_free(&t);
}

static void test_same_bytes(void **state)
{
    (void)state;
    viz_fixture_fill(&fixture);
    renyi_report_text a = draw_page(), b = draw_page();
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.bytes, b.bytes, a.size);
    renyi_report_text_free(&a);
    renyi_report_text_free(&b);
}

static void refuse(const char *why)
{
    renyi_report_text t = {.size = 3};
    renyi_error err = {0};
    const renyi_status st = renyi_viz_html(&t, &fixture.page, &err);
    assert_true(st == RENYI_ERR_ARG || st == RENYI_ERR_LIMIT);
    assert_true(t.size == 0 && !t.bytes);
    if (!strstr(err.message, why)) fail_msg("\"%s\" does not say \"%s\"", err.message, why);
    viz_fixture_fill(&fixture);
}

static void test_refused(void **state)
{
    (void)state;
    renyi_report_text t;
    viz_fixture_fill(&fixture);
    assert_int_equal(renyi_viz_html(NULL, &fixture.page, NULL), RENYI_ERR_ARG);
    assert_int_equal(renyi_viz_html(&t, NULL, NULL), RENYI_ERR_ARG);
    fixture.page.struct_size--;
    refuse("struct_size");
    fixture.page.n_photos = 0;
    refuse("0 images");
    fixture.results[1] = NULL;
    refuse("image 1 is NULL");
    fixture.images[1].result.n_patches--;
    refuse("image 1: 32 pixels");
    fixture.images[1].result.n_blocks = 40000;
    refuse("40000 blocks");
    fixture.images[0].result.n_layers = 0;
    refuse("0 layers");
    fixture.images[1].result.n_keeps--;
    refuse("image 1 has other layers");
    fixture.images[1].metrics[2].name = "col n=9";
    refuse("image 1 has other layers");
    fixture.images[1].sweep[2].policy = "none";
    refuse("image 1 has other layers");
    fixture.images[0].row_data[1].steps[2].group = NULL;
    refuse("NULL");
    fixture.images[0].attention.token = VIZ_P;
    refuse("image 0: a list");
}

static void test_no_memory(void **state)
{
    (void)state;
    renyi_status st = RENYI_ERR_NOMEM;
    viz_fixture_fill(&fixture);
    for (size_t fail_at = 1; st == RENYI_ERR_NOMEM; fail_at++) {
        test_heap heap = {.fail_at = fail_at};
        renyi_report_text t;
        fixture.page.allocator = test_heap_of(&heap);
        st = renyi_viz_html(&t, &fixture.page, NULL);
        assert_int_equal(st == RENYI_OK, t.bytes != NULL);
        renyi_report_text_free(&t);
        assert_int_equal(heap.live, 0);
    }
    assert_int_equal(st, RENYI_OK);
}

/* ---- files for tests/cli/viz_browser.sh ---- */

static int write_files(void)
{
    static const char *const names[] = {"plain.html", "nasty.html", "spare.html"};
    for (int i = 0; i < 3; i++) {
        viz_fixture_fill(&fixture);
        if (i == 1) fill_nasty();
        if (i == 2) fill_smallest();
        renyi_report_text t;
        if (renyi_viz_html(&t, &fixture.page, NULL) || write_text(names[i], t)) return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_content),    cmocka_unit_test(test_pack),
        cmocka_unit_test(test_nasty),      cmocka_unit_test(test_spare),
        cmocka_unit_test(test_same_bytes), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_memory)};
    if (argc > 1 && strcmp(argv[1], "write") == 0) return write_files();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
