/* test_fork.c - models, sessions and learners work in a process after fork, with several threads.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* mkdtemp */
#include "fixtures/small_model.h"
#include "renyi/renyi.h"
#include "renyi/train.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { SIDE = 32, CLASSES = 10, BATCH = 3, THREADS = 3, SECONDS = 120 };
static char folder[] = "/tmp/renyi-fork-XXXXXX", path[SMALL_MODEL_PATH];
static uint8_t pixels[BATCH * SIDE * SIDE * 3];
static float tensor[BATCH * SIDE * SIDE * 3];

/* What the parent made before the fork, and what it computed. */
static struct {
    renyi_model *model;
    renyi_session *session;
    renyi_learner *learner;
    float logits[BATCH * CLASSES], learned[BATCH * CLASSES];
} parent;

static renyi_session *new_session(const renyi_model *m)
{
    const renyi_session_options opt = {
        .struct_size = sizeof opt, .max_batch = BATCH, .n_threads = THREADS};
    renyi_session *s = NULL;
    renyi_error err = {0};
    if (renyi_session_new(&s, m, &opt, &err)) fprintf(stderr, "%s\n", err.message);
    return s;
}

static renyi_model *open_model(void)
{
    renyi_model *m = NULL;
    renyi_error err = {0};
    if (renyi_model_open(&m, path, NULL, &err)) fprintf(stderr, "%s\n", err.message);
    return m;
}

static int make_parent(void **state)
{
    (void)state;
    renyi_error err = {0};
    const renyi_learner_options learner = {.struct_size = sizeof learner, .n_threads = THREADS};
    for (size_t i = 0; i < sizeof pixels; i++) {
        pixels[i] = (uint8_t)(i * 37 % 251);
        tensor[i] = (float)pixels[i] / 255.0f;
    }
    if (small_model_make(folder, path, CLASSES)) return -1;
    parent.model = open_model();
    parent.session = parent.model ? new_session(parent.model) : NULL;
    return !parent.session ||
           renyi_run_pixels(parent.session, pixels, BATCH, parent.logits, &err) ||
           renyi_learner_new(&parent.learner, path, &learner, &err) ||
           renyi_learner_forward(parent.learner, tensor, BATCH, parent.learned, &err);
}

static int free_parent(void **state)
{
    (void)state;
    renyi_learner_free(parent.learner);
    renyi_session_free(parent.session);
    renyi_model_free(parent.model);
    unlink(path);
    return rmdir(folder);
}

/* ---- what a child does: 0, or which step failed ---------------------------------------------- */

static int use_session(renyi_session *s)
{
    float logits[BATCH * CLASSES];
    renyi_error err;
    return renyi_run_pixels(s, pixels, BATCH, logits, &err) != RENYI_OK ||
           memcmp(logits, parent.logits, sizeof logits) != 0;
}

static int use_given(void) { return use_session(parent.session) ? 1 : use_session(parent.session); }

static int use_new(void)
{
    renyi_model *m = open_model();
    renyi_session *s = m ? new_session(m) : NULL;
    const int failed = !s || use_session(s);
    renyi_session_free(s);
    renyi_model_free(m);
    return failed;
}

static int use_learner(void)
{
    float logits[BATCH * CLASSES];
    const uint32_t labels[BATCH] = {0, 1, 2};
    renyi_error err;
    double loss;
    if (renyi_learner_forward(parent.learner, tensor, BATCH, logits, &err)) return 1;
    if (memcmp(logits, parent.learned, sizeof logits) != 0) return 2;
    return renyi_learner_step(parent.learner, tensor, labels, BATCH, 1e-3, &loss, &err) ? 3 : 0;
}

static int use_all(void) { return use_given() || use_new() || use_learner(); }

static pid_t start_child(int (*work)(void))
{
    const pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS); /* a child that hangs is killed by SIGALRM */
        _exit(work());
    }
    return child;
}

static int wait_for(pid_t child)
{
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    if (WIFSIGNALED(status)) fprintf(stderr, "the child ended by signal %d\n", WTERMSIG(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int use_grandchild(void) { return use_given() || wait_for(start_child(use_all)); }

static void *fork_elsewhere(void *failed)
{
    *(int *)failed = wait_for(start_child(use_all));
    return NULL;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_session_of_the_parent_works(void **state)
{
    (void)state;
    assert_int_equal(wait_for(start_child(use_given)), 0);
    assert_int_equal(use_given(), 0); /* the parent goes on */
}

static void a_new_session_works(void **state)
{
    (void)state;
    assert_int_equal(use_given(), 0); /* this thread has a pool of threads now */
    assert_int_equal(wait_for(start_child(use_new)), 0);
}

static void a_learner_works(void **state)
{
    (void)state;
    float logits[BATCH * CLASSES];
    renyi_error err;
    assert_int_equal(renyi_learner_forward(parent.learner, tensor, BATCH, logits, &err), RENYI_OK);
    assert_int_equal(wait_for(start_child(use_learner)), 0);
}

static void several_children_work(void **state)
{
    (void)state;
    pid_t children[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(use_given(), 0);
        children[i] = start_child(i == 2 ? use_grandchild : use_all);
    }
    assert_int_equal(use_given(), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(wait_for(children[i]), 0);
}

/* fork in a thread that has never run a model, while this one has a pool. */
static void a_fork_in_another_thread_works(void **state)
{
    (void)state;
    pthread_t thread;
    int failed = -1;
    assert_int_equal(use_given(), 0);
    assert_int_equal(pthread_create(&thread, NULL, fork_elsewhere, &failed), 0);
    pthread_join(thread, NULL);
    assert_int_equal(failed, 0);
    assert_int_equal(use_given(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_of_the_parent_works),
        cmocka_unit_test(a_new_session_works),
        cmocka_unit_test(a_learner_works),
        cmocka_unit_test(several_children_work),
        cmocka_unit_test(a_fork_in_another_thread_works),
    };
    return cmocka_run_group_tests(tests, make_parent, free_parent);
}
