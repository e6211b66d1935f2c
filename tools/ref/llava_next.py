"""A small random LLaVA-NeXT as transformers writes it, and what transformers makes of odd images.

    tools/ref/llava_next.py tests/llava_next
    tools/ref/llava_next.py MODEL --renyi build/renyi --image PHOTO

Writes the model (float16, transformers' names) and expected.safetensors, which test_llava_next.c
reads. For image i of IMAGES, whose pixels `picture` computes in C too:

  hf.i.squares   U8 [1 + tiles, S, S, 3]  base and tiles, LlavaNextImageProcessorPil without its
                                          last steps (divide by 255, normalize)
  hf.i.rows      F32 [n, width]           what pack_image_features gives the language model
  hf.i.newline   I32 [lines]              which of them are image_newline
  hf.i.logits    F32 [vocab]              after the prompt
  hf.i.tokens    I32 [TOKENS]             greedy, with the margin of each checked
  own.i.*                                 the same in the rules of LLaVA's own repository, where they
                                          differ: grids are [width, height], and patches without
                                          border are truncated without rounding
  cut.k.i.kept   I32 [n]                  policy k of CUTS (the best patches by class attention,
                                          `vispruner important=1`): square * patches + patch of
                                          each row, -2 for a newline
  cut.k.i.logits, cut.k.i.tokens          as above

The second form compares `renyi encode-image` with transformers on a model of any size, such as one of
`renyi init --arch llava-1.6-7b --dim 64 --heads 2 --blocks 2 --mlp-dim 96 MODEL`, and on the photo
in ten shapes.

Rows are packed here once more, from the published rules alone, and compared with transformers'.
Everything runs in float64. Needs torch, transformers, Pillow and safetensors.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import math
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.numpy import load_file, save_file
from transformers import CLIPVisionConfig, LlamaConfig, LlavaNextConfig, LlavaNextForConditionalGeneration
from transformers.models.llava_next.image_processing_llava_next import LlavaNextImageProcessor
from transformers.models.llava_next.image_processing_pil_llava_next import LlavaNextImageProcessorPil

from common import randomize

SIDE, PATCH, DIM, VOCAB, TOKENS, SEED = 28, 7, 32, 96, 8, 4
GRID = SIDE // PATCH
PINPOINTS = [[28, 56], [56, 28], [56, 56], [84, 28], [28, 84]]
IMAGE = VOCAB - 1
PROMPT = [1, 17, 40, IMAGE, 9, 22, 63, 5]
# width, height: wide, tall, square, smaller than a tile, extreme 10:1 both ways, so long that no line
# of patches is left, one tile, a grid without resizing, and a size that only rounding fits (hf).
IMAGES = [(90, 60), (47, 81), (70, 70), (20, 20), (300, 30), (30, 300), (2000, 5), (28, 28), (56, 56), (7, 6), (188, 47)]


# Patches, shared by the image or for each square, and whether lines end with a newline.
CUTS = [(5, False, True), (20, True, True), (20, True, False), (3, True, True)]
CUT_IMAGES = [0, 4, 6, 8]


def picture(i):
    """[H, W, 3], smooth with some noise; the same integers as in test_llava_next.c."""
    w, h = IMAGES[i]
    y, x, c = np.meshgrid(*(np.arange(n, dtype=np.uint64) for n in (h, w, 3)), indexing="ij")
    noise = (x * 73856093 ^ y * 19349663 ^ c * 83492791 ^ np.uint64(i + 1) * np.uint64(2654435761)) & np.uint64(0xFFFFFFFF)
    return ((x * (3 + c) + y * (5 - c) + (x * y >> np.uint64(3)) + (noise >> np.uint64(13) & np.uint64(63))) & np.uint64(255)).astype(np.uint8)


def model():
    vision = CLIPVisionConfig(hidden_size=64, intermediate_size=48, num_hidden_layers=3, num_attention_heads=1,
                              image_size=SIDE, patch_size=PATCH)
    text = LlamaConfig(hidden_size=DIM, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
                       num_key_value_heads=2, vocab_size=VOCAB, max_position_embeddings=512, rms_norm_eps=1e-5)
    config = LlavaNextConfig(vision_config=vision, text_config=text, image_token_index=IMAGE,
                             image_grid_pinpoints=PINPOINTS, image_seq_length=GRID * GRID)
    m = randomize(LlavaNextForConditionalGeneration(config), SEED)
    m.set_attn_implementation("eager")  # the others give no attention
    return m


# ---- the published rules, written once more ------------------------------------------------------

def best_grid(w, h, grids):
    """grids: (width, height) in pixels."""
    def merit(g):
        scale = min(g[0] / w, g[1] / h)
        used = min(int(w * scale) * int(h * scale), w * h)
        return used, used - g[0] * g[1]
    return max(grids, key=merit)  # the first of equals


def squares(image, grid):
    """Base and tiles by Pillow alone."""
    w, h = image.size
    gw, gh = grid
    if gw / w < gh / h:
        nw, nh = gw, min(math.ceil(h * (gw / w)), gh)
    else:
        nw, nh = min(math.ceil(w * (gh / h)), gw), gh
    canvas = Image.new("RGB", grid)
    canvas.paste(image.resize((nw, nh), Image.BICUBIC), ((gw - nw) // 2, (gh - nh) // 2))
    tiles = [canvas.crop((x, y, x + SIDE, y + SIDE)) for y in range(0, gh, SIDE) for x in range(0, gw, SIDE)]
    return np.stack([np.asarray(t) for t in [image.resize((SIDE, SIDE), Image.BICUBIC)] + tiles])


def window(w, h, grid, rounds):
    """Columns and lines of the patches that stay: (x0, x1, y0, y1)."""
    cols, lines = (n // SIDE * GRID for n in grid)
    whole = lambda x: int(round(x, 7)) if rounds else int(x)
    if w / h > cols / lines:
        cut = (lines - whole(h * (cols / w))) // 2
        return 0, cols, cut, lines - cut
    cut = (cols - whole(w * (lines / h))) // 2
    return cut, cols - cut, 0, lines


def pack(rows, newline, size, grid, rounds):
    """rows: [1 + tiles, patches, width]. Returns the rows in order and the places of newlines."""
    x0, x1, y0, y1 = window(*size, grid, rounds)
    out, ends = list(rows[0]), []
    for y in range(y0, y1):
        for x in range(x0, x1):
            tile = 1 + y // GRID * (grid[0] // SIDE) + x // GRID
            out.append(rows[tile][y % GRID * GRID + x % GRID])
        ends.append(len(out))
        out.append(newline)
    return torch.stack(out), ends


def shares(budget, sizes):
    """Largest remainders; equal ones go to the first."""
    total = sum(sizes)
    if budget >= total:
        return list(sizes)
    exact = [budget * n / total for n in sizes]
    out = [int(e) for e in exact]
    order = sorted(range(len(sizes)), key=lambda t: (-(budget * sizes[t] % total), t))
    for t in order[:budget - sum(out)]:
        out[t] += 1
    return out


def cut(scores, size, grid, budget, over_image, newlines):
    """scores: [1 + tiles, patches]. The best of each square stay; then the border goes. Returns
    (square, patch) of each row, None for a newline, and the closest decision."""
    x0, x1, y0, y1 = window(*size, grid, True)
    across = grid[0] // SIDE
    inside = [{p for p in range(GRID * GRID)
               if t == 0 or (x0 <= (t - 1) % across * GRID + p % GRID < x1 and y0 <= (t - 1) // across * GRID + p // GRID < y1)}
              for t in range(len(scores))]
    counts = shares(budget, [len(i) for i in inside]) if over_image else [budget] * len(scores)
    kept, margin = [], 1.0
    for t, count in enumerate(counts):
        order = sorted(range(GRID * GRID), key=lambda p: -scores[t][p])
        if 0 < count < GRID * GRID and inside[t]:
            margin = min(margin, float(scores[t][order[count - 1]] - scores[t][order[count]]))
        kept.append(set(order[:count]) & inside[t])
    rows = [(0, p) for p in sorted(kept[0])]
    for y in range(y0, y1):
        line = [(1 + y // GRID * across + x // GRID, y % GRID * GRID + x % GRID) for x in range(x0, x1)]
        line = [(t, p) for t, p in line if p in kept[t]]
        rows += line + ([None] if line and newlines else [])
    return rows, margin


# ---- running -------------------------------------------------------------------------------------

def normalized(u8):
    mean, std = (torch.tensor(v, dtype=torch.float32) for v in (LlavaNextImageProcessorPil.image_mean, LlavaNextImageProcessorPil.image_std))
    x = torch.from_numpy(u8.astype(np.float32)) / 255.0
    return ((x - mean) / std).permute(0, 3, 1, 2).double()


def project(m, u8):
    hidden = m.model.vision_tower(normalized(u8), output_hidden_states=True).hidden_states[-2][:, 1:]
    return m.model.multi_modal_projector(hidden)


def answer(m, rows, name):
    """Logits after the prompt, and greedy tokens; a token that rounding could change is refused."""
    table = m.get_input_embeddings()
    at = PROMPT.index(IMAGE)
    ids = torch.tensor(PROMPT)
    x = torch.cat([table(ids[:at]), rows, table(ids[at + 1:])])
    first, tokens = None, []
    for _ in range(TOKENS):
        logits = m.lm_head(m.model.language_model(inputs_embeds=x[None]).last_hidden_state)[0, -1]
        first = logits if first is None else first
        top = logits.topk(2)
        if float(top.values[0] - top.values[1]) < 3e-4:
            raise SystemExit(f"{name}: two tokens are nearly equal; take another seed")
        tokens.append(int(top.indices[0]))
        x = torch.cat([x, table(top.indices[:1])])
    return first, tokens


def put(out, name, u8, rows, ends, logits, tokens):
    out[name + ".squares"] = u8
    out[name + ".rows"] = rows.float().numpy()
    out[name + ".newline"] = np.array(ends, dtype=np.int32)
    out[name + ".logits"] = logits.float().numpy()
    out[name + ".tokens"] = np.array(tokens, dtype=np.int32)


def expect_cuts(m, out, i, u8, size, grid):
    seen = m.model.vision_tower(normalized(u8), output_hidden_states=True, output_attentions=True)
    scores = seen.attentions[1][:, :, 0, 1:].mean(1)  # of the block whose output is read
    features = m.model.multi_modal_projector(seen.hidden_states[-2][:, 1:])
    for k, (budget, over_image, newlines) in enumerate(CUTS):
        rows, margin = cut(scores, size, grid, budget, over_image, newlines)
        if margin < 1e-6:
            raise SystemExit(f"cut.{k}.{i}: two patches are nearly equal; take another seed")
        x = torch.stack([m.model.image_newline if r is None else features[r] for r in rows])
        logits, tokens = answer(m, x, f"cut.{k}.{i}")
        out[f"cut.{k}.{i}.kept"] = np.array([-2 if r is None else r[0] * GRID * GRID + r[1] for r in rows], dtype=np.int32)
        out[f"cut.{k}.{i}.logits"] = logits.float().numpy()
        out[f"cut.{k}.{i}.tokens"] = np.array(tokens, dtype=np.int32)


def expect(m, folder):
    raw = dict(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}, image_grid_pinpoints=PINPOINTS,
               do_rescale=False, do_normalize=False)
    pillow, torchvision = LlavaNextImageProcessorPil(**raw), LlavaNextImageProcessor(**raw)
    out, far, differ = {}, 0, 0
    for i, (w, h) in enumerate(IMAGES):
        image = Image.fromarray(picture(i))
        got = pillow(image, return_tensors="np")["pixel_values"][0]
        u8 = np.ascontiguousarray(got.transpose(0, 2, 3, 1).astype(np.uint8))
        fast = torchvision(image, return_tensors="np")["pixel_values"][0].transpose(0, 2, 3, 1)
        far = max(far, int(np.abs(fast.astype(int) - u8).max()))
        ids = torch.tensor([PROMPT])
        features = project(m, u8)
        grid = best_grid(w, h, [(b, a) for a, b in PINPOINTS])
        assert np.array_equal(squares(image, grid), u8), (w, h)
        packed = m.model.get_image_features(normalized(u8)[None], torch.tensor([[h, w]]),
                                            vision_feature_layer=-2, vision_feature_select_strategy="default")
        packed = packed.pooler_output[0]
        mine, ends = pack(features, m.model.image_newline, (w, h), grid, True)
        assert packed.shape == mine.shape and torch.equal(packed, mine), (w, h)
        long = torch.tensor([[t for p in PROMPT for t in ([p] * len(packed) if p == IMAGE else [p])]])
        whole = m(input_ids=long, pixel_values=normalized(u8)[None], image_sizes=torch.tensor([[h, w]])).logits[0, -1]
        logits, tokens = answer(m, packed, f"hf.{i}")
        assert torch.allclose(whole, logits, atol=1e-9), (w, h)
        put(out, f"hf.{i}", u8, packed, ends, logits, tokens)
        if i in CUT_IMAGES:
            expect_cuts(m, out, i, u8, (w, h), grid)
        own_grid = best_grid(w, h, PINPOINTS)
        own_u8 = squares(image, own_grid)
        own, own_ends = pack(project(m, own_u8), m.model.image_newline, (w, h), own_grid, False)
        differs = not np.array_equal(own_u8, u8) or not torch.equal(own, packed)
        if differs:
            differ += 1
            put(out, f"own.{i}", own_u8, own, own_ends, *answer(m, own, f"own.{i}"))
        print(f"{w:5} x {h:3}: grid {grid[0] // SIDE} x {grid[1] // SIDE}, {len(packed):4} rows, {len(ends):2} lines"
              f"{', another in LLaVA' if differs else ''}")
    print(f"torchvision's resize differs from Pillow's by {far} of 255 at most; {differ} images differ in LLaVA's own rules")
    out["prompt"] = np.array(PROMPT, dtype=np.int32)
    out["cut_images"] = np.array(CUT_IMAGES, dtype=np.int32)
    out["sizes"] = np.array(IMAGES, dtype=np.int32)
    save_file(out, folder / "expected.safetensors", {"seed": str(SEED)})


def compare(folder, renyi, photo):
    """Prints the shape, the rows and the largest relative error of a row for ten shapes of a photo."""
    m = LlavaNextForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    processor = LlavaNextImageProcessorPil.from_pretrained(folder)
    image = Image.open(photo).convert("RGB")
    shapes = [image.size, (500, 125), (125, 375), (300, 300), (640, 480), (1000, 100), (100, 1000), (672, 672), (1333, 501), (37, 900)]
    with tempfile.TemporaryDirectory() as tmp:
        images, files = [image.resize(s) for s in shapes], [f"{tmp}/{k}.png" for k in range(len(shapes))]
        for i, f in zip(images, files):
            i.save(f)
        subprocess.run([renyi, "encode-image", "-q", "-m", folder, *files, "-o", f"{tmp}/rows.safetensors"], check=True)
        got = load_file(f"{tmp}/rows.safetensors")
    for k, i in enumerate(images):
        o = processor(i, return_tensors="pt")
        want = m.model.get_image_features(o["pixel_values"], o["image_sizes"], vision_feature_layer=-2,
                                          vision_feature_select_strategy="default").pooler_output[0].numpy()
        mine = got[f"tokens.{k}"]
        assert mine.shape == want.shape, (i.size, mine.shape, want.shape)
        far = np.linalg.norm(mine - want, axis=1) / np.linalg.norm(want, axis=1)
        print(f"{i.size[0]:5} x {i.size[1]:4}: {len(o['pixel_values'][0])} squares, {len(want):4} rows within {far.max():.1e}, "
              f"{(got[f'positions.{k}'] == -2).sum():2} newlines")


def main():
    a = argparse.ArgumentParser()
    a.add_argument("folder", type=Path)
    a.add_argument("--renyi", metavar="PROGRAM", help="compare this program with transformers")
    a.add_argument("--image", metavar="PHOTO")
    a = a.parse_args()
    folder = a.folder
    if a.renyi:
        with torch.no_grad():
            compare(folder, a.renyi, a.image)
        return
    folder.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        m = model()
        expect(m, folder)
        m.half().save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    processor = LlavaNextImageProcessorPil(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE},
                                           image_grid_pinpoints=PINPOINTS)
    processor.save_pretrained(folder)
    for f in sorted(folder.iterdir()):
        print(f"{f.name:28} {f.stat().st_size / 1024:6.0f} KB")


main()
