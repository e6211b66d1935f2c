/* classify.c - names the class of one image: a complete program with the public API.
 *   cc classify.c $(pkg-config --cflags --libs renyi) -o classify
 *   ./classify model.safetensors photo.jpg
 * SPDX-License-Identifier: Apache-2.0 */
#include <renyi/renyi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    renyi_model *model = NULL;
    renyi_session *session = NULL;
    renyi_image image = {0};
    renyi_model_info info;
    renyi_error err = {0};
    float *logits = NULL;
    int code = 1;

    if (argc != 3) {
        fprintf(stderr, "usage: classify MODEL IMAGE\n");
        return 2;
    }
    if (renyi_image_load(&image, argv[2], NULL, &err)) {
        fprintf(stderr, "%s: %s\n", argv[2], err.message);
        return 1;
    }
    /* NULL options everywhere: the best CPU level, all physical cores, one image at a time. */
    if (renyi_model_open(&model, argv[1], NULL, &err)) goto done;
    if (renyi_session_new(&session, model, NULL, &err)) goto done;

    renyi_model_get_info(model, &info);
    logits = calloc(info.n_classes, sizeof *logits);
    if (!logits || renyi_run(session, &image, 1, logits, &err)) goto done;

    uint32_t best = 0;
    for (uint32_t i = 1; i < info.n_classes; i++)
        if (logits[i] > logits[best]) best = i;
    const char *label = renyi_model_label(model, best);
    printf("%s: class %u %s\n", argv[2], best, label ? label : "");
    code = 0;
done:
    if (code) fprintf(stderr, "%s: %s\n", renyi_status_name(err.code), err.message);
    free(logits);
    renyi_image_free(&image, NULL);
    renyi_session_free(session);
    renyi_model_free(model);
    return code;
}
