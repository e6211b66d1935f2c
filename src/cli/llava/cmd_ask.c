/* cmd_ask.c - renyi ask: questions about photos, answered by a LLaVA.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/llava/ask_job.h"
#include "cli/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- run ----------------------------------------------------------------------------------- */

/* A photo without a place in the prompt would be seen by nobody. */
static int check_place(const ask_job *job)
{
    const ask_arguments *a = job->a;
    const renyi_lm_tokenizer *tokenizer = renyi_lvlm_tokenizer(job->m);
    renyi_lm_tokenizer_info words = {.image = -1};

    if (!a->prompt_ids || !job->n_photos) return CLI_OK;
    if (tokenizer) renyi_lm_tokenizer_get_info(tokenizer, &words);
    for (size_t i = 0; i < a->n_ids; i++) {
        const int32_t id = a->ids[i];
        if (id == RENYI_LVLM_IMAGE) return CLI_OK;
        if (id >= 0 && (id == job->lm.image || id == words.image)) return CLI_OK;
    }
    return options_usage_error("ask", "option '--prompt-ids': no place for the photo, id %d",
                               job->lm.image >= 0 ? (int)job->lm.image : RENYI_LVLM_IMAGE);
}

static int run_with(ask_job *job, image_inputs *inputs)
{
    const ask_arguments *a = job->a;
    const renyi_conversation_options o = {.struct_size = sizeof o,
                                          .n_threads = (uint32_t)a->lvlm.threads,
                                          .max_context = (uint32_t)a->max_context,
                                          .policy = a->lvlm.policy};
    renyi_error err = {0};

    renyi_visual_get_info(renyi_lvlm_visual(job->m), &job->visual);
    renyi_lm_get_info(renyi_lvlm_lm(job->m), &job->lm);
    if (check_place(job) != CLI_OK) return CLI_USAGE;
    if (renyi_conversation_new(&job->talk, job->m, &o, &err) != RENYI_OK)
        return prune_error("ask", a->lvlm.policy, &err);
    const char *policy = renyi_conversation_policy(job->talk);
    if (strcmp(policy, "none") != 0) cli_note("policy: %s", policy);
    const int code = a->chat ? ask_chat(job, inputs) : ask_photos(job, inputs);
    renyi_conversation_free(job->talk);
    return code;
}

static int run(const ask_arguments *a, const cli_strings *photos)
{
    image_inputs inputs;
    int code = CLI_FAILED;

    image_inputs_collect(&inputs, photos, NULL, 0);
    if (a->chat && inputs.paths.count > 1) {
        code =
            options_usage_error("ask", "--chat is about one photo, %zu given", inputs.paths.count);
    } else if (inputs.paths.count || !inputs.n_failed) {
        renyi_lvlm *m = lvlm_open_reported(&a->lvlm);
        ask_job job = {.a = a, .m = m, .n_photos = inputs.paths.count};
        if (m) code = run_with(&job, &inputs);
        renyi_lvlm_free(m);
    }
    image_inputs_free(&inputs);
    return code;
}

/* ---- command line -------------------------------------------------------------------------- */

/* "1 319 -200 ...", blanks or commas between. */
static int read_ids(ask_arguments *a)
{
    const char *at = a->prompt_ids + strspn(a->prompt_ids, " ,\t\n");

    a->ids = cli_alloc(strlen(at) / 2 + 1, sizeof *a->ids);
    while (*at) {
        char *end;
        errno = 0;
        const long id = strtol(at, &end, 10);
        if (end == at || (*end && !strchr(" ,\t\n", *end)) || errno || id < INT32_MIN ||
            id > INT32_MAX)
            return options_usage_error("ask", "option '--prompt-ids': '%.20s' is no id", at);
        a->ids[a->n_ids++] = (int32_t)id;
        at = end + strspn(end, " ,\t\n");
    }
    if (!a->n_ids) return options_usage_error("ask", "option '--prompt-ids': no ids");
    return CLI_OK;
}

/* The last word is the question, unless it comes from elsewhere. */
static int take_question(ask_arguments *a, cli_strings *words)
{
    const size_t n = words->count;

    if (a->prompt_ids && a->chat)
        return options_usage_error("ask", "--prompt-ids or --chat, not both");
    if (a->prompt_ids) return read_ids(a);
    if (!n)
        return options_usage_error("ask",
                                   a->chat ? "no photo given" : "no photo and no question given");
    if (a->chat && n == 1) return CLI_OK;
    if (n == 1)
        return options_usage_error(
            "ask", "a photo and a question are wanted; only '%.60s' is given", words->items[0]);
    if (!*words->items[n - 1]) return options_usage_error("ask", "the question is empty");
    a->question = words->items[n - 1];
    words->count--; /* main still frees it */
    return CLI_OK;
}

