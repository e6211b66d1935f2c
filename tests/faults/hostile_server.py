#!/usr/bin/env python3
"""A server that answers `renyi pull` in every wrong way.

Usage: hostile_server.py rows             the cases: "name|group|exit code|text of stderr|options"
       hostile_server.py serve DIR PORTS  serves them on ports of 127.0.0.1, written to PORTS: the hub,
                                          the store, and the hub with TLS if DIR has tls.pem

The repository test/NAME is the case NAME, test/fuzz-SEED a good answer with random bytes changed.
DIR gets the right files (NAME.model, where a case may succeed) and `log`, a line per request. Bytes
go to the socket as they are: no library stands between a case and the client. Ends by itself after
an hour, or when its parent is gone.

SPDX-License-Identifier: Apache-2.0
"""
import hashlib
import json
import os
import random
import socket
import ssl
import struct
import sys
import threading
import time
import zlib

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MODEL = random.Random(1).randbytes(300000)
OTHER = random.Random(2).randbytes(300000)
BIG = random.Random(3).randbytes(8000000)
CONFIG = b'{"architecture": "vit_tiny_patch16_224"}'
CONTROLS = bytes(range(1, 32)) + b"\x7f\x1b[2J\x1b]0;title\x07\xc2\x9b31m\xe2\x80\xae"
CASES = {}


class Case:
    """`hub` and `store` answer a request themselves; the other values change the usual answer."""

    def __init__(self, name, group, code, text, **changes):
        self.name, self.group, self.code, self.text = name, group, code, text
        self.options = changes.pop("options", "")
        self.files = changes.pop("files", {"config.json": CONFIG, "model.safetensors": MODEL})
        self.body = changes.pop("body", None)  # what the store has, if not the file
        self.hub, self.store = changes.pop("hub", None), changes.pop("store", None)
        self.headers = changes.pop("headers", lambda body, pairs: pairs)
        self.location = changes.pop("location", None)
        self.gets = 0  # requests to the store so far
        assert not changes, changes
        CASES[name] = self


def sha256(body):
    return hashlib.sha256(body).hexdigest()


def git_sha1(body):
    return hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()


