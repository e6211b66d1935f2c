# venv.sh - part of run and run-lvlm: a virtual environment with the peers.
# SPDX-License-Identifier: Apache-2.0
#
# Wants $venv, $requirements, $room (what it takes, in words) and say.

# A python that can make virtual environments; the system's own first.
find_python() {
  local p
  for p in /usr/bin/python3 python3; do
    if "$p" -c 'import ensurepip, venv' 2>/dev/null; then echo "$p"; return; fi
  done
  return 1
}

# Everything in one go; if that fails, one by one, so that one missing wheel costs one peer.
install_peers() {
  local pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check) name missing=()
  "${pip[@]}" numpy 2>"$venv/pip.log" || return 1
  say "installing the peers into $venv ($room, once)"
  "${pip[@]}" -r "$requirements" 2>>"$venv/pip.log" && return
  for name in $(grep -v '^#' "$requirements"); do
    "${pip[@]}" "$name" 2>>"$venv/pip.log" || missing+=("$name")
  done
  [[ ${#missing[@]} -eq 0 ]] || say "not installed: ${missing[*]} ($venv/pip.log)"
}

# Leaves a whole environment or none, and the reason in $why.
make_venv() {
  local python
  if ! python=$(find_python); then
    tools/deps bench && python=$(find_python) || { why="no python3 with venv" && return 1; }
  fi
  "$python" -m venv "$venv" || { why="python3 -m venv failed" && return 1; }
  install_peers || { why="PyPI cannot be reached" && rm -rf "$venv" && return 1; }
  touch "$venv/.complete"
}
