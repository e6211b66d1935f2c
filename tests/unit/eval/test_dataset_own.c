/* test_dataset_own.c - datasets that define their own classes: the fifteen known ones in their
 * usual layouts, any folder of class folders, and mixed-up ones.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fixtures/dataset_fixture.h"
#include "fixtures/test_heap.h"
#include "renyi/eval.h"

#define OWN OPTIONS(.own_classes = 1)
#define NAMED(word) OPTIONS(.collection = word)
#define AUTO NAMED("auto")

/* names: of all classes, separated by ", ". Frees d. */
static void assert_classes(renyi_dataset *d, const char *want, renyi_names_from from,
                           const char *collection)
{
    char got[1024] = "";
    renyi_dataset_info info;
    uint32_t n;
    const char *const *names = renyi_dataset_names(d, &n);
    renyi_dataset_get_info(d, &info);
    assert_true(names && n == info.n_classes);
    for (uint32_t i = 0; i < n; i++) {
        const size_t at = strlen(got);
        snprintf(got + at, sizeof got - at, "%s%s", i ? ", " : "", names[i]);
    }
    if (want) assert_string_equal(got, want);
    assert_int_equal(info.names_from, from);
    if (collection)
        assert_string_equal(info.collection, collection);
    else
        assert_null(info.collection);
    renyi_dataset_free(d);
}

/* ---- any folder ---------------------------------------------------------------------------- */

static void test_folders(void **state)
{
    (void)state;
    put("mine/sea_lion/a.jpg", "");
    put("mine/cat/b.jpg", "");
    put("mine/cat/more/c.png", "");
    renyi_dataset *d = open_ok(at("mine"), OWN);
    assert_images(d, "cat/b.jpg=0 cat/more/c.png=0 sea_lion/a.jpg=1");
    assert_classes(d, "cat, sea_lion", RENYI_NAMES_FOLDERS, NULL);
    assert_classes(open_ok(at("mine"), AUTO), "cat, sea_lion", RENYI_NAMES_FOLDERS, NULL);

    const char *names =
        put("names.txt", "dog\nSea lion\nCat\n"); /* in another order, and one more */
    d = open_ok(at("mine"), OPTIONS(.class_names = names));
    assert_images(d, "cat/b.jpg=2 cat/more/c.png=2 sea_lion/a.jpg=1");
    renyi_dataset_info info;
    renyi_dataset_get_info(d, &info);
    assert_int_equal(info.n_empty, 1);
    assert_classes(d, "dog, Sea lion, Cat", RENYI_NAMES_LIST, NULL);

    put("subset/n01440764/a.jpg", "");
    put("subset/n15075141/b.jpg", "");
    d = open_ok(at("subset"), OWN);
    assert_images(d, "n01440764/a.jpg=0 n15075141/b.jpg=1");
    assert_classes(d, "tench, toilet paper", RENYI_NAMES_CLIP, NULL);
    d = open_ok(at("subset"), OPTIONS(.class_names = "wordnet"));
    assert_classes(d, "tench, toilet tissue", RENYI_NAMES_IMAGENET, NULL);
    open_bad(at("mine"), OPTIONS(.class_names = "clip"), "'clip' are those of ImageNet");
    names = put("names.txt", "n15075141 toilet paper\nn01440764 a fish\n");
    d = open_ok(at("subset"), OPTIONS(.class_names = names));
    assert_images(d, "n01440764/a.jpg=1 n15075141/b.jpg=0");
    assert_classes(d, "toilet paper, a fish", RENYI_NAMES_LIST, NULL);

    put("parted/train/cat/x.jpg", "");
    put("parted/val/cat/a.jpg", "");
    put("parted/val/dog/b.jpg", "");
    d = open_ok(at("parted"), OWN);
    assert_images(d, "cat/a.jpg=0 dog/b.jpg=1");
    renyi_dataset_free(d);

    d = open_ok(at("mine"), OPTIONS(.n_classes = 2)); /* the classes of a model */
    uint32_t n;
    assert_null(renyi_dataset_names(d, &n));
    assert_int_equal(n, 0);
    renyi_dataset_free(d);
}

