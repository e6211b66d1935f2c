/* draw.c - draws what two policies drop of an image: a complete program with librenyi-report.
 *   cc draw.c $(pkg-config --cflags --libs renyi-report) -o draw
 *   ./draw builtin photo.jpg figure.svg
 * SPDX-License-Identifier: Apache-2.0 */
#include <renyi/viz.h>
#include <stdio.h>

static int write_file(const char *path, const renyi_figure_file *figure)
{
    FILE *file = fopen(path, "wb");
    if (!file) return -1;
    const size_t written = fwrite(figure->bytes, 1, figure->size, file);
    return fclose(file) || written != figure->size ? -1 : 0;
}

int main(int argc, char **argv)
{
    const char *const policies[] = {"evit keep=0.7 layers=3,6,9", "mosaic keep=0.7 layers=3,6,9"};
    const uint32_t layers[] = {3, 6, 9};
    const renyi_viz_options what = {.struct_size = sizeof what,
                                    .rule = "", /* no rows for single metrics */
                                    .n_policies = 2,
                                    .policies = policies,
                                    .n_layers = 3,
                                    .layers = layers};
    const renyi_figure_options how = {.struct_size = sizeof how, .kind = RENYI_FIGURE_OVERLAY};
    renyi_model *model = NULL;
    renyi_viz *viz = NULL;
    renyi_viz_result *result = NULL;
    renyi_figure_file figure = {0};
    renyi_image image = {0};
    renyi_error err = {0};
    int code = 1;

    if (argc != 4) {
        fprintf(stderr, "usage: draw MODEL IMAGE FILE.svg\n");
        return 2;
    }
    if (renyi_image_load(&image, argv[2], NULL, &err)) {
        fprintf(stderr, "%s: %s\n", argv[2], err.message);
        return 1;
    }
    if (renyi_model_open(&model, argv[1], NULL, &err)) goto done;
    if (renyi_viz_new(&viz, model, &what, &err)) goto done;
    if (renyi_viz_run(viz, &image, argv[2], &result, &err)) goto done;
    const renyi_viz_result *const results[] = {result};
    if (renyi_figure_svg(&figure, results, 1, &how, &err)) goto done;
    code = write_file(argv[3], &figure) ? 1 : 0;
    if (code) perror(argv[3]);
done:
    if (err.code) fprintf(stderr, "%s: %s\n", renyi_status_name(err.code), err.message);
    renyi_figure_free(&figure);
    renyi_viz_result_free(result);
    renyi_viz_free(viz);
    renyi_model_free(model);
    renyi_image_free(&image, NULL);
    return code;
}
