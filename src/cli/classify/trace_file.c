/* trace_file.c - writes what each cut did to each image, one JSON line per image.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/classify/classify.h"
#include "cli/kit/output.h"

#include <stdlib.h>
#include <string.h>

int trace_open(trace_file *t, const char *path, const renyi_model_info *info)
{
    renyi_error err = {0};

    *t = (trace_file){NULL, info};
    if (renyi_output_file_open(&t->out, path, &err) == RENYI_OK) return 0;
    cli_fail(&err);
    return -1;
}

/* Position in the grid of patches; a fused token has none (null). */
static json_t *position_json(const renyi_cut *cut, uint32_t token)
{
    const int32_t position = token == RENYI_NONE ? RENYI_FUSED : cut->position[token];
    return position < 0 ? json_null() : json_integer(position);
}

static json_t *size_json(float size)
{
    const int whole = size >= 0.0f && size < 1e9f ? (int)size : -1;
    return (float)whole == size ? json_integer(whole) : json_number((double)size);
}

/* The tokens after the prefix that the cut leaves: positions, scores, sizes, in their order. */
static void add_kept(json_t *out, const renyi_cut *cut)
{
    json_t *kept = json_array(), *scores = json_array(), *sizes = json_array();

    for (uint32_t row = cut->n_prefix; row < cut->n_out; row++) {
        const uint32_t token = cut->source[row];
        json_array_append_new(kept, position_json(cut, token));
        json_array_append_new(scores, token == RENYI_NONE ? json_null()
                                                          : json_number((double)cut->score[token]));
        json_array_append_new(sizes, size_json(cut->size[row]));
    }
    json_object_set_new(out, "kept", kept);
    json_object_set_new(out, "scores", scores);
    json_object_set_new(out, "sizes", sizes);
}

/* The tokens that lost their row, each in the list of the reason. */
static void add_removed(json_t *out, const renyi_cut *cut)
{
    json_t *rescued = json_array(), *dropped = json_array(), *fused = json_array(),
           *merged = json_array();

    for (uint32_t token = cut->n_prefix; token < cut->n_in; token++) {
        const uint32_t row = cut->target[token];
        const uint32_t owner = row == RENYI_NONE ? RENYI_NONE : cut->source[row];
        if (cut->rescued[token]) json_array_append_new(rescued, position_json(cut, token));
        if (row == RENYI_NONE)
            json_array_append_new(dropped, position_json(cut, token));
        else if (owner == RENYI_NONE)
            json_array_append_new(fused, position_json(cut, token));
        else if (owner != token)
            json_array_append_new(
                merged, json_pack("[o, o]", position_json(cut, token), position_json(cut, owner)));
    }
    json_object_set_new(out, "rescued", rescued);
    json_object_set_new(out, "dropped", dropped);
    json_object_set_new(out, "fused", fused);
    json_object_set_new(out, "merged", merged);
}

static json_t *cut_json(const renyi_cut *cut)
{
    json_t *out = json_pack("{s:i, s:i, s:i}", "layer", (int)cut->block, "tokens_in",
                            (int)cut->n_in, "tokens_out", (int)cut->n_out);
    add_kept(out, cut);
    add_removed(out, cut);
    return out;
}

/* Tokens that enter blocks `from` to `until`; one block after the last, those that leave it. */
static void add_counts(json_t *counts, uint32_t from, uint32_t until, uint32_t count)
{
    for (; from <= until; from++) json_array_append_new(counts, json_integer(count));
}

json_t *trace_json(const renyi_model_info *info, const renyi_session *session, uint32_t image,
                   renyi_error *err)
{
    json_t *tokens = json_array(), *cuts = json_array();
    uint32_t count = info->n_prefix + info->n_patches, next = 0;

    for (size_t i = 0; i < renyi_session_cut_count(session); i++) {
        renyi_cut cut;
        if (renyi_session_cut(session, image, i, &cut, err) != RENYI_OK) {
            json_decref(tokens);
            json_decref(cuts);
            return NULL;
        }
        add_counts(tokens, next, cut.block, count);
        count = cut.n_out;
        next = cut.block + 1;
        json_array_append_new(cuts, cut_json(&cut));
    }
    add_counts(tokens, next, info->n_blocks, count);
    return json_pack("{s:s, s:o, s:o}", "policy", renyi_session_policy(session), "tokens", tokens,
                     "cuts", cuts);
}

int trace_image(trace_file *t, const char *file, const renyi_session *session, uint32_t image)
{
    renyi_error err = {.code = RENYI_ERR_NOMEM};
    json_t *line = json_pack("{s:o}", "file", json_text(file));
    json_t *trace = trace_json(t->info, session, image, &err);
    if (json_object_update_new(line, trace)) {
        json_decref(line);
        line = NULL;
    }
    char *text = line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    renyi_status st = text ? RENYI_OK : err.code;

    json_decref(line);
    if (st == RENYI_OK) {
        const size_t n = strlen(text);
        text[n] = '\n'; /* instead of the NUL */
        st = renyi_output_file_write(t->out, text, n + 1, &err);
    }
    free(text);
    if (st != RENYI_OK) cli_fail(&err);
    return st == RENYI_OK ? 0 : -1;
}

int trace_close(trace_file *t, int is_complete)
{
    renyi_error err = {0};
    renyi_output_file *out = t->out;

    t->out = NULL;
    if (renyi_output_file_close(out, is_complete, &err) == RENYI_OK) return 0;
    cli_fail(&err);
    return -1;
}
