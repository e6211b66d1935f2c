/* ask_job.c - photos, questions, answers: the work of renyi ask.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/llava/ask_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *reason_of(const renyi_error *err)
{
    return err->message[0] ? err->message : renyi_status_name(err->code);
}

/* ---- one photo, one question --------------------------------------------------------------- */

/* 0; 1 after reporting a photo that is to blame; -1 after reporting what ends the work. */
static int show(ask_job *job, image_inputs *inputs, const char *path)
{
    unsigned char *bytes = NULL;
    size_t size;
    char *why = NULL;
    renyi_error err = {0};
    renyi_status st = RENYI_ERR_IO;

    if (lvlm_read_photo(path, &bytes, &size, &why) == 0) {
        st = renyi_conversation_show_bytes(job->talk, bytes, size, &err);
        if (st != RENYI_OK) why = cli_copy(reason_of(&err));
    }
    free(bytes);
    if (st == RENYI_OK) return 0;
    const int is_photo = lvlm_is_photo_error(st);
    if (is_photo) {
        image_inputs_fail(inputs, path, why);
        ask_put_failure(job, path, why);
    } else {
        cli_error("%s: %s", path, why);
    }
    free(why);
    return is_photo ? 1 : -1;
}

/* question NULL: the ids of the command line. 0, or -1 after reporting. */
static int ask(const ask_job *job, const char *file, const char *question)
{
    const ask_arguments *a = job->a;
    ask_output output = {job, file, question, 0};
    const renyi_answer_options o = {.struct_size = sizeof o,
                                    .max_new_tokens = (uint32_t)a->max_new_tokens,
                                    .temperature = a->temperature.values[0],
                                    .top_p = a->top_p.values[0],
                                    .seed = a->seed,
                                    .ignore_eos = a->ignore_eos != 0,
                                    .on_text = ask_on_text,
                                    .user = &output};
    renyi_answer answer;
    renyi_error err = {0};
    const renyi_status st =
        question ? renyi_conversation_ask(job->talk, question, &o, &answer, &err)
                 : renyi_conversation_ask_ids(job->talk, a->ids, a->n_ids, &o, &answer, &err);

    if (st != RENYI_OK) {
        if (output.is_begun) putchar('\n');
        cli_error("%s", reason_of(&err));
        return -1;
    }
    ask_put_answer(&output, &answer);
    return 0;
}

/* ---- photos -------------------------------------------------------------------------------- */

int ask_photos(ask_job *job, image_inputs *inputs)
{
    size_t n_answers = 0;

    if (!inputs->paths.count && !inputs->n_failed)
        return ask(job, NULL, job->a->question) ? CLI_FAILED : CLI_OK;
    for (size_t i = 0; i < inputs->paths.count; i++) {
        const char *path = inputs->paths.items[i];
        const int code = show(job, inputs, path);
        if (code < 0) return CLI_FAILED;
        if (code > 0) continue;
        if (ask(job, path, job->a->question)) return CLI_FAILED;
        n_answers++;
    }
    if (!n_answers) return CLI_FAILED;
    return inputs->n_failed ? CLI_PARTIAL : CLI_OK;
}

/* ---- questions from stdin ------------------------------------------------------------------ */

/* The next line without its end; 0 at an empty one or when there are no more. */
static int read_question(char **line, size_t *room)
{
    if (isatty(STDIN_FILENO) && !cli_is_quiet()) fputs("> ", stderr);
    const ssize_t n = getline(line, room, stdin);
    if (n <= 0) return 0;
    (*line)[strcspn(*line, "\r\n")] = 0;
    return **line != 0;
}

/* A question that fails is named; the others go on. */
int ask_chat(ask_job *job, image_inputs *inputs)
{
    const char *path = inputs->paths.items[0];
    char *line = NULL;
    size_t room = 0, n_failed = 0, n_answers = 0;

    if (show(job, inputs, path)) return CLI_FAILED;
    if (job->a->question) {
        if (ask(job, path, job->a->question)) return CLI_FAILED;
        n_answers++;
    }
    while (read_question(&line, &room)) {
        if (ask(job, path, line))
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
