/* test_runner.c - steps of a pass: every tile runs once and in order for any number of threads and
 * tickets, and the plans of all models have a ticket for every step.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/cpu.h"
#include "fixtures/llava_fixture.h"
#include "model/clip_text/text_tower_plan.h"
#include "model/llama/llama_plan.h"
#include "model/llava/visual_plan.h"

/* ---- steps alone --------------------------------------------------------------------------- */

enum { STEPS = 60, MOST_TILES = 9, THREADS = 4 };

typedef struct work {
    uint64_t sums[STEPS + 1][MOST_TILES]; /* of each step: those of the step before, mixed */
    _Atomic unsigned done[STEPS];
} work;

static size_t tiles_of(size_t step) { return step % 11 % MOST_TILES; } /* 0 in some steps */

static void mix_steps(ry_runner *r, void *user)
{
    work *w = user;
    for (size_t s = 0; s < STEPS; s++) {
        ry_step step = ry_runner_step(r, tiles_of(s));
        for (size_t t; ry_step_next(&step, &t);) {
            uint64_t sum = t;
            for (size_t k = 0; k < MOST_TILES; k++) sum = sum * 31 + w->sums[s][k];
            w->sums[s + 1][t] = sum;
            atomic_fetch_add(&w->done[s], 1);
        }
        ry_step_end(&step);
    }
}

static void test_tickets(void **state)
{
    static work first, w;
    static ry_ticket tickets[STEPS];
    static const size_t counts[] = {STEPS, STEPS - 1, 7, 2, 1};
    (void)state;
    for (unsigned threads = 1; threads <= THREADS; threads++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            ry_team team = {.n_threads = threads, .tickets = tickets, .n_tickets = counts[i]};
            memset(&w, 0, sizeof w);
            ry_team_run(&team, mix_steps, &w);
            assert_int_equal(team.n_steps, STEPS);
            for (size_t s = 0; s < STEPS; s++) assert_int_equal(w.done[s], tiles_of(s));
            if (threads == 1 && i == 0) first = w;
            assert_memory_equal(w.sums, first.sums, sizeof w.sums);
        }
}

/* ---- plans --------------------------------------------------------------------------------- */

/* A plan runs RUNS times, first with its own tickets, which must be one for every step. Fewer must
 * give the same bits. */
enum { RUNS = 3 };
static void use_fewer(ry_team *team, size_t run)
{
    static const size_t fewer[] = {5, 1, 1};
    if (run == 0) assert_true(team->n_steps > 0 && team->n_steps <= team->n_tickets);
    if (fewer[run] < team->n_tickets) team->n_tickets = fewer[run];
}

static renyi_cpu best_level(void)
{
    renyi_cpu level = RENYI_CPU_SCALAR;
    assert_ok(ry_cpu_choose(RENYI_CPU_AUTO, &level, err));
    return level;
}

/* A hook that uses every step a block can have. */
static void greedy_needs(const void *self, uint32_t block, uint32_t n_tokens, ry_block_needs *out)
{
    (void)self;
    *out = (ry_block_needs){.what = RY_NEED_CLASS_ROW | RY_NEED_COLUMNS,
                            .columns = {.kind = RY_COLUMN_NORM, .order = 4.0},
                            .place = block ? RY_CUT_END : RY_CUT_MID,
                            .n_after = n_tokens,
                            .anchor = 1};
}

static uint32_t greedy_tiles(const void *self, uint32_t block, uint32_t phase)
{
    (void)self, (void)block;
    return phase < RY_MAX_PHASES ? 1 + phase % 2 : 0;
}

static void greedy_work(void *self, const ry_block_view *v, ry_cut *cut, uint32_t phase,
                        uint32_t tile)
{
    (void)self, (void)phase;
    if (tile) return;
    for (uint32_t j = 0; j < v->n_tokens; j++) {
        cut->source[j] = cut->target[j] = j;
        cut->weight[j] = 1.0f;
    }
}

static void ignore_cut(void *self, const ry_block_view *v, const ry_cut *cut)
{
    (void)self, (void)v, (void)cut;
}

static const float *greedy_anchor(void *self, uint32_t block, const float *x)
{
    (void)self, (void)block;
    return x;
}

static const ry_token_hook greedy = {.needs = greedy_needs,
                                     .tiles = greedy_tiles,
                                     .work = greedy_work,
                                     .watch = ignore_cut,
                                     .anchor = greedy_anchor};

static void ignore_input(void *user, const ry_linear_op *op, ry_extent run, const float *x)
{
    (void)user, (void)op, (void)run, (void)x;
}

static void ignore_rows(void *user, uint32_t block, const float *x, uint32_t n_tokens)
{
    (void)user, (void)block, (void)x, (void)n_tokens;
}

