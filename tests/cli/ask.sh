#!/usr/bin/env bash
# renyi ask and encode-image: answers, chats, files of visual tokens, errors.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to make a LLaVA and to read JSON"; exit 77; }

python3 "$RENYI_SRC/tests/fixtures/make_llava.py" llava
make_ppm a.ppm 200 30 90
make_ppm b.ppm 20 130 190
echo "no image" >bad.ppm
ask() { "$RENYI" ask -m llava -t 1 --max-new-tokens 8 "$@"; }
one_line() {
  err_lines 1
  err_has "$1"
  out_empty
}
# lines EXPRESSION: a Python expression over `d`, the list of the documents in ./out.
lines() {
  python3 -c 'import json,sys
d = [json.loads(line) for line in open("out")]
sys.exit(0 if eval(sys.argv[1]) else 1)' "$1" || fail "JSON: not true: $1"
}

# --- one image: text on stdout, everything in JSON ---
run 0 ask a.ppm 'what is this' --json
json 'd["file"] == "a.ppm" and d["question"] == "what is this" and d["model"] == "llava" and d["policy"] == "none"'
json 'len(d["tokens"]) == 8 and d["end"] == "length" and d["visual_tokens"] == 16 and d["kept"] == list(range(16))'
json 'd["prompt_tokens"] > 16 and d["reused_tokens"] == 0 and d["vision_ms"] > 0 and d["prefill_ms"] > 0'
json 'd["first_token_ms"] >= d["prefill_ms"] + d["vision_ms"] and d["decode_tokens_per_second"] > 0 and d["memory_bytes"] > 0'
cp out first.json
run 0 ask a.ppm 'what is this' --stats
python3 - <<'P' || fail "the streamed text is not the text of --json"
import json, unicodedata
text = json.load(open("first.json"))["text"].replace("\r", " ")
want = "".join(c if unicodedata.category(c) not in ("Cc", "Cf") or c in "\n\t" else "\ufffd" for c in text)
assert open("out", encoding="utf-8", newline="").read() == want + "\n"
P
err_has "16 of 16 visual tokens kept"
err_has "tokens/s"
err_has "vision "
grep -q 'memory: 0\.[1-9] MB of weights.*process [1-9][0-9.]* [MG]B' err || fail "memory of a small model"
err_has "(--max-new-tokens)"
run 0 ask a.ppm 'what is this' --stats --max-new-tokens 1
err_has "cut after 1 token ("
err_has "answer of 1 token"
run 0 ask -q a.ppm 'what is this'
[ ! -s err ] || fail "-q speaks"

