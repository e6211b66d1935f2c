#!/usr/bin/env python3
# serve_load.py - throughput and latency of renyi serve beside `renyi bench`, what a single client pays, FastAPI with
# ONNX Runtime beside it, and a load with faults (--soak).
# SPDX-License-Identifier: Apache-2.0
#
# Clients are threads of this process with raw sockets and prepared bytes, so that they take little of the machine.
# `renyi bench` runs before and after each load; its mean is the measure, because machines change their speed.
import argparse
import collections
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def options():
    p = argparse.ArgumentParser(description="Load on renyi serve, on this machine alone.")
    p.add_argument("--build", default="build")
    p.add_argument("--models", default="builtin,small", help="of builtin,tiny,small (builtin,small)")
    p.add_argument("--threads", type=int, default=os.cpu_count(), help="of the model (all cores)")
    p.add_argument("--batch", type=int, default=8, help="--max-batch, and the batch of renyi bench (8)")
    p.add_argument("--clients", type=int, default=16)
    p.add_argument("--seconds", type=float, default=20.0, help="of each load (20)")
    p.add_argument("--soak", type=float, default=0.0, help="instead: seconds of full load with faults; 600 is the test of a release")
    p.add_argument("--peer-python", default="", help="a Python with FastAPI and ONNX Runtime")
    p.add_argument("--json", help="everything measured")
    return p.parse_args()


# ---- the server

class Server:
    def __init__(self, command, ready):
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        if ready not in line:
            self.log.seek(0)
            raise SystemExit(f"{command[0]} did not start: {line}{self.log.read()[-2000:]}")
        self.port = int(line.strip().rsplit(":", 1)[1])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def memory_mb(self):
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        return 0.0

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def renyi_server(o, model, *more):
    return Server([os.path.join(o.build, "renyi"), "serve", "-q", "--port", "0", "--log", "none", "-m", model, "-t", str(o.threads), "--max-batch", str(o.batch), *more], "listening on")


# ---- clients

def form(image):
    body = b'--b\r\nContent-Disposition: form-data; name="image"; filename="a.jpg"\r\n\r\n' + image + b"\r\n--b--\r\n"
    return b"POST /v1/classify HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def connect(port):
    s = socket.create_connection(("127.0.0.1", port), timeout=120)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def ask(s, request):
    """(status, body) of one request on an open connection."""
    s.sendall(request)
    got = b""
    while b"\r\n\r\n" not in got:
        piece = s.recv(65536)
        if not piece:
            raise ConnectionError("closed")
        got += piece
    head, body = got.split(b"\r\n\r\n", 1)
    length = next(int(l.split(b":")[1]) for l in head.split(b"\r\n") if l.lower().startswith(b"content-length"))
    while len(body) < length:
        piece = s.recv(65536)
        if not piece:
            raise ConnectionError("closed")
        body += piece
    return int(head[9:12]), body


