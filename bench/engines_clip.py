# engines_clip.py - engines of worker.py: a zero-shot classifier that condenses tokens, with and
# without TCA.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import struct
import tempfile

import numpy as np
import renyi
from engines_renyi import Renyi

ITEMS = 3  # of a class in the reservoir: ImageNet's


def read_state(path):
    """The tensors and metadata of a safetensors file whose tensors have 4-byte numbers."""
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    meta = header.pop("__metadata__")
    kinds = {"F32": np.float32, "U32": np.uint32}
    return {n: np.frombuffer(data[slice(*t["data_offsets"])], kinds[t["dtype"]]).reshape(t["shape"]) for n, t in header.items()}, meta


def write_state(path, tensors, meta):
    header, at = {"__metadata__": meta}, 0
    for name, t in tensors.items():
        header[name] = dict(dtype="F32" if t.dtype == np.float32 else "U32", shape=list(t.shape), data_offsets=[at, at + t.nbytes])
        at += t.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            f.write(t.tobytes())


class RenyiCondense(Renyi):
    """A classifier with random rows, with the policy's tokens; images are independent."""

    dtype = "f32"

    def open_model(self, a):
        tower = super().open_model(a)
        rows = np.random.default_rng(11).standard_normal((a.classes, tower.info.embed_dim), dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return tower.with_classes(rows, [f"class {i}" for i in range(a.classes)])


class RenyiTca(RenyiCondense):
    """The same with TCA in its most expensive state: every class has all its items, so there are
    anchors from the first image on and the correction reads all of them."""

    def __init__(self, a):
        super().__init__(a)
        self.once()  # makes an item, which is copied for the others
        self.fill(a.classes)
        if not self.tca.info.has_anchors or self.tca.info.n_items != ITEMS * a.classes:
            raise RuntimeError(f"TCA: {self.tca.info.n_items} items and no anchors")

    def adaptation(self, model):
        self.tca = renyi.Tca(model, size=ITEMS)
        return self.tca

    def fill(self, classes):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "state.safetensors")
            self.tca.save(path)
            state, meta = read_state(path)
            one, n = state["tokens"][0], classes * ITEMS
            noise = np.random.default_rng(13).standard_normal((n, *one.shape), dtype=np.float32)
            write_state(path, {"tokens": one + 0.1 * np.abs(one).mean() * noise,
                               "entropy": np.tile(np.linspace(0.1, 1.0, ITEMS, dtype=np.float32), classes),
                               "class": np.repeat(np.arange(classes, dtype=np.uint32), ITEMS)}, meta)
            self.tca.load(path)


ENGINES = {"renyi-condense": RenyiCondense, "renyi-tca": RenyiTca}