# --- pruned; ids; several images; files that are not images ---
run 0 ask a.ppm 'what is this' --prune 'naive p=4 layers=0' --json
json 'd["visual_tokens"] == 12 and len(d["kept"]) == 12 and d["policy"].startswith("naive p=4")'
run 0 ask a.ppm 'what is this' --prune 'fastv layer=1 tokens=5' --json --stats
json 'd["visual_tokens"] == 16 and [(c["layer"], c["tokens_in"], c["tokens_out"], len(c["kept"]), len(c["scores"])) for c in d["cuts"]] == [(1, 16, 5, 5, 16)]'
json 'd["cost"]["layer_tokens"] == 10.5 and d["policy"] == "fastv tokens=5 layer=1 metric=last positions=original"'
json 'd["cuts"][0]["kept"] == sorted(sorted(range(16), key=lambda j: -d["cuts"][0]["scores"][j])[:5])'
err_has "layer 1: 5 of 16 visual tokens kept"
err_has "10.5 visual tokens in a layer on average"
cp out cut.json
run 0 ask a.ppm b.ppm 'what is this' --prune 'fastv layer=1 tokens=5' -t 2 --json
lines 'd[0]["tokens"] == json.load(open("cut.json"))["tokens"] and d[1]["reused_tokens"] > 0'
run 0 ask a.ppm 'what is this' --prune 'dart layer=1 tokens=6 pivots=1 text_pivots=2' --json
json 'd["cuts"][0]["tokens_out"] == 7 and d["cuts"][0]["scores"] is None'
run 0 ask a.ppm 'what is this' --prune 'sparsevlm layers=1 tokens=5 recycle=0.5 members=4' --json --stats
json 'd["cuts"][0]["tokens_out"] == 7 and d["cuts"][0]["kept"][5:] == [None, None] and len(d["cuts"][0]["scores"]) == 16'
json 'd["cuts"][0]["kept"][:5] == sorted(sorted(range(16), key=lambda j: -d["cuts"][0]["scores"][j])[:5])'
err_has "layer 1: 7 of 16 visual tokens kept"
run 0 ask a.ppm --prompt-ids '1 5 310, 20,21 22' --json
json 'd["prompt_tokens"] == 5 + 16 and d["question"] is None'
cp out ids.json
run 0 ask a.ppm --prompt-ids '1 5 -200 20 21 22' --json
json 'd["tokens"] == json.load(open("ids.json"))["tokens"]'
run 0 ask --prompt-ids '1 5 20' --json
json 'd["file"] is None and d["visual_tokens"] == 0 and d["prompt_tokens"] == 3'
run 3 ask a.ppm bad.ppm absent.ppm b.ppm 'what is this' --json
lines '[x["file"] for x in d] == ["a.ppm", "bad.ppm", "absent.ppm", "b.ppm"] and ["error" in x for x in d] == [False, True, True, False]'
lines 'd[0]["tokens"] == json.load(open("first.json"))["tokens"] and d[3]["reused_tokens"] > 0'
err_has "bad.ppm"
err_has "absent.ppm: No such file"
run 0 ask a.ppm b.ppm 'what is this'
[ "$(grep -c '^[ab].ppm: ' out)" -eq 2 ] || fail "answers about several images begin with file names"
run 1 ask -q absent.ppm 'what is this'
one_line "absent.ppm"
run 0 sh -c '"$0" ask -m llava -t 1 --max-new-tokens 8 - "what is this" --json <a.ppm' "$RENYI"
json 'd["tokens"] == json.load(open("first.json"))["tokens"]'

# --- sampling: the same seed gives the same answer ---
warm() { ask a.ppm 'what is this' --temperature 5 --top-p 0.95 --json "$@"; }
run 0 warm --seed 7
cp out seven.json
run 0 warm --seed 7
json 'd["tokens"] == json.load(open("seven.json"))["tokens"] and d["seed"] == 7'
run 0 warm --seed 8
json 'd["tokens"] != json.load(open("seven.json"))["tokens"]'

# --- bf16, int8 and int4 ---
for dtype in bf16 int8 int4; do
  run 0 ask a.ppm 'what is this' --dtype $dtype --json
  json 'd["dtype"] == "'$dtype'" and d["tower_dtype"] == "f32" and len(d["tokens"]) == 8'
done

# --- a chat keeps its context; an empty line ends it ---
chat() { printf 'what is this\nand why\n\nnot asked\n' | "$RENYI" ask -m llava -t 1 --max-new-tokens 8 --chat "$@"; }
run 0 chat a.ppm --json
lines 'len(d) == 2 and d[0]["tokens"] == json.load(open("first.json"))["tokens"] and d[1]["question"] == "and why"'
lines 'd[1]["reused_tokens"] == d[0]["prompt_tokens"] + 7 and d[1]["visual_tokens"] == 16 and d[1]["vision_ms"] == 0'
run 0 chat a.ppm 'what is this' --json
lines 'len(d) == 3 and d[1]["reused_tokens"] > 16'
run 0 chat a.ppm
run 1 chat -q absent.ppm
one_line "absent.ppm"
run 2 chat -q a.ppm b.ppm 'what'
one_line "one image"
run 2 chat -q -
one_line "stdin"

# --- the context: a prompt that is too long, an answer that is cut ---
run 1 ask -q a.ppm 'what is this' --max-context 100
one_line "holds 100"
n=$(python3 -c 'import json; print(json.load(open("first.json"))["prompt_tokens"] + 3)')
run 0 ask a.ppm 'what is this' --max-context "$n" --json
json 'd["end"] == "context" and len(d["tokens"]) == 4'
err_has "fill the context"
run 3 chat a.ppm --max-context "$n" --json
lines 'len(d) == 1'
err_has "holds $n"

