#!/usr/bin/env python3
# train_tiny.py - writes tests/golden_train/: tiny models, and for each case (a policy, a loss) the
# logits, the loss and the gradient of every parameter, by PyTorch's autograd in float64. The files
# are stored in the repository; this script documents how they were made (PyTorch 2.x, NumPy,
# safetensors). The gradients of a case are one list, parameters in the order of their names; `step`
# has the unit of each.
#
#   python3 tools/ref/train_tiny.py [tests/golden_train]
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file

from rules import Policy
from tiny_vit import EPS, Config, forward, noise, norm, splitmix, weights

IMAGES = 4
FEATURE_DIM = 6
MODELS = {c.name: c for c in (Config("class"), Config("distilled", n_prefix=2, blocks=2),
                              Config("mean", n_prefix=0, mean_pool=True, blocks=3),
                              Config("registers", n_prefix=4, n_registers=3, layer_scale=True),
                              Config("registers_mean", n_prefix=2, n_registers=2, layer_scale=True, mean_pool=True, blocks=2),
                              Config("pre_norm", pre_norm=True, act="quick_gelu"),
                              Config("class_mean", class_mean=True, layer_scale=True),
                              Config("class_mean_gated", n_prefix=3, n_registers=2, class_mean=True, layer_scale=True, gated=True, blocks=2),
                              Config("gated", n_prefix=3, n_registers=2, layer_scale=True, gated=True),
                              Config("attn_pool", n_prefix=0, attn_pool=True))}
# case -> model, policy, special settings
CASES = {
    "dense": ("class", None, {}),
    "evit_cls": ("class", "evit keep=0.7 layers=0,1 metric=cls reduce=fuse weights=cls", {"soft": True, "branch": True}),
    "evit_score": ("class", "evit keep=0.7 layers=0,1 metric=col n=2 reduce=fuse weights=score", {}),
    "evit_rows": ("class", "evit keep=0.7 layers=0,1 metric=col n=3 class_row=no diagonal=no reduce=fuse weights=score", {}),
    "evit_correct": ("class", "evit keep=0.7 layers=0,1 metric=correct n=2 c=0.4 reduce=fuse weights=cls", {}),
    "evit_merge": ("class", "evit keep=0.7 layers=0,1 metric=col n=4 reduce=merge", {}),
    "naive": ("class", "naive p=5 layers=0,1 metric=col n=4 reduce=drop", {}),
    "naive_end": ("class", "naive p=5 layers=0,1 metric=cls reduce=drop at=end", {}),
    "mosaic": ("class", "mosaic keep=0.7 layers=0,1", {}),
    "mosaic_powers": ("class", "mosaic keep=0.9,0.7,0.8 layers=0,1,2 alpha=1 omega=0.75 beta=0.9", {"distil": "soft", "features": True}),
    "mosaic_columns": ("class", "mosaic keep=0.9,0.7,0.8 layers=0,1,2 alpha=1 omega=1 beta=0.8 memory=0.5 length=max col=0.2 temperature=1.25", {}),
    "tome": ("class", "tome r=4 inflection=0 layers=all", {}),
    "features": ("class", "evit keep=0.7 layers=0,2 metric=cls reduce=fuse weights=cls", {"distil": "soft", "features": True}),
    "two_heads": ("distilled", "evit keep=0.7 layers=0 metric=cls reduce=fuse weights=cls", {"distil": "hard"}),
    "two_heads_labels": ("distilled", "mosaic keep=0.7 layers=0", {"soft": True}),
    "mean": ("mean", "mosaic keep=0.7 layers=0,1,2", {}),
    "mean_powers": ("mean", "mosaic keep=0.8,0.6 layers=1,2 alpha=1.25 omega=0.5 beta=0.8", {}),
    "mean_memory": ("mean", "mosaic keep=0.8,0.7,0.6 layers=0,1,2 alpha=1 omega=0.75 beta=0.9 memory=0.25", {}),
    "mean_fuse": ("mean", "evit keep=0.7 layers=0,2 metric=col n=2 heads=each reduce=merge,fuse weights=score", {}),
    "registers": ("registers", None, {"branch": True}),
    "registers_evit": ("registers", "evit keep=0.7 layers=0,1 metric=cls reduce=fuse weights=cls", {"soft": True, "branch": True}),
    "registers_no": ("registers", "evit keep=0.7 layers=0,1 metric=col n=2 registers=no reduce=fuse weights=score", {}),
    "registers_mosaic": ("registers", "mosaic keep=0.7 layers=0,1", {"distil": "soft", "features": True}),
    "registers_mean": ("registers_mean", "mosaic keep=0.7 layers=0,1", {}),
    "registers_end": ("registers_mean", "naive p=5 layers=0,1 metric=col n=4 reduce=drop at=end", {"branch": True}),
    "pre_norm": ("pre_norm", None, {"branch": True}),
    "pre_norm_evit": ("pre_norm", "evit keep=0.7 layers=0,1 metric=cls reduce=fuse weights=cls", {"soft": True, "branch": True}),
    "pre_norm_mosaic": ("pre_norm", "mosaic keep=0.7 layers=0,1", {"distil": "soft", "features": True}),
    "class_mean": ("class_mean", None, {"branch": True}),
    "class_mean_evit": ("class_mean", "evit keep=0.7 layers=0,1 metric=cls reduce=fuse weights=cls", {"branch": True}),
    "class_mean_mosaic": ("class_mean", "mosaic keep=0.7 layers=0,1", {"distil": "soft", "features": True}),
    "class_mean_gated": ("class_mean_gated", "mosaic keep=0.7 layers=0,1", {"branch": True}),
    "gated": ("gated", None, {"branch": True}),
    "gated_evit": ("gated", "evit keep=0.7 layers=0,1 metric=cls reduce=fuse weights=cls", {"soft": True, "branch": True}),
    "gated_mosaic": ("gated", "mosaic keep=0.7 layers=0,1", {"distil": "soft", "features": True}),
    "attn_pool": ("attn_pool", None, {"branch": True}),
    "attn_pool_evit": ("attn_pool", "evit keep=0.7 layers=0,1 metric=pool reduce=fuse weights=pool", {"soft": True, "branch": True}),
    "attn_pool_mosaic": ("attn_pool", "mosaic keep=0.7 layers=0,1", {"distil": "soft", "features": True}),
    "attn_pool_tome": ("attn_pool", "tome r=4 inflection=0 layers=all", {}),
}
# Counts that depend on the image cannot be trained: only logits, and the tokens that are left.
LIKENESS = ("class", "mosaic keep=0.5 layers=0,1,2 alpha=1 omega=1 beta=0.8 memory=0.5 length=max col=0.2 temperature=1.25 likeness=0.5")
ALPHA, TEMPERATURE, FEATURE_WEIGHT = 0.3, 3.0, 2.0


