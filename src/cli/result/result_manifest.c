/* result_manifest.c - makes manifests of runs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/result/result_manifest.h"

#include "cli/kit/cli_ranks.h"
#include "cli/pull/hub_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* ---- the files of a model -------------------------------------------------------------------- */

static int add_file(result_files *f, const char *path)
{
    const char *slash = strrchr(path, '/');
    char digest[DIGEST_TEXT];
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const int is_fine =
        fd >= 0 && fstat(fd, &st) == 0 && digest_of_file(fd, (uint64_t)st.st_size, 0, digest) == 0;

    if (!is_fine) cli_error("%s: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    if (!is_fine) return CLI_FAILED;
    f->items = cli_grow(f->items, f->count + 1, sizeof *f->items);
    f->items[f->count++] = (renyi_manifest_file){.name = cli_copy(slash ? slash + 1 : path),
                                                 .size = (uint64_t)st.st_size,
                                                 .sha256 = cli_copy(digest)};
    return CLI_OK;
}

static int is_model_file(const char *name)
{
    static const char *const ends[] = {".safetensors", ".bin",       ".gguf",     ".json",
                                       ".model",       "merges.txt", "_16e6.txt", "_16e6.txt.gz"};
    const size_t n = strlen(name);

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t m = strlen(ends[i]);
        if (n >= m && strcmp(name + n - m, ends[i]) == 0) return 1;
    }
    return 0;
}

static int add_name(void *user, const char *name)
{
    if (is_model_file(name)) cli_strings_add(user, cli_copy(name));
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_folder(result_files *f, const char *folder)
{
    cli_strings names = {0};
    renyi_error err = {0};
    int code = CLI_OK;

    if (renyi_visit_files(folder, add_name, &names, &err) != RENYI_OK) code = cli_fail(&err);
    if (names.count) qsort(names.items, names.count, sizeof *names.items, by_name);
    for (size_t i = 0; code == CLI_OK && i < names.count; i++) {
        char *path = cli_format("%s/%s", folder, names.items[i]);
        code = add_file(f, path);
        free(path);
    }
    cli_strings_free(&names);
    return code;
}

static int add_path(result_files *f, const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? add_folder(f, path) : add_file(f, path);
}

int result_files_hash(result_files *out, const llava_arguments *llava)
{
    char *model = model_path_resolve(llava->model), *clip = NULL;
    int code = model && !model_part_resolve(&clip, llava->text_tower) ? CLI_OK : CLI_FAILED;
    const char *const parts[] = {model, llava->mmproj, llava->tower, clip, llava->tokenizer};

    *out = (result_files){0};
    for (size_t i = 0; code == CLI_OK && i < sizeof parts / sizeof *parts; i++)
        if (parts[i]) code = add_path(out, parts[i]);
    free(model);
    free(clip);
    return code;
}

void result_files_free(result_files *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free((char *)(uintptr_t)f->items[i].name);
        free((char *)(uintptr_t)f->items[i].sha256);
    }
    free(f->items);
    *f = (result_files){0};
}

/* ---- the manifest ---------------------------------------------------------------------------- */

/* "Linux x86_64"; owned. */
static char *system_name(void)
{
    struct utsname of;

    return uname(&of) ? cli_copy("unknown") : cli_format("%s %s", of.sysname, of.machine);
}

static renyi_manifest_sample *take_samples(const renyi_vqa *questions,
                                           const renyi_vqa_answers *answers, size_t *n)
{
    renyi_vqa_info found;

    renyi_vqa_get_info(questions, &found);
    renyi_manifest_sample *samples = cli_alloc((size_t)found.n_questions + 1, sizeof *samples);
    *n = 0;
    for (size_t i = 0; i < found.n_questions; i++)
        *n += (size_t)renyi_manifest_sample_of(answers, i, &samples[*n]);
    return samples;
}

static void take_result(renyi_manifest_info *info, const renyi_vqa_answers *answers)
{
    renyi_vqa_answers_info of;
    renyi_vqa_score score;

    renyi_vqa_answers_get_info(answers, &of);
    renyi_vqa_get_score(answers, &score);
    info->score = score.score;
    info->low = score.range.low;
    info->high = score.range.high;
    info->cognition = score.cognition;
    info->total = score.total;
    info->accuracy = score.accuracy;
    info->visual_tokens = of.visual_tokens;
    info->cost = of.cost;
}

static void take_model(renyi_manifest_info *info, const vqa_model *m)
{
    renyi_lm_info lm;
    renyi_visual_info visual;

    renyi_lm_get_info(renyi_lvlm_lm(m->weights), &lm);
    renyi_visual_get_info(renyi_lvlm_visual(m->weights), &visual);
    info->model = m->name;
    info->path = m->llava->model;
    info->tower = m->llava->tower;
    info->tokenizer = m->llava->tokenizer;
    info->mmproj = m->llava->mmproj;
    info->text_tower = m->llava->text_tower;
    info->dtype = renyi_dtype_name(lm.dtype);
    info->tower_dtype = renyi_dtype_name(visual.dtype);
    info->cpu_level = renyi_cpu_name(lm.cpu);
    info->policy = m->policy;
    info->max_new_tokens = m->max_new_tokens;
    info->temperature = m->sampling->temperature.values[0];
    info->top_p = m->sampling->top_p.values[0];
    info->threads = m->llava->threads;
}

int result_manifest_write(const char *path, const vqa_model *m, const result_data *data,
                          const renyi_vqa *questions, const renyi_vqa_answers *answers,
                          const result_files *files)
{
    char *cpu = cli_cpu_name(), *system = system_name(),
         *seed = cli_format("%llu", (unsigned long long)m->sampling->seed);
    renyi_manifest_info info = {.version = renyi_version(),
                                .task = data->task,
                                .scorer = data->scorer,
                                .questions = data->questions,
                                .annotations = data->annotations,
                                .images = data->images,
                                .limit = data->limit,
                                .seed = seed,
                                .cpu = cpu,
                                .system = system,
                                .files = files->items,
                                .n_files = files->count};
    renyi_manifest_sample *samples = take_samples(questions, answers, &info.n_samples);
    renyi_error err = {0};

    info.samples = samples;
    take_model(&info, m);
    take_result(&info, answers);
    const renyi_status status = ranks_number() ? RENYI_OK : renyi_manifest_write(path, &info, &err);
    free(samples);
    free(cpu);
    free(system);
    free(seed);
    return status == RENYI_OK ? CLI_OK : cli_fail(&err);
}
