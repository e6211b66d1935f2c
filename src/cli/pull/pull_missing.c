/* pull_missing.c - renyi pull in a program that was built without libcurl.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/verb_missing.h"
#include "cli/verbs.h"

int cmd_pull(int argc, char **argv)
{
    const missing_verb verb = {"pull", "REPOSITORY [options]", "Downloads a model", "libcurl",
                               "libcurl4-openssl-dev"};
    return verb_missing(&verb, argc, argv);
}
