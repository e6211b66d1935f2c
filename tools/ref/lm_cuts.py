#!/usr/bin/env python3
# lm_cuts.py - writes tests/lm_cuts/: a small Llama with seeded random weights, rows of an image, and what
# each rule inside the language model makes of them in float64: which rows stay, their scores, logits
# after the prompt, greedy tokens, logits after a second question.
#
#   python3 -m venv v && v/bin/pip install torch transformers safetensors
#   v/bin/python tools/ref/lm_cuts.py [tests/lm_cuts] [--llava FOLDER --prompt FILE]
#
# --llava: also a LLaVA (its language model and projector) with the rows and the prompt of a file that has
# "features.0" [576, width of the tower] and "prompt"; writes llava.safetensors.
#
# The rules are written from their papers; the dense result must equal that of transformers.
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import math
from pathlib import Path

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file

from common import randomize, write_expected, write_tensors

DIM, LAYERS, HEADS, KV, HEAD, MLP, VOCAB, VISUAL = 48, 6, 4, 2, 16, 80, 97, 40
BEFORE, AFTER, SECOND, GREEDY = 7, 9, 5, 12
POLICIES = {
    "none": "none",
    "fastv": "fastv layer=2 tokens=12 metric=last",
    "fastv_first": "fastv layer=1 keep=0.25 metric=last positions=consecutive",
    "fastv_col": "fastv layer=2 keep=0.3 metric=col n=2 rows=all",
    "fastv_text": "fastv layer=3 tokens=10 metric=col n=4 rows=text",
    "fastv_order": "fastv layer=2 tokens=9 metric=col n=7.5 rows=all",
    "fastv_inf": "fastv layer=5 tokens=9 metric=col n=inf rows=text",
    "pyramid": "pyramiddrop layers=2,3,5 keep=0.5 metric=last",
    "pyramid_published": "pyramiddrop layers=2,4 keep=0.5,0.5 metric=last positions=consecutive",
    "pyramid_col": "pyramiddrop layers=1,3,4 tokens=24,15,4 metric=col n=2 rows=all",
    "dart": "dart layer=2 tokens=24 pivots=3 text_pivots=2",
    "dart_first": "dart layer=1 keep=0.4 pivots=4 text_pivots=4 positions=consecutive",
    "sparsevlm": "sparsevlm tokens=16,9,4 layers=1,3,5 n=1 recycle=0.3 members=10",
    "sparsevlm_rows": "sparsevlm tokens=14,12 layers=2,3 n=1 recycle=0.6 members=3",
    "sparsevlm_col": "sparsevlm keep=0.4 layers=2 n=4 recycle=1 members=5",
    "sparsevlm_drop": "sparsevlm tokens=9 layers=2 n=1 recycle=0 members=10",
}


class Policy:
    def __init__(self, text):
        parts = text.split()
        self.rule = parts[0]
        self.keys = k = dict(w.split("=") for w in parts[1:])
        self.layers = [int(n) for n in k.get("layers", k.get("layer", "")).split(",") if n]
        self.consecutive = k.get("positions") == "consecutive" or self.rule == "sparsevlm"
        self.margins = []

    def wanted(self, i, n):
        """Rows that cut i keeps of n that were read."""
        if "tokens" in self.keys:
            tokens = self.keys["tokens"].split(",")
            return int(tokens[i] if len(tokens) > 1 else tokens[0])
        keep = [float(x) for x in self.keys["keep"].split(",")]
        keep = keep * len(self.layers) if len(keep) == 1 else keep
        return int(n * math.prod(keep[:i + 1]))

    def best(self, score, count):
        """Indices of the largest, ascending; equal ones: the lower index."""
        order = sorted(range(len(score)), key=lambda j: (-score[j], j))
        if 0 < count < len(order):
            a, b = score[order[count - 1]], score[order[count]]
            self.margins.append(abs(a - b) / max(abs(a), abs(b)))
        return sorted(order[:count])


