#!/usr/bin/env bash
# Requests as lmms-eval and VLMEvalKit send them: the answer is that of renyi ask under the server's policy. lmms-eval's
# own client is run if RENYI_CLIENTS_PYTHON names a Python that has it.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
python3 "$RENYI_SRC/tests/fixtures/make_llava.py" llava seed=5
python3 -c 'from client import png; open("a.png", "wb").write(png(3))'
policy='prumerge tokens=5' question=$'What is it?\nAnswer the question using a single word or phrase.'
run 0 "$RENYI" ask -q -t 1 -m llava --max-new-tokens 6 --prune "$policy" a.png "$question" --json
cp out asked.json
export QUESTION=$question
serve -m llava=llava --prune "$policy"

# --- VLMEvalKit: a key that begins with sk-, the path in api_base, n and detail ---
python3 - <<'P' || fail "VLMEvalKit's request"
import base64, json, os, urllib.request
url = "data:image/png;base64," + base64.b64encode(open("a.png", "rb").read()).decode()
content = [{"type": "image_url", "image_url": {"url": url, "detail": "high"}}, {"type": "text", "text": os.environ["QUESTION"]}]
body = {"model": "llava", "messages": [{"role": "user", "content": content}], "n": 1, "temperature": 0, "max_tokens": 6}
request = urllib.request.Request(os.environ["RENYI_URL"] + "/v1/chat/completions", json.dumps(body).encode(),
                                 {"Content-Type": "application/json", "Authorization": "Bearer sk-none"})
answer = json.load(urllib.request.urlopen(request))
assert answer["choices"][0]["message"]["content"].strip() == json.load(open("asked.json"))["text"].strip(), answer
P

# --- lmms-eval: its model "openai" ---
python=${RENYI_CLIENTS_PYTHON:-python3}
if HF_HUB_OFFLINE=1 "$python" -c 'import lmms_eval.models.chat.openai' 2>/dev/null; then
  HF_HUB_OFFLINE=1 "$python" - >out 2>&1 <<'P' || fail "lmms-eval's client"
import json, os
from lmms_eval.api.instance import Instance
from lmms_eval.models.chat.openai import OpenAICompatible
from PIL import Image
question = os.environ["QUESTION"]
model = OpenAICompatible(model_version="llava", base_url=os.environ["RENYI_URL"] + "/v1", api_key="none", num_concurrent=1)
model.task_dict = {"task": {"test": {0: {"image": Image.open("a.png").convert("RGB")}}}}
def messages(doc): return [{"role": "user", "content": [{"type": "image", "url": doc["image"]}, {"type": "text", "text": question}]}]
arguments = (question, messages, {"max_new_tokens": 6, "temperature": 0}, 0, "task", "test")
one = Instance(request_type="generate_until", arguments=arguments, idx=0, metadata={"task": "task", "doc_id": 0, "repeats": 1})
got = model.generate_until([one])[0].text
assert got.strip() == json.load(open("asked.json"))["text"].strip(), got
P
else
  echo "SKIP: RENYI_CLIENTS_PYTHON has no lmms_eval; its client not tested (1)"
fi
stop_server
echo "clients of evaluations: ok"
