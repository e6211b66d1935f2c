# test_examples.py - the scripts of examples/python and the Python lines of the documents run.
# SPDX-License-Identifier: Apache-2.0
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(name, *arguments):
    done = subprocess.run([sys.executable, str(ROOT / "examples" / "python" / name), *map(str, arguments)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_classify(photos):
    out = run("classify.py", *photos)
    assert out.count("golf ball") >= 2 and "left after each cut: 70 49 35 of 100" in out


def test_figures(photos, tmp_path):
    run("figures.py", tmp_path / "a.png", *photos[:2])
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"


def test_own_rule(photos, tmp_path):
    for name, file in (("n03445777", photos[0]), ("n03888257", photos[1])):
        (tmp_path / name).mkdir()
        shutil.copy(file, tmp_path / name)
    out = run("own_rule.py", tmp_path, 200)
    assert "mosaic keep=0.7" in out and "points, 95 % from" in out


def test_clip_search(photos, program, tmp_path):
    if not program:
        pytest.skip("no program (RENYI)")
    subprocess.run([program, "init", "-q", "--arch", "clip_vit_tiny_patch32_224", "--dim", "64", "--heads", "2",
                    "--blocks", "2", str(tmp_path / "clip.safetensors")], check=True)
    (tmp_path / "bpe_simple_vocab_16e6.txt").write_text("#version: 0.2\nc a\nca t</w>\n")
    out = run("clip_search.py", tmp_path / "clip.safetensors", ROOT / "assets", "a cat")
    assert sorted(line.split()[-1] for line in out.splitlines()) == sorted(photos)


@pytest.mark.parametrize("page", ["README.md", "docs/PYTHON.md"])
def test_the_python_lines_of_the_documents(page, tmp_path, monkeypatch):
    """All blocks of a page in their order, except those that name models to be downloaded."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.S)
    assert blocks
    monkeypatch.chdir(tmp_path)
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    shown = {}
    for block in blocks:
        if "from_pretrained(" not in re.sub(r"#.*", "", block):
            exec(compile(block, page, "exec"), shown)
