# lib.sh - functions shared by the tests of the program; sourced, not run.
# SPDX-License-Identifier: Apache-2.0
#
# RENYI is the program under test. Every test works in its own empty directory, which is removed.
set -euo pipefail

: "${RENYI:?the program under test}"
RENYI=$(realpath "$RENYI")
RENYI_SRC=${RENYI_SRC:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cd "$WORK"
# Spinning threads make short runs slow when tests run in parallel.
export HOME=$WORK/home NO_COLOR=1 OMP_WAIT_POLICY=passive
unset HF_HOME HF_HUB_CACHE HF_ENDPOINT HF_TOKEN HF_HUB_OFFLINE XDG_CACHE_HOME
mkdir -p "$HOME"

fail() {
  echo "FAILED: $*" >&2
  [ -f out ] && sed 's/^/  stdout: /' out | head -20 >&2
  [ -f err ] && sed 's/^/  stderr: /' err | head -20 >&2
  exit 1
}

# run CODE COMMAND...: the command must end with that exit code; stdout in ./out, stderr in ./err.
run() {
  local want=$1 got=0
  shift
  "$@" >out 2>err </dev/null || got=$?
  [ "$got" -eq "$want" ] || fail "exit code $got, expected $want: $*"
}

out_has() { grep -qF -- "$1" out || fail "stdout lacks: $1"; }
err_has() { grep -qF -- "$1" err || fail "stderr lacks: $1"; }
out_empty() { [ ! -s out ] || fail "stdout should be empty"; }
err_lines() { [ "$(grep -c '^renyi: ' err)" -eq "$1" ] || fail "stderr should have $1 error line(s)"; }

# json EXPRESSION: a Python expression over `d`, the document in ./out, that must be true.
json() {
  command -v python3 >/dev/null || { echo "SKIP: no python3 to read JSON"; return 0; }
  python3 -c 'import json,sys
d = json.load(open("out"))
sys.exit(0 if eval(sys.argv[1]) else 1)' "$1" || fail "JSON: not true: $1"
}

# Can a folder be made unreadable for the program? For root no folder is; then $as_user runs it as another user.
as_user=()
can_close_folders() {
  [ "$(id -u)" -ne 0 ] && return
  chmod 755 "$WORK"
  as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$WORK/nobody")
  mkdir -p nobody && chmod 777 nobody
  "${as_user[@]}" "$RENYI" --version >/dev/null 2>&1 && return
  echo "SKIP: root reads every folder, and the program cannot be run as another user"
  return 1
}

# A small model: 224 pixels, 2 blocks, width 64.
make_toy() {
  "$RENYI" init -q --arch vit_tiny_patch16_224 --dim 64 --heads 2 --blocks 2 --classes "${2:-10}" \
    --seed 1 "${1:-toy.safetensors}"
}

# Is this the program under sanitizers, some ten times slower?
is_sanitized() { grep -q __asan_init "$RENYI"; }

# Does this build have the built-in model? Prints SKIP if not.
has_builtin() {
  "$RENYI" inspect -q builtin >/dev/null 2>&1 || { echo "SKIP: this build has no built-in model"; return 1; }
}

# A random CLIP with two blocks, and its tokenizer with a few merges.
make_clip() {
  "$RENYI" init -q --arch clip_vit_tiny_patch32_224 --dim 64 --heads 2 --blocks 2 --seed 1 clip.safetensors
  printf '#version: 0.2\nc a\nca t</w>\np h\no f</w>\n' >bpe_simple_vocab_16e6.txt
}

# without_tensors FROM TO PREFIX: the safetensors file without the tensors whose names begin with PREFIX.
without_tensors() {
  python3 - "$@" <<'P'
import json, struct, sys
source, target, prefix = sys.argv[1:]
b = open(source, "rb").read()
start = 8 + struct.unpack("<Q", b[:8])[0]
header, left, data = json.loads(b[8:start]), {}, b""
for name, t in header.items():
    if name == "__metadata__":
        left[name] = t
    elif not name.startswith(prefix):
        part = b[start + t["data_offsets"][0]:start + t["data_offsets"][1]]
        left[name] = dict(t, data_offsets=[len(data), len(data) + len(part)])
        data += part
text = json.dumps(left).encode()
open(target, "wb").write(struct.pack("<Q", len(text)) + text + data)
P
}

# make_ppm FILE RED GREEN BLUE: a 40 x 30 image of one color.
make_ppm() {
  local pixel
  printf -v pixel '\\x%02x\\x%02x\\x%02x' "$2" "$3" "$4"
  { printf 'P6\n40 30\n255\n' && printf "$pixel%.0s" {1..1200}; } >"$1"
}

# The folder walk: three images, a pipe with an image's name, and a link that closes a circle.
make_walk() {
  mkdir -p walk/sub walk/closed
  make_ppm walk/a.ppm 200 30 30
  make_ppm walk/sub/b.ppm 30 200 30
  make_ppm walk/closed/c.ppm 30 30 200
  mkfifo walk/pipe.png
  ln -s .. walk/sub/up
}

# Sets $browser, or skips the test.
need_browser() {
  browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
  [ -n "$browser" ] || { echo "SKIP: no chromium to open the page with"; exit 77; }
}

# browse ARGUMENTS...: one run of the browser, with $look; errors in its console fail.
look=()
browse() {
  timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$WORK/profile" \
    --enable-logging=stderr --virtual-time-budget=6000 ${look[@]+"${look[@]}"} "$@" 2>err || fail "the browser failed: $*"
  if grep -E 'CONSOLE.*(rror|efused|ncaught)' err >&2; then fail "errors in the console: $*"; fi
}

# open_page FILE: the document after the scripts have run, in ./out.
open_page() {
  browse --dump-dom "file://$WORK/$1" >out
  [ -s out ] || fail "the browser shows nothing of $1"
}

# Skips the test if ranks cannot be started; sets the options that users, root, containers and two
# versions of Open MPI need.
need_mpi() {
  [ -f "$RENYI_BUILD/renyi-mpi.so" ] || { echo "SKIP: built without MPI; ranks not tested (1)"; exit 77; }
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_rmaps_base_oversubscribe=1
  command -v ssh >/dev/null || export OMPI_MCA_plm=isolated
  export ASAN_OPTIONS=detect_leaks=0 # MPI frees nothing before the end
  timeout 60 mpirun -n 2 --oversubscribe true >out 2>err </dev/null ||
    { cat err; echo "SKIP: mpirun cannot start anything here; ranks not tested (1)"; exit 77; }
}

# ranks N COMMAND...: runs it in N ranks.
ranks() { timeout 120 mpirun -n "$1" --oversubscribe "${@:2}"; }
