# engines_renyi.py - engines of worker.py: librenyi.so through ctypes, inference and training steps.
# SPDX-License-Identifier: Apache-2.0
import ctypes
import time

import numpy as np
import renyi_api

STEP_RATE, STEP_DECAY = 1e-4, 0.05  # of the training steps that change the weights


def common_input(batch):
    """The same numbers in every engine: [batch, 3, 224, 224]."""
    return np.random.default_rng(7).standard_normal((batch, 3, 224, 224), dtype=np.float32)


class Engine:
    """`once` returns the logits [batch, classes] of the common input; `version` is printed."""

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

    Error, Options = renyi_api.Error, renyi_api.Options

    class SessionOptions(ctypes.Structure):
        _fields_ = [("struct_size", ctypes.c_uint32), ("max_batch", ctypes.c_uint32),
                    ("n_threads", ctypes.c_uint32), ("policy", ctypes.c_char_p),
                    ("progress", ctypes.c_void_p), ("progress_user", ctypes.c_void_p),
                    ("trace", ctypes.c_uint32), ("output", ctypes.c_int), ("adapt", ctypes.c_void_p)]

    dtype = 0  # RENYI_DTYPE_DEFAULT
    prunes = True  # by the policy of the command line

    def __init__(self, a):
        super().__init__(a)
        self.lib, self.err = ctypes.CDLL(a.library), self.Error()
        self.lib.renyi_version.restype = ctypes.c_char_p
        self.version = "renyi " + self.lib.renyi_version().decode()
        model, self.session = self.open_model(a), ctypes.c_void_p()
        policy = a.policy if self.prunes else "none"
        opt = self.SessionOptions(ctypes.sizeof(self.SessionOptions), a.batch, a.threads, policy.encode(),
                                  adapt=self.adaptation(model))
        self.check(self.lib.renyi_session_new(ctypes.byref(self.session), model, ctypes.byref(opt),
                                              ctypes.byref(self.err)))
        self.logits = np.empty((a.batch, a.classes), np.float32)

    def open_model(self, a):
        model = ctypes.c_void_p()
        opt = self.Options(struct_size=ctypes.sizeof(self.Options), dtype=self.dtype)
        self.check(self.lib.renyi_model_open(ctypes.byref(model), a.file.encode(), ctypes.byref(opt),
                                             ctypes.byref(self.err)))
        return model

    def adaptation(self, model):
        return None

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
    """A training step (renyi_learner of include/renyi/train.h). Two steps that change the weights
    come first, so that the logits show whether they equal the peer's. The timed steps have a rate
    of 0."""

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
