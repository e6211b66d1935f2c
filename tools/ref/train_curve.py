#!/usr/bin/env python3
# train_curve.py - writes tests/golden_train/curve.safetensors: losses and gradient norms of 20
# steps of AdamW on the tiny model of train_tiny.py, by PyTorch in float64. The images come from a
# formula that the C test computes too, so that only the 20 numbers are stored.
# SPDX-License-Identifier: Apache-2.0
import argparse
import math
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file

from rules import Policy
from tiny_vit import forward, noise, weights
from train_tiny import MODELS, image_seed

STEPS, BATCH, WARM_UP, CLIP = 20, 8, 3, 3.2  # some steps are clipped
PEAK, MIN, WARM_UP_LR = 1e-3, 1e-5, 1e-6
POLICY = "evit keep=0.7 layers=0,1 metric=cls reduce=fuse weights=cls"


def batch_of(c, step):
    """Images that are half noise, half the pattern of their class, in float32."""
    labels = [(7 * (step * BATCH + i) + i // 3) % c.classes for i in range(BATCH)]
    shape = (3, c.side, c.side)
    images = [np.float32(0.5) * noise(10_000 + step * BATCH + i, *shape) + noise(20_000 + k, *shape) * np.float32(0.5)
                for i, k in enumerate(labels)]
    return torch.tensor(np.stack(images), dtype=torch.float64), torch.tensor(labels)


def rate(step):
    if step < WARM_UP:
        return WARM_UP_LR + (PEAK - WARM_UP_LR) * step / WARM_UP
    return MIN + (PEAK - MIN) * (1 + math.cos(math.pi * step / STEPS)) / 2


def decays(name, p):
    return p.ndim > 1 and name not in ("pos_embed", "cls_token")


def main():
    a = argparse.ArgumentParser()
    a.add_argument("folder", nargs="?", default="tests/golden_train", type=Path)
    folder = a.parse_args().folder
    c, policy = MODELS["class"], Policy(POLICY)
    p = weights(c, 100 * image_seed("class"))
    groups = [{"params": [v for k, v in p.items() if decays(k, v) == d], "weight_decay": 0.05 * d} for d in (True, False)]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.999), eps=1e-8)
    losses, norms = [], []
    for step in range(STEPS):
        images, labels = batch_of(c, step)
        logits = torch.stack([forward(p, c, x, policy)[0][0] for x in images])
        loss = F.cross_entropy(logits, labels, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(p.values(), CLIP).item())
        for g in optimizer.param_groups:
            g["lr"] = rate(step)
        optimizer.step()
        losses.append(loss.item())
        print(f"step {step:2}  lr {rate(step):.3e}  loss {losses[-1]:.6f}  norm {norms[-1]:.4f}")
    if min(policy.margins) < 2e-5:
        raise SystemExit(f"a choice has a margin of only {min(policy.margins):.1e}; take other images")
    print(f"closest choice {min(policy.margins):.1e}")
    save_file({"loss": np.array(losses), "norm": np.array(norms)}, folder / "curve.safetensors", {"policy": POLICY})


if __name__ == "__main__":
    main()
