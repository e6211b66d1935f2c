/* torch_zip.c - opens PyTorch's zip checkpoints: finds the pickle in the archive and reads its
 * tensors.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/torch/torch_zip.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/status.h"
#include "formats/tensor_set.h"
#include "formats/torch/torch_state.h"

#include <string.h>

static int entry_ends(const ry_zip_entry *e, const char *tail)
{
    const size_t n = strlen(tail);
    return e->name_length >= n && !memcmp(e->name + e->name_length - n, tail, n);
}

static renyi_status fail_not_torch(const ry_torch_archive *a, renyi_error *err)
{
    for (size_t i = 0; i < a->zip.n_entries; i++)
        if (entry_ends(&a->zip.entries[i], ".npy"))
            return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                           "%s: a NumPy .npz archive is not supported; use the safetensors file",
                           a->what);
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%s: a zip archive of %zu entries without data.pkl; not a PyTorch checkpoint",
                   a->what, a->zip.n_entries);
}

/* "<prefix>data.pkl" gives the prefix; there is exactly one such entry. */
static renyi_status find_pickle(ry_torch_archive *a, const ry_zip_entry **out, renyi_error *err)
{
    static const char tail[] = "/data.pkl";
    *out = NULL;
    for (size_t i = 0; i < a->zip.n_entries; i++) {
        const ry_zip_entry *e = &a->zip.entries[i];
        if (!entry_ends(e, tail)) continue;
        if (*out)
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: more than one data.pkl in the archive",
                           a->what);
        *out = e;
    }
    if (!*out) return fail_not_torch(a, err);
    a->prefix = (*out)->name;
    a->prefix_length = (*out)->name_length - (sizeof tail - 2); /* keeps the '/' */
    return RENYI_OK;
}

static renyi_status check_archive(const ry_torch_archive *a, const ry_zip_entry *pickle,
                                  uint64_t max, renyi_error *err)
{
    const ry_zip_entry *order = ry_torch_entry(a, "byteorder", 9);
    if (order && (order->method || order->size != 6 || memcmp(order->data, "little", 6)))
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, (int64_t)order->header_offset,
                       "%s: byteorder is not 'little'; saved on a big-endian machine", a->what);
    if (pickle->method)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, (int64_t)pickle->header_offset,
                       "%s: data.pkl is compressed; torch.save stores entries plain", a->what);
    if (pickle->size > max)
        return ry_fail(err, RENYI_ERR_LIMIT, (int64_t)pickle->header_offset,
                       "%s: data.pkl of %llu bytes; at most %llu accepted", a->what,
                       (unsigned long long)pickle->size, (unsigned long long)max);
    return RENYI_OK;
}

static renyi_status read_archive(ry_tensors *set, ry_torch_archive *a, const renyi_limits *limits,
                                 const renyi_allocator *al, renyi_error *err)
{
    const ry_zip_entry *e;
    ry_pickle *p;
    RY_TRY(find_pickle(a, &e, err));
    RY_TRY(check_archive(a, e, ry_limits(limits).max_header_bytes, err));
    const ry_pickle_source source = {e->data, (size_t)e->size, a->what,
                                     (uint64_t)(e->data - a->zip.bytes)};
    RY_TRY(ry_pickle_run(&p, &source, al, err));
    const renyi_status st = ry_torch_state_read(set, p, a, err);
    ry_pickle_free(p);
    return st;
}

renyi_status ry_torch_parse(ry_tensors **out, const void *bytes, size_t size, const char *what,
                            const renyi_limits *limits, const renyi_allocator *al, renyi_error *err)
{
    ry_torch_archive a = {what, NULL, 0, {NULL, 0, NULL, 0}};

    *out = NULL;
    RY_TRY(ry_zip_open(&a.zip, bytes, size, what, al, err));
    renyi_status st = ry_tensors_new(out, al, err);
    if (!st) st = read_archive(*out, &a, limits, al, err);
    ry_zip_close(&a.zip, al);
    if (st) {
        ry_tensors_free(*out);
        *out = NULL;
    }
    return st;
}

renyi_status ry_torch_open(ry_tensors **out, const char *path, const renyi_limits *limits,
                           const renyi_allocator *al, renyi_error *err)
{
    ry_mapped_file file;

    *out = NULL;
    RY_TRY(ry_mapped_file_open(&file, path, ry_limits(limits).max_file_bytes, err));
    renyi_status st = ry_torch_parse(out, file.data, file.size, path, limits, al, err);
    if (!st) st = ry_tensors_adopt(*out, &file, err);
    if (st) {
        ry_tensors_free(*out);
        *out = NULL;
        ry_mapped_file_close(&file);
    }
    return st;
}
