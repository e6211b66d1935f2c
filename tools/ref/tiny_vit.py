# tiny_vit.py - a small Vision Transformer with pruned tokens for PyTorch's autograd, the reference
# for the trainer's gradients. One image at a time, float64, plain functions; docs/PRUNING.md
# explains the rules.
# SPDX-License-Identifier: Apache-2.0
import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

EPS = 1e-6  # of LayerNorm


# ---- numbers that C computes too ---------------------------------------------------------------

def splitmix(seed, n):
    """The first n numbers of ry_rng_uniform, in [0, 1)."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15) * np.arange(1, n + 1, dtype=np.uint64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


def noise(seed, *shape):
    """Uniform in [-2, 2), rounded to float32: images."""
    return (4.0 * splitmix(seed, math.prod(shape)) - 2.0).astype(np.float32).reshape(shape)


# ---- the model ---------------------------------------------------------------------------------

@dataclass
class Config:
    name: str
    n_prefix: int = 1  # class, distillation token, registers
    n_registers: int = 0  # then only patches have positions
    layer_scale: bool = False
    mean_pool: bool = False  # the head reads LayerNorm of the mean of the patches
    pre_norm: bool = False  # LayerNorm before the blocks; then patches have no bias
    act: str = "gelu"  # or quick_gelu
    gated: bool = False  # SwiGLU: mlp is the width after the gate
    class_mean: bool = False  # the head reads the class row and the mean of the patches
    attn_pool: bool = False  # the head reads what a learned query attends to
    dim: int = 16
    blocks: int = 3
    heads: int = 2
    mlp: int = 24
    patch: int = 4
    side: int = 20
    classes: int = 5

    @property
    def grid(self):
        return self.side // self.patch


def placed(c):
    """Prefix tokens that have a position: with registers none in timm, the class token in transformers."""
    n_class = c.n_prefix - c.n_registers
    return 0 if c.n_registers and not c.class_mean else n_class


def shapes(c):
    """timm's names and shapes."""
    D, n = c.dim, c.grid**2
    n_class = c.n_prefix - c.n_registers
    out = {"cls_token": (1, 1, D)} if n_class else {}
    if n_class == 2:
        out["dist_token"] = (1, 1, D)
    if c.n_registers:
        out["reg_token"] = (1, c.n_registers, D)
    out |= {"pos_embed": (1, n + placed(c), D), "patch_embed.proj.weight": (D, 3, c.patch, c.patch)}
    out |= {"norm_pre.weight": (D,), "norm_pre.bias": (D,)} if c.pre_norm else {"patch_embed.proj.bias": (D,)}
    fc1 = 2 * c.mlp if c.gated else c.mlp
    for i in range(c.blocks):
        for name, rows, columns in (("attn.qkv", 3 * D, D), ("attn.proj", D, D), ("mlp.fc1", fc1, D), ("mlp.fc2", D, c.mlp)):
            out |= {f"blocks.{i}.{name}.weight": (rows, columns), f"blocks.{i}.{name}.bias": (rows,)}
        for name in ("norm1", "norm2"):
            out |= {f"blocks.{i}.{name}.weight": (D,), f"blocks.{i}.{name}.bias": (D,)}
        if c.layer_scale:
            out |= {f"blocks.{i}.ls1.gamma": (D,), f"blocks.{i}.ls2.gamma": (D,)}
    norm = "fc_norm" if c.mean_pool else "norm"
    width = 2 * D if c.class_mean else D
    out |= {f"{norm}.weight": (D,), f"{norm}.bias": (D,), "head.weight": (c.classes, width), "head.bias": (c.classes,)}
    if c.attn_pool:
        out |= {"attn_pool.latent": (1, 1, D), "attn_pool.norm.weight": (D,), "attn_pool.norm.bias": (D,)}
        for name, rows, columns in (("q", D, D), ("kv", 2 * D, D), ("proj", D, D), ("mlp.fc1", c.mlp, D), ("mlp.fc2", D, c.mlp)):
            out |= {f"attn_pool.{name}.weight": (rows, columns), f"attn_pool.{name}.bias": (rows,)}
    if n_class == 2:
        out |= {"head_dist.weight": (c.classes, D), "head_dist.bias": (c.classes,)}
    return out


def weights(c, seed):
    """Seeded weights, exact in float16; large enough that attention clearly prefers some tokens."""
    out = {}
    for k, (name, shape) in enumerate(shapes(c).items()):
        u = 2.0 * splitmix(seed + 1000 * k, math.prod(shape)) - 1.0
        if "norm" in name and name.endswith("weight"):
            u = 1.0 + 0.3 * u
        elif name.endswith("gamma"):
            u = np.sign(u) * (0.3 + np.abs(u))
        elif len(shape) == 1:
            u = 0.3 * u
        elif name.endswith("weight"):
            gain = 2.0 if "qkv" in name or ".kv." in name else 1.0
            u = gain * math.sqrt(3.0 / math.prod(shape[1:])) * u
        out[name] = torch.tensor(u.reshape(shape).astype(np.float16).astype(np.float64), requires_grad=True)
    return out


def norm(p, name, x):
    return F.layer_norm(x, x.shape[-1:], p[f"{name}.weight"], p[f"{name}.bias"], EPS)


def linear(p, name, x):
    return F.linear(x, p[f"{name}.weight"], p[f"{name}.bias"])


def scaled(p, name, x):
    """Layer scale, if the model has it."""
    return x * p[f"{name}.gamma"] if f"{name}.gamma" in p else x


