/* test_tile_session.c - base and tiles of a LLaVA-NeXT: policies tile by tile, where rows and
 * newlines go, threads, progress, memory, and files that do not fit together.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "engine/llava/llava_handles.h"
#include "fixtures/test_heap.h"
#include "llava_next/next_fixture.h"
#include "model/llava/visual.h"

#include <math.h>

enum { G = NEXT_SIDE / NEXT_PATCH, P = G * G, MOST = 200, LM_DIM = 32, DIM = 64 };

typedef struct answer {
    renyi_visual_tokens t;  /* its pointers are the arrays below, scores without */
    uint32_t grid, patches; /* of a square; downsample has fewer */
    int has_newlines;
    uint32_t kept[MOST];
    float rows[MOST * LM_DIM], features[MOST * DIM];
} answer;

static renyi_visual *open_next(void)
{
    renyi_visual *v;
    const char *folder = next_write(NEXT_HF, NULL, NULL);
    assert_ok(renyi_visual_open(&v, folder, NULL, NULL, err));
    next_remove(folder);
    return v;
}

static renyi_visual_session *new_session(const renyi_visual *v, const char *policy,
                                         uint32_t threads)
{
    const renyi_visual_session_options o = {
        .struct_size = sizeof o, .policy = policy, .n_threads = threads};
    renyi_visual_session *s;
    assert_ok(renyi_visual_session_new(&s, v, &o, err));
    return s;
}

/* Image i of the reference. */
static renyi_image picture(uint32_t i)
{
    ry_tensors *set = next_expected();
    const renyi_image image = next_picture(set, i);
    ry_tensors_free(set);
    return image;
}

static void run(answer *out, const renyi_visual *v, const char *policy, uint32_t threads,
                uint32_t image)
{
    renyi_visual_session *s = new_session(v, policy, threads);
    const renyi_image p = picture(image);
    memset(out, 0, sizeof *out);
    out->grid = policy && strncmp(policy, "downsample", 10) == 0 ? 3 : G;
    out->patches = out->grid * out->grid;
    out->has_newlines = !policy || !strstr(policy, "newlines=no");
    assert_ok(renyi_visual_run(s, &p, &out->t, err));
    assert_true(out->t.n <= MOST);
    assert_true(out->t.n <= renyi_visual_session_tokens(s));
    assert_int_equal(out->t.lm_dim, LM_DIM);
    memcpy(out->kept, out->t.kept, out->t.n * sizeof *out->kept);
    memcpy(out->rows, out->t.rows, (size_t)out->t.n * LM_DIM * sizeof *out->rows);
    memcpy(out->features, out->t.features, (size_t)out->t.n * DIM * sizeof *out->features);
    out->t.kept = NULL, out->t.rows = out->t.features = out->t.scores = NULL;
    renyi_visual_session_free(s);
}

/* Which line of the whole grid a patch of a tile is in. */
static uint32_t line_of(const answer *a, uint32_t number)
{
    return (number / a->patches - 1) / a->t.tiles.across * a->grid + number % a->patches / a->grid;
}

static uint32_t place_of(const answer *a, uint32_t number)
{
    const uint32_t tile = number / a->patches - 1, across = a->t.tiles.across;
    return (line_of(a, number) * across + tile % across) * a->grid + number % a->grid;
}

/* The base first, the grid line by line, a newline after each line that has a row, merged rows
 * last; no patch of the border. Returns how many rows the base has. */
static uint32_t check_order(const answer *a)
{
    const renyi_visual_tiles *t = &a->t.tiles;
    uint32_t i = 0, base, at = 0, open = 0;
    while (i < a->t.n && (a->kept[i] < a->patches || a->kept[i] == RENYI_NONE)) i++;
    base = i;
    for (; i < a->t.n && a->kept[i] != RENYI_NONE; i++) {
        if (a->kept[i] == RENYI_NEWLINE) {
            assert_true(open);
            open = 0;
            continue;
        }
        const uint32_t columns = t->across * a->grid;
        const uint32_t place = place_of(a, a->kept[i]), x = place % columns;
        assert_true(a->kept[i] / a->patches < a->t.n_squares);
        assert_true(place >= at); /* ascending */
        if (a->has_newlines) assert_true(!open || place / columns == (at - 1) / columns);
        assert_true(x >= t->first_column && x < t->first_column + t->n_columns);
        assert_true(line_of(a, a->kept[i]) - t->first_line < t->n_lines);
        at = place + 1;
        open = 1;
    }
    assert_true(!open || !a->has_newlines);
    for (; i < a->t.n; i++) assert_int_equal(a->kept[i], RENYI_NONE);
    return base;
}