static void test_bad_folders(void **state)
{
    (void)state;
    put("mixed/cat/a.jpg", "");
    put("mixed/n01440764/b.jpg", "");
    open_bad(at("mixed"), OWN, "\"cat\" is a name, but \"n01440764\" a WordNet id");
    put("numbers/0/a.jpg", "");
    put("numbers/1/a.jpg", "");
    open_bad(at("numbers"), OWN, "are numbers, which are no names for a sentence");
    put("above/set/cat/a.jpg", "");
    open_bad(at("above"), OWN, "only one folder, \"set\", so only one class");
    put("hole/cat/a.jpg", "");
    put("hole/dog/notes.txt", "");
    open_bad(at("hole"), OWN, "hole/dog: no images of this class");
    put("loose/a.jpg", "");
    open_bad(at("loose"), OWN, "no folders here");
    put("halves/train/cat/a.jpg", "");
    put("halves/test/cat/b.jpg", "");
    open_bad(at("halves"), OWN, "are parts of a dataset, not classes");
    open_bad(at("absent"), OWN, "No such file");
    put("known/cat/a.jpg", "");
    open_bad(at("known"), OPTIONS(.class_names = put("names.txt", "dog\n")),
             "\"cat\" is not a class");
    open_bad(at("known"), OPTIONS(.class_names = put("names.txt", " \n")), "no class name");
    open_bad(at("known"), OPTIONS(.class_names = at("absent.txt")), "absent.txt");
    open_bad(at("known"), OPTIONS(.own_classes = 1, .class_map = at("names.txt")),
             "has its own classes");
    open_bad(at("known"), OPTIONS(.own_classes = 1, .unlabelled = 1), "has its own classes");
    open_bad(put("list.csv", "a.jpg,cat\n"), OWN, "give them in a file");
    renyi_dataset *d = open_ok(put("list.csv", "a.jpg,cat\n"),
                               OPTIONS(.class_names = put("names.txt", "dog\ncat\n")));
    assert_images(d, "a.jpg=1");
    renyi_dataset_free(d);
}

/* ---- ImageNet and its variants ------------------------------------------------------------- */

static void test_imagenet(void **state)
{
    (void)state;
    put("DATA/imagenet/images/train/n01440764/x.jpg", "");
    put("DATA/imagenet/images/val/n01443537/a.JPEG", "");
    put("DATA/imagenet/images/val/n15075141/b.JPEG", "");
    static const char *const paths[] = {"DATA", "DATA/imagenet", "DATA/imagenet/images/val"};
    for (int i = 0; i < 3; i++) { /* the folder above, its own, its images */
        renyi_dataset *d = open_ok(at(paths[i]), NAMED("imagenet"));
        renyi_dataset_info info;
        uint32_t n;
        renyi_dataset_get_info(d, &info);
        assert_images(d, "n01443537/a.JPEG=1 n15075141/b.JPEG=999");
        assert_true(info.n_classes == 1000 && info.n_empty == 998);
        assert_string_equal(renyi_dataset_names(d, &n)[1], "goldfish");
        assert_classes(d, NULL, RENYI_NAMES_CLIP, "imagenet");
    }
    renyi_dataset *d = open_ok(at("DATA/imagenet"), AUTO);
    assert_classes(d, NULL, RENYI_NAMES_CLIP, "imagenet");
    d = open_ok(at("DATA/imagenet/images/val"), AUTO);
    assert_classes(d, NULL, RENYI_NAMES_CLIP, "imagenet");

    put("DATA/imagenetv2/imagenetv2-matched-frequency-format-val/7/a.jpeg", "");
    put("DATA/imagenetv2/imagenetv2-matched-frequency-format-val/10/b.jpeg", "");
    d = open_ok(at("DATA"), NAMED("imagenet-v2"));
    assert_images(d, "10/b.jpeg=10 7/a.jpeg=7");
    assert_classes(d, NULL, RENYI_NAMES_CLIP, "imagenet-v2");

    put("tca/imagenet-s/sketch/n01440764/a.JPEG", "");
    d = open_ok(at("tca"), NAMED("imagenet-sketch"));
    assert_images(d, "n01440764/a.JPEG=0");
    assert_classes(d, NULL, RENYI_NAMES_CLIP, "imagenet-sketch");
}