# --- a plain Llama continues a text; it takes no images ---
python3 "$RENYI_SRC/tests/fixtures/make_llava.py" llama tower=0
llama() { "$RENYI" ask -m llama -t 1 --max-new-tokens 6 "$@"; }
run 0 llama 'once upon a time' --json
json 'd["file"] is None and d["question"] == "once upon a time" and len(d["tokens"]) == 6 and d["policy"] == "none"'
json 'd["visual_tokens"] == 0 and d["kept"] == [] and d["tower_dtype"] is None and d["prompt_tokens"] == 1 + 17' # bos, a blank in front
cp out llama.json
ids=$("$RENYI" tokenize -m llama 'once upon a time' | head -1)
run 0 llama --prompt-ids "$ids" --json
json 'd["tokens"] == json.load(open("llama.json"))["tokens"]'
run 0 llama 'once upon a time' --stats
err_has "prompt of 18 tokens, 0 of them reused; answer of 6 tokens"
! grep -q "vision" err || fail "vision without an image"
printf 'and then\n\n' | "$RENYI" ask -m llama -t 1 --max-new-tokens 6 --chat 'once upon a time' --json >out 2>err || fail "chat"
lines 'len(d) == 2 and d[0]["tokens"] == json.load(open("llama.json"))["tokens"] and d[1]["reused_tokens"] >= 18 + 5'
printf 'once upon a time\n\n' | "$RENYI" ask -m llama -t 1 --max-new-tokens 6 --chat --json >out 2>err || fail "chat without a first text"
lines 'd[0]["tokens"] == json.load(open("llama.json"))["tokens"]'
run 2 llama a.ppm 'what is this'
one_line "llama is a plain Llama: it has no image tower and takes no images; give one text, in quotes"
run 2 llama a.ppm --prompt-ids '1 5'
one_line "takes no images; give only ids"
run 2 llama 'once' --prune 'prumerge tokens=5'
one_line "a plain Llama has no visual tokens to prune"
run 2 llama
one_line "no text given"
echo '{"question_id": 1, "image": "a.ppm", "text": "what"}' >question.jsonl
run 1 "$RENYI" vqa -q --task gqa --questions question.jsonl -m llama --images .
one_line "llama: a plain Llama without an image tower; vqa needs a LLaVA"
rm llama/pieces.json
run 1 llama 'once'
one_line "tokenizer"
shared=${RENYI_SHARED:-$RENYI_SRC/../shared}
if [ -d "$shared/models/stories260K" ]; then
  run 0 "$RENYI" ask -m "$shared/models/stories260K" -t 1 --max-new-tokens 195 'Once upon a time' --json
  python3 - "$shared/golden/stories260K.safetensors" <<'P' || fail "another story than the reference's"
import json, struct, sys
b = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", b[:8])[0]
begin, end = json.loads(b[8:8 + n])["greedy"]["data_offsets"]
want = list(struct.unpack("<200i", b[8 + n + begin:8 + n + end]))
d = json.load(open("out"))
assert want[:5] == [1, 403, 407, 261, 378] and d["prompt_tokens"] == 5
assert d["tokens"] == want[5:], d["tokens"]
assert d["text"].startswith(", there was a little girl"), d["text"]
P
fi

# --- wrong usage ---
usage() {
  local message=$1
  shift
  run 2 "$RENYI" "$@"
  one_line "$message"
}
usage "-m LLAVA is missing" ask a.ppm what
usage "an image and a question" ask -m llava a.ppm
head -c 100 llava/model.safetensors >cut.safetensors # one text is enough for a Llama, which this may be
run 1 "$RENYI" ask -m cut.safetensors 'what'
one_line "cut.safetensors"
usage "no image and no question" ask -m llava
usage "the question is empty" ask -m llava a.ppm ''
usage "'--temperature'" ask -m llava a.ppm what --temperature -1
usage "'--top-p'" ask -m llava a.ppm what --top-p 0
usage "'x5' is not an id" ask -m llava a.ppm --prompt-ids '1 x5'
usage "no ids" ask -m llava a.ppm --prompt-ids ' '
usage "not both" ask -m llava a.ppm --prompt-ids 1 --chat
usage "renyi policies" ask -m llava a.ppm what --prune 'evit keep=2'
usage "tokens=9999: an image has 16 patches" ask -q -m llava a.ppm what --prune 'prumerge tokens=9999'
for rule in vispruner visionzip divprune mosaic-behind random uniform pool downsample; do
  usage "tokens=9999: an image has 16 patches" ask -q -m llava a.ppm what --prune "$rule tokens=9999"
  run 0 ask -q a.ppm what --prune "$rule tokens=9" --json
  json "d['policy'].split()[:2] == ['$rule', 'tokens=9'] and d['visual_tokens'] == 9"
