/* hub_file.c - one file of a Hugging Face repository: asks for it and downloads it into the cache.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/pull/hub_file.h"

#include "cli/kit/files.h"
#include "cli/kit/progress.h"
#include "cli/pull/hub_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- asking: the HEAD request -------------------------------------------------------------- */

/* The revision is one part of the URL: "refs/pr/1" needs its slashes escaped. */
static char *file_url(const hub_source *s, const char *name)
{
    char *escaped = cli_alloc(3 * strlen(s->revision) + 1, 1), *to = escaped;

    for (const char *from = s->revision; *from; from++) {
        if (*from == '/')
            to += sprintf(to, "%%2F");
        else
            *to++ = *from;
    }
    char *url = cli_format("%s/%s/resolve/%s/%s", s->endpoint, s->repo, escaped, name);
    free(escaped);
    return url;
}

static hub_answer explain_refusal(const hub_source *s, const char *name, const http_reply *r)
{
    const char *code = r->error_code;

    if (strcmp(code, "RevisionNotFound") == 0)
        cli_error("%s: the repository has no revision '%s'", s->repo, s->revision);
    else if (strcmp(code, "GatedRepo") == 0 || r->status == 403)
        cli_error("%s: access is restricted; accept its terms at %s/%s and set HF_TOKEN", s->repo,
                  s->endpoint, s->repo);
    else if (r->status == 401 || strcmp(code, "RepoNotFound") == 0)
        cli_error("%s: no such repository at %s, or it is private%s", s->repo, s->endpoint,
                  s->has_token ? " and HF_TOKEN gives no access" : " (then set HF_TOKEN)");
    else if (r->status == 404)
        return HUB_ABSENT;
    else if (r->status == 429)
        cli_error("%s: the server asks to slow down (HTTP 429); try again later", s->repo);
    else
        cli_error("%s: the server answered HTTP %ld for %s", s->repo, r->status, name);
    return HUB_FAILED;
}

static http_result head_with_retries(const hub_source *s, const char *url, http_reply *reply)
{
    http_result result = HTTP_CUT;

    for (unsigned i = 0; result == HTTP_CUT && i <= s->retries; i++)
        result = http_head(s->client, url, reply);
    return result;
}

hub_answer hub_file_ask(const hub_source *s, const char *name, hub_file *out)
{
    char *url = file_url(s, name);
    http_reply r;

    *out = (hub_file){.size = -1};
    cli_detail("asking %s", url);
    const http_result result = head_with_retries(s, url, &r);
    free(url);
    if (result != HTTP_DONE) {
        cli_error("%s: cannot reach %s: %s", s->repo, s->endpoint, http_error(s->client));
        return HUB_FAILED;
    }
    if (r.status >= 400 || r.status < 200) return explain_refusal(s, name, &r);
    const char *etag = r.linked_etag[0] ? r.linked_etag : r.etag;
    if (!hub_is_commit(r.commit) || !hub_is_plain_name(etag)) {
        cli_error("%s: %s does not answer like a Hugging Face server (no commit or ETag for %s)",
                  s->repo, s->endpoint, name);
        return HUB_FAILED;
    }
    snprintf(out->name, sizeof out->name, "%s", name);
    snprintf(out->etag, sizeof out->etag, "%s", etag);
    snprintf(out->commit, sizeof out->commit, "%s", r.commit);
    /* The Content-Length of a redirect is the size of its own page. */
    out->size = r.linked_size >= 0 ? r.linked_size : r.status < 300 ? r.content_length : -1;
    return HUB_FOUND;
}

/* ---- downloading: resumable, verified, visible only when whole ------------------------------ */

