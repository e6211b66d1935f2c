/* test_gallery.c - checks embedding of images, files of rows, and an index that follows its folder
 * and validates every file.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fixtures/eval_fixture.h"
#include "fixtures/test_heap.h"
#include "renyi/clip.h"
#include "renyi/gallery.h"

#include <fcntl.h>
#include <time.h>

enum { DIM = 64, GOOD = IMAGES - BROKEN };

#define assert_ok(expr)                                                  \
    do {                                                                 \
        renyi_error e_ = {0};                                            \
        renyi_error *const err = &e_;                                    \
        if ((expr) != RENYI_OK) fail_msg("%s: %s", #expr, err->message); \
    } while (0)

static void assert_says(const renyi_error *e, const char *word)
{
    if (!strstr(e->message, word)) fail_msg("\"%s\" is not in: %s", word, e->message);
}

static int n_failures;
static void count_failure(void *user, const char *path, const char *message)
{
    (void)user;
    assert_true(strstr(path, ".ppm") && message[0]);
    n_failures++;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static void list_paths(const char *paths[IMAGES])
{
    for (size_t i = 0; i < IMAGES; i++) {
        renyi_dataset_image image;
        renyi_dataset_get_image(fixture.data, i, &image);
        paths[i] = image.path;
    }
}

static void one_row(const char *path, float row[DIM])
{
    const renyi_session_options o = {.struct_size = sizeof o, .output = RENYI_OUTPUT_EMBEDDING};
    renyi_session *s;
    renyi_image image;
    FILE *f = fopen(path, "rb");
    char bytes[4096];
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    assert_ok(renyi_image_decode(&image, bytes, n, NULL, err));
    assert_ok(renyi_session_new(&s, fixture.model, &o, err));
    assert_ok(renyi_run(s, &image, 1, row, err));
    renyi_normalise_rows(row, 1, DIM);
    renyi_session_free(s);
    renyi_image_free(&image, NULL);
}

static void rows_are_those_of_single_runs(void **state)
{
    (void)state;
    const char *paths[IMAGES];
    float rows[IMAGES * DIM], alone[DIM];
    uint8_t done[IMAGES];
    list_paths(paths);
    for (uint32_t batch = 1; batch <= 64; batch *= 8) {
        const renyi_embed_options o = {
            .struct_size = sizeof o, .batch = batch, .on_failure = count_failure};
        n_failures = 0;
        assert_ok(renyi_embed_photos(fixture.model, paths, IMAGES, &o, rows, done, err));
        assert_int_equal(n_failures, BROKEN);
        for (size_t i = 0; i < IMAGES; i++) {
            const int is_broken = strstr(paths[i], "/07.ppm") || strstr(paths[i], "/11.ppm");
            assert_int_equal(done[i], !is_broken);
            if (is_broken) {
                for (size_t k = 0; k < DIM; k++) assert_true(rows[i * DIM + k] == 0.0f);
                continue;
            }
            one_row(paths[i], alone);
            assert_memory_equal(rows + i * DIM, alone, sizeof alone);
        }
    }
    assert_ok(renyi_embed_photos(fixture.model, NULL, 0, NULL, NULL, NULL, err));
}

/* ---- files ---------------------------------------------------------------------------------- */

static const float written[] = {1.0f, 0.0f, 0.6f, -0.8f, 0.28f, 0.96f};
static const char *const files[] = {"a \"b\".jpg", "caf\xc3\xa9/\xff.png"};
static const char *const words[] = {"a photo"};

static renyi_embeddings three_rows(void)
{
    return (renyi_embeddings){.struct_size = sizeof(renyi_embeddings),
                              .dim = 2,
                              .n_images = 2,
                              .n_texts = 1,
                              .images = written,
                              .texts = written + 4,
                              .files = files,
                              .words = words,
                              .model = "toy",
                              .policy = "none"};
}

