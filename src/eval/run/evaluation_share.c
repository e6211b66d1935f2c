/* evaluation_share.c - ranks compare what they are about to do, and swap answers and failures.
 *
 * Answers travel as records in chunks of one size, because that is all that a gather knows. Ranks
 * are the same program on the same kind of machine; what comes is checked all the same.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/status.h"
#include "eval/run/evaluation.h"

#include <string.h>

/* ---- do we mean the same? ------------------------------------------------------------------ */

typedef struct greeting {
    uint64_t run, photos, policies; /* hashes */
    uint64_t answers;               /* hash of what the logs brought */
    uint64_t n_images;
    uint32_t cpu, answer_size;
} greeting;

static uint64_t hash_photos(const renyi_eval *e)
{
    uint64_t hash = RY_HASH_START;
    for (size_t i = 0; i < e->n_images; i++) {
        renyi_dataset_image photo;
        renyi_dataset_get_image(e->data, i, &photo);
        hash = ry_hash_add_text(hash, photo.file);
        hash = ry_hash_add(hash, &photo.index, sizeof photo.index);
        hash = ry_hash_add(hash, &photo.label, sizeof photo.label);
        hash = ry_hash_add(hash, photo.right, photo.n_right * sizeof *photo.right);
    }
    return hash;
}

static uint64_t hash_answers(const renyi_eval *e)
{
    uint64_t hash = RY_HASH_START;
    for (size_t i = 0; i < e->n_images * e->o.n_policies; i++) {
        const ry_answer *a = &e->answers[i];
        hash = ry_hash_add(hash, &a->state, sizeof a->state);
        if (a->state == RY_ANSWER_GIVEN) hash = ry_hash_add(hash, a->top, sizeof a->top);
    }
    return hash;
}

static greeting greet(const renyi_eval *e)
{
    renyi_model_info model;
    renyi_model_get_info(e->model, &model);
    greeting g = {.run = e->run,
                  .photos = hash_photos(e),
                  .policies = RY_HASH_START,
                  .answers = hash_answers(e),
                  .n_images = e->n_images,
                  .cpu = (uint32_t)model.cpu,
                  .answer_size = sizeof(ry_answer)};
    for (uint32_t p = 0; p < e->o.n_policies; p++)
        g.policies = ry_hash_add_text(g.policies, e->policies[p].text);
    return g;
}

/* Rank i against rank 0; all ranks come to the same verdict. */
static renyi_status compare(const greeting *a, const greeting *b, uint32_t i, renyi_error *err)
{
    if (a->answer_size != b->answer_size)
        return ry_fail(err, RENYI_ERR_ARG, -1, "rank %u runs another build than rank 0", i);
    if (a->run != b->run)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "rank %u has another model, dtype, preprocessing or list of valid classes "
                       "than rank 0",
                       i);
    if (a->photos != b->photos)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "rank %u sees other photos or classes (%llu photos) than rank 0 (%llu)", i,
                       (unsigned long long)b->n_images, (unsigned long long)a->n_images);
    if (a->policies != b->policies)
        return ry_fail(err, RENYI_ERR_ARG, -1, "rank %u has other policies than rank 0", i);
    if (a->cpu != b->cpu)
        return ry_fail(err, RENYI_ERR_ARG, -1,
                       "rank %u runs at CPU level %s, rank 0 at %s: answers could differ; open the "
                       "model with the same level everywhere",
                       i, renyi_cpu_name((renyi_cpu)b->cpu), renyi_cpu_name((renyi_cpu)a->cpu));
    return RENYI_OK;
}

/* ---- records ------------------------------------------------------------------------------- */

typedef enum record_kind {
    RECORD_ANSWER = 1,
    RECORD_FAILURE,
    RECORD_WORK,
    RECORD_TIMES
} record_kind;

/* In front of `length` bytes, the whole a multiple of 8. */
typedef struct record {
    uint32_t kind, policy, length, unused;
    uint64_t photo;
} record;

typedef struct chunk_head {
    uint32_t used; /* bytes of records behind it */
    uint32_t is_last;
} chunk_head;

