# engines_renyi.py - engines of worker.py: renyi's Python package, inference and training steps.
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import renyi
from renyi._c import char, pointer, struct
from renyi._renyi import ffi, lib
from renyi.errors import check

from engine_base import STEP_DECAY, STEP_RATE, Engine


class Renyi(Engine):
    """A session of the Python package; a run is one call of the C library."""

    dtype = None  # that of the file
    prunes = True  # by the policy of the command line

    def __init__(self, a):
        super().__init__(a)
        self.version = f"renyi {renyi.__version__}"
        model = self.open_model(a)
        self.session = model.session(a.policy if self.prunes else None, a.batch, a.threads, adapt=self.adaptation(model))

    def open_model(self, a):
        return renyi.Model(a.file, dtype=self.dtype, image_size=self.x.shape[-1])

    def adaptation(self, model):
        return None

    def once(self):
        return self.session.run_tensor(self.x)

    def peak(self):
        gflops, err = ffi.new("double *"), ffi.new("renyi_error *")
        check(lib.renyi_measure_peak(self.threads, gflops, err), err)
        return gflops[0]

    def gflop(self):
        return 2e-9 * self.session.macs


class RenyiStreams(Renyi):
    """Two batches in flight, as OpenVINO's throughput hint has; the time is that of both divided by
    their number."""

    in_flight = 2

    def __init__(self, a):
        Engine.__init__(self, a)
        self.version = f"renyi {renyi.__version__}"
        self.in_flight = min(self.in_flight, a.threads)
        self.both = np.concatenate([self.x] * self.in_flight)
        self.session = self.open_model(a).session(None, len(self.both), a.threads, streams=self.in_flight)

    def once(self):
        return self.session.run_tensor(self.both)[:len(self.x)]

    def many(self, n):
        return [seconds / self.in_flight for seconds in super().many(n)]


class RenyiF32(Renyi):
    dtype, prunes = "f32", False


class RenyiBf16(Renyi):
    dtype, prunes = "bf16", False


class RenyiInt8(Renyi):
    dtype, prunes = "int8", False


class RenyiInt8Pruned(Renyi):
    dtype = "int8"


class RenyiStep(Engine):
    """A training step (renyi_learner of include/renyi/train.h). Two steps that change the weights
    come first, so that the logits show whether they equal the peer's. The timed steps have a rate
    of 0."""

    prunes = checkpoints = False
    is_long = True

    def __init__(self, a):
        super().__init__(a)
        self.version = f"renyi {renyi.__version__}"
        self.err, out = ffi.new("renyi_error *"), ffi.new("renyi_learner **")
        policy = char(a.policy if self.prunes else "none", "policy")
        opt = struct("renyi_learner_options", n_threads=a.threads, policy=policy, weight_decay=STEP_DECAY,
                     checkpoint_activations=int(self.checkpoints))
        check(lib.renyi_learner_new(out, a.file.encode(), opt, self.err), self.err)
        self.learner = ffi.gc(out[0], lib.renyi_learner_free)
        self.labels = np.arange(a.batch, dtype=np.uint32) % a.classes
        self.logits = np.empty((a.batch, a.classes), np.float32)
        for _ in range(2):
            self.step(STEP_RATE)
        check(lib.renyi_learner_forward(self.learner, pointer(self.x, "float *"), a.batch, pointer(self.logits, "float *"), self.err),
              self.err)

    def step(self, rate):
        check(lib.renyi_learner_step(self.learner, pointer(self.x, "float *"), pointer(self.labels, "uint32_t *"), len(self.x), rate,
                                     ffi.NULL, self.err), self.err)

    def once(self):
        self.step(0.0)

    def info(self):
        info = ffi.new("renyi_learner_info *")
        lib.renyi_learner_get_info(self.learner, info)
        return {"gmacs": info.macs_forward * 1e-9, "activations_mb": info.bytes_activations * 1e-6, "micro_batch": info.micro_batch}


class RenyiStepPruned(RenyiStep):
    prunes = True


class RenyiStepCheckpointed(RenyiStep):
    checkpoints = True


ENGINES = {"renyi": Renyi, "renyi-streams": RenyiStreams, "renyi-f32": RenyiF32, "renyi-bf16": RenyiBf16, "renyi-int8": RenyiInt8,
           "renyi-int8-pruned": RenyiInt8Pruned, "renyi-step": RenyiStep, "renyi-step-pruned": RenyiStepPruned,
           "renyi-step-checkpointed": RenyiStepCheckpointed}
