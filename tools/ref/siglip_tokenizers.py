"""Compares `renyi tokenize` with the Python tokenizers of SigLIP and SigLIP 2 on odd strings.

    tools/ref/siglip_tokenizers.py check --renyi build/renyi [--strings 5000]
        [--spiece spiece.model] [--t5-json tokenizer.json] [--gemma-gguf vocab.gguf]
    tools/ref/siglip_tokenizers.py fixtures tests/tokenizers

`check` prints how many texts differ, and the first of them, for
  siglip    transformers' SiglipTokenizer on spiece.model
  openclip  OpenCLIP's HFTokenizer (clean=canonicalize) on T5's tokenizer.json
  siglip2   transformers' Siglip2Tokenizer with <eos>, Gemma's pieces and merges
Without a file the vocabularies are trained here, with T5's and Gemma's options. `fixtures` writes
small vocabularies with expected ids for the tests. OpenCLIP's ftfy is replaced by composition
(NFC), which is what renyi does; texts with characters newer than Unicode 14 are left out.
Needs transformers, tokenizers, sentencepiece, open_clip_torch (and gguf for --gemma-gguf).
"""
# SPDX-License-Identifier: Apache-2.0

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

# ---- odd strings ---------------------------------------------------------------------------------

WORDS = """a photo of the cat dog Golden Retriever BLURRY low-resolution don't it's 3.14 1,000,000
naïve façade Ångström ΑΣ ΣΑΣ ΟΔΥΣΣΕΥΣ İstanbul ﬁne ﬂow ① ½ ２０２６ ｆｕｌｌ Ｗｉｄｔｈ ｶﾀｶﾅ 日本語 東京タワー 中文字符 한국어 조선글
русский Ёлка українська العربية עברית हिन्दी ไทย ελληνικά 😀 👍🏽 👨‍👩‍👧 🇩🇪 ™ © … “quoted” ‘x’ — – ‐ ﷺ ㎏ Ⅷ
&amp; &lt;b&gt; &eacute; &#233; <b>bold</b> </s> <unk> <pad> <eos> <bos> <0x41> {} [x] (y) a_b snake_case
C++ C# e-mail@example.com https://example.org/a?b=c&d=%20 #tag @user $5 50% ~ ` ^ | \\ / // ...
""".split()
SPACES = [" ", "  ", "\t", "\n", "\u00a0", "\u3000", "\u2003", "\u200b", "\r\n", " \n ", "\x1c"]
MARKS = ["\u0301", "\u0308", "\u0327", "\u20dd", "\ufe0f", "\u200d", "\u0e31", "▁", "\u00ad"]


def odd_string(rng):
    kind = rng.randrange(8)
    if kind == 0:  # any characters
        return "".join(any_char(rng) for _ in range(rng.randrange(0, 30)))
    if kind == 1:  # runs
        return rng.choice(["a", "!", " ", "日", "😀", "ss", "\n", "_", "9"]) * rng.randrange(0, 40)
    parts = []
    for _ in range(rng.randrange(0, 14)):
        word = rng.choice(WORDS)
        word = rng.choice([word, word.upper(), word.lower(), word.title(), word[::-1], word])
        if rng.random() < 0.1:
            word += rng.choice(MARKS)
        if rng.random() < 0.1:
            word += any_char(rng)
        parts.append(word)
        parts.append(" " if rng.random() < 0.7 else rng.choice(SPACES + [""]))
    if rng.random() < 0.2:
        parts.insert(0, rng.choice(SPACES))
    if rng.random() < 0.5 and parts:
        parts.pop()
    return "".join(parts)


def any_char(rng):
    low, high = rng.choice([(1, 0x7f), (1, 0x2ff), (0x300, 0x1fff), (0x2000, 0x2fff),
                            (0x3000, 0xd7ff), (0xf900, 0xffef), (0x10000, 0x1ffff)])
    return chr(rng.randrange(low, high))


def is_old(text):
    """Every character is assigned in Python's Unicode, none is a noncharacter."""
    return all(unicodedata.category(c) not in ("Cn", "Cs") for c in text)


