/* clip_prompts.c - see clip_prompts.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/clip/clip_prompts.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

#define PLACE "{}" /* where the name goes */

/* ---- checks -------------------------------------------------------------------------------- */

static renyi_status check_template(const char *text, renyi_error *err)
{
    const char *first = text ? strstr(text, PLACE) : NULL;
    if (!text) return ry_fail(err, RENYI_ERR_ARG, -1, "a template is NULL");
    if (first && !strstr(first + strlen(PLACE), PLACE)) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "template '%.80s' has " PLACE " %s; once wanted, where the name of the class "
                   "goes, as in 'a photo of a " PLACE ".'",
                   text, first ? "more than once" : "nowhere");
}

static renyi_status check(const ry_prompts *p, size_t *longest, renyi_error *err)
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

renyi_status ry_prompts_init(ry_prompts *p, const renyi_allocator *al, renyi_error *err)
{
    size_t longest = 0;
    p->text = NULL;
    RY_TRY(check(p, &longest, err));
    p->text = ry_alloc(al, longest + 1, 1);
    return p->text ? RENYI_OK : ry_fail_nomem(err, longest + 1);
}

void ry_prompts_free(ry_prompts *p, const renyi_allocator *al) { ry_free(al, p->text); }

/* ---- texts --------------------------------------------------------------------------------- */

/* The name with spaces for underscores in the place of "{}"; returns the length. */
static size_t write_text(char *out, const char *template, const char *name)
{
    const char *place = strstr(template, PLACE);
    const size_t before = (size_t)(place - template), n = strlen(name);
    memcpy(out, template, before);
    for (size_t i = 0; i < n; i++) out[before + i] = name[i] == '_' ? ' ' : name[i];
    strcpy(out + before + n, place + strlen(PLACE));
    return strlen(out);
}

renyi_status ry_prompts_encode(const ry_prompts *p, uint32_t template_index, uint32_t class_index,
                               int32_t *ids, uint32_t *length, renyi_error *err)
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

/* ---- hash ---------------------------------------------------------------------------------- */

static void mix(uint64_t *hash, const void *bytes, size_t size)
{
    const uint64_t both[2] = {*hash, ry_hash(bytes, size)};
    *hash = ry_hash(both, sizeof both);
}

/* What stands in one template with every name and in every template with one name is all that a
 * tokenizer can do to words; so two tokenizers that differ on any of them are told apart without
 * reading every text. */
renyi_status ry_prompts_hash(const ry_prompts *p, int32_t *ids, uint64_t *hash, renyi_error *err)
{
    const uint32_t facts[] = {p->n_classes, p->n_templates, p->context, p->truncate != 0};
    uint32_t length;
    mix(hash, facts, sizeof facts);
    for (uint32_t i = 0; i < p->n_classes; i++) {
        mix(hash, p->names[i], strlen(p->names[i]));
        RY_TRY(ry_prompts_encode(p, 0, i, ids, &length, err));
        mix(hash, ids, length * sizeof *ids);
    }
    for (uint32_t i = 0; i < p->n_templates; i++) {
        mix(hash, p->templates[i], strlen(p->templates[i]));
        RY_TRY(ry_prompts_encode(p, i, 0, ids, &length, err));
        mix(hash, ids, length * sizeof *ids);
    }
    return RENYI_OK;
}
