/* test_dataset.c - every form of dataset and label file can be read, and broken ones are errors.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/dataset_fixture.h"
#include "fixtures/test_heap.h"

static renyi_class_rule rule_of(const renyi_dataset *d)
{
    renyi_dataset_info info;
    renyi_dataset_get_info(d, &info);
    return info.rule;
}

static void test_folders(void **state)
{
    (void)state;
    put("index/006/b.JPG", "");
    put("index/006/deep/a.png", "");
    put("index/010/c.webp", "");
    put("index/010/notes.txt", "");
    put("index/010/.hidden.jpg", "");
    if (symlink("..", at("index/010/loop"))) fail_msg("no links here");
    renyi_dataset *d = open_ok(at("index"), NULL);
    assert_images(d, "006/b.JPG=6 006/deep/a.png=6 010/c.webp=10");
    assert_int_equal(rule_of(d), RENYI_CLASS_BY_INDEX);
    renyi_dataset_free(d);

    put("wnid/train/n01440764/x.jpg", "");
    put("wnid/val/n01440764/a.jpg", "");
    put("wnid/val/n15075141/b.jpg", "");
    d = open_ok(at("wnid"), NULL);
    assert_images(d, "n01440764/a.jpg=0 n15075141/b.jpg=999");
    assert_string_equal(renyi_dataset_class_name(d, 999), "n15075141");
    assert_string_equal(renyi_dataset_class_name(d, 0), "n01440764");
    assert_null(renyi_dataset_class_name(d, 1));
    assert_int_equal(rule_of(d), RENYI_CLASS_BY_WNID);
    renyi_dataset_free(d);
    d = open_ok(at("wnid"),
                OPTIONS(.n_classes = 2)); /* a model of these two classes: ImageFolder's order */
    assert_images(d, "n01440764/a.jpg=0 n15075141/b.jpg=1");
    assert_int_equal(rule_of(d), RENYI_CLASS_BY_ORDER);
    renyi_dataset_free(d);

    put("names/cat/a.jpg", "");
    put("names/sea_lion/b.jpg", "");
    open_bad(at("names"), NULL, "2 folders (\"cat\", ...) for 1000 classes");
    open_bad(at("names"), OPTIONS(.class_map = put("map.txt", "cat\ndog\n")),
             "\"sea_lion\" is not a class");
    d = open_ok(at("names"), OPTIONS(.class_map = put("map.txt", "dog\nSea lion\nCat\n")));
    assert_images(d, "cat/a.jpg=2 sea_lion/b.jpg=1");
    assert_int_equal(rule_of(d), RENYI_CLASS_BY_MAP);
    renyi_dataset_free(d);
    open_bad(at("absent"), NULL, "No such file");
    put("hollow/000/readme", "");
    open_bad(at("hollow"), NULL, "no images here");
    open_bad(put("list.bin", "x"), NULL, ".csv, .jsonl or .txt");
}

static void test_class_maps(void **state)
{
    (void)state;
    static const char *const maps[] = {"dog\nsea lion\ncat\n", "cat 2\nsea lion 1\n",
                                       "cat,2\nsea_lion,1\n", "{\"cat\": 2, \"sea lion\": 1}",
                                       "{\"2\": \"cat\", \"1\": [\"n1\", \"sea lion\"]}"};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        renyi_dataset *d = open_ok(at("names"), OPTIONS(.class_map = put("map.txt", maps[i])));
        assert_images(d, "cat/a.jpg=2 sea_lion/b.jpg=1");
        renyi_dataset_free(d);
    }
    const char *map = put("map.txt", "cat 2\nsea lion 1000\n");
    open_bad(at("names"), OPTIONS(.class_map = map), "map.txt:2: class 1000");
    open_bad(at("names"), OPTIONS(.class_map = put("map.txt", " \n")), "no class name");
    open_bad(at("names"), OPTIONS(.class_map = put("map.txt", "cat 1\nsea lion 2\nCat 3\n")),
             "\"cat\" is not a class"); /* a name of two classes */
    open_bad(at("names"), OPTIONS(.class_map = put("map.txt", "{\"cat\": \"x\"}")), "wanted {");
}

/* What the callbacks of a dataset were told. */
typedef struct told {
    char failures[1024], note[512];
} told;

static void on_failure(void *user, const char *path, const char *reason)
{
    told *t = user;
    const size_t n = strlen(t->failures);
    snprintf(t->failures + n, sizeof t->failures - n, "%s: %s; ", path + strlen(root) + 1, reason);
}

