# _build.py - writes the C source of the two extension modules from the public headers.
# SPDX-License-Identifier: Apache-2.0
"""Usage: _build.py INCLUDE OUT_DIR

The declarations are the headers themselves, without preprocessor lines and attributes, so nothing
is written twice. The C compiler checks them against the headers again.

_renyi.c   everything but drawing
_report.c  drawing; only this module needs cairo and pango
"""

import re
import sys
from pathlib import Path

from cffi import FFI

HEADERS = ["renyi", "clip", "eval", "gallery", "lm", "llava", "report", "train", "viz"]
# Functions of librenyi-report.
DRAWS = re.compile(r"renyi_(figure|report)_|renyi_colour$|renyi_viz_html$")

# Functions that C calls and Python defines (_callbacks.py, rules.py).
CALLBACKS = """
extern "Python" int renyi_py_progress(void *user, uint64_t done, uint64_t total);
extern "Python" int renyi_py_text(void *user, const char *text, size_t size);
extern "Python" int renyi_py_score(void *user, const renyi_rule_view *view, float *score);
extern "Python" int renyi_py_cut(void *user, const renyi_rule_view *view, renyi_rule_choice *choice);
int renyi_run_progress(void *user, uint64_t done, uint64_t total);
"""

# Between the blocks of a run, Python is entered at most every 20 ms: soon enough for Ctrl-C. The
# interpreter's memory is cold there, and 12 calls would cost a short run about one percent.
RUN_PROGRESS = """
#include <time.h>
static int renyi_py_progress(void *user, uint64_t done, uint64_t total);
static int renyi_run_progress(void *user, uint64_t done, uint64_t total)
{
    static _Thread_local int64_t last;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    if (ms - last < 20) return 0;
    last = ms;
    return renyi_py_progress(user, done, total);
}
"""


def declarations(header: str) -> str:
    """The text of a header as cffi's parser reads it."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    text = re.sub(r"#if(def __cplusplus| defined\(__GNUC__\)).*?#endif", "", text, flags=re.S)
    text = re.sub(r"#define (RENYI_NONE|RENYI_NO_CLASS) UINT32_MAX", r"#define \1 4294967295", text)
    # Of the macros only plain numbers are kept; they are sizes of arrays and special values.
    text = re.sub(r"#define (\w+) \((-\d+)\)", r"#define \1 \2", text)
    text = "\n".join(line for line in text.splitlines()
                     if not line.startswith("#") or re.fullmatch(r"#define \w+ -?\d+\s*", line))
    return re.sub(r"\bRENYI_(API|CHECK)\b", "", text)


def split(text: str) -> "tuple[str, str]":
    """Declarations without the functions that draw, and these functions."""
    draws = [m.group() for m in re.finditer(r"^[ ]?[^\n{};#]*?\b(\w+)\([^{};]*\);", text, flags=re.M)
             if DRAWS.match(m.group(1))]
    for function in draws:
        text = text.replace(function, "")
    return text, "\n".join(draws)


def main(include: Path, out: Path) -> None:
    texts = [declarations((include / "renyi" / f"{name}.h").read_text()) for name in HEADERS]
    core_text, report_text = split("\n".join(texts))
    source = "\n".join(f"#include <renyi/{name}.h>" for name in HEADERS)

    core = FFI()
    core.cdef(core_text + CALLBACKS)
    core.set_source("renyi._renyi", source + RUN_PROGRESS, py_limited_api=True)
    core.emit_c_code(str(out / "_renyi.c"))

    report = FFI()
    report.include(core)
    report.cdef(report_text)
    report.set_source("renyi._report", source, py_limited_api=True)
    report.emit_c_code(str(out / "_report.c"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
