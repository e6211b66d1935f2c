/* vqa_model.c - see vqa_model.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/llava/vqa_model.h"

#include "cli/kit/cli_ranks.h"
#include "cli/kit/progress.h"

#include <stdlib.h>
#include <string.h>

/* ---- conversations ------------------------------------------------------------------------- */

static int on_progress(void *user, uint64_t done, uint64_t total)
{
    (void)user, (void)done, (void)total;
    return was_interrupted();
}

static int on_text(void *user, const char *text, size_t size)
{
    (void)user, (void)text, (void)size;
    return was_interrupted();
}

static renyi_status converse(const vqa_model *m, renyi_conversation **out, const char *policy,
                             renyi_error *err)
{
    const renyi_conversation_options o = {.struct_size = sizeof o,
                                          .n_threads = ranks_threads(m->a->lvlm.threads),
                                          .policy = policy,
                                          .progress = on_progress};
    return renyi_conversation_new(out, m->weights, &o, err);
}

/* What names the photo where the message does not. */
static renyi_status name_photo(const renyi_vqa_request *request, renyi_status st, renyi_error *err)
{
    char message[sizeof err->message];

    if (st == RENYI_OK || strstr(err->message, request->name)) return st;
    snprintf(message, sizeof message, "%s", err->message);
    snprintf(err->message, sizeof err->message, "%.200s: %.280s", request->name, message);
    return st;
}

/* The conversation that the question belongs to, with its photo and nothing said. */
static renyi_status begin(vqa_model *m, const renyi_vqa_request *request, renyi_conversation **out,
                          renyi_error *err)
{
    renyi_status st = RENYI_OK;

    if (!request->bytes) {
        m->is_shown = 0;
        if (!m->blind) st = converse(m, &m->blind, "none", err);
        *out = m->blind;
    } else {
        *out = m->talk;
        if (!request->is_same_photo || !m->is_shown) {
            st = name_photo(
                request, renyi_conversation_show_bytes(m->talk, request->bytes, request->size, err),
                err);
            m->is_shown = st == RENYI_OK;
        }
    }
    if (st == RENYI_OK) renyi_conversation_restart(*out);
    return st;
}

renyi_status vqa_model_ask(void *user, const renyi_vqa_request *request, renyi_vqa_reply *reply,
                           renyi_error *err)
{
    vqa_model *m = user;
    const vqa_arguments *a = m->a;
    const renyi_answer_options o = {.struct_size = sizeof o,
                                    .max_new_tokens = (uint32_t)a->max_new_tokens,
                                    .temperature = a->temperature.values[0],
                                    .top_p = a->top_p.values[0],
                                    .seed = a->seed,
                                    .on_text = on_text};
    const double start = cli_now_ms();
    renyi_conversation *talk;
    renyi_answer answer;

    renyi_status st = begin(m, request, &talk, err);
    if (st == RENYI_OK)
        st = renyi_conversation_ask(talk, request->question->text, &o, &answer, err);
    if (st != RENYI_OK) return st;
    if (answer.end == RENYI_ANSWER_STOPPED) { /* half an answer is none */
        snprintf(err->message, sizeof err->message, "interrupted");
        return err->code = RENYI_ERR_ABORTED;
    }
    *reply = (renyi_vqa_reply){.text = answer.text,
                               .n_visual = answer.n_visual,
                               .n_tokens = answer.n_ids,
                               .ms = cli_now_ms() - start};
    return RENYI_OK;
}

/* ---- life ---------------------------------------------------------------------------------- */

int vqa_model_open(vqa_model *m, const vqa_arguments *a)
{
    renyi_lm_info lm;
    renyi_visual_info visual;

    *m = (vqa_model){.a = a};
    m->weights = lvlm_open_reported(&a->lvlm);
    if (!m->weights) return CLI_FAILED;
    if (!renyi_lvlm_tokenizer(m->weights)) {
        cli_error(
            "%s: no tokenizer.model or tokenizer.json in it; --tokenizer PATH says where it is",
            a->lvlm.model);
        return CLI_FAILED;
    }
    renyi_lm_get_info(renyi_lvlm_lm(m->weights), &lm);
    renyi_visual_get_info(renyi_lvlm_visual(m->weights), &visual);
    m->name = model_path_title(a->lvlm.model);
    m->condition = cli_format("%s %s tokens %llu temperature %g top-p %g seed %llu",
                              renyi_dtype_name(lm.dtype), renyi_dtype_name(visual.dtype),
                              (unsigned long long)a->max_new_tokens, a->temperature.values[0],
                              a->top_p.values[0], (unsigned long long)a->seed);
    return CLI_OK;
}

int vqa_model_choose(vqa_model *m, const char *policy)
{
    renyi_error err = {0};

    renyi_conversation_free(m->talk);
    m->talk = NULL;
    m->is_shown = 0;
    if (converse(m, &m->talk, policy, &err) != RENYI_OK) return prune_error("vqa", policy, &err);
    m->policy = renyi_conversation_policy(m->talk);
    return CLI_OK;
}

void vqa_model_close(vqa_model *m)
{
    renyi_conversation_free(m->talk);
    renyi_conversation_free(m->blind);
    renyi_lvlm_free(m->weights);
    free(m->name);
    free(m->condition);
    *m = (vqa_model){0};
}
