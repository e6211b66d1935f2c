"""page_proxy.py PROBE - shows the page of the server at $RENYI_URL with a script added; everything else goes on to the server.

Prints its own address. What the script posts to /probe is written to probe-result.txt; after a post to /seen there is seen.txt. Headers of the page stay, so the script runs under its Content-Security-Policy.
"""
# SPDX-License-Identifier: Apache-2.0
import http.client
import os
import sys
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SERVER = urllib.parse.urlparse(os.environ["RENYI_URL"])
PROBE = open(sys.argv[1], "rb").read()


class Proxy(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def forward(self):
        c = http.client.HTTPConnection(SERVER.hostname, SERVER.port, timeout=60)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/seen":
            open("seen.txt", "w").close()
        if self.path == "/probe":
            with open("probe-part.txt", "wb") as f:
                f.write(body)
            os.rename("probe-part.txt", "probe-result.txt")
            self.send_response(204)
            self.end_headers()
            return
        c.request(self.command, self.path, body or None, {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection")})
        r = c.getresponse()
        is_page = self.path.split("?")[0] == "/"
        data = r.read().replace(b"</body>", PROBE + b"</body>") if is_page else None
        self.send_response(r.status)
        for name, value in r.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.end_headers()
        while data or data is None:
            piece = data if data is not None else r.read1(4096)
            if not piece:
                break
            self.wfile.write(piece)
            self.wfile.flush()
            data = b"" if data is not None else None

    do_GET = do_POST = forward


server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
