/* gguf_values.c - the values of a GGUF file as numbers, texts and JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "base/utf8.h"
#include "formats/gguf/gguf.h"

#include <math.h>
#include <string.h>

/* Arrays of means and layers are short, those of tokenizers long. No model reads a longer key. */
enum { MAX_JSON_ARRAY = 64, MAX_JSON_KEY = 255 };

static uint64_t bits_at(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    while (n--) v = v << 8 | p[n];
    return v;
}

int ry_gguf_integer(const ry_gguf_value *v, uint64_t i, int64_t *out)
{
    if (i >= v->count) return 0;
    switch (v->kind) {
    case RY_GGUF_U8: *out = v->at[i]; return 1;
    case RY_GGUF_I8: *out = (int8_t)v->at[i]; return 1;
    case RY_GGUF_U16: *out = (int64_t)bits_at(v->at + 2 * i, 2); return 1;
    case RY_GGUF_I16: *out = (int16_t)bits_at(v->at + 2 * i, 2); return 1;
    case RY_GGUF_U32: *out = (int64_t)bits_at(v->at + 4 * i, 4); return 1;
    case RY_GGUF_I32: *out = (int32_t)bits_at(v->at + 4 * i, 4); return 1;
    case RY_GGUF_U64:
        *out = (int64_t)bits_at(v->at + 8 * i, 8);
        return *out >= 0; /* larger ones do not fit */
    case RY_GGUF_I64: *out = (int64_t)bits_at(v->at + 8 * i, 8); return 1;
    default: return 0;
    }
}

int ry_gguf_number(const ry_gguf_value *v, uint64_t i, double *out)
{
    int64_t integer;
    if (i >= v->count) return 0;
    if (v->kind == RY_GGUF_F32) {
        const uint32_t bits = (uint32_t)bits_at(v->at + 4 * i, 4);
        float f;
        memcpy(&f, &bits, sizeof f);
        *out = (double)f;
        return 1;
    }
    if (v->kind == RY_GGUF_F64) {
        const uint64_t bits = bits_at(v->at + 8 * i, 8);
        memcpy(out, &bits, sizeof *out);
        return 1;
    }
    if (!ry_gguf_integer(v, i, &integer)) return 0;
    *out = (double)integer;
    return 1;
}

int ry_gguf_next_text(ry_gguf_texts *t, ry_gguf_text *out)
{
    if (t->of->kind != RY_GGUF_TEXT || t->done == t->of->count) return 0;
    *out = (ry_gguf_text){(const char *)t->at + 8, (size_t)bits_at(t->at, 8)};
    t->at += 8 + out->n;
    t->done++;
    return 1;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static int is_number(const ry_gguf_value *v, uint64_t i)
{
    int64_t integer;
    double number;
    if (v->kind == RY_GGUF_BOOL || ry_gguf_integer(v, i, &integer)) return 1;
    return ry_gguf_number(v, i, &number) && isfinite(number);
}

/* 1 if the value becomes a member of the object. */
static int has_json(const ry_gguf_value *v)
{
    ry_gguf_texts texts = ry_gguf_texts_of(v);
    ry_gguf_text text;
    if (v->key.n > MAX_JSON_KEY || (v->is_array && v->count > MAX_JSON_ARRAY)) return 0;
    if (v->kind == RY_GGUF_TEXT)
        return !v->is_array && ry_gguf_next_text(&texts, &text) &&
               ry_utf8_valid(text.at, text.n) == text.n;
    for (uint64_t i = 0; i < v->count; i++)
        if (!is_number(v, i)) return 0;
    return 1;
}

static json_t *number_json(const ry_gguf_value *v, uint64_t i)
{
    int64_t integer;
    double number = 0.0;
    if (v->kind == RY_GGUF_BOOL) return json_boolean(v->at[i]);
    if (ry_gguf_integer(v, i, &integer)) return json_integer(integer);
    (void)ry_gguf_number(v, i, &number);
    return json_real(number);
}

/* NULL = no memory. */
static json_t *value_json(const ry_gguf_value *v)
{
    ry_gguf_texts texts = ry_gguf_texts_of(v);
    ry_gguf_text text;
    if (ry_gguf_next_text(&texts, &text)) return json_stringn(text.at, text.n);
    if (!v->is_array) return number_json(v, 0);
    json_t *array = json_array();
    for (uint64_t i = 0; array && i < v->count; i++)
        if (json_array_append_new(array, number_json(v, i))) {
            json_decref(array);
            return NULL;
        }
    return array;
}

renyi_status ry_gguf_config(json_t **out, const ry_gguf *g, const char *what, renyi_error *err)
{
    *out = json_object();
    for (size_t i = 0; *out && i < g->n_values; i++) {
        const ry_gguf_value *v = &g->values[i];
        char key[MAX_JSON_KEY + 1];
        if (!has_json(v)) continue;
        memcpy(key, v->key.at, v->key.n);
        key[v->key.n] = '\0';
        if (json_object_set_new(*out, key, value_json(v))) {
            json_decref(*out);
            *out = NULL;
        }
    }
    return *out ? RENYI_OK : ry_fail(err, RENYI_ERR_NOMEM, -1, "%s: out of memory", what);
}
