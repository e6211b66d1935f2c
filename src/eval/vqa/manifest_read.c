/* manifest_read.c - reads result manifests, which may come from anyone.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/decimal.h"
#include "base/status.h"
#include "eval/vqa/manifest_fields.h"
#include "eval/vqa/vqa_questions.h"

#include <math.h>
#include <string.h>

enum { MAX_TEXT = 4096, MAX_ID = 255, HASH_DIGITS = 16, SHA256_DIGITS = 64 };
#define MAX_BYTES UINT64_C(100000000)

/* What is read, and where messages say it is. */
typedef struct reading {
    renyi_manifest *m;
    const char *name;
} reading;

static renyi_status copy_text(const reading *r, const char **out, const json_t *value, size_t most,
                              const char *what, renyi_error *err)
{
    if (!json_is_string(value) || json_string_length(value) > most)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %s is not a text of at most %zu bytes",
                       r->name, what, most);
    *out = ry_pool_text(&r->m->pool, json_string_value(value));
    return *out ? RENYI_OK : ry_fail_nomem(err, json_string_length(value));
}

/* ---- members --------------------------------------------------------------------------------- */

static renyi_status read_field(const reading *r, const json_t *document, const ry_manifest_field *f,
                               renyi_error *err)
{
    const json_t *value = json_object_get(ry_json_object(document, f->group), f->key);
    char *at = (char *)&r->m->info + f->offset, what[64];
    const char *text = NULL;
    uint64_t count = 0;
    double real = NAN;
    snprintf(what, sizeof what, "%s.%s", f->group, f->key);
    const int is_there = value && !json_is_null(value);
    if (!is_there && f->is_needed)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %s is missing", r->name, what);
    if (f->kind == RY_MANIFEST_TEXT) {
        if (is_there) RY_TRY(copy_text(r, &text, value, MAX_TEXT, what, err));
        memcpy(at, &text, sizeof text);
    } else if (f->kind == RY_MANIFEST_COUNT) {
        if (is_there && (!json_is_integer(value) || json_integer_value(value) < 0))
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %s is not a whole number", r->name,
                           what);
        if (is_there) count = (uint64_t)json_integer_value(value);
        memcpy(at, &count, sizeof count);
    } else {
        if (is_there && !json_is_number(value))
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %s is not a number", r->name, what);
        if (is_there) real = json_number_value(value);
        memcpy(at, &real, sizeof real);
    }
    return RENYI_OK;
}

/* "f32" or another format that renyi_dtype_name names. */
static int is_format(const char *text)
{
    for (int d = RENYI_DTYPE_DEFAULT + 1; d <= RENYI_DTYPE_INT4; d++)
        if (strcmp(text, renyi_dtype_name((renyi_dtype)d)) == 0) return 1;
    return 0;
}

/* What a run takes from these members must be what they say. */
static renyi_status check_settings(const reading *r, renyi_error *err)
{
    const renyi_manifest_info *i = &r->m->info;
    const char *const formats[] = {i->dtype, i->tower_dtype};
    uint64_t seed;
    if (i->seed && !ry_read_whole(i->seed, strlen(i->seed), UINT64_MAX, &seed))
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: settings.seed is not a whole number of at most 64 bits", r->name);
    if (i->scorer && strcmp(i->scorer, "textvqa") != 0 && strcmp(i->scorer, "official") != 0)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: data.scorer '%s' is not textvqa or official",
                       r->name, i->scorer);
    for (int k = 0; k < 2; k++)
        if (formats[k] && !is_format(formats[k]))
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%s: model.%s '%.40s' is no number format of this program", r->name,
                           k ? "tower_dtype" : "dtype", formats[k]);
    if (i->temperature < 0.0 || i->temperature > 1e6) /* NaN = unknown */
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: settings.temperature %g is not from 0 to 1e6", r->name, i->temperature);
    if (i->top_p < 0.0 || i->top_p > 1.0) /* 0 = 1, as in renyi_answer_options */
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: settings.top_p %g is not from 0 to 1",
                       r->name, i->top_p);
    return RENYI_OK;
}

