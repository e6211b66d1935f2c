# rules.py - pruning rules written in Python.
# SPDX-License-Identifier: Apache-2.0
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, TypeVar

import numpy as np

from ._c import NULL, char, struct
from ._renyi import ffi, lib
from .errors import check, keep_exception

if TYPE_CHECKING:
    from .model import Model

F = TypeVar("F", bound=Callable[..., Any])
_NEEDS = {"class_row": lib.RENYI_NEED_CLASS_ROW, "columns": lib.RENYI_NEED_COLUMNS,
          "tokens": lib.RENYI_NEED_TOKENS, "sizes": lib.RENYI_NEED_SIZES,
          "keys": 0, "queries": 0, "values": 0}  # the last three are always there
_DROPPED = lib.RENYI_NONE


class RuleView:
    """What a rule sees of one image in one cut: N tokens of width C. The arrays are the engine's own
    memory, read-only and valid only during the call.

    block, image, n_tokens, n_prefix, n_out, dim, n_heads, grid: numbers.
    queries, keys, values [N, C]; position [N]: patch in raster order, -1 = prefix, -2 = fused;
    class_row [N], columns [N], tokens [N, C], sizes [N]: None if the rule did not ask for them.
    """

    def __init__(self, view: Any) -> None:
        self.block: int = view.block
        self.image: int = view.image
        self.n_tokens: int = view.n_tokens
        self.n_prefix: int = view.n_prefix
        self.n_out: int = view.n_out
        self.dim: int = view.dim
        self.n_heads: int = view.n_heads
        self.grid: int = view.grid
        n, c = view.n_tokens, view.dim
        self.queries = _rows(view.queries, n, c, view.qkv_row)
        self.keys = _rows(view.keys, n, c, view.qkv_row)
        self.values = _rows(view.values, n, c, view.qkv_row)
        self.tokens = _rows(view.tokens, n, c, c)
        self.class_row = _numbers(view.class_row, n, "float32")
        self.columns = _numbers(view.columns, n, "float32")
        self.sizes = _numbers(view.sizes, n, "float32")
        self.position = _numbers(view.position, n, "int32")


def _numbers(address: Any, n: int, dtype: str, writeable: bool = False) -> Any:
    if address == NULL:
        return None
    array = np.frombuffer(ffi.buffer(address, 4 * n), dtype)
    array.flags.writeable = writeable
    return array


def _rows(address: Any, n: int, width: int, row: int) -> Any:
    if address == NULL:
        return None
    array: Any = np.ndarray((n, width), np.float32, ffi.buffer(address, 4 * ((n - 1) * row + width)),
                            strides=(4 * row, 4))
    array.flags.writeable = False
    return array


class _Rule:
    """A registered function. C keeps its handle, so a rule is never forgotten."""

    def __init__(self, name: str, function: Callable[[RuleView], Any], needs: int, order: float, decides: bool) -> None:
        self.name, self.function, self.shape = name, function, (needs, order, decides)
        self.handle = ffi.new_handle(self)
        self.text = char(name, "name")

    def add_to(self, model: Any) -> None:
        needs, order, decides = self.shape
        c = struct("renyi_rule", name=self.text, needs=needs, order=order, user=self.handle)
        if decides:
            c.cut = lib.renyi_py_cut
        else:
            c.score = lib.renyi_py_score
        err = ffi.new("renyi_error *")
        check(lib.renyi_model_add_rule(model, c, err), err)


_rules: Dict[str, _Rule] = {}
_lock = threading.Lock()


