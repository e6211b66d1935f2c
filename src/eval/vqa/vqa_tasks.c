/* vqa_tasks.c - the benchmarks of vqa.h: names, files, prompts. What their files look like is
 * LLaVA's doing (docs/Evaluation.md there).
 * SPDX-License-Identifier: Apache-2.0 */
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
    return ry_fail(err, RENYI_ERR_ARG, -1,
                   "no benchmark '%.80s'; there are pope, gqa, vqav2, vizwiz, textvqa, sqa, mme, "
                   "mmbench, mmbench-cn, mmvet",
                   name);
}

int ry_vqa_is_soft(renyi_vqa_task task)
{
    return task == RENYI_VQA_VQAV2 || task == RENYI_VQA_VIZWIZ || task == RENYI_VQA_TEXTVQA;
}

int ry_vqa_is_yes_no(renyi_vqa_task task)
{
    return task == RENYI_VQA_POPE || task == RENYI_VQA_MME;
}

int ry_vqa_is_mmbench(renyi_vqa_task task)
{
    return task == RENYI_VQA_MMBENCH || task == RENYI_VQA_MMBENCH_CN;
}

int ry_vqa_is_lettered(renyi_vqa_task task)
{
    return task == RENYI_VQA_SQA || ry_vqa_is_mmbench(task);
}

int ry_vqa_is_perception(const char *category)
{
    static const char *const cognition[] = {"commonsense_reasoning", "numerical_calculation",
                                            "text_translation", "code_reasoning"};
    for (size_t i = 0; i < sizeof cognition / sizeof *cognition; i++)
        if (strcmp(category, cognition[i]) == 0) return 0;
    return 1;
}
