#!/usr/bin/env python3
# make-test-checkpoints.py - writes the tiny PyTorch checkpoints of tests/formats/. They are stored
# in the repository; this script documents how they were made (PyTorch 2.x, NumPy).
# SPDX-License-Identifier: Apache-2.0
import argparse
import collections
import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import torch


def ramp(*shape, dtype=torch.float32, start=0):
    """start, start + 1, ... divided by 8: exact in every float type used."""
    n = int(np.prod(shape))
    return ((torch.arange(n, dtype=torch.float64) + start) / 8).reshape(shape).to(dtype)


class Tower(torch.nn.Module):
    """Weights, buffers and other attributes, one module inside another."""

    def __init__(self):
        super().__init__()
        self.proj = torch.nn.Parameter(ramp(2, 3))
        self.inner = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.ReLU())
        self.register_buffer("side", torch.tensor(224))
        self.sizes = [1, 2]

    def forward(self, x):
        return self.inner(x) @ self.proj + len(self.sizes)


def script_module():
    tower = Tower()
    with torch.no_grad():
        tower.inner[0].weight.copy_(ramp(2, 2, start=1))
    return torch.nn.Sequential(collections.OrderedDict(visual=tower)).half()


def save_script(module, path):
    """torch.jit.save without the debug entries, which contain paths of the machine."""
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(path, "w") as new:
        for entry in old.infolist():
            if not entry.filename.endswith(".debug_pkl"):
                copy = zipfile.ZipInfo(entry.filename)
                copy.compress_type = entry.compress_type
                new.writestr(copy, old.read(entry))


def main():
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "tests/formats")
    out.mkdir(parents=True, exist_ok=True)

    types = collections.OrderedDict(
        f32=ramp(2, 3),
        f16=ramp(4, dtype=torch.float16),
        bf16=ramp(2, 2, dtype=torch.bfloat16),
        f64=ramp(3, dtype=torch.float64),
        i64=torch.arange(5),
        flag=torch.tensor(True),
        empty=torch.zeros(0, 4),
    )
    torch.save(types, out / "types.pth")
    torch.save(dict(types), out / "types_protocol4.pth", pickle_protocol=4)

    # what a training script saves: weights under "model", everything else beside them
    torch.save(
        {
            "model": collections.OrderedDict(w=ramp(2, 2), b=ramp(2, start=4)),
            "optimizer": {"state": {0: {"exp_avg": ramp(2, 2)}}, "param_groups": [{"lr": 0.1, "betas": (0.9, 0.999)}]},
            "epoch": 299,
            "args": argparse.Namespace(model="deit_tiny_patch16_224", lr=5e-4, output_dir=None),
            "best": np.float64(72.5),
        },
        out / "training.pth",
    )

    # views of one storage: x is stored once
    x = ramp(4, 6)
    torch.save(
        {
            "full": x,
            "transposed": x.t(),
            "row": x[1],
            "column": x[:, 2],
            "block": x[1:3, 2:4],
            "parameter": torch.nn.Parameter(ramp(3)),
        },
        out / "views.pth",
    )

    module = torch.nn.Linear(2, 1)
    with torch.no_grad():
        module.weight.copy_(ramp(1, 2))
        module.bias.copy_(ramp(1))
    torch.save(module.state_dict(), out / "module_state.pth")  # an OrderedDict with _metadata
    torch.save(module, out / "refused_whole_module.pth")
    torch.save(module.state_dict(), out / "refused_legacy.pth", _use_new_zipfile_serialization=False)
    torch.save({"w": ramp(1, 3).expand(1000, 3)}, out / "refused_expanded.pth")

    save_script(torch.jit.script(script_module()), out / "torchscript.pt")


if __name__ == "__main__":
    main()
