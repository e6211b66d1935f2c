/* test_tca.c - reservoir, anchors and correction on artificial class tokens and logits, against
 * plain doubles; when anchors begin, counters, layer weights.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "engine/tca/tca_adapt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { CLASSES = 4, BLOCKS = 5, DIM = 23, SIZE = 3, STREAM = 60, TOKEN = BLOCKS * DIM };

/* ---- in plain doubles ----------------------------------------------------------------------- */

typedef struct plain_item {
    double entropy, token[BLOCKS][DIM];
} plain_item;

typedef struct plain {
    plain_item items[CLASSES][SIZE + 1];
    uint32_t counts[CLASSES];
    int has_anchors;
    double anchors[CLASSES][BLOCKS][DIM];
} plain;

static double cosine(const double *a, const double *b)
{
    double ab = 0.0, aa = 0.0, bb = 0.0;
    for (int k = 0; k < DIM; k++) ab += a[k] * b[k], aa += a[k] * a[k], bb += b[k] * b[k];
    return ab / sqrt(aa * bb);
}

static void mean_of(const plain_item *item, double *mean)
{
    for (int k = 0; k < DIM; k++) {
        mean[k] = 0.0;
        for (int l = 0; l < BLOCKS; l++) mean[k] += item->token[l][k] / BLOCKS;
    }
}

static void plain_remember(plain *p, uint32_t c, const plain_item *now)
{
    plain_item *list = p->items[c];
    list[p->counts[c]++] = *now;
    if (p->counts[c] > SIZE) {
        uint32_t worst = 0;
        double most = -INFINITY;
        for (uint32_t i = 0; i <= SIZE; i++) {
            double sum = list[i].entropy, a[DIM], b[DIM];
            mean_of(&list[i], a);
            for (uint32_t k = 0; k <= SIZE; k++) {
                mean_of(&list[k], b);
                if (k != i) sum += cosine(a, b) / SIZE;
            }
            if (sum > most) most = sum, worst = i;
        }
        memmove(&list[worst], &list[worst + 1], (SIZE - worst) * sizeof *list);
        p->counts[c]--;
    }
    for (uint32_t i = p->counts[c] - 1; i && list[i - 1].entropy > list[i].entropy; i--) {
        const plain_item swap = list[i];
        list[i] = list[i - 1];
        list[i - 1] = swap;
    }
}

static void plain_anchors(plain *p)
{
    for (uint32_t c = 0; c < CLASSES; c++)
        if (p->counts[c] < 2) return;
    p->has_anchors = 1;
    memset(p->anchors, 0, sizeof p->anchors);
    for (uint32_t c = 0; c < CLASSES; c++)
        for (uint32_t i = 0; i < p->counts[c]; i++)
            for (int k = 0; k < TOKEN; k++)
                p->anchors[c][k / DIM][k % DIM] +=
                    p->items[c][i].token[k / DIM][k % DIM] / p->counts[c];
}

static void plain_correct(const plain *p, const renyi_tca_options *o, const plain_item *now,
                          double *z)
{
    double w[BLOCKS], sum = 0.0;
    for (int l = 0; l < BLOCKS; l++) sum += w[l] = exp(((double)l / (BLOCKS - 1) - 1.0) / o->scale);
    for (uint32_t c = 0; c < CLASSES; c++)
        for (uint32_t i = 0; i < p->counts[c]; i++) {
            double like = 0.0;
            for (int l = 0; l < BLOCKS; l++)
                like += w[l] / sum * cosine(now->token[l], p->items[c][i].token[l]);
            z[c] += o->lambda * exp(-o->beta * (1.0 - like));
        }
}

/* ---- a stream ------------------------------------------------------------------------------- */

typedef struct test_image {
    float token[BLOCKS][DIM], logits[CLASSES];
} test_image;

/* Images of a class are similar; `kinds` classes are seen. */
static void make_image(test_image *p, ry_rng *r, uint32_t kinds)
{
    const uint32_t c = (uint32_t)(ry_rng_next(r) % kinds);
    ry_rng own = ry_rng_new(100 + c);
    for (int k = 0; k < TOKEN; k++)
        p->token[k / DIM][k % DIM] = (float)(ry_rng_normal(&own) + 0.7 * ry_rng_normal(r));
    for (uint32_t k = 0; k < CLASSES; k++)
        p->logits[k] = (float)(ry_rng_normal(r) + (k == c ? 4.0 : 0.0));
}

static plain_item item_of(const test_image *p)
{
    plain_item item;
    double sum = 0.0, top = -INFINITY, weighted = 0.0;
    for (int k = 0; k < TOKEN; k++)
        item.token[k / DIM][k % DIM] = (double)p->token[k / DIM][k % DIM];
    for (int c = 0; c < CLASSES; c++) top = fmax(top, (double)p->logits[c]);
    for (int c = 0; c < CLASSES; c++) sum += exp((double)p->logits[c] - top);
    for (int c = 0; c < CLASSES; c++) {
        const double q = exp((double)p->logits[c] - top) / sum;
        weighted -= q * log(q);
    }
    item.entropy = weighted;
    return item;
}

