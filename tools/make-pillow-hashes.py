#!/usr/bin/env python3
"""Writes tests/unit/image/pillow_hashes.h: hashes of what Pillow, torchvision and timm make of an
image drawn by a formula, for many sizes, filters and crop modes. Run by hand when the list changes:

    python3 -m venv v && v/bin/pip install pillow==13.0.0 torch torchvision timm
    v/bin/python tools/make-pillow-hashes.py > tests/unit/image/pillow_hashes.h

SPDX-License-Identifier: Apache-2.0"""
import itertools
import sys

import numpy as np
import PIL
from PIL import Image
import timm
from timm.data import create_transform

FILTERS = ["bicubic", "bilinear", "lanczos"]
MODES = ["center", "squash", "border"]
MEAN = (0.485, 0.456, 0.406)

# (width, height) of the image: landscape, portrait, square, tall and wide strips, tiny, large.
IMAGES = [(500, 375), (375, 500), (333, 333), (40, 300), (300, 40), (1, 1), (2, 97), (97, 2),
            (224, 224), (248, 248), (248, 330), (1037, 691), (64, 64)]
# (input size, crop_pct): timm's usual ones, the whole image, an odd size, more than the image.
TARGETS = [(224, 0.9), (224, 0.875), (224, 1.0), (31, 0.95), (64, 1.25)]


def make_image(width, height):
    """Edges, ramps and noise; the same formula is in tests/fixtures/image_test.h."""
    y, x, c = np.meshgrid(np.arange(height, dtype=np.uint32), np.arange(width, dtype=np.uint32),
                          np.arange(3, dtype=np.uint32), indexing="ij")
    noise = ((x * np.uint32(73856093)) ^ (y * np.uint32(19349663)) ^ (c * np.uint32(83492791)))
    noise = (noise * np.uint32(2654435761)) >> np.uint32(24)
    ramp = (x * np.uint32(3) + y * np.uint32(5) + c * np.uint32(40)) & np.uint32(255)
    edge = np.where(((x // 7 + y // 11) & 1) == 1, np.uint32(255), np.uint32(0))
    kind = (x // 32 + y // 32) % 3
    return np.where(kind == 0, noise, np.where(kind == 1, ramp, edge)).astype(np.uint8)


def fnv1a(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def main():
    print(f"/* pillow_hashes.h - made by tools/make-pillow-hashes.py with Pillow {PIL.__version__} and timm\n"
          f" * {timm.__version__}; not edited by hand. FNV-1a of [size, size, 3] bytes.\n"
          " * SPDX-License-Identifier: Apache-2.0 */\n"
          "/* clang-format off */\n"
          "static const struct pillow_case {\n"
          "    uint32_t width, height, size;\n"
          "    double crop_pct;\n"
          "    renyi_crop_mode mode;\n"
          "    renyi_interpolation filter;\n"
          "    uint64_t hash;\n"
          "} PILLOW_CASES[] = {")
    for (w, h), (size, pct), mode, name in itertools.product(IMAGES, TARGETS, MODES, FILTERS):
        if size == 224 and (w, h) not in IMAGES[:4] and name != "bicubic":
            continue  # keeps the list short
        transform = create_transform(size, crop_pct=pct, crop_mode=mode, interpolation=name,
                                     mean=MEAN, std=(1, 1, 1), normalize=False)
        try:
            out = transform(Image.fromarray(make_image(w, h)))
        except ValueError:  # "border" of a strip thinner than half a pixel
            continue
        data = np.ascontiguousarray(out.permute(1, 2, 0).numpy()).tobytes()
        print(f"    {{{w}, {h}, {size}, {pct}, RENYI_CROP_{mode.upper()}, RENYI_{name.upper()}, "
              f"0x{fnv1a(data):016x}u}},")
        print(w, h, size, pct, mode, name, file=sys.stderr)
    print("};\n/* clang-format on */")


if __name__ == "__main__":
    main()