/* ---- policies ------------------------------------------------------------------------------ */

static const char *const policies[] = {
    "none",
    "prumerge tokens=5 metric=cls",
    "prumerge tokens=5 metric=col n=4",
    "prumerge tokens=adaptive",
    "vispruner tokens=6 metric=correct c=0.2",
    "evit keep=0.5 layers=0,1 metric=col drop",
    "evit keep=0.5 layers=0 fuse",
    "evit keep=0.5 layers=1 metric=random seed=3",
    "tome r=3 layers=0",
    "mosaic keep=0.6 layers=0",
    "ats keep=0.6 layers=0",
    "visionzip tokens=6",
    "divprune tokens=6",
    "hiprune tokens=6 block=1",
    "mosaic-behind tokens=6",
    "random tokens=6 seed=3",
    "pool tokens=4",
    "downsample tokens=9",
    "prumerge tokens=30 metric=correct budget=image",
    "divprune tokens=3 budget=image newlines=no",
    "visionzip keep=0.3 budget=image",
};
enum { N_POLICIES = sizeof policies / sizeof *policies };

/* The same bits with any number of threads; every image in the documented order. */
static void test_order_and_threads(void **state)
{
    (void)state;
    renyi_visual *v = open_next();
    answer *one = malloc(2 * sizeof *one), *more = one + 1;
    assert_non_null(one);
    for (size_t k = 0; k < N_POLICIES; k++)
        for (uint32_t i = 0; i < 7; i++) {
            run(one, v, policies[k], 1, i);
            run(more, v, policies[k], 3, i);
            assert_memory_equal(one, more, sizeof *one);
            check_order(one);
        }
    free(one);
    renyi_visual_free(v);
}

/* A cut after the last block keeps rows as they were: those of the dense run, in their places. */
static void test_rows_of_dense(void **state)
{
    (void)state;
    renyi_visual *v = open_next();
    answer *all = malloc(2 * sizeof *all), *some = all + 1;
    uint32_t newlines = 0;
    assert_non_null(all);
    run(all, v, "none", 1, 0);
    run(some, v, "vispruner tokens=6 metric=cls", 1, 0);
    assert_true(some->t.n < all->t.n);
    for (uint32_t i = 0, k = 0; i < some->t.n; i++) {
        if (some->kept[i] == RENYI_NEWLINE) {
            newlines++;
            assert_memory_equal(some->rows + i * LM_DIM, v->side.newline, LM_DIM * sizeof(float));
            for (uint32_t c = 0; c < DIM; c++) assert_true(some->features[i * DIM + c] == 0.0f);
            continue;
        }
        while (k < all->t.n && all->kept[k] != some->kept[i]) k++;
        assert_true(k < all->t.n);
        assert_memory_equal(some->rows + i * LM_DIM, all->rows + k * LM_DIM,
                            LM_DIM * sizeof(float));
    }
    assert_true(newlines > 0 && newlines <= some->t.tiles.n_lines);
    run(some, v, "vispruner tokens=16 metric=cls", 1, 0); /* all patches: the dense run */
    assert_int_equal(some->t.n, all->t.n);
    assert_memory_equal(some->kept, all->kept, sizeof all->kept);
    assert_memory_equal(some->rows, all->rows, sizeof all->rows);
    free(all);
    renyi_visual_free(v);
}

/* Patches among the rows of square t; rows that are of no one patch do not count. */
static uint32_t count_patches(const answer *a, uint32_t t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->t.n; i++) n += a->kept[i] < RENYI_NEWLINE && a->kept[i] / P == t;
    return n;
}

