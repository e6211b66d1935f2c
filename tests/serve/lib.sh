# lib.sh - starts and stops the server under test; sourced, not run.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
export PYTHONPATH=$RENYI_SRC/tests/serve PYTHONDONTWRITEBYTECODE=1

"$RENYI" serve --help >help.txt || fail "renyi serve --help"
if grep -q 'built without libmicrohttpd' help.txt; then
  echo "SKIP: built without libmicrohttpd; renyi serve not tested (1)"
  exit 77
fi
command -v python3 >/dev/null || { echo "SKIP: no python3 to talk to the server (1)"; exit 77; }

# Sets $python to one that has the openai package and schemathesis: RENYI_CLIENTS_PYTHON, or a venv that is
# made once per build folder (a sanitizer build below it uses the same). Without pip's index it is python3.
find_clients() {
  local home=$RENYI_BUILD/clients
  python=${RENYI_CLIENTS_PYTHON:-}
  [ -z "$python" ] || return 0
  [ ! -e "$RENYI_BUILD/../clients/complete" ] || home=$RENYI_BUILD/../clients
  mkdir -p "$home"
  exec 9>"$home/lock"
  flock 9
  if [ ! -e "$home/complete" ] && rm -rf "$home/venv" && python3 -m venv "$home/venv" >"$home/log" 2>&1 &&
    timeout 300 "$home/venv/bin/pip" install -q --disable-pip-version-check openai schemathesis >>"$home/log" 2>&1; then
    touch "$home/complete"
  fi
  exec 9>&-
  python=python3
  [ ! -e "$home/complete" ] || python=$home/venv/bin/python
}

# serve ARGUMENTS...: starts the server on a free port and waits for its models; sets $server (process) and $url.
serve() { start_server 's/^listening on //p' listening "$@"; }

# serve_loading ARGUMENTS...: the same without the wait for its models.
serve_loading() { start_server 's|.*loading; \(http.*\)/ready .*|\1|p' server.log "$@"; }

# start_server SED FILE ARGUMENTS...: SED finds the address in FILE (standard output or the log).
start_server() {
  local find=$1 file=$2
  shift 2
  rm -f listening server.log
  "$RENYI" serve --port 0 -t 1 --workers 2 "$@" >listening 2>server.log </dev/null &
  server=$!
  trap 'kill -9 $server 2>/dev/null || true; rm -rf "$WORK"' EXIT
  for _ in $(seq 600); do
    url=$(sed -n "$find" "$file" 2>/dev/null || true)
    export RENYI_URL=$url
    [ -z "$url" ] || return 0
    kill -0 $server 2>/dev/null || break
    sleep 0.1
  done
  cp server.log err
  fail "the server did not start: $*"
}

# stop_server [CODE]: SIGTERM; it must end with this exit code (0).
stop_server() {
  local code=0
  kill -TERM $server
  wait $server || code=$?
  cp server.log err
  [ "$code" -eq "${1:-0}" ] || fail "the server ended with $code, expected ${1:-0}"
}

# check NAME <<'PY': a Python script that must end with 0; it has everything of client.py.
check() {
  { echo "from client import *"; cat; } >"$1.py"
  python3 "$1.py" >out 2>&1 || { tail -5 server.log >err; fail "$1"; }
}
