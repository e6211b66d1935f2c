# figures.py - draws what two policies keep of photos, as PNG, SVG or HTML.
#   python3 examples/python/figures.py kept.png assets/golf_ball.png
# SPDX-License-Identifier: Apache-2.0
import sys

import renyi

POLICIES = ["evit keep=0.7 layers=0,3,6", "mosaic keep=0.7 layers=0,3,6"]


def main(file, photos):
    figure = renyi.viz(renyi.Model(), photos, policies=POLICIES, layers=[0, 3, 6])
    figure.save(file)  # in a notebook the figure shows itself
    print(f"wrote {file}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: figures.py FILE.png|.svg|.html PHOTO...")
    main(sys.argv[1], sys.argv[2:])