def odd_strings(n, seed):
    rng = random.Random(seed)
    texts = []
    while len(texts) < n:
        text = odd_string(rng)
        if is_old(text):
            texts.append(text)
    return texts


# ---- vocabularies --------------------------------------------------------------------------------

def corpus(seed, n):
    rng = random.Random(seed)
    plain = [w for w in WORDS if not w.startswith("<")]
    return [" ".join(rng.choice(plain) for _ in range(rng.randrange(1, 12))) for _ in range(n)]


def few_rules(path):
    """A part of nmt_nfkc, whose table alone has 240 KB."""
    sources = [chr(c) for c in [*range(0xa0, 0x100), 0x2026, 0x2122, *range(0x2160, 0x2170),
                                *range(0x2460, 0x2474), *range(0xfb00, 0xfb07), 0xfdfa, 0x338f,
                                *range(0xff01, 0xff5f), *range(0xff66, 0xff9e)]]
    sources += [base + mark for base in "aeiounAEIOUN" for mark in "\u0301\u0308\u0303"]
    rules = {t: unicodedata.normalize("NFKC", t) for t in sources}
    rules.update({c: " " for c in "\t\n\r\u2581\u200b\u2003\u3000\xa0"})
    hexed = lambda t: " ".join(f"{ord(c):X}" for c in t)
    path.write_text("".join(f"{hexed(a)}\t{hexed(b)}\n" for a, b in sorted(rules.items())
                            if a != b))


def train_unigram(path, size, is_small=False):
    """A unigram model with T5's options."""
    import sentencepiece as spm
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        (scratch / "text").write_text("\n".join(corpus(1, 4000)))
        few_rules(scratch / "rules")
        rules = (dict(normalization_rule_tsv=str(scratch / "rules")) if is_small
                 else dict(normalization_rule_name="nmt_nfkc"))
        spm.SentencePieceTrainer.train(
            input=str(scratch / "text"), model_prefix=str(scratch / "m"), vocab_size=size,
            model_type="unigram", pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
            character_coverage=0.999, minloglevel=2, hard_vocab_limit=False,
            required_chars="<>unk", **rules)  # SiglipTokenizer encodes "<unk>" as text
        path.write_bytes((scratch / "m.model").read_bytes())


def gemma_tables(gguf, size):
    """Pieces, merges, and names of special and of other added tokens."""
    if gguf:
        from gguf import GGUFReader
        fields = GGUFReader(gguf).fields
        get = lambda key: fields["tokenizer.ggml." + key].contents()
        tokens, types = get("tokens"), get("token_type")
        merges = [split_merge(m) for m in get("merges")]
        return ({t: i for i, t in enumerate(tokens)}, merges,
                [t for t, k in zip(tokens, types) if k == 3],
                [t for t, k in zip(tokens, types) if k == 4])
    from tokenizers import Tokenizer, models, normalizers, trainers
    names = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    tok = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tok.normalizer = normalizers.Replace(" ", "▁")
    alphabet = names + [f"<0x{b:02X}>" for b in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=alphabet, show_progress=False)
    tok.train_from_iterator(corpus(2, 4000), trainer)
    model = json.loads(tok.to_str())["model"]
    return model["vocab"], [tuple(m) for m in model["merges"]], names, []


def split_merge(text):
    """A merge of a GGUF file: two pieces with one space between; pieces have no spaces."""
    left, _, right = text.partition(" ")
    return left, right


def make_gemma(folder, gguf, size=2000):
    from tokenizers import AddedToken, processors
    from transformers import Siglip2Tokenizer
    vocab, merges, special, other = gemma_tables(gguf, size)
    tok = Siglip2Tokenizer(vocab=vocab, merges=merges)
    backend = tok._tokenizer
    backend.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in special])
    backend.add_tokens([AddedToken(t, normalized=False, special=False) for t in other])
    backend.post_processor = processors.TemplateProcessing(
        single="$A <eos>", special_tokens=[("<eos>", vocab["<eos>"])])
    folder.mkdir(parents=True, exist_ok=True)
    tok.save_pretrained(folder)
    return tok


