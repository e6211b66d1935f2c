/* hub_cache.h - the Hugging Face cache on disk, in the layout of huggingface_hub.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   <root>/models--ORG--NAME/blobs/<etag>                 the bytes, once
 *   <root>/models--ORG--NAME/refs/<revision>              the commit of a revision
 *   <root>/models--ORG--NAME/snapshots/<commit>/<file> -> ../../blobs/<etag>
 */
#ifndef RENYI_HUB_CACHE_H
#define RENYI_HUB_CACHE_H

#include <stdint.h>

/* $HF_HUB_CACHE, else $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else
 * ~/.cache/huggingface/hub. Owned; NULL if none of them is set. */
char *hub_cache_root(void);

/* "org/name" or "name" of letters, digits, '-', '_', '.', never beginning with '.' or '-'. */
int hub_is_repo_name(const char *text);
/* A file, blob or commit name that is safe as one path component. */
int hub_is_plain_name(const char *text);
/* A branch, tag or commit: plain names joined by '/'. */
int hub_is_revision(const char *text);
int hub_is_commit(const char *text); /* 40 hexadecimal digits */

char *hub_repo_dir(const char *root, const char *repo); /* owned */
/* Directory of the snapshot of a revision. Owned; NULL if it is not in the cache. */
char *hub_find_snapshot(const char *root, const char *repo, const char *revision);

/* Makes snapshots/<commit>/<name> a link to the blob, replacing an older one. This and the next
 * create folders as needed and return 0, or -1 with errno set. */
int hub_link_file(const char *repo_dir, const char *commit, const char *name, const char *etag);
int hub_write_ref(const char *repo_dir, const char *revision, const char *commit);

/* Whether a file has the bytes that its ETag promises. */
typedef enum digest_verdict {
    DIGEST_RIGHT,
    DIGEST_WRONG,
    DIGEST_UNKNOWN, /* the ETag is no digest */
    DIGEST_FAILED   /* the file cannot be read */
} digest_verdict;

/* 64 hexadecimal digits: SHA-256 of the bytes (large files). 40: the SHA-1 that git gives a blob,
 * of "blob <size>\0" and the bytes (small files). */
digest_verdict digest_check(int fd, uint64_t size, const char *etag);

#endif
