"""Writes the GGUF files of the tests, with what the reference makes of them.

    tools/ref/gguf_files.py files tests/gguf
    tools/ref/gguf_files.py seeds fuzz/seeds
    tools/ref/gguf_files.py convert MODEL.gguf Q4_0 OUT.gguf

`files` writes
  types.gguf, types.safetensors    a tensor of every type, odd scales included, and its values as
                                   the gguf package dequantizes them
  llama_32.gguf                    a Llama with F32, F16, BF16 and the types of 32 numbers, one
                                   token table for input and output, SentencePiece's tokenizer
  llama_256.gguf                   a Llama with Q4_K, Q5_K and Q6_K, byte-level BPE ("smollm")
  llama_q4.gguf, llama_q8.gguf     Llamas with Q4_0 alone, but for an output matrix in Q8_0, and
                                   with Q8_0 alone
  llama.safetensors                logits of all in float64, of transformers' Llama on the
                                   dequantized weights with the rows of q and k put back; of the
                                   last two also with inputs of products rounded in groups of 32;
                                   what their rows lose in bf16 and in int8
`seeds` writes small files for the fuzz targets. `convert` writes a model with its matrices in
another type, from the values that the file means.
Needs numpy, torch, transformers, gguf, tokenizers.
"""
# SPDX-License-Identifier: Apache-2.0

import pathlib
import sys

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as T
from safetensors.numpy import save_file
from transformers import LlamaConfig, LlamaForCausalLM

SMALL = [T.Q8_0, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1]
LARGE = [T.Q4_K, T.Q5_K, T.Q6_K]
PLAIN = [T.F32, T.F16, T.BF16]
HALVES = {T.Q8_0: [0], T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2],
          T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208]}  # where blocks have their float16


# ---- bytes of a type ---------------------------------------------------------------------------

def random_blocks(rng, qtype, rows, columns, scale):
    """Random bytes are valid blocks once their float16 are numbers."""
    elements, size = gguf.GGML_QUANT_SIZES[qtype]
    blocks = rng.integers(0, 256, (rows * columns // elements, size), dtype=np.uint8)
    for at in HALVES[qtype]:
        halves = (rng.standard_normal(len(blocks)) * scale).astype(np.float16)
        blocks[:, at:at + 2] = halves[:, None].view(np.uint8)
    return blocks.reshape(rows, -1)


def stored(rng, weights, qtype):
    """Bytes of a matrix [rows, columns] in a type, and the values that they mean."""
    if qtype in LARGE:  # the gguf package has no quantizer for these: random blocks of that size
        spread = {T.Q4_K: 32 * 8, T.Q5_K: 32 * 16, T.Q6_K: 64 * 16}[qtype]
        data = random_blocks(rng, qtype, *weights.shape, float(weights.std()) / spread)
    elif qtype == T.F32:
        data = weights.astype(np.float32)
    else:
        data = gguf.quants.quantize(weights.astype(np.float32), qtype)
    return data, gguf.quants.dequantize(data, qtype).astype(np.float32)


# ---- every type --------------------------------------------------------------------------------

def write_types(folder):
    rng = np.random.default_rng(26)
    writer = gguf.GGUFWriter(folder / "types.gguf", "llama")
    writer.add_array("numbers", [1, -2, 3])
    values = {}
    for qtype in PLAIN + SMALL + LARGE:
        name, columns = qtype.name.lower(), 512 if qtype in LARGE else 96
        if qtype in PLAIN:
            data, values[name] = stored(rng, rng.standard_normal((3, columns)), qtype)
        else:
            scales = rng.choice([1e-7, 1e-3, 1.0, 200.0], 1)[0]  # float16: subnormal to large
            data = np.concatenate([random_blocks(rng, qtype, 1, columns, s)
                                   for s in (1e-7, 1e-3, scales)])
            values[name] = gguf.quants.dequantize(data, qtype)
        writer.add_tensor(name, data, raw_dtype=qtype)
    finish(writer)
    save_file(values, folder / "types.safetensors")


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# ---- tokenizers --------------------------------------------------------------------------------

WORDS = "the cat sat on a mat and looked at the dog that ran in and then the cat ran"
TEXT, UNKNOWN, CONTROL, USER, BYTE = 1, 2, 3, 4, 6


def sentencepiece_vocabulary(n):
    """Pieces with scores: specials, bytes, letters, and joins of words in the order found."""
    pieces = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    pieces += [(f"<0x{b:02X}>", 0.0, BYTE) for b in range(256)]
    letters = ["▁"] + sorted(set(WORDS) - {" "}) + ["é", "日"]
    joins, seen = [], {p[0] for p in pieces} | set(letters)
    for word in WORDS.split():
        for end in range(1, len(word) + 1):
            piece = "▁" + word[:end]
            for text in (word[:end], piece):
                if text not in seen:
                    joins.append(text)
                    seen.add(text)
    pieces += [(t, -1000.0 - i, TEXT) for i, t in enumerate(letters)]
    pieces += [(t, -float(i), TEXT) for i, t in enumerate(joins)]
    pieces += [("<mark>", 0.0, USER)]
    assert len(pieces) <= n, len(pieces)
    return pieces + [(f"[PAD{i}]", 0.0, 5) for i in range(n - len(pieces))]


def add_sentencepiece(writer, n):
    pieces = sentencepiece_vocabulary(n)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([p[0] for p in pieces])
    writer.add_token_scores([p[1] for p in pieces])
    writer.add_token_types([p[2] for p in pieces])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)


def byte_letters():
    """GPT-2's letters for bytes: visible ones of Latin-1 as they are, the others from U+0100."""
    kept = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255]
    others = [b for b in range(256) if b not in kept]
    return {**{b: chr(b) for b in kept}, **{b: chr(256 + i) for i, b in enumerate(others)}}


