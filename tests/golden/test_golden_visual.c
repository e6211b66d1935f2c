/* test_golden_visual.c - tests LLaVA's vision tower and pruning rules against the reference:
 * features, scores, tokens kept and merged. Reads ../shared; reports SKIP without it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "renyi/llava.h"

#include <string.h>

#include "test.h"

#include "fixtures/golden_taps.h"

#ifdef RENYI_SANITIZED
enum { IMAGES = 1 }; /* ten times slower: one image per variant */
#else
enum { IMAGES = 3 };
#endif
enum { PATCHES = 576, DIM = 64, SIDE = 336 };

typedef struct golden {
    renyi_visual *visual;
    ry_tensors *taps;
    const uint8_t *pixels;
} golden;

static int open_golden(golden *g, renyi_cpu level)
{
    renyi_error err = {0};
    const char *model = shared_path("models/llava_tiny_random");
    const char *taps = shared_path("golden/llava_tiny.safetensors");
    if (!model || !taps) return 0;
    const renyi_options opt = {.struct_size = sizeof opt, .cpu = level};
    if (renyi_visual_open(&g->visual, model, NULL, &opt, &err)) fail_msg("%s", err.message);
    if (ry_safetensors_open(&g->taps, taps, NULL, NULL, &err)) fail_msg("%s", err.message);
    g->pixels = golden_tap(g->taps, "images.pixels");
    return 1;
}

static void close_golden(golden *g)
{
    renyi_visual_free(g->visual);
    ry_tensors_free(g->taps);
}

static renyi_visual_session *open_session(const golden *g, const char *policy)
{
    const renyi_visual_session_options opt = {.struct_size = sizeof opt, .policy = policy};
    renyi_visual_session *s;
    renyi_error err = {0};
    if (renyi_visual_session_new(&s, g->visual, &opt, &err)) fail_msg("%s", err.message);
    return s;
}

static void run_pixels(renyi_visual_session *s, const golden *g, int image,
                       renyi_visual_tokens *out)
{
    renyi_error err = {0};
    const size_t each = (size_t)SIDE * SIDE * 3;
    if (renyi_visual_run_pixels(s, g->pixels + (size_t)image * each, out, &err))
        fail_msg("%s", err.message);
}

/* ---- the tower ----------------------------------------------------------------------------- */

static void check_features(renyi_cpu level)
{
    golden g;
    renyi_visual_tokens t;
    renyi_visual_info info;
    if (!open_golden(&g, level)) return;
    renyi_visual_get_info(g.visual, &info);
    assert_string_equal(info.layout, "transformers");
    assert_int_equal(info.n_blocks, 24);
    assert_int_equal(info.n_blocks_run, 23);
    assert_int_equal(info.lm_dim, 32);
    assert_int_equal(info.pad_to_square, 1);
    renyi_visual_session *s = open_session(&g, NULL);
    assert_int_equal(renyi_visual_session_tokens(s), PATCHES);
    run_pixels(s, &g, 0, &t);
    assert_int_equal(t.n, PATCHES);
    for (uint32_t i = 0; i < t.n; i++) assert_int_equal(t.kept[i], i);
    const double e = golden_row_error(t.features, golden_tap(g.taps, "features.0"), PATCHES, DIM);
    printf("%s: features within %.2g\n", renyi_cpu_name(level), e);
    assert_true(e < 2e-5);
    renyi_visual_session_free(s);
    close_golden(&g);
}

static void test_features(void **state)
{
    (void)state;
    for (int level = RENYI_CPU_SCALAR; level <= (int)renyi_cpu_detect(); level++)
        check_features((renyi_cpu)level);
}

/* The image file gives the reference's pixels, and so the same bits. */
static void test_files(void **state)
{
    (void)state;
    golden g;
    renyi_error err = {0};
    const char *image = shared_path("data/imagenet-val-500/006/ILSVRC2012_val_00001935.JPEG");
    if (!image || !open_golden(&g, RENYI_CPU_AUTO)) return;
    renyi_visual_session *s = open_session(&g, NULL), *again = open_session(&g, NULL);
    renyi_visual_tokens a, b;
    run_pixels(s, &g, 0, &a);
    if (renyi_visual_run_file(again, image, &b, &err)) fail_msg("%s", err.message);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.rows, b.rows, (size_t)a.n * a.lm_dim * sizeof(float));
    renyi_visual_session_free(s);
    renyi_visual_session_free(again);
    close_golden(&g);
}

/* ---- rules behind the tower ---------------------------------------------------------------- */