done
usage "tokens=9999: 16 visual tokens arrive at layer 1" ask -q -m llava a.ppm what --prune 'fastv layer=1 tokens=9999'
usage "the language model has 2 layers" ask -q -m llava a.ppm what --prune 'fastv layer=2'
usage "none runs here" encode-image -q -m llava a.ppm --prune 'fastv layer=1' -o none.safetensors
usage "tokens=9999: an image has 16 patches" encode-image -q -m llava a.ppm --prune 'prumerge tokens=9999' -o none.safetensors
usage "--text-tower DIR" ask -q -m llava a.ppm what --prune 'cdpruner tokens=9'
usage "of width 32, the model one of 16" ask -q -m llava a.ppm what --prune 'cdpruner tokens=9' \
  --text-tower "$RENYI_SRC/tests/visual_rules/clip"
run 0 ask -q a.ppm what --prune 'cdpruner tokens=9 metric=col' --json
json "d['visual_tokens'] == 9"
small() { "$RENYI" encode-image -q -m "$RENYI_SRC/tests/visual_rules" a.ppm --text-tower "$RENYI_SRC/tests/visual_rules/clip" "$@"; }
run 1 small --prune 'cdpruner tokens=9' -o plate.safetensors
one_line "chooses by a question, and none was given"
run 0 small --prune 'cdpruner tokens=9' --question 'what is on the plate?' -o plate.safetensors
run 0 small --prune 'cdpruner tokens=9' --question 'where is the second dog' -o dog.safetensors
cmp -s plate.safetensors dog.safetensors && fail "another question chooses other tokens"
run 1 ask -q a.ppm --prompt-ids '1 310 999'
one_line "id 999, number 3"
run 1 ask -q a.ppm --prompt-ids '1 310 -200'
one_line "2 places"
usage "no image token, id 310" ask -q -m llava a.ppm --prompt-ids '1 5 20'
run 1 ask -q --prompt-ids '1 310 5'
one_line "none was shown"
run 1 ask -q a.ppm --prompt-ids '1 310 5' --max-context 16
one_line "18 rows"
run 1 ask -q a.ppm 'what is this' --max-context 513
one_line "at most 512 rows"

# --- files that are not models, and incomplete models ---
make_toy
run 1 "$RENYI" ask -q -m toy.safetensors a.ppm what
one_line "toy.safetensors"
run 1 "$RENYI" ask -q -m nowhere a.ppm what
one_line "nowhere"
python3 "$RENYI_SRC/tests/fixtures/make_llava.py" sharded shards=3
run 0 "$RENYI" ask -m sharded -t 1 --max-new-tokens 8 a.ppm 'what is this' --json
json 'd["tokens"] == json.load(open("first.json"))["tokens"]'
rm sharded/model-00002-of-00003.safetensors
for verb in "ask a.ppm what -m" "encode-image a.ppm -o none.safetensors -m" inspect; do
  run 1 "$RENYI" $verb sharded -q
  one_line "sharded/model-00002-of-00003.safetensors: No such file"
