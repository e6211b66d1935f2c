# model.py - a Vision Transformer: opening, classifying, sessions.
# SPDX-License-Identifier: Apache-2.0
from dataclasses import dataclass
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

import numpy as np

from ._c import StrPath, chars, count, decode_value, dtype_value, owned, pointer, struct, text
from ._callbacks import PROGRESS, Call
from ._hub import find_model
from ._renyi import ffi, lib
from .embedding import check_arguments, embed_images
from .errors import ArgumentError, check
from .images import Image
from .session import Session
from .tca import Tca


@dataclass(frozen=True)
class ModelInfo:
    """Shape of a model and how images are prepared for it."""

    family: str
    layout: str
    architecture: str
    image_size: int
    patch_size: int
    n_patches: int
    n_prefix: int
    dim: int
    n_blocks: int
    n_heads: int
    mlp_dim: int
    n_classes: int
    embed_dim: int
    n_params: int
    macs: float
    dtype: str
    mean: Tuple[float, float, float]
    std: Tuple[float, float, float]
    crop_pct: float


class Model:
    """A Vision Transformer on the CPU. `Model()` is the small one inside the library, which knows
    the ten classes of Imagenette.

    >>> import renyi
    >>> model = renyi.Model()
    >>> model.info.architecture, model.info.n_classes
    ('vit_d192_l12_patch16_160', 10)
    >>> label, probability = model.classify("assets/golf_ball.png")[0]
    >>> label, round(probability, 2)
    ('golf ball', 1.0)

    Models may be shared by threads. Each thread needs a session of its own.
    """

    def __init__(self, name: StrPath = "builtin", *, dtype: Optional[str] = None,
                 image_size: Optional[int] = None) -> None:
        path = find_model(name)
        call = Call()
        options = struct("renyi_options", dtype=dtype_value(dtype), progress=PROGRESS,
                         image_size=count(image_size, "image_size"), progress_user=call.handle)
        out = ffi.new("renyi_model **")
        call.finish(lib.renyi_model_open(out, path, options, call.err))
        self._own(out[0])

    @classmethod
    def from_pretrained(cls, name: StrPath, *, dtype: Optional[str] = None,
                        image_size: Optional[int] = None) -> "Model":
        """Opens a checkpoint of timm or transformers: a file (.safetensors, .pth, .bin), a folder
        with config.json, or a name in the Hugging Face cache. Nothing is downloaded.

        dtype: "f32", "bf16", "int8" or "auto"; None is the format of the file.
        """
        return cls(name, dtype=dtype, image_size=image_size)

    def _own(self, handle: Any, *keep: Any) -> None:
        """Takes a `renyi_model *`. `keep` is kept until the model has been freed."""
        self._handle = owned(handle, lib.renyi_model_free, *keep)
        self.info = _read_info(self._handle)
        self._sessions: Dict[Tuple[Optional[str], str], Session] = {}
        self._rules: Set[str] = set()  # rules in Python that this model has got

    @property
    def labels(self) -> List[str]:
        """Names of the classes as the program prints them."""
        return [self._label(i) for i in range(self.info.n_classes)]

    def _label(self, index: int) -> str:
        return text(lib.renyi_model_label(self._handle, index)) or f"class {index}"

    def session(self, policy: Optional[str] = None, batch_size: int = 1, threads: Optional[int] = None,
                trace: bool = False, output: str = "auto", adapt: Optional[Tca] = None,
                decode: str = "exact", streams: Optional[int] = None) -> Session:
        """Prepares runs with a pruning policy.

        policy: such as "mosaic keep=0.7 layers=0,3,6" or the name of a preset; None = no pruning.
        batch_size: images per pass. threads: None = the cores this process may use.
        trace: record what every cut did (`Session.trace`).
        output: "embedding" = embeddings instead of logits; "class", "mean" or "patches" = the class
        row, the mean of the patch rows or all patch rows after the last LayerNorm.
        adapt: the memory of earlier images for the policy "tca" (see `Tca`).
        decode: "scaled" = `run` decodes large JPEG and WebP files at a smaller scale: faster, with
        nearly the same pixels.
        streams: parts of a pass that run at the same time, each on its share of the threads.
        """
        if adapt is not None and not isinstance(adapt, Tca):
            raise TypeError(f"adapt must be a renyi.Tca, not {type(adapt).__name__}")
        return Session(self, policy, batch_size, threads, trace, output, adapt, decode, streams)

    def classify(self, image: Image, k: int = 5, policy: Optional[str] = None,
                 decode: str = "exact") -> List[Tuple[str, float]]:
        """The k most probable classes of an image with their probabilities, best first. decode: as in
        `session`."""
        n = self.info.n_classes
        if n == 0:
            raise ArgumentError("this model has no classes; use embed, or Clip.zeroshot with class names")
        session = self._sessions.pop((policy, decode), None) or self.session(policy, decode=decode)
        logits = session.run([image])[0].astype(np.float64)
        self._sessions[policy, decode] = session  # kept for the next call; threads never share it
        odds = 1 / (1 + np.exp(-logits)) if self._is_sigmoid() else np.exp(logits - logits.max())
        best = np.argsort(-logits, kind="stable")[:count(k, "k")]
        total = 1.0 if self._is_sigmoid() else odds.sum()
        return [(self._label(int(i)), float(odds[i] / total)) for i in best]

    def _is_sigmoid(self) -> bool:
        info = ffi.new("renyi_model_info *")
        lib.renyi_model_get_info(self._handle, info)
        return bool(info.is_sigmoid)

    def with_classes(self, rows: Any, labels: Sequence[str], scale: float = 100.0,
                     bias: Optional[float] = None) -> "Model":
        """A model with this tower whose classes are given by embeddings `rows` [classes, embed_dim] of
        length 1. A logit is scale times the cosine of image and row. `Clip.classifier` makes the
        rows from texts; means of embedded images serve as well. With `bias`, as in SigLIP, it is
        added to every logit, and probabilities are sigmoids.

        >>> import renyi
        >>> model, photos = renyi.Model(), ["assets/golf_ball.png", "assets/parachute.png"]
        >>> own = model.with_classes(list(model.embed(photos)), ["ball", "canopy"])
        >>> [own.classify(photo, k=1)[0][0] for photo in photos]
        ['ball', 'canopy']
        """
        names, keep = chars(labels, "labels")
        array = np.ascontiguousarray(rows, np.float32)
        if array.shape != (len(keep), self.info.embed_dim):
            raise TypeError(f"rows must be [{len(keep)}, {self.info.embed_dim}], not {list(array.shape)}")
        out, err = ffi.new("renyi_model **"), ffi.new("renyi_error *")
        given = (out, self._handle, pointer(array, "float *"), names, len(keep), scale)
        check(lib.renyi_model_zeroshot(*given, err) if bias is None
              else lib.renyi_model_zeroshot_sigmoid(*given, bias, err), err)
        new = Model.__new__(Model)
        new._own(out[0], self._handle)
        new._rules = set(self._rules)  # it begins with those of its tower
        return new

    def embed(self, images: Iterable[Image], batch_size: int = 32, policy: Optional[str] = None,
              threads: Optional[int] = None, progress: bool = False,
              skip_errors: bool = False, decode: str = "exact") -> "Iterator[Optional[np.ndarray[Any, Any]]]":
        """Embeddings of length 1, one per image, in order. Lazy: images are read as rows are taken,
        and decoded while the model runs.

        progress: draw tqdm's bar, if tqdm is installed.
        skip_errors: an image that cannot be read gives None instead of an exception.
        decode: "scaled" decodes large files faster, as in `session`.

        >>> import renyi
        >>> [row.shape for row in renyi.Model().embed(["assets/golf_ball.png", "assets/parachute.png"])]
        [(192,), (192,)]
        """
        check_arguments(images, batch_size)
        mode = decode_value(decode)
        return embed_images(self, images, batch_size, policy, threads, progress, skip_errors, mode)

    def __repr__(self) -> str:
        return f"<renyi.Model {self.info.architecture}, {self.info.n_params} parameters, {self.info.dtype}>"


def _read_info(handle: Any) -> ModelInfo:
    c = ffi.new("renyi_model_info *")
    lib.renyi_model_get_info(handle, c)
    spec = c.preprocess
    numbers = {name: getattr(c, name) for name in (
        "image_size", "patch_size", "n_patches", "n_prefix", "dim", "n_blocks", "n_heads", "mlp_dim",
        "n_classes", "embed_dim", "n_params", "macs")}
    return ModelInfo(family=text(c.family), layout=text(c.layout), architecture=text(c.architecture),
                     dtype=text(lib.renyi_dtype_name(c.dtype)), crop_pct=spec.crop_pct,
                     mean=tuple(spec.mean), std=tuple(spec.std), **numbers)