/* Only folders that exist are classes; CoOp's classnames.txt is found beside them. */
static void test_subsets(void **state)
{
    (void)state;
    put("DATA/imagenet-adversarial/imagenet-a/n01498041/a.jpg", "");
    put("DATA/imagenet-adversarial/imagenet-a/n01531178/b.jpg", "");
    put("DATA/imagenet-adversarial/imagenet-a/README.txt", "");
    renyi_dataset *d = open_ok(at("DATA"), NAMED("imagenet-a"));
    assert_images(d, "n01498041/a.jpg=0 n01531178/b.jpg=1");
    assert_classes(d, "stingray, goldfinch", RENYI_NAMES_CLIP, "imagenet-a");
    const char *names = "n01440764 tench\nn01498041 a flat fish\nn01531178 yellow bird\n";
    put("DATA/imagenet-adversarial/classnames.txt", names);
    d = open_ok(at("DATA"), NAMED("imagenet-a"));
    assert_classes(d, "a flat fish, yellow bird", RENYI_NAMES_CLASSNAMES, "imagenet-a");
    d = open_ok(at("DATA/imagenet-adversarial/imagenet-a"), AUTO);
    assert_classes(d, "a flat fish, yellow bird", RENYI_NAMES_CLASSNAMES, "imagenet-a");
    d = open_ok(at("DATA"), OPTIONS(.collection = "imagenet-a", .class_names = "clip"));
    assert_classes(d, "stingray, goldfinch", RENYI_NAMES_CLIP, "imagenet-a");

    put("DATA/imagenet-rendition/imagenet-r/n01443537/a.jpg", "");
    d = open_ok(at("DATA/imagenet-rendition"), AUTO);
    assert_classes(d, "goldfish", RENYI_NAMES_CLIP, "imagenet-r");
    put("DATA/imagenet-rendition/classnames.txt", "n01440764 tench\n");
    open_bad(at("DATA"), NAMED("imagenet-r"), "no name for class 1 of ImageNet (\"goldfish");
    put("DATA/imagenet-rendition/classnames.txt", "tench\n");
    open_bad(at("DATA"), NAMED("imagenet-r"), "classnames.txt:1: \"tench\": wanted a WordNet id");
    put("DATA/imagenet-rendition/classnames.txt", "n01443537 goldfish\n");

    put("wrong/imagenet-r/n01443537/a.jpg", "");
    put("wrong/imagenet-r/cat/a.jpg", "");
    open_bad(at("wrong"), NAMED("imagenet-r"), "folder \"cat\" is not a class of ImageNet-R");
    put("wrong/imagenet-a/2000/a.jpg", "");
    open_bad(at("wrong"), NAMED("imagenet-a"), "no class folders (n01440764, ... or 0, 1, ...)");
    open_bad(at("mine"), NAMED("imagenet-r"), "not ImageNet-R: no class folders");
    open_bad(at("DATA"), NAMED("imagenet-x"), "unknown dataset \"imagenet-x\"");
}

/* ---- CoOp's splits ------------------------------------------------------------------------- */

#define SPLIT                                                                          \
    "{\"train\": [[\"x.jpg\", 2, \"sea_lion\"]], \"val\": [[\"y.jpg\", 0, \"cat\"]], " \
    "\"test\": [[\"b.jpg\", 1, \"dog\"], [\"in/a.jpg\", 0, \"cat\"]]}"

