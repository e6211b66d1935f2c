# venv.sh - makes a virtual environment with the peers, and the Python package; sourced by the run scripts.
# SPDX-License-Identifier: Apache-2.0
#
# Uses $build, $venv, $requirements, $cost (a text: what it takes), $here and the function say.

# Prints a Python that can make virtual environments, the system's own first.
find_python() {
  local p
  for p in /usr/bin/python3 python3; do
    if "$p" -c 'import ensurepip, venv' 2>/dev/null; then echo "$p"; return; fi
  done
  return 1
}

# Installs all peers at once; if that fails, one by one, so that a missing wheel costs one peer.
install_peers() {
  local pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check) name missing=()
  "${pip[@]}" numpy 2>"$venv/pip.log" || return 1
  say "installing the peers into $venv ($cost, once)"
  "${pip[@]}" -r "$requirements" 2>>"$venv/pip.log" && return
  for name in $(grep -v '^#' "$requirements"); do
    "${pip[@]}" "$name" 2>>"$venv/pip.log" || missing+=("$name")
  done
  [[ ${#missing[@]} -eq 0 ]] || say "not installed: ${missing[*]} ($venv/pip.log)"
}

# Makes a complete environment, or none and the reason in $why.
make_venv() {
  local python
  python=$(find_python) || { tools/deps bench || true; why="no python3 with venv" && return 1; }
  "$python" -m venv "$venv" || { why="python3 -m venv failed" && return 1; }
  install_peers || { why="PyPI cannot be reached" && rm -rf "$venv" && return 1; }
  touch "$venv/.complete"
}

# Sets $python to one that has the peers, or the reason to $why.
find_peers() {
  python=${BENCH_PYTHON:-$venv/bin/python}
  [[ -n ${BENCH_PYTHON:-} || -e $venv/.complete ]] || make_venv
}

# Installs renyi's Python package with the libraries of $build beside the environment of $python, so
# that an environment of someone else (BENCH_PYTHON) stays as it is. cffi comes with it.
install_package() {
  local whole
  whole=$(realpath "$build")
  "$python" -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --upgrade --no-deps --target "$whole/bench-package" \
    --config-settings cmake.define.RENYI_PREBUILT="$whole" --config-settings build-dir="$whole/bench-package-build" \
    . cffi pycparser >"$build/bench-package.log" 2>&1 ||
    { why="pip could not build the Python package ($build/bench-package.log)" && return 1; }
  export PYTHONPATH=$whole/bench-package${PYTHONPATH:+:$PYTHONPATH}
}
