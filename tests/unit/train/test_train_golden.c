/* test_train_golden.c - logits, losses and gradients of tiny models against PyTorch's autograd in
 * float64 (tools/ref/train_tiny.py), for every kind of cut.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixtures/train_golden.h"
#include "train/run/loss.h"

enum { IMAGES = 4, CLASSES = 5, PIXELS = 3 * 20 * 20, PATCHES = 25, FEATURE_DIM = 6, BRANCHES = 6 };
static const double ALPHA = 0.3, TEMPERATURE = 3.0, FEATURE_WEIGHT = 2.0; /* train_tiny.py's */

/* How the net is run; results may not depend on it. */
typedef struct way {
    uint32_t micro_batch;
    unsigned n_threads;
    int checkpoint_activations;
} way;

typedef struct golden {
    ry_tensors *set;
    ry_net *net;
    const char *distil; /* "none", "soft", "hard" */
    float *logits, *logits_dist, *target, *teacher, *branch, *features;
    float images[IMAGES * PIXELS], teacher_tokens[IMAGES * PATCHES * FEATURE_DIM];
    double loss; /* sum over the images */
} golden;

/* ---- one case ------------------------------------------------------------------------------ */

/* The projection of features is not in the model file. */
static void fill_feature_parameters(ry_net *net)
{
    ry_params *p = ry_net_params(net);
    const ry_param *w = ry_params_find(p, (ry_tensor_role)RY_FEATURE_W, 0);
    const ry_param *b = ry_params_find(p, (ry_tensor_role)RY_FEATURE_B, 0);
    assert_non_null(w);
    assert_non_null(b);
    golden_noise(p->value + w->offset, w->size, 77);
    golden_noise(p->value + b->offset, b->size, 78);
}

static void golden_open(golden *g, const char *name, const way *w)
{
    char file[64];
    snprintf(file, sizeof file, "case_%s", name);
    memset(g, 0, sizeof *g);
    assert_ok(ry_safetensors_open(&g->set, golden_path(file), NULL, NULL, err));
    g->logits = golden_floats(g->set, "logits");
    g->logits_dist = golden_floats(g->set, "logits_dist");
    g->target = golden_floats(g->set, "target");
    g->teacher = golden_floats(g->set, "teacher");
    g->branch = golden_floats(g->set, "branch");
    g->features = golden_floats(g->set, "features");
    g->distil = ry_tensors_meta(g->set, "distil");
    golden_noise(g->images, IMAGES * PIXELS,
                 strtoull(ry_tensors_meta(g->set, "pictures"), NULL, 10));
    golden_noise(g->teacher_tokens, IMAGES * PATCHES * FEATURE_DIM, 79);

    const ry_net_options opt = {.micro_batch = w->micro_batch,
                                .n_threads = w->n_threads,
                                .checkpoint_activations = w->checkpoint_activations,
                                .feature_dim = g->features ? FEATURE_DIM : 0};
    g->net = golden_net(ry_tensors_meta(g->set, "model"), &opt);
    if (g->features) fill_feature_parameters(g->net);
    assert_ok(ry_net_update(g->net, err));
    golden_prune(g->net, ry_tensors_meta(g->set, "policy"));
}

static void golden_close(golden *g)
{
    ry_net_free(g->net);
    ry_tensors_free(g->set);
    free(g->logits), free(g->logits_dist), free(g->target);
    free(g->teacher), free(g->branch), free(g->features);
}

static void assert_near(const float *got, const float *want, size_t n, double tolerance,
                        const char *what)
{
    double largest = 0.0, worst = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double off = fabs((double)got[i] - (double)want[i]);
        largest = fmax(largest, fabs((double)want[i]));
        worst = off > worst || off != off ? off : worst;
    }
    if (!(worst <= tolerance * largest))
        fail_msg("%s: off by %.2e of the largest, %g", what, worst / largest, largest);
}

/* Loss of the rows of features that are patches, and its gradient. */
static float *feature_loss(golden *g, uint32_t first, uint32_t n)
{
    ry_net_features_view view;
    ry_net_features(g->net, &view);
    const size_t each = (size_t)view.n_rows * FEATURE_DIM;
    const int32_t *patch = ry_tensors_find(g->set, "patch")->data;
    for (size_t i = 0; i < (size_t)n * view.n_rows; i++) /* -1 is RY_NO_TOKEN */
        assert_int_equal(view.patch[i], (uint32_t)patch[first * view.n_rows + i]);
    /* A fused row of tokens that the class token hardly looks at is short, and LayerNorm makes it
     * and its rounding long again. */
    assert_near(view.rows, g->features + first * each, n * each, 5e-5, "features");

    float *d = malloc(n * each * sizeof *d);
    const ry_feature_spec spec = {.distance = RY_FEATURE_SMOOTH_L1};
    const ry_feature_batch batch = {.n = n,
                                    .n_rows = view.n_rows,
                                    .n_patches = PATCHES,
                                    .dim = FEATURE_DIM,
                                    .rows = view.rows,
                                    .patch = view.patch,
                                    .teacher = g->teacher_tokens + first * PATCHES * FEATURE_DIM};
    g->loss += FEATURE_WEIGHT * ry_loss_features(&spec, &batch, FEATURE_WEIGHT / IMAGES, d);
    return d;
}

