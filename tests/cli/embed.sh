#!/usr/bin/env bash
# renyi embed and search: rows in files, and an index that is kept up to date.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to read JSON"; exit 77; }

make_clip
make_toy vit.safetensors
mkdir -p photos/sub
for i in 0 1 2 3; do make_ppm "photos/$i.ppm" $((i * 60)) $((250 - i * 60)) 90; done
make_ppm photos/sub/4.ppm 10 200 250
echo "no image" >photos/bad.ppm
clip=(-m clip.safetensors -t 1)

# rows FILE: prints the safetensors file as JSON: {"image": [[...]], "text": ..., "meta": {...}}
cat >rows.py <<'P'
import array, json, struct, sys
b = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", b[:8])[0]
h = json.loads(b[8:8 + n])
out = {"meta": h.pop("__metadata__")}
for name, t in h.items():
    begin, end = t["data_offsets"]
    if t["dtype"] == "F32":
        v = array.array("f", b[8 + n + begin:8 + n + end]).tolist()
        out[name] = [v[i * t["shape"][1]:(i + 1) * t["shape"][1]] for i in range(t["shape"][0])]
json.dump(out, sys.stdout)
P

# --- the three files and stdout have the same rows ---
words=(--text 'a photo of a cat' --text 'Größe' photos/0.ppm photos/1.ppm)
run 0 "$RENYI" embed "${clip[@]}" "${words[@]}" -o rows.safetensors
out_empty
run 0 python3 rows.py rows.safetensors
json 'len(d["image"]) == 2 and len(d["text"]) == 2 and len(d["image"][0]) == len(d["text"][0]) == 64'
json 'all(abs(sum(x * x for x in r) - 1) < 1e-5 for r in d["image"] + d["text"])'
json 'json.loads(d["meta"]["files"]) == ["photos/0.ppm", "photos/1.ppm"] and json.loads(d["meta"]["texts"]) == ["a photo of a cat", "Größe"]'
json 'd["meta"]["model"] == "clip.safetensors" and d["meta"]["policy"] == "none"'
cp out want
run 0 "$RENYI" embed "${clip[@]}" "${words[@]}" -o rows.jsonl
run 0 "$RENYI" embed "${clip[@]}" "${words[@]}"
python3 - <<'P' || fail "the formats differ"
import array, json
want = json.load(open("want"))
rows = want["image"] + want["text"]
names = [("file", "photos/0.ppm"), ("file", "photos/1.ppm"), ("text", "a photo of a cat"), ("text", "Größe")]
near = lambda a, b: all(abs(x - y) < 1e-8 for x, y in zip(a, b))
for path in ("rows.jsonl", "out"):
    lines = [json.loads(l) for l in open(path)]
    assert len(lines) == 4
    for line, row, (key, name) in zip(lines, rows, names):
        assert line[key] == name and near(line["embedding"], row)
P
run 0 "$RENYI" embed "${clip[@]}" "${words[@]}" -o rows.npy --json
json 'd["dim"] == 64 and [i["file"] for i in d["images"]] == ["photos/0.ppm", "photos/1.ppm"] and len(d["texts"]) == 2 and d["output"] == "rows.npy"'
python3 - <<'P' || fail "rows.npy"
import array, json
b = open("rows.npy", "rb").read()
want = json.load(open("want"))
assert b[:8] == b"\x93NUMPY\x01\x00" and eval(b[10:128])["shape"] == (4, 64)
assert array.array("f", b[128:]).tolist() == sum(want["image"] + want["text"], [])
P

