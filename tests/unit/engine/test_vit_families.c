/* test_vit_families.c - DINOv2, DINOv3, DeiT-III, SigLIP, OpenCLIP and other ViTs as timm,
 * transformers, open_clip and Meta save them, against what these libraries compute
 * (tests/vit_families, written by tools/ref/vit_families.py and tools/ref/image_towers.py):
 * features and logits at three input sizes within 1e-5 of the largest value, scores of every block
 * within 1e-4, the same tokens kept, by any number of threads and images; directions in bf16 and
 * int8. RENYI_VIT_FAMILIES names another folder with such files, for a model in its real shape.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/rng.h"
#include "engine/viz/scores.h"
#include "fixtures/vit_fixture.h"
#include "formats/checkpoint.h"
#include "formats/safetensors.h"

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>

static renyi_error fault, *const err = &fault;

static const char *folder(void)
{
    const char *other = getenv("RENYI_VIT_FAMILIES");
    return other ? other : RENYI_SOURCE_DIR "/tests/vit_families";
}

/* One model and what is expected of it. */
typedef struct family {
    char path[512]; /* of the model */
    const char *name;
    ry_tensors *expected;
    uint64_t seed;
} family;

static void open_family(family *f, const char *name)
{
    char path[512];
    struct stat st;
    f->name = name;
    snprintf(path, sizeof path, "%s/%s/expected.safetensors", folder(), name);
    assert_ok(ry_safetensors_open(&f->expected, path, NULL, NULL, err));
    f->seed = strtoul(ry_tensors_meta(f->expected, "seed"), NULL, 10);
    snprintf(f->path, sizeof f->path, "%s/%s/dinov2.pth", folder(), name); /* Meta's */
    if (stat(f->path, &st)) snprintf(f->path, sizeof f->path, "%s/%s", folder(), name);
}

static renyi_model *open_model(const family *f, uint32_t side, renyi_cpu level, renyi_dtype dtype)
{
    const renyi_options opt = {
        .struct_size = sizeof opt, .image_size = side, .cpu = level, .dtype = dtype};
    renyi_model *m = NULL;
    assert_ok(renyi_model_open(&m, f->path, &opt, err));
    return m;
}

/* pixels() of tools/ref/common.py: [3, side, side] */
static float *make_pixels(uint64_t seed, uint32_t side)
{
    const size_t n = 3 * (size_t)side * side;
    float *out = malloc(n * sizeof *out);
    ry_rng r = ry_rng_new(seed);
    for (size_t i = 0; i < n; i++) out[i] = (float)(4.0 * ry_rng_uniform(&r) - 2.0);
    return out;
}

static const float *expected(const family *f, const char *what, size_t *n)
{
    const ry_tensor *t = ry_tensors_find(f->expected, what);
    if (!t) return NULL;
    *n = (size_t)ry_tensor_elements(t);
    return t->data;
}

/* Largest difference, relative to the largest value. */
static double error_of(const float *got, const float *want, size_t n)
{
    double worst = 0.0, top = 0.0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(got[i])) return INFINITY;
        worst = fmax(worst, fabs((double)got[i] - (double)want[i]));
        top = fmax(top, fabs((double)want[i]));
    }
    return worst / top;
}

static uint32_t usual_side(const family *f)
{
    return ry_tensors_find(f->expected, "224.patches") ? 224 : 24;
}

/* ---- features and logits -------------------------------------------------------------------- */

static const struct feature {
    const char *name;
    renyi_output output;
} features[] = {{"logits", RENYI_OUTPUT_AUTO},
                {"embedding", RENYI_OUTPUT_EMBEDDING},
                {"class", RENYI_OUTPUT_CLASS},
                {"mean", RENYI_OUTPUT_MEAN},
                {"patches", RENYI_OUTPUT_PATCHES}};