/* What is still to be said. */
typedef struct speaker {
    const renyi_eval *e;
    int is_final;                  /* 0: answers that the logs gave; 1: what was run and how */
    uint32_t at_work;              /* policies whose work was told, + 1 for the times */
    size_t at_failure, n_failures; /* own ones */
    uint64_t at_answer;
} speaker;

static size_t record_size(size_t length) { return sizeof(record) + ((length + 7) & ~(size_t)7); }

static size_t put_record(unsigned char *to, size_t room, record head, const void *bytes)
{
    const size_t size = record_size(head.length);
    if (size > room) return 0;
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, bytes, head.length);
    return size;
}

static int is_told(const speaker *s, const ry_answer *a)
{
    return s->is_final ? a->is_fresh : a->state == RY_ANSWER_GIVEN;
}

/* The next record; 0 = no room or nothing left. Times come first: what others say is added to ours
 * only after our first chunk is filled. */
static size_t say(speaker *s, unsigned char *to, size_t room)
{
    const renyi_eval *e = s->e;
    size_t n;
    if (s->is_final && s->at_work <= e->o.n_policies) {
        const record times = {RECORD_TIMES, 0, sizeof e->times, 0, 0};
        const uint32_t p = s->at_work ? s->at_work - 1 : 0;
        const record work = {RECORD_WORK, p, sizeof(ry_work), 0, 0};
        n = s->at_work ? put_record(to, room, work, &e->policies[p].own)
                       : put_record(to, room, times, &e->times);
        s->at_work += n > 0;
        return n;
    }
    if (s->is_final && s->at_failure < s->n_failures) {
        const ry_failure *f = &e->failures[s->at_failure];
        const record head = {RECORD_FAILURE, f->policy, (uint32_t)strlen(f->shown.message) + 1, 0,
                             f->photo};
        n = put_record(to, room, head, f->shown.message);
        s->at_failure += n > 0;
        return n;
    }
    for (; s->at_answer < (uint64_t)e->n_images * e->o.n_policies; s->at_answer++) {
        const ry_answer *a = &e->answers[s->at_answer];
        if (!is_told(s, a)) continue;
        const record head = {RECORD_ANSWER, (uint32_t)(s->at_answer / e->n_images), sizeof *a, 0,
                             s->at_answer % e->n_images};
        n = put_record(to, room, head, a);
        s->at_answer += n > 0;
        return n;
    }
    return 0;
}

static int has_more(const speaker *s)
{
    speaker copy = *s;
    unsigned char one[RY_CHUNK_MIN];
    return say(&copy, one, sizeof one) > 0;
}

static void fill_chunk(speaker *s, ry_ranks *k)
{
    chunk_head head = {0, 0};
    for (size_t n;
         (n = say(s, k->mine + sizeof head + head.used, k->chunk - sizeof head - head.used));)
        head.used += (uint32_t)n;
    head.is_last = !has_more(s);
    memcpy(k->mine, &head, sizeof head);
}

/* ---- listening ----------------------------------------------------------------------------- */

static void hear_answer(renyi_eval *e, const record *r, const unsigned char *bytes)
{
    ry_answer *a = ry_eval_answer(e, r->policy, (size_t)r->photo);
    const int is_fresh = a->is_fresh;
    if (a->state == RY_ANSWER_GIVEN && (a->is_logged || is_fresh)) return;
    memcpy(a, bytes, sizeof *a);
    a->is_fresh = a->is_logged = 0;
}

static renyi_status hear_failure(renyi_eval *e, const record *r, const unsigned char *bytes,
                                 renyi_error *err)
{
    const ry_failure *f = ry_eval_add_failure(e, (size_t)r->photo, r->policy, (const char *)bytes);
    if (!f) return ry_fail_nomem(err, r->length);
    return e->log.is_part ? RENYI_OK : ry_eval_put_failure(e, f, err);
}

static void hear_times(renyi_eval *e, const unsigned char *bytes)
{
    renyi_eval_times t;
    memcpy(&t, bytes, sizeof t);
    e->times.images += t.images;
    if (t.seconds > e->times.seconds) e->times.seconds = t.seconds;
    e->times.seconds_model += t.seconds_model;
    e->times.seconds_decode += t.seconds_decode;
}

