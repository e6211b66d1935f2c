/* temporary_model.c - see temporary_model.h.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Removed when the measurement is over and also when the program is ended by a signal, hence the
 * file-scope state: a signal handler can reach nothing else.
 */
#include "cli/shared/temporary_model.h"

#include "cli/kit/cli.h"

#include "renyi/renyi.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[400], file[440];

static void remove_files(void)
{
    if (file[0]) unlink(file);
    if (directory[0]) rmdir(directory);
}

static void end_by_signal(int number)
{
    remove_files(); /* unlink and rmdir may be called here */
    signal(number, SIG_DFL);
    raise(number);
}

void temporary_model_remove(void)
{
    remove_files();
    file[0] = directory[0] = 0;
}

const char *temporary_model_make(const char *architecture)
{
    const renyi_init_options opt = {.struct_size = sizeof opt, .seed = 1};
    const char *parent = getenv("TMPDIR");
    renyi_error err = {0};

    temporary_model_remove();
    snprintf(directory, sizeof directory, "%s/renyi-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(directory)) {
        cli_error("%s: %s", directory, strerror(errno));
        directory[0] = 0;
        return NULL;
    }
    snprintf(file, sizeof file, "%s/model.safetensors", directory);
    signal(SIGINT, end_by_signal);
    signal(SIGTERM, end_by_signal);
    signal(SIGHUP, end_by_signal);
    if (renyi_model_init_file(file, architecture, &opt, &err) == RENYI_OK) return file;
    cli_error("%s", err.message[0] ? err.message : renyi_status_name(err.code));
    temporary_model_remove();
    return NULL;
}
