# images.py - what users call an image becomes what the library reads.
# SPDX-License-Identifier: Apache-2.0
"""Images: paths, bytes, file objects, PIL images, arrays [height, width, 3] of uint8, and anything
with `__array_interface__` or DLPack. Arrays and tensors are not copied."""

import os
from typing import Any, Iterable, List, Union

import numpy as np

from ._c import NULL, StrPath, path_char, pointer, struct
from ._renyi import ffi, lib
from .errors import check

Image = Union[StrPath, bytes, bytearray, memoryview, Any]
Array = "np.ndarray[Any, Any]"


class Source:
    """One image whose type has been checked; nothing has been read or decoded yet."""

    def __init__(self, image: Image) -> None:
        self.name = ""
        self._path: Any = None
        self._bytes: Any = None
        self._pixels: Any = None
        if isinstance(image, (str, os.PathLike)):
            self._path = path_char(image, "image")
            self.name = os.fsdecode(image)
        elif isinstance(image, (bytes, bytearray, memoryview)):
            self._bytes = image
        elif hasattr(image, "convert") and hasattr(image, "mode"):  # a PIL image of any mode
            self._pixels = np.asarray(image.convert("RGB"))
            self.name = getattr(image, "filename", "")
        elif hasattr(image, "read"):
            self._bytes = image.read()
            self.name = str(getattr(image, "name", ""))
            if not isinstance(self._bytes, bytes):
                raise TypeError("a file object must be opened in binary mode ('rb')")
        else:
            self._pixels = pixels_of(image)

    def load(self) -> Any:
        """A `renyi_image *` that owns or borrows its pixels. Reads and decodes without the GIL."""
        image = ffi.new("renyi_image *")
        if self._pixels is not None:
            image.rgb = pointer(self._pixels, "uint8_t *")
            image.height, image.width = self._pixels.shape[:2]
            image.stride = self._pixels.strides[0]
            return image
        err = ffi.new("renyi_error *")
        if self._path is not None:
            status = lib.renyi_image_load(image, self._path, NULL, err)
        else:
            data = ffi.from_buffer(self._bytes)
            status = lib.renyi_image_decode(image, data, len(data), NULL, err)
        check(status, err, self.name)
        return ffi.gc(image, lambda loaded: lib.renyi_image_free(loaded, NULL))

    def fit(self, pixels: Any, preprocess: Any, decode: int = 0) -> None:
        """Writes the image as the model sees it to pixels [size, size, 3]. decode: of decode_value."""
        err = ffi.new("renyi_error *")
        out = pointer(pixels, "uint8_t *")
        options = struct("renyi_image_options", decode=decode)
        if self._path is not None:
            status = lib.renyi_image_load_pixels(out, self._path, preprocess, options, err)
        elif self._bytes is not None:
            data = ffi.from_buffer(self._bytes)
            status = lib.renyi_image_decode_pixels(out, NULL, data, len(data), preprocess, options, err)
        else:
            status = lib.renyi_image_fit(out, self.load(), preprocess, NULL, err)
        check(status, err, self.name)


def as_array(value: Any) -> "np.ndarray[Any, Any]":
    """The array behind an object, without a copy where its protocol allows it."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__array_interface__"):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise TypeError(f"cannot read the {type(value).__name__}: {error}") from error
    raise TypeError("an image is a path, bytes, a binary file, a PIL image, an array [height, width, 3] "
                    f"of uint8 or a tensor on the CPU, not {type(value).__name__}")


def pixels_of(value: Any) -> "np.ndarray[Any, Any]":
    """Pixels [height, width, 3] of uint8 whose rows have no gaps. Gray images are repeated."""
    array = as_array(value)
    if array.dtype != np.uint8:
        hint = "; normalized tensors [3, size, size] are for run_tensor" if array.dtype.kind == "f" else ""
        raise TypeError(f"pixels must be uint8, not {array.dtype}{hint}")
    if array.ndim == 2 or (array.ndim == 3 and array.shape[2] == 1):
        array = np.repeat(array.reshape(array.shape[0], array.shape[1], 1), 3, axis=2)
    if array.ndim != 3 or array.shape[2] != 3 or 0 in array.shape:
        raise TypeError(f"pixels must be [height, width, 3], not {list(array.shape)}")
    has_rows = array.strides[1:] == (3, 1) and array.strides[0] >= 3 * array.shape[1]
    return array if has_rows else np.ascontiguousarray(array)


def sources(images: Union[Image, Iterable[Image]]) -> List[Source]:
    """One image, or any number of them, as sources. An array of four dimensions is a batch."""
    if isinstance(images, (list, tuple)):
        return [Source(image) for image in images]
    if not isinstance(images, (str, bytes, bytearray, memoryview, os.PathLike)):
        if hasattr(images, "__array_interface__") or hasattr(images, "__dlpack__"):
            if not hasattr(images, "convert"):
                array = as_array(images)
                if array.ndim == 4:
                    return [Source(image) for image in array]
                return [Source(array)]
        elif not hasattr(images, "read") and hasattr(images, "__iter__"):
            return [Source(image) for image in images]
    return [Source(images)]


def tensor_of(value: Any, side: int) -> "np.ndarray[Any, Any]":
    """Normalized floats [n, 3, side, side] without gaps; [3, side, side] is a batch of one."""
    array = as_array(value)
    if array.dtype != np.float32:
        raise TypeError(f"a tensor must be float32, not {array.dtype}")
    if array.ndim == 3:
        array = array[None]
    if array.ndim != 4 or array.shape[1:] != (3, side, side):
        raise TypeError(f"a tensor must be [n, 3, {side}, {side}], not {list(array.shape)}")
    return np.ascontiguousarray(array)
