#!/usr/bin/env python3
# vit_families.py - writes tests/vit_families/: small models with seeded random weights of the
# families that have layer scale, registers, gated MLPs, a LayerNorm before the blocks or rotary
# positions, saved as timm, transformers and Meta save them, and beside each what those libraries compute, in float64:
# features and logits at three input sizes, scores of every block, tokens that rules keep.
#
#   python3 -m venv v && v/bin/pip install torch timm transformers safetensors
#   v/bin/python tools/ref/vit_families.py [tests/vit_families]
#   v/bin/python tools/ref/vit_families.py --real FOLDER      DINOv2 B/14 with registers, DINOv3 S/16,
#                                                             positions at 224, 518, 322 pixels
#
# Scores and cuts come from common.run_blocks, whose dense result must equal the library's.
# SPDX-License-Identifier: Apache-2.0
import timm
import torch
import torch.nn.functional as F
import transformers

from common import (Block, Shape, chosen_cases, columns, family_arguments, hf_blocks, pixels, randomize, run_blocks, timm_blocks, write_case,
                    write_expected, write_timm)
from rules import Policy

SIDES = (24, 32, 16)  # of the input; positions are for the first
PATCH, GRID = 4, 6
POLICIES = {
    "evit_cls": "evit keep=0.7 layers=0,1 metric=cls reduce=fuse weights=cls",
    "evit_col": "evit keep=0.7 layers=0,1 metric=col n=2 reduce=fuse weights=score",
    "evit_no": "evit keep=0.7 layers=0,1 metric=col n=2 registers=no reduce=fuse weights=score",
    "mosaic": "mosaic keep=0.7 layers=0,1",
    "tome": "tome r=4 inflection=0 layers=all",
}


class Case:
    """A library's model, and how to run it. `rows`: the rows after the last block, with its final
    LayerNorm if that comes before pooling; `norm`: that LayerNorm, or the one after pooling; `rope`:
    image -> cosines and sines of rotary positions."""

    def __init__(self, model, blocks, shape, embed, rows, logits, norm, norm_after_pool=False, rope=None):
        self.__dict__.update(locals())

    def run(self, x, policy=None):
        return run_blocks(self.blocks, self.shape, self.embed(x), policy, self.rope(x) if self.rope else None)


# ---- timm --------------------------------------------------------------------------------------

def timm_embed(model):
    def embed(x):
        h = model.patch_embed(x)
        return model.norm_pre(model._pos_embed(h))[0]
    return embed


def timm_case(folder, architecture, seed, classes=0, **args):
    sizes = dict(img_size=PATCH * GRID, patch_size=PATCH, embed_dim=32, depth=3, num_heads=4) | args
    model = timm.create_model(architecture, num_classes=classes, dynamic_img_size=True, **sizes)
    model = randomize(model, seed)
    write_timm(folder, model, architecture, {k: v for k, v in sizes.items()})
    shape = Shape(model.num_prefix_tokens, model.num_reg_tokens, sizes["num_heads"], GRID)
    after = not isinstance(model.fc_norm, torch.nn.Identity)
    return Case(model, timm_blocks(model), shape, timm_embed(model), lambda x: model.forward_features(x)[0],
                (lambda x: model(x)[0]) if classes else None, model.fc_norm if after else model.norm, after)


# ---- transformers ------------------------------------------------------------------------------

def hf_case(folder, seed, registers=0, classes=0, **args):
    sizes = dict(hidden_size=32, num_hidden_layers=3, num_attention_heads=4, image_size=PATCH * GRID,
                 patch_size=PATCH) | args
    if registers:
        config = transformers.Dinov2WithRegistersConfig(num_register_tokens=registers, **sizes)
        kinds = transformers.Dinov2WithRegistersModel, transformers.Dinov2WithRegistersForImageClassification
    else:
        config = transformers.Dinov2Config(**sizes)
        kinds = transformers.Dinov2Model, transformers.Dinov2ForImageClassification
    if classes:
        config.num_labels = classes
    config._attn_implementation = "eager"
    model = randomize(kinds[1 if classes else 0](config), seed)
    model.half().save_pretrained(folder)
    model.double()
    base = model.base_model if classes else model
    shape = Shape(1 + registers, registers, sizes["num_attention_heads"], GRID)
    return Case(model, hf_blocks(base.encoder.layer), shape, lambda x: base.embeddings(x)[0],
                lambda x: base(x).last_hidden_state[0], (lambda x: model(x).logits[0]) if classes else None, base.layernorm)


