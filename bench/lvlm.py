# lvlm.py - make bench-lvlm: measures LLaVA-1.5-7B at full size with random weights: memory, time
# from image to first token, and the language model beside llama.cpp.
# SPDX-License-Identifier: Apache-2.0
#
# See bench/README.md. Only llama.cpp needs packages: numpy, gguf and llama-cpp-python.
import argparse
import json
import os
import platform
import subprocess
import sys
from importlib.util import find_spec

import lvlm_first
import lvlm_speed
from lvlm_files import ARCH, LAYERS, Files
from turns import say

PARTS = ["memory", "first", "speed"]
WIDTHS = ["int8", "int4"]
MOST_MB = {"int8": 8000, "int4": 5000}


def ask(a, model, dtype):
    """A whole `renyi ask` with all 576 visual tokens."""
    prompt = " ".join(map(str, [1] + [319] * 34 + [32000] + [29871] * 13))
    command = [f"{a.build}/renyi", "ask", "-q", "-m", model, "--dtype", dtype, "--tower-dtype", a.tower_dtype, "-t", str(a.threads),
               "--prompt-ids", prompt, "--max-new-tokens", "8", "--ignore-eos", "--json", a.photo]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def memory(a):
    """Peak memory with mapped files, for weights from the F16 files and from the quantized
    file."""
    rows = []
    for width in a.widths:
        for source, model in (("F16, converted when opened", a.files.f16()), ("quantized file, mapped", a.files.quantized(width))):
            say(f"memory: {width}, {source}")
            answer = ask(a, model, width)
            rows.append(dict(weights=width, source=source, peak_rss_mb=answer["peak_rss_mb"], tower=answer["tower_dtype"],
                             visual_tokens=answer["visual_tokens"], prompt_tokens=answer["prompt_tokens"], most_mb=MOST_MB[width]))
    print(f"\nPeak memory of `renyi ask`, {a.layers} of {LAYERS} layers\n")
    print("| weights | tower | from | rows of the prompt | peak MB | wanted |\n|---|---|---|--:|--:|---|")
    for r in rows:
        reached = "-" if a.layers != LAYERS else "yes" if r["peak_rss_mb"] <= r["most_mb"] else "NO"
        print(f"| {r['weights']} | {r['tower']} | {r['source']} | {r['prompt_tokens']} | {r['peak_rss_mb']:.0f} | at most {r['most_mb']} {reached} |")
    return rows


def cpu_model():
    with open("/proc/cpuinfo") as f:
        name = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), "unknown CPU")
    return f"{name}, {os.cpu_count()} CPUs; Linux {platform.release()}"


def missing_peers():
    return [m for m in ("numpy", "gguf", "llama_cpp") if not find_spec(m)]


def arguments():
    p = argparse.ArgumentParser(
        prog="bench/run-lvlm", description="LLaVA-1.5-7B with random weights: memory, time to the first "
        "token, speed beside llama.cpp")

    def one_of(allowed):
        return lambda s: [w for w in s.split(",")
                          if w in allowed or p.error(f"{w}: not one of {', '.join(allowed)}")]

    p.add_argument("--only", type=one_of(PARTS), default=PARTS, metavar="PARTS", help=",".join(PARTS))
    p.add_argument("--widths", type=one_of(WIDTHS), default=WIDTHS, metavar="WIDTHS",
                   help=",".join(WIDTHS))
    p.add_argument("--layers", type=int, default=LAYERS, metavar="N",
                   help=f"of the language model ({LAYERS}); with fewer, targets that need the size are "
                   "not judged")
    p.add_argument("--threads", type=int, default=os.cpu_count(), metavar="N", help="of every engine (all CPUs)")
    p.add_argument("--rounds", type=int, default=5, metavar="N", help="turns of each engine (5)")
    p.add_argument("--rows", type=int, default=256, metavar="N", help="ids of the prompt (256; at most 512)")
    p.add_argument("--tokens", type=int, default=32, metavar="N", help="ids one at a time (32)")
    p.add_argument("--tower-dtype", default="auto", metavar="D",
                   help="number format of the image tower (auto: the fastest of this CPU)")
    p.add_argument("--scratch", metavar="DIR",
                   help="where models are stored (BUILD/bench-lvlm; 40 GB with all layers)")
    p.add_argument("--quick", action="store_true",
                   help="2 layers, 2 rounds, short prompts: only to check that it runs")
    p.add_argument("--json", metavar="FILE", help="all measurements")
    p.add_argument("--build", default="build", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.quick:
        a.layers, a.rounds, a.rows, a.tokens = min(a.layers, 2), min(a.rounds, 2), min(a.rows, 64), min(a.tokens, 8)
    if not 1 <= a.layers <= LAYERS or not 1 <= a.rows <= 512 or min(a.rounds, a.tokens, a.threads) < 1 or a.tokens > 512:
        p.error(f"--layers is 1 to {LAYERS}, --rows and --tokens 1 to 512, the others at least 1")
    return a


def prepare(a):
    """Sets the paths and checks the free space. Warns if llama.cpp is not installed."""
    a.scratch = a.scratch or f"{a.build}/bench-lvlm"
    os.makedirs(a.scratch, exist_ok=True)
    missing = missing_peers() if "speed" in a.only else []
    a.has_peer = "speed" in a.only and not missing
    if missing:
        say(f"*** llama.cpp IS LEFT OUT: {', '.join(missing)} not installed. No comparison with it is made ***")
    a.files = Files(a)
    a.files.check_space(a.widths + [f"{w}.gguf" for w in a.widths if a.has_peer])
    a.photo = a.files.photo()


def main():
    a = arguments()
    prepare(a)
    result, faults = dict(cpu=cpu_model(), arch=ARCH, layers=a.layers, threads=a.threads, rounds=a.rounds), []
    print(f"{cpu_model()}; {a.threads} thread(s)\n{ARCH}, {a.layers} of {LAYERS} layers of the language model, random weights")
    if "memory" in a.only:
        result["memory"] = memory(a)
    if "first" in a.only:
        result["first_token"] = lvlm_first.run(a)
    if "speed" in a.only:
        result["speed"], faults = lvlm_speed.run(a)
    if a.json:
        with open(a.json, "w") as f:
            json.dump(result, f, indent=1)
    if faults:
        sys.exit("\n".join(faults))
    return 0


if __name__ == "__main__":
    sys.exit(main())
