#!/usr/bin/env python3
"""make_llava.py FOLDER [key=value ...] - a small random LLaVA in llava-hf's names, with a tokenizer.

Keys: seed, context (rows of the language model), shards (files), tokenizer (0 = none).
"""
# SPDX-License-Identifier: Apache-2.0
import array
import json
import os
import random
import struct
import sys

SIDE, PATCH, TOWER, TOWER_MLP, BLOCKS = 56, 14, 16, 32, 3
DIM, MLP, LAYERS, HEADS, VOCAB, IMAGE = 16, 24, 2, 2, 320, 310


def tower():
    v = "vision_tower.vision_model."
    yield v + "embeddings.class_embedding", [TOWER]
    yield v + "embeddings.patch_embedding.weight", [TOWER, 3, PATCH, PATCH]
    yield v + "embeddings.position_embedding.weight", [(SIDE // PATCH) ** 2 + 1, TOWER]
    for name in ["pre_layrnorm", "post_layernorm"]:
        yield from norm(v + name, TOWER)
    for i in range(BLOCKS):
        b = f"{v}encoder.layers.{i}."
        for name in "qkv":
            yield from linear(f"{b}self_attn.{name}_proj", TOWER, TOWER)
        yield from linear(b + "self_attn.out_proj", TOWER, TOWER)
        yield from norm(b + "layer_norm1", TOWER)
        yield from norm(b + "layer_norm2", TOWER)
        yield from linear(b + "mlp.fc1", TOWER_MLP, TOWER)
        yield from linear(b + "mlp.fc2", TOWER, TOWER_MLP)


def language_model():
    m = "language_model.model."
    yield m + "embed_tokens.weight", [VOCAB, DIM]
    for i in range(LAYERS):
        b = f"{m}layers.{i}."
        for name in "qkvo":
            yield f"{b}self_attn.{name}_proj.weight", [DIM, DIM]
        for name, shape in ("gate", [MLP, DIM]), ("up", [MLP, DIM]), ("down", [DIM, MLP]):
            yield f"{b}mlp.{name}_proj.weight", shape
        yield b + "input_layernorm.weight", [DIM]
        yield b + "post_attention_layernorm.weight", [DIM]
    yield m + "norm.weight", [DIM]
    yield "language_model.lm_head.weight", [VOCAB, DIM]


def norm(name, n):
    yield name + ".weight", [n]
    yield name + ".bias", [n]


def linear(name, n_out, n_in):
    yield name + ".weight", [n_out, n_in]
    yield name + ".bias", [n_out]


def projector():
    yield from linear("multi_modal_projector.linear_1", DIM, TOWER)
    yield from linear("multi_modal_projector.linear_2", DIM, DIM)


def config(context):
    return {
        "model_type": "llava", "image_token_index": IMAGE, "projector_hidden_act": "gelu",
        "vision_feature_layer": -2, "vision_feature_select_strategy": "default",
        "text_config": {"model_type": "llama", "hidden_size": DIM, "intermediate_size": MLP, "num_hidden_layers": LAYERS,
                        "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "vocab_size": VOCAB,
                        "max_position_embeddings": context, "rms_norm_eps": 1e-5, "bos_token_id": 1, "eos_token_id": 2},
        "vision_config": {"model_type": "clip_vision_model", "hidden_size": TOWER, "intermediate_size": TOWER_MLP,
                          "num_attention_heads": 2, "num_hidden_layers": BLOCKS, "image_size": SIDE, "patch_size": PATCH,
                          "hidden_act": "quick_gelu"},
    }


def write_tensors(path, shapes, rng):
    header, data = {"__metadata__": {"format": "pt"}}, array.array("f")
    for name, shape in shapes:
        n = 1
        for extent in shape:
            n *= extent
        middle = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        begin = 4 * len(data)
        data.extend(rng.gauss(middle, 0.3) for _ in range(n))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, 4 * len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data.tobytes())


def write_model(folder, rng, shards):
    shapes = [*tower(), *projector(), *language_model()]
    if shards == 1:
        return write_tensors(f"{folder}/model.safetensors", shapes, rng)
    index = {}
    for i in range(shards):
        file = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        part = shapes[i * len(shapes) // shards:(i + 1) * len(shapes) // shards]
        write_tensors(f"{folder}/{file}", part, rng)
        index.update({name: file for name, _ in part})
    with open(f"{folder}/model.safetensors.index.json", "w") as f:
        json.dump({"metadata": {}, "weight_map": index}, f)


def write_tokenizer(folder):
    pieces = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + list(" abcdefghijklmnopqrstuvwxyz:.")
    with open(f"{folder}/pieces.json", "w") as f:
        json.dump([{"piece": p, "score": 0.0} for p in pieces], f)


def main():
    folder, options = sys.argv[1], {"seed": 1, "context": 512, "shards": 1, "tokenizer": 1}
    for word in sys.argv[2:]:
        key, value = word.split("=")
        assert key in options, key
        options[key] = int(value)
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/config.json", "w") as f:
        json.dump(config(options["context"]), f)
    write_model(folder, random.Random(options["seed"]), options["shards"])
    if options["tokenizer"]:
        write_tokenizer(folder)


main()
