/* cmd_ask.c - renyi ask: the command line; questions about images, answered by a LLaVA model, and
 * texts that a plain Llama continues.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/llava/ask_job.h"
#include "cli/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- one image, one question --------------------------------------------------------------- */

static renyi_status show_bytes(void *user, const unsigned char *bytes, size_t size,
                               renyi_error *err)
{
    return renyi_conversation_show_bytes(user, bytes, size, err);
}

/* Returns what llava_take_image does. */
static int show_image(ask_job *job, image_inputs *inputs, const char *path)
{
    const int code = llava_take_image(inputs, path, show_bytes, job->conversation);

    if (code > 0) ask_put_failure(job, path, inputs->reasons.items[inputs->reasons.count - 1]);
    return code;
}

/* question NULL: asks with the ids of --prompt-ids. 0, or -1 after reporting. */
static int ask_question(const ask_job *job, const char *file, const char *question)
{
    const ask_arguments *a = job->a;
    ask_output output = {job, file, question, 0};
    const renyi_answer_options o = {.struct_size = sizeof o,
                                    .max_new_tokens = (uint32_t)a->sampling.max_new_tokens,
                                    .temperature = a->sampling.temperature.values[0],
                                    .top_p = a->sampling.top_p.values[0],
                                    .seed = a->sampling.seed,
                                    .ignore_eos = a->ignore_eos != 0,
                                    .on_text = ask_on_text,
                                    .user = &output};
    renyi_answer answer;
    renyi_error err = {0};
    const renyi_status st =
        question
            ? renyi_conversation_ask(job->conversation, question, &o, &answer, &err)
            : renyi_conversation_ask_ids(job->conversation, a->ids, a->n_ids, &o, &answer, &err);

    if (st != RENYI_OK) {
        if (output.is_begun) putchar('\n');
        cli_fail(&err);
        return -1;
    }
    ask_put_answer(&output, &answer);
    return 0;
}

/* ---- images -------------------------------------------------------------------------------- */

/* Asks about the images one by one, or without an image. Returns an exit code. */
static int ask_images(ask_job *job, image_inputs *inputs)
{
    size_t n_answers = 0;

    if (!inputs->paths.count && !inputs->n_failed)
        return ask_question(job, NULL, job->a->question) ? CLI_FAILED : CLI_OK;
    for (size_t i = 0; i < inputs->paths.count; i++) {
        const char *path = inputs->paths.items[i];
        const int code = show_image(job, inputs, path);
        if (code < 0) return CLI_FAILED;
        if (code > 0) continue;
        if (ask_question(job, path, job->a->question)) return CLI_FAILED;
        n_answers++;
    }
    if (!n_answers) return CLI_FAILED;
    return inputs->n_failed ? CLI_PARTIAL : CLI_OK;
}

/* ---- questions from stdin ------------------------------------------------------------------ */

/* The next line without its line end; 0 at an empty line or at the end. */
static int read_question(char **line, size_t *capacity)
{
    if (isatty(STDIN_FILENO) && !cli_is_quiet()) fputs("> ", stderr);
    const ssize_t n = getline(line, capacity, stdin);
    if (n <= 0) return 0;
    (*line)[strcspn(*line, "\r\n")] = 0;
    return **line != 0;
}

/* Questions from stdin about one image, or texts for a plain Llama. A question that fails is
 * reported, and the others go on. Returns an exit code. */
static int ask_chat(ask_job *job, image_inputs *inputs)
{
    const char *path = inputs->paths.count ? inputs->paths.items[0] : NULL; /* NULL: plain Llama */
    char *line = NULL;
    size_t capacity = 0, n_failed = 0, n_answers = 0;

    if (path && show_image(job, inputs, path)) return CLI_FAILED;
    if (job->a->question) {
        if (ask_question(job, path, job->a->question)) return CLI_FAILED;
        n_answers++;
    }
    while (read_question(&line, &capacity)) {
        if (ask_question(job, path, line))
            n_failed++;
        else
            n_answers++;
    }
    free(line);
    if (ferror(stdin)) {
        cli_error("cannot read questions: %s", strerror(errno));
        return CLI_FAILED;
    }
    if (n_failed) return n_answers ? CLI_PARTIAL : CLI_FAILED;
    return CLI_OK;
}

/* ---- run ----------------------------------------------------------------------------------- */

/* Prompt ids without the image token would ignore the image. */
static int check_place(const ask_job *job)
{
    const ask_arguments *a = job->a;
    const renyi_lm_tokenizer *tokenizer = renyi_lvlm_tokenizer(job->m);
    renyi_lm_tokenizer_info info = {.image = -1};

    if (!a->prompt_ids || !job->n_images) return CLI_OK;
    if (tokenizer) renyi_lm_tokenizer_get_info(tokenizer, &info);
    for (size_t i = 0; i < a->n_ids; i++) {
        const int32_t id = a->ids[i];
        if (id == RENYI_LVLM_IMAGE) return CLI_OK;
        if (id >= 0 && (id == job->lm.image || id == info.image)) return CLI_OK;
    }
    return options_usage_error("ask", "option '--prompt-ids': no image token, id %d",
                               job->lm.image >= 0 ? (int)job->lm.image : RENYI_LVLM_IMAGE);
}

