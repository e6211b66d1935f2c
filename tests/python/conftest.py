# conftest.py - what the tests of the Python package share.
# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path

import numpy as np
import pytest
import renyi

ROOT = Path(__file__).resolve().parents[2]
PHOTOS = [str(ROOT / "assets" / name) for name in
          ("golf_ball.png", "parachute.png", "traffic_light.png", "wall_clock.png")]


@pytest.fixture(scope="session")
def model() -> renyi.Model:
    return renyi.Model()


@pytest.fixture(scope="session")
def photos() -> "list[str]":
    return PHOTOS


@pytest.fixture(scope="session")
def program() -> "str | None":
    """The program of the same build; None if the tests run without one."""
    return os.environ.get("RENYI")


@pytest.fixture(scope="session")
def pixels() -> np.ndarray:
    """A photo as the decoder of the library reads it, through Pillow."""
    from PIL import Image

    return np.asarray(Image.open(PHOTOS[0]).convert("RGB"))