static renyi_status read_fields(const reading *r, const json_t *document, renyi_error *err)
{
    size_t n = 0;
    const ry_manifest_field *fields = ry_manifest_fields(&n);
    for (size_t i = 0; i < n; i++) RY_TRY(read_field(r, document, &fields[i], err));
    renyi_vqa_task task;
    renyi_error why = {0};
    if (renyi_vqa_find_task(r->m->info.task, &task, &why))
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: data.task: %s", r->name, why.message);
    return check_settings(r, err);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* The list's length; an error if it is none or too long. */
static renyi_status list_length(const reading *r, const json_t *list, const char *what, size_t most,
                                size_t *n, renyi_error *err)
{
    if (!json_is_array(list) || json_array_size(list) > most)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%s: %s is not a list of at most %zu", r->name,
                       what, most);
    *n = json_array_size(list);
    return RENYI_OK;
}

static int is_hex(const json_t *value, size_t digits)
{
    const char *text = json_string_value(value);
    return text && json_string_length(value) == digits &&
           strspn(text, "0123456789abcdef") == digits;
}

static renyi_status read_files(const reading *r, const json_t *list, renyi_error *err)
{
    size_t n = 0;
    RY_TRY(list_length(r, list, "files", RY_MANIFEST_MAX_FILES, &n, err));
    renyi_manifest_file *files = RY_POOL_TAKE(&r->m->pool, n, renyi_manifest_file);
    if (!files) return ry_fail_nomem(err, n * sizeof *files);
    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(list, i), *size = json_object_get(o, "size"),
                     *sum = json_object_get(o, "sha256");
        RY_TRY(copy_text(r, &files[i].name, json_object_get(o, "name"), MAX_TEXT, "files[].name",
                         err));
        if (!json_is_integer(size) || json_integer_value(size) < 0 || !is_hex(sum, SHA256_DIGITS))
            return ry_fail(err, RENYI_ERR_FORMAT, -1,
                           "%s: files[%zu] needs a size and a sha256 of %d digits", r->name, i,
                           SHA256_DIGITS);
        files[i].size = (uint64_t)json_integer_value(size);
        RY_TRY(copy_text(r, &files[i].sha256, sum, SHA256_DIGITS, "files[].sha256", err));
    }
    r->m->info.files = files;
    r->m->info.n_files = n;
    return RENYI_OK;
}

static renyi_status read_sample(const reading *r, renyi_manifest_sample *s, const json_t *o,
                                size_t i, renyi_error *err)
{
    const json_t *input = json_array_get(o, 1), *answer = json_array_get(o, 2),
                 *worth = json_array_get(o, 3);
    const int is_known = json_is_number(worth);
    const double value = is_known ? json_number_value(worth) : NAN;
    if (!json_is_array(o) || json_array_size(o) != 4 || !is_hex(input, HASH_DIGITS) ||
        !is_hex(answer, HASH_DIGITS) || (!is_known && !json_is_null(worth)) ||
        (is_known && !(value >= 0 && value <= 1)))
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: answers.samples[%zu] is not [id, input, answer, worth from 0 to 1]",
                       r->name, i);
    RY_TRY(copy_text(r, &s->id, json_array_get(o, 0), MAX_ID, "answers.samples[][0]", err));
    s->input = ry_vqa_read_hash(input);
    s->answer = ry_vqa_read_hash(answer);
    s->worth = value;
    return RENYI_OK;
}

/* The file's own hashes must fit, or it was cut or changed. */
static renyi_status check_hashes(const reading *r, const json_t *answers, renyi_error *err)
{
    const json_t *data = json_object_get(answers, "data_hash"),
                 *hash = json_object_get(answers, "hash");
    ry_manifest_hashes(&r->m->info, &r->m->data_hash, &r->m->answers_hash);
    if (is_hex(data, HASH_DIGITS) && ry_vqa_read_hash(data) == r->m->data_hash &&
        is_hex(hash, HASH_DIGITS) && ry_vqa_read_hash(hash) == r->m->answers_hash)
        return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%s: answers.data_hash and answers.hash do not fit answers.samples: the file "
                   "was changed after it was written",
                   r->name);
}