static int run_model(ask_job *job, image_inputs *inputs)
{
    const ask_arguments *a = job->a;
    const renyi_conversation_options o = {.struct_size = sizeof o,
                                          .n_threads = (uint32_t)a->llava.threads,
                                          .max_context = (uint32_t)a->max_context,
                                          .policy = a->llava.policy};
    renyi_error err = {0};

    if (!a->prompt_ids && llava_check_tokenizer(job->m, &a->llava) != CLI_OK) return CLI_FAILED;
    if (!a->is_plain) renyi_visual_get_info(renyi_lvlm_visual(job->m), &job->visual);
    renyi_lm_get_info(renyi_lvlm_lm(job->m), &job->lm);
    if (check_place(job) != CLI_OK) return CLI_USAGE;
    if (renyi_conversation_new(&job->conversation, job->m, &o, &err) != RENYI_OK)
        return prune_error("ask", a->llava.policy, &err);
    const char *policy = renyi_conversation_policy(job->conversation);
    if (strcmp(policy, "none") != 0) cli_note("policy: %s", policy);
    const int code = a->chat ? ask_chat(job, inputs) : ask_images(job, inputs);
    renyi_conversation_free(job->conversation);
    return code;
}

static int run_ask(const ask_arguments *a, const cli_strings *images)
{
    image_inputs inputs;
    int code = CLI_FAILED;

    image_inputs_collect(&inputs, images, NULL, 0);
    if (a->chat && inputs.paths.count > 1) {
        code = options_usage_error("ask", "--chat takes one image, %zu given", inputs.paths.count);
    } else if (inputs.paths.count || !inputs.n_failed) {
        renyi_lvlm *m = llava_open_reported(&a->llava);
        ask_job job = {.a = a, .m = m, .n_images = inputs.paths.count};
        if (m) code = run_model(&job, &inputs);
        renyi_lvlm_free(m);
    }
    image_inputs_free(&inputs);
    return code;
}

/* ---- command line -------------------------------------------------------------------------- */

/* "1 319 -200 ...", separated by blanks or commas. */
static int parse_ids(ask_arguments *a)
{
    const char *at = a->prompt_ids + strspn(a->prompt_ids, " ,\t\n");

    a->ids = cli_alloc(strlen(at) / 2 + 1, sizeof *a->ids);
    while (*at) {
        char *end;
        errno = 0;
        const long id = strtol(at, &end, 10);
        if (end == at || (*end && !strchr(" ,\t\n", *end)) || errno || id < INT32_MIN ||
            id > INT32_MAX)
            return options_usage_error("ask", "option '--prompt-ids': '%.20s' is not an id", at);
        a->ids[a->n_ids++] = (int32_t)id;
        at = end + strspn(end, " ,\t\n");
    }
    if (!a->n_ids) return options_usage_error("ask", "option '--prompt-ids': no ids");
    return CLI_OK;
}

/* Whether the model is a plain Llama, by the names of its tensors. What cannot be opened is
 * reported later. */
static int is_plain_llama(const char *model)
{
    char *path = model_path_find(model);
    renyi_lm_info info = {0};

    const int is_plain =
        path && renyi_lm_describe(path, NULL, &info, NULL) == RENYI_OK && !info.is_llava;
    free(path);
    return is_plain;
}

/* One text would be enough for a plain Llama, and a model that cannot be opened may be one. */
static int fail_without_image(const ask_arguments *a, const char *text)
{
    renyi_lm_info info;
    renyi_error err = {0};
    renyi_status status = RENYI_OK;

    if (!a->llava.tower && !a->llava.mmproj) {
        char *path = model_path_resolve(a->llava.model);
        if (!path) return CLI_FAILED;
        status = renyi_lm_describe(path, NULL, &info, &err);
        free(path);
    }
    if (status != RENYI_OK) return cli_fail(&err);
    return options_usage_error("ask", "an image and a question are needed; only '%.60s' is given",
                               text);
}

/* The last argument is the question, unless it comes from --prompt-ids or stdin. A plain Llama has
 * no other arguments. */