class Decoder:
    """A Llama that reads rows in turns and keeps keys and values of every layer, with a policy."""

    def __init__(self, config, weights, policy):
        self.c, self.w, self.policy = config, weights, policy
        self.k = [[] for _ in range(config.num_hidden_layers)]
        self.v = [[] for _ in range(config.num_hidden_layers)]
        self.n_read, self.cuts = 0, []

    def norm(self, x, weight):
        return x / (x.pow(2).mean(-1, keepdim=True) + self.c.rms_norm_eps).sqrt() * weight

    def rotate(self, x, positions):
        half = x.shape[-1] // 2
        theta = self.c.rope_parameters["rope_theta"] ** (-torch.arange(half, dtype=torch.float64) / half)
        angle = positions.double()[:, None, None] * theta
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)

    def look(self, layer, x, numbers):
        """Queries, keys and values of the rows x [n, C], and their attention [H, n, keys]."""
        w, c, old = self.w[layer], self.c, len(self.k[layer])
        h = self.norm(x, w["input_layernorm"])
        positions = torch.arange(old, old + len(x)) if self.policy.consecutive else torch.tensor(numbers)
        q = self.rotate((h @ w["q"].T).view(len(x), -1, c.head_dim), positions)
        k = self.rotate((h @ w["k"].T).view(len(x), -1, c.head_dim), positions)
        v = (h @ w["v"].T).view(len(x), -1, c.head_dim)
        group = q.shape[1] // k.shape[1]
        keys = torch.stack(self.k[layer] + list(k)).repeat_interleave(group, 1)
        logits = torch.einsum("nhd,mhd->hnm", q, keys) / math.sqrt(c.head_dim)
        hidden = torch.arange(keys.shape[0])[None] > old + torch.arange(len(x))[:, None]
        return k, v, logits.masked_fill(hidden, -math.inf).softmax(-1)

    def layer(self, layer, x, numbers):
        w = self.w[layer]
        k, v, a = self.look(layer, x, numbers)
        self.k[layer] += list(k)
        self.v[layer] += list(v)
        values = torch.stack(self.v[layer]).repeat_interleave(a.shape[0] // v.shape[1], 1)
        x = x + torch.einsum("hnm,mhd->nhd", a, values).flatten(1) @ w["o"].T
        h = self.norm(x, w["post_attention_layernorm"])
        x = x + (F.silu(h @ w["gate"].T) * (h @ w["up"].T)) @ w["down"].T
        return x, k, a

    def score(self, a, first, n, n_visual):
        """a: [H, n, keys]; the columns of the visual rows are n_visual after the keys before these rows."""
        keys, column = self.policy.keys, a.shape[2] - n + first
        mean = a.mean(0)[:, column:column + n_visual]
        if self.policy.rule == "sparsevlm":
            rows = mean[first + n_visual:][self.raters]
            return (rows**float(keys["n"])).sum(0).pow(1.0 / float(keys["n"])).tolist()
        if keys["metric"] == "last":
            return mean[-1].tolist()
        rows = mean[first + n_visual:] if keys["rows"] == "text" else mean
        order = float(keys["n"])
        return (rows.max(0).values if math.isinf(order) else (rows**order).sum(0)**(1.0 / order)).tolist()

    def dart(self, x, k, first, n_visual, n_read):
        """Pivots: the largest keys (L1) among the visual rows and among those after them. Each takes
        the rows that are least like it, in the order of the sequence."""
        p = self.policy
        size = k.abs().sum((1, 2)).tolist()
        end = first + n_visual
        pivots = [first + j for j in p.best(size[first:end], int(p.keys["pivots"]))]
        texts = [end + j for j in p.best(size[end:], int(p.keys["text_pivots"]))]
        share = int(p.wanted(0, n_read) if "tokens" in p.keys else n_read * float(p.keys["keep"])) // (len(pivots) + len(texts))
        state = F.normalize(self.norm(x, self.w["norm"]), dim=1)
        taken = set(pivots)
        for pivot in pivots + texts:
            rest = [j for j in range(first, end) if j not in taken]
            unlike = [-(state[pivot] @ state[j]).item() for j in rest]
            taken |= {rest[i] for i in p.best(unlike, min(share, len(rest)))}
        return sorted(j - first for j in taken)

    def find_raters(self, visual, text):
        """SparseVLM: which rows after the image rate its rows; from the rows before the first layer."""
        likeness = (visual @ text.T).softmax(1).mean(0)
        self.policy.margins.append((likeness - likeness.mean()).abs().min().item() / likeness.mean().item())
        return likeness > likeness.mean()

    def recycle(self, rows):
        """SparseVLM: rows that go, the best score first, become the means of clusters, which are found by the
        density of their nearest neighbours (DPC-KNN)."""
        p, share = self.policy, float(self.policy.keys["recycle"])
        if share == 0:
            return rows[:0]
        rows = rows[:min(int(share * len(rows)) + 1, len(rows))]
        n = len(rows)
        c = min(n // int(p.keys["members"]) + 1, n)
        if c == 1:
            return rows.mean(0, keepdim=True)
        d = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist") / rows.shape[1]**0.5
        density = (-d.sort(1).values[:, :c].pow(2).mean(1)).exp()
        order = sorted(range(n), key=lambda i: (-density[i].item(), i))
        worth = torch.zeros(n, dtype=torch.float64)
        for place, i in enumerate(order):
            denser = order[:place]
            worth[i] = density[i] * (d[i, denser].min() if denser else d.max())
        steps = (density[order[:-1]] - density[order[1:]]).tolist()
        p.margins += [x for x in steps if x > 0]  # of two rows that are each other's only neighbour it is 0
        centres = sorted(range(n), key=lambda i: (-worth[i].item(), i))[:c]
        ranked = worth.sort(descending=True).values[:c + 1]
        p.margins.append((ranked[:-1] - ranked[1:]).min().item() / ranked[0].item() if len(ranked) > 1 else 1.0)
        cluster = d[:, centres].argmin(1)
        for k, i in enumerate(centres):
            cluster[i] = k
        nearest = d[:, centres].sort(1).values
        p.margins += [(nearest[i, 1] - nearest[i, 0]).item() for i in range(n) if i not in centres]
        return torch.stack([rows[cluster == k].mean(0) for k in range(c)])

    def choose(self, cut, x, numbers, k, a, first, n_visual, n_read):
        p = self.policy
        if p.rule == "dart":
            return self.dart(x, k, first, n_visual, n_read), None
        if p.rule == "pyramiddrop":  # ranked by the layer that follows
            a = self.look(p.layers[cut], x, numbers)[2]
        score = self.score(a, first, len(x), n_visual)
        return p.best(score, p.wanted(cut, n_read)), score

    def feed(self, x, first=0, n_visual=0):
        """Appends rows; the visual ones are cut. Returns the logits of the last."""
        numbers = list(range(self.n_read, self.n_read + len(x)))
        place, n_read = list(range(n_visual)), n_visual
        if n_visual and self.policy.rule == "sparsevlm":
            self.raters = self.find_raters(x[first:first + n_visual], x[first + n_visual:])
        self.n_read += len(x)
        for layer in range(self.c.num_hidden_layers):
            if n_visual and layer in self.policy.layers:
                cut = self.policy.layers.index(layer)
                kept, score = self.choose(cut, x, numbers, k, a, first, n_visual, n_read)
                end, gone = first + n_visual, [j for j in range(n_visual) if j not in set(kept)]
                merged = x[:0]
                if self.policy.rule == "sparsevlm" and gone:
                    gone.sort(key=lambda j: (-score[j], j))
                    merged = self.recycle(x[[first + j for j in gone]])
                x = torch.cat([x[:first], x[[first + j for j in kept]], merged, x[end:]])
                numbers = numbers[:first] + [numbers[first + j] for j in kept] + [-1] * len(merged) + numbers[end:]
                place = [place[j] for j in kept] + [-1] * len(merged)  # -1: a row of several
                n_visual = len(place)
                self.cuts.append((place, score))
            x, k, a = self.layer(layer, x, numbers)
        return self.norm(x[-1:], self.w["norm"])[0] @ self.w["head"].T


def unpack(state, prefix, head, n_layers):
    """Weights by short names."""
    names = {"q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj",
             "gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj",
             "input_layernorm": "input_layernorm", "post_attention_layernorm": "post_attention_layernorm"}
    w = {i: {s: state[f"{prefix}layers.{i}.{n}.weight"].double() for s, n in names.items()} for i in range(n_layers)}
    return w | {"norm": state[prefix + "norm.weight"].double(), "head": state[head].double(),
                "table": state[prefix + "embed_tokens.weight"].double()}


def run(name, config, weights, before, rows, after, second):
    """What the tests compare with: prompt, greedy tokens, a second question."""
    policy, out = Policy(POLICIES[name]), {}
    d, table = Decoder(config, weights, policy), weights["table"]
    logits = d.feed(torch.cat([table[before], rows, table[after]]), len(before), len(rows))
    out["logits"], tokens = logits, []
    for _ in range(GREEDY):
        top = logits.topk(2).values
        policy.margins.append((top[0] - top[1]).item())
        tokens.append(int(logits.argmax()))
        logits = d.feed(table[tokens[-1:]])
    out["tokens"] = torch.tensor(tokens, dtype=torch.int32)
    out["second"] = d.feed(table[second])
    for i, (kept, score) in enumerate(d.cuts):
        out[f"kept{i}"] = torch.tensor(kept, dtype=torch.int32)
        if score is not None:
            out[f"score{i}"] = torch.tensor(score)
    margin = min(policy.margins)
    print(f"{name:18} {[len(k) for k, _ in d.cuts]} closest choice {margin:.1e}")
    if margin < 2e-5:
        raise SystemExit(f"{name}: take another seed")
    return {f"{name}.{key}": value for key, value in out.items()}


def random_llama(folder, seed):
    config = transformers.LlamaConfig(
        hidden_size=DIM, intermediate_size=MLP, num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=KV,
        head_dim=HEAD, vocab_size=VOCAB, max_position_embeddings=160, rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2)
    model = randomize(transformers.LlamaForCausalLM(config), seed)
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / "model.safetensors", model.state_dict())
    keys = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size",
            "max_position_embeddings", "rms_norm_eps", "bos_token_id", "eos_token_id")
    text = {"model_type": "llama", "rope_theta": 10000.0} | {k: getattr(config, k) for k in keys}
    (folder / "config.json").write_text(json.dumps(text, indent=2) + "\n")
    return config, model


