# families.py - measures DINOv2, SigLIP and OpenCLIP beside the peers, and what pruning saves of
# their time.
# SPDX-License-Identifier: Apache-2.0
#
# Part of peers.py; see bench/README.md.
import prune
from turns import TITLES, Case, condition, run_case, say, verdict, weights_of

BATCH = 8
LEAST = 1.05  # fastest f32 peer / renyi
MAX_DIFFERENCE = 1e-4  # of the outputs, relative to the largest
# Name, architecture of `renyi init` (224 pixels for all), outputs, metric of the policies.
FAMILIES = [("DINOv2-S/14", "vit_small_patch14_dinov2", 384, "cls"),
            ("DINOv2-B/14", "vit_base_patch14_dinov2", 768, "cls"),
            ("SigLIP-B/16", "vit_base_patch16_siglip_224", 768, "col"),
            ("OpenCLIP B/32", "clip_vit_base_patch32_224", 512, "cls")]
POLICIES = ["evit keep=0.7 layers=0,3,6 metric={}", "mosaic keep=0.7 layers=0,3,6"]


def beside_peers(a, engines, export, threads):
    cases, versions = [], {}
    for name, arch, outputs, _ in FAMILIES[:1] if a.quick else FAMILIES:
        case = Case("family", BATCH, threads, arch=arch, outputs=outputs)
        case.name = name
        say(f"families: {name}, batch {BATCH}, {threads} thread(s)")
        versions.update(run_case(case, engines, export(a, case, engines), a, a.rounds))
        cases.append(case)
    return cases, versions


def report(cases, engines):
    shown = [e for e in engines if any(e in c.ms for c in cases)]
    print("\n| model | " + " | ".join(TITLES[e] for e in shown) + " | fastest peer / renyi | rounds | at least |")
    print("|---|" + "--:|" * (len(shown) + 2) + "---|")
    for c in cases:
        cells = [f"{c.median(e):.2f}" if e in c.ms else "-" for e in shown]
        peer, last = c.fastest_peer(), "- | - | -"
        if peer and "renyi" in c.ms:
            whole, rounds = c.ratio(peer)
            last = f"{whole:.2f}x | {rounds:.2f}x | {LEAST:.2f}x {verdict(rounds >= LEAST, c.load() or 0.0)}"
        print(f"| {c.name} | " + " | ".join(cells) + f" | {last} |")
    worst = max((d for c in cases for d in c.difference.values()), default=0.0)
    print(f"\nlargest difference of the outputs: {worst:.1e}")
    bad = [f"outputs do not agree within {MAX_DIFFERENCE:g}: {worst:g}"] if not worst <= MAX_DIFFERENCE else []
    return bad + [f"{c.name}: {TITLES[e]} does not run: {why}" for c in cases for e, why in c.failed.items()]


def pruned(a, threads):
    rows, faults = [], []
    for name, arch, _, metric in FAMILIES[:1] if a.quick else FAMILIES:
        say(f"families: {name} pruned, batch {BATCH}, {threads} thread(s)")
        try:
            rows += prune.bench_rows(a, weights_of(a, arch), BATCH, threads, 2 * a.rounds,
                                     [p.format(metric) for p in POLICIES], name, image_size=224)
        except RuntimeError as e:
            faults.append(f"{name}: {e}")
    for r in rows:
        r["bound"] = prune.BOUNDS[BATCH] if r["time_ratio"] else None
    prune.print_rows(rows)
    return rows, faults


def run(a, engines, export):
    """Runs everything. Returns measurements and faults. `export` makes the models of the peers."""
    threads = max(a.threads)
    cases, versions = beside_peers(a, engines, export, threads)
    print(f"\nOther families, batch {BATCH}, {threads} thread(s), host {condition(a)}, f32, ms per image, median of {a.rounds} rounds taking turns")
    print("; ".join(dict.fromkeys(versions.values())))
    faults = report(cases, engines)
    rows, more = pruned(a, threads)
    return dict(versions=versions, results=[c.record() for c in cases], pruned=rows), faults + more
