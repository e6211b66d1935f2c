# test_replay.py - renyi's choice of tokens, replayed in other engines, gives renyi's logits.
# SPDX-License-Identifier: Apache-2.0
import json
import struct
from math import sqrt

import numpy as np
import pytest
import renyi
from conftest import ROOT, document_lines

POLICIES = ["evit keep=0.7 layers=0,3,6 reduce=drop", "evit keep=0.5 layers=3,9 metric=col reduce=drop at=end"]


@pytest.fixture(scope="module")
def weights():
    """Tensors of the built-in model in float64, with timm's names."""
    data = (ROOT / "models" / "renyi-nette.safetensors").read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    config = json.loads(header.pop("__metadata__")["config.json"])
    found = {}
    for name, tensor in header.items():
        first, end = (start + offset for offset in tensor["data_offsets"])
        kind = {"F16": np.float16, "F32": np.float32}[tensor["dtype"]]
        found[name] = np.frombuffer(data[first:end], kind).reshape(tensor["shape"]).astype(np.float64)
    return found, config


def norm(x, w, name):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-6) * w[name + ".weight"] + w[name + ".bias"]


def linear(x, w, name):
    return x @ w[name + ".weight"].T + w[name + ".bias"]


def gelu(x):
    from math import erf

    return 0.5 * x * (1 + np.vectorize(erf)(x / sqrt(2)))


def forward(w, chw, info, steps):
    """A ViT as timm writes it, with the lines of docs/PYTHON.md that replay the cuts."""
    n, side, patch = len(chw), info.image_size // info.patch_size, info.patch_size
    patches = chw.reshape(n, 3, side, patch, side, patch).transpose(0, 2, 4, 1, 3, 5).reshape(n, side * side, -1)
    kernel = w["patch_embed.proj.weight"].reshape(info.dim, -1)
    x = patches @ kernel.T + w["patch_embed.proj.bias"]
    x = np.concatenate([np.repeat(w["cls_token"], n, axis=0), x], axis=1) + w["pos_embed"]

    def cut(x, block, after):
        for step in steps:
            if (step.block, step.after) == (block, after):
                x = np.take_along_axis(x, step.index[:, :, None], axis=1)
        return x

    for i in range(info.n_blocks):
        b = f"blocks.{i}."
        qkv = linear(norm(x, w, b + "norm1"), w, b + "attn.qkv")
        q, k, v = qkv.reshape(n, -1, 3, info.n_heads, info.dim // info.n_heads).transpose(2, 0, 3, 1, 4)
        scores = q @ k.transpose(0, 1, 3, 2) / sqrt(q.shape[-1])
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (scores / scores.sum(-1, keepdims=True)) @ v
        x = x + linear(mixed.transpose(0, 2, 1, 3).reshape(n, -1, info.dim), w, b + "attn.proj")
        x = cut(x, i, "attention")
        x = x + linear(gelu(linear(norm(x, w, b + "norm2"), w, b + "mlp.fc1")), w, b + "mlp.fc2")
        x = cut(x, i, "block")
    return linear(norm(x, w, "norm")[:, 0], w, "head")


def normalized(model, photos):
    from PIL import Image

    info, side = model.info, model.info.image_size
    pixels = np.stack([np.asarray(Image.open(photo).convert("RGB").resize((side, side))) for photo in photos])
    mean, std = np.asarray(info.mean, np.float32), np.asarray(info.std, np.float32)
    return np.ascontiguousarray(((pixels.astype(np.float32) / 255 - mean) / std).transpose(0, 3, 1, 2))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_plain_vit_with_our_choice_has_our_logits(model, photos, weights, policy):
    chw = normalized(model, photos[:2])
    session = model.session(policy, batch_size=4, trace=True)
    logits = session.run_tensor(chw)
    steps = renyi.replay(session)
    assert np.allclose(forward(weights[0], chw.astype(np.float64), model.info, steps), logits, atol=1e-4)
    # The choice matters: without it, and with another one, the logits are others.
    assert not np.allclose(forward(weights[0], chw.astype(np.float64), model.info, []), logits, atol=1e-2)


@pytest.mark.reference
def test_timm_with_our_choice_has_our_logits(model, photos, weights):
    """The lines of docs/PYTHON.md."""
    torch = pytest.importorskip("torch", reason="no torch: timm's own model is not pruned")
    timm = pytest.importorskip("timm", reason="no timm: timm's own model is not pruned")
    info = model.info
    theirs = timm.models.vision_transformer.VisionTransformer(
        img_size=info.image_size, patch_size=info.patch_size, embed_dim=info.dim, depth=info.n_blocks,
        num_heads=info.n_heads, mlp_ratio=info.mlp_dim / info.dim, num_classes=info.n_classes).eval()
    theirs.load_state_dict({name: torch.from_numpy(tensor.astype(np.float32)) for name, tensor in weights[0].items()})
    chw = normalized(model, photos[:2])
    session = model.session(POLICIES[0], batch_size=4, trace=True)
    logits = session.run_tensor(torch.from_numpy(chw))
    names = dict(torch=torch, renyi=renyi, session=session, vit=theirs, batch=torch.from_numpy(chw))
    with torch.no_grad():
        exec(document_lines("docs/PYTHON.md", "vit.blocks"), names)
        assert not torch.allclose(theirs(names["batch"]), torch.from_dlpack(logits), atol=1e-2)
    assert torch.allclose(names["logits"], torch.from_dlpack(logits), atol=1e-3)


def test_what_cannot_be_replayed(model, photos):
    session = model.session("tome r=4", trace=True)
    with pytest.raises(renyi.ArgumentError, match="run it first"):
        renyi.replay(session)
    session.run(photos[0])
    with pytest.raises(renyi.ArgumentError, match="merges or fuses"):
        renyi.replay(session)
    with pytest.raises(TypeError):
        renyi.replay(model)