static void check_vit(const ry_vit *vit, const ry_token_hook *hook, int all_rows)
{
    static float chw[2 * CLIP_VALUES];
    float out[RUNS][2 * FIX_DIM];
    ry_vit_plan *p = NULL;
    const ry_vit_plan_options opt = {
        .level = best_level(), .hook = hook, .max_batch = 2, .n_threads = 3, .all_rows = all_rows};
    const ry_vit_input in = {.chw = chw, .n = 2, .tap = ignore_rows, .watch = ignore_input};
    for (size_t i = 0; i < sizeof chw / sizeof *chw; i++) chw[i] = (float)(i % 97) / 50.0f - 1.0f;
    assert_ok(ry_vit_plan_new(&p, vit, &opt, NULL, err));
    assert_true(2 * p->n_outputs <= sizeof out[0] / sizeof(float));
    for (size_t i = 0; i < RUNS; i++) {
        assert_int_equal(ry_vit_forward(p, &in, out[i]), RENYI_OK);
        assert_memory_equal(out[i], out[0], 2 * p->n_outputs * sizeof(float));
        use_fewer(&p->team, i);
    }
    ry_vit_plan_free(p, NULL);
}

static void test_vit(void **state)
{
    static const char *const archs[] = {"vit_tiny_patch16_64", "deit_tiny_distilled_patch16_64",
                                        "vit_tiny_patch16_gap_64"};
    static const renyi_dtype dtypes[] = {RENYI_DTYPE_F32, RENYI_DTYPE_BF16, RENYI_DTYPE_INT8};
    (void)state;
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        fixture f;
        ry_checkpoint ckpt = {0};
        ry_vit_config config;
        fix_make(&f, archs[i]);
        const char *path = fix_write(&f, "runner.safetensors");
        fix_free(&f);
        assert_ok(ry_checkpoint_open(&ckpt, path, NULL, NULL, err));
        assert_ok(ry_vit_configure(&config, &ckpt, 0, err));
        for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
            const renyi_options opt = {.struct_size = sizeof opt};
            ry_vit vit;
            if (ry_vit_load(&vit, &config, &ckpt, &opt, best_level(), dtypes[k], NULL)) continue;
            check_vit(&vit, NULL, 0);
            check_vit(&vit, NULL, 1);
            check_vit(&vit, &greedy, 0);
            ry_vit_free(&vit, NULL);
        }
        ry_checkpoint_close(&ckpt, NULL);
        unlink(path);
    }
}

static void check_text(const ry_text *text)
{
    const int32_t ids[][4] = {{1, 2, 3, 4}, {1, 2, 5, 6}, {7, 8, 9, 10}};
    ry_text_line lines[3];
    float out[RUNS][3][256];
    ry_text_plan *p = NULL;
    const ry_text_plan_options opt = {best_level(), text->config.context, 3};
    const size_t E = text->config.embed_dim;
    assert_true(3 * E <= sizeof out[0] / sizeof(float));
    for (uint32_t i = 0; i < 3; i++) lines[i] = (ry_text_line){ids[i], 4, 3, i};
    assert_ok(ry_text_plan_new(&p, text, &opt, NULL, err));
    for (size_t i = 0; i < RUNS; i++) {
        ry_text_sort(lines, 3);
        assert_int_equal(ry_text_pack(&p->pass, lines, 3), 3);
        ry_text_forward(p, out[i][0]);
        assert_memory_equal(out[i], out[0], 3 * E * sizeof(float));
        use_fewer(&p->team, i);
    }
    ry_text_plan_free(p, NULL);
}

static void test_text_tower(void **state)
{
    const renyi_options opt = {.struct_size = sizeof opt};
    const char *path = clip_init("runner_clip.safetensors");
    ry_checkpoint ckpt = {0};
    ry_text_config config;
    ry_text text;
    (void)state;
    assert_ok(ry_checkpoint_open(&ckpt, path, NULL, NULL, err));
    assert_ok(ry_text_configure(&config, &ckpt, err));
    assert_ok(ry_text_load(&text, &config, &ckpt, &opt, best_level(), RENYI_DTYPE_F32, err));
    check_text(&text);
    ry_text_free(&text, NULL);
    if (ry_text_load(&text, &config, &ckpt, &opt, best_level(), RENYI_DTYPE_INT8, NULL) == 0) {
        check_text(&text);
        ry_text_free(&text, NULL);
    }
    ry_checkpoint_close(&ckpt, NULL);
    unlink(path);
}

/* A cut that uses every step of a look and drops nothing. */
static void keep_all(void *self, const ry_llama_view *view, ry_llama_choice *choice)
{
    (void)self;
    for (uint32_t j = 0; j < view->n_visual; j++) choice->kept[j] = j;
    choice->n_kept = view->n_visual;
}