static void on_note(void *user, const char *text)
{
    snprintf(((told *)user)->note, sizeof((told *)user)->note, "%s", text);
}

/* What a walk over folders leaves out, and what it says about it. */
static void test_left_out(void **state)
{
    (void)state;
    told t = {"", ""};
    put("mixed/a/1.jpg", "");
    put("mixed/a/x.GIF", "");
    put("mixed/b/2.png", "");
    put("mixed/b/y.gif", "");
    put("mixed/b/z.heif", "");
    put("mixed/b/z.tiff", "");
    put("mixed/3.jpg", "");
    put("mixed/notes.txt", "");
    assert_int_equal(mkfifo(at("mixed/pipe.jpg"), 0600), 0);
    assert_int_equal(symlink("nothing", at("mixed/broken.png")), 0);
    assert_int_equal(symlink("..", at("mixed/b/up")), 0);
    assert_int_equal(symlink("a", at("mixed/c")), 0);
    renyi_dataset *d = open_ok(at("mixed"), OPTIONS(.unlabelled = 1, .user = &t,
                                                    .on_failure = on_failure, .on_note = on_note));
    renyi_dataset_info info;
    renyi_dataset_get_info(d, &info);
    assert_int_equal(info.n_images, 3); /* a folder that has two names counts once */
    renyi_dataset_free(d);
    assert_string_equal(t.failures, "mixed/broken.png: not a regular file, or a link to nothing; "
                                    "mixed/pipe.jpg: not a regular file, or a link to nothing; ");
    assert_non_null(strstr(t.note, "mixed: 2 GIF, 1 TIFF, 1 HEIC left out"));

    d = open_ok(at("mixed"),
                OPTIONS(.unlabelled = 1, .top_only = 1, .user = &t, .on_failure = on_failure));
    renyi_dataset_get_info(d, &info);
    assert_int_equal(info.n_images, 1);
    renyi_dataset_free(d);
    d = open_ok(at("mixed"), OPTIONS(.unlabelled = 1)); /* they fail when they are read */
    renyi_dataset_get_info(d, &info);
    assert_int_equal(info.n_images, 5);
    renyi_dataset_free(d);
    open_bad(at("mixed"), OPTIONS(.top_only = 1), "top_only is for unlabelled");
    /* each class is a walk of its own: a link to another class is a class */
    d = open_ok(at("mixed"), OPTIONS(.own_classes = 1));
    assert_images(d, "a/1.jpg=0 b/2.png=1 c/1.jpg=2");
    renyi_dataset_free(d);
}

static void test_lists(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
    } lists[] = {
        {"l.csv", "a.jpg,3\n\"b, \"\"c\"\".jpg\",n01440764\n"},
        {"l.csv", "\xef\xbb\xbfid,Label,File\r\n1,3,a.jpg\r\n\r\n2,0,\"b, \"\"c\"\".jpg\"\r\n"},
        {"l.jsonl", "{\"file\": \"a.jpg\", \"label\": 3}\n\n"
                    "{\"label\": \"n01440764\", \"file\": \"b, \\\"c\\\".jpg\"}"},
        {"l.txt", "a.jpg 3\nb, \"c\".jpg\tn01440764\n"},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        renyi_dataset *d = open_ok(put(lists[i].name, lists[i].text), NULL);
        assert_images(d, "a.jpg=3 b, \"c\".jpg=0");
        renyi_dataset_free(d);
    }
    open_bad(put("l.csv", "a.jpg,3\nb.jpg\n"), NULL, "l.csv:2: 1 columns");
    open_bad(put("l.csv", "a.jpg,3\n\"b\n\n.jpg\",x\n"), NULL, "l.csv:2: \"x\" is not a class");
    open_bad(put("l.csv", "a.jpg,3\n\"b.jpg,1\n"), NULL, "l.csv:2: a quote without its end");
    open_bad(put("l.csv", "a.jpg,3\n\"b.jpg\"x,1\n"), NULL, "l.csv:2: text after");
    open_bad(put("l.csv", "a.jpg,1000\n"), NULL, "index below 1000");
    open_bad(put("l.csv", ""), NULL, "no images here");
    open_bad(put("l.jsonl", "{\"file\": \"a\", \"label\": 1}\n{\"file\": \"b\"}\n"), NULL,
             "l.jsonl:2: wanted");
    open_bad(put("l.jsonl", "{\"file\": \"a\", \"label\": -1}\n"), NULL, "\"-1\" is not a class");
    open_bad(put("l.jsonl", "{\"file\": \"a\", \n"), NULL, "l.jsonl:1");
    open_bad(put("l.txt", "a.jpg 1\nb.jpg\n"), NULL, "l.txt:2: no file name");
    open_bad(put("l.csv", "a.jpg,1\nb.jpg,1\n"), OPTIONS(.max_images = 1), "more than 1 images");
    open_bad(put("l.csv", "a.jpg,1\n"), OPTIONS(.max_list_bytes = 4), "at most 4 accepted");
}

