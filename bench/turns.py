# turns.py - lets engines take turns on one machine: their processes and measurements.
# SPDX-License-Identifier: Apache-2.0
#
# See bench/README.md for what is measured and why. peers.py and prune.py print the tables.
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SHORT = {"tiny": "ViT-Ti", "small": "ViT-S", "base": "ViT-B", "large": "ViT-L"}
TITLES = {"renyi": "renyi", "renyi-streams": "renyi --streams 2", "openvino": "OpenVINO latency", "openvino-throughput": "OpenVINO throughput",
          "onnxruntime": "ONNX Runtime", "pytorch": "PyTorch", "pytorch-evit": "PyTorch EViT",
          "pytorch-evit-fused": "PyTorch EViT, fused attention", "pytorch-tome": "PyTorch ToMe",
          "renyi-f32": "renyi f32", "renyi-bf16": "renyi bf16", "renyi-int8": "renyi int8", "renyi-int8-pruned": "renyi int8 pruned",
          "openvino-int8": "OpenVINO int8", "onnxruntime-dynamic": "ONNX Runtime int8 dynamic",
          "onnxruntime-static": "ONNX Runtime int8 static", "renyi-step": "renyi step", "renyi-step-pruned": "renyi pruned step",
          "renyi-step-checkpointed": "renyi step, activations computed twice", "pytorch-step": "PyTorch step",
          "openvino-bf16": "OpenVINO bf16", "renyi-condense": "renyi condensing", "renyi-tca": "renyi condensing and adapting"}
QUIET = 0.05           # more load by other processes makes a figure meaningless
TURN_SECONDS = 0.4     # length of a turn of one engine


def say(text):
    print(text, file=sys.stderr, flush=True)


def verdict(reached, other_load):
    """Of a target; `?` under load by other processes, which slows some engines more than
    others."""
    return "?" if other_load > QUIET else "yes" if reached else "NO"