static void rows_go_to_files(void **state)
{
    (void)state;
    renyi_embeddings e = three_rows();
    assert_ok(renyi_embeddings_write(at("r.jsonl"), RENYI_ROWS_JSONL, &e, err));
    char *text = read_all(at("r.jsonl"));
    assert_string_equal(text, "{\"file\":\"a \\\"b\\\".jpg\",\"embedding\":[1,0]}\n"
                              "{\"file\":\"caf\xc3\xa9/\xef\xbf\xbd.png\",\"embedding\":"
                              "[0.600000024,-0.800000012]}\n"
                              "{\"text\":\"a photo\",\"embedding\":[0.280000001,0.959999979]}\n");
    free(text);
    assert_ok(renyi_embeddings_write(at("r.npy"), RENYI_ROWS_NPY, &e, err));
    text = read_all(at("r.npy"));
    static const char header[] = "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': "
                                 "False, 'shape': (3, 2), }";
    assert_memory_equal(text, header, sizeof header - 1);
    assert_int_equal(text[127], '\n');
    assert_memory_equal(text + 128, written, sizeof written);
    free(text);
    assert_ok(renyi_embeddings_write(at("r.safetensors"), RENYI_ROWS_SAFETENSORS, &e, err));
    text = read_all(at("r.safetensors"));
    assert_non_null(strstr(text + 8, "\"image\""));
    assert_non_null(strstr(text + 8, "\"texts\":\"[\\\"a photo\\\"]\""));
    free(text);
    renyi_error err = {0};
    e.n_images = e.n_texts = 0;
    assert_int_equal(renyi_embeddings_write(at("no.npy"), RENYI_ROWS_NPY, &e, &err), RENYI_ERR_ARG);
    assert_int_equal(access(at("no.npy"), F_OK), -1);
}

/* ---- galleries ------------------------------------------------------------------------------ */

static renyi_gallery_changes update(renyi_gallery *g)
{
    const renyi_embed_options o = {
        .struct_size = sizeof o, .n_threads = 1, .on_failure = count_failure};
    renyi_gallery_changes c;
    assert_ok(renyi_gallery_update(g, at("images"), fixture.model, "toy", &o, &c, err));
    return c;
}

static void assert_changes(renyi_gallery_changes c, size_t kept, size_t added, size_t changed,
                           size_t removed, size_t failed)
{
    assert_int_equal(c.kept, kept);
    assert_int_equal(c.added, added);
    assert_int_equal(c.changed, changed);
    assert_int_equal(c.removed, removed);
    assert_int_equal(c.failed, failed);
}

static size_t count_of(const renyi_gallery *g)
{
    renyi_gallery_info info;
    renyi_gallery_get_info(g, &info);
    return info.n_photos;
}

static void copy_file(const char *from, const char *to)
{
    FILE *f = fopen(from, "rb");
    char bytes[4096];
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    write_all(to, bytes, n);
}

static void an_index_follows_its_folder(void **state)
{
    (void)state;
    renyi_gallery *g, *again;
    renyi_gallery_photo a, b;
    assert_ok(renyi_gallery_new(&g, NULL, err));
    assert_changes(update(g), 0, GOOD, 0, 0, BROKEN);
    assert_changes(update(g), GOOD, 0, 0, 0, BROKEN);
    copy_file(at("images/000/00.ppm"), at("images/000/zz.ppm"));
    copy_file(at("images/000/00.ppm"), at("images/000!.ppm")); /* '!' sorts before '/' */
    copy_file(at("images/002/02.ppm"), at("images/001/01.ppm"));
    const struct timespec past[2] = {{1000, 0}, {1000, 5}};
    assert_int_equal(utimensat(AT_FDCWD, at("images/001/01.ppm"), past, 0), 0);
    unlink(at("images/003/03.ppm"));
    assert_changes(update(g), GOOD - 2, 2, 1, 1, BROKEN);
    assert_int_equal(count_of(g), GOOD + 1);
    for (size_t i = 1; i < count_of(g); i++) {
        renyi_gallery_get_photo(g, i - 1, &a);
        renyi_gallery_get_photo(g, i, &b);
        assert_true(strcmp(a.file, b.file) < 0);
    }
    assert_ok(renyi_gallery_save(g, at("index.safetensors"), err));
    assert_ok(renyi_gallery_open(&again, at("index.safetensors"), NULL, err));
    assert_int_equal(count_of(again), count_of(g));
    for (size_t i = 0; i < count_of(g); i++) {
        renyi_gallery_get_photo(g, i, &a);
        renyi_gallery_get_photo(again, i, &b);
        assert_string_equal(a.file, b.file);
        assert_true(a.size == b.size && a.time == b.time);
        assert_memory_equal(a.row, b.row, DIM * sizeof(float));
    }
    assert_changes(update(again), GOOD + 1, 0, 0, 0, BROKEN);
    make_image(1), make_image(3);
    unlink(at("images/000/zz.ppm")), unlink(at("images/000!.ppm"));
    renyi_gallery_free(again);
    renyi_gallery_free(g);
}