def add_byte_level(writer, n):
    letters = byte_letters()
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] + [letters[b] for b in range(256)]
    merges = []
    for word in WORDS.split():
        for spelled in (word, letters[32] + word):
            for end in range(1, len(spelled)):
                if spelled[:end] in tokens and spelled[:end + 1] not in tokens:
                    if len(tokens) == n:
                        break
                    merges.append(spelled[:end] + " " + spelled[end])
                    tokens.append(spelled[:end + 1])
    assert len(tokens) == n, len(tokens)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([CONTROL] * 3 + [TEXT] * (n - 3))
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)


# ---- language models ---------------------------------------------------------------------------

def pair(weights, heads):
    """The order of llama.cpp: rows i and i + half of a head, which are turned together, become
    neighbors."""
    rows, columns = weights.shape
    halves = weights.reshape(heads, 2, rows // heads // 2, columns)
    return halves.swapaxes(1, 2).reshape(rows, columns)


def unpair(weights, heads):
    rows, columns = weights.shape
    pairs = weights.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


NAMES = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm",
         "ffn_norm": "post_attention_layernorm"}


def write_llama(path, config, type_of, add_tokenizer, seed):
    """Writes the model and returns transformers' model with the weights that the file means."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    model = LlamaForCausalLM(config).double().eval()
    weights = model.state_dict()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_rope_dimension_count(config.head_dim)
    if config.head_dim * config.num_attention_heads != config.hidden_size:
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
    add_tokenizer(writer, config.vocab_size)

    def put(name, theirs, heads=0):
        values = weights[theirs].numpy()
        if values.ndim == 1:
            values = (1 + 0.2 * rng.standard_normal(values.shape)).astype(np.float32)
            writer.add_tensor(name, values)
        else:
            values = values + 0.15 * rng.standard_normal(values.shape)
            values = pair(values, heads) if heads else values
            qtype = type_of(name)
            data, values = stored(rng, values, qtype)
            writer.add_tensor(name, data, raw_dtype=qtype)
            values = unpair(values, heads) if heads else values
        weights[theirs] = torch.from_numpy(values.astype(np.float64))

    put("token_embd.weight", "model.embed_tokens.weight")
    for i in range(config.num_hidden_layers):
        for ours, theirs in NAMES.items():
            heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
            put(f"blk.{i}.{ours}.weight", f"model.layers.{i}.{theirs}.weight", heads.get(ours, 0))
    put("output_norm.weight", "model.norm.weight")
    if config.tie_word_embeddings:
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    else:
        put("output.weight", "lm_head.weight")
    finish(writer)
    model.load_state_dict(weights)
    return model


def logits_of(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


JOINED = [("attn_q", "attn_k", "attn_v"), ("ffn_gate", "ffn_up")]  # one product each


def kept_blocks(tensors, name):
    """1 if renyi's int8 computes with the blocks of this matrix as they are."""
    stem = name.split(".")[-2]
    together = next((j for j in JOINED if stem in j), (stem,))
    types = {tensors[name.replace(stem, s)].tensor_type for s in together}
    return len(types) == 1 and types <= {T.Q4_0, T.Q8_0}


