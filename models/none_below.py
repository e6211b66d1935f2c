#!/usr/bin/env python3
# none_below.py - when does a classifier say "none of these"? Measures the largest logit on images
# of its classes, stores a threshold in the model (metadata renyi.none_below), counts on other images.
# SPDX-License-Identifier: Apache-2.0
#
# The threshold is the largest number, of two decimals, that at most --share of the correctly
# answered images of HELD_OUT are below. HELD_OUT has a folder for each class, named as in the
# model's label_names, with images that the model was not trained on.
#
#   models/none_below.py renyi-nette.safetensors photos/watch --count val=imagenette/val \
#     --count other=imagenet-val --skip 000,482,566,574 --prune none --prune fast
import argparse
import json
import os
import struct
import subprocess


def classify(options, model, folder, policy):
    command = [options.renyi, "classify", "-q", "-k", "1", "-b", "8", "--json", "-m", model, "-r"]
    ran = subprocess.run(command + ["--prune", policy, folder], stdout=subprocess.PIPE, check=True)
    skip = options.skip.split(",")
    return [(os.path.basename(os.path.dirname(r["file"])), r["top"][0], r["none_of_these"])
            for r in json.loads(ran.stdout)["results"]
            if os.path.basename(os.path.dirname(r["file"])) not in skip]


def read_model(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        return json.loads(file.read(size)), file.read()


# The tensors keep their bytes and, since offsets count from the end of the header, their offsets.
def write_model(path, header, body):
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)
    os.replace(path + ".part", path)


def threshold(results, names, share):
    right = sorted(top["logit"] for folder, top, _ in results if names[top["index"]] == folder)
    if not right:
        raise SystemExit("no image of HELD_OUT is answered correctly")
    return int(right[int(share * len(right))] * 100) / 100, len(right)


def main():
    p = argparse.ArgumentParser(description="Stores when a model says \"none of these\".")
    p.add_argument("model"), p.add_argument("held_out", metavar="HELD_OUT")
    p.add_argument("--renyi", default=os.path.join(os.path.dirname(__file__), "../build/renyi"))
    p.add_argument("--share", type=float, default=0.05, help="of correct answers (0.05)")
    p.add_argument("--count", action="append", default=[], metavar="NAME=FOLDER")
    p.add_argument("--prune", action="append", metavar="POLICY", help="of --count (none)")
    p.add_argument("--skip", default="", metavar="A,B,...", help="folders that are not counted")
    options = p.parse_args()

    header, body = read_model(options.model)
    meta = header["__metadata__"]
    names = json.loads(meta["config.json"])["label_names"]
    results = classify(options, options.model, options.held_out, "none")
    below, n = threshold(results, names, options.share)
    meta["renyi.none_below"] = f"{below:.2f}"
    write_model(options.model, header, body)
    print(f"{options.model}: renyi.none_below {below:.2f} from {n} of {len(results)} images")
    for name, folder in (c.split("=", 1) for c in options.count):
        for policy in options.prune or ["none"]:
            results = classify(options, options.model, folder, policy)
            none = [r for r in results if r[2]]
            right = [r for r in results if names[r[1]["index"]] == r[0]]
            line = f"{name}, {policy}: none for {len(none)} of {len(results)}"
            lost = sum(1 for r in right if r[2])
            print(line + (f"; for {lost} of {len(right)} correct answers" if right else ""))


main()