static uint32_t largest(const float *x)
{
    uint32_t best = 0;
    for (uint32_t c = 1; c < CLASSES; c++)
        if (x[c] > x[best]) best = c;
    return best;
}

static const float *run_image(ry_tca_run *r, const test_image *p, uint32_t anchor_block)
{
    const float *anchor = NULL;
    ry_tca_begin(r);
    for (uint32_t l = 0; l < BLOCKS; l++) {
        if (l == anchor_block) anchor = r->hook.anchor(r, l, p->token[l - 1]);
        ry_tca_tap(r, l, p->token[l], 1);
    }
    return anchor;
}

/* The hook of a policy that never cuts. */
static void no_needs(const void *self, uint32_t block, uint32_t n, ry_block_needs *out)
{
    (void)self, (void)block;
    *out = (ry_block_needs){.n_after = n};
}

static void make_tca(ry_tca_run *r, const renyi_tca_options *opt)
{
    static const ry_token_hook inner = {.needs = no_needs};
    const ry_tca_shape shape = {CLASSES, BLOCKS, DIM, 1};
    *r = (ry_tca_run){.n_threads = 2};
    assert_int_equal(ry_tca_create(&r->tca, &shape, opt, NULL, NULL), RENYI_OK);
    assert_int_equal(ry_tca_reserve(r->tca, 2, NULL), RENYI_OK);
    ry_tca_hook(r, &inner);
}

static void compare_items(const renyi_tca *t, const plain *p)
{
    for (uint32_t c = 0; c < CLASSES; c++) {
        assert_int_equal(t->counts[c], p->counts[c]);
        for (uint32_t i = 0; i < p->counts[c]; i++) {
            const ry_tca_item *item = &ry_tca_items(t, c)[i];
            const float *tokens = ry_tca_tokens(t, item->slot);
            assert_true(fabs((double)item->entropy - p->items[c][i].entropy) < 1e-6);
            for (int k = 0; k < TOKEN; k++)
                assert_true((double)tokens[k] == p->items[c][i].token[k / DIM][k % DIM]);
        }
    }
}

/* The anchor most similar to this token. */
static void compare_anchor(const plain *p, const float *anchor, const float *token, uint32_t layer)
{
    double x[DIM], most = -INFINITY;
    uint32_t best = 0;
    for (int k = 0; k < DIM; k++) x[k] = (double)token[k];
    for (uint32_t c = 0; c < CLASSES; c++)
        if (cosine(p->anchors[c][layer], x) > most)
            most = cosine(p->anchors[c][layer], x), best = c;
    for (int k = 0; k < DIM; k++)
        assert_true(fabs((double)anchor[k] - p->anchors[best][layer][k]) < 1e-5);
}

static void check_stream(const renyi_tca_options *o, uint64_t seed)
{
    static plain p;
    ry_rng rng = ry_rng_new(seed);
    ry_tca_run r;
    uint64_t active = 0, changed = 0;
    memset(&p, 0, sizeof p);
    make_tca(&r, o);
    for (uint32_t i = 0; i < STREAM; i++) {
        test_image now;
        double z[CLASSES];
        renyi_tca_answer a;
        make_image(&now, &rng, CLASSES);
        const float *anchor = run_image(&r, &now, 3);
        assert_int_equal(anchor != NULL, p.has_anchors);
        if (anchor) compare_anchor(&p, anchor, now.token[2], 2);
        active += anchor != NULL;
        const plain_item item = item_of(&now);
        for (int c = 0; c < CLASSES; c++) z[c] = (double)now.logits[c];
        const test_image before = now;
        ry_tca_answered(&r, i % 2, now.logits);
        plain_remember(&p, largest(before.logits), &item);
        plain_anchors(&p);
        plain_correct(&p, o, &item, z);
        for (int c = 0; c < CLASSES; c++) assert_true(fabs((double)now.logits[c] - z[c]) < 5e-4);
        assert_int_equal(renyi_tca_last(r.tca, i % 2, &a, NULL), RENYI_OK);
        assert_memory_equal(a.logits, before.logits, sizeof before.logits);
        assert_int_equal(a.label, largest(before.logits));
        assert_int_equal(a.corrected, largest(now.logits));
        assert_true(fabs(a.entropy - item.entropy) < 1e-6 && a.anchored == (anchor != NULL));
        changed += a.label != a.corrected;
        compare_items(r.tca, &p);
    }
    renyi_tca_info info;
    renyi_tca_get_info(r.tca, &info);
    assert_true(info.n_images == STREAM && info.n_anchored == active && info.n_changed == changed);
    assert_true(active > 10 && info.first_anchored == STREAM - active && info.has_anchors);
    assert_true(info.n_seen_classes == CLASSES && info.n_ready_classes == CLASSES);
    renyi_tca_free(r.tca);
}

