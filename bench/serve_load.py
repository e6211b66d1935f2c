#!/usr/bin/env python3
# serve_load.py - throughput and latency of renyi serve beside `renyi bench`, what a single client pays, FastAPI with
# ONNX Runtime beside it, and a load with faults (--soak).
# SPDX-License-Identifier: Apache-2.0
#
# The load comes from http_load.c, because it runs on the machine that is measured. `renyi bench` runs before and after
# each load; its mean is the measure, because machines change their speed. The server also decodes, which renyi bench does
# not. With D ms to decode an image on one core and R images/s of renyi bench on N cores, no server can give more than
# 1 / (1 / R + D / 1000 / N) images/s: this bound is printed, too.
import argparse
import collections
import json
import os
import random
import signal
import statistics
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
    p.add_argument("--seconds", type=float, default=7.0, help="of each load (7)")
    p.add_argument("--rounds", type=int, default=3, help="loads, with renyi bench between them; medians are printed (3)")
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

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

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


def load_program(o):
    """http_load.c, built for this machine."""
    source, program = os.path.join(ROOT, "bench", "http_load.c"), os.path.join(o.build, "bench", "http_load")
    os.makedirs(os.path.dirname(program), exist_ok=True)
    if not os.path.exists(program) or os.path.getmtime(program) < os.path.getmtime(source):
        subprocess.run([os.environ.get("CC", "cc"), "-O2", source, "-o", program], check=True)
    return program


def load(o, port, request):
    """Closed loop of all clients: images per second, latencies in ms, failures, CPU seconds of the clients."""
    with tempfile.NamedTemporaryFile(suffix=".http") as f:
        f.write(request)
        f.flush()
        out = subprocess.run([load_program(o), str(port), f.name, str(o.clients), str(o.seconds)], check=True, capture_output=True, text=True).stdout
    return json.loads(out)


def single(port, request, n=100):
    """Medians over n requests of one client, ms: what it pays over the model and the decoder, and the decoder."""
    s, extra, decode = connect(port), [], []
    for i in range(n + 10):
        at = time.perf_counter()
        _, body = ask(s, request)
        ms = 1e3 * (time.perf_counter() - at)
        image = json.loads(body)["data"][0]
        if i >= 10:
            extra.append(ms - image["ms"] - image["ms_decode"])
            decode.append(image["ms_decode"])
    s.close()
    return statistics.median(extra), statistics.median(decode)


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


def fastapi_server(o, name):
    return Server([o.peer_python, os.path.join(ROOT, "bench", "serve_fastapi.py"), model_file(o, name), f"vit_{name}_patch16_224", str(o.threads), os.path.join(o.build, "bench")], "listening on")


def measure_round(o, model, server, peer, request, decode):
    """renyi bench, the server, renyi bench, the other server."""
    before, cpu = bench(o, model), server.cpu_seconds()
    got = load(o, server.port, request)
    cpu, after = server.cpu_seconds() - cpu, bench(o, model)
    reference, rate = (before + after) / 2, got["images_per_second"]
    bound = 1 / (1 / reference + decode / 1e3 / o.threads)
    seconds = o.seconds + 1
    row = {**got, "bench_images_per_second": reference, "ratio": rate / reference, "bound_images_per_second": bound, "ratio_of_bound": rate / bound,
           "server_cores": cpu / seconds, "load_cores": got["cpu_seconds"] / seconds}
    if peer:
        row["peer"] = load(o, peer.port, request)
        row["ratio_to_peer"] = rate / row["peer"]["images_per_second"]
    return row


def verdict(value, limit):
    return f"{value:.3f} ({limit} asked: {'yes' if value >= limit else 'NO'})"


def measure(o, name):
    model, request = model_file(o, name), form(photo())
    server = renyi_server(o, model)
    peer = fastapi_server(o, name) if o.peer_python and name != "builtin" else None
    extra, decode = single(server.port, request)
    rounds = [measure_round(o, model, server, peer, request, decode) for _ in range(o.rounds)]
    code = server.stop()
    middle = {k: statistics.median(r[k] for r in rounds) for k in rounds[0] if k not in ("failed", "peer")}
    failed = sum(r["failed"] for r in rounds)
    print(f"{name}: {middle['images_per_second']:.1f} images/s with {o.clients} clients, latency p50 {middle['p50_ms']:.1f} ms, p99 {middle['p99_ms']:.1f} ms; medians of {o.rounds} loads\n"
          f"  of renyi bench without decoding ({middle['bench_images_per_second']:.1f}): {verdict(middle['ratio'], 0.95)}\n"
          f"  of the bound with decoding, {decode:.2f} ms an image ({middle['bound_images_per_second']:.1f}): {verdict(middle['ratio_of_bound'], 0.95)}, {min(r['ratio_of_bound'] for r in rounds):.3f} to {max(r['ratio_of_bound'] for r in rounds):.3f}\n"
          f"  cores used: {middle['server_cores']:.2f} by the server, {middle['load_cores']:.3f} by the clients\n"
          f"  a single client pays {extra:.2f} ms over model and decoder (1 asked: {'yes' if extra <= 1 else 'NO'})", flush=True)
    row = {"model": name, "threads": o.threads, "batch": o.batch, "clients": o.clients, **middle, "single_client_extra_ms": extra, "decode_ms": decode, "failed": failed, "exit_code": code, "rounds": rounds}
    if peer:
        peer.stop()
        other = {k: statistics.median(r["peer"][k] for r in rounds) for k in rounds[0]["peer"]}
        print(f"  FastAPI + ONNX Runtime: {other['images_per_second']:.1f} images/s, p50 {other['p50_ms']:.1f} ms, p99 {other['p99_ms']:.1f} ms; renyi serve is {middle['ratio_to_peer']:.2f} times as fast", flush=True)
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