# ---- DINOv3 ------------------------------------------------------------------------------------

def hf_dinov3_case(folder, seed, **args):
    sizes = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=2, image_size=PATCH * GRID,
                 patch_size=PATCH, num_register_tokens=4) | args
    model = transformers.DINOv3ViTModel(transformers.DINOv3ViTConfig(**sizes))
    model.set_attn_implementation("sdpa")  # eager rounds softmax to float32
    dtype = torch.float32 if sizes["hidden_size"] > 32 else torch.float16
    model = randomize(model, seed, dtype)
    frequencies = model.rope_embeddings.inv_freq  # a buffer that no file has; float16 would round it
    model.to(dtype).save_pretrained(folder)
    model.double()
    model.rope_embeddings.inv_freq = frequencies
    shape = Shape(1 + sizes["num_register_tokens"], sizes["num_register_tokens"], sizes["num_attention_heads"], GRID)
    return Case(model, hf_blocks(model.model.layer), shape, lambda x: model.embeddings(x)[0],
                lambda x: model(x).last_hidden_state[0], None, model.norm, rope=lambda x: model.rope_embeddings(x))


def eva_blocks(model):
    """Of timm's DINOv3; biases of q and v are beside the matrix."""
    def qkv(h, a):
        bias = None if a.q_bias is None else torch.cat([a.q_bias, a.k_bias, a.v_bias])
        return F.linear(h, a.qkv.weight, bias).chunk(3, dim=-1)
    return [Block(b.norm1, lambda h, a=b.attn: qkv(h, a), b.attn.proj, lambda y, b=b: b.gamma_1 * y, b.norm2, b.mlp,
                  lambda y, b=b: b.gamma_2 * y) for b in model.blocks]


