/* cmd_vqa.c - renyi vqa: the command line.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/eval/eval_job.h"
#include "cli/llava/vqa_report.h"
#include "cli/verbs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int check_shards(vqa_arguments *a)
{
    if (a->shard && a->num_chunks)
        return options_usage_error("vqa", "--shard and --num-chunks exclude each other");
    if (!a->num_chunks != (a->chunk_idx == VQA_NO_CHUNK))
        return options_usage_error("vqa", "--num-chunks and --chunk-idx go together");
    if (a->num_chunks && a->chunk_idx >= a->num_chunks)
        return options_usage_error("vqa", "--chunk-idx counts from 0 to %llu",
                                   (unsigned long long)a->num_chunks - 1);
    if (eval_parse_shard("vqa", a->shard, &a->shard_index, &a->n_shards)) return CLI_USAGE;
    if (a->num_chunks) {
        a->shard_index = (uint32_t)a->chunk_idx;
        a->n_shards = (uint32_t)a->num_chunks;
    }
    return CLI_OK;
}

/* For a run that asks a model. */
static int check_asking(vqa_arguments *a)
{
    if (!a->llava.model)
        return options_usage_error("vqa",
                                   "-m LLAVA is missing (or --score ANSWERS, to score earlier "
                                   "answers)");
    if (!a->images && a->task != RENYI_VQA_MMBENCH && a->task != RENYI_VQA_MMBENCH_CN)
        return options_usage_error("vqa", "--images DIR is missing: the images of the questions");
    if (a->resume && !a->answers)
        return options_usage_error("vqa", "--resume needs --answers FILE to resume from");
    if (a->reported.given)
        return options_usage_error("vqa", "--reported needs --score with one file of answers");
    if (a->manifest && a->n_shards)
        return options_usage_error("vqa", "--manifest is of all questions, not of a --shard");
    if (llava_check_sampling("vqa", &a->sampling) != CLI_OK) return CLI_USAGE;
    if (!a->sampling.max_new_tokens) a->sampling.max_new_tokens = a->info.max_new_tokens;
    return CLI_OK;
}

static int check_policies(vqa_arguments *a)
{
    const int code = prune_policies("vqa", &a->llava.prune, &a->policies);

    if (code != CLI_OK) return code;
    if (a->policies.count > 1 && a->submission)
        return options_usage_error("vqa", "--submission is of one run; %zu policies are given",
                                   a->policies.count);
    return CLI_OK;
}

/* LLaVA's name of part I of N: "N_I.jsonl". */
static int is_part(const char *path, size_t n_files)
{
    const char *slash = strrchr(path, '/');
    unsigned long n, i;
    int end = 0;

    return sscanf(slash + 1, "%lu_%lu.jsonl%n", &n, &i, &end) == 2 && end && !slash[1 + end] &&
           n == n_files && i < n;
}

/* The .jsonl files of a folder. */
typedef struct answer_files {
    const char *folder;
    cli_strings paths;
} answer_files;

static int add_answers(void *user, const char *name)
{
    answer_files *files = user;
    const size_t n = strlen(name);

    if (n > 6 && strcmp(name + n - 6, ".jsonl") == 0)
        cli_strings_add(&files->paths, cli_format("%s/%s", files->folder, name));
    return 0;
}

/* Adds the runs in a folder: each .jsonl file, or the folder itself if its files are the parts of
 * one run. Returns an exit code. */
static int add_folder(cli_strings *runs, const char *folder)
{
    answer_files found = {.folder = folder};
    size_t n_parts = 0;
    renyi_error err = {0};

    if (renyi_visit_files(folder, add_answers, &found, &err) != RENYI_OK) return cli_fail(&err);
    cli_strings files = found.paths;
    for (size_t i = 0; i < files.count; i++) n_parts += is_part(files.items[i], files.count) != 0;
    if (!files.count) {
        cli_error("%s: this folder has no .jsonl file", folder);
        return CLI_FAILED;
    }
    if (n_parts == files.count)
        cli_strings_add(runs, cli_copy(folder));
    else
        for (size_t i = 0; i < files.count; i++) cli_strings_add(runs, cli_copy(files.items[i]));
    cli_strings_free(&files);
    return CLI_OK;
}

