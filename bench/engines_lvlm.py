# engines_lvlm.py - engines of lm_worker.py: renyi's language model, and renyi from image to first
# token, through the C functions of the Python package.
# SPDX-License-Identifier: Apache-2.0
import renyi
from renyi._c import char, struct
from renyi._renyi import ffi, lib
from renyi.errors import check

from engines_lm import CONTEXT, LanguageModel, tokens_of


class Renyi(LanguageModel):
    """The Python package's C functions: renyi_lm_feed on a mapped file of `renyi quantize --lm`."""

    def __init__(self, a):
        self.err, lm, session = ffi.new("renyi_error *"), ffi.new("renyi_lm **"), ffi.new("renyi_lm_session **")
        check(lib.renyi_lm_open(lm, a.file.encode(), struct("renyi_options"), self.err), self.err)
        self.info_ = ffi.new("renyi_lm_info *")
        lib.renyi_lm_get_info(lm[0], self.info_)
        opt = struct("renyi_lm_session_options", max_context=CONTEXT, n_threads=a.threads)
        check(lib.renyi_lm_session_new(session, lm[0], opt, self.err), self.err)
        self.session, self.out = session[0], ffi.new("float[]", self.info_.vocab)
        self.version = f"renyi {renyi.__version__}"

    def pack(self, ids):
        return ffi.new("renyi_lm_input[]", [(ffi.NULL, t) for t in ids])

    def clear(self):
        check(lib.renyi_lm_rewind(self.session, 0, self.err), self.err)

    def feed(self, rows):
        check(lib.renyi_lm_feed(self.session, rows, len(rows), self.out, self.err), self.err)

    def last_logits(self):
        return list(self.out)

    def info(self):
        """A token reads all weights except the token table (F16), of which it reads one row."""
        i = self.info_
        table = 0 if i.tied else 2 * i.vocab * i.dim
        return dict(layers=i.n_layers, bytes_per_token=i.bytes - table, dtype=i.dtype)


class FirstToken:
    """renyi from an image to the first token of the answer, in a new conversation each time."""

    prompt = [1] + tokens_of(34) + [-200] + tokens_of(13)  # as long as vicuna_v1 with a short question

    def __init__(self, a):
        self.a, self.err = a, ffi.new("renyi_error *")
        self.model = renyi.Llava(a.file, tower_dtype=a.tower_dtype)
        self.version = f"renyi {renyi.__version__}"

    def first(self, policy):
        text, out, answer = char(policy, "policy"), ffi.new("renyi_conversation **"), ffi.new("renyi_answer *")
        opt = struct("renyi_conversation_options", n_threads=self.a.threads, policy=text)
        check(lib.renyi_conversation_new(out, self.model._handle, opt, self.err), self.err)
        talk = ffi.gc(out[0], lib.renyi_conversation_free)
        check(lib.renyi_conversation_show_file(talk, self.a.photo.encode(), self.err), self.err)
        opt = struct("renyi_answer_options", max_new_tokens=1, ignore_eos=1)
        check(lib.renyi_conversation_ask_ids(talk, self.prompt, len(self.prompt), opt, answer, self.err), self.err)
        if answer.n_reused:
            raise RuntimeError("rows of an earlier prompt were reused")
        cost = ffi.new("renyi_prompt_cost *")
        check(lib.renyi_conversation_get_cost(talk, cost, self.err), self.err)
        found = dict(ms=answer.first_token_ms, vision_ms=answer.vision_ms, prefill_ms=answer.prefill_ms,
                     visual_tokens=answer.n_visual, prompt_tokens=answer.n_prompt, lm_macs=cost.lm_macs,
                     choice_ms=cost.choice_ms)
        ffi.release(talk)
        return found

    def info(self):
        return {}


ENGINES = {"renyi": Renyi, "first": FirstToken}
