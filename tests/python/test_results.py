# test_results.py - evaluate, viz and LLaVA.
# SPDX-License-Identifier: Apache-2.0
import gc
import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import renyi

POLICIES = ["none", "mosaic keep=0.7 layers=0,3,6", "evit keep=0.1 layers=0,1,2 reduce=drop"]


@pytest.fixture(scope="module")
def folder(photos, tmp_path_factory):
    """Two classes; the photos of the second are labelled wrongly, so that accuracy is not 100 %."""
    root = tmp_path_factory.mktemp("data")
    for name, files in (("n03445777", photos[:1]), ("n03888257", photos[1:])):
        (root / name).mkdir()
        for file in files:
            shutil.copy(file, root / name)
    (root / "n03888257" / "broken.png").write_bytes(b"\x89PNG")
    return root


def test_evaluate_is_that_of_the_program(model, folder, program):
    found = renyi.evaluate(model, folder, POLICIES, batch_size=3)
    assert [r.policy for r in found.results][:2] == POLICIES[:2]
    assert [r.images for r in found.results] == [4] * 3 and [r.failed for r in found.results] == [1] * 3
    assert len(found.failures) == 1 and "broken.png" in found.failures[0][0]
    right = found.predictions == found.labels
    for i, r in enumerate(found.results):
        assert r.top1 == pytest.approx(100 * right[i].sum() / 4)
        assert r.top1_range[0] <= r.top1 <= r.top1_range[1]
        assert r.gmacs * 1e9 == pytest.approx(renyi.flops(model, POLICIES[i]).macs)
    if program:
        out = subprocess.run([program, "eval", "-q", "--json", "--data-dir", str(folder)]
                             + [part for policy in POLICIES for part in ("--prune", policy)], capture_output=True)
        assert out.returncode in (0, 3), out.stderr
        theirs = json.loads(out.stdout)
        tops = [entry["top1"] for entry in (theirs.get("results") or theirs["policies"])]
        assert np.allclose(tops, [r.top1 for r in found.results])


def test_pairs_agree_with_the_predictions(model, folder):
    found = renyi.evaluate(model, folder, POLICIES)
    done = found.predictions[0] >= 0
    for a in range(3):
        for b in range(a + 1, 3):
            pair = found.compare(a, b)
            left, right = ((found.predictions[i] == found.labels)[done] for i in (a, b))
            assert (pair.a, pair.b) == (found.results[a].policy, found.results[b].policy)
            assert pair.only_a == (left & ~right).sum() and pair.only_b == (~left & right).sum()
            assert pair.difference == pytest.approx(100 * (right.mean() - left.mean()))
            assert pair.range[0] <= pair.difference <= pair.range[1] and 0 <= pair.p_value <= 1
    with pytest.raises(IndexError):
        found.compare(1, 1)


def test_an_evaluation_shows_itself(model, folder):
    found = renyi.evaluate(model, folder, POLICIES)
    page = found._repr_html_()
    assert page.count("<tr>") == 4 and "mosaic keep=0.7" in page and page.startswith("<table>")
    assert str(found).splitlines()[0].startswith("policy") and len(str(found).splitlines()) == 4
    pandas = pytest.importorskip("pandas")
    assert isinstance(found.to_pandas(), pandas.DataFrame) and list(found.to_pandas()["policy"])[0] == "none"


def test_a_callback_that_raises_stops_the_evaluation(model, folder):
    class Own(Exception):
        pass

    def fail(done, total):
        raise Own(f"{total}")

    with pytest.raises(Own, match="5"):
        renyi.evaluate(model, folder, POLICIES, batch_size=1, on_progress=fail)


def test_evaluate_continues_a_log(model, folder, tmp_path):
    log = tmp_path / "log.jsonl"
    first = renyi.evaluate(model, folder, POLICIES[:2], log=log)
    with pytest.raises(renyi.Error):
        renyi.evaluate(model, folder, POLICIES[:2], log=log)
    again = renyi.evaluate(model, folder, POLICIES[:2], log=log, resume=True)
    assert np.array_equal(first.predictions, again.predictions)


