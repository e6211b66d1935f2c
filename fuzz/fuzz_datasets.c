/* fuzz_datasets.c - lists, labels, class names, splits and logs of datasets and runs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "eval/data/collections.h"
#include "eval/data/dataset.h"
#include "eval/run/evaluation.h"
#include "eval/run/merge.h"
#include "eval/run/sample_log.h"
#include "fuzz_targets.h"
#include "train/files/run_log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- labels ---------------------------------------------------------------------------------- */

/* Any bytes as a list, label, class map or sample log file; the first byte selects which. */
enum { CLASSES = 1000, IMAGES = 3 };

static void make_dataset(renyi_dataset *d, renyi_error *err)
{
    static const char *const names[IMAGES] = {"a.jpg", "ILSVRC2012_val_00000002.JPEG", "c d.png"};
    d->pool.al = &d->al;
    d->max_images = 1000;
    d->info.n_classes = CLASSES;
    if (ry_classes_open(&d->classes, CLASSES, NULL, &d->al, err)) abort();
    for (int i = 0; i < IMAGES; i++)
        if (ry_dataset_add(d, ry_text_of("folder"), ry_text_of(names[i]), RENYI_NO_CLASS, err))
            abort();
}

static renyi_status check_logged(void *user, const ry_logged *line, int *is_ours, renyi_error *e)
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
    const renyi_status st = ry_sample_log_read("log.jsonl", (const char *)bytes, n, &whole,
                                               &n_foreign, check_logged, NULL, e);
    if (whole > n) abort();
    return st;
}

static renyi_status read_labels(renyi_dataset *d, int form, const uint8_t *bytes, size_t n,
                                renyi_error *e)
{
    switch (form) {
    case 'c': return ry_dataset_list(d, NULL, "x/list.csv", bytes, n, e);
    case 'j': return ry_dataset_list(d, NULL, "x/list.jsonl", bytes, n, e);
    case 'p': return ry_dataset_list(d, NULL, "x/list.txt", bytes, n, e);
    case 't': return ry_dataset_truth(d, NULL, "truth.txt", bytes, n, e);
    case 'r': return ry_dataset_real(d, NULL, "real.json", bytes, n, e);
    case 'v': return ry_dataset_valid(d, NULL, "valid.txt", bytes, n, e);
    case 'l': return read_log(bytes, n, e);
    default: return ry_classes_map(&d->classes, "map.txt", bytes, n, e);
    }
}

