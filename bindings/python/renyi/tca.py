# tca.py - TCA: a zero-shot model adapts to the images it has seen, without labels.
# SPDX-License-Identifier: Apache-2.0
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

from ._c import StrPath, count, owned, path_char, struct
from ._renyi import ffi, lib
from .errors import check

if TYPE_CHECKING:
    from .model import Model


@dataclass(frozen=True)
class TcaInfo:
    """What a `Tca` has seen."""

    n_images: int
    n_anchored: int
    n_changed: int
    n_items: int
    n_seen_classes: int
    n_ready_classes: int
    has_anchors: bool


class Tca:
    """The memory of earlier images for the policy "tca" (docs/CLIP.md), for one session at a time.

        pets = clip.classifier(["cat", "dog"])
        session = pets.session("tca drop=0.1 layers=3,6,9", adapt=renyi.Tca(pets))

    size: images per class that are kept. scale, strength (lambda) and sharpness (beta): those of the
    paper. anchors and correction switch off its two parts.
    """

    def __init__(self, model: "Model", *, size: Optional[int] = None, scale: float = 0.0, strength: float = 0.0,
                 sharpness: float = 0.0, anchors: bool = True, correction: bool = True) -> None:
        options = struct("renyi_tca_options", size=count(size, "size"), scale=scale, beta=sharpness,
                         no_anchors=int(not anchors), no_correction=int(not correction))
        setattr(options, "lambda", strength)
        self._err = ffi.new("renyi_error *")
        out = ffi.new("renyi_tca **")
        check(lib.renyi_tca_new(out, model._handle, options, self._err), self._err)
        self._handle = owned(out[0], lib.renyi_tca_free, model._handle)

    @property
    def info(self) -> TcaInfo:
        """Numbers of images and items so far."""
        c = ffi.new("renyi_tca_info *")
        lib.renyi_tca_get_info(self._handle, c)
        return TcaInfo(c.n_images, c.n_anchored, c.n_changed, c.n_items, c.n_seen_classes, c.n_ready_classes,
                       bool(c.has_anchors))

    def reset(self) -> None:
        """Forgets all images."""
        lib.renyi_tca_reset(self._handle)

    def save(self, path: StrPath) -> None:
        """Writes the state as a safetensors file."""
        check(lib.renyi_tca_save(self._handle, path_char(path), self._err), self._err)

    def load(self, path: StrPath) -> None:
        """Replaces the state by that of a file; a run then goes on bit for bit."""
        check(lib.renyi_tca_load(self._handle, path_char(path), self._err), self._err)