static renyi_status read_samples(const reading *r, const json_t *answers, renyi_error *err)
{
    const json_t *list = json_object_get(answers, "samples");
    size_t n = 0;
    RY_TRY(list_length(r, list, "answers.samples", RY_MANIFEST_MAX_SAMPLES, &n, err));
    renyi_manifest_sample *samples = RY_POOL_TAKE(&r->m->pool, n, renyi_manifest_sample);
    if (!samples) return ry_fail_nomem(err, n * sizeof *samples);
    for (size_t i = 0; i < n; i++)
        RY_TRY(read_sample(r, &samples[i], json_array_get(list, i), i, err));
    r->m->info.samples = samples;
    r->m->info.n_samples = n;
    return check_hashes(r, answers, err);
}

/* ---- the document ---------------------------------------------------------------------------- */

static renyi_status read_document(const reading *r, const json_t *document, renyi_error *err)
{
    const char *format = json_string_value(json_object_get(document, "format"));
    const json_t *version = json_object_get(document, "version");
    if (!format || strcmp(format, RY_MANIFEST_FORMAT) != 0)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: not a result manifest: 'format' is not \"" RY_MANIFEST_FORMAT "\"",
                       r->name);
    if (!json_is_integer(version) || json_integer_value(version) != RY_MANIFEST_VERSION)
        return ry_fail(err, RENYI_ERR_FORMAT, -1,
                       "%s: 'version' is not %d, the one that this program reads", r->name,
                       RY_MANIFEST_VERSION);
    RY_TRY(read_fields(r, document, err));
    RY_TRY(read_files(r, json_object_get(document, "files"), err));
    return read_samples(r, ry_json_object(document, "answers"), err);
}

renyi_status ry_manifest_parse(renyi_manifest **out, const char *name, const char *bytes,
                               size_t size, const renyi_allocator *al, renyi_error *err)
{
    const ry_json_limits limits = {MAX_BYTES, 5 * (uint64_t)RY_MANIFEST_MAX_SAMPLES + 100000, 6};
    renyi_manifest *m = ry_calloc(al, 1, sizeof *m);
    json_t *document = NULL;
    *out = NULL;
    if (!m) return ry_fail_nomem(err, sizeof *m);
    if (al) m->al = *al;
    m->pool.al = &m->al;
    const reading r = {m, name};
    renyi_status st = ry_json_parse(&document, bytes, size, name, &limits, err);
    if (!st) st = read_document(&r, document, err);
    json_decref(document);
    if (st) {
        renyi_manifest_free(m);
        return st;
    }
    *out = m;
    return RENYI_OK;
}

renyi_status renyi_manifest_read(renyi_manifest **out, const char *path,
                                 const renyi_allocator *allocator, renyi_error *err)
{
    unsigned char *bytes;
    size_t size;
    if (!out || !path) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_manifest_read: NULL argument");
    *out = NULL;
    RY_TRY(ry_vqa_read_file(&bytes, &size, path, MAX_BYTES, err));
    const renyi_status st = ry_manifest_parse(out, path, (const char *)bytes, size, allocator, err);
    ry_free(NULL, bytes);
    return st;
}

void renyi_manifest_free(renyi_manifest *m)
{
    if (!m) return;
    const renyi_allocator al = m->al;
    ry_pool_free(&m->pool);
    ry_free(&al, m);
}

void renyi_manifest_get_info(const renyi_manifest *m, renyi_manifest_info *out) { *out = m->info; }
uint64_t renyi_manifest_data_hash(const renyi_manifest *m) { return m->data_hash; }
uint64_t renyi_manifest_answers_hash(const renyi_manifest *m) { return m->answers_hash; }
