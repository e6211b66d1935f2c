/* job_prepare.c - the first step of a request, on a worker: reads the body, finds the model, checks
 * the policy, decodes images and encodes texts, and puts them in the queue of the model.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/serve_model.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

/* ---- inputs ------------------------------------------------------------------------------------
 */

static renyi_image_options decode_options(const serve_server *s)
{
    return (renyi_image_options){.struct_size = sizeof(renyi_image_options),
                                 .apply_exif = s->config->exif != 0,
                                 .limits = {.max_pixels = s->config->max_pixels},
                                 .decode = image_decode_mode(s->config->decode)};
}

static int fail_image(serve_job *job, size_t i, const renyi_error *err)
{
    const int is_large = err->code == RENYI_ERR_LIMIT;

    if (err->code == RENYI_ERR_NOMEM)
        job_fail_library(job, err);
    else
        job_fail(job, is_large ? 413 : 400, is_large ? "image_too_large" : "invalid_image", NULL,
                 "image %zu: %s", i + 1, cli_reason(err));
    return -1;
}

static int decode_image(serve_job *job, size_t i)
{
    const renyi_preprocess *spec = &job->model->info.preprocess;
    const renyi_image_options o = decode_options(job->server);
    const request_input *from = &job->request.inputs[i];
    job_input *in = &job->inputs[i];
    const double start = cli_now_ms();
    renyi_error err = {.code = RENYI_ERR_NOMEM};
    uint32_t full_size[2] = {0, 0};

    in->pixels = malloc(3 * (size_t)spec->size * spec->size);
    if (!in->pixels) return fail_image(job, i, &err);
    const renyi_status st =
        renyi_image_decode_pixels(in->pixels, full_size, from->bytes, from->size, spec, &o, &err);
    in->width = full_size[0];
    in->height = full_size[1];
    in->ms_decode = cli_now_ms() - start;
    in->key = job->key;
    return st == RENYI_OK ? 0 : fail_image(job, i, &err);
}

static int encode_text(serve_job *job, size_t i)
{
    const serve_model *m = job->model;
    const char *text = job->request.inputs[i].text;
    job_input *in = &job->inputs[i];
    renyi_error err = {.code = RENYI_ERR_NOMEM};

    if (!m->has_text) {
        job_fail(job, 400, "unsupported", "input",
                 "model '%.100s' has no text tower: it embeds images", m->name);
        return -1;
    }
    in->key = "text";
    in->ids = calloc(m->text.info.context, sizeof *in->ids);
    if (in->ids &&
        renyi_tokenizer_encode(m->text.tokenizer, text, strlen(text), m->text.info.context,
                               job->request.truncate, in->ids, &in->n_ids, &err) == RENYI_OK)
        return 0;
    if (err.code == RENYI_ERR_NOMEM)
        job_fail_library(job, &err);
    else
        job_fail(job, 400, "invalid_text", NULL, "text %zu: %s", i + 1, cli_reason(&err));
    return -1;
}

/* ---- what may run together ---------------------------------------------------------------------
 */

static int digest_bytes(char out[65], const void *bytes, size_t size)
{
    unsigned char raw[32];

    if (EVP_Digest(bytes, size, raw, NULL, EVP_sha256(), NULL) != 1) return -1;
    for (int i = 0; i < 32; i++) snprintf(out + 2 * i, 3, "%02x", raw[i]);
    return 0;
}

static int digest_classes(serve_job *job)
{
    const serve_request *r = &job->request;
    json_t *all = json_pack("[O, O?, b]", r->classes, r->templates, r->truncate);
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    const int code = text ? digest_bytes(job->digest, text, strlen(text)) : -1;

    json_decref(all);
    free(text);
    return code;
}

/* The key of the job's images: what they become, traced or not, classes, policy. */
static int make_key(serve_job *job)
{
    const char *output = job->kind == REQUEST_CHAT       ? "chat"
                         : job->kind == REQUEST_CLASSIFY ? "class"
                         : job->kind == REQUEST_ZEROSHOT ? "zero"
                                                         : "embed";
    const size_t n = strlen(job->policy) + 100;

    if (job->kind == REQUEST_ZEROSHOT && digest_classes(job)) return -1;
    job->key = malloc(n);
    if (!job->key) return -1;
    snprintf(job->key, n, "%s%s %s %s", output, job->request.with_trace ? "+trace" : "",
             job->digest, job->policy);
    return 0;
}

