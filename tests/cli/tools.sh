#!/usr/bin/env bash
# tools/deps on several systems; tools/run-tests on passed, failed and skipped tests.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
tools=$RENYI_SRC/tools

# stub NAME LINES: a program of that name that replaces the real one.
mkdir bin
stub() { printf '#!/bin/sh\n%s\n' "$2" >"bin/$1" && chmod +x "bin/$1"; }
with_stubs() { PATH=$WORK/bin:$PATH "$@"; }

# --- deps: says what is missing and the line that installs it, and installs only when asked ---
stub pkg-config 'case $2 in jansson | libmicrohttpd | spng | libspng | libpng) exit 1 ;; esac'
stub apt-get 'echo "$@" >>apt.log'
stub sudo 'exit 1'
stub id 'echo 0'
on() { printf '%s\n' "$@" >os-release && export RENYI_OS_RELEASE=$WORK/os-release; }
on ID=debian 'VERSION_ID="12"'
run 1 with_stubs "$tools/deps"
err_has "missing: libjansson-dev libspng-dev"
err_has "without libmicrohttpd-dev: no renyi serve"
err_has "to install:  apt-get install --no-install-recommends libjansson-dev libspng-dev"
[ ! -e apt.log ] || fail "deps installed something unasked"
on ID=ubuntu ID_LIKE=debian 'VERSION_ID="22.04"' # has no libspng
run 1 with_stubs "$tools/deps"
err_has "apt-get install --no-install-recommends libjansson-dev libpng-dev"
on 'ID="fedora"'
run 1 with_stubs "$tools/deps" --install
err_has "dnf install jansson-devel libspng-devel"
on ID=alpine
run 1 with_stubs "$tools/deps"
err_has "apk add jansson-dev libspng-dev"
[ ! -e apt.log ] || fail "deps ran apt-get on another system"

on ID=debian
stub id 'echo 1000'
run 1 with_stubs "$tools/deps" --install
err_has "run:  sudo apt-get install --no-install-recommends libjansson-dev"
[ ! -e apt.log ] || fail "deps without rights"
stub id 'echo 0'
run 0 with_stubs "$tools/deps" --install
err_has "installing with apt-get: libjansson-dev libspng-dev"
grep -q '^install -y .* libjansson-dev libspng-dev$' apt.log || fail "deps as root installed nothing"
stub dpkg-query 'shift 3; for p; do echo "installed $p"; done'
stub pkg-config 'case $2 in spng | libspng) exit 1 ;; esac' # libpng does
for name in cmake ninja cc mpicc mpirun python3 find; do stub "$name" 'echo found'; done
rm -f apt.log
run 0 with_stubs "$tools/deps" --install fuzz
[ ! -e apt.log ] || fail "deps with everything there"
stub dpkg-query 'echo "installed clang"'
run 1 with_stubs "$tools/deps" fuzz
err_has "missing: libclang-rt-dev llvm libomp-dev"
run 2 "$tools/deps" nonsense
rm -r bin

# --- run-tests: counts and exit codes ---
mkdir project
cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.22)
project(fake NONE)
enable_testing()
add_test(NAME good COMMAND true)
add_test(NAME talks COMMAND sh -c "echo 'SKIP: a part of it'")
add_test(NAME left_out COMMAND sh -c "exit 77")
set_tests_properties(left_out PROPERTIES SKIP_RETURN_CODE 77)
if(FAULTS)
  add_test(NAME bad COMMAND false)
  add_test(NAME missing COMMAND /no/such/program)
endif()
END
last() { [ "$(tail -n 1 out)" = "$1" ] || fail "the last line is not: $1"; }
cmake -S project -B fake >/dev/null
run 0 "$tools/run-tests" fake
last "2 passed, 0 failed, 1 skipped"
out_has "SKIPPED left_out"
out_has "SKIP: a part of it"
cmake -S project -B fake -DFAULTS=ON >/dev/null
run 8 "$tools/run-tests" fake
last "2 passed, 2 failed, 1 skipped"
run 1 "$tools/run-tests" fake -R no_such_test
run 2 "$tools/run-tests" nowhere
echo "tools: ok"
