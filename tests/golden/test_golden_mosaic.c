/* test_golden_mosaic.c - tests mosaic on real weights and images against the reference: scores,
 * choice, groups, sizes, and logits with the reference's choice; also the same bits for any batch
 * and thread count.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/golden_prune.h"
#include "prune/rules/select.h"

#ifdef RENYI_SANITIZED
enum { IMAGES = 2, FIRST_LEVEL = RENYI_CPU_AVX2 };
#else
enum { IMAGES = GOLDEN_IMAGES, FIRST_LEVEL = RENYI_CPU_SCALAR };
#endif

static const double margin = 1e-5; /* of the largest score, or of a cosine */

typedef struct setting {
    const char *name, *policy;
    int last; /* block of the last cut */
} setting;

static const setting settings[] = {{"mosaic-0.7-036", "mosaic keep=0.7 layers=0,3,6", 6},
                                   {"mosaic-0.7-369", "mosaic keep=0.7 layers=3,6,9", 9},
                                   {"mosaic-0.4-036", "mosaic keep=0.4 layers=0,3,6", 6},
                                   {"mosaic-p16-early", "mosaic p=16 layers=0-5", 5}};

/* Results of one image. Each image has its own, because several threads compare images. */
typedef struct finding {
    double score_error;     /* largest, relative to the largest score of the cut */
    uint32_t choices;       /* kept tokens of all cuts */
    uint32_t swapped;       /* of these, tokens in another row than in the reference */
    uint32_t groups, moved; /* tokens that joined another; those that joined a different one */
    double swap_margin, move_margin; /* largest margin of the reference where we differ */
    uint32_t ties;                   /* scores of patches whose importance equals another's */
    int sizes_differ;
} finding;

typedef struct judge {
    const golden *g;
    const setting *s;
    finding found[IMAGES];
} judge;

/* Cosine of two tokens after subtracting the mean over patches, in doubles. */
static double cosine(const ry_block_view *v, uint32_t a, uint32_t b)
{
    double ab = 0.0, aa = 0.0, bb = 0.0;
    for (uint32_t c = 0; c < v->dim; c++) {
        double mean = 0.0;
        for (uint32_t j = v->n_prefix; j < v->n_tokens; j++) mean += (double)v->x[j * v->dim + c];
        mean /= v->n_tokens - v->n_prefix;
        const double x = (double)v->x[a * v->dim + c] - mean,
                     y = (double)v->x[b * v->dim + c] - mean;
        ab += x * y;
        aa += x * x;
        bb += y * y;
    }
    return ab / sqrt(aa * bb);
}

static void note_swap(finding *f, const float *score, uint32_t ours, uint32_t theirs, double top)
{
    f->swapped++;
    f->swap_margin = fmax(f->swap_margin, fabs((double)score[ours] - (double)score[theirs]) / top);
}

/* The score of patch j if patches as important as j (to rounding) are ordered the other way: a
 * score depends on the most similar of all more important patches. */
static double score_other_side(const ry_block_view *v, uint32_t j, double rounding)
{
    const float *a = v->class_row;
    double most = -2.0;
    for (uint32_t k = v->n_prefix; k < v->n_tokens; k++) {
        const int is_tie = fabs((double)a[k] - (double)a[j]) <= rounding;
        const int is_above = a[k] > a[j] || (a[k] == a[j] && k < j);
        if (k != j && is_above != is_tie) most = fmax(most, cosine(v, j, k));
    }
    return sqrt((double)a[j]) * fmax(1.0 - most, 1e-6);
}

/* resolved [P]: our scores, but the reference's where ours differ only because two equally
 * important patches are ordered differently. */
static void resolve_ties(finding *f, const ry_block_view *v, const ry_cut *cut, const float *score,
                         double top, float *resolved)
{
    double rounding = 0.0; /* of the importance */
    for (uint32_t j = v->n_prefix; j < v->n_tokens; j++)
        rounding = fmax(rounding, 1e-6 * (double)v->class_row[j]);
    for (uint32_t j = v->n_prefix; j < v->n_tokens; j++) {
        const double want = (double)score[j - v->n_prefix];
        resolved[j - v->n_prefix] = cut->score[j];
        if (fabs((double)cut->score[j] - want) <= margin * top) continue;
        if (fabs(score_other_side(v, j, rounding) - want) > margin * top) continue;
        resolved[j - v->n_prefix] = score[j - v->n_prefix];
        f->ties++;
    }
}

