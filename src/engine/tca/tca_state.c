/* tca_state.c - saves and loads a reservoir as a safetensors file: tokens [n, L, C], class [n]
 * ascending, entropy [n] ascending within a class, counters as metadata. Anchors and similarity
 * rows are computed again. A file is checked completely before the state changes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/status.h"
#include "engine/tca/tca_adapt.h"
#include "formats/safetensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define VERSION_KEY "renyi.tca"
#define VERSION "1"

enum { COUNTERS = 4, DIGITS = 24 };
static const char *const counter_names[COUNTERS] = {"images", "anchored", "changed",
                                                    "first_anchored"};

static size_t token_bytes(const renyi_tca *t)
{
    return (size_t)t->shape.n_blocks * t->shape.dim * sizeof(float);
}

/* ---- write --------------------------------------------------------------------------------- */

/* The items of all classes, one after the other. */
typedef struct item_list {
    const renyi_tca *t;
    size_t n;
    uint32_t *slot, *class; /* [n] */
    float *entropy;         /* [n] */
} item_list;

static renyi_status list_items(item_list *out, const renyi_tca *t, renyi_error *err)
{
    renyi_tca_info info;
    renyi_tca_get_info(t, &info);
    const size_t n = info.n_items;
    *out = (item_list){.t = t,
                       .slot = ry_alloc(&t->al, n, sizeof *out->slot),
                       .class = ry_alloc(&t->al, n, sizeof *out->class),
                       .entropy = ry_alloc(&t->al, n, sizeof *out->entropy)};
    if (!out->slot || !out->class || !out->entropy) return ry_fail_nomem(err, n * 12);
    for (uint32_t c = 0; c < t->shape.n_classes; c++)
        for (uint32_t i = 0; i < t->counts[c]; i++, out->n++) {
            out->slot[out->n] = ry_tca_items(t, c)[i].slot;
            out->entropy[out->n] = ry_tca_items(t, c)[i].entropy;
            out->class[out->n] = c;
        }
    return RENYI_OK;
}

static void free_items(item_list *l, const renyi_allocator *al)
{
    ry_free(al, l->slot);
    ry_free(al, l->class);
    ry_free(al, l->entropy);
}

/* ry_safetensors_fill: tokens are gathered from the slots, the other tensors are in memory. */
static renyi_status fill_tensor(void *user, const ry_tensor *tensor, uint64_t at, void *out,
                                size_t n, renyi_error *err)
{
    const item_list *l = user;
    const size_t each = token_bytes(l->t);
    (void)err;
    if (tensor->data) {
        memcpy(out, (const char *)tensor->data + at, n);
        return RENYI_OK;
    }
    for (char *to = out; n;) {
        const size_t item = (size_t)(at / each), inside = (size_t)(at % each);
        const size_t take = each - inside < n ? each - inside : n;
        memcpy(to, (const char *)ry_tca_tokens(l->t, l->slot[item]) + inside, take);
        to += take;
        at += take;
        n -= take;
    }
    return RENYI_OK;
}

static renyi_status write_file(const item_list *l, const char *path, renyi_error *err)
{
    const renyi_tca *t = l->t;
    char text[COUNTERS + 1][DIGITS];
    const char *meta[2 * (COUNTERS + 2) + 1] = {VERSION_KEY, VERSION, "key", text[COUNTERS]};
    const uint64_t counters[COUNTERS] = {t->n_images, t->n_anchored, t->n_changed,
                                         t->first_anchored};
    const ry_tensor tensors[] = {
        {.name = "tokens",
         .dtype = RY_F32,
         .n_dims = 3,
         .shape = {l->n, t->shape.n_blocks, t->shape.dim}},
        {.name = "entropy", .dtype = RY_F32, .n_dims = 1, .shape = {l->n}, .data = l->entropy},
        {.name = "class", .dtype = RY_U32, .n_dims = 1, .shape = {l->n}, .data = l->class}};
    const ry_safetensors_content content = {tensors, 3, meta, fill_tensor, (void *)(uintptr_t)l};

    snprintf(text[COUNTERS], DIGITS, "%016" PRIx64, t->shape.key);
    for (int i = 0; i < COUNTERS; i++) {
        snprintf(text[i], DIGITS, "%" PRIu64, counters[i]);
        meta[4 + 2 * i] = counter_names[i];
        meta[5 + 2 * i] = text[i];
    }
    return ry_safetensors_write(path, &content, &t->al, err);
}

renyi_status renyi_tca_save(const renyi_tca *t, const char *path, renyi_error *err)
{
    item_list l;
    if (!t || !path) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_tca_save: NULL argument");
    renyi_status st = list_items(&l, t, err);
    if (!st) st = write_file(&l, path, err);
    free_items(&l, &t->al);
    return st;
}

/* ---- read ---------------------------------------------------------------------------------- */

static int read_counter(const char *text, uint64_t *out)
{
    uint64_t x = 0;
    if (!text || !*text) return 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || x > (UINT64_MAX - (uint64_t)(*text - '0')) / 10) return 0;
        x = 10 * x + (uint64_t)(*text - '0');
    }
    *out = x;
    return 1;
}

