#!/usr/bin/env bash
# renyi pull against a server that answers in every wrong way, and killed while it downloads.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: renyi pull: no python3 to run the server"; exit 77; }

server=$RENYI_SRC/tests/faults/hostile_server.py
mkdir right
can_mount=$([ "$(id -u)" -eq 0 ] && unshare -m mount -t tmpfs tmpfs /mnt 2>/dev/null && echo yes || true)
bundle=/etc/ssl/certs/ca-certificates.crt # libcurl of Debian reads no other
can_trust=$([ -n "$can_mount" ] && [ -f $bundle ] && openssl req -x509 -newkey rsa:2048 -nodes -days 2 \
  -keyout key.pem -out cert.pem -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 2>/dev/null && echo yes || true)
[ -z "$can_trust" ] || cat key.pem cert.pem >right/tls.pem
python3 "$server" serve right ports &
server_id=$!
trap 'kill $server_id 2>/dev/null; umount "$WORK/small" 2>/dev/null; rm -rf "$WORK"' EXIT
for _ in $(seq 100); do [ -f ports ] && break; sleep 0.1; done
read -r hub_port _ tls_port <ports
export HF_ENDPOINT=http://127.0.0.1:$hub_port no_proxy='*' HF_TOKEN=hf_secret HF_HUB_CACHE=$WORK/cache
repo() { echo "$HF_HUB_CACHE/models--test--$1"; }
snapshot=snapshots/0123456789abcdef0123456789abcdef01234567
# An answer must not take more memory than this, which the program itself almost needs.
is_sanitized || ulimit -v 1500000

# pull NAME OPTION...: exit code in $code. No case may take longer than 20 s.
pull() {
  code=0
  timeout -k 5 20 "$RENYI" pull -q "${@:2}" "test/$1" >out 2>err </dev/null || code=$?
}

