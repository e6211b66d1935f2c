# lvlm_speed.py - part of lvlm.py: prefill and decode of renyi and llama.cpp at the same width of
# weights, and the share of the memory bandwidth.
# SPDX-License-Identifier: Apache-2.0
import math
import statistics

from lvlm_files import LAYERS
from lvlm_turns import Load, lm_worker
from turns import say, verdict

LEAST_PEER = 1.05    # of llama.cpp's speed
LEAST_MEMORY = 0.70  # of the bandwidth, in decode
GGUF_TYPES = {"int8": "Q8_0", "int4": "Q4_0"}
# Both engines round the same weights, in different ways. At 8 bits their logits must be similar.
# At 4 bits random layers amplify the difference, so both are compared with renyi's logits at 8
# bits: renyi may not be farther from them than llama.cpp is.
LEAST_COSINE, SLACK = 0.98, 0.02
READ_PASSES = 16
median = statistics.median


def cosine(x, y):
    dot = lambda a, b: math.fsum(p * q for p, q in zip(a, b))
    return dot(x, y) / math.sqrt(dot(x, x) * dot(y, y))


class Width:
    """One width of weights: the engines that ran, and the figures of every round."""

    def __init__(self, name):
        self.name, self.load = name, Load()
        self.prefill, self.decode = {}, {}  # engine -> ms of each round: of the prompt, of a token
        self.bandwidth, self.info, self.versions = [], {}, {}
        self.logits, self.failed = {}, {}

    def start(self, a):
        engines = {"renyi": a.files.quantized}
        if a.has_peer:
            engines["llama.cpp"] = a.files.gguf
        workers = {}
        for engine, file in engines.items():
            try:
                workers[engine] = lm_worker(engine, a, file=file(self.name))
                self.versions[engine] = workers[engine].version
            except RuntimeError as e:
                self.failed[engine] = str(e)
                say(f"*** {engine} DOES NOT RUN: {e} ***")
        return workers

    def similarity(self, engine, other, of="renyi"):
        """Cosine of the logits of two runs, or None if one is missing."""
        x, y = self.logits.get(engine), other and other.logits.get(of)
        return cosine(x, y) if x and y else None

    def measure(self, workers, memory, a):
        """Each round: prompts, tokens, bandwidth; the order of engines alternates. The first
        warms up."""
        for r in range(-1, a.rounds):
            order = list(workers)[::1 if r % 2 else -1]
            for command, figures in ((f"prefill {a.rows}", self.prefill), (f"decode {a.tokens}", self.decode)):
                for engine in order:
                    with self.load.of(workers[engine]):
                        ms = workers[engine].ask(command)["ms"]
                    if r >= 0:
                        figures.setdefault(engine, []).append(ms)
            with self.load.of(memory):
                read = memory.ask(f"read {READ_PASSES}")["bytes_per_second"]
            if r >= 0:
                self.bandwidth.append(read)
        self.info = {engine: w.ask("info") for engine, w in workers.items()}

    def share(self):
        """Share of the bandwidth that decode reads weights with; median of the ratios of each
        round."""
        size = self.info["renyi"]["bytes_per_token"]
        return median(size * 1e3 / ms / b for ms, b in zip(self.decode["renyi"], self.bandwidth))

    def lead(self, figures):
        """llama.cpp's time / ours, median of the ratios of each round; None if it did not run."""
        if len(figures) < 2:
            return None
        return median(p / r for p, r in zip(figures["llama.cpp"], figures["renyi"]))

    def record(self):
        return dict(weights=self.name, versions=self.versions, prefill_ms=self.prefill, decode_ms=self.decode, info=self.info,
                    bandwidth=self.bandwidth, bandwidth_share=self.share() if "renyi" in self.decode else None,
                    prefill_lead=self.lead(self.prefill), decode_lead=self.lead(self.decode), cosine=self.similarity("llama.cpp", self),
                    failed=self.failed, other_load=self.load.median())