/* budget=image shares the number by largest remainders; a square without a share gives no row. */
static void test_shares(void **state)
{
    (void)state;
    static const struct {
        uint32_t image, tokens, want[5];
    } cases[] = {{8, 80, {16, 16, 16, 16, 16}},
                 {8, 42, {9, 9, 8, 8, 8}},
                 {8, 3, {1, 1, 1, 0, 0}},
                 {3, 36, {16, 8, 8}}, /* a small square: half of each of its two tiles */
                 {3, 5, {3, 1, 1}}};
    renyi_visual *v = open_next();
    answer *a = malloc(sizeof *a);
    char policy[96];
    assert_non_null(a);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(policy, sizeof policy, "uniform tokens=%u budget=image", cases[i].tokens);
        run(a, v, policy, 1, cases[i].image);
        for (uint32_t t = 0; t < a->t.n_squares; t++) {
            const uint32_t n = count_patches(a, t);
            if (cases[i].image == 8 || !t) /* no border: all that are kept */
                assert_int_equal(n, cases[i].want[t]);
            else
                assert_true(n <= cases[i].want[t]);
        }
    }
    run(a, v, "prumerge tokens=3 budget=image", 1, 8); /* and a merged row of each */
    assert_int_equal(a->t.n, 3 + 3 + 2);
    run(a, v, "uniform keep=0.02 budget=image", 1, 3); /* 0.64 of 32 patches, 1.6 of 80 */
    assert_int_equal(a->t.n, 1);
    assert_int_equal(count_patches(a, 0), 1);
    free(a);
    renyi_visual_free(v);
}

/* A budget of at least the visual tokens of an image drops none, whatever the border. */
static void test_budget_for_all(void **state)
{
    (void)state;
    static const char *const rules[] = {"uniform", "vispruner", "divprune", "mosaic-behind"};
    static const char *const budgets[] = {"tokens=80", "keep=1"};
    renyi_visual *v = open_next();
    answer *all = malloc(2 * sizeof *all), *some = all + 1;
    char policy[96];
    assert_non_null(all);
    for (uint32_t image = 0; image < 9; image++) {
        run(all, v, "none", 1, image);
        for (size_t r = 0; r < sizeof rules / sizeof *rules; r++)
            for (size_t b = 0; b < 2; b++) {
                snprintf(policy, sizeof policy, "%s %s budget=image", rules[r], budgets[b]);
                run(some, v, policy, 1, image);
                assert_int_equal(some->t.n, all->t.n);
                for (uint32_t t = 0; t < all->t.n_squares; t++)
                    assert_int_equal(count_patches(some, t), count_patches(all, t));
            }
    }
    free(all);
    renyi_visual_free(v);
}

static void test_refused_budgets(void **state)
{
    (void)state;
    static const struct {
        const char *policy, *says;
    } cases[] = {{"prumerge tokens=17", "a tile has 16 patches"},
                 {"prumerge tokens=81 budget=image", "an image has 80 patches"},
                 {"prumerge adaptive budget=image", "no number that tiles could share"},
                 {"downsample tokens=4 budget=image", "no number that tiles could share"},
                 {"prumerge tokens=20 plus budget=image", "goes with budget=tile"},
                 {"prumerge tokens=4 budget=row", "budget is one of tile, image"},
                 {"vispruner tokens=4 newlines=none", "newlines is one of yes, no"},
                 {"evit keep=0.5 budget=image", "evit takes no budget"}};
    renyi_visual *v = open_next();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const renyi_visual_session_options o = {.struct_size = sizeof o, .policy = cases[i].policy};
        renyi_visual_session *s;
        renyi_error e = {0};
        assert_int_equal(renyi_visual_session_new(&s, v, &o, &e), RENYI_ERR_ARG);
        assert_says(&e, cases[i].says);
    }
    renyi_visual_free(v);
}

/* Scores are those of each square; a session can show one image after the other. */
static void test_scores(void **state)
{
    (void)state;
    renyi_visual *v = open_next();
    renyi_visual_session *s = new_session(v, "prumerge tokens=4", 1);
    renyi_visual_tokens t;
    for (uint32_t i = 0; i < 4; i++) {
        const renyi_image p = picture(i);
        assert_ok(renyi_visual_run(s, &p, &t, err));
        assert_int_equal(t.n_squares, 1 + t.tiles.across * t.tiles.down);
        for (uint32_t k = 0; k < t.n_squares * P; k++) assert_true(isfinite(t.scores[k]));
    }
    const renyi_image line = picture(6); /* so long that nothing is left of the tiles */
    assert_ok(renyi_visual_run(s, &line, &t, err));
    assert_int_equal(t.tiles.n_lines, 0);
    for (uint32_t k = 0; k < P; k++) assert_true(isfinite(t.scores[k]));
    assert_true(isnan(t.scores[P]));
    renyi_visual_session_free(s);
    renyi_visual_free(v);
}