/* The policy with all defaults; a wrong one names its word. */
static int check_policy(serve_job *job)
{
    const serve_model *m = job->model;
    const char *text = job->request.prune;
    renyi_error err = {0};

    if (!text) {
        memcpy(job->policy, m->policy, sizeof job->policy);
        return 0;
    }
    if (renyi_policy_check(text, m->vision, job->policy, sizeof job->policy, &err) == RENYI_OK)
        return 0;
    job_fail(job, 400, "invalid_policy", "prune", "prune: %s", cli_reason(&err));
    return -1;
}

/* ---- a chat ------------------------------------------------------------------------------------
 */

static int prepare_chat(serve_job *job)
{
    const renyi_image_options o = decode_options(job->server);
    const request_input *in = job->request.inputs;
    renyi_error err = {0};

    job->inputs = calloc(1, sizeof *job->inputs);
    if (!job->inputs) return -1;
    job->inputs[0].job = job;
    job->inputs[0].key = job->key;
    atomic_store(&job->n_left, 1);
    if (!job->request.n_inputs) return 0;
    if (!renyi_lvlm_visual(job->model->lvlm)) {
        job_fail(job, 400, "unsupported", "messages",
                 "model '%.100s' is a plain Llama: it takes no images", job->model->name);
        return -1;
    }
    if (digest_bytes(job->digest, in->bytes, in->size)) return -1;
    if (renyi_image_decode(&job->image, in->bytes, in->size, &o, &err) == RENYI_OK) return 0;
    return fail_image(job, 0, &err);
}

/* ---- the step ----------------------------------------------------------------------------------
 */

static int prepare_inputs(serve_job *job)
{
    const size_t n = job->request.n_inputs;

    job->inputs = calloc(n ? n : 1, sizeof *job->inputs);
    if (!job->inputs) return -1;
    for (size_t i = 0; i < n; i++) {
        job->inputs[i].job = job;
        if (job->request.inputs[i].text ? encode_text(job, i) : decode_image(job, i)) return -1;
    }
    atomic_store(&job->n_left, (unsigned)n);
    return 0;
}

static int prepare(serve_job *job)
{
    request_error why = {0};

    if (request_read(&job->request, job->kind, job->content_type, job->body, job->body_size,
                     &job->server->config->limits, &why)) {
        job_fail(job, why.status, why.code, why.param, "%s", why.message);
        return -1;
    }
    job->model = served_model_find(job);
    if (!job->model || check_policy(job) || make_key(job)) return -1;
    return job->kind == REQUEST_CHAT ? prepare_chat(job) : prepare_inputs(job);
}

/* The bytes of the body are not needed once images are decoded. */
static void free_bytes(serve_job *job)
{
    for (size_t i = 0; i < job->request.n_inputs; i++) {
        free(job->request.inputs[i].owned);
        job->request.inputs[i].owned = NULL;
        job->request.inputs[i].bytes = NULL;
    }
    free(job->body);
    job->body = NULL;
    atomic_fetch_sub(&job->server->body_bytes, job->body_capacity);
    job->body_capacity = 0;
}

void job_prepare(serve_job *job)
{
    const int is_chat = job->kind == REQUEST_CHAT;
    const int code = prepare(job);

    free_bytes(job);
    job->is_incoming = 0;
    atomic_fetch_sub(&job->server->n_incoming, 1);
    if (code) {
        job_fail(job, 503, "no_memory", NULL, "out of memory"); /* unless it has a reason */
        job_answer_error(job);
        job_hand_back(job);
        return;
    }
    if (is_chat) job_ref(job); /* HTTP may end it while the model's thread writes */
    model_queue_add(job->model, job, is_chat ? 1 : job->request.n_inputs);
}
