/* own_rule.c - prunes with a rule of its own: keeps the tokens whose keys differ most from the mean
 * key, and shows what remains of the image.
 *   cc own_rule.c $(pkg-config --cflags --libs renyi) -lm -o own_rule
 *   ./own_rule model.safetensors photo.jpg "unlike keep=0.5 layers=3,6"
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <renyi/renyi.h>
#include <stdio.h>
#include <stdlib.h>

/* Minus the cosine of each key with the mean key. The library ranks, keeps and reduces. */
static int score_unlike(void *user, const renyi_rule_view *view, float *score)
{
    float *mean = calloc(view->dim, sizeof *mean);
    (void)user;
    if (!mean) return 1; /* ends the run: RENYI_ERR_ABORTED */
    for (uint32_t j = view->n_prefix; j < view->n_tokens; j++)
        for (uint32_t i = 0; i < view->dim; i++) mean[i] += view->keys[j * view->qkv_row + i];
    for (uint32_t j = view->n_prefix; j < view->n_tokens; j++) {
        const float *key = view->keys + j * view->qkv_row;
        float product = 0, length = 0;
        for (uint32_t i = 0; i < view->dim; i++) {
            product += key[i] * mean[i];
            length += key[i] * key[i];
        }
        score[j] = length > 0 ? -product / sqrtf(length) : 0;
    }
    free(mean);
    return 0;
}

/* The grid of patches: '#' stays, '.' goes. */
static void print_cut(const renyi_cut *cut, uint32_t grid)
{
    char *map = calloc(1, (size_t)grid * grid + 1);
    if (!map) return;
    for (uint32_t i = 0; i < grid * grid; i++) map[i] = '.';
    for (uint32_t r = cut->n_prefix; r < cut->n_out; r++)
        if (cut->source[r] != RENYI_NONE && cut->position[cut->source[r]] >= 0)
            map[cut->position[cut->source[r]]] = '#';
    printf("block %u: %u of %u tokens\n", cut->block, cut->n_out, cut->n_in);
    for (uint32_t y = 0; y < grid; y++) printf("  %.*s\n", (int)grid, map + (size_t)y * grid);
    free(map);
}

int main(int argc, char **argv)
{
    const renyi_rule rule = {.struct_size = sizeof rule, .name = "unlike", .score = score_unlike};
    renyi_session_options options = {.struct_size = sizeof options, .trace = 1};
    renyi_model *model = NULL;
    renyi_session *session = NULL;
    renyi_image image = {0};
    renyi_model_info info;
    renyi_error err = {0};
    renyi_cut cut;
    float *logits = NULL;
    int code = 1;

    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: own_rule MODEL IMAGE [POLICY]\n");
        return 2;
    }
    options.policy = argc == 4 ? argv[3] : "unlike keep=0.5 layers=3,6";
    if (renyi_image_load(&image, argv[2], NULL, &err)) goto done;
    if (renyi_model_open(&model, argv[1], NULL, &err)) goto done;
    if (renyi_model_add_rule(model, &rule, &err)) goto done;
    if (renyi_session_new(&session, model, &options, &err)) goto done;
    logits = calloc(renyi_session_outputs(session), sizeof *logits);
    if (!logits || renyi_run(session, &image, 1, logits, &err)) goto done;
    renyi_model_get_info(model, &info);
    printf("%s\n", renyi_session_policy(session));
    for (size_t i = 0; i < renyi_session_cut_count(session); i++) {
        if (renyi_session_cut(session, 0, i, &cut, &err)) goto done;
        print_cut(&cut, info.image_size / info.patch_size);
    }
    code = 0;
done:
    if (code) fprintf(stderr, "%s: %s\n", renyi_status_name(err.code), err.message);
    free(logits);
    renyi_session_free(session);
    renyi_image_free(&image, NULL);
    renyi_model_free(model);
    return code;
}