static void test_stream(void **state)
{
    (void)state;
    static const double scales[] = {0.1, 1.0, 5.5};
    for (uint64_t seed = 1; seed < 7; seed++) {
        const renyi_tca_options o = {.struct_size = sizeof o,
                                     .size = SIZE,
                                     .scale = scales[seed % 3],
                                     .lambda = 1.0 + (double)seed,
                                     .beta = 3.0};
        check_stream(&o, seed);
    }
}

/* ---- when anchors begin -------------------------------------------------------------------- */

static const renyi_tca_options usual = {
    .struct_size = sizeof usual, .size = SIZE, .scale = 0.1, .lambda = 3.0, .beta = 5.0};

/* There are no anchors until every class has two items; reset forgets all. */
static void test_gate(void **state)
{
    (void)state;
    ry_rng rng = ry_rng_new(5);
    ry_tca_run r;
    renyi_tca_info info;
    test_image now;
    make_tca(&r, &usual);
    for (uint32_t i = 0; i < STREAM; i++) {
        make_image(&now, &rng, CLASSES - 1);
        now.logits[CLASSES - 1] = -9.0f;
        assert_null(run_image(&r, &now, 3));
        ry_tca_answered(&r, 0, now.logits);
    }
    renyi_tca_get_info(r.tca, &info);
    assert_true(!info.has_anchors && info.n_anchored == 0 && info.first_anchored == UINT64_MAX);
    assert_int_equal(info.n_ready_classes, CLASSES - 1);
    assert_int_equal(info.n_items, SIZE * (CLASSES - 1));
    for (int i = 0; i < 2; i++) { /* the second item of the class gives anchors */
        make_image(&now, &rng, 1);
        now.logits[CLASSES - 1] = 20.0f;
        assert_null(run_image(&r, &now, 3));
        ry_tca_answered(&r, 0, now.logits);
    }
    assert_non_null(run_image(&r, &now, 3));
    renyi_tca_reset(r.tca);
    assert_null(run_image(&r, &now, 3));
    renyi_tca_get_info(r.tca, &info);
    assert_true(info.n_images == 0 && info.n_items == 0 && info.n_seen_classes == 0);
    renyi_tca_answer a;
    renyi_error err = {0};
    assert_int_equal(renyi_tca_last(r.tca, 0, &a, &err), RENYI_ERR_ARG);
    renyi_tca_free(r.tca);
}

/* Anchors and correction can be switched off separately. */
static void test_halves(void **state)
{
    (void)state;
    renyi_tca_options anchors = usual, correction = usual;
    anchors.no_correction = correction.no_anchors = 1;
    for (int k = 0; k < 2; k++) {
        ry_rng rng = ry_rng_new(9);
        ry_tca_run r;
        int active = 0, moved = 0;
        make_tca(&r, k ? &anchors : &correction);
        for (uint32_t i = 0; i < STREAM; i++) {
            test_image now;
            make_image(&now, &rng, CLASSES);
            const test_image before = now;
            active |= run_image(&r, &now, 3) != NULL;
            ry_tca_answered(&r, 0, now.logits);
            moved |= memcmp(now.logits, before.logits, sizeof now.logits) != 0;
        }
        assert_int_equal(active, k);
        assert_int_equal(moved, !k);
        renyi_tca_free(r.tca);
    }
}

/* Answers that are not finite are not remembered. */
static void test_bad_numbers(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    ry_rng rng = ry_rng_new(2);
    ry_tca_run r;
    renyi_tca_info info;
    make_tca(&r, &usual);
    for (int k = 0; k < 6; k++) {
        test_image now;
        make_image(&now, &rng, CLASSES);
        for (int c = 0; c < (k < 3 ? 1 : CLASSES); c++) now.logits[c] = bad[k % 3];
        const test_image before = now;
        run_image(&r, &now, 3);
        ry_tca_answered(&r, 0, now.logits);
        if (k != 2) assert_memory_equal(now.logits, before.logits, sizeof now.logits);
    }
    renyi_tca_get_info(r.tca, &info);
    assert_int_equal(info.n_images, 6);
    assert_int_equal(info.n_items, 1); /* a logit of -inf is allowed: the class has probability 0 */
    renyi_tca_free(r.tca);
}

/* Layer weights never overflow, and layers without weight are left out. */
static void test_layers(void **state)
{
    (void)state;
    static const struct {
        double scale;
        uint32_t first;
    } rows[] = {{1e6, 0}, {5.5, 0}, {0.1, 0}, {0.01, 4}, {1e-6, 4}, {0.02, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        renyi_tca_options o = usual;
        ry_tca_run r;
        double sum = 0.0;
        o.scale = rows[i].scale;
        make_tca(&r, &o);
        assert_int_equal(r.tca->first, rows[i].first);
        for (int l = 0; l < BLOCKS; l++) sum += r.tca->layer_root[l] * r.tca->layer_root[l];
        assert_true(fabs(sum - 1.0) < 1e-12);
        renyi_tca_free(r.tca);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream), cmocka_unit_test(test_gate), cmocka_unit_test(test_halves),
        cmocka_unit_test(test_bad_numbers), cmocka_unit_test(test_layers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
