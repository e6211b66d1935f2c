/* hub_cache.h - the Hugging Face cache on disk, as huggingface_hub lays it out:
 *
 *   <root>/models--ORG--NAME/blobs/<etag>                 the bytes, once
 *   <root>/models--ORG--NAME/refs/<revision>              the commit it stands for
 *   <root>/models--ORG--NAME/snapshots/<commit>/<file> -> ../../blobs/<etag>
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RENYI_HUB_CACHE_H
#define RENYI_HUB_CACHE_H

/* $HF_HUB_CACHE, else $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else
 * ~/.cache/huggingface/hub. Owned; NULL when no variable says where. */
char *hub_cache_root(void);

/* "org/name" or "name" of letters, digits, '-', '_', '.', never beginning with '.' or '-'. */
int hub_is_repo_name(const char *text);
/* A file, blob or commit name that is safe as one path component. */
int hub_is_plain_name(const char *text);
/* A branch, tag or commit: plain names joined by '/'. */
int hub_is_revision(const char *text);
int hub_is_commit(const char *text); /* 40 hexadecimal digits */

char *hub_repo_dir(const char *root, const char *repo); /* owned */
/* Directory of the snapshot a revision stands for. Owned; NULL if it is not in the cache. */
char *hub_find_snapshot(const char *root, const char *repo, const char *revision);

/* Both create folders as needed and return 0, or -1 with errno set. */
/* Make snapshots/<commit>/<name> point to the blob, replacing what is there. */
int hub_link_file(const char *repo_dir, const char *commit, const char *name, const char *etag);
int hub_write_ref(const char *repo_dir, const char *revision, const char *commit);

#endif
