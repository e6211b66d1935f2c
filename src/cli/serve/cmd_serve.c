/* cmd_serve.c - renyi serve: the command line; start, signals and end of the server.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/http_listen.h"
#include "cli/serve/http_server.h"
#include "cli/serve/serve_model.h"
#include "cli/verbs.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 100 };

/* ---- signals -----------------------------------------------------------------------------------
 */

/* Blocked in every thread; the main thread asks for them. */
static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
    sigaddset(set, SERVE_WAKE);
    pthread_sigmask(SIG_BLOCK, set, NULL);
}

/* The next signal within so many milliseconds; 0 = none. */
static int next_signal(const sigset_t *set, long ms)
{
    const struct timespec limit = {.tv_nsec = ms * 1000000L};
    const int signal = sigtimedwait(set, NULL, &limit);
    return signal > 0 ? signal : 0;
}

static void reload_keys(serve_server *s)
{
    if (!s->keys.path)
        log_event("SIGHUP: there is no --api-key-file to read again");
    else if (api_keys_reload(&s->keys) == 0)
        log_event("SIGHUP: %zu keys read from %s", s->keys.n, s->keys.path);
    else
        cli_warn("the keys stay as they were");
}

static void end_slow(http_server *h)
{
    for (size_t n = connections_end_slow(&h->connections); n; n--)
        metrics_add(&h->server->metrics, &h->server->metrics.timeouts);
}

/* 1 at SIGTERM or SIGINT; 0 when the loader is done, if `loads`. Signals that came while models
 * were loaded count, also when the loader ended before they were read. */
static int wait_for_end(http_server *h, const sigset_t *signals, int loads)
{
    for (;;) {
        const int is_done = loads && atomic_load(&h->server->loading) != SERVE_LOADING;
        const int signal = next_signal(signals, is_done ? 0 : TICK_MS);
        if (signal == SIGHUP) reload_keys(h->server);
        if (signal == SIGTERM || signal == SIGINT) return 1;
        if (is_done && !signal) return 0;
        end_slow(h);
    }
}

/* ---- the end -----------------------------------------------------------------------------------
 */

/* Waits until no request is under way, at most `seconds`. A second signal ends the wait. */
static int wait_for_requests(http_server *h, const sigset_t *signals, double seconds)
{
    const double until = cli_now_ms() + 1e3 * seconds;

    while (atomic_load(&h->server->n_admitted)) {
        if (cli_now_ms() > until) return -1;
        const int signal = next_signal(signals, TICK_MS);
        if (signal == SIGTERM || signal == SIGINT) return -1;
        end_slow(h);
    }
    return 0;
}

/* No new requests; those under way are answered. After the limit they are ended with 503. */
static void drain(http_server *h, const sigset_t *signals)
{
    serve_server *s = h->server;

    log_event("stopping: %u requests are under way", atomic_load(&s->n_admitted));
    atomic_store(&s->is_draining, 1);
    http_stop_accepting(h);
    if (wait_for_requests(h, signals, (double)s->config->drain_seconds) == 0) return;
    cli_warn("stopping: %u requests are ended", atomic_load(&s->n_admitted));
    atomic_store(&s->is_aborting, 1);
    wait_for_requests(h, signals, 5.0);
}

/* ---- run ---------------------------------------------------------------------------------------
 */

static void say_listening(const http_server *h)
{
    const serve_server *s = h->server;

    printf("listening on %s\n", h->url); /* the result of this verb: where it can be reached */
    fflush(stdout);
    log_event("listening on %s, %zu model%s, %s", h->url, s->n_models, s->n_models > 1 ? "s" : "",
              s->keys.path ? "with keys" : "without keys");
}

/* From the first model to the last request; the exit code. */
static int serve_requests(http_server *h, const sigset_t *signals)
{
    serve_server *s = h->server;

    if (models_load(s)) return CLI_FAILED;
    log_event("loading; %s/ready says when it is done", h->url);
    int is_ended = wait_for_end(h, signals, 1);
    if (!is_ended && models_are_loaded(s)) {
        say_listening(h);
        is_ended = wait_for_end(h, signals, 0);
    }
    if (is_ended) drain(h, signals);
    atomic_store(&s->is_aborting, 1);
    models_stop(s); /* before the workers, which get their requests */
    if (is_ended) log_event("stopped");
    return is_ended ? CLI_OK : s->load_code;
}

static int run_threads(serve_server *s, const sigset_t *signals)
{
    http_server h = {.server = s};
    int code = CLI_FAILED;

    if (pool_start(&s->pool, s->config->workers) == 0 && http_start(&h, s) == 0)
        code = serve_requests(&h, signals);
    pool_stop(&s->pool);
    http_stop(&h);
    return code;
}

