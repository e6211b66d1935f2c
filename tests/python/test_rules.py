# test_rules.py - rules in Python: the same bits as built-in rules, decisions, exceptions, threads.
# SPDX-License-Identifier: Apache-2.0
import shutil
import threading

import numpy as np
import pytest
import renyi


@renyi.rule("py_columns", needs="columns")
def py_columns(view):
    return view.columns


@renyi.rule("py_class", needs="class_row keys queries values")
def py_class(view):
    assert view.columns is None and view.tokens is None
    assert view.keys.shape == (view.n_tokens, view.dim) and not view.keys.flags.writeable
    assert not view.keys.flags.owndata and view.grid == 10 and view.n_heads == 3
    return view.class_row


@renyi.rule("py_first", decides=True)
def py_first(view):
    """Keeps the first patches; the rest goes with small weights to row 1."""
    keep = np.arange(view.n_prefix, view.n_out)
    target = np.full(view.n_tokens, 1)
    target[:view.n_out] = np.arange(view.n_out)
    weights = np.where(np.arange(view.n_tokens) < view.n_out, 1.0, 0.01)
    return keep, weights, target


@renyi.rule("py_drop", needs="tokens", decides=True)
def py_drop(view):
    """Keeps the tokens of largest length: a whole decision that only drops."""
    length = (view.tokens[view.n_prefix:] ** 2).sum(axis=1)
    return np.sort(np.argsort(-length)[:view.n_out - view.n_prefix]) + view.n_prefix


@pytest.mark.parametrize("ours,theirs", [("py_columns reduce=drop", "evit metric=col reduce=drop"),
                                         ("py_class reduce=drop", "evit metric=cls reduce=drop"),
                                         ("py_class reduce=fuse", "evit metric=cls reduce=fuse")])
def test_scores_select_as_the_built_in_rule_does(model, photos, ours, theirs):
    expected = model.session(f"{theirs} keep=0.7 layers=0,3,6", batch_size=4, trace=True)
    logits = expected.run(photos)
    for threads in (1, 2):
        session = model.session(f"{ours} keep=0.7 layers=0,3,6", batch_size=4, threads=threads, trace=True)
        assert np.array_equal(session.run(photos), logits)
        for mine, other in zip(session.trace, expected.trace):
            assert all(np.array_equal(a.kept, b.kept) for a, b in zip(mine.cuts, other.cuts))


def test_whole_decisions(model, photos):
    session = model.session("py_first keep=0.3 layers=2,5", batch_size=2, trace=True)
    assert session.run(photos).shape == (4, 10)
    first, second = session.trace[3].cuts
    assert np.array_equal(first.kept, np.arange(30)) and np.array_equal(second.kept, np.arange(9))
    assert (first.groups[31:] == 1).all()
    session = model.session("py_drop keep=0.5 layers=3", trace=True)
    session.run(photos[0])
    assert len(session.trace[0].cuts[0].kept) == 50 and (session.trace[0].cuts[0].groups == -1).sum() == 50


def test_rules_work_everywhere(model, photos, tmp_path):
    (tmp_path / "n03445777").mkdir()
    shutil.copy(photos[0], tmp_path / "n03445777")
    policy = "py_columns keep=0.5 layers=3"
    found = renyi.evaluate(model, tmp_path, ["none", policy])
    assert found.results[1].images == 1 and found.results[1].policy.startswith("py_columns")
    assert renyi.viz(model, photos[0], policies=[policy]).png()[:4] == b"\x89PNG"
    assert renyi.flops(model, policy).macs < renyi.flops(model).macs
    assert len(list(model.embed(photos, policy=policy))) == 4
    assert renyi.Model().classify(photos[0], k=1, policy=policy)[0][0] == "golf ball"


def test_an_exception_leaves_run_as_it_is(model, photos, tmp_path):
    class Own(Exception):
        pass

    raised = Own("in block 3")

    @renyi.rule("py_raises")
    def py_raises(view):
        if view.block == 3:
            raise raised
        return np.ones(view.n_tokens)

    policy = "py_raises keep=0.7 layers=0,3"
    for threads in (1, 2):
        session = model.session(policy, batch_size=4, threads=threads)
        with pytest.raises(Own) as caught:
            session.run(photos)
        assert caught.value is raised
    (tmp_path / "n03445777").mkdir()
    shutil.copy(photos[0], tmp_path / "n03445777")
    with pytest.raises(Own):
        renyi.evaluate(model, tmp_path, [policy])
    with pytest.raises(Own):
        renyi.viz(model, photos[0], policies=[policy])

    @renyi.rule("py_raises")
    def again(view):
        return np.ones(view.n_tokens)

    assert session.run(photos).shape == (4, 10)  # the same session, with the function that replaced it


@pytest.mark.parametrize("answer,error", [
    (lambda view: None, TypeError), (lambda view: np.ones(3), TypeError), (lambda view: "scores", TypeError),
    (lambda view: np.full(view.n_tokens, np.nan), None)])
def test_wrong_scores(model, photos, answer, error):
    renyi.rule("py_wrong")(answer)
    session = model.session("py_wrong keep=0.7 layers=0")
    if error is None:
        assert np.isfinite(session.run(photos[0])).all()
    else:
        with pytest.raises(error, match="scores"):
            session.run(photos[0])


@pytest.mark.parametrize("answer,error", [
    (lambda view: [1], TypeError), (lambda view: np.full(view.n_out - view.n_prefix, 5), renyi.ArgumentError),
    (lambda view: np.arange(view.n_out - view.n_prefix) + 10**6, renyi.ArgumentError),
    (lambda view: (np.arange(1, view.n_out), np.full(view.n_tokens, np.nan), None), renyi.ArgumentError)])
def test_wrong_decisions(model, photos, answer, error):
    renyi.rule("py_wrong_cut", decides=True)(answer)
    session = model.session("py_wrong_cut keep=0.7 layers=0")
    with pytest.raises(error):
        session.run(photos[0])


def test_names_and_needs():
    for name in ("evit", "Mine", "col", "", "a" * 40):
        with pytest.raises(renyi.ArgumentError):
            renyi.rule(name)(py_columns)
    with pytest.raises(ValueError, match="matrix"):
        renyi.rule("py_needs", needs="matrix")
    with pytest.raises(ValueError, match="other needs"):
        renyi.rule("py_columns", needs="tokens")(py_columns)
    with pytest.raises(TypeError):
        renyi.rule("py_number")(3)
    with pytest.raises(TypeError):
        renyi.rule(3)


def test_many_threads_with_a_rule(model, photos):
    expected = model.session("py_columns keep=0.7 layers=0,3,6").run(photos)
    results = []

    def work():
        session = model.session("py_columns keep=0.7 layers=0,3,6", batch_size=4, threads=2)
        results.append([session.run(photos) for _ in range(5)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and all(np.array_equal(r, expected) for rows in results for r in rows)
