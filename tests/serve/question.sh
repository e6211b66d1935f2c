#!/usr/bin/env bash
# Chats whose question chooses the visual tokens (cdpruner, --text-tower): the answers of `renyi ask`, also when
# chats of other questions about the same image were kept; what is refused without a CLIP, or at the start.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
llava() { python3 "$RENYI_SRC/tests/fixtures/make_llava.py" "$@"; }
llava llava width=32 seed=5
llava narrow seed=5
llava next width=32 tiles=1 seed=6
llava story tower=0 seed=5
cp -r "$RENYI_SRC/tests/visual_rules/clip" clip
commit=$(printf '%040d' 1)
mkdir -p hub/models--some--clip/refs hub/models--some--clip/snapshots
echo "$commit" >hub/models--some--clip/refs/main
cp -r clip "hub/models--some--clip/snapshots/$commit"
export HF_HUB_CACHE=$WORK/hub

# What does not fit is said at the start.
run 1 "$RENYI" serve --port 0 -m llava --text-tower nowhere
err_has "nowhere"
run 1 "$RENYI" serve --port 0 -m llava --prune 'cdpruner tokens=4'
err_has "--text-tower DIR"
run 1 "$RENYI" serve --port 0 -m llava --prune 'prumerge tokens=9999'
err_has "an image has 16 patches"
run 1 "$RENYI" serve --port 0 -m next --text-tower clip --prune 'cdpruner tokens=4'
err_has "a LLaVA-NeXT cannot choose by its questions"

serve -m llava -m next -m narrow -m story --text-tower clip --max-chats 1 --max-context 100000
grep -q 'narrow: no cdpruner: --text-tower clip: .* of width 32, the model one of 16' server.log || fail "narrow has another tower"
grep -q 'llava: no cdpruner' server.log && fail "llava has the tower of clip"
check question <<'PY'
image, policy = png(3), "cdpruner tokens=4"
write("a.png", image)
part = {"type": "image_url", "image_url": {"url": data_url(image)}}
questions = ["what is on the plate?", "where is the second dog", "why"]

def user(text, with_image=True):
    return {"role": "user", "content": ([part] if with_image else []) + [{"type": "text", "text": text}]}

def chat(messages, status=200, **options):
    return post("/v1/chat/completions", {"messages": messages, "prune": policy, "max_tokens": 12, **options}, status)

def ask(question):
    return json.loads(cli("ask", "-q", "-m", "llava", "-t", "1", "--json", "--text-tower", "clip", "--prune", policy, "--max-new-tokens", "12", "a.png", question))

def same(d, want):
    assert d["choices"][0]["message"]["content"] == want["text"], (d, want)
    assert d["renyi"]["policy"] == want["policy"] and d["renyi"]["visual_tokens"] == want["visual_tokens"] == 4, (d, want)
    return d["usage"]["prompt_tokens_details"]["cached_tokens"], d["usage"]["prompt_tokens"]

# Every question chooses its own tokens, and only what is before the image is taken from the chat that was kept.
wanted = [ask(q) for q in questions]
assert len({str(w["kept"]) for w in wanted}) > 1, [w["kept"] for w in wanted]
for i in [0, 1, 2, 1, 0]:
    same(chat([user(questions[i])]), wanted[i])
cached, prompt = same(chat([user(questions[0])]), wanted[0])
assert cached == prompt - 1, (cached, prompt)
cached, prompt = same(chat([user(questions[1])]), wanted[1])
assert 0 < cached < prompt - 4 - len(questions[1]), (cached, prompt)

# Later turns keep the tokens that the first question chose, whatever was kept of other chats.
for first in questions[:2]:
    history = [user(first), {"role": "assistant", "content": "yes"}, user(questions[2], False)]
    answers = []
    for before in questions:
        begun = chat([user(before)])
        d = chat(history)
        cached = d["usage"]["prompt_tokens_details"]["cached_tokens"]
        answers.append(d["choices"][0]["message"]["content"])
        assert (d["renyi"]["vision_ms"] == 0) == (cached >= begun["usage"]["prompt_tokens"]) == (before == first), (before, first, d)
    assert len(set(answers)) == 1, answers

# The text beside an image of a later message chooses; without an image there is nothing to choose.
hello = [{"role": "user", "content": questions[1]}, {"role": "assistant", "content": "yes"}]
late = chat(hello + [user(questions[0])])["choices"][0]["message"]["content"]
chat([user(questions[2])])
assert chat(hello + [user(questions[0])])["choices"][0]["message"]["content"] == late
assert chat(hello[:1])["renyi"]["visual_tokens"] == 0

# What is refused.
assert "by the question" in refused(chat([{"role": "user", "content": [part]}], 400), "invalid_value")
assert "LLaVA-NeXT" in refused(chat([user("why")], 400, model="next"), "invalid_value")
assert "of width 32" in refused(chat([user("why")], 400, model="narrow"), "invalid_policy", "prune")
assert "plain Llama" in refused(chat(hello[:1], 400, model="story"), "invalid_policy", "prune")
assert "16 patches" in refused(chat([user("why")], 400, prune="cdpruner tokens=17"), "invalid_policy", "prune")
assert chat([user("why")], model="narrow", prune="cdpruner tokens=4 metric=col")["renyi"]["visual_tokens"] == 4
PY
stop_server

serve -m llava
check without <<'PY'
image = {"type": "image_url", "image_url": {"url": data_url(png(3))}}
chat = {"messages": [{"role": "user", "content": [image, {"type": "text", "text": "why"}]}], "prune": "cdpruner tokens=4", "stream": True}
assert "--text-tower DIR" in refused(post("/v1/chat/completions", chat, 400), "invalid_policy", "prune")
PY
stop_server

# As the server's own policy, with the CLIP by its name in the cache.
serve -m llava --text-tower some/clip --prune 'cdpruner tokens=5'
check default <<'PY'
image = {"type": "image_url", "image_url": {"url": data_url(png(3))}}
chat = {"messages": [{"role": "user", "content": [image, {"type": "text", "text": "why"}]}], "max_tokens": 2}
d = post("/v1/chat/completions", chat)
assert d["renyi"]["visual_tokens"] == 5
write("a.png", png(3))
want = json.loads(cli("ask", "-q", "-m", "llava", "-t", "1", "--json", "--text-tower", "some/clip", "--prune", "cdpruner tokens=5", "--max-new-tokens", "2", "a.png", "why"))
assert d["choices"][0]["message"]["content"] == want["text"], (d, want)
PY
stop_server
