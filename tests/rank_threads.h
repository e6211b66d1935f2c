/* rank_threads.h - ranks for tests: threads that gather through a table in memory.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RANK_THREADS_H
#define RANK_THREADS_H

#include "renyi/eval.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { HUB_BYTES = 1 << 16 }; /* the most that the library says at once */

/* A rank is at most one round ahead of another, so two rounds are kept. */
typedef struct hub {
    pthread_mutex_t lock;
    pthread_cond_t change;
    uint32_t n_ranks;
    uint32_t n_posted[2];
    size_t size[2];
    unsigned char *bytes[2]; /* [n_ranks, HUB_BYTES] */
    uint64_t first[2];       /* the round that the slot holds */
} hub;

typedef struct seat {
    hub *hub;
    uint32_t rank;
    uint64_t round;
    void *all;
} seat;

static inline renyi_status seat_start(void *user, const void *mine, size_t size, void *all,
                                      renyi_error *err)
{
    seat *s = user;
    hub *h = s->hub;
    const int slot = (int)(s->round % 2);
    (void)err;
    pthread_mutex_lock(&h->lock);
    if (h->first[slot] != s->round) h->first[slot] = s->round, h->n_posted[slot] = 0;
    if (size > HUB_BYTES || (h->n_posted[slot] && h->size[slot] != size)) abort();
    h->size[slot] = size;
    memcpy(h->bytes[slot] + s->rank * (size_t)HUB_BYTES, mine, size);
    h->n_posted[slot]++;
    s->all = all;
    pthread_cond_broadcast(&h->change);
    pthread_mutex_unlock(&h->lock);
    return RENYI_OK;
}

static inline renyi_status seat_finish(void *user, int wait, int *is_done, renyi_error *err)
{
    seat *s = user;
    hub *h = s->hub;
    const int slot = (int)(s->round % 2);
    (void)err;
    pthread_mutex_lock(&h->lock);
    while (wait && h->n_posted[slot] < h->n_ranks) pthread_cond_wait(&h->change, &h->lock);
    *is_done = h->n_posted[slot] == h->n_ranks;
    for (uint32_t i = 0; *is_done && i < h->n_ranks; i++)
        memcpy((unsigned char *)s->all + i * h->size[slot], h->bytes[slot] + i * (size_t)HUB_BYTES,
               h->size[slot]);
    s->round += (uint64_t)*is_done;
    pthread_mutex_unlock(&h->lock);
    return RENYI_OK;
}

static inline void hub_open(hub *h, uint32_t n_ranks)
{
    memset(h, 0, sizeof *h);
    h->n_ranks = n_ranks;
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->change, NULL);
    for (int i = 0; i < 2; i++) {
        h->bytes[i] = malloc((size_t)n_ranks * HUB_BYTES);
        h->first[i] = UINT64_MAX;
        if (!h->bytes[i]) abort();
    }
}

static inline void hub_close(hub *h)
{
    for (int i = 0; i < 2; i++) free(h->bytes[i]);
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->change);
}

/* Rank `rank` of the hub; the seat must stay where it is. */
static inline renyi_ranks seat_take(seat *s, hub *h, uint32_t rank)
{
    *s = (seat){h, rank, 0, NULL};
    return (renyi_ranks){.struct_size = sizeof(renyi_ranks),
                         .rank = rank,
                         .n_ranks = h->n_ranks,
                         .n_sharing = h->n_ranks,
                         .user = s,
                         .start = seat_start,
                         .finish = seat_finish};
}

#endif
