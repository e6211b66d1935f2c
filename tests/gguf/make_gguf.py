#!/usr/bin/env python3
"""make_gguf.py LLAVA FOLDER [whole] [old] - the LLaVA of make_llava.py as llama.cpp's users keep it: vicuna.gguf and
mmproj.gguf in FOLDER, with the same F32 numbers.

whole: with the last block of the tower and the LayerNorm behind it. old: fc1 is called ffn_down, as old converters did.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import struct
import sys

TEXT, U32, F32, BOOL, ARRAY = 8, 4, 6, 7, 9
TOWER, LAYER = "vision_tower.vision_model.", "vision_tower.vision_model.encoder.layers."
NAMES = {
    TOWER + "embeddings.class_embedding": "v.class_embd",
    TOWER + "embeddings.patch_embedding.weight": "v.patch_embd.weight",
    TOWER + "embeddings.position_embedding.weight": "v.position_embd.weight",
    TOWER + "pre_layrnorm": "v.pre_ln", TOWER + "post_layernorm": "v.post_ln",
    "multi_modal_projector.linear_1": "mm.0", "multi_modal_projector.linear_2": "mm.2",
    "language_model.model.embed_tokens": "token_embd", "language_model.model.norm": "output_norm",
    "language_model.lm_head": "output",
}
PARTS = {
    "layer_norm1": "ln1", "layer_norm2": "ln2", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.out_proj": "attn_out", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}


def read_tensors(folder):
    """Name, shape and bytes of every tensor."""
    data = (folder / "model.safetensors").read_bytes()
    length, = struct.unpack_from("<Q", data)
    for name, t in json.loads(data[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            yield name, t["shape"], data[8 + length + begin:8 + length + end]


def new_name(name, old):
    if name in NAMES:
        return NAMES[name]
    stem, tail = name.rsplit(".", 1)
    if stem in NAMES:
        return f"{NAMES[stem]}.{tail}"
    for prefix, block in ((LAYER, "v.blk."), ("language_model.model.layers.", "blk.")):
        if stem.startswith(prefix):
            number, part = stem[len(prefix):].split(".", 1)
            part = PARTS[part]
            if old and prefix == LAYER:
                part = {"ffn_up": "ffn_down", "ffn_down": "ffn_up"}.get(part, part)
            return f"{block}{number}.{part}.{tail}"
    raise SystemExit(f"make_gguf.py: what is {name}?")


def pair(data, shape, heads):
    """Rows i and i + half of a head become neighbors."""
    rows, size = shape[0], 4 * shape[1]
    head = rows // heads
    order = [h * head + i + j * head // 2 for h in range(heads) for i in range(head // 2) for j in range(2)]
    return b"".join(data[r * size:(r + 1) * size] for r in order)


def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def value(v):
    if isinstance(v, bool):
        return struct.pack("<I?", BOOL, v)
    if isinstance(v, int):
        return struct.pack("<II", U32, v)
    if isinstance(v, float):
        return struct.pack("<If", F32, v)
    if isinstance(v, str):
        return struct.pack("<I", TEXT) + text(v)
    return struct.pack("<IIQ", ARRAY, F32, len(v)) + struct.pack(f"<{len(v)}f", *v)


def write(path, values, tensors):
    head, data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values)), b""
    for key, v in values.items():
        head += text(key) + value(v)
    for name, shape, content in tensors:
        sizes = shape[::-1]
        head += text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, 0, len(data))
        data += content + bytes(-len(content) % 32)
    path.write_bytes(head + bytes(-len(head) % 32) + data)


def main():
    source, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    whole, old = "whole" in sys.argv[3:], "old" in sys.argv[3:]
    config = json.loads((source / "config.json").read_text())
    tower, lm = config["vision_config"], config["text_config"]
    blocks = tower["num_hidden_layers"] - (not whole)
    towers, models = [], []
    for name, shape, data in read_tensors(source):
        unread = name.startswith(TOWER + "post_layernorm") or name.startswith(f"{LAYER}{blocks}.")
        if unread and not whole:
            continue
        ours = new_name(name, old)
        if ours.endswith(("attn_q.weight", "attn_k.weight")) and ours.startswith("blk."):
            data = pair(data, shape, lm["num_attention_heads"])
        (models if name.startswith("language_model.") else towers).append((ours, shape, data))
    write(folder / "vicuna.gguf", {
        "general.architecture": "llama", "llama.block_count": lm["num_hidden_layers"],
        "llama.context_length": lm["max_position_embeddings"], "llama.embedding_length": lm["hidden_size"],
        "llama.feed_forward_length": lm["intermediate_size"], "llama.attention.head_count": lm["num_attention_heads"],
        "llama.attention.head_count_kv": lm["num_key_value_heads"],
        "llama.attention.layer_norm_rms_epsilon": lm["rms_norm_eps"],
    }, models)
    write(folder / "mmproj.gguf", {
        "general.architecture": "clip", "clip.has_vision_encoder": True, "clip.has_llava_projector": True,
        "clip.projector_type": "mlp", "clip.use_gelu": False, "clip.vision.image_size": tower["image_size"],
        "clip.vision.patch_size": tower["patch_size"], "clip.vision.embedding_length": tower["hidden_size"],
        "clip.vision.feed_forward_length": tower["intermediate_size"], "clip.vision.block_count": blocks,
        "clip.vision.attention.head_count": tower["num_attention_heads"],
        "clip.vision.attention.layer_norm_epsilon": 1e-5,
        "clip.vision.image_mean": [0.48145466, 0.4578275, 0.40821073],
        "clip.vision.image_std": [0.26862954, 0.26130258, 0.27577711],
    }, towers)


main()