# --- stdin, folders, lists, bad images; plain ViTs; pruning ---
run 0 sh -c '"$0" embed -m clip.safetensors -t 1 --json - photos/1.ppm <photos/0.ppm' "$RENYI"
json 'd["images"][0]["file"] == "-" and len(d["images"]) == 2'
python3 - <<'P' || fail "stdin is another row"
import json
got, want = json.load(open("out")), json.load(open("want"))
assert all(abs(a - b) < 1e-7 for i in (0, 1) for a, b in zip(got["images"][i]["embedding"], want["image"][i]))
P
run 3 "$RENYI" embed "${clip[@]}" -r photos -o all.safetensors --json
json '[i["file"] for i in d["images"]] == ["photos/0.ppm", "photos/1.ppm", "photos/2.ppm", "photos/3.ppm", "photos/sub/4.ppm"]'
json 'd["failed"][0]["file"] == "photos/bad.ppm"'
run 1 "$RENYI" embed "${clip[@]}" photos/bad.ppm -o no.safetensors
[ ! -e no.safetensors ] || fail "an empty file was written"
run 0 "$RENYI" embed -m vit.safetensors -t 1 --prune 'evit keep=0.5 layers=0' photos/0.ppm --json
json 'd["dim"] == 64 and d["policy"].startswith("evit keep=0.5")'
printf 'one\r\n\ntwo\n' >texts.txt
run 0 "$RENYI" embed "${clip[@]}" --text-file texts.txt --json
json '[t["text"] for t in d["texts"]] == ["one", "two"] and d["images"] == [] and d["dim"] == 64'
mkdir words && cp bpe_simple_vocab_16e6.txt words
without_tensors clip.safetensors words/clip.safetensors visi # texts alone do not ask for an image tower
run 0 "$RENYI" embed -m words/clip.safetensors -t 1 --text-file texts.txt --json
json 'len(d["texts"]) == 2 and d["architecture"] is None and d["policy"] == "none"'
run 1 "$RENYI" embed -q -m words/clip.safetensors --text one photos/0.ppm

# --- --decode: small images and other formats are exact; a JPEG far above the input size is scaled ---
# 96 x 72 pixels; the model of 16 pixels resizes to 17, so it is decoded at 1/2
base64 -d >waves.jpg <<'B'
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDACgcHiMeGSgjISMtKygwPGRBPDc3PHtYXUlkkYCZlo+AjIqgtObDoKrarYqMyP/L2u71////m8H///
/6/+b9//j/2wBDASstLTw1PHZBQXb4pYyl+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj/wAARCABI
AGADASIAAhEBAxEB/8QAGQABAAMBAQAAAAAAAAAAAAAAAwACBAUB/8QAIBAAAwACAwADAQEAAAAAAAAAAAECAyEEERITQVEjM//EABcBAQEBAQ
AAAAAAAAAAAAAAAAIBAwD/xAAbEQADAQEBAQEAAAAAAAAAAAAAAQIRIRJBA//aAAwDAQACEQMRAD8A1PqZMHIp96FvN9BqPbD2GdFfGVwS29nQ
lJSBOPwit5utDpelqJS8vUU5Fb0DiTdCdfIxoxedkivjHy0PjlKTPya/D283ldAv+jJS8vUCK8vGFHdUdDDKUgxh62WrL4XQ3lotznUTkV0tGJ
d1Q9V8jLxh+wRWPGJNWsMq7qjfglJbCjD9l6vwh8tBufqL56SWjn026HrJ7ZaMPewS/Lxll+ljL8edbGytKQ3XxoG8vp9FufqB2GBkbdGjjT+n
kYfWxv8ANFl+ljHU+lqFtpSc/NTdDXm70VnF7fYOwyRW8ZOPPb2bX1MgKfjRS830Op9LUFpw9RqfSkwZ6behLzfRWY9sD2GKK+Mpglt7OgulIE
x4RS83Wh0lS1EqfL1FORW9BYZboRT8jHnF5XZIr4x8tDY0lJm5Nfh7ebzoL/RkpeXqBNeXjChN0dDDKUhRh87JeXwuh8tFufqPeRWtGJduhnXy
MWMPWwTXl4xS1SxmRJujfglJbDjD1stV+ENNWg3O9RbPSS0YH26Gd+2JGHvZnLcvGWa9LGX489LYmakpDqvjQNZfb6Fc/UDsMHI26NPGn9PIw+
tiv+aLL9LGOl6WoXI0pOdmbdDXm9PokYvewdhkivjPOPO9m1tKQfPxoG83eh1Ppag0nL1GxtKTn56beiEM1yuD/N7w9wS+9m9dTJCGn6Lmgrlc
MXIrt6Dwy3RCHfm9WGtLZ6dCOpkzcmvwhAVyuGf5vuGbHLdHQxJKSENKWz079Fj4FyL1oxpN0QgPzfw0XZ6f/9k=
B
vit=("$RENYI" embed -m vit.safetensors -t 1 --json)
row() { python3 -c 'import json; print(json.load(open("out"))["images"][0]["embedding"])' >"$1"; }
run 0 "${vit[@]}" --image-size 16 waves.jpg && row exact
run 0 "${vit[@]}" --image-size 16 --decode exact waves.jpg && row named
cmp -s exact named || fail "--decode exact is not the default"
run 0 "${vit[@]}" --image-size 16 --decode scaled waves.jpg && row scaled
err_has "decoded scaled"
cmp -s exact scaled && fail "--decode scaled did not scale"
python3 - <<'P' || fail "the scaled image is another one"
import json
a, b = json.load(open("exact")), json.load(open("scaled"))
assert sum(x * y for x, y in zip(a, b)) > 0.99
P
for flags in "-b 1 -t 2" "-b 3 -t 1" "-j 2" "-b 1 -t 2 --streams 2"; do
  run 0 "${vit[@]}" --image-size 16 --decode scaled $flags waves.jpg photos/0.ppm waves.jpg && row other
  cmp -s scaled other || fail "another row with $flags"
