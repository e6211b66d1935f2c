/* test_visual.c - the visual side of a small random LLaVA: the same rows from all layouts, policies
 * in the tower and behind it, threads, memory, errors.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fixtures/image_tower_fixture.h"
#include "fixtures/test_heap.h"
#include "renyi/llava.h"

#include <math.h>
#include <sys/stat.h>

enum { LM_DIM = 24, MID = 20, PATCHES = 16 };

#define CONFIG(more) \
    "{\"model_type\": \"llava\", \"vision_config\": {\"num_attention_heads\": 4}" more "}"

/* ---- the fixture --------------------------------------------------------------------------- */

static void add_linear(fixture *f, const char *name, uint64_t out, uint64_t in)
{
    char full[96];
    const uint64_t w[2] = {out, in}, b[1] = {out};
    float *weight = malloc(out * in * sizeof *weight), *bias = malloc(out * sizeof *bias);
    for (size_t i = 0; i < out * in; i++) weight[i] = 0.1f * sinf((float)i);
    for (size_t i = 0; i < out; i++) bias[i] = 0.05f * cosf((float)i);
    snprintf(full, sizeof full, "%s.weight", name);
    fix_add(f, full, 2, w, weight);
    snprintf(full, sizeof full, "%s.bias", name);
    fix_add(f, full, 1, b, bias);
}

/* Every name that begins with `from` begins with `to` instead. */
static void move_names(fixture *f, const char *from, const char *to)
{
    for (size_t i = 0; i < f->n; i++) {
        char old[96];
        strcpy(old, f->names[i]);
        if (strncmp(old, from, strlen(from)) != 0) continue;
        assert_true(snprintf(f->names[i], sizeof f->names[i], "%s%s", to, old + strlen(from)) < 96);
    }
}

typedef enum layout { TRANSFORMERS, LLAVA_HF, LLAVA, LLAVA_APART } layout;

/* A tower (clip_make), the projector, and a tensor of another part. */
static void make_llava(fixture *f, layout kind)
{
    static const char *const towers[] = {"model.vision_tower.", "vision_tower.vision_model.",
                                         "model.vision_tower.vision_tower.vision_model."};
    static const char *const first[] = {"model.multi_modal_projector.linear_1",
                                        "multi_modal_projector.linear_1", "model.mm_projector.0"};
    static const char *const second[] = {"model.multi_modal_projector.linear_2",
                                         "multi_modal_projector.linear_2", "model.mm_projector.2"};
    const int names = kind == LLAVA_APART ? LLAVA : (int)kind;
    clip_make(f);
    fix_remove(f, "visual_projection.weight");
    fix_remove(f, "logit_scale");
    if (kind == LLAVA_APART)
        while (f->n) fix_remove(f, f->names[0]);
    else
        move_names(f, "vision_model.", towers[kind]);
    add_linear(f, first[names], MID, FIX_DIM);
    add_linear(f, second[names], LM_DIM, MID);
    fix_add_zeros(f, "lm_head.weight", 3);
    fix_add_zeros(f, "model.layers.0.self_attn.q_norm.weight", 3);
    f->meta[2] = "config.json";
    f->meta[3] = names == LLAVA ? "{\"hidden_size\": 999}" : CONFIG("");
}

static renyi_visual *open_visual(const fixture *f, const char *tower, const renyi_options *opt)
{
    renyi_visual *v = NULL;
    const char *path = fix_write(f, "llava.safetensors");
    assert_ok(renyi_visual_open(&v, path, tower, opt, err));
    unlink(path);
    return v;
}

static renyi_visual *open_kind(layout kind)
{
    fixture f;
    make_llava(&f, kind);
    renyi_visual *v = open_visual(&f, NULL, NULL);
    fix_free(&f);
    return v;
}

typedef struct answer {
    uint32_t n, kept[PATCHES + 1];
    float rows[(PATCHES + 1) * LM_DIM], features[(PATCHES + 1) * FIX_DIM];
} answer;

static const uint8_t *test_pixels(void)
{
    static uint8_t pixels[CLIP_VALUES];
    uint32_t state = 7;
    for (size_t i = 0; i < CLIP_VALUES; i++) {
        state = state * 1664525u + 1013904223u;
        pixels[i] = (uint8_t)(state >> 24);
    }
    return pixels;
}

