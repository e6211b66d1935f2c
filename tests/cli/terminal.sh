#!/usr/bin/env bash
# Text from files and models cannot change the terminal: file names, tensor names, metadata, labels,
# answers; as text, as JSON (exact) and as CSV (exact unless it is shown in a terminal).
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to make names and to read JSON"; exit 77; }
make_toy

cat >hostile.py <<'P'
"""One name per class of hidden characters, and the check of what was printed."""
import os, pty, sys, unicodedata

HIDDEN = ["\x1b[31m", "\x07", "\x7f", "\u0085", "\u009b31m", "\u00ad", "\u061c", "\u200b", "\u200f", "\u2028", "\u2029",
          "\u202e", "\u2060", "\u2066", "\u2069", "\ufeff", "\ufff9", "\ufdd0", "\ufffe", "\U000e0041", "\U000e0100"]
RAW = [b"\x9b31m", b"\x9d0;title\x9c", b"\xff", b"\xc2", b"\xed\xa0\x80"]
SHOWN = ["äöü", "αβ", "кот", "猫", "한글", "חתול", "نمی‌خواهم", "\U0001f469\u200d\U0001f52c", "\u2764\ufe0f"]


def names():
    return [f"a{h}b".encode() for h in HIDDEN] + [b"a" + r + b"b" for r in RAW] + [s.encode() for s in SHOWN]


def is_hidden(c):
    return (unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\u200c\u200d\n") or \
        c in "\ufdd0\ufffe\U000e0100"


def check(path, extra=""):
    text = open(path, "rb").read().decode()  # fails unless it is UTF-8
    bad = sorted({f"U+{ord(c):04X}" for c in text if is_hidden(c) and c not in extra})
    assert not bad, f"{path}: {bad}"
    return text


def show_in_terminal(argv, path):
    """Runs argv with a terminal as stdout."""
    with open(path, "wb") as f:
        def read(fd):
            data = os.read(fd, 65536)
            f.write(data)
            return data
        silent = os.dup(1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = pty.spawn(argv, read)
        os.dup2(silent, 1)
    assert status == 0, status
P

# --- file names, of images that can and cannot be read ---
make_ppm red.ppm 200 30 40
python3 - <<'P'
import hostile, os, shutil
os.mkdir("photos")
for name in hostile.names():
    shutil.copy("red.ppm", b"photos/" + name + b".ppm")
    open(b"photos/cut" + name + b".ppm", "wb").write(b"P6\n")
P
run 3 "$RENYI" classify -m toy.safetensors photos
python3 - <<'P' || fail "classify shows a hidden character"
import hostile
out, err = hostile.check("out"), hostile.check("err")
for text in hostile.SHOWN:
    assert f"photos/{text}.ppm" in out and f"photos/cut{text}.ppm" in err, text
assert out.count("a\ufffd") == len(hostile.HIDDEN) + len(hostile.RAW), out.count("a\ufffd")
P
run 3 "$RENYI" classify --json -m toy.safetensors photos
python3 - <<'P' || fail "JSON of classify is not exact or hides characters"
import hostile, json
d = json.loads(hostile.check("out"))
files = {r["file"] for r in d["results"]}
assert files == {"photos/" + n.decode(errors="replace") + ".ppm" for n in hostile.names()}, files
P

# --- labels, tensor names, metadata ---
python3 - <<'P'
import hostile, json, struct
lines = [n for n in hostile.names() if b"\n" not in n and b"\r" not in n]
open("labels", "wb").write(b"\n".join((lines * 2)[:10]) + b"\n")
b = open("toy.safetensors", "rb").read()
start = 8 + struct.unpack("<Q", b[:8])[0]
header = json.loads(b[8:start])
def write(path, header):
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + b[start:])
for i, hidden in enumerate(hostile.HIDDEN):
    if hidden in ("\ufdd0", "\ufffe"):
        continue
    renamed = {f"x{hidden}{k}" if k.startswith("head") else k: v for k, v in header.items()}
    write(f"names{i}.safetensors", renamed)
meta = dict(header.get("__metadata__", {}))
config = json.loads(meta.get("config.json", "{}"))
config["architecture"] = "vit\x1b[31m\u009b31m\u202e\u2066"
write("meta.safetensors", dict(header, __metadata__=dict(meta, **{"config.json": json.dumps(config)})))
P
run 0 "$RENYI" classify -m toy.safetensors -k 10 --labels labels red.ppm
python3 -c 'import hostile; hostile.check("out")' || fail "labels"
for file in names*.safetensors; do
  got=0
  "$RENYI" inspect "$file" --tensors >out 2>err </dev/null || got=$?
  [ "$got" -le 1 ] && python3 -c 'import hostile; t = hostile.check("out") + hostile.check("err"); assert "\ufffd" in t, t' ||
    fail "tensor names: $file"
done
"$RENYI" inspect meta.safetensors >out 2>err </dev/null || true
python3 -c 'import hostile; hostile.check("out"); hostile.check("err")' || fail "metadata"

# --- CSV and paths: exact in a pipe, clean in a terminal ---
python3 - "$RENYI" <<'P' || fail "CSV"
import hostile, shutil, subprocess, sys
name = b"m\x1b[31m\xc2\x9b\xe2\x80\xae.safetensors"
shutil.copy("toy.safetensors", name)
argv = [sys.argv[1], "bench", "-q", "-m", name, "-b", "1", "-t", "1", "--repetitions", "1", "--no-peak", "--format", "csv"]
assert name in subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout
hostile.show_in_terminal([sys.argv[1]] + argv[1:], "out")
text = hostile.check("out", "\r")
assert "m\ufffd[31m\ufffd\ufffd.safetensors" in text, text
P

# --- what a model answers ---
python3 "$RENYI_SRC/tests/fixtures/make_llava.py" llava
python3 - <<'P'
import hostile, json
pieces = json.load(open("llava/pieces.json"))
del pieces[3 + 256:]
pieces += [{"piece": h, "score": 0.0} for h in hostile.HIDDEN if h not in ("\ufdd0", "\ufffe")]
pieces += [{"piece": f"{h}{i}", "score": 0.0} for i in range(9) for h in ("\x1b[", "\u009b", "\u202e")]
json.dump(pieces, open("llava/pieces.json", "w"))
P
for seed in 1 2 3 4; do
  ask=("$RENYI" ask -q -m llava -t 1 --max-new-tokens 60 --temperature 1 --seed "$seed" --ignore-eos red.ppm hi)
  run 0 "${ask[@]}" --json
  python3 - <<'P' || fail "JSON of ask"
import hostile, json
text = json.loads(hostile.check("out"))["text"]
assert any(hostile.is_hidden(c) for c in text), "no hidden character was answered: this proves nothing"
P
  run 0 "${ask[@]}"
  python3 -c 'import hostile; hostile.check("out", "\t")' || fail "ask shows a hidden character (seed $seed)"
done
