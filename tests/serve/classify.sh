#!/usr/bin/env bash
# The server classifies and embeds images: the same bits as the command line, alone and in company.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
make_toy toy.safetensors
make_clip
mkdir siglip
"$RENYI" init -q --arch siglip_tiny_patch16_32 --blocks 1 siglip/model.safetensors
cp "$RENYI_SRC/tests/tokenizers/siglip_spiece.model" siglip/spiece.model
serve -m toy.safetensors -m clip=clip.safetensors -m siglip --max-batch 4 -t 2 --streams 2

check classify <<'PY'
images = [png(i) for i in range(6)]
for i, b in enumerate(images):
    write(f"{i}.png", b)
names = [f"{i}.png" for i in range(6)]

def want(*options):
    return json.loads(cli("classify", "-q", "-m", "toy.safetensors", "-t", "1", "--json", *options, *names))["results"]

def same(answer, results):
    assert len(answer) == len(results)
    for a, r in zip(answer, results):
        assert [(t["index"], t["label"], t["probability"], t["logit"]) for t in a["top"]] == \
               [(t["index"], t["label"], t["probability"], t["logit"]) for t in r["top"]], (a, r)

# All images of one request, dense and pruned; JSON and forms.
urls = [data_url(b) for b in images]
dense = want()
same(post("/v1/classify", {"images": urls})["data"], dense)
d = form("/v1/classify", [("image", f"{i}.png", b) for i, b in enumerate(images)], [("top_k", "3"), ("model", "toy.safetensors")])
assert [x["name"] for x in d["data"]] == names and all(len(x["top"]) == 3 for x in d["data"])
policy = "mosaic keep=0.5 layers=0,1"
pruned = want("--prune", policy)
d = post("/v1/classify", {"image": urls[0], "images": urls[1:], "prune": policy})
same(d["data"], pruned)
assert d["policy"].startswith("mosaic keep=0.5") and d["data"][0]["macs"] < d["macs_dense"] and d["model"] == "toy.safetensors"

# The same in company: 24 requests at once, two policies, one image each.
calls = [lambda i=i: post("/v1/classify", {"image": {"image_url": {"url": urls[i % 6]}}, "prune": policy if i % 2 else "none"}) for i in range(24)]
for i, d in enumerate(together(calls)):
    same(d["data"], [(pruned if i % 2 else dense)[i % 6]])
assert metric("batch_size_count") < metric("images_total"), "nothing ran together"
assert metric("tokens_dropped_total") > 0 and metric("macs_saved_total") > 0

# The trace is that of the command line.
cli("classify", "-q", "-m", "toy.safetensors", "-t", "1", "--prune", policy, "--trace", "t.jsonl", *names)
lines = [json.loads(l) for l in open("t.jsonl")]
d = post("/v1/classify", {"images": urls, "prune": policy, "trace": True})
for line, x in zip(lines, d["data"]):
    assert x["trace"]["tokens"] == line["tokens"] and x["trace"]["cuts"][0]["kept"] == line["cuts"][0]["kept"]

# More policies than sessions are kept: the least used ones are made again, with the same answer.
for i in range(12):
    post("/v1/classify", {"image": urls[0], "prune": f"evit keep=0.{50 + i} layers=1"})
same(post("/v1/classify", {"images": urls})["data"], dense)
PY

check embed <<'PY'
images = [png(i) for i in range(3)]
for i, b in enumerate(images):
    write(f"{i}.png", b)
cli("embed", "-q", "-m", "clip.safetensors", "-t", "1", "-o", "rows.npy", "0.png", "1.png", "2.png")
cli("embed", "-q", "-m", "clip.safetensors", "-t", "1", "-o", "texts.npy", "--text", "a cat", "--text", "of")