static int check(ask_arguments *a, cli_strings *words)
{
    const int code = lvlm_arguments_check("ask", &a->lvlm);

    if (code != CLI_OK) return code;
    const double temperature = a->temperature.values[0], top_p = a->top_p.values[0];
    if (!(temperature >= 0.0 && temperature <= 1e6))
        return options_usage_error("ask", "option '--temperature': %g is not from 0 to 1e6",
                                   temperature);
    if (!(top_p > 0.0 && top_p <= 1.0))
        return options_usage_error("ask", "option '--top-p': %g is not above 0 and at most 1",
                                   top_p);
    const int question = take_question(a, words);
    if (question != CLI_OK) return question;
    for (size_t i = 0; a->chat && i < words->count; i++)
        if (strcmp(words->items[i], "-") == 0)
            return options_usage_error("ask", "--chat reads questions from stdin, not a photo");
    return CLI_OK;
}

static option_outcome parse(ask_arguments *a, int argc, char **argv, cli_strings *words)
{
    const option table[] = {
        LVLM_MODEL_ROWS(&a->lvlm),
        LVLM_LANGUAGE_ROWS(&a->lvlm),
        {"max-new-tokens", 0, OPTION_COUNT, &a->max_new_tokens, "N",
         "most tokens of an answer (512)", 1, 1u << 20},
        {"temperature", 0, OPTION_REAL, &a->temperature, "T",
         "how much chance there is in the choice of tokens (0: none)", 0, 0},
        {"top-p", 0, OPTION_REAL, &a->top_p, "P",
         "choose among the fewest that are so probable together (1)", 0, 0},
        {"seed", 's', OPTION_COUNT, &a->seed, "N", "of the chances (42)", 0, 0},
        {"prompt-ids", 0, OPTION_STRING, &a->prompt_ids, "IDS",
         "the prompt as token ids, image token included, instead of a question", 0, 0},
        {"chat", 0, OPTION_FLAG, &a->chat, "",
         "questions from stdin, one a line, until an empty one", 0, 0},
        {"max-context", 0, OPTION_COUNT, &a->max_context, "N",
         "most tokens of prompt and answers together (the model's)", 1, 1u << 24},
        {"ignore-eos", 0, OPTION_FLAG, &a->ignore_eos, "",
         "go on until --max-new-tokens, for measuring", 0, 0},
        {"json", 0, OPTION_FLAG, &a->json, "", "one JSON document a line for each answer", 0, 0},
        {"stats", 0, OPTION_FLAG, &a->stats, "", "say what it cost: tokens, times, memory", 0, 0},
    };
    const verb_syntax syntax = {
        "ask", "-m LLAVA PHOTOS... QUESTION [options]",
        "Answers a question about each photo with a LLaVA-1.5: CLIP tower, pruned visual tokens, language\n"
        "model. The answer appears as it is written. --prune 'prumerge tokens=192 metric=col' keeps 192 of\n"
        "the 576 visual tokens; other rules prune inside the tower. With --chat the photo and what was said\n"
        "stay in memory. Photos that cannot be read are named, the others go on, and the exit code is 3.",
        "  renyi ask -m llava-hf/llava-1.5-7b-hf photo.jpg 'What is on the plate?'\n"
        "  renyi ask -m llava --prune 'vispruner tokens=128' --stats *.jpg 'Is there a dog?'\n"
        "  renyi ask -m llava --chat photo.jpg\n"
        "  renyi ask -m llava --prompt-ids '1 3148 1001 29901 32000 13 5618 338 445 29973' --json photo.jpg\n"
        "  renyi ask -m llava --temperature 0.7 --top-p 0.9 --seed 7 photo.jpg 'Write a poem about this.'\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, words);
}

int cmd_ask(int argc, char **argv)
{
    ask_arguments a = {.seed = 42, .top_p = {.values = {1.0}}};
    cli_strings words = {0};
    const option_outcome outcome = parse(&a, argc, argv, &words);
    const size_t n_words = words.count;
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && (code = check(&a, &words)) == CLI_OK) code = run(&a, &words);
    words.count = n_words;
    lvlm_arguments_free(&a.lvlm);
    cli_strings_free(&words);
    free(a.ids);
    return code;
}
