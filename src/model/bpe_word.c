/* bpe_word.c - merges in one word. Symbols are a list with neighbours; a heap holds the merges that
 * are possible, the earliest on top, so that a word of n bytes takes n log n steps whatever it is.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/bpe.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/status.h"

#define NOWHERE UINT32_MAX

/* Neighbours that could be joined when this was put on the heap; stale when either has changed. */
typedef struct chance {
    uint32_t rank, place; /* place of the left one */
    uint32_t left, right; /* ids */
} chance;

typedef struct word {
    uint32_t *id, *before, *behind; /* [n]; id NOWHERE = joined to the one before it */
    chance *heap;                   /* [3 n] */
    size_t n_heap;
} word;

/* ---- heap ---------------------------------------------------------------------------------- */

static int comes_first(const chance *a, const chance *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->place < b->place;
}

static void push(word *w, chance c)
{
    size_t at = w->n_heap++;
    for (; at && comes_first(&c, &w->heap[(at - 1) / 2]); at = (at - 1) / 2)
        w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = c;
}

static chance pop(word *w)
{
    const chance top = w->heap[0], last = w->heap[--w->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < w->n_heap; at = child) {
        if (child + 1 < w->n_heap && comes_first(&w->heap[child + 1], &w->heap[child])) child++;
        if (!comes_first(&w->heap[child], &last)) break;
        w->heap[at] = w->heap[child];
    }
    w->heap[at] = last;
    return top;
}

/* ---- word ---------------------------------------------------------------------------------- */

/* Can the symbol at `place` be joined with the one behind it? */
static void consider(const ry_bpe *b, word *w, uint32_t place)
{
    if (place == NOWHERE || w->behind[place] == NOWHERE) return;
    const uint32_t left = w->id[place], right = w->id[w->behind[place]];
    const ry_merge *m = ry_bpe_merge_of(b, left, right);
    if (m) push(w, (chance){m->rank, place, left, right});
}

static void join(const ry_bpe *b, word *w, const chance *c)
{
    const uint32_t gone = w->behind[c->place];
    if (w->id[c->place] != c->left || gone == NOWHERE || w->id[gone] != c->right)
        return; /* stale */
    w->id[c->place] = ry_bpe_merge_of(b, c->left, c->right)->whole;
    w->id[gone] = NOWHERE;
    w->behind[c->place] = w->behind[gone];
    if (w->behind[gone] != NOWHERE) w->before[w->behind[gone]] = c->place;
    consider(b, w, w->before[c->place]);
    consider(b, w, c->place);
}

/* Every byte is considered once and every join adds two: never more than 3 n chances. */
static void layout(ry_arena *a, size_t n, word *w)
{
    w->id = RY_TAKE(a, uint32_t, n);
    w->before = RY_TAKE(a, uint32_t, n);
    w->behind = RY_TAKE(a, uint32_t, n);
    w->heap = RY_TAKE(a, chance, 3 * n);
}

static renyi_status make_room(const ry_bpe *b, ry_bpe_scratch *s, size_t n, word *w,
                              renyi_error *err)
{
    const size_t wanted = n < 256 ? 256 : n + n / 8; /* the next word is often a little longer */
    const size_t room = n <= s->room ? s->room : wanted;
    ry_arena measure = {0};
    layout(&measure, room, w);
    if (room > s->room) {
        ry_free(&b->al, s->block);
        *s = (ry_bpe_scratch){ry_alloc(&b->al, measure.used, 1), 0};
        if (!s->block) return ry_fail_nomem(err, measure.used);
        s->room = room;
    }
    ry_arena bind = {s->block, 0, measure.used, 0};
    layout(&bind, room, w);
    w->n_heap = 0;
    return RENYI_OK;
}

renyi_status ry_bpe_word(const ry_bpe *b, const char *text, size_t n, ry_bpe_scratch *scratch,
                         ry_id_sink *out, renyi_error *err)
{
    word w;
    RY_TRY(make_room(b, scratch, n, &w, err));
    for (uint32_t i = 0; i < n; i++) {
        const unsigned char byte = (unsigned char)text[i];
        w.id[i] = b->byte_id[i + 1 == n][byte];
        w.before[i] = i ? i - 1 : NOWHERE;
        w.behind[i] = i + 1 < n ? i + 1 : NOWHERE;
        if (w.id[i] == UINT32_MAX)
            return ry_fail(err, RENYI_ERR_UNSUPPORTED, -1,
                           "the vocabulary has no symbol for the byte 0x%02x%s", byte,
                           i + 1 == n ? " at the end of a word" : "");
    }
    for (uint32_t i = 0; i < n; i++) consider(b, &w, i);
    while (w.n_heap) {
        const chance c = pop(&w);
        join(b, &w, &c);
    }
    for (uint32_t i = 0; i < n; i = w.behind[i]) ry_id_put(out, w.id[i]); /* NOWHERE >= n */
    return RENYI_OK;
}
