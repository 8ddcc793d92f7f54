# SPDX-License-Identifier: Apache-2.0
"""The reader of the tests' origins, which control every byte that they read from a connection."""


class SocketReader:
    def __init__(self, sock):
        self.sock, self.data = sock, b""

    def more(self):
        piece = self.sock.recv(65536)
        if not piece:
            raise EOFError
        self.data += piece

    def until(self, mark):
        """Returns the bytes before the mark, and consumes the mark too."""
        while mark not in self.data:
            self.more()
        head, _, self.data = self.data.partition(mark)
        return head

    def piece(self, n):
        """At most n bytes: what has come, or comes next."""
        while not self.data:
            self.more()
        part, self.data = self.data[:n], self.data[n:]
        return part

    def take(self, n):
        """Just n bytes."""
        while len(self.data) < n:
            self.more()
        part, self.data = self.data[:n], self.data[n:]
        return part
