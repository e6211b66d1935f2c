/* class_names.c - see class_names.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/shared/class_names.h"

#include "cli/kit/files.h"

#include "renyi/eval.h"

#include <stdlib.h>
#include <string.h>

enum { IMAGENET_CLASSES = 1000 };
static const size_t max_labels_bytes = 16u << 20;

static void split_lines(cli_strings *lines, char *text)
{
    for (char *line = text; line;) {
        char *next = strchr(line, '\n');
        if (next) *next++ = 0;
        line[strcspn(line, "\r")] = 0;
        cli_strings_add(lines, cli_copy(line));
        line = next;
    }
    /* The newline of the last line is no further label. */
    if (lines->count && !*lines->items[lines->count - 1]) free(lines->items[--lines->count]);
}

static int read_labels(class_names *out, const char *path)
{
    file_bytes bytes;
    char *why;

    if (read_file(path, max_labels_bytes, &bytes, &why)) {
        cli_error("%s: %s", path, why);
        free(why);
        return -1;
    }
    split_lines(&out->lines, (char *)bytes.data);
    free(bytes.data);
    if (out->lines.count == out->n_classes) return 0;
    cli_error("%s: %zu labels for a model with %u classes; one label a line is needed", path,
              out->lines.count, out->n_classes);
    return -1;
}

int class_names_open(class_names *out, const renyi_model *model, const char *path)
{
    renyi_model_info info;

    renyi_model_get_info(model, &info);
    *out = (class_names){.model = model, .n_classes = info.n_classes};
    out->use_imagenet = info.n_classes == IMAGENET_CLASSES;
    return path ? read_labels(out, path) : 0;
}

const char *class_name(class_names *l, uint32_t index)
{
    if (l->lines.count) return l->lines.items[index];
    const char *own = renyi_model_label(l->model, index);
    /* Hugging Face writes LABEL_0, LABEL_1, ... where nobody gave names. */
    if (own && strncmp(own, "LABEL_", 6) != 0) {
        const uint32_t known = renyi_imagenet_class(own);
        return known == RENYI_NO_CLASS ? own : renyi_imagenet_name(known);
    }
    if (l->use_imagenet) return renyi_imagenet_name(index);
    snprintf(l->fallback, sizeof l->fallback, "class %u", index);
    return l->fallback;
}

void class_names_free(class_names *l) { cli_strings_free(&l->lines); }
