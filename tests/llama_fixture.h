/* llama_fixture.h - a small random Llama as a list of tensors, in the names of each layout, and its
 * arithmetic in doubles. SPDX-License-Identifier: Apache-2.0 */
#ifndef RENYI_TESTS_LLAMA_FIXTURE_H
#define RENYI_TESTS_LLAMA_FIXTURE_H

#include "base/rng.h"
#include "vit_fixture.h"

#include <math.h>

enum {
    LLAMA_DIM = 24,
    LLAMA_HEADS = 4,
    LLAMA_KV = 2, /* heads of keys and values */
    LLAMA_HEAD = 8,
    LLAMA_Q = LLAMA_HEADS * LLAMA_HEAD, /* wider than the model */
    LLAMA_MLP = 40,
    LLAMA_LAYERS = 3,
    LLAMA_VOCAB = 61,
    LLAMA_CONTEXT = 160
};

#define LLAMA_NUMBERS                                                               \
    "\"hidden_size\": 24, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, " \
    "\"head_dim\": 8, \"max_position_embeddings\": 160, \"rms_norm_eps\": 1e-4, "   \
    "\"rope_theta\": 1000.0, \"bos_token_id\": 1, \"eos_token_id\": [2, 3], \"rope_scaling\": null"
#define LLAMA_CONFIG "{\"model_type\": \"llama\", " LLAMA_NUMBERS "}"
#define LLAVA_CONFIG                                          \
    "{\"model_type\": \"llava\", \"image_token_index\": 60, " \
    "\"text_config\": {\"model_type\": \"llama\", " LLAMA_NUMBERS "}}"

/* Random numbers about `middle`; rows [r, c], or a vector if r is 0. */
static inline void llama_add(fixture *f, ry_rng *rng, const char *name, uint64_t r, uint64_t c)
{
    const uint64_t rows[2] = {r, c}, vector[1] = {c};
    const size_t n = (size_t)((r ? r : 1) * c);
    float *data = malloc(n * sizeof *data);
    for (size_t i = 0; i < n; i++) data[i] = (r ? 0.0f : 1.0f) + 0.3f * (float)ry_rng_normal(rng);
    fix_add(f, name, r ? 2 : 1, r ? rows : vector, data);
}

/* In the names of a plain Llama, with config.json in the metadata. */
static inline void llama_make(fixture *f)
{
    static const struct {
        const char *name;
        uint64_t rows, columns;
    } parts[] = {
        {"input_layernorm.weight", 0, LLAMA_DIM},
        {"self_attn.q_proj.weight", LLAMA_Q, LLAMA_DIM},
        {"self_attn.k_proj.weight", LLAMA_KV * LLAMA_HEAD, LLAMA_DIM},
        {"self_attn.v_proj.weight", LLAMA_KV * LLAMA_HEAD, LLAMA_DIM},
        {"self_attn.o_proj.weight", LLAMA_DIM, LLAMA_Q},
        {"post_attention_layernorm.weight", 0, LLAMA_DIM},
        {"mlp.gate_proj.weight", LLAMA_MLP, LLAMA_DIM},
        {"mlp.up_proj.weight", LLAMA_MLP, LLAMA_DIM},
        {"mlp.down_proj.weight", LLAMA_DIM, LLAMA_MLP},
    };
    ry_rng rng = ry_rng_new(5);
    memset(f, 0, sizeof *f);
    llama_add(f, &rng, "model.embed_tokens.weight", LLAMA_VOCAB, LLAMA_DIM);
    for (unsigned i = 0; i < LLAMA_LAYERS; i++)
        for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
            char name[96];
            snprintf(name, sizeof name, "model.layers.%u.%s", i, parts[k].name);
            llama_add(f, &rng, name, parts[k].rows, parts[k].columns);
        }
    llama_add(f, &rng, "model.norm.weight", 0, LLAMA_DIM);
    llama_add(f, &rng, "lm_head.weight", LLAMA_VOCAB, LLAMA_DIM);
    f->meta[0] = "config.json";
    f->meta[1] = LLAMA_CONFIG;
}

/* The same weights as the language model of a LLaVA: "model." becomes `body`, and `head` comes
 * before lm_head; `other` is a tensor of the rest of it. */
static inline void llama_rename(fixture *f, const char *body, const char *head, const char *other)
{
    for (size_t i = 0; i < f->n; i++) {
        char old[96];
        strcpy(old, f->names[i]);
        if (strncmp(old, "model.", 6) == 0)
            snprintf(f->names[i], sizeof f->names[i], "%s%s", body, old + 6);
        else
            snprintf(f->names[i], sizeof f->names[i], "%s%s", head, old);
    }
    fix_add_zeros(f, other, 7);
    f->meta[1] = LLAVA_CONFIG;
}

/* ---- in doubles ---------------------------------------------------------------------------- */

static inline const float *llama_weight(const fixture *f, unsigned layer, const char *part)
{
    char name[96];
    snprintf(name, sizeof name, "model.layers.%u.%s.weight", layer, part);
    return fix_find((fixture *)(uintptr_t)f, name)->data;
}