def make_siglip(folder, spiece, size=800, is_small=False):
    from transformers import SiglipTokenizer
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "spiece.model"
    if spiece:
        target.write_bytes(pathlib.Path(spiece).read_bytes())
    else:
        train_unigram(target, size, is_small)
    return SiglipTokenizer(str(target))


def make_open_clip(folder, t5_json, spiece, size=800):
    """T5's fast tokenizer as OpenCLIP's repositories have it: </s> fills a text."""
    import open_clip.tokenizer as oc
    from transformers import T5Tokenizer
    oc.ftfy.fix_text = lambda text: unicodedata.normalize("NFC", text)
    folder.mkdir(parents=True, exist_ok=True)
    if t5_json:
        fast = T5Tokenizer.from_pretrained(str(pathlib.Path(t5_json).parent))
    else:
        fast = T5Tokenizer.from_pretrained(str(pathlib.Path(spiece).parent), extra_ids=0)
    fast.pad_token = "</s>"
    fast.save_pretrained(folder)
    cfg = {"model_cfg": {"text_cfg": {"hf_tokenizer_name": "x", "context_length": 64,
                                      "tokenizer_kwargs": {"clean": "canonicalize"}}}}
    (folder / "open_clip_config.json").write_text(json.dumps(cfg))
    tok = oc.HFTokenizer(str(folder), context_length=64, clean="canonicalize")
    return lambda text: tok.tokenizer(tok.clean_fn(text)).input_ids


# ---- comparing -----------------------------------------------------------------------------------

def run_renyi(renyi, folder, texts):
    ids = []
    for at in range(0, len(texts), 500):
        out = subprocess.run([renyi, "tokenize", "--tokenizer", str(folder), "--json", "--",
                              *texts[at:at + 500]], capture_output=True, check=True)
        ids += [t["ids"] for t in json.loads(out.stdout)["texts"]]
    return ids


def compare(name, renyi, folder, reference, texts):
    got = run_renyi(renyi, folder, texts)
    bad = [(t, list(reference(t)), g) for t, g in zip(texts, got) if list(reference(t)) != g]
    print(f"{name}: {len(texts)} texts, {len(bad)} differ")
    for text, want, ids in bad[:8]:
        print(f"  {text!r}\n    want {want}\n    got  {ids}")
    return len(bad)


def check(args):
    texts = odd_strings(args.strings, args.seed)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        siglip = make_siglip(scratch / "siglip", args.spiece)
        gemma = make_gemma(scratch / "siglip2", args.gemma_gguf)
        clip = make_open_clip(scratch / "openclip", args.t5_json, scratch / "siglip/spiece.model")
        n = compare("siglip", args.renyi, scratch / "siglip", lambda t: siglip(t).input_ids, texts)
        n += compare("siglip2", args.renyi, scratch / "siglip2", lambda t: gemma(t).input_ids,
                     texts)
        n += compare("openclip", args.renyi, scratch / "openclip", clip, texts)
    sys.exit(1 if n else 0)


def fixtures(out, n=250):
    """Vocabularies of two kinds, and odd strings with the ids that transformers gives."""
    out.mkdir(parents=True, exist_ok=True)
    texts = odd_strings(n, 7)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        siglip = make_siglip(scratch / "siglip", None, 500, is_small=True)
        gemma = make_gemma(scratch / "siglip2", None, 1200)
        (out / "siglip_spiece.model").write_bytes((scratch / "siglip/spiece.model").read_bytes())
        root = json.loads((scratch / "siglip2/tokenizer.json").read_text())
        (out / "siglip2_tokenizer.json").write_text(json.dumps(root, ensure_ascii=False))
    for name, tok in (("siglip", siglip), ("siglip2", gemma)):
        rows = [[t, list(tok(t).input_ids)] for t in texts]
        lines = ",\n".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in rows)
        (out / f"{name}_ids.json").write_text(f"[{lines}]\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["check", "fixtures"])
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--renyi", default="build/renyi")
    parser.add_argument("--strings", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spiece")
    parser.add_argument("--t5-json")
    parser.add_argument("--gemma-gguf")
    args = parser.parse_args()
    if args.action == "check":
        check(args)
    fixtures(args.out)


if __name__ == "__main__":
    main()
