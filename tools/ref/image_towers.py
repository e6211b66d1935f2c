#!/usr/bin/env python3
# image_towers.py - writes more folders of tests/vit_families: small image towers with seeded random
# weights of SigLIP and OpenCLIP, saved as transformers, timm and open_clip save them, and beside
# each what those libraries compute, in float64: embeddings, scores of every block, the attention of
# the pooling head's probe, tokens that rules keep and the embedding after their cuts.
#
#   python3 -m venv v && v/bin/pip install torch timm transformers open_clip_torch safetensors
#   v/bin/python tools/ref/image_towers.py [tests/vit_families]
#   v/bin/python tools/ref/image_towers.py --real FOLDER     SigLIP-B/16, OpenCLIP B/32 and heads of
#                                                            80 values as in H/14, float32
# SPDX-License-Identifier: Apache-2.0
import json

import open_clip
import timm
import torch
import transformers
from safetensors.torch import save_file
from timm.models import register_model
from timm.models.vision_transformer import VisionTransformer

from common import (Block, Shape, chosen_cases, columns, family_arguments, pixels, randomize, run_blocks, timm_blocks, write_case,
                    write_expected, write_timm)
from rules import Policy

SIDE, PATCH, GRID = 24, 4, 6
POLICIES = {
    "evit_cls": "evit keep=0.7 layers=0,1 metric=cls reduce=fuse weights=cls",
    "evit_col": "evit keep=0.7 layers=0,1 metric=col n=2 reduce=fuse weights=score",
    "evit_pool": "evit keep=0.7 layers=0,1 metric=pool reduce=fuse weights=pool",
    "evit_correct": "evit keep=0.7 layers=0,1 metric=correct n=2 c=0.5 reduce=fuse weights=cls",
    "naive_pool": "naive p=5 layers=0,1 metric=pool reduce=drop",
    "mosaic": "mosaic keep=0.7 layers=0,1",
    "tome": "tome r=4 inflection=0 layers=all",
}


class Case:
    """A library's model and how to run it. embed: pixels -> rows; norm: the final LayerNorm; embedding:
    pixels -> the library's answer; pool: rows, sizes -> the same from the rows after the last block."""

    def __init__(self, blocks, shape, embed, norm, embedding, pool, logits=None, sides=(SIDE,)):
        self.__dict__.update(locals())


def keep(x):
    return x


# ---- pooling -----------------------------------------------------------------------------------

def mha_probe(head):
    """Of transformers' SiglipMultiheadAttentionPoolingHead: torch's own weights, head mean. A token
    of `size` patches counts that often."""
    def attention(h, size):
        mask = size.log()[None]
        return head.attention(head.probe, h[None], h[None], attn_mask=mask, need_weights=True)
    return lambda h, size: attention(h, size)[1][0, 0], lambda h, size: attention(h, size)[0][0, 0]


def latent_probe(pool):
    """Of timm's AttentionPoolLatent, written from its forward."""
    def attention(h, size):
        d = pool.head_dim
        q = pool.q(pool.latent[0]).reshape(pool.num_heads, d)
        k, v = pool.kv(h).reshape(len(h), 2, pool.num_heads, d).permute(1, 2, 0, 3)
        a = torch.softmax((k @ q[:, :, None])[:, :, 0] * pool.scale + size.log(), dim=-1)
        return a, (a[:, None] @ v).reshape(-1)
    return lambda h, size: attention(h, size)[0].mean(0), lambda h, size: pool.proj(attention(h, size)[1])


def pooled(attend, norm, mlp):
    def run(h, size):
        y = attend(h, size)
        return y + mlp(norm(y))
    return run


# ---- transformers ------------------------------------------------------------------------------

def clip_blocks(layers):
    return [Block(b.layer_norm1, lambda h, a=b.self_attn: (a.q_proj(h), a.k_proj(h), a.v_proj(h)), b.self_attn.out_proj, keep,
                  b.layer_norm2, b.mlp, keep) for b in layers]


SIGLIP = dict(hidden_size=36, num_hidden_layers=3, num_attention_heads=2, intermediate_size=70, image_size=SIDE, patch_size=PATCH)


