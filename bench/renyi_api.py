# renyi_api.py - structs of include/renyi/renyi.h and llava.h for ctypes. Needs no package.
# SPDX-License-Identifier: Apache-2.0
import ctypes
from ctypes import POINTER, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_uint32, c_uint64, c_void_p

DTYPES = {"default": 0, "f32": 1, "bf16": 2, "int8": 3, "auto": 4, "int4": 5}  # enum renyi_dtype


class Error(ctypes.Structure):
    _fields_ = [("code", c_int), ("offset", c_int64), ("message", c_char * 496)]


class Sized(ctypes.Structure):
    """A struct of options; sets struct_size."""

    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(self), **fields)


class Options(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("cpu", c_int), ("image_size", c_uint32),
                ("limits", c_uint64 * 5), ("allocator", c_void_p * 3),
                ("progress", c_void_p), ("progress_user", c_void_p), ("dtype", c_int)]


class LmInfo(ctypes.Structure):
    _fields_ = [("layout", c_char_p), ("dim", c_uint32), ("n_layers", c_uint32), ("n_heads", c_uint32),
                ("mlp_dim", c_uint32), ("n_kv_heads", c_uint32), ("head_dim", c_uint32), ("vocab", c_uint32),
                ("context", c_uint32), ("bos", c_int32), ("eos", c_int32), ("image", c_int32),
                ("rope_theta", c_double), ("norm_eps", c_double), ("tied", c_int), ("n_params", c_uint64),
                ("bytes", c_uint64), ("dtype", c_int), ("cpu", c_int)]


class LmSessionOptions(Sized):
    _fields_ = [("struct_size", c_uint32), ("max_context", c_uint32), ("max_rows", c_uint32), ("n_threads", c_uint32),
                ("cache_bits", c_uint32), ("progress", c_void_p), ("progress_user", c_void_p)]


class LmInput(ctypes.Structure):
    _fields_ = [("embedding", c_void_p), ("token", c_int32)]


class LvlmOptions(Sized):
    _fields_ = [("struct_size", c_uint32), ("cpu", c_int), ("dtype", c_int), ("tower_dtype", c_int),
                ("tower", c_char_p), ("tokenizer", c_char_p), ("limits", c_uint64 * 5), ("allocator", c_void_p * 3),
                ("progress", c_void_p), ("progress_user", c_void_p)]


class ConversationOptions(Sized):
    _fields_ = [("struct_size", c_uint32), ("n_threads", c_uint32), ("max_context", c_uint32), ("max_rows", c_uint32),
                ("cache_bits", c_uint32), ("policy", c_char_p), ("system", c_char_p),
                ("progress", c_void_p), ("progress_user", c_void_p)]


class AnswerOptions(Sized):
    _fields_ = [("struct_size", c_uint32), ("max_new_tokens", c_uint32), ("temperature", c_double), ("top_p", c_double),
                ("seed", c_uint64), ("ignore_eos", c_uint32), ("logits", c_void_p), ("on_text", c_void_p),
                ("user", c_void_p)]


class Answer(ctypes.Structure):
    _fields_ = [("text", c_char_p), ("ids", POINTER(c_int32)), ("n_ids", c_uint32), ("end", c_int),
                ("n_visual", c_uint32), ("kept", POINTER(c_uint32)), ("n_prompt", c_uint32), ("n_reused", c_uint32),
                ("vision_ms", c_double), ("prefill_ms", c_double), ("first_token_ms", c_double),
                ("tokens_per_second", c_double), ("bytes", c_uint64)]


class Library:
    """librenyi.so; a failing call raises RuntimeError with the library's message."""

    def __init__(self, path):
        self.lib, self.err = ctypes.CDLL(path), Error()
        self.lib.renyi_version.restype = c_char_p
        self.version = "renyi " + self.lib.renyi_version().decode()

    def call(self, name, *arguments):
        """Calls a function whose last argument is renyi_error *."""
        if getattr(self.lib, name)(*arguments, ctypes.byref(self.err)) != 0:
            raise RuntimeError(self.err.message.decode())

    def make(self, name, *arguments):
        """Calls such a function whose first argument is the address of the new object."""
        made = c_void_p()
        self.call(name, ctypes.byref(made), *arguments)
        return made