/* All datasets with a split, each in CoOp's folder below DATA. */
static void test_splits(void **state)
{
    (void)state;
    int n_splits = 0;
    for (size_t i = 0; i < renyi_collection_count(); i++) {
        char name[512];
        renyi_collection c;
        renyi_collection_get(i, &c);
        if (c.layout != RENYI_LAYOUT_SPLIT) continue;
        n_splits++;
        snprintf(name, sizeof name, "DATA/%.90s/%.90s", c.folder, c.list);
        put(name, SPLIT);
        snprintf(name, sizeof name, "DATA/%.90s/%.90s/b.jpg", c.folder, c.photos);
        put(name, "");
        snprintf(name, sizeof name, "DATA/%.90s/%.90s/in/a.jpg", c.folder, c.photos);
        put(name, "");
        renyi_dataset *d = open_ok(at("DATA"), NAMED(c.name));
        assert_images(d, "b.jpg=1 in/a.jpg=0");
        assert_classes(d, "cat, dog, sea_lion", RENYI_NAMES_DATA, c.name);
        snprintf(name, sizeof name, "DATA/%.90s", c.folder);
        assert_classes(open_ok(at(name), AUTO), "cat, dog, sea_lion", RENYI_NAMES_DATA, c.name);
        snprintf(name, sizeof name, "DATA/%.90s/%.90s", c.folder, c.list);
        assert_classes(open_ok(at(name), AUTO), "cat, dog, sea_lion", RENYI_NAMES_DATA, c.name);
    }
    assert_int_equal(n_splits, 9);
    renyi_dataset *d = open_ok(at("DATA/dtd"), NAMED("dtd"));
    renyi_dataset_info info;
    renyi_dataset_get_info(d, &info);
    assert_int_equal(info.n_empty, 1); /* "test" has no sea lion */
    assert_int_equal(info.rule, RENYI_CLASS_BY_DATA);
    renyi_dataset_free(d);
    const char *names = put("names.txt", "a cat\na dog\na sea lion\n");
    d = open_ok(at("DATA"), OPTIONS(.collection = "dtd", .class_names = names));
    assert_classes(d, "a cat, a dog, a sea lion", RENYI_NAMES_LIST, "dtd");
    open_bad(at("DATA"), OPTIONS(.collection = "dtd", .class_names = put("names.txt", "a cat\n")),
             "1 class names for the 3 classes");
    put("some/images/b.jpg", ""); /* a split of no known dataset */
    d = open_ok(put("some/split.json", SPLIT), OWN);
    assert_images(d, "b.jpg=1 in/a.jpg=0");
    assert_classes(d, "cat, dog, sea_lion", RENYI_NAMES_DATA, NULL);
}

static void bad_split(const char *text, const char *part)
{
    put("bad/split_zhou_OxfordPets.json", text);
    put("bad/images/b.jpg", "");
    open_bad(at("bad"), NAMED("pets"), part);
}

