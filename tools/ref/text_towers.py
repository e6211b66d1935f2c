"""Text towers of transformers and open_clip with seeded random weights, small enough for tests.

    tools/ref/text_towers.py tests/text_towers      # the files of test_text_families
    tools/ref/text_towers.py OUT --real             # SigLIP-B and OpenCLIP B/32 in their real shape

The libraries save each model into a folder; for the tests the folder becomes one file, with the
config in the metadata. text_expected.safetensors has `NAME.ids` I32 [n, context] and `NAME.embeds`
F32 [n, embed]. Every parameter is random, biases and LayerNorms too. Needs torch, transformers,
open_clip_torch and safetensors.
"""
# SPDX-License-Identifier: Apache-2.0

import argparse
import json
import pathlib
import tempfile

import open_clip
import torch
from safetensors.torch import load_file, save_file
from transformers import (CLIPTextConfig, CLIPTextModelWithProjection, SiglipConfig, SiglipModel,
                          SiglipTextConfig, SiglipTextModel)


def randomize(module, seed):
    """Every parameter random: matrices keep activations near 1, norms stay near 1."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in module.named_parameters():
            noise = torch.randn(p.shape, generator=g)
            if p.ndim < 2:
                is_norm = "norm" in name or "ln_" in name
                p.copy_(noise * 0.2 + (1.0 if is_norm and name.endswith("weight") else 0.0))
            elif "embedding" in name:
                p.copy_(noise)
            else:
                p.copy_(noise / p.shape[-1] ** 0.5)
    return module.eval()


def random_ids(n, context, vocab, seed, sot=None, eot=None, pad=0):
    """Texts of all lengths, padded; with eot each text ends with it."""
    g = torch.Generator().manual_seed(seed)
    ids = torch.full((n, context), pad, dtype=torch.int64)
    for i in range(n):
        length = 2 + (i * 5) % (context - 1)
        ids[i, :length] = torch.randint(3, vocab - 2, (length,), generator=g)
        if sot is not None:
            ids[i, 0] = sot
        if eot is not None:
            ids[i, length - 1] = eot
    return ids


EXPECTED = {}


def expect(folder, ids, embeds):
    EXPECTED[folder.name + ".ids"] = ids.to(torch.int32)
    EXPECTED[folder.name + ".embeds"] = embeds.float().contiguous()


def pack(folder, out):
    """One file of the weights and configs of a folder."""
    weights = next(folder.glob("*.safetensors"))
    configs = {f.name: json.dumps(json.loads(f.read_text())) for f in folder.glob("*config.json")}
    save_file(load_file(weights), str(out / f"text_{folder.name}.safetensors"), metadata=configs)


def siglip(folder, real):
    size = (dict() if real else
            dict(hidden_size=24, intermediate_size=44, num_hidden_layers=2, num_attention_heads=3,
                 vocab_size=40, max_position_embeddings=10, projection_size=20))
    config = SiglipTextConfig(**size)
    model = randomize(SiglipTextModel(config), 1)
    model.save_pretrained(folder)
    ids = random_ids(3 if real else 6, config.max_position_embeddings, config.vocab_size, 2, eot=1,
                     pad=1)
    with torch.no_grad():
        expect(folder, ids, model(input_ids=ids).pooler_output)


def siglip_whole(folder):
    """Both towers: logits of images and texts, with scale and bias."""
    text = dict(hidden_size=24, intermediate_size=44, num_hidden_layers=2, num_attention_heads=3,
                vocab_size=40, max_position_embeddings=10, projection_size=24)
    vision = dict(hidden_size=24, intermediate_size=44, num_hidden_layers=2, num_attention_heads=3,
                  image_size=32, patch_size=8)
    model = randomize(SiglipModel(SiglipConfig(text_config=text, vision_config=vision)), 7)
    with torch.no_grad():
        model.logit_scale.fill_(2.3)
        model.logit_bias.fill_(-9.5)
    model.save_pretrained(folder)
    ids = random_ids(5, 10, 40, 8, eot=1, pad=1)
    pixels = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(9))
    with torch.no_grad():
        out = model(input_ids=ids, pixel_values=pixels)
    expect(folder, ids, model.get_text_features(input_ids=ids).pooler_output.detach())
    EXPECTED[folder.name + ".pixels"] = pixels
    EXPECTED[folder.name + ".logits"] = out.logits_per_image.contiguous()


def hf_clip(folder, eos):
    config = CLIPTextConfig(hidden_size=24, intermediate_size=44, num_hidden_layers=2,
                            num_attention_heads=3, vocab_size=40, max_position_embeddings=10,
                            projection_dim=20, hidden_act="gelu", eos_token_id=eos,
                            bos_token_id=38, pad_token_id=1)
    model = randomize(CLIPTextModelWithProjection(config), 3)
    model.save_pretrained(folder)
    # the legacy form takes the largest id; the other one the first `eos`, here not the largest
    ids = random_ids(6, 10, 40, 4, sot=38, eot=39 if eos == 2 else eos)
    with torch.no_grad():
        expect(folder, ids, model(input_ids=ids).text_embeds)


def open_clip_tower(folder, text_cfg, embed, custom, extra=None):
    """The text side of an open_clip model; the image tower has one small block."""
    cfg = dict(embed_dim=embed, text_cfg=text_cfg,
               vision_cfg=dict(image_size=8, layers=1, width=16, head_width=8, patch_size=8),
               **(extra or {}))
    kind = open_clip.model.CustomTextCLIP if custom else open_clip.model.CLIP
    model = randomize(kind(**cfg), 5)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {k: v.contiguous() for k, v in model.state_dict().items()}
    save_file(tensors, str(folder / "open_clip_model.safetensors"))
    if custom:
        cfg["custom_text"] = True
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": cfg}, indent=1))
    vocab, context = text_cfg["vocab_size"], text_cfg["context_length"]
    last = text_cfg.get("pool_type") == "last"
    ids = random_ids(6, context, vocab, 6, sot=None if last else vocab - 2,
                     eot=1 if last else vocab - 1, pad=1 if last else 0)
    with torch.no_grad():
        expect(folder, ids, model.encode_text(ids, normalize=False))


def make_small(out):
    small = dict(context_length=10, vocab_size=40, width=24, heads=2, layers=2)
    siglip(out / "siglip", False)
    siglip_whole(out / "siglip_whole")
    hf_clip(out / "hf_clip_legacy", 2)
    hf_clip(out / "hf_clip_eos", 7)
    open_clip_tower(out / "open_clip", small, 20, False)
    open_clip_tower(out / "open_clip_quick", small, 20, False, dict(quick_gelu=True))
    open_clip_tower(out / "open_clip_custom", dict(small, pool_type="last"), 20, True)
    open_clip_tower(out / "open_clip_siglip", dict(
        small, no_causal_mask=True, proj_bias=True, pool_type="last", norm_kwargs=dict(eps=1e-6),
        act_kwargs=dict(approximate="tanh")), 20, True, dict(init_logit_bias=-10))


def make_real(out):
    siglip(out / "siglip_base", True)
    open_clip_tower(out / "open_clip_b32", dict(
        context_length=77, vocab_size=49408, width=512, heads=8, layers=12), 512, False)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--real", action="store_true")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        (make_real if args.real else make_small)(pathlib.Path(scratch))
        for folder in sorted(pathlib.Path(scratch).iterdir()):
            pack(folder, args.out)
    save_file(EXPECTED, str(args.out / "text_expected.safetensors"))


if __name__ == "__main__":
    main()
