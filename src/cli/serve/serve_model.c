/* serve_model.c - a model that is served: opened once, described, and found by the requests.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/serve_model.h"

#include "cli/kit/output.h"

#include <stdlib.h>
#include <string.h>

/* ---- opening -----------------------------------------------------------------------------------
 */

static int on_loading(void *user, uint64_t done, uint64_t total)
{
    const serve_server *s = user;

    (void)done;
    (void)total;
    return atomic_load(&s->is_aborting);
}

/* Fills m->lm. */
static int is_language_model(serve_model *m, const char *path)
{
    return strcmp(path, RENYI_MODEL_BUILTIN) != 0 &&
           renyi_lm_describe(path, NULL, &m->lm, NULL) == RENYI_OK;
}

/* Without a text tower or its tokenizer the model serves images alone. */
static void open_text(serve_model *m, const char *path, const renyi_options *opt)
{
    const char *tokenizer = m->server->config->tokenizer;
    renyi_tokenizer **out = &m->text.tokenizer;
    renyi_error err = {0};

    if (renyi_text_open(&m->text.text, path, opt, &err) != RENYI_OK) {
        cli_detail("%s: images only: %s", m->name, cli_reason(&err));
        return;
    }
    renyi_status st = renyi_tokenizer_open(out, path, opt, &err);
    if (st && tokenizer) st = renyi_tokenizer_open(out, tokenizer, opt, &err);
    if (st) {
        cli_warn("%s: no texts: %s; give --tokenizer PATH", m->name, cli_reason(&err));
        return;
    }
    renyi_text_get_info(m->text.text, &m->text.info);
    m->has_text = m->text.info.embed_dim == m->info.embed_dim;
    if (!m->has_text)
        cli_warn("%s: no texts: the image tower's embeddings have %u numbers, the text tower's %u",
                 m->name, m->info.embed_dim, m->text.info.embed_dim);
}

/* Names of all classes, made once because threads share them. */
static int copy_labels(serve_model *m)
{
    class_names names;
    const int code = class_names_open(&names, m->vision, &m->info, m->server->config->labels);

    m->labels = cli_alloc(m->info.n_classes, sizeof *m->labels);
    for (uint32_t i = 0; !code && i < m->info.n_classes; i++)
        m->labels[i] = cli_copy(class_name(&names, i));
    class_names_free(&names);
    return code;
}

/* Sessions are made for requests; one is made now to tell whether the threads are enough. */
static int check_streams(const serve_model *m)
{
    const serve_config *c = m->server->config;
    const renyi_session_options o = {.struct_size = sizeof o,
                                     .n_threads = (uint32_t)c->threads,
                                     .n_streams = (uint32_t)c->streams};
    renyi_session *s = NULL;
    renyi_error err = {0};

    if (c->streams > 1 && renyi_session_new(&s, m->vision, &o, &err) != RENYI_OK) {
        cli_fail(&err);
        return -1;
    }
    renyi_session_free(s);
    return 0;
}

static int open_vision(serve_model *m, const char *path)
{
    const serve_config *c = m->server->config;
    renyi_options opt = model_options(c->cpu, c->dtype, 0);

    opt.progress = on_loading;
    opt.progress_user = m->server;
    m->vision = model_open_reported(path, &opt, &m->info);
    if (!m->vision || check_streams(m)) return -1;
    if (m->info.n_classes && copy_labels(m)) return -1;
    if (!m->info.n_classes) open_text(m, path, &opt);
    return prune_check("serve", c->policy, m->vision, m->policy) == CLI_OK ? 0 : -1;
}

renyi_conversation_options served_model_chat(const serve_model *m, const char *policy)
{
    const serve_config *c = m->server->config;
    const uint64_t most = c->max_context < m->lm.context ? c->max_context : m->lm.context;

    return (renyi_conversation_options){.struct_size = sizeof(renyi_conversation_options),
                                        .n_threads = (uint32_t)c->threads,
                                        .max_context = (uint32_t)most, /* 0 = the model's */
                                        .policy = policy};
}

/* Conversations are made for requests; one is made now to tell whether the policy fits. */
static renyi_status try_policy(const serve_model *m, const char *policy, renyi_error *err)
{
    const renyi_conversation_options o = served_model_chat(m, policy);
    renyi_conversation *c = NULL;
    const renyi_status st = renyi_conversation_new(&c, m->lvlm, &o, err);

    renyi_conversation_free(c);
    return st;
}

