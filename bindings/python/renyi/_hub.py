# _hub.py - finds a model: a path, or a name in the Hugging Face cache, as the program does.
# SPDX-License-Identifier: Apache-2.0
import os
import re
from pathlib import Path
from typing import Any, List, Optional

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


def _repositories(name: str) -> List[str]:
    """Repositories in the cache that a name without an owner may mean: NAME, or NAME with a tag."""
    root = cache_root()
    if root is None or re.fullmatch(_PART, name) is None or "--" in name:
        return []
    parts = [folder.name.split("--", 2) for folder in sorted(root.glob("models--*--*"))]
    return [f"{owner}/{rest}" for _, owner, rest in parts if rest == name or rest.startswith(name + ".")]


def find_model(name: StrPath, what: str = "name") -> Any:
    """The path of a model as a C string. `name` is a file, a folder or a name in the cache; `what`
    names the argument in a TypeError."""
    path = path_char(name, what)
    word = os.fsdecode(name)
    if word == "builtin" or os.path.exists(word):
        return path
    word = re.sub("^(hf-hub|hf_hub|hf):", "", word)
    names = _repositories(word)
    if len(names) > 1:
        raise make_error(lib.RENYI_ERR_IO,
                         f"{word}: several models in the Hugging Face cache: {', '.join(names)}")
    word = names[0] if names else word
    is_repository = (re.fullmatch(f"{_PART}/{_PART}", word) is not None and "--" not in word
                     and ".safetensors" not in word)
    found = _snapshot(word) if is_repository else None
    if found is not None:
        return path_char(found)
    if is_repository:
        raise make_error(lib.RENYI_ERR_IO, f"{word}: no such file, and not in the Hugging Face cache; "
                         f"to download it:  renyi pull {word}  or  huggingface-cli download {word}")
    raise make_error(lib.RENYI_ERR_IO, f"{word}: no such file or directory")