# Control characters would change the terminal; the token belongs to the hub alone; nothing may be written
# outside the cache; a snapshot is visible exactly if it is complete.
is_calm() { ! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae' err && ! grep -q hf_secret out err; }
is_inside() { [ -z "$(find "$WORK" -name '*evil*' -o -path "$WORK/home/*")" ] && [ ! -e /tmp/evil.safetensors ]; }
is_whole() {
  local model
  model=$(find "$(repo "$1")/$snapshot/" -name 'model*.safetensors')
  cmp "$model" "right/${2:-$1}.model" && [ -z "$(find "$(repo "$1")" -name '*.incomplete')" ]
}
is_hidden() { [ ! -e "$(repo "$1")/snapshots" ] && [ ! -e "$(repo "$1")/refs" ]; }

# try_case NAME GROUP CODE TEXT OPTION...
try_case() {
  pull "$1" "${@:5}"
  if ! ends_well "$3"; then
    broke "pull: $2" "$1: exit code $code"
  elif ! is_calm || ! is_inside; then
    broke "pull: $2" "$1: control characters, the token, or files elsewhere"
  elif [ "$3" -eq 0 ]; then
    expect "pull: $2" "$1: not the right file" is_whole "$1"
  elif ! grep -qF -- "$4" err; then
    broke "pull: $2" "$1: no message '$4'"
  else
    expect "pull: $2" "$1: a snapshot is visible" is_hidden "$1"
  fi
  rm -rf "$HF_HUB_CACHE"
}

all_cases() {
  local name group want text options
  while IFS='|' read -r name group want text options; do
    # shellcheck disable=SC2086
    [[ $group = kills || $group = changed* ]] || try_case "$name" "$group" "$want" "$( [ "$want" -eq 0 ] || echo "$text")" $options
  done < <(python3 "$server" rows)
}
all_cases
expect "pull: the token" "sent to another host" grep -q '^hub .*auth=Bearer hf_secret' right/log
expect "pull: the token" "sent to another host" bash -c "! grep -q '^store .*hf_secret' right/log"
expect "pull: no usable digest" "downloaded before the option was given" bash -c "! grep -q '^store .*/etag-' right/log"
expect "pull: error pages" "much of an endless page was read" [ "$(cat right/page)" -lt 16000000 ]

# --- 200,000 names are counted, not compared with each other (45 s) ---
SECONDS_BEFORE=$SECONDS
pull names-200000
expect "pull: numbers of shards" "200,000 names took $((SECONDS - SECONDS_BEFORE)) s" [ $((SECONDS - SECONDS_BEFORE)) -lt 8 ]
rm -rf "$HF_HUB_CACHE"

# --- an endless answer of unknown size stops before the disk is full ---
if [ -n "$can_mount" ] && mkdir small && mount -t tmpfs -o size=4m tmpfs small; then
  HF_HUB_CACHE=$WORK/small pull size-0
  expect "pull: no usable size" "not stopped by the free space" grep -q "the free space allows; nothing was kept" err
  expect "pull: no usable size" "an incomplete file was left" bash -c '[ -z "$(find small -type f -name "*.incomplete")" ]'
  rm -rf small/*
  HF_HUB_CACHE=$WORK/small pull slow # 8 MB
  expect "pull: a full disk" "not noticed before the download" grep -q "but only .* MB are free" err
else
  echo "SKIP: not root, or no tmpfs here; a full disk is not tried"
fi

# --- another file under the same name: never a mixture of both ---
pull changed --retries 0
expect "pull: changed files" "the first attempt was not cut" [ "$code" -eq 1 ]
pull changed --retries 0
expect "pull: changed files" "not the new file" cmp "$(repo changed)/$snapshot/model.safetensors" right/changed.model
rm -rf "$HF_HUB_CACHE"

# --- https is not redirected to http ---
if [ -n "$can_trust" ]; then
  : >right/log
  code=0
  HF_ENDPOINT=https://127.0.0.1:$tls_port unshare -m bash -c \
    'mount --bind cert.pem "$0" && exec "$1" pull -q test/plain' "$bundle" "$RENYI" >out 2>err </dev/null || code=$?
  expect "pull: https to http" "not refused" grep -q "model.safetensors: redirected to an address that is not accepted" err
  expect "pull: https to http" "the other server was asked" bash -c "! grep -q ^store right/log"
  rm -rf "$HF_HUB_CACHE"
else
  echo "SKIP: not root, no openssl, or certificates elsewhere; https to http is not tried"
fi

# --- killed and resumed 30 times, the file is right ---
kill_and_resume() {
  local kills=0 before=0 after least=40
  : >right/log
  while [ "$kills" -lt 30 ]; do
    pick KILL KILL TERM HUP # bash ignores INT in what runs in the background
    local signal=$chosen
    below 160
    kill_after "$signal" $((least + chosen)) "$RENYI" pull -q test/slow
    [ "$code" -ne 0 ] || break # complete before the last kill: the machine was slow at killing
    kills=$((kills + 1))
    after=$(find "$(repo slow)" -name '*.incomplete' -size +100k -printf '%s' 2>/dev/null || true)
    if [ "${after:-0}" -lt "$before" ]; then broke "pull: killed" "what had arrived was lost: $before, now $after bytes"; fi
    [ "${after:-0}" -gt "$before" ] || least=$((least + 50)) # a busy machine: nothing arrived yet
    before=${after:-0}
    if is_hidden slow; then held "pull: killed"; else broke "pull: killed" "a snapshot is visible"; fi
  done
  pull slow
  ends_well 0 || broke "pull: resumed after $kills kills" "exit code $code"
  expect "pull: resumed after the kills" "not the right file" is_whole slow
  expect "pull: resumed after the kills" "nothing was resumed" grep -qE '^store GET .*range=[1-9]' right/log
  rm -rf "$HF_HUB_CACHE"
}

# --- random changes of a good answer: the right file or a message ---
try_changed() {
  below 1000000000
  local seed=$chosen
  pull "fuzz-$seed" --retries 1 --timeout 2 --deadline 10
  if ! ends_well 0 1 || ! is_calm || ! is_inside; then
    broke "pull: random changes" "fuzz-$seed: exit code $code"
  elif [ "$code" -eq 0 ]; then
    expect "pull: random changes" "fuzz-$seed: not the right file" is_whole "fuzz-$seed" plain
  else
    expect "pull: random changes" "fuzz-$seed: a snapshot is visible" is_hidden "fuzz-$seed"
  fi
  rm -rf "$HF_HUB_CACHE"
}
while more_rounds; do
  kill_and_resume
  for _ in {1..20}; do try_changed; done
done
faults_end
