/* fuzz_split.c - any bytes as CoOp's split, Aircraft's lists, class names or templates; the first
 * byte says which. Refused with a message, or every class has a name and every photo a class.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "eval/data/collections.h"
#include "eval/data/dataset.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_whole(const renyi_dataset *d)
{
    if (!d->own.names) abort();
    for (uint32_t i = 0; i < d->info.n_classes; i++)
        if (!d->own.names[i]) abort();
    for (size_t i = 0; i < d->count; i++)
        if (d->photos[i].label >= d->info.n_classes) abort();
}

static renyi_status read_variants(renyi_dataset *d, const char *bytes, size_t n, renyi_error *e)
{
    static const char names[] = "707-320\nBoeing 717\n";
    const renyi_status st = ry_dataset_variants(d, "variants.txt", names, sizeof names - 1, e);
    return st ? st : ry_dataset_variant_list(d, "images", "test.txt", bytes, n, e);
}

static renyi_status read_classnames(renyi_dataset *d, const char *bytes, size_t n, renyi_error *e)
{
    static const uint32_t imagenet[] = {0, 1, 999};
    const renyi_status st = ry_own_start(d, 3, e);
    return st ? st : ry_own_read_classnames(d, imagenet, "classnames.txt", bytes, n, e);
}

static renyi_status read(renyi_dataset *d, int form, const char *bytes, size_t n, renyi_error *e)
{
    switch (form) {
    case 'v': return read_variants(d, bytes, n, e);
    case 'c': return read_classnames(d, bytes, n, e);
    case 'n': return ry_own_read_names(d, "names.txt", bytes, n, e);
    default: return ry_dataset_split(d, "images", "split.json", bytes, n, e);
    }
}

static void read_templates(const char *bytes, size_t n)
{
    renyi_error err = {0};
    renyi_templates *t;
    uint32_t count;
    if (ry_templates_new(&t, NULL, &err)) abort();
    if (ry_templates_read(t, "templates.txt", bytes, n, &err)) {
        if (!err.message[0]) abort();
    } else {
        const char *const *texts = renyi_templates_texts(t, &count);
        if (!count) abort();
        for (uint32_t i = 0; i < count; i++)
            if (!strstr(texts[i], "{}")) abort();
    }
    renyi_templates_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    renyi_error err = {0};
    if (!size) return 0;
    renyi_dataset *d = ry_calloc(NULL, 1, sizeof *d);
    char *bytes = malloc(size); /* exact size: the sanitizer sees overreads */
    if (!d || !bytes) abort();
    memcpy(bytes, data + 1, size - 1);
    d->pool.al = &d->al;
    d->max_images = 100000;
    d->own.is_on = 1;
    if (data[0] == 't')
        read_templates(bytes, size - 1);
    else if (!read(d, data[0], bytes, size - 1, &err))
        must_be_whole(d);
    else if (!err.message[0])
        abort();
    free(bytes);
    ry_classes_free(&d->classes);
    renyi_dataset_free(d);
    return 0;
}
