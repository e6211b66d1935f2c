/* image_inputs.h - the list of images a command line means: files, directories, lists, stdin.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_IMAGE_INPUTS_H
#define RENYI_IMAGE_INPUTS_H

#include "cli/kit/cli.h"

typedef struct image_inputs {
    cli_strings paths; /* in the order given; a directory's in byte order of their names */
    size_t n_failed;   /* arguments that gave nothing; reported on stderr */
    cli_strings failed, reasons; /* the same, for --json */
} image_inputs;

/* A directory stands for the files in it whose names end like images (.jpg .jpeg .png .webp .ppm
 * .pgm .pnm, any case), with `recursive` also those below. A file is taken whatever its name is;
 * "-" is stdin. `list` (may be NULL) names a file with one path a line. */
void image_inputs_collect(image_inputs *out, const cli_strings *words, const char *list,
                          int recursive);
void image_inputs_fail(image_inputs *inputs, const char *path, const char *reason);
void image_inputs_free(image_inputs *inputs);

#endif
