# clip.py - measures CLIP ViT-B/16: images beside the peers, 80 templates for 1000 classes, and the
# cost of TCA.
# SPDX-License-Identifier: Apache-2.0
#
# Part of peers.py; see bench/README.md.
import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec

import formats
from prune import children_seconds
from turns import HERE, TITLES, Case, busy_seconds, run_case, run_together, say, verdict, weights_of

FULL, QUICK = "base", "tiny"  # sizes; the quick one only shows that it runs
OURS = {"f32": "renyi-f32", "bf16": "renyi-bf16", "int8": "renyi-int8"}
# The rivals in each format; the fastest of several counts.
RIVALS = [("f32", ["openvino"]), ("f32", ["onnxruntime"]), ("bf16", ["openvino-bf16"]), ("int8", ["openvino-int8"]),
          ("int8", formats.ORT_INT8)]
SLACK = 0.97              # of the ViT's lead: single figures scatter this much on a quiet machine
MAX_DIFFERENCE = 1e-3     # of the embeddings in f32
MOST_SECONDS = 180        # all texts, in bf16 or, where the CPU lacks it, int8
TCA_POLICIES = ["tca drop=0.1 layers=3,6,9", "tca drop=0.1 layers=3,6,9 metric=col n=4"]
TCA_CLASSES = 1000
MOST_TCA = 1.05           # time with TCA over time without, image by image
TCA_ROUNDS = 8            # times the others': a few percent must be visible


# ---- images ------------------------------------------------------------------------------------

def has_bf16():
    """Whether the CPU has it. Elsewhere OpenVINO would emulate it; renyi refuses."""
    with open("/proc/cpuinfo") as f:
        return "bf16" in f.read()


def engines_here():
    peers = [e for e in formats.available() if e in formats.PEERS]
    if find_spec("openvino"):
        peers = ["openvino", *(["openvino-bf16"] if has_bf16() else []), *peers]
    return [*OURS.values(), *peers]


def files_of(a, case, engines, export):
    """The files of formats.py; OpenVINO's IR is for f32 and bf16."""
    files = formats.prepare(a, case, engines, export)
    if "openvino" in engines:
        files.update(export(a, case, {"openvino"}))
        files.update({"openvino-bf16": files.get("openvino")})
    return {e: f for e, f in files.items() if f}


def images(a, export, threads):
    """CLIP's embeddings, and a ViT of the same size, with whose lead they are compared."""
    size, engines, cases, versions = QUICK if a.quick else FULL, engines_here(), [], {}
    outputs = embed_width(a, f"clip_vit_{size}_patch16_224")
    for batch in a.batches:
        pair = [Case("clip", batch, threads, arch=f"clip_vit_{size}_patch16_224", outputs=outputs), Case(size, batch, threads)]
        say(f"clip: {pair[0].arch} beside {pair[1].arch}, batch {batch}, {threads} thread(s)")
        files = [files_of(a, case, engines, export) for case in pair]
        together = [(case, [e for e in engines if e in f], f) for case, f in zip(pair, files)]
        versions.update(run_together(together, a, a.rounds))
        cases += pair
    print(f"\nCLIP: images, {threads} thread(s), ms per image, median of {a.rounds} rounds taking turns")
    print("; ".join(dict.fromkeys(versions.values())))
    table(cases, engines)
    found = leads(cases)
    worst = max((c.difference[e] for c in cases for e in ("openvino", "onnxruntime") if e in c.difference), default=0.0)
    print(f"\nlargest difference of the answers in f32: {worst:.1e}")
    faults = [f"embeddings do not agree within {MAX_DIFFERENCE:g}: {worst:g}"] if not worst <= MAX_DIFFERENCE else []
    return dict(versions=versions, rounds=a.rounds, results=[c.record() for c in cases], leads=found), faults