static int take_question(ask_arguments *a, cli_strings *arguments)
{
    const size_t n = arguments->count, n_texts = a->is_plain && !a->prompt_ids;

    if (a->prompt_ids && a->chat)
        return options_usage_error("ask", "--prompt-ids or --chat, not both");
    if (a->is_plain && n > n_texts)
        return options_usage_error(
            "ask",
            "%s is a plain Llama: it has no image tower and takes no images; "
            "give %s, or --mmproj FILE with tower and projector",
            a->llava.model, n_texts ? "one text, in quotes" : "only ids");
    if (a->prompt_ids) return parse_ids(a);
    if (!n && a->is_plain && a->chat) return CLI_OK;
    if (!n)
        return options_usage_error("ask", a->is_plain ? "no text given"
                                          : a->chat   ? "no image given"
                                                      : "no image and no question given");
    if (a->chat && n == 1 && !a->is_plain) return CLI_OK;
    if (n == 1 && !a->is_plain) return fail_without_image(a, arguments->items[0]);
    if (!*arguments->items[n - 1]) return options_usage_error("ask", "the question is empty");
    a->question = arguments->items[n - 1];
    arguments->count--; /* cmd_ask still frees it */
    return CLI_OK;
}

static int check_arguments(ask_arguments *a, cli_strings *arguments)
{
    const int code = llava_check_arguments("ask", &a->llava);

    if (code != CLI_OK) return code;
    if (llava_check_sampling("ask", &a->sampling) != CLI_OK) return CLI_USAGE;
    a->is_plain = !a->llava.tower && !a->llava.mmproj && is_plain_llama(a->llava.model);
    const int question = take_question(a, arguments);
    if (question != CLI_OK) return question;
    for (size_t i = 0; a->chat && i < arguments->count; i++)
        if (strcmp(arguments->items[i], "-") == 0)
            return options_usage_error("ask", "--chat reads questions from stdin, not an image");
    return CLI_OK;
}

static option_outcome parse_options(ask_arguments *a, int argc, char **argv, cli_strings *arguments)
{
    const option table[] = {
        LLAVA_MODEL_ROWS(&a->llava),
        LLAVA_LANGUAGE_ROWS(&a->llava),
        SAMPLING_ROWS(&a->sampling, "512"),
        {"prompt-ids", 0, OPTION_STRING, &a->prompt_ids, "IDS",
         "the prompt as token ids, image token included, instead of a question", 0, 0},
        {"chat", 0, OPTION_FLAG, &a->chat, "",
         "questions from stdin, one per line, until an empty line", 0, 0},
        {"max-context", 0, OPTION_COUNT, &a->max_context, "N",
         "at most N tokens of prompt and answers together (the model's)", 1, 1u << 24},
        {"ignore-eos", 0, OPTION_FLAG, &a->ignore_eos, "",
         "do not stop before --max-new-tokens, for measuring", 0, 0},
        {"json", 0, OPTION_FLAG, &a->json, "", "one line of JSON for each answer", 0, 0},
        {"stats", 0, OPTION_FLAG, &a->stats, "", "print tokens, times and memory on stderr", 0, 0},
    };
    const verb_syntax syntax = {
        "ask", "-m LLAVA IMAGES... QUESTION [options]\n       renyi ask -m LLAMA TEXT [options]",
        "Answers a question about each image with a LLaVA (1.5 or 1.6): CLIP tower, pruned visual tokens,\n"
        "language model. The answer is printed while it is generated. --prune 'prumerge tokens=192 metric=col'\n"
        "keeps 192 of the 576 visual tokens; other rules prune inside the tower. With --chat image, questions\n"
        "and answers stay in the context. Images that cannot be read are reported, and the exit code is 3.\n"
        "A plain Llama takes no image: it continues the text as it is, without a template.",
        "  renyi ask -m llava-hf/llava-1.5-7b-hf image.jpg 'What is on the plate?'\n"
        "  renyi ask -m llava --prune 'vispruner tokens=128' --stats *.jpg 'Is there a dog?'\n"
        "  renyi ask -m llava --chat image.jpg\n"
        "  renyi ask -m llava --prompt-ids '1 3148 1001 29901 32000 13 5618 338 445 29973' --json image.jpg\n"
        "  renyi ask -m vicuna.gguf --mmproj mmproj.gguf image.jpg 'What is this?'\n"
        "  renyi ask -m stories260K --max-new-tokens 40 'Once upon a time'\n"
        "  renyi ask -m llava --temperature 0.7 --top-p 0.9 --seed 7 image.jpg 'Write a poem about this.'\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, arguments);
}

int cmd_ask(int argc, char **argv)
{
    ask_arguments a = {.sampling = SAMPLING_DEFAULTS};
    cli_strings arguments = {0};
    const option_outcome outcome = parse_options(&a, argc, argv, &arguments);
    const size_t n_words = arguments.count;
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && (code = check_arguments(&a, &arguments)) == CLI_OK)
        code = run_ask(&a, &arguments);
    arguments.count = n_words;
    llava_arguments_free(&a.llava);
    cli_strings_free(&arguments);
    free(a.ids);
    return code;
}
