/* chat_cache.h - the conversations that a language model keeps, and the prompt of a request.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A request brings the whole chat. The language model reads only what its conversation has not
 * read yet (renyi_conversation_ask_ids), so the answer is the same with and without the cache.
 */
#ifndef RENYI_CHAT_CACHE_H
#define RENYI_CHAT_CACHE_H

#include "cli/serve/serve_model.h"

typedef struct served_chat {
    renyi_conversation *conversation;
    char policy[RENYI_POLICY_MAX];
    char digest[65];  /* of the image that it shows; "" = none */
    char *transcript; /* of what it has read; owned; NULL = nothing */
    uint64_t used;
} served_chat;

/* The conversation with the job's policy and image that shares the longest beginning with its
 * messages; else a new one in place of the least used. Shows the image if needed. NULL with the
 * job's error, or without one if `progress` stopped it. */
served_chat *chat_cache_get(serve_model *m, serve_job *job, const char *transcript,
                            renyi_progress progress);

/* The messages of a request as one text that no other messages have. Owned; NULL without memory. */
char *chat_transcript(const chat_options *chat, const char *answer);

/* The text of the message with the image: cdpruner chooses visual tokens by it, for the whole chat.
 * NULL = there is no image. */
const char *chat_image_text(const serve_job *job);

/* The ids of the whole chat: of a LLaVA in its template, of a plain Llama the texts as they are.
 * ids: [max]. */
renyi_status chat_prompt(const serve_model *m, const serve_job *job, int32_t *ids, size_t max,
                         size_t *n, renyi_error *err);

#endif
