# cost.py - what a policy costs, from token counts alone.
# SPDX-License-Identifier: Apache-2.0
from dataclasses import dataclass
from typing import Any, List, Optional, Union

from ._c import NULL, char
from ._renyi import ffi, lib
from .errors import check
from .model import Model
from .rules import add_rules


@dataclass(frozen=True)
class LayerCost:
    """Cost of one block, per image."""

    tokens_in: int
    tokens_mlp: int
    tokens_out: int
    macs: float
    macs_paper: float
    macs_executed: float


@dataclass(frozen=True)
class Cost:
    """Cost of a whole model, per image, in multiply-accumulates. `macs_paper` counts LayerNorm too,
    as the "GFLOPs" of papers do; `macs_executed` is what a session really computes."""

    n_params: int
    macs: float
    macs_paper: float
    macs_executed: float
    tokens_left: int
    layers: List[LayerCost]


def flops(model: Union[Model, str], policy: Optional[str] = None) -> Cost:
    """Cost of a policy for a model, or for an architecture by its name. Nothing is run.

    >>> import renyi
    >>> dense = renyi.flops("vit_base_patch16_224")
    >>> pruned = renyi.flops("vit_base_patch16_224", "mosaic keep=0.7 layers=0,3,6")
    >>> round(dense.macs_paper / 1e9, 3), round(pruned.macs_paper / 1e9, 3)
    (17.583, 8.62)
    """
    handle = add_rules(model) if isinstance(model, Model) else NULL
    name = NULL if isinstance(model, Model) else char(model, "model")
    out, err = ffi.new("renyi_cost *"), ffi.new("renyi_error *")
    layers = ffi.new("renyi_layer_cost[]", 256)
    check(lib.renyi_policy_cost(handle, name, char(policy or "none", "policy"), out, layers, len(layers), err), err)

    def layer(c: Any) -> LayerCost:
        return LayerCost(c.tokens_in, c.tokens_mlp, c.tokens_out, c.macs, c.macs_paper, c.macs_executed)

    total = out.total
    blocks = [layer(layers[i]) for i in range(min(out.n_blocks, len(layers)))]
    return Cost(total.n_params, total.macs, total.macs_paper, total.macs_executed,
                blocks[-1].tokens_out if blocks else total.tokens_out, blocks)
