/* tensor_set.c - a set of named tensors and everything that keeps their bytes alive.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* madvise */
#include "formats/tensor_set.h"

#include "base/buffer.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* An array that grows. */
typedef struct list {
    void *items;
    size_t count, cap;
} list;

typedef struct meta_pair {
    char *key, *value;
} meta_pair;

struct ry_tensors {
    renyi_allocator allocator;
    list tensors;             /* ry_tensor, in file order; names are owned */
    list metas;               /* meta_pair */
    list blocks;              /* void *, owned */
    list files;               /* ry_mapped_file, owned */
    const ry_tensor **sorted; /* [tensors.count] by name; NULL before finish */
    const ry_tensors *lender; /* the set whose bytes are borrowed (ry_tensors_under), or NULL */
};

static renyi_status reserve(ry_tensors *set, list *l, size_t item, size_t extra, renyi_error *err)
{
    if (ry_reserve(&set->allocator, &l->items, &l->cap, l->count, extra, item)) return RENYI_OK;
    return ry_fail_nomem(err, (l->count + extra) * item);
}

renyi_status ry_tensors_new(ry_tensors **out, const renyi_allocator *al, renyi_error *err)
{
    *out = ry_calloc(al, 1, sizeof **out);
    if (!*out) return ry_fail_nomem(err, sizeof **out);
    if (al) (*out)->allocator = *al;
    return RENYI_OK;
}

void ry_tensors_free(ry_tensors *set)
{
    if (!set) return;
    const renyi_allocator al = set->allocator;
    ry_tensor *tensors = set->tensors.items;
    meta_pair *metas = set->metas.items;
    void **blocks = set->blocks.items;
    ry_mapped_file *files = set->files.items;
    for (size_t i = 0; i < set->tensors.count; i++)
        ry_free(&al, (char *)(uintptr_t)tensors[i].name);
    for (size_t i = 0; i < set->metas.count; i++) {
        ry_free(&al, metas[i].key);
        ry_free(&al, metas[i].value);
    }
    for (size_t i = 0; i < set->blocks.count; i++) ry_free(&al, blocks[i]);
    for (size_t i = 0; i < set->files.count; i++) ry_mapped_file_close(&files[i]);
    ry_free(&al, tensors);
    ry_free(&al, metas);
    ry_free(&al, blocks);
    ry_free(&al, files);
    ry_free(&al, set->sorted);
    ry_free(&al, set);
}

renyi_status ry_tensors_add(ry_tensors *set, const ry_tensor *t, const char *where,
                            renyi_error *err)
{
    if (set->tensors.count >= RY_MAX_TENSORS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%s: more than %d tensors", where, RY_MAX_TENSORS);
    const size_t length = strlen(t->name);
    if (length > RY_MAX_TENSOR_NAME)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "%s: tensor name of %zu bytes ('%.60s...'); at most %d accepted", where,
                       length, t->name, RY_MAX_TENSOR_NAME);
    RY_TRY(reserve(set, &set->tensors, sizeof(ry_tensor), 1, err));
    ry_tensor *slot = (ry_tensor *)set->tensors.items + set->tensors.count;
    *slot = *t;
    slot->name = ry_strdup(&set->allocator, t->name);
    if (!slot->name) return ry_fail_nomem(err, length + 1);
    set->tensors.count++;
    return RENYI_OK;
}

renyi_status ry_tensors_add_meta(ry_tensors *set, const char *key, const char *value,
                                 renyi_error *err)
{
    RY_TRY(reserve(set, &set->metas, sizeof(meta_pair), 1, err));
    const meta_pair pair = {ry_strdup(&set->allocator, key), ry_strdup(&set->allocator, value)};
    if (!pair.key || !pair.value) {
        ry_free(&set->allocator, pair.key);
        ry_free(&set->allocator, pair.value);
        return ry_fail_nomem(err, strlen(key) + strlen(value) + 2);
    }
    ((meta_pair *)set->metas.items)[set->metas.count++] = pair;
    return RENYI_OK;
}

void *ry_tensors_own(ry_tensors *set, size_t bytes)
{
    if (reserve(set, &set->blocks, sizeof(void *), 1, NULL)) return NULL;
    void *block = ry_alloc(&set->allocator, bytes, 1);
    if (block) ((void **)set->blocks.items)[set->blocks.count++] = block;
    return block;
}

renyi_status ry_tensors_adopt(ry_tensors *set, ry_mapped_file *file, renyi_error *err)
{
    RY_TRY(reserve(set, &set->files, sizeof *file, 1, err));
    ((ry_mapped_file *)set->files.items)[set->files.count++] = *file;
    memset(file, 0, sizeof *file);
    return RENYI_OK;
}

/* Moves every item of `from` behind those of `to`; the space is reserved already. */
static void move_items(list *to, list *from, size_t item)
{
    if (from->count) memcpy((char *)to->items + to->count * item, from->items, from->count * item);
    to->count += from->count;
    from->count = 0;
}

