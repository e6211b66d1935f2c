/* clip_classifier.c - from class names and templates to one row a class.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/clip/clip_classifier.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/status.h"
#include "engine/clip/clip_text.h"
#include "engine/core/engine_options.h"
#include "kernels/rows/rows.h"

#include <math.h>
#include <string.h>

enum { BATCH = 1024, MAX_CLASSES = 1 << 20, MAX_TEMPLATES = 1 << 16 };

/* ---- rows ---------------------------------------------------------------------------------- */

typedef struct job {
    const ry_prompts *prompts;
    float *sums; /* [n_classes, E] */
    uint32_t E;
    int32_t *ids;      /* [BATCH, context] */
    uint32_t *lengths; /* [BATCH] */
    float *embeddings; /* [BATCH, E] */
    renyi_text_session *session;
    renyi_progress progress;
    void *progress_user;
    uint64_t before, total; /* texts of the batches done, and of all */
} job;

static int job_progress(void *user, uint64_t done, uint64_t of_batch)
{
    const job *j = user;
    (void)of_batch;
    return j->progress(j->progress_user, j->before + done, j->total);
}

static renyi_status take_buffers(job *j, const renyi_text *text, const renyi_classifier_options *o,
                                 const renyi_allocator *al, renyi_error *err)
{
    const size_t context = j->prompts->context;
    const renyi_text_session_options opt = {.struct_size = sizeof opt,
                                            .max_tokens = o->max_tokens,
                                            .n_threads = o->n_threads,
                                            .progress = j->progress ? job_progress : NULL,
                                            .progress_user = j};
    j->ids = ry_alloc(al, BATCH * context, sizeof *j->ids);
    j->lengths = ry_alloc(al, BATCH, sizeof *j->lengths);
    j->embeddings = ry_alloc(al, BATCH * (size_t)j->E, sizeof *j->embeddings);
    if (!j->ids || !j->lengths || !j->embeddings)
        return ry_fail_nomem(err, BATCH * (context + j->E) * sizeof(float));
    return renyi_text_session_new(&j->session, text, &opt, err);
}

static void free_buffers(job *j, const renyi_allocator *al)
{
    renyi_text_session_free(j->session);
    ry_free(al, j->ids);
    ry_free(al, j->lengths);
    ry_free(al, j->embeddings);
}

/* Classes first .. first+n-1 in one template. */
static renyi_status add_batch(job *j, uint32_t template_index, uint32_t first, uint32_t n,
                              renyi_error *err)
{
    for (uint32_t i = 0; i < n; i++)
        RY_TRY(ry_prompts_encode(j->prompts, template_index, first + i,
                                 j->ids + (size_t)i * j->prompts->context, &j->lengths[i], err));
    RY_TRY(renyi_text_run(j->session, j->ids, j->lengths, n, j->embeddings, err));
    renyi_normalise_rows(j->embeddings, n, j->E);
    for (uint32_t i = 0; i < n; i++)
        ry_row_add(j->sums + (size_t)(first + i) * j->E, j->embeddings + (size_t)i * j->E, 1.0f,
                   j->E);
    j->before += n;
    return RENYI_OK;
}

/* Template by template: names in the same template begin alike, and that is computed once. */
static renyi_status add_all(job *j, renyi_error *err)
{
    const uint32_t C = j->prompts->n_classes;
    for (uint32_t t = 0; t < j->prompts->n_templates; t++)
        for (uint32_t c = 0; c < C; c += BATCH)
            RY_TRY(add_batch(j, t, c, C - c < BATCH ? C - c : BATCH, err));
    return RENYI_OK;
}

/* The sum of a class's embeddings has the direction of their mean. */
static renyi_status finish_rows(const job *j, renyi_error *err)
{
    const size_t C = j->prompts->n_classes;
    renyi_normalise_rows(j->sums, C, j->E);
    for (size_t c = 0; c < C; c++) {
        const double length = (double)ry_row_length(j->sums + c * j->E, j->E);
        if (fabs(length - 1.0) < 1e-3) continue;
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "the texts of class %zu '%.60s' have no direction: are the weights damaged?",
                       c, j->prompts->names[c]);
    }
    return RENYI_OK;
}