/* Squares: their pixels, their part without border, and the rows that each gave. */
static void check_squares(const renyi_visual_session *s, const renyi_visual_tokens *t)
{
    renyi_visual_square q;
    uint32_t rows = 0, newlines = 0, inside = 0;
    for (uint32_t i = 0; i < t->n; i++) newlines += t->kept[i] == RENYI_NEWLINE;
    for (uint32_t k = 0; k < t->n_squares; k++) {
        uint32_t own = 0;
        assert_ok(renyi_visual_session_get_square(s, k, &q, err));
        assert_non_null(q.pixels);
        for (uint32_t i = 0; i < t->n; i++)
            own += t->kept[i] < RENYI_NEWLINE && t->kept[i] / P == k;
        if (q.size == NEXT_SIDE) assert_true(q.n_rows >= own);
        rows += q.n_rows;
        inside += k ? q.n_columns * q.n_lines : 0;
    }
    assert_int_equal(rows + newlines, t->n);
    assert_int_equal(inside, t->tiles.n_columns * t->tiles.n_lines);
    assert_int_equal(renyi_visual_session_get_square(s, t->n_squares, &q, NULL), RENYI_ERR_ARG);
}

static void test_squares(void **state)
{
    (void)state;
    renyi_visual *v = open_next();
    renyi_visual_tokens t;
    renyi_visual_square q;
    for (size_t k = 0; k < N_POLICIES; k++) {
        renyi_visual_session *s = new_session(v, policies[k], 1);
        assert_int_equal(renyi_visual_session_get_square(s, 0, &q, NULL), RENYI_ERR_ARG);
        for (uint32_t i = 0; i < 8; i++) {
            const renyi_image p = picture(i);
            assert_ok(renyi_visual_run(s, &p, &t, err));
            check_squares(s, &t);
        }
        const renyi_image none = {.rgb = NULL, .width = 5, .height = 5};
        assert_int_not_equal(renyi_visual_run(s, &none, &t, NULL), RENYI_OK);
        assert_int_equal(renyi_visual_session_get_square(s, 0, &q, NULL), RENYI_ERR_ARG);
        renyi_visual_session_free(s);
    }
    renyi_visual_session *s = new_session(v, "prumerge tokens=3 budget=image", 1);
    const renyi_image p = picture(8), small = picture(7); /* 2x2 tiles; as large as a tile */
    static const uint32_t want[5] = {2, 2, 2, 0, 0};      /* each with its merged row */
    assert_ok(renyi_visual_run(s, &p, &t, err));
    for (uint32_t k = 0; k < 5; k++) {
        assert_ok(renyi_visual_session_get_square(s, k, &q, err));
        assert_int_equal(q.n_rows, want[k]);
    }
    assert_ok(renyi_visual_run(s, &small, &t, err));
    assert_ok(renyi_visual_session_get_square(s, 0, &q, err));
    assert_memory_equal(q.pixels, small.rgb, (size_t)NEXT_SIDE * NEXT_SIDE * 3);
    assert_int_equal(renyi_visual_session_get_square(NULL, 0, &q, NULL), RENYI_ERR_ARG);
    assert_int_equal(renyi_visual_session_get_square(s, 0, NULL, NULL), RENYI_ERR_ARG);
    renyi_visual_session_free(s);
    renyi_visual_free(v);
}

/* ---- running ------------------------------------------------------------------------------- */

typedef struct watch {
    uint64_t done, total, stop_at;
} watch;

static int on_progress(void *user, uint64_t done, uint64_t total)
{
    watch *w = user;
    assert_true(done > w->done && done <= total);
    assert_true(!w->total || w->total == total);
    w->done = done;
    w->total = total;
    return w->stop_at && done >= w->stop_at;
}

static void test_progress(void **state)
{
    (void)state;
    renyi_visual *v = open_next();
    renyi_error e = {0};
    for (uint64_t stop_at = 0; stop_at <= 4; stop_at += 4) {
        watch w = {.stop_at = stop_at};
        const renyi_visual_session_options o = {
            .struct_size = sizeof o, .progress = on_progress, .progress_user = &w};
        renyi_visual_session *s;
        renyi_visual_tokens t;
        const renyi_image p = picture(0);
        assert_ok(renyi_visual_session_new(&s, v, &o, err));
        assert_int_equal(renyi_visual_run(s, &p, &t, &e), stop_at ? RENYI_ERR_ABORTED : RENYI_OK);
        if (!stop_at) assert_int_equal(w.done, w.total);
        assert_int_equal(w.total % 5, 0); /* base and four tiles */
        renyi_visual_session_free(s);
    }
    renyi_visual_free(v);
}

