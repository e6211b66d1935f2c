# test_families.py - features of DINOv2, probabilities of SigLIP, and short names of models.
# SPDX-License-Identifier: Apache-2.0
import json
import shutil
import subprocess

import numpy as np
import pytest
import renyi
from conftest import ROOT

FAMILIES = ROOT / "tests" / "vit_families"


def test_features(photos):
    model = renyi.Model(FAMILIES / "hf_dinov2_reg")
    rows = {name: model.session(output=name, batch_size=2).run(photos[:2])
            for name in ("embedding", "class", "mean", "patches")}
    dim, n = model.info.dim, model.info.n_patches
    assert rows["class"].shape == rows["mean"].shape == (2, dim) and rows["patches"].shape == (2, n, dim)
    assert np.array_equal(rows["class"], rows["embedding"])  # what DINOv2's head reads
    assert np.abs(rows["patches"].mean(1) - rows["mean"]).max() < 1e-5
    assert np.abs(rows["class"] - rows["mean"]).max() > 1e-3
    with pytest.raises(ValueError, match="output must be one of"):
        model.session(output="rows")
    with pytest.raises(renyi.Error, match="policy that removes"):
        model.session("evit keep=0.7 layers=1", output="patches")


def test_no_class_token(photos):
    model = renyi.Model(FAMILIES / "timm_reg4_gap")
    with pytest.raises(renyi.Error, match="metric=col"):
        model.session("evit keep=0.7 layers=1 metric=cls")
    with pytest.raises(renyi.Error, match="this model has none; use those of the mean"):
        model.session(output="class")


def test_probabilities_of_siglip_are_sigmoids(photos, program, tmp_path):
    if program is None:
        pytest.skip("no program to make a SigLIP with")
    folder = tmp_path / "siglip"
    folder.mkdir()
    subprocess.run([program, "init", "-q", "--arch", "siglip_tiny_patch16_32", "--blocks", "1", str(folder / "model.safetensors")],
                   check=True)
    shutil.copy(ROOT / "tests" / "tokenizers" / "siglip_spiece.model", folder / "spiece.model")
    names = ["cat", "dog", "owl"]
    (tmp_path / "names.txt").write_text("\n".join(names) + "\n")
    out = subprocess.run([program, "classify", "-q", "-m", str(folder), "--class-names", str(tmp_path / "names.txt"), "--json", photos[0]],
                         check=True, capture_output=True).stdout
    wanted = {top["label"]: top["probability"] for top in json.loads(out)["results"][0]["top"]}
    got = renyi.Clip.from_pretrained(folder).zeroshot(photos[:1], names)
    assert got.shape == (1, 3)
    assert np.allclose(got[0], [wanted[name] for name in names], rtol=1e-5, atol=0)


def test_short_names(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))

    def keep(owner, name):
        folder, commit = tmp_path / f"models--{owner}--{name}", "0" * 40
        (folder / "refs").mkdir(parents=True)
        (folder / "refs" / "main").write_text(commit)
        (folder / "snapshots").mkdir()
        (folder / "snapshots" / commit).symlink_to(FAMILIES / "timm_deit3")

    keep("timm", "deit3_toy.fb_in1k")
    names = ("deit3_toy", "timm/deit3_toy.fb_in1k", "hf-hub:timm/deit3_toy.fb_in1k")
    assert len({renyi.Model.from_pretrained(name).info.architecture for name in names}) == 1
    with pytest.raises(renyi.Error, match="renyi pull timm/absent"):
        renyi.Model.from_pretrained("timm/absent")
    keep("timm", "deit3_toy.fb_in22k")
    with pytest.raises(renyi.Error, match="several models"):
        renyi.Model.from_pretrained("deit3_toy")
