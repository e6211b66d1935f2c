"""Prints the two tables of docs/TRAINING.md, one per layer set, from the runs of
models/finetune.sh. usage: finetune_table.py FOLDER
SPDX-License-Identifier: Apache-2.0"""
import json
import os
import sys

LAYERS = ("0,3,6", "3,6,9")
PAPER = {  # top-1 after fine-tuning, Table 13, for each of LAYERS; mosaic is ours
    "cls": (77.2, 81.0),
    "correct": (79.3, 81.1),
    "random": (77.3, 79.4),
    "mosaic": ("", ""),
}


def cells(run):
    """Top-1 before the first update and after the last epoch; mean loss of the first and
    of the last tenth of the updates."""
    with open(os.path.join(run, "log.jsonl")) as file:
        lines = [json.loads(line) for line in file]
    top1 = [line["val_top1"] for line in lines if line["kind"] == "epoch" and "val_top1" in line]
    losses = [line["loss"] for line in lines if line["kind"] == "step"]
    tenth = max(1, len(losses) // 10)
    first, last = (sum(part) / tenth for part in (losses[:tenth], losses[-tenth:]))
    return f"{top1[0]:.1f}", f"{top1[-1]:.1f}", f"{first:.3f} to {last:.3f}"


def main(folder):
    for i, layers in enumerate(LAYERS):
        print(f"| rule | ({layers}): before | after | loss | paper, after |")
        print("|---|" + "--:|" * 4)
        for rule, paper in PAPER.items():
            run = os.path.join(folder, f"{rule}-{layers.replace(',', '')}")
            print("| " + " | ".join([f"`{rule}`", *cells(run), str(paper[i])]) + " |")
        print()


if __name__ == "__main__":
    main(sys.argv[1])
