# first_answer.py - measures how long `renyi classify` takes to start: files in the page cache, one image.
# SPDX-License-Identifier: Apache-2.0
#
# Part of peers.py; see bench/README.md.
import glob
import json
import os
import resource
import statistics
import subprocess
import time

from turns import HERE, SHORT, busy_seconds, verdict, weights_of

MOST_READY = {("base", "f32"): 0.15}  # s until the model is ready
MOST_WHOLE = {("tiny", "f32"): 0.06}  # s until the program has answered and ended


def image_file(a):
    """--photo, or an image of the demo, or a drawn image of the project."""
    found = sorted(glob.glob(f"{a.build}/demo/photos/*.jpg")) or sorted(glob.glob(f"{HERE}/../assets/*.png"))
    if not a.photo and not found:
        raise RuntimeError("no image; name one with --photo")
    return a.photo or found[0]


def dtypes(a):
    """What this build computes with."""
    text = subprocess.run([f"{a.build}/renyi", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return next(line.split(":")[1].replace(" ", "").split(",") for line in text.splitlines() if line.startswith("dtypes:"))


def run_once(command, env):
    """Seconds of the whole program, and without decoding the image and running the model."""
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    whole = time.perf_counter() - start
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr else "classify failed")
    answer = json.loads(done.stdout)["results"][0]
    return whole, whole - (answer["ms"] + answer["ms_decode"]) / 1e3


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(a, model, dtype, threads, image):
    """One row: medians and extremes of `ready` and `whole`, and the load of others."""
    command = [f"{a.build}/renyi", "classify", "-q", "--json", "-t", str(threads), "--dtype", dtype, "-m",
               weights_of(a, f"vit_{model}_patch16_224"), image]
    env = dict(os.environ, OMP_NUM_THREADS=str(threads))
    run_once(command, env)
    began, busy, own = time.perf_counter(), busy_seconds(), cpu_seconds()
    times = [run_once(command, env) for _ in range(3 * a.rounds)]
    used = busy_seconds() - busy - (cpu_seconds() - own)
    row = dict(model=model, dtype=dtype, threads=threads, load=max(0.0, used) / ((time.perf_counter() - began) * os.cpu_count()))
    for name, values in (("whole", [w for w, _ in times]), ("ready", [r for _, r in times])):
        row[name] = dict(median=statistics.median(values), least=min(values), most=max(values))
    return row


def cell(r, name, most):
    figure, bound = r[name], most.get((r["model"], r["dtype"]))
    text = f"{1e3 * figure['median']:.0f} ({1e3 * figure['least']:.0f} to {1e3 * figure['most']:.0f})"
    return text + (f", at most {1e3 * bound:.0f} {verdict(figure['median'] <= bound, r['load'])}" if bound else "")


def run(a):
    """Prints the table. Returns measurements and faults."""
    if not os.path.exists(f"{a.build}/renyi"):
        return None, [f"start: no {a.build}/renyi"]
    try:
        image = image_file(a)
        rows = [measure(a, m, d, t, image) for m in a.models for d in dtypes(a) for t in a.threads]
    except RuntimeError as e:
        return None, [f"start: {e}"]
    print(f"\nStart of `renyi classify` on one image, ms; median (least to most) of {3 * a.rounds} runs, files in the page cache\n")
    print("| model | dtype | threads | until the model is ready | until the program has ended |\n|---|---|--:|--:|--:|")
    for r in rows:
        bounds = (MOST_READY, MOST_WHOLE) if r["threads"] == max(a.threads) else ({}, {})
        print(f"| {SHORT[r['model']]} | {r['dtype']} | {r['threads']} | {cell(r, 'ready', bounds[0])} | {cell(r, 'whole', bounds[1])} |")
    return rows, []