static int is_sound(const renyi_eval *e, const record *r, const unsigned char *bytes)
{
    if (r->photo >= e->n_images) return 0;
    if (r->kind == RECORD_FAILURE)
        return (r->policy < e->o.n_policies || r->policy == RY_ALL_POLICIES) && r->length > 0 &&
               bytes[r->length - 1] == 0;
    if (r->policy >= e->o.n_policies) return 0;
    if (r->kind == RECORD_ANSWER) return r->length == sizeof(ry_answer);
    if (r->kind == RECORD_WORK) return r->length == sizeof(ry_work);
    return r->kind == RECORD_TIMES && r->length == sizeof(renyi_eval_times);
}

static renyi_status hear(renyi_eval *e, const record *r, const unsigned char *bytes,
                         renyi_error *err)
{
    ry_work work;
    if (r->kind == RECORD_FAILURE) return hear_failure(e, r, bytes, err);
    if (r->kind == RECORD_ANSWER) hear_answer(e, r, bytes);
    if (r->kind == RECORD_TIMES) hear_times(e, bytes);
    if (r->kind == RECORD_WORK) {
        memcpy(&work, bytes, sizeof work);
        e->policies[r->policy].others.macs += work.macs;
        e->policies[r->policy].others.n_run += work.n_run;
    }
    return RENYI_OK;
}

static renyi_status hear_chunk(renyi_eval *e, uint32_t rank, const unsigned char *at, size_t used,
                               renyi_error *err)
{
    while (used) {
        record r;
        int ok = used >= sizeof r;
        if (ok) memcpy(&r, at, sizeof r);
        ok = ok && record_size(r.length) <= used && is_sound(e, &r, at + sizeof r);
        if (!ok)
            return ry_fail(err, RENYI_ERR_FORMAT, -1, "rank %u sent no record of answers", rank);
        RY_TRY(hear(e, &r, at + sizeof r, err));
        at += record_size(r.length);
        used -= record_size(r.length);
    }
    return RENYI_OK;
}

/* ---- both ---------------------------------------------------------------------------------- */

/* Everyone says all it has. A rank that cannot take something in goes on listening: the others
 * would wait for it. */
static renyi_status swap(renyi_eval *e, int is_final, renyi_error *err)
{
    ry_ranks *k = &e->ranks;
    speaker s = {.e = e, .is_final = is_final, .n_failures = e->n_failures};
    renyi_status st = RENYI_OK;
    for (uint32_t n_last = 0; n_last < k->r.n_ranks;) {
        fill_chunk(&s, k);
        RY_TRY(ry_ranks_gather(k, k->chunk, err));
        n_last = 0;
        for (uint32_t i = 0; i < k->r.n_ranks; i++) {
            const unsigned char *at = k->all + i * k->chunk;
            chunk_head head;
            memcpy(&head, at, sizeof head);
            n_last += head.is_last != 0;
            if (i == k->r.rank || st) continue;
            st = head.used <= k->chunk - sizeof head
                     ? hear_chunk(e, i, at + sizeof head, head.used, err)
                     : ry_fail(err, RENYI_ERR_FORMAT, -1, "rank %u sent no chunk", i);
        }
    }
    return ry_ranks_agree(k, st, err);
}

renyi_status ry_eval_meet(renyi_eval *e, renyi_error *err)
{
    ry_ranks *k = &e->ranks;
    const greeting mine = greet(e);
    greeting first, other;
    int is_same = 1;
    memcpy(k->mine, &mine, sizeof mine);
    RY_TRY(ry_ranks_gather(k, sizeof mine, err));
    memcpy(&first, k->all, sizeof first);
    for (uint32_t i = 1; i < k->r.n_ranks; i++) {
        memcpy(&other, k->all + i * sizeof other, sizeof other);
        RY_TRY(compare(&first, &other, i, err));
        is_same &= first.answers == other.answers;
    }
    return is_same ? RENYI_OK : swap(e, 0, err);
}

renyi_status ry_eval_share(renyi_eval *e, renyi_error *err)
{
    const renyi_status st = e->ranks.r.n_ranks > 1 ? swap(e, 1, err) : RENYI_OK;
    e->times.n_ranks = e->ranks.r.n_ranks;
    return st;
}
