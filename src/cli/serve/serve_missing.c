/* serve_missing.c - renyi serve in a program that was built without libmicrohttpd.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/verb_missing.h"
#include "cli/verbs.h"

int cmd_serve(int argc, char **argv)
{
    const missing_verb verb = {"serve", "[-m [NAME=]MODEL]... [options]", "Answers over HTTP",
                               "libmicrohttpd", "libmicrohttpd-dev"};
    return verb_missing(&verb, argc, argv);
}
