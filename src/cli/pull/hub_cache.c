/* hub_cache.c - the Hugging Face cache on disk: paths, links, refs, and checks of downloaded bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/pull/hub_cache.h"

#include "cli/kit/files.h"

#include "renyi/gallery.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

char *hub_cache_root(void)
{
    if (variable("HF_HUB_CACHE")) return cli_copy(variable("HF_HUB_CACHE"));
    if (variable("HF_HOME")) return cli_format("%s/hub", variable("HF_HOME"));
    if (variable("XDG_CACHE_HOME"))
        return cli_format("%s/huggingface/hub", variable("XDG_CACHE_HOME"));
    if (variable("HOME")) return cli_format("%s/.cache/huggingface/hub", variable("HOME"));
    return NULL;
}

/* One path component of `length` bytes that cannot leave the directory and is not hidden. */
static int is_plain(const char *text, size_t length)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";

    if (length == 0 || length > 200 || text[0] == '.' || text[0] == '-') return 0;
    return strspn(text, allowed) >= length;
}

int hub_is_plain_name(const char *text) { return is_plain(text, strlen(text)); }

static int is_plain_path(const char *text, int max_parts)
{
    for (int part = 0; part < max_parts; part++) {
        const size_t length = strcspn(text, "/");
        if (!is_plain(text, length)) return 0;
        text += length;
        if (!*text) return 1;
        text++;
    }
    return 0;
}

int hub_is_repo_name(const char *text) { return is_plain_path(text, 2) && !strstr(text, "--"); }

int hub_is_revision(const char *text) { return is_plain_path(text, 8); }

int hub_is_commit(const char *text)
{
    return strlen(text) == 40 && strspn(text, "0123456789abcdef") == 40;
}

const char *hub_without_scheme(const char *text)
{
    static const char *const schemes[] = {"hf-hub:", "hf_hub:", "hf:"};

    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncmp(text, schemes[i], strlen(schemes[i])) == 0) return text + strlen(schemes[i]);
    return text;
}

typedef struct name_search {
    const char *name;
    cli_strings *out;
} name_search;

/* "models--OWNER--NAME" */
static void take_name(void *user, const char *folder)
{
    const name_search *s = user;
    const char *start = "models--";
    const size_t n = strlen(s->name);

    if (strncmp(folder, start, strlen(start)) != 0) return;
    const char *owner = folder + strlen(start), *between = strstr(owner, "--");
    if (!between || strncmp(between + 2, s->name, n) != 0) return;
    if (between[2 + n] && between[2 + n] != '.') return;
    cli_strings_add(s->out, cli_format("%.*s/%s", (int)(between - owner), owner, between + 2));
}

void hub_find_names(const char *root, const char *name, cli_strings *out)
{
    name_search s = {name, out};
    renyi_error err = {0};

    (void)!renyi_folder_names(root, take_name, &s, &err); /* no cache: no names */
}

char *hub_repo_dir(const char *root, const char *repo)
{
    const char *slash = strchr(repo, '/');
    if (!slash) return cli_format("%s/models--%s", root, repo);
    return cli_format("%s/models--%.*s--%s", root, (int)(slash - repo), repo, slash + 1);
}

/* The commit in refs/<revision>, owned; NULL if there is none. */
static char *read_ref(const char *repo_dir, const char *revision)
{
    char *path = cli_format("%s/refs/%s", repo_dir, revision), *why = NULL, *commit = NULL;
    file_bytes bytes;

    if (read_file(path, 4096, &bytes, &why) == 0) {
        commit = (char *)bytes.data;
        commit[strcspn(commit, " \t\r\n")] = 0;
        if (!hub_is_commit(commit)) {
            free(commit);
            commit = NULL;
        }
    }
    free(why);
    free(path);
    return commit;
}