static void test_bad_splits(void **state)
{
    (void)state;
    bad_split("", "split_zhou_OxfordPets.json");
    bad_split("[]", "no list \"test\"");
    bad_split("{\"train\": []}", "no list \"test\"");
    bad_split("{\"test\": []}", "\"test\" has no images");
    bad_split("{\"test\": [[\"b.jpg\", 0, \"cat\"]], \"val\": 3}", "no list \"val\"");
    bad_split("{\"test\": [[\"b.jpg\", 0, \"cat\"], [\"c.jpg\", 0]]}", "test[1]: wanted [");
    bad_split("{\"test\": [[\"b.jpg\", \"0\", \"cat\"]]}", "test[0]: wanted [");
    bad_split("{\"test\": [[\"b.jpg\", -1, \"cat\"]]}", "test[0]: wanted [");
    bad_split("{\"test\": [[\"\", 0, \"cat\"]]}", "test[0]: wanted [");
    bad_split("{\"test\": [[\"b.jpg\", 0, \"\"]]}", "test[0]: wanted [");
    bad_split("{\"test\": [[\"b.jpg\", 7, \"cat\"]]}", "class 7, but there are only 1 images");
    bad_split("{\"test\": [[\"b.jpg\", 0, \"cat\"], [\"c.jpg\", 2, \"dog\"], [\"d.jpg\", 2, "
              "\"dog\"]]}",
              "but 1 has no image in any part");
    bad_split("{\"test\": [[\"b.jpg\", 0, \"cat\"]], \"train\": [[\"c.jpg\", 0, \"dog\"]]}",
              "train[0]: class 0 is \"dog\", but was \"cat\" before");
    bad_split("{\"test\": [[\"z.jpg\", 0, \"cat\"]]}", "none of its 1 images is here, not even");

    put("away/split_zhou_OxfordPets.json", SPLIT);
    open_bad(at("away"), NAMED("pets"), "the images of Oxford Pets are not: no folder images");
    open_bad(at("DATA/food-101"), NAMED("pets"),
             "not Oxford Pets: no split_zhou_OxfordPets.json here or in oxford_pets/; but there is "
             "split_zhou_Food101.json, of another dataset");
    open_bad(at("DATA/food-101"), NAMED("imagenet"), "but there is split_zhou_Food101.json");
    open_bad(at("mine"), NAMED("pets"), "no split_zhou_OxfordPets.json here");
    open_bad(at("absent"), NAMED("pets"), "no folder of Oxford Pets");
    put("two/split_zhou_OxfordPets.json", SPLIT);
    put("two/split_zhou_Food101.json", SPLIT);
    put("two/images/b.jpg", "");
    open_bad(at("two"), AUTO, "this may be Oxford Pets (split_zhou_OxfordPets.json) or Food101");
}

/* ---- Aircraft's lists ---------------------------------------------------------------------- */

static void test_aircraft(void **state)
{
    static const char *const folders[] = {"DATA/fgvc_aircraft", "archive/data", "tca/fgvc/data"};
    static const char *const paths[] = {"DATA", "archive", "tca"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        char name[512];
        snprintf(name, sizeof name, "%s/variants.txt", folders[i]);
        put(name, "707-320\nBoeing 717\nF/A-18\n");
        snprintf(name, sizeof name, "%s/images_variant_test.txt", folders[i]);
        put(name, "0034309 F/A-18\n0034958 Boeing 717\n");
        snprintf(name, sizeof name, "%s/images/0034958.jpg", folders[i]);
        put(name, "");
        renyi_dataset *d = open_ok(at(paths[i]), NAMED("aircraft"));
        assert_images(d, "0034309.jpg=2 0034958.jpg=1");
        assert_classes(d, "707-320, Boeing 717, F/A-18", RENYI_NAMES_DATA, "aircraft");
    }
    assert_classes(open_ok(at("DATA/fgvc_aircraft"), AUTO), "707-320, Boeing 717, F/A-18",
                   RENYI_NAMES_DATA, "aircraft");
    assert_classes(open_ok(at("archive"), AUTO), NULL, RENYI_NAMES_DATA, "aircraft");
    const char *names = put("names.txt", "a\nb\nc\n");
    renyi_dataset *d = open_ok(at("DATA"), OPTIONS(.collection = "aircraft", .class_names = names));
    assert_images(d, "0034309.jpg=2 0034958.jpg=1");
    assert_classes(d, "a, b, c", RENYI_NAMES_LIST, "aircraft");
    open_bad(at("DATA"), OPTIONS(.collection = "aircraft", .class_names = put("names.txt", "a\n")),
             "1 class names for the 3 classes");
    put("DATA/fgvc_aircraft/images_variant_test.txt", "0034309 Boeing 777\n");
    open_bad(at("DATA"), NAMED("aircraft"), "test.txt:1: variant \"Boeing 777\" is not in");
    put("DATA/fgvc_aircraft/images_variant_test.txt", "0034309\n");
    open_bad(at("DATA"), NAMED("aircraft"), "test.txt:1: wanted an image and its variant");
    put("DATA/fgvc_aircraft/images_variant_test.txt", "\n");
    open_bad(at("DATA"), NAMED("aircraft"), "no images in this list");
    unlink(at("DATA/fgvc_aircraft/variants.txt"));
    open_bad(at("DATA"), NAMED("aircraft"), "variants.txt");
}

