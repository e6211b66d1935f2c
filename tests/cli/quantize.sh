#!/usr/bin/env bash
# renyi quantize: an int8 model that every verb takes, with and without calibration; errors.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

make_toy
mkdir photos
for i in 1 2 3; do make_ppm photos/$i.ppm $((i * 60)) $((i * 20)) 90; done

run 0 "$RENYI" quantize -m toy.safetensors -o token.safetensors
out_has "weights int8 per channel, activations per token"
out_has "8 weights in 8 bits"
run 0 "$RENYI" quantize -m toy.safetensors --calib photos --calib-limit 2 -o range.safetensors --json
json 'd["weights"] == 8 and d["bytes_after"] < d["bytes_before"] and "(2 photos)" in d["quantization"]'
run 0 "$RENYI" quantize -m toy.safetensors --calib photos --calib-range max --calib-spread 100 -o max.safetensors
out_has "activations static max (3 photos)"

# All verbs take it with -m, in int8 or in f32.
run 0 "$RENYI" inspect range.safetensors
out_has "8 x I8"
out_has "static percentile 99.9"
run 0 "$RENYI" inspect range.safetensors --json
json 'd["dtype"] == "int8" and d["quantization"].startswith("weights int8") and d["n_heads"] == 2'
for model in token range max; do
  run 0 "$RENYI" classify -q -m $model.safetensors --json -k 1 photos/2.ppm
  json 'd["dtype"] == "int8"'
done
run 0 "$RENYI" classify -q -m token.safetensors --dtype f32 --json -k 1 photos/2.ppm
json 'd["dtype"] == "f32"'

# A broken image is reported and skipped; without any image no file is written.
echo nothing >photos/4.ppm
run 3 "$RENYI" quantize -m toy.safetensors --calib photos -o partial.safetensors
err_has "4.ppm"
[ -s partial.safetensors ] || fail "the good images are enough"
mkdir broken && cp photos/4.ppm broken
run 1 "$RENYI" quantize -m toy.safetensors --calib broken -o none.safetensors
err_has "no image could be read"
[ ! -e none.safetensors ] || fail "a file without calibration"

cp toy.safetensors before.safetensors
ln toy.safetensors link.safetensors
run 1 "$RENYI" quantize -m toy.safetensors -o link.safetensors
err_has "link.safetensors exists already; give --force"
run 1 "$RENYI" quantize -m toy.safetensors --force -o link.safetensors
err_has "a file of the model itself"
cmp toy.safetensors before.safetensors || fail "the source was changed"
run 1 "$RENYI" quantize -m token.safetensors -o again.safetensors
err_has "quantized already"
run 1 "$RENYI" quantize -m token.safetensors --calib photos -o again.safetensors
err_has "quantized already"
run 1 "$RENYI" quantize -m toy.safetensors -o no/such/folder.safetensors
run 2 "$RENYI" quantize -m toy.safetensors
err_has "-o OUT.safetensors is missing"
run 2 "$RENYI" quantize -m toy.safetensors -o x.safetensors --percentile 99
err_has "--calib IMAGES is missing"
run 2 "$RENYI" quantize -m toy.safetensors -o x.safetensors --calib photos --percentile 7
err_has "above 50"
run 2 "$RENYI" quantize -m toy.safetensors -o x.safetensors --calib photos --calib-range max --percentile 99
err_has "--calib-range percentile"

# A language model: the file is mapped, and the tokens are those of quantization at load.
run 0 "$RENYI" init --arch llava-1.5-7b --dim 32 --heads 2 --blocks 2 --mlp-dim 96 llava
for bits in int8 int4; do
  run 0 "$RENYI" quantize -m llava --lm $bits --json -o llava-$bits.safetensors
  json "d['dtype'] == '$bits' and d['weights'] == 9 and d['bytes_after'] < d['bytes_before']"
done
run 0 "$RENYI" quantize -m llava --lm int8 -o llava-int8.safetensors --force
grep -q 'language model of [1-9][0-9.]* M parameters' out || fail "parameters of a small model"
for model in "llava --dtype int4" llava-int4.safetensors; do
  run 0 "$RENYI" ask -m $model --prompt-ids "1 319 32000 5" --max-new-tokens 5 --ignore-eos --json photos/1.ppm
  python3 -c "import json; print(json.load(open('out'))['tokens'])" >>tokens || true
done
[ "$(sort -u tokens | wc -l)" -le 1 ] || fail "the file gives another answer"
run 1 "$RENYI" quantize -m llava-int4.safetensors --lm int8 -o again.safetensors
err_has "quantized already"
run 1 "$RENYI" quantize -m toy.safetensors --lm int8 -o again.safetensors
err_has "no Llama in it"
run 2 "$RENYI" quantize -m llava --lm int8 --calib photos -o again.safetensors
err_has "--calib is for vision models"
echo "quantize: ok"
