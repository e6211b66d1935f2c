/* serve_missing.c - renyi serve in a program that was built without libmicrohttpd.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/options.h"
#include "cli/verbs.h"

int cmd_serve(int argc, char **argv)
{
    const verb_syntax syntax = {
        "serve",
        "[-m [NAME=]MODEL]... [options]",
        "Answers over HTTP. This program was built without libmicrohttpd, so it cannot. Install the\n"
        "Debian package libmicrohttpd-dev and build again.",
        "  sudo apt-get install libmicrohttpd-dev && make clean && make\n",
        NULL,
        0};
    cli_strings arguments = {0};

    if (argc > 1 && options_parse(&syntax, argc, argv, &arguments) == OPTIONS_HELP) return CLI_OK;
    cli_strings_free(&arguments);
    cli_error("serve: this program was built without libmicrohttpd; install the Debian package "
              "libmicrohttpd-dev and build again");
    return CLI_FAILED;
}
