#!/usr/bin/env bash
# What the server refuses and how it ends: limits, slow and broken clients, full queues, SIGTERM.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
make_toy toy.safetensors

# Wrong usage.
run 2 "$RENYI" serve --host 0.0.0.0
err_has "--api-key-file"
run 2 "$RENYI" serve image.jpg
for origin in x example.org https:// https://example.org/ 'https://a b' 'https://a,https://b'; do
  run 2 "$RENYI" serve --cors "$origin"
  err_has "is not an origin; give one such as https://example.org"
done
run 1 "$RENYI" serve --api-key-file missing.txt
err_has "missing.txt: No such file or directory; a file with a key per line is needed"
run 1 "$RENYI" serve -m toy.safetensors --labels missing.txt --port 0
err_has "missing.txt: No such file or directory; a file with one class name per line is needed"
run 2 "$RENYI" serve --prune nonsense
run 1 "$RENYI" serve -m missing.safetensors
run 2 "$RENYI" serve -m toy.safetensors -m toy.safetensors
err_has "NAME=MODEL"

serve -m toy.safetensors --max-body 1 --max-images 3 --max-pixels 100000 --header-seconds 1 --body-seconds 1 --idle-seconds 2 --max-per-address 12
run 1 "$RENYI" serve -m toy.safetensors --port "${url##*:}"
err_has "cannot listen"