static double check_output(const family *f, const renyi_model *m, uint32_t side, const float *chw,
                           const struct feature *what)
{
    const renyi_session_options so = {.struct_size = sizeof so, .output = what->output};
    renyi_session *s = NULL;
    char name[64];
    size_t n = 0;
    snprintf(name, sizeof name, "%u.%s", side, what->name);
    const float *want = expected(f, name, &n);
    const renyi_status st = renyi_session_new(&s, m, &so, err);
    if (!want) { /* there is no classifier, no class token, or the file has no such numbers */
        renyi_model_info info;
        renyi_model_get_info(m, &info);
        if (what->output == RENYI_OUTPUT_CLASS && info.n_prefix == info.n_registers)
            assert_int_equal(st, RENYI_ERR_ARG);
        renyi_session_free(s);
        return 0.0;
    }
    if (st) fail_msg("%s, %s: %s", f->name, name, err->message);
    assert_int_equal(renyi_session_outputs(s), n);
    float *got = malloc(n * sizeof *got);
    assert_ok(renyi_run_tensor(s, chw, 1, got, err));
    const double error = error_of(got, want, n);
    if (!(error <= 1e-5)) fail_msg("%s, %s: error %.2e", f->name, name, error);
    free(got);
    renyi_session_free(s);
    return error;
}

static void check_features(const family *f, renyi_cpu level)
{
    static const uint32_t sides[] = {24, 32, 16, 224, 518, 322};
    double worst = 0.0;
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        char name[64];
        size_t n;
        snprintf(name, sizeof name, "%u.patches", sides[i]);
        if (!expected(f, name, &n)) {
            snprintf(name, sizeof name, "%u.embedding", sides[i]);
            if (!expected(f, name, &n)) continue;
        }
        renyi_model *m = open_model(f, sides[i], level, 0);
        float *chw = make_pixels(f->seed, sides[i]);
        for (size_t k = 0; k < sizeof features / sizeof *features; k++)
            worst = fmax(worst, check_output(f, m, sides[i], chw, &features[k]));
        free(chw);
        renyi_model_free(m);
    }
    printf("%-24s %d: features within %.1e\n", f->name, (int)level, worst);
    assert_true(worst > 0.0);
}

/* ---- other number formats ------------------------------------------------------------------- */

/* The embedding of a model: [n], to be freed. */
static float *embedding_of(const family *f, const float *chw, uint32_t side, renyi_dtype dtype,
                           size_t *n)
{
    const renyi_session_options so = {.struct_size = sizeof so, .output = RENYI_OUTPUT_EMBEDDING};
    renyi_model *m = open_model(f, side, 0, dtype);
    renyi_session *s = NULL;
    assert_ok(renyi_session_new(&s, m, &so, err));
    *n = renyi_session_outputs(s);
    float *out = malloc(*n * sizeof *out);
    assert_ok(renyi_run_tensor(s, chw, 1, out, err));
    renyi_session_free(s);
    renyi_model_free(m);
    return out;
}