def image_seed(model):
    return 1 + list(MODELS).index(model)


# ---- losses: means over the images, as src/train defines them ----------------------------------

def targets_of(soft, classes):
    """[IMAGES, classes]: one class per image, or shares of all classes."""
    if not soft:
        return np.eye(classes, dtype=np.float32)[np.arange(IMAGES) * 3 % classes]
    t = splitmix(40, IMAGES * classes).reshape(IMAGES, classes)**2
    return (t / t.sum(1, keepdims=True)).astype(np.float32)


def cross_entropy(logits, target):
    return -(target * F.log_softmax(logits, 1)).sum(1).mean()


def teacher_loss(kind, logits, teacher):
    if kind == "hard":
        return F.cross_entropy(logits, teacher.argmax(1))
    log_p, log_q = F.log_softmax(teacher / TEMPERATURE, 1), F.log_softmax(logits / TEMPERATURE, 1)
    return TEMPERATURE**2 * (log_p.exp() * (log_p - log_q)).sum(1).mean()


def answer_loss(heads, kind, out):
    """Labels train the first head, a teacher the last; without one, labels train their mean."""
    target = torch.tensor(out["target"], dtype=torch.float64)
    if not kind:
        return cross_entropy(sum(heads) / len(heads), target)
    out["teacher"] = noise(41, *heads[0].shape)
    teacher = torch.tensor(out["teacher"], dtype=torch.float64)
    return (1 - ALPHA) * cross_entropy(heads[0], target) + ALPHA * teacher_loss(kind, heads[-1], teacher)


def feature_parameters(dim):
    w, b = noise(77, FEATURE_DIM, dim), noise(78, FEATURE_DIM)
    return {"feature.weight": torch.tensor(w, dtype=torch.float64, requires_grad=True),
            "feature.bias": torch.tensor(b, dtype=torch.float64, requires_grad=True)}


def feature_loss(p, c, tokens, out):
    """Smooth L1 between the rows that are patches and the teacher's tokens of these patches."""
    teacher = torch.tensor(noise(79, IMAGES, c.grid**2, FEATURE_DIM), dtype=torch.float64)
    rows = [norm(p, "norm", t.x[c.n_prefix:]) @ p["feature.weight"].T + p["feature.bias"] for t in tokens]
    patches = [t.patch[c.n_prefix:] for t in tokens]
    out["features"] = torch.stack(rows).detach().numpy().astype(np.float32)
    out["patch"] = np.array([[-1 if j is None else j for j in list_] for list_ in patches], np.int32)
    loss = 0.0
    for r, list_, t in zip(rows, patches, teacher):
        here = [k for k, j in enumerate(list_) if j is not None]
        loss = loss + F.smooth_l1_loss(r[here], t[[list_[k] for k in here]])
    return loss / IMAGES


# ---- cases -------------------------------------------------------------------------------------

def quantized(grad):
    """16-bit steps of 1/32767 of the maximum: half the size, errors under a sixth of the tolerance."""
    assert np.abs(grad).max() > 0
    step = np.float32(np.abs(grad).max() / 32767)
    return np.round(grad / step).astype(np.int16), step


