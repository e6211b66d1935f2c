# test_run.py - sessions: every type of image, tensors, batches, traces, interrupts.
# SPDX-License-Identifier: Apache-2.0
import gc
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import renyi

POLICY = "mosaic keep=0.7 layers=0,3,6"


def test_classify_is_that_of_the_program(model, photos, program):
    if not program:
        pytest.skip("no program")
    out = subprocess.run([program, "classify", "-q", "--json", "-k", "3", photos[0]], check=True, capture_output=True)
    top = json.loads(out.stdout)["results"][0]["top"]
    ours = model.classify(photos[0], k=3)
    assert [label for label, _ in ours] == [entry["label"] for entry in top]
    assert np.allclose([p for _, p in ours], [entry["probability"] for entry in top], rtol=1e-6)


def test_probabilities_sum_to_one(model, photos):
    answer = model.classify(photos[0], k=10)
    assert len(answer) == 10 and abs(sum(p for _, p in answer) - 1) < 1e-9
    assert len(model.classify(photos[0], k=99)) == 10
    assert answer[0][0] == "golf ball" and answer[0][0] in model.labels


class Interface:
    """An object that shows its pixels only through __array_interface__."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


class Dlpack:
    """An object that shows its pixels only through DLPack, as a torch tensor does."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_every_type_of_image_gives_the_same_bits(model, photos, pixels):
    from PIL import Image

    session = model.session()
    expected = session.run(photos[0])
    data = pathlib.Path(photos[0]).read_bytes()
    wide = np.zeros((pixels.shape[0], pixels.shape[1] + 7, 3), np.uint8)
    wide[:, :-7] = pixels
    with open(photos[0], "rb") as file:
        assert np.array_equal(session.run(file), expected)
    for image in (pathlib.Path(photos[0]), data, bytearray(data), memoryview(data),
                  Image.open(photos[0]), pixels, wide[:, :-7], np.asfortranarray(pixels),
                  Interface(pixels), Dlpack(pixels.copy())):
        assert np.array_equal(session.run(image), expected), type(image)
        assert np.array_equal(session.run([image]), expected), type(image)
    assert np.array_equal(session.run(io.BytesIO(data)), expected)
    assert np.array_equal(session.run([io.BytesIO(data)]), expected)
    assert np.array_equal(session.run(np.stack([pixels, pixels])), np.repeat(expected, 2, axis=0))
    assert np.array_equal(session.run(iter([pixels])), expected)


def test_gray_is_repeated(model, pixels):
    gray = np.ascontiguousarray(pixels[:, :, 0])
    expected = model.session().run(np.repeat(gray[:, :, None], 3, axis=2))
    for image in (gray, gray[:, :, None]):
        assert np.array_equal(model.session().run([image]), expected)


def test_arrays_are_not_copied(pixels):
    from renyi.images import pixels_of, tensor_of

    own = pixels.copy()
    assert np.shares_memory(pixels_of(Dlpack(own)), own)
    assert np.shares_memory(pixels_of(Interface(own)), own)
    floats = np.zeros((2, 3, 160, 160), np.float32)
    assert np.shares_memory(tensor_of(Dlpack(floats), 160), floats)


@pytest.mark.reference
def test_torch_tensors_in_and_out(model, pixels):
    torch = pytest.importorskip("torch", reason="no torch: its tensors are not tested")
    from renyi.images import pixels_of, tensor_of

    session, tensor = model.session(), torch.from_numpy(pixels.copy())
    assert np.shares_memory(pixels_of(tensor), tensor.numpy())
    logits = session.run(tensor)
    assert np.array_equal(logits, session.run(pixels))
    assert torch.equal(torch.from_dlpack(logits), torch.from_numpy(logits))
    assert torch.from_dlpack(logits).data_ptr() == logits.ctypes.data
    floats = torch.zeros(2, 3, 160, 160)
    assert np.shares_memory(tensor_of(floats, 160), floats.numpy())
    assert session.run_tensor(floats).shape == (2, 10)
    with pytest.raises(TypeError):  # part of a graph
        session.run_tensor(floats.requires_grad_())


def test_a_tensor_runs_as_its_image(model, photos):
    from PIL import Image

    side, info = model.info.image_size, model.info
    square = np.asarray(Image.open(photos[1]).convert("RGB").resize((side, side)))
    session = model.session(batch_size=2)
    expected = session.run_pixels(square[None])
    mean, std = (np.asarray(v, np.float32) for v in (info.mean, info.std))
    chw = ((square.astype(np.float32) / np.float32(255) - mean) / std).transpose(2, 0, 1)
    assert np.array_equal(session.run_tensor(chw), expected)
    assert np.array_equal(session.run_tensor(np.stack([chw] * 3)), np.repeat(expected, 3, axis=0))


def test_batches_and_threads_do_not_change_a_bit(model, photos):
    expected = np.concatenate([model.session(POLICY).run(photo) for photo in photos])
    for batch_size, threads in ((1, 1), (3, 2), (8, None)):
        assert np.array_equal(model.session(POLICY, batch_size, threads).run(photos), expected)


