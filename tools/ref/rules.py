# rules.py - the pruning rules in PyTorch. Which tokens stay is decided on detached values; what
# they become is differentiated. Every decision also records its margin, so that a golden file is
# refused if rounding could change a choice.
# SPDX-License-Identifier: Apache-2.0
import math

import torch

from tiny_vit import Tokens


def ranked(score, margins, cut=None):
    """Indices by descending score, ties to the lower index. Records the smallest relative gap."""
    order = sorted(range(len(score)), key=lambda j: (-score[j], j))
    gaps = [abs(score[a] - score[b]) / max(abs(score[a]), 1e-30) for a, b in zip(order, order[1:])]
    if gaps:
        margins.append(min(gaps) if cut is None else gaps[cut - 1] if 0 < cut <= len(gaps) else 1.0)
    return order


def cosines(a, b):
    return (a / a.norm(dim=1, keepdim=True)) @ (b / b.norm(dim=1, keepdim=True)).T


def nearest(cos, margins):
    """The column of the largest entry of each row."""
    if cos.shape[1] > 1:
        top = cos.topk(2, dim=1).values
        margins += (top[:, 0] - top[:, 1]).tolist()
    return cos.argmax(1).tolist()


class Policy:
    """A policy as `renyi policies` describes it; every key that the rule reads must be given."""

    def __init__(self, text):
        self.text, parts = text, text.split()
        self.rule, self.margins = parts[0], []
        self.keys = dict(w.split("=", 1) if "=" in w else ("reduce", w) for w in parts[1:])
        layers = self.keys["layers"]
        self.layers = None if layers == "all" else [int(n) for n in layers.split(",")]
        self.beta = float(self.keys.get("beta", 1.0))
        self.temperature = float(self.keys.get("temperature", 1.0))

    def cuts(self, i):
        return self.layers is None or i in self.layers

    def reduce_of(self, i):
        reduce = self.keys["reduce"].split(",")
        return reduce[self.layers.index(i)] if len(reduce) > 1 else reduce[0]

    def n_kept(self, patches, i):
        if "keep" in self.keys:
            keep = self.keys["keep"].split(",")
            return math.ceil(float(keep[self.layers.index(i)] if len(keep) > 1 else keep[0]) * patches)
        return patches - int(self.keys["p"])

    def cut(self, c, i, t, v):
        """(rows, tokens) after the cut; rows carry the gradient, tokens the sizes and patches."""
        if self.rule == "tome":
            return tome(self, c, t, v)
        if self.rule == "mosaic":
            thin = i == 0 and "likeness" not in self.keys and len(t.x) - c.n_prefix == c.grid**2
            return mosaic_thin(self, c, i, t, v) if thin else mosaic_merge(self, c, i, t, v)
        return select(self, c, i, t, v)


# ---- naive and evit ----------------------------------------------------------------------------

def column_norm(keys, c, v):
    """(sum_i A_ij^n)^(1/n) over the rows in use; heads=each: the mean of the norms of the heads."""
    a = v.each if keys.get("heads", "mean") == "each" else v.a[None]
    n, count = float(keys["n"]), torch.ones_like(v.a)
    n_class = c.n_prefix - c.n_registers
    if keys.get("class_row", "yes") == "no":
        count[:n_class] = 0
    if keys.get("registers", "yes") == "no":
        count[n_class:c.n_prefix] = 0
    if keys.get("diagonal", "yes") == "no":
        count.fill_diagonal_(0)
    return ((a**n * count).sum(1)**(1.0 / n)).mean(0)


def choose(policy, c, score, class_row, kept):
    """Patches (counted without the prefix) that stay, in the order of the new list."""
    by_score = score[c.n_prefix:].tolist()
    if policy.keys["metric"] != "correct":
        return ranked(by_score, policy.margins, kept)[:kept]
    by_column = int(float(policy.keys["c"]) * kept)
    out = ranked(class_row[c.n_prefix:].tolist(), policy.margins, kept - by_column)[:kept - by_column]
    rest = [j for j in range(len(by_score)) if j not in out]
    return out + [rest[k] for k in ranked([by_score[j] for j in rest], policy.margins, by_column)[:by_column]]


def select(policy, c, i, t, v):
    keys, P, n = policy.keys, c.n_prefix, len(t.x)
    is_row = keys["metric"] in ("cls", "pool")
    score = v.row if is_row else column_norm(keys, c, v)
    keep = [P + j for j in choose(policy, c, score.detach(), v.row.detach(), policy.n_kept(n - P, i))]
    stay = list(range(P)) + keep
    gone = [j for j in range(P, n) if j not in keep]
    patch = [t.patch[j] for j in stay]
    reduce = policy.reduce_of(i)
    if reduce == "drop":
        return v.y[stay], Tokens(None, t.size[stay], patch)
    if reduce == "fuse":
        weight = v.row if keys["weights"] in ("cls", "pool") else score if is_row else score / (score.sum() + 1e-6)
        fused = weight[gone] @ v.y[gone]
        return torch.cat([v.y[stay], fused[None]]), Tokens(None, torch.cat([t.size[stay], t.size.new_ones(1)]), patch + [None])
    vectors = v.keys.detach()
    partner = nearest(cosines(vectors[gone], vectors[keep]), policy.margins)
    return merge(t, v.y, stay, {g: P + k for g, k in zip(gone, partner)})


