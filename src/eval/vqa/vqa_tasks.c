/* vqa_tasks.c - the VQA benchmarks: their names, files and prompts, and how their files are found
 * and read. Formats and prompts are those of LLaVA (docs/Evaluation.md in its repository).
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "eval/vqa/vqa_questions.h"

#include <string.h>

#define SHORT "\nAnswer the question using a single word or phrase."
#define UNSURE "\nWhen the provided information is insufficient, respond with 'Unanswerable'."
#define LETTER "\nAnswer with the option's letter from the given choices directly."
#define LETTER_CN "\n请直接回答选项字母。"

static const renyi_vqa_task_info tasks[RENYI_VQA_TASKS] = {
    {"pope", "POPE", "mean F1 of its categories, %", 100, 128,
     "llava_pope_test.jsonl, a coco_pope_*.json, or the folder of all three",
     "the folder of coco_pope_*.json", NULL, SHORT},
    {"gqa", "GQA", "accuracy, %", 100, 128, "llava_gqa_testdev_balanced.jsonl",
     "testdev_balanced_questions.json", "testdev_balanced_predictions.json", SHORT},
    {"vqav2", "VQAv2", "VQA accuracy, %", 100, 128, "llava_vqav2_mscoco_test-dev2015.jsonl",
     "v2_mscoco_val2014_annotations.json (of test there is none)", "JSON for EvalAI", SHORT},
    {"vizwiz", "VizWiz", "VQA accuracy, %", 100, 128, "llava_test.jsonl",
     "val.json (of test there is none)", "JSON for EvalAI", UNSURE SHORT},
    {"textvqa", "TextVQA", "VQA accuracy, %", 100, 128, "llava_textvqa_val_v051_ocr.jsonl",
     "TextVQA_0.5.1_val.json", NULL, SHORT},
    {"sqa", "SQA-IMG", "accuracy of questions with a photo, %", 100, 1024, "llava_test_CQM-A.json",
     "problems.json or its folder", NULL, LETTER},
    {"mme", "MME", "perception, points of 2000", 2000, 128, "llava_mme.jsonl",
     "MME_Benchmark_release_version", NULL, SHORT},
    {"mmbench", "MMB", "circular accuracy by letters, %", 100, 1024, "mmbench_dev_20230712.tsv",
     NULL, "table (.xlsx) for the server", LETTER},
    {"mmbench-cn", "MMB-CN", "circular accuracy by letters, %", 100, 1024,
     "mmbench_dev_cn_20231003.tsv", NULL, "table (.xlsx) for the server", LETTER_CN},
    {"mmvet", "MM-Vet", "mean grade, %; a language model grades", 100, 1024, "llava-mm-vet.jsonl",
     NULL, "JSON for the grader", NULL},
    {"seed", "SEED-IMG", "accuracy of questions about images, %", 100, 128,
     "llava-seed-bench.jsonl, or SEED-Bench.json", "SEED-Bench.json", NULL, LETTER},
    {"ocrbench", "OCRBench", "right answers, points of 1000", 1000, 100, "OCRBench.json", NULL,
     NULL, NULL},
};

void renyi_vqa_get_task(renyi_vqa_task task, renyi_vqa_task_info *out) { *out = tasks[task]; }

renyi_status renyi_vqa_find_task(const char *name, renyi_vqa_task *out, renyi_error *err)
{
    if (!name || !out) return ry_fail(err, RENYI_ERR_ARG, -1, "renyi_vqa_find_task: NULL argument");
    for (int i = 0; i < RENYI_VQA_TASKS; i++)
        if (strcmp(tasks[i].name, name) == 0) {
            *out = (renyi_vqa_task)i;
            return RENYI_OK;
        }
    return ry_fail(
        err, RENYI_ERR_ARG, -1,
        "unknown benchmark '%.80s'; known ones are pope, gqa, vqav2, vizwiz, textvqa, sqa, mme, "
        "mmbench, mmbench-cn, mmvet, seed, ocrbench",
        name);
}

int ry_vqa_is_soft(renyi_vqa_task task)
{
    return task == RENYI_VQA_VQAV2 || task == RENYI_VQA_VIZWIZ || task == RENYI_VQA_TEXTVQA;
}

int ry_vqa_is_mmbench(renyi_vqa_task task)
{
    return task == RENYI_VQA_MMBENCH || task == RENYI_VQA_MMBENCH_CN;
}

/* MME's subtasks: cognition, then perception. */
enum { COGNITION = 4 };
static const char *const subtasks[] = {"commonsense_reasoning",
                                       "numerical_calculation",
                                       "text_translation",
                                       "code_reasoning",
                                       "existence",
                                       "count",
                                       "position",
                                       "color",
                                       "posters",
                                       "celebrity",
                                       "scene",
                                       "landmark",
                                       "artwork",
                                       "OCR"};