static renyi_status check_meta(const ry_tensors *set, const renyi_tca *t, uint64_t *counters,
                               renyi_error *err)
{
    char key[DIGITS];
    const char *version = ry_tensors_meta(set, VERSION_KEY), *is = ry_tensors_meta(set, "key");
    if (!version || strcmp(version, VERSION) != 0)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "is not a TCA state of version " VERSION " (metadata " VERSION_KEY ")");
    snprintf(key, sizeof key, "%016" PRIx64, t->shape.key);
    if (!is || strcmp(is, key) != 0)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "was made with another model or other classes");
    for (int i = 0; i < COUNTERS; i++)
        if (!read_counter(ry_tensors_meta(set, counter_names[i]), &counters[i]))
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "has no count '%s' in its metadata",
                           counter_names[i]);
    return RENYI_OK;
}

static renyi_status find_tensor(const ry_tensors *set, const char *name, ry_dtype dtype,
                                uint32_t n_dims, const uint64_t *shape, const ry_tensor **out,
                                renyi_error *err)
{
    const ry_tensor *t = *out = ry_tensors_find(set, name);
    if (t && t->dtype == dtype && t->n_dims == n_dims &&
        memcmp(t->shape, shape, n_dims * sizeof *shape) == 0)
        return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1, "has no tensor '%s' %s of %" PRIu64 " items%s", name,
                   ry_dtype_name(dtype), shape[0], n_dims > 1 ? " of this model's size" : "");
}

static float float_at(const ry_tensor *t, size_t i)
{
    float x;
    memcpy(&x, (const char *)t->data + i * sizeof x, sizeof x);
    return x;
}

static uint32_t class_at(const ry_tensor *t, size_t i)
{
    uint32_t x;
    memcpy(&x, (const char *)t->data + i * sizeof x, sizeof x);
    return x;
}

/* Classes ascend and have at most `size` items, in order of entropy; all numbers are finite. */
static renyi_status check_items(const renyi_tca *t, const ry_tensor *class,
                                const ry_tensor *entropy, const ry_tensor *tokens, renyi_error *err)
{
    const size_t n = (size_t) class->shape[0], each = token_bytes(t) / sizeof(float);
    uint32_t run = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t c = class_at(class, i), before = i ? class_at(class, i - 1) : 0;
        const float e = float_at(entropy, i);
        if (c >= t->shape.n_classes || c < before)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "item %zu is of class %u: classes must ascend and be below %u", i, c,
                           t->shape.n_classes);
        run = i && c == before ? run + 1 : 1;
        if (run > t->opt.size)
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "more than %u items of class %u, the size of this reservoir",
                           t->opt.size, c);
        if (!(e >= 0.0f && e < INFINITY) || (run > 1 && e < float_at(entropy, i - 1)))
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "item %zu has an entropy of %g: within a class they must ascend from 0",
                           i, (double)e);
        for (size_t k = 0; k < each; k++)
            if (!isfinite(float_at(tokens, i * each + k)))
                return ry_fail(err, RENYI_ERR_FORMAT, -1,
                               "item %zu has a number that is not finite at %zu", i, k);
    }
    return RENYI_OK;
}

renyi_status ry_tca_read(renyi_tca *t, const ry_tensors *set, renyi_error *err)
{
    const ry_tensor *class = ry_tensors_find(set, "class"), *entropy, *tokens;
    uint64_t counters[COUNTERS];
    const uint64_t n = class && class->n_dims == 1 ? class->shape[0] : 0;
    const uint64_t shape[] = {n, t->shape.n_blocks, t->shape.dim};

    RY_TRY(check_meta(set, t, counters, err));
    RY_TRY(find_tensor(set, "class", RY_U32, 1, shape, &class, err));
    RY_TRY(find_tensor(set, "entropy", RY_F32, 1, shape, &entropy, err));
    RY_TRY(find_tensor(set, "tokens", RY_F32, 3, shape, &tokens, err));
    if (n >= t->n_slots)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%" PRIu64 " items; at most %u fit", n,
                       t->n_slots - 1);
    RY_TRY(check_items(t, class, entropy, tokens, err));

    renyi_tca_reset(t);
    t->n_images = counters[0];
    t->n_anchored = counters[1];
    t->n_changed = counters[2];
    t->first_anchored = counters[3];
    if (n) memcpy(t->tokens, tokens->data, (size_t)n * token_bytes(t));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t c = class_at(class, i);
        ry_tca_items(t, c)[t->counts[c]++] = (ry_tca_item){i, float_at(entropy, i)};
    }
    t->free = (uint32_t)n;
    t->n_used = t->free + 1;
    ry_tca_rebuild(t);
    return RENYI_OK;
}

renyi_status renyi_tca_load(renyi_tca *t, const char *path, renyi_error *err)
{
    ry_tensors *set = NULL;
    if (!t || !path) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_tca_load: NULL argument");
    RY_TRY(ry_safetensors_open(&set, path, NULL, &t->al, err));
    renyi_status st = ry_tca_read(t, set, err);
    if (st) st = ry_fail_in(err, st, path);
    ry_tensors_free(set);
    return st;
}