def embed(p, c, chw):
    x = F.conv2d(chw[None], p["patch_embed.proj.weight"], p.get("patch_embed.proj.bias"), stride=c.patch)
    x = x.flatten(2)[0].T
    tokens = torch.cat([x[:0]] + [p[name][0] for name in ("cls_token", "dist_token", "reg_token") if name in p])
    pos, n = p["pos_embed"][0], placed(c)
    x = torch.cat([tokens[:n] + pos[:n], tokens[n:], x + pos[n:]])
    return norm(p, "norm_pre", x) if c.pre_norm else x


def mlp(p, c, name, x):
    h = linear(p, f"{name}.fc1", x)
    if c.gated:
        gate, up = h.chunk(2, dim=-1)
        h = F.silu(gate) * up
    else:
        h = F.gelu(h) if c.act == "gelu" else h * torch.sigmoid(1.702 * h)
    return linear(p, f"{name}.fc2", h)


def probe_attention(p, c, t):
    """[H, N] attention of the pooling head's query to the patches, and [N, 2 D] keys and values."""
    d = c.dim // c.heads
    q = linear(p, "attn_pool.q", p["attn_pool.latent"][0]).reshape(c.heads, 1, d)
    kv = linear(p, "attn_pool.kv", norm(p, "norm", t.x[c.n_prefix:]))
    k, v = kv.reshape(-1, 2, c.heads, d).permute(1, 2, 0, 3)
    a = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(d) + t.size[c.n_prefix:].log(), dim=-1)
    return a, (a @ v).reshape(c.dim)


def probe_row(p, c, t):
    """What rules read instead of class attention. Gradients do not flow through it."""
    if not c.attn_pool:
        return None
    a = probe_attention(p, c, t)[0].mean(0)[0].detach()
    return torch.cat([a.new_zeros(c.n_prefix), a])


def pool_by_attention(p, c, t):
    x = linear(p, "attn_pool.proj", probe_attention(p, c, t)[1])
    return x + mlp(p, c, "attn_pool.mlp", norm(p, "attn_pool.norm", x))


@dataclass
class Tokens:
    """The token list between blocks."""
    x: torch.Tensor  # [N, D]
    size: torch.Tensor  # [N] number of patches in each
    patch: list  # [N] the patch of each; None for prefix and fused tokens
    memory: torch.Tensor = None  # [N - prefix] mosaic: importance of the members of each at the merge before


@dataclass
class View:
    """What a rule reads of a block."""
    each: torch.Tensor  # [H, N, N] attention
    keys: torch.Tensor  # [N, d] mean over heads
    y: torch.Tensor  # [N, D] after the attention residual
    probe: torch.Tensor = None  # [N] attention of a pooling head's probe, if that replaces the class token

    @property
    def a(self):
        """[N, N] mean over heads."""
        return self.each.mean(0)

    @property
    def row(self):
        """[N] attention of the class token, or of the probe."""
        return self.a[0] if self.probe is None else self.probe


def attend(p, c, name, t, beta=1.0, temperature=1.0):
    """Attention, and what rules read of it. beta log(size) is added to the logits of each key, which the temperature divided."""
    n, d = len(t.x), c.dim // c.heads
    q, k, v = linear(p, f"{name}.attn.qkv", norm(p, f"{name}.norm1", t.x)).reshape(n, 3, c.heads, d).permute(1, 2, 0, 3)
    a = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(d) / temperature + beta * t.size.log(), dim=-1)
    out = linear(p, f"{name}.attn.proj", (a @ v).transpose(0, 1).reshape(n, c.dim))
    return out, a, k.mean(0)


def block(p, c, i, t, policy, branch):
    """branch: factors of the two residual branches (stochastic depth)."""
    name = f"blocks.{i}"
    probe = probe_row(p, c, t)
    merged = policy and t.memory is not None  # only mosaic's merges remember
    h, a, keys = attend(p, c, name, t, policy.beta if policy else 1.0, policy.temperature if merged else 1.0)
    y = t.x + branch[0] * scaled(p, f"{name}.ls1", h)
    mid = policy and policy.cuts(i) and policy.keys.get("at", "mid") == "mid"
    end = policy and policy.cuts(i) and not mid
    view = View(a, keys, y, probe)
    if mid:
        y, t = policy.cut(c, i, t, view)
    h = mlp(p, c, f"{name}.mlp", norm(p, f"{name}.norm2", y))
    z = y + branch[1] * scaled(p, f"{name}.ls2", h)
    if end:
        z, t = policy.cut(c, i, t, View(a, keys, z, probe))
    return Tokens(z, t.size, t.patch, t.memory)


def forward(p, c, chw, policy=None, branch=None):
    """chw: [3, S, S]. Returns logits of each head, and the tokens after the last block."""
    x = embed(p, c, chw)
    n = len(x)
    t = Tokens(x, torch.ones(n, dtype=x.dtype), [None] * c.n_prefix + list(range(n - c.n_prefix)))
    for i in range(c.blocks):
        t = block(p, c, i, t, policy, (1.0, 1.0) if branch is None else (branch[2 * i], branch[2 * i + 1]))
    if c.mean_pool:
        x, s = t.x[c.n_prefix:], t.size[c.n_prefix:]
        return [linear(p, "head", norm(p, "fc_norm", s @ x / s.sum()))], t
    if c.attn_pool:
        return [linear(p, "head", pool_by_attention(p, c, t))], t
    x = norm(p, "norm", t.x)
    if c.class_mean:
        s = t.size[c.n_prefix:]
        return [linear(p, "head", torch.cat([x[0], s @ x[c.n_prefix:] / s.sum()]))], t
    return [linear(p, head, x[k]) for k, head in enumerate(("head", "head_dist")[:c.n_prefix - c.n_registers])], t
