/* tune_images.h - images for a tuning and their labels: the answers of the dense model.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_TUNE_IMAGES_H
#define RY_TUNE_IMAGES_H

#include "fixtures/test_folder.h"
#include "renyi/eval.h"

/* A few rectangles on a plain background. Number 7 is not an image and 11 is cut short. */
static void make_image(int number)
{
    enum { SIDE = 24 };
    uint8_t pixels[SIDE][SIDE][3];
    char name[64];
    uint32_t state = (uint32_t)number * 2654435761u + 1;
    for (int part = 0; part < 6; part++) {
        uint8_t values[7];
        for (int k = 0; k < 7; k++) {
            state = state * 1664525u + 1013904223u;
            values[k] = (uint8_t)(state >> 24);
        }
        const int x = part ? values[3] % SIDE : 0, y = part ? values[4] % SIDE : 0;
        const int w = part ? 2 + values[5] % SIDE : SIDE, h = part ? 2 + values[6] % SIDE : SIDE;
        for (int i = y; i < y + h && i < SIDE; i++)
            for (int j = x; j < x + w && j < SIDE; j++) memcpy(pixels[i][j], values, 3);
    }
    snprintf(name, sizeof name, "images/%03d.ppm", number);
    static const char head[] = "P6\n24 24\n255\n";
    uint8_t file[sizeof head - 1 + sizeof pixels];
    memcpy(file, head, sizeof head - 1);
    memcpy(file + sizeof head - 1, pixels, sizeof pixels);
    if (number == 7)
        put(name, "not an image");
    else
        put_bytes(name, file, number == 11 ? sizeof head - 1 + 300 : sizeof file);
}

/* The dense model's answers about the n images of the folder as a list. */
static void write_labels(const renyi_model *model, size_t n)
{
    const renyi_dataset_options d = {.struct_size = sizeof d, .unlabelled = 1};
    renyi_error err = {0};
    renyi_dataset *plain;
    renyi_eval *e;
    if (renyi_dataset_open(&plain, at("images"), model, &d, &err) ||
        renyi_eval_new(&e, model, plain, NULL, &err) || renyi_eval_run(e, &err))
        fail_msg("%s", err.message);
    FILE *f = fopen(at("labels.csv"), "w");
    assert_non_null(f);
    for (size_t i = 0; i < n; i++) {
        renyi_eval_sample s = {.prediction = 0};
        renyi_dataset_image image;
        renyi_dataset_get_image(plain, i, &image);
        renyi_eval_get_sample(e, 0, i, &s);
        fprintf(f, "images/%s,%u\n", image.file, s.prediction);
    }
    fclose(f);
    renyi_eval_free(e);
    renyi_dataset_free(plain);
}

#endif