static renyi_status compute_rows(renyi_classifier *c, const ry_prompts *p, const renyi_text *text,
                                 const renyi_classifier_options *o, renyi_error *err)
{
    job j = {.prompts = p,
             .sums = c->rows,
             .E = c->info.embed_dim,
             .progress = o->progress,
             .progress_user = o->progress_user,
             .total = (uint64_t)p->n_classes * p->n_templates};
    memset(c->rows, 0, (size_t)p->n_classes * j.E * sizeof *c->rows);
    renyi_status st = take_buffers(&j, text, o, &c->al, err);
    if (!st) st = add_all(&j, err);
    if (!st) st = finish_rows(&j, err);
    free_buffers(&j, &c->al);
    return st;
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* What the rows depend on: weights, what they are computed in, and the texts. */
static renyi_status make_key(renyi_classifier *c, const ry_prompts *p, const renyi_text *text,
                             renyi_error *err)
{
    const uint64_t facts[] = {text->tower.fingerprint, (uint64_t)text->dtype,
                              (uint64_t)text->level};
    int32_t *ids = ry_alloc(&c->al, p->context, sizeof *ids);
    if (!ids) return ry_fail_nomem(err, p->context * sizeof *ids);
    c->info.key = ry_hash(facts, sizeof facts);
    const renyi_status st = ry_prompts_hash(p, ids, &c->info.key, err);
    ry_free(&c->al, ids);
    return st;
}

static renyi_status fill(renyi_classifier *c, const ry_prompts *p, const renyi_text *text,
                         const renyi_classifier_options *o, renyi_error *err)
{
    size_t floats = 0;
    renyi_error written = {0};
    RY_TRY(make_key(c, p, text, err));
    if (!ry_mul_size(p->n_classes, c->info.embed_dim, &floats)) floats = SIZE_MAX;
    c->rows = ry_alloc(&c->al, floats, sizeof *c->rows);
    if (!c->rows) return ry_fail_nomem(err, floats);
    if (o->cache) {
        RY_TRY(ry_classifier_cache_path(c, o->cache, err));
        if (ry_classifier_cache_read(c, p)) {
            c->info.cache = RENYI_CACHE_READ;
            return RENYI_OK;
        }
    }
    RY_TRY(compute_rows(c, p, text, o, err));
    if (!o->cache) return RENYI_OK;
    c->info.cache = RENYI_CACHE_WRITTEN;
    if (ry_classifier_cache_write(c, p, &written)) { /* the rows are good all the same */
        c->info.cache = RENYI_CACHE_FAILED;
        memcpy(c->cache_message, written.message, sizeof c->cache_message);
    }
    return RENYI_OK;
}

static renyi_status build(renyi_classifier **out, const renyi_text *text, ry_prompts *p,
                          const renyi_classifier_options *o, renyi_error *err)
{
    renyi_classifier *c = ry_calloc(&text->al, 1, sizeof *c);
    if (!c) return ry_fail_nomem(err, sizeof *c);
    c->al = text->al;
    c->info.n_classes = p->n_classes;
    c->info.n_templates = p->n_templates;
    c->info.embed_dim = text->tower.config.embed_dim;
    c->info.scale = text->tower.config.logit_scale;
    renyi_status st = ry_prompts_init(p, &c->al, err);
    if (!st) st = fill(c, p, text, o, err);
    ry_prompts_free(p, &c->al);
    if (st) {
        renyi_classifier_free(c);
        return st;
    }
    *out = c;
    return RENYI_OK;
}

renyi_status renyi_classifier_new(renyi_classifier **out, const renyi_text *text,
                                  const renyi_tokenizer *tokenizer, const char *const *names,
                                  uint32_t n_classes, const renyi_classifier_options *opt,
                                  renyi_error *err)
{
    static const char *const usual[] = {"a photo of a {}."};
    renyi_classifier_options o;
    if (!out || !text || !tokenizer || !names)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_classifier_new: NULL argument");
    *out = NULL;
    RY_TRY(ry_struct_read(&o, sizeof o, opt, "renyi_classifier_options", err));
    if (o.n_templates && !o.templates)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_classifier_options: templates is NULL");
    if (n_classes > MAX_CLASSES || o.n_templates > MAX_TEMPLATES)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "%u classes in %u templates; at most %d and %d accepted", n_classes,
                       o.n_templates, MAX_CLASSES, MAX_TEMPLATES);
    ry_prompts p = {.names = names,
                    .templates = o.n_templates ? o.templates : usual,
                    .n_classes = n_classes,
                    .n_templates = o.n_templates ? o.n_templates : 1,
                    .tokenizer = tokenizer,
                    .context = text->tower.config.context,
                    .truncate = o.truncate != 0};
    return build(out, text, &p, &o, err);
}

void renyi_classifier_free(renyi_classifier *c)
{
    if (!c) return;
    const renyi_allocator al = c->al;
    ry_free(&al, c->rows);
    ry_free(&al, c->cache_path);
    ry_free(&al, c);
}

void renyi_classifier_get_info(const renyi_classifier *c, renyi_classifier_info *info)
{
    *info = c->info;
    info->cache_path = c->cache_path ? c->cache_path : "";
    info->cache_message = c->cache_message;
}

const float *renyi_classifier_rows(const renyi_classifier *c) { return c->rows; }
