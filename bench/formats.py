# formats.py - measures bf16 and int8: renyi beside its own f32 and beside the peers' int8 models,
# dense and pruned.
# SPDX-License-Identifier: Apache-2.0
#
# Part of peers.py; see bench/README.md.
import os
import subprocess
import sys
from importlib.util import find_spec

from turns import HERE, SHORT, TITLES, Case, condition, newer, run_case, say, verdict

MODELS = ["small", "base"]
POLICY = "evit keep=0.7 layers=0,3,6"
OURS = ["renyi-f32", "renyi-bf16", "renyi-int8", "renyi-int8-pruned"]
# engine -> the f32 model it is made from, and the Python modules it needs
PEERS = {"openvino-int8": ("openvino", ["nncf", "openvino"]),
         "onnxruntime-dynamic": ("onnxruntime", ["onnxruntime", "onnx"]),
         "onnxruntime-static": ("onnxruntime", ["onnxruntime", "onnx"]),
         "onnxruntime": (None, ["onnxruntime"])}
ORT_INT8 = ["onnxruntime-dynamic", "onnxruntime-static"]

# How many times faster the first must be than the second; by model and batch, or for all.
TARGETS = [("renyi-bf16", ["renyi-f32"], {("small", 1): 1.65, ("small", 8): 1.65, ("base", 1): 1.8, ("base", 8): 1.8}),
           ("renyi-int8", ["renyi-f32"], {("small", 1): 2.0, ("small", 8): 2.3, ("base", 1): 2.6, ("base", 8): 3.0}),
           ("renyi-int8", ["openvino-int8"], 1.05),
           ("renyi-int8", ORT_INT8, 1.0),
           ("renyi-int8-pruned", ["onnxruntime"], {("base", 1): 5.0, ("base", 8): 5.0}),
           ("renyi-int8-pruned", ["openvino-int8"], {("base", 1): 1.8, ("base", 8): 1.8})]


def prepare(a, case, engines, export):
    """The files of each engine; the peers' int8 models are made once from their f32 ones."""
    sources = {PEERS[e][0] or e for e in engines if e in PEERS}
    files = export(a, case, sources | {"renyi"})
    files.update(dict.fromkeys(OURS, files["renyi"]))
    for engine in [e for e in engines if e in PEERS and PEERS[e][0]]:
        source = files.get(PEERS[engine][0])
        if not source:
            continue
        stem, ending = os.path.splitext(source)
        files[engine] = f"{stem}.{engine}{ending}"
        if newer(files[engine], source):
            continue
        say(f"  quantizing {os.path.basename(files[engine])}")
        done = subprocess.run([sys.executable, os.path.join(HERE, "quantize.py"), engine, source, files[engine],
                               str(case.batch)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            say("  quantizing failed: " + (done.stderr.strip().splitlines() or ["?"])[-1])
            del files[engine]
    return files


def available():
    here = [e for e, (_, modules) in PEERS.items() if all(map(find_spec, modules))]
    for e in PEERS:
        if e not in here:
            say(f"{TITLES[e]}: {', '.join(PEERS[e][1])} not installed; left out")
    return OURS + here


def table(cases, engines):
    shown = [e for e in engines if any(e in c.ms for c in cases)]
    print("\n| model | batch | " + " | ".join(TITLES[e] for e in shown) + " | others |")
    print("|---|--:|" + "--:|" * (len(shown) + 1))
    for c in cases:
        cells = [f"{c.median(e):.2f}" if e in c.ms else "-" for e in shown]
        print(f"| {SHORT[c.model]} | {c.batch} | " + " | ".join(cells) + f" | {100 * (c.load() or 0.0):.0f} % |")


def speedups(cases):
    """Each target: the speed-up, and whether it is enough."""
    out = []
    print("\n| model | batch | faster | than | times as fast | at least |\n|---|--:|---|---|--:|---|")
    for fast, slow, wanted in TARGETS:
        for c in cases:
            least = wanted.get((c.model, c.batch)) if isinstance(wanted, dict) else wanted
            ran = [e for e in slow if e in c.ms]
            if not least or fast not in c.ms or not ran:
                continue
            other = min(ran, key=c.median)
            got = c.ratio(other, fast)[1]
            out.append(dict(model=c.arch, batch=c.batch, fast=fast, slow=other, quotient=got, at_least=least))
            print(f"| {SHORT[c.model]} | {c.batch} | {TITLES[fast]} | {TITLES[other]} | {got:.2f} | "
                  f"{least:.2f} {verdict(got >= least, c.load() or 0.0)} |")
    return out


def run(a, export):
    """Runs everything and returns the measurements. `export` makes the f32 models of the peers."""
    threads, engines, cases, versions = max(a.threads), available(), [], {}
    for model in [m for m in a.models if m in MODELS]:
        for batch in a.batches:
            case = Case(model, batch, threads, POLICY)
            say(f"formats: {SHORT[model]} batch {batch}, {threads} thread(s)")
            files = prepare(a, case, engines, export)
            versions.update(run_case(case, [e for e in engines if e in files], files, a, a.rounds))
            cases.append(case)
    if not cases:
        return None
    print(f"\nNumber formats, {threads} thread(s), host {condition(a)}, ms per image, median of {a.rounds} rounds taking turns; pruned: {POLICY}")
    print("; ".join(dict.fromkeys(versions.values())))
    for engine, reason in {e: r for c in cases for e, r in c.failed.items()}.items():
        print(f"{TITLES[engine]} is absent: {reason}")
    table(cases, engines)
    found = speedups(cases)
    worst = {e: max(c.difference[e] for c in cases if e in c.difference) for e in versions if e != "renyi-int8-pruned"}
    print("\nlargest difference of the logits from f32, random weights: "
          + ", ".join(f"{TITLES[e]} {d:.1e}" for e, d in worst.items() if e != "renyi-f32"))
    return dict(versions=versions, rounds=a.rounds, results=[c.record() for c in cases], quotients=found)