def rows(path, n):
    raw_bytes = open(path, "rb").read()
    data = raw_bytes[len(raw_bytes) - n * 4 * (len(raw_bytes) // (4 * n)):]
    header = struct.unpack("<H", raw_bytes[8:10])[0]
    body = raw_bytes[10 + header:]
    width = len(body) // (4 * n)
    return [body[i * width * 4:(i + 1) * width * 4] for i in range(n)]

def bits(answer):
    return [base64.b64decode(d["embedding"]) for d in answer["data"]]

want_images, want_texts = rows("rows.npy", 3), rows("texts.npy", 2)
urls = [data_url(b) for b in images]
d = post("/v1/embeddings", {"model": "clip", "input": [{"image_url": u} for u in urls], "encoding_format": "base64"})
assert bits(d) == want_images and d["usage"]["prompt_tokens"] > 0
d = post("/v1/embeddings", {"model": "clip", "input": ["a cat", {"type": "image_url", "image_url": {"url": urls[2]}}, "of"], "encoding_format": "base64"})
assert bits(d) == [want_texts[0], want_images[2], want_texts[1]]
floats = post("/v1/embeddings", {"model": "clip", "input": "a cat"})["data"][0]["embedding"]
assert struct.pack(f"<{len(floats)}f", *floats) == want_texts[0]
# In company: texts and images of 20 requests.
calls = [lambda i=i: bits(post("/v1/embeddings", {"model": "clip", "input": ["a cat", "of"] if i % 2 else [{"image_url": urls[0]}], "encoding_format": "base64"})) for i in range(20)]
for i, got in enumerate(together(calls)):
    assert got == (want_texts if i % 2 else want_images[:1])
# A ViT embeds images, too, and says that it has no texts.
saved = metric("macs_saved_total")
assert len(post("/v1/embeddings", {"model": "toy.safetensors", "input": [{"image_url": urls[0]}]})["data"][0]["embedding"]) == 64
assert metric("macs_saved_total") == saved, "an embedding without pruning saves nothing"
refused(post("/v1/embeddings", {"model": "toy.safetensors", "input": "a cat"}, 400), "unsupported", "input")
# Without a name: the first model that embeds images, and the first that embeds texts.
assert post("/v1/embeddings", {"input": [{"image_url": urls[0]}]})["model"] == "toy.safetensors"
assert post("/v1/embeddings", {"input": [{"image_url": urls[0]}, "a cat"]})["model"] == "clip"
assert post("/v1/embeddings", {"input": "a cat"})["data"][0]["embedding"] == floats
refused(post("/v1/embeddings", {"input": "a cat", "model": "clip", "dimensions": 8}, 400), "unsupported", "dimensions")
refused(post("/v1/embeddings", {"input": [1, 2, 3], "model": "clip"}, 400), "invalid_type", "input")
refused(post("/v1/embeddings", {"input": [{"type": {}, "text": "a"}], "model": "clip"}, 400), "invalid_type", "input")
refused(post("/v1/embeddings", {"input": [{"text": "a", "image_url": data_url(png(1))}], "model": "clip"}, 400), "invalid_value", "input")
both = [{"text": None, "image_url": data_url(png(1))}, {"text": "a", "image_url": None}]
alone = [{"image_url": data_url(png(1))}, "a"]
a, b = (post("/v1/embeddings", {"input": x, "model": "clip"})["data"] for x in (both, alone))
assert a == b, "null is as if it were not there"
assert "token ids" in refused(post("/v1/embeddings", {"input": {"text": 3}, "model": "clip"}, 400), "invalid_type", "input")
refused(post("/v1/embeddings", {"input": [], "model": "clip"}, 400), "invalid_value", "input")
refused(post("/v1/embeddings", {"model": "clip"}, 400), "missing", "input")
refused(post("/v1/embeddings", {"input": "cat " * 200, "model": "clip"}, 400), "invalid_text")
post("/v1/embeddings", {"input": "cat " * 200, "model": "clip", "truncate": True})

# Immich's service.
assert get("/ping") == (200, "pong")
entry = lambda kind, name="clip": [("entries", json.dumps({"clip": {kind: {"modelName": name, "options": {}}}}))]
d = form("/predict", [("image", "a.png", images[1])], entry("visual"))
got = json.loads(d["clip"])
assert struct.pack(f"<{len(got)}f", *got) == want_images[1] and d["imageHeight"] == 48 and d["imageWidth"] == 48
got = json.loads(form("/predict", [], entry("textual") + [("text", "a cat")])["clip"])
assert struct.pack(f"<{len(got)}f", *got) == want_texts[0]
refused(form("/predict", [], entry("visual"), 400), "missing", "image")
refused(form("/predict", [], entry("visual", "other"), 400), "missing", "image")
refused(form("/predict", [("image", "a.png", images[1])], entry("visual", "other"), 404), "model_not_found", "model")
refused(form("/predict", [("image", "a.png", images[1])], [("entries", "{}")], 422), "unsupported", "entries")
PY

check zeroshot <<'PY'
images = [png(i) for i in range(4)]
urls = [data_url(b) for b in images]
for i, b in enumerate(images):
    write(f"z{i}.png", b)
write("names.txt", b"cat\nof\n")
sentences = ["a {}.", "the {}"]
fields = ("index", "label", "probability", "logit")
# The answers of `renyi classify --class-names`: a softmax with CLIP, sigmoids with SigLIP.
for model, path in (("siglip", "siglip"), ("clip", "clip.safetensors")):
    d = post("/v1/zeroshot", {"model": model, "images": urls, "classes": ["cat", "of"], "templates": sentences})
    run = json.loads(cli("classify", "-q", "-m", path, "-t", "1", "--class-names", "names.txt", "--templates", sentences[0], "--templates", sentences[1], "--cache", "none", "--json", *[f"z{i}.png" for i in range(4)]))
    for x, r in zip(d["data"], run["results"]):
        assert [[t[f] for f in fields] for t in x["top"]] == [[t[f] for f in fields] for t in r["top"]], (model, x, r)
    total = sum(t["probability"] for t in d["data"][0]["top"])
    assert (abs(total - 1) < 1e-6) == (model == "clip"), (model, total)
assert post("/v1/zeroshot", {"image": urls[0], "classes": ["cat"]})["model"] == "clip"
# The same by the embeddings of the API: softmax of scale x cosine, to the last digits.
again = post("/v1/zeroshot", {"model": "clip", "images": urls[:1], "classes": ["cat", "of"], "templates": ["a {}.", "the {}"]})
assert again["data"][0]["top"] == d["data"][0]["top"]
assert again["data"][0]["macs"] == again["macs_dense"], "the class rows are part of both"
one = form("/v1/zeroshot", [("image", "a.png", images[0])], [("classes", "cat"), ("classes", "of"), ("templates", "a {}."), ("templates", "the {}")])
assert one["data"][0]["top"] == d["data"][0]["top"]
emb = lambda x: post("/v1/embeddings", {"model": "clip", "input": x})["data"]
image = emb([{"image_url": urls[0]}])[0]["embedding"]
top = {t["label"]: t["logit"] for t in d["data"][0]["top"]}
scale = []
for name in ("cat", "of"):
    rows_ = [r["embedding"] for r in emb([f"a {name}.", f"the {name}"])]
    mean = [sum(v) / 2 for v in zip(*rows_)]
    norm = sum(v * v for v in mean) ** 0.5
    scale.append(top[name] / sum(a * b / norm for a, b in zip(image, mean)))
assert abs(scale[0] / scale[1] - 1) < 1e-3, scale
calls = [lambda i=i: post("/v1/zeroshot", {"image": urls[i % 4], "classes": ["cat", "of"] if i % 2 else ["of", "cat", "a"]}) for i in range(12)]
alone = [post("/v1/zeroshot", {"image": urls[i % 4], "classes": ["cat", "of"] if i % 2 else ["of", "cat", "a"]}) for i in range(12)]
for a, b in zip(together(calls), alone):
    assert a["data"][0]["top"] == b["data"][0]["top"]
refused(post("/v1/zeroshot", {"image": urls[0]}, 400), "missing", "classes")
refused(post("/v1/zeroshot", {"image": urls[0], "classes": []}, 400), "invalid_type", "classes")
refused(post("/v1/zeroshot", {"image": urls[0], "classes": ["a", 1]}, 400), "invalid_type", "classes")
refused(post("/v1/zeroshot", {"image": urls[0], "classes": ["a"], "templates": ["none"]}, 400), "invalid_value", "templates")
refused(post("/v1/zeroshot", {"classes": ["a"]}, 400), "missing", "images")
refused(post("/v1/zeroshot", {"image": urls[0], "classes": ["cat"], "model": "toy.safetensors"}, 400), "unsupported", "model")
refused(post("/v1/zeroshot", {"image": urls[0], "classes": ["cat " * 100]}, 400), "invalid_value")
refused(post("/v1/zeroshot", {"image": urls[0], "classes": ["a"] * 3000}, 413), "too_many_texts", "classes")
PY
stop_server
