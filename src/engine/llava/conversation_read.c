/* conversation_read.c - what the language model reads before it answers: prompts row by row, and
 * only those rows that it does not remember.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "engine/llava/conversation.h"

/* ---- planning ------------------------------------------------------------------------------ */

static renyi_status too_long(const renyi_conversation *c, uint64_t rows, uint32_t before,
                             uint32_t n_visual, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_LIMIT, -1,
                   "the prompt has %llu rows (%u said before, %u of the photo), and there is room "
                   "for %u: ask shorter, keep fewer visual tokens, or begin a new conversation",
                   (unsigned long long)rows, before, n_visual, c->context);
}

static renyi_status check_ids(const renyi_conversation *c, const int32_t *ids, size_t n,
                              uint32_t *n_images, renyi_error *err)
{
    *n_images = 0;
    if (!n) return ry_fail(err, RENYI_ERR_ARG, -1, "the prompt has no ids");
    for (size_t i = 0; i < n; i++) {
        if (ry_lvlm_is_image(c->m, ids[i])) {
            ++*n_images;
        } else if (ids[i] < 0 || (uint32_t)ids[i] >= c->m->lm_info.vocab) {
            return ry_fail(err, RENYI_ERR_ARG, -1,
                           "id %d, number %zu of the prompt; the language model has 0 to %u%s",
                           (int)ids[i], i + 1, c->m->lm_info.vocab - 1,
                           c->m->lm_info.image < 0 ? ", and -200 for the photo" : "");
        }
    }
    if (*n_images > 1)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "the prompt has %u places for a photo; one is wanted, however many rows it "
                       "has",
                       *n_images);
    if (*n_images && !c->photo.n)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "the prompt has a place for a photo; none was shown");
    return RENYI_OK;
}

/* Rows that the memory has already. The last is read in any case: logits come from it. */
static uint32_t count_known(const renyi_conversation *c, uint32_t n)
{
    const uint32_t held = renyi_lm_position(c->memory);
    uint32_t k = 0;
    while (k < held && k + 1 < n && c->seen[k] == c->inputs[k].token) k++;
    return k;
}

renyi_status ry_conversation_plan(renyi_conversation *c, const int32_t *ids, size_t n,
                                  ry_reading *out, renyi_error *err)
{
    uint32_t n_images, at = 0;
    if (!ids) ids = c->prompt;
    RY_TRY(check_ids(c, ids, n < c->context ? n : c->context, &n_images, err));
    const uint64_t rows = (uint64_t)n - n_images + (uint64_t)n_images * c->photo.n;
    if (rows > c->context) return too_long(c, rows, 0, n_images * c->photo.n, err);
    for (size_t i = 0; i < n; i++) {
        if (!ry_lvlm_is_image(c->m, ids[i])) {
            c->inputs[at++] = (renyi_lm_input){NULL, ids[i]};
            continue;
        }
        for (uint32_t r = 0; r < c->photo.n; r++)
            c->inputs[at++] =
                (renyi_lm_input){c->photo.rows + (size_t)r * c->photo.lm_dim, RENYI_LVLM_IMAGE};
    }
    const uint32_t known = count_known(c, at);
    *out = (ry_reading){c->inputs + known, at - known, known, n_images > 0};
    return RENYI_OK;
}

renyi_status ry_conversation_plan_more(renyi_conversation *c, size_t n, ry_reading *out,
                                       renyi_error *err)
{
    const uint32_t held = renyi_lm_position(c->memory), has_unread = c->unread >= 0;
    const uint64_t rows = (uint64_t)held + has_unread + n;
    uint32_t at = 0;
    if (rows > c->context)
        return too_long(c, rows, held + has_unread, c->sees_photo ? c->photo.n : 0, err);
    if (has_unread) c->inputs[at++] = (renyi_lm_input){NULL, c->unread};
    for (size_t i = 0; i < n; i++) c->inputs[at++] = (renyi_lm_input){NULL, c->prompt[i]};
    *out = (ry_reading){c->inputs, at, held, c->sees_photo};
    return RENYI_OK;
}

/* ---- reading ------------------------------------------------------------------------------- */

renyi_status ry_conversation_read(renyi_conversation *c, const ry_reading *reading,
                                  renyi_error *err)
{
    const uint32_t from = reading->from;
    renyi_status st = renyi_lm_rewind(c->memory, from, err);
    if (!st) st = renyi_lm_feed(c->memory, reading->inputs, reading->n, c->logits, err);
    /* a feed that was stopped has appended some: they are as good as others */
    const uint32_t n_read = renyi_lm_position(c->memory) - from;
    for (uint32_t i = 0; i < n_read; i++) c->seen[from + i] = reading->inputs[i].token;
    c->sees_photo = reading->sees_photo;
    c->unread = -1;
    if (st) renyi_conversation_restart(c);
    return st;
}
