#!/usr/bin/env bash
# examples/python/llava_handoff.py: visual tokens of renyi encode-image in other engines. RENYI_PYTHON names a Python
# with numpy; for the complete test also torch and transformers, or llama-cpp-python and gguf.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
python=${RENYI_PYTHON:-python3}
"$python" -c 'import numpy' 2>/dev/null ||
  { echo "SKIP: no numpy in $python; llava_handoff.py not tested (1); RENYI_PYTHON names another"; exit 77; }
export PYTHONPATH=$RENYI_SRC/examples/python PYTHONDONTWRITEBYTECODE=1

"$python" "$RENYI_SRC/tests/fixtures/make_llava.py" llava
make_ppm a.ppm 200 30 90
make_ppm b.ppm 20 130 190
prune=(--prune 'prumerge tokens=7 metric=col')
run 0 "$RENYI" encode-image -m llava -t 1 a.ppm b.ppm "${prune[@]}" -o tokens.safetensors --json
cp out encoded.json
run 0 "$python" "$PYTHONPATH/llava_handoff.py" tokens.safetensors
out_has "b.ppm: 8 tokens of 16 numbers, 7 at patches of their own, 1 merged"
out_has "policy prumerge tokens=7"

# --- numpy alone: the file, the positions of the rows, a llama_batch with the layout of llama.h ---
"$python" - <<'P' || fail "llava_handoff.py"
import ctypes, json
import numpy as np
import llava_handoff as h

photos, meta = h.read_tokens("tokens.safetensors")
want = json.load(open("encoded.json"))
assert [p["file"] for p in photos] == ["a.ppm", "b.ppm"] and meta["model"] == "llava"
for photo, image in zip(photos, want["images"]):
    assert photo["positions"].tolist() == [-1 if k is None else k for k in image["kept"]]
    assert photo["tokens"].shape == (8, 16) and np.isfinite(photo["tokens"]).all()

table = np.arange(320 * 16, dtype=np.float32).reshape(320, 16)
tokens = photos[1]["tokens"]
for image in (310, h.IMAGE):
    rows = h.splice(table, [1, 5, image, 9], 310, tokens)
    assert rows.shape == (3 + 8, 16) and rows.dtype == np.float32
    assert (rows[:2] == table[[1, 5]]).all() and (rows[2:10] == tokens).all() and (rows[10] == table[9]).all()
for bad in ([1, 2], [1, 310, 310]):
    try:
        h.split_prompt(bad, 310)
    except SystemExit as e:
        assert "image tokens" in str(e)
    else:
        raise AssertionError(bad)


class Batch(ctypes.Structure):  # llama_batch
    _fields_ = [("n_tokens", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)),
                ("embd", ctypes.POINTER(ctypes.c_float)), ("pos", ctypes.POINTER(ctypes.c_int32)),
                ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
                ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))), ("logits", ctypes.POINTER(ctypes.c_int8))]


n, width = tokens.shape
seq = (ctypes.c_int32 * n)(*[7] * n)
seqs = (ctypes.POINTER(ctypes.c_int32) * n)(*[ctypes.cast(ctypes.byref(seq, 4 * i), ctypes.POINTER(ctypes.c_int32)) for i in range(n)])
batch = Batch(0, None, (ctypes.c_float * (n * width))(), (ctypes.c_int32 * n)(), (ctypes.c_int32 * n)(), seqs, (ctypes.c_int8 * n)(*[1] * n))
h.fill_batch(batch, tokens, 35)
assert batch.n_tokens == n and batch.pos[:n] == list(range(35, 35 + n)) and batch.n_seq_id[:n] == [1] * n
assert list(seq) == [0] * n and batch.logits[:n] == [0] * n
assert batch.embd[:n * width] == tokens.ravel().tolist()
P

printf '\x02\0\0\0\0\0\0\0{}' >other.safetensors
run 1 "$python" "$PYTHONPATH/llava_handoff.py" other.safetensors
err_has "not a file of visual tokens"
run 2 "$python" "$PYTHONPATH/llava_handoff.py" tokens.safetensors --model llava
err_has "--prompt-ids is missing"

# --- installed engines: the same rows, the same answer ---
same_answer() { # PHOTO IMAGE_TOKEN --model|--gguf PATH
  local file=([0]=a.ppm [1]=b.ppm) ask=(--max-new-tokens 6)
  "$RENYI" ask -q -m llava -t 1 "${prune[@]}" "${file[$1]}" --prompt-ids '1 5 310 20 21 22' "${ask[@]}" --json >ours.json
  run 0 env HF_HUB_OFFLINE=1 "$python" "$PYTHONPATH/llava_handoff.py" tokens.safetensors --photo "$1" "$3" "$4" \
    --prompt-ids "1 5 $2 20 21 22" "${ask[@]}"
  tail -n 1 out >theirs
  "$python" -c 'import json
ours, theirs = json.load(open("ours.json"))["tokens"], [int(t) for t in open("theirs").read().split()]
assert ours == [t for t in theirs if t != 2], (ours, theirs)' || fail "$3 $4 answers otherwise"
}

skipped=()
if "$python" -c 'import torch, transformers' 2>/dev/null; then
  for photo in 0 1; do same_answer $photo 310 --model llava; done
else
  skipped+=("torch and transformers: inputs_embeds not tested")
fi
if "$python" -c 'import llama_cpp, gguf' 2>/dev/null; then
  PYTHONPATH=$RENYI_SRC/bench "$python" -c 'import gguf_llama; gguf_llama.write("llava", "f32", "lm.gguf")'
  for photo in 0 1; do same_answer $photo -200 --gguf lm.gguf; done
else
  skipped+=("llama-cpp-python and gguf: a batch of embeddings not tested")
fi
if [[ ${#skipped[@]} -gt 0 ]]; then
  for what in "${skipped[@]}"; do echo "SKIP: $python lacks $what"; done
  echo "(${#skipped[@]} of 2 engines left out; RENYI_PYTHON names another python)"
  exit 77
fi
echo "handoff: ok"
