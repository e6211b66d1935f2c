#!/usr/bin/env python3
# serve_llama.py - chats of renyi serve beside llama.cpp's llama-server: one Llama, the same texts, OpenAI's API for both.
# usage: serve_llama.py LLAMA LLAMA_SERVER [--build BUILD] [--threads N]
# SPDX-License-Identifier: Apache-2.0
#
# LLAMA: a folder with a plain Llama and pieces.json, such as stories260K. Its weights are written as a GGUF in f32. A
# second Llama with the same vocabulary, 58 M random parameters, shows more of the model and less of the server. Both
# servers continue a text, greedily; tokens a second of one client, and of four together. Needs numpy and gguf.
import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import gguf
import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gguf_llama  # noqa: E402

TEXT = "Once upon a time, there was a little girl named Lily. She loved to play outside in the park."
LARGE = {"hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 8, "num_attention_heads": 12, "num_key_value_heads": 12, "head_dim": 64}


def options():
    p = argparse.ArgumentParser(description="Chats of renyi serve beside llama.cpp's server.")
    p.add_argument("llama")
    p.add_argument("llama_server")
    p.add_argument("--build", default="build")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--tokens", type=int, default=100, help="of an answer (100)")
    p.add_argument("--rounds", type=int, default=5)
    return p.parse_args()


# ---- models

def add_vocabulary(writer, folder):
    """Llama's SentencePiece pieces; the first three and the bytes have their own types."""
    with open(os.path.join(folder, "pieces.json")) as f:
        pieces = json.load(f)
    special = {0: ("<unk>", gguf.TokenType.UNKNOWN), 1: ("<s>", gguf.TokenType.CONTROL), 2: ("</s>", gguf.TokenType.CONTROL)}
    texts, kinds = [], []
    for i, p in enumerate(pieces):
        is_byte = p["piece"].startswith("<0x") and len(p["piece"]) == 6
        text, kind = special.get(i, (p["piece"].replace(" ", "\u2581"), gguf.TokenType.BYTE if is_byte else gguf.TokenType.NORMAL))
        texts.append(text.encode())
        kinds.append(kind)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(texts)
    writer.add_token_scores([p["score"] for p in pieces])
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)


def write_gguf(folder, path):
    with open(os.path.join(folder, "config.json")) as f:
        c = json.load(f)
    source, writer = gguf_llama.tensors_of(folder), gguf.GGUFWriter(path, "llama")
    describe_tokenizer, writer.add_tokenizer_model = writer.add_tokenizer_model, lambda name: None  # gguf_llama names none
    gguf_llama.describe(writer, c, "f32")
    writer.add_tokenizer_model = describe_tokenizer
    add_vocabulary(writer, folder)
    for theirs, ours in gguf_llama.names(c["num_hidden_layers"]):
        theirs = theirs.removeprefix("language_model.")
        if theirs not in source:  # tied to the embedding
            continue
        w = np.asarray(source[theirs], dtype=np.float32)
        if ours.endswith(("attn_q.weight", "attn_k.weight")):
            w = gguf_llama.turned(w, c["num_attention_heads" if "attn_q" in ours else "num_key_value_heads"])
        writer.add_tensor(ours, np.ascontiguousarray(w))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_random(source, folder):
    """A larger Llama with the vocabulary of another."""
    os.makedirs(folder)
    shutil.copy(os.path.join(source, "pieces.json"), folder)
    with open(os.path.join(source, "config.json")) as f:
        c = {**json.load(f), **LARGE, "tie_word_embeddings": False}
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(c, f)
    d, m, v, rng = c["hidden_size"], c["intermediate_size"], c["vocab_size"], np.random.default_rng(1)
    shapes = {"model.embed_tokens.weight": (v, d), "model.norm.weight": (d,), "lm_head.weight": (v, d)}
    for i in range(c["num_hidden_layers"]):
        b = f"model.layers.{i}."
        shapes |= {f"{b}self_attn.{x}_proj.weight": (d, d) for x in "qkvo"} | {b + "mlp.gate_proj.weight": (m, d), b + "mlp.up_proj.weight": (m, d), b + "mlp.down_proj.weight": (d, m)}
        shapes |= {b + "input_layernorm.weight": (d,), b + "post_attention_layernorm.weight": (d,)}
    arrays = {k: (np.ones(s) if len(s) == 1 else rng.normal(0, 0.04, s)).astype(np.float32) for k, s in shapes.items()}
    at, header = 0, {}
    for k, a in arrays.items():
        header[k] = {"dtype": "F32", "shape": a.shape, "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for a in arrays.values():
            f.write(a.tobytes())


# ---- servers

def start(command, port):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        try:
            if urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).status == 200 and get_models(port):
                return process
        except OSError:
            pass
        if process.poll() is not None:
            raise SystemExit(f"{command[0]} ended with {process.returncode}")
        time.sleep(0.1)
    raise SystemExit(f"{command[0]} did not start")


