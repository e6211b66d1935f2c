# clip_search.py - finds the photos of a folder that fit a text best, with a pruned CLIP.
#   python3 examples/python/clip_search.py openai/clip-vit-base-patch16 photos "a red car"
# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import numpy as np
import renyi

ENDS = {".jpg", ".jpeg", ".png", ".webp"}


def main(name, folder, text, most=5):
    clip = renyi.Clip.from_pretrained(name)
    photos = sorted(path for path in Path(folder).rglob("*") if path.suffix.lower() in ENDS)
    rows = np.stack(list(clip.image.embed(photos, policy="tome r=4", progress=True)))
    scores = rows @ clip.encode_text(text)[0]
    for i in np.argsort(-scores)[:most]:
        print(f"{scores[i]:7.4f}  {photos[i]}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: clip_search.py MODEL FOLDER TEXT")
    main(*sys.argv[1:])
