# SPDX-License-Identifier: Apache-2.0
"""serve.py FOLDER PORT: the page of FOLDER on localhost, isolated from other origins (COOP and COEP), until it is ended. What
the page posts becomes FOLDER/out.json."""
import functools
import http.server
import os
import sys


class Page(http.server.SimpleHTTPRequestHandler):
    def end_headers(self):
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def do_POST(self):
        part = os.path.join(self.directory, "part")
        with open(part, "wb") as f:
            f.write(self.rfile.read(int(self.headers["Content-Length"])))
        os.rename(part, os.path.join(self.directory, "out.json"))
        self.send_response(204)
        self.end_headers()


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), functools.partial(Page, directory=sys.argv[1]))
print("ready", flush=True)
server.serve_forever()