static int run_server(const serve_config *config)
{
    serve_server s = {.config = config, .started = (double)time(NULL)};
    sigset_t signals;
    int code = CLI_FAILED;

    log_open(config->log);
    block_signals(&signals);
    metrics_init(&s.metrics);
    if (api_keys_open(&s.keys, config->key_file) == 0) code = run_threads(&s, &signals);
    models_free(&s);
    api_keys_free(&s.keys);
    metrics_free(&s.metrics);
    return code;
}

/* ---- command line ------------------------------------------------------------------------------
 */

/* "https://example.org:8080", any scheme; "*" for all. A path makes it no origin. */
static int is_origin(const char *text)
{
    const char *rest = strstr(text, "://");

    if (strcmp(text, "*") == 0) return 1;
    if (!rest || rest == text || !rest[3]) return 0;
    for (const char *at = text; at < rest; at++)
        if (!isalnum((unsigned char)*at) && !strchr("+-.", *at)) return 0;
    for (const char *at = rest + 3; *at; at++)
        if (!isgraph((unsigned char)*at) || strchr("/?#,\\\"", *at)) return 0;
    return 1;
}

static int check_config(serve_config *c)
{
    if (c->cors && !is_origin(c->cors))
        return options_usage_error("serve",
                                   "--cors '%s' is not an origin; give one such as "
                                   "https://example.org or http://localhost:3000, without a path, "
                                   "or * for all",
                                   c->cors);
    if (!c->no_auth && !c->key_file && !http_is_loopback(c->host))
        return options_usage_error(
            "serve",
            "--host %s can be reached from other machines: give --api-key-file FILE, or --no-auth "
            "if everyone may use the server",
            c->host);
    if (c->no_auth && c->key_file)
        return options_usage_error("serve", "--no-auth or --api-key-file, not both");
    if (!c->models.count) cli_strings_add(&c->models, cli_copy(model_or_builtin(NULL)));
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (!c->workers) c->workers = cores > 2 ? (uint64_t)cores : 2;
    return prune_policy("serve", &c->prune, &c->policy);
}

