#!/usr/bin/env python3
# visual_rules.py - the rules for the visual tokens of a LLaVA in NumPy and PyTorch, written from
# docs/VISUAL_RULES.md, and the files of tests/visual_rules/: a small random LLaVA as transformers
# saves it, and what transformers and these rules make of two images, in float64: which patches stay,
# the rows for the language model, its logits.
#
#   v/bin/pip install numpy torch transformers safetensors pillow
#   v/bin/python tools/ref/visual_rules.py [tests/visual_rules]
#   v/bin/python tools/ref/visual_rules.py --model LLAVA --pixels GOLDEN.safetensors OUT.safetensors
#                                          another model, images.pixels of a file; fewer numbers
# SPDX-License-Identifier: Apache-2.0
import argparse
import copy
import json
import math
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from PIL import Image
from safetensors.numpy import load_file, save_file

from common import randomize

MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)  # CLIP's
SMALL = [  # of 36 patches
    "none",
    "random tokens=10 seed=3", "random tokens=36 seed=3", "uniform tokens=7", "uniform tokens=36",
    "pool tokens=9", "pool tokens=12", "pool tokens=7", "pool tokens=36",
    "downsample tokens=16", "downsample tokens=15", "downsample tokens=36",
    "divprune tokens=9", "divprune tokens=36",
    "hiprune tokens=12 anchors=0.5 block=1 metric=col n=1", "hiprune tokens=20 anchors=0.3 block=0 metric=cls",
    "hiprune tokens=15 anchors=1 block=2 metric=correct n=4 c=0.3", "hiprune tokens=14 anchors=0.4 block=4 metric=col n=2",
    "mosaic-behind tokens=10", "mosaic-behind tokens=12 alpha=0.5 omega=0 length=mean metric=col n=4", "mosaic-behind tokens=36",
    "cdpruner tokens=9", "cdpruner tokens=20 metric=text", "cdpruner tokens=12 metric=cls", "cdpruner tokens=12 metric=col n=4",
    "visionzip tokens=16", "visionzip tokens=16 metric=col n=4", "visionzip tokens=20 metric=correct n=4 c=0.2",
    "visionzip tokens=12 contextual=0.5 class_token=no", "visionzip tokens=36 contextual=0 class_token=no",
]
LARGE = [  # of 576
    "random tokens=192 seed=1", "uniform tokens=192", "pool tokens=192", "pool tokens=64", "pool tokens=100",
    "downsample tokens=192", "divprune tokens=24", "visionzip tokens=192", "visionzip tokens=64",
    "hiprune tokens=192 block=8 metric=col n=1", "hiprune tokens=64 block=8 metric=cls", "mosaic-behind tokens=64",
    "cdpruner tokens=24 metric=cls", "visionzip tokens=128 metric=col n=4", "visionzip tokens=192 metric=correct n=4 c=0.2",
]


class Policy:
    def __init__(self, text):
        self.text, (self.rule, *words) = text, text.split()
        self.keys, self.margins = dict(w.split("=") for w in words), []

    def number(self, key, default=0.0):
        return float(self.keys.get(key, default))


class Seen:
    """What a rule may read of one image: features [P, C], the class token's [C], rows after the projector
    [P, D], and for every block that was run its head-mean attention [N, N] and keys [N, C / heads]."""

    def __init__(self, **fields):
        self.__dict__.update(fields)
        self.P = len(self.x)
        self.grid = math.isqrt(self.P)


# ---- ranking -----------------------------------------------------------------------------------

def best(score, count, margins):
    """The `count` largest, ties to the lower index, in the order of their scores."""
    order = sorted(range(len(score)), key=lambda j: (-score[j], j))
    if 0 < count < len(order):
        a, b = score[order[count - 1]], score[order[count]]
        margins.append(abs(a - b) / max(abs(a), 1e-30))
    return order[:count]


def class_row(a):
    return a[0, 1:]


def column_norm(a, n):
    return ((a**n).sum(0)**(1.0 / n))[1:]


