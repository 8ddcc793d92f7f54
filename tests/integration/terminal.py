# SPDX-License-Identifier: Apache-2.0
"""A command on a terminal of its own, as wide as a test says."""
import fcntl
import os
import re
import struct
import subprocess
import termios

COLOUR = re.compile(r"\033\[(0|1;31|31|32|33)m")


def run(width, *argv, env=None, input=None):
    """(status, what it wrote to the terminal). Standard error is there, too; input is what is typed."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    full = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    full.update({"TERM": "xterm", "TZ": "UTC"}, **(env or {}))
    p = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=full, start_new_session=True)
    os.close(theirs)
    if input:
        os.write(ours, input.encode())
    out = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # its last writer has closed it
            break
        if not piece:
            break
        out += piece
    os.close(ours)
    return p.wait(), out.decode("utf-8", "surrogateescape").replace("\r\n", "\n")


def plain(text):
    """Without the colors that we use ourselves: any other escape stays, for a test to find."""
    return COLOUR.sub("", text)