static option_outcome parse_options(serve_config *c, int argc, char **argv, cli_strings *arguments)
{
    const option table[] = {
        {"model", 'm', OPTION_STRINGS, &c->models, "[NAME=]MODEL",
         MODEL_HELP_BUILTIN "; may be repeated", 0, 0},
        {"host", 0, OPTION_STRING, &c->host, "ADDRESS", "where it listens (127.0.0.1)", 0, 0},
        {"port", 0, OPTION_COUNT, &c->port, "N", "0 = a free one (8080)", 0, 65535},
        {"api-key-file", 0, OPTION_STRING, &c->key_file, "FILE",
         "keys that clients must show, one per line; SIGHUP reads it again", 0, 0},
        {"no-auth", 0, OPTION_FLAG, &c->no_auth, "",
         "no keys, although other machines can reach the server", 0, 0},
        {"cors", 0, OPTION_STRING, &c->cors, "ORIGIN",
         "web pages of this origin may use the server (none)", 0, 0},
        {"log", 0, OPTION_CHOICE, &c->log, "text|json|none", "lines about requests on stderr", 0,
         0},
        {"", 0, OPTION_HEADING, NULL, "", "Models", 0, 0},
        {"threads", 't', OPTION_COUNT, &c->threads, "N", "threads of a model (physical cores)", 1,
         1024},
        STREAMS_OPTION_ROW(c),
        {"workers", 0, OPTION_COUNT, &c->workers, "N",
         "threads that decode images and write answers (cores)", 1, 256},
        {"max-batch", 0, OPTION_COUNT, &c->max_batch, "N", "images run together (8)", 1, 1024},
        {"max-wait-ms", 0, OPTION_COUNT, &c->max_wait_ms, "MS",
         "an image waits at most so long for others that are on their way (5)", 0, 10000},
        {"max-sessions", 0, OPTION_COUNT, &c->max_sessions, "N",
         "policies and sets of classes kept ready per model (8)", 1, 1024},
        {"max-chats", 0, OPTION_COUNT, &c->max_chats, "N", "conversations kept per model (4)", 1,
         1024},
        {"max-context", 0, OPTION_COUNT, &c->max_context, "N",
         "at most N tokens of a chat (the model's)", 1, 1u << 24},
        {"tokenizer", 0, OPTION_STRING, &c->tokenizer, "PATH",
         "of models without one in their folder", 0, 0},
        {"text-tower", 0, OPTION_STRING, &c->text_tower, "DIR",
         "the CLIP that compares patches with the question, for cdpruner with a LLaVA", 0, 0},
        {"labels", 0, OPTION_STRING, &c->labels, "FILE", "class names, one per line", 0, 0},
        DECODE_OPTION_ROW(&c->decode),
        {"exif", 0, OPTION_FLAG, &c->exif, "", "turn images by their EXIF orientation", 0, 0},
        {"cpu", 0, OPTION_CHOICE, &c->cpu, CPU_CHOICES, "CPU level of the kernels", 0, 0},
        {"dtype", 0, OPTION_CHOICE, &c->dtype, LM_DTYPE_CHOICES,
         "dtype of the matrix products (the file's)", 0, 0},
        PRUNE_OPTION_ROWS(&c->prune),
        {"", 0, OPTION_HEADING, NULL, "", "Limits", 0, 0},
        {"max-queue", 0, OPTION_COUNT, &c->max_queue, "N",
         "requests under way; more are answered 429 (256)", 1, 1u << 20},
        {"max-body", 0, OPTION_COUNT, &c->max_body, "MB", "of a request (32)", 1, 1024},
        {"max-bodies", 0, OPTION_COUNT, &c->max_bodies, "MB", "of all requests together (512)", 1,
         1u << 20},
        {"max-images", 0, OPTION_COUNT, &c->limits.images, "N", "per request (64)", 1, 4096},
        {"max-pixels", 0, OPTION_COUNT, &c->max_pixels, "N", "of an image (50000000)", 1,
         178956970},
        {"max-texts", 0, OPTION_COUNT, &c->limits.texts, "N",
         "per request; classes x templates (2048)", 1, 1u << 20},
        {"max-text", 0, OPTION_COUNT, &c->limits.text_bytes, "BYTES",
         "of a text, or of the messages of a chat (65536)", 1, 262144},
        {"max-tokens", 0, OPTION_COUNT, &c->limits.tokens, "N", "of an answer (1024)", 1, 1u << 20},
        {"max-connections", 0, OPTION_COUNT, &c->max_connections, "N", "(1024)", 1, 100000},
        {"max-per-address", 0, OPTION_COUNT, &c->max_per_address, "N",
         "connections of one address; 0 = any, for a proxy (256)", 0, 100000},
        {"header-seconds", 0, OPTION_COUNT, &c->header_seconds, "S",
         "for the header of a request (10)", 1, 3600},
        {"body-seconds", 0, OPTION_COUNT, &c->body_seconds, "S", "for its body (60)", 1, 3600},
        {"idle-seconds", 0, OPTION_COUNT, &c->idle_seconds, "S",
         "for a connection that does nothing (60)", 1, 3600},
        {"drain-seconds", 0, OPTION_COUNT, &c->drain_seconds, "S",
         "for requests that are under way at the end (30)", 0, 3600},
    };
    const verb_syntax syntax = {
        "serve", "[-m [NAME=]MODEL]... [options]",
        "Answers over HTTP: /v1/classify, /v1/embeddings, /v1/zeroshot and /v1/chat/completions in the\n"
        "shapes of OpenAI's API, a page to try them at /, metrics at /metrics (docs/SERVER.md). Requests\n"
        "for the same model and policy run together. SIGTERM answers what is under way and ends with 0.\n"
        "Images are data: URLs or files of a form; the server fetches no URL and opens no path.",
        "  renyi serve\n"
        "  renyi serve -m timm/vit_small_patch16_224.augreg_in21k_ft_in1k --prune 'mosaic keep=0.7 layers=0,3,6'\n"
        "  renyi serve -m clip=openai/clip-vit-base-patch32 -m llava=llava-hf/llava-1.5-7b-hf --dtype auto\n"
        "  renyi serve --host 0.0.0.0 --api-key-file keys.txt --log json\n"
        "  curl -F image=@cat.jpg http://127.0.0.1:8080/v1/classify\n",
        OPTIONS_OF(table)};
    return options_parse(&syntax, argc, argv, arguments);
}

int cmd_serve(int argc, char **argv)
{
    serve_config c = {.host = "127.0.0.1",
                      .log = "text",
                      .port = 8080,
                      .max_batch = 8,
                      .max_wait_ms = 5,
                      .max_queue = 256,
                      .max_sessions = 8,
                      .max_chats = 4,
                      .max_body = 32,
                      .max_bodies = 512,
                      .max_pixels = 50000000,
                      .max_connections = 1024,
                      .max_per_address = 256,
                      .header_seconds = 10,
                      .body_seconds = 60,
                      .idle_seconds = 60,
                      .drain_seconds = 30,
                      .limits = {.images = 64, .texts = 2048, .text_bytes = 65536, .tokens = 1024}};
    cli_strings arguments = {0};
    const option_outcome outcome = parse_options(&c, argc, argv, &arguments);
    int code = outcome == OPTIONS_HELP ? CLI_OK : CLI_USAGE;

    if (outcome == OPTIONS_GO) {
        code = arguments.count ? options_usage_error("serve",
                                                     "'%s' is no option; models are given "
                                                     "with -m",
                                                     arguments.items[0])
                               : check_config(&c);
        if (code == CLI_OK) code = run_server(&c);
    }
    free(c.policy);
    prune_options_free(&c.prune);
    cli_strings_free(&c.models);
    cli_strings_free(&arguments);
    return code;
}
