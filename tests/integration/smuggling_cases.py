# SPDX-License-Identifier: Apache-2.0
"""The golden files of test_smuggling (smuggling/*.case) as objects.

    case: NAME                     begins a case
    from: RFC 9112 section 6.3     where it comes from: a section, a CVE
    over: plain                    or tls; without it, both
    send:                          bytes of the sandbox, written at once; a further send: is a further write, after a pause
    | GET / HTTP/1.1\\r\\n
    end                            the sandbox ends its side here (plain only)
    reply:                         what a hostile origin answers; further ones as above
    then: close                    what it does afterwards: keep (default), close, cut (no close_notify), reset
    expect: ...                    see below
    origin:                        every byte the origin has to see
    client:                        every byte the sandbox has to get
    after: no                      the connection is not used again, nothing is sent behind the case

Escapes: \\r \\n \\t \\0 \\\\ \\xNN, repeat(COUNT,TEXT), {host} (19 bytes) and, in what the origin
sees, {secret}, the credential bound to paths under /key/. Line ends of the file count for nothing. A line of a
block is "| " and the bytes; where these end in a space it is written \\x20.

expect, of what a sandbox sends:
    refused 400              that answer, the connection closed, not one byte at the origin, a finding and an event
    refused 403 by policy    that answer, not one byte at the origin, no finding of smuggling; the connection goes on
    passed                   `origin` and nothing else reaches the origin, each request in it is answered by its own response
    passed, then refused 400 the same for the first requests; what follows them is refused
    cut off                  the request's end never reaches the origin: a part of `origin` at most; answered 400, or not at all
    answered early           one answer (400 where the rest is bad) that says that the connection is closed; a part of `origin` at most at the origin;
                             the second write waits for the answer
    unfinished               the same where the sandbox is to blame for no more than its going away: no finding
expect, of what an origin answers:
    502                      nothing of it is believed
    cut off                  the sandbox gets a part that it can tell from a whole
    whole, reused            `client`, and the connection serves the next request
    whole, not reused        `client`, and the connection is not used again
"""
import os
import re

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "smuggling")
REQUEST = re.compile(r"refused \d{3}( by policy)?|answered early|passed(, then refused \d{3}( by policy)?)?|cut off|unfinished")
RESPONSE = re.compile(r"502|cut off|whole, (not )?reused")
ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|[rnt0\\])|repeat\((\d+),((?:[^()\\]|\\.)*)\)")
PLAIN = {"r": "\r", "n": "\n", "t": "\t", "0": "\0", "\\": "\\"}
GET = "GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"


def unescape(text):
    def one(m):
        if m[2]:
            return unescape(m[3]) * int(m[2])
        return chr(int(m[1][1:], 16)) if m[1][0] == "x" else PLAIN[m[1]]
    return ESCAPE.sub(one, text)


class Smuggled:
    """One case. Blocks are text of one character per byte."""

    def __init__(self, name, where):
        self.name, self.where = name, where
        self.source = self.expect = self.over = ""
        self.send, self.reply = [], []
        self.origin = self.client = None
        self.then, self.after, self.end = "keep", True, False

    @property
    def hostile(self):
        return bool(self.reply) or self.then != "keep"

    def check(self):
        pattern = RESPONSE if self.hostile else REQUEST
        if not self.source or not pattern.fullmatch(self.expect) or self.over not in ("", "plain", "tls"):
            raise ValueError(f"{self.where}: {self.name}: from, expect or over is missing or wrong")
        if self.end and self.over != "plain":
            raise ValueError(f"{self.where}: {self.name}: only a plain connection can be ended on one side")
        if self.expect.startswith(("passed", "cut", "unfinished", "answered")) and not self.hostile and self.origin is None:
            raise ValueError(f"{self.where}: {self.name}: no origin")
        if self.expect.startswith("whole") and self.client is None:
            raise ValueError(f"{self.where}: {self.name}: no client")
        if not self.send:
            self.send = [GET]


def parse(path):
    cases, case, block = [], None, None
    with open(path, encoding="ascii") as f:
        for number, line in enumerate(f, 1):
            line, where = line.rstrip("\n"), f"{os.path.basename(path)}:{number}"
            if line.startswith("|"):
                block[-1] += unescape(line[2:])
                continue
            block = None
            key, _, value = line.partition(":")
            value = value.strip()
            if not line or line.startswith("#"):
                continue
            if key == "case":
                case = Smuggled(value, where)
                cases.append(case)
            elif key in ("send", "reply", "origin", "client"):
                block = getattr(case, key) or []
                block.append("")
                setattr(case, key, block)
            elif key == "end":
                case.end = True
            elif key == "after":
                case.after = value != "no"
            elif key in ("from", "over", "then", "expect"):
                setattr(case, "source" if key == "from" else key, value)
            else:
                raise ValueError(f"{where}: {line!r}")
    for case in cases:
        case.check()
    return cases


def load():
    """{file: [case]}"""
    return {name.removesuffix(".case"): parse(os.path.join(FOLDER, name)) for name in sorted(os.listdir(FOLDER))
            if name.endswith(".case")}