static double cosine_of(const float *a, const float *b, size_t n)
{
    double dot = 0.0, aa = 0.0, bb = 0.0;
    for (size_t i = 0; i < n; i++) {
        dot += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return dot / sqrt(aa * bb);
}

/* Rounded weights change an embedding, but hardly its direction. */
static void check_rounded(const family *f, const float *chw, uint32_t side)
{
    static const renyi_dtype dtypes[] = {RENYI_DTYPE_BF16, RENYI_DTYPE_INT8};
    static const double least[] = {0.999, 0.99};
    size_t n = 0;
    float *want = embedding_of(f, chw, side, RENYI_DTYPE_F32, &n);
    for (size_t i = 0; i < 2; i++) {
        if (renyi_dtype_check(dtypes[i], renyi_cpu_detect(), NULL)) continue;
        float *got = embedding_of(f, chw, side, dtypes[i], &n);
        const double cosine = cosine_of(got, want, n);
        printf("%-24s %s: cosine %.6f\n", f->name, i ? "int8" : "bf16", cosine);
        if (!(cosine > least[i]) || error_of(got, want, n) < 1e-6)
            fail_msg("%s, format %zu: cosine %f", f->name, i, cosine);
        free(got);
    }
    free(want);
}

/* ---- scores --------------------------------------------------------------------------------- */

static void check_scores(const family *f, const renyi_model *m, const float *chw)
{
    static const char *const metrics[] = {"cls", "col n=2", "col n=4", "col n=2 registers=no",
                                          "pool"};
    renyi_model_info info;
    double worst = 0.0;
    unsigned seen = 0;
    renyi_model_get_info(m, &info);
    for (size_t k = 0; k < sizeof metrics / sizeof *metrics; k++) {
        char name[64];
        size_t n = 0;
        snprintf(name, sizeof name, "block.0.%s", metrics[k]);
        if (!expected(f, name, &n)) continue;
        const ry_scores_options so = {
            .n_metrics = 1, .metrics = &metrics[k], .keep = 0.7, .max_batch = 1, .n_threads = 1};
        ry_scores *s = NULL;
        assert_ok(ry_scores_new(&s, m, &so, err));
        ry_scores_run(s, NULL, chw, 1);
        for (uint32_t b = 0; b < info.n_blocks; b++, seen++) {
            snprintf(name, sizeof name, "block.%u.%s", b, metrics[k]);
            const float *want = expected(f, name, &n);
            assert_int_equal(n, info.n_patches);
            const double error = error_of(ry_scores_get(s, 0, 0, b), want, n);
            if (!(error <= 1e-4)) fail_msg("%s, %s: error %.2e", f->name, name, error);
            worst = fmax(worst, error);
        }
        ry_scores_free(s);
    }
    printf("%-24s %u lists of scores within %.1e\n", f->name, seen, worst);
    assert_true(seen > 0);
}

/* ---- kept tokens ---------------------------------------------------------------------------- */

static const struct rule {
    const char *name, *text;
} rules[] = {
    {"evit_cls", "evit keep=0.7 layers=0,1 metric=cls fuse weights=cls"},
    {"evit_col", "evit keep=0.7 layers=0,1 metric=col n=2 fuse weights=score"},
    {"evit_no", "evit keep=0.7 layers=0,1 metric=col n=2 registers=no fuse weights=score"},
    {"evit_pool", "evit keep=0.7 layers=0,1 metric=pool fuse"},
    {"evit_correct", "evit keep=0.7 layers=0,1 metric=correct n=2 c=0.5 fuse"},
    {"naive_pool", "naive p=5 layers=0,1 metric=pool"},
    {"mosaic", "mosaic keep=0.7 layers=0,1"},
    {"tome", "tome r=4 layers=all"},
};

/* The patch of every row after the cut; -1 for the prefix and fused rows. */
static void check_cut(const family *f, const char *rule, const renyi_cut *cut)
{
    char name[64];
    snprintf(name, sizeof name, "%s.kept.%u", rule, cut->block);
    const ry_tensor *t = ry_tensors_find(f->expected, name);
    assert_non_null(t);
    const int32_t *want = t->data;
    assert_int_equal(t->shape[0], cut->n_out);
    for (uint32_t r = 0; r < cut->n_out; r++) {
        const uint32_t from = cut->source[r];
        const int32_t patch =
            from == RENYI_NONE || cut->position[from] < 0 ? -1 : cut->position[from];
        if (patch != want[r])
            fail_msg("%s, %s, row %u: patch %d, not %d", f->name, name, r, patch, want[r]);
        if (r < cut->n_prefix) assert_int_equal(from, r); /* registers stay where they are */
    }
}

/* The embedding after the cuts, if the file has it. */
static void check_pruned(const family *f, const char *rule, const float *got)
{
    char name[64];
    size_t n = 0;
    snprintf(name, sizeof name, "%s.embedding", rule);
    const float *want = expected(f, name, &n);
    const double error = want ? error_of(got, want, n) : 0.0;
    if (!(error <= 2e-5)) fail_msg("%s, %s: error %.2e", f->name, name, error);
}

/* A batch of three on two threads has the bits of one image on one thread. */
static void check_bits(const renyi_model *m, const char *policy, const float *chw, uint32_t side,
                       const float *want, size_t n)
{
    const size_t each = 3 * (size_t)side * side;
    const renyi_session_options so = {.struct_size = sizeof so,
                                      .policy = policy,
                                      .output = RENYI_OUTPUT_EMBEDDING,
                                      .max_batch = 3,
                                      .n_threads = 2};
    renyi_session *s = NULL;
    float *images = malloc(3 * each * sizeof *images), *out = malloc(3 * n * sizeof *out);
    for (size_t i = 0; i < each; i++) images[i] = -chw[i];
    for (size_t i = 1; i < 3; i++) memcpy(images + i * each, chw, each * sizeof *images);
    assert_ok(renyi_session_new(&s, m, &so, err));
    assert_ok(renyi_run_tensor(s, images, 3, out, err));
    for (size_t i = 1; i < 3; i++) assert_memory_equal(out + i * n, want, n * sizeof *out);
    free(images);
    free(out);
    renyi_session_free(s);
}

static unsigned check_cuts(const family *f, const renyi_model *m, const float *chw)
{
    unsigned seen = 0;
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
        const renyi_session_options so = {.struct_size = sizeof so,
                                          .policy = rules[k].text,
                                          .trace = 1,
                                          .n_threads = 1,
                                          .output = RENYI_OUTPUT_EMBEDDING};
        char name[64];
        renyi_session *s = NULL;
        snprintf(name, sizeof name, "%s.kept.0", rules[k].name);
        if (!ry_tensors_find(f->expected, name)) continue;
        assert_ok(renyi_session_new(&s, m, &so, err));
        float *out = malloc(renyi_session_outputs(s) * sizeof *out);
        assert_ok(renyi_run_tensor(s, chw, 1, out, err));
        check_pruned(f, rules[k].name, out);
        check_bits(m, rules[k].text, chw, usual_side(f), out, renyi_session_outputs(s));
        for (size_t i = 0; i < renyi_session_cut_count(s); i++, seen++) {
            renyi_cut cut;
            assert_ok(renyi_session_cut(s, 0, i, &cut, err));
            check_cut(f, rules[k].name, &cut);
        }
        free(out);
        renyi_session_free(s);
    }
    return seen;
}