def test_evaluate_refuses_bad_arguments(model, folder, tmp_path):
    for arguments in ((3, folder), (model, 3), (model, folder, "none"), (model, folder, [None])):
        with pytest.raises(TypeError):
            renyi.evaluate(*arguments)
    with pytest.raises(renyi.FileError):
        renyi.evaluate(model, tmp_path / "none")
    with pytest.raises(renyi.ArgumentError):
        renyi.evaluate(model, folder, ["evit"] * 2)


def test_figures(model, photos, tmp_path):
    figure = renyi.viz(model, photos[:2], policies=POLICIES[1:], layers=[0, 3, 6], title="two & photos")
    for name, start in (("a.png", b"\x89PNG"), ("a.svg", b"<svg "), ("a.HTML", b"<!doctype html")):
        figure.save(tmp_path / name)
        assert (tmp_path / name).read_bytes()[:len(start)].lower() == start.lower()
    assert figure.png() == figure.png() == (tmp_path / "a.png").read_bytes()
    assert "two &amp; photos" in figure.page()
    assert figure._repr_html_().startswith('<img alt="') and "base64," in figure._repr_html_()
    heat = renyi.viz(model, photos[0], metrics=["cls", "col n=4"], kind="heat")
    assert heat.png()[:4] == b"\x89PNG" and heat.png() != renyi.viz(model, photos[0], kind="norms").png()
    assert renyi.viz(model, photos[0], kind="attention").svg()


def test_figures_refuse_bad_arguments(model, photos, tmp_path):
    with pytest.raises(ValueError, match="kind"):
        renyi.viz(model, photos[0], kind="pie")
    with pytest.raises(TypeError):
        renyi.viz(model, photos[0], policies="fast")
    with pytest.raises(renyi.ArgumentError):
        renyi.viz(model, photos[0], policies=["fastest"])
    figure = renyi.viz(model, photos[0], policies=["fast"])
    with pytest.raises(ValueError, match="gif"):
        figure.save(tmp_path / "a.gif")
    with pytest.raises(renyi.FileError):
        figure.save(tmp_path / "none" / "a.png")


def test_import_needs_no_cairo():
    code = "import renyi; renyi.Model(); print(any('cairo' in line for line in open('/proc/self/maps')))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.fixture(scope="module")
def llava(tmp_path_factory):
    """A small random LLaVA with a tokenizer."""
    folder = tmp_path_factory.mktemp("llava")
    fixture = Path(__file__).resolve().parents[1] / "fixtures" / "make_llava.py"
    subprocess.run([sys.executable, str(fixture), str(folder)], check=True)
    return folder, renyi.Llava.from_pretrained(folder)


def test_answers_are_those_of_the_program(llava, photos, program):
    folder, model = llava
    pieces = list(model.ask(photos[0], "What is it?", max_new_tokens=20))
    assert len(pieces) > 1
    if program:
        out = subprocess.run([program, "ask", "-q", "-m", str(folder), "--max-new-tokens", "20", "--json",
                              photos[0], "What is it?"], capture_output=True, text=True)
        assert out.returncode == 0, out.stderr
        assert "".join(pieces).strip() == json.loads(out.stdout)["text"].strip()


def test_leaving_an_answer_stops_it(llava, photos):
    _, model = llava
    before = threading.active_count()
    for piece in model.ask(photos[0], "What is it?", max_new_tokens=500):
        break
    gc.collect()
    assert threading.active_count() == before
    answer = model.ask(photos[0], "Why?")
    next(answer)
    answer.close()
    assert threading.active_count() == before


def test_visual_tokens(llava, photos):
    _, model = llava
    rows, kept = model.encode_image(photos[0])
    fewer, patches = model.encode_image(photos[0], policy="prumerge tokens=3 metric=col")
    assert rows.shape[1] == fewer.shape[1] == 16 and len(rows) == len(kept)
    assert 0 < len(fewer) < len(rows) and set(patches[patches >= 0]) <= set(kept)


