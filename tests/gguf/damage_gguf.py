#!/usr/bin/env python3
"""damage_gguf.py RENYI FILE... [--stride N] [--mmproj] - damages every field of GGUF files: the header, the key, kind
and bytes of each value, the name, sizes, type and offset of each tensor, and the end of the file.

Each damaged file goes to `renyi inspect` and to `renyi ask` (--mmproj: `renyi encode-image`). Allowed are success, or
exit code 1 or 2 with one message that names the file. --stride N takes every Nth damage.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import pathlib
import struct
import subprocess
import sys

TEXT, ARRAY = 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
U64 = [0, 1, 2, 3, 255, 2**16, 2**31, 2**32 - 1, 2**32, 2**40, 2**63 - 1, 2**63, 2**64 - 32, 2**64 - 1]
NAN, INFINITY, HUGE = struct.pack("<f", float("nan")), struct.pack("<f", float("inf")), struct.pack("<f", 3e38)


class Fields:
    """Collects (place, bytes that replace what is there, what it is)."""

    def __init__(self, data):
        self.data, self.at, self.found = data, 0, []

    def uint(self, size, what):
        number = int.from_bytes(self.data[self.at:self.at + size], "little")
        for other in [*U64, number + 1, number - 1, 2 * number, number // 2, number + 32]:
            if other != number and 0 <= other < 2**(8 * size):
                self.found.append((self.at, other.to_bytes(size, "little"), f"{what} {number} -> {other}"))
        self.at += size
        return number

    def raw(self, size, what):
        for byte in (0, 1, 0x7f, 0x80, 0xff):
            if size:
                self.found.append((self.at, bytes([byte]) * size, f"{what} -> {byte:#x} x {size}"))
        if size == 4:
            self.found += [(self.at, bits, f"{what} -> {bits.hex()}") for bits in (NAN, INFINITY, HUGE)]
        self.at += size

    def text(self, what):
        size = self.uint(8, f"length of {what}")
        name = self.data[self.at:self.at + size].decode("utf-8", "replace")
        for byte in b"\0\x1b\xff":
            if size:
                self.found.append((self.at, bytes([byte]), f"{what} '{name[:30]}' begins with {byte:#x}"))
        self.at += size
        return name

    def elements(self, kind, count, what):
        for i in range(count):
            here = self.found
            if 2 < i < count - 2:  # the first and the last are enough
                self.found = []
            if kind == TEXT:
                self.text(what)
            else:
                self.uint(SIZES[kind], what) if kind not in (6, 12) else self.raw(SIZES[kind], what)
            self.found = here

    def value(self):
        key = self.text("key")
        kind = self.uint(4, f"kind of {key}")
        count = 1
        if kind == ARRAY:
            kind = self.uint(4, f"kind of the elements of {key}")
            count = self.uint(8, f"count of {key}")
        self.elements(kind, count, key)

    def tensor(self):
        name = self.text("tensor")
        for i in range(self.uint(4, f"dimensions of {name}")):
            self.uint(8, f"size {i} of {name}")
        self.uint(4, f"type of {name}")
        self.uint(8, f"offset of {name}")

    def file(self):
        self.raw(4, "magic")
        self.uint(4, "version")
        tensors, values = self.uint(8, "number of tensors"), self.uint(8, "number of values")
        for _ in range(values):
            self.value()
        for _ in range(tensors):
            self.tensor()
        step = max(1, len(self.data) // 40)
        self.found += [(size, None, f"cut to {size} bytes") for size in range(0, len(self.data), step)]
        return self.found


def damaged(data, place, new):
    return data[:place] if new is None else data[:place] + new + data[place + len(new):]


def fault(run, name):
    """What is wrong with an outcome, or None."""
    err = run.stderr.decode("utf-8", "replace")
    if run.returncode not in (0, 1, 2) or "Sanitizer" in err or "runtime error" in err:
        return "not an error of the program"
    if run.returncode == 0:
        return None
    lines = [line for line in err.splitlines() if line.startswith("renyi: ") and "warning" not in line]
    if len(lines) == 1 and "the context holds" in lines[0]:  # a context_length of 1 is possible
        return None
    if len(lines) != 1 or name not in lines[0]:
        return "not one message that names the file"
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("renyi")
    p.add_argument("files", nargs="+", type=pathlib.Path)
    p.add_argument("--stride", type=int, default=1)
    p.add_argument("--mmproj", action="store_true")
    a = p.parse_args()
    pathlib.Path("damaged.ppm").write_bytes(b"P6 2 2 255\n" + bytes(12))
    target = pathlib.Path("damaged.gguf")
    verbs = [["inspect", str(target)]]
    verbs += [["encode-image", "-q", "-m", str(target), "damaged.ppm", "-o", "damaged.safetensors"] if a.mmproj else
              ["ask", "-q", "-m", str(target), "--max-new-tokens", "1", "the cat"]]
    n = codes = bad = 0
    for path in a.files:
        data = path.read_bytes()
        for place, new, what in Fields(data).file()[::a.stride]:
            target.write_bytes(damaged(data, place, new))
            for verb in verbs:
                run = subprocess.run([a.renyi, *verb], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
                why = fault(run, target.name)
                n += 1
                codes += run.returncode == 0
                if why:
                    bad += 1
                    print(f"{path.name}: {what}: {verb[0]}: {why}: exit code {run.returncode}\n"
                          f"  {run.stderr.decode('utf-8', 'replace')[:1500]}", file=sys.stderr)
    print(f"{n} runs, {codes} of them fine, {bad} bad")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