static void nearest_come_first(void **state)
{
    (void)state;
    renyi_gallery *g;
    renyi_gallery_photo p;
    renyi_hit hits[IMAGES];
    size_t n;
    float row[DIM];
    renyi_error err = {0};
    assert_ok(renyi_gallery_new(&g, NULL, err));
    (void)update(g);
    renyi_gallery_get_photo(g, 5, &p);
    for (size_t k = 0; k < DIM; k++) row[k] = 3.0f * p.row[k];
    assert_ok(renyi_gallery_search(g, row, IMAGES, hits, &n, err));
    assert_int_equal(n, GOOD);
    assert_int_equal(hits[0].photo, 5);
    assert_true(hits[0].score > 0.99999 && hits[0].score <= 1.0);
    for (size_t i = 1; i < n; i++) assert_true(hits[i - 1].score >= hits[i].score);
    renyi_hit few[3];
    assert_ok(renyi_gallery_search(g, row, 3, few, &n, err));
    assert_int_equal(n, 3);
    for (size_t i = 0; i < 3; i++) assert_int_equal(few[i].photo, hits[i].photo);
    memset(row, 0, sizeof row);
    assert_int_equal(renyi_gallery_search(g, row, 3, few, &n, &err), RENYI_ERR_ARG);
    renyi_gallery_free(g);
}

/* Rows of another model, policy or preprocessing must never be compared. */
static void rows_of_another_model_are_not_kept(void **state)
{
    (void)state;
    const renyi_init_options init = {.struct_size = sizeof init,
                                     .seed = 2,
                                     .n_classes = CLASSES,
                                     .dim = DIM,
                                     .n_blocks = 2,
                                     .n_heads = 2};
    const renyi_embed_options pruned = {.struct_size = sizeof pruned,
                                        .policy = "naive p=20 layers=0 metric=cls"},
                              turned = {.struct_size = sizeof turned, .apply_exif = 1};
    renyi_model *other;
    renyi_gallery *g;
    renyi_gallery_changes c;
    renyi_error err = {0};
    assert_ok(renyi_model_init_file(at("o.safetensors"), "vit_tiny_patch16_224", &init, err));
    assert_ok(renyi_model_open(&other, at("o.safetensors"), NULL, err));
    assert_ok(renyi_gallery_new(&g, NULL, err));
    assert_int_equal(renyi_gallery_check(g, fixture.model, NULL, &err), RENYI_ERR_ARG);
    (void)update(g);
    assert_ok(renyi_gallery_check(g, fixture.model, NULL, err));
    assert_int_equal(renyi_gallery_check(g, other, NULL, &err), RENYI_ERR_ARG);
    assert_says(&err, "another model (\"toy\")");
    assert_int_equal(renyi_gallery_check(g, fixture.model, &pruned, &err), RENYI_ERR_ARG);
    assert_says(&err, "policy \"none\"");
    assert_int_equal(renyi_gallery_check(g, fixture.model, &turned, &err), RENYI_ERR_ARG);
    assert_says(&err, "preprocessing");
    assert_ok(renyi_gallery_update(g, at("images"), other, "other", NULL, &c, err));
    assert_true(c.is_anew);
    assert_int_equal(c.kept, 0);
    assert_int_equal(c.changed, GOOD);
    renyi_gallery_free(g);
    renyi_model_free(other);
}