def embed_width(a, arch):
    with open(weights_of(a, arch), "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
    return header["visual_projection.weight"]["shape"][0]


def table(cases, engines):
    shown = [e for e in engines if any(e in c.ms for c in cases)]
    print("\n| model | batch | " + " | ".join(TITLES[e] for e in shown) + " | others |")
    print("|---|--:|" + "--:|" * (len(shown) + 1))
    for c in cases:
        cells = [f"{c.median(e):.2f}" if e in c.ms else "-" for e in shown]
        print(f"| {c.arch} | {c.batch} | " + " | ".join(cells) + f" | {100 * (c.load() or 0.0):.0f} % |")


def lead(case, ours, rivals):
    """How many times as fast as the fastest rival, and which that is."""
    ran = [e for e in rivals if e in case.ms]
    if not ran or ours not in case.ms:
        return None, None
    other = min(ran, key=case.median)
    return case.ratio(other, ours)[1], other


def leads(cases):
    out = []
    print("\n| batch | format | peer | CLIP: peer / renyi | ViT: peer / renyi | as far ahead |\n|--:|---|---|--:|--:|---|")
    for clip, vit in zip(cases[::2], cases[1::2]):
        for form, rivals in RIVALS:
            (got, other), (wanted, _) = lead(clip, OURS[form], rivals), lead(vit, OURS[form], rivals)
            if not got or not wanted:
                continue
            load = max(clip.load() or 0.0, vit.load() or 0.0)
            out.append(dict(batch=clip.batch, dtype=form, peer=other, clip=got, vit=wanted))
            print(f"| {clip.batch} | {form} | {TITLES[other]} | {got:.2f} | {wanted:.2f} | {verdict(got >= SLACK * wanted, load)} |")
    return out


# ---- texts -------------------------------------------------------------------------------------

def tokenizer_of(a):
    """--tokenizer, or the merges file of the reference data."""
    shared = os.environ.get("RENYI_SHARED") or os.path.join(HERE, "..", "..", "shared")
    default = f"{shared}/data/tokenizers/bpe_simple_vocab_16e6.txt.gz"
    return a.tokenizer or (default if os.path.exists(default) else None)


def run_texts(a, weights, tokenizer, dtype, threads):
    templates, classes = (8, 100) if a.quick else (80, 1000)
    start, busy, own = time.perf_counter(), busy_seconds(), children_seconds()
    done = subprocess.run([sys.executable, os.path.join(HERE, "texts.py"), "--model", weights, "--tokenizer",
                           tokenizer, "--dtype", dtype, "--threads", str(threads), "--templates", str(templates), "--classes",
                           str(classes)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["?"])[-1])
    row = json.loads(done.stdout)
    capacity = (time.perf_counter() - start) * os.cpu_count()
    row["other_load"] = max(0.0, busy_seconds() - busy - children_seconds() + own) / capacity
    return row


def texts(a, weights, threads):
    tokenizer, rows = tokenizer_of(a), []
    if not tokenizer:
        say("texts: no merges file; name CLIP's with --tokenizer bpe_simple_vocab_16e6.txt.gz")
        return []
    for dtype in OURS:
        say(f"clip: texts in {dtype}, {threads} thread(s)")
        try:
            rows.append(run_texts(a, weights, tokenizer, dtype, threads))
            say(f"  {rows[-1]['seconds']:.1f} s")
        except RuntimeError as e:
            say(f"  {e}")
    if not rows:
        return rows
    bound = None if a.quick else "bf16" if any(r["dtype"] == "bf16" for r in rows) else "int8"
    r = rows[0]
    print(f"\nCLIP: texts, {threads} thread(s): {r['templates']} sentences x {r['classes']} names; {r['tokens']} tokens, of which "
          f"{r['computed_tokens']} are computed, padded it would be {77 * r['texts']}")
    print("\n| format | seconds | texts/s | GFLOP/s | at most |\n|---|--:|--:|--:|---|")
    for r in rows:
        wanted = f"{MOST_SECONDS} s {verdict(r['seconds'] <= MOST_SECONDS, r['other_load'])}" if r["dtype"] == bound else "-"
        print(f"| {r['dtype']} | {r['seconds']:.1f} | {r['texts'] / r['seconds']:.0f} | {r['gflop'] / r['seconds']:.0f} | {wanted} |")
    return rows


# ---- TCA ---------------------------------------------------------------------------------------

def adapting(a, weights, arch, threads):
    """The same tokens without and with a full reservoir and anchors, taking turns."""
    cases, engines = [], ["renyi-condense", "renyi-tca"]
    for policy in TCA_POLICIES[:1 if a.quick else None]:
        for batch in a.batches:
            case = Case("clip", batch, threads, policy, arch=arch, outputs=TCA_CLASSES)
            say(f"clip: {policy}, batch {batch}, {threads} thread(s)")
            run_case(case, engines, dict.fromkeys(engines, weights), a, TCA_ROUNDS * a.rounds)
            cases.append(case)
    print(f"\nCLIP: TCA, {threads} thread(s), {TCA_CLASSES} classes with three items each and anchors, ms per image, median of "
          f"{TCA_ROUNDS * a.rounds} rounds taking turns")
    print("\n| policy | batch | without | with TCA | with / without | at most | others |\n|---|--:|--:|--:|--:|---|--:|")
    out = []
    for c in [c for c in cases if len(c.ms) == 2]:
        got, load = c.ratio("renyi-tca", "renyi-condense")[1], c.load() or 0.0
        wanted = f"{MOST_TCA:.2f} {verdict(got <= MOST_TCA, load)}" if c.batch == 1 else "-"
        out.append({**c.record(), "with_over_without": got})
        print(f"| {c.policy} | {c.batch} | {c.median('renyi-condense'):.2f} | {c.median('renyi-tca'):.2f} | {got:.3f} | "
              f"{wanted} | {100 * load:.0f} % |")
    print("\nWith TCA an image depends on the ones before, so images run one by one; the ratio includes what a batch saves without TCA")
    return out, [f"{TITLES[e]} does not run: {r}" for c in cases for e, r in c.failed.items()]


def run(a, export):
    """Runs everything. Returns measurements and faults. `export` makes the f32 models of the
    peers."""
    threads, arch = max(a.threads), f"clip_vit_{QUICK if a.quick else FULL}_patch16_224"
    weights = weights_of(a, arch)
    found, faults = images(a, export, threads)
    rows = texts(a, weights, threads)
    tca, more = adapting(a, weights, arch, threads)
    return dict(pictures=found, texts=rows, tca=tca), faults + more
