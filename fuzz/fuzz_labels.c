/* fuzz_labels.c - any bytes as a list, label, class map or sample log file; the first byte says
 * which.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "eval/data/dataset.h"
#include "eval/run/sample_log.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CLASSES = 1000, PHOTOS = 3 };

static void make(renyi_dataset *d, renyi_error *err)
{
    static const char *const names[PHOTOS] = {"a.jpg", "ILSVRC2012_val_00000002.JPEG", "c d.png"};
    d->pool.al = &d->al;
    d->max_images = 1000;
    d->info.n_classes = CLASSES;
    if (ry_classes_open(&d->classes, CLASSES, NULL, &d->al, err)) abort();
    for (int i = 0; i < PHOTOS; i++)
        if (ry_dataset_add(d, ry_text_of("folder"), ry_text_of(names[i]), RENYI_NO_CLASS, err))
            abort();
}

static renyi_status take(void *user, const ry_logged *line, int *is_ours, renyi_error *e)
{
    (void)user, (void)is_ours, (void)e;
    if (!line->file || !line->run.model) abort();
    if (!line->error && (!line->policy || line->answer.n_top < 1 || line->answer.n_top > RY_TOP))
        abort();
    return RENYI_OK;
}

static renyi_status read_log(const uint8_t *bytes, size_t n, renyi_error *e)
{
    size_t whole = 0;
    uint64_t n_foreign = 0;
    const renyi_status st =
        ry_sample_log_read("log.jsonl", (const char *)bytes, n, &whole, &n_foreign, take, NULL, e);
    if (whole > n) abort();
    return st;
}

static renyi_status read(renyi_dataset *d, int form, const uint8_t *bytes, size_t n, renyi_error *e)
{
    switch (form) {
    case 'c': return ry_dataset_list(d, "x/list.csv", bytes, n, e);
    case 'j': return ry_dataset_list(d, "x/list.jsonl", bytes, n, e);
    case 'p': return ry_dataset_list(d, "x/list.txt", bytes, n, e);
    case 't': return ry_dataset_truth(d, "truth.txt", bytes, n, e);
    case 'r': return ry_dataset_real(d, "real.json", bytes, n, e);
    case 'v': return ry_dataset_valid(d, "valid.txt", bytes, n, e);
    case 'l': return read_log(bytes, n, e);
    default: return ry_classes_map(&d->classes, "map.txt", bytes, n, e);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    renyi_error err = {0};
    renyi_dataset *d = ry_calloc(NULL, 1, sizeof *d);
    if (!d || !size) return ry_free(NULL, d), 0;
    make(d, &err);
    const renyi_status st = read(d, data[0], data + 1, size - 1, &err);
    if (st && !err.message[0]) abort();
    for (size_t i = 0; i < d->count; i++) {
        const ry_photo *p = &d->photos[i];
        if (p->label != RENYI_NO_CLASS && p->label >= CLASSES) abort();
        for (uint32_t j = 0; j < p->n_right; j++)
            if (p->right[j] >= CLASSES) abort();
    }
    uint32_t class;
    if (ry_classes_find(&d->classes, (ry_text){(const char *)data, size}, &class) &&
        class >= CLASSES)
        abort();
    ry_classes_free(&d->classes);
    renyi_dataset_free(d);
    return 0;
}