def get_models(port):
    return json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5))["data"]


def post(port, path, body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=300))


def ask_renyi(port, text, tokens):
    a = post(port, "/v1/chat/completions", {"messages": [{"role": "user", "content": text}], "max_tokens": tokens})
    return a["choices"][0]["message"]["content"], a["usage"]["completion_tokens"]


def ask_llama(port, text, tokens):
    """OpenAI's older path: llama-server would put a template around a chat, and this model has none."""
    a = post(port, "/v1/completions", {"prompt": text, "max_tokens": tokens, "temperature": 0, "cache_prompt": True})
    return a["choices"][0]["text"], a["usage"]["completion_tokens"]


def rate(ask, port, clients, tokens, i):
    """Tokens a second of all clients; each has its own text, which no cache knows."""
    counts = [0] * clients

    def run(k):
        counts[k] = ask(port, f"{TEXT} Story {i} {k}. ", tokens)[1]

    threads, begin = [threading.Thread(target=run, args=(k,)) for k in range(clients)], time.perf_counter()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return sum(counts) / (time.perf_counter() - begin)


def compare(o, folder, name, scratch):
    path, port = os.path.join(scratch, name + ".gguf"), 18431
    write_gguf(folder, path)
    ours = start([os.path.join(o.build, "renyi"), "serve", "-q", "--log", "none", "-m", folder, "-t", str(o.threads), "--port", str(port)], port)
    theirs = start([o.llama_server, "-m", path, "-t", str(o.threads), "--port", str(port + 1), "-c", "2048", "-np", "4", "-ngl", "0"], port + 1)
    a, b = ask_renyi(port, TEXT, o.tokens)[0], ask_llama(port + 1, TEXT, o.tokens)[0]
    same = len(os.path.commonprefix([a.strip(), b.strip()]))
    print(f"{name}: the first {same} of {len(a.strip())} characters of the answers are the same", flush=True)
    for clients in 1, 4:
        rates = [(rate(ask_renyi, port, clients, o.tokens, i), rate(ask_llama, port + 1, clients, o.tokens, i)) for i in range(o.rounds)]
        x, y, q = (float(np.median(v)) for v in ([r[0] for r in rates], [r[1] for r in rates], [r[0] / r[1] for r in rates]))
        print(f"  {clients} client{'s' if clients > 1 else ''}: renyi serve {x:.1f} tokens/s, llama-server {y:.1f}; {q:.2f} times as fast (median of {o.rounds})", flush=True)
    for process in ours, theirs:
        process.terminate()
        process.wait()


def main():
    o = options()
    with tempfile.TemporaryDirectory() as scratch:
        compare(o, o.llama, os.path.basename(os.path.normpath(o.llama)), scratch)
        write_random(o.llama, os.path.join(scratch, "llama58M"))
        compare(o, os.path.join(scratch, "llama58M"), "llama58M", scratch)


main()