# ---- merging -----------------------------------------------------------------------------------

def merge(t, y, stay, joins, weight=None, length=None):
    """Token g joins row joins[g]: means weighted by the number of patches in each token, or by `weight`."""
    member = torch.zeros(len(stay), len(y), dtype=y.dtype)
    for row, j in enumerate(stay):
        member[row, j] = 1.0
    for j, row in joins.items():
        member[row, j] = 1.0
    size = member @ t.size
    share = member * (t.size if weight is None else weight)
    rows = share / share.sum(1, keepdim=True) @ y
    if length == "mean":  # of the members, each counted as often as its patches
        rows = rows * (member * t.size @ y.norm(dim=1) / size / rows.norm(dim=1))[:, None]
    if length == "max":
        rows = rows * ((member * y.norm(dim=1)).max(1).values / rows.norm(dim=1))[:, None]
    return rows, Tokens(None, size, [t.patch[j] for j in stay])


def tome(policy, c, t, v):
    P, n, r = c.n_prefix, len(t.x), int(policy.keys["r"])
    even, odd = [j for j in range(P, n) if j % 2 == 0], [j for j in range(P, n) if j % 2 == 1]
    cos = cosines(v.keys.detach()[even], v.keys.detach()[odd])
    partner = nearest(cos, policy.margins)
    go = set(ranked(cos.max(1).values.tolist(), policy.margins, r)[:r])
    staying = [j for k, j in enumerate(even) if k not in go]
    stay = list(range(P)) + staying + odd
    return merge(t, v.y, stay, {even[k]: P + len(staying) + partner[k] for k in go})


def mosaic_thin(policy, c, i, t, v):
    P, n = c.n_prefix, len(t.x) - c.n_prefix
    q = (v.a.detach()**4).sum(0)[P:].tolist()
    drops, goes = n - policy.n_kept(n, i), []
    for color in (0, 1):
        squares = [j for j in range(n) if (j // c.grid + j % c.grid) % 2 == color]
        count = min(drops - len(goes), len(squares))
        goes += [squares[k] for k in ranked([-q[j] for j in squares], policy.margins, count)[:count]]
    stay = list(range(P)) + [P + j for j in range(n) if j not in goes]
    return v.y[stay], Tokens(None, t.size[stay], [t.patch[j] for j in stay])


def mosaic_merge(policy, c, i, t, v):
    P, n = c.n_prefix, len(t.x) - c.n_prefix
    alpha, omega = float(policy.keys.get("alpha", 0.5)), float(policy.keys.get("omega", 0.0))
    a = v.a.detach()
    has_row = P > c.n_registers or v.probe is not None
    importance = (v.row.detach() if has_row else t.size @ a)[P:]
    if has_row:  # a share of Col-L2, both as shares of their sum over the patches
        norm, col = (a**2).sum(0).sqrt()[P:], float(policy.keys.get("col", 0.0))
        importance = importance.sum() * ((1.0 - col) * importance / importance.sum() + col * norm / norm.sum())
    share = float(policy.keys.get("memory", 0.0))
    if t.memory is not None:
        importance = importance**(1.0 - share) * t.memory**share
    y = v.y.detach()[P:]
    cos = cosines(y - y.mean(0), y - y.mean(0))
    by_importance = ranked(importance.tolist(), policy.margins)
    most = [-2.0] * n
    for k, j in enumerate(by_importance):
        if k:
            most[j] = max(cos[j, h].item() for h in by_importance[:k])
    value = [importance[j].item()**alpha * max(1.0 - most[j], 1e-6) for j in range(n)]
    order = ranked(value, policy.margins)
    keep = order[:policy.n_kept(n, i)]
    if "likeness" in policy.keys:  # those that go are alike, as many as may go, the least value first
        alike = [j for j in order if most[j] > float(policy.keys["likeness"])]
        policy.margins += [abs(m - float(policy.keys["likeness"])) for m in most]
        goes = alike[::-1][:n - policy.n_kept(n, i)]
        keep = [j for j in order if j not in goes]
    gone = [j for j in range(n) if j not in keep]
    partner = nearest(cos[gone][:, keep], policy.margins) if gone else []
    weight = t.size.clone()
    weight[P:] = t.size[P:] * (importance / t.size[P:] + 1e-9)**omega
    rows, tokens = merge(t, v.y, list(range(P)) + [P + j for j in keep], {P + g: P + k for g, k in zip(gone, partner)}, weight, policy.keys.get("length", "mean"))
    tokens.memory = importance[keep].clone()
    for g, k in zip(gone, partner):
        tokens.memory[k] += importance[g]
    return rows, tokens
