# train.py - measures a training step of ViT-S: renyi beside PyTorch, its own forward pass, and
# pruned.
# SPDX-License-Identifier: Apache-2.0
#
# Part of peers.py; see bench/README.md.
from importlib.util import find_spec

from turns import SHORT, TITLES, Case, say, verdict, weights_of

MODEL, BATCH = "small", 32
POLICY = "evit keep=0.7 layers=0,3,6"
OURS = ["renyi-f32", "renyi-step", "renyi-step-pruned", "renyi-step-checkpointed"]
PEERS = ["pytorch", "pytorch-step"]
STEPS = ["pytorch-step", "renyi-step"]
MOST_STEP_FORWARD = 3.4   # of renyi's step over its forward pass
LEAST_PYTORCH = 1.25      # PyTorch's step over renyi's
MOST_RATIO = 1.10         # (pruned step / step) over (MACs / MACs)
MAX_DIFFERENCE = 1e-3     # of the logits after two updates


def start_and_measure(case, engines, a):
    """The workers take turns. Returns what renyi reports about its steps, and the versions."""
    files = dict.fromkeys(engines, weights_of(a, case.arch))
    workers = case.start(engines, files, a.work)
    try:
        case.compare({e: w for e, w in workers.items() if e in STEPS})
        case.measure(workers, a.rounds)
        info = {e: w.ask("info") for e, w in workers.items() if e.startswith("renyi-step")}
        return info, {e: w.version for e, w in workers.items()}
    finally:
        for w in workers.values():
            w.close()


def targets(case, info):
    """Targets: (name, figure, bound, whether the bound is an upper one)."""
    out = []
    if "renyi-step" in case.ms:
        out.append(("renyi: step / forward", case.ratio("renyi-step", "renyi-f32")[1], MOST_STEP_FORWARD, True))
    if "pytorch-step" in case.ms:
        out.append(("PyTorch: step / forward", case.ratio("pytorch-step", "pytorch")[1], None, True))
    if all(e in case.ms for e in STEPS):
        out.append(("PyTorch step / renyi step", case.ratio("pytorch-step", "renyi-step")[1], LEAST_PYTORCH, False))
    if "renyi-step-pruned" in case.ms:
        time = case.ratio("renyi-step-pruned", "renyi-step")[1]
        macs = info["renyi-step-pruned"]["gmacs"] / info["renyi-step"]["gmacs"]
        out += [(f"{POLICY}: step / dense step", time, None, True), ("its MACs / dense", macs, None, True),
                ("time ratio / MAC ratio", time / macs, MOST_RATIO, True)]
    if "renyi-step-checkpointed" in case.ms:
        out.append(("activations computed twice: step / step", case.ratio("renyi-step-checkpointed", "renyi-step")[1], None, True))
    return out


def report(case, info, found):
    load = case.load() or 0.0
    print("\n| engine | ms per image | activations MB | peak memory MB |\n|---|--:|--:|--:|")
    for e in case.ms:
        saved = f"{info[e]['activations_mb']:.0f}" if e in info else "-"
        print(f"| {TITLES[e]}{' (forward)' if 'step' not in e else ''} | {case.median(e):.1f} | {saved} | {case.rss[e]:.0f} |")
    print("\n| | | wanted |\n|---|--:|---|")
    for what, figure, bound, is_upper in found:
        wanted = "-"
        if bound:
            reached = figure <= bound if is_upper else figure >= bound
            wanted = f"{'at most' if is_upper else 'at least'} {bound:.2f} {verdict(reached, load)}"
        print(f"| {what} | {figure:.3f} | {wanted} |")
    micro = next((i["micro_batch"] for i in info.values()), None)
    print(f"\nmicro-batches of {micro}; others took {100 * load:.0f} % of the machine")


def run(a):
    """Runs everything. Returns measurements and faults."""
    threads = max(a.threads)
    if MODEL not in a.models:
        return None, []
    engines = OURS + (PEERS if find_spec("timm") else [])
    if not find_spec("timm"):
        say("PyTorch and timm are not installed: measuring only renyi")
    case = Case(MODEL, BATCH, threads, POLICY)
    say(f"training: {SHORT[MODEL]} batch {BATCH}, {threads} thread(s)")
    info, versions = start_and_measure(case, engines, a)
    print(f"\nA training step, {SHORT[MODEL]}, batch {BATCH}, {threads} thread(s), f32: forward, backward, AdamW (PyTorch's fused one); "
          f"median of {a.rounds} rounds taking turns")
    print("; ".join(dict.fromkeys(versions.values())))
    found = targets(case, info)
    report(case, info, found)
    worst = max(case.difference.values(), default=0.0)
    print(f"largest difference of the logits after two updates: {worst:.1e}")
    faults = [f"{TITLES[e]} does not run: {r}" for e, r in case.failed.items()]
    if not worst <= MAX_DIFFERENCE:
        faults.append(f"training steps do not agree: logits differ by {worst:.1e}")
    return dict(versions=versions, rounds=a.rounds, result=case.record(), info=info,
                targets=[dict(what=w, figure=f, bound=b) for w, f, b, _ in found]), faults