def write_small(folder, seed):
    config, model = random_llama(folder, seed)
    weights = unpack(model.state_dict(), "model.", "lm_head.weight", LAYERS)
    g = torch.Generator().manual_seed(seed + 1)
    before, after, second = (torch.randint(3, VOCAB, (n,), generator=g) for n in (BEFORE, AFTER, SECOND))
    rows = (2.0 * torch.rand(VISUAL, DIM, generator=g, dtype=torch.float64) - 1.0).half().double()
    x = torch.cat([weights["table"][before], rows, weights["table"][after]])
    out = {"rows": rows, "before": before.int(), "after": after.int(), "second": second.int()}
    for name in POLICIES:
        out |= run(name, config, weights, before, rows, after, second)
    with torch.no_grad():
        dense = model(inputs_embeds=x[None]).logits[0, -1]
    gap = (dense - out["none.logits"]).abs().max().item()  # transformers has the angles of rotations in float32
    assert gap < 1e-4, f"the decoder is not that of transformers: {gap}"
    write_expected(folder / "expected.safetensors", out, {"policies": json.dumps(POLICIES), "seed": str(seed)})


# ---- a LLaVA -----------------------------------------------------------------------------------

LLAVA = {
    "fastv": "fastv layer=2 tokens=144 metric=last",
    "fastv_col": "fastv layer=2 keep=0.25 metric=col n=2 rows=all",
    "pyramid": "pyramiddrop layers=1,2,3 keep=0.5 metric=last",
    "pyramid_col": "pyramiddrop layers=1,2,3 keep=0.6 metric=col n=4 rows=all positions=consecutive",
    "dart": "dart layer=2 tokens=128 pivots=4 text_pivots=4",
}
STEP = 61  # every 61st logit is enough


