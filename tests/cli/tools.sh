#!/usr/bin/env bash
# tools/deps without the right to install; tools/run-tests on passed, failed and skipped tests.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
tools=$RENYI_SRC/tools

# stub NAME LINES: a program of that name that replaces the real one.
mkdir bin
stub() { printf '#!/bin/sh\n%s\n' "$2" >"bin/$1" && chmod +x "bin/$1"; }
with_stubs() { PATH=$WORK/bin:$PATH "$@"; }

# --- deps: one line to run, no attempt to install ---
stub dpkg-query 'echo "installed gcc"'
stub id 'echo 1000'
stub sudo 'exit 1'
stub apt-get 'echo touched >>apt.log'
run 1 with_stubs "$tools/deps"
err_has "sudo apt-get install cmake ninja-build libc6-dev"
[ "$(wc -l <err)" -eq 1 ] && [ ! -e apt.log ] || fail "deps without rights"
stub id 'echo 0'
run 0 with_stubs "$tools/deps" bench
[ -s apt.log ] || fail "deps as root installed nothing"
stub dpkg-query 'shift 3; for p; do echo "installed $p"; done'
rm -f apt.log
run 0 with_stubs "$tools/deps" fuzz
[ ! -e apt.log ] && [ ! -s err ] || fail "deps with everything there"
run 2 "$tools/deps" nonsense

# --- run-tests: counts and exit codes ---
mkdir project
cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
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
