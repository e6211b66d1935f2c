#!/usr/bin/env python3
"""A small Hugging Face server for the tests of `renyi pull`, with faults on demand.

Usage: hub_server.py MODEL_FILE LOG PORT_FILE      (standard library only)

Two servers on ephemeral ports of 127.0.0.1: the hub, which knows repositories, and the store that it
redirects to for large files. Both ports are written to PORT_FILE when they listen. Every request is
one line of LOG: "hub|store METHOD PATH auth=TOKEN range=RANGE". The repository name chooses what
goes wrong; see REPOSITORIES. Ends by itself after five minutes.

SPDX-License-Identifier: Apache-2.0
"""
import hashlib
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_test_secret"


def make_repositories(model):
    config = json.dumps({"architecture": "vit_tiny_patch16_224"}).encode()
    plain = {"config.json": config, "model.safetensors": model}
    half = len(model) // 2
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    evil = {"weight_map": {"a": "../../../../evil.safetensors"}}
    return {
        "test/good": dict(plain, **{"preprocessor_config.json": b"{}"}),
        "test/noconfig": {"model.safetensors": model},
        "test/noweights": {"config.json": config},
        "test/sharded": {
            "config.json": config,
            "model.safetensors.index.json": json.dumps(index).encode(),
            "model-00001-of-00002.safetensors": model[:half],
            "model-00002-of-00002.safetensors": model[half:],
        },
        "test/evilindex": {"config.json": config, "model.safetensors.index.json": json.dumps(evil).encode()},
        "test/evilcommit": plain,  # the commit is no commit but a path
        "test/evildowngrade": plain,  # redirects to a file:// address
        "test/cut": plain,  # the store closes the connection half-way unless asked for a range
        "test/cutnorange": plain,  # the same, and later ignores the range
        "test/wronghash": plain,  # other bytes than the digest promises
        "test/wrongconfig": plain,  # the same for a small file
        "test/toolong": plain,  # more bytes than announced
        "test/tooshort": plain,  # fewer bytes than announced, in a complete answer
        "test/stall": plain,  # stops sending without closing
        "test/private": plain,  # 401 without the token
        "test/loop": plain,  # the store redirects to itself for ever
        "test/huge": plain,  # says that a file has 100 TB
    }


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # the client went away in mid-answer, as some tests want it to


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def note(self, server):
        token = self.headers.get("Authorization", "-").replace("Bearer ", "")
        with self.server.log_lock, open(self.server.log_path, "a") as log:
            log.write(f"{server} {self.command} {self.path} auth={token} range={self.headers.get('Range', '-')}\n")

    def reply(self, status, headers=(), body=b""):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status, code):
        self.reply(status, [("X-Error-Code", code)] if code else [], b"no")

    def send_file(self, body, ranges=True, extra=()):
        """The bytes, or from the start of the range on."""
        wanted = self.headers.get("Range")
        if wanted and ranges:
            start = int(wanted.split("=")[1].split("-")[0])
            if start >= len(body):
                return self.refuse(416, "")
            where = ("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            return self.reply(206, [where, *extra], body[start:])
        return self.reply(200, extra, body)

    def do_HEAD(self):
        self.handle_request()

    def do_GET(self):
        self.handle_request()


class Hub(Handler):
    def handle_request(self):
        self.note("hub")
        parts = urlsplit(self.path).path.strip("/").split("/")
        if len(parts) < 5 or parts[2] != "resolve":
            return self.refuse(404, "")
        repo, revision, name = "/".join(parts[:2]), unquote(parts[3]), "/".join(parts[4:])
        if repo == "test/renamed":
            return self.reply(307, [("Location", f"/test/good/resolve/{parts[3]}/{name}")])
        files = self.server.repositories.get(repo)
        if files is None:  # as the real one: it does not tell private from absent
            return self.refuse(401, "RepoNotFound")
        if repo == "test/private" and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.refuse(401, "RepoNotFound")
        if revision not in ("main", "refs/pr/1", COMMIT):
            return self.refuse(404, "RevisionNotFound")
        if name not in files:
            return self.refuse(404, "EntryNotFound")
        self.answer(repo, name, files[name])

    def answer(self, repo, name, body):
        commit = "../../../../etc" if repo == "test/evilcommit" else COMMIT
        headers = [("X-Repo-Commit", commit)]
        if name.endswith(".safetensors"):
            return self.redirect(repo, name, body, headers)
        etag = hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()
        if repo == "test/wrongconfig":
            etag = "f" * 40
        self.send_file(body, True, headers + [("ETag", f'"{etag}"')])

    def redirect(self, repo, name, body, headers):
        size = {"test/toolong": len(body) - 10, "test/tooshort": len(body) + 10, "test/huge": 10**14}
        digest = hashlib.sha256(body).hexdigest()
        if repo == "test/wronghash":
            digest = hashlib.sha256(b"something else").hexdigest()
        target = f"http://localhost:{self.server.store_port}/{repo}/{name}?key=1"
        if repo == "test/evildowngrade":
            target = "file:///etc/hostname"
        headers += [("X-Linked-Etag", f'"{digest}"'), ("X-Linked-Size", str(size.get(repo, len(body))))]
        self.reply(302, headers + [("Location", target)], b"Found. Redirecting")


class Store(Handler):
    def handle_request(self):
        self.note("store")
        parts = urlsplit(self.path).path.strip("/").split("/")
        repo, name = "/".join(parts[:2]), "/".join(parts[2:])
        body = self.server.repositories[repo][name]
        is_resumed = "Range" in self.headers
        if repo == "test/loop":
            return self.reply(302, [("Location", self.path)])
        if repo == "test/stall" or (repo in ("test/cut", "test/cutnorange") and not is_resumed):
            return self.send_half(body, stall=repo == "test/stall")
        self.send_file(body, ranges=repo != "test/cutnorange")

    def send_half(self, body, stall):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2])
        self.wfile.flush()
        if stall:
            time.sleep(30)
        self.close_connection = True


def main():
    model_path, log_path, port_path = sys.argv[1:4]
    with open(model_path, "rb") as file:
        repositories = make_repositories(file.read())
    store = Server(("127.0.0.1", 0), Store)
    hub = Server(("127.0.0.1", 0), Hub)
    lock = threading.Lock()
    for server in (store, hub):
        server.repositories, server.log_path, server.log_lock = repositories, log_path, lock
        server.store_port = store.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
    with open(port_path + ".new", "w") as file:
        file.write(f"{hub.server_address[1]} {store.server_address[1]}\n")
    os.rename(port_path + ".new", port_path)
    time.sleep(300)


if __name__ == "__main__":
    main()
