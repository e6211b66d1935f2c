# evaluation.py - accuracy, cost and time of policies on a dataset, compared image by image.
# SPDX-License-Identifier: Apache-2.0
import html
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ._c import NULL, StrPath, chars, count, decode_value, owned, path_char, struct, text
from ._callbacks import PROGRESS, Call
from ._renyi import ffi, lib
from .embedding import bar
from .errors import check
from .model import Model
from .rules import add_rules

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]


@dataclass(frozen=True)
class PolicyResult:
    """Totals of one policy. Accuracies are percent; ranges are 95 % intervals."""

    policy: str
    images: int
    failed: int
    top1: float
    top1_range: Tuple[float, float]
    top5: float
    top5_range: Tuple[float, float]
    loss: float
    gmacs: float
    gmacs_executed: float
    ms_model: float
    ms_total: float
    images_per_second: float
    second_share: float = 0.0  #: of the images that a cascade ran again; GMACs are then means


@dataclass(frozen=True)
class Pair:
    """Two policies on the same images: accuracy of b minus that of a in points, its 95 % interval,
    and McNemar's exact test."""

    a: str
    b: str
    both: int
    only_a: int
    only_b: int
    neither: int
    same: int
    difference: float
    range: Tuple[float, float]
    p_value: float
    #: these images cannot separate the two (p >= 0.05)
    is_noise: bool


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What `evaluate` returns. Shows itself as a table in a notebook."""

    model: str
    results: List[PolicyResult]
    #: every pair of policies, in their order
    pairs: List[Pair]
    #: names of the images, below the folder
    files: List[str]
    #: [images] class of each image; -1 = unknown
    labels: "np.ndarray[Any, Any]"
    #: [policies, images] class that each policy answers; -1 = no result
    predictions: "np.ndarray[Any, Any]"
    #: images that could not be used: (file, reason)
    failures: List[Tuple[str, str]]

    def compare(self, a: int, b: int) -> Pair:
        """The paired test of policies a and b, by their place in the list."""
        n = len(self.results)
        if not (0 <= a < b < n):
            raise IndexError(f"compare needs places 0 <= a < b < {n}, not {a} and {b}")
        return self.pairs[a * n - a * (a + 1) // 2 + b - a - 1]

    def to_pandas(self) -> "pandas.DataFrame":
        """One row per policy. Needs pandas."""
        import pandas

        return pandas.DataFrame([asdict(result) for result in self.results])

    def table(self) -> List[Tuple[str, ...]]:
        """The rows that `print` and notebooks show, with a header."""
        rows: List[Tuple[str, ...]] = [
            ("policy", "top-1 %", "95 %", "top-5 %", "GMACs", "ms", "against the first")]
        for i, r in enumerate(self.results):
            versus = ""
            if i > 0:
                pair = self.compare(0, i)
                versus = f"{pair.difference:+.2f}, p = {pair.p_value:.2g}" + (" (noise)" if pair.is_noise else "")
            rows.append((r.policy, f"{r.top1:.2f}", f"{r.top1_range[0]:.2f} to {r.top1_range[1]:.2f}",
                         f"{r.top5:.2f}", f"{r.gmacs:.3f}", f"{r.ms_model:.2f}", versus))
        return rows

    def __str__(self) -> str:
        rows = self.table()
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows)

    def _repr_html_(self) -> str:
        header, *rows = ["".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)
                         for tag, row in zip(["th"] + ["td"] * len(self.results), self.table())]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        caption = f"{html.escape(self.model)}, {len(self.files)} images"
        return (f"<table><caption>{caption}</caption><thead><tr>{header}</tr></thead>"
                f"<tbody>{body}</tbody></table>")


def evaluate(model: Model, data: StrPath, policies: Sequence[str] = ("none",), *, limit: Optional[int] = None,
             batch_size: int = 8, threads: Optional[int] = None, log: Optional[StrPath] = None,
             resume: bool = False, seed: Optional[int] = None, progress: bool = False,
             on_progress: Optional[Callable[[int, int], Any]] = None, decode: str = "exact") -> Evaluation:
    """Runs policies over the same labelled images.

    data: a folder of class folders, or a list (.csv, .jsonl, .txt).
    limit: at most so many images; with `seed` a random choice. log: JSONL file with every result;
    `resume` continues it. on_progress: called with images done and all images. decode: "scaled"
    decodes large files faster, as in `Model.session`.
    """
    if not isinstance(model, Model):
        raise TypeError(f"model must be a renyi.Model, not {type(model).__name__}")
    texts, keep = chars(policies, "policies")
    log_path = NULL if log is None else path_char(log, "log")
    batch, n_threads, most = count(batch_size, "batch_size"), count(threads, "threads"), count(limit, "limit")
    err = ffi.new("renyi_error *")
    wanted = struct("renyi_dataset_options", limit=most, shuffle=int(seed is not None), seed=seed or 0)
    opened = ffi.new("renyi_dataset **")
    check(lib.renyi_dataset_open(opened, path_char(data, "data"), model._handle, wanted, err), err)
    dataset = ffi.gc(opened[0], lib.renyi_dataset_free)

    info = ffi.new("renyi_dataset_info *")
    lib.renyi_dataset_get_info(dataset, info)
    shown = bar(info.n_images, progress)

    def show(done: int, total: int) -> None:
        if shown is not None:
            shown.update(done - shown.n)
        if on_progress is not None:
            on_progress(done, total)

    call = Call(show)
    options = struct("renyi_eval_options", n_policies=len(keep), policies=texts, batch=batch, n_threads=n_threads,
                     log=log_path, resume=int(bool(resume)), progress=PROGRESS, user=call.handle, decode=decode_value(decode))
    made = ffi.new("renyi_eval **")
    check(lib.renyi_eval_new(made, add_rules(model), dataset, options, err), err)
    run = owned(made[0], lib.renyi_eval_free, dataset, model._handle, call)
    try:
        call.finish(lib.renyi_eval_run(run, call.err))
    finally:
        if shown is not None:
            shown.close()
    return _read(model, run, dataset, int(info.n_images))


def _percent(interval: Any, factor: float = 1.0) -> Tuple[float, float]:
    return (interval.low * factor, interval.high * factor)


def _read(model: Model, run: Any, dataset: Any, n_images: int) -> Evaluation:
    results, pairs = [], []
    n = lib.renyi_eval_policy_count(run)
    r, p = ffi.new("renyi_eval_result *"), ffi.new("renyi_eval_pair *")
    for i in range(n):
        lib.renyi_eval_get_result(run, i, r)
        numbers: Dict[str, Any] = {name: getattr(r, name) for name in (
            "images", "failed", "top1", "top5", "loss", "gmacs", "gmacs_executed", "ms_model", "ms_total",
            "images_per_second", "second_share")}
        results.append(PolicyResult(policy=text(r.policy), top1_range=_percent(r.top1_range),
                                    top5_range=_percent(r.top5_range), **numbers))
    for a in range(n):
        for b in range(a + 1, n):
            lib.renyi_eval_get_pair(run, a, b, p)
            together = p.both + p.only_a + p.only_b + p.none
            interval = lib.renyi_stats_difference(p.only_b, p.only_a, together)
            pairs.append(Pair(a=results[a].policy, b=results[b].policy, both=p.both, only_a=p.only_a,
                              only_b=p.only_b, neither=p.none, same=p.same, difference=p.difference,
                              range=_percent(interval, 100.0), p_value=p.p_value, is_noise=bool(p.is_noise)))
    image, sample = ffi.new("renyi_dataset_image *"), ffi.new("renyi_eval_sample *")
    files, labels = [], np.full(n_images, -1, np.int64)
    predictions = np.full((n, n_images), -1, np.int64)
    for i in range(n_images):
        lib.renyi_dataset_get_image(dataset, i, image)
        files.append(text(image.file))
        if image.label != lib.RENYI_NO_CLASS:
            labels[i] = image.label
        for policy in range(n):
            if lib.renyi_eval_get_sample(run, policy, i, sample):
                predictions[policy, i] = sample.prediction
    failure, failures = ffi.new("renyi_eval_failure *"), []
    for i in range(lib.renyi_eval_failure_count(run)):
        lib.renyi_eval_get_failure(run, i, failure)
        failures.append((text(failure.file), text(failure.message)))
    return Evaluation(model.info.architecture, results, pairs, files, labels, predictions, failures)