def siglip_case(folder, seed, kind):
    texts = dict(hidden_size=36, num_hidden_layers=1, num_attention_heads=2, intermediate_size=40, vocab_size=20,
                 max_position_embeddings=8, bos_token_id=1, eos_token_id=2)
    config = transformers.SiglipConfig(vision_config=SIGLIP, text_config=texts)
    if kind == "classes":
        config.num_labels = 7
        model = transformers.SiglipForImageClassification(config)
    else:
        model = transformers.SiglipModel(config) if kind == "both" else transformers.SiglipVisionModel(config.vision_config)
    model.set_attn_implementation("sdpa")  # eager rounds softmax to float32
    model = randomize(model, seed)
    model.half().save_pretrained(folder)
    model.double()
    tower = model if kind == "vision" else model.vision_model
    norm = tower.post_layernorm
    embed = lambda x: tower.embeddings(x, interpolate_pos_encoding=x.shape[-1] != SIDE)[0]
    if kind == "classes":
        mean = lambda h, size: (size @ h) / size.sum()
        answer = lambda x: tower(x, interpolate_pos_encoding=True).last_hidden_state[0].mean(0)
        return Case(clip_blocks(tower.encoder.layers), Shape(0, 0, 2, GRID), embed, norm, answer, mean,
                    lambda x: model(x, interpolate_pos_encoding=True).logits[0], (24, 32, 16))
    row, out = mha_probe(tower.head)
    shape = Shape(0, 0, 2, GRID, lambda x, size: row(norm(x), size))
    answer = lambda x: tower(x, interpolate_pos_encoding=True).pooler_output[0]
    return Case(clip_blocks(tower.encoder.layers), shape, embed, norm, answer, pooled(out, tower.head.layernorm, tower.head.mlp),
                sides=(24, 32, 16))


def hf_clip_case(folder, seed):
    """A conversion of an OpenCLIP model: erf GELU, heads of 20 values."""
    vision = dict(hidden_size=40, num_hidden_layers=3, num_attention_heads=2, intermediate_size=60, image_size=SIDE,
                  patch_size=PATCH, hidden_act="gelu", projection_dim=24)
    config = transformers.CLIPConfig(vision_config=vision, text_config=dict(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=20,
        max_position_embeddings=8, bos_token_id=1, eos_token_id=2, hidden_act="gelu"), projection_dim=24)
    model = transformers.CLIPModel(config)
    model.set_attn_implementation("sdpa")  # eager rounds softmax to float32
    model = randomize(model, seed)
    model.half().save_pretrained(folder)
    model.double()
    tower = model.vision_model
    embed = lambda x: tower.pre_layrnorm(tower.embeddings(x, interpolate_pos_encoding=x.shape[-1] != SIDE))[0]
    answer = lambda x: model.visual_projection(tower(x, interpolate_pos_encoding=True).pooler_output)[0]
    return Case(clip_blocks(tower.encoder.layers), Shape(1, 0, 2, GRID), embed, tower.post_layernorm, answer,
                lambda h, size: model.visual_projection(h[0]), sides=(24, 32, 16))


# ---- timm --------------------------------------------------------------------------------------

def timm_case(folder, architecture, seed, classes=0):
    sizes = dict(img_size=SIDE, patch_size=PATCH, embed_dim=36, depth=3, num_heads=2, mlp_ratio=2.0)
    model = randomize(timm.create_model(architecture, num_classes=classes, dynamic_img_size=True, **sizes), seed)
    write_timm(folder, model, architecture, sizes)
    row, out = latent_probe(model.attn_pool)
    shape = Shape(0, 0, 2, GRID, lambda x, size: row(model.norm(x), size))
    return Case(timm_blocks(model), shape, lambda x: model._pos_embed(model.patch_embed(x))[0], model.norm,
                lambda x: model.forward_head(model.forward_features(x), pre_logits=True)[0],
                pooled(out, model.attn_pool.norm, model.attn_pool.mlp), (lambda x: model(x)[0]) if classes else None, (24, 32, 16))


# ---- open_clip ---------------------------------------------------------------------------------

def mha_qkv(a):
    return lambda h: torch.nn.functional.linear(h, a.in_proj_weight, a.in_proj_bias).chunk(3, dim=-1)


def open_clip_blocks(visual):
    return [Block(b.ln_1, mha_qkv(b.attn), b.attn.out_proj, b.ls_1, b.ln_2, b.mlp, b.ls_2) for b in visual.transformer.resblocks]