class Exchange:
    """One request and what is sent back."""

    def __init__(self, connection, line, headers, is_store):
        self.connection, self.is_store = connection, is_store
        self.method, self.path = line.split(" ")[:2]
        self.headers = headers
        parts = self.path.split("?")[0].strip("/").split("/")
        self.repo, self.name = parts[1], parts[-1]
        self.range = int(headers["range"][6:].rstrip("-")) if "range" in headers else 0

    def send(self, data):
        self.connection.sendall(data)

    def head(self, status, *pairs):
        lines = "".join(f"{name}: {value}\r\n" for name, value in pairs)
        self.send(f"HTTP/1.1 {status} Text\r\n{lines}\r\n".encode("latin-1"))

    def answer(self, status, pairs, body):
        self.head(status, *pairs, ("Content-Length", len(body)))
        if self.method != "HEAD":
            self.send(body)

    def rest(self, body):
        """The usual answer of the store."""
        if not self.range:
            return self.answer(200, [], body)
        if self.range >= len(body):
            return self.answer(416, [], b"")
        where = f"bytes {self.range}-{len(body) - 1}/{len(body)}"
        return self.answer(206, [("Content-Range", where)], body[self.range :])

    def reset(self):
        """RST instead of an orderly end."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        raise ConnectionError


# ---- bodies -------------------------------------------------------------------------------------


def half_then(end):
    """Half the file at the first request, with the length of the whole."""

    def store(x, case, body):
        if case.gets > 1:
            return x.rest(body)
        x.head(200, ("Content-Length", len(body)))
        x.send(body[: len(body) // 2])
        end(x)

    return store


def close(x):
    raise ConnectionError


def always(store):
    def again(x, case, body):
        case.gets = 1
        store(x, case, body)

    return again


def endless(x, case, body):
    x.head(200, ("Connection", "close"))
    while True:
        x.send(body)


def endless_chunks(x, case, body):
    x.head(200, ("Transfer-Encoding", "chunked"))
    while True:
        x.send(b"10000\r\n" + bytes(0x10000) + b"\r\n")


def drip(step, pause):
    def store(x, case, body):
        x.head(200, ("Content-Length", len(body)))
        for i in range(0, len(body), step):
            x.send(body[i : i + step])
            time.sleep(pause)

    return store


def later(second):
    """Cut at the first request; the others are answered by `second`."""

    def store(x, case, body):
        if case.gets == 1:
            return half_then(close)(x, case, body)
        second(x, case, body)

    return store


def ranged(text):
    return lambda x, case, body: x.answer(206, [("Content-Range", text)], body[x.range :])


def encoded(header):
    def store(x, case, body):
        bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
        data = b"".join(bomb.compress(bytes(1 << 20)) for _ in range(50)) + bomb.flush()
        x.head(200, (header, "gzip"), ("Connection", "close"))
        x.send(data)
        close(x)

    return store


def raw(data):
    def store(x, case, body):
        x.send(data)
        close(x)

    return store


def model(name, group, code, text, store=None, **changes):
    Case(name, group, code, text, store=store, **changes)


model("plain", "a good answer", 0, "ready")
model("short", "wrong lengths", 1, "to resume", always(half_then(close)), options="--retries 1")
model("short-once", "wrong lengths", 0, "ready", half_then(close))
model("long", "wrong lengths", 1, "more than the 300000 bytes it announced", body=MODEL + b"x")
model("short-whole", "wrong lengths", 1, "too short", body=MODEL[:-9], options="--retries 0")
model("empty", "wrong lengths", 1, "too short", body=b"", options="--retries 1")
model("endless", "endless answers", 1, "more than the 300000 bytes it announced", endless)
model("two-lengths", "wrong lengths", 1, "model.safetensors",
      raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 300000\r\n\r\n12345"), options="--retries 1")
model("reset", "cut connections", 1, "to resume", always(half_then(Exchange.reset)), options="--retries 1")
model("reset-once", "cut connections", 0, "ready", half_then(Exchange.reset))
model("silent", "slow answers", 1, "connection was cut", lambda x, case, body: time.sleep(20),
      options="--retries 0 --timeout 1")
model("drip", "slow answers", 1, "to resume", drip(10, 0.1), options="--retries 0 --timeout 2")
model("deadline", "slow answers", 1, "--deadline", drip(1000, 0.1), options="--deadline 1")
model("no-range", "wrong ranges", 0, "ready", later(lambda x, case, body: x.answer(200, [], body)))
for number, text in enumerate(["bytes 7-299999/300000", "bytes 0-299999/300000", "bytes banana", "bytes -5-9/1",
                               "bytes 99999999999999999999-1/2", "lines 150000-299999/300000", ""]):
    model(f"range-{number}", "wrong ranges", 0 if text.startswith("bytes 0-") else 1,
          "ready" if text.startswith("bytes 0-") else "another range", later(ranged(text)), options="--retries 3")
model("range-many", "wrong ranges", 1, "another range", always(ranged("bytes 7-9/300000")), options="--retries 2")
model("gzip", "compressed answers", 1, "model.safetensors", encoded("Content-Encoding"), options="--retries 1")
model("transfer-gzip", "compressed answers", 1, "model.safetensors", encoded("Transfer-Encoding"), options="--retries 1")
for number, size in enumerate([b"FFFFFFFFFFFFFFFFFF", b"-5", b"zz", b"", b"7fffffffffffffff"]):
    model(f"chunk-{number}", "broken HTTP", 1, "model.safetensors",
          raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + size + b"\r\nabc\r\n"), options="--retries 1")
model("other-bytes", "wrong digests", 1, "do not have the announced digest", body=OTHER)
model("mixed-bytes", "wrong digests", 1, "do not have the announced digest",
      later(lambda x, case, body: x.rest(OTHER)))
Case("other-config", "wrong digests", 1, "do not have the announced digest",
     headers=lambda body, pairs: pairs + [("ETag", "f" * 40)])

# ---- headers ------------------------------------------------------------------------------------


def setting(name, value):
    """The usual headers of the hub with one of them changed, in the answers for the weights; None: left out."""

    def headers(body, pairs):
        if not any(key.startswith("X-Linked") for key, _ in pairs):
            return pairs
        kept = [pair for pair in pairs if pair[0] != name]
        return kept if value is None else kept + [(name, value(body) if callable(value) else value)]

    return headers


def etag(name, group, code, text, value, **changes):
    Case(name, group, code, text, headers=setting("X-Linked-Etag", value), **changes)


etag("upper", "digests in upper case", 0, "ready", lambda body: sha256(body).upper())
Case("upper-small", "digests in upper case", 0, "ready", headers=lambda body, pairs: [
    (key, value.upper() if key in ("ETag", "X-Repo-Commit") else value) for key, value in pairs])
unusable = {"none": None, "empty": '""', "md5": hashlib.md5(MODEL).hexdigest(), "weak": 'W/"5f-x"',
            "letter": "g" * 64, "path": "../../../../evil", "long": "a" * 3000, "controls": "a\x1b[2Jb\x9bc"}
for key, value in unusable.items():
    etag(f"etag-{key}", "no usable digest", 1, "--allow-unverified", value)
    etag(f"taken-{key}", "no usable digest, allowed", 0, "NOT VERIFIED", value, options="--allow-unverified")
etag("taken-cut", "no usable digest, allowed", 0, "NOT VERIFIED", "x", options="--allow-unverified",
     store=half_then(close))
etag("taken-short", "no usable digest, allowed", 1, "too short", "x", options="--allow-unverified --retries 1",
     body=MODEL[:-9])
for number, size in enumerate(["-5", "banana", "", "1e30"]):
    Case(f"size-{number}", "no usable size", 1, "model.safetensors", headers=setting("X-Linked-Size", size),
         store=endless_chunks, options="--deadline 2")
for number, size in enumerate([10**14, 2**63 - 1, 2**64 + 5]):
    Case(f"huge-{number}", "sizes above the limit", 1, "reads at most", headers=setting("X-Linked-Size", size))
Case("huge-config", "sizes above the limit", 1, "reads at most", hub=lambda x, case: x.head(
    200, ("X-Repo-Commit", COMMIT), ("ETag", "f" * 40), ("Content-Length", 10**9)))
for key, value in {"none": None, "path": "../../../../etc", "short": COMMIT[1:], "controls": "\x1b[2J"}.items():
    Case(f"commit-{key}", "wrong commits", 1, "does not answer like", headers=setting("X-Repo-Commit", value))
Case("commit-two", "wrong commits", 1, "two different commits", headers=setting("X-Repo-Commit", "f" * 40))
TARGETS = {"file": "file:///etc/passwd", "ftp": "ftp://127.0.0.1/x", "gopher": "gopher://127.0.0.1:1/x",
           "data": "data:text/plain,x", "script": "javascript:alert(1)", "dict": "dict://127.0.0.1:1/x",
           "port": "http://127.0.0.1:1/", "bad-port": "http://127.0.0.1:99999/", "bad-host": "http://[::1",
           "nothing": "", "controls": "http://127.0.0.1:1/\x1b[2J", "long": "http://127.0.0.1:1/" + "a" * 9000,
           "self": "SELF"}
for key, value in TARGETS.items():
    Case(f"to-{key}", "redirects", 1, "redirects" if key == "self" else "model.safetensors", location=value,
         options="--retries 1")
Case("to-user", "redirects", 0, "ready", location="http://127.0.0.1:HUB@127.0.0.1:STORE/test/to-user/model.safetensors")
model("to-hub-forever", "redirects", 1, "more than 8 redirects",
      lambda x, case, body: x.answer(307, [("Location", x.path + "x/../model.safetensors")], b""))


def endless_lines(line):
    def send(x, case, body=None):
        x.send(b"HTTP/1.1 100 Continue\r\n" if b"100" in line else b"HTTP/1.1 200 OK\r\n")
        while True:
            x.send(line * 1000)

    return send


LINES = {"many": b"X-Header: value\r\n", "one": b"a" * 1000, "early": b"\r\nHTTP/1.1 100 Continue\r\n"}
for key, line in LINES.items():
    model(f"headers-{key}", "endless answers", 1, "model.safetensors", endless_lines(line), options="--retries 1")
    Case(f"hub-headers-{key}", "endless answers", 1, "cannot reach", hub=endless_lines(line), options="--retries 1")
Case("hub-silent", "slow answers", 1, "cannot reach", hub=lambda x, case: time.sleep(20), options="--retries 0 --timeout 1")
Case("hub-drip", "slow answers", 1, "cannot reach", options="--retries 0 --timeout 2",
     hub=lambda x, case: [(x.send(b"a"), time.sleep(0.2)) for _ in range(100)])
REPLIES = {"old": b"hello\n", "nothing": b"", "status": b"HTTP/1.1 2OO OK\r\n\r\n", "version": b"HTTP/9.9 200 OK\r\n\r\n",
           "nul": b"HTTP/1.1 200 OK\r\nETag: a\0b\r\nX-Repo-Commit: \0\r\n\r\n", "colon": b"HTTP/1.1 200 OK\r\n: x\r\nETag\r\n\r\n",
           "folded": b"HTTP/1.1 200 OK\r\nETag: a\r\n b\r\n c\r\n\r\n", "cut": b"HTTP/1.1 200 OK\r\nETa",
           "controls": b"HTTP/1.1 200 " + CONTROLS.replace(b"\n", b"").replace(b"\r", b"") + b"\r\n\r\n",
           "number": b"HTTP/1.1 99999999999999999999 OK\r\n\r\n", "negative": b"HTTP/1.1 -1 OK\r\n\r\n",
           "switch": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nx"}
for key, data in REPLIES.items():
    Case(f"reply-{key}", "broken HTTP", 1, "renyi: ", hub=lambda x, case, data=data: raw(data)(x, case, None),
         options="--retries 1 --timeout 2")


# ---- error pages --------------------------------------------------------------------------------


def page(status, code=""):
    pairs = [("X-Error-Code", code or CONTROLS.replace(b"\n", b"").replace(b"\r", b"").decode("latin-1"))]
    return lambda x, case, body=None: x.answer(status, pairs, CONTROLS * 500)


ERRORS = {401: "no such repository", 403: "access is restricted", 404: "no such repository", 429: "429",
          500: "500", 503: "503", 418: "418", 999: "999", 300: "", 204: "", 304: ""}
for status, text in ERRORS.items():
    Case(f"hub-{status}", "error pages", 1, text or "does not answer like", hub=page(status))
    model(f"store-{status}", "error pages", 1, str(status) if status != 204 else "model.safetensors", page(status),
          options="--retries 1")


def endless_page(x, case, body=None):
    x.head(404 if x.is_store else 200, ("Connection", "close"))
    sent = 0
    while True:
        x.send(CONTROLS * 1000)
        sent += len(CONTROLS) * 1000
        with open(os.path.join(sys.argv[2], "page"), "w") as file:
            file.write(str(sent))


model("endless-page", "error pages", 1, "HTTP 404", endless_page)

# ---- shards -------------------------------------------------------------------------------------

SHARD = "model-00001-of-00001.safetensors"


def index(name, group, code, text, data, **changes):
    if not isinstance(data, bytes):
        data = json.dumps(data).encode()
    files = {"config.json": CONFIG, "model.safetensors.index.json": data, SHARD: MODEL}
    Case(name, group, code, text, files=files, **changes)


index("shards", "names of shards", 0, "ready", {"weight_map": {"a": SHARD}})
index("shards-same", "names of shards", 0, "ready", {"weight_map": {f"t{i}": SHARD for i in range(100000)}})
NAMES = ["../evil.safetensors", "/tmp/evil.safetensors", "a/evil.safetensors", "..", "", ".", ".evil.safetensors",
         "-evil.safetensors", "evil.exe", "evil.safetensors\n", "\x1b[2Jevil.safetensors", "e\u202evil.safetensors",
         "a" * 300 + ".safetensors", "a" * 100000 + ".safetensors", "..\\evil.safetensors", "%2e%2e%2fevil.safetensors",
         "evil.safetensors?x=1", "evil.safetensors\u0000", ".safetensors"]
for number, bad in enumerate(NAMES):
    index(f"name-{number}", "names of shards", 1, "line 1" if "\0" in bad else "is not the name of a shard",
          {"weight_map": {"a": SHARD, "b": bad}})
index("name-absent", "names of shards", 1, "does not have", {"weight_map": {"a": "b.safetensors"}})
index("name-number", "names of shards", 1, "no file name for tensor", {"weight_map": {"a": 7}})
index("names-501", "numbers of shards", 1, "more than 500 shards",
      {"weight_map": {f"t{i}": f"model-{i}.safetensors" for i in range(501)}})
index("names-200000", "numbers of shards", 1, "more than 500 shards",
      {"weight_map": {f"t{i}": f"model-{i}.safetensors" for i in range(200000)}})
JSON = {"deep": b'{"weight_map":' * 100000, "arrays": b"[" * 100000, "wide": b"[" + b"[]," * 3000000 + b"[]]",
        "empty": b"", "cut": b'{"weight_map": {"a', "utf8": b'{"weight_map": {"\xff\xfe": "x"}}', "null": b"null",
        "no-map": b"{}", "list": b'{"weight_map": []}', "twice": b'{"weight_map": {"a": "x", "a": "y"}}',
        "controls": b'{"' + CONTROLS + b'": 1}', "number": b"1e999999999", "spaces": b" " * 3000000}
for key, data in JSON.items():
    index(f"json-{key}", "indexes that are no index", 1, "model.safetensors.index.json", data)
index("json-unsized", "no usable size", 1, "the most that renyi reads", b"{}",
      hub=lambda x, case: endless_index(x, case))


def endless_index(x, case):
    if x.name != "model.safetensors.index.json":
        return usual_hub(x, case)
    if x.method == "HEAD":
        return x.head(200, ("X-Repo-Commit", COMMIT), ("ETag", "f" * 40))
    endless_chunks(x, case, b"")


# ---- slow, for kills; good answers with a few bytes changed --------------------------------------

model("slow", "kills", 0, "ready", lambda x, case, body: slow_rest(x, body),
      files={"config.json": CONFIG, "model.safetensors": BIG})


def slow_rest(x, body):
    where = f"bytes {x.range}-{len(body) - 1}/{len(body)}"
    x.head(206 if x.range else 200, ("Content-Length", len(body) - x.range), ("Content-Range", where))
    for at in range(x.range, len(body), 32768):
        x.send(body[at : at + 32768])
        time.sleep(0.02)


def change_later(x, case):
    """Another model under the same name after the first download began."""
    case.files = {"config.json": CONFIG, "model.safetensors": OTHER if case.gets else MODEL}
    usual_hub(x, case)


model("changed", "changed files", 0, "ready", half_then(close), hub=change_later,
      files={"config.json": CONFIG, "model.safetensors": OTHER})


class Changed:
    """A connection that changes, repeats, drops or adds some bytes of what is sent."""

    def __init__(self, connection, chance):
        self.connection, self.chance = connection, chance

    def sendall(self, data):
        data = bytearray(data)
        for _ in range(self.chance.choice([0, 1, 1, 2, 8])):
            at = self.chance.randrange(min(len(data), 600) + 1)
            change = self.chance.randrange(4)
            if change == 0:
                data[at : at + 1] = self.chance.randbytes(1)
            elif change == 1:
                data[at : at + self.chance.randrange(9)] = b""
            elif change == 2:
                data[at:at] = self.chance.randbytes(self.chance.randrange(1, 9))
            else:
                data[at:at] = data[at : at + 40]
        self.connection.sendall(bytes(data))

    def __getattr__(self, name):
        return getattr(self.connection, name)


# ---- the servers --------------------------------------------------------------------------------


def usual_hub(x, case):
    body = case.files.get(x.name)
    if body is None:
        return x.answer(404, [("X-Error-Code", "EntryNotFound")], b"no")
    pairs = [("X-Repo-Commit", COMMIT)]
    if not x.name.endswith(".safetensors"):
        pairs.append(("ETag", git_sha1(body)))
        return x.answer(200, case.headers(body, pairs), body)
    pairs += [("X-Linked-Size", len(body)), ("X-Linked-Etag", f'"{sha256(body)}"')]
    target = f"http://localhost:{ports[1]}/test/{x.repo}/{x.name}?key=1"
    if case.location is not None:
        target = case.location.replace("HUB", str(ports[0])).replace("STORE", str(ports[1])).replace("SELF", x.path)
    x.answer(302, case.headers(body, pairs) + [("Location", target)], b"Found")


def reply(x):
    case = CASES.get(x.repo) or CASES["plain"]
    if not x.is_store:
        return case.hub(x, case) if case.hub else usual_hub(x, case)
    case.gets += 1
    body = case.files[x.name] if case.body is None else case.body
    return case.store(x, case, body) if case.store else x.rest(body)


def converse(connection, is_store, log):
    file = connection.makefile("rb")
    while True:
        lines = []
        while line := file.readline().decode("latin-1").strip():
            lines.append(line)
        if not lines:
            return
        headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines[1:])}
        x = Exchange(connection, lines[0], headers, is_store)
        if x.repo.startswith("fuzz-"):
            where = f"{x.repo} {x.method} {x.path} {is_store}"
            x.connection = Changed(connection, random.Random(where))
        log.write(f"{'store' if is_store else 'hub'} {lines[0]} auth={headers.get('authorization', '-')} range={x.range}\n")
        log.flush()
        reply(x)


def accept(listener, is_store, tls, log):
    def run(connection):
        try:
            if tls:
                connection = tls.wrap_socket(connection, server_side=True)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection:
                converse(connection, is_store, log)
        except (OSError, ValueError, IndexError, KeyError):
            pass  # the client ended the connection, or a case did

    while True:
        threading.Thread(target=run, args=(listener.accept()[0],), daemon=True).start()


def serve(folder, port_path):
    log = open(os.path.join(folder, "log"), "a")
    for case in CASES.values():
        if case.code == 0:
            with open(os.path.join(folder, case.name + ".model"), "wb") as file:
                file.write(case.files.get("model.safetensors", MODEL))
    tls = None
    if os.path.exists(os.path.join(folder, "tls.pem")):
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(os.path.join(folder, "tls.pem"))
    for is_store, context in ((False, None), (True, None), (False, tls)):
        listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        ports.append(listener.getsockname()[1])
        threading.Thread(target=accept, args=(listener, is_store, context, log), daemon=True).start()
    with open(port_path + ".new", "w") as file:
        file.write(f"{ports[0]} {ports[1]} {ports[2]}\n")
    os.rename(port_path + ".new", port_path)
    parent = os.getppid()
    for _ in range(3600):
        time.sleep(1)
        if os.getppid() != parent:
            return


ports = []
if __name__ == "__main__":
    if sys.argv[1] == "rows":
        for case in CASES.values():
            print(case.name, case.group, case.code, case.text, case.options, sep="|")
    else:
        serve(sys.argv[2], sys.argv[3])
