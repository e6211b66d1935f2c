#!/usr/bin/env python3
"""Writes the Unicode and HTML tables of CLIP's tokenizer from Python's own:
src/text/unicode_tables.c (classes of characters, lower case, canonical composition) and
src/text/html_entities_tables.c (named characters of HTML 5). Also tests/unit/text/text_expected.h:
checksums of what Python makes of every character and every reference. Run by hand, with a Python
that has the wanted version of Unicode:

    python3 tools/make-text-tables.py

SPDX-License-Identifier: Apache-2.0"""
import html
import html.entities
import pathlib
import re
import unicodedata
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHARACTERS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
# White_Space of Unicode; str.isspace() also counts the separators 1C to 1F.
SPACES = {9, 10, 11, 12, 13, 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)}
SPACES |= {0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
LETTER, NUMBER, SPACE, CASED, IGNORED = 1, 2, 4, 8, 16
HANGUL = range(0xAC00, 0xD7A4)  # composed by arithmetic


def class_of(c):
    """Class of c for splitting words and for the final sigma; str.lower() shows the latter."""
    kind = unicodedata.category(chr(c))[0]
    bits = {"L": LETTER, "N": NUMBER}.get(kind, 0) | (SPACE if c in SPACES else 0)
    if (chr(c) + "\u03a3").lower()[-1] == "\u03c2":
        bits |= CASED
    elif ("a" + chr(c) + "\u03a3").lower()[-1] == "\u03c2":
        bits |= IGNORED
    return bits


def runs(value_of):
    """(first character, value) of every run of equal values."""
    out = []
    for c in CHARACTERS:
        value = value_of(c)
        if not out or out[-1][1] != value:
            out.append((c, value))
    return out


def lower_ranges():
    """[first, last, step, distance]: characters `step` apart, equally far from their lower case."""
    out = []
    for c in CHARACTERS:
        low = chr(c).lower()
        if low == chr(c) or len(low) != 1:
            continue
        distance = ord(low) - c
        if out and out[-1][3] == distance:
            gap = c - out[-1][1]
            if gap <= 2 and (out[-1][2] == gap or out[-1][0] == out[-1][1]):
                out[-1][1:3] = [c, gap]
                continue
        out.append([c, c, 1, distance])
    return out


def decompositions():
    out = []
    for c in CHARACTERS:
        parts = unicodedata.decomposition(chr(c))
        if not parts or parts[0] == "<" or c in HANGUL:
            continue
        a, b = ([int(p, 16) for p in parts.split()] + [0])[:2]
        assert not b or not unicodedata.decomposition(chr(b)), "only the first part may decompose further"
        out.append((c, a, b))
    return out


def rows(items, per_line, indent="    "):
    return "\n".join(indent + " ".join(items[i : i + per_line]) for i in range(0, len(items), per_line))


def unicode_tables():
    pairs = decompositions()
    composed = sorted((a, b, c) for c, a, b in pairs if b and unicodedata.normalize("NFC", chr(c)) == chr(c))
    tables = [
        ("uint32_t ry_unicode_classes", [f"0x{c << 8 | v:x}," for c, v in runs(class_of)], 8),
        ("uint32_t ry_unicode_orders", [f"0x{c << 8 | v:x}," for c, v in runs(lambda c: unicodedata.combining(chr(c)))], 8),
        ("ry_lower_range ry_unicode_lowers", [f"{{0x{f:x}, 0x{l:x}, {s}, {d}}}," for f, l, s, d in lower_ranges()], 4),
        ("ry_character_pair ry_unicode_decomposed", [f"{{0x{c:x}, 0x{a:x}, 0x{b:x}}}," for c, a, b in pairs], 4),
        ("ry_character_pair ry_unicode_composed", [f"{{0x{c:x}, 0x{a:x}, 0x{b:x}}}," for a, b, c in composed], 4),
    ]
    text = f"""/* unicode_tables.c - character properties of Unicode {unicodedata.unidata_version} (from tools/make-text-tables.py).
 * SPDX-License-Identifier: Apache-2.0 */
#include "text/unicode_tables.h"

/* clang-format off */
"""
    for name, items, per_line in tables:
        symbol = name.split()[1]
        text += f"const {name}[] = {{\n{rows(items, per_line)}\n}};\n"
        text += f"const size_t {symbol}_n = sizeof {symbol} / sizeof *{symbol};\n\n"
    (ROOT / "src/text/unicode_tables.c").write_text(text.rstrip() + "\n/* clang-format on */\n")


def entity_tables():
    html5 = html.entities.html5
    items = []
    for name in sorted({n.rstrip(";") for n in html5}):
        c = [ord(x) for x in html5[name + ";"]] + [0]
        assert html5.get(name, html5[name + ";"]) == html5[name + ";"] and re.fullmatch("[A-Za-z0-9]+", name)
        items.append(f'{{"{name}", {int(name in html5)}, {{0x{c[0]:x}, 0x{c[1]:x}}}}},')
    text = f"""/* html_entities_tables.c - the named characters of HTML 5 (from tools/make-text-tables.py).
 * SPDX-License-Identifier: Apache-2.0 */
#include "text/html_entities.h"

/* clang-format off */
const ry_html_entity ry_html_entities[] = {{
{rows(items, 3)}
}};
const size_t ry_html_entities_n = sizeof ry_html_entities / sizeof *ry_html_entities;
/* clang-format on */
"""
    (ROOT / "src/text/html_entities_tables.c").write_text(text)


def checksum(texts):
    crc = 0
    for text in texts:
        crc = zlib.crc32(text.encode("utf-32-le", "surrogatepass"), crc)
    return f"0x{crc:08x}u"


def expected():
    """The same values, in the same order, as in tests/unit/text/test_unicode.c."""
    nfc, nfd = (lambda t: unicodedata.normalize("NFC", t)), (lambda t: unicodedata.normalize("NFD", t))
    names = sorted({n.rstrip(";") for n in html.entities.html5})
    values = {
        "CLASSES": checksum(chr(class_of(c)) for c in CHARACTERS),
        "LOWER": checksum(chr(c).lower() for c in CHARACTERS),
        "SIGMA": checksum((f"a{chr(c)}\u03a3{chr(c)}").lower() for c in CHARACTERS),
        "COMPOSED": checksum(nfc(chr(c)) for c in CHARACTERS),
        "MARKED": checksum(nfc(nfd(chr(c)) + "\u0301\u0323") for c in CHARACTERS),
        "NUMBERS": checksum(html.unescape(f"&#{n};&#x{n:x}") for n in range(0x110010)),
        "NAMES": checksum(html.unescape(f"&{n};&{n}&{n}1 &{n[:-1]};") for n in names),
    }
    text = """/* text_expected.h - CRC-32 of what Python makes of every character, as UTF-32; written by
 * tools/make-text-tables.py.
 * SPDX-License-Identifier: Apache-2.0 */
"""
    text += "".join(f"#define EXPECTED_{name} {value}\n" for name, value in values.items())
    (ROOT / "tests/unit/text/text_expected.h").write_text(text)


unicode_tables()
entity_tables()
expected()
