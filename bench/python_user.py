# python_user.py - make bench-python: the Python package from its user's side. Photo files in, labels
# out, beside timm + PyTorch, ONNX Runtime and OpenVINO; and what Python costs over the program.
# SPDX-License-Identifier: Apache-2.0
#
# Started by bench/run-python; see bench/README.md for what is measured.
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib.util import find_spec

from lvlm_turns import Load
from peers import cpu_model, prepare
from turns import HERE, Case, Process, say, verdict, weights_of

TITLES = {"renyi": "renyi", "renyi-pruned": "renyi, pruned", "pytorch": "timm + PyTorch", "onnxruntime": "ONNX Runtime",
          "openvino": "OpenVINO"}
MODULES = {"renyi": "renyi", "renyi-pruned": "renyi", "pytorch": "timm", "onnxruntime": "onnxruntime", "openvino": "openvino"}
PRUNED = "mosaic keep=0.7 layers=0,3,6"  # RenyiPruned in user_engines.py
ENDS = (".jpg", ".jpeg", ".png", ".webp")
MOST_TENSOR, MOST_EMBED, LEAST_THREADS = 1.02, 1.05, 1.8
TURN_SECONDS = 0.8


class Turns:
    """Figures that take turns: name -> one number for each round, and the load by others."""

    def __init__(self):
        self.found, self.load = {}, Load()

    def round(self, r, figures):
        """figures: name -> (function that measures, worker that does it, or None). The order
        rotates."""
        names = list(figures)
        for name in names[r % len(names):] + names[:r % len(names)]:
            measure, worker = figures[name]
            if worker is None:  # a process of its own, whose time is not that of others
                self.found.setdefault(name, []).append(measure())
                continue
            with self.load.of(worker):
                self.found.setdefault(name, []).append(measure())

    def ratios(self, a, b):
        return [x / y for x, y in zip(self.found[a], self.found[b])]


def spread(values, form):
    """The median, and least to most."""
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def start(a, engine, case, files, photos):
    listed = f"{a.work}/photos.{len(photos)}.txt"
    with open(listed, "w") as f:
        f.write("\n".join(photos) + "\n")
    command = [sys.executable, os.path.join(HERE, "user_engines.py"), engine, "--arch", case.arch, "--weights", files["weights"],
               "--batch", str(case.batch), "--threads", str(case.threads), "--list", listed]
    for option, name in (("--onnx", "onnxruntime"), ("--ir", "openvino")):
        command += [option, files[name]] if name in files else []
    return Process(command, f"{a.work}/user-{engine}.log")


# ---- photo files in, labels out ----------------------------------------------------------------

def engines_here():
    here = [e for e in TITLES if find_spec(MODULES[e])]
    for e in TITLES:
        if e not in here:
            say(f"*** {TITLES[e]} IS LEFT OUT: {MODULES[e]} is not installed ***")
    return here


def compare(workers, photos):
    """How many photos have the same class in each engine as in timm (or the first engine)."""
    found = {e: w.ask("classes")["classes"] for e, w in workers.items()}
    reference = found.get("pytorch") or next(iter(found.values()))
    same = {e: sum(x == y for x, y in zip(c, reference)) for e, c in found.items()}
    say("  same label as timm: " + ", ".join(f"{TITLES[e]} {n} of {len(photos)}" for e, n in same.items()))
    return same


def photos_to_labels(a, case, engines, photos):
    """One row of the table."""
    say(f"{case.arch}, batch {case.batch}: {len(photos)} photos in, labels out")
    files, turns = prepare(a, case, engines), Turns()
    files["weights"] = files["renyi"]
    workers = {}
    try:
        for e in engines:
            workers[e] = start(a, e, case, files, photos)
        same = compare(workers, photos)
        for r in range(a.rounds):
            turns.round(r, {e: (lambda w=w: statistics.median(w.ask("photos 1")["ms"]), w) for e, w in workers.items()})
        return dict(model=case.arch, batch=case.batch, threads=case.threads, photos=len(photos), ms=turns.found, same=same,
                    versions={e: w.version for e, w in workers.items()}, other_load=turns.load.median())
    finally:
        for w in workers.values():
            w.close()


