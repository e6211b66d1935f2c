# lvlm_first.py - part of lvlm.py: time from image to first token with all visual tokens and with
# fewer, what a cut inside the language model saves, and what the choice behind the tower costs.
# SPDX-License-Identifier: Apache-2.0
import statistics

from lvlm_files import LAYERS
from lvlm_turns import Load, lm_worker
from turns import say, verdict

FULL, FASTV = "none", "fastv layer=2 tokens=144"
# Most of the time of the full prompt, from image to first token.
MOST_FIRST = {"prumerge tokens=192": 0.45, "prumerge tokens=64": 0.30}
POLICIES = [FULL, *MOST_FIRST, FASTV]
MOST_FASTV = 1.05  # (time / full) / (TFLOPs / full) of the prefill
MOST_CHOICE = 0.02  # of the time from the image to visual tokens
CHOOSING = ["random", "uniform", "pool", "vispruner", "visionzip", "divprune", "hiprune", "cdpruner metric=cls", "mosaic-behind"]


def median(rounds, policy, field):
    return statistics.median(r[policy][field] for r in rounds)


def share(rounds, policy, field, of=None):
    """Median over the rounds of the ratio to the full prompt, or to another field."""
    return statistics.median(r[policy][field] / (r[policy][of] if of else r[FULL][field]) for r in rounds)


def take_turns(a, worker, policies, command):
    """Policies take turns in one process, after a warm-up of each, in an order that turns round."""
    load, rounds = Load(), []
    for r in range(-1, a.rounds):
        with load.of(worker):
            rounds.append({name: worker.ask(f"{command} {name}") for name in policies[::1 if r % 2 else -1]})
    return rounds[1:], load.median()


def measure(a, width):
    choosing = [f"{rule} tokens=64" for rule in CHOOSING]
    worker = lm_worker("first", a, file=a.files.quantized(width), photo=a.photo, tower_dtype=a.tower_dtype)
    try:
        rounds, load = take_turns(a, worker, POLICIES, "first")
        choices, _ = take_turns(a, worker, choosing, "first") if width == a.widths[0] else ([], 0)
    finally:
        worker.close()
    return dict(weights=width, rounds=rounds, choices=choices, other_load=load)


def print_first(a, rows):
    """Of FastV the bound is on the prefill: its time beside its TFLOPs."""
    print("| weights | policy | visual tokens | image to visual tokens s | prefill s | first token s | of full | prefill | its TFLOPs | wanted |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|---|")
    for row in rows:
        rounds, said = row["rounds"], lambda reached: verdict(reached, row["other_load"]) if a.layers == LAYERS else "-"
        for name in POLICIES:
            m = lambda field: median(rounds, name, field)
            first, prefill, flops = (share(rounds, name, field) for field in ("ms", "prefill_ms", "lm_macs"))
            wanted = "-"
            if name in MOST_FIRST:
                wanted = f"at most {MOST_FIRST[name]} of full {said(first <= MOST_FIRST[name])}"
            if name == FASTV:
                wanted = f"time / TFLOPs {prefill / flops:.3f}, at most {MOST_FASTV} {said(prefill <= MOST_FASTV * flops)}"
            print(f"| {row['weights']} | `{name}` | {m('visual_tokens'):.0f} | {1e-3 * m('vision_ms'):.2f} | {1e-3 * m('prefill_ms'):.2f} "
                  f"| {1e-3 * m('ms'):.2f} | {first:.3f} | {prefill:.3f} | {flops:.3f} | {wanted} |")


def print_choices(rounds, load):
    print("\n| choice behind the tower, 64 tokens | ms | of image to visual tokens | wanted |\n|---|--:|--:|---|")
    for name in sorted(rounds[0]):
        part = share(rounds, name, "choice_ms", "vision_ms")
        print(f"| `{name}` | {median(rounds, name, 'choice_ms'):.2f} | {100 * part:.2f} % "
              f"| at most {100 * MOST_CHOICE:.0f} % {verdict(part <= MOST_CHOICE, load)} |")


def run(a):
    rows = []
    for width in a.widths:
        say(f"image to first token: {width}")
        rows.append(measure(a, width))
    print(f"\nFrom image to first token, {a.layers} of {LAYERS} layers, tower in {a.tower_dtype}; policies in turn, "
          f"medians of {a.rounds} rounds\n")
    print_first(a, rows)
    print_choices(rows[0]["choices"], rows[0]["other_load"])
    print(f"\nothers took {100 * max(r['other_load'] for r in rows):.0f} % of the machine")
    return rows
