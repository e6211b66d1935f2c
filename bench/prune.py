# prune.py - measures pruning: what renyi saves of the dense time, beside the same rules in PyTorch.
# SPDX-License-Identifier: Apache-2.0
#
# Part of peers.py; see bench/README.md.
import json
import os
import resource
import subprocess
import sys
import time
from importlib.util import find_spec

from turns import HERE, SHORT, TITLES, Case, busy_seconds, condition, host, run_case, say, verdict, weights_of

POLICIES = ["naive p=16 layers=0-5",
            "evit keep=0.7 layers=3,6,9", "evit keep=0.7 layers=0,3,6",
            "evit keep=0.7 layers=3,6,9 metric=correct", "evit keep=0.7 layers=0,3,6 metric=correct",
            "tome r=11", "tome r=17",
            "mosaic keep=0.7 layers=3,6,9", "mosaic keep=0.7 layers=0,3,6", "half"]
ROUNDS = {"tiny": 8, "small": 4, "base": 2, "large": 1}  # x --rounds, and twice that at batch 1
# Upper bounds of (time / dense) / (MACs / dense); ViT-Ti has none.
BOUNDS = {1: 1.04, 8: 1.02}
HALF = 1.06  # the same for the preset `half`, at batch 8

EVIT = ["renyi", "pytorch-evit", "pytorch-evit-fused"]
CONTESTS = [(EVIT, "evit keep=0.7 layers=3,6,9 metric=cls fuse"),
            (EVIT, "evit keep=0.7 layers=0,3,6 metric=cls fuse"),
            (["renyi", "pytorch-tome"], "tome r=13")]
CONTEST_MODELS = ["small", "base"]
TARGETS = {("base", 8): 1.25, ("small", 1): 1.6}  # lower bounds of PyTorch's EViT / renyi
MAX_DIFFERENCE = 1e-2  # of the logits: random weights make near ties between tokens
MAX_GOLDEN = 2e-4      # of PyTorch's rule from the reference logits, with real weights


def bench_rows(a, weights, batch, threads, rounds, policies, name, image_size=0):
    """Rows of `renyi bench --prune`: dense and every policy take turns in one process."""
    command = [f"{a.build}/renyi", "bench", "-m", weights, "-b", str(batch), "-t", str(threads), "--repetitions", str(rounds),
               "--no-peak", "--json"]
    if image_size:
        command += ["--image-size", str(image_size)]
    for policy in policies:
        command += ["--prune", policy]
    with host(a):
        start, busy, own = time.perf_counter(), busy_seconds(), children_seconds()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        capacity = (time.perf_counter() - start) * os.cpu_count()
        other = max(0.0, busy_seconds() - busy - children_seconds() + own) / capacity
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["renyi bench failed"])[-1])
    say(f"  {rounds} rounds; other processes took {100 * other:.0f} % of the machine")
    rows = json.loads(done.stdout)["results"]
    for row, policy in zip(rows, ["none", *policies]):
        row.update(short=name, asked=policy, rounds=rounds, other_load=other)
    return rows


def renyi_bench(a, model, batch, threads):
    rounds = a.rounds * ROUNDS[model] * (2 if batch == 1 else 1)
    rows = bench_rows(a, weights_of(a, f"vit_{model}_patch16_224"), batch, threads, rounds, POLICIES, SHORT[model])
    for row in rows:
        bounds = {8: HALF} if row["asked"] == "half" else BOUNDS
        row["bound"] = bounds.get(batch) if model != "tiny" and row["asked"] != "none" else None
    return rows


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def print_rows(rows):
    print("\n| model | batch | policy | GMACs | ms | images/s | time / dense | MACs / dense | time / MACs | at most |")
    print("|---|--:|---|--:|--:|--:|--:|--:|--:|---|")
    for r in rows:
        ratios = "- | - | - | -"
        if r["time_ratio"]:
            ratio = r["time_ratio"] / r["mac_ratio"]
            bound = f"{r['bound']:.2f} {verdict(ratio <= r['bound'], r['other_load'])}" if r["bound"] else "-"
            ratios = f"{r['time_ratio']:.3f} | {r['mac_ratio']:.3f} | {ratio:.3f} | {bound}"
        print(f"| {r['short']} | {r['batch']} | {r['asked']} | {r['gmacs']:.3f} | {r['ms_median']:.2f} | "
              f"{r['images_per_second']:.1f} | {ratios} |")
    print(f"\nothers took up to {100 * max((r['other_load'] for r in rows), default=0):.0f} % of the machine")