static void keep_answer(answer *out, const renyi_visual_tokens *t)
{
    assert_true(t->n <= PATCHES + 1);
    assert_int_equal(t->lm_dim, LM_DIM);
    memset(out, 0, sizeof *out);
    out->n = t->n;
    memcpy(out->kept, t->kept, t->n * sizeof *t->kept);
    memcpy(out->rows, t->rows, t->n * LM_DIM * sizeof(float));
    memcpy(out->features, t->features, t->n * FIX_DIM * sizeof(float));
}

static void run_visual(answer *out, const renyi_visual *v, const char *policy, uint32_t threads)
{
    const renyi_visual_session_options opt = {
        .struct_size = sizeof opt, .n_threads = threads, .policy = policy};
    renyi_visual_session *s = NULL;
    renyi_visual_tokens t;
    renyi_visual_square q;
    assert_ok(renyi_visual_session_new(&s, v, &opt, err));
    assert_int_equal(renyi_visual_session_get_square(s, 0, &q, NULL), RENYI_ERR_ARG);
    assert_ok(renyi_visual_run_pixels(s, test_pixels(), &t, err));
    assert_ok(renyi_visual_session_get_square(s, 0, &q, err));
    assert_int_equal(q.n_rows, t.n);
    if (!policy || strncmp(policy, "downsample", 10) != 0) {
        assert_int_equal(q.n_columns * q.n_lines, t.n_full);
        assert_memory_equal(q.pixels, test_pixels(), (size_t)q.size * q.size * 3);
    }
    assert_int_equal(renyi_visual_session_get_square(s, 1, &q, NULL), RENYI_ERR_ARG);
    assert_true(t.n <= renyi_visual_session_tokens(s));
    assert_true(renyi_visual_session_bytes(s) > 0);
    keep_answer(out, &t);
    renyi_visual_session_free(s);
}

static double difference(const answer *a, const answer *b)
{
    double far = 0.0, top = 0.0;
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->kept, b->kept, a->n * sizeof *a->kept);
    for (size_t i = 0; i < a->n * LM_DIM; i++) {
        far = fmax(far, fabs((double)a->rows[i] - (double)b->rows[i]));
        top = fmax(top, fabs((double)a->rows[i]));
    }
    return far / top;
}

static const char *const policies[] = {"none",
                                       "evit keep=0.5 layers=0 metric=col order=position",
                                       "tome r=3 layers=0",
                                       "prumerge tokens=5",
                                       "prumerge tokens=5 metric=col n=4",
                                       "prumerge adaptive plus metric=correct",
                                       "vispruner tokens=6",
                                       "vispruner tokens=6 metric=correct c=0.5",
                                       "visionzip tokens=7 metric=col",
                                       "visionzip tokens=9 metric=correct contextual=0.4",
                                       "divprune tokens=6",
                                       "hiprune tokens=9 anchors=1 block=0",
                                       "hiprune tokens=7 anchors=0.8 block=0 metric=correct",
                                       "mosaic-behind tokens=6",
                                       "mosaic-behind tokens=6 metric=col omega=0 length=mean",
                                       "random tokens=6 seed=2",
                                       "uniform tokens=5",
                                       "pool tokens=5",
                                       "downsample tokens=9"};
enum { N_POLICIES = sizeof policies / sizeof *policies };

/* ---- layouts ------------------------------------------------------------------------------- */

static void test_layouts(void **state)
{
    (void)state;
    static const char *const names[] = {"transformers", "llava-hf", "llava"};
    answer first[N_POLICIES], now;
    for (int kind = TRANSFORMERS; kind <= LLAVA; kind++) {
        renyi_visual *v = open_kind((layout)kind);
        renyi_visual_info info;
        renyi_visual_get_info(v, &info);
        assert_string_equal(info.layout, names[kind]);
        assert_int_equal(info.n_blocks, FIX_BLOCKS);
        assert_int_equal(info.n_blocks_run, FIX_BLOCKS - 1);
        assert_int_equal(info.lm_dim, LM_DIM);
        assert_int_equal(info.n_patches, PATCHES);
        for (size_t i = 0; i < N_POLICIES; i++) {
            run_visual(kind ? &now : &first[i], v, policies[i], 1);
            if (kind) assert_memory_equal(&now, &first[i], sizeof now);
        }
        renyi_visual_free(v);
    }
}

