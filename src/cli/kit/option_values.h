/* option_values.h - one word of the command line into the typed value of an option.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_OPTION_VALUES_H
#define RENYI_OPTION_VALUES_H

#include "cli/kit/options.h"

/* 0, or -1 after reporting wrong usage. OPTION_FLAG is not handled here. */
int option_store(const char *verb, const option *o, const char *text);

#endif
