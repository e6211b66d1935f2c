/* help.h - what a verb's table of options says, in three forms: the page of --help, a manual page,
 * and lines for the completion of shells.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_HELP_H
#define RENYI_HELP_H

#include "cli/kit/options.h"

typedef enum help_form {
    HELP_PAGE,
    HELP_MAN,    /* roff */
    HELP_OPTIONS /* one option a line: --name, -letter or nothing, argument, help; between tabs */
} help_form;

/* The form of the next help_put. `summary`: the verb's line in `renyi help`; borrowed. */
void help_choose(help_form form, const char *summary);

void help_put(const verb_syntax *syntax);

#endif
