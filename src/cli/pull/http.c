/* http.c - HEAD and GET requests over libcurl, with its own handling of redirects.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/pull/http.h"

#include "cli/kit/cli.h"

#include "renyi/renyi.h"
#include <curl/curl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_REDIRECTS = 8 };

struct http_client {
    CURL *curl;
    http_settings settings;
    double end_ms; /* when the time is over, by cli_now_ms */
    char error[CURL_ERROR_SIZE + 256];
};

/* What the callbacks of one request need. */
typedef struct exchange {
    http_reply *reply;
    http_sink *sink;
    void *user;
    size_t header_bytes, page_bytes;
    int sink_stopped, is_page_cut;
} exchange;

http_client *http_client_new(const http_settings *settings)
{
    http_client *client = cli_alloc(1, sizeof *client);

    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) client->curl = curl_easy_init();
    client->settings = *settings;
    client->end_ms = cli_now_ms() + 1e3 * (double)settings->total_seconds;
    if (client->curl) return client;
    free(client);
    return NULL;
}

void http_client_free(http_client *client)
{
    if (!client) return;
    curl_easy_cleanup(client->curl);
    curl_global_cleanup();
    free(client);
}

const char *http_error(const http_client *client) { return client->error; }

/* ---- replies ------------------------------------------------------------------------------- */

/* ETags come quoted, some with W/ in front: "abc", W/"abc". */
static void copy_etag(char *to, size_t size, const char *value)
{
    if (strncmp(value, "W/", 2) == 0) value += 2;
    if (*value == '"') value++;
    snprintf(to, size, "%.*s", (int)strcspn(value, "\""), value);
}

/* A number that ends with the text or with `end`; -1 if it is none. */
static int64_t parse_size(const char *value, char end)
{
    char *rest;
    const long long n = strtoll(value, &rest, 10);
    return rest == value || n < 0 || (*rest && *rest != end) ? -1 : n;
}

static void note_header(http_reply *r, const char *name, const char *value)
{
    if (strcasecmp(name, "etag") == 0) copy_etag(r->etag, sizeof r->etag, value);
    if (strcasecmp(name, "x-linked-etag") == 0)
        copy_etag(r->linked_etag, sizeof r->linked_etag, value);
    if (strcasecmp(name, "x-linked-size") == 0) r->linked_size = parse_size(value, 0);
    if (strcasecmp(name, "content-length") == 0) r->content_length = parse_size(value, 0);
    if (strcasecmp(name, "content-range") == 0 && strncasecmp(value, "bytes ", 6) == 0)
        r->range_start = parse_size(value + 6, '-');
    if (strcasecmp(name, "x-repo-commit") == 0) snprintf(r->commit, sizeof r->commit, "%s", value);
    if (strcasecmp(name, "x-error-code") == 0)
        snprintf(r->error_code, sizeof r->error_code, "%s", value);
    if (strcasecmp(name, "location") == 0 && strlen(value) < sizeof r->location)
        snprintf(r->location, sizeof r->location, "%s", value);
}

static size_t on_header(char *data, size_t size, size_t count, void *user)
{
    exchange *x = user;
    const size_t length = size * count;
    char line[5000];

    x->header_bytes += length;
    if (x->header_bytes > HTTP_MAX_HEADERS) return 0;
    if (length > 5 && strncmp(data, "HTTP/", 5) == 0) {
        *x->reply = (http_reply){.content_length = -1, .linked_size = -1, .range_start = -1};
        const char *space = memchr(data, ' ', length);
        x->reply->status = space ? strtol(space, NULL, 10) : 0;
        return length;
    }
    if (length >= sizeof line) return length;
    memcpy(line, data, length);
    line[length] = 0;
    line[strcspn(line, "\r\n")] = 0;
    char *value = strchr(line, ':');
    if (!value) return length;
    *value++ = 0;
    note_header(x->reply, line, value + strspn(value, " \t"));
    return length;
}

static size_t on_body(char *data, size_t size, size_t count, void *user)
{
    exchange *x = user;
    const int is_wanted = x->sink && (x->reply->status == 200 || x->reply->status == 206);

    if (!is_wanted) { /* the text of an error page, which nobody reads */
        x->page_bytes += size * count;
        x->is_page_cut = x->page_bytes > HTTP_MAX_PAGE;
        return x->is_page_cut ? 0 : size * count;
    }
    if (x->sink(x->user, x->reply, data, size * count) == 0) return size * count;
    x->sink_stopped = 1;
    return 0;
}

/* ---- one request --------------------------------------------------------------------------- */

static int is_same_origin(const char *a, const char *b)
{
    const char *host = strstr(b, "://");
    const size_t length = host ? (size_t)(host + 3 - b) + strcspn(host + 3, "/?#") : 0;

    if (!length || strncasecmp(a, b, length) != 0) return 0;
    return a[length] == 0 || strchr("/?#", a[length]) != NULL;
}

static void set_options(http_client *c, const char *url, int is_head, exchange *x)
{
    curl_easy_reset(c->curl);
    c->error[0] = 0;
    curl_easy_setopt(c->curl, CURLOPT_URL, url);
    curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, c->error);
    curl_easy_setopt(c->curl, CURLOPT_NOBODY, is_head ? 1L : 0L);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(c->curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(c->curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c->curl, CURLOPT_CONNECTTIMEOUT, 30L);
    curl_easy_setopt(c->curl, CURLOPT_LOW_SPEED_LIMIT, (long)HTTP_LEAST_SPEED);
    curl_easy_setopt(c->curl, CURLOPT_LOW_SPEED_TIME, c->settings.stall_seconds);
    curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, (long)ceil(fmax(1.0, c->end_ms - cli_now_ms())));
    curl_easy_setopt(c->curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c->curl, CURLOPT_HEADERDATA, x);
    curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, x);
}

