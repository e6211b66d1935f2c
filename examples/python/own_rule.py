# own_rule.py - a pruning rule in Python, compared with built-in ones on labelled photos, image by image.
#   python3 examples/python/own_rule.py imagenette2-160/val 200
# SPDX-License-Identifier: Apache-2.0
import sys

import renyi

REST = "keep=0.7 layers=0,3,6"


@renyi.rule("both", needs="class_row columns")
def both(view):
    """A token matters if the class token looks at it and many other tokens do."""
    return view.class_row * view.columns


def main(folder, images):
    policies = ["none", f"both {REST}", f"evit {REST}", f"mosaic {REST}"]
    found = renyi.evaluate(renyi.Model(), folder, policies, limit=images, seed=0, progress=True)
    print(found)
    for other in (2, 3):
        pair = found.compare(1, other)
        print(f"{pair.b.split()[0]} minus {pair.a.split()[0]}: {pair.difference:+.1f} points, 95 % from "
              f"{pair.range[0]:.1f} to {pair.range[1]:.1f}, p = {pair.p_value:.3g}"
              f"{' (these images cannot tell)' if pair.is_noise else ''}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: own_rule.py FOLDER IMAGES")
    main(sys.argv[1], int(sys.argv[2]))