def saved(a, threads):
    """How much of the saved MACs becomes saved time; and what did not run."""
    rows, faults = [], []
    for model in a.models:
        for batch in a.batches:
            say(f"pruned {SHORT[model]} batch {batch}, {threads} thread(s)")
            try:
                rows += renyi_bench(a, model, batch, threads)
            except RuntimeError as e:
                faults.append(f"{SHORT[model]} batch {batch}: {e}")
    print_rows(rows)
    return rows, faults


def beside_torch(a, threads):
    """The same rules in renyi and in PyTorch, taking turns."""
    cases = []
    for engines, policy in CONTESTS:
        for model in [m for m in a.models if m in CONTEST_MODELS]:
            for batch in a.batches:
                say(f"{policy}: {SHORT[model]} batch {batch}, {threads} thread(s)")
                case = Case(model, batch, threads, policy)
                run_case(case, engines, dict.fromkeys(engines, weights_of(a, case.arch)), a, a.rounds)
                cases.append(case)
    if cases:
        report(cases)
    return cases


def report(cases):
    shown = list(dict.fromkeys(e for engines, _ in CONTESTS for e in engines))
    print("\n| model | batch | policy | " + " | ".join(TITLES[e] for e in shown) + " | at least |")
    print("|---|--:|---|" + "--:|" * len(shown) + "---|")
    for c in cases:
        cells, target = [], "-"
        for e in shown:
            ratio = f" ({c.ratio(e)[1]:.2f}x)" if e != "renyi" and e in c.ms and "renyi" in c.ms else ""
            cells.append(f"{c.median(e):.2f}{ratio}" if e in c.ms else "-")
        wanted = TARGETS.get((c.model, c.batch))
        if wanted and "pytorch-evit" in c.ms and "renyi" in c.ms:
            target = f"{wanted:.2f}x {verdict(c.ratio('pytorch-evit')[1] >= wanted, c.load() or 0.0)}"
        print(f"| {SHORT[c.model]} | {c.batch} | {c.policy} | " + " | ".join(cells) + f" | {target} |")
    worst = max((d for c in cases for d in c.difference.values()), default=0.0)
    print(f"\n(x) = PyTorch / renyi, median of the rounds; largest difference of the logits {worst:.1e}")


def golden():
    """Compares PyTorch's EViT with reference logits, if available."""
    shared = os.environ.get("RENYI_SHARED") or os.path.join(HERE, "..", "..", "shared")
    if not os.path.exists(f"{shared}/golden/vit_tiny.safetensors"):
        say("no reference logits: PyTorch's EViT is only compared with renyi's")
        return None, []
    done = subprocess.run([sys.executable, os.path.join(HERE, "torch_rules.py"), shared], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return None, ["PyTorch's EViT does not run: " + (done.stderr.strip().splitlines() or ["?"])[-1]]
    found = json.loads(done.stdout)
    worst = max(found.values())
    print(f"\nPyTorch's EViT against the reference logits, 12 images, real weights: within {worst:.1e}")
    return found, [f"PyTorch's EViT is {worst:g} away from the reference logits"] if not worst <= MAX_GOLDEN else []


def run(a):
    """Runs everything. Returns measurements and faults."""
    threads = max(a.threads)
    print(f"\nPruned, {threads} thread(s), host {condition(a)}; dense and policies in turn in one process")
    rows, faults = saved(a, threads)
    out = dict(renyi=rows)
    if find_spec("timm") and any(m in CONTEST_MODELS for m in a.models):
        out["golden"], more = golden()
        cases = beside_torch(a, threads)
        out["beside_pytorch"] = [c.record() for c in cases]
        worst = max((d for c in cases for d in c.difference.values()), default=0.0)
        faults += more
        if not worst <= MAX_DIFFERENCE:
            faults.append(f"renyi and PyTorch's rules do not agree within {MAX_DIFFERENCE:g}: {worst:g}")
    return out, faults
