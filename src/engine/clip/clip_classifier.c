/* clip_classifier.c - zero-shot classification: class names in templates become texts, texts become
 * one row per class, and rows with an image tower become a model.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/status.h"
#include "engine/clip/clip_handles.h"
#include "engine/core/engine_options.h"
#include "engine/core/model_handle.h"
#include "kernels/rows/rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PLACE "{}"        /* where the class name goes in a template */
#define LENGTH_SLACK 1e-3 /* rows that were stored in 16 bits still count as of length 1 */

enum { BATCH = 1024, MAX_CLASSES = 1 << 20, MAX_TEMPLATES = 1 << 16, MAX_ROWS = 1 << 24 };

/* ---- texts: names in templates ------------------------------------------------------------- */

static renyi_status check_template(const char *text, renyi_error *err)
{
    const char *first = text ? strstr(text, PLACE) : NULL;
    if (!text) return ry_fail(err, RENYI_ERR_ARG, -1, "a template is NULL");
    if (first && !strstr(first + strlen(PLACE), PLACE)) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "template '%.80s' has " PLACE " %s; it needs it once, where the class name "
                   "goes, as in 'a photo of a " PLACE ".'",
                   text, first ? "more than once" : "nowhere");
}

static renyi_status check_prompts(const ry_prompts *p, size_t *longest, renyi_error *err)
{
    size_t name = 0, template = 0;
    if (!p->n_classes || !p->n_templates)
        return ry_fail(err, RENYI_ERR_ARG, -1, "no %s: a classifier needs at least one",
                       p->n_classes ? "templates" : "class names");
    for (uint32_t i = 0; i < p->n_classes; i++) {
        if (!p->names[i] || !p->names[i][0])
            return ry_fail(err, RENYI_ERR_ARG, -1, "class %u has no name", i);
        const size_t n = strlen(p->names[i]);
        name = n > name ? n : name;
    }
    for (uint32_t i = 0; i < p->n_templates; i++) {
        RY_TRY(check_template(p->templates[i], err));
        const size_t n = strlen(p->templates[i]);
        template = n > template ? n : template;
    }
    *longest = name + template;
    return RENYI_OK;
}

/* Checks names and templates and takes the buffer. */
static renyi_status init_prompts(ry_prompts *p, const renyi_allocator *al, renyi_error *err)
{
    size_t longest = 0;
    p->text = NULL;
    RY_TRY(check_prompts(p, &longest, err));
    p->text = ry_alloc(al, longest + 1, 1);
    return p->text ? RENYI_OK : ry_fail_nomem(err, longest + 1);
}

/* The template with the class name in the place of "{}", its underscores as spaces. Returns the
 * length. */
static size_t write_text(char *out, const char *template, const char *name)
{
    const char *place = strstr(template, PLACE);
    const size_t before = (size_t)(place - template), n = strlen(name);
    memcpy(out, template, before);
    for (size_t i = 0; i < n; i++) out[before + i] = name[i] == '_' ? ' ' : name[i];
    strcpy(out + before + n, place + strlen(PLACE));
    return strlen(out);
}

/* Ids [context] of a name in a template; a text that is too long is an error that names both. */
static renyi_status encode_prompt(const ry_prompts *p, uint32_t template_index,
                                  uint32_t class_index, int32_t *ids, uint32_t *length,
                                  renyi_error *err)
{
    const char *template = p->templates[template_index], *name = p->names[class_index];
    const size_t size = write_text(p->text, template, name);
    const renyi_status st = renyi_tokenizer_encode(p->tokenizer, p->text, size, p->context,
                                                   p->truncate, ids, length, err);
    if (!st) return RENYI_OK;
    char where[192];
    snprintf(where, sizeof where, "class %u '%.60s' in template '%.60s'", class_index, name,
             template);
    return ry_fail_in(err, st, where);
}

/* ---- the key of a classifier --------------------------------------------------------------- */

static void mix_hash(uint64_t *hash, const void *bytes, size_t size)
{
    const uint64_t both[2] = {*hash, ry_hash(bytes, size)};
    *hash = ry_hash(both, sizeof both);
}

/* Hash of names, templates, and the ids that the tokenizer gives to every name in one template and
 * to one name in every template. That tells tokenizers apart without encoding every text.
 * ids: [context] scratch */
