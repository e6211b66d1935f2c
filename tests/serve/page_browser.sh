#!/usr/bin/env bash
# The page of the server in a browser: photos, bars, the slider and its overlay, class names, a chat that
# streams, errors, keys, a phone; no message in the console.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
need_browser
make_toy toy.safetensors
make_clip
python3 "$RENYI_SRC/tests/fixtures/make_llava.py" llava seed=5
serve -m toy=toy.safetensors -m clip=clip.safetensors -m llava

# visit URL: the browser opens the page until the script in it has posted its result. The browser itself reports
# refused requests, which are part of the test; any other message in the console fails.
visit() {
  rm -f probe-result.txt
  timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$WORK/profile" --remote-debugging-port=0 \
    --enable-logging=stderr ${look[@]+"${look[@]}"} "$1" >/dev/null 2>err &
  local visitor=$!
  for _ in $(seq 1000); do
    [ ! -f probe-result.txt ] && kill -0 $visitor 2>/dev/null || break
    sleep 0.1
  done
  kill $visitor 2>/dev/null || true
  wait $visitor 2>/dev/null || true
  grep 'CONSOLE' err | grep -v 'Failed to load resource: the server responded with a status of \(4\|503\)' >console.txt || true
  [ ! -s console.txt ] || fail "messages in the console: $(cat console.txt)"
}

# show NAME WIDTH,HEIGHT [OPTIONS...]: opens the page with the script of stdin in it, which must find nothing wrong.
# With RENYI_SHOTS=FOLDER also a screenshot.
show() {
  local name=$1 size=$2
  shift 2
  { cat <<'JS'
<script>
const said = [], ok = (what, is) => { if (!is) said.push('NOT ' + what); };
window.addEventListener('error', (e) => said.push('NOT without error: ' + e.message));
window.addEventListener('unhandledrejection', (e) => said.push('NOT without error: ' + e.reason));
const until = async (what, is, ms = 30000) => { for (const end = Date.now() + ms; !is(); await new Promise((r) => setTimeout(r, 20))) if (Date.now() > end) { said.push('NOT in time: ' + what); return; } };
const shown = (id) => document.getElementById(id).getClientRects().length > 0;
const texts = (css) => [...document.querySelectorAll(css)].map((e) => e.textContent);
const input = (id, v, type = 'input') => { const e = document.getElementById(id); e.value = v; e.dispatchEvent(new Event(type, { bubbles: true })); };
// A photo with a red and a green half.
const halves = async (name = 'halves.png', type = 'image/png') => { const c = document.createElement('canvas'); c.width = 320; c.height = 240; const x = c.getContext('2d');
  x.fillStyle = '#c02020'; x.fillRect(0, 0, 320, 240); x.fillStyle = '#20a040'; x.fillRect(160, 0, 160, 240); for (let i = 0; i < 40; i++) { x.fillStyle = `hsl(${i * 9} 60% 50%)`; x.beginPath(); x.arc(20 + i % 8 * 40, 20 + (i >> 3) * 45, 14, 0, 7); x.fill(); }
  return new File([await new Promise((r) => c.toBlob(r, 'image/png'))], name, { type }); };
const choose = async (...files) => { const d = new DataTransfer(); files.forEach((f) => d.items.add(f)); document.getElementById('file').files = d.files; document.getElementById('file').dispatchEvent(new Event('change')); };
const drop = async (file) => { const d = new DataTransfer(); d.items.add(file); document.dispatchEvent(new DragEvent('drop', { dataTransfer: d, bubbles: true, cancelable: true })); };
const copy = document.createElement('canvas'), copied = copy.getContext('2d', { willReadFrequently: true });
const pixels = () => { const c = document.getElementById('canvas'); copy.width = c.width; copy.height = c.height; copied.drawImage(c, 0, 0);
  return [...copied.getImageData(0, 0, c.width, c.height).data].reduce((s, v, i) => (s * 31 + v * (i % 97 + 1)) % 1000000007, 7); };
(async () => { try {
JS
    cat
    cat <<'JS'
} catch (e) { said.push('NOT without error: ' + e.stack); }
await fetch('/probe', { method: 'POST', body: said.length ? said.join('\n') : 'all is well' }); })();
</script>
JS
  } >"probe-$name.html"
  python3 "$RENYI_SRC/tests/serve/page_proxy.py" "probe-$name.html" >proxy.txt &
  proxy=$!
  trap 'kill -9 $server $proxy 2>/dev/null || true; rm -rf "$WORK"' EXIT
  for _ in $(seq 100); do [ -s proxy.txt ] && break; sleep 0.05; done
  look=(--window-size="$size" --force-device-scale-factor=1 --hide-scrollbars "$@")
  visit "$(cat proxy.txt)/"
  if [ -n "${RENYI_SHOTS:-}" ]; then (browse --screenshot="$RENYI_SHOTS/$name.png" "$(cat proxy.txt)/") || true; fi
  kill $proxy
  rm proxy.txt
  [ "$(cat probe-result.txt 2>/dev/null)" = "all is well" ] || fail "$name: $(cat probe-result.txt 2>/dev/null || echo 'no result')"
}

