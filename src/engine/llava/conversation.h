/* conversation.h - the struct behind a renyi_conversation: the image, the rows that the language
 * model has read, and the answer that is being written.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_CONVERSATION_H
#define RY_CONVERSATION_H

#include "engine/llava/llava_handles.h"
#include "prune/policy/policy_spec.h"

struct renyi_conversation {
    const renyi_lvlm *m; /* borrowed */
    renyi_visual_session *vision;
    renyi_lm_session *lm;
    int prunes_lm;    /* the policy acts inside the language model */
    char *system;     /* NULL = the template's */
    uint32_t context; /* rows at most */

    renyi_visual_tokens image; /* rows borrowed from `vision`; n = 0: none was shown */
    renyi_visual_work work;    /* of the image that was shown last, with one choice */
    renyi_prompt_cost cost;    /* of the last prompt; n_rows = 0: there was none */
    double vision_ms;          /* of an image that is not yet part of an answer's time */
    char *chosen_by;           /* the question that chose the rows of `image`; NULL = none did */

    int32_t *seen;   /* [context] the rows that `lm` has read, renyi_lm_position of them: ids,
                        and RENYI_LVLM_IMAGE for each row of the image */
    int32_t *prompt; /* [context] */
    renyi_lm_input *inputs; /* [context] the prompt, its image row by row */
    float *logits;          /* [vocab] */
    uint32_t *order;        /* [vocab] scratch of ry_next_token */

    uint32_t n_choosing; /* prunes_lm: rows of the prompt that chose the image's rows; 0 = none */

    int is_begun;     /* there is an answer: the next question continues the conversation */
    int has_image;    /* the image is part of the conversation */
    uint64_t n_drawn; /* tokens chosen since it began */
    int32_t unread;   /* last token of the answer, if `lm` has not read it yet; else -1 */

    int32_t *ids; /* [context + 1] the answer */
    uint32_t n_ids;
    renyi_lm_cut cuts[RY_MAX_CUTS]; /* of the image in the language model */
    uint32_t n_cuts;
    char *text; /* [text_capacity] the same, NUL-terminated */
    size_t text_size, text_capacity;
};

/* prompt_cost.c: fills c->cost when a prompt was read. */
void ry_conversation_count_cost(renyi_conversation *c);

/* The visual tokens for this question, if the policy chooses by it; NULL = no question is known.
 * Another choice than before restarts the conversation. */
renyi_status ry_conversation_choose(renyi_conversation *c, const char *question,
                                    renyi_error *err) RENYI_CHECK;

#endif
