/* llava_model.c - opening a LLaVA: tokenizer, visual side and language model, and whether they
 * belong together.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/llava/llava_model.h"

#include "base/alloc.h"
#include "base/status.h"
#include "engine/core/engine_options.h"

/* ---- do they belong together --------------------------------------------------------------- */

static renyi_status check_widths(const renyi_lvlm *m, renyi_error *err)
{
    if (m->visual_info.lm_dim == m->lm_info.dim) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "the projector makes rows of %u numbers, the language model has %u",
                   m->visual_info.lm_dim, m->lm_info.dim);
}

/* Models are padded to a round number of tokens, and a SentencePiece model may lack those that
 * LLaVA added; a vocabulary that is larger, or smaller by far, is another model's. */
static renyi_status check_words(const renyi_lvlm *m, renyi_error *err)
{
    enum { PADDING = 1024 };
    const uint32_t n = m->words.n_ids, vocab = m->lm_info.vocab;
    if (!m->tokenizer || (n <= vocab && vocab - n <= PADDING)) return RENYI_OK;
    return ry_fail(
        err, RENYI_ERR_FORMAT, -1,
        "the tokenizer has %u tokens, the language model %u: is it another model's? (%s)", n, vocab,
        m->words.source);
}

/* ---- open ---------------------------------------------------------------------------------- */

static renyi_options options_of(const renyi_lvlm_options *o, renyi_dtype dtype)
{
    return (renyi_options){.struct_size = sizeof(renyi_options),
                           .cpu = o->cpu,
                           .limits = o->limits,
                           .allocator = o->allocator,
                           .progress = o->progress,
                           .progress_user = o->progress_user,
                           .dtype = dtype};
}

/* None beside the model is no error yet: ids need no words. */
static renyi_status open_words(renyi_lvlm *m, const char *path, const renyi_lvlm_options *o,
                               renyi_error *err)
{
    const renyi_options opt = options_of(o, RENYI_DTYPE_DEFAULT);
    renyi_error why = {0};
    m->words = (renyi_lm_tokenizer_info){.bos = -1, .eos = -1, .unk = -1, .image = -1};
    const renyi_status st =
        renyi_lm_tokenizer_open(&m->tokenizer, o->tokenizer ? o->tokenizer : path, &opt, &why);
    if (!st) {
        renyi_lm_tokenizer_get_info(m->tokenizer, &m->words);
        return RENYI_OK;
    }
    if (st != RENYI_ERR_IO || o->tokenizer) return ry_fail(err, st, why.offset, "%s", why.message);
    m->no_words = ry_strdup(&m->al, why.message);
    return m->no_words ? RENYI_OK : ry_fail_nomem(err, sizeof why.message);
}

/* The small parts first: what is wrong with them is said before gigabytes are read. */
static renyi_status fill(renyi_lvlm *m, const char *path, const renyi_lvlm_options *o,
                         renyi_error *err)
{
    const renyi_options tower = options_of(o, o->tower_dtype), lm = options_of(o, o->dtype);
    RY_TRY(open_words(m, path, o, err));
    RY_TRY(renyi_visual_open(&m->visual, path, o->tower, &tower, err));
    renyi_visual_get_info(m->visual, &m->visual_info);
    RY_TRY(renyi_lm_open(&m->lm, path, &lm, err));
    renyi_lm_get_info(m->lm, &m->lm_info);
    const renyi_status st = check_widths(m, err);
    if (st) return ry_fail_in(err, st, path);
    const renyi_status words = check_words(m, err);
    return words ? ry_fail_in(err, words, path) : RENYI_OK;
}

renyi_status renyi_lvlm_open(renyi_lvlm **out, const char *path, const renyi_lvlm_options *options,
                             renyi_error *err)
{
    renyi_lvlm_options o;
    if (!out || !path)
        return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_lvlm_open: %s is NULL", out ? "path" : "out");
    *out = NULL;
    RY_TRY(ry_struct_read(&o, sizeof o, options, "renyi_lvlm_options", err));
    if (!o.allocator.alloc != !o.allocator.release)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "renyi_lvlm_options: allocator has one of alloc and release; both or none "
                       "wanted");
    renyi_lvlm *m = ry_calloc(&o.allocator, 1, sizeof *m);
    if (!m) return ry_fail_nomem(err, sizeof *m);
    m->al = o.allocator;
    const renyi_status st = fill(m, path, &o, err);
    if (st) {
        renyi_lvlm_free(m);
        return st;
    }
    *out = m;
    return RENYI_OK;
}

void renyi_lvlm_free(renyi_lvlm *m)
{
    if (!m) return;
    const renyi_allocator al = m->al;
    renyi_lm_free(m->lm);
    renyi_visual_free(m->visual);
    renyi_lm_tokenizer_free(m->tokenizer);
    ry_free(&al, m->no_words);
    ry_free(&al, m);
}

const renyi_lm *renyi_lvlm_lm(const renyi_lvlm *m) { return m->lm; }
const renyi_visual *renyi_lvlm_visual(const renyi_lvlm *m) { return m->visual; }
const renyi_lm_tokenizer *renyi_lvlm_tokenizer(const renyi_lvlm *m) { return m->tokenizer; }

uint64_t ry_lvlm_bytes(const renyi_lvlm *m)
{
    /* of the tower nearly all is in the matrices of its blocks */
    const uint64_t each = m->visual_info.dtype == RENYI_DTYPE_INT8   ? 1
                          : m->visual_info.dtype == RENYI_DTYPE_BF16 ? 2
                                                                     : 4;
    return m->lm_info.bytes + each * m->visual_info.n_params;
}
