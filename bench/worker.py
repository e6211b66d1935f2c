# worker.py - one engine, one model, one batch size, one thread count, in a process of its own.
# SPDX-License-Identifier: Apache-2.0
#
# Commands on stdin, one JSON line back for each:
#   run N    N timed iterations after one that is not timed (training steps, of seconds: without) -> {"ms": [per image, ...]}
#   logits   the answer to the common input                 -> {"logits": [[...], ...]}
#   rss      peak memory of the process in MB               -> {"rss_mb": ...}
#   info     what a training step takes (renyi's only)      -> {"gmacs": ..., "activations_mb": ..., "micro_batch": ...}
#   peak     GFLOP/s of oneDNN's f32 products, GFLOP of an image (renyi only) -> {"gflops": ..., "gflop": ...}
# The first line comes unasked when the engine has answered once: {"ready": engine and version}.
import argparse
import ctypes
import json
import os
import signal
import sys
import time

import numpy as np


def common_input(batch):
    """The same numbers in every engine: [batch, 3, 224, 224]."""
    return np.random.default_rng(7).standard_normal((batch, 3, 224, 224), dtype=np.float32)


class Engine:
    """`once` answers the common input with logits [batch, classes]; `version` is what to print."""

    in_flight = 1  # requests that run at the same time in `many`
    is_long = False  # an iteration warms itself up

    def __init__(self, a):
        self.x, self.threads = common_input(a.batch), a.threads

    def many(self, n):
        """Seconds of each of n iterations."""
        out = []
        for _ in range(n):
            start = time.perf_counter()
            self.once()
            out.append(time.perf_counter() - start)
        return out


class Renyi(Engine):
    """librenyi.so through ctypes; the structs are those of include/renyi/renyi.h."""

    class Error(ctypes.Structure):
        _fields_ = [("code", ctypes.c_int), ("offset", ctypes.c_int64), ("message", ctypes.c_char * 496)]

    class Options(ctypes.Structure):
        _fields_ = [("struct_size", ctypes.c_uint32), ("cpu", ctypes.c_int), ("image_size", ctypes.c_uint32),
                    ("limits", ctypes.c_uint64 * 5), ("allocator", ctypes.c_void_p * 3),
                    ("progress", ctypes.c_void_p), ("progress_user", ctypes.c_void_p), ("dtype", ctypes.c_int)]

    class SessionOptions(ctypes.Structure):
        _fields_ = [("struct_size", ctypes.c_uint32), ("max_batch", ctypes.c_uint32),
                    ("n_threads", ctypes.c_uint32), ("policy", ctypes.c_char_p),
                    ("progress", ctypes.c_void_p), ("progress_user", ctypes.c_void_p),
                    ("trace", ctypes.c_uint32)]

    dtype = 0  # RENYI_DTYPE_DEFAULT
    prunes = True  # by the policy of the command line

    def __init__(self, a):
        super().__init__(a)
        self.lib, self.err = ctypes.CDLL(a.library), self.Error()
        self.lib.renyi_version.restype = ctypes.c_char_p
        self.version = "renyi " + self.lib.renyi_version().decode()
        model, self.session = ctypes.c_void_p(), ctypes.c_void_p()
        opt = self.Options(struct_size=ctypes.sizeof(self.Options), dtype=self.dtype)
        self.check(self.lib.renyi_model_open(ctypes.byref(model), a.file.encode(), ctypes.byref(opt),
                                             ctypes.byref(self.err)))
        policy = a.policy if self.prunes else "none"
        opt = self.SessionOptions(ctypes.sizeof(self.SessionOptions), a.batch, a.threads, policy.encode())
        self.check(self.lib.renyi_session_new(ctypes.byref(self.session), model, ctypes.byref(opt),
                                              ctypes.byref(self.err)))
        self.logits = np.empty((a.batch, a.classes), np.float32)

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.err.message.decode())

    def once(self):
        self.check(self.lib.renyi_run_tensor(
            self.session, self.x.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint32(len(self.x)),
            self.logits.ctypes.data_as(ctypes.c_void_p), ctypes.byref(self.err)))
        return self.logits

    def peak(self):
        gflops = ctypes.c_double()
        self.check(self.lib.renyi_measure_peak(ctypes.c_uint32(self.threads), ctypes.byref(gflops),
                                               ctypes.byref(self.err)))
        return gflops.value

    def gflop(self):
        self.lib.renyi_session_macs.restype = ctypes.c_double
        return 2e-9 * self.lib.renyi_session_macs(self.session)