/* The tower in a file of its own, also as OpenAI has it, where q, k and v are one tensor. */
static void test_tower_apart(void **state)
{
    (void)state;
    for (int openai = 0; openai < 2; openai++) {
        fixture llava, tower;
        renyi_visual *whole = open_kind(LLAVA);
        make_llava(&llava, LLAVA_APART);
        clip_make(&tower);
        if (openai) clip_to_openai(&tower);
        char path[512];
        snprintf(path, sizeof path, "%s", fix_write(&tower, "tower.safetensors"));
        renyi_visual *apart = open_visual(&llava, path, NULL);
        for (size_t i = 0; i < N_POLICIES; i++) {
            answer a, b;
            run_visual(&a, whole, policies[i], 1);
            run_visual(&b, apart, policies[i], 1);
            assert_true(difference(&a, &b) < 1e-5);
        }
        unlink(path);
        renyi_visual_free(whole);
        renyi_visual_free(apart);
        fix_free(&llava);
        fix_free(&tower);
    }
}

/* A folder whose config names its tower. */
static void test_tower_named(void **state)
{
    (void)state;
    fixture llava, tower;
    char folder[512], inner[600], path[700];
    renyi_visual *v = NULL;
    renyi_error e = {0};
    make_llava(&llava, LLAVA_APART);
    clip_make(&tower);
    llava.meta[3] = "{\"mm_vision_tower\": \"openai/clip-tiny\"}";
    snprintf(folder, sizeof folder, "%s", fix_path("folder"));
    snprintf(inner, sizeof inner, "%s/clip-tiny", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_int_equal(rename(fix_write(&llava, "a.safetensors"), path), 0);
    assert_int_equal(renyi_visual_open(&v, folder, NULL, NULL, &e), RENYI_ERR_IO);
    assert_says(&e, "openai/clip-tiny");
    assert_int_equal(mkdir(inner, 0700), 0);
    snprintf(path, sizeof path, "%s/model.safetensors", inner);
    assert_int_equal(rename(fix_write(&tower, "b.safetensors"), path), 0);
    assert_ok(renyi_visual_open(&v, folder, NULL, NULL, err));
    renyi_visual_free(v);
    unlink(path);
    rmdir(inner);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    unlink(path);
    rmdir(folder);
    fix_free(&llava);
    fix_free(&tower);
}

/* ---- policies ------------------------------------------------------------------------------ */

static void test_in_tower(void **state)
{
    (void)state;
    renyi_visual *v = open_kind(LLAVA_HF);
    answer dense, cut;
    run_visual(&dense, v, NULL, 1);
    assert_int_equal(dense.n, PATCHES);
    for (uint32_t i = 0; i < PATCHES; i++) assert_int_equal(dense.kept[i], i);
    run_visual(&cut, v, "evit keep=0.5 layers=0 drop at=end order=position", 1);
    assert_int_equal(cut.n, PATCHES / 2);
    for (uint32_t i = 0; i < cut.n;
         i++) { /* cut after the last block: a subset of the dense rows */
        if (i) assert_true(cut.kept[i] > cut.kept[i - 1]);
        assert_memory_equal(cut.features + i * FIX_DIM, dense.features + cut.kept[i] * FIX_DIM,
                            FIX_DIM * sizeof(float));
    }
    run_visual(&cut, v, "evit keep=0.5 layers=0 fuse", 1);
    assert_int_equal(cut.n, PATCHES / 2 + 1);
    assert_int_equal(cut.kept[cut.n - 1], RENYI_NONE);
    renyi_visual_free(v);
}

/* With all tokens a rule that only chooses gives the rows of the run without it. */
static void test_all_kept(void **state)
{
    (void)state;
    static const char *const all[] = {
        "random tokens=16",        "random keep=1 seed=7",
        "uniform tokens=16",       "pool tokens=16",
        "divprune tokens=16",      "visionzip tokens=16 contextual=0 class_token=no",
        "vispruner tokens=16",     "hiprune tokens=16 anchors=0.7 block=0",
        "mosaic-behind tokens=16", "downsample tokens=16"};
    renyi_visual *v = open_kind(LLAVA_HF);
    answer dense, kept;
    run_visual(&dense, v, NULL, 1);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        run_visual(&kept, v, all[i], 2);
        assert_memory_equal(&kept, &dense, sizeof dense);
    }
    renyi_visual_free(v);
}