static int is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Replaces the folders of --score by their runs. Returns an exit code. */
static int expand_folders(vqa_arguments *a)
{
    cli_strings runs = {0};
    int code = CLI_OK;

    for (size_t i = 0; code == CLI_OK && i < a->scored.count; i++) {
        const char *path = a->scored.items[i];
        if (is_folder(path))
            code = add_folder(&runs, path);
        else
            cli_strings_add(&runs, cli_copy(path));
    }
    cli_strings_free(&a->scored);
    a->scored = runs;
    return code;
}

static int check_scoring(vqa_arguments *a)
{
    const int code = expand_folders(a);

    if (code != CLI_OK) return code;
    if (a->llava.model || a->answers || a->resume || a->manifest || a->llava.prune.policies.count)
        return options_usage_error("vqa", "--score reads answers; it takes no model, --answers, "
                                          "--manifest, --resume or --prune");
    if ((a->submission || a->reported.given) && a->scored.count != 1)
        return options_usage_error("vqa",
                                   "--submission and --reported are of one run; %zu are "
                                   "given with --score",
                                   a->scored.count);
    return CLI_OK;
}

static int check_scorer(vqa_arguments *a)
{
    if (a->task == RENYI_VQA_VQAV2 || a->task == RENYI_VQA_VIZWIZ || a->task == RENYI_VQA_TEXTVQA) {
        if (!a->scorer) a->scorer = "textvqa";
        return CLI_OK;
    }
    if (!a->scorer) return CLI_OK;
    return options_usage_error("vqa", "--scorer is for vqav2, vizwiz and textvqa, not for %s",
                               a->info.name);
}

static int check_arguments(vqa_arguments *a, const cli_strings *arguments)
{
    renyi_error err = {0};

    if (arguments->count)
        return options_usage_error("vqa", "unexpected '%s' (give questions with --questions)",
                                   arguments->items[0]);
    if (!a->task_name) return options_usage_error("vqa", "--task NAME is missing");
    if (renyi_vqa_find_task(a->task_name, &a->task, &err) != RENYI_OK)
        return options_usage_error("vqa", "option '--task': %s", err.message);
    renyi_vqa_get_task(a->task, &a->info);
    if (!a->questions)
        return options_usage_error("vqa", "--questions FILE is missing: for %s %s", a->info.name,
                                   a->info.questions);
    if (check_scorer(a) != CLI_OK) return CLI_USAGE;
    if (a->submission && !a->info.submission)
        return options_usage_error("vqa", "%s takes no submission: it is scored from the answers",
                                   a->info.name);
    const int code = check_shards(a);
    if (code != CLI_OK) return code;
    if (a->scored.count) return check_scoring(a);
    const int asking = check_asking(a);
    return asking == CLI_OK ? check_policies(a) : asking;
}