def round_groups(module, inputs):
    """What renyi's products with groups of 32 see of their input: 8 bits with a step per group."""
    groups = inputs[0].float().unflatten(-1, (-1, 32))
    most = groups.abs().amax(-1, keepdim=True)
    numbers = torch.round(groups * (127 / most.clamp_min(1e-30)))
    return ((numbers.double() * (most / 127).double()).flatten(-2),)


def logits_of_groups(model, ids):
    hooks = [m.register_forward_pre_hook(round_groups) for m in model.modules()
             if isinstance(m, torch.nn.Linear)]
    logits = logits_of(model, ids)
    for hook in hooks:
        hook.remove()
    return logits


def rounding(path, layers):
    """The rms error of the first 16 rows of the output matrix and of every matrix of these layers
    in bf16 and in renyi's int8, relative to the numbers."""
    lost, whole = np.zeros(2), 0.0
    tensors = {t.name: t for t in gguf.GGUFReader(path).tensors}
    head = "output.weight" if "output.weight" in tensors else "token_embd.weight"
    for t in tensors.values():
        parts = t.name.split(".")
        inside = parts[0] == "blk" and int(parts[1]) in layers and len(t.shape) == 2
        if not inside and t.name != head:
            continue
        rows = gguf.quants.dequantize(t.data, t.tensor_type)[:16].astype(np.float32)
        pairs = [np.maximum(s * rows, 0).reshape(len(rows), -1, 2).sum(2).max(1) for s in (1, -1)]
        most = np.maximum(np.abs(rows).max(1), np.maximum(*pairs))[:, None]
        numbers = np.clip(np.rint(rows * (np.float32(127) / most)), -127, 127)
        int8 = rows if kept_blocks(tensors, t.name) else numbers * (most / np.float32(127))
        bf16 = torch.from_numpy(rows).bfloat16().float().numpy()
        for i, got in enumerate((bf16, int8)):
            lost[i] += ((got - rows).astype(np.float64) ** 2).sum()
        whole += (rows.astype(np.float64) ** 2).sum()
    return np.sqrt(lost / whole)