show classify 1200,900 --blink-settings=preferredColorScheme=1 <<'JS'
await until('models', () => texts('#model option').length === 3);
ok('three models', texts('#model option').join() === 'toy,clip,llava');
ok('a hint', shown('hint') && !shown('error') && shown('answer') && !shown('chat'));
await choose(await halves());
await until('bars', () => texts('#bars li').length === 5);
ok('names and shares', texts('#bars .name').every((t) => /^class \d$/.test(t)) && texts('#bars .share').every((t) => /%$/.test(t)));
await until('an overlay', () => shown('cut-box'));
ok('costs beside dense', shown('costs') && texts('#costs tbody tr').length === 2 && texts('#costs td').some((t) => / G$/.test(t)) && texts('#costs td').some((t) => / ms$/.test(t)));
ok('the policy', document.getElementById('policy').value.startsWith('mosaic keep=0.7'));
ok('says what is left', /\d+ of 196 patches are left/.test(document.getElementById('canvas').ariaLabel));
let before = pixels(), label = document.getElementById('canvas').ariaLabel;
input('keep', 30);
await until('the slider acts', () => document.getElementById('canvas').ariaLabel !== label);
ok('another overlay', pixels() !== before && document.getElementById('keep-out').textContent === '30 %');
before = pixels();
input('cut', 0); ok('no overlay before the first cut', pixels() !== before && document.getElementById('canvas').ariaLabel.includes('196 of 196'));
// Patches cover patch_size x grid pixels of the input, here a half, and no more.
const half = () => { pixels(); return [...copied.getImageData(copy.width / 2, copy.height / 2, copy.width / 2, copy.height / 2).data].join(); };
model.image_size *= 2; draw(); before = half(); let whole = pixels();
input('cut', 1); ok('no overlay where no patch is', half() === before && pixels() !== whole);
model.image_size /= 2; draw();
input('cut', 1);
input('rule', 'evit', 'change');
await until('EViT', () => document.getElementById('status').textContent.startsWith('evit keep=0.3'));
input('policy', 'evit kep=0.5');
await until('a clear error', () => shown('error') && document.getElementById('error').textContent.includes('kep'));
input('policy', 'evit keep=0.5 layers=1');
await until('and then an answer', () => !shown('error') && document.getElementById('status').textContent.startsWith('evit keep=0.5'));
input('rule', 'none', 'change');
await until('no pruning', () => !shown('costs') && !shown('cut-box'));
await drop(await halves('second.png'));
await until('a second photo', () => texts('#tray button').length === 2 && document.getElementById('canvas').ariaLabel === 'second.png');
await choose(new File(['no image'], 'wrong.gif', { type: 'image/gif' }));
await until('other files are refused', () => shown('error') && document.getElementById('error').textContent.includes('wrong.gif'));
document.querySelector('#tray button').click();
input('rule', 'mosaic', 'change');
await until('the first again', () => shown('cut-box') && document.getElementById('canvas').ariaLabel.startsWith('halves.png'));
document.getElementById('error').hidden = true;
ok('labels', [...document.querySelectorAll('input:not([hidden]),select,textarea')].every((e) => e.labels.length));
JS