static void test_ground_truth(void **state)
{
    (void)state;
    put("flat/ILSVRC2012_val_00000002.JPEG", "");
    put("flat/ILSVRC2012_val_00000004.JPEG", "");
    static const char *const truths[] = {
        "7\n8\n9\n10\n", "n01440764\nn01534433\nn01440764\nn01531178\n", /* by number */
        "ILSVRC2012_val_00000004.JPEG 10\nILSVRC2012_val_00000002.JPEG 8\nabsent.jpg 1\n"};
    static const char *const want[] = {"8 10", "13 11", "8 10"};
    for (size_t i = 0; i < 3; i++) {
        renyi_dataset *d = open_ok(at("flat"), OPTIONS(.ground_truth = put("t", truths[i])));
        renyi_dataset_image a, b;
        char got[32];
        renyi_dataset_get_image(d, 0, &a);
        renyi_dataset_get_image(d, 1, &b);
        snprintf(got, sizeof got, "%u %u", a.label, b.label);
        assert_string_equal(got, want[i]);
        renyi_dataset_free(d);
    }
    open_bad(at("flat"), OPTIONS(.ground_truth = put("t", "1\n1000\n2\n4\n")), "map_clsloc.txt");
    open_bad(at("flat"), OPTIONS(.ground_truth = put("t", "1\nx\n")), "t:2: \"x\" is not a class");
    open_bad(at("flat"), OPTIONS(.ground_truth = put("t", "1\n2\n3\n")), "3 entries for 2 images");
    open_bad(at("flat"), OPTIONS(.ground_truth = put("t", "a.jpg 1\n")), "none with a class");
    open_bad(at("flat"), OPTIONS(.ground_truth = put("t", "\n")), "no classes");
    open_bad(at("flat"), NULL, "none with a class");
    const char *devkit = put("map_clsloc.txt", "n02119789 1 kit_fox\nn02100735 2 English_setter\n");
    renyi_dataset *d =
        open_ok(at("flat"), OPTIONS(.class_map = devkit, .ground_truth = put("t", "1\n2\n1\n1\n")));
    assert_images(d, "ILSVRC2012_val_00000002.JPEG=212 ILSVRC2012_val_00000004.JPEG=278");
    renyi_dataset_free(d);
}

static void test_unlabelled(void **state)
{
    (void)state;
    put("any/b.jpg", "");
    put("any/what/ever/a.jpg", "");
    renyi_dataset *d = open_ok(at("any"), OPTIONS(.unlabelled = 1));
    renyi_dataset_info info;
    renyi_dataset_image image;
    renyi_dataset_get_info(d, &info);
    renyi_dataset_get_image(d, 1, &image);
    assert_true(info.n_images == 2 && info.n_left_out == 0 && image.label == RENYI_NO_CLASS);
    assert_string_equal(image.file, "what/ever/a.jpg");
    renyi_dataset_free(d);
}