static int stop_after_two(void *user, uint64_t done, uint64_t total)
{
    (void)user, (void)total;
    return done >= 2;
}

static void a_stop_keeps_what_is_done(void **state)
{
    (void)state;
    const renyi_embed_options o = {.struct_size = sizeof o, .batch = 2, .progress = stop_after_two};
    renyi_gallery *g;
    renyi_gallery_changes c;
    renyi_error err = {0};
    assert_ok(renyi_gallery_new(&g, NULL, err));
    assert_int_equal(renyi_gallery_update(g, at("images"), fixture.model, NULL, &o, &c, &err),
                     RENYI_ERR_ABORTED);
    assert_int_equal(c.added, 2);
    assert_int_equal(count_of(g), 2);
    assert_changes(update(g), 2, GOOD - 2, 0, 0, BROKEN);
    assert_int_equal(renyi_gallery_update(g, at("none"), fixture.model, NULL, &o, &c, &err),
                     RENYI_ERR_IO);
    assert_int_equal(count_of(g), GOOD); /* as before */
    renyi_gallery_free(g);
}

/* Waits until the next save is due; then that save must be on disk. */
static int look_at_index(void *user, uint64_t done, uint64_t total)
{
    size_t *saved = user;
    renyi_gallery *g = NULL;
    (void)total;
    if (done == 4) nanosleep(&(struct timespec){2, 50000000}, NULL);
    if (done <= 4) return access(at("going.safetensors"), F_OK) == 0; /* too early */
    if (done == 6) {
        assert_ok(renyi_gallery_open(&g, at("going.safetensors"), NULL, err));
        *saved = count_of(g);
        renyi_gallery_free(g);
    }
    return 0;
}

static void an_update_saves_as_it_goes(void **state)
{
    (void)state;
    size_t saved = 0;
    char going[600], nowhere[600]; /* at() uses its buffers again */
    snprintf(going, sizeof going, "%s", at("going.safetensors"));
    snprintf(nowhere, sizeof nowhere, "%s", at("none/going.safetensors"));
    const renyi_embed_options o = {.struct_size = sizeof o,
                                   .batch = 2,
                                   .progress = look_at_index,
                                   .user = &saved,
                                   .save_to = going};
    renyi_embed_options blocked = o;
    renyi_gallery *g, *part;
    renyi_gallery_changes c;
    renyi_error err = {0};
    assert_ok(renyi_gallery_new(&g, NULL, err));
    assert_ok(renyi_gallery_update(g, at("images"), fixture.model, NULL, &o, &c, err));
    assert_int_equal(saved, 5); /* one of the first six is broken */
    assert_int_equal(c.added, GOOD);
    assert_ok(renyi_gallery_open(&part, going, NULL, err)); /* as a kill leaves it */
    const size_t n = count_of(part); /* more than 5 where the others take two seconds, too */
    assert_true(n >= saved && n <= GOOD);
    assert_changes(update(part), n, GOOD - n, 0, 0, BROKEN);
    for (size_t i = 0; i < GOOD; i++) {
        renyi_gallery_photo a, b;
        renyi_gallery_get_photo(g, i, &a);
        renyi_gallery_get_photo(part, i, &b);
        assert_string_equal(a.file, b.file);
        assert_memory_equal(a.row, b.row, DIM * sizeof *a.row);
    }
    renyi_gallery_free(part);
    renyi_gallery_free(g);
    assert_int_equal(unlink(at("going.safetensors")), 0);
    blocked.save_to = nowhere; /* a save that fails ends the update */
    assert_ok(renyi_gallery_new(&g, NULL, err));
    assert_int_equal(renyi_gallery_update(g, at("images"), fixture.model, NULL, &blocked, &c, &err),
                     RENYI_ERR_IO);
    assert_says(&err, "none/going.safetensors");
    renyi_gallery_free(g);
}

/* ---- files of strangers --------------------------------------------------------------------- */