show camera 800,900 --use-fake-device-for-media-stream --use-fake-ui-for-media-stream <<'JS'
await until('models', () => texts('#model option').length === 3);
document.getElementById('camera').click();
await until('the camera is on', () => shown('shoot') && shown('video') && document.getElementById('video').videoWidth > 0);
document.getElementById('shoot').click();
await until('a photo and its answer', () => document.getElementById('canvas').ariaLabel.startsWith('camera.jpg') && texts('#bars li').length === 5);
ok('the camera is off', !shown('video') && !shown('shoot') && !document.getElementById('video').srcObject.active);
const d = new DataTransfer(); d.items.add(await halves('pasted.png'));
document.dispatchEvent(new ClipboardEvent('paste', { clipboardData: d, bubbles: true, cancelable: true }));
await until('a pasted photo', () => document.getElementById('canvas').ariaLabel.startsWith('pasted.png') && texts('#tray button').length === 2);
JS

show zeroshot 1200,900 --blink-settings=preferredColorScheme=0 <<'JS'
await until('models', () => texts('#model option').length === 3);
input('model', 'clip', 'change');
ok('class names', shown('names') && shown('template'));
await choose(await halves());
await until('a bar per class', () => texts('#bars .name').sort().join() === 'car,cat,dog,tree');
input('names', 'cat\na cat of phones\n');
await until('other classes', () => texts('#bars .name').sort().join() === 'a cat of phones,cat');
input('template', 'no place');
await until('a wrong sentence', () => shown('error') && document.getElementById('error').textContent.includes('{}'));
input('template', 'a {}');
await until('a right one', () => !shown('error') && texts('#bars li').length === 2);
JS

show chat 390,844 --blink-settings=preferredColorScheme=0 <<'JS'
await until('models', () => texts('#model option').length === 3);
input('model', 'llava', 'change');
ok('a chat', shown('chat') && !shown('answer'));
await choose(await halves());
await until('the photo', () => shown('canvas'));
input('rule', 'prumerge', 'change');
document.getElementById('question').value = 'What is it?';
document.getElementById('ask').requestSubmit();
await until('an answer', () => document.getElementById('chat-status').textContent.includes('visual tokens'));
ok('both said something', texts('#log p').length === 2 && texts('#log .user').join() === 'What is it?' && texts('#log .assistant')[0].length > 3);
document.getElementById('question').value = 'Why?';
document.getElementById('ask').requestSubmit();
await until('it goes on', () => texts('#log p').length === 4 && texts('#log .assistant')[1].length > 0 && !document.getElementById('send').disabled);
ok('from the cache', +/\((\d+) cached/.exec(document.getElementById('chat-status').textContent)[1] > 10);
input('policy', 'nonsense'); input('rule', 'custom', 'change'); input('policy', 'nonsense');
document.getElementById('question').value = 'And?';
document.getElementById('ask').requestSubmit();
await until('an error', () => shown('error') && document.getElementById('error').textContent.includes('nonsense'));
ok('no empty answer is left', texts('#log .assistant').every((t) => t));
document.getElementById('error').hidden = true;
ok('no sideways scrolling', document.documentElement.scrollWidth <= innerWidth);
JS
stop_server

printf 'key-of-the-page-0123\n' >keys.txt && chmod 600 keys.txt
serve -m toy=toy.safetensors --api-key-file keys.txt
show key 800,600 <<'JS'
await until('a key is asked for', () => shown('key') && shown('error') && document.getElementById('error').textContent.includes('key'));
input('key', 'key-of-the-page-0123', 'change');
await until('and accepted', () => !shown('error') && texts('#model option').join() === 'toy');
JS
stop_server

# While models load the page says so, and goes on by itself when they are there. The script tells by POST /seen that it has seen that.
mkfifo names.txt
serve_loading -m toy=toy.safetensors --labels names.txt
(while ! [ -e seen.txt ]; do sleep 0.1; done; seq 10 >names.txt) &
show loading 800,600 <<'JS'
await until('it says that models are loaded', () => shown('error') && document.getElementById('error').textContent.includes('loaded'));
await fetch('/seen', { method: 'POST', body: '' });
await until('and goes on', () => !shown('error') && texts('#model option').join() === 'toy');
await choose(await halves());
await until('bars', () => texts('#bars li').length === 5);
JS
stop_server
