/* conversation.h - what stands behind a renyi_conversation: a photo, the sequence that the language
 * model has seen of it, and the answer that is being written.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CONVERSATION_H
#define RY_CONVERSATION_H

#include "engine/llava/llava_model.h"

struct renyi_conversation {
    const renyi_lvlm *m; /* borrowed */
    renyi_visual_session *eyes;
    renyi_lm_session *memory;
    char *system;     /* NULL = the template's */
    uint32_t context; /* rows that there is room for */

    renyi_visual_tokens photo; /* rows borrowed from `eyes`; n = 0: none was shown */
    double vision_ms;          /* of a photo that no answer has accounted for */

    int32_t *seen;          /* [context] what the rows in `memory` are: ids; RENYI_LVLM_IMAGE for
                               each of the photo's. As many as renyi_lm_position says */
    int32_t *prompt;        /* [context] */
    renyi_lm_input *inputs; /* [context] the prompt, its photo row by row */
    float *logits;          /* [vocab] */
    uint32_t *order;        /* [vocab] scratch of the choice */

    int is_begun;     /* an answer stands at the end: the next question continues */
    int sees_photo;   /* it is part of the conversation */
    uint64_t n_drawn; /* tokens chosen since it began */
    int32_t unread;   /* last token of the answer, if it is not in `memory` yet; else -1 */

    int32_t *ids; /* [context + 1] the answer */
    uint32_t n_ids;
    char *text; /* [text_room] the same, NUL-terminated */
    size_t text_size, text_room;
};

/* What is to be read before the answer: n inputs behind the first `from` rows of the memory. */
typedef struct ry_reading {
    const renyi_lm_input *inputs;
    uint32_t n, from;
    int sees_photo;
} ry_reading;

/* A whole prompt of n ids (NULL = c->prompt), the photo's place among them. What the memory has of
 * it already is not read again. More rows than there is room for are RENYI_ERR_LIMIT, and of ids
 * only the first c->context are looked at. Changes nothing but c->inputs. */
renyi_status ry_conversation_plan(renyi_conversation *c, const int32_t *ids, size_t n,
                                  ry_reading *out, renyi_error *err) RENYI_CHECK;
/* c->prompt [n] follows what is there, and before it the token of the last answer that was not
 * read. Likewise. */
renyi_status ry_conversation_plan_more(renyi_conversation *c, size_t n, ry_reading *out,
                                       renyi_error *err) RENYI_CHECK;

/* Forget rows behind `from`, read, logits of what follows to c->logits. On failure the conversation
 * is restarted. */
renyi_status ry_conversation_read(renyi_conversation *c, const ry_reading *reading,
                                  renyi_error *err) RENYI_CHECK;

#endif
