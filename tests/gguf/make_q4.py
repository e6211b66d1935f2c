#!/usr/bin/env python3
"""make_q4.py FILE [head] - a Llama in GGUF with 1.02 x 10^9 parameters, all zeros that take no space on the disk, with
all matrices in Q4_0, or the output matrix in Q8_0.
"""
# SPDX-License-Identifier: Apache-2.0
import struct
import sys

LAYERS, WIDTH, MLP, VOCABULARY = 4, 4096, 16384, 9600
F32, Q4_0, Q8_0 = 0, 2, 8
BYTES = {F32: 4 * 32, Q4_0: 18, Q8_0: 34}  # of 32 numbers


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def tensors(head):
    yield "token_embd.weight", (WIDTH, VOCABULARY), Q4_0
    yield "output.weight", (WIDTH, VOCABULARY), Q8_0 if head else Q4_0
    yield "output_norm.weight", (WIDTH,), F32
    for i in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            yield f"blk.{i}.{name}.weight", (WIDTH,), F32
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield f"blk.{i}.{name}.weight", (WIDTH, WIDTH), Q4_0
        for name in ("ffn_gate", "ffn_up"):
            yield f"blk.{i}.{name}.weight", (WIDTH, MLP), Q4_0
        yield f"blk.{i}.ffn_down.weight", (MLP, WIDTH), Q4_0


def main():
    values = {"general.architecture": "llama", "llama.block_count": LAYERS, "llama.context_length": 64,
              "llama.embedding_length": WIDTH, "llama.feed_forward_length": MLP, "llama.attention.head_count": 32,
              "llama.attention.layer_norm_rms_epsilon": 1e-5}
    listed = list(tensors("head" in sys.argv[2:]))
    out = b"GGUF" + struct.pack("<IQQ", 3, len(listed), len(values))
    for key, v in values.items():
        kind = {str: 8, int: 4, float: 6}[type(v)]
        out += text(key) + struct.pack("<I", kind)
        out += text(v) if kind == 8 else struct.pack("<I" if kind == 4 else "<f", v)
    offset = 0
    for name, sizes, kind in listed:
        out += text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, offset)
        numbers = sizes[0] * (sizes[1] if len(sizes) > 1 else 1)
        offset += numbers // 32 * BYTES[kind]
    out += bytes(-len(out) % 32)
    with open(sys.argv[1], "wb") as f:
        f.write(out)
        f.truncate(len(out) + offset)


if __name__ == "__main__":
    main()