def table(a, rows):
    shown = [e for e in TITLES if any(e in r["ms"] for r in rows)]
    print("\nPhoto files in, labels out: " + "; ".join(dict.fromkeys(v for r in rows for v in r["versions"].values())))
    print(f"ms per photo, median of {a.rounds} rounds in turn (least to most), {a.threads} threads; pruned: `{PRUNED}`\n")
    print("| model | batch | " + " | ".join(TITLES[e] for e in shown) + " | fastest other / renyi | others |")
    print("|---|--:|" + "--:|" * (len(shown) + 2))
    for r in rows:
        peers = [e for e in r["ms"] if not e.startswith("renyi")]
        best = "-"
        if peers and "renyi" in r["ms"]:
            fastest = min(peers, key=lambda e: statistics.median(r["ms"][e]))
            ratios = [x / y for x, y in zip(r["ms"][fastest], r["ms"]["renyi"])]
            best = f"{statistics.median(ratios):.2f}x, {TITLES[fastest]}"
        cells = [spread(r["ms"][e], ".1f") if e in r["ms"] else "-" for e in shown]
        print(f"| {r['model']} | {r['batch']} | " + " | ".join(cells) + f" | {best} | {100 * r['other_load']:.0f} % |")
    worst = {e: min(r["same"][e] / r["photos"] for r in rows if e in r["same"]) for e in shown if e != "renyi-pruned"}
    print("\nphotos with the label of timm: " + ", ".join(f"{TITLES[e]} {100 * s:.0f} %" for e, s in worst.items()))


# ---- what Python costs -------------------------------------------------------------------------

def tensor_cost(a, batch):
    """run_tensor beside `renyi bench`, ViT-S."""
    case, turns = Case("small", batch, a.threads), Turns()
    say(f"run_tensor beside renyi bench: {case.arch}, batch {batch}")
    weights = weights_of(a, case.arch)
    worker = start(a, "renyi", case, {"weights": weights}, [])
    try:
        n = max(3, round(TURN_SECONDS * 1e3 / (batch * min(worker.ask("tensor 3")["ms"]))))

        def program():
            done = subprocess.run([f"{a.build}/renyi", "bench", "-q", "-m", weights, "-b", str(batch), "-t", str(a.threads), "--repetitions",
                                   str(n), "--no-peak", "--json"], check=True, stdout=subprocess.PIPE, text=True)
            return json.loads(done.stdout)["results"][0]["ms_median"]

        for r in range(2 * a.rounds):
            turns.round(r, {"run_tensor": (lambda: statistics.median(worker.ask(f"tensor {n}")["ms"]), worker),
                            "renyi bench": (program, None)})
    finally:
        worker.close()
    return dict(what=f"run_tensor / renyi bench, ViT-S, batch {batch}", ratios=turns.ratios("run_tensor", "renyi bench"), most=MOST_TENSOR,
                rounds=turns.found, other_load=turns.load.median())


def embed_cost(a, weights, arch, photos):
    """m.embed beside `renyi embed`; both open the model. Python's start is not counted."""
    case, turns = Case("tiny", 8, a.threads, arch=arch), Turns()
    say(f"m.embed beside renyi embed: {arch}, {len(photos)} photos")
    worker = start(a, "renyi", case, {"weights": weights}, photos)
    listed, rows = f"{a.work}/photos.{len(photos)}.txt", f"{a.work}/rows.npy"

    def program():
        begin = time.perf_counter()
        subprocess.run([f"{a.build}/renyi", "embed", "-q", "-m", weights, "-b", str(case.batch), "-t", str(a.threads), "--list", listed,
                        "-o", rows], check=True)
        return time.perf_counter() - begin

    try:
        for r in range(-1, a.rounds):  # the first round warms up
            if r == 0:
                turns = Turns()
            turns.round(r, {"m.embed": (lambda: worker.ask("embed")["seconds"], worker), "renyi embed": (program, None)})
    finally:
        worker.close()
    return dict(what=f"m.embed / renyi embed, {len(photos)} photos, ViT-Ti", ratios=turns.ratios("m.embed", "renyi embed"), most=MOST_EMBED,
                rounds=turns.found, other_load=turns.load.median())


def threads_gain(a):
    """Eight Python threads with a session of one thread each beside one such thread, ViT-Ti."""
    case, turns = Case("tiny", 1, 1), Turns()
    say("8 Python threads beside one")
    worker = start(a, "renyi", case, {"weights": weights_of(a, case.arch)}, [])
    try:
        images = 8 * max(2, round(2 * TURN_SECONDS / worker.ask("sessions 1 8")["seconds"]))
        for r in range(a.rounds):
            turns.round(r, {n: (lambda n=n: worker.ask(f"sessions {n} {images}")["seconds"], worker) for n in (1, 8)})
    finally:
        worker.close()
    return dict(what=f"8 Python threads / 1, images per second, {os.cpu_count()} CPUs", ratios=turns.ratios(1, 8), least=LEAST_THREADS,
                rounds=turns.found, other_load=turns.load.median())


