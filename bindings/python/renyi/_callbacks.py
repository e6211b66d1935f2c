# _callbacks.py - progress callbacks: how Ctrl-C and Python's exceptions leave a run in C.
# SPDX-License-Identifier: Apache-2.0
"""A `Call` is one call of a long C function. C calls back between blocks or batches, and Python
runs its signal handlers there, so Ctrl-C stops the work."""

from typing import Any, Callable, Optional

from ._renyi import ffi, lib
from .errors import check


class Call:
    """Keeps the exception that a callback raised until the C function has returned."""

    def __init__(self, on_progress: Optional[Callable[[int, int], Any]] = None,
                 on_text: Optional[Callable[[str], Any]] = None) -> None:
        self.on_progress = on_progress
        self.on_text = on_text
        self.exception: Optional[BaseException] = None
        self.handle = ffi.new_handle(self)
        self.err = ffi.new("renyi_error *")

    def finish(self, status: int, name: str = "") -> None:
        """Raises the callback's exception, or that of the status."""
        if self.exception is not None:
            exception, self.exception = self.exception, None
            raise exception
        check(status, self.err, name)


def _keep(exception: Any, value: Any, traceback: Any) -> None:
    # The frame of the callback has `user`; an interrupt may come before its first line.
    frame = traceback.tb_frame
    while frame is not None and "user" not in frame.f_locals:
        frame = frame.f_back
    call = ffi.from_handle(frame.f_locals["user"]) if frame is not None else None
    if call is not None:
        call.exception = value


@ffi.def_extern(error=1, onerror=_keep)
def renyi_py_progress(user: Any, done: int, total: int) -> int:
    call = ffi.from_handle(user)
    if call.on_progress is not None:
        call.on_progress(done, total)
    return 0


@ffi.def_extern(error=1, onerror=_keep)
def renyi_py_text(user: Any, text: Any, size: int) -> int:
    call = ffi.from_handle(user)
    if call.on_text is not None:
        call.on_text(ffi.unpack(text, size).decode("utf-8", "replace"))
    return 0


PROGRESS = lib.renyi_py_progress
RUN_PROGRESS = ffi.addressof(lib, "renyi_run_progress")  # the same, at most every 20 ms
TEXT = lib.renyi_py_text
