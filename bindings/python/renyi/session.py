# session.py - runs a model on images under one policy, and shows what its cuts did.
# SPDX-License-Identifier: Apache-2.0
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterable, List, Optional, Union

import numpy as np

from ._c import char, copy, count, decode_value, owned, pointer, struct, text
from ._callbacks import RUN_PROGRESS, Call
from ._renyi import ffi, lib
from .errors import check
from .images import Image, Source, sources, tensor_of
from .rules import add_rules

if TYPE_CHECKING:
    from .model import Model
    from .tca import Tca

NONE = -1  # in `groups` and `source`: no row, no token


@dataclass(frozen=True, eq=False)
class Cut:
    """What one cut did to one image. Tokens are numbered as they enter the cut; the first
    `n_prefix` are class and distillation tokens. All arrays are copies."""

    block: int
    n_prefix: int
    #: [tokens in] score of each token; NaN for the prefix
    scores: "np.ndarray[Any, Any]"
    #: [tokens in] row that each token became part of; -1 = dropped
    groups: "np.ndarray[Any, Any]"
    #: [tokens in] patch of each token in raster order; -1 = prefix, -2 = fused
    position: "np.ndarray[Any, Any]"
    #: [tokens out] token that each row continues; -1 = a fused row
    source: "np.ndarray[Any, Any]"
    #: [tokens out] number of patches in each row
    size: "np.ndarray[Any, Any]"
    #: [tokens in] True = kept by Col-Ln, not by class attention
    rescued: "np.ndarray[Any, Any]"

    @property
    def kept(self) -> "np.ndarray[Any, Any]":
        """Patches in raster order that still have a row of their own, in the order of the rows."""
        rows = self.source[self.n_prefix:]
        patches = self.position[rows[rows != NONE]]
        return patches[patches >= 0]


@dataclass(frozen=True, eq=False)
class ImageTrace:
    """The cuts of one image."""

    cuts: List[Cut]


#: what a session can return; the last three are features of a tower
OUTPUTS = ("auto", "embedding", "class", "mean", "patches")