static const struct variant {
    const char *name, *policy, *scores; /* scores: their tensor in the golden file */
} variants[] = {
    {"prumerge-cls-192", "prumerge tokens=192 metric=cls", "prumerge.cls"},
    {"prumerge-cls-256", "prumerge tokens=256 metric=cls", "prumerge.cls"},
    {"prumerge-col-192", "prumerge tokens=192 metric=col n=4", "prumerge.col4"},
    {"prumerge-col-256", "prumerge keep=0.4444444444444444 metric=col", "prumerge.col4"},
    {"vispruner-cls-192", "vispruner tokens=192", "block22.cls"},
    {"vispruner-cls-256", "vispruner tokens=256", "block22.cls"},
    {"vispruner-correct0.2-192", "vispruner tokens=192 metric=correct c=0.2", "block22.col4"},
    {"vispruner-correct0.2-256", "vispruner tokens=256 metric=correct c=0.2", "block22.col4"},
    {"vispruner-correct0.8-192", "vispruner tokens=192 metric=correct c=0.8", "block22.col4"},
    {"vispruner-correct0.8-256", "vispruner tokens=256 metric=correct c=0.8", "block22.col4"},
};

static const ry_tensor *tap_of(const golden *g, int image, const char *variant, const char *what)
{
    char name[96];
    snprintf(name, sizeof name, "%d.%s%s%s", image, variant, *what ? "." : "", what);
    return ry_tensors_find(g->taps, name);
}

/* ---- whether a different choice is only rounding ---- */

typedef struct ranked {
    double score;
    int index;
} ranked;

static int by_score(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return x->index - y->index;
}

/* list [PATCHES]: patches by score, the best first. */
static void rank(int *list, const float *score)
{
    ranked r[PATCHES];
    for (int i = 0; i < PATCHES; i++) r[i] = (ranked){(double)score[i], i};
    qsort(r, PATCHES, sizeof *r, by_score);
    for (int i = 0; i < PATCHES; i++) list[i] = r[i].index;
}

static double cosine(const float *x, int i, int j)
{
    double dot = 0.0, a = 0.0, b = 0.0;
    for (int k = 0; k < DIM; k++) {
        const double u = (double)x[i * DIM + k], w = (double)x[j * DIM + k];
        dot += u * w, a += u * u, b += w * w;
    }
    return dot / sqrt(a * b);
}

/* VisPruner in double. Of the neighbouring similarities that differ by less than TIE, pair number
 * `flip` is swapped; 0 = none. */
#define TIE 5e-7
typedef struct rounds {
    const double *cosines; /* [PATCHES, PATCHES] */
    int flip, n_ties;
    double margin; /* of the pair that was flipped */
} rounds;

static int run_round(rounds *v, int *list, int n, int keep)
{
    const int even = (n + 1) / 2, most = n - keep < 8 ? n - keep : 8;
    ranked r[PATCHES];
    int next[PATCHES], left = 0;
    for (int i = 0; i < even; i++) {
        r[i] = (ranked){-2.0, list[2 * i]};
        for (int b = 1; b < n; b += 2)
            r[i].score = fmax(r[i].score, v->cosines[list[2 * i] * PATCHES + list[b]]);
    }
    qsort(r, (size_t)even, sizeof *r, by_score);
    for (int i = 1; i < even; i++) {
        if (r[i - 1].score - r[i].score > TIE || ++v->n_ties != v->flip) continue;
        const ranked other = r[i];
        v->margin = r[i - 1].score - r[i].score;
        r[i] = r[i - 1], r[i - 1] = other;
    }
    for (int i = most; i < even; i++) next[left++] = r[i].index;
    for (int b = 1; b < n; b += 2) next[left++] = list[b];
    memcpy(list, next, (size_t)left * sizeof *list);
    return left;
}

/* Marks the important tokens by the reference's scores in taken [PATCHES] and puts the others into
 * list [PATCHES]; returns their number. share: fraction of the important ones chosen by columns;
 * below 0: metric=cls. */
static int begin_rounds(const golden *g, int image, int important, double share, char *taken,
                        int *list)
{
    int order[PATCHES], columns[PATCHES], n = 0;
    int chosen = important - (share < 0 ? 0 : (int)(important * share));
    rank(order, tap_of(g, image, "block22.cls", "")->data);
    rank(columns, tap_of(g, image, "block22.col4", "")->data);
    memset(taken, 0, PATCHES);
    for (int i = 0; i < chosen; i++) taken[order[i]] = 1;
    for (int i = 0; chosen < important; i++)
        if (!taken[columns[i]]) taken[columns[i]] = 1, chosen++;
    for (int i = 0; i < PATCHES; i++) {
        const int j = share < 0 ? order[i] : i;
        if (!taken[j]) list[n++] = j;
    }
    return n;
}

/* 1 when these rounds end with the reference's tokens. */
static int ends_as_reference(rounds *v, const golden *g, int image, double share,
                             const ry_tensor *kept)
{
    const int tokens = (int)kept->shape[0], important = tokens / 2;
    const int32_t *want = kept->data;
    char taken[PATCHES];
    int list[PATCHES], n = begin_rounds(g, image, important, share, taken, list);
    v->n_ties = 0;
    while (n > tokens - important) n = run_round(v, list, n, tokens - important);
    for (int i = 0; i < n; i++) taken[list[i]] = 1;
    for (int i = 0; i < tokens; i++)
        if (!taken[want[i]]) return 0;
    return 1;
}