def by_metric(p, a, count, margins, default="cls"):
    """`count` patches by attention a, the best first; of correct those of class attention first."""
    metric, n = p.keys.get("metric", default), p.number("n", 4)
    if metric == "cls":
        return best(class_row(a).tolist(), count, margins)
    if metric == "col":
        return best(column_norm(a, n).tolist(), count, margins)
    by_column = int(count * p.number("c", 0.2))
    first = best(class_row(a).tolist(), count - by_column, margins)
    rest = [j for j in range(len(a) - 1) if j not in first]
    col = column_norm(a, n).tolist()
    return first + [rest[k] for k in best([col[j] for j in rest], by_column, margins)]


def cosines(rows):
    unit = rows / rows.norm(dim=1, keepdim=True)
    return unit @ unit.T


# ---- baselines ---------------------------------------------------------------------------------

WORD = (1 << 64) - 1


def splitmix(state):
    """SplitMix64: the next state and its number."""
    state = (state + 0x9E3779B97F4A7C15) & WORD
    z = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & WORD
    return state, z ^ z >> 31


def image_key(pixels):
    """The pixels' bytes, eight at a time, mixed into the number of bytes."""
    data, state = pixels.tobytes(), pixels.nbytes
    for at in range(0, len(data), 8):
        state = splitmix(state)[1] ^ int.from_bytes(data[at:at + 8], "little")
    return splitmix(state)[1]


def random_rule(p, s):
    state = (splitmix(int(p.keys["seed"]))[1] + image_key(s.pixels)) & WORD
    draws = []
    for _ in range(s.P):
        state, z = splitmix(state)
        draws.append(z >> 40)
    return sorted(best(draws, int(p.keys["tokens"]), []))


def uniform_rule(p, s):
    k = int(p.keys["tokens"])
    return [math.floor((i + 0.5) * s.P / k) for i in range(k)]