def busy_seconds():
    """CPU time of the whole machine that was not idle, including stolen time; without the
    neighbour's."""
    with open("/proc/stat") as f:
        user, nice, system, _idle, _wait, irq, soft, steal = map(int, f.readline().split()[1:9])
    busy = (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")
    return busy - sum(map(cpu_seconds, neighbours))


def cpu_seconds(process):
    with open(f"/proc/{process.pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


neighbours = []  # the running process of neighbour.c, or nothing


@contextlib.contextmanager
def host(a):
    """The condition that a.neighbour asks for: `with host(a):` measures beside neighbour.c."""
    if not a.neighbour:
        yield
        return
    program = f"{a.work}/neighbour"
    subprocess.run([os.environ.get("CC", "cc"), "-O2", f"{HERE}/memory/neighbour.c", "-o", program], check=True)
    process = subprocess.Popen([program], stdout=subprocess.PIPE, text=True)
    try:
        if not process.stdout.readline():
            raise RuntimeError("the neighbour does not run")
        neighbours.append(process)
        yield
    finally:
        neighbours.clear()
        process.kill()
        process.communicate()


def condition(a):
    return "neighbour" if a.neighbour else "quiet"


class Process:
    """A worker process; stopped (SIGSTOP) unless it has a command, so that it cannot spin."""

    def __init__(self, command, log):
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
            raise RuntimeError(last.removeprefix("RuntimeError: "))
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
        return cpu_seconds(self.process)

    def close(self):
        self.process.kill()
        self.process.communicate()


class Worker(Process):
    """worker.py with one engine."""

    def __init__(self, engine, case, files, log):
        super().__init__([sys.executable, os.path.join(HERE, "worker.py"), engine, "--arch", case.arch,
                          "--file", files[engine], "--batch", str(case.batch), "--threads", str(case.threads),
                          "--policy", case.policy, "--classes", str(case.outputs)], log)


class Case:
    """One row of a table: model, batch size, number of threads, policy, and the engines that ran
    it."""

    def __init__(self, model, batch, threads, policy="none", arch=None, outputs=1000):
        self.model, self.batch, self.threads, self.policy = model, batch, threads, policy
        self.arch, self.outputs = arch or f"vit_{model}_patch16_224", outputs
        self.ms = {}  # engine -> [round][sample] in ms per image
        self.turns = {}  # engine -> iterations of a turn
        self.other = []  # share of the machine that other processes took, per turn
        self.peak = None  # GFLOP/s of oneDNN's f32 matrix products with these threads
        self.executed = None  # GFLOP that renyi computes per image
        self.rss, self.first_answer, self.difference, self.failed = {}, {}, {}, {}

    def start(self, engines, files, work):
        workers = {}
        for engine in engines:
            try:
                workers[engine] = Worker(engine, self, files, f"{work}/{engine}.log")
                self.first_answer[engine] = workers[engine].first_answer
            except (RuntimeError, KeyError) as e:
                self.failed[engine] = str(e)
                say(f"  {TITLES[engine]} does not run: {e}")
        return workers

    def compare(self, workers):
        """Largest difference of the logits from the reference, relative to its largest logit."""
        answers = {e: sum(w.ask("logits")["logits"], []) for e, w in workers.items()}
        if not answers:
            return
        reference = answers.get("pytorch") or next(iter(answers.values()))
        largest = max(map(abs, reference))
        for engine, got in answers.items():
            self.difference[engine] = max(abs(a - b) for a, b in zip(got, reference)) / largest

    def warm_up(self, workers):
        """Also finds how many iterations fill a turn."""
        for engine, worker in workers.items():
            ms = min(worker.ask("run 2")["ms"])
            self.turns[engine] = max(1, round(TURN_SECONDS * 1e3 / (ms * self.batch * worker.in_flight)))
            self.ms[engine] = []

    def measure(self, workers, rounds):
        self.warm_up(workers)
        for r in range(rounds):
            self.round(workers, r)
        self.finish(workers)

    def round(self, workers, r):
        """Every engine has its turn; the order rotates."""
        order = list(workers)
        for engine in order[r % len(order):] + order[:r % len(order)] if order else []:
            worker = workers[engine]
            start, busy, own = time.perf_counter(), busy_seconds(), worker.cpu_seconds()
            self.ms[engine].append(worker.ask(f"run {self.turns[engine]}")["ms"])
            capacity = (time.perf_counter() - start) * os.cpu_count()
            self.other.append((busy_seconds() - busy - worker.cpu_seconds() + own) / capacity)

    def finish(self, workers):
        for engine, worker in workers.items():
            self.rss[engine] = worker.ask("rss")["rss_mb"]
        say(f"  {self.arch}: " + ", ".join(f"{TITLES[e]} {self.median(e):.2f} ms" for e in self.ms)
            + f"; other processes took {100 * (self.load() or 0.0):.0f} % of the machine")

    def measure_peak(self, workers):
        """Measures the speed of oneDNN's products, and gets what renyi computes per image."""
        if "renyi" in workers:
            answers = [workers["renyi"].ask("peak") for _ in range(3)]
            self.peak, self.executed = statistics.median(a["gflops"] for a in answers), answers[0]["gflop"]

    def fastest_peer(self):
        """The engine of others with the smallest median, or None."""
        return min((e for e in self.ms if not e.startswith("renyi")), key=self.median, default=None)

    def median(self, engine):
        return statistics.median(sum(self.ms[engine], []))

    def spread(self, engine):
        """Least and most of the medians of the rounds."""
        rounds = [statistics.median(r) for r in self.ms[engine]]
        return min(rounds), max(rounds)

    def ratio(self, peer, ours="renyi"):
        """peer / ours: ratio of the medians, and median of the ratios of each round."""
        rounds = [statistics.median(p) / statistics.median(r)
                  for p, r in zip(self.ms[peer], self.ms[ours])]
        return self.median(peer) / self.median(ours), statistics.median(rounds)

    def gflops(self):
        """By renyi's count of executed products, fewer than the model's because of the last
        block."""
        return self.executed / self.median("renyi") * 1e3

    def load(self):
        """Share of the machine that other processes took."""
        return max(0.0, statistics.median(self.other)) if self.other else None

    def record(self):
        out = dict(model=self.arch, policy=self.policy, batch=self.batch, threads=self.threads, failed=self.failed,
                   peak_gflops=self.peak, other_load=self.load(), engines={})
        for engine in self.ms:
            entry = dict(ms_median=self.median(engine), ms_rounds=[statistics.median(r) for r in self.ms[engine]],
                         peak_rss_mb=self.rss[engine], first_answer_s=self.first_answer[engine],
                         difference=self.difference.get(engine))
            if engine == "renyi" and self.executed:
                entry["gflops"] = self.gflops()
            if engine != "renyi" and "renyi" in self.ms:
                entry["ratio_of_medians"], entry["median_of_ratios"] = self.ratio(engine)
            out["engines"][engine] = entry
        return out


def run_together(cases, a, rounds, peak=False):
    """Runs cases (case, engines, files) that are compared with each other: every round has a turn
    of each. Returns the versions."""
    started = []
    try:
        for case, engines, files in cases:
            started.append((case, case.start(engines, files, a.work)))
        for case, workers in started:
            case.compare(workers)
            case.warm_up(workers)
        with host(a):
            for r in range(rounds):
                for case, workers in started:
                    case.round(workers, r)
        for case, workers in started:
            case.finish(workers)
            if peak:
                case.measure_peak(workers)
        return {e: w.version for _, workers in started for e, w in workers.items()}
    finally:
        for _, workers in started:
            for w in workers.values():
                w.close()


def run_case(case, engines, files, a, rounds, peak=False):
    """Starts the engines, compares their logits, lets them take turns. Returns their versions."""
    return run_together([(case, engines, files)], a, rounds, peak)


def newer(path, than):
    return os.path.exists(path) and os.path.getmtime(path) >= os.path.getmtime(than)


def weights_of(a, arch):
    """The random weights of all engines; made once and kept in build/bench."""
    path = f"{a.work}/{arch}.seed1.safetensors"
    if not os.path.exists(path):
        subprocess.run([f"{a.build}/renyi", "init", "--arch", arch, "--seed", "1", path],
                       check=True, stdout=subprocess.DEVNULL)
    return path