/* The index with `from` replaced by `to`, as long, must be refused with `word`. */
static void refuse(const char *bytes, size_t size, const char *from, const char *to,
                   const char *word)
{
    char *copy = malloc(size);
    renyi_gallery *g;
    renyi_error err = {0};
    memcpy(copy, bytes, size);
    char *place = memmem(copy, size, from, strlen(from));
    assert_non_null(place);
    memcpy(place, to, strlen(to));
    write_all(at("bad.safetensors"), copy, size);
    assert_true(renyi_gallery_open(&g, at("bad.safetensors"), NULL, &err) != RENYI_OK);
    assert_null(g);
    assert_says(&err, "bad.safetensors");
    assert_says(&err, word);
    free(copy);
}

static void a_bad_index_is_refused(void **state)
{
    (void)state;
    renyi_gallery *g;
    renyi_error err = {0};
    assert_ok(renyi_gallery_new(&g, NULL, err));
    assert_int_equal(renyi_gallery_save(g, at("i.safetensors"), &err), RENYI_ERR_ARG);
    (void)update(g);
    assert_ok(renyi_gallery_save(g, at("i.safetensors"), err));
    renyi_gallery_free(g);
    FILE *f = fopen(at("i.safetensors"), "rb");
    char *bytes = malloc(1 << 20);
    const size_t size = fread(bytes, 1, 1 << 20, f);
    fclose(f);
    refuse(bytes, size, "renyi.index", "renyi.innex", "not an index of images");
    refuse(bytes, size, "000/00.ppm", "../../.ppm", "below the folder");
    refuse(bytes, size, "000/00.ppm", "/00/00.ppm", "below the folder");
    refuse(bytes, size, "000/00.ppm", "000//0.ppm", "below the folder");
    refuse(bytes, size, "000/00.ppm", "900/00.ppm", "order");
    refuse(bytes, size, "\"probe\"", "\"prove\"", "probe");
    refuse(bytes, size, "\"recipe\"", "\"recite\"", "recipe");
    refuse(bytes, size, "\"U64\"", "\"I64\"", "size");
    memset(bytes + size - 2 * DIM * 4, 0, DIM * 4); /* the last row before the probe */
    refuse(bytes, size, "toy", "toy", "length 1");
    free(bytes);
    assert_int_equal(renyi_gallery_open(&g, at("m.safetensors"), NULL, &err), RENYI_ERR_FORMAT);
    assert_says(&err, "not an index of images");
}

static void short_memory_is_an_error(void **state)
{
    (void)state;
    const renyi_embed_options one = {.struct_size = sizeof one, .n_threads = 1};
    int is_over = 0, n_without_threads = 0;
    for (size_t i = 1; !is_over; i += i < 12 ? 1 : 7) {
        test_heap heap = {.fail_at = i};
        const renyi_options o = {.struct_size = sizeof o, .allocator = test_heap_of(&heap)};
        renyi_gallery *g = NULL;
        renyi_error err = {0};
        renyi_status st = renyi_gallery_new(&g, &o, &err);
        if (!st)
            st = renyi_gallery_update(g, at("images/000"), fixture.model, NULL, &one, NULL, &err);
        if (!st) st = renyi_gallery_save(g, at("n.safetensors"), &err);
        renyi_gallery_free(g);
        g = NULL;
        if (!st) st = renyi_gallery_open(&g, at("n.safetensors"), &o, &err);
        renyi_gallery_free(g);
        assert_int_equal(heap.live, 0);
        is_over = heap.calls < i;
        /* one may pass: without memory for its threads the caller decodes the images itself */
        if (!is_over && !st)
            assert_int_equal(++n_without_threads, 1);
        else if (!is_over)
            assert_int_equal(st, RENYI_ERR_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_single_runs),
        cmocka_unit_test(rows_go_to_files),
        cmocka_unit_test(an_index_follows_its_folder),
        cmocka_unit_test(nearest_come_first),
        cmocka_unit_test(rows_of_another_model_are_not_kept),
        cmocka_unit_test(a_stop_keeps_what_is_done),
        cmocka_unit_test(an_update_saves_as_it_goes),
        cmocka_unit_test(a_bad_index_is_refused),
        cmocka_unit_test(short_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