/* ---- with a model -------------------------------------------------------------------------- */

typedef struct seen {
    int n_failures;
    char file[64];
} seen;

static void on_failure(void *user, const char *file, const char *message)
{
    seen *s = user;
    assert_true(*message);
    s->n_failures++;
    snprintf(s->file, sizeof s->file, "%.60s", file);
}

/* An image of the split that does not exist is reported and skipped. */
static void test_missing_image(void **state)
{
    const renyi_init_options init = {
        .struct_size = sizeof init, .n_classes = 2, .dim = 64, .n_blocks = 2, .n_heads = 2};
    const char *split = "{\"test\": [[\"a.ppm\", 0, \"cat\"], [\"gone.ppm\", 1, \"dog\"]]}";
    char pixels[3 * 16 * 16 + 16] = "P6\n16 16\n255\n";
    renyi_error err = {0};
    renyi_model *m;
    renyi_dataset *d;
    renyi_eval *e;
    seen s = {0, ""};
    renyi_eval_options o = {.struct_size = sizeof o, .n_threads = 1, .user = &s};
    (void)state;
    memset(pixels + strlen(pixels), 'x', 3 * 16 * 16);
    put("run/images/a.ppm", pixels);
    put("run/split_zhou_OxfordPets.json", split);
    assert_int_equal(
        renyi_model_init_file(at("m.safetensors"), "vit_tiny_patch16_112", &init, NULL), RENYI_OK);
    assert_int_equal(renyi_model_open(&m, at("m.safetensors"), NULL, NULL), RENYI_OK);
    if (renyi_dataset_open(&d, at("run"), m, NAMED("pets"), &err)) fail_msg("%s", err.message);
    o.on_failure = on_failure;
    if (renyi_eval_new(&e, m, d, &o, &err) || renyi_eval_run(e, &err)) fail_msg("%s", err.message);
    assert_int_equal(s.n_failures, 1);
    assert_string_equal(s.file, "gone.ppm");
    renyi_eval_free(e);
    renyi_dataset_free(d);
    assert_int_equal(renyi_dataset_open(&d, at("DATA"), m, NAMED("dtd"), &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "has 3 classes, the model 2"));
    renyi_model_free(m);
}

/* ---- every allocation may fail ------------------------------------------------------------- */

static void test_no_memory(void **state)
{
    static const char *const sets[] = {"imagenet", "imagenet-a", "pets", "auto"};
    static const char *const paths[] = {"DATA", "DATA", "DATA", "mine"};
    (void)state;
    for (int which = 0; which < 4; which++) {
        for (int allowed = 0;; allowed++) {
            test_heap f = {.fail_at = (size_t)allowed + 1, .fail_on = 1};
            renyi_dataset_options o = {.struct_size = sizeof o, .collection = sets[which]};
            renyi_error err = {0};
            renyi_dataset *d;
            o.allocator = test_heap_of(&f);
            const renyi_status st = renyi_dataset_open(&d, at(paths[which]), NULL, &o, &err);
            renyi_dataset_free(d);
            assert_int_equal(f.live, 0);
            if (st == RENYI_OK) break;
            if (st != RENYI_ERR_NOMEM) fail_msg("%s", err.message);
            assert_true(allowed < 200);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folders),  cmocka_unit_test(test_bad_folders),
        cmocka_unit_test(test_imagenet), cmocka_unit_test(test_subsets),
        cmocka_unit_test(test_splits),   cmocka_unit_test(test_bad_splits),
        cmocka_unit_test(test_aircraft), cmocka_unit_test(test_missing_image),
        cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
