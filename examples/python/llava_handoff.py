# llava_handoff.py - answers a question about a photo in another engine with renyi's pruned visual tokens.
#   python3 examples/python/llava_handoff.py LLAVA photo.jpg "What is it?" --policy "prumerge tokens=192"
#   python3 examples/python/llava_handoff.py LLAVA photo.jpg "What is it?" --gguf vicuna.gguf
# The first runs transformers (PyPI: transformers, torch), the second llama.cpp (llama-cpp-python). The
# visual tokens take the place of the image in the prompt; positions are consecutive. Answers are greedy.
# SPDX-License-Identifier: Apache-2.0
import argparse
import ctypes
import sys

import numpy as np
import renyi


def ask_transformers(folder, before, tokens, after, most):
    """Ids of the answer: rows of the table of tokens, with the visual tokens between them."""
    import torch
    from transformers import LlavaForConditionalGeneration

    model = LlavaForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    table = model.get_input_embeddings().weight
    with torch.no_grad():
        rows = torch.cat([table[before], torch.from_dlpack(tokens), table[after]])[None]
        out = model.generate(inputs_embeds=rows, attention_mask=torch.ones(rows.shape[:2]), do_sample=False,
                             max_new_tokens=most, pad_token_id=0)
    return out[0].tolist()


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


def ask_llama_cpp(gguf, before, tokens, after, most):
    """The same with a batch of embeddings; no mmproj is needed."""
    import llama_cpp

    n = len(tokens)
    llm = llama_cpp.Llama(gguf, n_ctx=len(before) + n + len(after) + most, n_batch=max(512, n), verbose=False)
    if llm.n_embd() != tokens.shape[1]:
        raise SystemExit(f"{gguf}: rows of {llm.n_embd()} numbers, but the tokens have {tokens.shape[1]}: is it another LLaVA's?")
    llm.eval(before)
    batch = llama_cpp.llama_batch_init(n, tokens.shape[1], 1)
    fill_batch(batch, tokens, llm.n_tokens)
    if llama_cpp.llama_decode(llm.ctx, batch):
        raise SystemExit(f"{gguf}: llama_decode refused the visual tokens")
    llama_cpp.llama_batch_free(batch)
    llm.input_ids[llm.n_tokens:llm.n_tokens + n] = -1
    llm.n_tokens += n
    llm.eval(after)
    answer = []
    while len(answer) < most and (token := llm.sample(temp=0.0)) != llm.token_eos():
        answer.append(token)
        llm.eval([token])
    return answer


def main():
    parser = argparse.ArgumentParser(description="answers a question in transformers or llama.cpp with renyi's visual tokens")
    parser.add_argument("model", help="folder of the LLaVA")
    parser.add_argument("photo")
    parser.add_argument("question")
    parser.add_argument("--policy", help="such as 'prumerge tokens=192 metric=col'")
    parser.add_argument("--gguf", help="its language model for llama.cpp; transformers without it")
    parser.add_argument("--max-new-tokens", type=int, default=64)
    a = parser.parse_args()
    llava = renyi.Llava.from_pretrained(a.model)
    tokens, patches = llava.encode_image(a.photo, policy=a.policy)
    print(f"{len(tokens)} visual tokens, {(patches < 0).sum()} of them merged", file=sys.stderr)
    before, after = llava.prompt(a.question)
    ask, where = (ask_llama_cpp, a.gguf) if a.gguf else (ask_transformers, a.model)
    print(llava.decode(ask(where, before, tokens, after, a.max_new_tokens)))


if __name__ == "__main__":
    sys.exit(main())