def run_width(name, a):
    width = Width(name)
    workers = width.start(a)
    if not workers:
        return width
    memory = lm_worker("bandwidth", a)
    try:
        width.logits = {engine: w.ask("logits")["logits"] for engine, w in workers.items()}
        width.measure(workers, memory, a)
    finally:
        for w in [*workers.values(), memory]:
            w.close()
    return width


def report(widths, a):
    print("\n| weights | engine | prefill tokens/s | decode tokens/s | GB of weights a token | of the bandwidth | peak MB |\n|---|---|--:|--:|--:|--:|--:|")
    for w in widths:
        for engine in w.decode:
            size, share = w.info[engine].get("bytes_per_token"), "-"
            if engine == "renyi":
                share = f"{100 * w.share():.0f} % of {median(w.bandwidth) * 1e-9:.1f} GB/s"
            weights = w.name if engine == "renyi" else GGUF_TYPES[w.name]
            print(f"| {weights} | {engine} | {1e3 * a.rows / median(w.prefill[engine]):.2f} | {1e3 / median(w.decode[engine]):.2f} "
                  f"| {f'{size * 1e-9:.2f}' if size else '-'} | {share} | {w.info[engine]['rss_mb']:.0f} |")


def targets(w):
    """(name, figure, minimum); figure None = not measured."""
    peer = f"llama.cpp {GGUF_TYPES[w.name]} / renyi {w.name}, time of "
    return [(peer + "prefill", w.lead(w.prefill), LEAST_PEER), (peer + "decode", w.lead(w.decode), LEAST_PEER),
            (f"renyi {w.name}: decode of the read bandwidth", w.share(), LEAST_MEMORY)]


def report_targets(widths):
    print("\n| | | wanted |\n|---|--:|---|")
    for w in widths:
        for what, figure, least in targets(w) if "renyi" in w.decode else []:
            text, reached = ("not measured", "-") if figure is None else (f"{figure:.2f}", verdict(figure >= least, w.load.median()))
            print(f"| {what} | {text} | at least {least:.2f} {reached} |")


def compare(w, at_8_bits):
    """(text, whether the logits agree), or None if they cannot be compared."""
    if w.name == "int8":
        like = w.similarity("llama.cpp", w)
        return None if like is None else (f"int8: cosine of renyi's and llama.cpp's logits {like:.4f}", like >= LEAST_COSINE)
    ours, theirs = (w.similarity(engine, at_8_bits) for engine in ("renyi", "llama.cpp"))
    if ours is None or theirs is None:
        return None
    return f"{w.name}: cosine with renyi's logits at int8: renyi's {ours:.4f}, llama.cpp's {theirs:.4f}", ours >= theirs - SLACK


def report_answers(widths):
    """Prints the comparison and returns the faults."""
    out = [f"{engine}, {w.name}, does not run: {why}" for w in widths for engine, why in w.failed.items()]
    at_8_bits = next((w for w in widths if w.name == "int8"), None)
    for text, is_right in filter(None, (compare(w, at_8_bits) for w in widths)):
        print("\n" + text)
        out += [] if is_right else [f"renyi and llama.cpp do not compute the same: {text}"]
    return out


def run(a):
    """Runs everything. Returns measurements and faults."""
    widths = []
    for name in a.widths:
        say(f"prefill and decode: {name}")
        widths.append(run_width(name, a))
    print(f"\nThe language model alone, {a.layers} of {LAYERS} layers, {a.threads} thread(s): a prompt of {a.rows} ids, and {a.tokens} ids one at a time; "
          f"medians of {a.rounds} rounds in turn")
    print("; ".join(dict.fromkeys(v for w in widths for v in w.versions.values())))
    if not a.has_peer:
        print("**llama.cpp is not installed here: left out**")
    report(widths, a)
    report_targets(widths)
    faults = report_answers(widths)
    print(f"\nothers took {100 * max(w.load.median() for w in widths):.0f} % of the machine")
    return [w.record() for w in widths], faults
