#!/usr/bin/env python3
"""Draws the tiny images of fuzz/seeds/fuzz_{jpeg,png,webp,ppm}, whole and damaged, and writes
tests/unit/image/image_expected.h: what Pillow makes of each of them. Every image is computed by a
formula. Run by hand when the list changes:

    python3 -m venv v && v/bin/pip install pillow==13.0.0 numpy
    v/bin/python tools/make-image-seeds.py

SPDX-License-Identifier: Apache-2.0"""
import io
import pathlib
import struct
import warnings
import zlib

import numpy as np
import PIL
from PIL import Image, ImageOps

warnings.simplefilter("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZE = (13, 9)
rng = np.random.RandomState(1)
files = {}  # "png/grey8" -> bytes


def smooth(width, height, channels):
    y, x = np.mgrid[0:height, 0:width]
    planes = [127 + 90 * np.sin(x / (3 + c) + c) + 30 * np.cos(y / (2 + c)) for c in range(channels)]
    return np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)


def save(name, image, kind, **options):
    f = io.BytesIO()
    image.save(f, kind, **options)
    files[name] = f.getvalue()


def orientation(value):
    exif = Image.Exif()
    exif[0x0112] = value
    return exif


# ---- PNG by hand: Pillow does not write 16-bit color, unusual depths or interlacing ------------

ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_rows(samples, depth):
    out = b""
    for row in samples.reshape(samples.shape[0], -1):
        if depth == 16:
            out += b"\0" + row.astype(">u2").tobytes()
        else:
            bits = "".join(format(v, f"0{depth}b") for v in row)
            bits += "0" * (-len(bits) % 8)
            out += b"\0" + bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))
    return out


def png(samples, depth, color_type, interlaced=False, extra=b""):
    height, width = samples.shape[:2]
    passes = [samples[y::dy, x::dx] for x, y, dx, dy in ADAM7] if interlaced else [samples]
    data = b"".join(png_rows(p, depth) for p in passes if p.size)
    head = struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", zlib.compress(data))
            + chunk(b"IEND", b""))


def make_png():
    for color_type, channels, depths in ((0, 1, (1, 2, 4, 8, 16)), (2, 3, (8, 16)), (3, 1, (1, 2, 4, 8)),
                                         (4, 2, (8, 16)), (6, 4, (8, 16))):
        for depth in depths:
            for interlaced in (False, True):
                high = 500 if (color_type, depth) == (0, 16) else 2 ** depth
                samples = rng.randint(0, high, (SIZE[1], SIZE[0], channels))
                extra = b""
                if color_type == 3:  # 8 bits: fewer entries than indices, some half transparent
                    extra = chunk(b"PLTE", bytes(rng.randint(0, 256, 3 * min(2 ** depth, 200)).tolist()))
                    extra += chunk(b"tRNS", bytes([0, 128]))
                if color_type == 2:
                    extra = chunk(b"tRNS", struct.pack(">HHH", 1, 2, 3))
                name = f"png/type{color_type}-{depth}bit" + ("-interlaced" if interlaced else "")
                files[name] = png(samples, depth, color_type, interlaced, extra)
    frames = [Image.fromarray(smooth(*SIZE, 4), "RGBA").rotate(90 * i) for i in range(2)]
    save("png/animated", frames[0], "PNG", save_all=True, append_images=frames[1:])
    save("png/exif6", Image.fromarray(smooth(*SIZE, 3)), "PNG", exif=orientation(6))
    good = files["png/type2-8bit"]
    files["png/bad-truncated"] = good[:len(good) // 2]
    files["png/bad-header-only"] = good[:33]
    files["png/bad-signature-only"] = good[:8]
    files["png/bad-crc"] = good[:-30] + bytes([good[-30] ^ 1]) + good[-29:]
    files["png/bad-no-palette"] = png(rng.randint(0, 4, (2, 2, 1)), 8, 3)
    files["png/bad-zero-width"] = png(np.zeros((1, 0, 1), int), 8, 0)
    for name, w, h in (("huge", 60000, 60000), ("lying", 20000, 8000)):
        head = chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0))
        body = chunk(b"IDAT", zlib.compress(b"x")) + chunk(b"IEND", b"")
        files[f"png/bad-{name}"] = b"\x89PNG\r\n\x1a\n" + head + body