def bounds(rows):
    print("\nWhat Python costs: median of the ratios of single rounds (least to most)\n")
    print("| | ratio | rounds | wanted | others |\n|---|--:|--:|---|--:|")
    for r in rows:
        got, load = statistics.median(r["ratios"]), r["other_load"]
        wanted = f"at most {r['most']}" if "most" in r else f"at least {r['least']}"
        reached = got <= r["most"] if "most" in r else got >= r["least"]
        print(f"| {r['what']} | {spread(r['ratios'], '.3f')} | {len(r['ratios'])} | {wanted} {verdict(reached, load)} | {100 * load:.0f} % |")


# ---- files and command line --------------------------------------------------------------------

def photo_files(a):
    """The photos of a folder in a fixed order."""
    shared = os.environ.get("RENYI_SHARED") or os.path.join(HERE, "..", "..", "shared")
    folder = a.photos or f"{shared}/data/imagenet-val-500"
    found = sorted(os.path.join(d, f) for d, _, files in os.walk(folder) for f in files if f.lower().endswith(ENDS))
    if a.photos and not found:
        sys.exit(f"{folder}: no photos")
    if not found:
        found = sorted(os.path.join(HERE, "..", "assets", f) for f in os.listdir(f"{HERE}/../assets") if f.endswith(".png"))
        say(f"no photos in {folder}; name a folder with --photos. The pictures of assets/ are used, and m.embed is not measured")
        return found, False
    return found, True


def real_weights(a):
    """Real ViT-Ti weights of the reference data, or random ones."""
    shared = os.environ.get("RENYI_SHARED") or os.path.join(HERE, "..", "..", "shared")
    real = f"{shared}/models/vit_tiny_patch16_224.augreg_in21k_ft_in1k/model.safetensors"
    return real if os.path.exists(real) else weights_of(a, "vit_tiny_patch16_224")


def arguments():
    p = argparse.ArgumentParser(prog="bench/run-python", description="the Python package beside other engines and the program")
    p.add_argument("--rounds", type=int, default=5, metavar="N", help="turns of each (5)")
    p.add_argument("--photos", metavar="DIR", help="folder of JPEG photos (500 of ImageNet, if the reference data is there)")
    p.add_argument("--count", type=int, default=24, metavar="N", help="photos of a turn of the table (24)")
    p.add_argument("--only", type=lambda s: s.split(","), default=["table", "bounds"], metavar="PARTS", help="table,bounds")
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="of every engine (all CPUs)")
    p.add_argument("--quick", action="store_true", help="one round, few photos: only to check that it runs")
    p.add_argument("--json", metavar="FILE", help="all measurements")
    p.add_argument("--build", default="build", help=argparse.SUPPRESS)
    a = p.parse_args()
    if set(a.only) - {"table", "bounds"} or min(a.rounds, a.count, a.threads) < 1:
        p.error("--only is table, bounds or both; the numbers are at least 1")
    if a.quick:
        a.rounds, a.count = 1, 8
    a.work = f"{a.build}/bench"
    return a


def main():
    a = arguments()
    os.makedirs(a.work, exist_ok=True)
    photos, are_real = photo_files(a)
    photos = photos[::max(1, len(photos) // 16)][:16] if a.quick else photos
    result = dict(cpu=cpu_model(), threads=a.threads, rounds=a.rounds)
    print(f"{cpu_model()}; Linux {platform.release()}; Python {platform.python_version()}", flush=True)
    if "table" in a.only:
        engines, few = engines_here(), photos[::max(1, len(photos) // a.count)][:a.count]
        result["photos_to_labels"] = [photos_to_labels(a, Case(m, b, a.threads), engines, few) for m in ("tiny", "small") for b in (1, 8)]
        table(a, result["photos_to_labels"])
    if "bounds" in a.only:
        rows = [tensor_cost(a, 1), tensor_cost(a, 8)]
        rows += [embed_cost(a, real_weights(a), "vit_tiny_patch16_224", photos)] if are_real else []
        result["bounds"] = rows + [threads_gain(a)]
        bounds(result["bounds"])
    if a.json:
        with open(a.json, "w") as f:
            json.dump(result, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
