# embedding.py - embeddings of many images, one after the other, while the next ones are decoded.
# SPDX-License-Identifier: Apache-2.0
import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any, Deque, Iterable, Iterator, List, Optional, Sized, Tuple

import numpy as np

from ._c import count, pointer
from ._renyi import ffi, lib
from .errors import Error
from .images import Image, Source

if TYPE_CHECKING:
    from .model import Model

Row = Optional["np.ndarray[Any, Any]"]


def bar(total: Optional[int], progress: bool) -> Any:
    """tqdm's bar, if it is installed and wanted."""
    if progress:
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped,import-not-found,unused-ignore]
        except ImportError:
            return None
        return tqdm(total=total, unit="images")
    return None


def embed_images(model: "Model", images: Iterable[Image], batch_size: int, policy: Optional[str],
                 threads: Optional[int], progress: bool, skip_errors: bool, mode: int) -> Iterator[Row]:
    """Rows of `Model.embed`. Two batches are decoded ahead of the one that runs."""
    session = model.session(policy, batch_size, threads, output="embedding")
    c = ffi.new("renyi_model_info *")
    lib.renyi_model_get_info(model._handle, c)
    side = model.info.image_size
    shown = bar(len(images) if isinstance(images, Sized) else None, progress)

    def decode(source: Source, pixels: "np.ndarray[Any, Any]") -> None:
        source.fit(pixels, ffi.addressof(c, "preprocess"), mode)

    def start(pool: ThreadPoolExecutor) -> "Tuple[np.ndarray[Any, Any], List[Future[None]]]":
        batch = [Source(image) for image in islice(iterator, batch_size)]
        pixels = np.empty((len(batch), side, side, 3), np.uint8)
        return pixels, [pool.submit(decode, source, pixels[i]) for i, source in enumerate(batch)]

    iterator = iter(images)
    waiting: "Deque[Tuple[np.ndarray[Any, Any], List[Future[None]]]]" = deque()
    pool = ThreadPoolExecutor(max(1, len(os.sched_getaffinity(0))), "renyi-decode")
    try:
        for _ in range(2):
            waiting.append(start(pool))
        while waiting[0][1]:
            pixels, decoded = waiting.popleft()
            waiting.append(start(pool))
            errors = [future.exception() for future in decoded]
            for error in errors:
                if error is not None and not (skip_errors and isinstance(error, Error)):
                    raise error
            good = [i for i, error in enumerate(errors) if error is None]
            rows = session.run_pixels(pixels if len(good) == len(pixels) else pixels[good])
            lib.renyi_normalise_rows(pointer(rows, "float *"), len(rows), rows.shape[1])
            found = iter(rows)
            for error in errors:
                if shown is not None:
                    shown.update()
                yield None if error is not None else next(found)
    finally:
        for _, futures in waiting:
            for future in futures:
                future.cancel()
        pool.shutdown(wait=True)
        if shown is not None:
            shown.close()


def check_arguments(images: Any, batch_size: Any) -> None:
    """Raises TypeError when embed is called, not when its first row is read."""
    if isinstance(images, (str, bytes, os.PathLike)) or not hasattr(images, "__iter__"):
        raise TypeError(f"embed needs several images, such as a list of paths, not {type(images).__name__}")
    count(batch_size, "batch_size")
