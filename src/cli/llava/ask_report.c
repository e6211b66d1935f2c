/* ask_report.c - the answers of renyi ask: text as it comes, or JSON; statistics on stderr.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/output.h"
#include "cli/llava/ask_job.h"

#include <stdlib.h>
#include <string.h>

/* ---- text ---------------------------------------------------------------------------------- */

static void begin_answer(ask_output *o)
{
    if (!o->is_begun && o->job->n_images > 1) {
        cli_put_clean(stdout, o->file);
        fputs(": ", stdout);
    }
    o->is_begun = 1;
}

/* Returns 1, which ends the answer, if stdout is closed. */
int ask_on_text(void *user, const char *text, size_t size)
{
    ask_output *o = user;

    if (o->job->a->json) return 0;
    begin_answer(o);
    cli_put_clean_lines(stdout, text, size); /* a piece never splits a character */
    fflush(stdout);
    return ferror(stdout);
}

/* Without a tokenizer there are only ids. */
static void put_ids(const renyi_answer *answer)
{
    for (uint32_t i = 0; i < answer->n_ids; i++) printf("%s%d", i ? " " : "", (int)answer->ids[i]);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static const char *end_name(renyi_answer_end end)
{
    static const char *const names[] = {"eos", "length", "context", "stopped"};
    return names[end];
}

static json_t *ids_json(const renyi_answer *answer)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < answer->n_ids; i++)
        json_array_append_new(list, json_integer(answer->ids[i]));
    return list;
}

/* Of a policy inside the language model: the patches that each cut keeps, and the scores of those
 * that arrived. */
static json_t *cuts_json(const renyi_answer *answer)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < answer->n_cuts; i++) {
        const renyi_lm_cut *cut = &answer->cuts[i];
        uint32_t *kept = cli_alloc(cut->n_kept, sizeof *kept);
        for (uint32_t k = 0; k < cut->n_kept; k++)
            kept[k] = cut->kept[k] == RENYI_NONE ? RENYI_NONE : answer->kept[cut->kept[k]];
        json_t *scores = cut->scores ? json_array() : json_null();
        for (uint32_t k = 0; cut->scores && k < cut->n_in; k++)
            json_array_append_new(scores, json_number(cut->scores[k]));
        json_array_append_new(
            list, json_pack("{s:i, s:i, s:i, s:o, s:o}", "layer", (int)cut->layer, "tokens_in",
                            (int)cut->n_in, "tokens_out", (int)cut->n_kept, "kept",
                            llava_kept_json(kept, cut->n_kept), "scores", scores));
        free(kept);
    }
    return list;
}

/* As renyi vqa has them. */
static json_t *cost_json(const renyi_conversation *c)
{
    renyi_prompt_cost cost = {0};

    if (renyi_conversation_get_cost(c, &cost, NULL) != RENYI_OK) return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:I}", "layer_tokens", json_number(cost.visual_tokens),
                     "tower_tflops", json_number(2e-12 * cost.tower_macs), "projector_tflops",
                     json_number(2e-12 * cost.projector_macs), "lm_tflops",
                     json_number(2e-12 * cost.lm_macs), "cache_bytes",
                     (json_int_t)cost.cache_bytes);
}

static json_t *answer_json(const ask_output *o, const renyi_answer *r)
{
    const ask_arguments *a = o->job->a;
    json_t *line = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:s, s:i, s:o, s:i, s:i, s:o, s:o, s:o, s:o}", "file",
        json_text(o->file), "question", json_text(o->question), "text", json_text(r->text),
        "tokens", ids_json(r), "policy", json_text(renyi_conversation_policy(o->job->conversation)),
        "end", end_name(r->end), "visual_tokens", (int)r->n_visual, "kept",
        llava_kept_json(r->kept, r->n_visual), "prompt_tokens", (int)r->n_prompt, "reused_tokens",
        (int)r->n_reused, "vision_ms", json_number(r->vision_ms), "prefill_ms",
        json_number(r->prefill_ms), "first_token_ms", json_number(r->first_token_ms),
        "decode_tokens_per_second",
        r->tokens_per_second > 0.0 ? json_number(r->tokens_per_second) : json_null());

    if (!line) return NULL;
    json_object_set_new(line, "cuts", cuts_json(r));
    json_object_set_new(line, "cost", cost_json(o->job->conversation));
    json_object_update_new(
        line,
        json_pack("{s:o, s:s, s:s?, s:s, s:o, s:o, s:I, s:o, s:o}", "model",
                  json_text(a->llava.model), "dtype", renyi_dtype_name(o->job->lm.dtype),
                  "tower_dtype", a->is_plain ? NULL : renyi_dtype_name(o->job->visual.dtype),
                  "cpu_level", renyi_cpu_name(o->job->lm.cpu), "temperature",
                  json_number(a->sampling.temperature.values[0]), "top_p",
                  json_number(a->sampling.top_p.values[0]), "seed", (json_int_t)a->sampling.seed,
                  "memory_bytes", json_integer((json_int_t)r->bytes), "peak_rss_mb",
                  json_number(cli_peak_rss_bytes() * 1e-6)));
    return line;
}

