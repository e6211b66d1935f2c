#!/usr/bin/env bash
# The Python package: pip install with the libraries of this build, then pytest, doctests and mypy.
# The venv is made once per build folder. Needs Python with venv, and pip's index for the first run.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
skip() {
  echo "SKIP: Python package: $1"
  exit 77
}
home=$RENYI_BUILD/python venv=$RENYI_BUILD/python/venv
grep -q '^RENYI_SANITIZE:BOOL=ON' "$RENYI_BUILD/CMakeCache.txt" && skip "the plain build tests it, not the sanitizers"
mkdir -p "$home" || exit 1
packages="scikit-build-core cffi setuptools numpy pytest pillow pandas mypy"
if [ "$(cat "$venv/complete" 2>/dev/null)" != "$packages" ]; then
  rm -rf "$venv"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || skip "no python3 of 3.9 or later"
  python3 -c 'import sysconfig, os, sys; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
    skip "no Python.h (Debian: apt-get install python3-dev)"
  python3 -m venv "$venv" >"$home/venv.log" 2>&1 || skip "python3 -m venv does not work (Debian: apt-get install python3-venv)"
  timeout 300 "$venv/bin/pip" install -q --disable-pip-version-check $packages >"$home/pip.log" 2>&1 || skip "pip could not fetch numpy, cffi, pytest, ...: $(tail -n 1 "$home/pip.log")"
  echo "$packages" >"$venv/complete"
fi
cd "$RENYI_SRC" || exit 1
if ! "$venv/bin/pip" install -q --disable-pip-version-check --no-build-isolation --no-deps --no-index . \
  -Ccmake.define.RENYI_PREBUILT="$RENYI_BUILD" -Cbuild-dir="$home/cmake" >"$home/install.log" 2>&1; then
  cat "$home/install.log"
  exit 1
fi
export OMP_WAIT_POLICY=passive PYTHONDONTWRITEBYTECODE=1 RENYI_TEST_TMP=$home
code=0
"$venv/bin/python" -m mypy --config-file pyproject.toml --cache-dir "$home/mypy" bindings/python/renyi || code=1
"$venv/bin/python" -m pytest -q -rs -p no:cacheprovider ${RENYI_PYTHON:+-m "not reference"} tests/python || code=1
"$venv/bin/python" -m pytest -q -p no:cacheprovider --doctest-modules --pyargs renyi || code=1
# RENYI_PYTHON names a Python that has torch, timm, transformers or llama-cpp-python. The package and
# what it needs are put beside it, so that it stays as it is.
if [ -n "${RENYI_PYTHON:-}" ]; then
  beside=$home/beside
  rm -rf "$beside" && mkdir "$beside" && cp -r "$venv"/lib/python3*/site-packages/renyi "$beside" || exit 1
  if "$RENYI_PYTHON" -m pip install -q --disable-pip-version-check --target "$beside" cffi pytest >"$home/beside.log" 2>&1; then
    PYTHONPATH=$beside HF_HUB_OFFLINE=1 "$RENYI_PYTHON" -m pytest -q -rs -p no:cacheprovider -m reference tests/python || code=1
  else
    echo "SKIP: timm, transformers and llama.cpp with our choice: pip could not fetch cffi and pytest for $RENYI_PYTHON"
  fi
fi
exit $code
