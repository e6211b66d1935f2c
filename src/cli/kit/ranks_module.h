/* ranks_module.h - the interface between the program and its MPI module (src/mpi).
 * SPDX-License-Identifier: Apache-2.0
 *
 * The module is a library that is loaded only under a launcher, so the program does not need MPI.
 */
#ifndef RENYI_RANKS_MODULE_H
#define RENYI_RANKS_MODULE_H

#include "renyi/renyi.h"

#define RANKS_MODULE_FILE "renyi-mpi.so"
#define RANKS_MODULE_SYMBOL "renyi_mpi_open"
enum { RANKS_MODULE_VERSION = 2 }; /* must be the same on both sides */

typedef struct ranks_module {
    uint32_t version;
    renyi_ranks ranks;
    void (*close)(void *user);           /* waits for the other ranks */
    void (*abort)(void *user, int code); /* ends all ranks at once */
} ranks_module;

/* Joins the other ranks. 0, or -1 and a message of at most `size` bytes. */
typedef int ranks_module_open(ranks_module *out, char *message, size_t size);

#endif