/* One document per line, flushed at once. */
static void put_line(json_t *line)
{
    json_print_line(line);
    fflush(stdout);
}

void ask_put_failure(const ask_job *job, const char *file, const char *reason)
{
    if (job->a->json)
        put_line(json_pack("{s:o, s:o}", "file", json_text(file), "error", json_text(reason)));
}

/* ---- statistics -------------------------------------------------------------------------- */

static void put_cost(const ask_output *o, const renyi_answer *r)
{
    renyi_prompt_cost cost;

    if (renyi_conversation_get_cost(o->job->conversation, &cost, NULL) != RENYI_OK) return;
    for (uint32_t i = 0; i < r->n_cuts; i++)
        cli_note("layer %u: %u of %u visual tokens kept", r->cuts[i].layer, r->cuts[i].n_kept,
                 r->cuts[i].n_in);
    cli_note("whole prompt: %.1f visual tokens in a layer on average, %.4g TFLOPs in the language "
             "model, %.1f MB of keys and values",
             cost.visual_tokens, 2e-12 * cost.lm_macs, (double)cost.cache_bytes * 1e-6);
}

/* "13.02 GB", "6.4 MB" */
static const char *memory_text(char out[32], double bytes)
{
    if (bytes < 1e9)
        snprintf(out, 32, "%.1f MB", bytes * 1e-6);
    else
        snprintf(out, 32, "%.2f GB", bytes * 1e-9);
    return out;
}

static void put_stats(const ask_output *o, const renyi_answer *r)
{
    char speed[48] = "", vision[48] = "", own[32], peak[32];

    if (r->tokens_per_second > 0.0)
        snprintf(speed, sizeof speed, ", then %.2f tokens/s", r->tokens_per_second);
    if (!o->job->a->is_plain)
        cli_note("%u of %u visual tokens kept", r->n_visual, r->n_visual_full);
    if (!o->job->a->is_plain) put_cost(o, r);
    cli_note("prompt of %u tokens, %u of them reused; answer of %u token%s", r->n_prompt,
             r->n_reused, r->n_ids, r->n_ids == 1 ? "" : "s");
    if (!o->job->a->is_plain) snprintf(vision, sizeof vision, "vision %.1f ms, ", r->vision_ms);
    cli_note("%sprefill %.1f ms, first token after %.1f ms%s", vision, r->prefill_ms,
             r->first_token_ms, speed);
    cli_note("memory: %s of weights and conversation (with a full context), peak of the process %s",
             memory_text(own, (double)r->bytes), memory_text(peak, cli_peak_rss_bytes()));
}

static void warn_if_cut(const ask_output *o, const renyi_answer *r)
{
    if (r->end == RENYI_ANSWER_LENGTH && !o->job->a->ignore_eos)
        cli_note("the answer was cut after %u token%s (--max-new-tokens)", r->n_ids,
                 r->n_ids == 1 ? "" : "s");
    if (r->end == RENYI_ANSWER_CONTEXT)
        cli_warn("the answer was cut after %u token%s: prompt and answer fill the context",
                 r->n_ids, r->n_ids == 1 ? "" : "s");
}

void ask_put_answer(ask_output *o, const renyi_answer *answer)
{
    if (o->job->a->json) {
        put_line(answer_json(o, answer));
    } else {
        begin_answer(o);
        if (!renyi_lvlm_tokenizer(o->job->m)) put_ids(answer);
        putchar('\n');
        fflush(stdout);
    }
    warn_if_cut(o, answer);
    if (o->job->a->stats) put_stats(o, answer);
}
