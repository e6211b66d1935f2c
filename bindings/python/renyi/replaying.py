# replaying.py - the tokens that a run kept, for pruning the same model in another framework.
# SPDX-License-Identifier: Apache-2.0
from dataclasses import dataclass
from typing import Any, List

import numpy as np

from .errors import ArgumentError
from .session import NONE, Session


@dataclass(frozen=True, eq=False)
class ReplayStep:
    """One cut: which tokens go on, per image."""

    block: int
    #: "attention" = between attention and MLP of the block, "block" = after the block
    after: str
    #: [images, tokens out] int64, indices of tokens as they enter the block; the class token is 0
    index: "np.ndarray[Any, Any]"


def replay(session: Session) -> List[ReplayStep]:
    """The choice of the session's last run, cut by cut. The session needs trace=True and a policy
    that drops tokens (reduce=drop): tokens that are merged or fused have no single index.

    >>> import renyi
    >>> session = renyi.Model().session("evit keep=0.5 layers=3,6 reduce=drop", batch_size=2, trace=True)
    >>> logits = session.run(["assets/golf_ball.png", "assets/parachute.png"])
    >>> [(step.block, step.after, step.index.shape) for step in renyi.replay(session)]
    [(3, 'attention', (2, 51)), (6, 'attention', (2, 26))]
    """
    if not isinstance(session, Session):
        raise TypeError(f"session must be a renyi.Session, not {type(session).__name__}")
    if not session.trace:
        raise ArgumentError("there is no trace: make the session with trace=True and run it first")
    after = "block" if "at=end" in session.policy.split() else "attention"
    steps = []
    for cuts in zip(*(image.cuts for image in session.trace)):
        for cut in cuts:
            # A token that was merged goes to the row of another token.
            rows = cut.groups[cut.groups != NONE]
            if (cut.source == NONE).any() or len(rows) != len(cut.source):
                raise ArgumentError(f"block {cut.block}: '{session.policy}' merges or fuses tokens; only "
                                    "dropped tokens can be replayed (reduce=drop)")
        if len({len(cut.source) for cut in cuts}) != 1:
            raise ArgumentError(f"block {cuts[0].block}: the images keep different numbers of tokens")
        steps.append(ReplayStep(cuts[0].block, after, np.stack([cut.source for cut in cuts]).astype(np.int64)))
    return steps
