/* text_side.c - see text_side.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/shared/text_side.h"

#include "cli/kit/progress.h"
#include "cli/shared/model_path.h"

#include <stdlib.h>

static int fail(const renyi_error *err, const char *advice)
{
    cli_error("%s%s", err->message[0] ? err->message : renyi_status_name(err->code), advice);
    return -1;
}

int text_side_open(text_side *out, const char *model, const text_arguments *t,
                   const renyi_options *opt)
{
    char *path = model_path_resolve(model);
    renyi_error err = {0};
    int code = path ? 0 : -1;

    *out = (text_side){0};
    if (!code && renyi_text_open(&out->text, path, opt, &err) != RENYI_OK) code = fail(&err, "");
    if (!code && renyi_tokenizer_open(&out->tokenizer, t->tokenizer ? t->tokenizer : path, opt,
                                      &err) != RENYI_OK)
        code = fail(&err, t->tokenizer ? "" : " with --tokenizer FILE");
    if (!code) renyi_text_get_info(out->text, &out->info);
    free(path);
    return code;
}

void text_side_free(text_side *t)
{
    renyi_tokenizer_free(t->tokenizer);
    renyi_text_free(t->text);
}

int text_side_embed(const text_side *t, const cli_strings *texts, int truncate, uint32_t n_threads,
                    float *rows)
{
    work_progress progress = {.title = "texts"};
    const renyi_text_session_options o = {.struct_size = sizeof o,
                                          .n_threads = n_threads,
                                          .progress = work_on_progress,
                                          .progress_user = &progress};
    renyi_text_session *session = NULL;
    renyi_error err = {0};
    renyi_status st = renyi_text_session_new(&session, t->text, &o, &err);

    if (st == RENYI_OK)
        st = renyi_embed_texts(session, t->tokenizer, (const char *const *)texts->items,
                               (uint32_t)texts->count, truncate, rows, &err);
    work_progress_free(&progress);
    renyi_text_session_free(session);
    return st == RENYI_OK ? 0 : fail(&err, "");
}
