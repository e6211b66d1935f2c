/* verb_missing.c - a verb that this program was built without.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/verb_missing.h"

#include "cli/kit/options.h"

#include <string.h>

int verb_missing(const missing_verb *verb, int argc, char **argv)
{
    char summary[400], examples[200];
    const verb_syntax syntax = {verb->name, verb->usage, summary, examples, NULL, 0};
    cli_strings arguments = {0};
    int wants_help = 0;

    for (int i = 1; i < argc; i++)
        wants_help |= strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
    snprintf(summary, sizeof summary,
             "%s. This program was built without %s, so it cannot. Install\n"
             "its development package (Debian: %s) and build again.",
             verb->does, verb->library, verb->package);
    snprintf(examples, sizeof examples, "  sudo apt-get install %s && make clean && make\n",
             verb->package);
    if (wants_help) {
        char flag[] = "--help";
        char *help[] = {argv[0], flag, NULL};
        options_parse(&syntax, 2, help, &arguments);
        return CLI_OK;
    }
    cli_error("%s: this program was built without %s; install its development package "
              "(Debian: %s) and build again",
              verb->name, verb->library, verb->package);
    return CLI_FAILED;
}
