# errors.py - exceptions, one per status of the C library.
# SPDX-License-Identifier: Apache-2.0
"""Exceptions of renyi. The message is that of the C library."""

import re
import threading
from collections import OrderedDict
from itertools import count
from typing import Any, Dict, Optional, Type

from ._c import text
from ._renyi import lib


class Error(Exception):
    """Base of all errors of the library. `offset` is the byte in the input, or None.

    >>> import renyi
    >>> try:
    ...     renyi.Model().session(policy="evit keep=2 layers=3")
    ... except renyi.Error as error:
    ...     print(type(error).__name__, error.offset)
    ArgumentError 10
    """

    offset: Optional[int] = None


class ArgumentError(Error, ValueError):
    """An argument is wrong: a policy, a size, a name."""


class OutOfMemoryError(Error, MemoryError):
    """The C library could not allocate memory."""


class FileError(Error, OSError):
    """The system could not read or write a file."""


class FormatError(Error, ValueError):
    """The bytes of a file do not follow its format."""


class UnsupportedError(Error):
    """Valid, but not supported by this build, model or CPU."""


class LimitError(Error, ValueError):
    """Larger than the library allows."""


class AbortedError(Error):
    """The work was stopped."""


_CLASSES: Dict[int, Type[Error]] = {
    lib.RENYI_ERR_ARG: ArgumentError,
    lib.RENYI_ERR_NOMEM: OutOfMemoryError,
    lib.RENYI_ERR_IO: FileError,
    lib.RENYI_ERR_FORMAT: FormatError,
    lib.RENYI_ERR_UNSUPPORTED: UnsupportedError,
    lib.RENYI_ERR_LIMIT: LimitError,
    lib.RENYI_ERR_ABORTED: AbortedError,
}


# Exceptions of rules in Python (rules.py) by the code that the callback returned. A rule runs on any
# thread and knows no session; the library's message has the code, so each call finds its own. Of
# several images that fail at once only one is reported; the others are forgotten after a while.
_raised: "OrderedDict[int, BaseException]" = OrderedDict()
_codes = count(1)
_raised_lock = threading.Lock()


def keep_exception(error: BaseException) -> int:
    """Keeps an exception for `check`. Returns the code by which it is found."""
    with _raised_lock:
        code = next(_codes) % 2**31 or 1
        _raised[code] = error
        while len(_raised) > 256:
            _raised.popitem(last=False)
    return code


def make_error(status: int, message: str, offset: int = -1) -> Error:
    error = _CLASSES.get(status, Error)(message)
    error.offset = offset if offset >= 0 else None
    return error


def check(status: int, err: Any, name: str = "") -> None:
    """Raises the exception of a status that is not 0. `name` is put before the message."""
    if status:
        message = text(err.message) or text(lib.renyi_status_name(status))
        code = re.search(r"rule '\w+' returned (\d+)", message) if status == lib.RENYI_ERR_ABORTED else None
        if code is not None:
            with _raised_lock:
                raised = _raised.pop(int(code.group(1)), None)
            if raised is not None:
                raise raised
        raise make_error(status, f"{name}: {message}" if name else message, err.offset)