static int is_cognition(const char *category)
{
    for (size_t i = 0; i < COGNITION; i++)
        if (strcmp(category, subtasks[i]) == 0) return 1;
    return 0;
}

int ry_vqa_is_counted(renyi_vqa_task task, const char *category)
{
    switch (task) {
    case RENYI_VQA_MME: return !is_cognition(category);
    case RENYI_VQA_SQA: return strcmp(category, "with photo") == 0;
    case RENYI_VQA_SEED: return strcmp(category, "video") != 0;
    default: return 1;
    }
}

const char *ry_vqa_mme_subtask(const char *id)
{
    for (const char *slash; (slash = strchr(id, '/')); id = slash + 1)
        for (size_t i = 0; i < sizeof subtasks / sizeof *subtasks; i++)
            if (strlen(subtasks[i]) == (size_t)(slash - id) &&
                memcmp(subtasks[i], id, (size_t)(slash - id)) == 0)
                return subtasks[i];
    return NULL;
}

/* ---- files and folders ---------------------------------------------------------------------- */

int ry_vqa_pope_kind(const char *path, char kind[64])
{
    static const char head[] = "coco_pope_", tail[] = ".json";
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t n = strlen(name), fixed = sizeof head + sizeof tail - 2;
    if (n <= fixed || n - fixed >= 64 || strncmp(name, head, sizeof head - 1) != 0 ||
        strcmp(name + n - sizeof tail + 1, tail) != 0)
        return 0;
    memcpy(kind, name + sizeof head - 1, n - fixed);
    kind[n - fixed] = 0;
    return 1;
}

int ry_vqa_is_pope_file(const char *name)
{
    char kind[64];
    return ry_vqa_pope_kind(name, kind);
}

renyi_status ry_vqa_list_folder(ry_pool *pool, const char *folder,
                                int (*is_wanted)(const char *name), const char ***paths, size_t *n,
                                renyi_error *err)
{
    ry_folder list;
    renyi_status st = RENYI_OK;
    *n = 0;
    *paths = NULL;
    RY_TRY(ry_folder_read(&list, folder, pool->al, err));
    const char **found = ry_pool_take(pool, list.count, sizeof *found);
    if (!found) st = ry_fail_nomem(err, list.count * sizeof *found);
    for (size_t i = 0; !st && i < list.count; i++) {
        if (!is_wanted(list.items[i].name)) continue;
        found[*n] = ry_pool_join(pool, ry_text_of(folder), ry_text_of(list.items[i].name));
        if (!found[(*n)++]) st = ry_fail_nomem(err, strlen(folder));
    }
    ry_folder_free(&list);
    if (!st && *n) *paths = found;
    return st;
}

renyi_status ry_vqa_read_file(unsigned char **bytes, size_t *size, const char *path,
                              uint64_t max_bytes, renyi_error *err)
{
    const renyi_status st = ry_file_read(bytes, size, path, max_bytes, NULL, NULL, err);
    return st ? ry_fail_in(err, st, path) : RENYI_OK;
}
