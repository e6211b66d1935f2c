# lm_worker.py - runs one engine of bench/lvlm.py in its own process: one command per line on
# stdin, one line of JSON for each on stdout.
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import os
import sys


def peak_mb():
    """Peak memory of the process, mapped files included."""
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) * 1024e-6


def answer(engine, command, argument):
    if command == "prefill":
        return dict(ms=engine.prefill(int(argument)))
    if command == "decode":
        return dict(ms=engine.decode(int(argument)))
    if command == "read":
        return dict(bytes_per_second=engine.read(int(argument)))
    if command == "first":
        return engine.first(argument)
    if command == "logits":
        return dict(logits=engine.logits())
    if command == "info":
        return dict(engine.info(), rss_mb=peak_mb())
    raise ValueError(f"unknown command {command}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("engine", choices=("renyi", "first", "llama.cpp", "bandwidth"))
    p.add_argument("--file")
    p.add_argument("--photo")
    p.add_argument("--scratch")
    p.add_argument("--tower-dtype", default="auto")
    p.add_argument("--threads", type=int, default=1)
    a = p.parse_args()
    # Replies go to a copy of stdout; what a library prints there goes to the log.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if a.engine in ("renyi", "first"):  # renyi's libraries do not meet llama.cpp's
        from engines_lvlm import ENGINES
    else:
        from engines_lm import ENGINES
    engine = ENGINES[a.engine](a)
    print(json.dumps(dict(ready=engine.version, in_flight=1)), file=out, flush=True)
    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        print(json.dumps(answer(engine, command, argument)), file=out, flush=True)


if __name__ == "__main__":
    main()
