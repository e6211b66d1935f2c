/* hub_download.c - downloads one file into the cache: resumed, checked, visible only when whole.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/files.h"
#include "cli/kit/progress.h"
#include "cli/pull/hub_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A download into the incomplete file. */
typedef struct download {
    const hub_source *source;
    hub_file *file;
    char *path; /* of the incomplete file */
    int fd;
    uint64_t size, max_size; /* bytes in it, and the most that may be */
    int write_errno, is_too_long, is_begun, is_wrong_range;
    char trouble[160]; /* why the last request did not bring the rest */
    progress_bar bar;
} download;

static int write_all(download *d, const char *data, size_t size)
{
    while (size) {
        const ssize_t n = pwrite(d->fd, data, size, (off_t)d->size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            d->write_errno = n < 0 ? errno : ENOSPC;
            return -1;
        }
        d->size += (uint64_t)n;
        data += n;
        size -= (size_t)n;
    }
    return 0;
}

static int restart_file(download *d)
{
    d->size = 0;
    if (ftruncate(d->fd, 0) == 0) return 0;
    d->write_errno = errno;
    return -1;
}

static int on_piece(void *user, const http_reply *reply, const void *data, size_t size)
{
    download *d = user;

    if (!d->is_begun) {
        const int continues = reply->status == 206 && reply->range_start == (int64_t)d->size;
        if (!continues && d->size && restart_file(d))
            return -1; /* the server does not support ranges */
        d->is_wrong_range = reply->status == 206 && !continues;
        if (d->is_wrong_range) return -1;
        d->is_begun = 1;
    }
    if (size > d->max_size - d->size) {
        d->is_too_long = 1;
        return -1;
    }
    if (write_all(d, data, size)) return -1;
    progress_update(&d->bar, d->size);
    return 0;
}

/* Removes the incomplete file. */
static int give_up(download *d)
{
    unlink(d->path);
    return -1;
}

static int explain_write_error(download *d)
{
    if (d->write_errno == ENOSPC || d->write_errno == EDQUOT || d->write_errno == EFBIG)
        cli_error("%s: no space for it in %s (%s); the partial file was removed", d->file->name,
                  d->source->repo_dir, strerror(d->write_errno));
    else
        cli_error("%s: cannot write %s: %s", d->file->name, d->path, strerror(d->write_errno));
    return give_up(d);
}

static int explain_too_long(download *d)
{
    if (d->file->size >= 0)
        cli_error("%s: the server sends more than the %lld bytes it announced; nothing was kept",
                  d->file->name, (long long)d->file->size);
    else
        cli_error("%s: the server announces no size and sends more than %llu bytes, the most that "
                  "%s; nothing was kept",
                  d->file->name, (unsigned long long)d->max_size,
                  d->max_size < d->file->max_size ? "the free space allows"
                                                  : "renyi reads of such a file");
    return give_up(d);
}

/* A reply without the rest of the file: 1 = another attempt may help, -1 = reported. */
static int explain_status(download *d, long status)
{
    if (status == 416 && d->size && restart_file(d)) return explain_write_error(d);
    snprintf(d->trouble, sizeof d->trouble, "the server answered HTTP %ld", status);
    if (status == 416 || status >= 500) return 1;
    cli_error("%s: %s", d->file->name, d->trouble);
    return -1;
}

/* One request for the rest of the file. 0 = done; 1 = another attempt may help; -1 = reported. */
static int request_rest(download *d, const char *url)
{
    http_reply reply;

    d->is_begun = d->is_wrong_range = 0;
    const http_result result = http_get(d->source->client, url, d->size, on_piece, d, &reply);
    if (d->write_errno) return explain_write_error(d);
    if (d->is_too_long) return explain_too_long(d);
    if (d->is_wrong_range) {
        snprintf(d->trouble, sizeof d->trouble, "the server sends another range than asked for");
        return 1; /* again, from the beginning */
    }
    if (result == HTTP_CUT) {
        snprintf(d->trouble, sizeof d->trouble, "the connection was cut (%s)",
                 http_error(d->source->client));
        return 1;
    }
    if (result == HTTP_REFUSED) {
        cli_error("%s: %s", d->file->name, http_error(d->source->client));
        return -1;
    }
    if (reply.status != 200 && reply.status != 206) return explain_status(d, reply.status);
    snprintf(d->trouble, sizeof d->trouble, "the answer is too short");
    return d->file->size >= 0 && d->size < (uint64_t)d->file->size ? 1 : 0;
}

/* The bytes of a file without a digest must come from one answer: nobody would notice a mixture. */
static int may_resume(const download *d) { return d->file->digest[0] != 0; }