def load(port, request, clients, seconds):
    """Closed loop: (images per second, sorted latencies in ms, failures)."""
    latencies, failed, lock = [], collections.Counter(), threading.Lock()
    start = time.perf_counter() + 1.0  # the first second is not counted
    end = start + seconds

    def run():
        s, mine = connect(port), []
        while time.perf_counter() < end:
            at = time.perf_counter()
            status, _ = ask(s, request)
            now = time.perf_counter()
            if status != 200:
                failed[status] += 1
            elif start <= now <= end:  # answers in the window, whenever their requests came
                mine.append(1e3 * (now - at))
        s.close()
        with lock:
            latencies.extend(mine)

    threads = [threading.Thread(target=run) for _ in range(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return len(latencies) / seconds, sorted(latencies), dict(failed)


def share(sorted_values, q):
    return sorted_values[min(len(sorted_values) - 1, int(q * len(sorted_values)))] if sorted_values else float("nan")


def single(port, request, n=100):
    """What one client pays over the model and the decoder, ms: median over n requests."""
    s, extra = connect(port), []
    for i in range(n + 10):
        at = time.perf_counter()
        _, body = ask(s, request)
        ms = 1e3 * (time.perf_counter() - at)
        image = json.loads(body)["data"][0]
        if i >= 10:
            extra.append(ms - image["ms"] - image["ms_decode"])
    s.close()
    return share(sorted(extra), 0.5)


# ---- measuring

def model_file(o, name):
    if name == "builtin":
        return "builtin"
    folder = os.path.join(o.build, "bench")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"vit_{name}_patch16_224.seed1.safetensors")
    if not os.path.exists(path):
        subprocess.run([os.path.join(o.build, "renyi"), "init", "-q", "--arch", f"vit_{name}_patch16_224", "--seed", "1", path], check=True)
    return path


def bench(o, model):
    """Images per second of `renyi bench` with the same batch size and threads."""
    out = subprocess.run([os.path.join(o.build, "renyi"), "bench", "-q", "-m", model, "-b", str(o.batch), "-t", str(o.threads), "--no-peak", "--json"], check=True, capture_output=True, text=True).stdout
    return json.loads(out)["results"][0]["images_per_second"]


def photo():
    """A picture of the size that the models take, as a client would send it."""
    return open(os.path.join(ROOT, "assets", "golf_ball.png"), "rb").read()


def measure_peer(o, name, request):
    command = [o.peer_python, os.path.join(ROOT, "bench", "serve_fastapi.py"), model_file(o, name), f"vit_{name}_patch16_224", str(o.threads), os.path.join(o.build, "bench")]
    server = Server(command, "listening on")
    rate, latencies, failed = load(server.port, request, o.clients, o.seconds)
    server.stop()
    return {"images_per_second": rate, "p50_ms": share(latencies, 0.5), "p99_ms": share(latencies, 0.99), "failed": failed}


def measure(o, name):
    model, request = model_file(o, name), form(photo())
    before = bench(o, model)
    server = renyi_server(o, model)
    alone = single(server.port, request)
    rate, latencies, failed = load(server.port, request, o.clients, o.seconds)
    code = server.stop()
    reference = (before + bench(o, model)) / 2
    row = {"model": name, "threads": o.threads, "batch": o.batch, "clients": o.clients, "bench_images_per_second": reference, "images_per_second": rate, "ratio": rate / reference,
           "p50_ms": share(latencies, 0.5), "p99_ms": share(latencies, 0.99), "single_client_extra_ms": alone, "failed": failed, "exit_code": code}
    print(f"{name}: {rate:.1f} images/s with {o.clients} clients, {row['ratio']:.3f} of renyi bench ({reference:.1f}); latency p50 {row['p50_ms']:.1f} ms, p99 {row['p99_ms']:.1f} ms; "
          f"a single client pays {alone:.2f} ms over model and decoder", flush=True)
    if o.peer_python and name != "builtin":
        row["fastapi_onnxruntime"] = peer = measure_peer(o, name, request)
        print(f"{name}: FastAPI + ONNX Runtime {peer['images_per_second']:.1f} images/s, p50 {peer['p50_ms']:.1f} ms, p99 {peer['p99_ms']:.1f} ms: renyi serve is {rate / peer['images_per_second']:.2f} times as fast", flush=True)
    return row


# ---- a load with faults

def bad_client(rng, port, request):
    """One of: cut off in the middle, closed before the answer, garbage, a slow body."""
    s, how = connect(port), rng.randrange(4)
    try:
        if how == 0:
            s.sendall(request[:rng.randrange(1, len(request))])
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif how == 1:
            s.sendall(request)
        elif how == 2:
            s.sendall(bytes(rng.randrange(256) for _ in range(200)) + b"\r\n\r\n")
            s.settimeout(2)
            s.recv(1000)
        else:
            s.sendall(request[:400])
            for i in range(5):
                time.sleep(0.2)
                s.sendall(request[400 + i:401 + i])
    except OSError:
        pass
    finally:
        s.close()


def soak(o):
    server, request = renyi_server(o, "builtin", "--body-seconds", "5", "--max-per-address", "0"), form(photo())
    want = json.loads(ask(connect(server.port), request)[1])["data"][0]["top"]
    counts, failed, until, lock = collections.Counter(), [], time.time() + o.soak, threading.Lock()

    def good():
        s = connect(server.port)
        try:
            while time.time() < until and not failed:
                status, body = ask(s, request)
                if status != 200 or json.loads(body)["data"][0]["top"] != want:
                    failed.append((status, body[:300]))
                with lock:
                    counts["good"] += 1
        except Exception as e:
            failed.append(repr(e))

    def bad(seed):
        rng = random.Random(seed)
        while time.time() < until and not failed:
            bad_client(rng, server.port, request)
            with lock:
                counts["bad"] += 1
            time.sleep(0.01)

    threads = [threading.Thread(target=good) for _ in range(o.clients)] + [threading.Thread(target=bad, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    memory = []
    while time.time() < until and not failed and server.process.poll() is None:
        time.sleep(max(1.0, min(10.0, o.soak / 20)))
        memory.append(server.memory_mb())
    for t in threads:
        t.join()
    time.sleep(6.0)  # slow bodies are given up
    left, code = server.descriptors(), server.stop()
    half = memory[len(memory) // 4:len(memory) // 2] or memory
    print(f"soak: {o.soak:.0f} s, {counts['good']} good and {counts['bad']} bad requests, {len(failed)} good ones failed; memory {min(memory):.0f} to {max(memory):.0f} MB, "
          f"second quarter {sum(half) / len(half):.1f}, end {memory[-1]:.1f} MB; {left} descriptors at the end; exit code {code}")
    if failed:
        print(failed[0])
    return 1 if failed or code or left > 40 or memory[-1] > 1.2 * sum(half) / len(half) + 8 else 0


def main():
    o = options()
    if o.soak:
        return soak(o)
    rows = [measure(o, name) for name in o.models.split(",")]
    if not o.peer_python:
        print("FastAPI + ONNX Runtime: not measured; BENCH_PYTHON names a Python that has them")
    if o.json:
        with open(o.json, "w") as f:
            json.dump(rows, f, indent=1)
    return 1 if any(r["failed"] or r["exit_code"] for r in rows) else 0


sys.exit(main())