done
run 0 sh -c '"$0" embed -m vit.safetensors -t 1 --json --image-size 16 --decode scaled - <waves.jpg' "$RENYI"
row other
cmp -s scaled other || fail "stdin is another row"
run 0 "${vit[@]}" waves.jpg && row exact
run 0 "${vit[@]}" --decode scaled waves.jpg && row other # of 224 pixels: too small to be scaled
cmp -s exact other || fail "a small image was scaled"
run 2 "${vit[@]}" --decode fast waves.jpg
err_has "exact"
run 0 "$RENYI" classify -m vit.safetensors --decode scaled --json waves.jpg
json 'd["preprocessing"]["decode"] == "scaled"'

one_line() {
  err_lines 1
  err_has "$1"
  out_empty
}
run 1 "$RENYI" embed -q -m vit.safetensors --text 'a cat'
one_line "text tower"
mkdir eyes && cp bpe_simple_vocab_16e6.txt eyes
without_tensors clip.safetensors eyes/clip.safetensors text_
run 0 "$RENYI" embed -q -m eyes/clip.safetensors -t 1 photos/0.ppm --json
run 1 "$RENYI" embed -q -m eyes/clip.safetensors --text 'a cat'
one_line "no text tower"
run 1 "$RENYI" search -q -m eyes/clip.safetensors photos 'a cat'
one_line "no text tower"
run 1 "$RENYI" embed -q "${clip[@]}" --text "$(printf 'very %.0s' {1..90})"
one_line "--truncate"
run 0 "$RENYI" embed -q "${clip[@]}" --truncate --text "$(printf 'very %.0s' {1..90})"
run 1 "$RENYI" embed -q "${clip[@]}" --text $'\xff'
one_line "text 1"
run 2 "$RENYI" embed -q "${clip[@]}" photos/0.ppm -o rows.txt
one_line ".safetensors, .npy or .jsonl"
run 2 "$RENYI" embed -q "${clip[@]}"
one_line "no images"
run 1 "$RENYI" embed -q "${clip[@]}" photos/0.ppm -o /nowhere/rows.npy
one_line "/nowhere/rows.npy"

# --- search: the index is built, saved and updated ---
search() { "$RENYI" search "${clip[@]}" photos "$@"; }
run 3 search --image photos/2.ppm 'a cat' -k 3 --json
json 'd["photos"] == 5 and d["added"] == 5 and d["kept"] == 0 and d["failed"][0]["file"].endswith("/photos/bad.ppm")'
json '[q["text"] for q in d["queries"]] == ["a cat", None] and all(len(q["hits"]) == 3 for q in d["queries"])'
json 'd["queries"][1]["hits"][0]["file"] == "2.ppm" and d["queries"][1]["hits"][0]["path"] == "photos/2.ppm" and d["queries"][1]["hits"][0]["score"] > 0.9999'
json 'd["index"].startswith("'"$HOME"'/.cache/renyi/galleries/")'
rm photos/bad.ppm photos/3.ppm
make_ppm photos/1.ppm 1 2 3
touch -d @1000000000 photos/1.ppm
cp photos/2.ppm photos/sub/copy.ppm
run 0 search --json
json '(d["kept"], d["added"], d["changed"], d["removed"], d["queries"]) == (3, 1, 1, 1, [])'
run 0 search --image photos/2.ppm --paths -k 2
[ "$(cat out)" = $'photos/2.ppm\nphotos/sub/copy.ppm' ] || fail "equal images come first, by name"
run 0 search 'a cat' 'a dog'
[ "$(grep -c '^  ' out)" -eq 10 ] || fail "five images for each"
run 0 search --no-update 'a cat' -k 1
run 0 search --prune 'evit keep=0.5 layers=0' --json
json 'd["anew"] and d["kept"] == 0'
run 1 search -q --no-update 'a cat'
one_line "without --no-update"
run 0 "$RENYI" search -m vit.safetensors -t 1 photos --image photos/0.ppm --index own.safetensors -k 1 --paths
[ "$(cat out)" = photos/0.ppm ] || fail "a plain ViT finds images"
run 0 "$RENYI" search -m vit.safetensors -t 1 photos --image photos/0.ppm --index none -k 1 --json
json 'd["index"] is None and d["added"] == 5'
run 1 "$RENYI" search -q -m vit.safetensors photos 'a cat'
one_line "text tower"
run 1 search -q 'a cat' --index vit.safetensors # a model file is not overwritten
one_line "not an index of images"
head -c 500 own.safetensors >torn.safetensors
run 1 search -q 'a cat' --index torn.safetensors
one_line "--index"
run 1 search -q --image nowhere.ppm
one_line "nowhere.ppm"
run 1 "$RENYI" search -q "${clip[@]}" nowhere 'a cat'
one_line "nowhere"