static option_outcome parse_options(vqa_arguments *a, int argc, char **argv, cli_strings *arguments)
{
    const option table[] = {
        {"task", 0, OPTION_STRING, &a->task_name, "NAME",
         "pope, gqa, vqav2, vizwiz, textvqa, sqa, mme, mmbench, mmbench-cn, mmvet, seed, ocrbench",
         0, 0},
        {"questions", 0, OPTION_STRING, &a->questions, "FILE", "LLaVA's file of its questions", 0,
         0},
        {"annotations", 0, OPTION_STRING, &a->annotations, "PATH",
         "the benchmark's own right answers, a file or a folder", 0, 0},
        {"score", 0, OPTION_STRINGS, &a->scored, "ANSWERS",
         "score a file of answers, or each file of a folder; several are compared", 0, 0},
        {"scorer", 0, OPTION_CHOICE, &a->scorer, "textvqa|official",
         "how vqav2, vizwiz and textvqa compare answers (textvqa); official: vqaEval", 0, 0},
        {"reported", 0, OPTION_REAL, &a->reported, "X",
         "with --score: the score that the server gave, for the JSON", 0, 0},
        {"submission", 0, OPTION_STRING, &a->submission, "FILE",
         "write the file for the benchmark's server or grader", 0, 0},
        {"json", 0, OPTION_FLAG, &a->json, "", "one JSON document on stdout", 0, 0},
        {"", 0, OPTION_HEADING, NULL, "", "Asking a model", 0, 0},
        LLAVA_MODEL_ROWS(&a->llava),
        LLAVA_LANGUAGE_ROWS(&a->llava),
        {"images", 0, OPTION_STRING, &a->images, "DIR", "folder of the images", 0, 0},
        {"allow-outside", 0, OPTION_FLAG, &a->allow_outside, "",
         "questions may name images outside this folder (refused)", 0, 0},
        {"answers", 0, OPTION_STRING, &a->answers, "FILE",
         "write answers as they come; with several policies a folder, which is made", 0, 0},
        {"resume", 0, OPTION_FLAG, &a->resume, "", "ask only what is not in --answers FILE", 0, 0},
        {"manifest", 0, OPTION_STRING, &a->manifest, "FILE",
         "write what was run and what it gave, for 'renyi verify'; with several policies a folder",
         0, 0},
        SAMPLING_ROWS(&a->sampling, "128; sqa, mmbench, mmvet 1024; ocrbench 100"),
        {"log-freq", 0, OPTION_COUNT, &a->log_freq, "N",
         "without a terminal, a line every N questions (100)", 1, 0},
        {"", 0, OPTION_HEADING, NULL, "", "Some of the questions", 0, 0},
        {"limit", 0, OPTION_COUNT, &a->limit, "N", "the first N", 1, 0},
        {"shard", 0, OPTION_STRING, &a->shard, "I/N", "part I of N, every N-th: 1/4, 2/4, ...", 0,
         0},
        {"num-chunks", 0, OPTION_COUNT, &a->num_chunks, "N",
         "LLaVA's parts: N runs of neighbouring questions", 1, 1000000},
        {"chunk-idx", 0, OPTION_COUNT, &a->chunk_idx, "I", "which of them, from 0", 0, 0},
    };
    const verb_syntax syntax = {
        "vqa",
        "--task NAME --questions FILE {--score ANSWERS... | -m LLAVA --images DIR} [options]",
        "Benchmarks of questions about images, with the question and answer files of LLaVA's own scripts.\n"
        "Answers are scored here if the benchmark allows it: the score with its 95 % interval, its categories,\n"
        "and every two runs compared question by question. If a server or another model scores, --submission\n"
        "writes the file for it. Questions that cannot be read and missing images are reported and skipped,\n"
        "and the exit code is 3.",
        "  renyi vqa --task pope --questions coco --score answers.jsonl\n"
        "  renyi vqa --task gqa --questions gqa.jsonl --annotations testdev_balanced_questions.json --score a --score b\n"
        "  renyi vqa --task mmbench --questions mmbench_dev.tsv --score answers.jsonl --submission upload.xlsx\n"
        "  renyi vqa --task mmvet --questions llava-mm-vet.jsonl --images mm-vet/images -m llava-1.5-7b-hf \\\n"
        "      --prune 'prumerge tokens=192 metric=col' --answers col192.jsonl --resume --submission col192.json\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, arguments);
}

int cmd_vqa(int argc, char **argv)
{
    vqa_arguments a = {.chunk_idx = VQA_NO_CHUNK, .log_freq = 100, .sampling = SAMPLING_DEFAULTS};
    cli_strings arguments = {0};
    const option_outcome outcome = parse_options(&a, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO && (code = check_arguments(&a, &arguments)) == CLI_OK)
        code = vqa_execute(&a);
    llava_arguments_free(&a.llava);
    cli_strings_free(&a.policies);
    cli_strings_free(&a.scored);
    cli_strings_free(&arguments);
    return code;
}
