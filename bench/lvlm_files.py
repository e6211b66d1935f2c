# lvlm_files.py - the files of bench/lvlm.py: a random LLaVA, its 8- and 4-bit files, GGUFs of it,
# an image. Made once and kept.
# SPDX-License-Identifier: Apache-2.0
import os
import random
import shutil
import subprocess

from turns import say

ARCH, LAYERS = "llava-1.5-7b", 32
SEED = "1"
TABLES, LAYER, TOWER = 2 * 32064 * 4096, 4 * 4096**2 + 3 * 4096 * 11008, 0.33e9  # weights
BYTES = {"f16": 2.0, "int8": 1.05, "int4": 0.6, "int8.gguf": 1.07, "int4.gguf": 0.57}  # of a weight


class Files:
    """Paths by number of layers; a file gets its name only when it is complete."""

    def __init__(self, a):
        self.a, self.stem = a, f"{a.scratch}/{ARCH}.{a.layers}layers"

    def path(self, kind):
        return self.stem if kind == "f16" else self.stem + ("." + kind if kind.endswith("gguf") else f".{kind}.safetensors")

    def check_space(self, kinds):
        """Stops if the files will not fit on the disk."""
        params = TABLES + self.a.layers * LAYER
        need = sum(params * BYTES[k] + 2 * TOWER for k in {"f16", *kinds} if not os.path.exists(self.path(k)))
        free = shutil.disk_usage(self.a.scratch).free
        say(f"{self.a.layers} of {LAYERS} layers; files to be made {need * 1e-9:.1f} GB, free {free * 1e-9:.1f} GB in {self.a.scratch}")
        if need > 0.95 * free:
            raise SystemExit(f"{self.a.scratch} has too little space: {need * 1e-9:.1f} GB are needed, {free * 1e-9:.1f} GB free. "
                             "--layers N makes a smaller model, --scratch DIR uses another folder")

    def make(self, kind, how):
        """`how` writes to a temporary name; then the file is renamed."""
        path = self.path(kind)
        if not os.path.exists(path):
            head, tail = os.path.split(path)
            part = f"{head}/part.{tail}"  # keeps the suffix, which tells the format
            say(f"writing {path}")
            how(part)
            os.rename(part, path)
        return path

    def renyi(self, *words):
        subprocess.run([f"{self.a.build}/renyi", *words], check=True, stdout=subprocess.DEVNULL)

    def f16(self):
        return self.make("f16", lambda out: self.renyi("init", "-q", "--arch", ARCH, "--blocks", str(self.a.layers), "--seed", SEED, out))

    def quantized(self, width):
        source = self.f16()
        return self.make(width, lambda out: self.renyi("quantize", "-q", "-m", source, "--lm", width, "-o", out))

    def gguf(self, width):
        import gguf_llama

        source = self.f16()
        return self.make(f"{width}.gguf", lambda out: gguf_llama.write(source, width, out))

    def photo(self):
        """A drawn image, 640 x 480: gradients and noise. Its content does not change the work."""
        path, dice = f"{self.a.scratch}/photo.ppm", random.Random(7)
        if not os.path.exists(path):
            pixels = bytes((x * 255 // 640 + y * k // 480 + dice.randrange(40)) & 255
                           for y in range(480) for x in range(640) for k in (40, 120, 200))
            with open(path, "wb") as f:
                f.write(b"P6\n640 480\n255\n" + pixels)
        return path
