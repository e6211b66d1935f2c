# test_embed.py - embed, flops, CLIP and models in the Hugging Face cache.
# SPDX-License-Identifier: Apache-2.0
import subprocess

import numpy as np
import pytest
import renyi


def test_rows_are_those_of_the_program(model, photos, program, tmp_path):
    if not program:
        pytest.skip("no program (RENYI)")
    file = tmp_path / "rows.npy"
    subprocess.run([program, "embed", "-q", *photos, "-o", str(file)], check=True, capture_output=True)
    rows = np.stack(list(model.embed(photos, batch_size=3)))
    assert np.array_equal(rows, np.load(file))


def test_embed_is_lazy(model, photos):
    taken = []

    def endless():
        while True:
            taken.append(1)
            yield photos[len(taken) % 4]

    rows = model.embed(endless(), batch_size=2)
    assert not taken
    first = next(rows)
    assert first.shape == (model.info.embed_dim,) and abs(np.linalg.norm(first) - 1) < 1e-5
    assert len(taken) <= 8  # the batch that ran, and two that are decoded ahead
    rows.close()
    assert len(list(model.embed([], batch_size=2))) == 0


def test_an_unreadable_image(model, photos, tmp_path):
    files = [photos[0], str(tmp_path / "none.png"), photos[1]]
    with pytest.raises(renyi.FileError, match="none.png"):
        list(model.embed(files))
    rows = list(model.embed(files, skip_errors=True))
    assert rows[1] is None and np.array_equal(rows[2], next(model.embed([photos[1]])))
    with pytest.raises(TypeError):
        model.embed(photos[0])
    with pytest.raises(TypeError):
        list(model.embed([3], skip_errors=True))


