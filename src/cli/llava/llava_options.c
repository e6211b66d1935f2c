/* llava_options.c - what verbs with a LLaVA model share: options, opening it, reading images.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/llava/llava_options.h"

#include "cli/kit/files.h"
#include "cli/kit/progress.h"

#include <stdlib.h>
#include <string.h>

int llava_check_arguments(const char *verb, llava_arguments *a)
{
    if (!a->model) return options_usage_error(verb, "-m LLAVA is missing");
    return prune_policy(verb, &a->prune, &a->policy);
}

int llava_check_sampling(const char *verb, const sampling_arguments *s)
{
    const double temperature = s->temperature.values[0], top_p = s->top_p.values[0];

    if (!(temperature >= 0.0 && temperature <= 1e6))
        return options_usage_error(verb, "option '--temperature': %g is not from 0 to 1e6",
                                   temperature);
    if (!(top_p > 0.0 && top_p <= 1.0))
        return options_usage_error(verb, "option '--top-p': %g is not above 0 and at most 1",
                                   top_p);
    return CLI_OK;
}

void llava_arguments_free(llava_arguments *a)
{
    prune_options_free(&a->prune);
    free(a->policy);
}

/* ---- opening ------------------------------------------------------------------------------- */

/* Weights are loaded in parts; each part counts from 0. */
typedef struct loading {
    progress_bar bar;
    uint64_t last;
    int is_on;
} loading;

static int on_loading(void *user, uint64_t done, uint64_t total)
{
    loading *l = user;

    if (l->is_on && done < l->last) progress_end(&l->bar);
    if (!l->is_on || done < l->last) progress_start(&l->bar, "loading", total, 1);
    l->is_on = 1;
    l->last = done;
    progress_update(&l->bar, done);
    return 0;
}

/* Weights of a GGUF have few bits already: what another format loses of them is not obvious. */
static void note_rounding(const renyi_lvlm *m)
{
    renyi_lm_info info;

    renyi_lm_get_info(renyi_lvlm_lm(m), &info);
    if (strcmp(info.layout, "gguf") != 0) return;
    const int is_int4 = info.dtype == RENYI_DTYPE_INT4, is_int8 = info.dtype == RENYI_DTYPE_INT8;
    const char *kept = is_int4 ? "Q4_0 is not; " : is_int8 ? "Q4_0 and Q8_0 are not; " : "";
    if (info.weight_error > 0.0)
        cli_note(
            "the file's weights are rounded to %s: rms error %.2g %% (%s--dtype f32 keeps all)",
            renyi_dtype_name(info.dtype), 100.0 * info.weight_error, kept);
    else if (is_int4 || is_int8)
        cli_note("the file's weights run as they are in %s; none is rounded",
                 is_int4 ? "Q4_0 (int4)" : "blocks of at most 8 bits (int8)");
}

renyi_lvlm *llava_open_reported(const llava_arguments *a)
{
    loading l = {0};
    renyi_lvlm_options opt = {.struct_size = sizeof opt,
                              .cpu = cpu_from_name(a->cpu),
                              .dtype = dtype_from_name(a->dtype),
                              .tower_dtype = dtype_from_name(a->tower_dtype),
                              .mmproj = a->mmproj,
                              .tower = a->tower,
                              .tokenizer = a->tokenizer,
                              .progress = on_loading,
                              .progress_user = &l};
    char *path = model_path_resolve(a->model), *clip;
    renyi_lvlm *m = NULL;
    renyi_error err = {0};

    if (path && model_part_resolve(&clip, a->text_tower) == 0) {
        opt.text_tower = clip;
        const renyi_status st = renyi_lvlm_open(&m, path, &opt, &err);
        if (l.is_on) progress_end(&l.bar);
        if (st != RENYI_OK) cli_fail(&err);
        if (st == RENYI_OK) note_rounding(m);
        free(clip);
    }
    free(path);
    return m;
}

int llava_check_tokenizer(const renyi_lvlm *m, const llava_arguments *a)
{
    if (renyi_lvlm_tokenizer(m)) return CLI_OK;
    cli_error("%s: has no tokenizer.json, tokenizer.model or pieces.json; give --tokenizer PATH",
              a->model);
    return CLI_FAILED;
}

renyi_visual *visual_open_reported(const llava_arguments *a)
{
    loading l = {0};
    const renyi_options opt = {.struct_size = sizeof opt,
                               .cpu = cpu_from_name(a->cpu),
                               .dtype = dtype_from_name(a->tower_dtype),
                               .progress = on_loading,
                               .progress_user = &l};
    char *path = model_path_resolve(a->model);
    renyi_visual *v = NULL;
    renyi_error err = {0};

    if (!path) return NULL;
    const char *visual = a->mmproj ? a->mmproj : path;
    const renyi_status st = renyi_visual_open(&v, visual, a->tower, &opt, &err);
    if (l.is_on) progress_end(&l.bar);
    if (st != RENYI_OK) cli_fail(&err);
    free(path);
    return st == RENYI_OK ? v : NULL;
}

json_t *llava_kept_json(const uint32_t *kept, uint32_t n)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(list, kept[i] == RENYI_NONE      ? json_null()
                                    : kept[i] == RENYI_NEWLINE ? json_string("newline")
                                                               : json_integer(kept[i]));
    return list;
}

int relevance_open_reported(renyi_relevance **out, const llava_arguments *a)
{
    const renyi_options opt = {.struct_size = sizeof opt, .cpu = cpu_from_name(a->cpu)};
    renyi_error err = {0};
    char *path;

    *out = NULL;
    if (model_part_resolve(&path, a->text_tower)) return CLI_FAILED;
    const int is_open = !path || renyi_relevance_open(out, path, NULL, &opt, &err) == RENYI_OK;
    free(path);
    return is_open ? CLI_OK : cli_fail(&err);
}

/* ---- images -------------------------------------------------------------------------------- */

/* The image is at fault, so others may do better. */
static int is_image_error(renyi_status status)
{
    return status == RENYI_ERR_IO || status == RENYI_ERR_FORMAT || status == RENYI_ERR_LIMIT ||
           status == RENYI_ERR_UNSUPPORTED;
}

int llava_take_image(image_inputs *inputs, const char *path, image_bytes_function *take, void *user)
{
    static const size_t max_bytes = 256u << 20; /* the library's own default limit */
    file_bytes file = {0};
    renyi_error err = {0};
    renyi_status st = RENYI_ERR_IO;
    char *why = NULL;

    if (read_file(path, max_bytes, &file, &why) == 0) {
        st = take(user, file.data, file.size, &err);
        if (st != RENYI_OK) why = cli_copy(cli_reason(&err));
    }
    free(file.data);
    if (st != RENYI_OK && is_image_error(st))
        image_inputs_fail(inputs, path, why);
    else if (st != RENYI_OK)
        cli_error("%s: %s", path, why);
    free(why);
    if (st == RENYI_OK) return 0;
    return is_image_error(st) ? 1 : -1;
}
