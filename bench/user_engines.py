# user_engines.py - engines of python_user.py, each in its own process: photo files in, labels out, as
# the documents of the engine do it. One command per line on stdin, one line of JSON on stdout.
# SPDX-License-Identifier: Apache-2.0
#
#   photos N      N times the labels of all photos -> {"ms": [per photo, ...]}
#   classes       -> {"classes": [index of each photo, ...]}
#   tensor N      N runs of the common tensor (renyi only) -> {"ms": [per image, ...]}
#   embed         opens the model, m.embed of all photos (renyi only) -> {"seconds": ...}
#   sessions T N  T Python threads, a session of one thread each, N images in all (renyi only)
#                 -> {"seconds": ...}
import argparse
import json
import os
import sys
import threading
import time

import numpy as np


def batches(files, size):
    return [files[i:i + size] for i in range(0, len(files), size)]


class Renyi:
    """session.run reads, decodes and prepares the files."""

    policy = None

    def __init__(self, a):
        import renyi

        self.a, self.renyi, self.version = a, renyi, f"renyi {renyi.__version__}"
        self.model = renyi.Model.from_pretrained(a.weights)
        self.names = self.model.labels
        self.session = self.model.session(self.policy, batch_size=a.batch, threads=a.threads)
        self.x = np.random.default_rng(7).standard_normal((a.batch, 3, 224, 224), dtype=np.float32)

    def classes(self, files):
        return self.session.run(files).argmax(axis=1)

    def tensor(self, n):
        ms = []
        for _ in range(n + 1):  # the first is not timed
            start = time.perf_counter()
            self.session.run_tensor(self.x)
            ms.append(1e3 * (time.perf_counter() - start) / self.a.batch)
        return ms[1:]

    def embed(self):
        start = time.perf_counter()
        model = self.renyi.Model.from_pretrained(self.a.weights)
        rows = sum(row is not None for row in model.embed(self.a.photos, batch_size=self.a.batch, threads=self.a.threads))
        seconds = time.perf_counter() - start
        if rows != len(self.a.photos):
            raise RuntimeError(f"{rows} rows of {len(self.a.photos)} photos")
        return seconds

    def sessions(self, threads, images):
        """Seconds; the sessions are made and have run before."""
        x = self.x[:1]
        sessions = [self.model.session(self.policy, threads=1) for _ in range(threads)]
        for session in sessions:
            session.run_tensor(x)

        def work(session):
            for _ in range(images // threads):
                session.run_tensor(x)

        workers = [threading.Thread(target=work, args=(session,)) for session in sessions]
        start = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return time.perf_counter() - start


class RenyiPruned(Renyi):
    policy = "mosaic keep=0.7 layers=0,3,6"


class Timm:
    """Pillow and timm's transform; the timm model in PyTorch, eager, inference_mode."""

    def __init__(self, a):
        import timm
        import torch
        from PIL import Image

        from export import load_timm

        torch.set_num_threads(a.threads)
        self.torch, self.open = torch, Image.open
        model = load_timm(a.arch, a.weights)
        self.transform = timm.data.create_transform(**timm.data.resolve_data_config({}, model=model))
        info = timm.data.ImageNetInfo()
        self.names = [info.index_to_description(i) for i in range(1000)]
        self.start(a, model)

    def start(self, a, model):
        self.model = model
        self.version = f"PyTorch {self.torch.__version__.split('+')[0]}"

    def classes(self, files):
        with self.torch.inference_mode():
            x = self.torch.stack([self.transform(self.open(file).convert("RGB")) for file in files])
            return self.run(x)

    def run(self, x):
        return self.model(x).argmax(dim=1).numpy()


class OnnxRuntime(Timm):
    """The same pixels; the model exported by torch."""

    def start(self, a, model):
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = a.threads
        self.session = ort.InferenceSession(a.onnx, options, providers=["CPUExecutionProvider"])
        self.version = "ONNX Runtime " + ort.__version__

    def run(self, x):
        return self.session.run(None, {"x": x.numpy()})[0].argmax(axis=1)


class OpenVino(Timm):
    """The same pixels; the model converted from timm's, latency hint, f32."""

    def start(self, a, model):
        import openvino as ov

        self.request = ov.Core().compile_model(a.ir, "CPU", {
            "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": a.threads,
            "INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
        self.version = "OpenVINO " + ov.__version__.split("-")[0]

    def run(self, x):
        return self.request.infer({0: x.numpy()}, share_inputs=True)[0].argmax(axis=1)


ENGINES = {"renyi": Renyi, "renyi-pruned": RenyiPruned, "pytorch": Timm, "onnxruntime": OnnxRuntime, "openvino": OpenVino}


def label_all(engine, a):
    """Class and label of every photo."""
    found = [int(i) for files in batches(a.photos, a.batch) for i in engine.classes(files)]
    return found, [engine.names[i] for i in found]


def answer(engine, a, command, *numbers):
    if command == "photos":
        ms = []
        for _ in range(int(numbers[0])):
            start = time.perf_counter()
            label_all(engine, a)
            ms.append(1e3 * (time.perf_counter() - start) / len(a.photos))
        return dict(ms=ms)
    if command == "classes":
        return dict(classes=label_all(engine, a)[0])
    if command == "tensor":
        return dict(ms=engine.tensor(int(numbers[0])))
    if command == "embed":
        return dict(seconds=engine.embed())
    return dict(seconds=engine.sessions(*map(int, numbers)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("engine", choices=ENGINES)
    for name in ("arch", "weights", "list", "onnx", "ir"):
        p.add_argument("--" + name)
    for name in ("batch", "threads"):
        p.add_argument("--" + name, type=int, required=True)
    a = p.parse_args()
    with open(a.list) as f:
        a.photos = f.read().splitlines()
    # Replies go to a copy of stdout; what a library prints there goes to the log.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    engine = ENGINES[a.engine](a)
    print(json.dumps(dict(ready=engine.version, in_flight=1)), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(engine, a, *line.split())), file=out, flush=True)


if __name__ == "__main__":
    main()