def test_decode_scaled(model, photos, tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    large = str(tmp_path / "large.jpg")
    image_module.open(photos[0]).convert("RGB").resize((1600, 1200)).save(large, quality=90)
    with open(large, "rb") as file:
        data = file.read()
    exact, scaled, from_bytes = (next(model.embed([image], decode=decode)) for image, decode in
                                 ((large, "exact"), (large, "scaled"), (data, "scaled")))
    assert np.array_equal(exact, next(model.embed([large])))
    assert not np.array_equal(exact, scaled) and exact @ scaled > 0.99
    assert np.array_equal(scaled, from_bytes)
    logits = model.session(decode="scaled").run([large, data])
    assert np.array_equal(logits[0], logits[1]) and not np.array_equal(logits[0], model.session().run(large)[0])
    assert model.classify(large, decode="scaled")[0][0] == model.classify(large)[0][0]
    small = next(model.embed([photos[1]], decode="scaled"))
    assert np.array_equal(small, next(model.embed([photos[1]])))
    with pytest.raises(ValueError, match="exact, scaled"):
        model.embed([large], decode="fast")


def test_cascades(model, photos):
    first, dense = model.session("mosaic keep=0.5"), model.session("none")
    always = model.session("cascade(mosaic keep=0.5 -> none if margin < 100000)", batch_size=2)
    never = model.session("cascade(mosaic keep=0.5 -> none if margin < 0)", batch_size=2)
    assert np.array_equal(always.run(photos[:3]), dense.run(photos[:3])) and always.passes == [2, 2, 2]
    assert np.array_equal(never.run(photos[:3]), first.run(photos[:3])) and never.passes == [1, 1, 1]
    assert always.macs > dense.macs and always.policy.endswith("combine=second")
    with pytest.raises(renyi.ArgumentError, match="trace"):
        model.session("sure", trace=True)


def test_flops_are_those_of_the_session(model):
    cost = renyi.flops(model, "mosaic keep=0.7 layers=0,3,6")
    assert cost.macs_executed == model.session("mosaic keep=0.7 layers=0,3,6").macs
    assert [layer.tokens_out for layer in cost.layers][:7] == [71, 71, 71, 50, 50, 50, 36]
    assert renyi.flops(model).macs == model.info.macs and cost.n_params == model.info.n_params
    with pytest.raises(renyi.ArgumentError):
        renyi.flops("vit_giant_of_nowhere")
    with pytest.raises(TypeError):
        renyi.flops(3)


def test_a_name_in_the_cache(photos, tmp_path, monkeypatch, program):
    if not program:
        pytest.skip("no program (RENYI)")
    commit = "0123456789abcdef0123456789abcdef01234567"
    folder = tmp_path / "hub" / "models--timm--vit_of_mine"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(commit)
    snapshot = folder / "snapshots" / commit
    snapshot.mkdir(parents=True)
    subprocess.run([program, "init", "-q", "--arch", "vit_tiny_patch16_224", "--blocks", "1",
                    str(snapshot / "model.safetensors")], check=True)
    monkeypatch.setenv("HF_HUB_CACHE", "")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    named = renyi.Model.from_pretrained("timm/vit_of_mine")
    assert named.info.n_blocks == 1 and len(named.labels) == 1000 and "tench" in named.labels[0]
    for path in (snapshot, snapshot / "model.safetensors"):
        assert np.array_equal(renyi.Model.from_pretrained(path).session().run(photos[0]), named.session().run(photos[0]))


@pytest.fixture(scope="module")
def clip(program, tmp_path_factory):
    """A random CLIP of two blocks with a tokenizer of a few merges."""
    if not program:
        pytest.skip("no program (RENYI)")
    folder = tmp_path_factory.mktemp("clip")
    subprocess.run([program, "init", "-q", "--arch", "clip_vit_tiny_patch32_224", "--dim", "64", "--heads", "2",
                    "--blocks", "2", "--seed", "1", str(folder / "clip.safetensors")], check=True)
    (folder / "bpe_simple_vocab_16e6.txt").write_text("#version: 0.2\nc a\nca t</w>\np h\no f</w>\n")
    return renyi.Clip.from_pretrained(folder / "clip.safetensors")


def test_clip_texts_and_images(clip, photos):
    texts = clip.encode_text(["a cat", "a phone of a cat", "cat"])
    rows = clip.encode_image(photos, batch_size=3)
    assert texts.shape == (3, clip.embed_dim) and rows.shape == (4, clip.embed_dim)
    assert np.allclose(np.linalg.norm(texts, axis=1), 1, atol=1e-5)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert np.array_equal(clip.encode_text("cat"), texts[2:])
    assert clip.encode_text([]).shape == (0, clip.embed_dim)
    assert np.array_equal(np.stack(list(clip.image.embed(photos))), rows)
    assert clip.tokenize("cat")[0] == clip.tokenize("of")[0] and len(clip.tokenize("cat")) == 3


def test_zeroshot_is_the_softmax_of_the_cosines(clip, photos):
    names = ["cat", "dog", "phone"]
    found = clip.zeroshot(photos, names)
    cosines = clip.encode_image(photos) @ clip.encode_text([f"a photo of a {name}." for name in names]).T
    odds = np.exp(clip.logit_scale * (cosines - cosines.max(axis=1, keepdims=True)))
    assert np.allclose(found, odds / odds.sum(axis=1, keepdims=True), atol=1e-4)
    assert np.allclose(found.sum(axis=1), 1, atol=1e-6)
    model = clip.classifier(names, templates=["{}", "one {}"])
    assert model.labels == names and model.classify(photos[0], k=1)[0][0] in names
    assert model.session(policy="evit keep=0.5 layers=0").run(photos).shape == (4, 3)


def test_rules_in_python_prune_a_clip(clip, photos):
    renyi.rule("py_even")(lambda view: -(view.position % 2).astype(np.float32))
    policy = "py_even keep=0.5 layers=0"
    clip.image.session(policy)  # the tower has the rule, and so has the new model
    assert clip.zeroshot(photos, ["cat", "dog"], policy=policy).shape == (4, 2)
    model = clip.classifier(["cat", "dog"])
    renyi.rule("py_odd")(lambda view: (view.position % 2).astype(np.float32))
    for session in (model.session("py_odd keep=0.5 layers=0", trace=True), model.session(policy, trace=True)):
        session.run(photos[0])
        assert len(set(session.trace[0].cuts[0].kept[:20] % 2)) == 1


def test_templates_by_name(clip, photos):
    from renyi.clip import templates_of

    sentences = templates_of("imagenet80")
    assert len(sentences) == 80 and all(sentence.count("{}") == 1 for sentence in sentences)
    named = clip.zeroshot(photos, ["cat", "dog"], templates="imagenet80")
    assert np.array_equal(named, clip.zeroshot(photos, ["cat", "dog"], templates=sentences))
    assert not np.array_equal(named, clip.zeroshot(photos, ["cat", "dog"]))
    with pytest.raises(renyi.Error):
        clip.zeroshot(photos, ["cat"], templates="no_such_list")


def test_classes_by_rows(clip, photos):
    rows = clip.encode_text(["a cat", "a dog"])
    model = clip.image.with_classes(rows, ["cat", "dog"], scale=7.0)
    assert model.labels == ["cat", "dog"]
    assert np.allclose(model.session().run(photos), 7 * clip.encode_image(photos) @ rows.T, atol=1e-4)
    for arguments in ((rows, ["cat"]), (rows[:, :3], ["cat", "dog"]), (rows, "cat")):
        with pytest.raises(TypeError):
            clip.image.with_classes(*arguments)


def test_tca_remembers_images(clip, photos, tmp_path):
    pets, policy = clip.classifier(["cat", "dog"]), "tca drop=0.2 layers=0,1"
    plain = pets.session(policy, batch_size=4).run(photos)
    off = renyi.Tca(pets, anchors=False, correction=False)
    assert np.array_equal(pets.session(policy, batch_size=4, adapt=off).run(photos), plain)
    memory = renyi.Tca(pets, size=2)
    session = pets.session(policy, batch_size=4, adapt=memory)
    first = session.run(photos)
    assert not np.array_equal(first, plain)
    assert memory.info.n_images == 4 and 0 < memory.info.n_items <= 4
    memory.save(tmp_path / "state.safetensors")
    seen, later = memory.info, session.run(photos)
    memory.reset()
    assert memory.info.n_images == 0 and memory.info.n_items == 0
    assert np.array_equal(session.run(photos), first)
    other = renyi.Tca(pets, size=2)
    other.load(tmp_path / "state.safetensors")
    assert other.info == seen
    assert np.array_equal(pets.session(policy, adapt=other).run(photos), later)
    with pytest.raises(TypeError):
        pets.session(policy, adapt=3)
    with pytest.raises(renyi.ArgumentError):
        clip.classifier(["cat", "dog", "phone"]).session(policy, adapt=memory)
    with pytest.raises(renyi.FileError):
        memory.load(tmp_path / "none.safetensors")


def test_clip_arguments(clip, photos):
    with pytest.raises(TypeError):
        clip.zeroshot(photos, "cat")
    with pytest.raises(TypeError):
        clip.encode_text([3])
    with pytest.raises(renyi.ArgumentError):
        clip.classifier(["cat"], templates=["no place for the name"])
    with pytest.raises(renyi.LimitError):
        clip.encode_text("cat " * 200)
    assert clip.encode_text("cat " * 200, truncate=True).shape == (1, clip.embed_dim)
    with pytest.raises(renyi.ArgumentError, match="no classes"):
        clip.image.classify(photos[0])
    with pytest.raises(renyi.UnsupportedError):
        renyi.Clip("builtin")


def test_a_resident_set_that_stays_flat(model, photos):
    """10,000 runs of the smallest image, and 200 of each other object: no memory is left behind.

    A leak grows in every window of 1,000 runs. Single windows may grow without one: the kernel
    joins pages to huge ones in the background, which adds megabytes at once.
    """

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    pixel = np.zeros((1, 1, 3), np.uint8)
    session = model.session("evit keep=0.1 layers=0,1,2 reduce=drop", threads=1, trace=True)
    data = open(photos[3], "rb").read()

    def everything(n):
        for i in range(n):
            session.run(pixel)
            if i % 50 == 0:
                model.session(threads=1).run(data)
                renyi.flops(model, "fast")
                for wrong in (b"no image", "no file"):
                    with pytest.raises(renyi.Error):
                        session.run(wrong)

    sizes = []
    for _ in range(10):
        everything(1000)
        sizes.append(resident())
    growth = sorted(after - before for before, after in zip(sizes, sizes[1:]))
    assert growth[len(growth) // 2] < 256 << 10, sizes
