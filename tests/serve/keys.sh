#!/usr/bin/env bash
# Keys of the server: asked for, compared, read again on SIGHUP; what the log says and does not say.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
make_toy toy.safetensors
printf '# keys\nfirst-key-0123456789\n\nsecond-key-0123456789 \n' >keys.txt
chmod 600 keys.txt
printf 'short\n' >short.txt
printf '\n' >none.txt
run 1 "$RENYI" serve -m toy.safetensors --api-key-file short.txt
err_has "short.txt: line 1"
run 1 "$RENYI" serve -m toy.safetensors --api-key-file none.txt
err_has "has no key"
run 2 "$RENYI" serve -m toy.safetensors --api-key-file keys.txt --no-auth

serve -m toy.safetensors --host 0.0.0.0 --api-key-file keys.txt --log json --cors https://example.org
check keys <<'PY'
def code(key, path="/v1/models"):
    return request("GET", path, None, {"Authorization": key} if key else {})[0]
first, second = "Bearer first-key-0123456789", "bearer second-key-0123456789"
assert code(first) == 200 and code(second) == 200 and code(first, "/metrics") == 200
for wrong in [None, "", "Bearer", "Bearer ", "Bearer first-key-012345678", first + "x", "Basic first-key-0123456789", "Bearer # keys", "first-key-0123456789"]:
    assert code(wrong) == 401, wrong
status, headers, body = request("GET", "/v1/models")
assert headers["WWW-Authenticate"] == "Bearer" and refused(json.loads(body), "invalid_api_key")
for path in ["/health", "/ready", "/", "/openapi.json", "/ping"]:
    assert code(None, path) == 200, path
image = {"image": data_url(png(1))}
refused(post("/v1/classify", image, 401), "invalid_api_key")
post("/v1/classify", image, 200, {"Authorization": first})
status, headers, _ = request("OPTIONS", "/v1/classify")
assert status == 204 and headers["Access-Control-Allow-Origin"] == "https://example.org"
request("GET", "/v1/models?key=secret-in-the-query")
request("GET", "/%1b[31mred")
PY
# SIGHUP: other keys; a file that cannot be read leaves them.
printf 'third-key-0123456789\n' >keys.txt
kill -HUP $server
for _ in $(seq 50); do grep -q 'SIGHUP: 1 keys' server.log && break; sleep 0.1; done
check reload <<'PY'
assert request("GET", "/v1/models", None, {"Authorization": "Bearer first-key-0123456789"})[0] == 401
assert request("GET", "/v1/models", None, {"Authorization": "Bearer third-key-0123456789"})[0] == 200
PY
rm keys.txt
kill -HUP $server
for _ in $(seq 50); do grep -q 'stay as they were' server.log && break; sleep 0.1; done
check kept <<'PY'
assert request("GET", "/v1/models", None, {"Authorization": "Bearer third-key-0123456789"})[0] == 200
PY
stop_server
grep -qE 'key-0123456789|secret-in-the-query|base64' server.log && fail "the log has secrets or pixels"
grep -q $'\033' server.log && fail "the log has control characters"
grep '^{' server.log >lines.jsonl
check log <<'PY'
lines = [json.loads(l) for l in open("lines.jsonl")]
requests = [l for l in lines if l["event"] == "request"]
assert len(requests) > 15 and {l["status"] for l in requests} >= {200, 401, 204, 404}
one = next(l for l in requests if l["path"] == "/v1/classify" and l["status"] == 200)
assert one["model"] == "toy.safetensors" and one["inputs"] == 1 and one["ms"] > 0 and one["address"] == "127.0.0.1"
PY