def pool_rule(p, s):
    """Rows of averages: all of one length if a divisor of K gives a grid at most twice as wide as high."""
    k, g = int(p.keys["tokens"]), s.grid
    fits = [r for r in range(1, g + 1) if k % r == 0 and r * r <= k <= 2 * r * r and k // r <= g]
    rows = max(fits) if fits else round(math.sqrt(k))
    image = s.x.T.reshape(1, -1, g, g)
    kept, out = [], []
    for i in range(rows):
        n = (i + 1) * k // rows - i * k // rows
        out.append(F.adaptive_avg_pool2d(image, (rows, n))[0, :, i].T)
        single = F.adaptive_avg_pool2d(torch.arange(s.P, dtype=torch.float64).reshape(1, 1, g, g), (rows, n))[0, 0, i]
        whole = g % rows == 0 and g // rows == 1 and n == g
        kept += [int(v) if whole else -1 for v in single.tolist()]
    return kept, torch.cat(out)


# ---- published rules ---------------------------------------------------------------------------

def divprune_rule(p, s):
    far = 1.0 - cosines(s.rows)
    far.fill_diagonal_(math.inf)
    near, chosen = far.min(1).values, []
    for k in range(int(p.keys["tokens"])):
        left = [j for j in range(s.P) if j not in chosen]
        chosen.append(left[best([near[j].item() for j in left], 1, p.margins)[0]])
        near = far[:, chosen].min(1).values
    return sorted(chosen)


def visionzip_rule(p, s):
    k, has_class = int(p.keys["tokens"]), p.keys.get("class_token", "yes") == "yes"
    contextual = min(int(k * p.number("contextual", 5 / 32)), k - has_class)
    dominant = sorted(by_metric(p, s.attention[-1], k - contextual - has_class, p.margins))
    left = [j for j in range(s.P) if j not in dominant]
    rows = ([s.x_class] if has_class else []) + [s.x[j] for j in dominant]
    if contextual:
        step = max(1, len(left) // contextual)
        targets = left[::step][:contextual]
        merged = [j for j in left if j not in targets]
        cos = cosines(s.keys[-1][1:])
        joins = {}
        for j in merged:
            near = [cos[j, t].item() for t in targets]
            joins[j] = best(near, 1, p.margins)[0]
        for i, t in enumerate(targets):
            members = [s.x[j] for j in merged if joins[j] == i]
            rows.append(s.x[t] + (torch.stack(members).mean(0) if members else 0.0))
    else:
        targets = []
    return [-1] * has_class + dominant + targets, torch.stack(rows)


def hiprune_rule(p, s):
    """Neighbours are places in raster order, clamped to the first and the last patch."""
    k, g = int(p.keys["tokens"]), s.grid
    anchors = min(round(k * p.number("anchors", 0.1) / 5), k // 5)
    taken = set()
    for j in by_metric(p, s.attention[int(p.keys["block"])], anchors, p.margins, "col"):
        taken |= {min(max(j + step, 0), s.P - 1) for step in (0, -1, 1, -g, g)}
    rest = [j for j in range(s.P) if j not in taken]
    a = s.attention[-1]
    left = torch.cat([a[:, :1], a[:, 1:][:, rest]], 1)  # columns of the patches that are not taken
    if p.keys["metric"] == "col":
        score = (left**p.number("n", 1)).sum(0)[1:]
        return sorted(taken | {rest[i] for i in best(score.tolist(), k - len(taken), p.margins)})
    count = k - len(taken)
    by_column = int(count * p.number("c", 0.2)) if p.keys["metric"] == "correct" else 0
    first = best(left[0, 1:].tolist(), count - by_column, p.margins)
    others = [i for i in range(len(rest)) if i not in first]
    col = (left**p.number("n", 1)).sum(0)[1:].tolist()
    more = [others[i] for i in best([col[i] for i in others], by_column, p.margins)]
    return sorted(taken | {rest[i] for i in first + more})


def mosaic_behind_rule(p, s):
    k, alpha, omega = int(p.keys["tokens"]), p.number("alpha", 1), p.number("omega", 1)
    a = class_row(s.attention[-1]) if p.keys.get("metric", "cls") == "cls" else column_norm(s.attention[-1], p.number("n", 4))
    cos = cosines(s.x - s.x.mean(0))
    value = []
    for i in range(s.P):
        above = [cos[i, j].item() for j in range(s.P) if a[j] > a[i] or (a[j] == a[i] and j < i)]
        value.append(a[i].item()**alpha * max(1.0 - max(above, default=-2.0), 1e-6))
    kept = best(value, k, p.margins)
    groups = {j: [j] for j in kept}
    for j in range(s.P):
        if j not in groups:
            groups[kept[best([cos[j, h].item() for h in kept], 1, p.margins)[0]]].append(j)
    rows = []
    for j in sorted(kept):
        w = (a[groups[j]] + 1e-9)**omega
        x = s.x[groups[j]]
        row, lengths = (w[:, None] * x).sum(0) / w.sum(), x.norm(dim=1)
        rows.append(row / row.norm() * (lengths.max() if p.keys.get("length", "max") == "max" else lengths.mean()))
    return sorted(kept), torch.stack(rows)


def cdpruner_rule(p, s):
    """Greedy choice of the set with the largest determinant of the kernel q_i cos_ij q_j."""
    k, metric = int(p.keys["tokens"]), p.keys.get("metric", "text")
    a = s.attention[-1]
    score = s.relevance if metric == "text" else class_row(a) if metric == "cls" else column_norm(a, p.number("n", 4))
    q = (score - score.min() + 1e-6) / (score.max() - score.min())
    kernel = q[:, None] * cosines(s.rows) * q[None]
    chosen = []
    for _ in range(k):  # the gain is the ratio of determinants: what the patch adds to the volume
        left = [j for j in range(s.P) if j not in chosen]
        if chosen:
            inverse = torch.linalg.solve(kernel[chosen][:, chosen], kernel[chosen][:, left])
            gain = kernel.diagonal()[left] - (kernel[chosen][:, left] * inverse).sum(0)
        else:
            gain = kernel.diagonal()
        chosen.append(left[best(gain.tolist(), 1, p.margins)[0]])
    return sorted(chosen)


RULES = {"cdpruner": cdpruner_rule, "hiprune": hiprune_rule, "mosaic-behind": mosaic_behind_rule, "random": random_rule, "uniform": uniform_rule, "pool": pool_rule, "divprune": divprune_rule, "visionzip": visionzip_rule}


def apply(p, s):
    """(kept, features of the rows); kept is -1 for a row that is of no one patch."""
    if p.rule in ("none", "downsample"):
        return list(range(s.P)), s.x
    out = RULES[p.rule](p, s)
    return out if isinstance(out, tuple) else (out, s.x[out])


# ---- the model ---------------------------------------------------------------------------------

def look(model, pixels):
    """Runs the tower on pixels [S, S, 3] of any size."""
    clip = model.model.vision_tower
    config = clip.config
    run = config.num_hidden_layers + 1 + model.config.vision_feature_layer  # hidden state 0 is the embedding
    keys, hooks = [], []
    layers = getattr(clip, "vision_model", clip).encoder.layers
    for layer in layers:
        hooks.append(layer.self_attn.k_proj.register_forward_hook(lambda m, i, o: keys.append(o[0])))
    x = (torch.tensor(pixels, dtype=torch.float64) / 255.0 - torch.tensor(MEAN, dtype=torch.float64)) / torch.tensor(STD, dtype=torch.float64)
    out = clip(x.permute(2, 0, 1)[None], output_hidden_states=True, output_attentions=True, interpolate_pos_encoding=True)
    for hook in hooks:
        hook.remove()
    h = out.hidden_states[run][0]
    heads = config.num_attention_heads
    return Seen(pixels=pixels, x=h[1:], x_class=h[0], rows=model.model.multi_modal_projector(h[None])[0, 1:],
                attention=[a[0].mean(0) for a in out.attentions[:run]],
                keys=[k.reshape(len(h), heads, -1).mean(1) for k in keys[:run]])


def shrink(pixels, side):
    return np.asarray(Image.fromarray(pixels).resize((side, side), Image.BICUBIC))


def answer(model, rows, prompt):
    """Logits after the prompt, in which -200 is the image."""
    embed, at = model.get_input_embeddings(), prompt.index(-200)
    before, after = (embed(torch.tensor(ids)) for ids in (prompt[:at], prompt[at + 1:]))
    return model(inputs_embeds=torch.cat([before, rows, after])[None]).logits[0, -1]


def run_case(model, pixels, whole, policy, prompt):
    """whole: what the tower makes of the pixels."""
    p, s = Policy(policy), whole
    if p.rule == "downsample":
        side = math.isqrt(int(p.keys["tokens"])) * model.config.vision_config.patch_size
        s = look(model, shrink(pixels, side))
    kept, x = apply(p, s)
    rows = model.model.multi_modal_projector(x[None])[0]
    return p, kept, rows, answer(model, rows, prompt)


def write_cases(path, model, images, policies, prompt, margin, ids=None, clip=None):
    """ids: the only logits that are written; then no rows are. margin: relative, the least of a choice."""
    out = {"prompt": np.array(prompt, np.int32), "pixels": np.ascontiguousarray(np.stack(images))}
    if ids is not None:
        out = {"prompt": out["prompt"], "ids": np.array(ids, np.int32)}
    worst = (1.0, "")
    for i, pixels in enumerate(images):
        whole = look(model, pixels)
        if clip:
            whole.relevance = relevance(clip, whole.x)
        for k, policy in enumerate(policies):
            p, kept, rows, logits = run_case(model, pixels, whole, policy, prompt)
            worst = min([worst] + [(m, f"image {i}, {policy}") for m in p.margins])
            out[f"{i}.{k}.kept"] = np.array(kept, np.int32)
            out[f"{i}.{k}.logits"] = (logits if ids is None else logits[ids]).float().contiguous().numpy()
            if ids is None:
                out[f"{i}.{k}.rows"] = rows.float().contiguous().numpy()
    if worst[0] < margin:
        raise SystemExit(f"a choice has a margin of only {worst[0]:.1e}: {worst[1]}; take another seed")
    save_file(out, path, {"policies": json.dumps(policies), "question": QUESTION})
    print(f"{path}: {path.stat().st_size / 1024:.0f} KB, closest choice {worst[0]:.1e} ({worst[1]})")


# ---- the question ------------------------------------------------------------------------------

QUESTION = "what is on the other plate?"
BYTES = [*range(33, 127), *range(161, 173), *range(174, 256)]  # characters of their own in CLIP's tokenizer


def vocabulary():
    """All bytes, all bytes at the end of a word, two merges, begin and end of a text."""
    other = [b for b in range(256) if b not in BYTES]
    letters = [chr(b) for b in BYTES] + [chr(256 + i) for i in range(len(other))]
    return letters + [c + "</w>" for c in letters] + ["th", "the</w>", "<|startoftext|>", "<|endoftext|>"]


def encode(text, vocab):
    """Of lower-case letters and question marks."""
    ids = [vocab.index("<|startoftext|>")]
    for word in text.replace("?", " ?").split():
        parts = list(word[:-1]) + [word[-1] + "</w>"]
        for a, b in ("t", "h"), ("th", "e</w>"):
            for i in reversed(range(len(parts) - 1)):
                if (parts[i], parts[i + 1]) == (a, b):
                    parts[i:i + 2] = [a + b]
        ids += [vocab.index(part) for part in parts]
    return ids + [vocab.index("<|endoftext|>")]


def small_clip(folder, seed, width):
    """The CLIP of the small model's tower: its last LayerNorm, projections and text tower."""
    vocab = vocabulary()
    n = len(vocab)
    text = dict(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3, vocab_size=n,
                max_position_embeddings=40, bos_token_id=n - 2, eos_token_id=n - 1)
    vision = dict(hidden_size=width, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4, image_size=84, patch_size=14)
    clip = randomize(transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=20)), seed)
    copy.deepcopy(clip).half().save_pretrained(folder)
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(vocab)}))
    (folder / "merges.txt").write_text("#version: 0.2\nt h\nth e</w>\n")
    return clip


