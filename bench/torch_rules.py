# torch_rules.py - EViT and ToMe on timm's VisionTransformer, computed as in their own code.
# SPDX-License-Identifier: Apache-2.0
#
# Written from the published rules (docs/PRUNING.md) for the comparison in bench/prune.py.
# Attention is an explicit matrix, because both rules read or change it. As a program it compares
# EViT with reference logits: torch_rules.py SHARED, the folder with golden/ and models/.
import json
import math
import sys

import torch


def settings(policy):
    """The keys of a policy: {"keep": "0.7", "layers": "3,6,9"}."""
    return dict(word.split("=", 1) for word in policy.split() if "=" in word)


def attend(attn, x, log_size=None):
    """timm's attention with its matrix: output [B, N, C], probabilities [B, H, N, N], keys [B, H,
    N, D]."""
    B, N, C = x.shape
    q, k, v = attn.qkv(x).reshape(B, N, 3, attn.num_heads, C // attn.num_heads).permute(2, 0, 3, 1, 4)
    logits = (q @ k.transpose(-2, -1)) * attn.scale
    if log_size is not None:
        logits = logits + log_size[:, None, None, :]
    a = logits.softmax(dim=-1)
    return attn.proj((a @ v).transpose(1, 2).reshape(B, N, C)), a, k


class Pruned:
    """A timm ViT whose blocks are run by `block(i, module, x)`, which may return fewer tokens."""

    def __init__(self, vit):
        self.vit = vit

    def start(self):
        """Before the first block of a pass."""

    def __call__(self, images):
        v = self.vit
        x = v.norm_pre(v._pos_embed(v.patch_embed(images)))
        self.start()
        for i, module in enumerate(v.blocks):
            x = self.block(i, module, x)
        return v.forward_head(v.norm(x))


class EViT(Pruned):
    """Class attention, mean over heads, ceil, removed tokens fused; cut between attention and MLP.

    `fused`: blocks without a cut use torch's fused attention, which the official code does not."""

    def __init__(self, vit, keep, layers, fused=False):
        super().__init__(vit)
        self.keep, self.layers, self.fused = keep, frozenset(layers), fused

    def block(self, i, m, x):
        cuts = i in self.layers
        if self.fused and not cuts:
            return m(x)
        out, a, _ = attend(m.attn, m.norm1(x))
        x = x + out
        if cuts:
            x = self.cut(x, a[:, :, 0, 1:].mean(dim=1))
        return x + m.mlp(m.norm2(x))

    def cut(self, x, score):
        """x [B, N, C], score [B, N - 1] of all but the class token."""
        B, P = score.shape
        k = math.ceil(self.keep * P)
        if k == P:
            return x
        kept = score.topk(k, dim=1).indices
        is_dropped = torch.ones_like(score, dtype=torch.bool).scatter_(1, kept, False)
        dropped = is_dropped.nonzero()[:, 1].view(B, P - k)  # ascending
        take = lambda index: x[:, 1:].gather(1, index[..., None].expand(-1, -1, x.shape[2]))
        fused = (take(dropped) * score.gather(1, dropped)[..., None]).sum(dim=1, keepdim=True)
        return torch.cat([x[:, :1], take(kept), fused], dim=1)


class ToMe(Pruned):
    """Bipartite merging by cosine of the mean keys, r tokens per block, proportional attention."""

    def __init__(self, vit, r):
        super().__init__(vit)
        self.r, self.size = r, None

    def start(self):
        self.size = None  # [B, N] number of patches in each token; None: all 1

    def block(self, i, m, x):
        out, _, k = attend(m.attn, m.norm1(x), None if self.size is None else self.size.log())
        x = self.merge(x + out, k.mean(dim=1))
        return x + m.mlp(m.norm2(x))

    def merge(self, x, key):
        B, N, C = x.shape
        r = min(self.r, (N - 1) // 2)
        if r <= 0:
            return x
        size = torch.ones(B, N) if self.size is None else self.size
        key = key / key.norm(dim=-1, keepdim=True)
        similar = key[:, ::2] @ key[:, 1::2].transpose(1, 2)
        similar[:, 0] = -math.inf  # the class token stays
        best, partner = similar.max(dim=-1)
        order = best.argsort(dim=-1, descending=True)
        gone, stays = order[:, :r], order[:, r:].sort(dim=1).values
        into = partner.gather(1, gone)
        wide = lambda index: index[..., None].expand(-1, -1, C)
        weighted = x * size[..., None]
        a, b, size_a, size_b = weighted[:, ::2], weighted[:, 1::2], size[:, ::2], size[:, 1::2]
        b = b.scatter_add(1, wide(into), a.gather(1, wide(gone)))
        size_b = size_b.scatter_add(1, into, size_a.gather(1, gone))
        self.size = torch.cat([size_a.gather(1, stays), size_b], dim=1)
        return torch.cat([a.gather(1, wide(stays)), b], dim=1) / self.size[..., None]


def evit_of(vit, policy, fused=False):
    words = settings(policy)
    return EViT(vit, float(words["keep"]), [int(l) for l in words["layers"].split(",")], fused)


def tome_of(vit, policy):
    return ToMe(vit, int(settings(policy)["r"]))


def check(shared):
    """Largest difference from the reference logits (12 images, real weights), per policy."""
    from export import load_timm
    from safetensors.torch import load_file

    golden = load_file(f"{shared}/golden/vit_tiny.safetensors")
    vit = load_timm("vit_tiny_patch16_224",
                    f"{shared}/models/vit_tiny_patch16_224.augreg_in21k_ft_in1k/model.safetensors")
    images = golden["images.pixels"].permute(0, 3, 1, 2).float() / 127.5 - 1.0  # mean = std = 0.5
    out = {}
    with torch.inference_mode():
        for layers in ("0,3,6", "3,6,9"):
            want = golden[f"evit-cls-0.7-{layers.replace(',', '')}.logits"]
            for fused in (False, True):
                got = evit_of(vit, f"evit keep=0.7 layers={layers}", fused)(images)
                name = f"evit keep=0.7 layers={layers}" + (", fused attention" if fused else "")
                out[name] = (got - want).abs().max().item()
    return out


if __name__ == "__main__":
    print(json.dumps(check(sys.argv[1])))
