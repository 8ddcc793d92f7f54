# SPDX-License-Identifier: Apache-2.0
"""Runs inside the sandbox: takes the runs of test_smuggling on standard input as JSON, does them side by side, each on
a connection of its own and then a clean request to the same host on a new one, and prints what came back."""
import concurrent.futures
import json
import socket
import ssl
import sys
import time

from inside import connect

THREADS = 24
PAUSE = 0.06
CONTEXT = ssl.create_default_context()


def opened(host, secure, timeout):
    s = connect(host, 443 if secure else 80, timeout)
    return CONTEXT.wrap_socket(s, server_hostname=host) if secure else s


def read(s):
    """Everything that comes, and how it ended: closed, reset or silent."""
    data = b""
    while True:
        try:
            piece = s.recv(65536)
        except TimeoutError:
            return data, "silent"
        except (OSError, ssl.SSLError):
            return data, "reset"
        if not piece:
            return data, "closed"
        data += piece


def talk(host, secure, writes, end, timeout, early=False):
    """early: an answer is waited for before the second write."""
    answer = b""
    try:
        with opened(host, secure, timeout) as s:
            try:
                for i, piece in enumerate(writes):
                    if i:
                        time.sleep(PAUSE)
                    while i and early and b"\r\n\r\n" not in answer:
                        more = s.recv(65536)
                        if not more:
                            return answer, "closed"
                        answer += more
                    s.sendall(piece.encode("latin-1"))
                if end:
                    s.shutdown(socket.SHUT_WR)
            except OSError:  # refused already: the answer may be there to read
                pass
            data, ending = read(s)
            return answer + data, ending
    except OSError as e:
        return answer, "unconnected: " + str(e)


def run(order):
    began = time.monotonic()
    data, ending = talk(order["host"], order["tls"], order["send"], order["end"], order["timeout"], order["early"])
    clean = f"GET /clean HTTP/1.1\r\nHost: {order['host']}\r\nConnection: close\r\n\r\n"
    again, again_ending = talk(order["host"], order["tls"], [clean], False, order["timeout"])
    return {"host": order["host"], "data": data.decode("latin-1"), "ending": ending, "clean": again.decode("latin-1"),
            "clean_ending": again_ending, "seconds": round(time.monotonic() - began, 3)}


if __name__ == "__main__":
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        print(json.dumps(list(pool.map(run, json.load(sys.stdin)))))
