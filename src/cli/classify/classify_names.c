/* classify_names.c - a zero-shot model for renyi classify: CLIP or SigLIP with class names.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/classify/classify.h"
#include "cli/kit/files.h"

#include <stdlib.h>

enum { MAX_NAMES_BYTES = 16 << 20 };

static int read_names(const zeroshot_arguments *z, cli_strings *names)
{
    char *why = NULL;

    if (read_lines(z->class_names, MAX_NAMES_BYTES, names, &why)) {
        cli_error("%s: %s", z->class_names, why);
        free(why);
        return CLI_FAILED;
    }
    if (names->count) return CLI_OK;
    cli_error("%s: no class names; one per line is needed", z->class_names);
    return CLI_FAILED;
}

renyi_model *classify_by_names(const char *model, renyi_model *tower, const zeroshot_arguments *z,
                               const renyi_options *opt, uint64_t threads)
{
    zeroshot_classes classes = {0};
    cli_strings names = {0};
    renyi_classifier *c = NULL;
    renyi_model *out = NULL;

    int code = read_names(z, &names);
    if (code == CLI_OK) code = zeroshot_classes_take(&classes, "classify", z, &names);
    if (code == CLI_OK) c = zeroshot_classifier(model, z, &classes, opt, threads);
    if (c && zeroshot_model(&out, tower, c, &classes) == CLI_OK) {
        renyi_classifier_info info;
        renyi_classifier_get_info(c, &info);
        cli_note("classes: %u, in %u template%s; probabilities are %s", info.n_classes,
                 info.n_templates, info.n_templates == 1 ? "" : "s",
                 info.is_sigmoid ? "sigmoids, each class by itself" : "a softmax over the classes");
        renyi_model_keep_tower(out, tower);
    }
    renyi_classifier_free(c);
    zeroshot_classes_free(&classes);
    cli_strings_free(&names);
    return out;
}