/* Rules that only choose give rows of the run without them. */
static void test_subset(void **state)
{
    (void)state;
    static const char *const some[] = {"random tokens=7 seed=5", "uniform tokens=7",
                                       "divprune tokens=7", "vispruner tokens=7",
                                       "hiprune tokens=7 block=0"};
    renyi_visual *v = open_kind(LLAVA_HF);
    answer dense, kept;
    run_visual(&dense, v, NULL, 1);
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        run_visual(&kept, v, some[i], 2);
        assert_int_equal(kept.n, 7);
        for (uint32_t r = 0; r < kept.n; r++) {
            assert_true(kept.kept[r] < PATCHES && (!r || kept.kept[r] > kept.kept[r - 1]));
            assert_memory_equal(kept.rows + r * LM_DIM, dense.rows + kept.kept[r] * LM_DIM,
                                LM_DIM * sizeof(float));
        }
    }
    renyi_visual_free(v);
}

/* Other seeds and other images draw other patches; the same ones the same. */
static void test_random(void **state)
{
    (void)state;
    renyi_visual *v = open_kind(LLAVA_HF);
    answer a, b;
    int differ = 0;
    run_visual(&a, v, "random tokens=8 seed=1", 1);
    run_visual(&b, v, "random tokens=8 seed=1", 3);
    assert_memory_equal(&a, &b, sizeof a);
    for (int seed = 2; seed < 12; seed++) {
        char text[64];
        snprintf(text, sizeof text, "random tokens=8 seed=%d", seed);
        run_visual(&b, v, text, 1);
        differ += memcmp(a.kept, b.kept, sizeof a.kept) != 0;
    }
    assert_true(differ >= 9);
    renyi_visual_free(v);
}

/* A smaller picture is the same as a model that is opened for such pictures. */
static void test_downsample(void **state)
{
    (void)state;
    static uint8_t rgb[3 * 90 * 70];
    const renyi_image image = {rgb, 90, 70, 0};
    const renyi_options small = {.struct_size = sizeof small, .image_size = 3 * 16};
    const renyi_visual_session_options opt = {.struct_size = sizeof opt,
                                              .policy = "downsample tokens=15"};
    fixture f;
    renyi_visual_tokens t;
    renyi_visual_session *s;
    answer want, got;
    for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)(i * 7 % 251);
    make_llava(&f, LLAVA_HF);
    renyi_visual *whole = open_visual(&f, NULL, NULL), *less = open_visual(&f, NULL, &small);
    assert_ok(renyi_visual_session_new(&s, less, NULL, err));
    assert_ok(renyi_visual_run(s, &image, &t, err));
    keep_answer(&want, &t);
    renyi_visual_session_free(s);
    assert_ok(renyi_visual_session_new(&s, whole, &opt, err));
    assert_int_equal(renyi_visual_session_tokens(s), 9);
    assert_ok(renyi_visual_run(s, &image, &t, err));
    keep_answer(&got, &t);
    renyi_visual_session_free(s);
    assert_memory_equal(&got, &want, sizeof got);
    renyi_visual_free(whole);
    renyi_visual_free(less);
    fix_free(&f);
}

/* The class row and columns that VisPruner ranks by are those of the last block that was run. */
static void test_vispruner_scores(void **state)
{
    (void)state;
    renyi_visual *v = open_kind(TRANSFORMERS);
    answer by_rule, by_cut;
    run_visual(&by_rule, v, "vispruner tokens=6 important=1 metric=col n=2", 1);
    run_visual(&by_cut, v, "evit tokens=6 layers=0 metric=col n=2 drop at=end order=position", 1);
    assert_memory_equal(&by_rule, &by_cut, sizeof by_rule);
    renyi_visual_free(v);
}

