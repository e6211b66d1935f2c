#!/usr/bin/env bash
# Chats over HTTP: the answers of `renyi ask`, streamed and whole, stop texts, the cache, faults.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
python3 "$RENYI_SRC/tests/fixtures/make_llava.py" llava seed=5
python3 "$RENYI_SRC/tests/fixtures/make_llava.py" llama tower=0 seed=5
python3 "$RENYI_SRC/tests/fixtures/make_llava.py" next tiles=1 seed=6
serve -m llava -m story=llama -m next --max-chats 2 --max-tokens 64

check chat <<'PY'
image = png(3)
write("a.png", image)
url = data_url(image)

def ask(model, *arguments):
    return json.loads(cli("ask", "-q", "-m", model, "-t", "1", "--json", *arguments))

def user(text, with_image=True):
    parts = [{"type": "text", "text": text}]
    return {"role": "user", "content": ([{"type": "image_url", "image_url": {"url": url}}] if with_image else []) + parts}

def chat(messages, status=200, **options):
    return post("/v1/chat/completions", {"messages": messages, **options}, status)

def events(messages, **options):
    c = http.client.HTTPConnection(HOST.hostname, HOST.port, timeout=60)
    c.request("POST", "/v1/chat/completions", json.dumps({"messages": messages, "stream": True, **options}), {"Content-Type": "application/json"})
    r = c.getresponse()
    assert r.status == 200 and r.getheader("Content-Type").startswith("text/event-stream"), r.status
    lines = [l for l in r.read().decode().split("\n\n") if l]
    assert all(l.startswith("data: ") for l in lines) and lines[-1] == "data: [DONE]", lines
    return [json.loads(l[6:]) for l in lines[:-1]]

def text_of(chunks):
    return "".join(c["choices"][0]["delta"].get("content", "") for c in chunks if c["choices"])

# The answer of the command line, whole and streamed, greedy and sampled, dense and pruned.
for options, arguments in [({}, []), ({"temperature": 0.9, "top_p": 0.8, "seed": 7}, ["--temperature", "0.9", "--top-p", "0.8", "--seed", "7"]),
                           ({"prune": "prumerge tokens=2"}, ["--prune", "prumerge tokens=2"])]:
    want = ask("llava", "--max-new-tokens", "12", *arguments, "a.png", "What is it?")
    d = chat([user("What is it?")], max_tokens=12, **options)
    c = d["choices"][0]
    assert c["message"]["content"] == want["text"] and d["object"] == "chat.completion", (c, want)
    assert d["usage"]["completion_tokens"] == len(want["tokens"]) and d["usage"]["prompt_tokens"] == want["prompt_tokens"]
    assert d["renyi"]["visual_tokens"] == want["visual_tokens"] and d["renyi"]["policy"] == want["policy"]
    assert c["finish_reason"] == ("stop" if want["end"] == "eos" else "length")
    chunks = events([user("What is it?")], max_tokens=12, **options)
    assert text_of(chunks) == want["text"] and chunks[0]["choices"][0]["delta"]["role"] == "assistant", (chunks, want)
    assert chunks[-1]["choices"][0]["finish_reason"] == c["finish_reason"] and "usage" not in chunks[-1]
chunks = events([user("What is it?")], max_tokens=5, stream_options={"include_usage": True})
assert chunks[-1]["choices"] == [] and chunks[-1]["usage"]["completion_tokens"] == 5
assert chat([user("What is it?", False)], max_tokens=3)["renyi"]["visual_tokens"] == 0

# A LLaVA-NeXT: base, tiles and newlines.
for policy in "none", "uniform tokens=12 budget=image":
    want = ask("next", "--max-new-tokens", "6", "--prune", policy, "a.png", "What is it?")
    d = chat([user("What is it?")], model="next", max_tokens=6, prune=policy)
    assert d["choices"][0]["message"]["content"] == want["text"] and d["renyi"]["policy"] == want["policy"], (d, want)
    assert d["renyi"]["visual_tokens"] == want["visual_tokens"] and "newline" in want["kept"], (d, want)

