# lvlm_first.py - part of lvlm.py: time from image to first token, with all visual tokens and with a
# third of them.
# SPDX-License-Identifier: Apache-2.0
import statistics

from lvlm_files import LAYERS
from lvlm_turns import Load, lm_worker
from turns import say, verdict

POLICIES = {"576": "none", "192": "prumerge tokens=192"}
MOST = 0.45  # of the time with 576


def median(rounds, policy, field):
    return statistics.median(r[policy][field] for r in rounds)


def measure(a, width):
    """Both policies take turns in one process, after a warm-up of each."""
    load, rounds = Load(), []
    worker = lm_worker("first", a, file=a.files.quantized(width), photo=a.photo, tower_dtype=a.tower_dtype)
    try:
        for r in range(-1, a.rounds):
            order = list(POLICIES)[::1 if r % 2 else -1]
            with load.of(worker):
                rounds.append({name: worker.ask(f"first {POLICIES[name]}") for name in order})
    finally:
        worker.close()
    rounds = rounds[1:]
    ratio = statistics.median(r["192"]["ms"] / r["576"]["ms"] for r in rounds)
    return dict(weights=width, ratio=ratio, most=MOST, rounds=rounds, other_load=load.median())


def run(a):
    rows = []
    for width in a.widths:
        say(f"image to first token: {width}")
        rows.append(measure(a, width))
    print(f"\nFrom image to first token, {a.layers} of {LAYERS} layers, tower in {a.tower_dtype}; `{POLICIES['192']}` against all visual tokens, "
          f"in turn, medians of {a.rounds} rounds\n")
    print("| weights | visual tokens | rows of the prompt | image to visual tokens s | prefill s | first token s | 192 / 576 | wanted |")
    print("|---|--:|--:|--:|--:|--:|--:|---|")
    for row in rows:
        for name in POLICIES:
            m = lambda field: median(row["rounds"], name, field)
            ratio, wanted = ("-", "-")
            if name == "192":
                reached = verdict(row["ratio"] <= MOST, row["other_load"]) if a.layers == LAYERS else "-"
                ratio, wanted = f"{row['ratio']:.3f}", f"at most {MOST} {reached}"
            print(f"| {row['weights']} | {m('visual_tokens'):.0f} | {m('prompt_tokens'):.0f} | {1e-3 * m('vision_ms'):.2f} "
                  f"| {1e-3 * m('prefill_ms'):.2f} | {1e-3 * m('ms'):.2f} | {ratio} | {wanted} |")
    print(f"\nothers took {100 * max(r['other_load'] for r in rows):.0f} % of the machine")
    return rows
