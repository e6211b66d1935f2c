#!/usr/bin/env python3
# llava_handoff.py - gives pruned visual tokens to a language model in another engine.
# SPDX-License-Identifier: Apache-2.0
"""Visual tokens of `renyi encode-image` in other engines.

    renyi encode-image -m LLAVA photo.jpg --prune 'prumerge tokens=192' -o tokens.safetensors
    python3 llava_handoff.py tokens.safetensors                    # what is in the file
    python3 llava_handoff.py tokens.safetensors --model LLAVA --prompt-ids '1 3148 ... 32000 ...'
    python3 llava_handoff.py tokens.safetensors --gguf vicuna.gguf --prompt-ids '1 3148 ... -200 ...'

The script needs numpy. --model runs Hugging Face's LLaVA (PyPI: transformers, torch) with
inputs_embeds; --gguf runs llama.cpp (PyPI: llama-cpp-python) with a batch of embeddings. The prompt
has one image token; the visual tokens replace it, and positions are consecutive. Answers are greedy
and printed as token ids.
"""
import argparse
import ctypes
import json
import struct
import sys

import numpy as np

IMAGE = -200  # LLaVA's own id for the place of the image in a prompt


# ---- the file ----------------------------------------------------------------------------------


def read_tokens(path):
    """The images of the file and the metadata. An image is a dict of "file", "tokens" (float32
    [n, width]) and "positions" (int32 [n])."""
    with open(path, "rb") as f:
        (size,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(size))
        data = f.read()
    meta = header.pop("__metadata__", {})
    if meta.get("format") != "renyi.visual_tokens":
        raise SystemExit(f"{path}: not a file of visual tokens from renyi encode-image")
    types = {"F32": np.dtype("<f4"), "I32": np.dtype("<i4")}

    def tensor(name):
        t = header[name]
        begin, end = t["data_offsets"]
        return np.frombuffer(data[begin:end], types[t["dtype"]]).reshape(t["shape"])

    files = json.loads(meta["files"])
    images = [{"file": file, "tokens": tensor(f"tokens.{i}"), "positions": tensor(f"positions.{i}")}
              for i, file in enumerate(files)]
    return images, meta


def split_prompt(ids, image_token):
    """The ids before and after the image."""
    places = [i for i, t in enumerate(ids) if t in (IMAGE, image_token)]
    if len(places) != 1:
        raise SystemExit(f"the prompt has {len(places)} image tokens instead of one")
    return list(ids[:places[0]]), list(ids[places[0] + 1:])


# ---- Hugging Face: inputs_embeds ---------------------------------------------------------------


def splice(table, ids, image_token, tokens):
    """Rows [n, width] for the language model: table [vocab, width] at the ids, and the image."""
    before, after = split_prompt(ids, image_token)
    return np.concatenate([table[before], tokens, table[after]]).astype(np.float32)


def ask_hugging_face(path, ids, tokens, max_new_tokens):
    import torch
    from transformers import LlavaForConditionalGeneration

    model = LlavaForConditionalGeneration.from_pretrained(path, dtype=torch.float32).eval()
    table = model.get_input_embeddings().weight.detach().numpy()
    rows = torch.from_numpy(splice(table, ids, model.config.image_token_id, tokens))[None]
    with torch.no_grad():
        out = model.generate(inputs_embeds=rows.to(model.dtype),
                             attention_mask=torch.ones(rows.shape[:2]), do_sample=False,
                             max_new_tokens=max_new_tokens, pad_token_id=0)
    return out[0].tolist()


# ---- llama.cpp: a batch of embeddings ----------------------------------------------------------


def fill_batch(batch, rows, first_position):
    """Fills a batch of llama_batch_init(n, width, 1) with rows [n, width], sequence 0."""
    rows = np.ascontiguousarray(rows, np.float32)
    ctypes.memmove(batch.embd, rows.ctypes.data, rows.nbytes)
    for i in range(len(rows)):
        batch.pos[i] = first_position + i
        batch.n_seq_id[i] = 1
        batch.seq_id[i][0] = 0
        batch.logits[i] = 0  # only the last token of the prompt needs them
    batch.n_tokens = len(rows)


def ask_llama_cpp(path, ids, tokens, max_new_tokens):
    import llama_cpp

    before, after = split_prompt(ids, IMAGE)
    n = len(tokens)
    llm = llama_cpp.Llama(path, n_ctx=len(ids) + n + max_new_tokens, n_batch=max(512, n),
                          verbose=False)
    if llm.n_embd() != tokens.shape[1]:
        raise SystemExit(f"{path}: rows of {llm.n_embd()} numbers, but the tokens have "
                         f"{tokens.shape[1]}: is it another LLaVA's?")
    llm.eval(before)
    batch = llama_cpp.llama_batch_init(n, tokens.shape[1], 1)
    fill_batch(batch, tokens, llm.n_tokens)
    if llama_cpp.llama_decode(llm.ctx, batch):
        raise SystemExit(f"{path}: llama_decode refused the visual tokens")
    llama_cpp.llama_batch_free(batch)
    llm.input_ids[llm.n_tokens:llm.n_tokens + n] = -1
    llm.n_tokens += n
    llm.eval(after)
    answer = []
    while len(answer) < max_new_tokens:
        token = llm.sample(temp=0.0)
        if token == llm.token_eos():
            break
        answer.append(token)
        llm.eval([token])
    return answer


# ---- command line ------------------------------------------------------------------------------


def describe(images, meta):
    print(f"model {meta.get('model')}, policy {meta.get('policy')}")
    for image in images:
        n, width = image["tokens"].shape
        merged = int((image["positions"] < 0).sum())
        print(f"{image['file']}: {n} tokens of {width} numbers, "
              f"{n - merged} at patches of their own, {merged} merged")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokens", help="file that renyi encode-image wrote")
    parser.add_argument("--photo", type=int, default=0, help="which of its images, from 0")
    engine = parser.add_mutually_exclusive_group()
    engine.add_argument("--model", help="folder of the LLaVA, for Hugging Face's transformers")
    engine.add_argument("--gguf", help="its language model, for llama.cpp")
    parser.add_argument("--prompt-ids",
                        help="the prompt as token ids, with one image token (the model's, or -200)")
    parser.add_argument("--max-new-tokens", type=int, default=64)
    a = parser.parse_args()
    images, meta = read_tokens(a.tokens)
    if not (a.model or a.gguf):
        return describe(images, meta)
    if not a.prompt_ids:
        parser.error("--prompt-ids is missing")
    if not 0 <= a.photo < len(images):
        parser.error(f"the file's images are 0 to {len(images) - 1}")
    ask = ask_hugging_face if a.model else ask_llama_cpp
    ids = [int(i) for i in a.prompt_ids.replace(",", " ").split()]
    print(*ask(a.model or a.gguf, ids, images[a.photo]["tokens"], a.max_new_tokens))


if __name__ == "__main__":
    sys.exit(main())
