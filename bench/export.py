# export.py - converts the weights to the other engines' formats: ONNX and OpenVINO IR, one file per
# batch size.
# SPDX-License-Identifier: Apache-2.0
#
# Run as a program by peers.py, so that torch is never loaded in the process that measures.
import argparse
import os
import sys
import warnings

import torch

SIDE = 224  # of the input of all models

# Hugging Face's names of CLIP's image tower, and timm's.
CLIP_NAMES = [("vision_model.embeddings.class_embedding", "cls_token"), ("vision_model.embeddings.position_embedding.weight", "pos_embed"),
              ("vision_model.embeddings.patch_embedding", "patch_embed.proj"), ("vision_model.pre_layrnorm", "norm_pre"),
              ("vision_model.post_layernorm", "norm"), ("vision_model.encoder.layers", "blocks"), ("layer_norm", "norm"),
              ("self_attn.q_proj", "attn.qkv"), ("self_attn.out_proj", "attn.proj"), ("visual_projection", "head")]


def clip_tensors(tensors):
    """The image tower of a CLIP under timm's names; queries, keys and values as one matrix."""
    out = {}
    for name, t in tensors.items():
        if name.startswith("text_") or name == "logit_scale" or ".k_proj." in name or ".v_proj." in name:
            continue
        if ".q_proj." in name:
            t = torch.cat([tensors[name.replace(".q_proj.", f".{p}_proj.")] for p in "qkv"])
        for theirs, ours in CLIP_NAMES:
            name = name.replace(theirs, ours)
        out[name] = t
    out["cls_token"], out["pos_embed"] = out["cls_token"][None, None], out["pos_embed"][None]
    return out


def load_clip(weights):
    """The image tower as a timm model with the projection as classifier; all tensors from the
    file."""
    import timm
    from safetensors.torch import load_file

    tensors = clip_tensors(load_file(weights))
    width, outputs = tensors["head.weight"].shape[1], tensors["head.weight"].shape[0]
    model = timm.create_model("vit_base_patch16_clip_quickgelu_224", pretrained=False, num_classes=0, embed_dim=width,
                              num_heads=width // 64, patch_size=tensors["patch_embed.proj.weight"].shape[-1],
                              depth=1 + max(int(n.split(".")[1]) for n in tensors if n.startswith("blocks.")))
    model.head = torch.nn.Linear(width, outputs, bias=False)
    model.load_state_dict(tensors, strict=True)
    return model.eval()


def load_timm(arch, weights):
    """The timm model of that name with exactly the tensors of the file."""
    import timm
    from safetensors.torch import load_file

    if arch.startswith("clip_"):
        return load_clip(weights)
    model = timm.create_model(arch, pretrained=False)
    model.load_state_dict(load_file(weights), strict=True)
    if model.patch_embed.img_size != (SIDE, SIDE):
        model.set_input_size(SIDE)  # DINOv2 has positions for 518 pixels
    return model.eval()


def write_onnx(model, x, path):
    # The TorchScript exporter needs no package beyond torch; newer torch may only have the other
    # one.
    names = dict(input_names=["x"], output_names=["logits"])
    try:
        torch.onnx.export(model, (x,), path, opset_version=17, dynamo=False, **names)
    except (TypeError, ImportError, AttributeError, NotImplementedError):
        torch.onnx.export(model, (x,), path, dynamo=True, external_data=False, **names)


def write_ir(model, x, path):
    # From torch, not from ONNX: it keeps attention as one operation, which OpenVINO fuses.
    import openvino as ov

    ir = ov.convert_model(model, example_input=x, input=[tuple(x.shape)])
    ov.save_model(ir, path, compress_to_fp16=False)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("arch")
    p.add_argument("weights")
    p.add_argument("batch", type=int)
    p.add_argument("--onnx", metavar="FILE")
    p.add_argument("--ir", metavar="FILE.xml")
    a = p.parse_args()
    warnings.simplefilter("ignore")
    model = load_timm(a.arch, a.weights)
    x = torch.zeros(a.batch, 3, SIDE, SIDE)
    for path, write in ((a.onnx, write_onnx), (a.ir, write_ir)):
        if not path:
            continue
        try:  # an interrupted run must not leave an incomplete file for the next one
            with torch.inference_mode(False), torch.no_grad():
                write(model, x, path)
        except BaseException:
            if os.path.exists(path):
                os.unlink(path)
            raise


if __name__ == "__main__":
    sys.exit(main())
