# clip.py - CLIP: embeddings of images and texts, and classes by their names.
# SPDX-License-Identifier: Apache-2.0
from typing import Any, Iterable, List, Optional, Sequence, Union

import numpy as np

from ._c import NULL, StrPath, char, chars, copy, count, dtype_value, owned, path_char, pointer, struct, text as to_text
from ._callbacks import PROGRESS, Call
from ._hub import find_model
from ._renyi import ffi, lib
from .errors import check
from .images import Image
from .model import Model


def templates_of(name: str) -> List[str]:
    """The sentences of a list or a file."""
    word, n = char(name, "templates"), ffi.new("uint32_t *")
    out, err = ffi.new("renyi_templates **"), ffi.new("renyi_error *")
    check(lib.renyi_templates_open(out, word, NULL, err), err)
    try:
        texts = lib.renyi_templates_texts(out[0], n)
        return [to_text(texts[i]) for i in range(n[0])]
    finally:
        lib.renyi_templates_free(out[0])


class Clip:
    """A CLIP or SigLIP with both towers, of OpenAI, open_clip or transformers.

        clip = renyi.Clip.from_pretrained("openai/clip-vit-base-patch16")
        clip.zeroshot(["cat.jpg"], ["a cat", "a dog"])      # probabilities [1, 2]
        clip.encode_image(paths) @ clip.encode_text(["a red car"]).T

    `image` is the image tower, a `Model`. Texts are for one thread at a time.
    """

    def __init__(self, name: StrPath, *, dtype: Optional[str] = None, tokenizer: Optional[StrPath] = None,
                 threads: Optional[int] = None) -> None:
        path = find_model(name)
        self._threads = count(threads, "threads")
        self.image = Model(name, dtype=dtype)
        self._call = Call()
        options = struct("renyi_options", dtype=dtype_value(dtype), progress=PROGRESS,
                         progress_user=self._call.handle)
        text = ffi.new("renyi_text **")
        self._call.finish(lib.renyi_text_open(text, path, options, self._call.err))
        self._text = tower = ffi.gc(text[0], lib.renyi_text_free)
        words = ffi.new("renyi_tokenizer **")
        where = path if tokenizer is None else path_char(tokenizer, "tokenizer")
        check(lib.renyi_tokenizer_open(words, where, NULL, self._call.err), self._call.err)
        self._tokenizer = ffi.gc(words[0], lib.renyi_tokenizer_free)
        session = ffi.new("renyi_text_session **")
        session_options = struct("renyi_text_session_options", n_threads=self._threads,
                                 progress=PROGRESS, progress_user=self._call.handle)
        check(lib.renyi_text_session_new(session, tower, session_options, self._call.err), self._call.err)
        self._session = owned(session[0], lib.renyi_text_session_free, tower)
        info = ffi.new("renyi_text_info *")
        lib.renyi_text_get_info(tower, info)
        #: width of an embedding
        self.embed_dim: int = info.embed_dim
        #: factor of the cosines in `zeroshot`
        self.logit_scale: float = info.logit_scale
        #: SigLIP's term of every logit; None: probabilities are a softmax, not sigmoids
        self.logit_bias: Optional[float] = info.logit_bias if info.is_sigmoid else None

    @classmethod
    def from_pretrained(cls, name: StrPath, *, dtype: Optional[str] = None,
                        tokenizer: Optional[StrPath] = None, threads: Optional[int] = None) -> "Clip":
        """Opens a file, a folder or a name in the Hugging Face cache. The tokenizer is looked for
        beside the model."""
        return cls(name, dtype=dtype, tokenizer=tokenizer, threads=threads)

    def encode_image(self, images: Union[Image, Iterable[Image]], policy: Optional[str] = None,
                     batch_size: int = 8, decode: str = "exact") -> "np.ndarray[Any, Any]":
        """Embeddings [n, embed_dim] of length 1. decode: as in `Model.session`."""
        session = self.image.session(policy, batch_size, self._threads or None, output="embedding", decode=decode)
        rows = session.run(images)
        lib.renyi_normalise_rows(pointer(rows, "float *"), len(rows), rows.shape[1])
        return rows

    def encode_text(self, texts: Union[str, Sequence[str]], truncate: bool = False) -> "np.ndarray[Any, Any]":
        """Embeddings [n, embed_dim] of length 1. A text longer than the context is an error unless
        `truncate` is set."""
        words, keep = chars([texts] if isinstance(texts, str) else texts, "texts")
        rows = np.empty((len(keep), self.embed_dim), np.float32)
        if keep:
            self._call.finish(lib.renyi_embed_texts(self._session, self._tokenizer, words, len(keep),
                                                    int(truncate), pointer(rows, "float *"), self._call.err))
        return rows

    def classifier(self, labels: Sequence[str], templates: Union[str, Sequence[str], None] = None) -> Model:
        """A `Model` whose classes are these names, for sessions, `classify` and `evaluate`.

        templates: sentences with one "{}" for the name; or "imagenet80", "simple", the name of a
        known dataset or a file with one sentence per line. None is "a photo of a {}.".
        """
        names, keep = chars(labels, "labels")
        given = templates_of(templates) if isinstance(templates, str) else templates
        sentences, kept = chars(given if given is not None else ["a photo of a {}."], "templates")
        options = struct("renyi_classifier_options", templates=sentences, n_templates=len(kept),
                         n_threads=self._threads, progress=PROGRESS, progress_user=self._call.handle)
        made = ffi.new("renyi_classifier **")
        self._call.finish(lib.renyi_classifier_new(made, self._text, self._tokenizer, names, len(keep), options,
                                                   self._call.err))
        try:
            rows = copy(lib.renyi_classifier_rows(made[0]), len(keep) * self.embed_dim, "float32")
        finally:
            lib.renyi_classifier_free(made[0])
        return self.image.with_classes(rows.reshape(len(keep), self.embed_dim), labels, self.logit_scale,
                                       self.logit_bias)

    def zeroshot(self, images: Union[Image, Iterable[Image]], labels: Sequence[str],
                 templates: Union[str, Sequence[str], None] = None, policy: Optional[str] = None,
                 batch_size: int = 8, decode: str = "exact") -> "np.ndarray[Any, Any]":
        """Probabilities [n, labels] that an image shows each of the labels: a softmax over the labels
        (CLIP), or a sigmoid for each by itself (SigLIP). decode: as in `Model.session`."""
        session = self.classifier(labels, templates).session(policy, batch_size, self._threads or None, decode=decode)
        logits = session.run(images).astype(np.float64)
        if self.logit_bias is not None:
            return (1 / (1 + np.exp(-logits))).astype(np.float32)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
        return (odds / odds.sum(axis=1, keepdims=True)).astype(np.float32)

    def tokenize(self, text: str) -> List[int]:
        """Ids of a text, with those of its start and end."""
        words, keep = chars([text], "text")
        size, err = len(ffi.string(keep[0])), self._call.err
        n = ffi.new("uint32_t *")
        check(lib.renyi_tokenizer_count(self._tokenizer, keep[0], size, n, err), err)
        ids = ffi.new("int32_t[]", n[0])
        check(lib.renyi_tokenizer_encode(self._tokenizer, keep[0], size, n[0], 0, ids, n, err), err)
        return list(ids)

    def __repr__(self) -> str:
        return f"<renyi.Clip, {self.embed_dim} numbers per embedding>"