/* Every other rule runs and keeps the registers; class attention without a class token is refused
 * and col is named. */
static void check_other_rules(const family *f, const renyi_model *m, const float *chw)
{
    static const char *const more[] = {"naive p=3 layers=0,1", "ats keep=0.7 layers=1",
                                       "evit keep=0.5 layers=1 metric=col class_row=no drop"};
    renyi_model_info info;
    renyi_model_get_info(m, &info);
    const int has_class = info.n_prefix > info.n_registers;
    for (size_t k = 0; k < 3; k++) {
        const renyi_session_options so = {.struct_size = sizeof so, .policy = more[k], .trace = 1};
        renyi_session *s = NULL;
        if (k == 1 && !has_class) continue;
        if (renyi_session_new(&s, m, &so, err)) fail_msg("%s: %s", f->name, err->message);
        float *out = malloc(renyi_session_outputs(s) * sizeof *out);
        assert_ok(renyi_run_tensor(s, chw, 1, out, err));
        for (uint32_t j = 0; j < renyi_session_outputs(s); j++) assert_true(isfinite(out[j]));
        for (size_t i = 0; i < renyi_session_cut_count(s); i++) {
            renyi_cut cut;
            assert_ok(renyi_session_cut(s, 0, i, &cut, err));
            assert_int_equal(cut.n_prefix, info.n_prefix);
            for (uint32_t r = 0; r < cut.n_prefix; r++) assert_int_equal(cut.source[r], r);
        }
        free(out);
        renyi_session_free(s);
    }
    if (has_class) return;
    const renyi_session_options so = {.struct_size = sizeof so,
                                      .policy = "evit metric=cls layers=1"};
    renyi_session *s = NULL;
    assert_int_equal(renyi_session_new(&s, m, &so, err), RENYI_ERR_ARG);
    assert_non_null(strstr(err->message, "metric=col"));
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void each_family(void (*check)(const family *f))
{
    DIR *d = opendir(folder());
    assert_non_null(d);
    unsigned count = 0;
    for (struct dirent *e; (e = readdir(d));) {
        family f;
        if (e->d_name[0] == '.') continue;
        open_family(&f, e->d_name);
        check(&f);
        ry_tensors_free(f.expected);
        count++;
    }
    closedir(d);
    assert_true(count > 0);
}

static void features_of(const family *f)
{
    for (renyi_cpu level = RENYI_CPU_SCALAR; level <= renyi_cpu_detect(); level++)
        check_features(f, level);
}

static void scores_of(const family *f)
{
    const uint32_t side = usual_side(f);
    renyi_model *m = open_model(f, side, 0, 0);
    float *chw = make_pixels(f->seed, side);
    check_scores(f, m, chw);
    if (side == 24) assert_true(check_cuts(f, m, chw) > 0);
    check_other_rules(f, m, chw);
    check_rounded(f, chw, side);
    free(chw);
    renyi_model_free(m);
}

static void test_features(void **state)
{
    (void)state;
    each_family(features_of);
}

static void test_scores_and_cuts(void **state)
{
    (void)state;
    each_family(scores_of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_scores_and_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