def save_open_clip(folder, model, model_cfg, preprocess, as_pickle=False):
    """As open_clip's save_for_hf, without the tokenizer; float16."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {k: v.half().contiguous() if v.is_floating_point() else v for k, v in model.state_dict().items()}
    if as_pickle:
        torch.save(state, folder / "open_clip_pytorch_model.bin")
    else:
        save_file(state, folder / "open_clip_model.safetensors")
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": model_cfg, "preprocess_cfg": preprocess}, indent=2) + "\n")


OPEN_CLIP = {"mean": [0.48145466, 0.4578275, 0.40821073], "std": [0.26862954, 0.26130258, 0.27577711],
             "interpolation": "bicubic", "resize_mode": "shortest"}
TEXT = dict(context_length=8, vocab_size=20, width=16, heads=2, layers=1)


def open_clip_case(folder, seed, as_pickle=False, quick_gelu=False, **vision):
    cfg = dict(image_size=SIDE, layers=3, width=40, head_width=20, mlp_ratio=1.55, patch_size=PATCH) | vision
    model_cfg = dict(embed_dim=24, quick_gelu=quick_gelu, vision_cfg=cfg, text_cfg=TEXT)
    model = randomize(open_clip.CLIP(**model_cfg), seed)
    save_open_clip(folder, model, model_cfg, OPEN_CLIP, as_pickle)
    visual = model.visual
    average = cfg.get("pool_type") == "avg"

    def pool(h, size):  # h is after the final LayerNorm, unless that comes after pooling
        return (visual.ln_post((size[1:] @ h[1:]) / size[1:].sum()) if average else h[0]) @ visual.proj
    return Case(open_clip_blocks(visual), Shape(1, 0, 2, GRID), lambda x: visual._embeds(x)[0], keep if average else visual.ln_post,
                lambda x: model.encode_image(x)[0], pool)


@register_model
def vit_tiny_siglip_for_tests(pretrained=False, **kwargs):
    """A model that open_clip creates by name; 64 values a head, because only these are guessed."""
    args = dict(img_size=SIDE, patch_size=PATCH, embed_dim=64, depth=2, num_heads=1, mlp_ratio=1.0, class_token=False,
                global_pool="map") | {k: v for k, v in kwargs.items() if k in ("num_classes", "global_pool")}
    model = VisionTransformer(**args)
    model.default_cfg = {}
    return model


def trunk_case(folder, seed):
    """SigLIP as open_clip has it: timm's tower inside, `visual.trunk.*`."""
    vision = dict(image_size=SIDE, timm_model_name="vit_tiny_siglip_for_tests", timm_model_pretrained=False, timm_pool="map",
                  timm_proj="none")
    model_cfg = dict(embed_dim=64, init_logit_bias=-10, custom_text=True, vision_cfg=vision, text_cfg=TEXT)
    model = open_clip.CustomTextCLIP(**{k: v for k, v in model_cfg.items() if k != "custom_text"})
    model = randomize(model, seed)
    save_open_clip(folder, model, model_cfg, {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic",
                                              "resize_mode": "squash"})
    trunk = model.visual.trunk
    row, out = latent_probe(trunk.attn_pool)
    shape = Shape(0, 0, 1, GRID, lambda x, size: row(trunk.norm(x), size))
    return Case(timm_blocks(trunk), shape, lambda x: trunk._pos_embed(trunk.patch_embed(x))[0], trunk.norm,
                lambda x: model.encode_image(x)[0], pooled(out, trunk.attn_pool.norm, trunk.attn_pool.mlp))


# ---- what is expected --------------------------------------------------------------------------

def same(a, b, what):
    assert (a - b).abs().max() < 1e-10 * b.abs().max(), f"{what}: run_blocks is not the library's model"


def features(case, seed, out):
    for side in case.sides:
        x = pixels(seed, 1, side)
        t, _ = run_blocks(case.blocks, case.shape, case.embed(x))
        h = case.norm(t.x)
        out[f"{side}.embedding"] = case.embedding(x)
        same(case.pool(h, t.size), out[f"{side}.embedding"], "embedding")
        if case.logits:
            out[f"{side}.logits"] = case.logits(x)
        if case.norm is not keep:
            out[f"{side}.patches"] = h[case.shape.n_prefix:]


def scores(case, x, out):
    P = case.shape.n_prefix
    for i, (view, _) in enumerate(run_blocks(case.blocks, case.shape, case.embed(x))[1]):
        if case.shape.probe or P:
            out[f"block.{i}.{'pool' if case.shape.probe else 'cls'}"] = view.row[P:]
        out[f"block.{i}.col n=2"] = columns(view, case.shape, 2)[P:]
        out[f"block.{i}.col n=4"] = columns(view, case.shape, 4)[P:]


def cuts(case, x, out, margins):
    """The patches of the rows after every cut (-1: class token or fused), and the embedding."""
    for name, text in POLICIES.items():
        if ("pool" in name and not case.shape.probe) or (name == "evit_cls" and not case.shape.n_prefix):
            continue
        if name == "evit_correct" and not case.shape.probe and not case.shape.n_prefix:
            continue
        policy = Policy(text)
        t, views = run_blocks(case.blocks, case.shape, case.embed(x), policy)
        margins.append((min(policy.margins), name))
        for i, patch in enumerate([v[1].patch for v in views[1:]] + [t.patch]):
            if policy.cuts(i):
                out[f"{name}.kept.{i}"] = torch.tensor([-1 if j is None else j for j in patch], dtype=torch.int32)
        out[f"{name}.embedding"] = case.pool(case.norm(t.x), t.size)


