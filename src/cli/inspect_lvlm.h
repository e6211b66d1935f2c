/* inspect_lvlm.h - renyi inspect of models with a language model in them.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_CLI_INSPECT_LVLM_H
#define RENYI_CLI_INSPECT_LVLM_H

#include <renyi/renyi.h>

/* 0: there is no language model in it, nothing was said. 1: done, *code is the exit code. opt:
 * image size and dtype are the tower's. tensors: list them. */
int inspect_lvlm(const char *word, const renyi_options *opt, int json, int tensors, int *code);

#endif