int fuzz_labels(const uint8_t *data, size_t size)
{
    renyi_error err = {0};
    renyi_dataset *d = ry_calloc(NULL, 1, sizeof *d);
    if (!d || !size) return ry_free(NULL, d), 0;
    make_dataset(d, &err);
    const renyi_status st = read_labels(d, data[0], data + 1, size - 1, &err);
    if (st && !err.message[0]) abort();
    for (size_t i = 0; i < d->count; i++) {
        const ry_dataset_entry *p = &d->images[i];
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

/* ---- split ----------------------------------------------------------------------------------- */

/* Any bytes as CoOp's split, Aircraft's lists, class names or templates; the first
 * byte selects which. Refused with a message, or every class has a name and every image a class. */
static void check_dataset(const renyi_dataset *d)
{
    if (!d->own.names) abort();
    for (uint32_t i = 0; i < d->info.n_classes; i++)
        if (!d->own.names[i]) abort();
    for (size_t i = 0; i < d->count; i++)
        if (d->images[i].label >= d->info.n_classes) abort();
}

static renyi_status read_variants(renyi_dataset *d, const char *bytes, size_t n, renyi_error *e)
{
    static const char names[] = "707-320\nBoeing 717\n";
    const renyi_status st =
        ry_dataset_variants(d, NULL, "variants.txt", names, sizeof names - 1, e);
    return st ? st : ry_dataset_variant_list(d, "images", "test.txt", bytes, n, e);
}

static renyi_status read_classnames(renyi_dataset *d, const char *bytes, size_t n, renyi_error *e)
{
    static const uint32_t imagenet[] = {0, 1, 999};
    const renyi_status st = ry_own_start(d, 3, e);
    return st ? st : ry_own_read_classnames(d, imagenet, "classnames.txt", bytes, n, e);
}

static renyi_status read_split(renyi_dataset *d, int form, const char *bytes, size_t n,
                               renyi_error *e)
{
    switch (form) {
    case 'v': return read_variants(d, bytes, n, e);
    case 'c': return read_classnames(d, bytes, n, e);
    case 'n': return ry_own_read_names(d, NULL, "names.txt", bytes, n, e);
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

int fuzz_split(const uint8_t *data, size_t size)
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
    else if (!read_split(d, data[0], bytes, size - 1, &err))
        check_dataset(d);
    else if (!err.message[0])
        abort();
    free(bytes);
    ry_classes_free(&d->classes);
    renyi_dataset_free(d);
    return 0;
}

/* ---- log ------------------------------------------------------------------------------------- */

/* Any bytes as sample logs: what is before and after the first NUL are two of them,
 * merged. */
static void check_merged(const ry_merged *m)
{
    if (m->n_missing > m->run.images || m->n_policies > 1024) abort();
    for (size_t i = 0; i < m->n_samples; i++) {
        const ry_merge_sample *s = &m->samples[i];
        if (s->place >= m->run.images || (i && s->place < s[-1].place)) abort();
        if (s->policy >= m->n_policies && s->policy != RY_ALL_POLICIES) abort();
        if (!s->error && (s->answer.n_top < 1 || s->answer.n_top > RY_TOP)) abort();
        if (!s->error && s->answer.right > s->answer.n_top) abort();
    }
    for (size_t i = 0; i < m->n_images; i++) {
        renyi_dataset_image image;
        ry_merged_get_image(m, i, &image);
        if (!image.file || (i && m->images[i].place <= m->images[i - 1].place)) abort();
    }
}

int fuzz_log(const uint8_t *data, size_t size)
{
    static const char *const names[2] = {"a.jsonl", "b.jsonl"};
    const uint8_t *cut = size ? memchr(data, 0, size) : NULL;
    const size_t first = cut ? (size_t)(cut - data) : size;
    renyi_error err = {0};
    ry_merged *m = ry_calloc(NULL, 1, sizeof *m);
    if (!m) return 0;
    m->logs = names;
    m->o.max_samples = 1000;
    renyi_status st = ry_merged_read(m, (const char *)data, first, &err);
    m->log = 1;
    if (!st && cut) st = ry_merged_read(m, (const char *)cut + 1, size - first - 1, &err);
    if (!st) st = ry_merged_sort(m, NULL, &err);
    if (st && !err.message[0]) abort();
    if (!st) check_merged(m);
    ry_merged_free(m, NULL);
    return 0;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Any bytes as the log of a training run: what is before and after the first NUL are
 * two stages. */
static void check_run(const renyi_run_log *r)
{
    renyi_run_info info;
    renyi_run_log_get_info(r, &info);
    if (info.n_steps + info.n_epochs < 1 || !isfinite(info.epochs) || !isfinite(info.steps))
        abort();
    for (int what = 0; what <= RENYI_RUN_EMA_TOP1; what++)
        for (int axis = 0; axis < 3; axis++) {
            renyi_run_curve c;
            if (renyi_run_log_get_curve(&c, r, (renyi_run_quantity)what, (renyi_run_axis)axis, 3, 7,
                                        NULL))
                abort();
            if (c.n > 7) abort();
            for (size_t i = 0; i < c.n; i++)
                if (!isfinite(c.x[i]) || !isfinite(c.y[i]) ||
                    (i && c.x[i] < c.x[i - 1] * (1 - 1e-9)))
                    abort();
            renyi_run_curve_free(&c);
        }
}

int fuzz_runs(const uint8_t *data, size_t size)
{
    const uint8_t *cut = size ? memchr(data, 0, size) : NULL;
    const size_t first = cut ? (size_t)(cut - data) : size;
    renyi_error err = {0};
    renyi_run_log *r = ry_calloc(NULL, 1, sizeof *r);
    if (!r) return 0;
    r->max_lines = 1000;
    renyi_status st = ry_run_log_read(r, "a.jsonl", (const char *)data, first, &err);
    if (!st && cut)
        st = ry_run_log_read(r, "b.jsonl", (const char *)cut + 1, size - first - 1, &err);
    if (st && !err.message[0]) abort();
    if (!st) check_run(r);
    renyi_run_log_free(r);
    return 0;
}
