"""client.py - what the tests of the server share: requests with Python's own library."""
# SPDX-License-Identifier: Apache-2.0
import base64
import http.client
import json
import os
import socket
import struct
import subprocess
import threading
import time
import urllib.parse
import zlib

URL = os.environ.get("RENYI_URL", "")
HOST = urllib.parse.urlparse(URL)
RENYI = os.environ.get("RENYI", "")


def request(method, path, body=None, headers=None, connection=None):
    """(status, headers, bytes) of one request."""
    c = connection or http.client.HTTPConnection(HOST.hostname, HOST.port, timeout=60)
    c.request(method, path, body, headers or {})
    r = c.getresponse()
    out = r.status, dict(r.getheaders()), r.read()
    if not connection:
        c.close()
    return out


def get(path, **headers):
    status, h, body = request("GET", path, None, headers)
    return status, json.loads(body) if h.get("Content-Type", "").startswith("application/json") else body.decode()


def post(path, document, status=200, headers=None, connection=None):
    """The JSON answer; its status must be as given."""
    body = document if isinstance(document, (bytes, str)) else json.dumps(document)
    got, _, answer = request("POST", path, body, {"Content-Type": "application/json", **(headers or {})}, connection)
    assert got == status, (got, status, answer[:500])
    return json.loads(answer)


def form(path, files=(), fields=(), status=200):
    """Sends a form: files are (name, file name, bytes), fields (name, text)."""
    b, parts = "limit7", b""
    for name, text in fields:
        parts += f'--{b}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'.encode()
    for name, file, data in files:
        parts += f'--{b}\r\nContent-Disposition: form-data; name="{name}"; filename="{file}"\r\n\r\n'.encode() + data + b"\r\n"
    got, _, answer = request("POST", path, parts + f"--{b}--\r\n".encode(), {"Content-Type": f"multipart/form-data; boundary={b}"})
    assert got == status, (got, status, answer[:500])
    return json.loads(answer)


def refused(answer, code, param=None):
    """The shape of an error."""
    e = answer["error"]
    assert e["code"] == code and e["param"] == param and e["message"] and e["type"], answer
    return e["message"]


def png(seed, side=48):
    """A small PNG with stripes that differ by seed."""
    rows = b"".join(b"\0" + bytes((seed * 37 + x * 5 + y * (seed % 7 + 1) * c) % 256 for x in range(side) for c in (1, 2, 3)) for y in range(side))
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def data_url(data, kind="image/png"):
    return f"data:{kind};base64," + base64.b64encode(data).decode()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def cli(*arguments):
    """Standard output of the program."""
    return subprocess.run([RENYI, *arguments], check=True, capture_output=True, text=True).stdout


def raw(data, wait=5.0):
    """Sends bytes as they are; returns all that comes back until the server closes or time is over."""
    s = socket.create_connection((HOST.hostname, HOST.port), timeout=wait)
    s.sendall(data)
    out = b""
    try:
        while True:
            got = s.recv(65536)
            if not got:
                break
            out += got
    except socket.timeout:
        out += b"<timeout>"
    s.close()
    return out


def metric(name):
    """Value of a line of /metrics that begins with name."""
    for line in get("/metrics")[1].splitlines():
        if line.startswith("renyi_" + name + " ") or line.startswith("renyi_" + name + "{"):
            return float(line.split()[-1])
    return 0.0


def settles(name, is_right, seconds=20):
    """Waits until a metric has a value; counters of a request change after its answer is read."""
    end = time.time() + seconds
    while not is_right(metric(name)):
        assert time.time() < end, (name, metric(name))
        time.sleep(0.002)


def together(calls):
    """Runs functions at the same time; their results in order."""
    out = [None] * len(calls)
    def run(i):
        try:
            out[i] = calls[i]()
        except Exception as e:  # shown by the caller
            out[i] = e
    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for o in out:
        if isinstance(o, Exception):
            raise o
    return out
