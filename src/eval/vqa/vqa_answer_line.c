/* vqa_answer_line.c - one answer as LLaVA's scripts write it. Our metadata say what LLaVA's leave
 * out: policy, run, tokens and time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/status.h"
#include "eval/vqa/vqa_questions.h"

#include <stdio.h>
#include <string.h>

static int set(json_t *o, const char *key, json_t *value)
{
    return json_object_set_new(o, key, value) == 0; /* takes a NULL value as a failure */
}

/* mmbench: LLaVA's script can turn the options; it writes which round that was. */
static int set_options(json_t *o, const ry_vqa_question *q)
{
    json_t *texts = json_array(), *letters = json_array();
    for (uint32_t i = 0; i < q->n_options; i++) {
        const char letter[2] = {(char)('A' + i), 0};
        (void)json_array_append_new(texts, ry_json_clean(q->options[i]));
        (void)json_array_append_new(letters, json_string(letter));
    }
    const int is_fine =
        json_array_size(texts) == q->n_options && json_array_size(letters) == q->n_options;
    return set(o, "options", texts) & set(o, "option_char", letters) & is_fine;
}

static json_t *metadata(const ry_vqa_run_words *words, const renyi_vqa_reply *reply)
{
    json_t *o = json_object();
    int is_fine = o && (!words->policy || set(o, "policy", ry_json_clean(words->policy)));
    is_fine = is_fine && set(o, "run", json_string(words->id)) &&
              set(o, "visual_tokens", json_integer(reply->n_visual)) &&
              set(o, "tokens", json_integer(reply->n_tokens)) &&
              set(o, "ms", json_integer((json_int_t)(reply->ms + 0.5)));
    if (is_fine) return o;
    json_decref(o);
    return NULL;
}

/* The run and the question, so that it stays the same when a run is repeated. */
static json_t *answer_id(const ry_vqa_question *q, const ry_vqa_run_words *words)
{
    char text[17];
    const uint64_t hash = ry_hash_add_text(ry_vqa_key(q->id, q->prompt), words->id);
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    return json_string(text);
}

renyi_status ry_vqa_answer_line(char **out, const renyi_vqa *v, size_t i,
                                const ry_vqa_run_words *words, const renyi_vqa_reply *reply,
                                renyi_error *err)
{
    const ry_vqa_question *q = &v->questions[i];
    json_t *o = json_object();
    int is_fine = o && set(o, "question_id", ry_vqa_id_json(q));
    if (q->n_options) is_fine = is_fine && set(o, "round_id", json_integer(0));
    is_fine = is_fine && set(o, "prompt", ry_json_clean(q->prompt)) &&
              set(o, "text", ry_json_clean(reply->text));
    if (q->n_options) is_fine = is_fine && set_options(o, q);
    is_fine = is_fine && set(o, "answer_id", answer_id(q, words)) &&
              set(o, "model_id", ry_json_clean(words->model)) &&
              set(o, "metadata", metadata(words, reply));
    if (is_fine) return ry_json_text(out, o, &v->al, err);
    json_decref(o);
    *out = NULL;
    return ry_fail_nomem(err, strlen(q->prompt));
}