/* Pixels of the size of a tile are an image like any other. */
static void test_pixels(void **state)
{
    (void)state;
    renyi_visual *v = open_next();
    renyi_visual_session *a = new_session(v, NULL, 1), *b = new_session(v, NULL, 1);
    renyi_visual_tokens ta, tb;
    const renyi_image p = picture(7);
    assert_int_equal(p.width, NEXT_SIDE);
    assert_ok(renyi_visual_run(a, &p, &ta, err));
    assert_ok(renyi_visual_run_pixels(b, p.rgb, &tb, err));
    assert_int_equal(ta.n, tb.n);
    assert_memory_equal(ta.rows, tb.rows, (size_t)ta.n * LM_DIM * sizeof(float));
    renyi_visual_session_free(a);
    renyi_visual_session_free(b);
    renyi_visual_free(v);
}

static void test_bad_images(void **state)
{
    (void)state;
    renyi_visual *v = open_next();
    renyi_visual_session *s = new_session(v, NULL, 1);
    renyi_visual_tokens t;
    renyi_error e = {0};
    uint8_t pixel[3] = {0};
    const renyi_image bad[] = {{.rgb = NULL, .width = 5, .height = 5},
                               {.rgb = pixel, .width = 0, .height = 5},
                               {.rgb = pixel, .width = 5, .height = 5, .stride = 3},
                               {.rgb = pixel, .width = (1u << 24) + 1, .height = 1}};
    const char *const says[] = {"without pixels", "without pixels", "stride", "16777217 x 1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_not_equal(renyi_visual_run(s, &bad[i], &t, &e), RENYI_OK);
        assert_says(&e, says[i]);
    }
    renyi_visual_session_free(s);
    renyi_visual_free(v);
}

/* ---- memory -------------------------------------------------------------------------------- */

static renyi_status whole_life(const char *folder, test_heap *heap, renyi_error *e)
{
    const renyi_options opt = {.struct_size = sizeof opt, .allocator = test_heap_of(heap)};
    const renyi_visual_session_options sopt = {
        .struct_size = sizeof sopt, .n_threads = 1, .policy = "prumerge tokens=4"};
    renyi_visual *v = NULL;
    renyi_visual_session *s = NULL;
    renyi_visual_tokens t;
    const renyi_image p = picture(0);
    renyi_status st = renyi_visual_open(&v, folder, NULL, &opt, e);
    if (!st) st = renyi_visual_session_new(&s, v, &sopt, e);
    if (!st) st = renyi_visual_run(s, &p, &t, e);
    renyi_visual_session_free(s);
    renyi_visual_free(v);
    return st;
}

static void test_memory(void **state)
{
    (void)state;
    const char *folder = next_write(NEXT_HF, NULL, NULL);
    for (size_t fail_at = 1;; fail_at++) {
        test_heap heap = {.fail_at = fail_at};
        renyi_error e = {0};
        const renyi_status st = whole_life(folder, &heap, &e);
        assert_int_equal(heap.live, 0);
        if (heap.calls < fail_at) {
            assert_int_equal(st, RENYI_OK);
            assert_true(fail_at > 100);
            break;
        }
        assert_int_equal(st, RENYI_ERR_NOMEM);
    }
    next_remove(folder);
}

/* ---- files --------------------------------------------------------------------------------- */

static void refuse(next_layout layout, const fixture *f, const char *config, renyi_status code,
                   const char *says)
{
    renyi_error e = {0};
    renyi_visual *v = NULL;
    const char *folder = next_write(layout, f, config);
    assert_int_equal(renyi_visual_open(&v, folder, NULL, NULL, &e), code);
    assert_null(v);
    assert_says(&e, says);
    assert_says(&e, folder);
    next_remove(folder);
}

#define HF(sizes)                                                                        \
    "{\"model_type\": \"llava_next\", \"vision_config\": {\"num_attention_heads\": 1}, " \
    "\"image_grid_pinpoints\": " sizes "}"
#define OWN(more) "{\"model_type\": \"llava\", \"image_aspect_ratio\": \"anyres\"" more "}"
#define OWN_GRIDS ", \"image_grid_pinpoints\": [[28, 56]]"

