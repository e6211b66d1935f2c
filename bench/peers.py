# peers.py - renyi beside what a user would pick instead: same weights, same input, taking turns.
# SPDX-License-Identifier: Apache-2.0
#
# Started by bench/run, which makes the virtual environment; see bench/README.md for what is measured.
import argparse
import glob
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = {"tiny": 192, "small": 384, "base": 768}  # width; all: 12 blocks, patch 16, 224 pixels
SHORT = {"tiny": "ViT-Ti", "small": "ViT-S", "base": "ViT-B"}
TITLES = {"renyi": "renyi", "openvino": "OpenVINO latency", "openvino-throughput": "OpenVINO throughput",
          "onnxruntime": "ONNX Runtime", "pytorch": "PyTorch"}
MODULES = {"openvino": "openvino", "openvino-throughput": "openvino", "onnxruntime": "onnxruntime",
           "pytorch": "timm"}
TURN_SECONDS = 0.4    # how long one engine works before the next one has its turn
MAX_DIFFERENCE = 1e-3  # of the logits, relative to the largest


def say(text):
    print(text, file=sys.stderr, flush=True)


def gflop(width):
    """Of one image: 2 x the multiply-accumulates of patch embedding, 12 blocks and head."""
    n, d = 197, width
    return 2e-9 * (196 * d * 768 + 12 * (12 * n * d * d + 2 * n * n * d) + 1000 * d)


class Worker:
    """A worker process; asleep (SIGSTOP) unless it is asked something, so that it cannot spin."""

    def __init__(self, engine, case, files, library, log):
        command = [sys.executable, os.path.join(HERE, "worker.py"), engine, "--arch", case.arch,
                   "--file", files[engine], "--batch", str(case.batch), "--threads", str(case.threads),
                   "--library", library]
        self.log = log
        self.started = time.perf_counter()
        with open(log, "w") as err:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=err, text=True)
        ready = self.answer()
        self.first_answer = time.perf_counter() - self.started
        self.version, self.in_flight = ready["ready"], ready["in_flight"]
        self.sleep()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            with open(self.log) as f:
                last = (f.read().strip().splitlines() or ["no message"])[-1]
            raise RuntimeError(last)
        return json.loads(line)

    def ask(self, command):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        reply = self.answer()
        self.sleep()
        return reply

    def sleep(self):
        self.process.send_signal(signal.SIGSTOP)

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.process.kill()
        self.process.communicate()


def busy_seconds():
    """CPU time of the whole machine that was not idle, stolen time included."""
    with open("/proc/stat") as f:
        user, nice, system, _idle, _wait, irq, soft, steal = map(int, f.readline().split()[1:9])
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


class Case:
    """One line of the table: a model, a batch size, a thread count, and its workers."""

    def __init__(self, model, batch, threads):
        self.model, self.batch, self.threads = model, batch, threads
        self.arch = f"vit_{model}_patch16_224"
        self.ms = {}  # engine -> [round][sample] in ms per image
        self.other = []  # share of the machine that others took, per turn
        self.peak = None  # GFLOP/s of oneDNN's f32 matrix products with these threads
        self.executed = None  # GFLOP that renyi really computes per image
        self.rss, self.first_answer, self.difference, self.failed = {}, {}, {}, {}

    def start(self, engines, files, library, work):
        workers = {}
        for engine in engines:
            try:
                workers[engine] = Worker(engine, self, files, library, f"{work}/{engine}.log")
                self.first_answer[engine] = workers[engine].first_answer
            except (RuntimeError, KeyError) as e:
                self.failed[engine] = str(e)
                say(f"  {TITLES[engine]} does not run: {e}")
        return workers

    def compare(self, workers):
        """Largest difference of the logits from the reference, relative to its largest logit."""
        answers = {e: sum(w.ask("logits")["logits"], []) for e, w in workers.items()}
        reference = answers.get("pytorch") or next(iter(answers.values()))
        largest = max(map(abs, reference))
        for engine, got in answers.items():
            self.difference[engine] = max(abs(a - b) for a, b in zip(got, reference)) / largest

    def measure(self, workers, rounds):
        turns = {}
        for engine, worker in workers.items():  # warm-up, and how many iterations fill a turn
            ms = min(worker.ask("run 2")["ms"])
            turns[engine] = max(1, round(TURN_SECONDS * 1e3 / (ms * self.batch * worker.in_flight)))
            self.ms[engine] = []
        order = list(workers)
        for r in range(rounds):
            for engine in order[r % len(order):] + order[:r % len(order)]:
                worker = workers[engine]
                start, busy, own = time.perf_counter(), busy_seconds(), worker.cpu_seconds()
                self.ms[engine].append(worker.ask(f"run {turns[engine]}")["ms"])
                capacity = (time.perf_counter() - start) * os.cpu_count()
                self.other.append((busy_seconds() - busy - worker.cpu_seconds() + own) / capacity)
        for engine, worker in workers.items():
            self.rss[engine] = worker.ask("rss")["rss_mb"]
        if "renyi" in workers:
            answers = [workers["renyi"].ask("peak") for _ in range(3)]
            self.peak, self.executed = statistics.median(a["gflops"] for a in answers), answers[0]["gflop"]

    def median(self, engine):
        return statistics.median(sum(self.ms[engine], []))

    def ratio(self, peer):
        """peer / renyi: of the medians, and the median of the rounds' own ratios."""
        rounds = [statistics.median(p) / statistics.median(r)
                  for p, r in zip(self.ms[peer], self.ms["renyi"])]
        return self.median(peer) / self.median("renyi"), statistics.median(rounds)

    def gflops(self, engine):
        """renyi's own count of what it computes (less than the model's: see its last block), the model's for the others."""
        work = self.executed if engine == "renyi" and self.executed else gflop(MODELS[self.model])
        return work / self.median(engine) * 1e3

    def record(self):
        out = dict(model=self.arch, batch=self.batch, threads=self.threads, failed=self.failed, peak_gflops=self.peak,
                   other_load=statistics.median(self.other) if self.other else None, engines={})
        for engine in self.ms:
            entry = dict(ms_median=self.median(engine), ms_rounds=[statistics.median(r) for r in self.ms[engine]],
                         peak_rss_mb=self.rss[engine], first_answer_s=self.first_answer[engine],
                         difference=self.difference[engine],
                         gflops=self.gflops(engine))
            if engine != "renyi" and "renyi" in self.ms:
                entry["ratio_of_medians"], entry["median_of_ratios"] = self.ratio(engine)
            out["engines"][engine] = entry
        return out


