#!/usr/bin/env python3
# next_lm_cuts.py - writes tests/llava_next/lm_cuts.safetensors: what rules inside the language model make
# of the small LLaVA-NeXT and three of its images (wide, very tall, 2 x 2 tiles), in float64.
#
#   tools/ref/next_lm_cuts.py [tests/llava_next]
#
# The rows of an image, newlines among them, are those of expected.safetensors (transformers), the
# decoder and the rules those of lm_cuts.py. For policy p and image i: p.i.kept0 (which of the rows
# stay), p.i.score0, p.i.logits after the prompt, p.i.tokens. Without a policy the logits must be those
# of transformers in expected.safetensors.
# SPDX-License-Identifier: Apache-2.0
import json
import sys
from pathlib import Path

import transformers
from safetensors.torch import load_file

import lm_cuts
from common import write_expected

IMAGES = [0, 5, 8]
POLICIES = {
    "fastv": "fastv layer=1 tokens=14 metric=last",
    "fastv_col": "fastv layer=1 keep=0.3 metric=col n=2 rows=all positions=consecutive",
    "pyramid": "pyramiddrop layers=1 keep=0.5 metric=last",
    "pyramid_col": "pyramiddrop layers=1 keep=0.4 metric=col n=4 rows=text positions=consecutive",
    "dart": "dart layer=1 tokens=24 pivots=4 text_pivots=3",
    "sparsevlm": "sparsevlm tokens=20 layers=1 n=1 recycle=0.5 members=6",
}


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "tests/llava_next")
    config = transformers.AutoConfig.from_pretrained(folder)
    given = load_file(folder / "expected.safetensors")
    text = config.text_config
    weights = lm_cuts.unpack(load_file(folder / "model.safetensors"), "language_model.model.", "language_model.lm_head.weight",
                             text.num_hidden_layers)
    prompt = given["prompt"].long()
    at = prompt.tolist().index(config.image_token_index)
    lm_cuts.POLICIES.clear()
    lm_cuts.POLICIES.update({"none": "none"} | POLICIES)
    out = {}
    for i in IMAGES:
        rows = given[f"hf.{i}.rows"].double()
        print(f"image {i}: {len(rows)} rows, {len(given[f'hf.{i}.newline'])} of them newlines")
        for name in lm_cuts.POLICIES:
            got = lm_cuts.run(name, text, weights, prompt[:at], rows, prompt[at + 1:], prompt[:2])
            got = {k.split(".")[1]: v for k, v in got.items()}
            if name == "none":
                gap = (got["logits"] - given[f"hf.{i}.logits"]).abs().max().item()
                assert gap < 1e-4, f"the decoder is not that of transformers: {gap}"
                continue
            del got["second"]
            out |= {f"{name}.{i}.{k}": v for k, v in got.items()}
    write_expected(folder / "lm_cuts.safetensors", out, {"policies": json.dumps(POLICIES), "images": json.dumps(IMAGES)})


main()
