/* llava_handles.h - the structs behind a renyi_visual (image tower and projector) and a renyi_lvlm
 * (a whole LLaVA, or a plain Llama). Nothing changes after they are opened, so several threads may
 * share them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_LLAVA_HANDLES_H
#define RY_LLAVA_HANDLES_H

#include "model/llava/visual.h"
#include "renyi/llava.h"

struct renyi_visual {
    renyi_allocator al;  /* of everything below, and of the sessions */
    renyi_limits limits; /* of images too */
    renyi_cpu level;
    renyi_dtype dtype; /* never DEFAULT or AUTO */
    ry_visual side;
};

struct renyi_lvlm {
    renyi_allocator al;         /* of everything below, and of the conversations */
    renyi_visual *visual;       /* NULL = a plain Llama */
    renyi_relevance *relevance; /* NULL = no CLIP was given */
    renyi_lm *lm;
    renyi_lm_tokenizer *tokenizer; /* NULL = none was found */
    char *why_no_tokenizer;        /* where it was looked for; NULL if there is one */
    renyi_visual_info visual_info;
    renyi_lm_info lm_info;
    renyi_lm_tokenizer_info ids; /* of the tokenizer; without one, special ids are -1 */
};

/* Bytes of the weights in memory. */
uint64_t ry_lvlm_bytes(const renyi_lvlm *m);

/* Is this id the place of the visual rows in a prompt? */
static inline int ry_lvlm_is_image(const renyi_lvlm *m, int32_t id)
{
    return id == RENYI_LVLM_IMAGE || (id >= 0 && (id == m->lm_info.image || id == m->ids.image));
}

/* Does an answer end with this id? */
static inline int ry_lvlm_is_end(const renyi_lvlm *m, int32_t id)
{
    return id >= 0 && (id == m->lm_info.eos || id == m->ids.eos);
}

/* Does the session choose by a question (cdpruner)? */
int ry_visual_session_asks(const renyi_visual_session *s);
/* The rows of the last image for another question, without running the tower. */
renyi_status ry_visual_session_ask(renyi_visual_session *s, const char *question,
                                   renyi_visual_tokens *out, renyi_error *err) RENYI_CHECK;

/* renyi_lm_open from a checkpoint that is open already; `path` is for errors. A file whose weights
 * run as they are stays mapped: *ckpt then gives up its tensors to the model. */
renyi_status ry_lm_open_checkpoint(renyi_lm **out, ry_checkpoint *ckpt, const char *path,
                                   const renyi_options *options, renyi_error *err) RENYI_CHECK;

#endif