def timm_dinov3_case(folder, architecture, seed, classes=0, **args):
    sizes = dict(img_size=PATCH * GRID, patch_size=PATCH, embed_dim=32, depth=3, num_heads=4) | args
    model = randomize(timm.create_model(architecture, num_classes=classes, **sizes), seed)
    write_timm(folder, model, architecture, sizes)

    def rope(x):
        sin, cos = model.rope.get_embed([x.shape[-2] // PATCH, x.shape[-1] // PATCH]).chunk(2, dim=-1)
        return cos, sin
    return Case(model, eva_blocks(model), Shape(5, 4, sizes["num_heads"], GRID), lambda x: model._pos_embed(model.patch_embed(x))[0][0],
                lambda x: model.forward_features(x)[0], (lambda x: model(x)[0]) if classes else None, model.norm, rope=rope)


# ---- Meta --------------------------------------------------------------------------------------

def meta_positions(pos, side, registers):
    """The positions of patches for an input of this side, as dinov2/models/vision_transformer.py
    with the arguments of dinov2/hub/backbones.py: an offset of 0.1 without registers, antialiasing
    and no offset with them."""
    n = side // PATCH
    if n == GRID:
        return pos
    grid = pos.float().reshape(1, GRID, GRID, -1).permute(0, 3, 1, 2)  # Meta interpolates floats
    if registers:
        out = F.interpolate(grid, size=(n, n), mode="bicubic", antialias=True)
    else:
        factor = float(n + 0.1) / GRID
        out = F.interpolate(grid, scale_factor=(factor, factor), mode="bicubic")
    return out.double().permute(0, 2, 3, 1).reshape(n * n, -1)


def meta_name(name):
    for old, new in (("reg_token", "register_tokens"), ("mlp.fc1", "mlp.w12"), ("mlp.fc2", "mlp.w3")):
        if old == "reg_token" or meta_name.gated:
            name = name.replace(old, new)
    return name


def meta_case(folder, seed, gated, registers):
    """timm's modules under Meta's names; a width of 64, because only 64 values a head are guessed."""
    name = "vit_giant_patch14_dinov2" if gated else "vit_small_patch14_dinov2"
    args = dict(reg_tokens=registers, no_embed_class=True) if registers else {}
    if gated:
        args["mlp_ratio"] = 5.5
    model = randomize(timm.create_model(name, img_size=PATCH * GRID, patch_size=PATCH, embed_dim=64, depth=2, num_heads=1,
                                        dynamic_img_size=True, num_classes=0, **args), seed)
    width = 64
    positions = (3.0 * torch.rand(1 + GRID**2, width, generator=torch.Generator().manual_seed(seed + 1)) - 1.5).half().double()
    meta_name.gated = gated
    state = {meta_name(k): v for k, v in model.state_dict().items() if k != "pos_embed"}
    state |= {"pos_embed": positions[None], "mask_token": torch.zeros(1, width)}
    folder.mkdir(parents=True, exist_ok=True)
    torch.save({k: v.half() for k, v in state.items()}, folder / "dinov2.pth")
    shape = Shape(1 + registers, registers, 1, GRID)

    def embed(x):
        h = model.patch_embed(x).reshape(-1, width)
        h = h + meta_positions(positions[1:], x.shape[-1], registers)
        tokens = [model.cls_token[0] + positions[:1]] + ([model.reg_token[0]] if registers else [])
        return torch.cat(tokens + [h])

    blocks = timm_blocks(model)
    return Case(model, blocks, shape, embed, lambda x: model.norm(run_blocks(blocks, shape, embed(x))[0].x), None, model.norm)


# ---- what is expected --------------------------------------------------------------------------

def features(case, x, side, out):
    rows, P = case.rows(x), case.shape.n_prefix
    dense = case.run(x)[0].x
    dense = dense if case.norm_after_pool else case.norm(dense)
    assert (dense - rows).abs().max() < 1e-10 * rows.abs().max(), "run_blocks is not the library's model"
    patches = rows[P:]
    out[f"{side}.patches"] = patches
    out[f"{side}.mean"] = case.norm(patches.mean(0)) if case.norm_after_pool else patches.mean(0)
    if P > case.shape.n_registers:
        out[f"{side}.class"] = case.norm(rows[0]) if case.norm_after_pool else rows[0]
    if case.logits:
        out[f"{side}.logits"] = case.logits(x)


def scores(case, x, out):
    _, views = case.run(x)
    P, has_class = case.shape.n_prefix, case.shape.n_prefix > case.shape.n_registers
    for i, (view, _) in enumerate(views):
        if has_class:
            out[f"block.{i}.cls"] = view.a[0][P:]
        out[f"block.{i}.col n=2"] = columns(view, case.shape, 2)[P:]
        out[f"block.{i}.col n=4"] = columns(view, case.shape, 4)[P:]
        if case.shape.n_registers:
            out[f"block.{i}.col n=2 registers=no"] = columns(view, case.shape, 2, registers=False)[P:]


def cuts(case, x, out, margins):
    """The patches of the rows after every cut (-1: prefix or fused), and the final rows."""
    has_class = case.shape.n_prefix > case.shape.n_registers
    for name, text in POLICIES.items():
        if (name == "evit_cls" and not has_class) or (name == "evit_no" and not case.shape.n_registers):
            continue
        policy = Policy(text)
        t, views = case.run(x, policy)
        margins.append((min(policy.margins), name))
        lists = [v[1].patch for v in views[1:]] + [t.patch]
        for i, patch in enumerate(lists):
            if policy.cuts(i):
                out[f"{name}.kept.{i}"] = torch.tensor([-1 if j is None else j for j in patch], dtype=torch.int32)
        if case.rope:  # rows behind a cut show whether tokens kept their positions
            out[f"{name}.embedding"] = PRUNED[case.logits is None](case, t)


def write(case, folder, seed):
    out, margins = {}, []
    with torch.no_grad():
        for side in SIDES:
            features(case, pixels(seed, 1, side), side, out)
        x = pixels(seed, 1, SIDES[0])
        scores(case, x, out)
        cuts(case, x, out, margins)
    write_case(folder, seed, out, margins)


# What a head reads of the tokens that are left: timm's classifier the mean, transformers the class row.
PRUNED = {True: lambda case, t: case.norm(t.x)[0],
          False: lambda case, t: (case.norm(t.x[case.shape.n_prefix:]) * t.size[case.shape.n_prefix:, None]).sum(0)
          / t.size[case.shape.n_prefix:].sum()}

CASES = {
    "hf_dinov2": lambda f, s: hf_case(f, s, classes=7),
    "hf_dinov2_reg": lambda f, s: hf_case(f, s, registers=4),
    "hf_dinov2_giant": lambda f, s: hf_case(f, s, use_swiglu_ffn=True, num_hidden_layers=2),
    "meta_dinov2": lambda f, s: meta_case(f, s, gated=False, registers=0),
    "meta_dinov2_giant_reg": lambda f, s: meta_case(f, s, gated=True, registers=4),
    "timm_dinov2": lambda f, s: timm_case(f, "vit_small_patch14_dinov2", s),
    "timm_dinov2_reg": lambda f, s: timm_case(f, "vit_small_patch14_reg4_dinov2", s, classes=7),
    "timm_dinov2_giant": lambda f, s: timm_case(f, "vit_giant_patch14_dinov2", s, depth=2),
    "timm_deit3": lambda f, s: timm_case(f, "deit3_small_patch16_224", s, classes=7),
    "timm_reg4_gap": lambda f, s: timm_case(f, "vit_medium_patch16_reg4_gap_256", s, classes=7),
    "timm_reg4_norm_gap": lambda f, s: timm_case(f, "vit_so150m_patch16_reg4_gap_256", s, classes=7, qkv_bias=False),
    "timm_pre_norm": lambda f, s: timm_case(f, "vit_base_patch16_clip_quickgelu_224", s, classes=7),
    "hf_dinov3": lambda f, s: hf_dinov3_case(f, s),
    "hf_dinov3_plus": lambda f, s: hf_dinov3_case(f, s, use_gated_mlp=True, hidden_act="silu", num_hidden_layers=2),
    "timm_dinov3": lambda f, s: timm_dinov3_case(f, "vit_small_patch16_dinov3", s, classes=7),
    "timm_dinov3_plus": lambda f, s: timm_dinov3_case(f, "vit_small_plus_patch16_dinov3_qkvb", s, depth=2),
}
SEEDS = {"timm_pre_norm": 40}  # where the usual one gives a close choice


def real(folder):
    """DINOv2 B/14 with registers, 224 pixels, as transformers saves it; float32."""
    config = transformers.Dinov2WithRegistersConfig(image_size=518)
    config._attn_implementation = "eager"
    model = randomize(transformers.Dinov2WithRegistersModel(config), 1, torch.float32)
    model.float().save_pretrained(folder)
    model.double()
    with torch.no_grad():
        x = pixels(1, 1, 224)
        rows = model(x).last_hidden_state[0]
        attention = model(x, output_attentions=True).attentions
    out = {"224.class": rows[0], "224.mean": rows[5:].mean(0), "224.patches": rows[5:]}
    for i, a in enumerate(attention):
        out[f"block.{i}.col n=2"] = (a[0].mean(0)**2).sum(0).sqrt()[5:]
        out[f"block.{i}.cls"] = a[0].mean(0)[0][5:]
    write_expected(folder / "expected.safetensors", out, {"seed": "1"})


def real_dinov3(folder):
    """DINOv3 S/16, 224 pixels, as transformers saves it; float32."""
    global PATCH, GRID
    PATCH, GRID = 16, 14
    case, out = hf_dinov3_case(folder, 1, hidden_size=384, intermediate_size=1536, num_hidden_layers=12, num_attention_heads=6), {}
    with torch.no_grad():
        features(case, pixels(1, 1, 224), 224, out)
        scores(case, pixels(1, 1, 224), out)
    write_expected(folder / "expected.safetensors", out, {"seed": "1"})


def real_positions(folder):
    """Small models with DINOv2's 37 x 37 positions, at 224, 518 and 322 pixels."""
    global PATCH, GRID
    PATCH, GRID = 14, 37
    for name in ("hf_dinov2", "hf_dinov2_reg", "meta_dinov2", "meta_dinov2_giant_reg", "timm_dinov2"):
        case, out = CASES[name](folder / name, 7), {}
        with torch.no_grad():
            for side in (224, 518, 322):
                features(case, pixels(7, 1, side), side, out)
            scores(case, pixels(7, 1, 224), out)
        write_expected(folder / name / "expected.safetensors", out, {"seed": "7"})


def main():
    a = family_arguments()
    if a.real:
        if a.only != "hf_dinov3_small":
            real_positions(a.folder)
            real(a.folder / "hf_dinov2_base_reg")
        return real_dinov3(a.folder / "hf_dinov3_small")
    for folder, seed, make in chosen_cases(a, CASES, SEEDS, 10):
        write(make(folder, seed), folder, seed)


if __name__ == "__main__":
    main()
