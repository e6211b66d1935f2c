#!/usr/bin/env python3
# large_photos.py - photos of 12 megapixels from files to embeddings: `renyi embed`, exact and scaled,
# beside timm + PyTorch with a DataLoader and beside ONNX Runtime with Pillow, in turns.
# SPDX-License-Identifier: Apache-2.0
#
#   python bench/photos/large_photos.py make PHOTOS DIR     enlarges photos to 4032 x 3024 JPEGs, same folders
#   python bench/photos/large_photos.py run --photos DIR    measures photos per second
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from turns import HERE, Case, Process, say, verdict

ENDS = (".jpg", ".jpeg", ".webp", ".png")
COUNT = 16  # photos of the part `photos` of make bench
RENYI = {"renyi embed": [], "renyi embed --streams 2": ["--streams", "2"], "renyi embed --decode scaled": ["--decode", "scaled"],
         "renyi embed --decode scaled --dtype int8 --prune fast": ["--decode", "scaled", "--dtype", "int8", "--prune", "fast"]}
LEAST_RATE = {"renyi embed": 3, "renyi embed --decode scaled --dtype int8 --prune fast": 6}  # x each peer's photos/s
LEAST_DECODE = 2.2  # exact / scaled
PEERS = {"timm + PyTorch, 2 DataLoader workers": "pytorch", "ONNX Runtime, Pillow": "onnxruntime"}


def find(folder):
    return sorted(os.path.join(d, f) for d, _, files in os.walk(folder) for f in files if f.lower().endswith(ENDS))


# ---- photos --------------------------------------------------------------------------------------

