/* vqa_model.c - asks a LLaVA the questions of benchmarks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/llava/vqa_model.h"

#include "cli/kit/cli_ranks.h"
#include "cli/kit/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int on_prefill(void *user, uint64_t done, uint64_t total)
{
    (void)user, (void)done, (void)total;
    return was_interrupted();
}

static int on_answer(void *user, const char *text, size_t size)
{
    (void)user, (void)text, (void)size;
    return was_interrupted();
}

static renyi_status open_conversation(const vqa_model *m, renyi_conversation **out,
                                      const char *policy, renyi_error *err)
{
    const renyi_conversation_options o = {.struct_size = sizeof o,
                                          .n_threads = ranks_threads(m->llava->threads),
                                          .policy = policy,
                                          .progress = on_prefill};
    return renyi_conversation_new(out, m->weights, &o, err);
}

/* Adds the image's name to an error message without it. */
static renyi_status name_image(const renyi_vqa_request *request, renyi_status st, renyi_error *err)
{
    char message[sizeof err->message];

    if (st == RENYI_OK || strstr(err->message, request->name)) return st;
    snprintf(message, sizeof message, "%s", err->message);
    snprintf(err->message, sizeof err->message, "%.200s: %.280s", request->name, message);
    return st;
}

/* The conversation for a question: it has the image and no text yet. */
static renyi_status begin_question(vqa_model *m, const renyi_vqa_request *request,
                                   renyi_conversation **out, renyi_error *err)
{
    renyi_status st = RENYI_OK;

    if (!request->bytes) {
        m->is_shown = m->is_new = 0;
        if (!m->blind) st = open_conversation(m, &m->blind, "none", err);
        *out = m->blind;
    } else {
        *out = m->conversation;
        if (!request->is_same_photo || !m->is_shown) {
            st = name_image(
                request,
                renyi_conversation_show_bytes(m->conversation, request->bytes, request->size, err),
                err);
            m->is_shown = m->is_new = st == RENYI_OK;
        }
    }
    if (st == RENYI_OK) renyi_conversation_restart(*out);
    return st;
}

/* Times are comparable only if nothing of the image was computed for an earlier question. */
static renyi_status take_cost(vqa_model *m, const renyi_conversation *conversation,
                              const renyi_answer *answer, renyi_error *err)
{
    const double tera = 2e-12; /* FLOPs of a multiply-accumulate, in 1e12 */
    renyi_prompt_cost c;

    const renyi_status st = renyi_conversation_get_cost(conversation, &c, err);
    if (st != RENYI_OK) return st;
    const int is_new = m->is_new && answer->n_visual;
    m->is_new = 0;
    m->cost = (renyi_vqa_cost){.layer_tokens = c.visual_tokens,
                               .tower_tflops = tera * c.tower_macs,
                               .projector_tflops = tera * c.projector_macs,
                               .lm_tflops = tera * c.lm_macs,
                               .cache_bytes = (double)c.cache_bytes,
                               .first_token_ms = is_new ? answer->first_token_ms : NAN,
                               .choice_ms = is_new ? c.choice_ms : NAN};
    return RENYI_OK;
}

renyi_status vqa_model_ask(void *user, const renyi_vqa_request *request, renyi_vqa_reply *reply,
                           renyi_error *err)
{
    vqa_model *m = user;
    const sampling_arguments *s = m->sampling;
    const renyi_answer_options o = {.struct_size = sizeof o,
                                    .max_new_tokens = (uint32_t)m->max_new_tokens,
                                    .temperature = s->temperature.values[0],
                                    .top_p = s->top_p.values[0],
                                    .seed = s->seed,
                                    .on_text = on_answer};
    const double start = cli_now_ms();
    renyi_conversation *conversation;
    renyi_answer answer;

    renyi_status st = begin_question(m, request, &conversation, err);
    if (st == RENYI_OK)
        st = renyi_conversation_ask(conversation, request->question->text, &o, &answer, err);
    if (st != RENYI_OK) return st;
    if (answer.end == RENYI_ANSWER_STOPPED) { /* a part of an answer does not count */
        snprintf(err->message, sizeof err->message, "interrupted");
        return err->code = RENYI_ERR_ABORTED;
    }
    st = take_cost(m, conversation, &answer, err);
    if (st != RENYI_OK) return st;
    *reply = (renyi_vqa_reply){.text = answer.text,
                               .n_visual = answer.n_visual,
                               .n_tokens = answer.n_ids,
                               .ms = cli_now_ms() - start,
                               .cost = &m->cost};
    return RENYI_OK;
}

int vqa_model_open(vqa_model *m, const char *verb, const llava_arguments *llava,
                   const sampling_arguments *sampling)
{
    *m = (vqa_model){.llava = llava, .sampling = sampling};
    m->weights = llava_open_reported(llava);
    if (!m->weights) return CLI_FAILED;
    if (llava_check_tokenizer(m->weights, llava) != CLI_OK) return CLI_FAILED;
    if (!renyi_lvlm_visual(m->weights)) {
        cli_error("%s: a plain Llama without an image tower; %s needs a LLaVA", llava->model, verb);
        return CLI_FAILED;
    }
    m->name = model_path_title(llava->model);
    return CLI_OK;
}

char *vqa_model_condition(const vqa_model *m)
{
    renyi_lm_info lm;
    renyi_visual_info visual;

    renyi_lm_get_info(renyi_lvlm_lm(m->weights), &lm);
    renyi_visual_get_info(renyi_lvlm_visual(m->weights), &visual);
    return cli_format("%s %s tokens %llu temperature %g top-p %g seed %llu",
                      renyi_dtype_name(lm.dtype), renyi_dtype_name(visual.dtype),
                      (unsigned long long)m->max_new_tokens, m->sampling->temperature.values[0],
                      m->sampling->top_p.values[0], (unsigned long long)m->sampling->seed);
}

int vqa_model_choose_policy(vqa_model *m, const char *verb, const char *policy)
{
    renyi_error err = {0};

    renyi_conversation_free(m->conversation);
    m->conversation = NULL;
    m->is_shown = 0;
    if (open_conversation(m, &m->conversation, policy, &err) != RENYI_OK)
        return prune_error(verb, policy, &err);
    m->policy = renyi_conversation_policy(m->conversation);
    return CLI_OK;
}

void vqa_model_close(vqa_model *m)
{
    renyi_conversation_free(m->conversation);
    renyi_conversation_free(m->blind);
    renyi_lvlm_free(m->weights);
    free(m->name);
    *m = (vqa_model){0};
}