def rule(name: str, needs: str = "", *, order: float = 0.0, decides: bool = False) -> Callable[[F], F]:
    """Registers a function as the pruning rule `name`, for every model of this process:
    policy="mine keep=0.7 layers=0,3,6" in sessions, `evaluate`, `viz` and `flops`.

    The function gets a `RuleView` and returns scores [N], the larger the better; the engine keeps
    the best, as with its own rules. With decides=True it returns the decision itself: `keep`, or
    (keep, weights, target), as renyi_rule_choice in renyi.h: keep [n_out - n_prefix] tokens,
    weights [N] or None, target [N] rows or None (-1 = dropped).

    needs: words of "class_row columns tokens sizes"; keys, queries and values are always there.
    order: n of the columns if the policy does not give it; 0 = 2.

    The function runs on any thread, for several images at once; what it raises comes out of the
    call that ran it. Defining a rule again replaces the function, as in a notebook.

    >>> import renyi
    >>> @renyi.rule("loud", needs="keys")
    ... def loud(view):
    ...     return (view.keys ** 2).sum(axis=1)
    >>> session = renyi.Model().session("loud keep=0.5 layers=3 reduce=drop", trace=True)
    >>> session.run("assets/golf_ball.png").shape, len(session.trace[0].cuts[0].kept)
    ((1, 10), 50)
    """
    char(name, "name")
    bits = 0
    for word in needs.replace(",", " ").split():
        if word not in _NEEDS:
            raise ValueError(f"needs: {word!r} is unknown; known: {', '.join(_NEEDS)}")
        bits |= _NEEDS[word]

    def register(function: F) -> F:
        if not callable(function):
            raise TypeError(f"a rule is a function, not {type(function).__name__}")
        with _lock:
            old = _rules.get(name)
            if old is None:
                made = _Rule(name, function, bits, float(order), bool(decides))
                _check_name(made)
                _rules[name] = made
            elif old.shape == (bits, float(order), bool(decides)):
                old.function = function
            else:
                raise ValueError(f"rule {name!r} exists with other needs, order or decides; choose another name")
        return function

    return register


def _check_name(made: _Rule) -> None:
    """Raises the library's message if the name is not allowed, before any model has the rule."""
    out, err = ffi.new("renyi_model **"), ffi.new("renyi_error *")
    check(lib.renyi_model_open(out, b"builtin", NULL, err), err)
    try:
        made.add_to(out[0])
    finally:
        lib.renyi_model_free(out[0])


def add_rules(model: "Model") -> Any:
    """The model's handle, after it has got the rules that were registered since the last call."""
    if len(model._rules) != len(_rules):
        with _lock:
            for name, registered in _rules.items():
                if name not in model._rules:
                    registered.add_to(model._handle)
                    model._rules.add(name)
    return model._handle


def _score(user: Any, view: Any, score: Any) -> None:
    seen = RuleView(view)
    given = np.asarray(ffi.from_handle(user).function(seen))
    if given.shape != (seen.n_tokens,) or given.dtype.kind not in "fiub":
        raise TypeError(f"a rule must return {seen.n_tokens} scores, one per token, not {given.dtype} {list(given.shape)}")
    _numbers(score, seen.n_tokens, "float32", True)[:] = given


def _cut(user: Any, view: Any, choice: Any) -> None:
    seen = RuleView(view)
    n, rows = seen.n_tokens, seen.n_out - seen.n_prefix
    given = ffi.from_handle(user).function(seen)
    keep, weights, target = given if isinstance(given, tuple) else (given, None, None)
    for name, values, size, address in (("keep", keep, rows, choice.keep), ("target", target, n, choice.target)):
        if values is not None:
            array = np.asarray(values)
            if array.shape != (size,) or array.dtype.kind not in "iu":
                raise TypeError(f"{name} must be {size} ints, not {array.dtype} {list(array.shape)}")
            _numbers(address, size, "uint32", True)[:] = np.where(array < 0, _DROPPED, array)
    if weights is not None:
        array = np.asarray(weights)
        if array.shape != (n,):
            raise TypeError(f"weights must be {n} numbers, not {list(array.shape)}")
        _numbers(choice.weight, n, "float32", True)[:] = array


@ffi.def_extern(error=1)
def renyi_py_score(user: Any, view: Any, score: Any) -> int:
    try:
        _score(user, view, score)
    except BaseException as error:
        return keep_exception(error)
    return 0


@ffi.def_extern(error=1)
def renyi_py_cut(user: Any, view: Any, choice: Any) -> int:
    try:
        _cut(user, view, choice)
    except BaseException as error:
        return keep_exception(error)
    return 0
