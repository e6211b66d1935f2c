/* llava_options.c - what verbs with a LLaVA model share: options, opening it, reading images.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/llava/llava_options.h"

#include "cli/kit/files.h"
#include "cli/kit/progress.h"

#include <stdlib.h>

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

renyi_lvlm *llava_open_reported(const llava_arguments *a)
{
    loading l = {0};
    const renyi_lvlm_options opt = {.struct_size = sizeof opt,
                                    .cpu = cpu_from_name(a->cpu),
                                    .dtype = dtype_from_name(a->dtype),
                                    .tower_dtype = dtype_from_name(a->tower_dtype),
                                    .tower = a->tower,
                                    .tokenizer = a->tokenizer,
                                    .progress = on_loading,
                                    .progress_user = &l};
    char *path = model_path_resolve(a->model);
    renyi_lvlm *m = NULL;
    renyi_error err = {0};

    if (!path) return NULL;
    const renyi_status st = renyi_lvlm_open(&m, path, &opt, &err);
    if (l.is_on) progress_end(&l.bar);
    if (st != RENYI_OK) cli_fail(&err);
    free(path);
    return st == RENYI_OK ? m : NULL;
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
    const renyi_status st = renyi_visual_open(&v, path, a->tower, &opt, &err);
    if (l.is_on) progress_end(&l.bar);
    if (st != RENYI_OK) cli_fail(&err);
    free(path);
    return st == RENYI_OK ? v : NULL;
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