# A chat that goes on: only what is new is read, and the answer is that of a server without a cache.
first = chat([user("What is it?")], max_tokens=8)["choices"][0]["message"]
history = [user("What is it?"), first, user("And why?", False)]
second = chat(history, max_tokens=8)
cached = second["usage"]["prompt_tokens_details"]["cached_tokens"]
assert 0 < cached < second["usage"]["prompt_tokens"], second["usage"]
for i in range(3):  # other chats take its place
    chat([user(f"Question {i}")], max_tokens=1, prune=f"prumerge tokens={i + 1}")
fresh = chat(history, max_tokens=8)
assert fresh["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
assert fresh["choices"][0]["message"] == second["choices"][0]["message"]

# The image in a later message of the user: its place in the prompt, written out as ids, and the answer of the command line.
def ids(text):
    return json.loads(cli("tokenize", "-q", "-m", "llava", "--no-special", "--json", text))["texts"][0]["ids"]

plain = {"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Yes?"}
for system, before in [(None, "A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, detailed, and polite answers to the user's questions. "), ("Be brief.", "Be brief. ")]:
    later = ([{"role": "system", "content": system}] if system else []) + [*plain, user("What is it?")]
    prompt = [1, *ids(before + "USER: Hello ASSISTANT: Yes?</s>USER: "), -200, *ids("\nWhat is it? ASSISTANT:")]
    want = ask("llava", "--max-new-tokens", "9", "--prompt-ids=" + " ".join(map(str, prompt)), "a.png")
    d = chat(later, max_tokens=9)
    assert d["usage"]["prompt_tokens"] == want["prompt_tokens"] and d["renyi"]["visual_tokens"] == want["visual_tokens"] > 0, (d, want)
    assert d["choices"][0]["message"]["content"] == want["text"], (d, want)
    again = chat(later + [d["choices"][0]["message"], {"role": "user", "content": "And why?"}], max_tokens=4)["usage"]
    assert again["prompt_tokens_details"]["cached_tokens"] >= d["usage"]["prompt_tokens"] - 1, (again, d["usage"])

# Stop texts, also when they are spread over pieces; nothing of them is sent.
whole = chat([user("What is it?")], max_tokens=20)["choices"][0]["message"]["content"]
for at, n in [(3, 1), (4, 3), (1, 5)]:
    stop = whole[at:at + n]
    want = whole[:whole.index(stop)]
    d = chat([user("What is it?")], max_tokens=20, stop=stop)["choices"][0]
    assert d["message"]["content"] == want and d["finish_reason"] == "stop", (stop, d, whole)
    chunks = events([user("What is it?")], max_tokens=20, stop=["never there", stop])
    assert text_of(chunks) == want and chunks[-1]["choices"][0]["finish_reason"] == "stop"

# A plain Llama continues the texts.
want = ask("llama", "--max-new-tokens", "9", "Once upon a time")
d = chat([{"role": "user", "content": "Once upon a time"}], model="story", max_tokens=9)
assert d["choices"][0]["message"]["content"] == want["text"], (d, want)
assert text_of(events([{"role": "user", "content": "Once upon a time"}], model="story", max_tokens=9)) == want["text"]

# Two chats without an image by turns: each keeps its rows. A chat that is edited near its end takes over what it shares.
def say(*texts):
    d = chat([{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)], model="story", max_tokens=9)
    return d["choices"][0]["message"]["content"], d["usage"]["prompt_tokens"], d["usage"]["prompt_tokens_details"]["cached_tokens"]
one, n_one, _ = say("The dog ran to the park.")
two, n_two, _ = say("A little girl had a red ball.")
assert say("The dog ran to the park.", one, " Then")[2] >= n_one
assert say("A little girl had a red ball.", two, " Then")[2] >= n_two
assert say("The dog ran to the park.", one, " Now")[2] >= n_one
assert metric("chat_answer_tokens_total") > 50 and metric("chat_cached_tokens_total") >= cached

# What is refused.
hi = {"role": "user", "content": "hi"}
for document, code, param in [
        ({}, "missing", "messages"), ({"messages": []}, "invalid_type", "messages"), ({"messages": "hi"}, "invalid_type", "messages"),
        ({"messages": [{"content": "hi"}]}, "missing", "messages"), ({"messages": [{"role": "tool", "content": "hi"}]}, "unsupported", "messages"),
        ({"messages": [{"role": "user"}]}, "invalid_type", "messages"), ({"messages": [{"role": "assistant", "content": "hi"}]}, "invalid_value", "messages"),
        ({"messages": [hi, {"role": "assistant", "content": "yes"}]}, "invalid_value", "messages"), ({"messages": [hi, hi]}, "invalid_value", "messages"),
        ({"messages": [hi], "max_tokens": 65}, "invalid_value", "max_tokens"), ({"messages": [hi], "max_tokens": "5"}, "invalid_type", "max_tokens"),
        ({"messages": [hi], "temperature": -1}, "invalid_value", "temperature"), ({"messages": [hi], "top_p": 0}, "invalid_value", "top_p"),
        ({"messages": [hi], "n": 2}, "unsupported", "n"), ({"messages": [hi], "tools": [{}]}, "unsupported", "tools"),
        ({"messages": [hi], "tool_choice": "auto"}, "unsupported", "tool_choice"), ({"messages": [hi], "logit_bias": {"1": 2}}, "unsupported", "logit_bias"),
        ({"messages": [hi], "modalities": ["audio"]}, "unsupported", "modalities"), ({"messages": [hi], "top_k": 5}, "unsupported", "top_k"),
        ({"messages": [hi], "repetition_penalty": 1.1}, "unsupported", "repetition_penalty"), ({"messages": [hi], "presence_penalty": -1}, "unsupported", "presence_penalty"),
        ({"messages": [hi], "response_format": "x"}, "unsupported", "response_format"), ({"messages": [hi], "response_format": {"type": "json_object"}}, "unsupported", "response_format"),
        ({"messages": [user("a")], "prune": "prumerge tokens=17"}, "invalid_policy", "prune"), ({"messages": [hi], "prune": "evit layers=99"}, "invalid_policy", "prune"),
        ({"messages": [hi], "stop": ""}, "invalid_value", "stop"), ({"messages": [hi], "stop": list("abcde")}, "invalid_value", "stop"),
        ({"messages": [hi], "prune": "nonsense"}, "invalid_policy", "prune"),
        ({"messages": [user("a"), hi | {"role": "assistant"}, user("b")]}, "too_many_images", "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}}]}]}, "invalid_image_url", "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}]}, "invalid_image_url", "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": data_url(b"no image")}}]}]}, "invalid_image", None),
        ({"messages": [user("a")], "model": "story"}, "unsupported", "messages")]:
    refused(post("/v1/chat/completions", document, 400), code, param)
