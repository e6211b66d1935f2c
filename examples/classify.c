/* classify.c - names the class of one image: a complete program with the public API.
 *   cc classify.c $(pkg-config --cflags --libs renyi) -o classify
 *   ./classify model.safetensors photo.jpg
 * SPDX-License-Identifier: Apache-2.0 */
#include <renyi/renyi.h>
#include <stdio.h>
#include <stdlib.h>

/* Reads a whole file; the caller frees it. NULL if it cannot be read. */
static void *read_all(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    long end = 0;

    if (file && fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) >= 0) {
        rewind(file);
        bytes = malloc((size_t)end + 1);
        *size = bytes ? fread(bytes, 1, (size_t)end, file) : 0;
    }
    if (file) fclose(file);
    return bytes;
}

int main(int argc, char **argv)
{
    renyi_model *model = NULL;
    renyi_session *session = NULL;
    renyi_image image = {0};
    renyi_model_info info;
    renyi_error err = {0};
    float *logits = NULL;
    size_t size = 0;
    int code = 1;

    if (argc != 3) {
        fprintf(stderr, "usage: classify MODEL IMAGE\n");
        return 2;
    }
    void *bytes = read_all(argv[2], &size);
    if (!bytes) {
        perror(argv[2]);
        return 1;
    }
    /* NULL options everywhere: the best CPU level, all physical cores, one image at a time. */
    if (renyi_model_open(&model, argv[1], NULL, &err)) goto done;
    if (renyi_session_new(&session, model, NULL, &err)) goto done;
    if (renyi_image_decode(&image, bytes, size, NULL, &err)) goto done;

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
    free(bytes);
    return code;
}
