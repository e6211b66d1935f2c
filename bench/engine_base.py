# engine_base.py - what all engines of worker.py share: the input and the timing.
# SPDX-License-Identifier: Apache-2.0
import time

import numpy as np

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