/* A download into blobs/<etag>.incomplete. */
typedef struct download {
    const hub_source *source;
    const hub_file *file;
    char *path; /* of the incomplete file */
    int fd;
    uint64_t size; /* bytes in it */
    int write_errno, is_too_long, is_begun, is_wrong_range;
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
    if (d->file->size >= 0 && d->size + size > (uint64_t)d->file->size) {
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

/* One request for the rest of the file. 0 = done; 1 = the connection was cut; -1 = reported. */
static int request_rest(download *d, const char *url)
{
    http_reply reply;

    d->is_begun = d->is_wrong_range = 0;
    const http_result result = http_get(d->source->client, url, d->size, on_piece, d, &reply);
    if (d->write_errno) return explain_write_error(d);
    if (d->is_too_long) {
        cli_error("%s: the server sends more than the %lld bytes it announced; nothing was kept",
                  d->file->name, (long long)d->file->size);
        return give_up(d);
    }
    if (result == HTTP_CUT || d->is_wrong_range) return 1; /* again, from the beginning if needed */
    if (result == HTTP_REFUSED) {
        cli_error("%s: %s", d->file->name, http_error(d->source->client));
        return -1;
    }
    if (reply.status == 416 && d->size) return restart_file(d) ? explain_write_error(d) : 1;
    if (reply.status >= 500) return 1;
    if (reply.status != 200 && reply.status != 206) {
        cli_error("%s: the server answered HTTP %ld", d->file->name, reply.status);
        return -1;
    }
    return d->file->size >= 0 && d->size < (uint64_t)d->file->size ? 1 : 0;
}

static int transfer_file(download *d)
{
    char *url = file_url(d->source, d->file->name);
    const int is_whole = d->file->size >= 0 && d->size == (uint64_t)d->file->size;
    int rc = is_whole ? 0 : 1;

    progress_start_bytes(&d->bar, d->file->name, d->file->size > 0 ? (uint64_t)d->file->size : 0,
                         d->size);
    for (unsigned i = 0; rc == 1 && i <= d->source->retries; i++) rc = request_rest(d, url);
    progress_end(&d->bar);
    if (rc == 1) {
        cli_error("%s: the connection was cut after %llu of %lld bytes; run the same command again "
                  "to resume",
                  d->file->name, (unsigned long long)d->size, (long long)d->file->size);
        rc = -1;
    }
    free(url);
    return rc;
}

static int verify_digest(download *d)
{
    switch (digest_check(d->fd, d->size, d->file->etag)) {
    case DIGEST_RIGHT: return 0;
    case DIGEST_UNKNOWN:
        cli_detail("%s: the server gives no digest to check", d->file->name);
        return 0;
    case DIGEST_FAILED: cli_error("%s: cannot read back %s", d->file->name, d->path); return -1;
    case DIGEST_WRONG: break;
    }
    cli_error(
        "%s: the bytes received do not have the announced digest %s; nothing was kept, run again",
        d->file->name, d->file->etag);
    return give_up(d);
}

/* Checked before the download, which may take minutes. */
static int check_space(const download *d)
{
    struct statvfs fs;

    if (d->file->size < 0 || fstatvfs(d->fd, &fs)) return 0;
    const uint64_t space = (uint64_t)fs.f_bavail * fs.f_frsize;
    const uint64_t wanted =
        (uint64_t)d->file->size > d->size ? (uint64_t)d->file->size - d->size : 0;
    if (wanted <= space) return 0;
    cli_error("%s: needs %.1f MB, but only %.1f MB are free in %s", d->file->name,
              (double)wanted * 1e-6, (double)space * 1e-6, d->source->repo_dir);
    return -1;
}

static int open_incomplete(download *d)
{
    struct stat st;

    d->fd = open(d->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (d->fd < 0 || fstat(d->fd, &st)) {
        cli_error("%s: %s", d->path, strerror(errno));
        return -1;
    }
    if (flock(d->fd, LOCK_EX | LOCK_NB)) {
        cli_error("%s: another process is downloading it", d->path);
        return -1;
    }
    d->size = (uint64_t)st.st_size;
    if (d->size &&
        (d->source->force || (d->file->size >= 0 && d->size > (uint64_t)d->file->size)) &&
        restart_file(d)) {
        cli_error("%s: %s", d->path, strerror(d->write_errno));
        return -1;
    }
    if (check_space(d)) return d->size ? -1 : give_up(d);
    return 0;
}

/* Written to disk completely before it gets its name. */
static int publish_blob(download *d, const char *blob)
{
    if (fsync(d->fd) == 0 && rename(d->path, blob) == 0) return 0;
    d->write_errno = errno;
    return explain_write_error(d);
}

static int is_in_cache(const hub_file *file, const char *blob)
{
    struct stat st;
    return stat(blob, &st) == 0 && S_ISREG(st.st_mode) &&
           (file->size < 0 || st.st_size == file->size);
}

int hub_file_fetch(const hub_source *source, const hub_file *file)
{
    char *blobs = cli_format("%s/blobs", source->repo_dir);
    char *blob = cli_format("%s/%s", blobs, file->etag);
    download d = {
        .source = source, .file = file, .fd = -1, .path = cli_format("%s.incomplete", blob)};
    int rc = 0;

    if (!source->force && is_in_cache(file, blob)) {
        cli_detail("%s: already in the cache", file->name);
    } else if (make_directories(blobs)) {
        cli_error("%s: %s", blobs, strerror(errno));
        rc = -1;
    } else {
        rc = open_incomplete(&d);
        if (!rc) rc = transfer_file(&d);
        if (!rc) rc = verify_digest(&d);
        if (!rc) rc = publish_blob(&d, blob);
        if (!rc && d.size < 1000000)
            cli_note("%s: %.1f kB", file->name, (double)d.size * 1e-3);
        else if (!rc)
            cli_note("%s: %.1f MB", file->name, (double)d.size * 1e-6);
    }
    if (rc && d.fd >= 0 && d.size == 0) unlink(d.path); /* empty: nothing to resume */
    if (d.fd >= 0) close(d.fd);
    free(d.path);
    free(blob);
    free(blobs);
    return rc;
}
