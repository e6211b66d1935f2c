/* hub_ask.c - the HEAD request of hub_file.h, and what its refusals mean.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/kit/cli.h"
#include "cli/pull/hub_cache.h"
#include "cli/pull/hub_file.h"

#include <stdlib.h>
#include <string.h>

/* "refs/pr/1" is one part of the address: its slashes are escaped. */
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
    if (!hub_is_commit(r.commit) || !hub_is_plain_name(etag)) {
        cli_error("%s: %s does not answer like a Hugging Face server (no commit or ETag for %s)",
                  s->repo, s->endpoint, name);
        return HUB_FAILED;
    }
    snprintf(out->name, sizeof out->name, "%s", name);
    snprintf(out->etag, sizeof out->etag, "%s", etag);
    snprintf(out->commit, sizeof out->commit, "%s", r.commit);
    /* The Content-Length of a redirect is that of the redirect's own page. */
    out->size = r.linked_size >= 0 ? r.linked_size : r.status < 300 ? r.content_length : -1;
    return HUB_FOUND;
}