check limits <<'PY'
url = data_url(png(1))
refused(post("/v1/classify", {"images": [url] * 4}, 413), "too_many_images", "images")
refused(form("/v1/classify", [("image", "a.png", png(1))] * 4, [], 413), "too_many_images")
assert "100000" in refused(post("/v1/classify", {"image": data_url(png(1, 320))}, 413), "image_too_large")
refused(post("/v1/classify", {"image": url, "junk": "x" * (1 << 20)}, 413), "body_too_large")
refused(post("/v1/classify", b'{"images": [', 400), "invalid_json")
refused(post("/v1/classify", b'[1]', 400), "invalid_type")
refused(post("/v1/classify", b'\xff\xfe', 400), "invalid_json")
assert "empty" in refused(post("/v1/classify", b'', 400), "invalid_json")
refused(post("/v1/classify", b'{"image": "a", "image": "b"}', 400), "invalid_json")
refused(post("/v1/classify", b'[' * 10000, 400), "invalid_json")
refused(post("/v1/classify", b'{"a":[' + b'[],' * 100000 + b'0]}', 413), "too_many_values")
refused(form("/v1/classify", [("image", "a.png", png(1))], [("top_k", "[" + "0," * 100000 + "0]")], 400), "invalid_type", "top_k")
refused(post("/v1/classify", {"images": 3, "junk": ",[{" * 100000}, 400), "invalid_type", "images")
refused(post("/v1/classify", {}, 400), "missing", "images")
refused(post("/v1/classify", {"image": None, "images": None}, 400), "missing", "images")
assert all(len(post("/v1/classify", d)["data"]) == 1 for d in ({"image": None, "images": [url]}, {"image": url, "images": None}))
refused(post("/v1/classify", {"images": 3}, 400), "invalid_type", "images")
refused(post("/v1/classify", {"image": 3}, 400), "invalid_type", "image")
assert "image 2 " in refused(post("/v1/classify", {"images": [url, None]}, 400), "invalid_type", "images")
refused(post("/v1/classify", {"image": "https://example.org/a.png"}, 400), "invalid_image_url", "image")
refused(post("/v1/classify", {"image": "/etc/passwd"}, 400), "invalid_image_url", "image")
refused(post("/v1/classify", {"image": "data:image/png;base64,@@@@"}, 400), "invalid_image_url", "image")
refused(post("/v1/classify", {"image": "data:image/png;base64,AAA"}, 400), "invalid_image_url", "image")
refused(post("/v1/classify", {"image": "data:text/html;base64,AAAA"}, 400), "invalid_image_url", "image")
refused(post("/v1/classify", {"image": data_url(b"GIF89a")}, 400), "invalid_image")
refused(post("/v1/classify", {"image": data_url(png(1)[:60])}, 400), "invalid_image")
refused(post("/v1/classify", {"image": url, "top_k": 0}, 400), "invalid_value", "top_k")
refused(post("/v1/classify", {"image": url, "top_k": 1.5}, 400), "invalid_type", "top_k")
refused(post("/v1/classify", {"image": url, "trace": "yes"}, 400), "invalid_type", "trace")
refused(post("/v1/classify", {"image": url, "model": "none"}, 404), "model_not_found", "model")
refused(post("/v1/classify", {"image": url, "prune": "evit keep=2"}, 400), "invalid_policy", "prune")
refused(post("/v1/classify", {"image": url, "prune": "evit layers=99"}, 400), "invalid_policy", "prune")
refused(post("/v1/classify", {"image": url}, 415, {"Content-Type": "text/plain"}), "unsupported_media_type")
refused(post("/v1/classify", {"image": url}, 415, {"Content-Type": "application/json-seq"}), "unsupported_media_type")
assert post("/v1/classify", {"image": url}, 200, {"Content-Type": "Application/JSON; charset=utf-8"})["data"]
refused(post("/v1/classify", {"image": url}, 415, {"Content-Type": "multipart/form-data"}), "unsupported_media_type")
refused(post("/v1/classify", b"no form", 400, {"Content-Type": "multipart/form-data; boundary=x"}), "invalid_form")
refused(post("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}, 404), "model_not_found", "model")
refused(post("/v1/embeddings", {"input": "a cat"}, 400), "unsupported", "input")
assert len(post("/v1/classify", {"image": url, "top_k": 1000})["data"][0]["top"]) == 10

# Paths and methods.
status, headers, _ = request("GET", "/v1/classify")
assert status == 405 and headers["Allow"] == "POST"
assert request("POST", "/health", b"x")[0] == 405 and request("DELETE", "/v1/models")[0] == 405
assert request("GET", "/../../etc/passwd")[0] == 404 and request("GET", "/v1/models/none")[0] == 404
assert request("GET", "/v1/models/toy.safetensors")[0] == 200 and request("HEAD", "/health")[0] == 200
assert "Access-Control-Allow-Origin" not in request("GET", "/health")[1] and request("OPTIONS", "/v1/models")[0] == 405

# A body in chunks, and one that is too large.
def chunks(n):
    for _ in range(n):
        yield b'"' + b"x" * 4000 + b'",'
c = http.client.HTTPConnection(HOST.hostname, HOST.port, timeout=60)
c.request("POST", "/v1/classify", iter([b'{"image": "', url.encode(), b'"}']), {"Content-Type": "application/json"}, encode_chunked=True)
r = c.getresponse()
assert r.status == 200 and json.loads(r.read())["data"]
c.request("POST", "/v1/classify", chunks(400), {"Content-Type": "application/json"}, encode_chunked=True)
assert c.getresponse().status == 413

# Two requests on one connection, and garbage.
line = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
assert raw(line + line, 1).count(b"200 OK") == 2
assert b" 4" in raw(b"garbage\r\n\r\n", 3)[:40] or raw(b"garbage\r\n\r\n", 3) == b""
assert raw(b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n", 3)[:12] in (b"HTTP/1.1 414", b"HTTP/1.1 431", b"HTTP/1.1 413", b"HTTP/1.0 414", b""), 1
PY

check slow <<'PY'
def drip(data, first=b""):
    """Sends a byte every 0.2 s; returns (seconds, answer)."""
    s, start = socket.create_connection((HOST.hostname, HOST.port), timeout=10), time.time()
    s.sendall(first)
    s.settimeout(0.2)
    out = b""
    for i in range(50):
        try:
            s.sendall(data[i % len(data):i % len(data) + 1])
            got = s.recv(4096)
            if not got:
                break
            out += got
        except socket.timeout:
            continue
        except OSError:
            break
    s.close()
    return time.time() - start, out

def idle():
    s, start = socket.create_connection((HOST.hostname, HOST.port), timeout=20), time.time()
    got = s.recv(100)
    return time.time() - start, got

head = b"POST /v1/classify HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
(a, header), (b, body), (c, _), (d, quiet) = together([
    lambda: drip(b"GET /health HTTP/1.1\r\n" + b"X-a: b\r\n" * 100), lambda: drip(b" ", head),
    lambda: (0, [post("/v1/classify", {"image": data_url(png(1))}) for _ in range(5)]), idle])
assert a < 5 and b"408" in header, (a, header)
assert b < 5 and b"408" in body and b"timeout" in body, (b, body)
assert d < 10, d
assert metric("timeouts_total") >= 2
time.sleep(0.3)  # the log
slow = [line for line in open("server.log") if " 408 " in line and "timeout" in line]
assert slow and not any(" 499 " in line for line in open("server.log")), open("server.log").read()
settles("body_bytes", lambda n: n == 0)  # the answer is sent before the body is given back

# More connections than an address may have: a clear answer, and new ones are accepted when they are closed.
held = [socket.create_connection((HOST.hostname, HOST.port)) for _ in range(12)]
time.sleep(0.1)
status, _, answer = request("GET", "/health")
assert status == 429 and refused(json.loads(answer), "too_many_connections"), (status, answer)
for s in held:
    s.close()
for _ in range(100):
    if request("GET", "/health")[0] == 200:
        break
    time.sleep(0.05)
else:
    raise AssertionError("no new connection after the others were closed")
PY
stop_server

# A body that stops is answered, also when a connection may be idle only as long, or shorter.
serve -m toy.safetensors --body-seconds 2 --idle-seconds 1
check stopped <<'PY'
s = socket.create_connection((HOST.hostname, HOST.port), timeout=20)
s.sendall(b"POST /v1/classify HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
got = s.recv(4096)
assert b"408" in got, got
PY
stop_server

# A full queue: 429 with Retry-After, and every request that was accepted is answered.
serve -m toy.safetensors --max-queue 2 --max-batch 1
check queue <<'PY'
body = json.dumps({"images": [data_url(png(i)) for i in range(60)], "trace": True, "prune": "evit keep=0.9 layers=0"})
answers = together([lambda: request("POST", "/v1/classify", body, {"Content-Type": "application/json"}) for _ in range(10)])
codes = [a[0] for a in answers]
assert set(codes) == {200, 429}, codes
busy = next(a for a in answers if a[0] == 429)
assert busy[1]["Retry-After"] and refused(json.loads(busy[2]), "queue_full")
settles("requests_admitted", lambda n: n == 0)
PY
stop_server

# SIGTERM while requests are under way: they are answered, new ones are not, the exit code is 0.
"$RENYI" init -q --arch vit_tiny_patch16_224 --classes 10 --seed 1 slow.safetensors
serve -m slow.safetensors --drain-seconds 300
check drain <<PY
import signal
body = json.dumps({"images": [data_url(png(i)) for i in range(16)]})
keep = http.client.HTTPConnection(HOST.hostname, HOST.port, timeout=60)
assert request("GET", "/ready", connection=keep)[0] == 200
def stop():
    settles("requests_admitted", lambda n: n == 4)
    os.kill($server, signal.SIGTERM)
    time.sleep(0.3)
    try:
        socket.create_connection((HOST.hostname, HOST.port), timeout=2).close()
        return "it still accepts connections"
    except OSError:
        pass
    try:
        return request("GET", "/ready", connection=keep)[0]
    except OSError:
        return 0  # it has ended already
answers = together([lambda: request("POST", "/v1/classify", body, {"Content-Type": "application/json"})[0] for _ in range(4)] + [stop])
assert answers[:4] == [200] * 4 and answers[4] in (503, 0), answers
PY
wait $server || fail "the server ended with $? after SIGTERM"

# The limit of the drain: what is under way is ended, the exit code is still 0.
serve -m slow.safetensors --drain-seconds 0 --max-batch 1
check cut <<PY
import signal
body = json.dumps({"images": [data_url(png(i)) for i in range(16)]})
def stop():
    settles("requests_admitted", lambda n: n == 6)
    os.kill($server, signal.SIGTERM)
codes = together([lambda: request("POST", "/v1/classify", body, {"Content-Type": "application/json"})[0] for _ in range(6)] + [stop])[:6]
assert set(codes) <= {200, 503} and 503 in codes, codes
PY
wait $server || fail "the server ended with $? after the limit of the drain"
