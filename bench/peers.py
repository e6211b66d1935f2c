# peers.py - measures renyi beside other engines: same weights, same input, taking turns.
# SPDX-License-Identifier: Apache-2.0
#
# Started by bench/run, which makes the virtual environment; see bench/README.md for what is
# measured. Pruning is in prune.py, bf16 and int8 in formats.py, training steps in train.py, CLIP
# in clip.py, the start of the program in start/first_answer.py, large photos in
# photos/large_photos.py, DINOv2, SigLIP and OpenCLIP in families.py.
import argparse
import json
import os
import platform
import subprocess
import sys

import clip
import families
import formats
import prune
import train
from photos import large_photos
from start import first_answer
from turns import HERE, SHORT, TITLES, Case, condition, newer, run_case, say, verdict, weights_of

MODULES = {"renyi": "renyi", "renyi-streams": "renyi", "openvino": "openvino", "openvino-throughput": "openvino", "onnxruntime": "onnxruntime",
           "pytorch": "timm"}
ENGINES = list(MODULES)
PARTS = [*ENGINES, "prune", "formats", "train", "clip", "start", "families", "photos"]
LEAST = 1.08  # fastest peer / renyi
MAX_DIFFERENCE = 1e-3  # of the logits, relative to the largest


def prepare(a, case, engines):
    """The files of each engine; made once and kept in build/bench."""
    weights = weights_of(a, case.arch)
    stem = f"{a.work}/{case.arch}.b{case.batch}"
    files = {"renyi": weights, "renyi-streams": weights, "pytorch": weights, "onnxruntime": stem + ".onnx",
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
    print("| model, batch, threads | " + " | ".join(TITLES[e] for e in shown) +
          " | fastest peer / renyi | rounds | at least | renyi of oneDNN's peak |", file=out)
    print("|---|" + "--:|" * (len(shown) + 2) + "---|--:|", file=out)
    for c in cases:
        cells, best = [], "- | - | -"
        share = f"{100 * c.gflops() / c.peak:.0f} % of {c.peak:.0f} GFLOP/s" if c.peak else "-"
        for e in shown:
            cells.append("{:.2f} ({:.1f} to {:.1f})".format(c.median(e), *c.spread(e)) if e in c.ms else "-")
        fastest = c.fastest_peer()
        if fastest and "renyi" in c.ms:
            whole, rounds = c.ratio(fastest)
            best = f"{whole:.2f}x, {TITLES[fastest]} | {rounds:.2f}x | {LEAST:.2f}x {verdict(rounds >= LEAST, c.load() or 0.0)}"
        print(f"| {SHORT[c.model]}, {c.batch}, {c.threads} | " + " | ".join(cells) + f" | {best} | {share} |", file=out)
    for c in cases:
        if c.threads > 1 and {"renyi-streams", "openvino-throughput"} <= set(c.ms):
            rounds = c.ratio("openvino-throughput", "renyi-streams")[1]
            print(f"\n{SHORT[c.model]}, {c.batch}, {c.threads}: OpenVINO throughput / renyi --streams 2: {rounds:.2f}x, "
                  f"at least {LEAST:.2f}x {verdict(rounds >= LEAST, c.load() or 0.0)}", file=out)


def run_cases(a, engines):
    cases, versions = [], {}
    grid = [Case(m, b, t) for m in a.models if m != "large" for b in a.batches for t in a.threads]
    for i, case in enumerate(grid):
        say(f"[{i + 1}/{len(grid)}] {SHORT[case.model]} batch {case.batch}, {case.threads} thread(s)")
        versions.update(run_case(case, engines, prepare(a, case, engines), a, a.rounds, peak=True))
        cases.append(case)
    return cases, versions


def dense(a):
    """Prints the table of engines. Returns measurements and faults."""
    engines = available(a)
    cases, versions = run_cases(a, engines)
    print("; ".join(dict.fromkeys(versions.values())))
    print(f"Dense, host {condition(a)}: ms per image, median of {a.rounds} rounds taking turns (least to most of the rounds)\n")
    report(cases, engines, sys.stdout)
    print()
    worst = {e: max(c.difference[e] for c in cases if e in c.difference) for e in versions}
    print("largest difference of the logits: " + ", ".join(f"{TITLES[e]} {d:.1e}" for e, d in worst.items()))
    result = dict(versions=versions, host=condition(a), rounds=a.rounds, results=[c.record() for c in cases])
    large = [c for c in cases if c.model == "base"]
    if large:
        rss = {e: max(c.rss[e] for c in large if e in c.rss) for e in versions if any(e in c.rss for c in large)}
        print("peak memory with ViT-B, MB: " + ", ".join(f"{TITLES[e]} {m:.0f}" for e, m in rss.items()))
    bad = [e for e, d in worst.items() if not d <= MAX_DIFFERENCE]
    return result, [f"the engines do not agree within {MAX_DIFFERENCE:g}: " + ", ".join(TITLES[e] for e in bad)] if bad else []


def available(a, asked=None):
    """Engines that are installed (or built); names the others on stderr."""
    from importlib.util import find_spec

    asked = asked or [e for e in a.only if e in ENGINES]
    here = [e for e in asked if find_spec(MODULES[e])]
    for e in asked:
        if e not in here:
            say(f"{TITLES[e]} is not installed: left out")
    return here


def arguments():
    p = argparse.ArgumentParser(prog="bench/run", description="renyi beside other engines, ms per image")

    def one_of(allowed):
        return lambda s: [w for w in s.split(",")
                          if w in allowed or p.error(f"{w}: not one of {', '.join(allowed)}")]

    def numbers(s):
        return [int(n) for n in s.split(",")]

    p.add_argument("--models", type=one_of(list(SHORT)), default=list(SHORT), metavar=",".join(SHORT),
                   help="large only in the pruned rows; formats: small, base")
    p.add_argument("--batches", type=numbers, default=[1, 8], metavar="1,8")
    p.add_argument("--threads", type=numbers, default=[1, 2], metavar="1,2",
                   help="pruned rows: the largest of them")
    p.add_argument("--rounds", type=int, default=5, help="turns of each engine in each line (5)")
    p.add_argument("--only", type=one_of(PARTS), default=PARTS, metavar="PARTS",
                   help=", ".join(ENGINES) + " (dense), prune (the pruned rows), formats (bf16 and int8), "
                   "train (a training step), clip (CLIP and TCA), start (until the first answer), families (DINOv2, SigLIP, OpenCLIP), photos (of 12 megapixels, from files)")
    p.add_argument("--neighbour", action="store_true",
                   help="dense, prune, formats, families: beside a process that copies memory at low priority")
    p.add_argument("--quick", action="store_true",
                   help="ViT-Ti and ViT-S, at most 3 rounds; clip: ViT-Ti, few texts")
    p.add_argument("--tokenizer", metavar="FILE", help="CLIP's merges file, for the texts of clip")
    p.add_argument("--photos", metavar="DIR", help="photos to enlarge for photos (drawn images of the project)")
    p.add_argument("--photo", metavar="FILE", help="image for start (one of the demo)")
    p.add_argument("--json", metavar="FILE", help="all measurements")
    p.add_argument("--build", default="build", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.quick:
        a.models, a.rounds = [m for m in a.models if m in ("tiny", "small")], min(a.rounds, 3)
    a.work = f"{a.build}/bench"
    return a


def main():
    a = arguments()
    os.makedirs(a.work, exist_ok=True)
    result, faults = dict(cpu=cpu_model()), []
    print(f"{cpu_model()}; Linux {platform.release()}")
    if any(e in a.only for e in ENGINES):
        more, faults = dense(a)
        result.update(more)
    if "prune" in a.only:
        result["pruned"], more = prune.run(a)
        faults += more
    if "formats" in a.only:
        result["formats"] = formats.run(a, prepare)
    if "train" in a.only:
        result["train"], more = train.run(a)
        faults += more
    if "clip" in a.only:
        result["clip"], more = clip.run(a, prepare)
        faults += more
    if "start" in a.only:
        result["start"], more = first_answer.run(a)
        faults += more
    if "families" in a.only:
        result["families"], more = families.run(a, available(a, ENGINES), prepare)
        faults += more
    if "photos" in a.only:
        result["photos"], more = large_photos.run_part(a, prepare)
        faults += more
    if a.json:
        with open(a.json, "w") as f:
            json.dump(result, f, indent=1)
    if faults:
        sys.exit("\n".join(faults))
    return 0


if __name__ == "__main__":
    sys.exit(main())
