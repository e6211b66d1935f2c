# figures.py - figures of what policies keep of an image, for files and notebooks.
# SPDX-License-Identifier: Apache-2.0
import base64
import os
from typing import Any, Iterable, List, Optional, Sequence, Union

from ._c import NULL, StrPath, char, chars, count, owned, path_char, struct
from ._callbacks import PROGRESS, Call
from ._renyi import ffi, lib
from .errors import check, make_error
from .images import Image, sources
from .model import Model
from .rules import add_rules

KINDS = ("all", "overlay", "heat", "mosaic", "norms", "predictions", "attention")


def _drawing() -> Any:
    """The module that draws; only it needs cairo and pango. A system without a configuration of
    fontconfig gets that of the package, so that texts can be drawn."""
    if not os.path.exists("/etc/fonts/fonts.conf") and not os.environ.get("FONTCONFIG_PATH"):
        os.environ.setdefault("FONTCONFIG_FILE", os.path.join(os.path.dirname(__file__), "fonts", "fonts.conf"))
    from . import _report

    return _report.lib


class Figure:
    """What policies keep of one or more images; made by `viz`. Shows itself in a notebook.

    >>> import renyi
    >>> figure = renyi.viz(renyi.Model(), "assets/golf_ball.png", policies=["mosaic keep=0.7 layers=0,3,6"])
    >>> figure.svg()[:4]
    '<svg'
    """

    def __init__(self, results: List[Any], kind: str, title: Optional[str], dark: bool) -> None:
        self._results = results
        self._kind = KINDS.index(kind)
        self._title = char(title, "title")
        self._dark = dark

    def _draw(self, name: str) -> bytes:
        drawing = _drawing()
        out, err = ffi.new("renyi_figure_file *"), ffi.new("renyi_error *")
        shown = ffi.new("const renyi_viz_result *[]", self._results)
        options = struct("renyi_figure_options", kind=self._kind, title=self._title, is_dark=int(self._dark))
        check(getattr(drawing, f"renyi_figure_{name}")(out, shown, len(self._results), options, err), err)
        try:
            return bytes(ffi.buffer(out.bytes, out.size))
        finally:
            drawing.renyi_figure_free(out)

    def png(self) -> bytes:
        """The figure as a PNG file."""
        return self._draw("png")

    def svg(self) -> str:
        """The figure as an SVG file."""
        return self._draw("svg").decode()

    def page(self) -> str:
        """An HTML page with all layers and metrics, which needs no network."""
        drawing = _drawing()
        out, err = ffi.new("renyi_report_text *"), ffi.new("renyi_error *")
        shown = ffi.new("const renyi_viz_result *[]", self._results)
        page = struct("renyi_viz_page", n_photos=len(self._results), photos=shown, title=self._title)
        check(drawing.renyi_viz_html(out, page, err), err)
        try:
            return bytes(ffi.buffer(out.bytes, out.size)).decode()
        finally:
            drawing.renyi_report_text_free(out)

    def save(self, path: StrPath) -> None:
        """Writes .png, .svg or .html, by the end of the name. The file appears when it is complete."""
        where = path_char(path)
        end = os.path.splitext(os.fsdecode(path))[1].lower()
        if end not in (".png", ".svg", ".html"):
            raise ValueError(f"a figure is saved as .png, .svg or .html, not {os.fsdecode(path)!r}")
        data = self.png() if end == ".png" else (self.svg() if end == ".svg" else self.page()).encode()
        out, err = ffi.new("renyi_output_file **"), ffi.new("renyi_error *")
        check(lib.renyi_output_file_open(out, where, err), err)
        status = lib.renyi_output_file_write(out[0], data, len(data), err)
        first = make_error(status, ffi.string(err.message).decode("utf-8", "replace")) if status else None
        closed = lib.renyi_output_file_close(out[0], int(first is None), err)
        if first is not None:
            raise first
        check(closed, err)

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.png()).decode()
        return f'<img alt="what the policies keep" style="max-width:100%" src="data:image/png;base64,{data}">'


def viz(model: Model, images: Union[Image, Iterable[Image]], policies: Sequence[str] = (), *,
        metrics: Sequence[str] = (), layers: Sequence[int] = (), kind: Optional[str] = None,
        attention: bool = False, title: Optional[str] = None, dark: bool = False,
        threads: Optional[int] = None) -> Figure:
    """Draws what policies keep of images, and what metrics rank high.

    policies: a row each. metrics: as after metric= in a policy, such as "col n=4".
    kind: "all", "overlay" (the default with policies), "heat", "mosaic", "norms", "predictions" or
    "attention".
    """
    if not isinstance(model, Model):
        raise TypeError(f"model must be a renyi.Model, not {type(model).__name__}")
    chosen = kind if kind is not None else ("overlay" if policies else "all")
    if chosen not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {chosen!r}")
    given = sources(images)
    texts, keep = chars(policies, "policies")
    names, kept = chars(metrics, "metrics")
    call = Call()
    layer_list = ffi.new("uint32_t[]", [int(layer) for layer in layers])
    none = ffi.new("char[]", b"")  # with policies of its own, the figure needs no rows for metrics
    options = struct("renyi_viz_options", n_policies=len(keep), policies=texts, n_metrics=len(kept), metrics=names,
                     n_layers=len(layer_list), layers=layer_list, n_threads=count(threads, "threads"),
                     rule=none if policies and not metrics else NULL,
                     attention=int(attention or chosen == "attention"),
                     progress=PROGRESS, progress_user=call.handle)
    made = ffi.new("renyi_viz **")
    check(lib.renyi_viz_new(made, add_rules(model), options, call.err), call.err)
    runner = owned(made[0], lib.renyi_viz_free, model._handle)
    results = []
    for source in given:
        out = ffi.new("renyi_viz_result **")
        name = char(os.path.basename(source.name) or "image", "name")
        call.finish(lib.renyi_viz_run(runner, source.load(), name, out, call.err), source.name)
        results.append(ffi.gc(out[0], lib.renyi_viz_result_free))
    return Figure(results, chosen, title, dark)
