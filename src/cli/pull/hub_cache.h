/* hub_cache.h - the Hugging Face cache on disk, in the layout of huggingface_hub.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   <root>/models--ORG--NAME/blobs/<digest>               the bytes, once
 *   <root>/models--ORG--NAME/refs/<revision>              the commit of a revision
 *   <root>/models--ORG--NAME/snapshots/<commit>/<file> -> ../../blobs/<digest>
 */
#ifndef RENYI_HUB_CACHE_H
#define RENYI_HUB_CACHE_H

#include "cli/kit/cli.h"

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
int hub_is_commit(const char *text); /* 40 hexadecimal digits in lower case */

/* The name without "hf-hub:" (timm, OpenCLIP) or "hf:" in front. Borrowed. */
const char *hub_without_scheme(const char *text);

/* Repositories in the cache whose name is `name`, or begins with `name` and a dot, by any owner:
 * "owner/name", sorted. */
void hub_find_names(const char *root, const char *name, cli_strings *out);

char *hub_repo_dir(const char *root, const char *repo); /* owned */
/* Directory of the snapshot of a revision. Owned; NULL if it is not in the cache. */
char *hub_find_snapshot(const char *root, const char *repo, const char *revision);

/* Makes snapshots/<commit>/<name> a link to the blob, replacing another one. This and the next
 * create folders as needed and return 0, or -1 with errno set. */
int hub_link_file(const char *repo_dir, const char *commit, const char *name, const char *digest);
int hub_write_ref(const char *repo_dir, const char *revision, const char *commit);

/* Hexadecimal digits of SHA-256, and a NUL. */
enum { DIGEST_TEXT = 65 };

/* An ETag as a digest in lower case; "" if it is none. 64 hexadecimal digits are the SHA-256 of the
 * bytes (large files); 40 are the SHA-1 that git gives a blob, of "blob <size>\0" and the bytes
 * (small files). */
void digest_from_etag(const char *etag, char digest[DIGEST_TEXT]);
/* The digest of the first `size` bytes of a file: SHA-256, or git's SHA-1. 0, or -1 if it cannot be
 * read. */
int digest_of_file(int fd, uint64_t size, int is_git, char digest[DIGEST_TEXT]);

#endif
