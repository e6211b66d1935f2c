# lvlm_turns.py - workers of lvlm.py, and the load by other processes while they worked.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import statistics
import sys
import time

from turns import HERE, Process, busy_seconds


def lm_worker(engine, a, **options):
    """Starts lm_worker.py; keyword arguments become its options."""
    words = dict(options, threads=a.threads, scratch=a.scratch)
    command = [sys.executable, os.path.join(HERE, "lm_worker.py"), engine]
    for name, value in words.items():
        command += ["--" + name.replace("_", "-"), str(value)]
    return Process(command, f"{a.scratch}/{engine}.log")


class Load:
    """Share of the machine that other processes took, turn by turn."""

    def __init__(self):
        self.turns = []

    @contextlib.contextmanager
    def of(self, worker):
        start, busy, own = time.perf_counter(), busy_seconds(), worker.cpu_seconds()
        yield
        capacity = (time.perf_counter() - start) * os.cpu_count()
        self.turns.append((busy_seconds() - busy - worker.cpu_seconds() + own) / capacity)

    def median(self):
        return max(0.0, statistics.median(self.turns)) if self.turns else 0.0