/* Accept-Encoding: a compressed body would have another size than the one announced. */
static struct curl_slist *make_headers(const http_client *c, const char *url, uint64_t from)
{
    struct curl_slist *list = curl_slist_append(NULL, "Accept-Encoding: identity");
    char *line = cli_format("User-Agent: renyi/%s", renyi_version());

    list = curl_slist_append(list, line);
    free(line);
    if (from) {
        line = cli_format("Range: bytes=%llu-", (unsigned long long)from);
        list = curl_slist_append(list, line);
        free(line);
    }
    if (c->settings.token && is_same_origin(url, c->settings.endpoint)) {
        line = cli_format("Authorization: Bearer %s", c->settings.token);
        list = curl_slist_append(list, line);
        free(line);
    }
    return list;
}

/* Errors that another attempt cannot fix. */
static int is_permanent(CURLcode code)
{
    return code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ||
           code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_PEER_FAILED_VERIFICATION ||
           code == CURLE_SSL_CACERT_BADFILE;
}

static http_result out_of_time(http_client *c)
{
    snprintf(c->error, sizeof c->error, "not done in %ld s (--deadline)",
             c->settings.total_seconds);
    return HTTP_REFUSED;
}

static http_result perform_request(http_client *c, const char *url, int is_head, uint64_t from,
                                   exchange *x)
{
    if (cli_now_ms() >= c->end_ms) return out_of_time(c);
    x->header_bytes = x->page_bytes = 0;
    x->is_page_cut = 0;
    set_options(c, url, is_head, x);
    struct curl_slist *headers = make_headers(c, url, from);
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, headers);
    const CURLcode code = curl_easy_perform(c->curl);
    curl_slist_free_all(headers);
    if (code == CURLE_OK || x->is_page_cut) return HTTP_DONE;
    if (cli_now_ms() >= c->end_ms) return out_of_time(c);
    if (x->header_bytes > HTTP_MAX_HEADERS) {
        snprintf(c->error, sizeof c->error, "more than %d bytes of headers", HTTP_MAX_HEADERS);
        return HTTP_REFUSED;
    }
    if (!c->error[0]) snprintf(c->error, sizeof c->error, "%s", curl_easy_strerror(code));
    return x->sink_stopped || is_permanent(code) ? HTTP_REFUSED : HTTP_CUT;
}

/* ---- redirects ----------------------------------------------------------------------------- */

static int is_redirect(const http_reply *r)
{
    return r->location[0] && (r->status == 301 || r->status == 302 || r->status == 303 ||
                              r->status == 307 || r->status == 308);
}

/* The absolute address of the reply's Location, owned; NULL with the error set. */
static char *redirect_target(http_client *c, const char *url, const http_reply *reply)
{
    CURLU *parsed = curl_url();
    char *text = NULL, *target = NULL;

    if (parsed && curl_url_set(parsed, CURLUPART_URL, url, 0) == CURLUE_OK &&
        curl_url_set(parsed, CURLUPART_URL, reply->location, 0) == CURLUE_OK &&
        curl_url_get(parsed, CURLUPART_URL, &text, 0) == CURLUE_OK)
        target = cli_copy(text);
    curl_free(text);
    curl_url_cleanup(parsed);
    if (target && strncasecmp(url, "https:", 6) == 0 && strncasecmp(target, "https:", 6) != 0) {
        free(target);
        target = NULL;
    }
    if (!target)
        snprintf(c->error, sizeof c->error, "redirected to an address that is not accepted");
    return target;
}

static int is_relative(const char *location)
{
    return !strstr(location, "://") && strncmp(location, "//", 2);
}

static http_result follow_redirects(http_client *c, const char *url, int is_head, uint64_t from,
                                    exchange *x)
{
    char *at = cli_copy(url);
    http_result result = HTTP_REFUSED;

    for (int hop = 0; at; hop++) {
        result = perform_request(c, at, is_head, from, x);
        if (result != HTTP_DONE || !is_redirect(x->reply)) break;
        if (is_head && (x->reply->linked_etag[0] || !is_relative(x->reply->location))) break;
        if (hop == MAX_REDIRECTS) {
            snprintf(c->error, sizeof c->error, "more than %d redirects", MAX_REDIRECTS);
            result = HTTP_REFUSED;
            break;
        }
        char *next = redirect_target(c, at, x->reply);
        free(at);
        at = next;
        if (!at) result = HTTP_REFUSED;
    }
    free(at);
    return result;
}

http_result http_head(http_client *client, const char *url, http_reply *reply)
{
    exchange x = {.reply = reply};
    *reply = (http_reply){0};
    return follow_redirects(client, url, 1, 0, &x);
}

http_result http_get(http_client *client, const char *url, uint64_t from, http_sink *sink,
                     void *user, http_reply *reply)
{
    exchange x = {.reply = reply, .sink = sink, .user = user};
    *reply = (http_reply){0};
    return follow_redirects(client, url, 0, from, &x);
}