def test_trace_of_several_batches(model, photos):
    session = model.session(POLICY, batch_size=3, trace=True)
    session.run(photos)
    assert len(session.trace) == 4
    first = [cut.scores.copy() for cut in session.trace[0].cuts]
    trace = session.trace
    for image in trace:
        assert [cut.block for cut in image.cuts] == [0, 3, 6]
        assert [len(cut.kept) for cut in image.cuts] == [70, 49, 35]
        for cut in image.cuts:
            assert cut.kept.dtype == np.int32 and len(set(cut.kept)) == len(cut.kept)
            assert cut.kept.min() >= 0 and cut.kept.max() < model.info.n_patches
            assert len(cut.groups) == len(cut.scores) == len(cut.position)
            # rows are continued by the tokens that `source` names
            rows = np.arange(len(cut.source))
            assert np.array_equal(cut.groups[cut.source[cut.source >= 0]], rows[cut.source >= 0])
    session.run(photos[3])  # the arrays of the first run are copies
    assert all(np.array_equal(a, cut.scores, equal_nan=True) for a, cut in zip(first, trace[0].cuts))
    assert len(session.trace) == 1
    assert model.session(POLICY).trace == []


def test_dropped_tokens_have_no_group(model, photos):
    session = model.session("evit keep=0.5 layers=3 reduce=drop", trace=True)
    session.run(photos[0])
    cut = session.trace[0].cuts[0]
    assert (cut.groups == -1).sum() == 50 and len(cut.kept) == 50
    kept = cut.scores[1:][cut.kept]
    assert kept.min() >= np.delete(cut.scores[1:], cut.kept).max()


def test_embeddings_feed_the_head(model, photos):
    rows = model.session(output="embedding").run(photos[:2])
    assert rows.shape == (2, model.info.embed_dim) and np.isfinite(rows).all()


def test_an_empty_list_gives_no_rows(model):
    assert model.session().run([]).shape == (0, 10)


def test_ctrl_c_stops_a_run(tmp_path):
    """A child process runs for minutes; an interrupt ends it at once, with KeyboardInterrupt."""
    # A shell may have started the tests in the background, where SIGINT is ignored.
    code = ("import renyi, numpy as np, signal\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "s = renyi.Model().session(batch_size=64, threads=1)\n"
            "x = np.zeros((64 * 400, 160, 160, 3), np.uint8)\n"
            "print('ready', flush=True)\n"
            "try:\n    s.run_pixels(x)\n"
            "except KeyboardInterrupt:\n    print('stopped', s.run_pixels(x[:1]).shape)\n")
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.5)
    start = time.monotonic()
    child.send_signal(signal.SIGINT)
    try:
        out, _ = child.communicate(timeout=60)
    finally:
        child.kill()
    assert out == "stopped (1, 10)\n" and child.returncode == 0
    assert time.monotonic() - start < 20


def test_the_gil_is_released(model, photos):
    """Another thread counts while a run is on."""
    counted = []
    running = threading.Event()

    def count():
        running.wait()
        while running.is_set():
            counted.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    session = model.session(batch_size=64, threads=1)
    pixels = np.zeros((64, 160, 160, 3), np.uint8)
    running.set()
    start = time.monotonic()
    session.run_pixels(pixels)
    end = time.monotonic()
    running.clear()
    thread.join()
    during = [t for t in counted if start < t < end]
    # With the GIL held the thread would only run in the 12 callbacks between blocks.
    assert len(during) > 24, f"{len(during)} in {end - start:.3f} s"


def test_one_session_in_two_threads_is_refused(model):
    session = model.session(batch_size=64, threads=1)
    pixels = np.zeros((64, 160, 160, 3), np.uint8)
    thread = threading.Thread(target=session.run_pixels, args=(pixels,))
    thread.start()
    try:
        while thread.is_alive() and not session._lock.locked():
            time.sleep(0.0005)
        with pytest.raises(RuntimeError, match="one session per thread"):
            session.run_pixels(pixels[:1])
    finally:
        thread.join()
    assert session.run_pixels(pixels[:1]).shape == (1, 10)


def test_eight_threads_with_a_session_each(model, photos):
    expected = model.session(POLICY).run(photos)
    results = [None] * 8

    def work(i):
        session = model.session(POLICY, batch_size=4, threads=1)
        for _ in range(5):
            results[i] = session.run(photos)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(result, expected) for result in results)


def test_sessions_work_after_fork(model, photos):
    session = model.session(threads=2)
    expected = session.run(photos[0])
    child = os.fork()
    if child == 0:
        code = 1
        try:
            same = np.array_equal(session.run(photos[0]), expected)
            same = same and np.array_equal(model.session(threads=2).run(photos[0]), expected)
            code = 0 if same else 2
        finally:
            os._exit(code)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert os.waitstatus_to_exitcode(status) == 0
            break
        time.sleep(0.01)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert np.array_equal(session.run(photos[0]), expected)


def test_the_model_outlives_its_session(photos):
    session = renyi.Model().session()  # no other reference to the model
    gc.collect()
    assert session.run(photos[0]).argmax() == 8


def test_garbage_collection_frees_sessions_before_their_model(photos):
    """Model and session refer to each other, so only the collector ends them, in any order."""
    from renyi import _c
    gc.collect()
    before = len(_c._owned)
    for _ in range(20):
        first = renyi.Model()
        second = first.session(policy=POLICY, streams=2, threads=2)
        first.other, second.other = second, first
        second.run(photos[:1])
        del first, second
    gc.collect()
    assert len(_c._owned) == before