def make(a):
    """Enlarged photos have little fine detail, so noise like a camera's is added: files of about 3 MB."""
    from PIL import Image

    found = find(a.source)
    if not found:
        sys.exit(f"{a.source}: no photos")
    chosen = found[::max(1, len(found) // a.count)] * (a.count // len(found) + 1)
    for i, path in enumerate(chosen[:a.count]):
        image = Image.open(path).convert("RGB")
        size = (a.width, a.width * 3 // 4) if image.width >= image.height else (a.width * 3 // 4, a.width)
        pixels = np.asarray(image.resize(size, Image.LANCZOS), np.int16)
        noise = np.random.default_rng(i).normal(0, a.noise, pixels.shape[:2])[..., None]
        image = Image.fromarray(np.clip(pixels + noise, 0, 255).astype(np.uint8))
        to = os.path.join(a.out, f"{os.path.splitext(os.path.relpath(path, a.source))[0]}-{i}.{a.format}")
        os.makedirs(os.path.dirname(to), exist_ok=True)
        image.save(to, quality=90)
    sizes = [os.path.getsize(f) for f in find(a.out)]
    print(f"{len(sizes)} photos, longer side {a.width}, {statistics.median(sizes) / 1e6:.1f} MB each")


# ---- engines: one process each, one command per line ---------------------------------------------

class Photos:
    """Dataset of timm's transform."""

    def __init__(self, files, transform):
        self.files, self.transform = files, transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        from PIL import Image

        return self.transform(Image.open(self.files[i]).convert("RGB"))


class Timm:
    def __init__(self, a):
        import timm
        import torch

        from export import load_timm

        torch.set_num_threads(a.threads)
        self.torch, self.model = torch, load_timm(a.arch, a.weights)
        self.version = f"timm {timm.__version__}, PyTorch {torch.__version__.split('+')[0]}"
        config = timm.data.resolve_data_config({}, model=self.model)
        self.photos = Photos(a.files, timm.data.create_transform(**config))
        self.start(a)

    def start(self, a):
        self.model.reset_classifier(0)
        self.loader = self.torch.utils.data.DataLoader(self.photos, batch_size=a.batch, num_workers=2, persistent_workers=True)

    def run(self):
        with self.torch.inference_mode():
            return sum(len(self.model(x)) for x in self.loader)


class OnnxRuntime(Timm):
    """The plain loop: a batch is read with Pillow, then run. The export has the small classifier."""

    def start(self, a):
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = a.threads
        self.batch = a.batch
        self.session = ort.InferenceSession(a.onnx, options, providers=["CPUExecutionProvider"])
        self.version = f"ONNX Runtime {ort.__version__}"

    def run(self):
        n = 0
        for first in range(0, len(self.photos), self.batch):
            x = np.stack([self.photos[i].numpy() for i in range(first, min(first + self.batch, len(self.photos)))])
            n += len(self.session.run(None, {"x": x})[0])
        return n


def serve(a):
    out = os.fdopen(os.dup(1), "w")  # what a library prints goes to the log
    os.dup2(2, 1)
    a.files = find(a.photos)[:a.count]
    engine = {"pytorch": Timm, "onnxruntime": OnnxRuntime}[a.engine](a)
    print(json.dumps(dict(ready=engine.version, in_flight=1)), file=out, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        n = engine.run()
        print(json.dumps(dict(photos=n, seconds=time.perf_counter() - start)), file=out, flush=True)


# ---- turns ---------------------------------------------------------------------------------------

def program(a, weights, listed, options):
    start = time.perf_counter()
    subprocess.run([f"{a.build}/renyi", "embed", "-q", "-m", weights, "-b", str(a.batch), "-t", str(a.threads), "--list", listed,
                    "-o", f"{a.work}/large.npy", *options], check=True)
    return time.perf_counter() - start


def peer(a, engine, files):
    command = [sys.executable, os.path.abspath(__file__), "serve", "--engine", engine, "--photos", a.photos, "--count", str(a.count),
               "--batch", str(a.batch), "--threads", str(a.threads), "--arch", files["arch"], "--weights", files["renyi"]]
    return Process(command + (["--onnx", files[engine]] if engine == "onnxruntime" else []), f"{a.work}/large-{engine}.log")


def take_turns(turns, rounds, count):
    """Seconds of each turn of each engine; the order rotates."""
    seconds, names = {title: [] for title in turns}, list(turns)
    for r in range(rounds):
        for title in names[r % len(names):] + names[:r % len(names)]:
            seconds[title].append(turns[title]())
            say(f"round {r + 1}: {title}: {count / seconds[title][-1]:.1f} photos/s")
    return seconds


def decode_ms(a, weights, photos, mode):
    """Median ms of reading, decoding and resizing a photo on one core."""
    done = subprocess.run([f"{a.build}/renyi", "classify", "-q", "--json", "-m", weights, "-t", "1", "-b", "1", "--decode", mode, *photos],
                          check=True, stdout=subprocess.PIPE)
    return statistics.median(r["ms_decode"] for r in json.loads(done.stdout)["results"])


def decoding(a, weights, photos):
    """Prints how much faster `--decode scaled` is. Returns the medians."""
    exact, scaled = zip(*[(decode_ms(a, weights, photos[:8], "exact"), decode_ms(a, weights, photos[:8], "scaled")) for _ in range(a.rounds)])
    gain = statistics.median(x / y for x, y in zip(exact, scaled))
    print(f"\nReading, decoding and resizing on one core: exact {statistics.median(exact):.1f} ms, scaled {statistics.median(scaled):.1f} ms: "
          f"{gain:.2f}x, at least {LEAST_DECODE}x {verdict(gain >= LEAST_DECODE, 0)}")
    return dict(exact=exact, scaled=scaled)


def report(seconds, count):
    peers = list(PEERS)
    print("| | photos/s (least to most) | " + " | ".join(f"/ {p}" for p in peers) + " | at least |\n|---|--:|" + "--:|" * len(peers) + "--:|")
    for title, times in seconds.items():
        rates, least = sorted(count / s for s in times), LEAST_RATE.get(title)
        gains = [statistics.median(y / x for x, y in zip(times, seconds[p])) for p in peers]
        bound = f"{least}x " + ", ".join(verdict(g >= least, 0) for g in gains) if least else "-"
        cells = ["-" if title in PEERS else f"{g:.1f}x" for g in gains]
        print(f"| {title} | {statistics.median(rates):.1f} ({rates[0]:.1f} to {rates[-1]:.1f}) | " + " | ".join(cells) + f" | {bound} |")


def run(a, prepare):
    """Prints the tables. Returns the measurements."""
    photos, case = find(a.photos)[:a.count], Case(a.model, a.batch, a.threads)
    if not photos or len(photos) % a.batch:
        sys.exit(f"{a.photos}: {len(photos)} photos; a multiple of the batch of {a.batch} is needed (the export has a fixed batch)")
    listed = f"{a.work}/large.txt"
    with open(listed, "w") as f:
        f.write("\n".join(photos) + "\n")
    files = {**prepare(a, case, PEERS.values()), "arch": case.arch}
    workers = {title: peer(a, engine, files) for title, engine in PEERS.items()}
    turns = {**{title: (lambda o=o: program(a, files["renyi"], listed, o)) for title, o in RENYI.items()},
             **{title: (lambda w=w: w.ask("run")["seconds"]) for title, w in workers.items()}}
    try:
        seconds = take_turns(turns, a.rounds, len(photos))
    finally:
        for w in workers.values():
            w.close()
    print("\n" + "; ".join(w.version for w in workers.values()))
    print(f"{case.arch}, batch {a.batch}, {a.threads} threads, {len(photos)} photos, median of {a.rounds} rounds in turn\n")
    report(seconds, len(photos))
    return dict(seconds=seconds, photos=len(photos), decode_ms=decoding(a, files["renyi"], photos))


def run_part(a, prepare):
    """The part `photos` of make bench: makes 16 photos and measures. Returns measurements and faults."""
    from PIL import Image  # noqa: F401: said before photos are made, if it is missing

    known = os.path.join(os.environ.get("RENYI_SHARED", os.path.join(HERE, "..", "..", "shared")), "data", "imagenet-val-500")
    source = a.photos or (known if os.path.isdir(known) else os.path.join(HERE, "..", "assets"))
    made = argparse.Namespace(source=source, out=f"{a.work}/large-photos", count=COUNT, width=4032, noise=4.0, format="jpg")
    if len(find(made.out)) < COUNT:
        make(made)
    b = argparse.Namespace(photos=made.out, count=COUNT, batch=8, threads=max(a.threads), rounds=min(a.rounds, 3), model="small",
                           build=a.build, work=a.work)
    return run(b, prepare), []


def main():
    p = argparse.ArgumentParser(description="photos of 12 megapixels from files to embeddings")
    verbs = p.add_subparsers(dest="verb", required=True)
    m = verbs.add_parser("make", help="make the photos")
    m.add_argument("source", help="folder of photos")
    m.add_argument("out", help="folder for the large ones")
    m.add_argument("--count", type=int, default=48)
    m.add_argument("--width", type=int, default=4032, help="longer side (4032); the other is 3/4 of it")
    m.add_argument("--noise", type=float, default=4.0, help="standard deviation, levels (4)")
    m.add_argument("--format", choices=("jpg", "webp"), default="jpg")
    for name in ("run", "serve"):
        r = verbs.add_parser(name, help="measure" if name == "run" else argparse.SUPPRESS)
        r.add_argument("--photos", required=True, metavar="DIR")
        r.add_argument("--count", type=int, default=48)
        r.add_argument("--batch", type=int, default=8)
        r.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
        r.add_argument("--rounds", type=int, default=3)
        r.add_argument("--model", default="small", help="tiny, small or base")
        r.add_argument("--build", default="build")
        for hidden in ("engine", "arch", "weights", "onnx"):
            r.add_argument("--" + hidden, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.verb == "run":
        from peers import cpu_model, prepare

        a.work = f"{a.build}/bench"
        os.makedirs(a.work, exist_ok=True)
        print(cpu_model())
        run(a, prepare)
    else:
        {"make": make, "serve": serve}[a.verb](a)


if __name__ == "__main__":
    main()