done
cp sharded/model-00001-of-00003.safetensors sharded/model-00002-of-00003.safetensors
run 1 "$RENYI" ask -q -m sharded a.ppm what
one_line "should be in 'model-00002-of-00003.safetensors', but is not"
head -c 500 sharded/model-00003-of-00003.safetensors >sharded/model-00002-of-00003.safetensors
run 1 "$RENYI" ask -q -m sharded a.ppm what
one_line "the file is cut short"
python3 "$RENYI_SRC/tests/fixtures/make_llava.py" mute tokenizer=0
run 1 "$RENYI" ask -q -m mute a.ppm what
one_line "give --tokenizer PATH"
run 0 "$RENYI" ask -m mute -t 1 --max-new-tokens 3 a.ppm --prompt-ids '1 310 5'
[ "$(wc -w <out)" -eq 3 ] || fail "without a tokenizer the ids are printed"
run 0 "$RENYI" ask -q -m mute --tokenizer llava/pieces.json --max-new-tokens 3 a.ppm what
python3 -c 'import json
json.dump([{"piece": f"p{i}", "score": 0.0} for i in range(999)], open("other.json", "w"))'
run 1 "$RENYI" ask -q -m llava --tokenizer other.json a.ppm what
one_line "other.json"
run 1 "$RENYI" ask -q -m llava --tokenizer bad.ppm a.ppm what
one_line "bad.ppm"
run 1 "$RENYI" ask -q -m llava --tokenizer nowhere a.ppm what
one_line "nowhere: No such file"
python3 -c 'import json
pieces = json.load(open("llava/pieces.json"))
extra = [{"piece": f"zz{i}", "score": -1e3} for i in range(99)]
json.dump(pieces + extra, open("large.json", "w"))'
run 1 "$RENYI" ask -q -m llava --tokenizer large.json a.ppm what
one_line "does it belong to another model?"
echo '{' >mute/tokenizer.json
run 1 "$RENYI" ask -q -m mute a.ppm what
one_line "tokenizer.json"

# --- visual tokens for other engines ---
encode() { "$RENYI" encode-image -m llava -t 1 "$@"; }
run 3 encode a.ppm bad.ppm b.ppm --prune 'naive p=4 layers=0' -o tokens.safetensors --json
json 'd["dim"] == 16 and [i["file"] for i in d["images"]] == ["a.ppm", "b.ppm"] and d["failed"][0]["file"] == "bad.ppm"'
json 'all(i["visual_tokens"] == 12 and len(i["kept"]) == 12 for i in d["images"])'
python3 - <<'P' || fail "tokens.safetensors"
import json, struct
b = open("tokens.safetensors", "rb").read()
n = struct.unpack("<Q", b[:8])[0]
h = json.loads(b[8:8 + n])
meta = h.pop("__metadata__")
assert sorted(h) == ["positions.0", "positions.1", "tokens.0", "tokens.1"]
assert h["tokens.1"]["shape"] == [12, 16] and h["tokens.1"]["dtype"] == "F32" and h["positions.0"]["shape"] == [12]
assert json.loads(meta["files"]) == ["a.ppm", "b.ppm"] and meta["model"] == "llava" and meta["policy"].startswith("naive p=4")
kept = json.load(open("out"))["images"][0]["kept"]
begin, end = h["positions.0"]["data_offsets"]
assert list(struct.unpack("<12i", b[8 + n + begin:8 + n + end])) == kept
P
run 0 encode a.ppm -o one.safetensors
err_has "one.safetensors: 1 image, rows of 16 values"
usage "-o FILE.safetensors is missing" encode-image -m llava a.ppm
usage "must end in .safetensors" encode-image -m llava a.ppm -o tokens.npy
usage "no images" encode-image -m llava -o tokens.safetensors
run 1 encode -q bad.ppm -o none.safetensors
one_line "bad.ppm"
[ ! -e none.safetensors ] || fail "a file of nothing"
run 1 encode -q a.ppm -o /nowhere/tokens.safetensors
one_line "/nowhere/tokens.safetensors"
# --- another model with images is named ---
mkdir qwen && "$RENYI" init -q --arch vit_tiny_patch16_224 --dim 64 --heads 2 --blocks 1 qwen/model.safetensors
echo '{"model_type": "qwen2_vl"}' >qwen/config.json
run 1 "$RENYI" ask -q -m qwen a.ppm what
err_has "a Qwen-VL, which renyi does not run"
echo "ask: ok"
