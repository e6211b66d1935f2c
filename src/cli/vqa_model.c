/* vqa_model.c - see vqa_model.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "vqa_model.h"

#include <stdlib.h>

int vqa_model_open(vqa_model *m, const vqa_arguments *a)
{
    *m = (vqa_model){0};
    cli_error(
        "%s: this version cannot ask a model yet; --score ANSWERS scores what LLaVA's scripts "
        "or other engines answered",
        a->model);
    return CLI_FAILED;
}

int vqa_model_choose(vqa_model *m, const vqa_arguments *a, size_t policy)
{
    (void)m, (void)a, (void)policy;
    return CLI_FAILED;
}

void vqa_model_close(vqa_model *m)
{
    free(m->name);
    free(m->policy);
    free(m->condition);
    *m = (vqa_model){0};
}