def write_llamas(folder):
    common = dict(num_hidden_layers=2, max_position_embeddings=128, rms_norm_eps=1e-5,
                  attention_bias=False, bos_token_id=1, eos_token_id=2)
    small = LlamaConfig(vocab_size=360, hidden_size=64, intermediate_size=96, head_dim=16,
                        num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=True,
                        rope_parameters={"rope_type": "default", "rope_theta": 5000.0}, **common)
    large = LlamaConfig(vocab_size=300, hidden_size=256, intermediate_size=32, head_dim=16,
                        num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False,
                        rope_parameters={"rope_type": "default", "rope_theta": 100000.0}, **common)
    order = SMALL + PLAIN

    def small_type(name):  # every type, also for q and k
        return order[sum(name.encode()) % len(order)]

    def large_type(name):  # rows of 64 and 32 are too short for 256 numbers
        if "attn_output" in name or "ffn_down" in name:
            return T.Q8_0
        return LARGE[sum(name.encode()) % len(LARGE)]

    rng, out = np.random.default_rng(7), {}
    def mostly_q4(name):
        return T.Q8_0 if name == "output.weight" else T.Q4_0

    plain = LlamaConfig(**{**small.to_dict(), "tie_word_embeddings": False})
    for name, config, type_of, add in (("llama_32", small, small_type, add_sentencepiece),
                                       ("llama_256", large, large_type, add_byte_level),
                                       ("llama_q4", plain, mostly_q4, add_sentencepiece),
                                       ("llama_q8", small, lambda _: T.Q8_0, add_sentencepiece)):
        model = write_llama(folder / f"{name}.gguf", config, type_of, add, len(name))
        ids = rng.integers(3, config.vocab_size, 24)
        out[name + ".ids"] = ids.astype(np.int32)
        out[name + ".rounding"] = rounding(folder / f"{name}.gguf", (0, 1))
        out[name + ".logits"] = logits_of(model, ids.tolist()).astype(np.float32)
        if name in ("llama_q4", "llama_q8"):
            out[name + ".groups"] = logits_of_groups(model, ids.tolist()).astype(np.float32)
    save_file(out, folder / "llama.safetensors")


# ---- seeds -------------------------------------------------------------------------------------

def write_seeds(folder):
    for target in ("fuzz_gguf", "fuzz_gguf_model"):
        (folder / target).mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(3)
    for qtype in PLAIN + SMALL + LARGE:
        path = folder / "fuzz_gguf" / qtype.name.lower()
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_uint64("u64", 1 << 40)
        writer.add_bool("flag", True)
        writer.add_array("texts", ["a", "", "ü"])
        writer.add_array("reals", [0.5, 1.5])
        columns = 256 if qtype in LARGE else 32
        data, _ = stored(rng, rng.standard_normal((2, columns)), qtype)
        writer.add_tensor("t", data, raw_dtype=qtype)
        writer.add_tensor("norm", np.ones(3, dtype=np.float32))
        finish(writer)
    config = LlamaConfig(vocab_size=300, hidden_size=32, intermediate_size=32, head_dim=16,
                         num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=True,
                         num_hidden_layers=1, max_position_embeddings=16, rms_norm_eps=1e-5,
                         rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
    for name, qtype in (("f32", T.F32), ("q4_0", T.Q4_0), ("q8_0", T.Q8_0), ("q5_1", T.Q5_1)):
        add = add_byte_level if name == "q8_0" else add_sentencepiece_300
        write_llama(folder / "fuzz_gguf_model" / name, config, lambda _, q=qtype: q, add, 5)


def add_sentencepiece_300(writer, n):
    pieces = [p for p in sentencepiece_vocabulary(360) if p[2] != 5][:n]
    writer.add_tokenizer_model("llama")
    writer.add_token_list([p[0] for p in pieces])
    writer.add_token_scores([p[1] for p in pieces])
    writer.add_token_types([p[2] for p in pieces])


def convert(path, qtype, out):
    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(out, reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            element = field.types[1] if len(field.types) > 1 else None
            writer.add_key_value(name, field.contents(), field.types[0], element)
    for t in reader.tensors:
        values = gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32)
        if values.ndim < 2:
            writer.add_tensor(t.name, values)
        else:
            writer.add_tensor(t.name, gguf.quants.quantize(values, qtype), raw_dtype=qtype)
    finish(writer)


def main():
    if len(sys.argv) == 5 and sys.argv[1] == "convert":
        convert(sys.argv[2], T[sys.argv[3]], sys.argv[4])
        return
    if len(sys.argv) != 3 or sys.argv[1] not in ("files", "seeds"):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    if sys.argv[1] == "files":
        write_types(folder)
        write_llamas(folder)
    else:
        write_seeds(folder)


if __name__ == "__main__":
    main()
