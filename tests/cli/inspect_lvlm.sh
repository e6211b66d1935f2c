#!/usr/bin/env bash
# renyi inspect of LLaVA and Llama models, complete, quantized and broken; verbs that refuse them.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to make a LLaVA and to read JSON"; exit 77; }

python3 "$RENYI_SRC/tests/fixtures/make_llava.py" llava
make_ppm a.ppm 200 30 90
one_line() {
  err_lines 1
  err_has "$1"
  out_empty
}

# --- a LLaVA, and its quantized file ---
run 0 "$RENYI" inspect llava
for line in "architecture    LLaVA" "56 x 56, patches of 14: 16 tokens" "2 of 3 blocks are run" "from 16 to 16" \
  "names as in llava-hf" "image token 310" "pieces.json, 288 ids" "f32 if --dtype is silent" "tensors         80 x F32"; do
  out_has "$line"
done
run 0 "$RENYI" inspect llava --json
json 'd["architecture"] == "LLaVA" and d["image_tower"]["n_patches"] == 16 and d["tokenizer"]["ids"] == 288'
json 'd["language_model"]["vocab"] == 320 and d["language_model"]["parameters"] == 14672'
json 'list(d["language_model"]["memory_bytes"]) == ["f32", "bf16", "int8", "int4"]'
json 'd["tensors"][-1] == {"name": "language_model.lm_head.weight", "dtype": "F32", "shape": [320, 16], "bytes": 20480}'
run 0 "$RENYI" inspect llava --tensors
grep -Eq '^language_model.lm_head.weight +F32 +320 x 16 +20480$' out || fail "no list of tensors"
run 0 "$RENYI" quantize -q -m llava --lm int4 -o int4.safetensors
run 0 "$RENYI" inspect int4.safetensors --json
json 'd["architecture"] == "LLaVA" and d["language_model"]["dtype"] == "int4" and d["tokenizer"] is None'
json 'list(d["language_model"]["memory_bytes"]) == ["int4"] and d["language_model"]["parameters"] == 14672'

# --- a Llama in F16 with more than 1e9 parameters: a sparse file of which only the header is read ---
python3 - <<'P'
import json, os, struct
os.mkdir("large")
vocab, dim, mlp, layer = 60000, 8192, 64, "model.layers.0."
shapes = {"model.embed_tokens.weight": [vocab, dim], "model.norm.weight": [dim], "lm_head.weight": [vocab, dim]}
shapes |= {f"{layer}self_attn.{n}_proj.weight": [dim, dim] for n in "qkvo"}
shapes |= {f"{layer}mlp.{n}_proj.weight": s for n, s in (("gate", [mlp, dim]), ("up", [mlp, dim]), ("down", [dim, mlp]))}
shapes |= {f"{layer}{n}_layernorm.weight": [dim] for n in ("input", "post_attention")}
header, end = {}, 0
for name, shape in shapes.items():
    begin, end = end, end + 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
    header[name] = {"dtype": "F16", "shape": shape, "data_offsets": [begin, end]}
text = json.dumps(header).encode()
with open("large/model.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text)
    f.truncate(8 + len(text) + end)
json.dump({"model_type": "llama", "hidden_size": dim, "num_attention_heads": 64}, open("large/config.json", "w"))
P
run 0 "$RENYI" inspect large --json
json 'd["architecture"] == "Llama" and d["image_tower"] is None and d["language_model"]["dtype"] == "bf16"'
json '1.25e9 < d["language_model"]["parameters"] < 1.26e9'

# --- errors name what is wrong ---
cp -r llava broken
without_tensors llava/model.safetensors broken/model.safetensors language_model.model.norm
run 1 "$RENYI" inspect -q broken
one_line "language_model.model.norm.weight"
cp -r llava scaled
python3 -c 'import json
c = json.load(open("llava/config.json"))
c["text_config"]["rope_scaling"] = {"type": "linear", "factor": 2.0}
json.dump(c, open("scaled/config.json", "w"))'
run 1 "$RENYI" inspect -q scaled
one_line "rope_scaling"

# --- verbs for classifiers report what the model is ---
mkdir -p photos/a && cp a.ppm photos/a/
run 1 "$RENYI" classify -q -m llava a.ppm
one_line "this is a LLaVA"
err_has "renyi ask"
run 1 "$RENYI" eval -q -m llava photos
one_line "this is a LLaVA"
run 1 "$RENYI" classify -q -m int4.safetensors a.ppm
one_line "this is a LLaVA"
run 1 "$RENYI" classify -q -m large a.ppm
one_line "a language model without an image tower"
echo "inspect_lvlm: ok"