/* Images first .. first+n-1 forward and back. */
static void run_part(golden *g, uint32_t first, uint32_t n)
{
    float logits[IMAGES * CLASSES], dist[IMAGES * CLASSES], d[IMAGES * CLASSES];
    float d_dist[IMAGES * CLASSES], branch[BRANCHES * IMAGES];
    const size_t at = (size_t)first * CLASSES;
    const size_t branches = 2 * (size_t)ry_net_config(g->net)->n_blocks; /* at most BRANCHES */
    for (size_t r = 0; r < branches && g->branch; r++)
        memcpy(branch + r * n, g->branch + r * IMAGES + first, n * sizeof *branch);

    const ry_net_batch batch = {
        .chw = g->images + first * PIXELS, .n = n, .branch = g->branch ? branch : NULL};
    assert_ok(ry_net_forward(g->net, &batch, logits, g->logits_dist ? dist : NULL, err));
    assert_near(logits, g->logits + at, n * CLASSES, 1e-5, "logits");
    if (g->logits_dist) assert_near(dist, g->logits_dist + at, n * CLASSES, 1e-5, "logits_dist");

    const ry_loss_spec spec = {.distil = strcmp(g->distil, "soft") == 0   ? RY_DISTIL_SOFT
                                         : strcmp(g->distil, "hard") == 0 ? RY_DISTIL_HARD
                                                                          : RY_DISTIL_NONE,
                               .alpha = ALPHA,
                               .temperature = TEMPERATURE};
    const ry_loss_batch answers = {.n = n,
                                   .n_classes = CLASSES,
                                   .logits = logits,
                                   .logits_dist = g->logits_dist ? dist : NULL,
                                   .target = g->target + at,
                                   .teacher = g->teacher ? g->teacher + at : NULL};
    g->loss += ry_loss(&spec, &answers, 1.0 / IMAGES, d, g->logits_dist ? d_dist : NULL).total;
    float *d_features = g->features ? feature_loss(g, first, n) : NULL;
    assert_ok(ry_net_backward(g->net, d, g->logits_dist ? d_dist : NULL, d_features, err));
    free(d_features);
}

/* ---- gradients ----------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const ry_param *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* The file has the gradients in one list, parameters by name, each in units of its own. */
static void check_gradients(const golden *g, const char *name)
{
    const ry_params *p = ry_net_params(g->net);
    const ry_tensor *grad = ry_tensors_find(g->set, "grad"),
                    *unit = ry_tensors_find(g->set, "step");
    const int16_t *steps = grad->data;
    const float *units = unit->data;
    const ry_param **list = malloc(p->n * sizeof *list);
    size_t at = 0;
    for (uint32_t i = 0; i < p->n; i++) list[i] = &p->list[i];
    qsort(list, p->n, sizeof *list, by_name);
    assert_int_equal(p->n, unit->shape[0]);
    for (uint32_t i = 0; i < p->n; i++) {
        char what[256];
        float *want = malloc(list[i]->size * sizeof *want);
        assert_true(at + list[i]->size <= grad->shape[0]);
        for (size_t k = 0; k < list[i]->size; k++) want[k] = (float)steps[at + k] * units[i];
        snprintf(what, sizeof what, "%s: gradient of %s", name, list[i]->name);
        assert_near(p->grad + list[i]->offset, want, list[i]->size, 1e-4, what);
        at += list[i]->size;
        free(want);
    }
    assert_int_equal(at, grad->shape[0]);
    free(list);
}

static void check_case(const char *name, const way *w)
{
    static golden g;
    golden_open(&g, name, w);
    ry_net_zero_grad(g.net);
    for (uint32_t first = 0; first < IMAGES; first += w->micro_batch)
        run_part(&g, first, w->micro_batch);
    float *loss = golden_floats(g.set, "loss");
    if (fabs(g.loss / IMAGES - (double)loss[0]) > 1e-5)
        fail_msg("%s: loss %.7f; PyTorch: %.7f", name, g.loss / IMAGES, (double)loss[0]);
    free(loss);
    check_gradients(&g, name);
    golden_close(&g);
}

static void test_case(void **state)
{
    const char *name = *state;
    check_case(name, &(way){.micro_batch = IMAGES, .n_threads = 1});
    check_case(name, &(way){.micro_batch = 2, .n_threads = 2, .checkpoint_activations = 1});
}

#define CASE(word)                                              \
    {                                                           \
#word, test_case, NULL, NULL, (void *)(uintptr_t) #word \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(dense),
        CASE(evit_cls),
        CASE(evit_score),
        CASE(evit_rows),
        CASE(evit_correct),
        CASE(evit_merge),
        CASE(naive),
        CASE(naive_end),
        CASE(mosaic),
        CASE(mosaic_powers),
        CASE(mosaic_columns),
        CASE(tome),
        CASE(features),
        CASE(two_heads),
        CASE(two_heads_labels),
        CASE(mean),
        CASE(mean_powers),
        CASE(mean_memory),
        CASE(mean_fuse),
        CASE(registers),
        CASE(registers_evit),
        CASE(registers_no),
        CASE(registers_mosaic),
        CASE(registers_mean),
        CASE(registers_end),
        CASE(pre_norm),
        CASE(pre_norm_evit),
        CASE(pre_norm_mosaic),
        CASE(class_mean),
        CASE(class_mean_evit),
        CASE(class_mean_mosaic),
        CASE(class_mean_gated),
        CASE(gated),
        CASE(gated_evit),
        CASE(gated_mosaic),
        CASE(attn_pool),
        CASE(attn_pool_evit),
        CASE(attn_pool_mosaic),
        CASE(attn_pool_tome),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