refused(chat([hi], 404, model="none"), "model_not_found", "model")
nothing = {"n": 1, "tools": [], "tool_choice": "none", "logit_bias": {}, "logprobs": False, "top_logprobs": 0, "modalities": ["text"], "top_k": 0, "min_p": 0,
           "repetition_penalty": 1.0, "presence_penalty": 0, "frequency_penalty": 0.0, "response_format": {"type": "text"}}
for options in nothing, dict.fromkeys(nothing):  # what asks for nothing is taken
    assert chat([hi], max_tokens=2, **options)["usage"]["completion_tokens"] == 2
refused(chat([{"role": "user", "content": "x " * 20000}], 400), "invalid_value")  # longer than the context
refused(chat([{"role": "user", "content": "x" * 70000}], 413), "text_too_long", "messages")

# A client that goes away ends its answer; the next one is served.
s = socket.create_connection((HOST.hostname, HOST.port))
body = json.dumps({"messages": [user("What is it?")], "stream": True, "max_tokens": 64}).encode()
s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
s.recv(100)
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
s.close()
assert chat([user("What is it?")], max_tokens=4)["usage"]["completion_tokens"] == 4
results = together([lambda i=i: chat([user(f"Question {i % 3}")], max_tokens=6)["choices"][0]["message"]["content"] for i in range(9)])
assert all(results[i] == results[i % 3] for i in range(9))
PY
stop_server
