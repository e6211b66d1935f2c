# conftest.py - what the tests of the Python package share.
# SPDX-License-Identifier: Apache-2.0
import os
import re
from pathlib import Path

import numpy as np
import pytest
import renyi

ROOT = Path(__file__).resolve().parents[2]
PHOTOS = [str(ROOT / "assets" / name) for name in
          ("golf_ball.png", "parachute.png", "traffic_light.png", "wall_clock.png")]


def pytest_configure(config):
    config.addinivalue_line("markers", "reference: needs torch, timm, transformers or llama.cpp (RENYI_PYTHON)")


def document_lines(page: str, word: str) -> str:
    """The block of code of a document that has the word."""
    blocks = [block for block in re.findall(r"```\w*\n(.*?)```", (ROOT / page).read_text(), flags=re.S) if word in block]
    assert len(blocks) == 1, (page, word, len(blocks))
    return blocks[0]


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
