/* result_manifest.h - makes manifests of runs: the files of the model, the machine, the answers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_RESULT_MANIFEST_H
#define RENYI_RESULT_MANIFEST_H

#include "cli/llava/vqa_model.h"

#include "renyi/vqa.h"

/* The files of a model with their SHA-256. */
typedef struct result_files {
    renyi_manifest_file *items;
    size_t count;
} result_files;

/* Weights, configurations and tokenizers of the model, its tower and its tokenizer: of a folder the
 * files that end in .safetensors, .bin, .gguf, .json or .model, in the order of their names.
 * CLI_OK, or CLI_FAILED after reporting. */
int result_files_hash(result_files *out, const llava_arguments *llava);
void result_files_free(result_files *f);

/* What was asked. Texts are as typed; NULL = none. */
typedef struct result_data {
    const char *task, *scorer, *questions, *annotations, *images;
    uint64_t limit;
} result_data;

/* Writes the manifest of a run of m, which still has its policy. CLI_OK, or CLI_FAILED after
 * reporting. */
int result_manifest_write(const char *path, const vqa_model *m, const result_data *data,
                          const renyi_vqa *questions, const renyi_vqa_answers *answers,
                          const result_files *files);

#endif