/* A plain Llama has no visual tokens to prune. */
static int check_chats(serve_model *m)
{
    const serve_config *c = m->server->config;
    const int is_llava = renyi_lvlm_visual(m->lvlm) != NULL;
    const char *policy = is_llava ? c->policy : "none";
    renyi_error err = {0};

    if (prune_check("serve", policy, NULL, m->policy) != CLI_OK) return -1;
    if (try_policy(m, policy, &err) != RENYI_OK) {
        prune_error(m->name, policy, &err);
        return -1;
    }
    if (is_llava && c->text_tower && try_policy(m, "cdpruner tokens=1", &err) != RENYI_OK)
        cli_warn("%s: no cdpruner: --text-tower %s: %s", m->name, c->text_tower, cli_reason(&err));
    return 0;
}

/* Is there one in the folder of the model? One that is broken counts, so that it is reported. */
static int has_lm_tokenizer(const char *path)
{
    renyi_lm_tokenizer *t = NULL;
    const renyi_status st = renyi_lm_tokenizer_open(&t, path, NULL, NULL);

    renyi_lm_tokenizer_free(t);
    return st != RENYI_ERR_IO;
}

static int open_language(serve_model *m, const char *path)
{
    const serve_config *c = m->server->config;
    renyi_lvlm_options opt = {.struct_size = sizeof opt,
                              .cpu = cpu_from_name(c->cpu),
                              .dtype = dtype_from_name(c->dtype),
                              .tokenizer =
                                  c->tokenizer && !has_lm_tokenizer(path) ? c->tokenizer : NULL,
                              .progress = on_loading,
                              .progress_user = m->server};
    renyi_error err = {0};
    char *clip;

    if (model_part_resolve(&clip, m->lm.is_llava ? c->text_tower : NULL)) return -1;
    opt.text_tower = clip;
    const renyi_status st = renyi_lvlm_open(&m->lvlm, path, &opt, &err);
    free(clip);
    if (st != RENYI_OK) {
        cli_fail(&err);
        return -1;
    }
    if (!renyi_lvlm_tokenizer(m->lvlm)) {
        cli_error(
            "%s: has no tokenizer.json, tokenizer.model or pieces.json; give --tokenizer PATH",
            path);
        return -1;
    }
    renyi_lm_get_info(renyi_lvlm_lm(m->lvlm), &m->lm);
    return check_chats(m);
}

/* "NAME=MODEL": the name has no slash. Returns the model. */
static const char *split_name(serve_model *m, const char *given)
{
    const size_t n = strcspn(given, "=/");
    const int has_name = n > 0 && given[n] == '=' && given[n + 1];

    m->name = has_name ? cli_format("%.*s", (int)n, given) : model_path_title(given);
    return has_name ? given + n + 1 : given;
}

serve_model *served_model_open(serve_server *server, const char *given)
{
    serve_model *m = cli_alloc(1, sizeof *m);

    m->server = server;
    pthread_mutex_init(&m->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&m->wake, &clock);
    pthread_condattr_destroy(&clock);
    char *path = model_path_resolve(split_name(m, given));
    const int code = !path                        ? -1
                     : is_language_model(m, path) ? open_language(m, path)
                                                  : open_vision(m, path);
    free(path);
    if (!code) return m;
    served_model_free(m);
    return NULL;
}

void served_model_free(serve_model *m)
{
    if (!m) return;
    session_cache_free(m->sessions);
    chat_cache_free(m->chats);
    text_tower_free(&m->text);
    for (uint32_t i = 0; m->labels && i < m->info.n_classes; i++) free(m->labels[i]);
    free(m->labels);
    renyi_model_free(m->vision);
    renyi_lvlm_free(m->lvlm);
    pthread_cond_destroy(&m->wake);
    pthread_mutex_destroy(&m->lock);
    free(m->name);
    free(m);
}

/* ---- what it can do ----------------------------------------------------------------------------
 */

int served_model_can(const serve_model *m, request_kind kind)
{
    switch (kind) {
    case REQUEST_EMBEDDINGS: return m->vision != NULL;
    case REQUEST_CLASSIFY: return m->vision && m->info.n_classes;
    case REQUEST_CHAT: return m->lvlm != NULL;
    default: return m->has_text;
    }
}