static void test_threads(void **state)
{
    (void)state;
    renyi_visual *v = open_kind(TRANSFORMERS);
    for (size_t i = 0; i < N_POLICIES; i++) {
        answer one, more;
        run_visual(&one, v, policies[i], 1);
        run_visual(&more, v, policies[i], 3);
        assert_memory_equal(&one, &more, sizeof one);
    }
    renyi_visual_free(v);
}

/* ---- memory -------------------------------------------------------------------------------- */

static renyi_status whole_life(const char *path, test_heap *heap, const char *policy,
                               renyi_error *e)
{
    const renyi_options opt = {.struct_size = sizeof opt, .allocator = test_heap_of(heap)};
    const renyi_visual_session_options sopt = {
        .struct_size = sizeof sopt, .n_threads = 1, .policy = policy};
    renyi_visual *v = NULL;
    renyi_visual_session *s = NULL;
    renyi_visual_tokens t;
    renyi_status st = renyi_visual_open(&v, path, NULL, &opt, e);
    if (!st) st = renyi_visual_session_new(&s, v, &sopt, e);
    if (!st) {
        const size_t before = heap->calls;
        st = renyi_visual_run_pixels(s, test_pixels(), &t, e);
        assert_int_equal(heap->calls, before);
    }
    renyi_visual_session_free(s);
    renyi_visual_free(v);
    return st;
}

static void test_memory(void **state)
{
    (void)state;
    static const char *const tried[] = {"prumerge tokens=4 metric=col",
                                        "vispruner tokens=4",
                                        "evit layers=0",
                                        "visionzip tokens=5 metric=correct",
                                        "divprune tokens=4",
                                        "hiprune tokens=6 block=0",
                                        "mosaic-behind tokens=4"};
    fixture f;
    make_llava(&f, TRANSFORMERS);
    char path[512];
    snprintf(path, sizeof path, "%s", fix_write(&f, "memory.safetensors"));
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
        for (size_t fail_at = i ? 250 : 1;; fail_at += fail_at < 240 ? 7 : 1) {
            test_heap heap = {.fail_at = fail_at};
            renyi_error e = {0};
            const renyi_status st = whole_life(path, &heap, tried[i], &e);
            assert_int_equal(heap.live, 0);
            if (heap.calls < fail_at) {
                assert_int_equal(st, RENYI_OK);
                break;
            }
            assert_int_equal(st, RENYI_ERR_NOMEM);
        }
    unlink(path);
    fix_free(&f);
}

/* ---- faults -------------------------------------------------------------------------------- */

static void refuse(fixture *f, renyi_status code, const char *says)
{
    assert_refused(f, renyi_visual, renyi_visual_open(&it, path, NULL, NULL, err), code, says);
    fix_free(f);
}

static void test_faults(void **state)
{
    (void)state;
    static const struct {
        const char *config, *says;
        renyi_status code;
    } configs[] = {
        {CONFIG(", \"vision_feature_layer\": -3"), "features of layer -3", RENYI_ERR_FORMAT},
        {CONFIG(", \"vision_feature_layer\": [1, 2]"), "vision_feature_layer", RENYI_ERR_FORMAT},
        {CONFIG(", \"vision_feature_select_strategy\": \"full\""), "'full'", RENYI_ERR_UNSUPPORTED},
        {CONFIG(", \"projector_hidden_act\": \"relu\""), "'relu'", RENYI_ERR_UNSUPPORTED},
        {CONFIG(", \"mm_projector_type\": \"linear\""), "'linear'", RENYI_ERR_UNSUPPORTED},
        {CONFIG(", \"image_aspect_ratio\": \"anyres_max_9\""), "'anyres_max_9'",
         RENYI_ERR_UNSUPPORTED},
    };
    fixture f;
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        make_llava(&f, TRANSFORMERS);
        f.meta[3] = configs[i].config;
        refuse(&f, configs[i].code, configs[i].says);
    }
    make_llava(&f, LLAVA_HF);
    fix_remove(&f, "multi_modal_projector.linear_2.bias");
    refuse(&f, RENYI_ERR_FORMAT, "the projector of a LLaVA");
    make_llava(&f, LLAVA_HF);
    fix_remove(&f, "vision_tower.vision_model.encoder.layers.1.self_attn.k_proj.weight");
    refuse(&f, RENYI_ERR_FORMAT, "layers.1.self_attn.k_proj.weight");
    make_llava(&f, LLAVA_HF);
    fix_remove(&f, "multi_modal_projector.linear_1.weight");
    refuse(&f, RENYI_ERR_UNSUPPORTED, "not a LLaVA");
    make_llava(&f, LLAVA_APART);
    refuse(&f, RENYI_ERR_UNSUPPORTED, "mm_vision_tower");
}