static renyi_status hash_prompts(const ry_prompts *p, int32_t *ids, uint64_t *hash,
                                 renyi_error *err)
{
    const uint32_t facts[] = {p->n_classes, p->n_templates, p->context, p->truncate != 0};
    uint32_t length;
    mix_hash(hash, facts, sizeof facts);
    for (uint32_t i = 0; i < p->n_classes; i++) {
        mix_hash(hash, p->names[i], strlen(p->names[i]));
        RY_TRY(encode_prompt(p, 0, i, ids, &length, err));
        mix_hash(hash, ids, length * sizeof *ids);
    }
    for (uint32_t i = 0; i < p->n_templates; i++) {
        mix_hash(hash, p->templates[i], strlen(p->templates[i]));
        RY_TRY(encode_prompt(p, i, 0, ids, &length, err));
        mix_hash(hash, ids, length * sizeof *ids);
    }
    return RENYI_OK;
}

/* Hash of all that the rows depend on: weights, number format, CPU level and texts. */
static renyi_status make_key(renyi_classifier *c, const ry_prompts *p, const renyi_text *text,
                             renyi_error *err)
{
    const uint64_t facts[] = {text->tower.fingerprint, (uint64_t)text->dtype,
                              (uint64_t)text->level};
    int32_t *ids = ry_alloc(&c->al, p->context, sizeof *ids);
    if (!ids) return ry_fail_nomem(err, p->context * sizeof *ids);
    c->info.key = ry_hash(facts, sizeof facts);
    const renyi_status st = hash_prompts(p, ids, &c->info.key, err);
    ry_free(&c->al, ids);
    return st;
}

/* ---- texts to rows ------------------------------------------------------------------------- */

void renyi_normalise_rows(float *rows, size_t n, size_t dim)
{
    for (size_t i = 0; i < n; i++) ry_row_to_length(rows + i * dim, dim, 1.0);
}

typedef struct rows_job {
    const ry_prompts *prompts;
    float *sums; /* [n_classes, E] */
    uint32_t E;
    int32_t *ids;      /* [BATCH, context] */
    uint32_t *lengths; /* [BATCH] */
    float *embeddings; /* [BATCH, E] */
    renyi_text_session *session;
    renyi_progress progress;
    void *progress_user;
    uint64_t before, total; /* texts of finished batches, and of all */
} rows_job;

static int report_texts(void *user, uint64_t done, uint64_t of_batch)
{
    const rows_job *j = user;
    (void)of_batch;
    return j->progress(j->progress_user, j->before + done, j->total);
}

static renyi_status take_buffers(rows_job *j, const renyi_text *text,
                                 const renyi_classifier_options *o, const renyi_allocator *al,
                                 renyi_error *err)
{
    const size_t context = j->prompts->context;
    const renyi_text_session_options opt = {.struct_size = sizeof opt,
                                            .max_tokens = o->max_tokens,
                                            .n_threads = o->n_threads,
                                            .progress = j->progress ? report_texts : NULL,
                                            .progress_user = j};
    j->ids = ry_alloc(al, BATCH * context, sizeof *j->ids);
    j->lengths = ry_alloc(al, BATCH, sizeof *j->lengths);
    j->embeddings = ry_alloc(al, BATCH * (size_t)j->E, sizeof *j->embeddings);
    if (!j->ids || !j->lengths || !j->embeddings)
        return ry_fail_nomem(err, BATCH * (context + j->E) * sizeof(float));
    return renyi_text_session_new(&j->session, text, &opt, err);
}

static void free_buffers(rows_job *j, const renyi_allocator *al)
{
    renyi_text_session_free(j->session);
    ry_free(al, j->ids);
    ry_free(al, j->lengths);
    ry_free(al, j->embeddings);
}

/* Adds the embeddings of classes first .. first+n-1 in one template to their sums. */
static renyi_status add_batch(rows_job *j, uint32_t template_index, uint32_t first, uint32_t n,
                              renyi_error *err)
{
    for (uint32_t i = 0; i < n; i++)
        RY_TRY(encode_prompt(j->prompts, template_index, first + i,
                             j->ids + (size_t)i * j->prompts->context, &j->lengths[i], err));
    RY_TRY(renyi_text_run(j->session, j->ids, j->lengths, n, j->embeddings, err));
    renyi_normalise_rows(j->embeddings, n, j->E);
    for (uint32_t i = 0; i < n; i++)
        ry_row_add(j->sums + (size_t)(first + i) * j->E, j->embeddings + (size_t)i * j->E, 1.0f,
                   j->E);
    j->before += n;
    return RENYI_OK;
}

