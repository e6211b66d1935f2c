#!/usr/bin/env python3
"""Writes tests/unit/train/augment_expected.h: hashes of what Pillow makes of an image drawn by a
formula, for every operation of RandAugment, the crop and the blur; and timm's arguments of the
operations at several magnitudes. Run by hand when the list changes:

    python3 -m venv v && v/bin/pip install pillow==13.0.0 torch torchvision timm
    v/bin/python tools/ref/augment.py > tests/unit/train/augment_expected.h

SPDX-License-Identifier: Apache-2.0"""
import pathlib
import runpy
import sys
from unittest import mock

import numpy as np
import PIL
from PIL import Image, ImageFilter, ImageOps
import timm
from timm.data import auto_augment as aa
from torchvision.transforms import functional as F

hashes = runpy.run_path(str(pathlib.Path(__file__).parent.parent / "make-pillow-hashes.py"))
make_image, fnv1a = hashes["make_image"], hashes["fnv1a"]

FILL = (124, 116, 104)  # ImageNet's mean
# In the order of ry_rand_op.
NAMES = aa._RAND_INCREASING_TRANSFORMS
OPERATIONS = ["AUTO_CONTRAST", "EQUALIZE", "INVERT", "ROTATE", "POSTERIZE", "SOLARIZE", "SOLARIZE_ADD", "COLOR",
         "CONTRAST", "BRIGHTNESS", "SHARPNESS", "SHEAR_X", "SHEAR_Y", "TRANSLATE_X", "TRANSLATE_Y"]
MOVES = ["ROTATE", "SHEAR_X", "SHEAR_Y", "TRANSLATE_X", "TRANSLATE_Y"]
SIZES = [(61, 47), (33, 120), (2, 3), (1, 1)]
MAGNITUDES = [0.0, 1.0, 3.3, 5.0, 7.77, 9.0, 9.49, 10.0]


def argument(name, magnitude, negate):
    level = aa.LEVEL_TO_ARG[name]
    if level is None:
        return None
    with mock.patch.object(aa.random, "random", return_value=0.9 if negate else 0.1):
        return level(magnitude, {})[0]


def draw(width, height, is_dim):
    rgb = make_image(width, height)
    return Image.fromarray(rgb // 3 + 40 if is_dim else rgb)


def digest(image):
    return f"0x{fnv1a(np.asarray(image).tobytes()):016x}u"


def operations():
    for (w, h) in SIZES:
        for name, operation in zip(NAMES, OPERATIONS):
            for magnitude in ([9.0] if w < 10 else [1.0, 3.3, 9.49]):
                for negate in ([0, 1] if "crease" in name or operation in MOVES else [0]):
                    arg = argument(name, magnitude, negate)
                    if arg is None and magnitude > 1.0 and w > 10:
                        continue
                    for filter_name in (["BICUBIC", "BILINEAR"] if operation in MOVES else ["BICUBIC"]):
                        for is_dim in ([0, 1] if arg is None else [0]):
                            args = () if arg is None else (arg,)
                            out = aa.NAME_TO_OP[name](draw(w, h, is_dim), *args, fillcolor=FILL,
                                                      resample=getattr(Image.Resampling, filter_name))
                            value = 0.0 if arg is None else float(arg)
                            print(f"    {{RY_RAND_{operation}, {w}, {h}, {is_dim}, {value!r}, RENYI_{filter_name}, "
                                  f"{digest(out)}}},")


def crops():
    for (w, h, box, size) in [(176, 176, (10, 20, 100, 130), 160), (176, 176, (0, 0, 176, 176), 160),
                              (500, 375, (100, 333, 93, 121), 64), (61, 47, (3, 5, 40, 33), 40),
                              (61, 47, (46, 60, 1, 1), 16), (61, 300, (0, 0, 300, 40), 32)]:
        for filter_name in ["BICUBIC", "BILINEAR"]:
            for flip in [0, 1]:
                out = F.resized_crop(draw(w, h, 0), *box, (size, size),
                                     getattr(F.InterpolationMode, filter_name))
                out = F.hflip(out) if flip else out
                print(f"    {{{w}, {h}, {{{box[1]}, {box[0]}, {box[3]}, {box[2]}}}, {size}, RENYI_{filter_name}, "
                      f"{flip}, {digest(out)}}},")


def blurs():
    for (w, h) in SIZES:
        for radius in [0.1, 0.5, 1.0, 1.37, 2.0, 9.5]:
            out = draw(w, h, 0).filter(ImageFilter.GaussianBlur(radius))
            print(f"    {{{w}, {h}, {radius!r}, {digest(out)}}},")
        print(f"    {{{w}, {h}, -1.0, {digest(ImageOps.grayscale(draw(w, h, 0)).convert('RGB'))}}},")


def arguments():
    for name, operation in zip(NAMES, OPERATIONS):
        for magnitude in MAGNITUDES:
            for negate in [0, 1]:
                arg = argument(name, magnitude, negate)
                if arg is not None:
                    print(f"    {{RY_RAND_{operation}, {magnitude!r}, {negate}, {float(arg)!r}}},")


def main():
    print("/* augment_expected.h - made by tools/ref/augment.py with Pillow "
          f"{PIL.__version__} and timm {timm.__version__};\n"
          " * not edited by hand. FNV-1a of [height, width, 3] bytes.\n"
          " * SPDX-License-Identifier: Apache-2.0 */\n"
          "/* clang-format off */\n"
          f"static const uint8_t FILL[3] = {{{FILL[0]}, {FILL[1]}, {FILL[2]}}};\n\n"
          "static const struct op_case {\n"
          "    ry_rand_op op;\n"
          "    uint32_t width, height;\n"
          "    int is_dim; /* levels / 3 + 40 */\n"
          "    double argument;\n"
          "    renyi_interpolation filter;\n"
          "    uint64_t hash;\n"
          "} OPS[] = {")
    operations()
    print("};\n\nstatic const struct crop_case {\n"
          "    uint32_t width, height;\n"
          "    ry_crop crop;\n"
          "    uint32_t size;\n"
          "    renyi_interpolation filter;\n"
          "    int flip;\n"
          "    uint64_t hash;\n"
          "} CROPS[] = {")
    crops()
    print("};\n\n/* Radius -1: the image in gray. */\n"
          "static const struct blur_case {\n"
          "    uint32_t width, height;\n"
          "    double radius;\n"
          "    uint64_t hash;\n"
          "} BLURS[] = {")
    blurs()
    print("};\n\nstatic const struct argument_case {\n"
          "    ry_rand_op op;\n"
          "    double magnitude;\n"
          "    int negate;\n"
          "    double argument;\n"
          "} ARGUMENTS[] = {")
    arguments()
    print("};")


if __name__ == "__main__":
    sys.exit(main())