def make_jpeg():
    rgb = Image.fromarray(smooth(37, 21, 3))
    for sampling in range(3):
        save(f"jpeg/baseline-{sampling}", rgb, "JPEG", quality=80, subsampling=sampling)
        save(f"jpeg/progressive-{sampling}", rgb, "JPEG", quality=80, subsampling=sampling, progressive=True)
    save("jpeg/restart", rgb, "JPEG", restart_marker_blocks=1)
    save("jpeg/stored-rgb", rgb, "JPEG", keep_rgb=True)
    save("jpeg/grey", rgb.convert("L"), "JPEG")
    cmyk = Image.fromarray(smooth(37, 21, 4), "CMYK")
    save("jpeg/cmyk", cmyk, "JPEG")
    save("jpeg/cmyk-progressive", cmyk, "JPEG", progressive=True)
    # YCCK: the same four channels with Adobe's transform 2
    save("jpeg/ycck", cmyk, "JPEG")
    files["jpeg/ycck"] = files["jpeg/ycck"].replace(b"Adobe\0\x64\0\0\0\0\0", b"Adobe\0\x64\0\0\0\0\2")
    for value in range(1, 9):
        save(f"jpeg/exif{value}", rgb, "JPEG", exif=orientation(value))
    good, progressive = files["jpeg/baseline-2"], files["jpeg/progressive-2"]
    files["jpeg/no-end-marker"] = good[:-2]
    files["jpeg/trailing-bytes"] = good + b"more"
    files["jpeg/bad-truncated"] = good[:-40]
    files["jpeg/bad-truncated-progressive"] = progressive[:-40]
    files["jpeg/bad-header-only"] = good[:200]
    files["jpeg/bad-magic-only"] = good[:3]
    scan = progressive.index(b"\xff\xda")  # the same scan 150 times
    end = progressive.index(b"\xff\xc4", scan)
    files["jpeg/bad-many-scans"] = progressive[:scan] + progressive[scan:end] * 150 + progressive[end:]
    at = good.index(b"\xff\xc0")
    files["jpeg/bad-huge"] = good[:at + 5] + struct.pack(">HH", 60000, 60000) + good[at + 9:]
    files["jpeg/bad-12bit"] = good[:at + 4] + b"\x0c" + good[at + 5:]


def make_webp():
    rgb, rgba = Image.fromarray(smooth(37, 21, 3)), Image.fromarray(smooth(37, 21, 4), "RGBA")
    save("webp/lossy", rgb, "WEBP", quality=60)
    save("webp/lossy-alpha", rgba, "WEBP", quality=60)
    save("webp/lossless", rgb, "WEBP", lossless=True)
    save("webp/lossless-alpha", rgba, "WEBP", lossless=True, exact=True)
    save("webp/animated", rgba, "WEBP", save_all=True, append_images=[rgba.rotate(180)], quality=60)
    save("webp/exif8", rgb, "WEBP", quality=60, exif=orientation(8))
    good = files["webp/lossy"]
    files["webp/bad-truncated"] = good[:len(good) // 2]
    files["webp/bad-header-only"] = good[:24]
    files["webp/bad-magic-only"] = good[:12]
    anim = files["webp/animated"]
    files["webp/bad-truncated-animation"] = anim[:len(anim) // 3]


def make_ppm():
    for magic, channels in ((b"P5", 1), (b"P6", 3)):
        for maxval in (1, 7, 255, 256, 1000, 65535):
            a = rng.randint(0, maxval + 1, (5, 7, channels)).astype(">u2" if maxval > 255 else "u1")
            files[f"ppm/{magic.decode()}-{maxval}"] = magic + b"\n# drawn\n7 5\n%d\n" % maxval + a.tobytes()
    files["ppm/bad-truncated"] = files["ppm/P6-255"][:-1]
    files["ppm/bad-maxval"] = b"P6 1 1 65536\n123456"
    files["ppm/bad-number"] = b"P6 1 x 255\n123"
    files["ppm/bad-long-number"] = b"P6 00000000001 1 255\n123"
    files["ppm/bad-no-maxval"] = b"P6 1 1"
    files["ppm/bad-zero"] = b"P5 0 1 255\n"
    files["ppm/bad-huge"] = b"P6 60000 60000 255\n"


# ---- what Pillow makes of them -----------------------------------------------------------------


def fnv1a(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def pillow(data, apply_exif):
    image = Image.open(io.BytesIO(data))
    if apply_exif:
        image = ImageOps.exif_transpose(image)
    return image.convert("RGB")


def expected(name, data):
    """Rows for the header. An image that Pillow refuses must have `bad` in its name."""
    rows = []
    for apply_exif in (0, 1) if "exif" in name else (0,):
        try:
            image = pillow(data, apply_exif)
            assert "bad" not in name or name == "jpeg/bad-many-scans", name
        except Exception:
            assert "bad" in name, name
        if "bad" in name:
            code = "LIMIT" if "huge" in name or "many" in name else "FORMAT"
            rows.append(f'    {{"fuzz_{name}", {apply_exif}, RENYI_ERR_{code}, 0, 0, 0}},')
        else:
            rows.append(f'    {{"fuzz_{name}", {apply_exif}, RENYI_OK, {image.width}, {image.height}, '
                        f"0x{fnv1a(image.tobytes()):016x}u}},")
    return rows


def main():
    make_png(), make_jpeg(), make_webp(), make_ppm()
    rows = []
    for name in sorted(files):
        path = ROOT / "fuzz" / "seeds" / f"fuzz_{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[name])
        rows += expected(name, files[name])
    (ROOT / "tests" / "unit" / "image" / "image_expected.h").write_text(
        f"/* image_expected.h - made by tools/make-image-seeds.py with Pillow {PIL.__version__}; "
        "not edited by hand.\n"
        " * FNV-1a of [height, width, 3] bytes.\n"
        " * SPDX-License-Identifier: Apache-2.0 */\n"
        "/* clang-format off */\n"
        "static const struct image_expected {\n"
        "    const char *file; /* below fuzz/seeds */\n"
        "    uint32_t apply_exif;\n"
        "    renyi_status status;\n"
        "    uint32_t width, height;\n"
        "    uint64_t hash;\n"
        "} IMAGES[] = {\n" + "\n".join(rows) + "\n};\n/* clang-format on */\n")


if __name__ == "__main__":
    main()