class RenyiF32(Renyi):
    dtype, prunes = 1, False  # enum renyi_dtype


class RenyiBf16(Renyi):
    dtype, prunes = 2, False


class RenyiInt8(Renyi):
    dtype, prunes = 3, False


class RenyiInt8Pruned(Renyi):
    dtype = 3


class RenyiStep(Engine):
    """A training step through include/renyi/learner.h. Two steps that change the weights come first, so that the logits
    tell whether they were the same as the peer's; the timed ones have a rate of 0 and do everything else."""

    class Options(ctypes.Structure):
        _fields_ = [("struct_size", ctypes.c_uint32), ("micro_batch", ctypes.c_uint32), ("n_threads", ctypes.c_uint32),
                    ("image_size", ctypes.c_uint32), ("dtype", ctypes.c_int), ("cpu", ctypes.c_int),
                    ("checkpoint_activations", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                    ("policy", ctypes.c_char_p), ("weight_decay", ctypes.c_double), ("clip", ctypes.c_double),
                    ("smoothing", ctypes.c_double), ("allocator", ctypes.c_void_p * 3)]

    class Info(ctypes.Structure):
        _fields_ = [("image_size", ctypes.c_uint32), ("n_tokens", ctypes.c_uint32), ("n_classes", ctypes.c_uint32),
                    ("micro_batch", ctypes.c_uint32), ("n_params", ctypes.c_uint64), ("bytes_activations", ctypes.c_uint64),
                    ("bytes_parameters", ctypes.c_uint64), ("macs_forward", ctypes.c_double), ("policy", ctypes.c_char * 1024)]

    prunes = checkpoints = False
    is_long = True

    def __init__(self, a):
        super().__init__(a)
        self.lib, self.err, self.learner = ctypes.CDLL(a.library), Renyi.Error(), ctypes.c_void_p()
        self.lib.renyi_version.restype = ctypes.c_char_p
        self.version = "renyi " + self.lib.renyi_version().decode()
        policy = (a.policy if self.prunes else "none").encode()
        opt = self.Options(struct_size=ctypes.sizeof(self.Options), n_threads=a.threads, policy=policy,
                           weight_decay=STEP_DECAY, checkpoint_activations=self.checkpoints)
        self.check(self.lib.renyi_learner_new(ctypes.byref(self.learner), a.file.encode(), ctypes.byref(opt), ctypes.byref(self.err)))
        self.labels = np.arange(a.batch, dtype=np.uint32) % a.classes
        self.logits = np.empty((a.batch, a.classes), np.float32)
        for _ in range(2):
            self.step(STEP_RATE)
        self.check(self.lib.renyi_learner_forward(self.learner, self.x.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint32(a.batch),
                                                  self.logits.ctypes.data_as(ctypes.c_void_p), ctypes.byref(self.err)))

    check = Renyi.check

    def step(self, rate):
        self.check(self.lib.renyi_learner_step(
            self.learner, self.x.ctypes.data_as(ctypes.c_void_p), self.labels.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_uint32(len(self.x)), ctypes.c_double(rate), None, ctypes.byref(self.err)))

    def once(self):
        self.step(0.0)

    def info(self):
        info = self.Info()
        self.lib.renyi_learner_get_info(self.learner, ctypes.byref(info))
        return {"gmacs": info.macs_forward * 1e-9, "activations_mb": info.bytes_activations * 1e-6, "micro_batch": info.micro_batch}


class RenyiStepPruned(RenyiStep):
    prunes = True


class RenyiStepCheckpointed(RenyiStep):
    checkpoints = True


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
    """A quantised model; what is not in 8 bits is in whatever OpenVINO thinks best here."""

    precision = {}


class OpenVinoThroughput(OpenVino):
    """As many requests in flight as OpenVINO says it wants; time is the whole divided by the number."""

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
    """Forward, backward, fused AdamW; attention is the fused one, as in PyTorch above."""

    is_long = True

    def __init__(self, a):
        super().__init__(a)
        torch = self.torch
        self.model.train()  # timm's ViT has no dropout of its own
        decays = lambda name, p: p.ndim > 1 and name not in ("pos_embed", "cls_token")
        groups = [{"params": [p for n, p in self.model.named_parameters() if decays(n, p) == d], "weight_decay": STEP_DECAY * d}
                  for d in (True, False)]
        self.optimiser = torch.optim.AdamW(groups, lr=STEP_RATE, fused=True)
        self.labels = torch.arange(a.batch) % a.classes
        for _ in range(2):
            self.once()
        with torch.inference_mode():
            self.logits = self.model(self.tensor).numpy()
        for g in self.optimiser.param_groups:
            g["lr"] = 0.0

    def once(self):
        loss = self.torch.nn.functional.cross_entropy(self.model(self.tensor), self.labels)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()


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


STEP_RATE, STEP_DECAY = 1e-4, 0.05  # of the training steps that change the weights

ENGINES = {"renyi": Renyi, "openvino": OpenVino, "openvino-throughput": OpenVinoThroughput,
           "onnxruntime": OnnxRuntime, "pytorch": PyTorch, "pytorch-evit": PyTorchEViT,
           "pytorch-evit-fused": PyTorchEViTFused, "pytorch-tome": PyTorchToMe,
           "renyi-f32": RenyiF32, "renyi-bf16": RenyiBf16, "renyi-int8": RenyiInt8,
           "renyi-int8-pruned": RenyiInt8Pruned, "openvino-int8": OpenVinoInt8,
           "renyi-step": RenyiStep, "renyi-step-pruned": RenyiStepPruned, "renyi-step-checkpointed": RenyiStepCheckpointed,
           "pytorch-step": PyTorchStep,
           "onnxruntime-dynamic": OnnxRuntime, "onnxruntime-static": OnnxRuntime}


def peak_rss_mb():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:")) / 1024


def main():
    p = argparse.ArgumentParser()
    p.add_argument("engine", choices=ENGINES)
    p.add_argument("--arch", required=True)
    p.add_argument("--file", required=True, help="weights or exported model, as the engine wants it")
    p.add_argument("--library", help="librenyi.so")
    p.add_argument("--policy", default="none", help="of the engines that prune")
    p.add_argument("--batch", type=int, required=True)
    p.add_argument("--threads", type=int, required=True)
    p.add_argument("--classes", type=int, default=1000)
    a = p.parse_args()

    # A stopped process would outlive a driver that was killed: ask the kernel to end it too.
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # Libraries print what they like on fd 1; the answers go out on a copy of it made before.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    engine = ENGINES[a.engine](a)
    if not engine.is_long:
        engine.once()
    print(json.dumps({"ready": engine.version, "in_flight": engine.in_flight}), file=answers)
    for line in sys.stdin:
        word, *args = line.split()
        if word == "run":
            if not engine.is_long:
                engine.once()
            reply = {"ms": [1e3 * t / a.batch for t in engine.many(int(args[0]))]}
        elif word == "logits":
            logits = engine.logits if engine.is_long else engine.once()
            reply = {"logits": np.asarray(logits, np.float64).tolist()}
        elif word == "info":
            reply = engine.info()
        elif word == "peak":
            reply = {"gflops": engine.peak(), "gflop": engine.gflop()}
        else:
            reply = {"rss_mb": peak_rss_mb()}
        print(json.dumps(reply), file=answers)


if __name__ == "__main__":
    sys.exit(main())
