#!/usr/bin/env python3
# trained_files.py - trains small models of timm and transformers for some updates with `renyi train`,
# opens the files it writes in the library they belong to, strictly, and compares the logits of both.
# Run by hand; needs PyTorch, timm, transformers, NumPy and safetensors.
#
#   python3 tools/ref/trained_files.py build FOLDER
#
# build has renyi and librenyi.so; FOLDER is new and gets the models, images and runs.
# SPDX-License-Identifier: Apache-2.0
import argparse
import ctypes
import json
import subprocess
from pathlib import Path

import numpy as np
import timm
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import load_file

from common import pixels, randomize, write_timm

CLASSES, IMAGES = 3, 4
POLICIES = {"dense": None, "evit": "evit keep=0.7 layers=0,1 metric=col reduce=fuse", "mosaic": "mosaic keep=0.7 layers=0,1"}


# ---- models before training --------------------------------------------------------------------

def timm_source(architecture, **args):
    def write(folder, seed):
        model = timm.create_model(architecture, num_classes=CLASSES, **args)
        write_timm(folder, randomize(model, seed, torch.float32), architecture, args, torch.float32)
    return write


def hf_source(model_class, config_class, **args):
    def write(folder, seed):
        model = model_class(config_class(num_labels=CLASSES, **args))
        randomize(model, seed, torch.float32).float().save_pretrained(folder)
    return write


TIMM = dict(img_size=64, embed_dim=64, depth=3, num_heads=4)
DINO = dict(hidden_size=64, num_hidden_layers=3, num_attention_heads=4, mlp_ratio=2, image_size=56, patch_size=14)
SIGLIP = dict(hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=128, image_size=64, patch_size=16)
CASES = {
    "clip": timm_source("vit_base_patch16_clip_224", **TIMM),
    "clip_quickgelu": timm_source("vit_base_patch16_clip_quickgelu_224", **TIMM),
    "giant": timm_source("vit_giant_patch14_dinov2", img_size=56, embed_dim=64, depth=3, num_heads=4, mlp_ratio=4),
    "giant_reg": timm_source("vit_giant_patch14_reg4_dinov2", img_size=56, embed_dim=64, depth=3, num_heads=4, mlp_ratio=4),
    "siglip": timm_source("vit_base_patch16_siglip_224", **TIMM),
    "siglip_tanh": timm_source("vit_base_patch32_siglip_256", patch_size=16, act_layer="gelu_tanh", **TIMM),
    "dinov2": hf_source(transformers.Dinov2ForImageClassification, transformers.Dinov2Config, **DINO),
    "dinov2_reg": hf_source(transformers.Dinov2WithRegistersForImageClassification, transformers.Dinov2WithRegistersConfig,
                            num_register_tokens=2, **DINO),
    "dinov2_giant": hf_source(transformers.Dinov2ForImageClassification, transformers.Dinov2Config, use_swiglu_ffn=True, **DINO),
    "hf_siglip": hf_source(transformers.SiglipForImageClassification, transformers.SiglipConfig, vision_config=SIGLIP),
    "hf_siglip_head": hf_source(transformers.SiglipVisionModel, transformers.SiglipVisionConfig, **SIGLIP),
}


# ---- training ----------------------------------------------------------------------------------

def write_images(folder):
    rng = np.random.default_rng(1)
    for c in range(CLASSES):
        (folder / f"class{c}").mkdir(parents=True)
        for i in range(8):
            noise = rng.integers(0, 256, (72, 80, 3), dtype=np.uint8)
            (folder / f"class{c}" / f"{i}.ppm").write_bytes(b"P6\n80 72\n255\n" + noise.tobytes())


def train(build, source, images, run, policy):
    command = [build / "renyi", "train", "-m", source, "--data-dir", images, "--classes", str(CLASSES), "--batch-size", "8",
               "--epochs", "1", "--lr", "1e-3", "--drop-path", "0.1", "-t", "1", "-q", "-o", run]
    subprocess.run(command + (["--prune", policy] if policy else []), check=True, stdout=subprocess.DEVNULL)


# ---- the trained files -------------------------------------------------------------------------

def in_transformers(config, tensors):
    config_class = transformers.CONFIG_MAPPING[config["model_type"]]
    model_class = getattr(transformers, config["architectures"][0])
    model, report = model_class.from_pretrained(None, config=config_class(**config), state_dict=tensors, output_loading_info=True)
    assert not any(report[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
    return lambda x: model.double().eval()(x).logits


def in_timm(config, tensors):
    args, known = config["model_args"], timm.is_model(config["architecture"])
    build = timm.create_model if known else lambda _, **a: timm.models.vision_transformer.VisionTransformer(**a)
    model = build(config["architecture"], num_classes=config["num_classes"], global_pool=config["global_pool"], **args)
    model.load_state_dict(tensors, strict=True)
    return model.double().eval()


def unmoved(path, source):
    """Tensors that training should have changed. A softmax ignores the bias of keys; nothing reads a mask token."""
    before, after = load_file(source / "model.safetensors"), load_file(path)
    return [k for k in after if k in before and torch.equal(before[k], after[k].to(before[k].dtype))
            and not k.endswith(("key.bias", "mask_token"))]


def library_logits(path, x):
    with safe_open(path, "pt") as f:
        config = json.loads(f.metadata()["config.json"])
    run = in_transformers if "model_type" in config else in_timm
    with torch.no_grad():
        return run(config, load_file(path))(x).numpy(), run.__name__[3:], config["architecture"]


def engine_logits(library, path, x):
    error = ctypes.create_string_buffer(1024)
    model, session = ctypes.c_void_p(), ctypes.c_void_p()
    chw, out = np.ascontiguousarray(x.numpy(), np.float32), np.zeros((len(x), CLASSES), np.float32)

    def check(status):
        assert status == 0, error.raw[16:].split(b"\0")[0].decode()
    check(library.renyi_model_open(ctypes.byref(model), str(path).encode(), None, error))
    check(library.renyi_session_new(ctypes.byref(session), model, None, error))
    for i in range(len(x)):
        check(library.renyi_run_tensor(session, chw[i].ctypes.data_as(ctypes.c_void_p), 1, out[i].ctypes.data_as(ctypes.c_void_p), error))
    library.renyi_session_free(session)
    library.renyi_model_free(model)
    return out


def side_of(path):
    with safe_open(path, "pt") as f:
        config = json.loads(f.metadata()["config.json"])
    return config.get("image_size") or config["model_args"]["img_size"]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("build", type=Path)
    a.add_argument("folder", type=Path)
    a.add_argument("only", nargs="*", help="names of cases")
    a = a.parse_args()
    library = ctypes.CDLL(str((a.build / "librenyi.so").resolve()))
    a.folder.mkdir(parents=True)
    write_images(a.folder / "images")
    for seed, (name, source) in enumerate(CASES.items()):
        if a.only and name not in a.only:
            continue
        source(a.folder / name, seed)
        for kind, policy in POLICIES.items():
            run = a.folder / f"{name}-{kind}"
            train(a.build, a.folder / name, a.folder / "images", run, policy)
            path = run / "model.safetensors"
            x = pixels(9, IMAGES, side_of(path))
            assert not unmoved(path, a.folder / name), unmoved(path, a.folder / name)
            want, where, architecture = library_logits(path, x)
            got = engine_logits(library, path, x)
            off = np.abs(got - want).max() / np.abs(want).max()
            print(f"{name:15} {kind:7} {where:12} {architecture:36} differs by {off:.1e}")
            assert off < 1e-5


if __name__ == "__main__":
    main()
