/* hub_file.c - one file of a Hugging Face repository: asks the server for it, and whether it fits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/pull/hub_file.h"

#include "cli/kit/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* What the library reads at most (renyi_limits): weights, and everything else. */
static const uint64_t max_model_bytes = 64ull << 30, max_text_bytes = 100000000;

/* ---- asking: the HEAD request -------------------------------------------------------------- */

/* The revision is one part of the URL: "refs/pr/1" needs its slashes escaped. */
char *hub_file_url(const hub_source *s, const char *name)
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

static int has_ending(const char *name, const char *ending)
{
    const size_t n = strlen(name), m = strlen(ending);
    return n >= m && strcmp(name + n - m, ending) == 0;
}

/* A file that cannot be checked is refused before its first byte is downloaded. */
static hub_answer check_answer(const hub_source *s, const hub_file *file, const char *etag)
{
    if (!hub_is_commit(file->commit)) {
        cli_error("%s: %s does not answer like a Hugging Face server (no commit for %s)", s->repo,
                  s->endpoint, file->name);
        return HUB_FAILED;
    }
    if (file->size > 0 && (uint64_t)file->size > file->max_size) {
        cli_error("%s: the server announces %lld bytes; renyi reads at most %llu of such a file",
                  file->name, (long long)file->size, (unsigned long long)file->max_size);
        return HUB_FAILED;
    }
    if (file->digest[0]) return HUB_FOUND;
    if (!s->allow_unverified) {
        cli_error("%s: the server gives no digest to check it by (ETag '%s'), so it was not "
                  "downloaded; --allow-unverified takes it unchecked",
                  file->name, etag);
        return HUB_FAILED;
    }
    cli_warn("%s: NOT VERIFIED: the server gives no digest to check it by (ETag '%s')", file->name,
             etag);
    return HUB_FOUND;
}

hub_answer hub_file_ask(const hub_source *s, const char *name, hub_file *out)
{
    char *url = hub_file_url(s, name);
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
    snprintf(out->name, sizeof out->name, "%s", name);
    digest_from_etag(etag, out->digest);
    digest_from_etag(r.commit, out->commit); /* a commit is a SHA-1, too */
    /* The Content-Length of a redirect is the size of its own page. */
    out->size = r.linked_size >= 0 ? r.linked_size : r.status < 300 ? r.content_length : -1;
    out->max_size = has_ending(name, ".safetensors") || has_ending(name, ".bin") ? max_model_bytes
                                                                                 : max_text_bytes;
    return check_answer(s, out, etag);
}

/* ---- space: checked before the downloads, which may take hours ------------------------------ */

int hub_file_is_cached(const hub_source *s, const hub_file *file)
{
    char *blob = cli_format("%s/blobs/%s", s->repo_dir, file->digest);
    struct stat st;
    const int is_there = file->digest[0] && stat(blob, &st) == 0 && S_ISREG(st.st_mode) &&
                         (file->size < 0 || st.st_size == file->size);

    free(blob);
    return is_there && !s->force;
}

char *hub_file_part(const hub_source *s, const hub_file *file)
{
    return cli_format("%s/blobs/%s.incomplete", s->repo_dir,
                      file->digest[0] ? file->digest : file->name);
}

/* Bytes that a download will add to the disk; 0 if their number is unknown. */
static uint64_t missing_bytes(const hub_source *s, const hub_file *file)
{
    if (file->size <= 0 || hub_file_is_cached(s, file)) return 0;
    char *part = hub_file_part(s, file);
    struct stat st;
    const int64_t there = stat(part, &st) == 0 && st.st_size <= file->size ? st.st_size : 0;

    free(part);
    return (uint64_t)(file->size - there);
}

int hub_files_fit(const hub_source *s, const hub_file *files, size_t count, uint64_t *space)
{
    char *blobs = cli_format("%s/blobs", s->repo_dir);
    uint64_t wanted = 0;
    struct statvfs fs;

    *space = UINT64_MAX;
    int rc = make_directories(blobs);
    if (rc) cli_error("%s: %s", blobs, strerror(errno));
    if (!rc && statvfs(blobs, &fs) == 0) *space = (uint64_t)fs.f_bavail * fs.f_frsize;
    free(blobs);
    for (size_t i = 0; i < count; i++) wanted += missing_bytes(s, &files[i]);
    if (rc || wanted <= *space) return rc;
    cli_error("%s%s: %.1f MB to download, but only %.1f MB are free in %s", files[0].name,
              count > 1 ? " and the other shards" : "", (double)wanted * 1e-6,
              (double)*space * 1e-6, s->repo_dir);
    return -1;
}
