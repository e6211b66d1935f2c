/* templates.c - sentences about classes, such as "a photo of a {}.": built-in lists
 * (lists/templates_*.txt), files, or one sentence.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/data/collections.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "engine/core/engine_options.h"

#include <stdio.h>
#include <string.h>

enum { MAX_BYTES = 1 << 20, MAX_TEMPLATES = 1000, MAX_LINE = 1024 };

struct renyi_templates {
    renyi_allocator al;
    ry_pool pool;
    const char *name;   /* in the pool */
    const char **texts; /* [count] in the pool */
    size_t count, capacity;
};

/* ---- built-in lists ------------------------------------------------------------------------ */

extern const char ry_templates_imagenet80[], ry_templates_simple[], ry_templates_aircraft[],
    ry_templates_caltech101[], ry_templates_cars[], ry_templates_dtd[], ry_templates_eurosat[],
    ry_templates_flowers[], ry_templates_food101[], ry_templates_pets[], ry_templates_sun397[],
    ry_templates_ucf101[];

static const struct {
    const char *name, *text;
} lists[] = {
    {"imagenet80", ry_templates_imagenet80},
    {"simple", ry_templates_simple},
    {"aircraft", ry_templates_aircraft},
    {"caltech101", ry_templates_caltech101},
    {"cars", ry_templates_cars},
    {"dtd", ry_templates_dtd},
    {"eurosat", ry_templates_eurosat},
    {"flowers", ry_templates_flowers},
    {"food101", ry_templates_food101},
    {"pets", ry_templates_pets},
    {"sun397", ry_templates_sun397},
    {"ucf101", ry_templates_ucf101},
};

size_t renyi_templates_builtin_count(void) { return sizeof lists / sizeof *lists; }

const char *renyi_templates_builtin_name(size_t i)
{
    return i < renyi_templates_builtin_count() ? lists[i].name : NULL;
}

/* By its own name ("pets") or that of a dataset ("oxford_pets"); NULL = there is none. */
static const char *find_list(const char *name)
{
    renyi_collection c;
    for (size_t i = 0; i < renyi_templates_builtin_count(); i++)
        if (strcmp(lists[i].name, name) == 0) return lists[i].text;
    if (renyi_collection_find(name, &c, NULL) != RENYI_OK) return NULL;
    for (size_t i = 0; i < renyi_templates_builtin_count(); i++)
        if (strcmp(lists[i].name, c.templates) == 0) return lists[i].text;
    return NULL;
}

/* ---- sentences ----------------------------------------------------------------------------- */

static size_t count_places(ry_text t)
{
    size_t n = 0;
    for (size_t i = 0; i + 1 < t.n; i++) n += t.at[i] == '{' && t.at[i + 1] == '}';
    return n;
}

/* where: "file:3: ", or "" for a sentence that the caller gave */
static renyi_status check_sentence(ry_text t, const char *where, renyi_error *err)
{
    const size_t n = count_places(t);
    if (t.n > MAX_LINE)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "%sa template of %zu bytes (\"%.40s...\"); allowed: %d", where, t.n, t.at,
                       MAX_LINE);
    if (memchr(t.at, 0, t.n))
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "%sa zero byte: is this a text file?", where);
    if (n == 1) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "%stemplate \"%.*s\" has %s{}; wanted exactly one, where the name of the class "
                   "goes, as in \"a photo of a {}.\"",
                   where, RY_SHOWN(t), n ? "more than one " : "no ");
}

static renyi_status add_sentence(renyi_templates *t, ry_text sentence, const char *where,
                                 renyi_error *err)
{
    RY_TRY(check_sentence(sentence, where, err));
    if (t->count >= MAX_TEMPLATES)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "%smore than %d templates", where, MAX_TEMPLATES);
    const char *copy = ry_pool_copy(&t->pool, sentence);
    if (!copy || !ry_grow(&t->al, (void **)&t->texts, &t->capacity, t->count, sizeof *t->texts))
        return ry_fail_nomem(err, sentence.n);
    t->texts[t->count++] = copy;
    return RENYI_OK;
}

renyi_status ry_templates_read(renyi_templates *t, const char *file, const void *bytes, size_t size,
                               renyi_error *err)
{
    ry_lines l = ry_lines_of(bytes, size);
    for (ry_text line; ry_lines_next(&l, &line);) {
        char where[256];
        line = ry_text_trim(line);
        if (!line.n || *line.at == '#') continue;
        snprintf(where, sizeof where, "%.200s:%llu: ", file, (unsigned long long)l.number);
        RY_TRY(add_sentence(t, line, where, err));
    }
    if (t->count) return RENYI_OK;
    return ry_fail(
        err, RENYI_ERR_FORMAT, -1,
        "%.200s: no templates in this file; wanted one sentence a line, with {} where the "
        "name of the class goes",
        file);
}

static renyi_status fail_unknown(const char *word, renyi_error *err)
{
    char names[256] = "";
    for (size_t i = 0; i < renyi_templates_builtin_count(); i++) {
        const size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "", lists[i].name);
    }
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "templates \"%.80s\": not a file, not a sentence with {}, and not one of the "
                   "lists %s",
                   word, names);
}

static renyi_status read_file(renyi_templates *t, const char *word, renyi_error *err)
{
    uint8_t *bytes;
    size_t size;
    int is_missing = 0;
    renyi_error why = {0};
    renyi_status st = ry_file_read(&bytes, &size, word, MAX_BYTES, NULL, &is_missing, &why);
    if (is_missing) return fail_unknown(word, err);
    if (st) return ry_fail(err, st, -1, "%.200s: %.250s", word, why.message);
    st = ry_templates_read(t, word, bytes, size, err);
    ry_free(NULL, bytes);
    return st;
}

/* ---- new and free -------------------------------------------------------------------------- */

static renyi_status find_sentences(renyi_templates *t, const char *word, renyi_error *err)
{
    const ry_text all = ry_text_trim(ry_text_of(word));
    const char *list = find_list(word);
    t->name = ry_pool_copy(&t->pool, ry_text_of(word));
    if (!t->name) return ry_fail_nomem(err, strlen(word));
    if (list) return ry_templates_read(t, word, list, strlen(list), err);
    return count_places(all) ? add_sentence(t, all, "", err) : read_file(t, word, err);
}

renyi_status ry_templates_new(renyi_templates **out, const renyi_allocator *al, renyi_error *err)
{
    renyi_templates *t = *out = ry_calloc(al, 1, sizeof *t);
    if (!t) return ry_fail_nomem(err, sizeof *t);
    if (al) t->al = *al;
    t->pool.al = &t->al;
    return RENYI_OK;
}

renyi_status renyi_templates_open(renyi_templates **out, const char *word, const renyi_options *opt,
                                  renyi_error *err)
{
    renyi_options o;
    renyi_templates *t;
    if (!out || !word)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_templates_open: NULL argument");
    *out = NULL;
    RY_TRY(ry_options_read(&o, opt, err));
    RY_TRY(ry_templates_new(&t, &o.allocator, err));
    const renyi_status st = find_sentences(t, word, err);
    if (st) {
        renyi_templates_free(t);
        return st;
    }
    *out = t;
    return RENYI_OK;
}

void renyi_templates_free(renyi_templates *t)
{
    if (!t) return;
    const renyi_allocator al = t->al;
    ry_free(&al, t->texts);
    ry_pool_free(&t->pool);
    ry_free(&al, t);
}

const char *const *renyi_templates_texts(const renyi_templates *t, uint32_t *count)
{
    *count = (uint32_t)t->count;
    return t->texts;
}

const char *renyi_templates_name(const renyi_templates *t) { return t->name; }