def write(case, folder, seed):
    out, margins = {}, []
    with torch.no_grad():
        features(case, seed, out)
        x = pixels(seed, 1, SIDE)
        scores(case, x, out)
        cuts(case, x, out, margins)
    write_case(folder, seed, out, margins)


CASES = {
    "hf_siglip": lambda f, s: siglip_case(f, s, "both"),
    "hf_siglip_vision": lambda f, s: siglip_case(f, s, "vision"),
    "hf_siglip_classes": lambda f, s: siglip_case(f, s, "classes"),
    "hf_clip_gelu": hf_clip_case,
    "timm_siglip": lambda f, s: timm_case(f, "vit_base_patch16_siglip_224", s),
    "timm_siglip_tanh": lambda f, s: timm_case(f, "vit_so400m_patch16_siglip_256", s, classes=7),
    "open_clip": open_clip_case,
    "open_clip_bin": lambda f, s: open_clip_case(f, s, as_pickle=True, quick_gelu=True),
    "open_clip_tanh": lambda f, s: open_clip_case(f, s, act_kwargs={"approximate": "tanh"}, norm_kwargs={"eps": 1e-3}),
    "open_clip_mean": lambda f, s: open_clip_case(f, s, no_ln_pre=True, pool_type="avg", final_ln_after_pool=True),
    "open_clip_siglip": trunk_case,
    "open_clip_scale": lambda f, s: open_clip_case(f, s, ls_init_value=1e-4),
}
SEEDS = {}  # where the usual one gives a close choice


# ---- real shapes -------------------------------------------------------------------------------

def real_open_clip(folder, name, **vision):
    cfg = open_clip.get_model_config(name)
    cfg["vision_cfg"] |= vision
    cfg["text_cfg"] |= dict(layers=1)
    model = randomize(open_clip.CLIP(**cfg), 1, torch.float32)
    folder.mkdir(parents=True, exist_ok=True)
    save_file({k: v.float().contiguous() for k, v in model.state_dict().items()}, folder / "open_clip_model.safetensors")
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": cfg, "preprocess_cfg": OPEN_CLIP}))
    visual = model.visual
    return Case(open_clip_blocks(visual), Shape(1, 0, cfg["vision_cfg"]["width"] // cfg["vision_cfg"].get("head_width", 64), 0),
                lambda x: visual._embeds(x)[0], visual.ln_post, lambda x: model.encode_image(x)[0],
                lambda h, size: h[0] @ visual.proj, sides=(224,))


def real_siglip(folder, **vision):
    config = transformers.SiglipConfig(vision_config=vision, text_config=dict(num_hidden_layers=1))
    model = transformers.SiglipModel(config)
    model.set_attn_implementation("sdpa")  # eager rounds softmax to float32
    model = randomize(model, 1, torch.float32)
    model.float().save_pretrained(folder)
    model.double()
    tower = model.vision_model
    row, out = mha_probe(tower.head)
    shape = Shape(0, 0, tower.config.num_attention_heads, 0, lambda x, size: row(tower.post_layernorm(x), size))
    return Case(clip_blocks(tower.encoder.layers), shape, lambda x: tower.embeddings(x)[0], tower.post_layernorm,
                lambda x: tower(x).pooler_output[0], pooled(out, tower.head.layernorm, tower.head.mlp), sides=(224,))


SO400M = dict(hidden_size=1152, intermediate_size=4304, num_attention_heads=16, patch_size=14, num_hidden_layers=4)
REAL = {
    "hf_siglip_base": real_siglip,
    "hf_siglip_so400m_4": lambda f: real_siglip(f, **SO400M),
    "open_clip_b32": lambda f: real_open_clip(f, "ViT-B-32"),
    "open_clip_h14_4": lambda f: real_open_clip(f, "ViT-H-14", layers=4),
}


def real(folder, only):
    for name, make in REAL.items():
        if only and only != name:
            continue
        case, out = make(folder / name), {}
        with torch.no_grad():
            features(case, 1, out)
            scores(case, pixels(1, 1, 224), out)
        write_expected(folder / name / "expected.safetensors", out, {"seed": "1"})
        print(name)


def main():
    a = family_arguments()
    if a.real:
        return real(a.folder, a.only)
    for folder, seed, make in chosen_cases(a, CASES, SEEDS, 60):
        write(make(folder, seed), folder, seed)


if __name__ == "__main__":
    main()