def test_visual_tokens_of_tiles(tmp_path):
    """A LLaVA-NeXT: 2x1 tiles of 4x4 patches for a wide image; -2 ends a line."""
    fixture = Path(__file__).resolve().parents[1] / "fixtures" / "make_llava.py"
    subprocess.run([sys.executable, str(fixture), str(tmp_path / "next"), "tiles=1"], check=True)
    model = renyi.Llava.from_pretrained(tmp_path / "next")
    photo = np.random.default_rng(1).integers(0, 256, (56, 112, 3), dtype=np.uint8)
    rows, kept = model.encode_image(photo)
    assert rows.shape == (3 * 16 + 4, 16) and list(kept[:16]) == list(range(16))
    assert list(kept[16:25]) == [16, 17, 18, 19, 32, 33, 34, 35, -2] and (kept == -2).sum() == 4
    assert (rows[kept == -2] == rows[24]).all()
    fewer, patches = model.encode_image(photo, policy="uniform tokens=9 budget=image newlines=no")
    assert len(fewer) == 9 and [(patches // 16 == t).sum() for t in range(3)] == [3, 3, 3]
    assert all((fewer[i] == rows[list(kept).index(p)]).all() for i, p in enumerate(patches))
    assert "".join(model.ask(photo, "What is it?", max_new_tokens=8))


def test_the_question_chooses(photos, program, tmp_path):
    """cdpruner compares patches with the question by a CLIP."""
    tests = Path(__file__).resolve().parents[1]
    folder, clip = tmp_path / "llava", tests / "visual_rules" / "clip"
    subprocess.run([sys.executable, str(tests / "fixtures" / "make_llava.py"), str(folder), "width=32"], check=True)
    model = renyi.Llava.from_pretrained(folder, text_tower=clip)
    policy, questions = "cdpruner tokens=4", ["what is on the plate?", "where is the second dog", "why"]
    chosen = []
    for question in questions:
        rows, kept = model.encode_image(photos[0], policy=policy, question=question)
        pieces = "".join(model.ask(photos[0], question, policy=policy, max_new_tokens=20))
        chosen.append(tuple(kept))
        assert rows.shape == (4, 16)
        if program:
            out = subprocess.run([program, "ask", "-q", "-m", str(folder), "--text-tower", str(clip), "--prune", policy,
                                  "--max-new-tokens", "20", "--json", photos[0], question], capture_output=True, text=True)
            assert out.returncode == 0, out.stderr
            assert json.loads(out.stdout)["kept"] == list(kept) and json.loads(out.stdout)["text"].strip() == pieces.strip()
    assert len(set(chosen)) > 1
    with pytest.raises(renyi.ArgumentError, match="by a question"):
        model.encode_image(photos[0], policy=policy)
    with pytest.raises(renyi.ArgumentError, match="by the question"):
        list(model.ask(photos[0], "", policy=policy))
    with pytest.raises(TypeError, match="question"):
        model.encode_image(photos[0], policy=policy, question=3)
    without = renyi.Llava(folder)
    for run in (without.ask, without.encode_image):
        with pytest.raises(renyi.ArgumentError, match="text_tower"):
            run(photos[0], policy=policy, question="why")
    with pytest.raises(TypeError, match="text_tower"):
        renyi.Llava(folder, text_tower=3)
    with pytest.raises(renyi.FileError, match="nowhere"):
        renyi.Llava(folder, text_tower=tmp_path / "nowhere")
    with pytest.raises(renyi.Error):
        renyi.Llava(folder, text_tower=folder)


def test_llava_arguments(llava, photos, tmp_path):
    _, model = llava
    for arguments in ((3, "x"), (photos[0], 3), (photos[0], None)):
        with pytest.raises(TypeError):
            model.ask(*arguments)
    with pytest.raises(renyi.ArgumentError):
        model.ask(photos[0], "x", policy="none of them")
    with pytest.raises(renyi.FileError):
        list(model.ask(tmp_path / "none.jpg", "x"))
    with pytest.raises(renyi.Error):
        renyi.Llava("builtin")
