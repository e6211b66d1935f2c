/* prune.c - classifies one image dense and pruned: classes, MACs, and what every cut did.
 *   cc prune.c $(pkg-config --cflags --libs renyi) -o prune
 *   ./prune model.safetensors photo.jpg
 *   ./prune model.safetensors photo.jpg "evit keep=0.7 layers=3,6,9 fuse"
 * SPDX-License-Identifier: Apache-2.0 */
#include <renyi/renyi.h>
#include <stdio.h>
#include <stdlib.h>

/* Tokens are numbered as they enter the cut; `position` is the patch of each. */
static void print_cut(const renyi_cut *cut)
{
    uint32_t patches = 0, kept = 0, dropped = 0;

    for (uint32_t j = cut->n_prefix; j < cut->n_in; j++) {
        const uint32_t row = cut->target[j];
        if (cut->position[j] == RENYI_FUSED) continue; /* made by an earlier cut */
        patches++;
        dropped += row == RENYI_NONE;
        kept += row != RENYI_NONE && cut->source[row] == j;
    }
    printf("  block %u: %u of %u patches stay, %u dropped, %u joined others\n", cut->block, kept,
           patches, dropped, patches - kept - dropped);
}

/* Runs the image with a policy and prints the result. logits: [n_classes]. */
static renyi_status run_policy(const renyi_model *model, const renyi_image *image,
                               const char *policy, float *logits, renyi_error *err)
{
    const renyi_session_options options = {
        .struct_size = sizeof options, .policy = policy, .trace = 1};
    renyi_session *session = NULL;
    renyi_model_info info;
    renyi_cut cut;

    renyi_status status = renyi_session_new(&session, model, &options, err);
    if (!status) status = renyi_run(session, image, 1, logits, err);
    if (!status) {
        uint32_t best = 0;
        renyi_model_get_info(model, &info);
        for (uint32_t i = 1; i < info.n_classes; i++)
            if (logits[i] > logits[best]) best = i;
        const char *label = renyi_model_label(model, best);
        printf("%s\n  class %u %s\n", renyi_session_policy(session), best, label ? label : "");
        printf("  %.3f GMACs\n", renyi_session_last_macs(session) / 1e9);
    }
    for (size_t i = 0; !status && i < renyi_session_cut_count(session); i++) {
        status = renyi_session_cut(session, 0, i, &cut, err);
        if (!status) print_cut(&cut);
    }
    renyi_session_free(session);
    return status;
}

int main(int argc, char **argv)
{
    renyi_model *model = NULL;
    renyi_image image = {0};
    renyi_model_info info;
    renyi_error err = {0};
    float *logits = NULL;
    int code = 1;

    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: prune MODEL IMAGE [POLICY]\n");
        return 2;
    }
    if (renyi_image_load(&image, argv[2], NULL, &err)) {
        fprintf(stderr, "%s: %s\n", argv[2], err.message);
        return 1;
    }
    if (renyi_model_open(&model, argv[1], NULL, &err)) goto done;
    renyi_model_get_info(model, &info);
    logits = calloc(info.n_classes, sizeof *logits);
    if (!logits || run_policy(model, &image, "none", logits, &err)) goto done;
    const char *policy = argc == 4 ? argv[3] : "mosaic keep=0.7 layers=0,3,6";
    if (run_policy(model, &image, policy, logits, &err)) goto done;
    code = 0;
done:
    if (code) fprintf(stderr, "%s: %s\n", renyi_status_name(err.code), err.message);
    free(logits);
    renyi_image_free(&image, NULL);
    renyi_model_free(model);
    return code;
}
