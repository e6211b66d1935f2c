# engines_clip.py - engines of worker.py: a zero-shot classifier that condenses tokens, with and
# without TCA.
# SPDX-License-Identifier: Apache-2.0
import ctypes
import json
import os
import struct
import tempfile

import numpy as np

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

    dtype = 1  # RENYI_DTYPE_F32

    def open_model(self, a):
        tower, model = super().open_model(a), ctypes.c_void_p()
        rows = np.random.default_rng(11).standard_normal((a.classes, self.embedding_width(tower)), dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        names = (ctypes.c_char_p * a.classes)(*(f"class {i}".encode() for i in range(a.classes)))
        self.check(self.lib.renyi_model_zeroshot(ctypes.byref(model), tower, rows.ctypes.data_as(ctypes.c_void_p), names,
                                                 ctypes.c_uint32(a.classes), ctypes.c_double(100.0), ctypes.byref(self.err)))
        return model

    def embedding_width(self, tower):
        """Width of an embedding."""
        session = ctypes.c_void_p()
        opt = self.SessionOptions(ctypes.sizeof(self.SessionOptions), 1, 1, b"none")
        self.check(self.lib.renyi_session_new(ctypes.byref(session), tower, ctypes.byref(opt), ctypes.byref(self.err)))
        outputs = self.lib.renyi_session_outputs(session)
        self.lib.renyi_session_free(session)
        return outputs


class RenyiTca(RenyiCondense):
    """The same with TCA in its most expensive state: every class has all its items, so there are
    anchors from the first image on and the correction reads all of them."""

    class TcaOptions(ctypes.Structure):
        _fields_ = [("struct_size", ctypes.c_uint32), ("size", ctypes.c_uint32), ("scale", ctypes.c_double), ("lambda_", ctypes.c_double),
                    ("beta", ctypes.c_double), ("no_anchors", ctypes.c_uint32), ("no_correction", ctypes.c_uint32)]

    class Info(ctypes.Structure):
        _fields_ = [("n_classes", ctypes.c_uint32), ("size", ctypes.c_uint32), ("scale", ctypes.c_double), ("lambda_", ctypes.c_double),
                    ("beta", ctypes.c_double), ("n_images", ctypes.c_uint64), ("n_anchored", ctypes.c_uint64), ("n_changed", ctypes.c_uint64),
                    ("first_anchored", ctypes.c_uint64), ("n_items", ctypes.c_uint32), ("n_seen_classes", ctypes.c_uint32),
                    ("n_ready_classes", ctypes.c_uint32), ("has_anchors", ctypes.c_uint32), ("bytes", ctypes.c_size_t)]

    def __init__(self, a):
        super().__init__(a)
        self.once()  # makes an item, which is copied for the others
        self.fill(a.classes)
        info = self.Info()
        self.lib.renyi_tca_get_info(self.tca, ctypes.byref(info))
        if not info.has_anchors or info.n_items != ITEMS * a.classes:
            raise RuntimeError(f"TCA: {info.n_items} items and no anchors")

    def adaptation(self, model):
        self.tca = ctypes.c_void_p()
        opt = self.TcaOptions(struct_size=ctypes.sizeof(self.TcaOptions), size=ITEMS)
        self.check(self.lib.renyi_tca_new(ctypes.byref(self.tca), model, ctypes.byref(opt), ctypes.byref(self.err)))
        return self.tca

    def fill(self, classes):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "state.safetensors").encode()
            self.check(self.lib.renyi_tca_save(self.tca, path, ctypes.byref(self.err)))
            state, meta = read_state(path)
            one, n = state["tokens"][0], classes * ITEMS
            noise = np.random.default_rng(13).standard_normal((n, *one.shape), dtype=np.float32)
            write_state(path, {"tokens": one + 0.1 * np.abs(one).mean() * noise,
                               "entropy": np.tile(np.linspace(0.1, 1.0, ITEMS, dtype=np.float32), classes),
                               "class": np.repeat(np.arange(classes, dtype=np.uint32), ITEMS)}, meta)
            self.check(self.lib.renyi_tca_load(self.tca, path, ctypes.byref(self.err)))