def prepare(a, case, engines):
    """The files each engine reads; made once and kept under build/bench."""
    weights = f"{a.work}/{case.arch}.seed1.safetensors"
    if not os.path.exists(weights):
        subprocess.run([f"{a.build}/renyi", "init", "--arch", case.arch, "--seed", "1", weights],
                       check=True, stdout=subprocess.DEVNULL)
    stem = f"{a.work}/{case.arch}.b{case.batch}"
    files = {"renyi": weights, "pytorch": weights, "onnxruntime": stem + ".onnx",
             "openvino": stem + ".xml", "openvino-throughput": stem + ".xml"}
    for engine, option in (("onnxruntime", "--onnx"), ("openvino", "--ir"), ("openvino-throughput", "--ir")):
        if engine not in engines or newer(files[engine], weights):
            continue
        say(f"  exporting {os.path.basename(files[engine])}")
        done = subprocess.run([sys.executable, os.path.join(HERE, "export.py"), case.arch, weights,
                               str(case.batch), option, files[engine]], stderr=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, text=True)
        if done.returncode != 0:
            say("  export failed: " + (done.stderr.strip().splitlines() or ["?"])[-1])
            del files[engine]
    return files


def newer(path, than):
    return os.path.exists(path) and os.path.getmtime(path) >= os.path.getmtime(than)


def cold_start(a, photo, runs=15):
    """Seconds from starting the program to its exit after the first answer; files in the page cache."""
    weights = f"{a.work}/vit_tiny_patch16_224.seed1.safetensors"
    command = [f"{a.build}/renyi", "classify", "-m", weights, photo]
    times = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        times.append(time.perf_counter() - start)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr else "classify failed")
    return statistics.median(times[1:])


def a_photo(a):
    """--photo, or one of the demo's, or one of the project's drawn pictures."""
    found = sorted(glob.glob(f"{a.build}/demo/photos/*.jpg")) or sorted(glob.glob(f"{HERE}/../assets/*.png"))
    if not a.photo and not found:
        raise RuntimeError("no picture; name one with --photo")
    return a.photo or found[0]


def cpu_model():
    with open("/proc/cpuinfo") as f:
        text = f.read()
    get = lambda key: next((l.split(":", 1)[1].strip() for l in text.splitlines() if l.startswith(key)), "?")
    flags = get("flags").split()
    level = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "no AVX2"
    more = [f for f in ("avx512_vnni", "avx512_bf16", "amx_tile") if f in flags]
    return f"{get('model name')}, family {get('cpu family')} model {get('model')}, {', '.join([level] + more)}, {os.cpu_count()} CPUs"


def report(cases, engines, out):
    shown = [e for e in engines if any(e in c.ms for c in cases)]
    peers = [e for e in shown if e != "renyi"]
    print("| model | batch | threads | " + " | ".join(TITLES[e] for e in shown) + " | fastest peer / renyi | renyi of oneDNN's peak |", file=out)
    print("|---" * (len(shown) + 5) + "|", file=out)
    for c in cases:
        cells, best = [], "-"
        share = f"{100 * c.gflops('renyi') / c.peak:.0f} % of {c.peak:.0f} GFLOP/s" if c.peak else "-"
        for e in shown:
            ratio = f" ({c.ratio(e)[0]:.2f}x)" if e in peers and e in c.ms and "renyi" in c.ms else ""
            cells.append(f"{c.median(e):.2f}{ratio}" if e in c.ms else "-")
        ran = [e for e in peers if e in c.ms]
        if ran and "renyi" in c.ms:
            fastest = min(ran, key=c.median)
            best = "{:.2f}x (rounds {:.2f}x), {}".format(*c.ratio(fastest), TITLES[fastest])
        print(f"| {SHORT[c.model]} | {c.batch} | {c.threads} | " + " | ".join(cells) + f" | {best} | {share} |", file=out)


