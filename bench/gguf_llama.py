# gguf_llama.py - writes the language model of a LLaVA folder as a GGUF for llama.cpp: all
# matrices in one type, one at a time in memory.
# SPDX-License-Identifier: Apache-2.0
#
# The weights are those that renyi runs, so both engines must give nearly the same logits. Needs
# numpy and gguf.
import json
import os
import struct

import gguf
import numpy as np

TYPES = {"int8": gguf.GGMLQuantizationType.Q8_0, "int4": gguf.GGMLQuantizationType.Q4_0, "f32": gguf.GGMLQuantizationType.F32}
FILE_TYPES = {"int8": gguf.LlamaFileType.MOSTLY_Q8_0, "int4": gguf.LlamaFileType.MOSTLY_Q4_0, "f32": gguf.LlamaFileType.ALL_F32}
STORED = {"F16": "<f2", "F32": "<f4"}
OF_LAYER = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
            "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
            "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def tensors_of(folder):
    """name -> array on the mapped file, for all safetensors files of the folder."""
    out = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".safetensors"):
            continue
        path = os.path.join(folder, name)
        with open(path, "rb") as f:
            size, = struct.unpack("<Q", f.read(8))
            header = json.loads(f.read(size))
        header.pop("__metadata__", None)
        for tensor, t in header.items():
            if t["dtype"] not in STORED:
                raise RuntimeError(f"{path}: {tensor} is {t['dtype']}; F16 or F32 is expected")
            out[tensor] = np.memmap(path, STORED[t["dtype"]], "r", 8 + size + t["data_offsets"][0], tuple(t["shape"]))
    return out


def turned(w, heads):
    """Reorders rows: llama.cpp rotates neighbors, transformers rotates the halves of a head."""
    return w.reshape(heads, 2, -1, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def names(layers):
    """(name in the folder, name in the GGUF), in the order of the file."""
    of_lm = "language_model."
    yield of_lm + "model.embed_tokens.weight", "token_embd.weight"
    for i in range(layers):
        for theirs, ours in OF_LAYER.items():
            yield f"{of_lm}model.layers.{i}.{theirs}.weight", f"blk.{i}.{ours}.weight"
    yield of_lm + "model.norm.weight", "output_norm.weight"
    yield of_lm + "lm_head.weight", "output.weight"


def describe(writer, c, width):
    heads = c["num_attention_heads"]
    writer.add_context_length(c["max_position_embeddings"])
    writer.add_embedding_length(c["hidden_size"])
    writer.add_block_count(c["num_hidden_layers"])
    writer.add_feed_forward_length(c["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(c.get("num_key_value_heads", heads))
    writer.add_rope_dimension_count(c["hidden_size"] // heads)
    writer.add_rope_freq_base(c.get("rope_theta", 10000.0))
    writer.add_layer_norm_rms_eps(c["rms_norm_eps"])
    writer.add_vocab_size(c["vocab_size"])
    writer.add_tokenizer_model("no_vocab")  # ids go in and logits come out
    writer.add_file_type(FILE_TYPES[width])


def write(folder, width, path):
    """width: int8 (Q8_0), int4 (Q4_0) or f32. The norms are F32."""
    with open(os.path.join(folder, "config.json")) as f:
        c = json.load(f)["text_config"]
    source, kind = tensors_of(folder), TYPES[width]
    plan = list(names(c["num_hidden_layers"]))
    writer = gguf.GGUFWriter(path, "llama")
    describe(writer, c, width)
    block, bytes_of_block = gguf.GGML_QUANT_SIZES[kind]
    for theirs, ours in plan:
        w = source[theirs]
        is_matrix = w.ndim == 2
        size = w.size // block * bytes_of_block if is_matrix else 4 * w.size
        writer.add_tensor_info(ours, w.shape, np.dtype(np.float32), size, kind if is_matrix else None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for theirs, ours in plan:
        w = np.asarray(source[theirs], dtype=np.float32)
        if ours.endswith(("attn_q.weight", "attn_k.weight")):
            w = turned(w, c["num_attention_heads" if "attn_q" in ours else "num_key_value_heads"])
        writer.write_tensor_data(gguf.quants.quantize(w, kind) if w.ndim == 2 else w)
    writer.close()
