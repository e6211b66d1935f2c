#!/usr/bin/env bash
# Charts are well-formed XML and pages are balanced HTML, whatever names and numbers they contain.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo "SKIP: no python3 to read SVG and HTML"; exit 77; }

"$RENYI_BUILD/tests/test_report" write || fail "no files were written"
cat >check.py <<'PY'
import re, sys
from html.parser import HTMLParser
from xml.etree import ElementTree

VOID = {'meta', 'link', 'br', 'input'}

class Page(HTMLParser):
    """Every tag is closed in order, ids are unique, links to rows have a target."""
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.links, self.scripts = [], [], [], 0
    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.scripts += tag == 'script'
        if 'id' in attrs: self.ids.append(attrs['id'])
        href = attrs.get('href', '')
        if href.startswith('#'): self.links.append(href[1:])
        assert not any(name.startswith('on') for name in attrs), attrs
        assert 'src' not in attrs and not href.startswith(('http', 'javascript')), attrs
        if tag not in VOID: self.open.append(tag)
    def handle_startendtag(self, tag, attrs):
        pass
    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

for name in sys.argv[1:]:
    text = open(name, encoding='utf-8', errors='strict').read()
    assert not re.search(r'\b(nan|inf)\b', re.sub(r'<(style|script).*?</\1>', '', text, flags=re.S)), name
    if name.endswith('.svg'):
        root = ElementTree.fromstring(text)
        assert root.tag.endswith('}svg') and root.find('{*}title').text and root.find('{*}desc').text, name
    else:
        page = Page()
        page.feed(text)
        page.close()
        assert not page.open, (name, page.open)
        assert len(set(page.ids)) == len(page.ids), name
        assert set(page.links) <= set(page.ids), name
        assert page.scripts == 2, (name, page.scripts)
        for svg in re.findall(r'<svg xmlns.*?</svg>', text, flags=re.S):
            ElementTree.fromstring(svg)
PY
python3 check.py ./*.svg ./*.html || fail "a chart or page is not valid"
if command -v xmllint >/dev/null; then
  xmllint --noout ./*.svg || fail "xmllint rejects a chart"
else
  echo "SKIP: no xmllint for a second opinion on the charts (1)"
fi