# --- renyi tokenize: CLIP's ids and pieces; texts from arguments, a file and stdin ---
tokenize() { "$RENYI" tokenize "$@"; }
run 0 tokenize -m clip.safetensors 'Cat of' 'ph'
[ "$(sed -n 2p out)" = '<|startoftext|> cat</w> of</w> <|endoftext|>' ] || fail "pieces: $(cat out)"
[ "$(sed -n 4p out)" = '<|startoftext|> p h</w> <|endoftext|>' ] || fail "pieces of the second text: $(cat out)"
run 0 tokenize --tokenizer bpe_simple_vocab_16e6.txt 'Cat of' --json
json 'd["kind"] == "clip" and d["texts"][0]["pieces"] == ["<|startoftext|>", "cat</w>", "of</w>", "<|endoftext|>"] and len(d["texts"][0]["ids"]) == 4'
cp out whole.json
run 0 tokenize -m clip.safetensors 'Cat of' --json --no-special
json 'd["texts"][0]["ids"] == json.load(open("whole.json"))["texts"][0]["ids"][1:-1] and d["texts"][0]["pieces"] == ["cat</w>", "of</w>"]'
printf 'Cat of\nof\n' >lines.txt
run 0 tokenize -m clip.safetensors --text-file lines.txt --json
json '[t["text"] for t in d["texts"]] == ["Cat of", "of"] and d["texts"][0] == json.load(open("whole.json"))["texts"][0]'
cp out file.json
tokenize -m clip.safetensors --json <lines.txt >out || fail "texts from stdin"
cmp -s out file.json || fail "stdin differs from a file"
long=$(printf 'cat %.0s' {1..100})
run 0 tokenize -m clip.safetensors "$long" --json
json 'len(d["texts"][0]["ids"]) == 102'
run 0 tokenize -m clip.safetensors "$long" --json --truncate
json 'len(d["texts"][0]["ids"]) == 77 and d["texts"][0]["pieces"][-1] == "<|endoftext|>"'
run 3 tokenize -m clip.safetensors cat $'\xff'
err_has "text 2: "
run 1 tokenize -m clip.safetensors $'\xff'
run 2 tokenize cat
err_has "-m MODEL or --tokenizer PATH is missing"
mkdir -p without
run 1 tokenize -m without cat
err_has "without: no tokenizer here"
err_has "give --tokenizer PATH"
run 1 tokenize --tokenizer nowhere cat
[ "$(grep -c . err)" -eq 1 ] || fail "one line for a missing tokenizer"
run 1 tokenize -m clip.safetensors --text-file nowhere.txt
err_has "nowhere.txt: No such file"

# --- folders: a pipe, a circle of links, a folder that cannot be read ---
make_walk
touch walk/x.bmp
run 3 timeout 60 "$RENYI" embed -m vit.safetensors -r walk --json
json '[i["file"] for i in d["images"]] == ["walk/a.ppm", "walk/closed/c.ppm", "walk/sub/b.ppm"] and len(d["failed"]) == 1'
run 3 timeout 60 "$RENYI" search -m vit.safetensors walk --image walk/a.ppm --index none --json
json 'd["queries"][0]["hits"][0]["file"] == "a.ppm" and len(d["queries"][0]["hits"]) == 3'
err_has "1 BMP left out"
if can_close_folders; then
  chmod 0 walk/closed
  run 3 timeout 60 "${as_user[@]}" "$RENYI" search -m vit.safetensors walk --image walk/a.ppm --index none --json
  json 'len(d["queries"][0]["hits"]) == 2 and len(d["failed"]) == 2'
  err_has "walk/closed: Permission denied"
  chmod 755 walk/closed
fi
