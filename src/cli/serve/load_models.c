/* load_models.c - opens the models of the server on a thread of its own, while HTTP already answers
 * /health and /ready (serve_model.h).
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/serve_model.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int check_names(const serve_server *s)
{
    for (size_t i = 0; i < s->n_models; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(s->models[i]->name, s->models[j]->name) == 0)
                return options_usage_error("serve",
                                           "two models have the name '%s'; give -m NAME=MODEL",
                                           s->models[i]->name);
    return CLI_OK;
}

static int open_models(serve_server *s)
{
    const cli_strings *given = &s->config->models;

    s->models = cli_alloc(given->count, sizeof(serve_model *));
    for (; s->n_models < given->count; s->n_models++) {
        s->models[s->n_models] = served_model_open(s, given->items[s->n_models]);
        if (!s->models[s->n_models]) return CLI_FAILED;
    }
    return check_names(s);
}

static void *load(void *user)
{
    serve_server *s = user;
    int code = open_models(s);

    for (size_t i = 0; code == CLI_OK && i < s->n_models; i++)
        if (model_queue_start(s->models[i])) code = CLI_FAILED;
    s->load_code = code;
    atomic_store(&s->loading, code == CLI_OK ? SERVE_LOADED : SERVE_NOT_LOADED);
    kill(getpid(), SERVE_WAKE);
    return NULL;
}

int models_load(serve_server *s)
{
    const int code = pthread_create(&s->loader, NULL, load, s);

    if (code) cli_error("cannot start a thread: %s", strerror(code));
    return code ? -1 : 0;
}

int models_are_loaded(serve_server *s) { return atomic_load(&s->loading) == SERVE_LOADED; }

void models_stop(serve_server *s)
{
    pthread_join(s->loader, NULL);
    for (size_t i = 0; i < s->n_models; i++) model_queue_stop(s->models[i]);
}

void models_free(serve_server *s)
{
    for (size_t i = 0; i < s->n_models; i++) served_model_free(s->models[i]);
    free(s->models);
}