renyi_status ry_tensors_absorb(ry_tensors *set, ry_tensors **from, const char *where,
                               renyi_error *err)
{
    ry_tensors *src = *from;
    if (src->tensors.count > RY_MAX_TENSORS - set->tensors.count)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%s: more than %d tensors in all shards", where,
                       RY_MAX_TENSORS);
    RY_TRY(reserve(set, &set->tensors, sizeof(ry_tensor), src->tensors.count, err));
    RY_TRY(reserve(set, &set->metas, sizeof(meta_pair), src->metas.count, err));
    RY_TRY(reserve(set, &set->blocks, sizeof(void *), src->blocks.count, err));
    RY_TRY(reserve(set, &set->files, sizeof(ry_mapped_file), src->files.count, err));
    move_items(&set->tensors, &src->tensors, sizeof(ry_tensor));
    move_items(&set->metas, &src->metas, sizeof(meta_pair));
    move_items(&set->blocks, &src->blocks, sizeof(void *));
    move_items(&set->files, &src->files, sizeof(ry_mapped_file));
    ry_tensors_free(src);
    *from = NULL;
    return RENYI_OK;
}

/* ---- finding ------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const ry_tensor *const *)a)->name, (*(const ry_tensor *const *)b)->name);
}

/* A sorted index, not a hash table: names come from the file, and no choice of names makes sorting
 * slow. */
renyi_status ry_tensors_finish(ry_tensors *set, const char *where, renyi_error *err)
{
    const size_t n = set->tensors.count;
    const ry_tensor *tensors = set->tensors.items;
    ry_free(&set->allocator, set->sorted);
    set->sorted = ry_alloc(&set->allocator, n, sizeof *set->sorted);
    if (!set->sorted) return ry_fail_nomem(err, n * sizeof *set->sorted);
    for (size_t i = 0; i < n; i++) set->sorted[i] = &tensors[i];
    qsort(set->sorted, n, sizeof *set->sorted, by_name);
    for (size_t i = 1; i < n; i++)
        if (!by_name(&set->sorted[i - 1], &set->sorted[i]))
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: two tensors are named '%.200s'", where,
                           set->sorted[i]->name);
    return RENYI_OK;
}

size_t ry_tensors_count(const ry_tensors *set) { return set->tensors.count; }

const ry_tensor *ry_tensors_at(const ry_tensors *set, size_t i)
{
    return (const ry_tensor *)set->tensors.items + i;
}

const ry_tensor *ry_tensors_find(const ry_tensors *set, const char *name)
{
    size_t low = 0, high = set->sorted ? set->tensors.count : 0;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const int order = strcmp(name, set->sorted[mid]->name);
        if (!order) return set->sorted[mid];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

const char *ry_tensors_meta(const ry_tensors *set, const char *key)
{
    const meta_pair *metas = set->metas.items;
    for (size_t i = 0; i < set->metas.count; i++)
        if (!strcmp(metas[i].key, key)) return metas[i].value;
    return NULL;
}

const char *ry_tensors_meta_key(const ry_tensors *set, size_t i)
{
    return i < set->metas.count ? ((const meta_pair *)set->metas.items)[i].key : NULL;
}

int ry_tensors_reads(const ry_tensors *set, const char *path)
{
    const ry_mapped_file *files = set->files.items;
    for (size_t i = 0; i < set->files.count; i++)
        if (ry_mapped_file_is(&files[i], path)) return 1;
    return 0;
}

/* ---- pages --------------------------------------------------------------------------------- */

void ry_tensors_drop_pages(const ry_tensors *set, const ry_tensor *t)
{
    if (set->lender) set = set->lender;
    const ry_mapped_file *files = set->files.items;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)t->data;
    for (size_t i = 0; i < set->files.count; i++) {
        const uintptr_t base = (uintptr_t)files[i].data;
        if (at < base || at - base >= files[i].size) continue;
        /* only whole pages inside the tensor: its neighbors may still be needed */
        const uintptr_t first = (at + page - 1) & ~(page - 1), last = (at + t->bytes) & ~(page - 1);
        if (first < last) madvise((void *)first, last - first, MADV_DONTNEED); /* only a hint */
        return;
    }
}

/* ---- subsets ------------------------------------------------------------------------------- */

static renyi_status borrow_tensors(ry_tensors *to, const ry_tensors *set, const char *prefix,
                                   renyi_error *err)
{
    const meta_pair *metas = set->metas.items;
    to->lender = set->lender ? set->lender : set;
    for (size_t i = 0; i < ry_tensors_count(set); i++)
        if (strncmp(ry_tensors_at(set, i)->name, prefix, strlen(prefix)) == 0)
            RY_TRY(ry_tensors_add(to, ry_tensors_at(set, i), prefix, err));
    for (size_t i = 0; i < set->metas.count; i++)
        RY_TRY(ry_tensors_add_meta(to, metas[i].key, metas[i].value, err));
    return ry_tensors_finish(to, prefix, err);
}

renyi_status ry_tensors_under(ry_tensors **out, const ry_tensors *set, const char *prefix,
                              const renyi_allocator *al, renyi_error *err)
{
    RY_TRY(ry_tensors_new(out, al, err));
    const renyi_status st = borrow_tensors(*out, set, prefix, err);
    if (st) {
        ry_tensors_free(*out);
        *out = NULL;
    }
    return st;
}