/* VisPruner's list after a round depends on which of two similarities is larger, down to the last
 * bit of a float. A choice other than the reference's is accepted if the rounds in double, on our
 * features, end with the reference's tokens: as they are or with one such pair flipped. */
static void explain_choice(const golden *g, int image, const struct variant *v,
                           const ry_tensor *kept)
{
    static double cosines[PATCHES * PATCHES];
    const char *correct = strstr(v->name, "correct");
    const double share = correct ? atof(correct + strlen("correct")) : -1.0;
    renyi_visual_session *s = open_session(g, NULL);
    renyi_visual_tokens t;
    rounds r = {.cosines = cosines};
    run_pixels(s, g, image, &t);
    for (int i = 0; i < PATCHES; i++)
        for (int j = 0; j < PATCHES; j++) cosines[i * PATCHES + j] = cosine(t.features, i, j);
    renyi_visual_session_free(s);
    int is_explained = ends_as_reference(&r, g, image, share, kept);
    const int n_ties = r.n_ties;
    while (!is_explained && r.flip < n_ties) {
        r.flip++;
        is_explained = ends_as_reference(&r, g, image, share, kept);
    }
    if (!is_explained) fail_msg("%d %s: other tokens are kept", image, v->name);
    printf("%d %s: another choice; the reference's in double with flip %d of %d, %.1e apart\n",
           image, v->name, r.flip, n_ties, r.margin);
}

static int same_kept(const renyi_visual_tokens *t, const ry_tensor *kept)
{
    return memcmp(t->kept, kept->data, (size_t)kept->bytes) == 0;
}

/* 1 when the same tokens are kept. */
static int check_variant(const golden *g, renyi_visual_session *s, const struct variant *v,
                         int image)
{
    renyi_visual_tokens t;
    run_pixels(s, g, image, &t);
    const ry_tensor *kept = tap_of(g, image, v->name, "kept");
    const ry_tensor *tokens = tap_of(g, image, v->name, "tokens");
    const ry_tensor *scores = tap_of(g, image, v->scores, "");
    const uint32_t extra = strncmp(v->name, "prumerge", 8) == 0;
    assert_non_null(kept);
    assert_non_null(scores);
    assert_int_equal(t.n, kept->shape[0] + extra);
    assert_int_equal(t.n, renyi_visual_session_tokens(s));
    const double e = golden_row_error(t.scores, scores->data, PATCHES, 1);
    if (!(e < 2e-5)) fail_msg("%d %s: scores differ by %g", image, v->name, e);
    if (!same_kept(&t, kept)) {
        if (extra) fail_msg("%d %s: other tokens are kept", image, v->name);
        explain_choice(g, image, v, kept);
        return 0;
    }
    if (extra) assert_int_equal(t.kept[t.n - 1], RENYI_NONE);
    if (!tokens) return 1;
    assert_int_equal(tokens->shape[0], t.n);
    const double r = golden_row_error(t.features, tokens->data, t.n, DIM);
    printf("%d %s: scores within %.2g, tokens within %.2g\n", image, v->name, e, r);
    assert_true(r < 2e-5);
    return 1;
}

static void test_variants(void **state)
{
    (void)state;
    golden g;
    int same = 0;
    if (!open_golden(&g, RENYI_CPU_AUTO)) return;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        renyi_visual_session *s = open_session(&g, variants[i].policy);
        for (int image = 0; image < IMAGES; image++)
            same += check_variant(&g, s, &variants[i], image);
        renyi_visual_session_free(s);
    }
    printf("%d of %d choices are the reference's\n", same, 10 * IMAGES);
    assert_true(same >= 10 * IMAGES - 4);
    close_golden(&g);
}

static void test_adaptive(void **state)
{
    (void)state;
    golden g;
    if (!open_golden(&g, RENYI_CPU_AUTO)) return;
    for (int col = 0; col < 2; col++) {
        renyi_visual_session *s =
            open_session(&g, col ? "prumerge adaptive metric=col" : "prumerge adaptive");
        for (int image = 0; image < IMAGES; image++) {
            renyi_visual_tokens t;
            run_pixels(s, &g, image, &t);
            const ry_tensor *count =
                tap_of(&g, image, col ? "prumerge-col-adaptive" : "prumerge-cls-adaptive", "count");
            assert_non_null(count);
            printf("%d adaptive %s: %u\n", image, col ? "col" : "cls", t.n - 1);
            assert_int_equal(t.n - 1, *(const int32_t *)count->data);
            assert_true(t.n <= renyi_visual_session_tokens(s));
        }
        renyi_visual_session_free(s);
    }
    close_golden(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_adaptive),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
