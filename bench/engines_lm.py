# engines_lm.py - engines of lm_worker.py: llama.cpp's language model, and reading memory. renyi is in
# engines_lvlm.py.
# SPDX-License-Identifier: Apache-2.0
#
# Every timed step is one call into C for a prompt or a token; Python adds microseconds to
# milliseconds.
import ctypes
import math
import os
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CONTEXT = 1024  # enough for the prompts; both engines compute up to 512 rows at a time
# the prompt whose logits are compared
PROBE = [1, 319, 13563, 1546, 263, 12758, 1404, 322, 385, 23116, 21082, 20255]


def tokens_of(n):
    """Ids spread over the vocabulary; their meaning does not matter."""
    return [(7919 * i + 11) % 31999 + 1 for i in range(n)]


class LanguageModel:
    """`clear`, then `feed` ids; the logits of the last one are computed each time."""

    def prefill(self, n):
        """ms of a prompt of n ids from an empty context."""
        ids = self.pack(tokens_of(n))
        self.clear()
        start = time.perf_counter()
        self.feed(ids)
        return 1e3 * (time.perf_counter() - start)

    def decode(self, n):
        """Mean ms of n ids, one at a time from an empty context, as llama-bench's tg."""
        ids = [self.pack([t]) for t in tokens_of(n)]
        self.clear()
        start = time.perf_counter()
        for one in ids:
            self.feed(one)
        return 1e3 * (time.perf_counter() - start) / n

    def logits(self):
        self.clear()
        self.feed(self.pack(PROBE))
        out = self.last_logits()
        if not all(map(math.isfinite, out)):
            raise RuntimeError("logits are not numbers")
        return out


class LlamaCpp(LanguageModel):
    """llama.cpp by llama-cpp-python's C functions: llama_decode on a GGUF, with default settings
    except threads and context."""

    def __init__(self, a):
        import llama_cpp as llama

        self.llama, self.a = llama, a
        llama.llama_backend_init()
        options = llama.llama_model_default_params()
        options.n_gpu_layers = 0
        self.model = llama.llama_model_load_from_file(a.file.encode(), options)
        if not self.model:
            raise RuntimeError(f"llama.cpp cannot load {a.file}")
        options = llama.llama_context_default_params()
        options.n_ctx, options.n_batch, options.n_ubatch = CONTEXT, 512, 512
        options.n_threads = options.n_threads_batch = a.threads
        self.context = llama.llama_init_from_model(self.model, options)
        if not self.context:
            raise RuntimeError("llama.cpp cannot make a context")
        system = " ".join(llama.llama_print_system_info().decode().split())
        self.version = f"llama-cpp-python {llama.__version__} ({system})"

    def pack(self, ids):
        return (self.llama.llama_token * len(ids))(*ids)

    def clear(self):
        self.llama.llama_memory_clear(self.llama.llama_get_memory(self.context), False)

    def feed(self, ids):
        status = self.llama.llama_decode(self.context, self.llama.llama_batch_get_one(ids, len(ids)))
        self.llama.llama_synchronize(self.context)
        if status != 0:
            raise RuntimeError(f"llama_decode fails: {status}")

    def last_logits(self):
        return self.llama.llama_get_logits_ith(self.context, -1)[:self.vocab()]

    def vocab(self):
        return self.llama.llama_vocab_n_tokens(self.llama.llama_model_get_vocab(self.model))

    def info(self):
        return dict(layers=self.llama.llama_model_n_layer(self.model))


class Bandwidth:
    """bandwidth.c: how fast the threads read a buffer much larger than the caches."""

    size = 1 << 30

    def __init__(self, a):
        library = f"{a.scratch}/bandwidth.so"
        subprocess.run([os.environ.get("CC", "cc"), "-O3", "-march=native", "-pthread", "-shared", "-fPIC",
                        f"{HERE}/memory/bandwidth.c", "-o", library], check=True)
        self.lib, self.threads = ctypes.CDLL(library), a.threads
        self.lib.bandwidth_buffer.restype = ctypes.c_void_p
        self.lib.bandwidth_read.restype = ctypes.c_double
        self.buffer = self.lib.bandwidth_buffer(ctypes.c_size_t(self.size))
        if not self.buffer:
            raise RuntimeError("no memory for the buffer")
        self.version = "bandwidth.c"

    def read(self, passes):
        """Bytes per second."""
        out = self.lib.bandwidth_read(ctypes.c_void_p(self.buffer), ctypes.c_size_t(self.size),
                                      ctypes.c_uint(self.threads), ctypes.c_uint(passes))
        if not out > 0.0:
            raise RuntimeError("threads do not start")
        return out

    def info(self):
        return dict(buffer_bytes=self.size)


ENGINES = {"llama.cpp": LlamaCpp, "bandwidth": Bandwidth}
