/* model_handle.h - the struct behind a renyi_model: packed weights and the facts about the file.
 * Nothing changes after it is opened, so sessions of several threads may share it. Only rules of
 * the caller's own are added later; sessions point to theirs, which never move.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_MODEL_HANDLE_H
#define RY_MODEL_HANDLE_H

#include "model/vit/vit.h"
#include "prune/policy/rule_list.h"
#include "renyi/renyi.h"

#include <jansson.h>

/* Names of classes. */
typedef struct ry_labels {
    const char **names; /* [n] NULL where a class has no name; NULL = no names at all */
    char *text;         /* what names point into */
} ry_labels;

struct renyi_model {
    renyi_allocator al; /* of everything below, and of the sessions of this model */
    renyi_cpu level;    /* the CPU level that the weights are packed for */
    renyi_dtype dtype;  /* the format of the block products; never DEFAULT or AUTO */
    ry_vit vit;
    double macs;                /* of one image, dense, without LayerNorm */
    renyi_tensor_info *tensors; /* [n_tensors] of the checkpoint, in file order */
    size_t n_tensors;
    char *tensor_names; /* one block of memory that tensors[].name point into */
    ry_labels labels;   /* [n_classes] */
    /* The model whose image tower a zero-shot model (renyi_model_zeroshot) borrows; it owns only
     * its labels and vit.text_head. Else NULL. */
    const renyi_model *tower;
    int is_sigmoid;     /* of a zero-shot model: renyi_model_info.is_sigmoid */
    uint64_t rows_hash; /* hash of the class rows of a zero-shot model, else 0 */
    renyi_model *owned; /* freed with this model: its tower, or NULL */
    ry_own_rules rules; /* of the caller's own; a zero-shot model begins with those of its tower */
};

/* Names in a config: id2label of Hugging Face ({"0": "tench", ...}) or label_names of timm ([...]).
 * Placeholders such as LABEL_7 count as no name; ids outside 0..n-1 are ignored. `config` may be
 * NULL. */
renyi_status ry_labels_read(ry_labels *out, const json_t *config, uint32_t n,
                            const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
/* Copies names [n], NULL where a class has none; NULL = no names at all. */
renyi_status ry_labels_copy(ry_labels *out, const char *const *names, uint32_t n,
                            const renyi_allocator *al, renyi_error *err) RENYI_CHECK;
void ry_labels_free(ry_labels *l, const renyi_allocator *al); /* a zeroed struct is fine */
/* The name of class i as the config has it, which may be a WordNet id; NULL = none. */
const char *ry_model_own_label(const renyi_model *m, uint32_t i);

#endif
