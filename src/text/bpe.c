/* bpe.c - the tables of a byte-pair encoding: symbols, merges, and how files write bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "text/bpe.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/utf8.h"

#include <string.h>

#define NO_ID UINT32_MAX

/* Slots that a search may visit. Half of the slots are empty, so that with a million symbols the
 * longest search of hashes that nobody chose is below 100. More means that a file was made to be
 * slow: it is refused. */
enum { MAX_PROBES = 256 };

/* For "%.*s": a symbol in a message, at most 64 bytes of it. */
#define SHOWN(s) (int)((s).n < 64 ? (s).n : 64), (s).at

static size_t slots_for(uint32_t n)
{
    size_t slots = 16;
    while (slots < 2 * (size_t)n) slots *= 2;
    return slots;
}

renyi_status ry_bpe_new(ry_bpe **out, uint32_t n_ids, uint32_t n_merges, const renyi_allocator *al,
                        renyi_error *err)
{
    *out = NULL;
    if (n_ids > RY_BPE_MAX_IDS || n_merges > RY_BPE_MAX_IDS)
        return ry_fail(err, RENYI_ERR_LIMIT, -1,
                       "%u ids and %u merges; at most %d of each accepted", n_ids, n_merges,
                       RY_BPE_MAX_IDS);
    ry_bpe *b = ry_calloc(al, 1, sizeof *b);
    if (!b) return ry_fail_nomem(err, sizeof *b);
    if (al) b->al = *al;
    b->texts.al = &b->al;
    b->n_ids = n_ids;
    b->text_slots = slots_for(n_ids);
    b->merge_slots = slots_for(n_merges);
    b->symbols = ry_calloc(al, n_ids, sizeof *b->symbols);
    b->by_text = ry_alloc(al, b->text_slots, sizeof *b->by_text);
    b->merges = ry_alloc(al, b->merge_slots, sizeof *b->merges);
    if (!b->symbols || !b->by_text || !b->merges) {
        const size_t wanted = n_ids * sizeof *b->symbols + b->text_slots * sizeof *b->by_text +
                              b->merge_slots * sizeof *b->merges;
        ry_bpe_free(b);
        return ry_fail_nomem(err, wanted);
    }
    memset(b->by_text, 0xff, b->text_slots * sizeof *b->by_text);
    memset(b->merges, 0xff, b->merge_slots * sizeof *b->merges);
    *out = b;
    return RENYI_OK;
}

void ry_bpe_free(ry_bpe *b)
{
    if (!b) return;
    const renyi_allocator al = b->al;
    ry_free(&al, b->symbols);
    ry_free(&al, b->by_text);
    ry_free(&al, b->merges);
    ry_pool_free(&b->texts);
    ry_free(&al, b);
}

/* ---- symbols ------------------------------------------------------------------------------- */

/* The slot of a text in by_text, or the empty slot where it belongs; NULL after MAX_PROBES. */
static uint32_t *slot_of_text(const ry_bpe *b, ry_symbol text)
{
    size_t at = ry_hash(text.at, text.n) & (b->text_slots - 1);
    for (int i = 0; i < MAX_PROBES; i++, at = (at + 1) & (b->text_slots - 1)) {
        if (b->by_text[at] == NO_ID) return &b->by_text[at];
        const ry_symbol s = b->symbols[b->by_text[at]];
        if (s.n == text.n && !memcmp(s.at, text.at, s.n)) return &b->by_text[at];
    }
    return NULL;
}

static renyi_status fail_probes(ry_symbol text, renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_LIMIT, -1,
                   "'%.*s' has the hash of %d others, which no real vocabulary has; take the file "
                   "from its publisher",
                   SHOWN(text), MAX_PROBES);
}

uint32_t ry_bpe_find(const ry_bpe *b, ry_symbol text)
{
    const uint32_t *slot = slot_of_text(b, text);
    return slot ? *slot : NO_ID;
}

ry_symbol ry_bpe_symbol(const ry_bpe *b, int32_t id)
{
    return id >= 0 && (uint32_t)id < b->n_ids ? b->symbols[id] : (ry_symbol){NULL, 0};
}

renyi_status ry_bpe_add(ry_bpe *b, ry_symbol text, uint32_t id, renyi_error *err)
{
    if (!text.n || text.n > RY_BPE_MAX_SYMBOL)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "a symbol of %zu bytes; 1 to %d accepted", text.n,
                       RY_BPE_MAX_SYMBOL);
    if (id >= b->n_ids)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "'%.*s' has the id %u; 0 to %u expected",
                       SHOWN(text), id, b->n_ids - 1);
    uint32_t *slot = slot_of_text(b, text);
    if (!slot) return fail_probes(text, err);
    if (*slot != NO_ID)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "'%.*s' occurs twice", SHOWN(text));
    if (b->symbols[id].at)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "'%.*s' and '%.*s' have the same id, %u",
                       SHOWN(b->symbols[id]), SHOWN(text), id);
    char *copy = ry_pool_take(&b->texts, text.n, 1);
    if (!copy) return ry_fail_nomem(err, text.n);
    b->symbols[id] = (ry_symbol){memcpy(copy, text.at, text.n), text.n};
    *slot = id;
    return RENYI_OK;
}

