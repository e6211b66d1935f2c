# __init__.py - the package renyi.
# SPDX-License-Identifier: Apache-2.0
"""Vision Transformers on the CPU, with token pruning.

    import renyi
    model = renyi.Model()                    # or renyi.Model.from_pretrained("timm/vit_tiny...")
    model.classify("photo.jpg", k=5)         # [(label, probability), ...]
    session = model.session(policy="mosaic keep=0.7 layers=0,3,6", batch_size=8)
    logits = session.run(["a.jpg", "b.jpg"]) # NumPy [2, classes]

Model    a ViT: classify, session, embed
Session  runs on batches of images under one policy; `trace` shows what was cut
Clip     encode_image, encode_text, zeroshot
Tca      adapts a zero-shot model to the images it has seen
Llava    ask: answers about images, piece by piece
evaluate accuracy and time of policies on a dataset, with paired tests
viz      figures of what policies keep
flops    what a policy costs
rule     a pruning rule of your own, in Python
replay   which tokens a run kept, to prune the same model in timm or transformers
"""

from ._c import text as _text
from ._renyi import lib as _lib
from .clip import Clip
from .cost import Cost, LayerCost, flops
from .errors import (AbortedError, ArgumentError, Error, FileError, FormatError, LimitError,
                     OutOfMemoryError, UnsupportedError)
from .evaluation import Evaluation, Pair, PolicyResult, evaluate
from .figures import Figure, viz
from .llava import Llava
from .model import Model, ModelInfo
from .replaying import ReplayStep, replay
from .rules import RuleView, rule
from .session import Cut, ImageTrace, Session
from .tca import Tca, TcaInfo

__version__ = _text(_lib.renyi_version())
#: what the C library was built with
build_options = _text(_lib.renyi_build_options())

__all__ = [
    "AbortedError", "ArgumentError", "Clip", "Cost", "Cut", "Error", "Evaluation", "Figure",
    "FileError", "FormatError", "ImageTrace", "LayerCost", "LimitError", "Llava", "Model",
    "ModelInfo", "OutOfMemoryError", "Pair", "PolicyResult", "ReplayStep", "RuleView",
    "Session", "Tca", "TcaInfo", "UnsupportedError", "build_options", "evaluate", "flops", "replay", "rule", "viz",
]
