# common.py - what the generators of models with random weights share: weights that show a mistake,
# files as the libraries write them, and a plain float64 run of the blocks of a library's model that
# also gives what pruning rules read. Needs PyTorch, NumPy and safetensors.
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import math
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from tiny_vit import Tokens, View, noise

SCALES = ("gamma", "gamma_1", "gamma_2", "lambda1")  # names of layer scale
TOKENS = ("cls_token", "reg_token", "register_tokens", "pos_embed", "position_embeddings", "mask_token", "probe", "latent")


def randomize(model, seed, dtype=torch.float16):
    """Seeded weights that are exact in `dtype`. Nothing is near zero or one by accident: norms,
    layer scale of both signs, tokens and biases all matter. Returns the model in float64."""
    generator = torch.Generator().manual_seed(seed)
    for name, p in sorted(model.named_parameters()):
        u = 2.0 * torch.rand(p.shape, generator=generator, dtype=torch.float64) - 1.0
        last = name.split(".")[-1]
        if last in SCALES:
            u = u.sign() * (0.3 + u.abs())
        elif ("norm" in name or "ln_" in name) and last == "weight":
            u = 1.0 + 0.3 * u
        elif last in TOKENS:
            u = 1.5 * u
        elif p.ndim == 1:
            u = 0.3 * u
        else:
            u = math.sqrt(3.0 / math.prod(p.shape[1:])) * (2.0 if any(k in name for k in ("qkv", "q_proj", "k_proj")) else 1.0) * u
        p.data = u.to(dtype).to(torch.float64)
    return model.double().eval()


def pixels(seed, n, side):
    """[n, 3, side, side] by the formula of golden_noise in tests/fixtures/train_golden.h."""
    return torch.tensor(noise(seed, n, 3, side, side), dtype=torch.float64)


def write_tensors(path, tensors, dtype=torch.float16, meta=None):
    save_file({k: v.detach().to(dtype).contiguous() for k, v in tensors.items()}, path, meta or {"format": "pt"})


def write_timm(folder, model, architecture, args, dtype=torch.float16):
    """A folder as timm's save_for_hf writes it: model.safetensors and config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / "model.safetensors", model.state_dict(), dtype)
    config = {"architecture": architecture, "num_classes": model.num_classes, "num_features": model.num_features,
              "global_pool": model.global_pool, "model_args": args}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def write_expected(path, tensors, meta=None):
    """Numbers as float32, token lists as int32."""
    save_file({k: (v if v.dtype == torch.int32 else v.to(torch.float32)).contiguous() for k, v in tensors.items()},
              path, meta or {})


def write_case(folder, seed, tensors, margins):
    """The expected numbers of a model. A choice between tokens that rounding could change is refused."""
    margin, name = min(margins)
    if margin < 2e-5:
        raise SystemExit(f"{folder.name}: {name} has a margin of only {margin:.1e}; take another seed")
    write_expected(folder / "expected.safetensors", tensors, {"seed": str(seed)})
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{folder.name:24} {size / 1024:6.0f} KB  closest choice {margin:.1e} ({name})")


def family_arguments():
    a = argparse.ArgumentParser()
    a.add_argument("folder", nargs="?", default="tests/vit_families", type=Path)
    a.add_argument("--real", action="store_true", help="models of published shapes, for a comparison by hand")
    a.add_argument("--only", metavar="NAME", help="this model alone")
    return a.parse_args()


def chosen_cases(a, cases, seeds, first):
    """Empty folder, seed and maker of each model; the seeds count from `first` unless `seeds` has one."""
    for k, (name, make) in enumerate(cases.items()):
        if not a.only or a.only == name:
            shutil.rmtree(a.folder / name, ignore_errors=True)
            yield a.folder / name, seeds.get(name, first + k), make


@dataclass
class Block:
    """One block of a library's model: functions on rows [N, D]."""
    norm1: object
    qkv: object  # rows -> q, k, v, each [N, D]
    proj: object
    scale1: object
    norm2: object
    mlp: object
    scale2: object


@dataclass
class Shape:
    n_prefix: int  # class token and registers
    n_registers: int
    heads: int
    grid: int
    probe: object = None  # rows, sizes -> [N]: attention of the pooling head's probe


def timm_blocks(model):
    keep = torch.nn.Identity()
    return [Block(b.norm1, lambda h, b=b: b.attn.qkv(h).chunk(3, dim=-1), b.attn.proj, getattr(b, "ls1", keep), b.norm2, b.mlp,
                  getattr(b, "ls2", keep)) for b in model.blocks]


def hf_blocks(layers):
    """Of transformers' DINOv2 and DINOv3."""
    return [Block(b.norm1, lambda h, a=b.attention: (a.q_proj(h), a.k_proj(h), a.v_proj(h)), b.attention.o_proj, b.layer_scale1,
                  b.norm2, b.mlp, b.layer_scale2) for b in layers]


def rotate(x, patch, rope):
    """x: [H, N, d] queries or keys; those of a patch are turned by its row of rope (cos, sin), each
    [P, d]. Tokens without a patch, the prefix and what evit fuses, stay as they are. A merged token
    has the patch of the token that it continues."""
    rows = [j for j, p in enumerate(patch) if p is not None]
    cos, sin = (m[[patch[j] for j in rows]] for m in rope)
    moved, half = x[:, rows], x.shape[-1] // 2
    out = x.clone()
    out[:, rows] = moved * cos + torch.cat([-moved[..., half:], moved[..., :half]], -1) * sin
    return out


def run_blocks(blocks, shape, x, policy=None, rope=None):
    """x: [N, D] after the embedding. rope: cosines and sines of rotary positions. Returns the tokens
    after the last block, and for every block its view before the cut."""
    n, width = x.shape
    t = Tokens(x, torch.ones(n, dtype=x.dtype), [None] * shape.n_prefix + list(range(n - shape.n_prefix)))
    views, d = [], width // shape.heads
    for i, b in enumerate(blocks):
        q, k, v = (m.reshape(-1, shape.heads, d).transpose(0, 1) for m in b.qkv(b.norm1(t.x)))
        if rope:
            q, k = rotate(q, t.patch, rope), rotate(k, t.patch, rope)
        a = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(d) + t.size.log(), dim=-1)
        y = t.x + b.scale1(b.proj((a @ v).transpose(0, 1).reshape(-1, width)))
        view = View(a, k.mean(0), y, shape.probe(t.x, t.size) if shape.probe else None)
        views.append((view, t))
        if policy and policy.cuts(i):
            y, t = policy.cut(shape, i, t, view)
        t = Tokens(y + b.scale2(b.mlp(b.norm2(y))), t.size, t.patch)
    return t, views


def columns(view, shape, n, class_row=True, registers=True):
    """Col-Ln of every token: (sum_i A_ij^n)^(1/n) over the rows that count."""
    rows = [i for i in range(len(view.a)) if i >= shape.n_prefix
            or (class_row if i < shape.n_prefix - shape.n_registers else registers)]
    return (view.a[rows] ** n).sum(0) ** (1.0 / n)
