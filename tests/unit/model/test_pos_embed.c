/* test_pos_embed.c - resampled position embeddings against values of
 * torch.nn.functional.interpolate.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/vit/vit.h"

#include <math.h>
#include <string.h>

#include "test.h"

static const float grid[9] = {1, -2, 3, 0, 4, -1, 2, 5, -3};

/* torch 2: interpolate(grid[None, None], size=(n, n), mode="bicubic", antialias=...) */
static const float antialias_2[] = {0.326157f, 1.092809f, 2.825532f, 0.257468f};
static const float plain_2[] = {0.290878f, 1.472183f, 2.568207f, -0.827255f};
static const float antialias_5[] = {1.341758f,  -0.419741f, -2.452830f, 1.125458f,  3.736204f,
                                    0.597437f,  0.311484f,  0.059702f,  1.093562f,  1.809349f,
                                    -0.301887f, 1.626866f,  4.000000f,  0.932835f,  -1.377358f,
                                    0.977190f,  2.870071f,  4.917910f,  0.280406f,  -3.035764f,
                                    1.930224f,  3.545058f,  5.075471f,  -0.134611f, -3.771805f};
static const float plain_5[] = {1.448512f,  -0.757856f, -2.576000f, 0.807137f, 3.956160f,
                                0.488352f,  0.289553f,  0.256002f,  1.058368f, 1.720254f,
                                -0.384000f, 1.912000f,  4.000000f,  1.227999f, -1.480000f,
                                0.778369f,  3.206127f,  5.044000f,  0.699951f, -3.237375f,
                                1.913217f,  3.915487f,  5.096001f,  0.232831f, -3.987649f};

static void check_grid(uint32_t n, ry_pos_filter filter, const float *want)
{
    /* two channels: the grid and twice the grid, so that swapped axes are detected */
    float in[18], out[50];
    for (int i = 0; i < 9; i++) {
        in[2 * i] = grid[i];
        in[2 * i + 1] = 2.0f * grid[i];
    }
    assert_int_equal(ry_pos_embed_resample(out, n, in, 3, 2, filter, NULL, NULL), RENYI_OK);
    for (uint32_t i = 0; i < n * n; i++) {
        assert_true(fabsf(out[2 * i] - want[i]) < 4e-6f);
        assert_true(fabsf(out[2 * i + 1] - 2.0f * want[i]) < 8e-6f);
    }
}

static void as_torch_does(void **state)
{
    (void)state;
    check_grid(2, RY_POS_ANTIALIAS, antialias_2);
    check_grid(5, RY_POS_ANTIALIAS, antialias_5);
    check_grid(2, RY_POS_PLAIN, plain_2);
    check_grid(5, RY_POS_PLAIN, plain_5);
}

static void same_grid_is_a_copy(void **state)
{
    (void)state;
    float out[9];
    assert_int_equal(ry_pos_embed_resample(out, 3, grid, 3, 1, RY_POS_PLAIN, NULL, NULL), RENYI_OK);
    assert_memory_equal(out, grid, sizeof grid);
}

/* Both filters keep a constant: their weights sum to 1 for every pair of grids. */
static void constants_stay(void **state)
{
    (void)state;
    static float in[16 * 16], out[40 * 40];
    for (int i = 0; i < 256; i++) in[i] = 3.0f;
    for (uint32_t from = 1; from <= 16; from++)
        for (uint32_t to = 1; to <= 40; to += 3)
            for (int filter = RY_POS_ANTIALIAS; filter <= RY_POS_PLAIN; filter++) {
                assert_int_equal(
                    ry_pos_embed_resample(out, to, in, from, 1, (ry_pos_filter)filter, NULL, NULL),
                    RENYI_OK);
                for (uint32_t i = 0; i < to * to; i++) assert_true(fabsf(out[i] - 3.0f) < 1e-5f);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_torch_does),
        cmocka_unit_test(same_grid_is_a_copy),
        cmocka_unit_test(constants_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
