#!/usr/bin/env bash
# GGUF files damaged in every field of header, values and list of tensors: success, or an error that names the file.
# A sample of the damages; all of them with RENYI_TEST_FULL=1.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../cli/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to damage files"; exit 77; }
damage=$RENYI_SRC/tests/gguf/damage_gguf.py
stride=$([ -n "${RENYI_TEST_FULL:-}" ] && echo 1 || echo 97)

mkdir llava
python3 "$RENYI_SRC/tests/fixtures/make_llava.py" llava
python3 "$RENYI_SRC/tests/gguf/make_gguf.py" llava .
run 0 python3 "$damage" "$RENYI" "$RENYI_SRC/tests/gguf/llama_32.gguf" "$RENYI_SRC/tests/gguf/llama_256.gguf" --stride "$stride"
cat out
run 0 python3 "$damage" "$RENYI" mmproj.gguf --mmproj --stride "$stride"
cat out