/* Template by template: texts of one template share their beginning, which is computed once. */
static renyi_status add_all_batches(rows_job *j, renyi_error *err)
{
    const uint32_t C = j->prompts->n_classes;
    for (uint32_t t = 0; t < j->prompts->n_templates; t++)
        for (uint32_t c = 0; c < C; c += BATCH)
            RY_TRY(add_batch(j, t, c, C - c < BATCH ? C - c : BATCH, err));
    return RENYI_OK;
}

/* The sum of a class's embeddings has the direction of their mean. */
static renyi_status finish_rows(const rows_job *j, renyi_error *err)
{
    const size_t C = j->prompts->n_classes;
    renyi_normalise_rows(j->sums, C, j->E);
    for (size_t c = 0; c < C; c++) {
        const double length = (double)ry_row_length(j->sums + c * j->E, j->E);
        if (fabs(length - 1.0) < 1e-3) continue;
        return ry_fail(
            err, RENYI_ERR_FORMAT, -1,
            "the texts of class %zu '%.60s' have embeddings without a direction: are the "
            "weights damaged?",
            c, j->prompts->names[c]);
    }
    return RENYI_OK;
}

static renyi_status compute_rows(renyi_classifier *c, const ry_prompts *p, const renyi_text *text,
                                 const renyi_classifier_options *o, renyi_error *err)
{
    rows_job j = {.prompts = p,
                  .sums = c->rows,
                  .E = c->info.embed_dim,
                  .progress = o->progress,
                  .progress_user = o->progress_user,
                  .total = (uint64_t)p->n_classes * p->n_templates};
    memset(c->rows, 0, (size_t)p->n_classes * j.E * sizeof *c->rows);
    renyi_status st = take_buffers(&j, text, o, &c->al, err);
    if (!st) st = add_all_batches(&j, err);
    if (!st) st = finish_rows(&j, err);
    free_buffers(&j, &c->al);
    return st;
}

/* ---- the classifier ------------------------------------------------------------------------ */

static renyi_status fill_rows(renyi_classifier *c, const ry_prompts *p, const renyi_text *text,
                              const renyi_classifier_options *o, renyi_error *err)
{
    size_t floats = 0;
    renyi_error why = {0};
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
    if (ry_classifier_cache_write(c, p, &why)) { /* the rows are good anyway */
        c->info.cache = RENYI_CACHE_FAILED;
        memcpy(c->cache_message, why.message, sizeof c->cache_message);
    }
    return RENYI_OK;
}

static renyi_status build_classifier(renyi_classifier **out, const renyi_text *text, ry_prompts *p,
                                     const renyi_classifier_options *o, renyi_error *err)
{
    renyi_classifier *c = ry_calloc(&text->al, 1, sizeof *c);
    if (!c) return ry_fail_nomem(err, sizeof *c);
    c->al = text->al;
    c->info.n_classes = p->n_classes;
    c->info.n_templates = p->n_templates;
    c->info.embed_dim = text->tower.config.embed_dim;
    c->info.scale = text->tower.config.logit_scale;
    c->info.bias = text->tower.config.logit_bias;
    c->info.is_sigmoid = (uint32_t)text->tower.config.is_sigmoid;
    renyi_status st = init_prompts(p, &c->al, err);
    if (!st) st = fill_rows(c, p, text, o, err);
    ry_free(&c->al, p->text);
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
                       "%u classes in %u templates; at most %d and %d are allowed", n_classes,
                       o.n_templates, MAX_CLASSES, MAX_TEMPLATES);
    ry_prompts p = {.names = names,
                    .templates = o.n_templates ? o.templates : usual,
                    .n_classes = n_classes,
                    .n_templates = o.n_templates ? o.n_templates : 1,
                    .tokenizer = tokenizer,
                    .context = text->tower.config.context,
                    .truncate = o.truncate != 0};
    return build_classifier(out, text, &p, &o, err);
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

/* ---- the zero-shot model ------------------------------------------------------------------- */

/* The factor and the term of every logit. */
typedef struct logit_terms {
    double scale, bias;
    int is_sigmoid;
} logit_terms;