class Session:
    """A model, a policy and the memory of a run; made by `Model.session`. For one thread at a time.

    >>> import renyi
    >>> session = renyi.Model().session(policy="mosaic keep=0.7 layers=0,3,6", batch_size=2, trace=True)
    >>> session.run(["assets/golf_ball.png", "assets/parachute.png"]).shape
    (2, 10)
    >>> [len(cut.kept) for cut in session.trace[0].cuts]
    [70, 49, 35]
    """

    def __init__(self, model: "Model", policy: Optional[str] = None, batch_size: int = 1,
                 threads: Optional[int] = None, trace: bool = False, output: str = "auto",
                 adapt: "Optional[Tca]" = None, decode: str = "exact", streams: Optional[int] = None) -> None:
        if output not in OUTPUTS:
            raise ValueError(f"output must be one of {', '.join(OUTPUTS)}, not {output!r}")
        self.model = model
        self.batch_size = count(batch_size, "batch_size")
        self._decode = decode_value(decode)
        #: one entry per image of the last run, if `trace` was set
        self.trace: List[ImageTrace] = []
        #: passes of each image of the last run: 2 where a cascade was not sure, else 1
        self.passes: List[int] = []
        self._lock = threading.Lock()
        self._call = Call()
        policy_text = char(policy, "policy")
        options = struct("renyi_session_options", max_batch=self.batch_size, policy=policy_text,
                         n_threads=count(threads, "threads"), trace=int(bool(trace)),
                         progress=RUN_PROGRESS, progress_user=self._call.handle,
                         output=getattr(lib, f"RENYI_OUTPUT_{output.upper()}"),
                         n_streams=count(streams, "streams"))
        if adapt is not None:
            options.adapt = adapt._handle
        out = ffi.new("renyi_session **")
        parent = add_rules(model)
        check(lib.renyi_session_new(out, parent, options, self._call.err), self._call.err)
        self._handle = owned(out[0], lib.renyi_session_free, parent, adapt._handle if adapt else None)
        self._has_trace = bool(trace)
        self._has_rows = output == "patches"

    @property
    def policy(self) -> str:
        """The policy with all its defaults."""
        return text(lib.renyi_session_policy(self._handle))

    @property
    def outputs(self) -> int:
        """Numbers per image that a run returns."""
        return int(lib.renyi_session_outputs(self._handle))

    @property
    def macs(self) -> float:
        """Multiply-accumulates per image that a run computes; of a cascade those of both passes."""
        return float(lib.renyi_session_macs(self._handle))

    def run(self, images: Union[Image, Iterable[Image]]) -> "np.ndarray[Any, Any]":
        """Logits (or embeddings) [n, outputs] of one or several images, float32. With
        output="patches" the rows of all patches, [n, patches, dim]."""
        given = sources(images)
        step = self.batch_size
        if self._decode != lib.RENYI_DECODE_EXACT:
            return self._run(len(given), lambda first, out: self._run_scaled(given[first:first + step], out))

        def run_part(first: int, out: Any) -> int:
            part = given[first:first + step]
            loaded = [source.load() for source in part]
            batch = ffi.new("renyi_image[]", [image[0] for image in loaded])
            return int(lib.renyi_run(self._handle, batch, len(part), out, self._call.err))

        return self._run(len(given), run_part)

    def _run_scaled(self, part: List[Source], out: Any) -> int:
        side, info = self.model.info.image_size, ffi.new("renyi_model_info *")
        lib.renyi_model_get_info(self.model._handle, info)
        pixels = np.empty((len(part), side, side, 3), np.uint8)
        for source, place in zip(part, pixels):
            source.fit(place, ffi.addressof(info, "preprocess"), self._decode)
        return int(lib.renyi_run_pixels(self._handle, pointer(pixels, "uint8_t *"), len(part), out, self._call.err))

    def run_tensor(self, tensor: Any) -> "np.ndarray[Any, Any]":
        """The same for normalized float32 tensors [n, 3, size, size], as timm's transforms make."""
        array = tensor_of(tensor, self.model.info.image_size)

        def run_part(first: int, out: Any) -> int:
            part = array[first:first + self.batch_size]
            return int(lib.renyi_run_tensor(self._handle, pointer(part, "float *"), len(part), out,
                                            self._call.err))

        return self._run(len(array), run_part)

    def run_pixels(self, pixels: Any) -> "np.ndarray[Any, Any]":
        """The same for uint8 images [n, size, size, 3] that are already resized and cropped."""
        side = self.model.info.image_size
        array = np.ascontiguousarray(pixels)
        if array.dtype != np.uint8 or array.ndim != 4 or array.shape[1:] != (side, side, 3):
            raise TypeError(f"pixels must be uint8 [n, {side}, {side}, 3], not {array.dtype} {list(array.shape)}")

        def run_part(first: int, out: Any) -> int:
            part = array[first:first + self.batch_size]
            return int(lib.renyi_run_pixels(self._handle, pointer(part, "uint8_t *"), len(part), out,
                                            self._call.err))

        return self._run(len(array), run_part)

    def _run(self, n: int, run_part: Any) -> "np.ndarray[Any, Any]":
        out = np.empty((n, self.outputs), np.float32)
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("this session is in use by another thread; make one session per thread")
        try:
            trace: List[ImageTrace] = []
            self.trace = trace
            passes: List[int] = []
            self.passes = passes
            for first in range(0, n, self.batch_size):
                self._call.finish(run_part(first, pointer(out[first:], "float *")))
                part = range(min(self.batch_size, n - first))
                passes += [lib.renyi_session_passes(self._handle, i) for i in part]
                if self._has_trace:
                    trace += [self._read_trace(i) for i in part]
        finally:
            self._lock.release()
        return out.reshape(n, self.model.info.n_patches, -1) if self._has_rows else out

    def _read_trace(self, image: int) -> ImageTrace:
        cuts = []
        c = ffi.new("renyi_cut *")
        for i in range(lib.renyi_session_cut_count(self._handle)):
            check(lib.renyi_session_cut(self._handle, image, i, c, self._call.err), self._call.err)
            cuts.append(Cut(
                block=c.block, n_prefix=c.n_prefix, scores=copy(c.score, c.n_in, "float32"),
                groups=copy(c.target, c.n_in, "int32"), position=copy(c.position, c.n_in, "int32"),
                source=copy(c.source, c.n_out, "int32"), size=copy(c.size, c.n_out, "float32"),
                rescued=copy(c.rescued, c.n_in, "bool")))
        return ImageTrace(cuts)

    def __repr__(self) -> str:
        return f"<renyi.Session of {self.model.info.architecture}, policy {self.policy!r}>"
