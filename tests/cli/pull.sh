#!/usr/bin/env bash
# renyi pull against a local server: cache layout, resume, faults, the token.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: renyi pull: no python3 to run the server"; exit 77; }

make_toy model.safetensors
: >log
python3 "$RENYI_SRC/tests/fixtures/hub_server.py" model.safetensors log ports &
server=$!
trap 'kill $server 2>/dev/null; rm -rf "$WORK"' EXIT
for _ in $(seq 100); do [ -f ports ] && break; sleep 0.1; done
read -r hub_port _ <ports
export HF_ENDPOINT=http://127.0.0.1:$hub_port/ no_proxy='*'
commit=0123456789abcdef0123456789abcdef01234567
hub=$HOME/.cache/huggingface/hub
pull() { "$RENYI" pull "$@"; }
# Nothing of the repository may be visible: no snapshot, no ref, no finished weights.
nothing_visible() {
  local dir=$hub/models--test--$1
  [ ! -e "$dir/refs/main" ] || fail "$1: a ref was written"
  [ -z "$(find "$dir/snapshots" -mindepth 1 2>/dev/null)" ] || fail "$1: a snapshot is visible"
}
no_incomplete() { [ -z "$(find "$hub" -name '*.incomplete')" ] || fail "$1: an incomplete file was left"; }

# --- the layout of huggingface_hub ---
run 0 pull test/good
snapshot=$hub/models--test--good/snapshots/$commit
out_has "$snapshot"
[ "$(cat "$hub/models--test--good/refs/main")" = $commit ] || fail "refs/main"
sha=$(sha256sum model.safetensors | cut -d' ' -f1)
[ "$(readlink "$snapshot/model.safetensors")" = "../../blobs/$sha" ] || fail "link to the blob"
cmp model.safetensors "$snapshot/model.safetensors"
for file in config.json preprocessor_config.json; do [ -f "$snapshot/$file" ] || fail "$file"; done
no_incomplete good
run 0 "$RENYI" inspect test/good
run 0 "$RENYI" inspect "$snapshot"

# --- again: nothing is transferred; with --force it is ---
: >log
run 0 pull test/good
! grep -q 'GET' log || fail "downloaded again what was there"
run 0 pull --force test/good
grep -q '^store GET' log || fail "--force downloaded nothing"

# --- elsewhere, other revisions, another name ---
HF_HOME=$WORK/elsewhere run 0 pull -q test/good --revision refs/pr/1
[ -f "elsewhere/hub/models--test--good/refs/refs/pr/1" ] || fail "HF_HOME or revision"
HF_HUB_CACHE=$WORK/third run 0 pull test/good --revision $commit
[ -d third/models--test--good/snapshots/$commit ] && [ ! -d third/models--test--good/refs ] || fail "HF_HUB_CACHE"
run 0 pull test/renamed
run 0 pull test/sharded
[ -f "$hub/models--test--sharded/snapshots/$commit/model-00002-of-00002.safetensors" ] || fail "shards"
run 0 pull test/noconfig
err_has "no config.json"

# --- names that do not exist ---
run 1 pull test/nothing
err_has "no such repository"
err_has "HF_TOKEN"
err_lines 1
out_empty
run 1 pull test/good --revision v9
err_has "no revision 'v9'"
run 1 pull test/noweights
err_has "no model.safetensors"
nothing_visible noweights
run 2 pull ../../etc/passwd
run 2 pull

# --- a cut connection: kept, resumed, visible only when complete ---
run 1 pull --retries 0 test/cut
err_has "run the same command again to resume"
nothing_visible cut
[ -n "$(find "$hub/models--test--cut" -name '*.incomplete' -size +0)" ] || fail "nothing kept to resume"
: >log
run 0 pull --retries 0 test/cut
grep -q '^store GET .* range=bytes=' log || fail "did not resume"
cmp model.safetensors "$hub/models--test--cut/snapshots/$commit/model.safetensors"
no_incomplete cut
run 1 pull --retries 0 test/cutnorange
run 0 pull --retries 0 test/cutnorange
cmp model.safetensors "$hub/models--test--cutnorange/snapshots/$commit/model.safetensors"
HF_HOME=$WORK/retried run 0 pull test/cut # resumes by itself
run 1 pull --retries 0 --timeout 1 test/stall
err_has "resume"
rm -rf "$hub/models--test--stall"

# --- servers that send wrong data ---
for fault in wronghash:digest toolong:announced wrongconfig:digest; do
  run 1 pull "test/${fault%:*}"
  err_has "${fault#*:}"
  err_lines 1
  nothing_visible "${fault%:*}"
  no_incomplete "${fault%:*}"
done
run 1 pull --retries 1 test/tooshort
err_has "resume"
nothing_visible tooshort
rm -rf "$hub/models--test--tooshort"
run 1 pull test/evilindex
err_has "is not the name of a shard"
nothing_visible evilindex
[ -z "$(find "$WORK" -name 'evil.safetensors')" ] || fail "wrote outside the cache"
run 1 pull test/evilcommit
err_has "does not answer like a Hugging Face server"
run 1 pull test/evildowngrade
run 1 pull test/loop
err_has "redirects"
run 1 env HF_ENDPOINT=http://127.0.0.1:1 "$RENYI" pull --retries 0 test/good
err_has "cannot reach"
run 1 env HF_HUB_OFFLINE=1 "$RENYI" pull test/good
run 1 env HF_ENDPOINT=file:///etc "$RENYI" pull test/good

# --- a full disk ---
run 1 pull test/huge
err_has "renyi reads at most 68719476736"
nothing_visible huge
no_incomplete huge
# A file size limit acts like a disk that becomes full during the download.
limited() { (ulimit -f 100 && HF_HOME=$WORK/limited exec "$RENYI" pull test/good); }
run 1 limited
err_has "no space"
[ -z "$(find limited -name '*.incomplete')" ] && [ ! -e limited/hub/models--test--good/refs/main ] || fail "full disk"
if [ "$(id -u)" -eq 0 ] && mkdir small && mount -t tmpfs -o size=400k tmpfs small 2>/dev/null; then
  trap 'kill $server 2>/dev/null; umount "$WORK/small" 2>/dev/null; rm -rf "$WORK"' EXIT
  HF_HOME=$WORK/small run 1 pull test/good
  err_has "free"
  [ -z "$(find small -name '*.incomplete')" ] || fail "full tmpfs: incomplete file"
fi

# --- the token is sent to the hub, never to the store ---
run 1 pull test/private
: >log
HF_TOKEN=hf_test_secret run 0 pull test/private
grep -q '^hub .*auth=hf_test_secret' log || fail "token not sent"
! grep -q '^store .*auth=hf_test_secret' log || fail "token sent to another host"
! grep -q hf_test_secret out err || fail "token printed"
echo "pull: ok"
