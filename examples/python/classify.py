# classify.py - classifies photos with and without pruning and shows what is left of each.
#   python3 examples/python/classify.py assets/golf_ball.png
# SPDX-License-Identifier: Apache-2.0
import sys

import renyi

POLICY = "mosaic keep=0.7 layers=0,3,6"


def main(photos):
    model = renyi.Model()  # or renyi.Model.from_pretrained("timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k")
    dense, pruned = renyi.flops(model), renyi.flops(model, POLICY)
    print(f"{POLICY}: {pruned.macs / dense.macs:.0%} of the multiply-accumulates")
    session = model.session(policy=POLICY, batch_size=8, trace=True)
    logits = session.run(photos)
    for photo, row, trace in zip(photos, logits, session.trace):
        label, probability = model.classify(photo, k=1)[0]
        left = " ".join(str(len(cut.kept)) for cut in trace.cuts)
        print(f"{photo}: {label} ({probability:.1%}), pruned: {model.labels[row.argmax()]}; "
              f"patches left after each cut: {left} of {model.info.n_patches}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: classify.py PHOTO...")
    main(sys.argv[1:])
