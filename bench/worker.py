# worker.py - runs one engine with one model, batch size and number of threads in its own process.
# SPDX-License-Identifier: Apache-2.0
#
# Commands on stdin, one JSON line back for each:
#   run N    N timed iterations after a warm-up (none for training steps, which take seconds)
#            -> {"ms": [per image, ...]}
#   logits   of the common input -> {"logits": [[...], ...]}
#   rss      peak memory of the process in MB -> {"rss_mb": ...}
#   info     of a training step (renyi only)
#            -> {"gmacs": ..., "activations_mb": ..., "micro_batch": ...}
#   peak     GFLOP/s of oneDNN's f32 products, GFLOP of an image (renyi only)
#            -> {"gflops": ..., "gflop": ...}
# The first line is printed after the first run of the engine: {"ready": engine and version}.
import argparse
import ctypes
import json
import os
import signal
import sys
import time

import numpy as np

from engine_base import STEP_DECAY, STEP_RATE, Engine


class OpenVino(Engine):
    hint = "LATENCY"
    precision = {"INFERENCE_PRECISION_HINT": "f32"}

    def __init__(self, a):
        import openvino as ov

        super().__init__(a)
        self.version = "OpenVINO " + ov.__version__.split("-")[0]
        self.compiled = ov.Core().compile_model(a.file, "CPU", {
            "PERFORMANCE_HINT": self.hint, "INFERENCE_NUM_THREADS": a.threads, **self.precision})
        self.request = self.compiled.create_infer_request()

    def once(self):
        return self.request.infer({0: self.x}, share_inputs=True, share_outputs=True)[0]


class OpenVinoInt8(OpenVino):
    """A quantized model; OpenVINO chooses the format of the parts that are not in 8 bits."""

    precision = {}


class OpenVinoBf16(OpenVino):
    precision = {"INFERENCE_PRECISION_HINT": "bf16"}


class OpenVinoThroughput(OpenVino):
    """As many parallel requests as OpenVINO asks for; the time is the total divided by their
    number."""

    hint = "THROUGHPUT"

    def __init__(self, a):
        import openvino as ov

        super().__init__(a)
        self.queue = ov.AsyncInferQueue(self.compiled)
        self.in_flight = len(self.queue)

    def many(self, n):
        start = time.perf_counter()
        for _ in range(n * self.in_flight):
            self.queue.start_async({0: self.x}, share_inputs=True)
        self.queue.wait_all()
        return [(time.perf_counter() - start) / (n * self.in_flight)]


class OnnxRuntime(Engine):
    def __init__(self, a):
        import onnxruntime as ort

        super().__init__(a)
        self.version = "ONNX Runtime " + ort.__version__
        opt = ort.SessionOptions()
        opt.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        opt.intra_op_num_threads = a.threads
        self.session = ort.InferenceSession(a.file, opt, providers=["CPUExecutionProvider"])

    def once(self):
        return self.session.run(None, {"x": self.x})[0]


class PyTorch(Engine):
    """Eager timm model; its attention is torch's fused scaled_dot_product_attention."""

    def __init__(self, a):
        import timm
        import torch
        from export import load_timm

        super().__init__(a)
        self.version = f"PyTorch {torch.__version__.split('+')[0]} (timm {timm.__version__})"
        torch.set_num_threads(a.threads)
        self.torch, self.model = torch, self.rule(load_timm(a.arch, a.file), a.policy)
        self.tensor = torch.from_numpy(self.x)

    def rule(self, vit, policy):
        return vit

    def once(self):
        with self.torch.inference_mode():
            return self.model(self.tensor).numpy()


class PyTorchStep(PyTorch):
    """Forward, backward, fused AdamW; attention is fused as in PyTorch above."""

    is_long = True

    def __init__(self, a):
        super().__init__(a)
        torch = self.torch
        self.model.train()  # timm's ViT has no dropout by default
        decays = lambda name, p: p.ndim > 1 and name not in ("pos_embed", "cls_token")
        groups = [{"params": [p for n, p in self.model.named_parameters() if decays(n, p) == d], "weight_decay": STEP_DECAY * d}
                  for d in (True, False)]
        self.optimizer = torch.optim.AdamW(groups, lr=STEP_RATE, fused=True)
        self.labels = torch.arange(a.batch) % a.classes
        for _ in range(2):
            self.once()
        with torch.inference_mode():
            self.logits = self.model(self.tensor).numpy()
        for g in self.optimizer.param_groups:
            g["lr"] = 0.0

    def once(self):
        loss = self.torch.nn.functional.cross_entropy(self.model(self.tensor), self.labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()


class PyTorchEViT(PyTorch):
    def rule(self, vit, policy):
        from torch_rules import evit_of

        return evit_of(vit, policy)


class PyTorchEViTFused(PyTorch):
    def rule(self, vit, policy):
        from torch_rules import evit_of

        return evit_of(vit, policy, fused=True)


class PyTorchToMe(PyTorch):
    def rule(self, vit, policy):
        from torch_rules import tome_of

        return tome_of(vit, policy)


PEERS = {"openvino": OpenVino, "openvino-throughput": OpenVinoThroughput,
         "onnxruntime": OnnxRuntime, "pytorch": PyTorch, "pytorch-evit": PyTorchEViT,
         "pytorch-evit-fused": PyTorchEViTFused, "pytorch-tome": PyTorchToMe,
         "openvino-int8": OpenVinoInt8, "openvino-bf16": OpenVinoBf16, "pytorch-step": PyTorchStep,
         "onnxruntime-dynamic": OnnxRuntime, "onnxruntime-static": OnnxRuntime}


def engine_of(name):
    """The class of an engine. renyi's package is loaded only in the processes that run it, so that
    its libraries do not meet those of a peer."""
    if not name.startswith("renyi"):
        return PEERS[name]
    import engines_clip
    import engines_renyi

    return {**engines_renyi.ENGINES, **engines_clip.ENGINES}[name]


def peak_rss_mb():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:")) / 1024


def main():
    p = argparse.ArgumentParser()
    p.add_argument("engine")
    p.add_argument("--arch", required=True)
    p.add_argument("--file", required=True, help="weights or exported model, in the engine's format")
    p.add_argument("--policy", default="none", help="for engines that prune")
    p.add_argument("--batch", type=int, required=True)
    p.add_argument("--threads", type=int, required=True)
    p.add_argument("--classes", type=int, default=1000)
    a = p.parse_args()

    # A stopped process would outlive a killed driver, so the kernel is asked to end it too.
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # Libraries may print on fd 1, so the replies go to a copy of it made before.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    engine = engine_of(a.engine)(a)
    if not engine.is_long:
        engine.once()
    print(json.dumps({"ready": engine.version, "in_flight": engine.in_flight}), file=answers)
    for line in sys.stdin:
        command, *args = line.split()
        if command == "run":
            if not engine.is_long:
                engine.once()
            reply = {"ms": [1e3 * t / a.batch for t in engine.many(int(args[0]))]}
        elif command == "logits":
            logits = engine.logits if engine.is_long else engine.once()
            reply = {"logits": np.asarray(logits, np.float64).tolist()}
        elif command == "info":
            reply = engine.info()
        elif command == "peak":
            reply = {"gflops": engine.peak(), "gflop": engine.gflop()}
        else:
            reply = {"rss_mb": peak_rss_mb()}
        print(json.dumps(reply), file=answers)


if __name__ == "__main__":
    sys.exit(main())
