# lib.sh - functions shared by the tests that disturb the program; sourced, not run.
# SPDX-License-Identifier: Apache-2.0
#
# A test tries faults until FAULT_SECONDS are over, but each kind at least once; counts what it tried
# and what held; and ends with `faults_end`. Its rows "what | tried | held" are added to the file
# FAULT_RESULTS. FAULT_SEED repeats the choices of a run.
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"

FAULT_SECONDS=${FAULT_SECONDS:-5}
FAULT_SEED=${FAULT_SEED:-$(date +%s%N | cut -c 5-13)}
FAULT_RESULTS=${FAULT_RESULTS:-/dev/null}
RANDOM=$((10#$FAULT_SEED % 2147483647))
echo "seed: FAULT_SEED=$FAULT_SEED"

declare -A tried=() held=()
faults=() # the kinds, in the order of their first try

# held WHAT: one more try that held. broke WHAT WHY: one that did not; shows how it looked.
count() {
  [ -n "${tried[$1]:-}" ] || faults+=("$1")
  tried[$1]=$((${tried[$1]:-0} + 1))
  held[$1]=$((${held[$1]:-0} + $2))
}
held() { count "$1" 1; }
broke() {
  count "$1" 0
  echo "DID NOT HOLD: $1: $2 (FAULT_SEED=$FAULT_SEED)" >&2
  [ ! -f out ] || head -c 2000 out | head -5 | sed 's/^/  stdout: /' >&2
  [ ! -f err ] || head -c 4000 err | head -10 | sed 's/^/  stderr: /' >&2
}

# expect WHAT WHY COMMAND...: one try; it held if the command succeeds.
expect() {
  if "${@:3}" >/dev/null 2>&1; then held "$1"; else broke "$1" "$2"; fi
}

# Is there time for another round? Says yes the first time.
rounds=0
more_rounds() { [ $((rounds++)) -eq 0 ] || [ "$SECONDS" -lt "$FAULT_SECONDS" ]; }

# Prints the rows, adds them to the results and ends the test.
faults_end() {
  local what code=0
  for what in "${faults[@]}"; do
    printf '%s | %d | %d\n' "$what" "${tried[$what]}" "${held[$what]}" | tee -a "$FAULT_RESULTS"
    [ "${tried[$what]}" -eq "${held[$what]}" ] || code=1
  done
  exit "$code"
}

# below N: sets $chosen to a random number from 0 to N - 1, for N up to 2^30; pick WORD...: to one of the
# words. Not printed: a subshell would have other random numbers in each run.
below() { chosen=$(((RANDOM * 32768 + RANDOM) % $1)); }
pick() { below $# && shift "$chosen" && chosen=$1; }

# ends_well CODE...: did the last program end with one of these codes and, if it failed, with a message?
# A sanitizer's report is not a message.
ends_well() {
  local got=$code want
  if grep -qE 'Sanitizer|runtime error:' err; then return 1; fi
  for want in "$@"; do
    [ "$got" -eq "$want" ] || continue
    [ "$got" -eq 0 ] || [ "$got" -ge 128 ] || grep -q '^renyi: ' err
    return
  done
  return 1
}

# kill_after SIGNAL MS COMMAND...: starts the command, sends it the signal after MS milliseconds and
# waits; its exit code is in $code (124: it did not end within two minutes), its output in ./out and
# ./err. Python, because a shell's child that is not yet the command would take the signal.
kill_after() {
  code=0
  python3 - "$@" <<'P' || code=$?
import signal, subprocess, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup the command would ignore it, too
with open("out", "wb") as out, open("err", "wb") as err:
    p = subprocess.Popen(sys.argv[3:], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
    time.sleep(int(sys.argv[2]) / 1000)
    p.send_signal(getattr(signal, "SIG" + sys.argv[1]))
    try:
        code = p.wait(120)
    except subprocess.TimeoutExpired:
        p.kill()
        code = 124
sys.exit(code if code >= 0 else 128 - code)
P
}

# Sets $took: the milliseconds that a command takes when nobody disturbs it. It must succeed.
time_of() {
  local start=${EPOCHREALTIME/./}
  run 0 "$@"
  took=$(((${EPOCHREALTIME/./} - start) / 1000 + 1))
}
