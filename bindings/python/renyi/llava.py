# llava.py - LLaVA: questions about images, answered piece by piece.
# SPDX-License-Identifier: Apache-2.0
import queue
import threading
from typing import Any, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from ._c import NULL, StrPath, char, copy, count, dtype_value, owned, path_char, struct, text
from ._callbacks import PROGRESS, TEXT, Call
from ._hub import find_model
from ._renyi import ffi, lib
from .errors import ArgumentError, check
from .images import Image, Source


class _Stopped(Exception):
    """The reader of an answer has gone."""


class Llava:
    """A LLaVA-1.5 or LLaVA-NeXT (1.6), or a plain Llama, which continues texts.

        llava = renyi.Llava.from_pretrained("llava-hf/llava-1.5-7b-hf", dtype="int4")
        for piece in llava.ask("cat.jpg", "What is it?", policy="prumerge tokens=192 metric=col"):
            print(piece, end="")
    """

    def __init__(self, name: StrPath, *, dtype: Optional[str] = None, tower_dtype: Optional[str] = None,
                 tokenizer: Optional[StrPath] = None, mmproj: Optional[StrPath] = None,
                 text_tower: Optional[StrPath] = None, threads: Optional[int] = None) -> None:
        path = find_model(name)
        call = Call()
        words = NULL if tokenizer is None else path_char(tokenizer, "tokenizer")
        tower = NULL if mmproj is None else path_char(mmproj, "mmproj")
        clip = NULL if text_tower is None else find_model(text_tower, "text_tower")
        options = struct("renyi_lvlm_options", dtype=dtype_value(dtype), tower_dtype=dtype_value(tower_dtype),
                         tokenizer=words, mmproj=tower, text_tower=clip, progress=PROGRESS, progress_user=call.handle)
        self._threads = count(threads, "threads")
        out = ffi.new("renyi_lvlm **")
        call.finish(lib.renyi_lvlm_open(out, path, options, call.err))
        self._handle = ffi.gc(out[0], lib.renyi_lvlm_free)

    @classmethod
    def from_pretrained(cls, name: StrPath, *, dtype: Optional[str] = None, tower_dtype: Optional[str] = None,
                        tokenizer: Optional[StrPath] = None, mmproj: Optional[StrPath] = None,
                        text_tower: Optional[StrPath] = None, threads: Optional[int] = None) -> "Llava":
        """Opens a folder, a name in the Hugging Face cache, or the GGUF of a language model with
        the mmproj file that has tower and projector. dtype: "f32", "bf16", "int8" or
        "int4" for the language model. tower_dtype: "f32", "bf16", "int8" or "auto" for the image
        tower. text_tower: the CLIP that the image tower is from, as a folder or a name in the cache;
        the policy cdpruner needs it to compare patches with the question."""
        return cls(name, dtype=dtype, tower_dtype=tower_dtype, tokenizer=tokenizer,
                   mmproj=mmproj, text_tower=text_tower, threads=threads)

    def ask(self, image: Optional[Image], question: str, *, policy: Optional[str] = None,
            max_new_tokens: int = 512, temperature: float = 0.0, top_p: float = 1.0,
            seed: int = 0) -> Iterator[str]:
        """Pieces of the answer as they are made; "".join(...) is the whole answer. The image may be
        None. Leaving the loop stops the model."""
        source = None if image is None else Source(image)
        words = char(question, "question")
        if words == NULL:
            raise TypeError("question must be a str, not None")
        pieces: "queue.SimpleQueue[Optional[str]]" = queue.SimpleQueue()
        stop = threading.Event()

        def stop_or(*_: Any) -> None:
            if stop.is_set():
                raise _Stopped

        def on_text(piece: str) -> None:
            stop_or()
            pieces.put(piece)

        call = Call(stop_or, on_text)
        policy_text = char(policy, "policy")
        options = struct("renyi_conversation_options", n_threads=self._threads, policy=policy_text,
                         progress=PROGRESS, progress_user=call.handle)
        out = ffi.new("renyi_conversation **")
        check(lib.renyi_conversation_new(out, self._handle, options, call.err), call.err)
        chat = owned(out[0], lib.renyi_conversation_free, self._handle, call)
        answer = struct("renyi_answer_options", max_new_tokens=count(max_new_tokens, "max_new_tokens"),
                        temperature=temperature, top_p=top_p, seed=seed, on_text=TEXT, user=call.handle)

        def work() -> None:
            try:
                if source is not None:
                    call.finish(lib.renyi_conversation_show(chat, source.load(), call.err), source.name)
                result = ffi.new("renyi_answer *")
                call.finish(lib.renyi_conversation_ask(chat, words, answer, result, call.err))
            except BaseException as error:  # raised again by the thread that reads the pieces
                call.exception = error
            finally:
                pieces.put(None)

        return _read(pieces, stop, call, threading.Thread(target=work, name="renyi-ask", daemon=True))

    def encode_image(self, image: Image, policy: Optional[str] = None,
                     question: Optional[str] = None) -> "Tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]":
        """Visual tokens [n, width of the language model] after the projector, and the patch of each
        in raster order (-1 = a token made of several, -2 = one that ends a line of LLaVA-NeXT, whose
        patch p of square t has the number t * patches + p; square 0 is the base). The policy cdpruner
        chooses them by the question; other policies ignore it. In another engine they replace the
        image in the ids of `prompt`; transformers takes the rows as `inputs_embeds` (docs/PYTHON.md)."""
        source, call, words = Source(image), Call(), char(question, "question")
        visual = lib.renyi_lvlm_visual(self._handle)
        if visual == NULL:
            raise ArgumentError("a plain Llama has no image tower")
        policy_text = char(policy, "policy")
        options = struct("renyi_visual_session_options", n_threads=self._threads, policy=policy_text,
                         relevance=lib.renyi_lvlm_relevance(self._handle), progress=PROGRESS, progress_user=call.handle)
        out = ffi.new("renyi_visual_session **")
        check(lib.renyi_visual_session_new(out, visual, options, call.err), call.err)
        session = owned(out[0], lib.renyi_visual_session_free, self._handle)
        if words != NULL:
            check(lib.renyi_visual_session_question(session, words, call.err), call.err)
        tokens = ffi.new("renyi_visual_tokens *")
        call.finish(lib.renyi_visual_run(session, source.load(), tokens, call.err), source.name)
        rows = copy(tokens.rows, tokens.n * tokens.lm_dim, "float32").reshape(tokens.n, tokens.lm_dim)
        return rows, copy(tokens.kept, tokens.n, "int32")

    def prompt(self, question: str) -> "Tuple[List[int], List[int]]":
        """Ids of LLaVA's prompt for a question: those before the image and those after it."""
        words = char(question, "question")
        if words == NULL:
            raise TypeError("question must be a str, not None")
        tokenizer = self._tokenizer()
        turn = ffi.new("renyi_lvlm_turn *", [words, NULL])
        n, err = ffi.new("size_t *"), ffi.new("renyi_error *")
        check(lib.renyi_lvlm_prompt(tokenizer, turn, 1, NULL, NULL, 0, n, err), err)
        ids = ffi.new("int32_t[]", n[0])
        check(lib.renyi_lvlm_prompt(tokenizer, turn, 1, NULL, ids, n[0], n, err), err)
        found = list(ids)
        image = found.index(lib.RENYI_LVLM_IMAGE)
        return found[:image], found[image + 1:]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids that another engine made. Special ids are left out, and so are those that
        only pad the model's vocabulary."""
        tokenizer, n, err = self._tokenizer(), ffi.new("size_t *"), ffi.new("renyi_error *")
        words, model = ffi.new("renyi_lm_tokenizer_info *"), ffi.new("renyi_lm_info *")
        lib.renyi_lm_tokenizer_get_info(tokenizer, words)
        lib.renyi_lm_get_info(lib.renyi_lvlm_lm(self._handle), model)
        given = ffi.new("int32_t[]", [int(i) for i in ids if not words.n_ids <= i < model.vocab])
        check(lib.renyi_lm_tokenizer_decode(tokenizer, given, len(given), 0, NULL, 0, n, err), err)
        out = ffi.new("char[]", n[0] + 1)
        check(lib.renyi_lm_tokenizer_decode(tokenizer, given, len(given), 0, out, len(out), n, err), err)
        return text(out)

    def _tokenizer(self) -> Any:
        tokenizer = lib.renyi_lvlm_tokenizer(self._handle)
        if tokenizer == NULL:
            raise ArgumentError("this model has no tokenizer; name one with tokenizer=")
        return tokenizer


def _read(pieces: "queue.SimpleQueue[Optional[str]]", stop: threading.Event, call: Call,
          thread: threading.Thread) -> Iterator[str]:
    """Pieces of the answer that a thread writes. The thread starts with the first piece."""
    thread.start()
    try:
        while (piece := pieces.get()) is not None:
            yield piece
    finally:
        stop.set()
        thread.join()
    if call.exception is not None:
        raise call.exception
