/* inspect_llava.h - renyi inspect of models with a language model in them.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_INSPECT_LLAVA_H
#define RENYI_INSPECT_LLAVA_H

#include "renyi/renyi.h"

/* 0: there is no language model in it, nothing was said. 1: done, *code is the exit code. opt:
 * image size and dtype are the tower's. tensors: list them. */
int inspect_lvlm(const char *word, const renyi_options *opt, int json, int tensors, int *code);

#endif
