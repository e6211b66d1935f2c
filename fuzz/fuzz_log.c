/* fuzz_log.c - any bytes as sample logs: what is before and after the first NUL are two of them,
 * merged.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "eval/run/evaluation.h"
#include "eval/run/merge.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const ry_merged *m)
{
    if (m->n_missing > m->run.photos || m->n_policies > 1024) abort();
    for (size_t i = 0; i < m->n_samples; i++) {
        const ry_merge_sample *s = &m->samples[i];
        if (s->place >= m->run.photos || (i && s->place < s[-1].place)) abort();
        if (s->policy >= m->n_policies && s->policy != RY_ALL_POLICIES) abort();
        if (!s->error && (s->answer.n_top < 1 || s->answer.n_top > RY_TOP)) abort();
        if (!s->error && s->answer.right > s->answer.n_top) abort();
    }
    for (size_t i = 0; i < m->n_photos; i++) {
        renyi_dataset_image photo;
        ry_merged_get_photo(m, i, &photo);
        if (!photo.file || (i && m->photos[i].place <= m->photos[i - 1].place)) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
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
    if (!st) check(m);
    ry_merged_free(m, NULL);
    return 0;
}