/* ---- merges -------------------------------------------------------------------------------- */

/* NULL after MAX_PROBES. */
static ry_merge *slot_of_merge(const ry_bpe *b, uint32_t left, uint32_t right)
{
    ry_rng mix = ry_rng_new((uint64_t)left << 32 | right);
    size_t at = ry_rng_next(&mix) & (b->merge_slots - 1);
    for (int i = 0; i < MAX_PROBES; i++, at = (at + 1) & (b->merge_slots - 1)) {
        ry_merge *m = &b->merges[at];
        if (m->left == NO_ID || (m->left == left && m->right == right)) return m;
    }
    return NULL;
}

const ry_merge *ry_bpe_merge_of(const ry_bpe *b, uint32_t left, uint32_t right)
{
    const ry_merge *m = slot_of_merge(b, left, right);
    return !m || m->left == NO_ID ? NULL : m;
}

/* The id of a part, which must exist. */
static renyi_status find_part(const ry_bpe *b, ry_symbol text, uint32_t *id, renyi_error *err)
{
    *id = text.n ? ry_bpe_find(b, text) : NO_ID;
    if (*id != NO_ID) return RENYI_OK;
    return ry_fail(err, RENYI_ERR_FORMAT, -1,
                   "'%.*s' is neither in the vocabulary nor the result of an earlier merge",
                   SHOWN(text));
}

renyi_status ry_bpe_join(ry_bpe *b, ry_symbol left, ry_symbol right, uint32_t next,
                         renyi_error *err)
{
    char both[2 * RY_BPE_MAX_SYMBOL];
    uint32_t l, r, whole;
    RY_TRY(find_part(b, left, &l, err)); /* symbols of the table: short enough for `both` */
    RY_TRY(find_part(b, right, &r, err));
    memcpy(both, left.at, left.n);
    memcpy(both + left.n, right.at, right.n);
    const ry_symbol text = {both, left.n + right.n};
    if (next == RY_BPE_KNOWN) {
        RY_TRY(find_part(b, text, &whole, err));
    } else {
        RY_TRY(ry_bpe_add(b, text, next, err));
        whole = next;
    }
    ry_merge *m = slot_of_merge(b, l, r);
    if (!m) return fail_probes(text, err);
    if (m->left != NO_ID)
        return ry_fail(err, RENYI_ERR_FORMAT, -1, "'%.*s' and '%.*s' are merged twice", SHOWN(left),
                       SHOWN(right));
    if (2 * ((size_t)b->n_merges + 1) > b->merge_slots)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "more merges than counted");
    *m = (ry_merge){l, r, b->n_merges++, whole};
    return RENYI_OK;
}

/* ---- bytes as characters --------------------------------------------------------------------- */

/* Bytes that stand for themselves: visible characters of Latin-1, in three ranges. */
static int is_visible(uint32_t b)
{
    return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff);
}

/* Number of other bytes before b: 33 from 00 to 20, 34 from 7f to a0, and ad. */
static uint32_t place_of_hidden(uint32_t b)
{
    if (b <= 0x20) return b;
    return b <= 0xa0 ? 33 + (b - 0x7f) : 67;
}

uint32_t ry_bpe_letter(uint32_t byte)
{
    return is_visible(byte) ? byte : 256 + place_of_hidden(byte);
}

int ry_bpe_byte(uint32_t letter)
{
    if (letter < 256) return is_visible(letter) ? (int)letter : -1;
    const uint32_t place = letter - 256;
    if (place < 33) return (int)place;
    if (place < 67) return (int)(place - 33) + 0x7f;
    return place == 67 ? 0xad : -1;
}

/* ---- special symbols ------------------------------------------------------------------------- */

renyi_status ry_bpe_finish(ry_bpe *b, renyi_error *err)
{
    char text[8];
    for (uint32_t byte = 0; byte < 256; byte++) {
        const size_t n = ry_utf8_put(text, ry_bpe_letter(byte));
        memcpy(text + n, RY_BPE_END, sizeof RY_BPE_END - 1);
        b->byte_id[0][byte] = ry_bpe_find(b, (ry_symbol){text, n});
        b->byte_id[1][byte] = ry_bpe_find(b, (ry_symbol){text, n + sizeof RY_BPE_END - 1});
    }
    b->sot = ry_bpe_find(b, (ry_symbol){RY_BPE_SOT, sizeof RY_BPE_SOT - 1});
    b->eot = ry_bpe_find(b, (ry_symbol){RY_BPE_EOT, sizeof RY_BPE_EOT - 1});
    if (b->sot == NO_ID || b->eot == NO_ID)
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                       "the vocabulary has no '%s': not a tokenizer like CLIP's",
                       b->sot == NO_ID ? RY_BPE_SOT : RY_BPE_EOT);
    return RENYI_OK;
}
