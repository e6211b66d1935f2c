/* api_keys.c - the keys that clients show: read from a file, compared in constant time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/api_keys.h"

#include "cli/kit/cli.h"
#include "cli/kit/files.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static const size_t max_file = 1u << 20;

static int digest(unsigned char out[API_KEY_DIGEST], const char *key, size_t n)
{
    return EVP_Digest(key, n, out, NULL, EVP_sha256(), NULL) == 1 ? 0 : -1;
}

/* The keys in the lines of a file; -1 after reporting. */
static int take_lines(api_keys *k, const cli_strings *lines)
{
    k->digests = cli_alloc(lines->count + 1, sizeof *k->digests);
    for (size_t i = 0; i < lines->count; i++) {
        const char *line = lines->items[i] + strspn(lines->items[i], " \t");
        size_t n = strlen(line);
        while (n && strchr(" \t\r", line[n - 1])) n--;
        if (!n || *line == '#') continue;
        if (n < API_KEY_LEAST) {
            cli_error("%s: line %zu: a key has at least %d characters", k->path, i + 1,
                      API_KEY_LEAST);
            return -1;
        }
        if (digest(k->digests[k->n++], line, n)) {
            cli_error("%s: SHA-256 is not available", k->path);
            return -1;
        }
    }
    if (k->n) return 0;
    cli_error("%s: has no key; write one per line, for example from:  openssl rand -hex 24",
              k->path);
    return -1;
}

static void warn_if_open(const char *path)
{
    struct stat st;

    if (stat(path, &st) == 0 && (st.st_mode & (S_IRGRP | S_IROTH)))
        cli_warn("%s: other users can read the keys; to change that:  chmod 600 %s", path, path);
}

static int read_keys(api_keys *out, const char *path)
{
    cli_strings lines = {0};
    char *why = NULL;

    *out = (api_keys){.path = path};
    if (read_lines(path, max_file, &lines, &why)) {
        cli_error("%s: %s; a file with a key per line is needed, for example from:  openssl rand "
                  "-hex 24",
                  path, why);
        free(why);
        return -1;
    }
    warn_if_open(path);
    const int code = take_lines(out, &lines);
    for (size_t i = 0; i < lines.count; i++)
        OPENSSL_cleanse(lines.items[i], strlen(lines.items[i]));
    cli_strings_free(&lines);
    if (!code) return 0;
    free(out->digests);
    out->digests = NULL;
    return -1;
}

int api_keys_open(api_keys *k, const char *path)
{
    int code = 0;

    *k = (api_keys){0};
    if (path) code = read_keys(k, path);
    pthread_mutex_init(&k->lock, NULL);
    return code;
}

int api_keys_reload(api_keys *k)
{
    api_keys fresh;

    if (!k->path || read_keys(&fresh, k->path)) return -1;
    pthread_mutex_lock(&k->lock);
    void *old = k->digests;
    k->digests = fresh.digests;
    k->n = fresh.n;
    pthread_mutex_unlock(&k->lock);
    free(old);
    return 0;
}

void api_keys_free(api_keys *k)
{
    free(k->digests);
    pthread_mutex_destroy(&k->lock);
}

int api_keys_allow(api_keys *k, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    unsigned char shown[API_KEY_DIGEST];
    int found = 0;

    if (!k->path) return 1;
    if (!authorization || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0) return 0;
    const char *key = authorization + sizeof scheme - 1;
    if (digest(shown, key, strlen(key))) return 0;
    pthread_mutex_lock(&k->lock);
    for (size_t i = 0; i < k->n; i++) /* all of them, whichever is right */
        found |= CRYPTO_memcmp(k->digests[i], shown, sizeof shown) == 0;
    pthread_mutex_unlock(&k->lock);
    return found;
}