def relevance(clip, x):
    """Minus the cosine of each patch and the question, in the space of images and texts."""
    ids = torch.tensor([encode(QUESTION, vocabulary())])
    text = clip.get_text_features(input_ids=ids)
    text = getattr(text, "pooler_output", text)[0]
    rows = clip.visual_projection(clip.vision_model.post_layernorm(x))
    return -(rows @ text) / rows.norm(dim=1) / text.norm()


# ---- the small model ---------------------------------------------------------------------------

def small_model(seed):
    vision = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=6, num_attention_heads=4, image_size=84,
                  patch_size=14, projection_dim=24, hidden_act="quick_gelu")
    text = dict(hidden_size=40, intermediate_size=56, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
                vocab_size=64, max_position_embeddings=128, model_type="llama", bos_token_id=1, eos_token_id=2)
    config = transformers.LlavaConfig(vision_config=dict(vision, model_type="clip_vision_model"), text_config=text, image_token_index=60,
                                      vision_feature_layer=-2, projector_hidden_act="gelu", attn_implementation="eager")
    return randomize(transformers.LlavaForConditionalGeneration(config), seed)


def blobs(seed, side):
    """An image with large and small structures."""
    g = torch.Generator().manual_seed(seed)
    x = sum(F.interpolate(torch.rand(1, 3, n, n, generator=g), (side, side), mode="bicubic") for n in (3, 9, side)) / 3.0
    return (x[0].permute(1, 2, 0).clamp(0, 1) * 255).round().to(torch.uint8).contiguous().numpy()