static int transfer_file(download *d)
{
    char *url = hub_file_url(d->source, d->file->name);
    const int is_whole = d->file->size >= 0 && d->size == (uint64_t)d->file->size;
    int rc = is_whole ? 0 : 1;

    progress_start_bytes(&d->bar, d->file->name, d->file->size > 0 ? (uint64_t)d->file->size : 0,
                         d->size);
    for (unsigned i = 0; rc == 1 && i <= d->source->retries; i++) {
        if (i && !may_resume(d) && restart_file(d))
            rc = explain_write_error(d);
        else
            rc = request_rest(d, url);
    }
    progress_end(&d->bar);
    if (rc == 1) {
        char of[40] = "";
        if (d->file->size >= 0) snprintf(of, sizeof of, " of %lld", (long long)d->file->size);
        cli_error("%s: %s, after %llu%s bytes; run the same command again%s", d->file->name,
                  d->trouble, (unsigned long long)d->size, of, may_resume(d) ? " to resume" : "");
        rc = -1;
    }
    free(url);
    return rc;
}

/* A file that the server gives no digest for is stored under its own. */
static int verify_digest(download *d)
{
    hub_file *file = d->file;
    char found[DIGEST_TEXT];

    if (digest_of_file(d->fd, d->size, strlen(file->digest) == 40, found)) {
        cli_error("%s: cannot read back %s", file->name, d->path);
        return -1;
    }
    if (!file->digest[0]) memcpy(file->digest, found, sizeof found);
    if (strcmp(found, file->digest) == 0) return 0;
    cli_error(
        "%s: the bytes received do not have the announced digest %s; nothing was kept, run again",
        file->name, file->digest);
    return give_up(d);
}

/* Is this still the file at the path? Another process may have renamed it before we had the lock.
 */
static int is_at_path(const download *d, const struct stat *st)
{
    struct stat now;
    return lstat(d->path, &now) == 0 && now.st_dev == st->st_dev && now.st_ino == st->st_ino;
}

/* A link that somebody put there is not followed. */
static int lock_incomplete(download *d)
{
    struct stat st;

    d->fd = open(d->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (d->fd < 0) {
        cli_error("%s: %s", d->path, strerror(errno));
        return -1;
    }
    if (flock(d->fd, LOCK_EX | LOCK_NB) || fstat(d->fd, &st) || !is_at_path(d, &st)) {
        cli_error("%s: another process is downloading it", d->path);
        return -1;
    }
    if (!S_ISREG(st.st_mode)) {
        cli_error("%s: not a regular file; remove it", d->path);
        return -1;
    }
    d->size = (uint64_t)st.st_size;
    const int is_useful = may_resume(d) && !d->source->force && d->size <= d->max_size;
    if (is_useful || !d->size || !restart_file(d)) return 0;
    cli_error("%s: %s", d->path, strerror(d->write_errno));
    return -1;
}

/* Written to disk completely before it gets its name. */
static int publish_blob(download *d)
{
    char *blob = cli_format("%s/blobs/%s", d->source->repo_dir, d->file->digest);
    const int is_done = fsync(d->fd) == 0 && rename(d->path, blob) == 0;

    if (!is_done) d->write_errno = errno;
    free(blob);
    return is_done ? 0 : explain_write_error(d);
}

/* Unknown sizes: nineteen twentieths of the free space, so that other programs can go on. */
static uint64_t most_bytes(const hub_file *file, uint64_t space)
{
    if (file->size >= 0) return (uint64_t)file->size;
    const uint64_t share = space - space / 20;
    return share < file->max_size ? share : file->max_size;
}

/* In the file at d->path, which is locked. */
static int fetch_locked(download *d)
{
    int rc = transfer_file(d);

    if (!rc) rc = verify_digest(d);
    if (!rc) rc = publish_blob(d);
    if (!rc && d->size < 1000000)
        cli_note("%s: %.1f kB", d->file->name, (double)d->size * 1e-3);
    else if (!rc)
        cli_note("%s: %.1f MB", d->file->name, (double)d->size * 1e-6);
    if (rc && (d->size == 0 || !may_resume(d))) unlink(d->path); /* nothing to resume */
    return rc;
}

int hub_file_fetch(const hub_source *source, hub_file *file)
{
    download d = {.source = source, .file = file, .fd = -1};
    uint64_t space;

    if (hub_file_is_cached(source, file)) {
        cli_detail("%s: already in the cache", file->name);
        return 0;
    }
    if (hub_files_fit(source, file, 1, &space)) return -1;
    d.max_size = most_bytes(file, space);
    d.path = hub_file_part(source, file);
    int rc = lock_incomplete(&d);
    if (!rc) rc = fetch_locked(&d);
    if (d.fd >= 0) close(d.fd);
    free(d.path);
    return rc;
}