/* A choice in the order of scores, row by row: if the two tokens differ, their reference scores
 * must be equal up to the margin. Our choice must be the rank of our own scores. */
static void compare_places(finding *f, const ry_block_view *v, const ry_cut *cut,
                           const float *resolved, const float *score, const int32_t *kept,
                           double top)
{
    uint32_t order[256];
    uint64_t scratch[512];
    const uint32_t P = v->n_tokens - v->n_prefix, K = cut->n_out - v->n_prefix;

    ry_rank(order, cut->score + v->n_prefix, P, scratch);
    for (uint32_t k = 0; k < K; k++)
        assert_int_equal(cut->source[v->n_prefix + k], v->n_prefix + order[k]);
    ry_rank(order, resolved, P, scratch);
    for (uint32_t k = 0; k < K; k++)
        if (order[k] != (uint32_t)kept[k]) note_swap(f, score, order[k], (uint32_t)kept[k], top);
}

static int stays(const uint32_t *list, uint32_t n, uint32_t token)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == token) return 1;
    return 0;
}

/* A choice in raster order: compares the n-th token that only we keep with the n-th that only the
 * reference keeps. */
static void compare_sets(finding *f, const ry_block_view *v, const ry_cut *cut, const float *score,
                         const int32_t *kept, double top)
{
    const uint32_t K = cut->n_out - v->n_prefix;
    const uint32_t *ours = cut->source + v->n_prefix;
    for (uint32_t k = 0, t = 0; k < K; k++) {
        const uint32_t j = ours[k] - v->n_prefix;
        if (stays((const uint32_t *)kept, K, j)) continue;
        while (stays(ours, K, v->n_prefix + (uint32_t)kept[t])) t++;
        note_swap(f, score, j, (uint32_t)kept[t++], top);
    }
    for (uint32_t k = 1; k < K; k++) assert_true(ours[k] > ours[k - 1]);
}

static void compare_groups(finding *f, const ry_block_view *v, const ry_cut *cut,
                           const int32_t *kept, const int32_t *target)
{
    for (uint32_t j = v->n_prefix; j < v->n_tokens; j++) {
        const uint32_t ours = cut->source[cut->target[j]];
        const uint32_t theirs = v->n_prefix + (uint32_t)kept[target[j - v->n_prefix]];
        if (theirs == j || ours == j) continue; /* kept: compared above */
        f->groups++;
        if (ours == theirs) continue;
        f->moved++;
        f->move_margin = fmax(f->move_margin, fabs(cosine(v, j, ours) - cosine(v, j, theirs)));
    }
}

/* Replaces our choice by the reference's. target NULL: what is not kept is dropped. */
static void use_reference(const ry_block_view *v, ry_cut *cut, const int32_t *kept,
                          const int32_t *target)
{
    const uint32_t prefix = v->n_prefix, K = cut->n_out - prefix;
    float size[256] = {0};
    for (uint32_t j = prefix; j < v->n_tokens; j++) {
        cut->target[j] = target ? prefix + (uint32_t)target[j - prefix] : RY_NO_TOKEN;
        cut->weight[j] = target && v->sizes ? v->sizes[j] : target ? 1.0f : 0.0f;
        if (target) size[target[j - prefix]] += cut->weight[j];
    }
    for (uint32_t k = 0; k < K; k++) {
        const uint32_t token = prefix + (uint32_t)kept[k];
        cut->source[prefix + k] = token;
        cut->target[token] = prefix + k;
        if (!target) cut->weight[token] = size[k] = 1.0f;
    }
    for (uint32_t j = prefix; j < v->n_tokens; j++)
        if (cut->target[j] != RY_NO_TOKEN) cut->weight[j] /= size[cut->target[j] - prefix];
}

static void judge_cut(void *user, const ry_block_view *v, ry_cut *cut)
{
    judge *u = user;
    finding *f = &u->found[v->image];
    const int block = (int)v->block;
    const uint32_t P = v->n_tokens - v->n_prefix, K = cut->n_out - v->n_prefix;
    const float *score = golden_tap(u->g, u->s->name, "score", block, v->image, P);
    const int32_t *kept = golden_tap(u->g, u->s->name, "kept", block, v->image, K);
    const int32_t *target = golden_find(u->g, u->s->name, "target", block)
                                ? golden_tap(u->g, u->s->name, "target", block, v->image, P)
                                : NULL;
    double top = 0.0;
    for (uint32_t j = 0; j < P; j++) top = fmax(top, (double)score[j]);
    float resolved[256];
    if (target)
        resolve_ties(f, v, cut, score, top, resolved);
    else
        memcpy(resolved, cut->score + v->n_prefix, P * sizeof *resolved);
    f->score_error = fmax(f->score_error, golden_error(resolved, score, P));
    f->choices += K;
    if (target)
        compare_places(f, v, cut, resolved, score, kept, top);
    else
        compare_sets(f, v, cut, score, kept, top);
    if (target) compare_groups(f, v, cut, kept, target);
    use_reference(v, cut, kept, target);
}

