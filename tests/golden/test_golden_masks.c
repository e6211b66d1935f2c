/* test_golden_masks.c - compares how well metrics rank the patches of the animal in four images of
 * cats with an independent computation: timm's attention in float64, patches by NumPy, the area by
 * comparing all pairs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/shared_files.h"
#include "renyi/eval.h"

#include <math.h>
#include <string.h>

#include "test.h"

enum { IMAGES = 4, METRICS = 9, BLOCKS = 3 };
#ifdef RENYI_SANITIZED
enum { MODELS = 1, TAKEN = 2 }; /* with sanitizers everything is ten times slower */
#else
enum { MODELS = 2, TAKEN = METRICS };
#endif
static const char *const metrics[METRICS] = {"cls",      "col n=1",   "col n=2",
                                             "col n=3",  "col n=4",   "col n=inf",
                                             "colv n=4", "renyi n=2", "shannon"};
static const uint32_t blocks[BLOCKS] = {0, 6, 11};

typedef struct expected {
    double auc, kept_object, kept_background; /* means over the four images */
} expected;

typedef struct golden {
    const char *model;
    expected at[METRICS][BLOCKS];
} golden;

static const golden goldens[] = {
    {"vit_tiny_patch16_224.augreg_in21k_ft_in1k",
     {{{0.388609, 0.720464, 0.768773},
       {0.820919, 0.980769, 0.557534},
       {0.607203, 0.838170, 0.639375}},
      {{0.349380, 0.664433, 0.780552},
       {0.739093, 0.911286, 0.623476},
       {0.694918, 0.871853, 0.615666}},
      {{0.357520, 0.567842, 0.749607},
       {0.656989, 0.875612, 0.662030},
       {0.695412, 0.877127, 0.615234}},
      {{0.412600, 0.609848, 0.724559},
       {0.617081, 0.855157, 0.677931},
       {0.695030, 0.884266, 0.619884}},
      {{0.426918, 0.628283, 0.718823},
       {0.595771, 0.850612, 0.673628},
       {0.691852, 0.890142, 0.619857}},
      {{0.434985, 0.623737, 0.721274},
       {0.553595, 0.820085, 0.683096},
       {0.686944, 0.871426, 0.622666}},
      {{0.520575, 0.714744, 0.661919},
       {0.592588, 0.839122, 0.677346},
       {0.698682, 0.903497, 0.612255}},
      {{0.595213, 0.795659, 0.615767},
       {0.262472, 0.566191, 0.850535},
       {0.505410, 0.702933, 0.713379}},
      {{0.536426, 0.724563, 0.644378},
       {0.264057, 0.597815, 0.844284},
       {0.528405, 0.683362, 0.714227}}}},
    {"deit_tiny_patch16_224.fb_in1k",
     {{{0.432405, 0.722018, 0.778759},
       {0.692936, 0.852389, 0.585852},
       {0.684840, 0.912743, 0.619541}},
      {{0.317446, 0.602370, 0.806532},
       {0.727819, 0.886713, 0.596129},
       {0.799532, 0.960917, 0.590217}},
      {{0.373246, 0.533460, 0.742550},
       {0.663914, 0.893531, 0.616610},
       {0.797197, 0.960917, 0.587766}},
      {{0.411344, 0.550476, 0.728531},
       {0.629222, 0.863986, 0.631078},
       {0.794076, 0.960917, 0.585315}},
      {{0.434818, 0.568629, 0.723561},
       {0.613188, 0.834722, 0.634976},
       {0.789913, 0.953972, 0.587167}},
      {{0.470380, 0.617745, 0.691090},
       {0.578629, 0.792424, 0.640294},
       {0.769408, 0.947562, 0.589032}},
      {{0.455207, 0.605118, 0.705449},
       {0.607458, 0.825350, 0.636591},
       {0.792100, 0.960917, 0.583282}},
      {{0.507676, 0.676428, 0.673216},
       {0.314735, 0.589763, 0.805449},
       {0.219511, 0.428749, 0.816217}},
      {{0.504801, 0.661334, 0.679757},
       {0.319545, 0.640016, 0.798933},
       {0.221669, 0.431750, 0.819672}}}},
};

/* Scores agree to about 1e-5, so two patches may swap their ranks. */
#define AREA 3e-4

static void check_model(const golden *g)
{
    const renyi_dataset_options choice = {
        .struct_size = sizeof choice, .unlabelled = 1, .limit = IMAGES};
    char rel[128];
    snprintf(rel, sizeof rel, "models/%s", g->model);
    const char *path = shared_path(rel);
    const char *images = shared_path("data/pets-trimaps/images/Abyssinian");
    const char *masks = shared_path("data/pets-trimaps/masks/Abyssinian");
    if (!path || !images || !masks) return;
    const renyi_masks_options o = {.struct_size = sizeof o,
                                   .folder = masks,
                                   .metrics = metrics,
                                   .n_metrics = TAKEN,
                                   .batch = IMAGES};
    renyi_error err = {0};
    renyi_dataset *data;
    renyi_model *model;
    renyi_masks *s;
    renyi_masks_info info;
    double worst = 0.0;
    if (renyi_model_open(&model, path, NULL, &err) ||
        renyi_dataset_open(&data, images, model, &choice, &err) ||
        renyi_masks_new(&s, model, data, &o, &err) || renyi_masks_run(s, &err))
        fail_msg("%s", err.message);
    renyi_masks_get_info(s, &info);
    assert_int_equal(info.images, IMAGES);
    assert_int_equal(info.n_trimap, IMAGES);
    assert_true(info.object == 43.5 && info.background == 123.5 && info.left_out == 29.0);
    for (uint32_t m = 0; m < TAKEN; m++)
        for (size_t b = 0; b < BLOCKS; b++) {
            renyi_masks_ranking r;
            renyi_masks_get_ranking(s, m, blocks[b], &r);
            const expected *want = &g->at[m][b];
            assert_true(isfinite(r.auc.mean));
            worst = fmax(worst, fabs(r.auc.mean - want->auc));
            /* One patch of one image of four may change places with another. */
            assert_true(fabs(r.kept_object.mean - want->kept_object) < 1.01 / 36 / IMAGES);
            assert_true(fabs(r.kept_background.mean - want->kept_background) < 1.01 / 102 / IMAGES);
        }
    printf("%s: areas within %.1e\n", g->model, worst);
    assert_true(worst < AREA);
    renyi_masks_free(s);
    renyi_dataset_free(data);
    renyi_model_free(model);
}

static void test_areas(void **state)
{
    (void)state;
    for (size_t i = 0; i < MODELS; i++) check_model(&goldens[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_areas)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : *shared_missing() ? SHARED_SKIPPED : 0;
}