static renyi_status check_rows(const float *rows, size_t dim, uint32_t n, const logit_terms *terms,
                               renyi_error *err)
{
    const double scale = terms->scale;
    if (!n || n > MAX_ROWS)
        return ry_fail(err, RENYI_ERR_ARG, -1, "%u classes; 1 to %d are allowed", n, MAX_ROWS);
    if (!(scale > 0.0 && scale <= 1e6))
        return ry_fail(err, RENYI_ERR_ARG, -1, "scale %g; above 0 and at most 1e6 is allowed",
                       scale);
    if (!(fabs(terms->bias) <= 1e6))
        return ry_fail(err, RENYI_ERR_ARG, -1, "bias %g; -1e6 to 1e6 is allowed", terms->bias);
    for (uint32_t i = 0; i < n; i++) {
        const double length = (double)ry_row_length(rows + i * dim, dim);
        if (!(fabs(length - 1.0) <= LENGTH_SLACK))
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "the row of class %u has length %g; renyi_normalise_rows makes it 1", i,
                           length);
    }
    return RENYI_OK;
}

static renyi_status make_text_head(renyi_model *m, const float *rows, uint32_t n_classes,
                                   const logit_terms *terms, renyi_error *err)
{
    float *bias = ry_alloc(&m->al, n_classes, sizeof *bias);
    if (!bias) return ry_fail_nomem(err, n_classes * sizeof *bias);
    for (uint32_t i = 0; i < n_classes; i++) bias[i] = (float)terms->bias;
    const ry_linear_spec spec = {.w = rows,
                                 .bias = terms->bias != 0.0 ? bias : NULL,
                                 .n_out = n_classes,
                                 .n_in = ry_vit_embed_dim(&m->vit.config),
                                 .dtype = RENYI_DTYPE_F32};
    const renyi_status st = ry_linear_new(&m->vit.text_head, &spec, m->level, &m->al, err);
    ry_free(&m->al, bias);
    return st;
}

static renyi_status fill_zeroshot(renyi_model *m, const float *rows, const char *const *names,
                                  uint32_t n_classes, const logit_terms *terms, renyi_error *err)
{
    const size_t E = ry_vit_embed_dim(&m->vit.config);
    m->vit.head = m->vit.head_dist = NULL;
    m->vit.text_head = NULL;
    m->vit.text_head_scale = terms->scale;
    m->is_sigmoid = terms->is_sigmoid;
    m->rows_hash = ry_hash(rows, n_classes * E * sizeof *rows);
    m->vit.config.n_classes = n_classes;
    RY_TRY(make_text_head(m, rows, n_classes, terms, err));
    return ry_labels_copy(&m->labels, names, n_classes, &m->al, err);
}

static renyi_status new_zeroshot(renyi_model **out, const renyi_model *clip, const float *rows,
                                 const char *const *names, uint32_t n_classes,
                                 const logit_terms *terms, renyi_error *err)
{
    if (out) *out = NULL;
    if (!out || !clip || !rows)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_model_zeroshot: NULL argument");
    RY_TRY(check_rows(rows, ry_vit_embed_dim(&clip->vit.config), n_classes, terms, err));
    renyi_model *m = ry_calloc(&clip->al, 1, sizeof *m);
    if (!m) return ry_fail_nomem(err, sizeof *m);
    *m = *clip;
    m->tower = clip->tower ? clip->tower : clip;
    m->rules = ry_own_rules_borrow(&m->tower->rules);
    m->owned = NULL;
    m->labels = (ry_labels){0};
    const renyi_status st = fill_zeroshot(m, rows, names, n_classes, terms, err);
    if (st) {
        renyi_model_free(m);
        return st;
    }
    *out = m;
    return RENYI_OK;
}

renyi_status renyi_model_zeroshot(renyi_model **out, const renyi_model *clip, const float *rows,
                                  const char *const *names, uint32_t n_classes, double scale,
                                  renyi_error *err)
{
    const logit_terms terms = {scale, 0.0, 0};
    return new_zeroshot(out, clip, rows, names, n_classes, &terms, err);
}

renyi_status renyi_model_zeroshot_sigmoid(renyi_model **out, const renyi_model *clip,
                                          const float *rows, const char *const *names,
                                          uint32_t n_classes, double scale, double bias,
                                          renyi_error *err)
{
    const logit_terms terms = {scale, bias, 1};
    return new_zeroshot(out, clip, rows, names, n_classes, &terms, err);
}

void renyi_model_keep_tower(renyi_model *zeroshot, renyi_model *clip)
{
    if (zeroshot && zeroshot != clip) zeroshot->owned = clip;
}