static const char *needed(request_kind kind)
{
    switch (kind) {
    case REQUEST_EMBEDDINGS: return "has no embeddings";
    case REQUEST_CLASSIFY: return "has no classifier";
    case REQUEST_CHAT: return "is no language model";
    default: return "has no text tower";
    }
}

static int has_texts(const serve_request *r)
{
    for (size_t i = 0; i < r->n_inputs; i++)
        if (r->inputs[i].text) return 1;
    return 0;
}

serve_model *served_model_find(serve_job *job)
{
    const serve_server *s = job->server;
    const char *name = job->request.model;
    const int needs_text = job->kind == REQUEST_EMBEDDINGS && has_texts(&job->request);
    serve_model *images_only = NULL; /* the first that can embed, but no texts */

    for (size_t i = 0; i < s->n_models; i++) {
        serve_model *m = s->models[i];
        const int can = served_model_can(m, job->kind);
        if (!name && can && (!needs_text || m->has_text)) return m;
        if (!name && can && !images_only) images_only = m;
        if (!name || strcmp(name, m->name) != 0) continue;
        if (can) return m;
        job_fail(job, 400, "unsupported", "model", "model '%.100s' %s", m->name, needed(job->kind));
        return NULL;
    }
    if (images_only) return images_only; /* which says why it is not enough */
    if (name)
        job_fail(job, 404, "model_not_found", "model",
                 "there is no model '%.100s' here; GET /v1/models lists them", name);
    else
        job_fail(job, 404, "model_not_found", "model",
                 "no model of this server can do that: each %s", needed(job->kind));
    return NULL;
}

static json_t *capabilities(const serve_model *m)
{
    static const struct {
        request_kind kind;
        const char *name;
    } all[] = {{REQUEST_CLASSIFY, "classify"},
               {REQUEST_EMBEDDINGS, "embeddings"},
               {REQUEST_ZEROSHOT, "zeroshot"},
               {REQUEST_CHAT, "chat"}};
    json_t *list = json_array();

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (served_model_can(m, all[i].kind)) json_array_append_new(list, json_string(all[i].name));
    return list;
}

static void add_vision(json_t *out, const serve_model *m)
{
    const renyi_model_info *i = &m->info;
    const serve_config *c = m->server->config;

    json_object_update_new(
        out, json_pack(
                 "{s:o, s:o, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:s, s:o, s:b, s:s, s:s, s:s}",
                 "family", json_text(i->family), "architecture", json_text(i->architecture),
                 "image_size", (int)i->image_size, "patch_size", (int)i->patch_size, "n_patches",
                 (int)i->n_patches, "n_prefix", (int)i->n_prefix, "n_blocks", (int)i->n_blocks,
                 "n_classes", (int)i->n_classes, "embed_dim", (int)i->embed_dim, "macs", i->macs,
                 "policy", m->policy, "preprocessing",
                 json_preprocess(&i->preprocess, i->preprocess_source), "exif", c->exif, "decode",
                 c->decode ? c->decode : "exact", "cpu_level", renyi_cpu_name(i->cpu), "dtype",
                 renyi_dtype_name(i->dtype)));
}

static void add_language(json_t *out, const serve_model *m)
{
    const renyi_visual *visual = renyi_lvlm_visual(m->lvlm);

    json_object_update_new(out, json_pack("{s:s, s:b, s:i, s:s, s:s, s:s}", "family",
                                          visual ? "llava" : "llama", "images", visual != NULL,
                                          "context", (int)m->lm.context, "policy", m->policy,
                                          "cpu_level", renyi_cpu_name(m->lm.cpu), "dtype",
                                          renyi_dtype_name(m->lm.dtype)));
    if (!visual) return;
    renyi_visual_info info;
    renyi_visual_get_info(visual, &info);
    json_object_update_new(out, json_pack("{s:i, s:i, s:i}", "image_size", (int)info.image_size,
                                          "patch_size", (int)info.patch_size, "n_patches",
                                          (int)info.n_patches));
}

json_t *served_model_json(const serve_model *m)
{
    json_t *out = json_pack("{s:o, s:s, s:I, s:s, s:o}", "id", json_text(m->name), "object",
                            "model", "created", (json_int_t)m->server->started, "owned_by", "renyi",
                            "capabilities", capabilities(m));
    if (m->vision) add_vision(out, m);
    if (m->lvlm) add_language(out, m);
    return out;
}
