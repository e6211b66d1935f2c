# texts.py - times a zero-shot classifier: templates of imagenet80 times class names of ImageNet.
# SPDX-License-Identifier: Apache-2.0
#
# Run as a program by clip.py; prints one line of JSON. Nothing is cached.
import argparse
import ctypes
import json
import time

from engines_renyi import Renyi

CONTEXT = 77
DTYPES = {"f32": 1, "bf16": 2, "int8": 3}  # enum renyi_dtype


class Info(ctypes.Structure):
    _fields_ = [("layout", ctypes.c_char_p), ("activation", ctypes.c_char_p), ("dim", ctypes.c_uint32), ("n_blocks", ctypes.c_uint32),
                ("n_heads", ctypes.c_uint32), ("mlp_dim", ctypes.c_uint32), ("vocab", ctypes.c_uint32), ("context", ctypes.c_uint32),
                ("embed_dim", ctypes.c_uint32), ("norm_eps", ctypes.c_double), ("logit_scale", ctypes.c_double),
                ("n_params", ctypes.c_uint64), ("fingerprint", ctypes.c_uint64), ("dtype", ctypes.c_int), ("cpu", ctypes.c_int)]


class ClassifierOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("templates", ctypes.POINTER(ctypes.c_char_p)), ("n_templates", ctypes.c_uint32),
                ("truncate", ctypes.c_uint32), ("max_tokens", ctypes.c_uint32), ("n_threads", ctypes.c_uint32), ("cache", ctypes.c_char_p),
                ("progress", ctypes.c_void_p), ("progress_user", ctypes.c_void_p)]


class Job:
    def __init__(self, a):
        self.lib, self.err = ctypes.CDLL(a.library), Renyi.Error()
        self.text, self.tokenizer, lists = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        opt = Renyi.Options(struct_size=ctypes.sizeof(Renyi.Options), dtype=DTYPES[a.dtype])
        self.call("renyi_text_open", ctypes.byref(self.text), a.model.encode(), ctypes.byref(opt))
        self.call("renyi_tokenizer_open", ctypes.byref(self.tokenizer), a.tokenizer.encode(), None)
        self.call("renyi_templates_open", ctypes.byref(lists), b"imagenet80", None)
        self.lib.renyi_templates_texts.restype = ctypes.POINTER(ctypes.c_char_p)
        self.lib.renyi_imagenet_name.restype = ctypes.c_char_p
        self.info, n = Info(), ctypes.c_uint32()
        self.lib.renyi_text_get_info(self.text, ctypes.byref(self.info))
        texts = self.lib.renyi_templates_texts(lists, ctypes.byref(n))
        self.templates = [texts[i] for i in range(min(n.value, a.templates))]
        self.names = [self.lib.renyi_imagenet_name(i).split(b",")[0] for i in range(a.classes)]

    def call(self, name, *arguments):
        if getattr(self.lib, name)(*arguments, ctypes.byref(self.err)) != 0:
            raise SystemExit(self.err.message.decode())

    def seconds(self, threads):
        opt = ClassifierOptions(struct_size=ctypes.sizeof(ClassifierOptions), n_templates=len(self.templates), n_threads=threads,
                                templates=(ctypes.c_char_p * len(self.templates))(*self.templates))
        rows, start = ctypes.c_void_p(), time.perf_counter()
        self.call("renyi_classifier_new", ctypes.byref(rows), self.text, self.tokenizer, (ctypes.c_char_p * len(self.names))(*self.names),
                  ctypes.c_uint32(len(self.names)), ctypes.byref(opt))
        return time.perf_counter() - start

    def ids(self, text):
        out, n = (ctypes.c_int32 * CONTEXT)(), ctypes.c_uint32()
        self.call("renyi_tokenizer_encode", self.tokenizer, text, ctypes.c_size_t(len(text)), ctypes.c_uint32(CONTEXT), 0, out, ctypes.byref(n))
        return out[:n.value]

    def tokens(self):
        """Tokens of all texts, and those computed when texts of a template share their
        beginning."""
        total = computed = 0
        for template in self.templates:
            texts, before = sorted(self.ids(template.replace(b"{}", name)) for name in self.names), []
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
    for name in ("library", "model", "tokenizer", "dtype"):
        p.add_argument("--" + name, required=True)
    for name in ("threads", "templates", "classes"):
        p.add_argument("--" + name, type=int, required=True)
    a = p.parse_args()
    job = Job(a)
    texts = len(job.templates) * len(job.names)
    total, computed = job.tokens()
    seconds = job.seconds(a.threads)
    print(json.dumps(dict(dtype=a.dtype, templates=len(job.templates), classes=len(job.names), texts=texts, tokens=total,
                          computed_tokens=computed, gflop=job.gflop(computed, texts), seconds=seconds)))


if __name__ == "__main__":
    main()
