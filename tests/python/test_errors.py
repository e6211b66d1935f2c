# test_errors.py - every exception with its message, and types that are refused before anything runs.
# SPDX-License-Identifier: Apache-2.0
import io
import pickle

import numpy as np
import pytest
import renyi


def test_the_classes_of_the_exceptions():
    assert issubclass(renyi.ArgumentError, ValueError) and issubclass(renyi.FormatError, ValueError)
    assert issubclass(renyi.FileError, OSError) and issubclass(renyi.OutOfMemoryError, MemoryError)
    for name in ("ArgumentError", "OutOfMemoryError", "FileError", "FormatError", "UnsupportedError",
                 "LimitError", "AbortedError"):
        assert issubclass(getattr(renyi, name), renyi.Error)


def test_every_status_has_its_exception():
    from renyi._renyi import lib
    from renyi.errors import make_error

    names = {"ARG": "ArgumentError", "NOMEM": "OutOfMemoryError", "IO": "FileError", "FORMAT": "FormatError",
             "UNSUPPORTED": "UnsupportedError", "LIMIT": "LimitError", "ABORTED": "AbortedError"}
    for status, name in names.items():
        error = make_error(getattr(lib, f"RENYI_ERR_{status}"), "why", 3)
        assert type(error).__name__ == name and str(error) == "why" and error.offset == 3
        assert type(pickle.loads(pickle.dumps(error))) is type(error)


def test_a_wrong_policy_names_its_word(model):
    with pytest.raises(renyi.ArgumentError, match="keep") as caught:
        model.session(policy="mosaic keep=1.5 layers=0")
    assert caught.value.offset == 12
    with pytest.raises(renyi.ArgumentError, match="unknown|no rule"):
        model.session(policy="nothing_like_it")


def test_a_damaged_image_names_its_file(model, photos, tmp_path):
    bad = tmp_path / "bad.png"
    bad.write_bytes(open(photos[0], "rb").read()[:5000])
    with pytest.raises(renyi.FormatError, match="bad.png"):
        model.classify(bad)
    with pytest.raises(renyi.Error):
        model.classify(b"no image")
    with pytest.raises(renyi.FileError, match="missing.jpg"):
        model.session().run([photos[0], tmp_path / "missing.jpg"])
    assert model.classify(photos[0])[0][0] == "golf ball"


def test_models_that_are_missing_or_damaged(tmp_path, monkeypatch):
    with pytest.raises(renyi.FileError, match="nowhere.safetensors"):
        renyi.Model.from_pretrained("nowhere.safetensors")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(renyi.FileError, match="renyi pull timm/none"):
        renyi.Model.from_pretrained("timm/none")
    file = tmp_path / "x.safetensors"
    file.write_bytes(b"\x08\0\0\0\0\0\0\0{]      ")
    with pytest.raises(renyi.FormatError, match="x.safetensors"):
        renyi.Model.from_pretrained(file)


@pytest.mark.parametrize("image", [None, 3, 2.5, object(), {"a": 1}, [[1, 2]], io.StringIO("text"),
                                   np.zeros((4, 4, 3), np.float32), np.zeros((4, 4, 4), np.uint8),
                                   np.zeros((0, 4, 3), np.uint8), np.zeros(4, np.uint8)])
def test_a_bad_type_is_refused_before_anything_runs(model, photos, image):
    session = model.session(batch_size=1, trace=True, policy="evit keep=0.7 layers=3")
    session.run(photos[0])
    before = session.trace
    with pytest.raises(TypeError):
        session.run([photos[0], image])
    assert session.trace is before


def test_bad_tensors(model):
    session = model.session()
    for tensor in (np.zeros((1, 3, 160, 160)), np.zeros((1, 3, 8, 8), np.float32), "x", None,
                   np.zeros((160, 160, 3), np.float32)):
        with pytest.raises(TypeError):
            session.run_tensor(tensor)
    for pixels in (np.zeros((1, 160, 160, 3), np.float32), np.zeros((160, 160, 3), np.uint8)):
        with pytest.raises(TypeError):
            session.run_pixels(pixels)


def test_bad_arguments(model, photos):
    for arguments in ({"policy": 3}, {"batch_size": "8"}, {"threads": 1.5}, {"batch_size": True}):
        with pytest.raises(TypeError):
            model.session(**arguments)
    for arguments in ({"batch_size": 0}, {"threads": -1}, {"policy": "evit\0"}, {"output": "logits"}):
        with pytest.raises(ValueError):
            model.session(**arguments)
    with pytest.raises(TypeError):
        renyi.Model.from_pretrained(3)
    with pytest.raises(ValueError, match="f16"):
        renyi.Model(dtype="f16")
    with pytest.raises(ValueError):
        model.classify("a\0b")


def test_an_exception_of_a_signal_handler_leaves_the_run(model):
    """What a handler raises comes out of run as it is."""
    import signal
    import threading

    class Own(Exception):
        pass

    def handler(*_):
        raise Own("own")

    session = model.session(batch_size=64, threads=1)
    old = signal.signal(signal.SIGUSR1, handler)
    timer = threading.Timer(0.1, lambda: signal.raise_signal(signal.SIGUSR1))
    timer.start()
    try:
        with pytest.raises(Own, match="own"):
            session.run_pixels(np.zeros((64 * 200, 160, 160, 3), np.uint8))
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, old)
