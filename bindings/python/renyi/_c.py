# _c.py - small helpers between Python and C: strings, option structs, pointers of arrays.
# SPDX-License-Identifier: Apache-2.0
import os
from typing import Any, Callable, Dict, List, Sequence, Tuple, Union

import numpy as np

from ._renyi import ffi, lib

StrPath = Union[str, "os.PathLike[str]", "os.PathLike[bytes]"]
NULL = ffi.NULL


def text(chars: Any) -> str:
    """A string of C. Names in files may have any bytes; those that are not UTF-8 are replaced."""
    return "" if chars == NULL else ffi.string(chars).decode("utf-8", "replace")


def char(value: Any, what: str) -> Any:
    """A str as a C string; None is NULL. `what` names the argument in a TypeError."""
    if value is None:
        return NULL
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, not {type(value).__name__}")
    return _terminated(value.encode(), what)


def path_char(path: Any, what: str = "path") -> Any:
    """A path as a C string."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{what} must be a str or a path, not {type(path).__name__}")
    return _terminated(os.fsencode(path), what)


def _terminated(data: bytes, what: str) -> Any:
    if b"\0" in data:
        raise ValueError(f"{what} contains a NUL character")
    return ffi.new("char[]", data)


def chars(values: Any, what: str) -> Tuple[Any, List[Any]]:
    """A list of str as `const char *[]`, and the strings, which the caller must keep."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise TypeError(f"{what} must be a list of str, not {type(values).__name__}")
    keep = [char(value, f"{what}[{i}]") for i, value in enumerate(values)]
    if any(value == NULL for value in keep):
        raise TypeError(f"{what} must be a list of str; one of them is None")
    return ffi.new("const char *[]", keep), keep


def count(value: Any, what: str) -> int:
    """A number of things; None is 0, which is the default of the C library."""
    if value is None:
        return 0
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} must be an int, not {type(value).__name__}")
    number = int(value)
    if not 0 < number < 2**31:
        raise ValueError(f"{what} must be at least 1, not {number}")
    return number


def struct(kind: str, /, **fields: Any) -> Any:
    """A new struct of options with its size. Pointers in it must be kept by the caller."""
    new = ffi.new(f"{kind} *")
    new.struct_size = ffi.sizeof(kind)
    for field, value in fields.items():
        setattr(new, field, value)
    return new


# By address of a handle: what frees it, and what it needs until then. The garbage collector ends
# objects of a cycle in any order; what is listed here is not part of the cycle, so it ends later.
_owned: Dict[int, Tuple[Callable[[Any], None], Tuple[Any, ...]]] = {}


def _release(handle: Any, _all: Any = _owned, _ffi: Any = ffi) -> None:
    free, needs = _all.pop(int(_ffi.cast("uintptr_t", handle)))
    free(handle)
    del needs


def owned(handle: Any, free: Callable[[Any], None], *needs: Any) -> Any:
    """A handle that is freed when nothing refers to it, before the other handles that it needs."""
    _owned[int(ffi.cast("uintptr_t", handle))] = (free, needs)
    return ffi.gc(handle, _release)


def pointer(array: "np.ndarray[Any, Any]", kind: str) -> Any:
    """The address of an array, as `kind`."""
    return ffi.cast(kind, array.__array_interface__["data"][0])


def copy(address: Any, n: int, dtype: str) -> "np.ndarray[Any, Any]":
    """A copy of n numbers of C."""
    size = np.dtype(dtype).itemsize
    return np.frombuffer(ffi.buffer(address, n * size), dtype=dtype).copy() if n else np.empty(0, dtype)


DECODES = {"exact": lib.RENYI_DECODE_EXACT, "scaled": lib.RENYI_DECODE_SCALED}


def decode_value(decode: Any) -> int:
    """The enum of "exact" or "scaled"."""
    if not isinstance(decode, str):
        raise TypeError(f"decode must be a str, not {type(decode).__name__}")
    if decode not in DECODES:
        raise ValueError(f"decode {decode!r} is unknown; known: {', '.join(DECODES)}")
    return int(DECODES[decode])


DTYPES = {name: value for value in range(6)
          for name in [text(lib.renyi_dtype_name(value))]}


def dtype_value(dtype: Any) -> int:
    """The enum of "f32", "bf16", "int8", "int4" or "auto"; None is that of the file."""
    if dtype is None:
        return 0
    if not isinstance(dtype, str):
        raise TypeError(f"dtype must be a str, not {type(dtype).__name__}")
    if dtype not in DTYPES:
        raise ValueError(f"dtype {dtype!r} is unknown; known: {', '.join(DTYPES)}")
    return DTYPES[dtype]
