/* hub_file.h - one file of a Hugging Face repository: asks for it, downloads it into the cache.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_HUB_FILE_H
#define RENYI_HUB_FILE_H

#include "cli/pull/http.h"

typedef struct hub_source {
    http_client *client;
    const char *endpoint, *repo, *revision; /* revision: as given, later the commit */
    char *repo_dir;                         /* in the cache */
    unsigned retries;                       /* after a cut connection */
    int has_token, force;
} hub_source;

typedef struct hub_file {
    char name[256], etag[256], commit[64];
    int64_t size; /* -1 = unknown */
} hub_file;

typedef enum hub_answer { HUB_FOUND, HUB_ABSENT, HUB_FAILED } hub_answer;

/* HUB_ABSENT: the repository has no such file. HUB_FAILED: reported. */
hub_answer hub_file_ask(const hub_source *source, const char *name, hub_file *out);

/* Downloads blobs/<etag>: resumed, checked, renamed only when complete. 0, or -1 after reporting. A
 * cut connection leaves blobs/<etag>.incomplete for the next attempt. */
int hub_file_fetch(const hub_source *source, const hub_file *file);

#endif
