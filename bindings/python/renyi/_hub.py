# _hub.py - finds a model: a path, or a name in the Hugging Face cache, as the program does.
# SPDX-License-Identifier: Apache-2.0
import os
import re
from pathlib import Path
from typing import Any, Optional

from ._c import StrPath, path_char
from ._renyi import lib
from .errors import make_error

_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}"


def cache_root() -> Optional[Path]:
    """The folder of the Hugging Face cache."""
    for variable, below in (("HF_HUB_CACHE", ""), ("HF_HOME", "hub"), ("XDG_CACHE_HOME", "huggingface/hub"),
                            ("HOME", ".cache/huggingface/hub")):
        if os.environ.get(variable):
            return Path(os.environ[variable], below)
    return None


def _snapshot(name: str) -> Optional[Path]:
    """The folder of a repository's main revision in the cache; None if it is not there."""
    root = cache_root()
    if root is None:
        return None
    folder = root / ("models--" + name.replace("/", "--"))
    try:
        commit = (folder / "refs" / "main").read_text().split()[0]
    except (OSError, IndexError, UnicodeDecodeError):
        return None
    found = folder / "snapshots" / commit
    return found if re.fullmatch("[0-9a-f]{40}", commit) and found.is_dir() else None


def find_model(name: StrPath) -> Any:
    """The path of a model as a C string. `name` is a file, a folder or a name in the cache."""
    path = path_char(name, "name")
    word = os.fsdecode(name)
    if word == "builtin" or os.path.exists(word):
        return path
    is_repository = (re.fullmatch(f"{_PART}/{_PART}", word) is not None and "--" not in word
                     and ".safetensors" not in word)
    found = _snapshot(word) if is_repository else None
    if found is not None:
        return path_char(found)
    if is_repository:
        raise make_error(lib.RENYI_ERR_IO, f"{word}: no such file, and not in the Hugging Face cache; "
                         f"to download it:  renyi pull {word}  or  huggingface-cli download {word}")
    raise make_error(lib.RENYI_ERR_IO, f"{word}: no such file or directory")
