/* hub_file.h - one file of a Hugging Face repository: asks for it, downloads it into the cache.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_HUB_FILE_H
#define RENYI_HUB_FILE_H

#include "cli/pull/http.h"
#include "cli/pull/hub_cache.h"

typedef struct hub_source {
    http_client *client;
    const char *endpoint, *repo, *revision; /* revision: as given, later the commit */
    char *repo_dir;                         /* in the cache */
    unsigned retries;                       /* after a cut connection */
    int has_token, force;
    int allow_unverified; /* also files for which the server gives no digest */
} hub_source;

typedef struct hub_file {
    char name[256], commit[DIGEST_TEXT];
    char digest[DIGEST_TEXT]; /* "" if the server gives none; after a download never */
    int64_t size;             /* -1 = unknown */
    uint64_t max_size;        /* of a file with this name, as the library reads it */
} hub_file;

typedef enum hub_answer { HUB_FOUND, HUB_ABSENT, HUB_FAILED } hub_answer;

/* HUB_ABSENT: the repository has no such file. HUB_FAILED: reported. */
hub_answer hub_file_ask(const hub_source *source, const char *name, hub_file *out);

/* Its address on the server. Owned. */
char *hub_file_url(const hub_source *source, const char *name);
/* Is the file complete in the cache? Never one without a digest. */
int hub_file_is_cached(const hub_source *source, const hub_file *file);
/* The file that a download writes to: blobs/<digest or name>.incomplete. Owned. */
char *hub_file_part(const hub_source *source, const hub_file *file);

/* Is there space for what is missing of these files? Free bytes in *space if there is; else -1
 * after reporting. Makes the folder blobs. */
int hub_files_fit(const hub_source *source, const hub_file *files, size_t count, uint64_t *space);

/* Downloads blobs/<digest>: resumed, checked, renamed only when complete. 0, or -1 after reporting.
 * A cut connection leaves the incomplete file for the next attempt, if there is a digest to check
 * the whole by. */
int hub_file_fetch(const hub_source *source, hub_file *file);

#endif