def run_cases(a, engines):
    cases, versions = [], {}
    grid = [Case(m, b, t) for m in a.models for b in a.batches for t in a.threads]
    for i, case in enumerate(grid):
        say(f"[{i + 1}/{len(grid)}] {SHORT[case.model]} batch {case.batch}, {case.threads} thread(s)")
        workers = case.start(engines, prepare(a, case, engines), a.library, a.work)
        try:
            versions.update({e: w.version for e, w in workers.items()})
            case.compare(workers)
            case.measure(workers, a.rounds)
        finally:
            for w in workers.values():
                w.close()
        say("  " + ", ".join(f"{TITLES[e]} {case.median(e):.2f} ms" for e in case.ms)
            + f"; others took {100 * max(0.0, statistics.median(case.other)):.0f} % of the machine")
        cases.append(case)
    return cases, versions


def arguments():
    p = argparse.ArgumentParser(prog="bench/run", description="renyi beside other engines, ms per image")
    words = lambda allowed: lambda s: [w for w in s.split(",") if w in allowed or p.error(f"{w}: not one of {', '.join(allowed)}")]
    numbers = lambda s: [int(n) for n in s.split(",")]
    p.add_argument("--models", type=words(list(MODELS)), default=list(MODELS), metavar="tiny,small,base")
    p.add_argument("--batches", type=numbers, default=[1, 8], metavar="1,8")
    p.add_argument("--threads", type=numbers, default=[1, 2], metavar="1,2")
    p.add_argument("--rounds", type=int, default=9, help="turns of each engine in each line (9)")
    p.add_argument("--only", type=words(list(TITLES)), default=list(TITLES), metavar="ENGINES", help=", ".join(TITLES))
    p.add_argument("--quick", action="store_true", help="ViT-Ti and ViT-S, 3 rounds")
    p.add_argument("--photo", metavar="FILE", help="for the cold start; else one of the demo's")
    p.add_argument("--json", metavar="FILE", help="everything measured, for machines")
    p.add_argument("--build", default="build", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.quick:
        a.models, a.rounds = [m for m in a.models if m != "base"], min(a.rounds, 3)
    a.work, a.library = f"{a.build}/bench", f"{a.build}/librenyi.so"
    return a


def available(a):
    """Engines that can be imported (or were built); the others are named."""
    from importlib.util import find_spec

    here = [e for e in a.only if (os.path.exists(a.library) if e == "renyi" else find_spec(MODULES[e]))]
    for e in a.only:
        if e not in here:
            say(f"{TITLES[e]} is not installed and is left out")
    return here


def main():
    a = arguments()
    os.makedirs(a.work, exist_ok=True)
    cases, versions = run_cases(a, available(a))
    print(f"{cpu_model()}; Linux {platform.release()}; " + "; ".join(dict.fromkeys(versions.values())))
    print(f"ms per image, median of {a.rounds} rounds taking turns; (x) = peer / renyi\n")
    report(cases, a.only, sys.stdout)

    print()
    worst = {e: max(c.difference[e] for c in cases if e in c.difference) for e in versions}
    print("largest difference of the logits: " + ", ".join(f"{TITLES[e]} {d:.1e}" for e, d in worst.items()))
    result = dict(cpu=cpu_model(), versions=versions, rounds=a.rounds, results=[c.record() for c in cases])
    large = [c for c in cases if c.model == "base"]
    if large:
        rss = {e: max(c.rss[e] for c in large if e in c.rss) for e in versions if any(e in c.rss for c in large)}
        print("peak memory with ViT-B, MB: " + ", ".join(f"{TITLES[e]} {m:.0f}" for e, m in rss.items()))
    if "renyi" in a.only and "tiny" in a.models and os.path.exists(f"{a.build}/renyi"):
        try:
            result["cold_start_s"] = cold_start(a, a_photo(a))
            print(f"cold start, ViT-Ti, program start to exit after the first answer: {result['cold_start_s']:.3f} s")
        except RuntimeError as e:
            say(f"cold start not measured: {e}")
    if a.json:
        with open(a.json, "w") as f:
            json.dump(result, f, indent=1)
    bad = [e for e, d in worst.items() if not d <= MAX_DIFFERENCE]
    if bad:
        sys.exit(f"the engines do not agree within {MAX_DIFFERENCE:g}: " + ", ".join(TITLES[e] for e in bad))
    return 0


if __name__ == "__main__":
    sys.exit(main())