static void check_llama_cuts(const ry_llama *model)
{
    enum { ROWS = 40 };
    const ry_llama_cuts cuts = {
        2, {{1, 0, RY_QUERIES_ALL, 4.0, 1}, {2, 2, RY_QUERIES_ALL, 4.0, 1}}, 0, keep_all, NULL};
    const ry_llama_plan_options opt = {best_level(), LLAMA_CONTEXT, ROWS, 3, 0, &cuts};
    float image[LLAMA_DIM], logits[RUNS][LLAMA_VOCAB], plain[LLAMA_VOCAB];
    renyi_lm_input rows[ROWS];
    ry_llama_plan *p = NULL;
    for (int i = 0; i < LLAMA_DIM; i++) image[i] = (float)i / LLAMA_DIM - 0.5f;
    for (int i = 0; i < ROWS; i++)
        rows[i] = (renyi_lm_input){i / 10 == 1 ? image : NULL, i % LLAMA_VOCAB};
    assert_ok(ry_llama_plan_new(&p, model, &opt, NULL, err));
    ry_llama_forward(p, rows, ROWS, plain);
    p->team.n_steps = 0;
    for (size_t i = 0; i < RUNS; i++) {
        ry_llama_rewind(p, 0);
        assert_int_equal(ry_llama_prefill(p, rows, ROWS, logits[i], NULL, NULL), 0);
        assert_memory_equal(logits[i], plain, sizeof plain);
        use_fewer(&p->team, i);
    }
    ry_llama_plan_free(p, NULL);
}

static void check_llama(const ry_llama *model)
{
    enum { ROWS = 40 };
    renyi_lm_input rows[ROWS];
    float logits[RUNS][2][LLAMA_VOCAB];
    ry_llama_plan *p = NULL;
    const ry_llama_plan_options opt = {best_level(), LLAMA_CONTEXT, ROWS, 3, 0, NULL};
    for (int i = 0; i < ROWS; i++) rows[i] = (renyi_lm_input){.token = i % LLAMA_VOCAB};
    assert_ok(ry_llama_plan_new(&p, model, &opt, NULL, err));
    for (size_t i = 0; i < RUNS; i++) {
        ry_llama_rewind(p, 0);
        ry_llama_forward(p, rows, ROWS, logits[i][0]);
        ry_llama_forward(p, rows, 1, logits[i][1]);
        assert_memory_equal(logits[i], logits[0], sizeof logits[0]);
        use_fewer(&p->team, i);
    }
    ry_llama_plan_free(p, NULL);
}

static void check_visual(const ry_visual *visual)
{
    static uint8_t pixels[3 * CLIP_SIDE * CLIP_SIDE];
    static float lut[3][256];
    float rows[RUNS][TOY_PATCHES * LLAMA_DIM];
    const ry_column_spec columns = {.kind = RY_COLUMN_NORM, .order = 4.0};
    ry_visual_plan *p = NULL;
    const ry_visual_plan_options opt = {best_level(), NULL, 3, visual->qk != NULL};
    const ry_vit_input in = {.pixels = pixels, .lut = (const float(*)[256])lut, .n = 1};
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(i * 7);
    for (int i = 0; i < 3 * 256; i++) lut[i / 256][i % 256] = (float)(i % 256) / 128.0f - 1.0f;
    assert_ok(ry_visual_plan_new(&p, visual, &opt, NULL, err));
    for (size_t i = 0; i < RUNS; i++) {
        assert_ok(ry_visual_tower(p, &in));
        if (visual->qk) ry_visual_look(p, &columns);
        memcpy(p->features, p->x + FIX_DIM, TOY_PATCHES * FIX_DIM * sizeof(float));
        ry_visual_project(p, TOY_PATCHES);
        memcpy(rows[i], p->rows, sizeof rows[i]);
        assert_memory_equal(rows[i], rows[0], sizeof rows[0]);
        use_fewer(&p->team, i);
    }
    ry_visual_plan_free(p, NULL);
}

static void test_llava(void **state)
{
    const renyi_options opt = {.struct_size = sizeof opt};
    static fixture f;
    ry_checkpoint ckpt = {0};
    ry_llama_config llama_config;
    ry_visual_config visual_config;
    ry_llama llama;
    ry_visual visual;
    (void)state;
    toy_tensors(&f);
    const char *folder = toy_write(&f, "runner_llava", 0);
    fix_free(&f);
    assert_ok(ry_checkpoint_open(&ckpt, folder, NULL, NULL, err));
    const ry_visual_source from = {.llava = &ckpt};
    assert_ok(ry_llama_configure(&llama_config, &ckpt, err));
    assert_ok(
        ry_llama_load(&llama, &llama_config, &ckpt, &opt, best_level(), RENYI_DTYPE_F32, err));
    check_llama(&llama);
    check_llama_cuts(&llama);
    ry_llama_free(&llama, NULL);
    if (!ry_llama_load(&llama, &llama_config, &ckpt, &opt, best_level(), RENYI_DTYPE_INT8, NULL)) {
        check_llama(&llama);
        check_llama_cuts(&llama);
        ry_llama_free(&llama, NULL);
    }
    assert_ok(ry_visual_configure(&visual_config, &from, 0, NULL, err));
    assert_ok(
        ry_visual_load(&visual, &visual_config, &from, &opt, best_level(), RENYI_DTYPE_F32, err));
    check_visual(&visual);
    ry_visual_free(&visual, NULL);
    ry_checkpoint_close(&ckpt, NULL);
    toy_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tickets), cmocka_unit_test(test_vit),
                                       cmocka_unit_test(test_text_tower),
                                       cmocka_unit_test(test_llava)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