/* PruMerge needs a block after the one that the features come from. */
static void test_last_layer(void **state)
{
    (void)state;
    fixture f;
    renyi_visual_session *s = NULL;
    renyi_error e = {0};
    answer a;
    make_llava(&f, TRANSFORMERS);
    f.meta[3] = CONFIG(", \"vision_feature_layer\": -1");
    renyi_visual *v = open_visual(&f, NULL, NULL);
    const renyi_visual_session_options opt = {.struct_size = sizeof opt,
                                              .policy = "prumerge tokens=4"};
    assert_int_equal(renyi_visual_session_new(&s, v, &opt, &e), RENYI_ERR_ARG);
    assert_says(&e, "use vispruner");
    run_visual(&a, v, "vispruner tokens=4", 1);
    assert_int_equal(a.n, 4);
    renyi_visual_free(v);
    fix_free(&f);
}

static void test_bad_input(void **state)
{
    (void)state;
    renyi_visual *v = open_kind(TRANSFORMERS);
    renyi_visual_session *s = NULL;
    renyi_visual_tokens t;
    renyi_error e = {0};
    static const char *const rules[] = {"prumerge", "vispruner",     "visionzip", "divprune",
                                        "hiprune",  "mosaic-behind", "random",    "uniform",
                                        "pool",     "downsample"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s tokens=17", rules[i]);
        const renyi_visual_session_options many = {.struct_size = sizeof many, .policy = text};
        assert_int_equal(renyi_visual_session_new(&s, v, &many, &e), RENYI_ERR_ARG);
        assert_says(&e, "tokens=17: an image has 16 patches");
    }
    const renyi_visual_session_options deep = {.struct_size = sizeof deep,
                                               .policy = "hiprune tokens=5 block=1"};
    assert_int_equal(renyi_visual_session_new(&s, v, &deep, &e), RENYI_ERR_ARG);
    assert_says(&e, "block=1: the tower runs blocks 0 to 0");
    assert_ok(renyi_visual_session_new(&s, v, NULL, err));
    assert_int_equal(renyi_visual_run_file(s, "absent.jpg", &t, &e), RENYI_ERR_IO);
    assert_says(&e, "absent.jpg");
    assert_int_equal(renyi_visual_run_bytes(s, "GIF", 3, &t, &e), RENYI_ERR_FORMAT);
    assert_int_equal(renyi_visual_run(s, NULL, &t, &e), RENYI_ERR_ARG);
    static const uint8_t strip[3 * 50] = {9};
    const renyi_image image = {strip, 50, 1, 0};
    assert_ok(renyi_visual_run(s, &image, &t, err));
    assert_int_equal(t.n, PATCHES);
    renyi_visual_session_free(s);
    renyi_visual_free(v);
    renyi_visual_free(NULL);
    renyi_visual_session_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),          cmocka_unit_test(test_tower_apart),
        cmocka_unit_test(test_tower_named),      cmocka_unit_test(test_in_tower),
        cmocka_unit_test(test_all_kept),         cmocka_unit_test(test_subset),
        cmocka_unit_test(test_random),           cmocka_unit_test(test_downsample),
        cmocka_unit_test(test_vispruner_scores), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_memory),           cmocka_unit_test(test_faults),
        cmocka_unit_test(test_last_layer),       cmocka_unit_test(test_bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