char *hub_find_snapshot(const char *root, const char *repo, const char *revision)
{
    char *repo_dir = hub_repo_dir(root, repo), *snapshot = NULL;
    char *commit = hub_is_commit(revision) ? cli_copy(revision) : read_ref(repo_dir, revision);
    struct stat st;

    if (commit) {
        snapshot = cli_format("%s/snapshots/%s", repo_dir, commit);
        if (stat(snapshot, &st) || !S_ISDIR(st.st_mode)) {
            free(snapshot);
            snapshot = NULL;
        }
    }
    free(commit);
    free(repo_dir);
    return snapshot;
}

/* Another link is replaced by a rename, so that a reader sees the old one or the new one. */
int hub_link_file(const char *repo_dir, const char *commit, const char *name, const char *digest)
{
    char *snapshot = cli_format("%s/snapshots/%s", repo_dir, commit);
    char *link = cli_format("%s/%s", snapshot, name);
    char *temporary = cli_format("%s/.%s.%ld", snapshot, name, (long)getpid());
    char *target = cli_format("../../blobs/%s", digest), found[128];
    int rc = make_directories(snapshot);

    if (!rc && symlink(target, link)) {
        const ssize_t n = readlink(link, found, sizeof found);
        const int is_same = n == (ssize_t)strlen(target) && memcmp(found, target, (size_t)n) == 0;
        unlink(temporary);
        if (!is_same) rc = symlink(target, temporary);
        if (!is_same && !rc && (rc = rename(temporary, link))) unlink(temporary);
    }
    free(target);
    free(temporary);
    free(link);
    free(snapshot);
    return rc;
}

int hub_write_ref(const char *repo_dir, const char *revision, const char *commit)
{
    char *path = cli_format("%s/refs/%s", repo_dir, revision);
    char *slash = strrchr(path, '/');

    *slash = 0;
    int rc = make_directories(path);
    *slash = '/';
    if (rc)
        cli_error("%s: %s", path, strerror(errno));
    else
        rc = write_whole_file(path, commit, strlen(commit));
    free(path);
    return rc;
}

/* ---- digests ------------------------------------------------------------------------------- */

enum { CHUNK = 1 << 20 };

/* Adds `size` bytes of the file; 0 or -1. */
static int feed_file(EVP_MD_CTX *md, int fd, uint64_t size)
{
    unsigned char *chunk = cli_alloc(CHUNK, 1);
    uint64_t done = 0;

    while (done < size) {
        const ssize_t n = pread(fd, chunk, CHUNK, (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0 || EVP_DigestUpdate(md, chunk, (size_t)n) != 1) break;
        done += (uint64_t)n;
    }
    free(chunk);
    return done == size ? 0 : -1;
}

int digest_of_file(int fd, uint64_t size, int is_git, char digest[DIGEST_TEXT])
{
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    int rc = md && EVP_DigestInit_ex(md, is_git ? EVP_sha1() : EVP_sha256(), NULL) == 1 ? 0 : -1;

    if (!rc && is_git) {
        char header[40];
        const int n = snprintf(header, sizeof header, "blob %llu", (unsigned long long)size);
        if (EVP_DigestUpdate(md, header, (size_t)n + 1) != 1) rc = -1; /* with its NUL */
    }
    if (!rc) rc = feed_file(md, fd, size);
    if (!rc && EVP_DigestFinal_ex(md, bytes, &length) != 1) rc = -1;
    EVP_MD_CTX_free(md);
    for (unsigned i = 0; !rc && i < length; i++) snprintf(digest + 2 * i, 3, "%02x", bytes[i]);
    return rc;
}

void digest_from_etag(const char *etag, char digest[DIGEST_TEXT])
{
    const size_t length = strlen(etag);

    digest[0] = 0;
    if ((length != 40 && length != 64) || strspn(etag, "0123456789abcdefABCDEF") != length) return;
    for (size_t i = 0; i <= length; i++)
        digest[i] = etag[i] >= 'A' && etag[i] <= 'F' ? (char)(etag[i] - 'A' + 'a') : etag[i];
}