def run_case(name):
    model, text, special = CASES[name]
    c = MODELS[model]
    p = weights(c, 100 * image_seed(model))
    images = torch.tensor(noise(image_seed(model), IMAGES, 3, c.side, c.side), dtype=torch.float64)
    policy = Policy(text) if text else None
    out = {}
    branch = None
    if special.get("branch"):  # 0 or 1 / 0.8, as in stochastic depth
        branch = np.where(splitmix(55, 2 * c.blocks * IMAGES) < 0.2, 0.0, 1.25).astype(np.float32).reshape(-1, IMAGES)
        out["branch"] = branch
    if special.get("features"):
        p |= feature_parameters(c.dim)
    ran = [forward(p, c, x, policy, None if branch is None else branch[:, i].tolist()) for i, x in enumerate(images)]
    heads = [torch.stack(rows) for rows in zip(*(h for h, _ in ran))]
    for rows, suffix in zip(heads, ("", "_dist")):
        out["logits" + suffix] = rows.detach().numpy().astype(np.float32)
    out["target"] = targets_of(special.get("soft"), c.classes)
    loss = answer_loss(heads, special.get("distil"), out)
    if special.get("features"):
        loss = loss + FEATURE_WEIGHT * feature_loss(p, c, [t for _, t in ran], out)
    loss.backward()
    out["loss"] = np.array([loss.item()], np.float32)
    grads = [quantized(p[k].grad.numpy()) for k in sorted(p)]
    out["grad"] = np.concatenate([g.ravel() for g, _ in grads])
    out["step"] = np.array([step for _, step in grads], np.float32)
    return out, policy


def run_likeness():
    model, text = LIKENESS
    c, policy = MODELS[model], Policy(text)
    p = weights(c, 100 * image_seed(model))
    images = torch.tensor(noise(image_seed(model), IMAGES, 3, c.side, c.side), dtype=torch.float64)
    ran = [forward(p, c, x, policy) for x in images]
    logits = torch.stack([heads[0] for heads, _ in ran]).detach().numpy().astype(np.float32)
    return {"logits": logits, "tokens": np.array([len(t.x) for _, t in ran], np.int32)}, policy


def dinov2_names(tensors, c):
    """transformers' names, as save_pretrained writes them; only it has a head on class row and mean."""
    prefix = "dinov2_with_registers" if c.n_registers else "dinov2"
    ends = {"cls_token": "embeddings.cls_token", "reg_token": "embeddings.register_tokens", "pos_embed": "embeddings.position_embeddings",
            "patch_embed.proj": "embeddings.patch_embeddings.projection", "norm": "layernorm"}
    inside = {"attn.proj": "attention.output.dense", "ls1.gamma": "layer_scale1.lambda1", "ls2.gamma": "layer_scale2.lambda1"}
    if c.gated:
        inside |= {"mlp.fc1": "mlp.weights_in", "mlp.fc2": "mlp.weights_out"}
    out = {}
    for name, x in tensors.items():
        stem, _, kind = name.rpartition(".") if name.endswith(("weight", "bias")) else (name, "", "")
        if stem.startswith("blocks."):
            _, i, part = stem.split(".", 2)
            layer = f"{prefix}.encoder.layer.{i}."
            if part == "attn.qkv":
                for third, which in zip(np.split(x, 3), ("query", "key", "value")):
                    out[f"{layer}attention.attention.{which}.{kind}"] = np.ascontiguousarray(third)
                continue
            new = layer + inside.get(part, part)
        else:
            new = "classifier" if stem == "head" else f"{prefix}.{ends[stem]}"
        out[f"{new}.{kind}" if kind else new] = x
    return out


def write_models(folder):
    for name, c in MODELS.items():
        tensors = {k: v.detach().numpy().astype(np.float16) for k, v in weights(c, 100 * image_seed(name)).items()}
        meta = {"num_heads": str(c.heads)}
        if c.class_mean:
            tensors = dinov2_names(tensors, c)
        if c.pre_norm:
            meta["config.json"] = json.dumps({"layer_norm_eps": EPS, "model_args": {"act_layer": c.act}})
        save_file(tensors, folder / "models" / f"{name}.safetensors", meta)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("folder", nargs="?", default="tests/golden_train", type=Path)
    a = a.parse_args()
    for sub in ("models", "counts"):
        (a.folder / sub).mkdir(parents=True, exist_ok=True)
    write_models(a.folder)
    for name, (model, text, special) in (CASES | {"mosaic_likeness": (*LIKENESS, None)}).items():
        out, policy = run_case(name) if special is not None else run_likeness()
        if policy and min(policy.margins) < 2e-5:
            raise SystemExit(f"{name}: a choice has a margin of only {min(policy.margins):.1e}; take another seed")
        meta = {"model": model, "policy": text or "none", "pictures": str(image_seed(model)), "distil": (special or {}).get("distil", "none")}
        save_file(out, a.folder / ("" if special is not None else "counts") / f"case_{name}.safetensors", meta)
        result = f"loss {out['loss'][0]:.5f}" if special is not None else f"tokens {out['tokens'].tolist()}"
        print(f"{name:17} {result}  closest choice {min(policy.margins) if policy else 1:.1e}")


if __name__ == "__main__":
    main()
