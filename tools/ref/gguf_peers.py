"""Compares `renyi` with llama.cpp on a GGUF: ids of odd strings, then greedy tokens.

    tools/ref/gguf_peers.py MODEL.gguf --renyi build/renyi [--strings 2000] [--prompt TEXT] [--tokens 100]
    tools/ref/gguf_peers.py MODEL.gguf --ids FILE.json [--strings 200]

The second form writes llama.cpp's ids for the tests (tests/gguf/*_ids.json).
Greedy tokens are equal up to the first place where llama.cpp's own two largest logits are so close
that the order of its additions decides; the script prints the gap there, and fails if it is above
0.1. (llama.cpp multiplies blocks with activations of 8 bits; renyi in f32 does not round them.)
Needs llama-cpp-python and numpy.
"""
# SPDX-License-Identifier: Apache-2.0

import argparse
import json
import subprocess
import sys

import llama_cpp
import numpy as np
from siglip_tokenizers import odd_strings

MARKS = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
GAP = 0.1


def renyi(args, *words):
    done = subprocess.run([args.renyi, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"renyi {words[0]}: {done.stderr}")
    return json.loads(done.stdout)


def compare_ids(args):
    texts = [t for t in odd_strings(args.strings, 11) if t] + [MARKS]
    vocabulary = llama_cpp.Llama(args.model, vocab_only=True, verbose=False)
    differ = 0
    for at in range(0, len(texts), 200):
        part = texts[at:at + 200]
        ours = renyi(args, "tokenize", "-m", args.model, "--no-special", "--json", "--", *part)
        for text, mine in zip(part, ours["texts"]):
            theirs = vocabulary.tokenize(text.encode(), add_bos=False, special=True)
            if mine["ids"] != theirs:
                differ += 1
                print(f"ids differ: {text!r}: {mine['ids']} instead of {theirs}")
    print(f"ids of {len(texts)} texts: {differ} differ")
    return differ


def write_ids(args):
    vocabulary = llama_cpp.Llama(args.model, vocab_only=True, verbose=False)
    texts = [t for t in odd_strings(args.strings, 3) if t] + [MARKS, "  the cat's  12 dogs\n\n ran", " "]
    out = [{"text": t, "ids": vocabulary.tokenize(t.encode(), add_bos=False, special=True)} for t in texts]
    with open(args.ids, "w", encoding="utf-8") as f:
        json.dump(out, f, ensure_ascii=False, separators=(",", ":"))
    return 0


def next_two(model, ids):
    """The two largest logits after ids, read in one pass."""
    model.reset()
    model.eval(ids)
    logits = np.array(model.scores[model.n_tokens - 1])
    order = np.argsort(-logits)[:2]
    return order.tolist(), float(logits[order[0]] - logits[order[1]])


def compare_tokens(args):
    model = llama_cpp.Llama(args.model, n_ctx=1024, logits_all=True, verbose=False)
    prompt = model.tokenize(args.prompt.encode(), add_bos=False, special=True)
    theirs, position = [], list(prompt)
    model.eval(prompt)
    for _ in range(args.tokens):
        theirs.append(int(np.argmax(model.scores[model.n_tokens - 1])))
        model.eval(theirs[-1:])
    ours = renyi(args, "ask", "-q", "-m", args.model, "--ignore-eos", "--json", "--max-new-tokens",
                 str(args.tokens), "--prompt-ids", " ".join(map(str, prompt)))["tokens"]
    same = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), args.tokens)
    print(f"{same} of {args.tokens} greedy tokens are equal")
    if same == args.tokens:
        return 0
    two, gap = next_two(model, position + ours[:same])
    print(f"there llama.cpp ranks {two} by {gap:.3f}; renyi took {ours[same]}, llama.cpp {theirs[same]}")
    return not (gap <= GAP and {ours[same], theirs[same]} == set(two))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--renyi")
    parser.add_argument("--ids")
    parser.add_argument("--strings", type=int, default=2000)
    parser.add_argument("--prompt", default=MARKS)
    parser.add_argument("--tokens", type=int, default=100)
    args = parser.parse_args()
    if args.ids:
        sys.exit(write_ids(args))
    if not args.renyi:
        parser.error("--renyi or --ids")
    sys.exit(1 if compare_ids(args) + compare_tokens(args) else 0)


if __name__ == "__main__":
    main()
