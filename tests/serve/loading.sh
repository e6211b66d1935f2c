#!/usr/bin/env bash
# While models load: /health says ok, /ready and what needs models say 503, and how loading fails or is stopped.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
make_toy toy.safetensors
mkfifo names.txt # loading waits until somebody writes the names of the classes

slow=(-m toy.safetensors --labels names.txt)

serve_loading "${slow[@]}"
check loading <<'PY'
status, headers, body = request("GET", "/ready")
assert status == 503 and headers["Retry-After"] == "1" and json.loads(body) == {"status": "loading"}, (status, headers, body)
assert get("/health") == (200, {"status": "ok", "version": cli("--version").split()[1]})
for path in ["/", "/openapi.json", "/metrics"]:
    assert get(path)[0] == 200, path
assert get("/nothing")[0] == 404 and request("POST", "/ready", b"x")[0] == 405
for path in ["/v1/models", "/v1/models/toy.safetensors", "/ping"]:
    status, headers, body = request("GET", path)
    assert status == 503 and headers["Retry-After"] == "1" and refused(json.loads(body), "loading"), path
for path in ["/v1/classify", "/v1/embeddings", "/v1/zeroshot", "/v1/chat/completions", "/predict"]:
    refused(post(path, {"image": data_url(png(1))}, 503), "loading")
assert open("listening").read() == ""
PY
seq 10 >names.txt
check loaded <<'PY'
for _ in range(200):
    if request("GET", "/ready")[0] == 200:
        break
    time.sleep(0.05)
assert get("/ready") == (200, {"status": "ready"}) and get("/ping") == (200, "pong")
assert len(post("/v1/classify", {"image": data_url(png(1))})["data"][0]["top"]) == 5
for _ in range(200):
    if open("listening").read() == f"listening on {URL}\n":
        break
    time.sleep(0.05)
else:
    raise AssertionError(open("listening").read())
PY
stop_server

# SIGTERM while models load: exit code 0. SIGHUP before it does nothing.
serve_loading "${slow[@]}"
kill -HUP $server
kill -TERM $server
seq 10 >names.txt
code=0
wait $server || code=$?
[ "$code" -eq 0 ] || fail "the server ended with $code when it was stopped while loading"
[ ! -s listening ] || fail "it said that it listens"

# Models that cannot be loaded: the reason and the exit code, with clients that ask meanwhile.
serve_loading "${slow[@]}"
for _ in 1 2 3; do
  python3 -c 'from client import *; print([request("GET", "/ready")[0] for _ in range(5)])' >/dev/null || fail "/ready"
done
seq 7 >names.txt
code=0
wait $server || code=$?
cp server.log err
[ "$code" -eq 1 ] || fail "the server ended with $code when its labels were wrong"
err_has "names.txt"

# --tokenizer is for the models without one in their folder, and only for them.
make_clip
python3 "$RENYI_SRC/tests/fixtures/make_llava.py" llava seed=5
python3 "$RENYI_SRC/tests/fixtures/make_llava.py" bare seed=5 tokenizer=0
serve -m clip=clip.safetensors -m llava -m bare --tokenizer llava
check tokenizer <<'PY'
assert len(post("/v1/embeddings", {"input": ["a cat"]})["data"]) == 1
hi = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}
texts = [post("/v1/chat/completions", {"model": name, **hi})["choices"][0]["message"]["content"] for name in ("llava", "bare")]
assert texts[0] == texts[1], texts
PY
stop_server
run 1 "$RENYI" serve --port 0 -m bare
err_has "bare: has no tokenizer"
