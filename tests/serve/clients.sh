#!/usr/bin/env bash
# Clients that others wrote: the official openai package against the server, and schemathesis, which makes
# requests from /openapi.json and checks the answers. Each is left out if it cannot be had (lib.sh).
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
find_clients
make_toy toy.safetensors
make_clip
python3 "$RENYI_SRC/tests/fixtures/make_llava.py" llava seed=5
printf 'key-of-a-client-0123\n' >keys.txt && chmod 600 keys.txt
skipped=0

if "$python" -c 'import openai' 2>/dev/null; then
  serve -m toy=toy.safetensors -m clip=clip.safetensors -m llava --api-key-file keys.txt --max-tokens 64
  "$python" - >out 2>&1 <<'PY' || fail "openai"
import os
import struct
import openai
from client import data_url, png
url = data_url(png(1))
c = openai.OpenAI(base_url=os.environ["RENYI_URL"] + "/v1", api_key="key-of-a-client-0123", max_retries=0)
assert [m.id for m in c.models.list()] == ["toy", "clip", "llava"] and c.models.retrieve("clip").id == "clip"

# Embeddings: the client asks for base64 unless it is told otherwise.
a = c.embeddings.create(model="clip", input=["a cat", "of"])
b = c.embeddings.create(model="clip", input="a cat", encoding_format="float")
bits = lambda row: struct.pack(f"<{len(row)}f", *row)
assert len(a.data) == 2 and bits(a.data[0].embedding) == bits(b.data[0].embedding) and abs(sum(x * x for x in b.data[0].embedding) - 1) < 1e-5
assert a.usage.prompt_tokens > 0 and a.model == "clip"
i = c.embeddings.create(model="clip", input=[{"image_url": url}])
assert len(i.data[0].embedding) == len(b.data[0].embedding)

# Chats, whole and streamed.
messages = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "What is it?"}]}]
whole = c.chat.completions.create(model="llava", messages=messages, max_tokens=12, extra_body={"prune": "prumerge tokens=4"})
assert whole.choices[0].finish_reason == "length" and whole.usage.completion_tokens == 12
text, last = "", None
for e in c.chat.completions.create(model="llava", messages=messages, max_tokens=12, stream=True, stream_options={"include_usage": True}, extra_body={"prune": "prumerge tokens=4"}):
    text += (e.choices[0].delta.content or "") if e.choices else ""
    last = e
assert text == whole.choices[0].message.content and last.usage.completion_tokens == 12
messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "Why?"}]
again = c.chat.completions.create(model="llava", messages=messages, max_tokens=4, temperature=0.5, top_p=0.9, seed=3, stop=["\n\n"], extra_body={"prune": "prumerge tokens=4"})
assert again.usage.prompt_tokens_details.cached_tokens > 0

# Errors have their own classes.
def raises(kind, call):
    try:
        call()
    except kind as e:
        return e
    raise AssertionError(kind)
assert raises(openai.NotFoundError, lambda: c.embeddings.create(model="none", input="a")).code == "model_not_found"
e = raises(openai.BadRequestError, lambda: c.embeddings.create(model="clip", input="a", dimensions=3))
assert e.param == "dimensions" and "embeddings" in e.message
raises(openai.BadRequestError, lambda: c.chat.completions.create(model="llava", messages=messages, max_tokens=1000))
wrong = openai.OpenAI(base_url=os.environ["RENYI_URL"] + "/v1", api_key="wrong", max_retries=0)
raises(openai.AuthenticationError, lambda: wrong.models.list())
PY
  stop_server
else
  echo "SKIP: $python cannot import openai; the official client not run (1)"
  skipped=$((skipped + 1))
fi

schema=$(dirname "$(command -v "$python")")/schemathesis
[ -x "$schema" ] || schema=$(command -v schemathesis || true)
if [ -n "$schema" ]; then
  serve -m toy=toy.safetensors -m clip=clip.safetensors -m llava --max-tokens 64
  timeout 300 "$schema" run "$url/openapi.json" --max-examples "${RENYI_SCHEMA_EXAMPLES:-20}" --seed 1 --request-timeout 60 --phases examples,coverage,fuzzing \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance,unsupported_method,negative_data_rejection \
    >out 2>&1 || fail "schemathesis: $(grep -aE -A14 '^(1\.|____)' out | head -60)"
  stop_server
else
  echo "SKIP: no schemathesis; /openapi.json not compared with the answers (1)"
  skipped=$((skipped + 1))
fi
[ $skipped -lt 2 ] || exit 77