static void test_real_and_valid(void **state)
{
    (void)state;
    const char *real = put("real.json", "[[1], [2, 3], [], [5]]");
    renyi_dataset_info info;
    renyi_dataset_image im;
    renyi_dataset *d = open_ok(at("flat"), OPTIONS(.real_labels = real));
    renyi_dataset_get_image(d, 0, &im);
    assert_true(im.label == RENYI_NO_CLASS && im.n_right == 2 && im.right[0] == 2 &&
                im.right[1] == 3);
    renyi_dataset_free(d);
    d = open_ok(at("flat"), OPTIONS(.real_labels = real, .valid_labels = put("valid", "3\n1\n")));
    renyi_dataset_get_info(d, &info);
    assert_true(info.n_images == 1 && info.n_found == 2 && info.n_left_out == 1);
    assert_true(info.n_valid == 2 && info.valid[0] == 1 && info.valid[1] == 3);
    renyi_dataset_free(d);
    open_bad(at("flat"), OPTIONS(.real_labels = put("real.json", "[[1], [2, 1000], [], [5]]")),
             "entry 1");
    open_bad(at("flat"), OPTIONS(.real_labels = put("real.json", "[1, 2, 3, 4]")),
             "not a list of classes");
    open_bad(at("flat"), OPTIONS(.real_labels = put("real.json", "{}")), "0 entries");
    open_bad(at("index"), OPTIONS(.valid_labels = put("valid", "3\n3\n")),
             "class 3 is listed twice");
    open_bad(at("index"), OPTIONS(.valid_labels = put("valid", "3\n1000\n")), "valid:2: \"1000\"");
    d = open_ok(at("names"),
                OPTIONS(.valid_labels = put("valid", "700\n20\n"))); /* timm: i-th folder */
    assert_images(d, "cat/a.jpg=700 sea_lion/b.jpg=20");
    renyi_dataset_free(d);
}

static void test_choice(void **state)
{
    (void)state;
    char text[2048] = "";
    for (int i = 0; i < 60; i++) snprintf(text + strlen(text), 32, "%02d.jpg,%d\n", i, i);
    const char *list = put("many.csv", text);
    renyi_dataset *all = open_ok(list, OPTIONS(.shuffle = 1, .seed = 5, .limit = 50));
    renyi_dataset *other = open_ok(list, OPTIONS(.shuffle = 1, .seed = 6, .limit = 50));
    int moved = 0, differs = 0, seen[60] = {0};
    for (uint32_t shard = 0; shard < 3; shard++) { /* all shards together are the whole */
        renyi_dataset *part = open_ok(
            list, OPTIONS(.shuffle = 1, .seed = 5, .limit = 50, .shard = shard, .n_shards = 3));
        renyi_dataset_info info;
        renyi_dataset_get_info(part, &info);
        assert_int_equal(info.n_images, shard < 2 ? 17 : 16);
        assert_int_equal(info.n_seen, info.n_images); /* each image has its own class */
        for (size_t i = 0; i < info.n_images; i++) {
            renyi_dataset_image a, b, c;
            renyi_dataset_get_image(part, i, &a);
            renyi_dataset_get_image(all, i * 3 + shard, &b);
            renyi_dataset_get_image(other, i * 3 + shard, &c);
            assert_true(a.index == b.index && a.label == b.label && a.index == a.label);
            moved += a.index != i * 3 + shard;
            differs += a.index != c.index;
            assert_int_equal(seen[a.index]++, 0);
        }
        renyi_dataset_free(part);
    }
    assert_true(moved > 25 && differs > 25);
    renyi_dataset_free(all);
    renyi_dataset_free(other);
    open_bad(list, OPTIONS(.limit = 2, .shard = 2, .n_shards = 3), "no image is in shard 2 of 3");
    open_bad(list, OPTIONS(.shard = 3, .n_shards = 3), "allowed: 0 to 2");
}

/* ---- every allocation may fail ------------------------------------------------------------- */

static void test_no_memory(void **state)
{
    (void)state;
    const char *paths[] = {at("names"), at("many.csv"), at("flat")};
    renyi_dataset_options o = {.struct_size = sizeof o,
                               .class_map = put("map.txt", "cat 1\nsea lion 2\n"),
                               .valid_labels = put("valid", "1\n2\n8\n10\n")};
    for (int which = 0; which < 3; which++) {
        if (which == 2) o.ground_truth = put("t", "7\n8\n9\n10\n");
        for (int allowed = 0;; allowed++) {
            test_heap f = {.fail_at = (size_t)allowed + 1, .fail_on = 1};
            renyi_error err = {0};
            renyi_dataset *d;
            o.allocator = test_heap_of(&f);
            const renyi_status st = renyi_dataset_open(&d, paths[which], NULL, &o, &err);
            renyi_dataset_free(d);
            assert_int_equal(f.live, 0);
            if (st == RENYI_OK) break;
            assert_int_equal(st, RENYI_ERR_NOMEM);
            assert_true(allowed < 200);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folders),        cmocka_unit_test(test_class_maps),
        cmocka_unit_test(test_left_out),       cmocka_unit_test(test_lists),
        cmocka_unit_test(test_ground_truth),   cmocka_unit_test(test_unlabelled),
        cmocka_unit_test(test_real_and_valid), cmocka_unit_test(test_choice),
        cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