/* y [n_out] = (add ? y : 0) + w x */
static inline void llama_times(double *y, const float *w, const double *x, size_t n_out,
                               size_t n_in, int add)
{
    for (size_t j = 0; j < n_out; j++) {
        double sum = add ? y[j] : 0.0;
        for (size_t k = 0; k < n_in; k++) sum += (double)w[j * n_in + k] * x[k];
        y[j] = sum;
    }
}

static inline void llama_norm(double *y, const double *x, const float *w)
{
    double square = 0.0;
    for (size_t i = 0; i < LLAMA_DIM; i++) square += x[i] * x[i];
    for (size_t i = 0; i < LLAMA_DIM; i++)
        y[i] = x[i] / sqrt(square / LLAMA_DIM + 1e-4) * (double)w[i];
}

static inline void llama_turn(double *x, size_t heads, size_t position)
{
    for (size_t h = 0; h < heads; h++)
        for (size_t i = 0; i < LLAMA_HEAD / 2; i++) {
            double *p = x + h * LLAMA_HEAD + i;
            const double turn =
                (double)position * pow(1000.0, -2.0 * (double)i / (double)LLAMA_HEAD);
            const double a = p[0], b = p[LLAMA_HEAD / 2];
            p[0] = a * cos(turn) - b * sin(turn);
            p[LLAMA_HEAD / 2] = a * sin(turn) + b * cos(turn);
        }
}

typedef struct llama_memory { /* of one layer */
    double k[LLAMA_CONTEXT][LLAMA_KV * LLAMA_HEAD], v[LLAMA_CONTEXT][LLAMA_KV * LLAMA_HEAD];
} llama_memory;

/* out [LLAMA_Q] of the row at `position` */
static inline void llama_attend(double *out, const double *q, const llama_memory *m,
                                size_t position)
{
    for (size_t h = 0; h < LLAMA_HEADS; h++) {
        const size_t g = h / (LLAMA_HEADS / LLAMA_KV) * LLAMA_HEAD;
        double a[LLAMA_CONTEXT], sum = 0.0;
        for (size_t j = 0; j <= position; j++) {
            a[j] = 0.0;
            for (size_t c = 0; c < LLAMA_HEAD; c++) a[j] += q[h * LLAMA_HEAD + c] * m->k[j][g + c];
            sum += a[j] = exp(a[j] / sqrt((double)LLAMA_HEAD));
        }
        for (size_t c = 0; c < LLAMA_HEAD; c++) {
            double v = 0.0;
            for (size_t j = 0; j <= position; j++) v += a[j] / sum * m->v[j][g + c];
            out[h * LLAMA_HEAD + c] = v;
        }
    }
}

/* logits: [n, vocab] of every row of a sequence of tokens */
static inline void llama_reference(const fixture *f, const int32_t *tokens, size_t n,
                                   double (*logits)[LLAMA_VOCAB])
{
    static llama_memory memory[LLAMA_LAYERS];
    const float *table = fix_find((fixture *)(uintptr_t)f, "model.embed_tokens.weight")->data;
    const float *norm = fix_find((fixture *)(uintptr_t)f, "model.norm.weight")->data;
    const float *head = fix_find((fixture *)(uintptr_t)f, "lm_head.weight")->data;
    for (size_t p = 0; p < n; p++) {
        double x[LLAMA_DIM], h[LLAMA_DIM], q[LLAMA_Q], o[LLAMA_Q], gate[LLAMA_MLP], up[LLAMA_MLP];
        for (size_t i = 0; i < LLAMA_DIM; i++)
            x[i] = (double)table[(size_t)tokens[p] * LLAMA_DIM + i];
        for (unsigned l = 0; l < LLAMA_LAYERS; l++) {
            llama_memory *m = &memory[l];
            const size_t kv = LLAMA_KV * LLAMA_HEAD;
            llama_norm(h, x, llama_weight(f, l, "input_layernorm"));
            llama_times(q, llama_weight(f, l, "self_attn.q_proj"), h, LLAMA_Q, LLAMA_DIM, 0);
            llama_times(m->k[p], llama_weight(f, l, "self_attn.k_proj"), h, kv, LLAMA_DIM, 0);
            llama_times(m->v[p], llama_weight(f, l, "self_attn.v_proj"), h, kv, LLAMA_DIM, 0);
            llama_turn(q, LLAMA_HEADS, p);
            llama_turn(m->k[p], LLAMA_KV, p);
            llama_attend(o, q, m, p);
            llama_times(x, llama_weight(f, l, "self_attn.o_proj"), o, LLAMA_DIM, LLAMA_Q, 1);
            llama_norm(h, x, llama_weight(f, l, "post_attention_layernorm"));
            llama_times(gate, llama_weight(f, l, "mlp.gate_proj"), h, LLAMA_MLP, LLAMA_DIM, 0);
            llama_times(up, llama_weight(f, l, "mlp.up_proj"), h, LLAMA_MLP, LLAMA_DIM, 0);
            for (size_t i = 0; i < LLAMA_MLP; i++) up[i] *= gate[i] / (1.0 + exp(-gate[i]));
            llama_times(x, llama_weight(f, l, "mlp.down_proj"), up, LLAMA_DIM, LLAMA_MLP, 1);
        }
        llama_norm(h, x, norm);
        llama_times(logits[p], head, h, LLAMA_VOCAB, LLAMA_DIM, 0);
    }
}

#endif