static void compare_sizes(void *user, const ry_block_view *v)
{
    judge *u = user;
    const float *want = golden_tap(u->g, u->s->name, "size", -1, v->image, v->n_tokens);
    u->found[v->image].sizes_differ = memcmp(v->sizes, want, v->n_tokens * sizeof *want) != 0;
}

static finding sum_findings(const judge *u)
{
    finding all = {0};
    for (uint32_t i = 0; i < IMAGES; i++) {
        const finding *f = &u->found[i];
        all.score_error = fmax(all.score_error, f->score_error);
        all.choices += f->choices;
        all.swapped += f->swapped;
        all.groups += f->groups;
        all.moved += f->moved;
        all.ties += f->ties;
        all.swap_margin = fmax(all.swap_margin, f->swap_margin);
        all.move_margin = fmax(all.move_margin, f->move_margin);
        all.sizes_differ |= f->sizes_differ;
    }
    return all;
}

static void check_setting(const golden *g, const setting *s)
{
    static float logits[IMAGES * GOLDEN_CLASSES];
    judge u = {.g = g, .s = s};
    ry_pruner *p = golden_pruner(g, s->policy, IMAGES);
    golden_replay r = {ry_pruner_hook(p), judge_cut, compare_sizes, (uint32_t)s->last + 1, &u};
    const ry_token_hook hook = golden_hook(&r);

    golden_run(g, &hook, IMAGES, IMAGES, 2, logits);
    ry_pruner_free(p, NULL);
    const finding f = sum_findings(&u);
    const double e = golden_error(logits, golden_tap(g, s->name, "logits", -1, 0, GOLDEN_CLASSES),
                                  IMAGES * GOLDEN_CLASSES);
    printf("  %-16s logits %.1e scores %.1e; %u of %u rows swapped (margin %.1e), %u of %u moved "
           "(%.1e), %u ties\n",
           s->name, e, f.score_error, f.swapped, f.choices, f.swap_margin, f.moved, f.groups,
           f.move_margin, f.ties);
    assert_true(e < 2e-4);
    assert_true(f.score_error < 1e-5);
    assert_true(f.swap_margin < margin);
    assert_true(f.move_margin < margin);
    assert_true(f.ties <= 4); /* of 12 images and up to 6 cuts: two patches each */
    assert_false(f.sizes_differ);
}

static void test_against_reference(void **state)
{
    (void)state;
    for (size_t m = 0; m < 2; m++)
        for (int level = FIRST_LEVEL; level <= (int)renyi_cpu_detect(); level++) {
            char taps[64];
            golden g;
            snprintf(taps, sizeof taps, "golden/mosaic_%s.safetensors", golden_models[m].name);
            if (!golden_open(&g, &golden_models[m], taps, (renyi_cpu)level)) continue;
            printf("%s %s\n", golden_models[m].name, renyi_cpu_name((renyi_cpu)level));
            for (size_t s = 0; s < sizeof settings / sizeof *settings; s++)
                check_setting(&g, &settings[s]);
            golden_close(&g);
        }
}

static void test_same_bits(void **state)
{
    (void)state;
    static float one[IMAGES * GOLDEN_CLASSES], other[IMAGES * GOLDEN_CLASSES];
    static const uint32_t plans[][2] = {{1, 2}, {8, 1}, {8, 2}, {5, 3}}; /* batch, threads */
    golden g;
    if (!golden_open(&g, &golden_models[0], NULL, RENYI_CPU_AUTO)) return;
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++) {
        ry_pruner *p = golden_pruner(&g, settings[s].policy, 8);
        const ry_token_hook hook = ry_pruner_hook(p);
        golden_run(&g, &hook, IMAGES, 1, 1, one);
        for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
            golden_run(&g, &hook, IMAGES, plans[i][0], plans[i][1], other);
            assert_memory_equal(one, other, sizeof one);
        }
        ry_pruner_free(p, NULL);
    }
    golden_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_reference),
                                       cmocka_unit_test(test_same_bits)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