def write_small(folder, seed):
    folder.mkdir(parents=True, exist_ok=True)
    model = small_model(seed)
    copy.deepcopy(model).half().save_pretrained(folder)  # the weights are float16 already, the angles of positions are not
    (folder / "generation_config.json").unlink(missing_ok=True)
    write_cases(folder / "expected.safetensors", model, [blobs(seed + i, 84) for i in range(2)], SMALL, [1, 7, 21, -200, 9, 33, 5],
                2e-5, clip=small_clip(folder / "clip", seed + 7, 32))
    print(f"{folder}: {sum(f.stat().st_size for f in folder.rglob('*')) / 1024:.0f} KB")


def main():
    a = argparse.ArgumentParser()
    a.add_argument("out", nargs="?", default="tests/visual_rules", type=Path)
    a.add_argument("--model", help="a LLaVA folder instead of the small one")
    a.add_argument("--pixels", help="a file with the images of that model, images.pixels [n, S, S, 3]")
    a.add_argument("--seed", type=int, default=1)
    a = a.parse_args()
    torch.set_grad_enabled(False)
    if not a.model:
        return write_small(a.out, a.seed)
    model = transformers.LlavaForConditionalGeneration.from_pretrained(a.model, attn_implementation="eager").double().eval()
    images = load_file(a.pixels)["images.pixels"][:2]
    ids = list(range(0, model.config.text_config.vocab_size, 500))
    write_cases(a.out, model, list(images), LARGE, [1, 319, 263, -200, 29871, 13, 5618], 1e-6, ids)


if __name__ == "__main__":
    main()
