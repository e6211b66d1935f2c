"""Prints the accuracies of models/finetune.sh as a table. usage: finetune_table.py FOLDER
SPDX-License-Identifier: Apache-2.0"""
import json
import os
import sys

RULES = ("cls", "correct", "random", "mosaic")
LAYERS = ("036", "369")


def accuracies(run):
    """Top-1 before the first update and after the last epoch, and the loss of the first and last tenth of the updates."""
    with open(os.path.join(run, "log.jsonl")) as file:
        lines = [json.loads(line) for line in file]
    epochs = [line for line in lines if line["kind"] == "epoch" and "val_top1" in line]
    steps = [line["loss"] for line in lines if line["kind"] == "step"]
    tenth = max(1, len(steps) // 10)
    return epochs[0]["val_top1"], epochs[-1]["val_top1"], sum(steps[:tenth]) / tenth, sum(steps[-tenth:]) / tenth


def main(folder):
    print("| rule | " + " | ".join(f"{when} ({','.join(layers)})" for layers in LAYERS for when in ("before", "after", "first loss", "last loss")) + " |")
    print("|---|" + "--:|" * 8)
    for rule in RULES:
        cells = []
        for layers in LAYERS:
            before, after, first, last = accuracies(os.path.join(folder, f"{rule}-{layers}"))
            cells += [f"{before:.1f}", f"{after:.1f}", f"{first:.3f}", f"{last:.3f}"]
        print(f"| {rule} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
