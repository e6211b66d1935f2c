# test_handoff.py - renyi's visual tokens in other engines give the answer of renyi.
# SPDX-License-Identifier: Apache-2.0
import ctypes
import importlib.util
import subprocess
import sys

import numpy as np
import pytest
import renyi
from conftest import ROOT, document_lines

POLICY, QUESTION, MOST = "prumerge tokens=7 metric=col", "What is it?", 24


@pytest.fixture(scope="module")
def llava(tmp_path_factory):
    folder = tmp_path_factory.mktemp("handoff")
    subprocess.run([sys.executable, str(ROOT / "tests" / "fixtures" / "make_llava.py"), str(folder)], check=True)
    return folder, renyi.Llava.from_pretrained(folder)


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("llava_handoff", ROOT / "examples" / "python" / "llava_handoff.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(model, photo, policy):
    return "".join(model.ask(photo, QUESTION, policy=policy, max_new_tokens=MOST))


def test_the_prompt_and_its_text(llava):
    _, model = llava
    before, after = model.prompt("What is it?")
    assert before[0] == 1 and "USER:" in model.decode(before)
    assert model.decode(after).strip() == "What is it? ASSISTANT:"
    assert model.decode([]) == "" and model.prompt("Why?")[0] == before
    for wrong in (None, 3):
        with pytest.raises(TypeError):
            model.prompt(wrong)
    with pytest.raises(renyi.Error):
        model.decode([10**6])


def test_a_batch_of_embeddings(llava, photos, example):
    """A llama_batch with the layout of llama.h."""

    class Batch(ctypes.Structure):
        _fields_ = [("n_tokens", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)),
                    ("embd", ctypes.POINTER(ctypes.c_float)), ("pos", ctypes.POINTER(ctypes.c_int32)),
                    ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
                    ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))), ("logits", ctypes.POINTER(ctypes.c_int8))]

    tokens, _ = llava[1].encode_image(photos[0], policy=POLICY)
    n, width = tokens.shape
    seq = (ctypes.c_int32 * n)(*[7] * n)
    seqs = (ctypes.POINTER(ctypes.c_int32) * n)(
        *[ctypes.cast(ctypes.byref(seq, 4 * i), ctypes.POINTER(ctypes.c_int32)) for i in range(n)])
    batch = Batch(0, None, (ctypes.c_float * (n * width))(), (ctypes.c_int32 * n)(), (ctypes.c_int32 * n)(), seqs,
                  (ctypes.c_int8 * n)(*[1] * n))
    example.fill_batch(batch, tokens, 35)
    assert batch.n_tokens == n and batch.pos[:n] == list(range(35, 35 + n)) and batch.n_seq_id[:n] == [1] * n
    assert list(seq) == [0] * n and batch.logits[:n] == [0] * n
    assert batch.embd[:n * width] == tokens.ravel().tolist()


@pytest.mark.reference
@pytest.mark.parametrize("policy", [POLICY, None])
def test_transformers_answers_as_renyi_does(llava, photos, policy):
    """The lines of docs/PYTHON.md."""
    torch = pytest.importorskip("torch", reason="no torch: visual tokens in transformers not tested")
    transformers = pytest.importorskip("transformers", reason="no transformers: visual tokens there not tested")
    folder, model = llava
    theirs = transformers.LlavaForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    lines = document_lines("docs/PYTHON.md", "inputs_embeds")
    for old, new in (('"cat.jpg"', "photo"), ('policy="prumerge tokens=192"', "policy=policy"), ("64", str(MOST))):
        assert old in lines
        lines = lines.replace(old, new)
    for photo in photos[:2]:
        names = dict(torch=torch, llava=model, model=theirs, photo=photo, policy=policy)
        with torch.no_grad():
            exec(lines, names)
        assert names["text"] == answer(model, photo, policy) and len(names["text"]) > 1
    # The tokens matter: others have another answer.
    rows = names["rows"].clone()
    rows[0, len(names["before"]):-len(names["after"])] *= -1
    other = theirs.generate(inputs_embeds=rows, attention_mask=torch.ones(rows.shape[:2]), do_sample=False,
                            max_new_tokens=MOST, pad_token_id=0)
    assert model.decode(other[0].tolist()) != names["text"]


@pytest.mark.reference
def test_the_example_in_transformers(llava, photos):
    pytest.importorskip("transformers", reason="no transformers: examples/python/llava_handoff.py not tested")
    folder, model = llava
    done = subprocess.run([sys.executable, str(ROOT / "examples" / "python" / "llava_handoff.py"), str(folder), photos[0], QUESTION,
                           "--policy", POLICY, "--max-new-tokens", str(MOST)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == answer(model, photos[0], POLICY) + "\n" and "8 visual tokens, 1 of them merged" in done.stderr


@pytest.mark.reference
def test_llama_cpp_answers_as_renyi_does(llava, photos, example, tmp_path, monkeypatch):
    pytest.importorskip("llama_cpp", reason="no llama-cpp-python: visual tokens in llama.cpp not tested")
    pytest.importorskip("gguf", reason="no gguf: visual tokens in llama.cpp not tested")
    folder, model = llava
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import gguf_llama

    gguf_llama.write(str(folder), "f32", str(tmp_path / "lm.gguf"))
    before, after = model.prompt(QUESTION)
    for photo in photos[:2]:
        tokens, _ = model.encode_image(photo, policy=POLICY)
        ids = example.ask_llama_cpp(str(tmp_path / "lm.gguf"), before, tokens, after, MOST)
        assert model.decode(ids) == answer(model, photo, POLICY)
