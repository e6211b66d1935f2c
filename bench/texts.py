# texts.py - times a zero-shot classifier: templates of imagenet80 times class names of ImageNet.
# SPDX-License-Identifier: Apache-2.0
#
# Run as a program by clip.py; prints one line of JSON. Nothing is cached.
import argparse
import json
import time

import renyi
from renyi._c import text
from renyi._renyi import ffi, lib
from renyi.clip import templates_of


class Job:
    def __init__(self, a):
        self.clip = renyi.Clip(a.model, dtype=a.dtype, tokenizer=a.tokenizer, threads=a.threads)
        self.info = ffi.new("renyi_text_info *")
        lib.renyi_text_get_info(self.clip._text, self.info)
        self.templates = templates_of("imagenet80")[:a.templates]
        self.names = [text(lib.renyi_imagenet_name(i)).split(",")[0] for i in range(a.classes)]

    def seconds(self):
        start = time.perf_counter()
        self.clip.classifier(self.names, self.templates)
        return time.perf_counter() - start

    def tokens(self):
        """Tokens of all texts, and those computed when texts of a template share their
        beginning."""
        total = computed = 0
        for template in self.templates:
            texts, before = sorted(self.clip.tokenize(template.replace("{}", name)) for name in self.names), []
            for text in texts:
                same = next((i for i, (a, b) in enumerate(zip(text, before)) if a != b), min(len(text), len(before)))
                total, computed, before = total + len(text), computed + len(text) - same, text
        return total, computed

    def gflop(self, tokens, texts):
        """Of the products with weights. The last block computes only the end row, and all keys
        and values."""
        i = self.info
        token, block = 3 * i.dim ** 2, 4 * i.dim ** 2 + 2 * i.dim * i.mlp_dim
        return 2e-9 * (tokens * ((i.n_blocks - 1) * block + token) + texts * (block - token + i.dim * i.embed_dim))


def main():
    p = argparse.ArgumentParser()
    for name in ("model", "tokenizer", "dtype"):
        p.add_argument("--" + name, required=True)
    for name in ("threads", "templates", "classes"):
        p.add_argument("--" + name, type=int, required=True)
    a = p.parse_args()
    job = Job(a)
    texts = len(job.templates) * len(job.names)
    total, computed = job.tokens()
    seconds = job.seconds()
    print(json.dumps(dict(dtype=a.dtype, templates=len(job.templates), classes=len(job.names), texts=texts, tokens=total,
                          computed_tokens=computed, gflop=job.gflop(computed, texts), seconds=seconds)))


if __name__ == "__main__":
    main()