static void test_configs(void **state)
{
    (void)state;
    static const struct {
        next_layout layout;
        const char *config, *says;
        renyi_status code;
    } cases[] = {
        {NEXT_HF, HF("[[28, 57]]"), "is 57 wide and 28 high", RENYI_ERR_FORMAT},
        {NEXT_HF, HF("[[28, 56], [0, 28]]"), "image_grid_pinpoints[1]", RENYI_ERR_FORMAT},
        {NEXT_HF, HF("[[-28, 28]]"), "-28 high", RENYI_ERR_FORMAT},
        {NEXT_HF, HF("[[28]]"), "not a pair", RENYI_ERR_FORMAT},
        {NEXT_HF, HF("[[28, 56.0]]"), "not a pair", RENYI_ERR_FORMAT},
        {NEXT_HF, HF("[28, 56]"), "not a pair", RENYI_ERR_FORMAT},
        {NEXT_HF, HF("[]"), "a list of 1 to 64", RENYI_ERR_FORMAT},
        {NEXT_HF, HF("\"[(28, 56)]\""), "a list of 1 to 64", RENYI_ERR_FORMAT},
        {NEXT_HF, HF("[[28, 504]]"), "at most 16 tiles", RENYI_ERR_LIMIT},
        {NEXT_HF, HF("[[140, 140]]"), "at most 16 tiles", RENYI_ERR_LIMIT},
        {NEXT_HF, HF("[[9223372036854775800, 9223372036854775800]]"), "at most 16 tiles",
         RENYI_ERR_LIMIT},
        {NEXT_HF, HF("[[28, 56]]"), "have different image_grid_pinpoints", RENYI_ERR_FORMAT},
        {NEXT_HF, "{\"vision_config\": {\"num_attention_heads\": 1}}", "so this is a LLaVA-NeXT",
         RENYI_ERR_FORMAT},
        {NEXT_OWN, OWN(""), "image_grid_pinpoints is missing", RENYI_ERR_FORMAT},
        {NEXT_OWN, OWN(OWN_GRIDS), "mm_patch_merge_type 'flat'", RENYI_ERR_UNSUPPORTED},
        {NEXT_OWN, OWN(OWN_GRIDS ", \"mm_patch_merge_type\": \"spatial_maxpool2x2\""),
         "'spatial_maxpool2x2'", RENYI_ERR_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse(cases[i].layout, NULL, cases[i].config, cases[i].code, cases[i].says);
}

static void test_newline(void **state)
{
    (void)state;
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    next_tensors(f, NEXT_HF);
    fix_find(f, "image_newline")->shape[0] = 16;
    fix_find(f, "image_newline")->bytes /= 2;
    refuse(NEXT_HF, f, NULL, RENYI_ERR_FORMAT,
           "image_newline is [16]; the projector makes rows of 32");
    fix_remove(f, "image_newline");
    refuse(NEXT_HF, f, NULL, RENYI_ERR_FORMAT, "image_newline is missing");
    fix_free(f);
    free(f);
}

/* mm_patch_merge_type spatial: the border stays, and no line ends with a newline. */
static void test_spatial(void **state)
{
    (void)state;
    renyi_visual *v;
    answer *a = malloc(sizeof *a);
    const char *folder = next_write(NEXT_OWN, NULL,
                                    OWN(", \"mm_patch_merge_type\": \"spatial\", "
                                        "\"image_grid_pinpoints\": [[56, 56]]"));
    assert_non_null(a);
    assert_ok(renyi_visual_open(&v, folder, NULL, NULL, err));
    next_remove(folder);
    run(a, v, NULL, 1, 0);
    assert_int_equal(a->t.n, 5 * P);
    assert_int_equal(a->t.n_full, 5 * P);
    for (uint32_t i = 0; i < a->t.n; i++) assert_true(a->kept[i] < 5 * P);
    for (uint32_t i = P; i < a->t.n; i++) assert_int_equal(place_of(a, a->kept[i]), i - P);
    free(a);
    renyi_visual_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_threads),
        cmocka_unit_test(test_rows_of_dense),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_budget_for_all),
        cmocka_unit_test(test_refused_budgets),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_squares),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_pixels),
        cmocka_unit_test(test_bad_images),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_configs),
        cmocka_unit_test(test_newline),
        cmocka_unit_test(test_spatial),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