def write_llava(folder, model, prompt_file):
    config = transformers.AutoConfig.from_pretrained(model)
    state, given = load_file(Path(model) / "model.safetensors"), load_file(prompt_file)
    prefix = next(k for k in state if k.endswith("embed_tokens.weight"))[:-len("embed_tokens.weight")]
    head = next(k for k in state if k.endswith("lm_head.weight"))
    weights = unpack(state, prefix, head, config.text_config.num_hidden_layers)
    part = {k.split("multi_modal_projector.")[1]: v.double() for k, v in state.items() if "multi_modal_projector." in k}
    hidden = F.gelu(given["features.0"].double() @ part["linear_1.weight"].T + part["linear_1.bias"])
    rows = hidden @ part["linear_2.weight"].T + part["linear_2.bias"]
    prompt = given["prompt"].long()
    at = prompt.tolist().index(config.image_token_index)
    out = {}
    POLICIES.clear()
    POLICIES.update(LLAVA)
    for name in LLAVA:
        out |= run(name, config.text_config, weights, prompt[:at], rows, prompt[at + 1:], prompt[:5])
    out = {k: v[::STEP] if k.endswith((".logits", ".second")) else v for k, v in out.items() if "score" not in k}
    write_expected(folder / "llava.safetensors", out, {"policies": json.dumps(LLAVA), "step": str(STEP)})


def main():
    a = argparse.ArgumentParser()
    a.add_argument("folder", nargs="?", default="tests/lm_cuts", type=Path)
    a.add_argument("--seed", type=int, default=7)
    a.add_argument("--llava")
    a.add_argument("--prompt")
    o = a.parse_args()
    torch.manual_seed(0)
    write_small(o.folder, o.seed)
    if o.llava:
        write_llava(o.folder, o.llava, o.prompt)


if __name__ == "__main__":
    main()
